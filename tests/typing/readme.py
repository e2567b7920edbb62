"""The examples of README.md, in its order, for the type checker: README shows them, pyright reads them here.

`tests/package/test_readme.py` compares the two, and runs them.
"""

# ruff: noqa: E402 (as README has them: imports where they are first used)

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
