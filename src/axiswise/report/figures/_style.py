"""The style of every figure, and how a figure becomes bytes, without global state or time.

A function that builds a `matplotlib.figure.Figure` is made by `picture` into one that returns PNG bytes. It is drawn in
the report's own style, whatever the caller's matplotlib settings are, so that the same numbers give the same bytes.
"""

import functools
import inspect
import io
from collections.abc import Callable
from importlib.util import find_spec
from typing import ParamSpec

import numpy as np

from axiswise._arguments import checked
from axiswise.errors import AxiswiseError, PackageMissing

try:
    import matplotlib.style
    from matplotlib import colormaps
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.colors import ListedColormap
    from matplotlib.figure import Figure
    from matplotlib.layout_engine import ConstrainedLayoutEngine
except ModuleNotFoundError as error:
    if find_spec("matplotlib") is not None:
        raise
    raise PackageMissing("axiswise.report", "matplotlib") from error

INK = "#1f2933"
"""The colour of text and axes."""
MUTED = "#7b8794"
"""The colour of what stands behind: ticks, notes, baselines."""
RULE = "#e4e7eb"
ACCENT = "#2b6cb0"
"""The colour of what a figure is about."""
SEQUENCE = ListedColormap(colormaps["viridis"](np.linspace(0, 0.9, 256)))
"""The colours of ordered values: viridis without its palest yellow, which is lost on white."""
DPI = 200
"""Dots in an inch of a figure."""
WIDTH = 9.6
"""Inches of a figure as wide as the page."""
KEY = {"frameon": True, "fancybox": False, "facecolor": "white", "framealpha": 0.9, "edgecolor": RULE}
"""The style of a legend among points: its box separates its marks from data."""
STYLE = {
    "font.size": 9,
    "text.color": INK,
    "text.parse_math": False,  # a dollar in a name is a dollar
    "axes.labelcolor": INK,
    "axes.titlesize": 10,
    "axes.edgecolor": "#9aa5b1",
    "axes.linewidth": 0.8,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": RULE,
    "grid.linewidth": 0.8,
    "xtick.color": MUTED,
    "ytick.color": MUTED,
    "xtick.labelsize": 8,
    "ytick.labelsize": 8,
    "legend.frameon": False,
    "figure.dpi": DPI,
    "savefig.dpi": DPI,
}
P = ParamSpec("P")


class Png(bytes):
    """A picture: the bytes of a PNG file, which a notebook shows as what they are.

    Example:
        >>> Png(bytes(16) + bytes([0, 0, 0, 200, 0, 0, 0, 100]))
        Png(200 × 100 pixels, 24 bytes: write_bytes of a path stores it)
    """

    def __repr__(self) -> str:
        width, height = (int.from_bytes(self[start : start + 4], "big") for start in (16, 20))  # where a PNG has them
        return f"Png({width} × {height} pixels, {len(self):,} bytes: write_bytes of a path stores it)"

    def _repr_png_(self) -> bytes:
        return bytes(self)


@checked
def picture(build: Callable[P, Figure]) -> Callable[P, Png]:
    """Makes a function that builds a figure into one that returns it as PNG bytes.

    Example:
        >>> @picture
        ... def empty():
        ...     return Figure(figsize=(1, 1))
        >>> empty()
        Png(200 × 200 pixels, ...
    """

    @functools.wraps(build)
    def draw(*args: P.args, **kwargs: P.kwargs) -> Png:
        try:
            with matplotlib.style.context(["default", STYLE]):
                stream = io.BytesIO()
                FigureCanvasAgg(build(*args, **kwargs)).print_png(stream, metadata={"Software": None})
        except AxiswiseError:
            raise
        except (ArithmeticError, ValueError) as error:  # of matplotlib, whose axes end well before numbers do
            names = ", ".join(f"`{name}`" for name in inspect.signature(build).parameters)
            raise AxiswiseError(f"{names} of {build.__name__} must be what axes can show. Got {error}.") from error
        return Png(stream.getvalue())

    return draw


@checked
def tight() -> ConstrainedLayoutEngine:
    """A layout of panels that almost touch.

    Example:
        >>> Figure(layout=tight()).get_layout_engine().get()["hspace"]
        0...
    """
    return ConstrainedLayoutEngine(w_pad=0.015, h_pad=0.02, wspace=0.0, hspace=0.0)
