"""Does bfloat16 change results? The same members with products in bfloat16 and in float32, compared seed by seed.

Commands: ``python benchmarks/precision.py train residual --precision bf16 --out runs/precision/residual-bf16``, the
same with ``fp32``, and ``python benchmarks/precision.py compare`` with both folders. The first trains β-VAEs of one of
the networks below on dSprites at 32 × 32 pixels on a GPU: two minutes or less on an H200. Any two run folders whose
members are the same but for the precision can be compared. Expected: every interval of the paired differences covers
zero, and the ELBO differs by less than 0.2 %, which is the rule for bfloat16 to be the default. With enough seeds the
interval of the ELBO is itself within 0.2 %.
"""

import argparse
import sys
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import torch
from torch import nn

from axiswise import evaluate, grid, train
from axiswise.data import FactorDataset, arrays, dsprites
from axiswise.distributions import Bernoulli
from axiswise.geometry import dto, elbo
from axiswise.models import VAE, custom, mlp
from axiswise.objectives import BetaVAE
from axiswise.optimizers import Adam
from axiswise.records import read_records
from axiswise.scores import active_units, mig
from axiswise.statistics import compare_paired, grouped
from axiswise_benchmarks.networks import LATENTS, Pair, residual_block

JUDGED = ("mig", "dto", "elbo", "active_units")
IMAGES, SIDE = 100_000, 32


def residual() -> Pair:
    """Residual blocks of group norm, GELU and convolutions."""
    encoder = [nn.Conv2d(1, 32, 4, 2, 1), residual_block(32), nn.Conv2d(32, 64, 4, 2, 1), residual_block(64)]
    decoder = [residual_block(64), nn.ConvTranspose2d(64, 32, 4, 2, 1), residual_block(32)]
    return (
        nn.Sequential(*encoder, nn.Flatten(), nn.Linear(64 * 64, 2 * LATENTS)),
        nn.Sequential(
            *(nn.Linear(LATENTS, 64 * 64), nn.Unflatten(1, (64, 8, 8))), *decoder, nn.ConvTranspose2d(32, 1, 4, 2, 1)
        ),
    )


def batch_norm() -> Pair:
    """Convolutions, each followed by batch norm and ReLU."""
    encoder, decoder, widths = [], [nn.Linear(LATENTS, 64 * 16), nn.Unflatten(1, (64, 4, 4))], (1, 32, 64, 64)
    for one, two in pairwise(widths):
        encoder += [nn.Conv2d(one, two, 4, 2, 1), nn.BatchNorm2d(two), nn.ReLU()]
        decoder[2:2] = [nn.BatchNorm2d(two), nn.ReLU(), nn.ConvTranspose2d(two, one, 4, 2, 1)]
    return nn.Sequential(*encoder, nn.Flatten(), nn.Linear(64 * 16, 2 * LATENTS)), nn.Sequential(*decoder)


def wide_mlp() -> VAE:
    """Fully connected, 1,200 wide."""
    wide = (1200, 1200)
    return mlp((1, SIDE, SIDE), LATENTS, encoder=wide, decoder=(*wide, 1200), likelihood=Bernoulli())


NETWORKS: dict[str, Callable[[], VAE]] = {
    "residual": lambda: custom(residual, (1, SIDE, SIDE), LATENTS, likelihood=Bernoulli()),
    "batch-norm": lambda: custom(batch_norm, (1, SIDE, SIDE), LATENTS, likelihood=Bernoulli()),
    "mlp": wide_mlp,
}


def small_sprites() -> FactorDataset:
    """A part of dSprites, each four pixels averaged into one."""
    sprites = dsprites()
    index = sprites.sample(IMAGES, seed=0)
    pixels = [nn.functional.avg_pool2d(sprites.x(part), 2) for part in index.split(10_000)]
    space = sprites.space
    factors = {"names": space.names, "sizes": space.sizes, "kinds": space.kinds}
    return arrays(torch.cat(pixels), sprites.factors(index), **factors, name="dsprites at 32 × 32")


def train_members(options: argparse.Namespace) -> None:
    """Trains members of one network in one precision, and measures what is judged."""
    members = grid(
        model=NETWORKS[options.network](),
        objective=BetaVAE(4.0),
        optimizer=Adam(lr=5e-4),
        batch=64,
        steps=options.steps,
        seed=range(options.seeds),
    )
    dataset = small_sprites().to("cuda")
    population = train(members, dataset, device="cuda", precision=options.precision)
    options.out.mkdir(parents=True, exist_ok=True)
    evaluate(population, dataset, [mig, dto, elbo, active_units], points=2_000, out=options.out)


def values(folder: Path, measure: str) -> dict[int, float]:
    """The measure by seed."""
    return grouped(read_records(folder), measure, by=())[()]


def compare(options: argparse.Namespace) -> None:
    """Prints both means, and the paired difference with its interval."""
    holds = True
    for measure in JUDGED:
        found, expected = values(options.narrow, measure), values(options.wide, measure)
        compared = compare_paired(found, expected).difference
        covers = compared.low <= 0 <= compared.high
        ours, mean = (sum(group.values()) / len(group) for group in (found, expected))
        share, wide = abs(compared.estimate / mean), max(abs(compared.low), abs(compared.high)) / abs(mean)
        holds &= covers and (measure != "elbo" or share < 0.002)
        print(
            f"{measure:14} bf16 {ours:9.4f}  fp32 {mean:9.4f}  difference {compared.estimate:8.4f} "
            f"[{compared.low:.4f}, {compared.high:.4f}] over {compared.known} seeds, {100 * share:.2f} %, "
            f"at most {100 * wide:.2f} %"
        )
    print("bf16 changes nothing beyond the noise of seeds" if holds else "bf16 changes results")
    sys.exit(not holds)


def main() -> None:
    """Trains, or compares."""
    parser = argparse.ArgumentParser(description=__doc__)
    commands = parser.add_subparsers(required=True)
    training = commands.add_parser("train")
    training.add_argument("network", choices=NETWORKS)
    training.add_argument("--precision", choices=("bf16", "fp32"), required=True)
    training.add_argument("--out", type=Path, required=True)
    training.add_argument("--seeds", type=int, default=64)
    training.add_argument("--steps", type=int, default=3_000)
    training.set_defaults(run=train_members)
    comparing = commands.add_parser("compare")
    comparing.add_argument("narrow", type=Path)
    comparing.add_argument("wide", type=Path)
    comparing.set_defaults(run=compare)
    options = parser.parse_args()
    options.run(options)


if __name__ == "__main__":
    main()
