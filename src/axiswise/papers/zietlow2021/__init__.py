"""Zietlow, Rolinek and Martius, *Demystifying inductive biases for β-VAE based architectures*, ICML 2021."""
