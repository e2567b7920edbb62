"""The small attack: its runs, its smoke scale from end to end, and what its verdicts say."""

import pytest
import torch

from axiswise.attack import verdicts
from axiswise.errors import AxiswiseError
from axiswise.evaluation import conduct
from axiswise.papers import study_named
from axiswise.papers.zietlow2021.studies import EPSILON, RESTARTS, restarts, small_attack, small_sprites_apart
from axiswise.papers.zietlow2021.verdicts import main


def test_runs_judge_by_other_seeds_than_chose():
    runs = small_attack("default")
    assert [run.name for run in runs] == [f"beta-vae/{end}" for end in ("original", "changed", "noise", "reversed")]
    assert all(len(run.members) == 20 for run in runs)
    assert not {member.seed for member in runs[0].members} & set(RESTARTS)
    assert {member.model.latents for member in restarts("default", RESTARTS)} == {len(small_sprites_apart().space)}
    assert study_named("zietlow2021.small_attack") is small_attack


def test_the_smoke_scale_runs_and_resumes(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("AXISWISE_CACHE", str(tmp_path / "cache"))
    folder = conduct(small_attack, "smoke", tmp_path / "study")
    (found,) = verdicts(folder)
    assert conduct(small_attack, "smoke", tmp_path / "study") == folder
    assert verdicts(folder) == [found]
    main([str(folder)])
    assert "| beta-vae | " in capsys.readouterr().out
    with pytest.raises(AxiswiseError, match=r"Expected a study folder and, if you like, a measure. Got \[\]"):
        main([])
    original = small_sprites_apart()
    rows = torch.arange(len(original))
    x = original.x(rows)
    datasets = {run.name: run.dataset() for run in small_attack("smoke")}
    for name, dataset in datasets.items():
        difference = (dataset.x(rows) - x).abs().max()
        assert difference <= EPSILON + 2**-23
        assert (difference == 0) == name.endswith("original")
    changed, exchanged = (datasets[f"beta-vae/{end}"].identity for end in ("changed", "reversed"))
    assert changed != exchanged
