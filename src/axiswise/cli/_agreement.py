"""`axiswise score --agreement`: how far models agree on their latents, from files of their codes."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from rich.console import Console
from rich.table import Table as Grid
from rich.text import Text

from axiswise.cli._outputs import as_json
from axiswise.cli._score_inputs import code_array, constant_notes, noted
from axiswise.cli._tables import read_table
from axiswise.errors import AxiswiseError

if TYPE_CHECKING:  # these would import PyTorch or scipy
    from axiswise.scores import Agreement
    from axiswise.shapes import OnMissing
    from axiswise.statistics import Interval


BEST = 1.0  # of the score
MOST_COUNTS = 8  # that a line spells out


class Members(NamedTuple):
    """Codes of models at the same points, what the models and their latents are called, and what there is to say."""

    codes: np.ndarray
    names: tuple[str, ...]
    latent_names: tuple[tuple[str, ...], ...]
    notes: tuple[str, ...]


def print_agreement(files: Sequence[str], missing: "OnMissing", json_file: Path | None, console: Console) -> None:
    """Prints the agreement of the models in these files, and UDR beside it; writes both to a file if one is given."""
    from axiswise.records import versions, write_json
    from axiswise.scores import agreement, udr

    members = _read_members(files)
    with console.status("agreement …"), noted():  # on a terminal only
        found = agreement(members.codes, missing=missing)
        ranking = udr(members.codes, missing=missing)
        unrelated = _unrelated(members.codes)
        chance, by_chance = agreement(unrelated), udr(unrelated)
    notes = [*members.notes, *constant_notes(found.inputs)]
    if found.inputs.dropped:
        rows = members.codes.shape[1]
        notes.append(f"{found.inputs.dropped:,} of {rows:,} rows dropped: values are missing")
    count, latents = found.alive.shape
    opening = f"{count} members, {found.inputs.samples:,} samples, {latents} latents"
    for line in (opening, *(f"note: {note}" for note in notes)):
        console.print(Text(line), soft_wrap=True)

    scores = _grid("score", "value", "95 % over points", "95 % over members", "chance", "best", "how")
    over_points, over_members = _ends(found.over_points), _ends(found.over_members)
    expected = f"{chance.score:.3f}"
    scores.add_row(
        "agreement", f"{found.score:.3f}", over_points, over_members, expected, f"{BEST:.3f}", found.estimator
    )
    shared, expected = f"{found.shared.estimate:.2f}", f"{chance.shared.estimate:.2f}"
    how = "counterparts that two members have"
    scores.add_row("shared latents", shared, "–", _ends(found.shared), expected, str(latents), how)
    value, expected = f"{ranking.score.mean():.3f}", f"{by_chance.score.mean():.3f}"
    scores.add_row("udr", value, "–", "–", expected, "–", f"mean of members; {ranking.estimator}")
    console.print(scores)
    told = ", ".join(f"{number:.3g}" for number in found.recurring[1:])
    counts = ", ".join(map(str, range(2, count + 1))) if count <= MOST_COUNTS else "2, 3, …"
    console.print(Text("chance: the same codes, the points of each member shuffled"), soft_wrap=True)
    line = (
        f"\nlatents of a member that at least {counts} of {count} members have, itself among them, on average: {told}\n"
    )
    console.print(Text(line), soft_wrap=True)

    each = _grid("member", "agreement", "udr", "latents")
    for name, own, rank, alive in zip(members.names, found.per_member, ranking.score, found.alive, strict=True):
        each.add_row(Text(name), f"{own:.3f}", f"{rank:.3f}", str(alive.sum()))
    console.print(each)
    best = int(np.argmax(found.per_member))
    console.print(Text(f"\nlatents of {members.names[best]}, which agrees most with the others:"), soft_wrap=True)
    console.print(_latents(found, best, members.latent_names[best]))
    if json_file:
        about = {"format": "axiswise-agreement-1", "files": files, "members": members.names, "notes": notes}
        about |= {"latent_names": members.latent_names, "versions": versions()}
        write_json(
            json_file,
            as_json({**about, "agreement": found, "udr": ranking, "chance": {"agreement": chance, "udr": by_chance}}),
        )


def _unrelated(codes: np.ndarray) -> np.ndarray:
    """The same codes, without rows that have missing values, of points that no two members have in common."""
    generator = np.random.default_rng(0)
    return np.stack([generator.permutation(own) for own in codes[:, ~np.isnan(codes).any((0, 2))]])


def _read_members(files: Sequence[str]) -> Members:
    """The codes in these files, one model or several each; members of fewer latents have constant ones besides."""
    from axiswise._columns import check_row_order

    tables = [read_table(file) for file in files]
    check_row_order(*(table.contents for table in tables), what=" and ".join(files))
    arrays = [code_array(table) for table in tables]
    stacks = [array if array.ndim == 3 else array[None] for array in arrays]
    shapes = ", ".join(f"{array.shape} in {file}" for array, file in zip(arrays, files, strict=True))
    if any(array.ndim < 2 for array in arrays) or len({stack.shape[1] for stack in stacks}) > 1:
        raise AxiswiseError(f"Codes must have axes (n, z), or (members, n, z), with the same n points. Got {shapes}.")
    if sum(map(len, stacks)) < 2:
        raise AxiswiseError(
            f"--agreement compares at least two models. Got one ({shapes}); give more files, or a stack."
        )
    latents = max(stack.shape[2] for stack in stacks)
    notes = [note for table in tables for note in table.notes]
    names: list[str] = []
    latent_names: list[tuple[str, ...]] = []
    for file, table, stack in zip(files, tables, stacks, strict=True):
        names += [file] if len(stack) == 1 else [f"{file}[{place}]" for place in range(len(stack))]
        latent_names += [table.names or tuple(f"z{place}" for place in range(stack.shape[2]))] * len(stack)
        if stack.shape[2] < latents:
            notes.append(
                f"{file}: {stack.shape[2]} latents; those that others have besides, up to {latents}, have no match"
            )
    padded = [np.pad(stack, ((0, 0), (0, 0), (0, latents - stack.shape[2]))) for stack in stacks]
    return Members(np.concatenate(padded), tuple(names), tuple(latent_names), tuple(notes))


def _latents(found: "Agreement", member: int, names: Sequence[str]) -> Grid:
    """The latents of one member, those that recur first."""
    grid = _grid("latent", "mean |correlation|", "± over points", "± over members", "members that have it")
    strengths = np.nan_to_num(found.per_latent[member])
    for latent in sorted(range(len(names)), key=lambda latent: -strengths[latent]):
        if not found.alive[member, latent]:
            grid.add_row(Text(names[latent]), "constant", "–", "–", "–")
            continue
        widths = (found.latents_over_points[member, latent], found.latents_over_members[member, latent])
        told = ["–" if np.isnan(width) else f"{width:.3f}" for width in widths]
        counted = f"{found.recurrence[member, latent]} of {len(found.alive)}"
        grid.add_row(Text(names[latent]), f"{found.per_latent[member, latent]:.3f}", *told, counted)
    return grid


def _grid(first: str, *headings: str) -> Grid:
    grid = Grid(box=None, pad_edge=False, header_style="bold")
    grid.add_column(first, no_wrap=True)
    for heading in headings:
        grid.add_column(heading, **({} if heading == "how" else {"justify": "right", "no_wrap": True}))
    return grid


def _ends(interval: "Interval") -> str:
    return "–" if np.isnan(interval.low) else f"{interval.low:.3f} … {interval.high:.3f}"
