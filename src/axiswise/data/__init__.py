"""Datasets with known factors: what varies (`FactorSpace`), what is seen (`FactorDataset`), and changes of either."""

from axiswise.data.arrays import arrays
from axiswise.data.changes import downsampled, materialized, subset
from axiswise.data.dataset import FactorDataset, Split, Transition, stored
from axiswise.data.dsprites import dsprites
from axiswise.data.factors import Factor, FactorSpace, Kind
from axiswise.data.pinwheel import pinwheel
from axiswise.data.sources import Source, WheelMember, cache_folder, data_folder, fetch
from axiswise.data.synth_linear import synth_linear
from axiswise.data.synth_nonlinear import synth_nonlinear
from axiswise.data.transitions import LaplaceTransition, TransitionKind, UniformTransition, transitions

__all__ = [
    "Factor",
    "FactorDataset",
    "FactorSpace",
    "Kind",
    "LaplaceTransition",
    "Source",
    "Split",
    "Transition",
    "TransitionKind",
    "UniformTransition",
    "WheelMember",
    "arrays",
    "cache_folder",
    "data_folder",
    "downsampled",
    "dsprites",
    "fetch",
    "materialized",
    "pinwheel",
    "stored",
    "subset",
    "synth_linear",
    "synth_nonlinear",
    "transitions",
]
