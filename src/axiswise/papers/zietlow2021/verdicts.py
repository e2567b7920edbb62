"""What the records of an attack say: how far a score dropped, with intervals.

Command: ``python -m axiswise.papers.zietlow2021.verdicts FOLDER [MEASURE]``.
"""

import sys
from collections.abc import Sequence
from pathlib import Path

from axiswise.attack import Verdict, verdicts
from axiswise.errors import AxiswiseError
from axiswise.records import Interval


def lines(found: Sequence[Verdict], score: str) -> list[str]:
    """A table with a row for each arm: means on the three datasets, the drops, and whether the attack halved the score.

    Example:
        >>> from axiswise.records import compare, mean_interval
        >>> scores = {"original": [0.7, 0.8, 0.75], "changed": [0.2, 0.3, 0.25], "noise": [0.7, 0.82, 0.74]}
        >>> drops = (compare(scores["original"], scores[name]) for name in ("changed", "noise"))
        >>> means = {name: mean_interval(values) for name, values in scores.items()}
        >>> print(lines([Verdict("beta-vae", means, *drops)], "mig")[-1])
        | beta-vae | 0.75 (0.63 … 0.87) | 0.25 (0.13 … 0.37) | 0.75 (0.60 … 0.91) | 0.50 (0.39 … 0.61) | ... | yes |
    """
    head = f"| arm | {score}, original | changed | noise | original − changed | original − noise | halved |"
    table = [head, "|---" * 7 + "|"]
    for verdict in found:
        means = (_cell(verdict.means[variant]) for variant in ("original", "changed", "noise"))
        drops = (_cell(drop.difference) for drop in (verdict.drop, verdict.noise_drop))
        table.append(f"| {' | '.join((verdict.arm, *means, *drops))} | {'yes' if verdict.halved else 'no'} |")
    return table


def main(arguments: Sequence[str]) -> None:
    """Prints the table of a study folder."""
    if len(arguments) not in (1, 2):
        raise AxiswiseError(f"Expected a study folder and, if you like, a measure. Got {list(arguments)}.")
    score = arguments[1] if len(arguments) == 2 else "mig"
    print("\n".join(lines(verdicts(Path(arguments[0]), score), score)))


def _cell(interval: Interval) -> str:
    return f"{interval.estimate:.2f} ({interval.low:.2f} … {interval.high:.2f})"


if __name__ == "__main__":
    main(sys.argv[1:])
