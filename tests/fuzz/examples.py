"""A valid value for every parameter of the public API: by function, by name, or by annotation.

A new function whose parameters are annotated with types that are known here is fuzzed without an entry of its own.
"""

import inspect
import types
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar, Union, get_args, get_origin

import numpy as np
import torch
from rich.console import Console

from axiswise import (
    analytic,
    attack,
    data,
    distributions,
    evaluation,
    exploration,
    models,
    objectives,
    optimizers,
    population,
    records,
    scores,
    studies,
)
from axiswise import explanation as explanation_
from axiswise.distributions import estimators
from axiswise.population import program as population_program
from axiswise.report import figures, html

SIZES = {"n": 12, "m": 6, "x": 5, "y": 5, "z": 3, "k": 2, "d": 3, "e": 3, "v": 4, "p": 2, "w": 7, "rows": 12, "b": 3}
W = torch.linspace(-1.0, 1.0, 15, dtype=torch.float64).reshape(5, 3) + torch.eye(5, 3, dtype=torch.float64)


def decode(z: torch.Tensor) -> torch.Tensor:
    """A smooth decoder from three latents to five pixels."""
    return torch.tanh(z) @ W.to(z.dtype).T


def encode(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Means and log variances of three latents."""
    mean = x.flatten(1) @ W.to(x.dtype)
    return mean, 0.0 * mean - 1.0


@cache
def dataset() -> data.FactorDataset:
    """Twelve points of five pixels and two factors."""
    rng = np.random.default_rng(0)
    factors = np.stack(np.meshgrid(np.arange(3), np.arange(4)), -1).reshape(-1, 2)
    return data.arrays(rng.normal(size=(12, 5)).astype(np.float32), factors, names=["shape", "size"])


@cache
def images() -> data.FactorDataset:
    return data.small_sprites((4, 4, 2), side=8, travel=(4.0, 3.0))


@cache
def members() -> list[population.Member]:
    made = models.mlp(5, 3, encoder=(4,), decoder=(4,))
    return population.grid(model=made, objective=objectives.BetaVAE(), steps=2, batch=4, seed=[0, 1])


@cache
def trained() -> population.Population:
    return population.train(members(), dataset(), progress=False)


def posterior() -> distributions.DiagonalParameters:
    mean = torch.linspace(-1.0, 1.0, 36, dtype=torch.float64).reshape(12, 3)
    return distributions.DiagonalParameters(mean, -1.0 + 0.1 * mean)


def matrix(letters: str, seed: int = 0) -> torch.Tensor:
    """Positive numbers with the axes of an annotation."""
    shape = [
        SIZES.get(letter, int(letter) if letter.isdigit() else 3)
        for letter in letters.split()
        if letter[0] not in ".*_"
    ]
    generator = torch.Generator().manual_seed(seed)
    return torch.rand(shape, generator=generator, dtype=torch.float64) + 0.1


def square(size: int, leading: Sequence[int] = ()) -> torch.Tensor:
    """Positive definite, with distinct eigenvalues."""
    return torch.diag(torch.arange(1.0, size + 1, dtype=torch.float64)).expand(*leading, size, size).clone()


def rotation(size: int = 3) -> torch.Tensor:
    return torch.linalg.qr(torch.arange(size * size, dtype=torch.float64).reshape(size, size).sin())[0]


def factory(inputs: int = 5, latents: int = 3) -> tuple[torch.nn.Module, torch.nn.Module]:
    return torch.nn.Linear(5, 6), torch.nn.Linear(3, 5)


CODES = np.random.default_rng(1).normal(size=(48, 3))
FACTORS = np.stack([np.arange(48) % 3, np.arange(48) % 4], -1)

BY_ANNOTATION: dict[Any, Callable[[], Any]] = {
    distributions.Prior: distributions.StandardNormal,
    distributions.Posterior: distributions.Diagonal,
    distributions.Likelihood: distributions.Gaussian,
    distributions.Parameters: posterior,
    estimators.MMD: estimators.MMD,
    estimators.AggregateDivergence: estimators.MMD,
    analytic.LinearVAE: lambda: analytic.beta_vae_optimum(square(5), 3, 1.0),
    analytic.LinearGaussian: lambda: analytic.LinearGaussian(matrix("x k")),
    analytic.SmoothMap: analytic.Shear,
    analytic.Spectrum: lambda: None,
    data.FactorDataset: dataset,
    data.FactorSpace: lambda: dataset().space,
    data.Change: lambda: data.Change("shift", 0.1, _pattern),
    models.VAE: lambda: models.linear(5, 3),
    models.Architecture: lambda: models.linear(5, 3).network,
    objectives.Objective: objectives.BetaVAE,
    optimizers.Optimizer: optimizers.Adam,
    optimizers.Adam: optimizers.Adam,
    population.Population: trained,
    population.Member: lambda: members()[0],
    torch.nn.Module: lambda: torch.nn.Linear(5, 6),
    torch.dtype: lambda: torch.float64,
    torch.device: lambda: torch.device("cpu"),
    torch.Tensor: lambda: torch.ones(3, dtype=torch.float64),
    np.ndarray: lambda: np.linspace(0.1, 1.0, 36).reshape(12, 3),
    str: lambda: "name",
    bytes: lambda: b"contents",
    Path: lambda: Path("file"),
    int: lambda: 3,
    float: lambda: 0.5,
    bool: lambda: True,
    BaseException: lambda: ValueError("x"),
}


def _pattern(tensors: Mapping[str, torch.Tensor], index: torch.Tensor) -> torch.Tensor:
    return torch.zeros(*index.shape[:-1], 5)


BY_NAME: dict[str, Callable[[], Any]] = {
    "decode": lambda: decode,
    "decode_raw": lambda: decode,
    "encode": lambda: encode,
    "codes": lambda: CODES,
    "factors": lambda: FACTORS,
    "covariance": lambda: square(5),
    "second_moment": lambda: square(5),
    "gram": lambda: square(3, (12,)),
    "information": lambda: square(3, (12,)),
    "seed": lambda: 0,
    "bins": lambda: 4,
    "out": lambda: None,
    "progress": lambda: None,
    "on_history": lambda: None,
    "device": lambda: "cpu",
    "precision": lambda: None,
    "log": lambda: len,
    "test": lambda: None,
    "resamples": lambda: 200,
    "level": lambda: 0.9,
    "latents": lambda: 3,
    "missing": lambda: "raise",
    "kinds": lambda: None,
}


def history() -> dict[str, np.ndarray]:
    """What the training of two members of three latents recorded at four steps."""
    latents = np.linspace(0.1, 1.0, 24).reshape(2, 4, 3)
    terms = {"kl": latents[..., 0], **dict.fromkeys(("mean_square", "variance", "log_variance"), latents)}
    return {"step": np.arange(4), "loss": latents[..., 0], "reconstruction": latents[..., 0], **terms}


def choice() -> attack.Choice:
    ranked = (attack.Ranked(0, 0, 0.5, 3), attack.Ranked(1, 1, 0.1, 3))
    return attack.Choice((0,), (1,), ranked, (), "mig")


def explanation() -> explanation_.Explanation:
    return explanation_.Explanation("A model", (), ("One point says nothing.",), {}, {})


def change() -> data.Change:
    """One that was learned, so that it can be stored."""
    pattern = attack.Manipulation(3, (1, 8, 8), "dense", hidden=4)
    tensors = {name: value.detach() for name, value in pattern.build().state_dict().items()}
    return data.Change("learned", 0.1, pattern, {**tensors, "low": torch.zeros(3), "span": torch.ones(3)}, {})


@cache
def stored_run() -> str:
    """The folder of a small run."""
    folder = str(Path("run").absolute())
    population.train(members(), dataset(), out=folder, progress=False)
    evaluation.evaluate(population.load(folder), dataset(), [evaluation.loss], points=12)
    return folder


def written(name: str, write: Callable[[Path], Any]) -> Callable[[], Path]:
    """A file that exists when the call is made."""

    def make() -> Path:
        write(Path(name))
        return Path(name)

    return make


def curve(kind: type) -> Any:
    x = np.arange(1.0, 5.0)
    return figures.Line(x, {"loss": x}, 1.0) if kind is figures.Line else figures.Curve("BetaVAE", x, {"mig": x})


PIXELS = np.linspace(0.0, 1.0, 2 * 3 * 64).reshape(2, 3, 1, 8, 8)
FIGURES = "report.figures"

BY_PLACE: dict[str, Callable[[], Any]] = {
    "analytic.Rotated.rotation": lambda: rotation(2),
    "analytic.Separable.basis": lambda: rotation(5)[:, :3],
    "analytic.adapted_noise_objective.rotation": rotation,
    "analytic.adapted_noise_optimum.beta": lambda: 2.0,
    "analytic.fixed_noise_objective.rotation": rotation,
    "analytic.optimal_slope.steepest": lambda: 3.0,
    "analytic.stochastic_loss.covariance": lambda: square(3),
    "analytic.adapted_noise_objective.beta": lambda: 2.0,
    "analytic.ppca_em.tolerance": lambda: 1e-3,
    "analytic.numerical_optimum.tolerance": lambda: 1e-6,
    "analytic.solve_noise_allocation.iterations": lambda: 5,
    "attack.Manipulation.factors": lambda: 3,
    "attack.Manipulation.shape": lambda: (1, 16, 16),
    "attack.arms.dataset": images,
    "attack.arms.seeds": lambda: [0, 1],
    "attack.judgement.dataset": lambda: images,
    "attack.judgement.change": lambda: change,
    "attack.judgement.arms": lambda: {"beta-vae": members()},
    "attack.learning_for.dataset": images,
    "attack.manipulation.dataset": images,
    "attack.load_change.path": written("change", lambda path: attack.save_change(path, change())),
    "attack.save_change.path": lambda: Path("change"),
    "attack.save_change.change": change,
    "attack.objectives_of.weights": lambda: attack.published_weights(images()),
    "attack.table.choice": choice,
    "attack.to_choose_from.dataset": images,
    "attack.to_choose_from.seeds": lambda: [0, 1],
    "cli.check_output.path": lambda: None,
    "data.FactorDataset.space": lambda: data.FactorSpace((data.Factor("shape", 3), data.Factor("size", 4)), grid=True),
    "data.FactorDataset.shape": lambda: (5,),
    "data.FactorDataset.render": lambda: data.stored,
    "data.FactorDataset.tensors": lambda: {"x": torch.rand(12, 5)},
    "data.FactorDataset.arguments": dict,
    "data.FactorDataset.rows": lambda: None,
    "data.FactorSpace.factors": lambda: (data.Factor("shape", 3), data.Factor("size", 4)),
    "data.arrays.x": lambda: np.linspace(0.0, 1.0, 60).reshape(12, 5),
    "data.arrays.factors": lambda: FACTORS[:12],
    "data.circles.points": lambda: 8,
    "data.color_dsprites.seed": lambda: 0,
    "data.downsampled.dataset": images,
    "data.downsampled.factor": lambda: 2,
    "data.image_folder.path": written("pictures", lambda path: _pictures(path)),
    "data.npz.path": written("data.npz", lambda path: np.savez(path, imgs=np.zeros((4, 8, 8), np.uint8))),
    "data.npz.factors": lambda: None,
    "data.manipulated.change": lambda: data.Change("shift", 0.1, _pattern),
    "data.stored.tensors": lambda: {"x": torch.rand(12, 5)},
    "data.stored.index": lambda: torch.tensor([0, 1]),
    "data.transitions.dataset": images,
    "data.with_correlation.dataset": images,
    "data.with_correlation.first": lambda: "across",
    "data.with_correlation.second": lambda: "down",
    "data.synth_linear.samples": lambda: 100,
    "data.synth_nonlinear.samples": lambda: 100,
    "data.linear_gaussian.samples": lambda: 100,
    "data.local_versus_global.samples": lambda: 100,
    "data.digit_mixture.samples": lambda: 20,
    "data.moving_digit.samples": lambda: 20,
    "distributions.estimators.aggregate_log_density.size": lambda: 100,
    "distributions.estimators.total_correlation.log_weights": lambda: torch.zeros(12, 12, dtype=torch.float64) - 2.0,
    "distributions.estimators.minibatch_log_weights.batch": lambda: 4,
    "distributions.estimators.stratified_log_weights.size": lambda: 100,
    "distributions.singular_value_logits.x": lambda: matrix("n x"),
    "evaluation.evaluate.measures": lambda: [evaluation.loss],
    "evaluation.evaluate.points": lambda: 12,
    "evaluation.evaluate.store": lambda: False,
    "evaluation.kl.history": history,
    "evaluation.loss.history": history,
    "evaluation.reconstruction.history": history,
    "evaluation.each.measure": lambda: scores.mig,
    "explanation.Explanation.findings": lambda: (),
    "explanation.Explanation.limits": lambda: ("none",),
    "explanation.Explanation.about": dict,
    "explanation.Explanation.arrays": dict,
    "explanation.explain.x": lambda: matrix("n x").float(),
    "explanation.explain.factors": lambda: None,
    "geometry.active_latents.device": lambda: torch.device("cpu"),
    "geometry.active_latents.shape": lambda: (12, 3),
    "geometry.deterministic_elbo.x": lambda: matrix("n x"),
    "geometry.dto.latents": lambda: "active",
    "geometry.dto.jacobians": lambda: None,
    "geometry.axis_alignment.jacobians": lambda: matrix("n x z"),
    "geometry.axis_alignment.gram": lambda: None,
    "geometry.elbo.x": lambda: matrix("n x"),
    "geometry.haar_chance.samples": lambda: 100,
    "geometry.hessian.x": lambda: matrix("n x"),
    "geometry.curvature_term.x": lambda: matrix("n x"),
    "geometry.local_pca.neighbours": lambda: 5,
    "geometry.local_pca.x": lambda: matrix("n x"),
    "geometry.log_likelihood.x": lambda: matrix("n x"),
    "geometry.mie.x": lambda: matrix("n x"),
    "geometry.polarization.history": history,
    "geometry.reconstruction_split.x": lambda: matrix("n x"),
    "geometry.residual_share.x": lambda: matrix("n x"),
    "geometry.second_derivatives.weights": lambda: matrix("n x"),
    "geometry.tie.x": lambda: matrix("n z"),
    "geometry.tie.truth": lambda: lambda x: distributions.DiagonalParameters(x, torch.zeros_like(x)),
    "geometry.traversal_2d.pair": lambda: (0, 1),
    "geometry.encoder_law.information": lambda: None,
    "geometry.encoder_law.jacobians": lambda: matrix("n x z"),
    "geometry.encoder_law.decode": lambda: None,
    "geometry.encoder_law.codes": lambda: None,
    "models.custom.factory": lambda: factory,
    "models.custom.inputs": lambda: 5,
    "models.Custom.factory": lambda: factory,
    "models.Custom.inputs": lambda: (5,),
    "models.Custom.outputs": lambda: (6, 5),
    "models.MLP.activations": lambda: ("Tanh", "Tanh"),
    "models.rotate_latents.rotation": rotation,
    "models.rotate_latents.model": lambda: (encode, decode),
    "models.scale_latents.model": lambda: (encode, decode),
    "models.initialise.seeds": lambda: torch.tensor([0, 1]),
    "numerics.assignment.weights": lambda: square(3).numpy(),
    "numerics.binned_information.factors": lambda: FACTORS,
    "numerics.joint_counts.codes": lambda: FACTORS,
    "numerics.kraskov_information.x": lambda: CODES[:, 0],
    "numerics.kraskov_information.y": lambda: CODES[:, 1],
    "numerics.ross_information.x": lambda: CODES[:, 0],
    "numerics.ross_information.levels": lambda: FACTORS[:, 0],
    "numerics.nearest_on_line.values": lambda: np.arange(12.0),
    "numerics.nearest_on_line.queries": lambda: np.arange(3.0),
    "numerics.philox.counter": lambda: [torch.arange(3)] * 4,
    "numerics.philox.key": lambda: [torch.arange(3)] * 2,
    "objectives.Batch.x": lambda: matrix("n x"),
    "objectives.Trainable.model": lambda: {"encoder": torch.nn.Linear(5, 6)},
    "objectives.elbo_terms.networks": lambda: _networks(),
    "objectives.elbo_terms.x": lambda: matrix("n x").float(),
    "objectives.elbo_terms.noise": lambda: matrix("n z").float(),
    "population.from_models.models": lambda: [(encode, decode)],
    "population.load.path": stored_run,
    "population.program.Program.groups": lambda: {"all": _group()},
    "population.program.Program.inputs": lambda: _Inputs(),
    "population.program.Program.updates": lambda: (population_program.Update(("all",), len),),
    "population.program.WeightGroup.modules": lambda: {"encoder": torch.nn.Linear(5, 6)},
    "population.program.bind.modules": lambda: {"encoder": torch.nn.Linear(1, 1, bias=False)},
    "population.program.bind.parameters": lambda: {"encoder.weight": torch.ones(1, 1)},
    "progress.shown_on.console": Console,
    "records.copy_results.study": lambda: Path(stored_run()),
    "records.copy_results.target": lambda: Path("copy"),
    "records.locked.refusal": lambda: "in use",
    "records.read_arrays.run": stored_run,
    "records.read_json.path": written("read.json", lambda path: records.write_json(path, {"format": "example-1"})),
    "records.read_json.expected": lambda: "example-1",
    "records.read_records.run": stored_run,
    "records.read_runs.folder": stored_run,
    "records.read_tensors.path": written(
        "tensors", lambda path: records.write_tensors(path, {"w": np.ones(3)}, {"format": "example-1"})
    ),
    "records.read_tensors.expected": lambda: "example-1",
    "records.records_file.run": lambda: Path(stored_run()),
    "records.locked.path": lambda: Path("lock"),
    "records.write_bytes.path": lambda: Path("bytes"),
    "records.write_json.path": lambda: Path("written.json"),
    "records.write_tensors.path": lambda: Path("written"),
    "records.write_tensors.about": lambda: {"format": "example-1"},
    "records.stored_as.name": lambda: str,
    "analytic.annealed_elbo.log_likelihood": lambda: matrix("n"),
    "analytic.annealed_elbo.sample": lambda: matrix("n z"),
    "exploration.Exploration.members": lambda: (),
    "exploration.Exploration.arrays": dict,
    "exploration.Exploration.about": dict,
    "report.explorer.exploration": lambda: exploration.explore(trained(), dataset()),
    "report.explorer.path": lambda: Path("explorer.html"),
    "report.contact_sheet.images": lambda: PIXELS[0],
    "report.contact_sheet.path": lambda: Path("contact.png"),
    "scores.agreement.codes": lambda: np.stack([CODES, CODES + 0.1 * CODES[::-1]]),
    "scores.agreement.kl": lambda: None,
    "scores.read_population.codes": lambda: np.stack([CODES, CODES + 0.1 * CODES[::-1]]),
    "scores.read_population.kl": lambda: None,
    "report.heat_map_sheet.matrices": lambda: [np.ones((2, 3))],
    "report.heat_map_sheet.factors": lambda: ["a", "b"],
    "report.heat_map_sheet.latents": lambda: ["0", "1", "2"],
    "report.heat_map_sheet.titles": lambda: ["mi"],
    "report.heat_map_sheet.path": lambda: Path("heat.png"),
    "report.page.explanation": explanation,
    "report.page.path": lambda: Path("page.html"),
    "report.scatter_sheet.x": lambda: CODES,
    "report.scatter_sheet.names": lambda: ["a", "b"],
    "report.scatter_sheet.path": lambda: Path("scatter.png"),
    "report.write_report.folder": stored_run,
    f"{FIGURES}.contact.images": lambda: PIXELS[0],
    f"{FIGURES}.contact.titles": lambda: None,
    f"{FIGURES}.curves.kinds": lambda: [curve(figures.Curve)],
    f"{FIGURES}.curves.measures": lambda: ["mig"],
    f"{FIGURES}.factor_colours.unit": lambda: np.linspace(0.0, 1.0, 24).reshape(12, 2),
    f"{FIGURES}.heat_maps.maps": lambda: [figures.HeatMap("mi", np.ones((2, 3)))],
    f"{FIGURES}.heat_maps.factors": lambda: ["a", "b"],
    f"{FIGURES}.heat_maps.latents": lambda: ["0", "1", "2"],
    f"{FIGURES}.latent_courses.courses": lambda: [("kl", np.arange(4.0), np.ones((4, 3)), np.ones(3, bool))],
    f"{FIGURES}.latent_planes.rows": lambda: [("β", [figures.Plane(CODES[:, :2], FACTORS / 3, "MIG 0.5")])],
    f"{FIGURES}.latent_planes.names": lambda: ["a", "b"],
    f"{FIGURES}.mosaic.images": lambda: PIXELS,
    f"{FIGURES}.reconstructions.x": lambda: list(PIXELS),
    f"{FIGURES}.reconstructions.reconstructed": lambda: list(PIXELS),
    f"{FIGURES}.scatter.kinds": lambda: [
        figures.Curve("BetaVAE", np.arange(3.0), {"mig": np.ones(3), "dci": np.ones(3)})
    ],
    f"{FIGURES}.scatter.x": lambda: "mig",
    f"{FIGURES}.scatter.y": lambda: "dci",
    f"{FIGURES}.scatter_factors.x": lambda: CODES,
    f"{FIGURES}.scatter_factors.names": lambda: ["a", "b"],
    f"{FIGURES}.strips.kinds": lambda: [curve(figures.Curve)],
    f"{FIGURES}.strips.measures": lambda: ["mig"],
    f"{FIGURES}.theory_curves.theory": lambda: _theory(),
    f"{FIGURES}.training.lines": lambda: [curve(figures.Line)],
    f"{FIGURES}.training.terms": lambda: ["loss"],
    f"{FIGURES}.traversals.images": lambda: PIXELS,
    f"{FIGURES}.traversals.values": lambda: np.arange(3.0),
    f"{FIGURES}.traversals.kl": lambda: np.array([0.5, 0.1]),
    f"{FIGURES}.traversals.active": lambda: np.array([True, False]),
    "report.html.figure.picture": lambda: html.Picture("a.png", b"png", "caption", "alt"),
    "schedules.hyperparameters.owner": optimizers.Adam,
    "scores.active_units.variance": lambda: np.abs(CODES),
    "scores.active_units.kl": lambda: None,
    "scores.as_factors.samples": lambda: 48,
    "scores.beta_vae.points": lambda: 40,
    "scores.beta_vae.test_points": lambda: 20,
    "scores.beta_vae.batch": lambda: 4,
    "scores.factor_vae.votes": lambda: 40,
    "scores.factor_vae.test_votes": lambda: 20,
    "scores.factor_vae.batch": lambda: 4,
    "scores.dci_completeness.importance": lambda: np.eye(3)[:, :2] + 0.1,
    "scores.dci_disentanglement.importance": lambda: np.eye(3)[:, :2] + 0.1,
    "scores.Factors.values": lambda: FACTORS.astype(float),
    "scores.Factors.kinds": lambda: ("discrete", "discrete"),
    "scores.Factors.names": lambda: ("a", "b"),
    "scores.Factors.levels": lambda: (None, None),
    "scores.udr.codes": lambda: np.stack([CODES, CODES + 0.1 * CODES[::-1]]),
    "scores.udr.kl": lambda: np.stack([CODES, CODES]) ** 2,
    "scores.score.invariances": lambda: ["permute"],
    "statistics.bootstrap.statistic": lambda: np.mean,
    "statistics.bootstrap.values": lambda: [0.1, 0.2, 0.2, 0.3, 0.9],
    "statistics.compare.a": lambda: [0.5, 0.7, 0.9],
    "statistics.compare.b": lambda: [0.1, 0.2, 0.1],
    "statistics.compare_paired.a": lambda: {0: 0.5, 1: 0.7, 2: 0.9},
    "statistics.compare_paired.b": lambda: {0: 0.4, 1: 0.5, 2: 0.8},
    "statistics.mean_interval.values": lambda: [0.5, 0.7, None, 0.6],
    "statistics.bootstrap_rows.arrays": lambda: [np.arange(12.0), np.arange(12.0) ** 2],
    "statistics.bootstrap_rows.statistic": lambda: lambda a, b: float((a * b).mean()),
    "statistics.grouped.rows": lambda: [
        {"measure": "mig", "value": 0.5, "objective": "beta", "seed": 0, "member": "a", "detail": {}}
    ],
    "statistics.grouped.measure": lambda: "mig",
    "stopping.Plateau.term": lambda: "loss",
    "studies.Run.dataset": lambda: dataset,
    "studies.Run.members": members,
    "studies.Run.measures": lambda: [evaluation.loss],
    "studies.find_study.reference": lambda: "quickstart",
    "studies.load_object.reference": lambda: "math:sqrt",
    "studies.read_costs.package": lambda: "axiswise_papers",
    "studies.cost_entry.document": dict,
    "studies.cost_entry.column": lambda: "cpu",
    "studies.study_cost.study": lambda: studies.quickstart,
    "studies.sum_costs.parts": lambda: [studies.Cost(1.0)],
    "trackers.scalars.entry": lambda: population.Entry(members()[0], 0, {"loss": 1.0}),
}


def _pictures(folder: Path) -> None:
    from PIL import Image

    folder.mkdir(exist_ok=True)
    Image.new("RGB", (64, 64)).save(folder / "a.png")


def _networks() -> models.Networks:
    made = models.linear(5, 3)
    return models.Networks(made, made.modules())


def _group() -> population_program.WeightGroup:
    return population_program.WeightGroup({"encoder": torch.nn.Linear(5, 6)}, [optimizers.Adam()])


class _Inputs:
    def block(self, numbers: range) -> dict[str, torch.Tensor]:
        return {"x": torch.zeros(len(numbers), 1)}

    def inputs(self, row: Mapping[str, torch.Tensor]) -> tuple[Mapping[str, torch.Tensor], ...]:
        return (row,)


def _theory() -> figures.Theory:
    beta = np.arange(1.0, 5.0)
    return figures.Theory(beta, *[beta] * 6, np.stack([beta, beta], -1), np.stack([beta, beta], -1), beta[:2])


def valid(place: str, parameter: inspect.Parameter) -> Any:
    """A value for a parameter of ``package.function``."""
    key = f"{place}.{parameter.name}"
    if key in BY_PLACE:
        return BY_PLACE[key]()
    if parameter.default is not parameter.empty and parameter.name not in BY_NAME:
        return parameter.default
    annotation = parameter.annotation
    if _array_type(annotation) is torch.Tensor and parameter.name in ("codes", "factors"):
        return of_annotation(annotation)
    if parameter.name in BY_NAME:
        return BY_NAME[parameter.name]()
    return of_annotation(annotation)


def _array_type(annotation: Any) -> Any:
    arrays = [option for option in _options(annotation) if hasattr(option, "dim_str")]
    return (
        arrays[-1].array_type
        if arrays and len(arrays) == len([a for a in _options(annotation) if a is not type(None)])
        else None
    )


def _options(annotation: Any) -> tuple[Any, ...]:
    if get_origin(annotation) is Annotated:
        annotation = get_args(annotation)[0]
    union = isinstance(annotation, types.UnionType) or get_origin(annotation) is Union
    return get_args(annotation) if union else (annotation,)


def of_annotation(annotation: Any) -> Any:
    """A value of a type, or an error that says that there is none."""
    options = [option for option in _options(annotation) if option is not type(None)]
    if len(options) > 1:
        arrays = [option for option in options if hasattr(option, "dim_str")]
        return of_annotation(options[0] if not arrays or float in options else arrays[-1])
    (annotation,) = options
    if hasattr(annotation, "dim_str"):
        values = matrix(annotation.dim_str)
        dtypes = annotation.dtypes if isinstance(annotation.dtypes, tuple) else ("float64",)
        if "float64" not in dtypes:
            values = (values * 3).long()
        return values.numpy() if annotation.array_type is np.ndarray else values
    origin, inner = get_origin(annotation) or annotation, get_args(annotation)
    if origin in BY_ANNOTATION:
        return BY_ANNOTATION[origin]()
    if origin is Literal:
        return inner[0]
    if origin is tuple:
        return (of_annotation(inner[0]),) * 2 if inner[-1] is Ellipsis else tuple(map(of_annotation, inner))
    if getattr(origin, "__name__", "") == "Callable":
        return decode
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return {"name" if inner[0] in (str, Any) else of_annotation(inner[0]): of_annotation(inner[1])}
    if isinstance(origin, type) and issubclass(origin, Iterable) and inner:
        return [of_annotation(inner[0])] * 2
    if annotation is Any or isinstance(annotation, TypeVar):
        return 1.0
    raise LookupError(f"no example of {annotation}")
