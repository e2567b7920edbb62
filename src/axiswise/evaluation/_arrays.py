"""Arrays that a report draws, stored with the rows: codes, reconstructions, traversals and histories."""

from pathlib import Path

import numpy as np
import torch

from axiswise.data import FactorDataset
from axiswise.distributions import Deterministic
from axiswise.geometry import traversal
from axiswise.geometry.activity import ACTIVE_BELOW
from axiswise.numerics import normal, permutation
from axiswise.population import Group, Population
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
    trained = [member for member in population.trained if member.status == "trained"]
    if not trained:
        return
    chosen = permutation(seed, "pictures", len(dataset)).to(dataset.device)
    images = len(dataset.shape) == 3
    points = chosen[: IMAGES if images else CLOUD]
    groups = [group for group in Population(trained).groups if group.decodes or not images]
    if images:
        reconstructions, traversals = {"x": _numpy(dataset.x(points))}, {}
        for group in groups:
            codes = group.encode(dataset.x(points)).mean
            for member, decoded in zip(group.trained, group.decode(codes), strict=True):
                reconstructions[member.member.address] = _numpy(decoded)
            traversals |= _traversals(group, dataset, chosen[:CLOUD])
        write_arrays(folder, "reconstructions", reconstructions)
        write_arrays(folder, "traversals", traversals)
    else:
        clouds = {"factors": _numpy(dataset.factors(points))}
        for group in groups:
            for member, codes in zip(group.trained, group.encode(dataset.x(points)).mean, strict=True):
                clouds[member.member.address] = _numpy(codes)
        write_arrays(folder, "codes", clouds)


def _traversals(group: Group, dataset: FactorDataset, points: Tensor) -> dict[str, np.ndarray]:
    """Each member's images as one latent at a time moves through the prior's range, and each latent's KL."""
    posterior = group.encode(dataset.x(points))
    kl = torch.full_like(posterior.mean[:, 0], torch.nan)
    if not isinstance(group.model.posterior, Deterministic):
        noise = normal(0, "pictures", 0, tuple(posterior.mean.shape), dtype=posterior.mean.dtype)
        sample = posterior.sample(noise.to(posterior.mean.device))
        kl = group.prior.kl(posterior, sample).per_latent.mean(1)
    active = posterior.variance.mean(1) < ACTIVE_BELOW
    base = posterior.mean[:, 0]
    # Codes without noise have no prior to measure by: there a unit is the standard deviation of the code itself.
    noisy = not isinstance(group.model.posterior, Deterministic)
    units = torch.ones_like(base) if noisy else posterior.mean.std(1)
    images = traversal(group.decode, base, torch.from_numpy(TRAVERSAL), units=units)
    stored: dict[str, np.ndarray] = {}
    for row, trained in enumerate(group.trained):
        name = trained.member.address
        stored[f"{name}/images"], stored[f"{name}/values"] = _numpy(images[row]), TRAVERSAL
        stored[f"{name}/kl"], stored[f"{name}/active"] = _numpy(kl[row]), active[row].cpu().numpy().astype(np.uint8)
    return stored


def _numpy(tensor: Tensor) -> np.ndarray:
    return tensor.detach().cpu().numpy().astype(np.float32)
