"""Asking a model: for whole inputs, and for inputs with features hidden."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np

from ..core.classifiers import Classifier, Maskable
from ..core.errors import ModelError
from ..core.inputs import BoolArray, FloatArray, Hiding, Input, IntArray
from .cache import cached_answers
from .call_counter import add_calls

FEATURES_HELD = 2**20
"""How many features the hidden inputs may have that are held at a time for models that read each:
a word takes a hundred bytes and more."""

LEAST_FEATURES = 2**9
"""Inputs count as this long at least: each takes some room of its own."""

CELLS_AT_ONCE = 2**26
"""How many flags (maskings times features) are held in memory at a time."""

Output = Literal["probability", "log_odds"]


def probabilities(model: Classifier, inputs: Sequence[Input]) -> FloatArray:
    """The model's answers, checked for shape and sense; equal texts are asked once."""
    add_calls(len(set(inputs)))
    return uncounted_probabilities(model, inputs)


def uncounted_probabilities(model: Classifier, inputs: Sequence[Input]) -> FloatArray:
    """The same where the questions were counted before."""

    def ask(places: list[int]) -> FloatArray:
        return checked(model, model.probabilities([inputs[i] for i in places]), len(places))

    return cached_answers(model, inputs, ask, len(model.labels))


@dataclass(frozen=True)
class LazyMasks:
    """Maskings that are made when they are needed: of a long text, all would not fit."""

    shape: tuple[int, int]
    make: Callable[[IntArray], BoolArray]
    """The maskings of these numbers. (rows,) → (rows, words)"""

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, rows: slice, /) -> BoolArray:
        return self.make(np.arange(self.shape[0])[rows])

    def part(self, rows: slice) -> LazyMasks:
        """Some of them, not made yet."""
        chosen = np.arange(self.shape[0])[rows]
        return LazyMasks((len(chosen), self.shape[1]), lambda places: self.make(chosen[places]))


Masks: TypeAlias = BoolArray | LazyMasks
"""Rows of flags, a flag per word: an array, or rows that are made when they are needed."""


def masked_probabilities(
    model: Classifier, inputs: Sequence[Input], shown: Sequence[Masks], how: Hiding
) -> list[FloatArray]:
    """Answers for every masking of every input; equal maskings are asked once.

    shown: per input (masks, words) → per input (masks, labels)
    """
    found: list[list[FloatArray]] = [[np.zeros((0, len(model.labels)))] for _ in inputs]
    for block in _blocks(shown):
        places = [i for i, _ in block]
        masks = [shown[i][rows] for i, rows in block]
        answers = _asked(model, [inputs[i] for i in places], masks, how)
        for i, rows in zip(places, answers, strict=True):
            found[i].append(rows)
    return [np.concatenate(parts) for parts in found]


def _blocks(shown: Sequence[Masks]) -> Iterator[list[tuple[int, slice]]]:
    """Which maskings of which inputs are asked together: all, unless they are too many to hold."""
    block: list[tuple[int, slice]] = []
    cells = 0
    for i, masks in enumerate(shown):
        count, words = masks.shape
        start = 0
        while start < count:
            room = max(1 if not block else 0, (CELLS_AT_ONCE - cells) // max(words, 1))
            if not room:
                yield block
                block, cells = [], 0
                continue
            stop = min(count, start + room)
            block.append((i, slice(start, stop)))
            cells += (stop - start) * words
            start = stop
    if block:
        yield block


def _asked(
    model: Classifier, inputs: Sequence[Input], shown: Sequence[BoolArray], how: Hiding
) -> list[FloatArray]:
    distinct, inverse = zip(*(distinct_rows(masks) for masks in shown), strict=True)
    if isinstance(model, Maskable):
        add_calls(sum(len(masks) for masks in distinct))
        found = model.masked_probabilities(inputs, distinct, how)
    else:
        found = _read_each(model, inputs, distinct, how)
    return [
        checked(model, answers, len(masks))[back]
        for answers, masks, back in zip(found, distinct, inverse, strict=True)
    ]


def _read_each(
    model: Classifier, inputs: Sequence[Input], shown: Sequence[BoolArray], how: Hiding
) -> list[FloatArray]:
    """The plain way, for any model: spell out each masking and have it read."""
    found: list[list[FloatArray]] = [[] for _ in inputs]
    texts: list[Input] = []
    owners: list[int] = []
    features = 0

    def ask() -> None:
        for owner, row in zip(owners, probabilities(model, texts), strict=True):
            found[owner].append(row)
        texts.clear()
        owners.clear()

    for i, (text, masks) in enumerate(zip(inputs, shown, strict=True)):
        for mask in masks:
            texts.append(text.keep(mask, how).readable())
            owners.append(i)
            features += max(text.n_features, LEAST_FEATURES)
            if features >= FEATURES_HELD:
                ask()
                features = 0
    if texts:
        ask()
    width = len(model.labels)
    return [np.array(rows).reshape(-1, width) for rows in found]


def distinct_rows(masks: BoolArray) -> tuple[BoolArray, IntArray]:
    """The different rows, in order of appearance, and where each row went."""
    if masks.shape[1] == 0:
        return masks[:1], np.zeros(len(masks), dtype=np.int64)
    packed = np.packbits(masks, axis=1)
    words = -(-packed.shape[1] // 8)
    padded = np.zeros((len(masks), 8 * words), dtype=np.uint8)
    padded[:, : packed.shape[1]] = packed
    # numbers sort many times faster than strings of bytes
    kind = np.dtype(np.uint64) if words == 1 else np.dtype((np.void, 8 * words))
    keys = padded.view(kind).ravel()
    _, first, inverse = np.unique(keys, return_index=True, return_inverse=True)
    if len(first) == len(masks):
        return masks, np.arange(len(masks))
    order = np.argsort(first, kind="stable")
    rank = np.empty_like(order)
    rank[order] = np.arange(len(order))
    return masks[first[order]], rank[inverse]


def checked(model: Classifier, answers: FloatArray, n: int) -> FloatArray:
    """The answers if they are probabilities for n texts, or a sentence that says what they are."""
    expected = (n, len(model.labels))
    found = np.asarray(answers, dtype=np.float64)
    if found.shape != expected:
        raise ModelError(
            f"expected {expected[0]} rows of {expected[1]} probabilities (labels "
            f"{', '.join(model.labels)}), the model answered with shape {found.shape}. "
            "Check its output and its labels"
        )
    if not np.isfinite(found).all():
        raise ModelError(
            "expected probabilities, the model answered NaN or infinity for "
            f"{int((~np.isfinite(found)).any(axis=1).sum())} of {n} texts. Check the model"
        )
    if n and (found.min() < -1e-3 or abs(found.sum(axis=1) - 1).max() > 1e-3):
        worst = int(np.argmax(abs(found.sum(axis=1) - 1)))
        raise ModelError(
            "expected probabilities between 0 and 1 that sum to 1, the model answered "
            f"{np.round(found[worst], 4).tolist()}. Apply a softmax or sigmoid first"
        )
    return found


def value(answers: FloatArray, target: int, output: Output) -> FloatArray:
    """The number that an explanation is about. (…, labels) → (…)"""
    p = answers[..., target]
    if output == "probability":
        return p
    tiny = np.finfo(np.float64).tiny
    others = answers.sum(axis=-1) - p  # not 1 - p, which loses all digits near 1
    found: FloatArray = np.log(np.maximum(p, tiny)) - np.log(np.maximum(others, tiny))
    return found
