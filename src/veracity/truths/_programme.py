"""The smallest sets of words that touch every document of their label and few of the others."""

from __future__ import annotations

import os
import sys
import time
from abc import abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import ClassVar, Literal

import numpy as np

from ..core.classifiers import Classifier
from ..core.errors import DataError
from ..core.examples import Dataset
from ..core.plugins import Profiles
from ..core.truths import Truth, WordSets, spelt
from ..engine.seeds import generator
from ._covering import Cover, CoverSolution, Solver, highs, scip, solve_cover

SOLVERS: Mapping[str, Solver] = {"highs": highs, "scip": scip}

Scores = Mapping[str, tuple[float, ...]]


@dataclass(frozen=True)
class Programme(Truth):
    """What both programmes share; they differ in the words that they look at (definitions 6.6,
    6.7)."""

    profiles: ClassVar[Profiles] = {"paper": {"size_term": False}}

    words: int = 3000
    """How many words are looked at."""
    least: int = 5
    """Documents with fewer different words of these are left out."""
    keep_punctuation: bool = False
    """Whether tokens without a letter are looked at too; a full stop can cover a whole label."""
    size_term: bool = True
    """Whether, of sets that touch other labels equally little, the smaller win."""
    penalty: float = 10.0
    """What leaving a document without a word costs, times the number of documents, where it must
    be."""
    seconds: float = 240.0
    """How long the solver may take."""
    solver: Literal["highs", "scip"] = "highs"
    """What solves the programme."""
    cased: bool = False

    def __post_init__(self) -> None:
        if self.words < 1:
            raise ValueError(f"expected at least one word to look at, got words={self.words}")
        if self.least < 0:
            raise ValueError(f"expected least to be 0 or more, got {self.least}")
        if self.penalty <= 0 or self.seconds <= 0:
            raise ValueError(
                f"expected a penalty and seconds above 0, got {self.penalty} and {self.seconds}"
            )

    @abstractmethod
    def vocabulary(self, model: Classifier | None, train: Dataset) -> tuple[Sequence[str], Scores]:
        """The words to look at, and their scores where there are any."""

    def expected_wait(self, texts: int) -> str:
        return f"{self.seconds:g} s at most for the programme (seconds=…), often all of them"

    def learnt(self, model: Classifier | None, train: Dataset, *, seed: int) -> WordSets:
        started = time.perf_counter()
        vocabulary, scores = self.vocabulary(model, train)
        documents, kept = self.documents(vocabulary, train)
        labels = [train.examples[i].label for i in kept]
        sets, answer = decisive_words(
            documents,
            labels,
            len(train.labels),
            vocabulary=len(vocabulary),
            size_term=self.size_term,
            penalty=self.penalty,
            seconds=self.seconds,
            solver=SOLVERS[self.solver],
            rng=generator(seed, self.spec),
        )
        return WordSets(train.labels, sets, scores, self.cased).with_facts(
            train,
            source=self.spec,
            seconds=time.perf_counter() - started,
            status="optimal" if answer.proven else "time limit",
            objective=touched(documents, labels, sets),
            cost=answer.cost,
            bound=answer.bound,
            gap=answer.gap,
            slack=answer.slack,
            violated=[train.examples[kept[i]].id for i in answer.bare],
            vocabulary=len(vocabulary),
            documents=len(kept),
            dropped=len(train) - len(kept),
        )

    def documents(
        self, vocabulary: Sequence[str], train: Dataset
    ) -> tuple[list[frozenset[str]], list[int]]:
        """What texts say of the words looked at, and the places of those that say enough."""
        known = frozenset(vocabulary)
        found = [known.intersection(self.read(e.input.words)) for e in train]
        kept = [i for i, words in enumerate(found) if len(words) >= self.least]
        if not kept:
            raise DataError(
                f"no document of {train.name} has {self.least} of the {len(known)} words that "
                f"{self.spec} looks at. Look at more words (words=…), or ask less (least=…)"
            )
        return [found[i] for i in kept], kept

    def read(self, words: Iterable[str]) -> list[str]:
        """The words of a document that may be looked at, as the sets spell them."""
        found = (spelt(word, self.cased) for word in words)
        return [w for w in found if self.keep_punctuation or any(c.isalpha() for c in w)]


def decisive_words(
    documents: Sequence[frozenset[str]],
    labels: Sequence[int],
    n_labels: int,
    *,
    rng: np.random.Generator,
    vocabulary: int | None = None,
    size_term: bool = True,
    penalty: float = 10.0,
    seconds: float = 240.0,
    solver: Solver = highs,
) -> tuple[tuple[frozenset[str], ...], CoverSolution]:
    """A set per label, none sharing a word: one word at least of each document is in the set of
    its label, and as few as can be in the set of another."""
    # where sets are equally good, which are found must not hang on the order of documents
    order = sorted(range(len(documents)), key=lambda i: (labels[i], sorted(documents[i])))
    cover, columns = as_cover(
        [documents[i] for i in order],
        [labels[i] for i in order],
        n_labels,
        vocabulary=vocabulary,
        size_term=size_term,
    )
    with _solver_silent():
        answer = solve_cover(
            cover, seconds=seconds, penalty=penalty * len(documents), rng=rng, solver=solver
        )
    chosen = [columns[i] for i in np.flatnonzero(answer.chosen)]
    sets = tuple(frozenset(w for w, of in chosen if of == c) for c in range(n_labels))
    return sets, replace(answer, bare=tuple(sorted(order[i] for i in answer.bare)))


@contextmanager
def _solver_silent() -> Iterator[None]:
    """HiGHS writes a line of its own now and then, below Python, where a program reads JSON."""
    sys.stdout.flush()
    try:
        kept = os.dup(1)
    except OSError:  # nothing is open there
        yield
        return
    nowhere = os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(nowhere, 1)
        yield
    finally:
        sys.stdout.flush()
        os.dup2(kept, 1)
        os.close(kept)
        os.close(nowhere)


def as_cover(
    documents: Sequence[frozenset[str]],
    labels: Sequence[int],
    n_labels: int,
    *,
    vocabulary: int | None = None,
    size_term: bool = True,
) -> tuple[Cover, list[tuple[str, int]]]:
    """The programme as it is written down, and the word and label that each column stands for."""
    words = sorted({word for document in documents for word in document})
    counts = {word: np.zeros(n_labels, dtype=np.int64) for word in words}
    for document, label in zip(documents, labels, strict=True):
        for word in document:
            counts[word][label] += 1
    # a word that no document of a label has is of no use to it
    columns = [(word, c) for word in words for c in range(n_labels) if counts[word][c]]
    place = {column: i for i, column in enumerate(columns)}
    size = 1 / (1 + n_labels * (vocabulary or len(words))) if size_term else 0.0
    cover = Cover(
        np.array([counts[word].sum() - counts[word][c] + size for word, c in columns]),
        tuple(
            frozenset(place[word, label] for word in document)
            for document, label in zip(documents, labels, strict=True)
        ),
        tuple(
            frozenset(place[word, c] for c in range(n_labels) if counts[word][c])
            for word in words
            if np.count_nonzero(counts[word]) > 1
        ),
    )
    return cover, columns


def touched(
    documents: Sequence[frozenset[str]], labels: Sequence[int], sets: Sequence[frozenset[str]]
) -> int:
    """How often words of a label's set stand in documents of other labels: what is minimised."""
    return sum(
        len(document & words)
        for document, label in zip(documents, labels, strict=True)
        for c, words in enumerate(sets)
        if c != label
    )
