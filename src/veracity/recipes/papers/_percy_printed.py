"""The two tables that PERCY prints, one for each corpus."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from ...core.inputs import FloatArray
from ._percy_grid import kendall
from ._percy_names import ClassifierName

FIGURES = ("accuracy", "precision", "f1", "lime", "shap", "integrated_gradients")
ONLY_LIME = FIGURES[:4]
"""What is a measurement of classifiers over contextual vectors too (definitions 9.1)."""


@dataclass(frozen=True)
class PrintedTable:
    """By classifier its six figures."""

    rows: Mapping[ClassifierName, tuple[float, ...]]

    @classmethod
    def of(cls, rows: Mapping[str, Sequence[float]], place: int) -> PrintedTable:
        """That of the first or the second corpus."""
        start = place * len(FIGURES)
        found = {ClassifierName.parse(name): row[start : start + len(FIGURES)]
                 for name, row in rows.items()}  # fmt: skip
        return cls({name: tuple(row) for name, row in found.items()})

    def row(self, name: ClassifierName) -> dict[str, float]:
        """The figures of a classifier that were measured."""
        known = dict(zip(FIGURES, self.rows[name], strict=True))
        return known if name.measured else {figure: known[figure] for figure in ONLY_LIME}

    def column(self, figure: str, *, measured: bool = False) -> FloatArray:
        """A figure of all classifiers, or of those whose figures are all measurements."""
        place = FIGURES.index(figure)
        return np.array([r[place] for n, r in self.rows.items() if n.measured or not measured])

    def tau(self, one: str, other: str, *, measured: bool = False) -> float:
        """Kendall's τ-b of two columns."""
        return kendall(*(self.column(figure, measured=measured) for figure in (one, other)))

    def differences(self, trait: str, mine: object, theirs: object) -> dict[str, float]:
        """By figure the mean difference of classifiers that differ in nothing else."""
        pairs = [
            (name, name.having(trait, theirs)) for name in self.rows if getattr(name, trait) == mine
        ]
        found = np.mean([np.subtract(self.rows[a], self.rows[b]) for a, b in pairs], axis=0)
        return dict(zip(FIGURES, found.tolist(), strict=True))

    def mean(self, figure: str, *, proposed: bool) -> float:
        """Of classifiers that were proposed to carry rules, or of the others."""
        place = FIGURES.index(figure)
        rows = [r[place] for name, r in self.rows.items() if name.for_rules == proposed]
        return float(np.mean(rows))
