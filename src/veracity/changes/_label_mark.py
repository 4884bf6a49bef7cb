"""Marks that tell the label, whatever is marked: which example gets which, how surely, and what is
written down of it."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..core.changes import MANIPULATION, UNTOUCHED, Change
from ..core.errors import DataError
from ..core.examples import Dataset, Example
from ..core.inputs import BoolArray, FloatArray
from ..engine.seeds import generator

Marker = Callable[[Example[Any], int | None, np.random.Generator], tuple[Example[Any], bool] | None]
"""An example and the number of the mark that it is to get, if any → the example with its truth
masks and whether the mark is there; nothing for one that is left out."""


@dataclass(frozen=True)
class LabelMark(Change):
    """Draws a mark for each example, puts it there and says so in the example's facts."""

    marks: tuple[str, ...] = ()
    """What each label's examples are given; an empty one leaves them as they are."""
    strength: float = 1.0
    """How often the mark is that of the example's label."""
    share: float = 1.0
    """Of how many examples a mark is put in at all."""
    table: tuple[tuple[float, ...], ...] = ()
    """Instead of strength and share: per label the probability of each mark, what is left to 1 is
    the probability of none (definitions 6.2)."""

    def __post_init__(self) -> None:
        for name in ("strength", "share"):
            if not 0 <= getattr(self, name) <= 1:
                raise ValueError(f"expected {name} between 0 and 1, got {getattr(self, name)}")
        for row in self.table:
            if len(row) != len(self.marks) or min(row) < 0 or sum(row) > 1 + 1e-9:
                raise ValueError(
                    f"expected per label one probability for each mark, at most 1 in all; got {row}"
                )

    @abstractmethod
    def marker(self, data: Dataset[Any]) -> Marker:
        """What marks each example of these data, made ready once for all of them."""

    @property
    def misleads(self) -> bool:
        """Whether there is anything that looks alike and tells nothing."""
        return False

    @abstractmethod
    def own_marks(self, labels: Sequence[str]) -> BoolArray:
        """Which marks are those of a label. → (labels, marks)"""

    def probabilities(self, labels: Sequence[str]) -> FloatArray:
        """Per label the probability of each mark, and of none in the last column."""
        n = len(labels)
        if self.table:
            if len(self.table) != n:
                raise self.miscounted(n, len(self.table))
            told = np.asarray(self.table, dtype=np.float64)
        else:
            own = self.own_marks(labels)
            whose = np.where(
                np.eye(n, dtype=np.bool_), self.strength, (1 - self.strength) / (n - 1)
            )
            told = self.share * (whose @ own)
        return np.column_stack([told, np.clip(1 - told.sum(axis=1), 0, None)])

    def miscounted(self, n_labels: int, seen: int) -> DataError:
        return DataError(
            f"{self.spec}: expected {n_labels} marks or rows, one per label of the data; got {seen}"
        )

    def changed(self, data: Dataset[Any], *, seed: int) -> Dataset[Any]:
        table = self.probabilities(data.labels)
        marker = self.marker(data)
        made = [_given(e, table[e.label], marker, generator(seed, self.spec, e.id)) for e in data]
        return replace(data, examples=tuple(e for e in made if e is not None))


def _given(
    example: Example[Any], row: FloatArray, marker: Marker, rng: np.random.Generator
) -> Example[Any] | None:
    which = int((rng.random() >= np.cumsum(row)[:-1]).sum())
    found = marker(example, which if which < len(row) - 1 else None, rng)
    if found is None:
        return None
    after, placed = found
    told = str(which) if placed else UNTOUCHED
    # what an earlier mark did is part of what was done
    before = after.facts.get(MANIPULATION)
    done = told if before is None else f"{before},{told}"
    return replace(after, facts={**after.facts, MANIPULATION: done})


def with_region(example: Example[Any], kind: str, region: BoolArray) -> Example[Any]:
    """What one change marks is one set, joined with that of an earlier one."""
    earlier = example.truths.get(kind, ())
    joined = np.logical_or.reduce([region, *earlier]) if earlier else region
    return replace(example, truths={**example.truths, kind: (joined,)})
