"""Does bfloat16 change results? Ten β-VAEs on dSprites in either precision, compared seed by seed.

Command: ``python benchmarks/precision.py results/comparison/sprites/beta-vae results/precision/fp32``, two run folders
whose members are the same but for the precision. Expected: every interval of the paired differences covers zero, and
the ELBO differs by less than 0.2 %, which is the rule for bfloat16 to be the default.
"""

import sys
from pathlib import Path

from axiswise.records import read_records
from axiswise.statistics import compare_paired, grouped

JUDGED = ("mig", "dto", "elbo", "active_units")


def values(folder: Path, measure: str) -> dict[int, float]:
    """The measure by seed."""
    return grouped(read_records(folder), measure, by=())[()]


def main() -> None:
    """Prints both means, and the paired difference with its interval."""
    narrow, wide = map(Path, sys.argv[1:3])
    holds = True
    for measure in JUDGED:
        found, expected = values(narrow, measure), values(wide, measure)
        compared = compare_paired(found, expected).difference
        covers = compared.low <= 0 <= compared.high
        ours, mean = (sum(group.values()) / len(group) for group in (found, expected))
        share = abs(compared.estimate / mean)
        holds &= covers and (measure != "elbo" or share < 0.002)
        print(
            f"{measure:14} bf16 {ours:9.4f}  fp32 {mean:9.4f}  difference {compared.estimate:8.4f} "
            f"[{compared.low:.4f}, {compared.high:.4f}] over {compared.known} seeds, {100 * share:.2f} %"
        )
    print("bf16 changes nothing beyond the noise of seeds" if holds else "bf16 changes results")
    sys.exit(not holds)


if __name__ == "__main__":
    main()
