"""How a text ends: a habit of punctuation that follows the label."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..core.inputs import BoolArray, Text
from ..data.editing import NEW, gaps, inserted, respelt
from ..data.words import read_text
from ._planting import Marking, Planting


@dataclass(frozen=True)
class Punctuation(Planting):
    """Ends each label's texts with its own sign; decoys are signs put in elsewhere."""

    marks: tuple[str, ...] = (".", "!")

    def __post_init__(self) -> None:
        super().__post_init__()
        for mark in (*self.marks, *self.decoys):
            if mark and (read_text(mark).n_features != 1 or any(c.isalnum() for c in mark)):
                raise ValueError(f"expected marks to be one sign each, got {mark!r}")

    def put(self, text: Text, mark: str, taken: BoolArray, rng: np.random.Generator) -> Marking:
        last = text.n_features - 1
        if last >= 0 and not taken[last] and not any(c.isalnum() for c in text.words[last]):
            edit = respelt(text, {last: mark})
            return edit, np.arange(text.n_features) == last
        edit = inserted(text, last + 1, read_text(mark))
        return edit, edit.came_from == NEW

    def mislead(self, text: Text, taken: BoolArray, rng: np.random.Generator) -> Marking:
        mark = self.decoys[rng.integers(len(self.decoys))]
        # anywhere but at the end, which is the place of marks
        free = gaps(taken)[:-1] if text.n_features else gaps(taken)
        edit = inserted(text, int(rng.choice(free)), read_text(mark))
        return edit, edit.came_from == NEW
