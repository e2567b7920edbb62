"""A made-up study: square data whose latent planes turn, images with traversals, a skipped run, a diverged member."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from axiswise.records import Record, write_tensors
from axiswise.report import write_report

VERSIONS = {"axiswise": "0.1.0", "torch": "2.13.0", "python": "3.11.7"}


def make_row(run: str, member: str, measure: str, value: float | None, **changes: Any) -> Record:
    return Record({
        "member": member, "dataset": "synth_linear", "data": {"ratio": 1.0, "samples": 50000, "seed": 0},
        "architecture": "linear", "latents": 2, "objective": "BetaVAE", "hyperparameters": {"beta": 0.01},
        "optimizer": "Adam", "lr": 0.001, "batch": 512, "steps": 20000, "seed": 0, "status": "trained",
        "measure": measure, "value": value, "reason": None, "detail": {}, "points": 10000, "versions": VERSIONS,
        "device": "cpu", "seconds": 0.12, **changes,
    })  # fmt: skip


def make_run(
    folder: Path, rows: list[dict[str, Any]], arrays: dict[str, dict[str, np.ndarray]] | None = None, **header: Any
) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "run.json").write_text(
        json.dumps(
            {"format": "axiswise-run-1", "dataset": {"name": "synth_linear", "arguments": {"ratio": 1.0}}, **header}
        )
    )
    (folder / "records.jsonl").write_text("".join(json.dumps(line) + "\n" for line in rows))
    for name, stored in (arrays or {}).items():
        write_tensors(folder / "arrays" / f"{name}.safetensors", stored, {"format": "axiswise-arrays-1"})


def make_header(folder: Path, runs: list[str], **header: Any) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    study = {
        "format": "axiswise-study-1", "study": "quickstart", "title": "Why variational autoencoders find the axes",
        "summary": "Linear β-VAEs on a square whose sides are in a given ratio, and others on small images.",
        "scale": "default", "command": "axiswise run quickstart", "versions": VERSIONS, "runs": runs, "skipped": {},
        **header,
    }  # fmt: skip
    (folder / "study.json").write_text(json.dumps(study))


def square_run(folder: Path, ratio: float, seeds: int, points: int, steps: int) -> None:
    """Members whose latent plane is the square turned by an angle: any angle at ratio 1, none at 2."""
    rng = np.random.default_rng(round(10 * ratio))
    run = f"linear/ratio-{ratio}"
    factors = rng.random((points, 2))
    rows, codes, history = [], {"factors": factors}, {}
    for seed in range(seeds):
        member = f"{seed:08x}{seed + 17:08x}"
        angle = rng.uniform(-np.pi / 4, np.pi / 4) * (2 - ratio) ** 1.5
        turn = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
        codes[member] = ((factors - 0.5) * np.sqrt(12) @ turn.T).astype(np.float32)
        common = {"data": {"ratio": ratio, "samples": 50000, "seed": 0}, "seed": seed}
        scores = {"mig": 0.97 * np.cos(2 * angle) ** 2, "dto": 2 * abs(np.sin(angle / 2)) * 1.4, "polarization": 0.99,
                  "loss": 0.1 * ratio + 0.001 * seed, "reconstruction": 0.05, "kl": 4.2}  # fmt: skip
        rows += [make_row(run, member, measure, float(value), **common) for measure, value in scores.items()]
        step = np.arange(0, steps, steps // 50)
        decay = np.exp(-step / steps * 6)
        history |= {
            f"{member}/step": step, f"{member}/loss": 0.1 * ratio + decay * (1 + 0.1 * seed),
            f"{member}/reconstruction": 0.05 + decay, f"{member}/kl": 4.2 * (1 - decay),
            f"{member}/kl_per_latent": np.stack((2.5 * (1 - decay), 1.7 * (1 - decay**0.5)), 1),
        }  # fmt: skip
    header = {"dataset": {"name": "synth_linear", "arguments": {"ratio": ratio, "samples": 50000, "seed": 0}}}
    make_run(folder / run, rows, {"codes": codes, "history": history}, **header)


def image_run(folder: Path, objective: str, betas: list[float | None], seeds: int, size: int) -> None:
    rng = np.random.default_rng(len(objective))
    run = f"sprites/{objective}"
    grid = (np.arange(size) + 0.5) / size
    blob = lambda u, v, r: np.clip(1.5 - np.hypot(grid[:, None] - v, grid - u) / r, 0, 1)[None]  # noqa: E731
    x = np.stack([blob(*rng.uniform(0.25, 0.75, 2), rng.uniform(0.08, 0.2)) for _ in range(10)]).astype(np.float32)
    rows, reconstructions, traversals = [], {"x": x}, {}
    for place, (beta, seed) in enumerate((beta, seed) for beta in betas for seed in range(seeds)):
        member = f"{objective.lower()}{place:04x}"
        common = {
            "dataset": "sprites", "data": {"seed": 0}, "architecture": "conv64", "latents": 5,
            "objective": objective, "seed": seed, "hyperparameters": {} if beta is None else {"beta": beta},
        }  # fmt: skip
        diverged = objective == "AE" and seed == 1
        status = "diverged at step 1200" if diverged else "trained"
        for measure, value in {
            "mig": rng.uniform(0.1, 0.6),
            "dto": rng.uniform(0.5, 1.5),
            "kl": 12.0 - 4 * np.log10(beta or 1),
        }.items():
            reason = "the member diverged" if diverged else None
            found = None if diverged else float(value)
            rows.append(make_row(run, member, measure, found, reason=reason, status=status, **common))
        reconstructions[member] = np.clip(x * 0.8 + 0.1 * rng.random(x.shape), 0, 1).astype(np.float32)
        values = np.linspace(-2, 2, 7)
        centre = np.array([0.5, 0.5, 0.15])
        ways = np.array([[0.12, 0, 0], [0, 0.12, 0], [0, 0, 0], [0, 0, 0.04], [0, 0, 0]])  # of (u, v, r), per latent
        traversals |= {
            f"{member}/images": np.array([[blob(*(centre + way * t)) for t in values] for way in ways], np.float32),
            f"{member}/values": values, f"{member}/kl": np.array([2.5, 3.1, 0.002, 1.4, 0.0]),
            f"{member}/active": np.array([1, 1, 0, 1, 0], np.uint8),
        }  # fmt: skip
    header = {"dataset": {"name": "sprites", "arguments": {}}}
    make_run(folder / run, rows, {"reconstructions": reconstructions, "traversals": traversals}, **header)


def make_study(
    folder: Path, ratios: tuple[float, ...] = (1.0, 2.0), seeds: int = 3, points: int = 300, size: int = 8
) -> Path:
    for ratio in ratios:
        square_run(folder, ratio, seeds, points, 20000)
    image_run(folder, "BetaVAE", [1.0, 4.0, 16.0], seeds, size)
    image_run(folder, "AE", [None], seeds, size)
    runs = [*(f"linear/ratio-{ratio}" for ratio in ratios), "sprites/BetaVAE", "sprites/AE"]
    make_header(folder, runs, skipped={"dsprites/beta": "the dataset is not in the data folder"})
    return folder


@pytest.fixture
def study(tmp_path: Path) -> Path:
    return make_study(tmp_path / "study")


@pytest.fixture(scope="session")
def reported(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A study with its report, only to be read."""
    return write_report(make_study(tmp_path_factory.mktemp("reported"))).parent


@pytest.fixture
def row() -> Callable[..., Record]:
    return make_row


@pytest.fixture
def write_run() -> Callable[..., None]:
    return make_run


@pytest.fixture
def write_study() -> Callable[..., None]:
    return make_header
