"""Word vectors that word2vec learns from texts (Mikolov et al. 2013)."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from importlib.util import find_spec

import numpy as np

from ..core.errors import DataError, MissingExtra
from ..core.inputs import FloatArray

WINDOW = 5
EPOCHS = 20
"""Passes over the texts: a corpus of some thousand sentences is far smaller than those that the
method was made for, which need five."""


def word2vec_vectors(
    texts: Sequence[Sequence[str]], *, size: int, seed: int
) -> dict[str, FloatArray]:
    """The vector of every word that is read, by skip-grams with five negative samples.

    One worker, and a hash of words that is the same in every process: the same texts give the same
    vectors.
    """
    if find_spec("gensim") is None:
        raise MissingExtra("gensim", "word2vec", "embeddings=word2vec")
    from gensim.models import Word2Vec

    if not any(len(text) > 1 for text in texts):
        raise DataError("expected texts of two words or more to learn vectors from, got none")
    learnt = Word2Vec(
        sentences=[list(text) for text in texts],
        vector_size=size,
        window=WINDOW,
        min_count=1,
        sg=1,
        negative=5,
        epochs=EPOCHS,
        workers=1,
        seed=seed,
        hashfxn=_same_everywhere,
    ).wv
    return {
        word: np.asarray(learnt.vectors[place], dtype=np.float64)
        for word, place in learnt.key_to_index.items()
    }


def _same_everywhere(word: str) -> int:
    """Python's own hash of a word is another in every process."""
    return zlib.crc32(word.encode("utf-8", "surrogatepass"))
