"""Cues that tell the label: which example gets which, how surely, and with which decoys."""

from __future__ import annotations

import warnings
from abc import abstractmethod
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from ..core.changes import DECOY, MANIPULATION, PLANTED, UNTOUCHED, Change
from ..core.errors import DataError
from ..core.examples import Dataset, Example
from ..core.inputs import BoolArray, FloatArray, Text
from ..data.editing import Edit
from ..engine.seeds import generator

OFTEN = 0.01
"""Of so many texts a mark may be part before it is planted."""

Marking = tuple[Edit, BoolArray]
"""A text with a mark, and which of its new words are the mark's effective region."""


@dataclass(frozen=True)
class Planting(Change):
    """One mark per label; each kind of cue says how a mark is put into a text."""

    marks: tuple[str, ...] = ()
    """What each label's texts are given; an empty one leaves them as they are."""
    strength: float = 1.0
    """How often the mark is that of the example's label."""
    share: float = 1.0
    """Of how many examples a mark is put in at all."""
    table: tuple[tuple[float, ...], ...] = ()
    """Instead of strength and share: per label the probability of each mark, what is left to 1 is
    the probability of none (definitions 6.2)."""
    decoys: tuple[str, ...] = ()
    """Marks that look alike and are drawn without regard to the label."""
    decoy_share: float = 0.5
    """Of how many examples a decoy is put in."""
    unmarked: Literal["keep", "drop"] = "keep"
    """What becomes of texts that were to be marked and offer no place for it."""

    def __post_init__(self) -> None:
        for name in ("strength", "share", "decoy_share"):
            if not 0 <= getattr(self, name) <= 1:
                raise ValueError(f"expected {name} between 0 and 1, got {getattr(self, name)}")
        marks, decoys = ({_folded(m) for m in some} for some in (self.marks, self.decoys))
        if len(self.marks) < 2 or len(marks) < len(self.marks):
            raise ValueError(f"expected one mark per label, all different; got {self.marks}")
        for row in self.table:
            if len(row) != len(self.marks) or min(row) < 0 or sum(row) > 1 + 1e-9:
                raise ValueError(
                    f"expected per label one probability for each mark, at most 1 in all; got {row}"
                )
        if decoys & marks:
            raise ValueError(f"expected decoys unlike the marks, got {self.decoys}")

    @abstractmethod
    def put(self, text: Text, mark: str, taken: BoolArray, rng: np.random.Generator) -> Marking:
        """The text with the mark, keeping off words that are taken, and which of the new words are
        its effective region, joint over all marks (definitions 6.2); none if there is no place for
        it."""

    def mislead(self, text: Text, taken: BoolArray, rng: np.random.Generator) -> Marking:
        """The same with a decoy."""
        return self.put(text, self.decoys[rng.integers(len(self.decoys))], taken, rng)

    @property
    def misleads(self) -> bool:
        """Whether there is anything that looks alike and tells nothing."""
        return bool(self.decoys)

    def probabilities(self, n_labels: int) -> FloatArray:
        """Per label the probability of each mark, and of none in the last column."""
        if n_labels != (len(self.table) or len(self.marks)):
            raise DataError(
                f"{self.spec}: expected {n_labels} marks or rows, one per label of the data; got "
                f"{len(self.table) or len(self.marks)}"
            )
        if self.table:
            told = np.asarray(self.table, dtype=np.float64)
        else:
            other = (1 - self.strength) / (n_labels - 1)
            own = np.eye(n_labels, dtype=np.bool_)
            told = self.share * np.where(own, self.strength, other)
        return np.column_stack([told, np.clip(1 - told.sum(axis=1), 0, None)])

    def changed(self, data: Dataset, *, seed: int) -> Dataset:
        table = self.probabilities(len(data.labels))
        self._warn(data)
        made = [self._planted(e, table[e.label], generator(seed, self.spec, e.id)) for e in data]
        return replace(data, examples=tuple(e for e in made if e is not None))

    def holds(self, text: Text, mark: str) -> bool:
        """Whether a text has a mark before it is given one."""
        return False

    def _warn(self, data: Dataset) -> None:
        """Says when a cue is in the texts already, where nobody will know it for one."""
        for mark in filter(None, self.marks):
            held = sum(self.holds(e.input, mark) for e in data)
            if held > OFTEN * len(data):
                warnings.warn(
                    f"{self.plugin_name()}: {held:,} of {len(data):,} texts hold {mark!r} already, "
                    "which tells nothing and is not marked as planted. Choose a rarer mark",
                    stacklevel=2,
                )

    def _planted(
        self, example: Example, row: FloatArray, rng: np.random.Generator
    ) -> Example | None:
        which = int((rng.random() >= np.cumsum(row)[:-1]).sum())
        misled = rng.random() < self.decoy_share
        told = UNTOUCHED
        if which < len(self.marks):
            told = str(which)
            if self.marks[which]:
                edit, region = self.put(example.input, self.marks[which], _taken(example), rng)
                if region.any():
                    example = _marked(edit.applied(example), PLANTED, region)
                elif self.unmarked == "drop":
                    return None
                else:
                    told = UNTOUCHED
        if self.misleads and misled:
            edit, region = self.mislead(example.input, _taken(example), rng)
            if region.any():
                example = _marked(edit.applied(example), DECOY, region)
        # what an earlier planting did is part of what was done
        before = example.facts.get(MANIPULATION)
        done = told if before is None else f"{before},{told}"
        return replace(example, facts={**example.facts, MANIPULATION: done})


def _folded(mark: str) -> str:
    """A mark as a model reads it that tells neither case nor blanks apart."""
    return " ".join(mark.casefold().split())


def _taken(example: Example) -> BoolArray:
    """The words that a mark stands on already."""
    masks = [m for kind in (PLANTED, DECOY) for m in example.truths.get(kind, ())]
    free = np.zeros(example.input.n_features, dtype=np.bool_)
    return np.asarray(np.logical_or.reduce([free, *masks]), dtype=np.bool_)


def _marked(example: Example, kind: str, region: BoolArray) -> Example:
    """What one planting marks is one set, joined with that of an earlier one."""
    earlier = example.truths.get(kind, ())
    joined = np.logical_or.reduce([region, *earlier])
    return replace(example, truths={**example.truths, kind: (joined,)})
