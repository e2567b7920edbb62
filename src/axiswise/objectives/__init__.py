"""Training objectives, one file each."""

from axiswise.objectives.beta_vae import BetaVAE
from axiswise.objectives.objective import Batch, Draw, Objective, Terms, Trainable

__all__ = ["Batch", "BetaVAE", "Draw", "Objective", "Terms", "Trainable"]
