"""Sikka, Zhong, Yin and Pehlevan, *A closer look at disentangling in β-VAE*, 2019."""

from axiswise_papers.sikka2019.studies import STUDIES, figure_1, figure_2, figure_3, fixed_decoder, propositions

__all__ = ["STUDIES", "figure_1", "figure_2", "figure_3", "fixed_decoder", "propositions"]
