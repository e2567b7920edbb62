"""Rolinek, Zietlow and Martius, *Variational autoencoders pursue PCA directions (by accident)*, CVPR 2019."""
