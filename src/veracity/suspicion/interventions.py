"""What candidates do to answers when they are put into texts and taken out of them."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..changes import changes
from ..core.classifiers import Classifier
from ..core.errors import BudgetSpent
from ..core.examples import Dataset
from ..core.inputs import BoolArray, FloatArray, Hiding, Text
from ..data.editing import respelt
from ..data.words import read_text
from ..engine.inference import masked_probabilities, probabilities, value
from ..engine.seeds import generator
from .candidates import CAPITALS, CASING, FIRST, LAST, Candidates
from .record import Effect

N_TEXTS = 100
"""In so many texts a candidate is put in, and out of so many it is taken."""

UNTRIED = Effect(0, math.nan, math.nan, math.nan)
"""Of a candidate that there was nothing to try with, or nothing left to ask."""


@dataclass(frozen=True, kw_only=True)
class Interventions:
    """Candidates tried out on a model, in so many of the texts each."""

    model: Classifier
    data: Dataset
    candidates: Candidates
    seed: int
    n_texts: int = N_TEXTS

    def put_in(self, candidate: int, label: int, *, towards: bool) -> Effect:
        """Texts that do not have it, before and after they are given it; `towards` says which way
        its weight points."""
        kind, name = self.candidates.kinds[candidate], self._spelling(candidate)
        if kind != CASING and read_text(name).words != tuple(name.split(" ")):
            # its words were told apart in another way, and would be read as others
            return UNTRIED
        rng = generator(self.seed, "put in", kind, name)
        lacking = np.setdiff1d(np.arange(len(self.data)), self.candidates.texts_of(candidate))
        before, after = [], []
        planting, mark = _planting(kind, name)
        for i in rng.permutation(lacking)[: self.n_texts]:
            text = self.data.examples[int(i)].input
            free = np.zeros(text.n_features, dtype=np.bool_)
            edit, region = planting.put(text, mark, free, rng)
            if region.any():
                before.append(text)
                after.append(edit.text)
        return self._effect(before, after, label, towards)

    def taken_out(self, candidate: int, label: int, *, towards: bool) -> Effect:
        """Texts that have it, before and after all its words are deleted."""
        words, kind = self.candidates.words, self.candidates.kinds[candidate]
        rng = generator(self.seed, "taken out", kind, self.candidates.names[candidate])
        chosen = rng.permutation(self.candidates.texts_of(candidate))[: self.n_texts]
        hidden = np.zeros(len(words.form), dtype=np.bool_)
        hidden[self.candidates.places(candidate).ravel()] = True
        inputs, shown = [], []
        for i in chosen:
            start = words.starts[i]
            mask = ~hidden[start : start + words.lengths[i]]
            if mask.any():
                inputs.append(self.data.examples[int(i)].input)
                shown.append(np.stack([np.ones_like(mask), mask]))
        if kind == CASING:  # the words stay, written small
            without = [_small(t, ~rows[1]) for t, rows in zip(inputs, shown, strict=True)]
            return self._effect(without, inputs, label, towards)
        try:
            rows = masked_probabilities(self.model, inputs, shown, Hiding.DELETE)
        except BudgetSpent:
            return UNTRIED
        pairs = np.array(rows).reshape(-1, 2, len(self.data.labels))
        return self._compared(pairs[:, 1], pairs[:, 0], label, towards)

    def _spelling(self, candidate: int) -> str:
        """As it is mostly written: to a model that sees capitals, small ones are another word."""
        words, width = self.candidates.words, int(self.candidates.widths[candidate])
        name = self.candidates.names[candidate]
        written: Counter[str] = Counter()
        for at in self.candidates.occurrences(candidate).tolist():
            i = int(words.text[at])
            start = at - int(words.starts[i])
            written[" ".join(self.data.examples[i].input.words[start : start + width])] += 1
        return next((w for w, _ in written.most_common() if w.casefold() == name), name)

    def _effect(
        self, before: Sequence[Text], after: Sequence[Text], label: int, towards: bool
    ) -> Effect:
        try:
            answers = probabilities(self.model, [*before, *after])
        except BudgetSpent:
            return UNTRIED
        return self._compared(answers[: len(before)], answers[len(before) :], label, towards)

    def _compared(self, before: FloatArray, after: FloatArray, label: int, towards: bool) -> Effect:
        """How far answers move towards the label, in log-odds. (texts, labels) both"""
        if not len(before):
            return UNTRIED
        n, labels = len(before), self.data.labels
        moved = np.stack(
            [value(after, i, "log_odds") - value(before, i, "log_odds") for i in range(len(labels))]
        )  # (labels, texts)
        means = moved.mean(axis=1)
        errors = moved.std(axis=1, ddof=1) / math.sqrt(n) if n > 1 else np.zeros(len(labels))
        most = int(means.argmax())
        own = moved[label]
        return Effect(
            texts=n,
            mean=float(means[label]),
            same_way=float(np.mean(own > 0 if towards else own < 0)),
            flipped=float(np.mean(before.argmax(axis=1) != after.argmax(axis=1))),
            error=float(errors[label]),
            raised=labels[most] if n > 1 and means[most] > 1.96 * errors[most] else "",
        )


def _planting(kind: str, name: str) -> tuple[Any, str]:
    """The change that puts a candidate into a text, and the mark by which it knows it."""
    if kind == CASING:
        return changes.make("casing"), "upper" if name == CAPITALS else "title"
    if kind == LAST and not any(c.isalnum() for c in name):
        return changes.make("punctuation"), name
    place = {FIRST: "start", LAST: "end"}.get(kind, "random")
    return changes.make(f"insert(place={place})"), name


def _small(text: Text, where: BoolArray) -> Text:
    """The text with these words in small letters."""
    return respelt(text, {int(i): text.words[i].lower() for i in np.flatnonzero(where)}).text
