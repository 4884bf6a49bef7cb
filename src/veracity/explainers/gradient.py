"""How sensitive the answer is to each word (SPEC 3.5)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal, cast

import numpy as np

from ..core.attributions import Attribution
from ..core.classifiers import Classifier, Differentiable
from ..core.explainers import Explainer
from ..core.inputs import FloatArray, Text
from ..engine.gradients import Output, path_gradients


@dataclass(frozen=True)
class Gradient(Explainer):
    """The size of the gradient at each word's embedding; unsigned."""

    needs: ClassVar[type] = Differentiable

    norm: Literal["l2", "l1", "max_abs"] = "l2"
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
                path.alignment.to_words(self._size(path.gradient)),
                output_value=float(path.outputs[-1]),
            )
            for text, target, path in zip(inputs, targets, paths, strict=True)
        ]

    def _size(self, gradient: FloatArray) -> FloatArray:
        """(pieces, size) → (pieces,)"""
        order = {"l2": 2, "l1": 1, "max_abs": np.inf}[self.norm]
        sizes: FloatArray = np.linalg.norm(gradient, ord=order, axis=1)
        return sizes
