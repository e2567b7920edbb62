"""Carl Allen, *Unpicking data at the seams: VAEs, disentanglement and independent components*, 2024."""

from axiswise_papers.allen2024.studies import STUDIES, bent, figure_2, linear, plateau, theorem_3

__all__ = ["STUDIES", "bent", "figure_2", "linear", "plateau", "theorem_3"]
