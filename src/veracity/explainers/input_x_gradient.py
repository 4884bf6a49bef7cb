"""The gradient times what it is taken at (definitions 3.5)."""

from __future__ import annotations

from dataclasses import dataclass

from ..engine.gradients import Output
from ._gradients import GradientExplainer


@dataclass(frozen=True)
class InputXGradient(GradientExplainer):
    """Each word's embedding times the gradient there, summed over dimensions; signed."""

    output: Output = "logit"
