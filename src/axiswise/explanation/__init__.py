"""What the geometry of any VAE says about its latents: numbers first, then the sentences that they support."""

from axiswise.explanation.explain import explain
from axiswise.records import Baseline, Explanation, Finding

__all__ = ["Baseline", "Explanation", "Finding", "explain"]
