"""Numbers and arrays in, PNG bytes out: every picture of a report."""

from axiswise.report.figures.charts import Curve, Line, curves, latent_courses, scatter, strips, training
from axiswise.report.figures.clouds import Plane, factor_colours, latent_planes, scatter_factors
from axiswise.report.figures.heat_map import HeatMap, heat_maps
from axiswise.report.figures.images import contact, mosaic, reconstructions, traversals
from axiswise.report.figures.style import DPI

__all__ = [
    "DPI",
    "Curve",
    "HeatMap",
    "Line",
    "Plane",
    "contact",
    "curves",
    "factor_colours",
    "heat_maps",
    "latent_courses",
    "latent_planes",
    "mosaic",
    "reconstructions",
    "scatter",
    "scatter_factors",
    "strips",
    "training",
    "traversals",
]
