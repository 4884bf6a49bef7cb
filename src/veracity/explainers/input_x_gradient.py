"""The gradient times what it is taken at (SPEC 3.5)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, cast

import numpy as np

from ..core.attributions import Attribution
from ..core.classifiers import Classifier, Differentiable
from ..core.explainers import Explainer
from ..core.inputs import ANY_KIND, Input
from ..engine.gradients import Output, path_gradients


@dataclass(frozen=True)
class InputXGradient(Explainer):
    """Each word's embedding times the gradient there, summed over dimensions; signed."""

    takes: ClassVar[tuple[str, ...]] = ANY_KIND
    needs: ClassVar[type] = Differentiable

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
                path.alignment.to_words((path.values * path.gradient).sum(axis=1)),
                output_value=float(path.outputs[-1]),
            )
            for text, target, path in zip(inputs, targets, paths, strict=True)
        ]
