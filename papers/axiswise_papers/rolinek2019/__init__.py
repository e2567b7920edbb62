"""Rolinek, Zietlow and Martius, *Variational autoencoders pursue PCA directions (by accident)*, CVPR 2019."""

from axiswise_papers.rolinek2019.studies import (
    STUDIES,
    figure_3,
    figure_s4,
    figure_s4_sprites,
    table_1,
    table_2,
    table_2_images,
    table_s4,
)

__all__ = ["STUDIES", "figure_3", "figure_s4", "figure_s4_sprites", "table_1", "table_2", "table_2_images", "table_s4"]
