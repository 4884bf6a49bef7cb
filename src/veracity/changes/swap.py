"""Words of a set that all become one of them (definitions 6.3): by default articles."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from ..core.inputs import BoolArray, Text
from ..data.editing import respelt
from ._planting import Marking, Planting
from ._regions import joint_effective_region

Part = Literal["all", "first", "second"]


@dataclass(frozen=True)
class Swap(Planting):
    """Makes every word of a set the label's mark; with part=first or second, only there.

    As it stands it makes the Article dataset, with part=first CN and with part=second NC, where
    the words of the other part all become one mark that is drawn without regard to the label.
    """

    marks: tuple[str, ...] = ("a", "the")
    decoy_share: float = 1.0
    words: tuple[str, ...] = ("a", "an", "the")
    """The words that become marks."""
    part: Part = "all"
    """Which part of a text carries the mark."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if not all(self.marks):
            raise ValueError(f"expected a word for every label, got {self.marks}")
        if self.decoys:
            raise ValueError(
                "expected no decoys: with part=first or part=second, the words of the other part "
                "follow no label"
            )

    @property
    def misleads(self) -> bool:
        return self.part != "all"

    def put(self, text: Text, mark: str, taken: BoolArray, rng: np.random.Generator) -> Marking:
        return self._swapped(text, mark, self.part, taken)

    def mislead(self, text: Text, taken: BoolArray, rng: np.random.Generator) -> Marking:
        other: Part = "second" if self.part == "first" else "first"
        return self._swapped(text, self.marks[rng.integers(len(self.marks))], other, taken)

    def _swapped(self, text: Text, mark: str, part: Part, taken: BoolArray) -> Marking:
        known = {word.lower() for word in (*self.words, *self.marks)}
        member = np.array([word.lower() in known for word in text.words], dtype=np.bool_)
        first = np.arange(text.n_features) < text.n_features // 2
        member &= {"all": ~taken, "first": first & ~taken, "second": ~first & ~taken}[part]
        before = np.array(text.words, dtype=object)
        region = joint_effective_region(before, [np.where(member, m, before) for m in self.marks])
        return respelt(text, {int(i): mark for i in np.flatnonzero(member)}), region
