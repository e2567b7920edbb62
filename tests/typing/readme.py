"""The examples of README.md, in its order, for the type checker: README shows them, pyright reads them here.

`tests/package/test_readme.py` compares the two, and runs most of them. A model of the reader's own
is defined where README assumes one.
"""

# ruff: noqa: E402, I001 (as README has them: imports where they are first used)

from axiswise.distributions import DiagonalParameters

import axiswise as aw

square = aw.data.synth_linear(ratio=2.0, samples=10_000)
members = aw.grid(
    model=aw.models.linear(3, 2, likelihood=aw.distributions.Gaussian(0.1)),
    objective=[aw.objectives.BetaVAE(beta) for beta in (0.1, 1, 4, 16)],
    optimizer=aw.optimizers.Adam(lr=0.03),
    steps=2_000,
    seed=range(8),
)
population = aw.train(members, square, out="runs/square")
records = aw.evaluate(population, square, [aw.scores.mig, aw.geometry.dto])
for beta in (0.1, 1, 4, 16):
    own = [record for record in records if record.hyperparameters["beta"] == beta]
    for measure in ("mig", "dto"):
        mean = aw.statistics.mean_interval(record.value for record in own if record.measure == measure)
        print(f"β = {beta:<4} {measure} {mean.estimate:.2f} [{mean.low:.2f}, {mean.high:.2f}]")

sprites = aw.data.dsprites()
members = aw.grid(
    model=aw.models.conv64(latents=10),
    objective=[aw.objectives.BetaVAE(beta) for beta in (1, 4, 16)],
    optimizer=aw.optimizers.Adam(lr=1e-4),
    steps=100_000,
    batch=64,
    seed=range(10),
)
population = aw.train(members, sprites, device="cuda", out="runs/sprites")
model = population[0]  # an ordinary PyTorch module

import torch


def networks(hidden, latents):  # the encoder gives means and log-variances
    encoder = torch.nn.Sequential(torch.nn.Linear(3, hidden), torch.nn.ReLU(), torch.nn.Linear(hidden, 2 * latents))
    return encoder, torch.nn.Linear(latents, 3)


members = aw.grid(
    model=[aw.models.custom(networks, inputs=3, latents=2, arguments={"hidden": hidden}) for hidden in (4, 16)],
    objective=[aw.objectives.BetaTCVAE(beta=6), aw.objectives.DIPVAE(variant="II")],
    steps=2_000,
    seed=range(8),
)
population = aw.train(members, square, out="runs/own")
population = aw.load("runs/own", own=networks)  # stored by name: files hold no code
model = population.where(hidden=16, seed=0)[0]
print(model.encoder, model.sample(3))
model.export("exports/own")  # state dicts and a model card; to="onnx" adds ONNX models

from axiswise.studies import Run, Scale


def widths(scale: Scale) -> list[Run]:
    """How wide must an encoder be?

    The first paragraph is the title of the report, the second its summary.
    """
    members = aw.grid(
        model=[aw.models.mlp(3, 2, encoder=(width,)) for width in (4, 16, 64)],
        objective=aw.objectives.BetaVAE(0.01),
        steps={"smoke": 50, "default": 5_000, "paper": 50_000}[scale],
        seed=range(5),
    )
    # The dataset is a function, called when the run begins.
    return [Run("square/widths", aw.data.synth_linear, members, (aw.scores.mig, aw.geometry.dto), held_out=True)]


with aw.trackers.csv_file("runs/history.csv") as track:
    aw.train(members, square, out="runs/tracked", on_history=track)

import numpy as np
import pandas

generator = np.random.default_rng(0)
factors = generator.integers(0, 5, (3_000, 2))
codes = factors @ [[1.0, 0.3], [-0.3, 1.0]] + 0.1 * generator.normal(size=(3_000, 2))
print(round(aw.scores.mig(codes, factors).score, 2), round(aw.scores.dci(codes, factors).score, 2))

labels = pandas.DataFrame({"shape": np.array(["heart", "square"])[factors[:, 0] % 2], "size": factors[:, 1] / 4})
labels.loc[7, "size"] = None  # a gap: an error that says where, unless missing="drop"
scored = aw.scores.mig(codes, labels, missing="drop")
print(scored.inputs.factor_names, scored.inputs.levels, scored.inputs.dropped)


trained = torch.nn.Linear(3, 4), torch.nn.Linear(2, 3)  # any VAE
x = torch.rand(500, 3)


def encode(x: torch.Tensor) -> DiagonalParameters:
    return DiagonalParameters(*trained[0](x).chunk(2, -1))


def decode(z: torch.Tensor) -> torch.Tensor:
    return trained[1](z).sigmoid()


found = aw.explain(encode, decode, x, likelihood=aw.distributions.Bernoulli())  # encode(x) gives mean and log-variance
print(found)
aw.report.page(found, "explanation.html")

covariance = np.diag([4.0, 2.0, 0.5])
optimum = aw.analytic.beta_vae_optimum(torch.tensor(covariance), latents=2, beta=1.5)
print(optimum.active)  # both eigenvalues exceed β · noise

change = aw.attack.load_change("runs/attack-small_sprites/change.safetensors")
harder = aw.data.manipulated(aw.data.small_sprites(), change)  # a dataset like any other, with the same factors
