"""Sikka, Zhong, Yin and Pehlevan, *A closer look at disentangling in β-VAE*, 2019."""
