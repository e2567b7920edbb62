"""Laws 1, 2 and 6 on a GPU, for every architecture, with the figures.

Command: ``python benchmarks/laws_on_gpu.py``, from a source tree with ``PYTHONPATH=src``. Expected: relative
differences below 1e-10 in float64 after fifty steps, bit-equal weights after an interruption. Cost: two minutes.
"""

import random
import tempfile
from pathlib import Path

import torch

from axiswise import data, grid, models, objectives, optimizers, train
from axiswise.numerics import integers, normal, uniform
from axiswise.population import Member
from axiswise.population import _cohort as cohort
from axiswise.population import _trainer as loop
from axiswise.schedules import hyperparameters

STEPS, BATCH = 50, 8


class Stop(Exception):
    """Stands for whatever ends a process."""


def architectures() -> dict:
    """Every architecture, with a dataset it takes."""
    images = data.arrays(uniform(0, "images", 0, (96, 1, 64, 64)))
    return {
        "linear": (models.linear(3, 2), data.synth_linear(samples=500)),
        "mlp": (models.mlp(6, 2), data.synth_nonlinear(samples=500)),
        "conv64": (models.conv64(latents=4), images),
    }


def plain_loop(member: Member, dataset: data.FactorDataset) -> dict[str, torch.Tensor]:
    """The member in plain PyTorch, from the same initial weights and draws, on the same device."""
    initial = train([Member(member.model, member.objective, steps=0, seed=member.seed)], dataset, dtype=torch.float64)
    encoder, decoder = initial.member(0)
    assert decoder is not None
    optimizer = torch.optim.Adam([*encoder.parameters(), *decoder.parameters()], lr=1e-3)
    seed = torch.tensor(member.seed, device=dataset.device)
    for step in range(member.steps):
        x = dataset.x(integers(seed, "index", step, (BATCH,), len(dataset))).double()
        q = encoder(x)
        z = q.sample(normal(seed, "noise", step, (BATCH, member.model.latents), dtype=torch.float64))
        kl = 0.5 * (q.mean**2 + q.variance - q.log_variance - 1.0).sum(1).mean()
        loss = (
            -member.model.likelihood.log_density(x, decoder(z, raw=True)).mean()
            + hyperparameters(member.objective)["beta"] * kl
        )
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    halves = {"encoder": encoder, "decoder": decoder}
    return {
        name.replace(".network", "", 1): parameter
        for half, module in halves.items()
        for name, parameter in module.named_parameters(prefix=half)
    }


def difference(found: dict, expected: dict) -> float:
    """Largest difference of any parameter, relative to the parameter's largest entry."""
    return max(
        ((found[name] - weight).abs().max() / weight.abs().max().clamp_min(1e-6)).item()
        for name, weight in expected.items()
    )


def main() -> None:
    """Prints a line for each architecture."""
    device = "cuda" if torch.cuda.is_available() else "cpu"
    print(f"device: {torch.cuda.get_device_name() if device == 'cuda' else 'cpu'}, torch {torch.__version__}")
    for name, (model, dataset) in architectures().items():
        dataset = dataset.to(device)
        members = grid(
            model=model,
            objective=[objectives.BetaVAE(0.1), objectives.BetaVAE(4.0)],
            steps=STEPS,
            batch=BATCH,
            seed=[3, 11],
            optimizer=optimizers.Adam(lr=1e-3),
        )
        together = train(members, dataset, dtype=torch.float64)
        alone = max(
            difference(trained.weights, train([trained.member], dataset, dtype=torch.float64).trained[0].weights)
            for trained in together.trained
        )
        plain = max(difference(trained.weights, plain_loop(trained.member, dataset)) for trained in together.trained)
        cohort.LARGEST = 3
        shuffled = train(random.Random(0).sample(members, 4), dataset, dtype=torch.float64)
        cohort.LARGEST = 64
        reference = {trained.member: trained.weights for trained in together.trained}
        order = max(difference(trained.weights, reference[trained.member]) for trained in shuffled.trained)
        print(
            f"{name}: alone {alone:.1e}, plain loop {plain:.1e}, order and grouping {order:.1e}, resumed bit-equal "
            f"{resumes(members, dataset)}",
            flush=True,
        )


def resumes(members: list[Member], dataset: data.FactorDataset) -> bool:
    """Whether training stopped twice and resumed, in float32, ends in the same bits."""
    loop.SAVE_SECONDS, loop.SAVING_SHARE, loop.LONGEST_BLOCK = 0.0, 1e9, 3
    members = [Member(m.model, m.objective, m.steps, m.batch, m.seed, m.optimizer, history=1) for m in members]
    with tempfile.TemporaryDirectory() as place:
        whole = train(members, dataset, out=Path(place) / "whole")
        for moment in (7, 31):

            def stop(entry, moment=moment):
                if entry.step >= moment:
                    raise Stop

            try:
                train(members, dataset, out=Path(place) / "stopped", on_history=stop)
            except Stop:
                continue
        resumed = train(members, dataset, out=Path(place) / "stopped")
    return all(
        torch.equal(one.weights[name], other.weights[name])
        for one, other in zip(whole.trained, resumed.trained, strict=True)
        for name in one.weights
    )


if __name__ == "__main__":
    main()
