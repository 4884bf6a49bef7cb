"""Which clause moves the answer when it is taken away? The causal side of rule consistency
(definitions 4.5)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ..changes.structure import DOMINANT, OTHER
from ..core.inputs import FloatArray, Hiding
from ..core.metrics import Case, Metric, Quantity, Row, means
from ..engine.inference import masked_probabilities


@dataclass(frozen=True)
class ClauseEffect(Metric):
    """How far the answer's probability falls without the dominant clause, and without the other."""

    purpose: ClassVar[str] = "know which clause moves the model's answers"
    of_model: ClassVar[bool] = True
    ranks: ClassVar[bool] = False
    quantities: ClassVar[Mapping[str, Quantity]] = {
        "decides": Quantity(
            "share of structures whose dominant clause moves the answer more than the other one",
            share=True,
        ),
        "dominant": Quantity("fall of the answer's probability without the dominant clause"),
        "other": Quantity("its fall without the other clause"),
        "kept": Quantity(
            "share of structures whose dominant clause alone gets the same answer", share=True
        ),
    }

    hiding: Hiding = Hiding.DELETE

    @property
    def truth_kind(self) -> str | None:
        return OTHER  # what decides may be marked without what does not

    def n_questions(self, n_units: int) -> int | None:
        return 2

    def score(self, cases: Sequence[Case]) -> list[Row]:
        known = [case for case in cases if OTHER in case.example.truths]
        if not known:
            return [{} for _ in cases]
        inputs = [case.example.input for case in known]
        shown = [
            ~np.array([*c.example.truths[DOMINANT], *c.example.truths[OTHER]], dtype=np.bool_)
            for c in known
        ]  # (2 structures, words): without each dominant clause, then without each other one
        answers = masked_probabilities(known[0].model, inputs, shown, self.hiding)
        rows = {id(c): _row(c, found) for c, found in zip(known, answers, strict=True)}
        return [rows.get(id(case), {}) for case in cases]


def _row(case: Case, without: FloatArray) -> Row:
    n = len(without) // 2
    whole = float(case.probabilities[case.answer])
    falls = whole - without[:, case.answer]
    return means(
        [
            {
                "decides": float(falls[i] > falls[n + i]),
                "dominant": float(falls[i]),
                "other": float(falls[n + i]),
                "kept": float(int(np.argmax(without[n + i])) == case.answer),
            }
            for i in range(n)
        ]
    )
