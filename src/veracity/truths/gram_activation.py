"""Words whose n-grams a convolution's filters answer to, by label (WGA, definitions 6.5)."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Literal

import numpy as np

from ..core.classifiers import Classifier
from ..core.errors import ModelError
from ..core.examples import Dataset
from ..core.inputs import BoolArray, FloatArray, Text
from ..core.truths import Truth, WordSets, spelt
from ..engine.batches import by_length
from ..engine.gradients import evaluating
from ..engine.hits import Hits, filter_hits
from ..engine.inference import probabilities

if TYPE_CHECKING:
    from ..models.neural import ConvolutionalText
    from ..models.windows import Filters

NOTHING = 1e-6
"""A match smaller than this cannot be shared out among its words."""

ROUNDING = 1e-9

AT_ONCE = 512
"""So many texts are looked at together."""

Margin = Literal["all", "any"]
Scale = Literal["document", "none", "global_max"]
Which = Literal["active", "all"]


@dataclass(frozen=True)
class GramActivation(Truth):
    """Words by the gradients and matches of the n-grams around them, in a convolution of ours."""

    alpha: float = 0.3
    """The least score of a word in the set of a label."""
    beta: float = 0.25
    """By how much the word must score less for other labels."""
    margin: Margin = "all"
    """Whether a word must score less for all other labels, or for any."""
    scale: Scale = "document"
    """What scores are divided by, negative ones set to 0 before: the largest of the document or of
    all, or nothing."""
    filters: Which = "active"
    """Which filters share out an n-gram: those that answer to it, or all. A filter that hardly
    matches divides by almost nothing, so that rounding decides what all of them say."""
    mean_grams: bool = False
    """Whether a word's score is the mean over the n-grams around it, not their sum."""
    sum_filters: bool = False
    """Whether it is the sum over filters, not their mean."""
    cased: bool = False

    def expected_wait(self, texts: int) -> str:
        return f"about {max(1, texts // 500)} s on a quiet core if texts are short"

    def learnt(self, model: Classifier | None, train: Dataset, *, seed: int) -> WordSets:
        started = time.perf_counter()
        scores, documents = self.scores(model, train)
        table = np.array(list(scores.values())).reshape(len(scores), len(train.labels))
        inside = decisive(table, alpha=self.alpha, beta=self.beta, margin=self.margin)
        words = list(scores)
        sets = tuple(
            frozenset(words[i] for i in np.flatnonzero(inside[:, c]))
            for c in range(len(train.labels))
        )
        return WordSets(train.labels, sets, scores, self.cased).with_facts(
            train,
            source=self.spec,
            seconds=time.perf_counter() - started,
            vocabulary=len(scores),
            documents=documents,
            dropped=len(train) - documents,
        )

    def scores(
        self, model: Classifier | None, train: Dataset
    ) -> tuple[dict[str, tuple[float, ...]], int]:
        """RS: a word's mean score over all its places in documents of each label that the model
        gets right, 0 where it has none; and how many documents those are."""
        network = convolution(model, self.spec)
        answers = probabilities(network, [e.input for e in train]).argmax(axis=1)
        right = [
            e
            for e, answer in zip(train, answers, strict=True)
            if e.label == answer and e.input.n_features
        ]
        maps = self.maps(network, [e.input for e in right], [e.label for e in right])
        place: dict[str, int] = {}
        seen: list[int] = []
        labels = len(train.labels)
        for e, found in zip(right, maps, strict=True):
            # words behind what the network reads have no score
            for word in e.input.words[: len(found)]:
                row = place.setdefault(spelt(word, self.cased), len(place))
                seen.append(row * labels + e.label)
        where = np.array(seen, dtype=np.int64)
        size = len(place) * labels
        count = np.bincount(where, minlength=size)
        total = np.bincount(where, np.concatenate([np.zeros(0), *maps]), minlength=size)
        means = (total / np.maximum(count, 1)).reshape(-1, labels)
        ordered = {word: tuple(means[place[word]].tolist()) for word in sorted(place)}
        return ordered, len(right)

    def maps(
        self, network: ConvolutionalText, inputs: Sequence[Text], targets: Sequence[int]
    ) -> list[FloatArray]:
        """A score per word that is read of every text, on the scale asked for."""
        scored = partial(
            word_scores,
            which=self.filters,
            mean_grams=self.mean_grams,
            sum_filters=self.sum_filters,
        )
        found = [
            np.mean([scored(*width) for width in widths], axis=0)
            for widths in taken_apart(network, inputs, targets)
        ]
        if self.scale == "none":
            return found
        positive = [np.maximum(scores, 0.0) for scores in found]
        largest = [float(scores.max(initial=0.0)) for scores in positive]
        if self.scale == "global_max":
            largest = [max(largest, default=0.0)] * len(found)
        return [
            scores / top if top > 0 else scores
            for scores, top in zip(positive, largest, strict=True)
        ]


def convolution(model: Classifier | None, what: str) -> ConvolutionalText:
    """A model whose filters can be looked into, or a sentence that says how to get one."""
    from ..models.neural import ConvolutionalText

    if isinstance(model, ConvolutionalText):
        return model
    seen = "got none" if model is None else f"got {type(model).__name__}"
    raise ModelError(
        f"{what} shares matches out by the filters of a convolution that was trained here; {seen}. "
        "Train one with `veracity train idc_cnn DATA`"
    )


def decisive(
    scores: FloatArray, *, alpha: float = 0.3, beta: float = 0.25, margin: Margin = "all"
) -> BoolArray:
    """Which words are in the set of which label. (words, labels) → (words, labels) bool"""
    lead = scores[:, :, None] - scores[:, None, :] >= beta - ROUNDING  # (words, label, other)
    itself = np.eye(scores.shape[1], dtype=np.bool_)
    ahead = (lead | itself).all(axis=2) if margin == "all" else (lead & ~itself).any(axis=2)
    return ahead & (scores >= alpha - ROUNDING)


def word_scores(
    products: FloatArray,
    values: FloatArray,
    gradient: FloatArray,
    before: int,
    *,
    which: Which = "active",
    mean_grams: bool = False,
    sum_filters: bool = False,
) -> FloatArray:
    """The activation of each n-gram, shared out among its words by what each adds to the match.

    products (words, slots, filters), values and gradient (rows, filters) → (words,)
    """
    n, width, _ = products.shape
    strength = np.maximum(gradient.max(axis=1) * values.sum(axis=1), 0.0)  # (rows,)
    grams = np.flatnonzero(strength > 0)
    rows = grams[:, None] - before + np.arange(width)  # (grams, slots): words, or outside
    inside = (rows >= 0) & (rows < n)
    parts = products[np.where(inside, rows, 0), np.arange(width)]  # (grams, slots, filters)
    parts = np.where(inside[:, :, None], parts, 0.0)
    match = parts.sum(axis=1)  # (grams, filters), no bias and no ReLU
    sharing = np.ones(match.shape, dtype=np.bool_) if which == "all" else values[grams] > 0
    shared = sharing & (np.abs(match) >= NOTHING)
    factor = strength[grams, None] / np.where(shared, match, 1.0) * shared
    if not sum_filters:
        factor /= np.maximum(sharing.sum(axis=1, keepdims=True), 1)
    shares = (parts * factor[:, None, :]).sum(axis=2)  # (grams, slots)
    scores = np.zeros(n)
    np.add.at(scores, rows[inside], shares[inside])
    if mean_grams:
        # n-grams that cover a word, those without activation too
        slots = np.arange(n)[:, None] + before - np.arange(width)
        scores /= np.maximum(((slots >= 0) & (slots < len(values))).sum(axis=1), 1)
    return scores


def taken_apart(
    network: ConvolutionalText, inputs: Sequence[Text], targets: Sequence[int]
) -> Iterator[list[tuple[FloatArray, FloatArray, FloatArray, int]]]:
    """Per text and width what `word_scores` asks for: products, matches, gradients, rows before."""
    import torch

    filters = [_Slots.of(f) for f in network.filters]
    for first in range(0, len(inputs), AT_ONCE):
        texts = inputs[first : first + AT_ONCE]
        hits = filter_hits(network, texts, targets[first : first + AT_ONCE])
        embedded: dict[int, FloatArray] = {}
        for batch in by_length([t.n_features for t in texts]):
            with torch.no_grad(), evaluating(network):
                values = network.embed([texts[i] for i in batch]).values.double().cpu().numpy()
            for i, rows in zip(batch, values, strict=True):
                embedded[i] = rows[: hits[i].n_words]
        for i in range(len(texts)):
            ends = np.cumsum([0, *(len(f.bias) for f in filters)])
            yield [
                f.applied(embedded[i], hits[i], slice(start, end))
                for f, start, end in zip(filters, ends[:-1], ends[1:], strict=True)
            ]


@dataclass(frozen=True)
class _Slots:
    """The filters of one width in double precision, for one product with all words."""

    weight: FloatArray  # (size, slots * filters)
    bias: FloatArray  # (filters,)
    filters: Filters

    @classmethod
    def of(cls, filters: Filters) -> _Slots:
        weight = filters.weight.double().cpu().numpy()  # (filters, size, slots)
        flat = weight.transpose(1, 2, 0).reshape(weight.shape[1], -1)
        return cls(flat, filters.bias.double().cpu().numpy(), filters)

    def applied(
        self, words: FloatArray, hits: Hits, own: slice
    ) -> tuple[FloatArray, FloatArray, FloatArray, int]:
        """One text: max pooling passes the gradient to the row that won, the first of equals."""
        f, count = self.filters, len(self.bias)
        products = (words @ self.weight).reshape(len(words), f.width, count)
        rows = f.rows(hits.n_positions)
        match = np.tile(self.bias, (rows, 1))
        for slot in range(f.width):
            at = np.arange(rows) - f.before + slot
            inside = (at >= 0) & (at < len(words))
            match[inside] += products[at[inside], slot]
        gradient = np.zeros((rows, count))
        gradient[hits.starts[own] + f.before, np.arange(count)] = hits.gradient[own]
        return products, np.maximum(match, 0.0), gradient, f.before
