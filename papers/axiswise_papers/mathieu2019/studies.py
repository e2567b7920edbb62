"""Studies of mathieu2019. Each docstring gives what to expect, the command, and the cost."""

import math
from collections.abc import Callable
from dataclasses import replace
from functools import partial

import torch
from torch import nn

from axiswise.data import FactorDataset, celeba, dsprites, fashion_mnist, linear_gaussian, pinwheel, small_sprites
from axiswise.distributions import (
    Anisotropic,
    DecodedGaussian,
    Diagonal,
    Gaussian,
    Isotropic,
    Posterior,
    Prior,
    Sparse,
    StandardNormal,
    StudentT,
    corners,
)
from axiswise.distributions.estimators import MMD, AggregateDivergence, ExclusiveKL, InclusiveKL, MomentMatching
from axiswise.evaluation import kl, loss, reconstruction
from axiswise.geometry import elbo, overlap
from axiswise.models import VAE, conv64, custom, dcgan64, mlp
from axiswise.numerics import normal
from axiswise.objectives import BetaVAE, Decomposed, EntropyRegularised, Objective
from axiswise.optimizers import Adam
from axiswise.population import Member, grid
from axiswise.schedules import Cosine
from axiswise.scores import disentanglement, factor_vae
from axiswise.shapes import Float, Int, Tensor
from axiswise.studies import Run, Scale, Study
from axiswise_papers.mathieu2019.measures import (
    SPARSITY_KERNEL,
    aggregate_density,
    batch_estimates,
    discrepancy,
    largest_mode,
    latent_information,
    mean_log_variance,
    moments,
    sparsity,
)

ALPHAS = (0.0, 1.0, 10.0)
BETAS = (0.01, 0.1, 0.3, 1.0, 3.0, 10.0)

POINTS = 200  # of the pinwheel on which divergences are compared
NEAR, SQUARED = MMD(constant=1.0, power=1), MMD(constant=1.0, power=2)
NEAR_DISCREPANCY, SQUARED_DISCREPANCY = partial(discrepancy, kernel=NEAR), partial(discrepancy, kernel=SQUARED)
DIVERGENCES: dict[str, tuple[float, AggregateDivergence | None]] = {
    "none": (0.0, None),
    "inclusive-mean": (10.0, InclusiveKL()),
    "exclusive": (10.0, ExclusiveKL()),
    "mmd-1": (1000.0, NEAR),
    "mmd-2": (1000.0, SQUARED),
    "moments": (1000.0, MomentMatching()),
}
"""α and 𝔻 of (7) by the name of their run."""
ENTROPY_BETAS = (1.0, 4.0)

ESTIMATOR_POINTS = 1024
ESTIMATOR_BETAS = (0.1, 30.0)  # hardly any overlap, and much

WIDE, STRONG = 16.0, {"unequal": (2.0, 1.0), "equal": (1.5, 1.5)}
"""Ratio of the prior's variances, and deviations of what two sources add to the observations."""
OBSERVED, SOURCE_NOISE = 4, 0.1

SPRITES_BETAS = (1.0, 4.0, 16.0)
SINGULAR_VALUE_LOGITS = (12.099, 12.082, 11.719, 11.691, 11.447, 11.062, 11.035, 10.622, 10.601, 10.568)
"""`singular_value_logits` of 10,000 images of dSprites, ``dataset.sample(10_000)``: variances from 1.92 to 0.41."""
DEGREES = (1.5, 3.0, 5.0, 100.0)  # of freedom; Figure 5 shows 3, 5 and 100
SPARSITY_ALPHAS, SPARSITY_BETAS = (0.0, 100.0, 1000.0), (0.1, 1.0, 5.0)
SPARSE_PRIORS: dict[str, Prior] = {
    "gaussian": Sparse(0.0, 0.05),
    "sparse-variance": Sparse(0.9, 0.05**0.5),  # σ₀² = 0.05, as section 6.3 prints
    "sparse-deviation": Sparse(0.9, 0.05),  # σ₀ = 0.05, as appendix B prints
}


def figure_3(scale: Scale) -> list[Run]:
    """Overlap by β, structure by α: the aggregate posterior on a pinwheel (mathieu2019 Figure 3).

    Four spiralling arms, 400 points, are encoded into two dimensions under a prior of four Gaussians at the corners of
    a square. Published, in words: overlap grows with β; the match of the aggregate posterior to the prior improves with
    α at every β; too large a β worsens it again; a large α does not collapse the encodings to one mode.

    Command: ``axiswise run mathieu2019.figure_3``. Cost: three minutes on two cores.

    Networks, prior, optimizer, 500 whole-set steps and the divergence KL(p ‖ q) over the full aggregate are the paper's
    (Table 1b, eq 9, appendix B; AMSGrad is its released code's). The divergence is a mean over the prior's samples, so
    that α does not depend on their number. The paper does not print its grid of α and β: this one is ours.
    """
    model = mlp(
        2,
        2,
        encoder=(100,),
        decoder=(100,),
        activation=nn.ReLU,
        prior=corners(2, variance=0.03),
        likelihood=DecodedGaussian(),
    )
    runs = []
    for alpha in reversed(ALPHAS):  # those with a divergence take longest
        members = grid(
            model=model,
            objective=[Decomposed(alpha, beta, InclusiveKL() if alpha else None) for beta in BETAS],
            optimizer=Adam(lr=1e-3, amsgrad=True),
            batch=None,
            steps=20 if scale == "smoke" else 500,
            seed=range({"smoke": 2, "default": 12, "paper": 20}[scale]),
        )
        measures = (overlap, largest_mode, aggregate_density, loss, reconstruction, kl)
        runs.append(Run(f"pinwheel/alpha-{alpha:g}", pinwheel, members, measures))
    return runs


def divergences(scale: Scale) -> list[Run]:
    """Every divergence 𝔻 of objective (7) trains and is reduced by it; L_{H,β} is the β-VAE (mathieu2019 eq 5, 7).

    VAEs of 200 points of the pinwheel with the prior of Figure 3 at β = 0.1, without a divergence and with each of:
    KL(p ‖ q) over the whole set, as a mean over draws; KL(q ‖ p) by (10) from batches of 64; MMD with the kernels
    C / (C + ‖·‖^p) for p = 1 and 2; the first two moments. Expected: the aggregate is nearer to the prior by the
    measure that was trained. With a standard normal prior, L_{H,β} gives what the β-VAE does with latents √β
    times as long: the same I(x; z) and reconstruction, log-variances larger by log β. The paper prints no numbers.

    Command: ``axiswise run mathieu2019.divergences``. Cost: half a minute on two cores.
    """
    steps = {"smoke": 10, "default": 400, "paper": 5000}[scale]
    fewer = {"smoke": 10, "default": 1500, "paper": 20_000}[scale]
    seeds = range({"smoke": 2, "default": 10, "paper": 50}[scale])
    square = partial(pinwheel, samples=POINTS)
    measures = (
        overlap,
        NEAR_DISCREPANCY,
        SQUARED_DISCREPANCY,
        moments,
        largest_mode,
        elbo,
        loss,
        reconstruction,
    )
    runs = []
    for name, (alpha, divergence) in DIVERGENCES.items():
        members = grid(
            model=mlp(
                2, 2, encoder=(50,), decoder=(50,), activation=nn.ReLU, prior=corners(2), likelihood=Gaussian(0.1)
            ),
            objective=Decomposed(alpha, 0.1, divergence),
            optimizer=Adam(lr=Cosine(1e-2, 0.0, steps)),
            batch=64 if name == "exclusive" else None,
            steps=steps,
            seed=seeds,
        )
        runs.append(Run(f"divergences/{name}", square, members, measures))
    for name, kind in (("beta-vae", BetaVAE), ("entropy-regularised", EntropyRegularised)):
        members = grid(
            model=mlp(2, 2, encoder=(32,), decoder=(32,), likelihood=Gaussian(0.2)),
            objective=[kind(beta) for beta in ENTROPY_BETAS],
            optimizer=Adam(lr=Cosine(1e-2, 0.0, fewer)),
            batch=None,
            steps=fewer,
            seed=seeds,
        )
        runs.append(Run(f"entropy/{name}", square, members, (overlap, mean_log_variance, elbo, loss, reconstruction)))
    return runs


def appendix_c(scale: Scale) -> list[Run]:
    """The minibatch estimator of the aggregate's entropy, on trained models (mathieu2019 appendix C).

    β-VAEs of 1,024 points of a pinwheel, with β so small that encodings hardly overlap and so large that they do; the
    estimator (10) with batches of 2 to 128 beside the entropy over the whole set, at the same samples. Published, in
    words: estimates are biased upwards unless batches are very large, and of the divergence often negative although it
    is not; where overlap is rare they are near log n + E H(q(z|x)). Expected: at B = n / 128 that last where encodings
    hardly overlap, and far below it where they do.

    Command: ``axiswise run mathieu2019.appendix_c``. Cost: ten seconds on one core.
    """
    steps = {"smoke": 20, "default": 2000, "paper": 20_000}[scale]
    members = grid(
        model=mlp(2, 2, encoder=(50,), decoder=(50,), likelihood=Gaussian(0.03)),
        objective=[BetaVAE(beta) for beta in ESTIMATOR_BETAS],
        optimizer=Adam(lr=Cosine(1e-2, 0.0, steps)),
        batch=128,
        steps=steps,
        seed=range({"smoke": 2, "default": 10, "paper": 50}[scale]),
    )
    points = 256 if scale == "smoke" else ESTIMATOR_POINTS
    return [Run("estimator/pinwheel", partial(pinwheel, samples=points), members, (batch_estimates, overlap, loss))]


def discussion(scale: Scale) -> list[Run]:
    """With one noise for all latents, the wider one of the prior stores more (mathieu2019 section 7).

    Two normal sources, mixed into four values, are encoded with one variance for both latents under a Gaussian prior
    whose first latent has sixteen times the variance of the second. Published, in words: more information can be stored
    in the dimension of higher variance, and it is more likely to correspond to an important factor. Sources of unequal
    and of equal strength; and, as a control, diagonal posteriors, whose objective does not depend on the prior's
    variances (mathieu.aniso), so that equal sources share the information.

    Command: ``axiswise run mathieu2019.discussion``. Cost: fifteen seconds on two cores.
    """
    steps = {"smoke": 20, "default": 3000, "paper": 30_000}[scale]
    plans: dict[str, tuple[Posterior, str]] = {
        "one-variance/unequal": (Isotropic(), "unequal"),
        "one-variance/equal": (Isotropic(), "equal"),
        "diagonal/equal": (Diagonal(), "equal"),
    }
    runs = []
    for name, (posterior, strengths) in plans.items():
        members = grid(
            model=mlp(
                OBSERVED,
                2,
                encoder=(32,),
                decoder=(32,),
                posterior=posterior,
                prior=Anisotropic((math.log(WIDE), 0.0)),
                likelihood=Gaussian(math.sqrt(SOURCE_NOISE)),
            ),
            objective=BetaVAE(1.0),
            optimizer=Adam(lr=Cosine(1e-2, 0.0, steps)),
            batch=64,
            steps=steps,
            seed=range({"smoke": 2, "default": 10, "paper": 50}[scale]),
        )
        runs.append(Run(name, partial(two_sources, strengths), members, (latent_information, overlap, loss)))
    return runs


def figure_2_top(scale: Scale) -> list[Run]:
    """Anisotropic Gaussian priors on dSprites, beside a control that has none (mathieu2019 Figure 2, top).

    β-VAEs with ten latents: isotropic prior; fixed variances in proportion to the principal components of the images;
    learned ones that start there; and, as a control, the isotropic prior with networks whose latents are measured in
    those units. The control has the losses and gradients of the fixed anisotropic prior (mathieu.aniso) from other
    initial weights. So it repeats that run under a prior that is invariant to rotations, and shows how far two runs
    differ by chance alone; it cannot show more. Published, as a picture: at equal
    reconstruction, scores of fixed anisotropic priors are above the isotropic ones', learned ones highest; and, in
    words (section 4.1), no gain from β > 1 with the isotropic prior and very large variation between seeds.

    Command: ``axiswise run mathieu2019.figure_2_top --device cuda``. Cost: 600 members, 18 million model-steps, about
    half an hour on one H200; at ``--scale paper`` twice as many of 20 epochs, eight hours.

    Network, optimizer, batch and epochs are the paper's (Table 1a, appendix B); its values of β are only in the
    picture, and these are ours. At the default scale 30,000 steps, an eighth of 20 epochs, and 50 networks of each kind
    instead of 100: if scores have a standard deviation of .12 over seeds, fifty tell a difference of .08 nine times in
    ten, and one of .05 every other time.
    """
    steps = {"smoke": 2, "default": 30_000, "paper": 230_400}[scale]
    logits = SINGULAR_VALUE_LOGITS
    models = {
        "isotropic": sprites_model(StandardNormal()),
        "anisotropic": sprites_model(Anisotropic(logits)),
        "learned": sprites_model(Anisotropic(logits, learned=True)),
        "whitened": custom(whitened_conv64, (1, 64, 64), 10, likelihood=sprites_model(StandardNormal()).likelihood),
    }
    betas = SPRITES_BETAS[:2] if scale == "smoke" else SPRITES_BETAS
    return [
        _sprites(f"sprites/{name}", scale, model, [BetaVAE(beta) for beta in betas], batch=64, steps=steps)
        for name, model in models.items()
    ]


def figure_2_bottom(scale: Scale) -> list[Run]:
    """Student-t priors on dSprites (mathieu2019 Figure 2, bottom).

    VAEs with ten latents and a product of Student-t priors of ν degrees of freedom, or a standard normal one.
    Published, as a picture: scores rise as ν falls, fall again at very low ν but stay above the Gaussian's, at a minor
    penalty in reconstruction.

    Command: ``axiswise run mathieu2019.figure_2_bottom --device cuda``. Cost: 250 members, 3.75 million model-steps of
    256 images, about half an hour on one H200; at ``--scale paper`` twice as many of 40 epochs, eight hours.

    Network, optimizer, batch, β = 1 and epochs are the paper's; of its ν only 3, 5 and 100 are printed (Figure 5). At
    the default scale 15,000 steps, an eighth of 40 epochs, and 50 networks of each kind instead of 100.
    """
    steps = {"smoke": 2, "default": 15_000, "paper": 115_200}[scale]
    degrees = DEGREES[:2] if scale == "smoke" else DEGREES
    priors: dict[str, Prior] = {"gaussian": StandardNormal(), **{f"student-{df:g}": StudentT(df) for df in degrees}}
    return [
        _sprites(f"sprites/{name}", scale, sprites_model(prior), [BetaVAE(1.0)], batch=256, steps=steps)
        for name, prior in priors.items()
    ]


def figure_4(scale: Scale) -> list[Run]:
    """Sparse priors on images (mathieu2019 Figure 4), on clothes as a substitute for faces.

    VAEs of 50 latents with the prior (1 − γ) N(0, 1) + γ N(0, σ₀²), γ = 0 or 0.9, over α and β, with MMD as the
    divergence. Published, as a picture: γ = 0.9 is sparser than γ = 0; with it α > 0 is far sparser than α = 0; the
    divergence is lower for γ = 0; γ and α cost little reconstruction beside β. σ₀² is printed 0.05 in section 6.3 and
    σ₀ in appendix B: both are run. CelebA cannot be downloaded freely: it is run if its folder exists, and otherwise
    Fashion-MNIST alone, on which the authors' released code has an example.

    Command: ``axiswise run mathieu2019.figure_4 --device cuda``. Cost: three runs of 27 members with batch norm, about
    two hours on one H200; CelebA seven times that.

    Network, optimizer, batch, latents and 60 epochs are the paper's (Table 1c, appendix B). Its grid of α and β is
    only in the picture, and this one is ours.
    """
    runs = []
    for name, dataset, channels, observations in (
        ("clothes", enlarged_sprites if scale == "smoke" else enlarged_clothes, 1, 56_000),
        ("faces", celeba, 3, 162_079),
    ):
        steps = {"smoke": 2, "default": 60 * observations // 256, "paper": 60 * observations // 256}[scale]
        alphas, betas = SPARSITY_ALPHAS, SPARSITY_BETAS
        if scale == "smoke":
            alphas, betas = alphas[::2], betas[:1]
        for prior_name, prior in SPARSE_PRIORS.items():
            members = grid(
                model=dcgan64(channels, 50, prior=prior),
                objective=[
                    Decomposed(alpha, beta, SPARSITY_KERNEL if alpha else None) for alpha in alphas for beta in betas
                ],
                optimizer=Adam(lr=2e-4, beta1=0.5),
                batch=4 if scale == "smoke" else 256,
                steps=steps,
                seed=range(1 if scale == "smoke" else 3),
            )
            measures = (sparsity, discrepancy, loss, reconstruction, kl)
            runs.append(Run(f"{name}/{prior_name}", dataset, members, measures, held_out=scale != "smoke"))
    return runs


def two_sources(strengths: str, *, samples: int = 1000, seed: int = 0) -> FactorDataset:
    """Draws two normal sources of the strengths of that name, mixed by orthonormal columns into four values, and noise.

    Example:
        >>> two_sources("equal", samples=10).shape
        (4,)
    """
    columns = torch.linalg.qr(normal(0, "two sources", 0, (OBSERVED, 2), dtype=torch.float64))[0]
    mixing = columns * torch.tensor(STRONG[strengths], dtype=torch.float64)
    return linear_gaussian(mixing, SOURCE_NOISE, samples=samples, seed=seed)


def enlarged_clothes() -> FactorDataset:
    """Fashion-MNIST in 64 × 64 pixels."""
    return enlarged(fashion_mnist())


def enlarged_sprites() -> FactorDataset:
    """Small discs in 64 × 64 pixels, 32 of them: the data of the smoke scale, which needs no files."""
    return enlarged(small_sprites((4, 4, 2), side=28))


def large_sprites() -> FactorDataset:
    """Discs on 64 × 64 pixels, 32 of them, in place of dSprites at the smoke scale."""
    return small_sprites((4, 4, 2), side=64, travel=(30.0, 20.0), radius=(6.0, 10.0))


def enlarged(dataset: FactorDataset) -> FactorDataset:
    """Images of 28 × 28 pixels as ones of 64 × 64: a margin of two pixels of 0, then each pixel twice in each way.

    Example:
        >>> enlarged(small_sprites(side=28)).shape
        (1, 64, 64)
    """
    channels = dataset.shape[0]
    return replace(
        dataset.changed(enlarged=64),
        shape=(channels, 64, 64),
        render=partial(_enlarged, dataset.render),
    )


def _enlarged(
    render: Callable[..., Tensor], tensors: dict[str, Tensor], index: Int[Tensor, "*shape"]
) -> Float[Tensor, "*shape c h w"]:
    padded = nn.functional.pad(render(tensors, index), (2, 2, 2, 2))
    return padded.repeat_interleave(2, -2).repeat_interleave(2, -1)


def sprites_model(prior: Prior) -> VAE:
    """The network of Table 1a with ten latents and that prior."""
    return conv64(latents=10, dense=128, dense_activation=False, decoder=(64, 64, 32), prior=prior)


class InUnits(nn.Module):
    """Latents in units of s: means over s and log-variances less log s² after an encoder, z times s before a decoder.

    Arguments:
        scales: The units s.
        encoder: Whether it follows an encoder.
    """

    def __init__(self, scales: Float[Tensor, " z"], *, encoder: bool) -> None:
        super().__init__()
        if encoder:
            factor, shift = torch.cat((1.0 / scales, torch.ones_like(scales))), -2.0 * scales.log()
            shift = torch.cat((torch.zeros_like(scales), shift))
        else:
            factor, shift = scales, torch.zeros_like(scales)
        self.register_buffer("factor", factor)
        self.register_buffer("shift", shift)

    def forward(self, values: Float[Tensor, "n ..."]) -> Float[Tensor, "n ..."]:
        """An affine function of each value."""
        return values * self.get_buffer("factor") + self.get_buffer("shift")


def whitened_conv64() -> tuple[nn.Module, nn.Module]:
    """The network of Table 1a with latents in units of the fixed anisotropic prior's deviations.

    With a standard normal prior, its objective at any weights is that of the plain network under the anisotropic prior,
    and so are its gradients: there the units belong to the prior, here to the network.
    """
    model = sprites_model(StandardNormal())
    scales = Anisotropic(SINGULAR_VALUE_LOGITS).variances.sqrt()
    encoder, decoder = model.network.build_encoder(2 * model.latents), model.network.build_decoder(1)
    for half in (encoder, decoder):
        for name, parameter in half.named_parameters():
            nn.init.zeros_(parameter) if name.endswith("bias") else nn.init.xavier_uniform_(parameter)
    return nn.Sequential(encoder, InUnits(scales, encoder=True)), nn.Sequential(InUnits(scales, encoder=False), decoder)


def _sprites(name: str, scale: Scale, model: VAE, objective: list[Objective], *, batch: int, steps: int) -> Run:
    members: list[Member] = grid(
        model=model,
        objective=objective,
        optimizer=Adam(lr=1e-4),
        batch=4 if scale == "smoke" else batch,
        steps=steps,
        seed=range({"smoke": 2 // len(objective), "default": 50, "paper": 100}[scale]),
    )
    measures = (factor_vae, disentanglement, loss, reconstruction, kl)
    return Run(name, large_sprites if scale == "smoke" else dsprites, members, measures)


STUDIES: dict[str, Study] = {
    "figure_3": figure_3,
    "divergences": divergences,
    "appendix_c": appendix_c,
    "discussion": discussion,
    "figure_2_top": figure_2_top,
    "figure_2_bottom": figure_2_bottom,
    "figure_4": figure_4,
}
