"""Zietlow, Rolinek and Martius, *Demystifying inductive biases for β-VAE based architectures*, ICML 2021."""

from axiswise_papers.zietlow2021.discs import small_attack
from axiswise_papers.zietlow2021.probes import preserved, preserved_images
from axiswise_papers.zietlow2021.shapes import figure_5, figure_10, table_1_shapes3d
from axiswise_papers.zietlow2021.sprites import table_1
from axiswise_papers.zietlow2021.studies import STUDIES, figure_1, theorem_1

__all__ = [
    "STUDIES",
    "figure_1",
    "figure_5",
    "figure_10",
    "preserved",
    "preserved_images",
    "small_attack",
    "table_1",
    "table_1_shapes3d",
    "theorem_1",
]
