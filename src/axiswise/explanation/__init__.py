"""What the geometry of any VAE shows about its latents: numbers first, then sentences."""

from axiswise.explanation.explain import explain
from axiswise.records import Baseline, Explanation, Finding

__all__ = ["Baseline", "Explanation", "Finding", "explain"]
