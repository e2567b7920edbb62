"""The attack on 3D Shapes: Table 1, the searches over the main weight, and planes of hue and orientation."""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import torch

from axiswise.attack import SHAPES3D, Learning, judgement, objectives_of, published_weights
from axiswise.data import Change, shapes3d
from axiswise.objectives import BetaTCVAE, BetaVAE, FactorVAE, Objective, SlowVAE
from axiswise.population import Member
from axiswise.scores import active_units, mig
from axiswise.studies import Run, Scale
from axiswise_papers.zietlow2021.discs import cached_attack, small_change, small_sprites_apart, with_share
from axiswise_papers.zietlow2021.measures import hue_and_orientation
from axiswise_papers.zietlow2021.sprites import CHOOSE_FROM, MEASURES, SEEDS, STEPS, members, small_runs

EPSILON = 0.175
FACTORS, CHANNELS = 6, 3
ENSEMBLE = 4
LEARNING_STEPS = {"default": 10_000, "paper": 60_000}
SHARES = (0.25, 0.5, 1.0, 2.0, 4.0)
"""What the main weight is multiplied by in Figure 5, of which the paper prints none."""


def table_1_shapes3d(scale: Scale) -> list[Run]:
    """A small change of 3D Shapes makes VAEs entangle it (zietlow2021 Table 1, and Tables 3 to 5).

    Six objectives on the original images, on images changed by at most 0.175 as a function of their factors, and on
    images with uniform noise of the same size. The change is learned against four entangled and four disentangled
    β-VAEs. Published MIG of β-VAEs: .60 ± .31, .09 ± .14 on changed images, .66 ± .05 on noisy ones; PCL, which has no
    decoder, does not drop.

    Command: ``axiswise run zietlow2021.table_1_shapes3d --device cuda``. Cost: to be measured; by its arithmetic 180
    members of 50,000 steps and twenty more to choose from, an hour on one H200. The change is learned when the first
    run on it begins, and stored in the cache folder.

    Without the original file images are rendered, which every row records. Otherwise as `table_1`.
    """
    if scale == "smoke":
        return small_runs(("beta-vae", "slow-vae"))
    objectives = objectives_of(SHAPES3D)
    found = {name: _members(objective, scale) for name, objective in objectives.items()}
    change = partial(shapes3d_change, scale)
    return with_share(judgement(shapes3d, change, found, epsilon=EPSILON, measures=MEASURES), change)


def figure_5(scale: Scale) -> list[Run]:
    """Other weights do not make up for the change (zietlow2021 Figures 5, 7, 8 and 9).

    Four VAEs on original and changed 3D Shapes, with their main weight from a quarter to four times that of Table 2,
    ten restarts of each. Published as curves without numbers: changed images stay hard to disentangle, and strong
    weights recover something only once they prune more latents than there are factors; such runs are left out (active
    means E σ² < 0.8), and their share is reported.

    Command: ``axiswise run zietlow2021.figure_5 --device cuda``. Cost: to be measured; by its arithmetic 400 members of
    50,000 steps, two hours on one H200.
    """
    if scale == "smoke":
        runs = small_runs(("beta-vae",))[:2]
        return [replace(run, members=[*run.members, *_doubled(run.members)]) for run in runs]
    weighted = {
        "beta-vae": [BetaVAE(share * SHAPES3D.beta) for share in SHARES],
        "factor-vae": [FactorVAE(share * SHAPES3D.adversary) for share in SHARES],
        "beta-tcvae": [BetaTCVAE(share * SHAPES3D.total_correlation) for share in SHARES],
        "slow-vae": [SlowVAE(share * SHAPES3D.slow) for share in SHARES],
    }
    found = {name: _members(objectives, scale) for name, objectives in weighted.items()}
    runs = judgement(shapes3d, partial(shapes3d_change, scale), found, epsilon=EPSILON, measures=MEASURES)
    return with_share([run for run in runs if not run.name.endswith("/noise")], partial(shapes3d_change, scale))


def figure_10(scale: Scale) -> list[Run]:
    """Entangled β-VAEs code hue as an angle and orientation as a radius (zietlow2021 Figures 10 and 11).

    Twenty restarts of β-VAEs on original 3D Shapes. For each, the two latents are found that explain the most of wall
    hue and orientation, by their polar coordinates or by themselves. Published as pictures of the four most and the
    four least disentangled: the former order the hues alike, along one latent, the latter have hue as angle and
    orientation as radius.

    Command: ``axiswise run zietlow2021.figure_10 --device cuda``. Cost: to be measured; by its arithmetic 20 members of
    50,000 steps, minutes on one H200.

    The paper does not give the number of restarts of which its eight are the extremes.
    """
    if scale == "smoke":
        plane = partial(hue_and_orientation, hue=0, orientation=1)
        return [replace(run, measures=(mig, active_units, plane)) for run in small_runs(("beta-vae",))[:1]]
    found = _members(BetaVAE(SHAPES3D.beta), scale, seeds=2 * SEEDS)
    return [Run("beta-vae/original", shapes3d, found, (mig, active_units, hue_and_orientation))]


def shapes3d_change(scale: Scale) -> Change:
    """The change of 3D Shapes: learned once against an ensemble, then read from the cache folder.

    Arguments:
        scale: How long its members are trained and it is learned.
    """
    if scale == "smoke":
        return small_change(scale)
    # A GPU, if there is one: datasets are made before they are moved to where they are trained on.
    device = "cuda" if torch.cuda.is_available() else None
    found = cached_attack(shapes3d(), to_choose_from(scale), shapes3d_learning(scale), count=ENSEMBLE, device=device)
    change = found.learned.change
    return replace(change, tensors={name: tensor.cpu() for name, tensor in change.tensors.items()})


def to_choose_from(scale: Scale) -> list[Member]:
    """The β-VAEs that the attack chooses from: restarts of one setting, with other seeds than those that judge it."""
    return _members(BetaVAE(SHAPES3D.beta), scale, seeds=2 * SEEDS, first=CHOOSE_FROM)


def shapes3d_learning(scale: Scale) -> Learning:
    """How the change is learned, as in appendix B.1; the number of steps is ours."""
    return Learning(EPSILON, steps=LEARNING_STEPS[scale])


def _members(
    objective: Objective | list[Objective], scale: Scale, seeds: int = SEEDS, *, first: int = 0
) -> list[Member]:
    return members(objective, STEPS[scale], seeds, channels=CHANNELS, factors=FACTORS, first=first)


def _doubled(found: Sequence[Member]) -> list[Member]:
    """The β-VAEs of the small discs with twice their β."""
    return [replace(member, objective=BetaVAE(2.0 * published_weights(small_sprites_apart()).beta)) for member in found]
