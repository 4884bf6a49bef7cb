"""Hide one word at a time and see what the model says then."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..core.attributions import Attribution
from ..core.classifiers import Classifier
from ..core.explainers import Explainer
from ..core.inputs import Hiding, Text
from ..engine.asking import Output, Rows, masked_probabilities, value


@dataclass(frozen=True)
class Occlusion(Explainer):
    """How far the answer falls when a word is hidden."""

    hiding: Hiding = Hiding.DELETE
    output: Output = "probability"

    def n_questions(self, n_features: int) -> int | None:
        return n_features + 1

    def explain(
        self,
        model: Classifier,
        inputs: Sequence[Text],
        targets: Sequence[int],
        rngs: Sequence[np.random.Generator],
    ) -> list[Attribution]:
        shown = [all_but_one(t.n_features) for t in inputs]
        found = []
        answers = masked_probabilities(model, inputs, shown, self.hiding)
        for text, target, rows in zip(inputs, targets, answers, strict=True):
            whole, *without = value(rows, target, self.output)
            scores = whole - np.array(without)
            found.append(Attribution(text, target, scores, output_value=float(whole)))
        return found


def all_but_one(n: int) -> Rows:
    """Everything shown, then everything but each word in turn."""
    return Rows((n + 1, n), lambda places: places[:, None] != np.arange(1, n + 1))
