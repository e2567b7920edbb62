"""What the pilots share: options, a clock, a progress line with the rate, and one JSON file for each experiment."""

import argparse
import json
import os
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from matplotlib.image import imsave

from axiswise.data import FactorDataset
from axiswise.population import Member, Population, train
from axiswise.records import versions
from axiswise.statistics import mean_interval

FORMAT = "axiswise-pilot-1"
FIRST_SEED = 10_000  # claims are judged by seeds below 1,000
PRINT_SECONDS = 10.0


def options(description: str | None, **flags: str) -> argparse.Namespace:
    """The options of every pilot, and flags of its own with their help."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--seconds", type=float, required=True, help="the pilot ends by itself within this time")
    parser.add_argument("--out", type=Path, required=True, help="the JSON file to write")
    parser.add_argument("--smoke", action="store_true", help="a tiny size, to see that it runs")
    for flag, meaning in flags.items():
        parser.add_argument(f"--{flag}", action="store_true", help=meaning)
    return parser.parse_args()


class OutOfTime(Exception):
    """The pilot's time is over."""


class Pilot:
    """A clock, and the record of one experiment, which is written after each of its parts.

    It is also the progress of `train`: it prints the rate, and ends a training that would last beyond the pilot's time.

    Arguments:
        name: The experiment.
        chosen: Its options.
    """

    def __init__(self, name: str, chosen: argparse.Namespace) -> None:
        self.began, self.out, self.limit = time.perf_counter(), chosen.out, chosen.seconds
        self.device, self.smoke = torch.device(chosen.device), chosen.smoke
        self.rate = self.overhead = 0.0  # model-steps a second, and what a training takes beside its steps
        gpu = torch.cuda.get_device_name() if self.device.type == "cuda" else f"cpu, {os.cpu_count()} cores"
        self.record: dict[str, Any] = {
            "format": FORMAT,
            "experiment": name,
            "command": " ".join(["python", *sys.argv]),
            "smoke": chosen.smoke,
            "versions": versions(),
            "device": gpu,
            "seconds_allowed": chosen.seconds,
            "trainings": [],
        }
        self.log(f"{name} on {gpu}, torch {torch.__version__}")

    @property
    def left(self) -> float:
        """Seconds that are left."""
        return self.limit - (time.perf_counter() - self.began)

    def log(self, line: str) -> None:
        """Prints a line with the time."""
        print(f"[{time.perf_counter() - self.began:6.1f} s] {line}", flush=True)

    def fits(self, model_steps: float, *, after: float = 0.0) -> bool:
        """Whether a training fits, at the rate seen so far; a tenth is kept in reserve.

        Arguments:
            model_steps: Its steps times its members.
            after: Seconds that must be left once it is over.
        """
        return not self.rate or 1.1 * (self.overhead + model_steps / self.rate) + after < self.left

    def train(self, members: Sequence[Member], dataset: FactorDataset, label: str, **settings: Any) -> Population:
        """Trains members as `axiswise.population.train` does, and records rate and seconds."""
        self.log(f"{label}: {len(members)} members, {members[0].steps:,} steps")
        began = time.perf_counter()
        population = train(members, dataset, progress=self, **settings)
        self.synchronize()
        seconds = time.perf_counter() - began
        model_steps = sum(member.steps for member in members)
        self.rate = self.pace or model_steps / seconds
        self.overhead = max(0.0, seconds - model_steps / self.rate)
        self.record["trainings"].append(
            {
                "label": label,
                "members": len(members),
                "steps": members[0].steps,
                "seconds": round(seconds, 2),
                "model_steps_per_second": round(self.rate),
                "seconds_beside_steps": round(self.overhead, 2),
                "diverged": [one.member.seed for one in population.trained if one.status != "trained"],
            }
        )
        self.log(f"{label}: {seconds:.1f} s, {self.rate:,.0f} model-steps/s")
        return population

    def timed(self, label: str, work: Callable[[], Any]) -> Any:
        """Does something, and prints and records how long it took."""
        began = time.perf_counter()
        found = work()
        self.synchronize()
        seconds = time.perf_counter() - began
        self.record.setdefault("seconds_of", {})[label] = round(seconds, 2)
        self.log(f"{label}: {seconds:.1f} s")
        return found

    def synchronize(self) -> None:
        """Waits for the device."""
        if self.device.type == "cuda":
            torch.cuda.synchronize()

    def write(self, **found: Any) -> None:
        """Writes the record, with these entries added, in place of the file before it."""
        self.record |= found
        self.record["seconds"] = round(time.perf_counter() - self.began, 1)
        if self.device.type == "cuda":
            self.record["gpu_memory_gib"] = round(torch.cuda.max_memory_allocated() / 2**30, 2)
        self.out.parent.mkdir(parents=True, exist_ok=True)
        part = self.out.with_suffix(".part")
        part.write_text(json.dumps(plain(self.record), indent=1, allow_nan=False) + "\n")
        part.replace(self.out)

    def begin(self, title: str, total: int) -> None:
        """A training begins."""
        self._total, self._done, self._first = total, 0, 0
        self._start = self._printed = self._now = 0.0

    def advance(self, units: int) -> None:
        """So many model-steps are taken; the rate counts from the second block on, as the first one compiles."""
        self._now = time.perf_counter()
        self._done += units
        if not self._start and units:  # a training that resumes says first how far it is
            self._first, self._start, self._printed = self._done, self._now, self._now
        if self._start and self._now - self._printed > PRINT_SECONDS:
            self._printed = self._now
            self.log(f"  {self._done / self._total:5.1%}, {self.pace:,.0f} model-steps/s")
        if self.left < 0:
            raise OutOfTime(f"{self.limit:g} s are over at {self._done / self._total:.1%} of a training")

    def end(self) -> None:
        """The training is over."""

    @property
    def pace(self) -> float:
        """Units a second of the training that was last in progress."""
        steps, seconds = self._done - self._first, self._now - self._start
        return steps / seconds if seconds > 0 else 0.0


def values_of(rows: Iterable[dict[str, Any]], *details: str) -> list[dict[str, Any]]:
    """Rows of `evaluate` as one entry for each member: its seed, its values by measure, and some details of these."""
    found: dict[str, dict[str, Any]] = defaultdict(dict)
    for row in rows:
        own = found[row["member"]]
        own |= {"seed": row["seed"], row["measure"]: row["value"]}
        own |= {name: row["detail"][name] for name in details if name in row["detail"]}
    return list(found.values())


def summary(values: Sequence[float | None]) -> dict[str, Any]:
    """Mean, 95 % interval of it, standard deviation, least and largest of what is known."""
    known = [value for value in values if value is not None]
    if len(known) < 2:
        return {"count": len(known), "mean": known[0] if known else None}
    interval = mean_interval(known)
    return {
        "count": len(known),
        "mean": interval.estimate,
        "low": interval.low,
        "high": interval.high,
        "deviation": float(np.std(known, ddof=1)),
        "least": min(known),
        "largest": max(known),
    }


def plain(value: Any) -> Any:
    """JSON values: arrays as lists, eight significant digits, what is not finite as None."""
    if isinstance(value, dict):
        return {str(name): plain(entry) for name, entry in value.items()}
    if isinstance(value, torch.Tensor):
        value = value.detach().cpu().numpy()
    if isinstance(value, np.ndarray | np.generic):
        value = value.tolist()
    if isinstance(value, list | tuple):
        return [plain(entry) for entry in value]
    if isinstance(value, float):
        return float(f"{value:.8g}") if np.isfinite(value) else None
    return value


def write_png(path: Path, image: torch.Tensor) -> None:
    """Writes an image (3, h, w) with values in 0 … 1 as a PNG file."""
    imsave(path, image.clamp(0.0, 1.0).permute(1, 2, 0).cpu().numpy())
