"""The polarized regime on histories whose answers are known by construction."""

import numpy as np
import pytest
import torch

from axiswise import data, evaluate, grid, models, objectives, train
from axiswise.distributions import Deterministic, DeterministicParameters, DiagonalParameters
from axiswise.errors import AxiswiseError, NotDefined
from axiswise.geometry import polarization, regime


def history(mean_square, variance) -> dict[str, np.ndarray]:
    """A history of posteriors that do not vary over samples, with its exact KL."""
    mean_square, variance = np.broadcast_arrays(np.asarray(mean_square, float), np.asarray(variance, float))
    log_variance = np.log(variance)
    per_latent = 0.5 * (mean_square + variance - log_variance - 1)
    steps = np.arange(mean_square.shape[-2]) * 500
    terms = {"mean_square": mean_square, "variance": variance, "log_variance": log_variance}
    return {"step": steps, "kl": per_latent.sum(-1), "kl_per_latent": per_latent} | terms


def test_the_error_is_half_the_active_variance_over_the_kl():
    """For active latents the two losses differ by σ²/2 exactly, for passive ones at μ = 0, σ = 1 by nothing."""
    made = history([[1.0, 0.5, 0.0]] * 3, [[0.3, 0.1, 1.0], [0.03, 0.02, 1.0], [0.01, 0.01, 1.0]])
    found = polarization(made)
    expected = 0.5 * made["variance"][:, :2].sum(-1) / made["kl"]
    np.testing.assert_allclose(found.delta, expected, rtol=1e-13)
    assert (found.active, found.passive, found.mixed) == (2, 1, 0)


def test_the_score_counts_the_last_uninterrupted_stretch():
    variance = np.array([0.5, 0.01, 0.5, 0.01, 0.01, 0.01, 0.01, 0.01])[:, None]
    found = polarization(history(np.ones_like(variance), variance))
    below = (found.delta < 0.03).tolist()
    assert below == [False, True, False, True, True, True, True, True]
    assert found.score == 5 / 8


@pytest.mark.parametrize(("variances", "share"), [([0.01] * 4, 1.0), ([0.01, 0.01, 0.5], 0.0), ([0.01], 1.0)])
def test_polarized_always_and_not_at_the_end(variances, share):
    assert polarization(history(np.ones((len(variances), 1)), np.array(variances)[:, None])).score == share


def test_the_tolerance_is_strict():
    made = history(np.ones((1, 1)), np.full((1, 1), 0.1))
    delta = polarization(made).delta.item()
    assert polarization(made, tolerance=delta).score == 0.0
    assert polarization(made, tolerance=delta * (1 + 1e-9)).score == 1.0


def test_activity_is_that_of_the_time_and_follows_the_threshold():
    """A latent that wakes up counts from then on; while it sleeps, its own KL is what the approximation misses."""
    made = history([[1.0, 0.05], [1.0, 1.0]], [[0.01, 0.9], [0.01, 0.02]])
    found = polarization(made)
    missed = made["kl_per_latent"][0, 1] + 0.5 * 0.01
    np.testing.assert_allclose(found.delta[0], missed / made["kl"][0], rtol=1e-12)
    assert found.active == 2
    assert polarization(made, active_below=0.015).active == 1
    assert polarization(made, active_below=0.95).delta[0] > found.delta[0]


@pytest.mark.parametrize(
    ("mean_square", "variance", "kind"),
    [
        (1.0, 0.05, "active"),
        (0.0, 0.79, "active"),
        (0.0, 1.0, "passive"),
        (0.09, 0.91, "passive"),
        (0.0, 1.09, "passive"),
        (0.11, 1.0, "mixed"),
        (0.0, 0.85, "mixed"),
        (0.0, 1.11, "mixed"),
    ],
)
def test_each_latent_is_of_one_kind(mean_square, variance, kind):
    found = polarization(history([[mean_square]], [[variance]]))
    assert {name: getattr(found, name).item() for name in ("active", "passive", "mixed")} == {
        "active": 0,
        "passive": 0,
        "mixed": 0,
    } | {kind: 1}


def test_a_latent_can_be_passive_only_if_it_is_not_active():
    found = polarization(history([[0.0]], [[0.95]]), active_below=0.99)
    assert (found.active, found.passive, found.mixed) == (1, 0, 0)


def test_a_collapsed_model_is_polarized():
    found = polarization(history(np.zeros((4, 3)), np.ones((4, 3))))
    assert found.delta.tolist() == [0.0] * 4
    assert found.score == 1.0
    assert (found.active, found.passive, found.mixed) == (0, 3, 0)


def test_passive_latents_with_a_kl_are_not():
    found = polarization(history(np.full((2, 1), 0.01), np.ones((2, 1))))
    assert found.delta.tolist() == [1.0, 1.0]
    assert found.score == 0.0


def test_a_stack_is_measured_as_its_members_are():
    generator = np.random.default_rng(0)
    made = history(generator.uniform(0, 1, (3, 6, 4)), 10.0 ** generator.uniform(-4, 0, (3, 6, 4)))
    together = polarization(made)
    assert together.delta.shape == (3, 6)
    for member in range(3):
        alone = polarization({name: values[member] for name, values in made.items() if name != "step"})
        for whole, part in zip(together, alone, strict=True):
            assert torch.equal(whole[member], part)


def test_torch_and_numpy_agree():
    made = history(np.ones((5, 2)), np.full((5, 2), 0.02))
    for ours, theirs in zip(
        polarization(made),
        polarization({name: torch.from_numpy(value.copy()) for name, value in made.items()}),
        strict=True,
    ):
        assert torch.equal(ours, theirs)


def test_a_member_that_diverged_is_alone_in_it():
    made = history(np.ones((2, 3, 1)), np.full((2, 3, 1), 0.01))
    made["kl"] = made["kl"].copy()
    made["kl"][0, 2] = np.nan
    score = polarization(made).score
    assert score[0].isnan()
    assert score[1] == 1.0


def test_refuses_a_history_without_what_it_needs():
    with pytest.raises(
        NotDefined,
        match=r"`history` must hold kl, mean_square, variance, log_variance, which .* record\. Got none of variance\.",
    ):
        polarization({"kl": np.ones(2), "mean_square": np.ones((2, 1)), "log_variance": np.ones((2, 1))})


def test_an_autoencoder_has_no_polarization_but_a_row_that_says_why():
    model = models.linear(3, 2, posterior=Deterministic())
    members = grid(model=model, objective=objectives.Autoencoder(), steps=4, batch=8, history=2, seed=range(1))
    dataset = data.synth_linear(samples=32)
    (row,) = evaluate(train(members, dataset), dataset, [polarization])
    assert row["value"] is None
    assert row["reason"].endswith("Got none of kl, variance, log_variance.")


def test_refuses_axes_that_do_not_belong_together():
    made = history(np.ones((3, 2)), np.full((3, 2), 0.5))
    with pytest.raises(AxiswiseError, match=r'`history\["variance"\]` must have axes \(…, t, z\).* Got shape \(2, 3\)'):
        polarization(made | {"variance": made["variance"].T})


def test_refuses_an_empty_history():
    with pytest.raises(AxiswiseError, match=r'`history\["kl"\]` must hold at least one time. Got shape \(0,\)'):
        polarization(history(np.ones((0, 2)), np.ones((0, 2))))


def test_the_approximate_loss_is_that_of_active_latents():
    made = history([[1.0, 0.5, 0.0]] * 2, [[0.3, 0.1, 1.0], [0.03, 0.9, 1.0]])
    found = polarization(made)
    terms = 0.5 * (made["mean_square"] - made["log_variance"] - 1.0)
    np.testing.assert_allclose(found.approximate_kl, [terms[0, :2].sum(), terms[1, :1].sum()], rtol=1e-13)
    np.testing.assert_allclose(found.delta, np.abs(made["kl"] - found.approximate_kl.numpy()) / made["kl"], rtol=1e-13)


def test_a_model_as_it_stands_is_the_last_time_of_its_history():
    generator = torch.Generator().manual_seed(0)
    mean = torch.randn(2, 50, 4, dtype=torch.float64, generator=generator) * torch.tensor([1.0, 0.0, 0.9, 0.7])
    offset = torch.tensor([-3.0, 0.0, -0.1, -4.0], dtype=torch.float64)
    noise = torch.randn(2, 50, 4, dtype=torch.float64, generator=generator)
    posterior = DiagonalParameters(mean, 0.05 * noise + offset)
    found = regime(posterior)
    moments = {
        "mean_square": mean.square().mean(1),
        "variance": posterior.variance.mean(1),
        "log_variance": posterior.log_variance.mean(1),
    }
    reference = torch.distributions.kl_divergence(
        torch.distributions.Normal(mean, posterior.variance.sqrt()), torch.distributions.Normal(0.0, 1.0)
    )
    kl = reference.sum(-1).mean(-1)
    same = polarization({"kl": kl[:, None], **{name: values[:, None] for name, values in moments.items()}})
    torch.testing.assert_close(found.score, same.delta[:, 0], rtol=1e-12, atol=0)
    torch.testing.assert_close(found.kl, kl, rtol=1e-12, atol=0)
    torch.testing.assert_close(found.approximate_kl, same.approximate_kl[:, 0], rtol=1e-12, atol=0)
    assert found.kinds.tolist() == [[1, 0, -1, 1]] * 2
    for name in ("active", "passive", "mixed"):
        assert torch.equal(getattr(found, name), getattr(same, name))


def test_codes_without_noise_have_no_regime():
    assert regime(DeterministicParameters(torch.ones(3, 2))).score.isnan()


@pytest.mark.usefixtures("as_installed")
def test_refuses_posteriors_without_samples():
    with pytest.raises(AxiswiseError, match=r"`posterior` must have axes .* Got shape \(0, 2\)"):
        regime(DiagonalParameters(torch.zeros(0, 2), torch.zeros(0, 2)))
