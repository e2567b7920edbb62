"""Mathieu, Rainforth, Siddharth and Teh, *Disentangling disentanglement in variational autoencoders*, ICML 2019."""

from axiswise_papers.mathieu2019.studies import (
    STUDIES,
    appendix_c,
    discussion,
    divergences,
    figure_2_bottom,
    figure_2_top,
    figure_3,
    figure_4,
)

__all__ = [
    "STUDIES",
    "appendix_c",
    "discussion",
    "divergences",
    "figure_2_bottom",
    "figure_2_top",
    "figure_3",
    "figure_4",
]
