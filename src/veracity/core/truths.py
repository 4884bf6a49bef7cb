"""What is held to decide each label, learnt from data or from a model: pseudo ground truth."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from .classifiers import Classifier
from .errors import DataError
from .examples import Dataset, check_texts
from .files import read_json, reading, write_json
from .inputs import BoolArray
from .plugins import Plugin

PSEUDO = "pseudo"
"""The kind of truth masks that mark words which a source of truth holds to decide the label."""


def spelt(word: str, cased: bool) -> str:
    """A word as sets of words spell it."""
    return word if cased else word.lower()


@dataclass(frozen=True)
class WordSets:
    """The words that decide each label, how strongly if that is known, and how they were found."""

    labels: tuple[str, ...]
    words: tuple[frozenset[str], ...]
    """A set per label; words are in lower case unless they are cased."""
    scores: Mapping[str, tuple[float, ...]] = field(default_factory=dict)
    """A score per label for every word that was looked at; empty where the source gives none."""
    cased: bool = False
    texts_seen: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    """In how many texts of each label a word of the sets stood when it was learnt, if known."""
    facts: Mapping[str, Any] = field(default_factory=dict)
    """How they were found, in what JSON can hold."""

    def __post_init__(self) -> None:
        n = len(self.labels)
        if len(self.words) != n:
            raise ValueError(f"expected a set of words per label ({n}), got {len(self.words)}")
        if len(set(self.labels)) < n:
            raise ValueError(f"expected every label once, got {', '.join(self.labels)}")
        if any(len(row) != n for row in self.scores.values()):
            raise ValueError(f"expected {n} scores per word, one for each label")
        if any(len(row) != n for row in self.texts_seen.values()):
            raise ValueError(f"expected {n} counts of texts per word, one for each label")

    def mask(self, words: Sequence[str], label: int) -> BoolArray:
        """Where the words of a label's set stand, every occurrence. → (words,)"""
        known = self.words[label]
        return np.array([spelt(word, self.cased) in known for word in words], dtype=np.bool_)

    def check(self, data: Dataset) -> None:
        """A sentence that says so if the data have other labels, or no words."""
        check_texts(data, "a set of words")
        if data.labels != self.labels:
            raise DataError(
                f"expected data with the labels {', '.join(self.labels)}, which these words were "
                f"learnt for; {data.name} has {', '.join(data.labels)}. Name them in that order "
                "with --labels (labels=…), or learn words from data with these labels"
            )

    def marked(
        self, data: Dataset, kind: str = PSEUDO, *, by: Sequence[int] | None = None
    ) -> Dataset:
        """The data with one mask more per example: the words of the set of its label, or of the
        label that `by` names for it, such as the predicted one."""
        self.check(data)
        chosen = [e.label for e in data] if by is None else by
        if len(chosen) != len(data):
            raise DataError(f"expected a label per example ({len(data)}), got {len(chosen)}")
        examples = []
        for e, label in zip(data, chosen, strict=True):
            mask = self.mask(e.input.words, label)
            examples.append(replace(e, truths={**e.truths, kind: (mask,)}))
        return replace(data, examples=tuple(examples))

    def shares(self, data: Dataset) -> dict[str, float]:
        """Per label, the share of the words of its texts that its set covers; 0 without words."""
        covered, total = np.zeros(len(self.labels)), np.zeros(len(self.labels))
        for e in data:
            covered[e.label] += self.mask(e.input.words, e.label).sum()
            total[e.label] += e.input.n_features
        return {name: float(covered[i] / max(1.0, total[i])) for i, name in enumerate(self.labels)}

    def joined(self, labels: Sequence[str], belongs: Sequence[int]) -> WordSets:
        """The words of finer labels as those of the labels that they belong to; `belongs` names one
        for each of ours."""
        joined: list[frozenset[str]] = [frozenset()] * len(labels)
        for words, label in zip(self.words, belongs, strict=True):
            joined[label] |= words
        return WordSets(tuple(labels), tuple(joined), cased=self.cased)

    def texts(self, data: Dataset) -> dict[str, tuple[int, ...]]:
        """In how many texts of each label every word of the sets stands."""
        known = frozenset().union(*self.words)
        counts = {word: [0] * len(self.labels) for word in sorted(known)}
        for e in data:
            for word in known.intersection(spelt(word, self.cased) for word in e.input.words):
                counts[word][e.label] += 1
        return {word: tuple(row) for word, row in counts.items()}

    def with_facts(self, train: Dataset, **facts: Any) -> WordSets:
        """With how they were found, how many words there are and what share of texts they cover."""
        sizes = dict(zip(self.labels, map(len, self.words), strict=True))
        about = {"sizes": sizes, "covered": self.shares(train), "trained_on": train.name}
        return replace(self, texts_seen=self.texts(train), facts={**facts, **about})

    def save(self, path: Path) -> None:
        """One JSON file."""
        content = {
            "labels": self.labels,
            "words": [sorted(words) for words in self.words],
            "scores": {word: self.scores[word] for word in sorted(self.scores)},
            "cased": self.cased,
            "texts_seen": self.texts_seen,
            "facts": self.facts,
        }
        write_json(path, content)

    @classmethod
    def load(cls, path: Path) -> WordSets:
        """What `save` wrote, looked over: such files pass from hand to hand."""
        expected = f"expected a file of word sets at {path}"
        with reading(path, expected=expected, error=DataError):
            content = read_json(path)
            return cls(
                _strings("labels", content["labels"]),
                tuple(frozenset(_strings("words", words)) for words in content["words"]),
                {word: _numbers(row) for word, row in content["scores"].items()},
                bool(content["cased"]),
                {w: tuple(map(int, _numbers(r))) for w, r in content.get("texts_seen", {}).items()},
                dict(content["facts"]),
            )


def _strings(what: str, values: Any) -> tuple[str, ...]:
    if not isinstance(values, list) or not all(isinstance(v, str) for v in values):
        raise ValueError(f"expected {what} to be lists of strings")
    return tuple(values)


def _numbers(row: Any) -> tuple[float, ...]:
    found = tuple(row)
    if not all(isinstance(v, int | float) and math.isfinite(v) for v in found):
        raise ValueError(f"expected finite numbers for every word, got {str(found)[:40]}")
    return found


class Truth(Plugin, ABC):
    """A source of pseudo ground truth: which words decide each label."""

    def expected_wait(self, texts: int) -> str:
        """How long a person may have to wait, in words."""
        return ""

    @abstractmethod
    def learnt(self, model: Classifier | None, train: Dataset, *, seed: int) -> WordSets:
        """The words of each label; sources that look at texts alone need no model."""
