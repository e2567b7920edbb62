"""The judgement: the same members on three datasets, and their scores."""

import numpy as np
import pytest
import scipy.stats
import torch

from axiswise import models, objectives
from axiswise.attack import judge, judgement, verdicts
from axiswise.data import Change
from axiswise.distributions import Deterministic
from axiswise.errors import AxiswiseError
from axiswise.population import grid
from axiswise.records._files import append_rows
from axiswise.scores import mig


def still(shape: tuple[int, ...], value: float = 0.5) -> Change:
    """A change that adds the same to every pixel."""
    return Change("still", 0.1, lambda tensors, factors: torch.full((*factors.shape[:-1], *shape), value))


def members(objective, sprites, seeds=range(2), **model):
    vae = models.mlp(sprites.shape, 3, encoder=(4,), decoder=(4,), **model)
    return grid(model=vae, objective=objective, steps=2, batch=4, seed=seeds)


def test_every_arm_is_trained_on_every_dataset(sprites):
    arms = {
        "beta-vae": members(objectives.BetaVAE(0.1), sprites),
        "pcl": members(objectives.PCL(), sprites, posterior=Deterministic()),
    }
    runs = judgement(lambda: sprites, lambda: still(sprites.shape), arms, epsilon=0.1)
    assert [run.name for run in runs] == [
        f"{arm}/{variant}" for arm in arms for variant in ("original", "changed", "noise")
    ]
    rows = torch.arange(len(sprites))
    for run in runs:
        dataset = run.dataset()
        assert torch.equal(dataset.factors(rows), sprites.factors(rows))
        assert (dataset.transition is not None) == run.name.startswith("pcl")
        largest = (dataset.x(rows) - sprites.x(rows)).abs().max().item()
        expected = {"original": 0.0, "changed": 0.05, "noise": 0.1}[run.name.partition("/")[2]]
        assert largest == pytest.approx(expected, abs=1e-4)


def test_a_judgement_is_a_study_with_verdicts(sprites, tmp_path):
    arms = {"beta-vae": members(objectives.BetaVAE(0.1), sprites, range(3))}
    (found,) = judge(sprites, still(sprites.shape), arms, tmp_path / "judgement", measures=[mig])
    assert (found.arm, found.means["changed"].known) == ("beta-vae", 3)
    assert verdicts(tmp_path / "judgement") == [found]
    assert judge(sprites, still(sprites.shape), arms, tmp_path / "judgement", measures=[mig]) == [found]


@pytest.mark.parametrize(("changed", "halved"), [((0.2, 0.25, 0.3), True), ((0.4, 0.45, 0.5), False)])
def test_verdicts_are_welch_intervals_of_the_rows(tmp_path, changed, halved):
    values = {"original": (0.7, 0.75, 0.8), "changed": changed, "noise": (0.69, 0.74, 0.82)}
    for variant, scores in values.items():
        rows = [{"member": str(seed), "measure": "mig", "value": value} for seed, value in enumerate(scores)]
        earlier = {"member": "0", "measure": "mig", "value": 0.0}
        other = {"member": "0", "measure": "loss", "value": 9.0}
        append_rows(tmp_path / "arm" / variant / "records.jsonl", [earlier, *rows, other])
    (found,) = verdicts(tmp_path)
    assert found.halved is halved
    for comparison, variant in ((found.drop, "changed"), (found.noise_drop, "noise")):
        expected = scipy.stats.ttest_ind(values["original"], values[variant], equal_var=False)
        interval = expected.confidence_interval(0.95)
        np.testing.assert_allclose(comparison.difference[1:3], (interval.low, interval.high), atol=1e-12)
        assert comparison.p == pytest.approx(expected.pvalue, abs=1e-12)


def test_folders_of_something_else_and_empty_arms_are_refused(sprites, tmp_path):
    with pytest.raises(AxiswiseError, match=r"Expected the folder of a judgement, with 'mig' .* which has none"):
        verdicts(tmp_path)
    with pytest.raises(AxiswiseError, match=r"An arm needs at least one member. Got none in 'beta-vae'"):
        judgement(lambda: sprites, lambda: still(sprites.shape), {"beta-vae": []}, epsilon=0.1)
