"""Hide one word at a time and see what the model says then (definitions 3.15)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from ..core.attributions import Attribution
from ..core.classifiers import Classifier
from ..core.explainers import Explainer
from ..core.inputs import ANY_KIND, Hiding, Input, IntArray
from ..engine.inference import LazyMasks, Output, masked_probabilities, value
from ._batch import Inputs, Rngs, Targets


@dataclass(frozen=True)
class Occlusion(Explainer):
    """How far the answer falls when a word, or a segment, is hidden.

    By types, all words that are spelt alike are hidden together and share what that does: hidden
    one at a time, a word that stands twice may seem to weigh nothing.
    """

    takes: ClassVar[tuple[str, ...]] = ANY_KIND

    hiding: Hiding = Hiding.DELETE
    output: Output = "probability"
    by: Literal["positions", "types"] = "positions"
    """Whether words are hidden one by one, or all that are spelt alike together."""

    def n_questions(self, n_units: int) -> int | None:
        return n_units + 1

    def explain(
        self, model: Classifier, inputs: Inputs, targets: Targets, rngs: Rngs
    ) -> list[Attribution[Input]]:
        groups = [t.groups(self.by) for t in inputs]
        found = []
        answers = masked_probabilities(model, inputs, list(map(all_but_one, groups)), self.hiding)
        for text, target, rows, group in zip(inputs, targets, answers, groups, strict=True):
            whole, *without = value(rows, target, self.output)
            scores = (whole - np.array(without))[group] / np.bincount(group)[group]
            found.append(
                Attribution(text, target, text.on_features(scores), output_value=float(whole))
            )
        return found


def all_but_one(group: IntArray) -> LazyMasks:
    """Everything shown, then everything but each group of words in turn."""
    count = int(group.max(initial=-1)) + 1
    return LazyMasks((count + 1, len(group)), lambda places: places[:, None] != group + 1)
