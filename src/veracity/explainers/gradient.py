"""How sensitive the answer is to each word (SPEC 3.5)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, cast

import numpy as np

from ..core.attributions import Attribution
from ..core.classifiers import Classifier, Differentiable
from ..core.explainers import Explainer
from ..core.inputs import Text
from ..engine.gradients import Norm, Output, path_gradients, sizes


@dataclass(frozen=True)
class Gradient(Explainer):
    """The size of the gradient at each word's embedding; unsigned."""

    needs: ClassVar[type] = Differentiable

    norm: Norm = "l2"
    output: Output = "logit"

    def explain(
        self,
        model: Classifier,
        inputs: Sequence[Text],
        targets: Sequence[int],
        rngs: Sequence[np.random.Generator],
    ) -> list[Attribution]:
        able = cast(Differentiable, model)
        paths = path_gradients(able, inputs, targets, output=self.output)
        return [
            Attribution(
                text,
                target,
                path.alignment.to_words(sizes(path.gradient, self.norm)),
                output_value=float(path.outputs[-1]),
            )
            for text, target, path in zip(inputs, targets, paths, strict=True)
        ]
