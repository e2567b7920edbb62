"""Kernels for CUDA, in Triton, each beside a plain version that it is tested against."""
