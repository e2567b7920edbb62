"""What `explain` guesses of a likelihood that it was not given, and that a finding which rests on it says so."""

import re

import pytest
import torch

from axiswise import explain
from axiswise.distributions import Bernoulli, Gaussian

POINTS, PIXELS = 95, 12  # points that are too few for neighbourhoods, which are slow


def bernoulli_model():
    """Logits are linear in two latents; variances are those of the law; observations are drawn."""
    generator = torch.Generator().manual_seed(0)
    weight = torch.randn(PIXELS, 2, generator=generator).double() * torch.tensor([2.0, 1.0])

    def logits(z):
        return z @ weight.T

    def encode(x):
        mean = (2.0 * x - 1.0) @ torch.linalg.pinv(weight).T
        shares = logits(mean).sigmoid()
        return mean, -(1.0 + (shares * (1.0 - shares)) @ weight.square()).log()

    z = torch.randn(POINTS, 2, generator=generator).double()
    x = torch.bernoulli(logits(z).sigmoid(), generator=generator)
    return encode, logits, x


def linear_model(scale):
    """A linear model whose variances are those of the law for Gaussian pixels of this scale."""
    weight = torch.diag(torch.tensor([3.0, 1.0])).double()
    variance = 1.0 / (1.0 + weight.diagonal().square() / scale**2)
    x = 3.0 * torch.randn(POINTS, 2, generator=torch.Generator().manual_seed(0)).double()
    return lambda x: (x @ weight.inverse(), variance.log().expand(len(x), 2)), lambda z: z @ weight.T, x


def test_pixels_in_0_to_1_are_guessed_to_be_bernoulli():
    encode, logits, x = bernoulli_model()
    found = explain(encode, lambda z: logits(z).sigmoid(), x)
    known = explain(encode, lambda z: logits(z).sigmoid(), x, likelihood=Bernoulli())
    assert found.about["likelihood"] == "unknown (Bernoulli guessed)"
    assert found["law"].value == known["law"].value
    assert found["law"].sentence.endswith(
        "If pixels are Bernoulli, a guess from values in 0 … 1, then they fit best at β = 1."
    )
    assert found["law"].value.estimate == pytest.approx(0.0, abs=1e-12)
    assert found["law"].sentence.startswith("If pixels are Bernoulli, a guess from values in 0 … 1, ")
    assert "the encoder's variances are those" in found["law"].sentence
    assert "guess" not in known["law"].sentence
    assert "guess" not in " ".join(known.limits)
    assert any("Pass likelihood=Bernoulli() or likelihood=Gaussian(scale)" in limit for limit in found.limits)
    # No other finding rests on the likelihood.
    assert [one for one in found.findings if one.name != "law"] == [one for one in known.findings if one.name != "law"]


def test_logits_are_recognised():
    encode, logits, x = bernoulli_model()
    found = explain(encode, logits, x)
    known = explain(encode, lambda z: logits(z).sigmoid(), x, likelihood=Bernoulli())
    assert found.about["likelihood"] == "unknown (Bernoulli guessed, of logits)"
    for finding in known.findings:
        assert found[finding.name].value == finding.value
    says_so = "This takes the output of `decode` for logits, which is a guess."
    resting = {finding.name for finding in found.findings if finding.sentence.endswith(says_so)}
    assert resting == {"orthogonality", "columns", "effects"}
    assert found["law"].sentence.startswith("If the output of `decode` is logits of Bernoulli pixels, a guess from its")
    assert (
        "2 of 2 latents are active. If the output of `decode` is logits of Bernoulli pixels, a guess from its range, "
        "then the decoder "
    ) in found.conclusion
    assert "guess" not in known.conclusion
    assert (found.arrays["traversal"] == known.arrays["traversal"]).all()


@pytest.mark.parametrize("scale", [0.3, 1.0])
def test_the_scale_of_gaussian_pixels_is_asked_for(scale):
    encode, decode, x = linear_model(scale)
    for given in ({}, {"beta": None}):
        found = explain(encode, decode, x, **given)
        assert found["law"].value.estimate == pytest.approx(0.0, abs=1e-12)
        sentence = found["law"].sentence
        assert sentence.startswith("If pixels are Gaussian, a guess, ")
        assert f"If pixels are Gaussian, then with β = 1 they fit best at pixels of scale {scale:g}." in sentence
        assert found.about["likelihood"] == "unknown (Gaussian guessed)"
        assert not any("not at β" in limit for limit in found.limits)
    known = explain(encode, decode, x, likelihood=Gaussian(scale))
    assert known["law"].value.estimate == pytest.approx(0.0, abs=1e-12)


def test_images_whose_decoder_leaves_0_to_1_are_not_taken_for_logits():
    """Reconstructions fit as they are, and would not through a sigmoid."""
    generator = torch.Generator().manual_seed(0)
    x = torch.rand(POINTS, 2, generator=generator).double().round()[:, [0, 1, 1]]
    found = explain(lambda x: (x[:, :2], torch.full((len(x), 2), -3.0).double()), lambda z: 1.2 * z[:, [0, 1, 1]], x)
    assert found.about["likelihood"] == "unknown (Gaussian guessed)"


def test_a_decoder_without_slope_fits_no_beta():
    encode, decode, x = linear_model(1.0)
    found = explain(encode, lambda z: decode(0.0 * z), x, likelihood=Gaussian())
    assert "the encoder's variances are not those" in found["law"].sentence
    assert found["law"].sentence.endswith(" They fit at no β.")
    assert not any("nan" in limit for limit in found.limits)


@pytest.mark.parametrize("squashed", [True, False])
def test_a_guess_contradicts_nothing(squashed):
    """Variances that fit no likelihood: known, that is a finding; guessed, it is not."""
    encode, logits, x = bernoulli_model()

    def wrong(x):
        mean, log_variance = encode(x)
        return mean, log_variance - 4.0 * torch.rand(mean.shape, generator=torch.Generator().manual_seed(1)).double()

    def decode(z):
        return logits(z).sigmoid() if squashed else logits(z)

    shown, likelihood = (x, Bernoulli()) if squashed else (x - 0.5, Gaussian())
    known, found = (explain(wrong, decode, shown, likelihood=each) for each in (likelihood, None))
    assert "the encoder's variances are not those" in known["law"].sentence
    assert "are not those" not in found["law"].sentence
    assert found["law"].sentence.startswith("Not tested, because the likelihood is a guess. Were pixels ")
    assert "variances would differ by " in found["law"].sentence
    fits = [text for text in (*re.split(r"(?<=\.) ", found["law"].sentence), *found.limits) if "fit best at" in text]
    fits += [limit for limit in found.limits if "variances fit the law best at β" in limit]
    assert fits
    assert all(text.startswith("If ") for text in fits)  # what rests on the guess says so


@pytest.mark.parametrize("likelihood", [None, Gaussian()])
@pytest.mark.parametrize("beta", [1.0, None])
@pytest.mark.parametrize("log_variance", [-400.0, -1000.0])
def test_bytes_for_a_model_of_0_to_1(likelihood, beta, log_variance):
    """The encoder leaves all bounds: variances vanish, and the β at which they would fit is below all numbers."""
    x = 255.0 * torch.rand(POINTS, 2, generator=torch.Generator().manual_seed(0)).double()

    def encode(x):
        return x / 100.0, torch.full_like(x, log_variance)

    def decode(z):
        return 0.5 + 1e-80 * z

    found = explain(encode, decode, x, likelihood=likelihood, beta=beta)
    if likelihood is None or beta is None or log_variance == -1000.0:  # whose exponential is 0
        assert found["law"].value is None
    else:
        assert found["law"].sentence.endswith("They fit at no β.")
    assert "nan" not in str(found)
    assert "narrower than their means are rounded to" in found["overlap"].sentence
    assert any("Observations range from " in limit and "x / 255" in limit for limit in found.limits)
    right = explain(encode, decode, x / 255.0, likelihood=likelihood, beta=beta)
    assert not any("Observations range" in limit for limit in right.limits)
