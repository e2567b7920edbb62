"""Progress for people: live bars on a terminal or in a notebook, plain lines elsewhere."""

import time
from collections.abc import Callable
from typing import Protocol, runtime_checkable

from rich import progress as rich
from rich.console import Console

from axiswise._arguments import checked

__all__ = ["Bars", "Lines", "Progress", "shown", "shown_on"]

PLAIN_SECONDS = 10.0


@runtime_checkable
class Progress(Protocol):
    """Receives how far long work is. All units take about the same time, so that time left follows from their number.

    Example:
        >>> isinstance(Lines(print), Progress)
        True
    """

    def begin(self, title: str, total: int) -> None:
        """Work of `total` units begins."""
        ...

    def advance(self, units: int) -> None:
        """So many more units are done."""
        ...

    def end(self) -> None:
        """The work is over."""
        ...


class Bars:
    """A live bar with time spent and left.

    Arguments:
        console: Where it is drawn.

    Example:
        >>> bars = Bars(Console(quiet=True))
        >>> bars.begin("training", total=100)
        >>> bars.advance(50)
        >>> bars.end()
    """

    def __init__(self, console: Console) -> None:
        self._bars = rich.Progress(
            rich.SpinnerColumn(),
            rich.TextColumn("{task.description}"),
            rich.BarColumn(),
            rich.TextColumn("{task.percentage:3.0f} %"),
            rich.TimeElapsedColumn(),
            rich.TextColumn("left"),
            rich.TimeRemainingColumn(),
            console=console,
            transient=True,
        )
        self._task: rich.TaskID | None = None

    def begin(self, title: str, total: int) -> None:
        """Shows a bar."""
        self._task = self._bars.add_task(title, total=max(total, 1))
        self._bars.start()

    def advance(self, units: int) -> None:
        """Moves it."""
        if self._task is not None:
            self._bars.update(self._task, advance=units)

    def end(self) -> None:
        """Takes it away."""
        if self._task is not None:
            self._bars.stop()
            self._bars.remove_task(self._task)
            self._task = None


class Lines:
    """A line every ten seconds, for logs.

    Time left follows from what came after the first report, which also took compilation; before a hundredth of all
    units it is not known.

    Arguments:
        log: Receives each line.
    """

    def __init__(self, log: Callable[[str], None]) -> None:
        self._log, self._title, self._total, self._done = log, "", 1, 0
        self._first, self._since, self._last = 0, 0.0, 0.0

    def begin(self, title: str, total: int) -> None:
        """Starts counting."""
        self._title, self._total, self._done, self._first = title, max(total, 1), 0, 0
        self._last = time.perf_counter()

    def advance(self, units: int) -> None:
        """Prints when ten seconds have passed since the last line."""
        self._done += units
        now = time.perf_counter()
        if not self._first:
            self._first, self._since = self._done, now
        if now - self._last > PLAIN_SECONDS:
            self._last = now
            timed, rest = self._done - self._first, self._total - self._done
            seconds = (now - self._since) * rest / max(timed, 1)
            left = f", {duration(seconds)} left" if rest and 100 * timed >= self._total else ""
            self._log(f"  {self._title}: {100 * self._done / self._total:.0f} %{left}")

    def end(self) -> None:
        """Does nothing: the next line begins anew."""


def duration(seconds: float) -> str:
    """Writes a time in the largest unit of which there are two.

    Example:
        >>> [duration(seconds) for seconds in (0.004, 1.23, 42.0, 200.0, 9000.0)]
        ['< 0.1 s', '1.2 s', '42 s', '3.3 min', '2.5 h']
    """
    if seconds < 0.1:
        return "< 0.1 s"
    if seconds < 120:
        return f"{seconds:.1f} s" if seconds < 10 else f"{seconds:.0f} s"
    return f"{seconds / 60:.1f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"


@checked
def shown_on(console: Console) -> Bars | Lines:
    """How progress is shown on a console: bars on a terminal or in a notebook, lines elsewhere.

    Example:
        >>> import io
        >>> type(shown_on(Console(file=io.StringIO()))).__name__
        'Lines'
    """
    return Bars(console) if console.is_terminal or console.is_jupyter else Lines(console.print)


@checked
def shown(progress: bool | Progress | None) -> Progress | None:
    """What a caller asks for: True shows progress on standard error, False and None do not.

    Example:
        >>> shown(False) is None, type(shown(Lines(print))).__name__
        (True, 'Lines')
    """
    if progress is True:
        return shown_on(Console(stderr=True, highlight=False, markup=False, soft_wrap=True))
    return progress or None
