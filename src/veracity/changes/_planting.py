"""Words that tell the label: how a text is given them, and with which decoys."""

from __future__ import annotations

import warnings
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from ..core.changes import DECOY, PLANTED
from ..core.examples import Dataset, Example
from ..core.inputs import BoolArray, Text
from ..data.editing import Edit
from ._label_mark import LabelMark, Marker, with_region

OFTEN = 0.01
"""Of so many texts a mark may be part before it is planted."""

Marking = tuple[Edit, BoolArray]
"""A text with a mark, and which of its new words are the mark's effective region."""


@dataclass(frozen=True)
class Planting(LabelMark):
    """One mark per label; each kind of cue says how a mark is put into a text."""

    marks: tuple[str, ...] = ()
    """What each label's texts are given; an empty one leaves them as they are."""
    decoys: tuple[str, ...] = ()
    """Marks that look alike and are drawn without regard to the label."""
    decoy_share: float = 0.5
    """Of how many examples a decoy is put in."""
    unmarked: Literal["keep", "drop"] = "keep"
    """What becomes of texts that were to be marked and offer no place for it."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 <= self.decoy_share <= 1:
            raise ValueError(f"expected decoy_share between 0 and 1, got {self.decoy_share}")
        marks, decoys = ({_folded(m) for m in some} for some in (self.marks, self.decoys))
        if len(self.marks) < 2 or len(marks) < len(self.marks):
            raise ValueError(f"expected one mark per label, all different; got {self.marks}")
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
        return bool(self.decoys)

    def own_marks(self, labels: Sequence[str]) -> BoolArray:
        if len(labels) != len(self.marks):
            raise self.miscounted(len(labels), len(self.marks))
        return np.eye(len(labels), dtype=np.bool_)

    def marker(self, data: Dataset) -> Marker:
        self._warn(data)
        return self._marked

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

    def _marked(
        self, example: Example, which: int | None, rng: np.random.Generator
    ) -> tuple[Example, bool] | None:
        misled = rng.random() < self.decoy_share
        placed = which is not None
        if which is not None and self.marks[which]:
            edit, region = self.put(example.input, self.marks[which], _taken(example), rng)
            placed = bool(region.any())
            if placed:
                example = with_region(edit.applied(example), PLANTED, region)
            elif self.unmarked == "drop":
                return None
        if self.misleads and misled:
            edit, region = self.mislead(example.input, _taken(example), rng)
            if region.any():
                example = with_region(edit.applied(example), DECOY, region)
        return example, placed


def _folded(mark: str) -> str:
    """A mark as a model reads it that tells neither case nor blanks apart."""
    return " ".join(mark.casefold().split())


def _taken(example: Example) -> BoolArray:
    """The words that a mark stands on already."""
    masks = [m for kind in (PLANTED, DECOY) for m in example.truths.get(kind, ())]
    free = np.zeros(example.input.n_features, dtype=np.bool_)
    return np.asarray(np.logical_or.reduce([free, *masks]), dtype=np.bool_)
