"""Word vectors: drawn at random, learnt from texts in two ways, from the GloVe package, or from a
file."""

from __future__ import annotations

import gzip
import zipfile
import zlib
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import IO, TYPE_CHECKING

import numpy as np

from ..core.errors import ModelError
from ..core.inputs import FloatArray
from ..core.limits import BYTES, LINE
from ..data.corpus_vectors import corpus_vectors
from ..data.trained_vectors import word2vec_vectors
from ..data.vectors import glove_vectors
from .vocabulary import PAD_ID, UNKNOWN_ID, Vocabulary

if TYPE_CHECKING:
    from torch import Tensor

LONGEST_WORD = 1000
"""A bound on the bytes of one word in a binary file, which comes from strangers."""


def embedding_table(
    source: str,
    vocabulary: Vocabulary,
    texts: Iterable[Sequence[str]],
    *,
    size: int,
    norm: float | None,
    seed: int,
) -> Tensor:
    """One row per word: found or learnt vectors where the source has them, random ones elsewhere;
    all stretched alike until those of words are as long as `norm` on average, where it is given."""
    import torch

    rng = np.random.default_rng(seed)
    found = _found(source, vocabulary, texts, size, seed)
    if source != "random":
        if not found:
            raise ModelError(
                f"none of the {len(vocabulary.words)} words of the data is in {source}"
            )
        size = len(next(iter(found.values())))
    table = rng.normal(0.0, 0.1, size=(len(vocabulary), size))
    for word, vector in found.items():
        table[vocabulary.row(word)] = vector
    table[PAD_ID] = 0.0
    if norm is not None:
        table *= norm / mean_norm(table)
    return torch.tensor(table, dtype=torch.float32)


def mean_norm(table: FloatArray) -> float:
    """How long the vectors of known words are on average; how long decides how soon a model
    attends to words (definitions D.1). table (rows, size)"""
    return float(np.linalg.norm(table[UNKNOWN_ID + 1 :], axis=1).mean())


def _found(
    source: str, vocabulary: Vocabulary, texts: Iterable[Sequence[str]], size: int, seed: int
) -> dict[str, FloatArray]:
    if source == "random":
        return {}
    if source == "corpus":
        ids = [vocabulary.ids(words) for words in texts]
        learnt = corpus_vectors(ids, len(vocabulary), size=size, seed=seed)
        rows = {word: learnt[vocabulary.row(word)] for word in vocabulary.words}
        return {word: row for word, row in rows.items() if row.any()}
    if source == "word2vec":
        # spelt as the vocabulary spells them; what it does not know is no neighbour
        known = [[vocabulary.spelling(w) for w in words] for words in texts]
        return word2vec_vectors(
            [[w for w in words if w is not None] for words in known], size=size, seed=seed
        )
    return dict(vectors_for(source, set(vocabulary.words)))


def vectors_for(source: str, words: set[str]) -> Iterator[tuple[str, FloatArray]]:
    """The vectors of these words, read without holding the rest in memory."""
    if source == "glove":
        return glove_vectors(words, "embeddings=glove")
    path = Path(source)
    if not path.is_file():
        raise ModelError(
            "expected embeddings to be random, corpus, word2vec, glove or a file; there is no "
            f"file {source!r}"
        )
    read = {".npz": _from_npz, ".bin": _from_word2vec}.get(path.suffix, _from_text)
    return _whole(read(path, words), path)


def _whole(found: Iterator[tuple[str, FloatArray]], path: Path) -> Iterator[tuple[str, FloatArray]]:
    """Whatever unpacking a damaged file raises, as a sentence."""
    try:
        yield from found
    except (EOFError, OSError, ValueError, NotImplementedError, zlib.error) as error:
        raise ModelError(f"{path} is damaged ({error}). Copy or make it anew") from None


def _from_npz(path: Path, words: set[str]) -> Iterator[tuple[str, FloatArray]]:
    try:
        with zipfile.ZipFile(path) as packed:
            BYTES.check(sum(one.file_size for one in packed.infolist()), path)
        with np.load(path, allow_pickle=False) as content:
            names, table = content["words"], content["vectors"]
    except (KeyError, ValueError, OSError, zipfile.BadZipFile, zlib.error) as error:
        raise ModelError(
            f"expected {path} to hold the arrays `words` (text) and `vectors`: {error}"
        ) from None
    for row, word in enumerate(names.tolist()):
        if word in words:
            yield word, np.asarray(table[row], dtype=np.float64)


def _from_text(path: Path, words: set[str]) -> Iterator[tuple[str, FloatArray]]:
    """`word number number …` per line, with or without a first line of two counts."""
    opened = gzip.open if path.suffix == ".gz" else open
    size: int | None = None
    with opened(path, "rt", encoding="utf-8", errors="replace") as file:
        lines = iter(lambda: file.readline(LINE.value + 1), "")
        for number, line in enumerate(lines, start=1):
            LINE.check(len(line), f"{path}, line {number}")
            word, *rest = line.rstrip().split(" ")
            if number == 1 and len(rest) == 1:
                continue
            size = size or len(rest)
            if word not in words:
                continue
            try:
                vector = np.array([float(x) for x in rest])
            except ValueError:
                raise ModelError(f"{path}, line {number}: expected a word and numbers") from None
            if len(vector) != size or not np.isfinite(vector).all():
                raise ModelError(
                    f"{path}, line {number}: expected {size} finite numbers, saw {len(vector)}"
                )
            yield word, vector


def _from_word2vec(path: Path, words: set[str]) -> Iterator[tuple[str, FloatArray]]:
    """The binary format of the word2vec tool: a line of counts, then word, space, float32s."""
    with path.open("rb") as file:
        header = file.readline(100).split()
        if len(header) != 2 or not all(part.isdigit() for part in header):
            raise ModelError(f"expected {path} to start with two counts, as word2vec writes it")
        count, size = int(header[0]), int(header[1])
        if 4 * size * count > path.stat().st_size:
            raise ModelError(f"{path} ends early: expected {count} vectors of {size} numbers")
        for _ in range(count):
            word = _word(file, path)
            raw = file.read(4 * size)
            if len(raw) != 4 * size:
                raise ModelError(f"{path} ends early: expected {count} vectors of {size} numbers")
            if word in words:
                yield word, np.frombuffer(raw, dtype="<f4").astype(np.float64)


def _word(file: IO[bytes], path: Path) -> str:
    letters = bytearray()
    while (letter := file.read(1)) not in (b" ", b""):
        letters += letter
        if len(letters) > LONGEST_WORD:
            raise ModelError(f"{path} is not a word2vec file: a word has over {LONGEST_WORD} bytes")
    return letters.decode("utf-8", "replace").strip("\n")
