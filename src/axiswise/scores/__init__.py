"""Scores of disentanglement: arrays in, a small named tuple out.

The catalogue is the scores named in ``__all__``: each is tested by being listed.
"""

from axiswise.scores.active_units import ActiveUnits, active_units
from axiswise.scores.agreement import Agreement, agreement
from axiswise.scores.beta_vae import BetaVAEScore, beta_vae
from axiswise.scores.dci import DCI, dci, dci_completeness, dci_disentanglement
from axiswise.scores.disentanglement import Disentanglement, disentanglement
from axiswise.scores.explicitness import Explicitness, explicitness
from axiswise.scores.factor_vae import FactorVAEScore, factor_vae
from axiswise.scores.factors import Factors, as_factors
from axiswise.scores.gaussian_total_correlation import GaussianTotalCorrelation, gaussian_total_correlation
from axiswise.scores.gaussian_wasserstein_correlation import (
    GaussianWassersteinCorrelation,
    gaussian_wasserstein_correlation,
)
from axiswise.scores.hoyer import Hoyer, hoyer
from axiswise.scores.inputs import Inputs, Split, UndefinedScore, read_codes, read_pair, read_population, split
from axiswise.scores.irs import IRS, irs
from axiswise.scores.latent_mutual_information import LatentMutualInformation, latent_mutual_information
from axiswise.scores.match_latents import LatentMatches, match_latents
from axiswise.scores.mcc import MCC, mcc
from axiswise.scores.mig import MIG, mig
from axiswise.scores.modularity import Modularity, modularity
from axiswise.scores.sap import SAP, sap
from axiswise.scores.score import Declaration, Invariance, as_codes, declaration, score
from axiswise.scores.udr import UDR, udr

__all__ = [
    "DCI",
    "IRS",
    "MCC",
    "MIG",
    "SAP",
    "UDR",
    "ActiveUnits",
    "Agreement",
    "BetaVAEScore",
    "Declaration",
    "Disentanglement",
    "Explicitness",
    "FactorVAEScore",
    "Factors",
    "GaussianTotalCorrelation",
    "GaussianWassersteinCorrelation",
    "Hoyer",
    "Inputs",
    "Invariance",
    "LatentMatches",
    "LatentMutualInformation",
    "Modularity",
    "Split",
    "UndefinedScore",
    "active_units",
    "agreement",
    "as_codes",
    "as_factors",
    "beta_vae",
    "dci",
    "dci_completeness",
    "dci_disentanglement",
    "declaration",
    "disentanglement",
    "explicitness",
    "factor_vae",
    "gaussian_total_correlation",
    "gaussian_wasserstein_correlation",
    "hoyer",
    "irs",
    "latent_mutual_information",
    "match_latents",
    "mcc",
    "mig",
    "modularity",
    "read_codes",
    "read_pair",
    "read_population",
    "sap",
    "score",
    "split",
    "udr",
]
