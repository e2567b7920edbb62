"""The example of README.md, for the type checker: README shows it, pyright reads it here.

`tests/package/test_readme.py` compares the two, and runs it.
"""

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
