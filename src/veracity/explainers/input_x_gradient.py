"""The gradient times what it is taken at (definitions 3.5)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from ..core.inputs import FloatArray
from ..engine.gradients import GradientOutput, PathGradient
from ._gradients import GradientExplainer


@dataclass(frozen=True)
class InputXGradient(GradientExplainer):
    """Each word's embedding times the gradient there, summed, with signs; of a pixel its size."""

    suited: ClassVar[Mapping[str, Mapping[str, Any]]] = {"image": {"absolute": True}}

    output: GradientOutput = "logit"
    absolute: bool = False
    """Whether dimensions, or the channels of a pixel, are added up by size; then unsigned."""

    @property
    def signed(self) -> bool:
        return not self.absolute

    def pieces(self, path: PathGradient) -> FloatArray:
        products = path.values * path.gradient
        found: FloatArray = (np.abs(products) if self.absolute else products).sum(axis=1)
        return found
