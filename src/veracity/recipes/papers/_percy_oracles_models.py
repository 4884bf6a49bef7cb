"""Classifiers of which it is known how far the clause decides that ought to, and sentences for
them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
import torch
from torch import Tensor

from ...changes.structure import DOMINANT, OTHER, Structure
from ...core.classifiers import Embedded
from ...core.examples import Dataset, Example
from ...core.inputs import Alignment, FloatArray, Text
from ...data.lexicon import own_lexicon
from ...engine.seeds import generator
from ...rules import rules_named

LABELS = ("negative", "positive")
GAIN = 1.5
"""Log-odds that a word of weight 1 adds."""

STRONG = 0.7
"""A word of such a weight, for or against, is one of sentiment."""

SEEN, MOST = 3, 2.0
"""Words that are seen less often weigh nothing; none weighs more than that."""

FILLING = (
    *("the", "a", "this", "that", "film", "plot", "cast", "scene", "story", "script", "camera"),
    *("music", "actor", "ending", "it", "there", "here", "with", "about", "from", "some", "of"),
    *("in", "and", "also", "again", "then", "director", "hour", "part"),
)


@dataclass(frozen=True)
class ClauseOracle:
    """Adds up words that praise or blame: with this share of its answer those of the clause that
    ought to decide, with the rest those of the whole text.

    Where there is not exactly one keyword, all words count. Of each word it is known how much it
    praises (above 0) or blames, and whether it is a keyword of either kind: these three numbers are
    its embedding, so that gradients tell exactly what is due to it.
    """

    obedience: float
    rules: tuple[str, ...]
    weights: Mapping[str, float] = field(default_factory=own_lexicon)
    labels: tuple[str, ...] = LABELS

    def __post_init__(self) -> None:
        if not 0 <= self.obedience <= 1:
            raise ValueError(f"expected obedience from 0 to 1, got {self.obedience}")

    @cached_property
    def _keywords(self) -> dict[str, int]:
        """The side on which the clause stands that decides: 1 behind the keyword, 2 before it."""
        return {
            word: 1 if rule.dominant == "after" else 2
            for rule in rules_named(self.rules)
            for word in rule.keywords
        }

    def _rows(self, text: Text) -> FloatArray:
        rows = np.zeros((max(1, text.n_features), 3))
        for i, word in enumerate(w.lower() for w in text.words):
            if word in self._keywords:
                rows[i, self._keywords[word]] = 1.0
            else:
                rows[i, 0] = self.weights.get(word, 0)
        return rows

    def embed(self, inputs: Sequence[Text]) -> Embedded:
        rows = [self._rows(text) for text in inputs]
        longest = max(map(len, rows))
        values = np.stack([np.pad(r, ((0, longest - len(r)), (0, 0))) for r in rows])
        lengths = torch.tensor([len(r) for r in rows])
        own = torch.tensor([text.n_features for text in inputs])
        places = torch.arange(longest)
        return Embedded(
            torch.from_numpy(values),
            places < lengths[:, None],
            places < own[:, None],
            tuple(Alignment.identity(text.n_features) for text in inputs),
        )

    def logits(self, embedded: Embedded) -> Tensor:
        """log p(label). → (batch, labels)"""
        praise, after, before = embedded.values.unbind(dim=2)  # (batch, words)
        behind = (after > 0).long().cumsum(dim=1) > 0
        ahead = (before > 0).long().cumsum(dim=1) == 0
        one = ((after > 0) | (before > 0)).sum(dim=1, keepdim=True) == 1
        decides = torch.where((after > 0).any(dim=1, keepdim=True), behind, ahead) | ~one
        share = self.obedience
        p = share * torch.sigmoid(GAIN * (praise * decides).sum(dim=1))
        p = p + (1 - share) * torch.sigmoid(GAIN * praise.sum(dim=1))
        return torch.log(torch.stack([1 - p, p], dim=1))

    def probabilities(self, inputs: Sequence[Text]) -> FloatArray:
        if not inputs:
            return np.zeros((0, len(self.labels)))
        with torch.no_grad():
            found: FloatArray = self.logits(self.embed(inputs)).exp().numpy()
        found /= found.sum(axis=1, keepdims=True)
        return found


# ---- sentences ------------------------------------------------------------------------------


def made_sentences(
    n: int, lengths: Sequence[int], most: int, rules: Sequence[str], *, seed: int
) -> Dataset:
    """Two clauses of drawn lengths around a keyword, each with one to `most` words of sentiment of
    one kind, elsewhere words that say nothing; in half of the sentences the clauses contradict each
    other. The label is that of the clause that ought to decide."""
    rng = generator(seed, "made sentences")
    stock: dict[int, list[str]] = {1: [], -1: []}
    for word, sign in own_lexicon().items():
        stock[sign].append(word)
    keywords = [(word, rule.dominant) for rule in rules_named(rules) for word in rule.keywords]
    examples = []
    for i in range(n):
        sign = 1 if i % 2 else -1
        other = -sign if i // 2 % 2 else sign
        keyword, side = keywords[i // 4 % len(keywords)]
        clauses = [
            _clause(int(rng.choice(lengths)), int(rng.integers(1, most + 1)), stock[s], rng)
            for s in (sign, other)
        ]
        ordered = clauses if side == "before" else clauses[::-1]
        text = Text.of_words([*ordered[0], keyword, *ordered[1]])
        examples.append(Example(f"made-{i}", text, int(sign > 0)))
    data = Dataset("made sentences", LABELS, tuple(examples))
    return Structure(tuple(rules), alone=True).changed(data, seed=seed)


def _clause(length: int, count: int, stock: Sequence[str], rng: np.random.Generator) -> list[str]:
    words = [str(w) for w in rng.choice(FILLING, size=length)]
    for place in rng.permutation(length)[:count]:
        words[place] = str(stock[int(rng.integers(len(stock)))])
    return words


def written_sentences(data: Dataset, rules: Sequence[str], weights: Mapping[str, float]) -> Dataset:
    """Sentences that people wrote, with words that weigh something in both clauses. The label
    becomes what the clause that ought to decide says by them: only so is it known who is right."""
    found = Structure(tuple(rules), alone=True).changed(data, seed=0)
    kept = []
    for example in found:
        own, other = (praise(example, side, weights) for side in (DOMINANT, OTHER))
        if own.sum() and other.any():
            kept.append(replace(example, label=int(own.sum() > 0)))
    return replace(found, labels=LABELS, own_labels=(), examples=tuple(kept))


def word_odds(data: Dataset) -> dict[str, float]:
    """How much more likely each word is in texts of the second label than in those of the first, as
    a logarithm: what a bag of words learns."""
    found: dict[str, FloatArray] = {}
    totals = np.ones(2)
    for example in data:
        for word in {w.lower() for w in example.input.words}:
            found.setdefault(word, np.ones(2))[example.label] += 1
        totals[example.label] += 1
    return {
        word: float(np.clip(np.log(n[1] / totals[1]) - np.log(n[0] / totals[0]), -MOST, MOST))
        for word, n in found.items()
        if n.sum() - 2 >= SEEN
    }


def praise(example: Example, side: str, weights: Mapping[str, float]) -> FloatArray:
    """What each word of a clause says. → (words of the clause,)"""
    words = np.array([weights.get(w.lower(), 0) for w in example.input.words], dtype=float)
    found: FloatArray = words[example.truths[side][0]]
    return found


def traits(example: Example, weights: Mapping[str, float]) -> dict[str, int]:
    """What may bend a score: how long clauses are, and how many words of sentiment they hold."""
    own, other = (praise(example, side, weights) for side in (DOMINANT, OTHER))
    return {
        "dominant_words": len(own),
        "other_words": len(other),
        "dominant_sentiment": int((np.abs(own) >= STRONG).sum()),
        "other_sentiment": int((np.abs(other) >= STRONG).sum()),
        "contradict": int(np.sign(own.sum()) != np.sign(other.sum())),
    }
