"""Numbers and arrays in, PNG bytes out: every picture of a report."""

from axiswise.report.figures._style import ACCENT, DPI, INK, KEY, MUTED, SEQUENCE, WIDTH, Png, picture, tight
from axiswise.report.figures.charts import PALETTE, Curve, Line, curves, latent_courses, scatter, strips, training
from axiswise.report.figures.clouds import Plane, factor_colours, latent_planes, scatter_factors
from axiswise.report.figures.heat_map import HeatMap, heat_maps
from axiswise.report.figures.images import contact, mosaic, reconstructions, traversals
from axiswise.report.figures.theory import Theory, distinct, theory_curves

__all__ = [
    "ACCENT",
    "DPI",
    "INK",
    "KEY",
    "MUTED",
    "PALETTE",
    "SEQUENCE",
    "WIDTH",
    "Curve",
    "HeatMap",
    "Line",
    "Plane",
    "Png",
    "Theory",
    "contact",
    "curves",
    "distinct",
    "factor_colours",
    "heat_maps",
    "latent_courses",
    "latent_planes",
    "mosaic",
    "picture",
    "reconstructions",
    "scatter",
    "scatter_factors",
    "strips",
    "theory_curves",
    "tight",
    "training",
    "traversals",
]
