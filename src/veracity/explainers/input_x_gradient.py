"""The gradient times what it is taken at (definitions 3.5)."""

from __future__ import annotations

from dataclasses import dataclass

from ..core.inputs import FloatArray
from ..engine.gradients import Output, PathGradient
from ._gradients import GradientExplainer


@dataclass(frozen=True)
class InputXGradient(GradientExplainer):
    """Each word's embedding times the gradient there, summed over dimensions; signed."""

    output: Output = "logit"

    def pieces(self, path: PathGradient) -> FloatArray:
        found: FloatArray = (path.values * path.gradient).sum(axis=1)
        return found
