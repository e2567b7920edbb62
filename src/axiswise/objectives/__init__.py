"""Training objectives, one file each."""

from axiswise.objectives.annealed_vae import AnnealedVAE
from axiswise.objectives.autoencoder import Autoencoder
from axiswise.objectives.beta_tcvae import BetaTCVAE
from axiswise.objectives.beta_vae import BetaVAE
from axiswise.objectives.decomposed import Decomposed
from axiswise.objectives.deterministic_elbo import DeterministicELBO
from axiswise.objectives.dip_vae import DIPVAE
from axiswise.objectives.elbo_terms import ElboTerms, elbo_terms
from axiswise.objectives.entropy_regularised import EntropyRegularised
from axiswise.objectives.factor_vae import FactorVAE
from axiswise.objectives.objective import Batch, Draw, Needs, Objective, Terms, Trainable
from axiswise.objectives.pcl import PCL
from axiswise.objectives.slow_vae import SlowVAE

__all__ = [
    "DIPVAE",
    "PCL",
    "AnnealedVAE",
    "Autoencoder",
    "Batch",
    "BetaTCVAE",
    "BetaVAE",
    "Decomposed",
    "DeterministicELBO",
    "Draw",
    "ElboTerms",
    "EntropyRegularised",
    "FactorVAE",
    "Needs",
    "Objective",
    "SlowVAE",
    "Terms",
    "Trainable",
    "elbo_terms",
]
