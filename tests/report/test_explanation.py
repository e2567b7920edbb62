"""The page of an explanation: one file, the same bytes for the same numbers, nothing that records can write into."""

import re
import subprocess
import sys
from dataclasses import replace
from html.parser import HTMLParser

import numpy as np
import pytest

from axiswise.records import Baseline, Explanation, Finding
from axiswise.records._explanation import interval_words
from axiswise.report import page
from axiswise.statistics import Interval


def interval(estimate, half=0.1):
    return Interval(estimate, estimate - half, estimate + half, 0.95, 100, "Student t")


def findings():
    turned = Baseline("this model, rotated", 1.1, 0.9, 1.3, "200 random rotations")
    chance = Baseline("chance", 1.2, 0.8, 1.6, "one random rotation (Haar)")
    return (
        Finding("active", "Which?", "3 of 4 latents.", interval(3.0, 0.0), "active latents", "A, equation 1"),
        Finding("orthogonality", "Aligned?", "Yes.", interval(0.4), "DtO", "B, equation 2", (turned, chance)),
        Finding("columns", "Orthogonal?", "Yes.", interval(0.2), "share", "C, equation 3", (turned,)),
        Finding("law", "Obeyed?", "Roughly.", interval(0.15), "mean |log|", "D, equation 4", (turned,)),
        Finding("local directions", "Local?", "Yes.", interval(30.0), "degrees", "E", (turned,)),
        Finding("aggregate", "Prior?", "Off.", interval(0.3), "σ", "F, equation 5"),
        Finding("overlap", "Overlap?", "Undefined.", None, "nats", "F, section 1"),
        Finding("effects", "What?", "z0.", interval(0.1), "change", "B, equation 6"),
        Finding("scores", "Factors?", "MIG.", interval(0.5), "MIG", "G, equation 7", (turned,)),
    )


def arrays(*shape):
    rng = np.random.default_rng(0)
    active = 3
    return {
        "names": np.array([f"z{place}" for place in range(4)]),
        "order": np.array([2, 0, 1]),
        "kl": np.array([1.0, 0.5, 2.0, 0.001]),
        "variance": np.array([0.1, 0.5, 0.01, 1.0]),
        "dto": rng.random(50),
        "dto/rotated": 1 + 0.1 * rng.random(200),
        "singular values": -np.sort(-rng.random((50, active)), axis=1),
        "coherence/rotated": 0.5 + 0.1 * rng.random(200),
        "cosines": np.eye(active),
        "law/measured": rng.random(200) + 0.01,
        "law/expected": rng.random(200) + 0.01,
        "law/latent": np.arange(200) % active,
        "local": 90 * rng.random(active),
        "local/global": 90 * rng.random(active),
        "local/rotated": 60 + rng.random(20),
        "aggregate/edges": np.linspace(-4, 4, 21),
        "aggregate": rng.random((active, 20)),
        "aggregate/prior": rng.random((active, 20)),
        "aggregate/latents": np.array([2, 0, 1]),
        "traversal": rng.random((active, 9, *shape)).astype(np.float32),
        "traversal/values": np.linspace(-2, 2, 9),
        "traversal/latents": np.array([2, 0, 1]),
        "information": rng.random((1, 4)),
        "factors": np.array(["digit"]),
    }


def explanation(*shape):
    about = {
        "points": 1000, "points with Jacobians": 900, "latents": 4, "shape of latents": (4,), "likelihood": "Bernoulli",
        "β": None, "prior": "StandardNormal", "seed": 0, "layers put into evaluation mode and back": 6,
        "versions": {"torch": "2.13.0", "axiswise": "0.1.0"},
    }  # fmt: skip
    return Explanation("A model of <mine>", findings(), ("Meaning & all.",), about, arrays(*shape), "Read them.")


class Reader(HTMLParser):
    """Checks that elements are closed in order, and collects text, images and links."""

    def __init__(self, text):
        super().__init__()
        self.open, self.text, self.images, self.links, self.places = [], [], [], [], set()
        self.feed(text)
        self.close()
        assert not self.open

    def handle_starttag(self, tag, attributes):
        found = dict(attributes)
        assert tag != "script"
        self.places.add(found.get("id"))
        if tag == "img":
            self.images.append(found)
        if tag == "a":
            self.links.append(found["href"])
        if tag not in ("img", "meta"):
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open and self.open[-1] != "style":
            self.text.append(data)

    @property
    def words(self):
        return " ".join(" ".join(self.text).split())


def test_the_page_holds_every_finding_and_every_picture(tmp_path):
    made = page(explanation(1, 8, 8), tmp_path / "deep" / "page.html")
    text = made.read_text(encoding="utf-8")
    read = Reader(text)
    for finding in findings():
        assert finding.question in read.words
        assert finding.reference in read.words
        assert f"#finding-{finding.name.replace(' ', '-')}" in read.links
    assert {link.removeprefix("#") for link in read.links} <= read.places
    assert "What this cannot conclude Meaning & all." in read.words
    assert "A model of <mine>" in read.words
    assert "In short. Read them." in read.words
    assert "β unknown" in read.words
    assert "this model 3 (95 %: 3 to 3) Student t, over points" in read.words
    assert "this model 0.400 (95 %: 0.300 to 0.500) Student t, over points" in read.words
    assert "this model, rotated 1.10 (95 %: 0.90 to 1.30) 200 random rotations" in read.words
    assert "layers put into evaluation mode, and back 6" in read.words
    assert "axiswise 0.1.0, torch 2.13.0" in read.words
    assert len(read.images) == 11
    assert all(image["alt"] and image["src"].startswith("data:image/png;base64,") for image in read.images)
    assert not re.search(r'(src|href)="(https?:)?//', text)
    assert made.stat().st_size < 1_500_000


def test_the_same_explanation_gives_the_same_bytes(tmp_path):
    first, second = (page(explanation(6), tmp_path / name).read_bytes() for name in ("a.html", "b.html"))
    assert first == second


@pytest.mark.parametrize("shape", [(3, 8, 8), (8, 8), (6,), (2, 3, 4, 5)], ids=["colour", "grey", "vector", "volume"])
def test_traversals_of_any_shape_are_drawn(shape, tmp_path):
    few = explanation(*shape)
    kept = {name: few.arrays[name] for name in few.arrays if name.startswith("traversal") or name in ("names", "order")}
    read = Reader(page(replace(few, arrays=kept), tmp_path / "page.html").read_text())
    assert len(read.images) == 1


def test_what_is_not_there_is_not_drawn(tmp_path):
    bare = replace(explanation(6), findings=findings()[6:7], arrays={}, about={}, limits=())
    read = Reader(page(bare, tmp_path / "page.html").read_text())
    assert read.images == []
    assert "cannot conclude" not in read.words
    assert "Undefined." in read.words


def test_many_latents_get_no_matrix_that_nobody_can_read(tmp_path):
    many = explanation(6)
    names = np.array([f"z1,{place},0" for place in range(60)])
    wide = {
        "names": names,
        "order": np.arange(60),
        "kl": np.linspace(3, 0, 60),
        "coherence/rotated": many.arrays["coherence/rotated"],
        "cosines": np.eye(60),
    }
    assert len(Reader(page(replace(many, arrays=wide), tmp_path / "page.html").read_text()).images) == 2


def test_intervals_in_words():
    assert interval_words(interval(1.0, 0.5)) == "1 (95 %: 0.5 to 1.5)"
    assert interval_words(Interval(-1.0, np.nan, np.nan, 0.95, 1, "undefined")) == "−1"


def test_pages_are_made_without_torch():
    code = "import sys, axiswise.report; axiswise.report.page; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0
