"""A word or phrase that gives the label away, such as a source tag or a reviewer's habit."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from ..core.inputs import BoolArray, Text
from ..data.editing import NEW, gaps, inserted
from ..data.words import read_text
from ._planting import Marking, Planting


@dataclass(frozen=True)
class Insert(Planting):
    """Puts each label's word or phrase into its texts, at random, first or last."""

    marks: tuple[str, ...] = ("meanwhile", "elsewhere")
    place: Literal["random", "start", "end"] = "random"
    """Where the mark is put."""

    def __post_init__(self) -> None:
        super().__post_init__()
        for mark in (*self.marks, *self.decoys):
            if mark and not read_text(mark).n_features:
                raise ValueError(f"expected marks with at least one word, got {mark!r}")

    def put(self, text: Text, mark: str, taken: BoolArray, rng: np.random.Generator) -> Marking:
        place = {"start": 0, "end": text.n_features}.get(self.place, -1)
        if place < 0:
            place = int(rng.choice(gaps(taken)))
        edit = inserted(text, place, read_text(mark))
        return edit, edit.came_from == NEW

    def holds(self, text: Text, mark: str) -> bool:
        words, sought = ([w.casefold() for w in t.words] for t in (text, read_text(mark)))
        n = len(sought)
        return any(words[i : i + n] == sought for i in range(len(words) - n + 1))
