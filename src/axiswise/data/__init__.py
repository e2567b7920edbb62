"""Datasets with known factors: what varies (`FactorSpace`), what is observed (`FactorDataset`), and changes of both."""

from axiswise.data.arrays import arrays
from axiswise.data.celeba import celeba
from axiswise.data.changes import (
    Change,
    downsampled,
    manipulated,
    materialized,
    subset,
    with_correlation,
    with_noise,
)
from axiswise.data.circles import circles
from axiswise.data.dataset import DatasetSplit, FactorDataset, Transition, stored
from axiswise.data.digit_mixture import digit_mixture
from axiswise.data.digits import ten_digits
from axiswise.data.dsprites import color_dsprites, dsprites, noisy_dsprites
from axiswise.data.factors import Factor, FactorSpace
from axiswise.data.fashion_mnist import fashion_mnist
from axiswise.data.folders import cache_folder, data_folder
from axiswise.data.image_folder import image_folder
from axiswise.data.linear_gaussian import linear_gaussian
from axiswise.data.local_versus_global import local_versus_global
from axiswise.data.mnist import mnist
from axiswise.data.moving_digit import moving_digit
from axiswise.data.npz import npz
from axiswise.data.pinwheel import pinwheel
from axiswise.data.shapes3d import shapes3d
from axiswise.data.small_sprites import small_sprites
from axiswise.data.synth_linear import synth_linear, synth_linear_matrix
from axiswise.data.synth_nonlinear import synth_nonlinear
from axiswise.data.transitions import LaplaceTransition, TransitionKind, UniformTransition, transitions
from axiswise.shapes import Kind

__all__ = [
    "Change",
    "DatasetSplit",
    "Factor",
    "FactorDataset",
    "FactorSpace",
    "Kind",
    "LaplaceTransition",
    "Transition",
    "TransitionKind",
    "UniformTransition",
    "arrays",
    "cache_folder",
    "celeba",
    "circles",
    "color_dsprites",
    "data_folder",
    "digit_mixture",
    "downsampled",
    "dsprites",
    "fashion_mnist",
    "image_folder",
    "linear_gaussian",
    "local_versus_global",
    "manipulated",
    "materialized",
    "mnist",
    "moving_digit",
    "noisy_dsprites",
    "npz",
    "pinwheel",
    "shapes3d",
    "small_sprites",
    "stored",
    "subset",
    "synth_linear",
    "synth_linear_matrix",
    "synth_nonlinear",
    "ten_digits",
    "transitions",
    "with_correlation",
    "with_noise",
]
