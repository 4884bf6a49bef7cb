"""Labels that the input no longer tells, or not for sure (definitions 6.1)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal

import numpy as np

from ..core.changes import BOUND, ORIGINAL_LABEL, PLANTED, Change
from ..core.errors import DataError
from ..core.examples import Dataset
from ..core.inputs import ANY_KIND, FloatArray, IntArray
from ..engine.seeds import generator


@dataclass(frozen=True)
class Reassign(Change):
    """Keeps a label with probability r, else draws another; 0.5 of two labels leaves no trace."""

    r: float = 0.5
    """Probability that a label is kept."""
    matrix: tuple[tuple[float, ...], ...] = ()
    """Instead of r: per label the probability of each new one."""
    draw: Literal["independent", "balanced"] = "independent"
    """Balanced: of each original label, exact shares change, as near as whole examples allow."""

    takes: ClassVar[tuple[str, ...]] = ANY_KIND

    def __post_init__(self) -> None:
        if not 0 <= self.r <= 1:
            raise ValueError(f"expected r between 0 and 1, got {self.r}")
        rows = [np.asarray(row, dtype=np.float64) for row in self.matrix]
        if any(
            len(row) != len(rows) or (row < 0).any() or abs(row.sum() - 1) > 1e-9 for row in rows
        ):
            raise ValueError(
                "expected a square matrix whose rows are probabilities that add up to 1, got "
                f"{self.matrix}"
            )

    def probabilities(self, n_labels: int) -> FloatArray:
        """R: row = original label, column = new one."""
        if self.matrix:
            if len(self.matrix) != n_labels:
                raise DataError(
                    f"expected a matrix of {n_labels} × {n_labels}, one row per label; got "
                    f"{len(self.matrix)} rows"
                )
            return np.asarray(self.matrix, dtype=np.float64)
        if n_labels < 2:
            raise DataError("expected at least two labels to reassign")
        other = (1 - self.r) / (n_labels - 1)
        return np.where(np.eye(n_labels, dtype=np.bool_), self.r, other)

    def bound(self, n_labels: int) -> float:
        """p*: the accuracy that the text alone allows (definitions 5.4)."""
        return float(self.probabilities(n_labels).max())

    def changed(self, data: Dataset[Any], *, seed: int) -> Dataset[Any]:
        if PLANTED in data.truth_kinds:
            raise DataError(
                "labels are reassigned before anything is planted, not after: put reassign first"
            )
        spec, table = self.spec, self.probabilities(len(data.labels))
        drawn = np.array([generator(seed, spec, e.id).random() for e in data])
        old = np.array([e.label for e in data], dtype=np.int64)
        new = _balanced(table, old, drawn) if self.draw == "balanced" else _drawn(table, old, drawn)
        bound = f"{table.max():g}"
        examples = (
            replace(
                e,
                label=int(label),
                # what people marked speaks for the label that the text had
                truths={kind: m for kind, m in e.truths.items() if kind != "rationale"},
                facts={**e.facts, ORIGINAL_LABEL: data.labels[e.label], BOUND: bound},
            )
            for e, label in zip(data, new, strict=True)
        )
        return replace(data, examples=tuple(examples))


def _drawn(table: FloatArray, old: IntArray, drawn: FloatArray) -> IntArray:
    """Each example's own draw through the cumulated row of its label."""
    ends = np.cumsum(table, axis=1)[old][:, :-1]
    return np.asarray((drawn[:, None] >= ends).sum(axis=1), dtype=np.int64)


def _balanced(table: FloatArray, old: IntArray, drawn: FloatArray) -> IntArray:
    """The examples of a label, in the order of their draws, cut at the cumulated shares."""
    new = old.copy()
    for label, row in enumerate(table):
        members = np.flatnonzero(old == label)
        ranked = members[np.argsort(drawn[members], kind="stable")]
        cuts = np.rint(np.cumsum(row)[:-1] * len(ranked)).astype(np.int64)
        for target, part in enumerate(np.split(ranked, cuts)):
            new[part] = target
    return new
