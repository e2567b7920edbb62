"""Arrays that a report draws, stored with the rows: codes, reconstructions, traversals and histories."""

from pathlib import Path

import numpy as np
import torch

from axiswise.data import FactorDataset
from axiswise.distributions import Deterministic
from axiswise.evaluation._quantities import Quantities
from axiswise.geometry import traversal
from axiswise.geometry.activity import ACTIVE_BELOW
from axiswise.numerics import permutation
from axiswise.population import Population
from axiswise.records._folders import write_arrays
from axiswise.shapes import Tensor

CLOUD = 1000  # points of the latent planes
IMAGES = 10  # of reconstructions
TRAVERSAL = np.linspace(-2.0, 2.0, 9, dtype=np.float32)  # of each latent, in standard deviations of the prior


def store_arrays(population: Population, dataset: FactorDataset, out: str | Path, *, seed: int = 0) -> None:
    """Writes what a report draws into ``arrays/`` of a run folder.

    Every member's history; for vectors, its codes of a thousand points; for images, its reconstructions of ten and a
    traversal of every latent from the code of one image, the others fixed.

    Arguments:
        population: The members; diverged ones have a history only.
        dataset: Where points and images come from.
        out: The run folder.
        seed: Decides which points.
    """
    folder = Path(out)
    histories = {
        f"{trained.member.address}/{name}": array
        for trained in population.trained
        for name, array in trained.history.items()
    }
    write_arrays(folder, "history", histories)
    trained = [member for member in population.trained if not member.diverged]
    if not trained:
        return
    chosen = permutation(seed, "pictures", len(dataset)).to(dataset.device)
    images = len(dataset.shape) == 3
    codes, shown, traversals = {}, {}, {}
    for group in Population(trained).groups:
        own = Quantities(group, dataset, chosen[:CLOUD])
        if not images:
            codes |= _by_address(own, own["codes"])
        elif group.decodes:
            shown |= _by_address(own, own["decode"](own["codes"][:, :IMAGES]))
            traversals |= _traversals(own)
    if images:
        shown["x"] = _numpy(dataset.x(chosen[:IMAGES]))
        write_arrays(folder, "reconstructions", shown)
        write_arrays(folder, "traversals", traversals)
    else:
        codes["factors"] = _numpy(dataset.factors(chosen[:CLOUD]))
        write_arrays(folder, "codes", codes)


def _traversals(quantities: Quantities) -> dict[str, np.ndarray]:
    """Each member's images as one latent at a time moves through the prior's range, and each latent's KL."""
    codes = quantities["codes"]
    base, units, kl = codes[:, 0], torch.ones_like(codes[:, 0]), torch.full_like(codes[:, 0], torch.nan)
    if isinstance(quantities.group.model.posterior, Deterministic):
        units = codes.std(1)  # without noise there is no prior to measure by
    else:
        kl = quantities["kl"].mean(1)
    images = traversal(quantities["decode"], base, torch.from_numpy(TRAVERSAL), units=units)
    stored = {f"{trained.member.address}/values": TRAVERSAL for trained in quantities.group.trained}
    stored |= _by_address(quantities, images, "/images") | _by_address(quantities, kl, "/kl")
    active = quantities["variance"].mean(1) < ACTIVE_BELOW
    return stored | {name: flags.astype(np.uint8) for name, flags in _by_address(quantities, active, "/active").items()}


def _by_address(quantities: Quantities, stack: Tensor, suffix: str = "") -> dict[str, np.ndarray]:
    """What there is of each member, by its address."""
    members = quantities.group.trained
    return {trained.member.address + suffix: _numpy(own) for trained, own in zip(members, stack, strict=True)}


def _numpy(tensor: Tensor) -> np.ndarray:
    return tensor.detach().cpu().numpy().astype(np.float32)
