"""What is left of the answers when nothing can be read? (definitions 5.15)"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ..core.inputs import ANY_KIND, FloatArray
from ..core.metrics import Case, Metric, Quantity, Row
from ..engine.inference import masked_probabilities

WAYS = 2
"""Everything is hidden in so many ways: of a text, its words are deleted, and unknown."""


@dataclass(frozen=True)
class Blank(Metric):
    """What the model answers with everything hidden, and how far its answers are from that."""

    takes: ClassVar[tuple[str, ...]] = ANY_KIND
    purpose: ClassVar[str] = "know how far the model's answers move at all"
    of_model: ClassVar[bool] = True
    quantities: ClassVar[Mapping[str, Quantity]] = {
        "moved": Quantity(
            "half the sum of the changes of all probabilities when every {unit} is hidden, by "
            "the way of hiding that moves them most",
            headline=True,
        ),
        "changed": Quantity(
            "whether the answer is another one with every {unit} hidden", share=True
        ),
        "label": Quantity("the label answered with every {unit} hidden"),
        "probability": Quantity("its probability"),
    }

    def n_questions(self, n_units: int) -> int | None:
        return WAYS

    def score(self, cases: Sequence[Case]) -> list[Row]:
        if not cases:
            return []
        inputs = [case.example.input for case in cases]
        nothing = [np.zeros((1, text.n_units), dtype=np.bool_) for text in inputs]
        ways = [
            masked_probabilities(cases[0].model, inputs, nothing, how)
            for how in inputs[0].hidings[:WAYS]
        ]
        return [
            _row(case, np.array([answers[i][0] for answers in ways]))
            for i, case in enumerate(cases)
        ]


def _row(case: Case, blank: FloatArray) -> Row:  # (ways, labels)
    whole = case.probabilities
    return {
        "moved": float(np.abs(blank - whole).sum(axis=1).max() / 2),
        "changed": float(np.argmax(blank[0]) != np.argmax(whole)),
        "label": float(np.argmax(blank[0])),
        "probability": float(blank[0].max()),
    }
