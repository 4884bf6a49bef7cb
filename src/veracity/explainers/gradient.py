"""How sensitive the answer is to each word (SPEC 3.5)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, cast

import numpy as np

from ..core.attributions import Attribution
from ..core.classifiers import Classifier, Differentiable
from ..core.explainers import Explainer
from ..core.inputs import ANY_KIND, FloatArray, Input
from ..core.plugins import Profiles
from ..engine.gradients import Norm, Output, PathGradient, path_gradients, sizes


@dataclass(frozen=True)
class Gradient(Explainer):
    """The size of the gradient at each word's embedding; unsigned."""

    takes: ClassVar[tuple[str, ...]] = ANY_KIND
    needs: ClassVar[type] = Differentiable
    # what fits the saliency of IDC's table best (SPEC D.2)
    profiles: ClassVar[Profiles] = {"paper": {"times_input": True}}

    norm: Norm = "l2"
    times_input: bool = False
    """Whether each dimension of the gradient is first multiplied by the embedding's."""
    output: Output = "logit"

    def explain(
        self,
        model: Classifier,
        inputs: Sequence[Input],
        targets: Sequence[int],
        rngs: Sequence[np.random.Generator],
    ) -> list[Attribution[Input]]:
        able = cast(Differentiable, model)
        paths = path_gradients(able, inputs, targets, output=self.output)
        return [
            Attribution(
                text,
                target,
                path.alignment.to_words(sizes(self._taken(path), self.norm)),
                output_value=float(path.outputs[-1]),
            )
            for text, target, path in zip(inputs, targets, paths, strict=True)
        ]

    def _taken(self, path: PathGradient) -> FloatArray:
        return path.gradient * path.values if self.times_input else path.gradient
