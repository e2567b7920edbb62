"""`explain`: what the geometry of any variational autoencoder shows about its latents, and what it does not."""

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch

from axiswise._arguments import checked
from axiswise._columns import Columns, as_array, as_columns, whole_but_continuous
from axiswise.distributions import Likelihood, Prior, StandardNormal
from axiswise.errors import AxiswiseError
from axiswise.explanation._observation import observe
from axiswise.explanation._quantities import arrays, compute
from axiswise.explanation._sentences import (
    likelihood_name,
    observation_limits,
    write_conclusion,
    write_findings,
)
from axiswise.numerics import permutation, repeatable
from axiswise.population._external import Reader, check_observations, evaluating
from axiswise.records import Explanation, versions
from axiswise.scores import as_factors
from axiswise.shapes import Tensor, Values


@repeatable()
@checked
def explain(
    encode: Callable[..., Any],
    decode: Callable[..., Any],
    x: Any,
    *,
    factors: Values | None = None,
    factor_names: Sequence[str] | None = None,
    likelihood: Likelihood | None = None,
    beta: float | int | None = 1.0,
    prior: Prior = StandardNormal(),
    seed: int = 0,
    points: int = 1000,
    title: str = "What the latents of this model do",
) -> Explanation:
    r"""Explains the latents of any variational autoencoder, from its encoder, its decoder and observations alone.

    It finds which latents are active; how near the decoder's local principal directions are to the latent axes, against
    random rotations in general and random rotations of this very model; whether the encoder's variances are those that
    the decoder's slope implies; whether latents follow the local principal directions of the data; how far the
    aggregate of all encodings is from the prior; what each latent does to an observation; and, with factors, how far
    one latent stands for each. Every finding is a sentence and the equation that it rests on, and, where there are
    such, a number with its interval over points, and baselines. The conclusion says what they come to: whether single
    latents can be read. Limits name what cannot be concluded.

    The main baseline is the model itself in other coordinates, :func:`axiswise.models.rotate_latents` with a random R
    among its active latents. Likelihood, reconstructions and, with a full posterior, the ELBO are the same there, so
    what differs is due to the axes. The Jacobian is then :math:`J R^\top` and its right singular vectors :math:`R V`:
    for each point a uniformly random rotation, so that the *mean* over rotations is chance itself, but with the same R
    for all points. The share of rotations that do as well as the model is therefore a fair test, whatever the points
    have in common.

    Modules are evaluated in evaluation mode (batch norm and dropout) and put back as they were. Nothing is trained, no
    weight changes, and PyTorch's random state is left as it was. The same arguments give the same explanation.

    Arguments:
        encode: Maps ``(n, …)`` to mean and log-variance, as two tensors, a posterior's named tuple, or a normal
            distribution of PyTorch's. Latents that are feature maps are flattened. A whole model whose forward gives
            ``(reconstruction, mean, log-variance)`` will do, and an encoder of output objects, such as pythae's. Names
            decide where an output has any: ``std``, ``sigma`` or ``variance`` beside ``mean`` is converted.
        decode: Maps latents in the encoder's shape to E[x | z], as a tensor or in an output object: probabilities;
            logits only without `likelihood`.
        x: Observations, as `encode` takes them. An array becomes a tensor of float32, bytes (uint8) grey values in 0…1.
        factors: What generated them, ``(n, k)``, as scores take them: floats are continuous, all else are levels.
        factor_names: What the factors are called; None for the names of the columns.
        likelihood: The distribution of observations around E[x | z] that the model was trained with: Gaussian(scale) or
            Bernoulli(). None where it is unknown: it is then guessed from the range of values, logits included. A
            finding that rests on the guess says so, and contradicts nothing.
        beta: Weight of the divergence that it was trained with, relative to sums over pixels; None where unknown.
        prior: Distribution of the latents.
        seed: Decides the points, the noise and the rotations.
        points: How many observations to use at most.
        title: What the page is called.

    Example:
        >>> from axiswise.distributions import Gaussian
        >>> matrix = torch.tensor([[2.0, 0.0], [0.0, 1.0], [0.0, 0.0]])
        >>> spread = torch.tensor([0.2, 0.5])  # 1 / (1 + the squared length of each column)
        >>> encode = lambda x: (x @ matrix * spread, spread.log().expand(len(x), 2))
        >>> x = torch.randn(200, 3, generator=torch.Generator().manual_seed(0))
        >>> found = explain(encode, lambda z: z @ matrix.T, x, likelihood=Gaussian())
        >>> found["active"].value.estimate, round(found["orthogonality"].value.estimate, 3)
        (2.0, 0.0)
        >>> print(found.conclusion)
        2 of 2 latents are active. The decoder prefers their axes to rotated ones. Look at latents one by one; ...
        >>> print(found["law"].sentence)
        On active latents the encoder's variances are those that the decoder's slope implies at β = 1, to within ...
    """
    if isinstance(x, np.ndarray):
        read = as_array(x, "x")
        x = torch.as_tensor(read.astype(np.float32) / (255 if read.dtype == np.uint8 else 1))
    check_observations(x)
    x = x.detach()
    if len(x) < 2:
        raise AxiswiseError(f"`x` must hold at least 2 observations. Got {len(x)}; one has nothing to compare with.")
    if points < 2:
        raise AxiswiseError(f"`points` must be at least 2. Got {points}.")
    if beta is not None and not 0.0 < beta < math.inf:
        raise AxiswiseError(f"`beta` must be positive and finite, or None where it is unknown. Got {beta!r}.")
    chosen = permutation(seed, "explain", len(x))[:points]
    known, names = _factors(factors, factor_names, len(x), chosen)
    with torch.random.fork_rng(devices=[]), evaluating(encode, decode) as changed:
        observed = observe(Reader(encode, decode), x[chosen.to(x.device)], likelihood, prior, seed)
        quantities = compute(observed, known, beta, seed)
    findings, open_questions = write_findings(observed, quantities, beta, names)
    limits = [*observation_limits(observed), *open_questions]
    if known and (whole := whole_but_continuous(known._replace(names=names), known.kinds)):
        limits.append(
            f"{', '.join(whole)}: whole numbers stored as floats, read as continuous. Pass levels as integers."
        )
    about = {
        "points": len(observed.x),
        "points with Jacobians": 0 if isinstance(observed.slopes, str) else len(observed.slopes.jacobians),
        "latents": observed.latents,
        "shape of latents": observed.shape,
        "likelihood": likelihood_name(observed),
        "β": beta,
        "prior": type(prior).__name__,
        "seed": seed,
        "layers put into evaluation mode and back": changed,
        "versions": versions(),
    }
    return Explanation(
        title,
        findings,
        tuple(dict.fromkeys(limits)),
        about,
        arrays(observed, quantities, names),
        write_conclusion(observed, quantities),
    )


def _factors(
    factors: Values | None, names: Sequence[str] | None, rows: int, chosen: Tensor
) -> tuple[Columns | None, tuple[str, ...]]:
    """The factors of the chosen points, and what they are called."""
    if factors is None:
        return None, ()
    columns = as_columns(factors)
    count = len(as_factors(columns, rows))
    if names is not None and len(names) != count:
        raise AxiswiseError(f"`factor_names` must be as many as the factors, {count}. Got {len(names)}.")
    return columns.rows(chosen.numpy()), tuple(names or columns.labels)
