"""How sensitive the answer is to each word (definitions 3.5)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from ..core.inputs import FloatArray
from ..core.plugins import Profiles
from ..engine.gradients import GradientOutput, Norm, PathGradient, sizes
from ._gradients import GradientExplainer


@dataclass(frozen=True)
class Gradient(GradientExplainer):
    """The size of the gradient at each word's embedding, or at each pixel; unsigned."""

    # what fits the saliency of IDC's table best (definitions D.2)
    profiles: ClassVar[Profiles] = {"paper": {"times_input": True}}
    suited: ClassVar[Mapping[str, Mapping[str, Any]]] = {"image": {"norm": "l1"}}

    norm: Norm = "l2"
    """What makes one number of a word's gradient: its l2 or l1 norm, or its largest entry."""
    times_input: bool = False
    """Whether each dimension of the gradient is first multiplied by the embedding's."""
    output: GradientOutput = "logit"

    @property
    def signed(self) -> bool:
        return False

    def pieces(self, path: PathGradient) -> FloatArray:
        taken = path.gradient * path.values if self.times_input else path.gradient
        return sizes(taken, self.norm)
