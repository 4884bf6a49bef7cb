"""What a model may lean on: words, phrases, signs, first and last words, ways of writing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ..core.inputs import BoolArray, FloatArray, IntArray, Text

WORD, SIGN, PHRASE, FIRST, LAST, CASING = "word", "sign", "phrase", "first", "last", "casing"
KINDS = (WORD, SIGN, PHRASE, FIRST, LAST, CASING)

PHRASE_WIDTHS = (2, 3)
"""So many words make a phrase."""

CAPITALS, INITIAL = "ALL CAPITALS", "Capital inside a sentence"
"""The ways of writing that are candidates."""

_ENDS = frozenset(".!?…:\n\"”'’")


@dataclass(frozen=True, kw_only=True)
class WordTable:
    """All words of some texts in one row."""

    forms: tuple[str, ...]
    """The different words in lower case."""
    form: IntArray  # (words,)
    text: IntArray  # (words,) in which text
    place: IntArray  # (words,) where in it
    lengths: IntArray  # (texts,)
    capitals: BoolArray  # (words,) written in capitals
    initial: BoolArray  # (words,) a capital where no sentence begins

    @classmethod
    def of(cls, texts: Sequence[Text]) -> WordTable:
        """The words of these texts, one text behind the other."""
        forms: dict[str, int] = {}
        form, capitals, initial = [], [], []
        for text in texts:
            before = "."
            for word in text.words:
                form.append(forms.setdefault(word.lower(), len(forms)))
                capitals.append(len(word) > 1 and word.isupper())
                initial.append(word.istitle() and word.isalpha() and before[-1] not in _ENDS)
                before = word
        lengths = np.array([t.n_features for t in texts], dtype=np.int64)
        starts = np.cumsum(lengths) - lengths
        return cls(
            forms=tuple(forms),
            form=np.array(form, dtype=np.int64),
            text=np.repeat(np.arange(len(texts)), lengths),
            place=np.arange(len(form)) - np.repeat(starts, lengths),
            lengths=lengths,
            capitals=np.array(capitals, dtype=np.bool_),
            initial=np.array(initial, dtype=np.bool_),
        )

    @cached_property
    def starts(self) -> IntArray:
        """Where each text begins in the row."""
        return np.cumsum(self.lengths) - self.lengths

    def texts(self) -> IntArray:
        """In how many texts each form stands. (forms,)"""
        n = max(1, len(self.lengths))
        pairs = np.unique(self.form * n + self.text)
        return np.bincount(pairs // n, minlength=len(self.forms)).astype(np.int64)

    def counts(self, among: BoolArray | None = None) -> IntArray:
        """How often each form occurs, in all texts or in some. (texts,) → (forms,)"""
        counted = None if among is None else among[self.text].astype(np.float64)
        found = np.bincount(self.form, weights=counted, minlength=len(self.forms))
        return found.astype(np.int64)

    def means(self, scores: FloatArray) -> FloatArray:
        """The mean score of each form. (words,) → (forms,)"""
        sums = np.bincount(self.form, weights=scores, minlength=len(self.forms))
        return sums / np.maximum(self.counts(), 1)


@dataclass(frozen=True, kw_only=True)
class Candidates:
    """Everything that stands in enough texts to be judged, and where it stands."""

    words: WordTable
    kinds: tuple[str, ...]
    names: tuple[str, ...]
    parts: tuple[tuple[int, ...], ...]
    """The forms that each is made of; none for ways of writing."""
    widths: IntArray  # (candidates,)
    owner: IntArray  # (occurrences,) the candidate that each belongs to, in order
    at: IntArray  # (occurrences,) where in the row of words it begins

    def __len__(self) -> int:
        return len(self.names)

    @classmethod
    def of(cls, words: WordTable, *, least: int, with_words: bool = True) -> Candidates:
        """All that stands in at least so many texts, or only what needs no meaning: signs and ways
        of writing."""
        found: list[tuple[str, tuple[int, ...], IntArray]] = []
        everywhere = np.arange(len(words.form))
        for parts, at in _grouped(words, everywhere, 1, least):
            found.append((WORD if is_word(words.forms[parts[0]]) else SIGN, parts, at))
        for width in PHRASE_WIDTHS:
            found += [(PHRASE, p, at) for p, at in _grouped(words, everywhere, width, least)]
        firsts = everywhere[words.place == 0]
        lasts = everywhere[words.place == words.lengths[words.text] - 1]
        for kind, some in ((FIRST, firsts), (LAST, lasts)):
            found += [(kind, p, at) for p, at in _grouped(words, some, 1, least)]
        if not with_words:
            found = [one for one in found if not any(is_word(words.forms[i]) for i in one[1])]
        names = [" ".join(words.forms[i] for i in parts) for _, parts, _ in found]
        for name, flags in ((CAPITALS, words.capitals), (INITIAL, words.initial)):
            at = np.flatnonzero(flags)
            if len(np.unique(words.text[at])) >= least:
                found.append((CASING, (), at))
                names.append(name)
        starts = [at for _, _, at in found]
        return cls(
            words=words,
            kinds=tuple(kind for kind, _, _ in found),
            names=tuple(names),
            parts=tuple(parts for _, parts, _ in found),
            widths=np.array([max(1, len(parts)) for _, parts, _ in found], dtype=np.int64),
            owner=np.repeat(np.arange(len(found)), [len(at) for at in starts]),
            at=np.concatenate(starts) if starts else np.zeros(0, dtype=np.int64),
        )

    @cached_property
    def counts(self) -> IntArray:
        """How often each occurs. (candidates,)"""
        return np.bincount(self.owner, minlength=len(self)).astype(np.int64)

    @cached_property
    def _pairs(self) -> tuple[IntArray, IntArray, IntArray]:
        """Every candidate with every text that has it, and how often it does. (pairs,) each"""
        texts = max(1, len(self.words.lengths))
        keys, times = np.unique(self.owner * texts + self.words.text[self.at], return_counts=True)
        return keys // texts, keys % texts, times

    @cached_property
    def spreads(self) -> FloatArray:
        """The standard deviation over texts of how often they have each. (candidates,)"""
        owner, _, times = self._pairs
        texts = max(1, len(self.words.lengths))
        squares = np.bincount(owner, weights=times.astype(np.float64) ** 2, minlength=len(self))
        found: FloatArray = np.sqrt(np.maximum(squares / texts - (self.counts / texts) ** 2, 0))
        return found

    @cached_property
    def texts(self) -> IntArray:
        """How many texts have each. (candidates,)"""
        return np.bincount(self._pairs[0], minlength=len(self)).astype(np.int64)

    def texts_of(self, candidate: int) -> IntArray:
        """The texts that have it."""
        owner, text, _ = self._pairs
        return text[_run_of(owner, candidate)]

    def texts_with_label(self, labels: IntArray) -> IntArray:
        """How many of the texts that have each are so labelled. labels: (texts,) 0 or 1"""
        owner, text, _ = self._pairs
        return np.bincount(owner, weights=labels[text], minlength=len(self)).astype(np.int64)

    def counts_with_label(self, labels: IntArray) -> IntArray:
        """How often each occurs in the texts that are so labelled. labels: (texts,) 0 or 1"""
        at = labels[self.words.text[self.at]]
        return np.bincount(self.owner, weights=at, minlength=len(self)).astype(np.int64)

    def occurrences(self, candidate: int) -> IntArray:
        """Where one begins, everywhere."""
        return self.at[_run_of(self.owner, candidate)]

    def places(self, candidate: int) -> IntArray:
        """All the words that it stands on. → (occurrences, width)"""
        return self.occurrences(candidate)[:, None] + np.arange(self.widths[candidate])

    def weights(self, scores: FloatArray) -> FloatArray:
        """The scores of its words together, of each occurrence. (words,) → (occurrences,)"""
        total = np.concatenate([[0.0], np.cumsum(scores)])
        found: FloatArray = total[self.at + self.widths[self.owner]] - total[self.at]
        return found

    def means(self, values: FloatArray) -> FloatArray:
        """The mean over the occurrences of each. (occurrences,) → (candidates,)"""
        sums = np.bincount(self.owner, weights=values, minlength=len(self))
        return sums / np.maximum(self.counts, 1)


def _run_of(owner: IntArray, candidate: int) -> slice:
    """Where one stands in a sorted row of owners."""
    return slice(*np.searchsorted(owner, [candidate, candidate + 1]).tolist())


def _grouped(
    words: WordTable, at: IntArray, width: int, least: int
) -> list[tuple[tuple[int, ...], IntArray]]:
    """The different runs of so many words that begin at these places, and where each begins."""
    at = at[at + width <= len(words.form)]
    at = at[words.text[at] == words.text[at + width - 1]] if len(at) else at
    if not len(at):
        return []
    keys = np.zeros(len(at), dtype=np.int64)
    for i in range(width):
        keys = keys * len(words.forms) + words.form[at + i]
    order = np.argsort(keys, kind="stable")
    keys, at = keys[order], at[order]
    edges = np.flatnonzero(np.concatenate([[True], keys[1:] != keys[:-1], [True]]))
    new_text = np.concatenate([[True], words.text[at[1:]] != words.text[at[:-1]]])
    new_text[edges[:-1]] = True
    texts = np.add.reduceat(new_text, edges[:-1])
    groups = [at[edges[i] : edges[i + 1]] for i in np.flatnonzero(texts >= least)]
    return [(tuple(words.form[own[0] : own[0] + width].tolist()), own) for own in groups]


def is_word(form: str) -> bool:
    """Whether there is anything in it but signs."""
    return any(c.isalnum() for c in form)
