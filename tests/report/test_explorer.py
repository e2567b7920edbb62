"""The page in which decoders run, as a file: whole, pure, and safe whatever names say. `tests/browser` opens it."""

import json
import re

import numpy as np
import pytest

from axiswise.records import Exploration, ExploredMember
from axiswise.report import explorer

NASTY = '</script><script>alert("1")</script> & "quotes"'


def member(running: bool = True, **changes) -> ExploredMember:
    latents, codes = 2, np.random.default_rng(0).normal(size=(6, 2)).astype(np.float32)
    arrays = {
        "weights": np.ones(6, np.float16),
        "codes": codes,
        "decoded": np.zeros(4, np.float32),
        "active": np.array([True, False]),
        "kl": np.array([1.5, 0.0]),
        "prior": np.full((latents, 5), 0.2),
        "symmetric": np.array([True]),
        **{name: np.zeros(latents) for name in ("low", "high", "centre")},
    }
    strip = {"strip": np.zeros((2, 3, 1, 4, 4), np.uint8), "strip_latents": np.array([1, 0])}
    layers = ({"kind": "affine", "inputs": [0], "tensors": {}, "scale": 1.0, "shift": 0.0},)
    counterparts, correlations = (np.array([0, -1]),), (np.array([1.0, 0.0]),)
    found = ExploredMember(
        "a641", {"objective": NASTY, "seed": 3}, {"mig": 0.25, "dto": 0.5}, "best mig", layers, "", arrays,
        counterparts, correlations,
    )  # fmt: skip
    return (found if running else found._replace(layers=(), reason="it has <b>no</b> layers", arrays=strip))._replace(
        **changes
    )


@pytest.fixture
def exploration() -> Exploration:
    arrays = {"x": np.zeros((2, 1, 2, 2), np.float32), "range": np.array([0.0, 1.0])}
    about = {"dataset": NASTY, "points": 6, "members": 2}
    return Exploration(NASTY, NASTY, (1, 2, 2), (member(), member(running=False)), arrays, about)


def test_the_same_exploration_gives_the_same_bytes(exploration, tmp_path):
    first, second = (explorer(exploration, tmp_path / name).read_bytes() for name in ("a.html", "b.html"))
    assert first == second
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.html", "b.html"]  # and nothing half written


def test_no_name_becomes_markup_and_nothing_is_fetched(exploration, tmp_path):
    page = explorer(exploration, tmp_path / "page.html").read_text(encoding="utf-8")
    assert "alert(" in page  # as text
    assert '<script>alert("1")' not in page
    assert page.count("<script") == page.count("</script>") == 4  # the data and three files
    assert "<b>no</b>" not in page
    assert "default-src 'none'" in page
    assert "unsafe-inline" not in page  # the browser runs the page's own scripts alone
    assert not re.search(r'(src|href)="(?!data:)', page)
    assert not re.search(r"https?://|fetch\(|XMLHttpRequest|innerHTML|eval\(", page)
    assert not re.search(r"<[^>]*\son\w+=", page)


def test_the_data_is_json_with_what_the_page_needs(exploration, tmp_path):
    page = explorer(exploration, tmp_path / "page.html").read_text(encoding="utf-8")
    data = json.loads(re.search(r'id="exploration">(.*?)</script>', page, re.S)[1])
    (own,) = data["members"]
    assert own["name"] == f"objective = {NASTY}, seed = 3"
    assert (own["role"], own["scores"]) == ("best MIG", ["MIG 0.250", "DtO 0.500"])
    assert (own["active"], own["kl"], data["bins"]) == ([True, False], [1.5, 0.0], 5)
    assert own["counterparts"] == [[0, -1]]


def test_one_model_has_no_others(exploration, tmp_path):
    page = explorer(exploration, tmp_path / "page.html").read_text(encoding="utf-8")
    assert "What the model decodes" in page
    assert "In the others" not in page
    assert "its counterparts in the other" not in page
    assert re.search(r"<dt>weights and codes</dt><dd>\d+ kB</dd>", page)


def test_members_that_do_not_run_are_still_and_the_others_are_counted(exploration, tmp_path):
    plain = member(running=False, reason="it was not chosen to run", arrays={})
    more = Exploration("Title", "", (1, 2, 2), (*exploration.members, plain, plain), exploration.arrays, {})
    page = explorer(more, tmp_path / "page.html").read_text(encoding="utf-8")
    assert page.count("<img") == 1
    assert "It does not run, since it has &lt;b&gt;no&lt;/b&gt; layers." in page
    assert "Rows: z1, z0." in page
    assert "3 models that do not run here" in page
    assert "2 more are not shown." in page
    assert "--members a641,a641" in page
    alone = Exploration("Title", "", (1, 2, 2), (member(running=False),), exploration.arrays, {})
    assert "<script" not in explorer(alone, tmp_path / "still.html").read_text(encoding="utf-8")
