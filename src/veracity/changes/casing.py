"""How words are written: a habit of capitals that follows the label."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from ..core.inputs import BoolArray, Text
from ..data.editing import respelt
from ._planting import Marking, Planting

WAYS: dict[str, Callable[[str], str]] = {
    "upper": str.upper,
    "title": str.title,
    "lower": str.lower,
    "swapped": lambda word: word[:1].lower() + word[1:].upper(),
}


@dataclass(frozen=True)
class Casing(Planting):
    """Writes some words of each label's texts in its own way: upper, title, lower or swapped."""

    marks: tuple[str, ...] = ("title", "upper")
    count: int = 1
    """How many words of a text are written so."""

    def __post_init__(self) -> None:
        super().__post_init__()
        odd = [mark for mark in (*filter(None, self.marks), *self.decoys) if mark not in WAYS]
        if odd or self.count < 1:
            raise ValueError(
                f"expected marks to be {', '.join(WAYS)} or empty and a count of 1 or more; got "
                f"{self.marks}, {self.decoys} and {self.count}"
            )

    def put(self, text: Text, mark: str, taken: BoolArray, rng: np.random.Generator) -> Marking:
        # a word shows how it is written if every way writes it differently
        able = [i for i, w in enumerate(text.words) if not taken[i] and _tells(w)]
        chosen = [able[i] for i in rng.permutation(len(able))[: self.count]]
        edit = respelt(text, {i: WAYS[mark](text.words[i]) for i in chosen})
        return edit, np.isin(np.arange(text.n_features), chosen)


def _tells(word: str) -> bool:
    return len({way(word) for way in WAYS.values()}) == len(WAYS)
