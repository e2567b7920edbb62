"""Which latents are active, and how many."""

from typing import Literal, NamedTuple

import numpy as np
from numpy import ndarray

from axiswise import geometry
from axiswise.distributions import StandardNormal
from axiswise.explanation._observation import KL_ABOVE, Observed
from axiswise.explanation._quantities._baselines import as_numpy
from axiswise.geometry.activity import ACTIVE_BELOW
from axiswise.statistics import Interval, bootstrap_rows

RESAMPLES = 300  # of a bootstrap over rows


class Activity(NamedTuple):
    """How many latents are active."""

    interval: Interval | None
    """Active latents; None where codes have no noise."""
    criterion: Literal["spread", "kl", "variance"]
    """What decides: the spread of codes without noise, the divergence, or the posterior's variance."""
    mixed: tuple[int, ...]
    """Latents that are neither active nor passive, under a standard normal prior."""
    between: tuple[int, ...]
    """The same, and latents that are not active by the mean of their variance but carry information."""
    collapsed: bool
    """Whether no latent is active, nor would be among other points, and the divergence of all together vanishes."""
    spread: ndarray | None
    """Standard deviation of each latent's code, where it decides."""
    kl: ndarray | None
    """Mean divergence of each latent from the prior, in nats."""
    variance: ndarray | None
    """Mean posterior variance of each latent over the prior's, where it decides."""


def activity(observed: Observed) -> Activity:
    """Counts the active latents, with an interval by the bootstrap over points."""
    if observed.kl is None:
        return Activity(
            None, "spread", (), (), not observed.active, as_numpy(observed.posterior.mean.std(0)), None, None
        )
    if observed.scale is None:
        rows = as_numpy(observed.kl)

        def count(rows: ndarray) -> float:
            return float((rows.mean(0) > KL_ABOVE).sum())

    else:
        rows = as_numpy(observed.posterior.variance / observed.scale.square())

        def count(rows: ndarray) -> float:
            return float((rows.mean(0) < ACTIVE_BELOW).sum())

    mixed = ()
    if isinstance(observed.prior, StandardNormal):
        kinds = geometry.regime(observed.posterior).kinds.tolist()
        mixed = tuple(latent for latent, kind in enumerate(kinds) if kind == -1)
    interval, kl = bootstrap_rows((rows,), count, resamples=RESAMPLES), as_numpy(observed.kl.double()).mean(0)
    informative = {latent for latent in np.flatnonzero(kl > KL_ABOVE).tolist() if latent not in observed.active}
    return Activity(
        interval=interval,
        criterion="kl" if observed.scale is None else "variance",
        mixed=mixed,
        between=tuple(sorted(informative.union(mixed))),
        collapsed=not observed.active and not interval.high > 0.0 and bool(kl.sum() <= KL_ABOVE),
        spread=None,
        kl=kl,
        variance=None if observed.scale is None else rows.mean(0),
    )
