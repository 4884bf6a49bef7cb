"""Asking a model: for whole texts, and for texts with words hidden."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np

from ..core.classifiers import Classifier, Maskable
from ..core.errors import ModelError
from ..core.inputs import MASK_WORD, BoolArray, FloatArray, Hiding, IntArray, Text
from .memory import recalled
from .tally import asked

TEXTS_AT_ONCE = 2048
"""How many hidden texts are held in memory at a time for models that read strings."""

Output = Literal["probability", "log_odds"]

UNKNOWN = Text.of_words([MASK_WORD])
"""What is read when nothing is left (SPEC 0.7)."""


def probabilities(model: Classifier, inputs: Sequence[Text]) -> FloatArray:
    """The model's answers, checked for shape and sense; equal texts are asked once."""
    if not inputs:
        return np.zeros((0, len(model.labels)))
    asked(len(set(inputs)))

    def ask(places: list[int]) -> FloatArray:
        return checked(model, model.probabilities([inputs[i] for i in places]), len(places))

    return recalled(model, inputs, ask, len(model.labels))


def masked_probabilities(
    model: Classifier, inputs: Sequence[Text], shown: Sequence[BoolArray], how: Hiding
) -> list[FloatArray]:
    """Answers for every masking of every input; equal maskings are asked once.

    shown: per input (masks, words) → per input (masks, labels)
    """
    if not inputs:
        return []
    distinct, inverse = zip(*(_distinct(masks) for masks in shown), strict=True)
    if isinstance(model, Maskable):
        asked(sum(len(masks) for masks in distinct))
        found = model.masked_probabilities(inputs, distinct, how)
    else:
        found = _read_each(model, inputs, distinct, how)
    return [
        checked(model, answers, len(masks))[back]
        for answers, masks, back in zip(found, distinct, inverse, strict=True)
    ]


def _read_each(
    model: Classifier, inputs: Sequence[Text], shown: Sequence[BoolArray], how: Hiding
) -> list[FloatArray]:
    """The plain way, for any model: spell out each masking and have it read."""
    found: list[list[FloatArray]] = [[] for _ in inputs]
    texts: list[Text] = []
    owners: list[int] = []

    def ask() -> None:
        for owner, row in zip(owners, probabilities(model, texts), strict=True):
            found[owner].append(row)
        texts.clear()
        owners.clear()

    for i, (text, masks) in enumerate(zip(inputs, shown, strict=True)):
        for mask in masks:
            hidden = text.keep(mask, how)
            texts.append(hidden if hidden.text.strip() else UNKNOWN)
            owners.append(i)
            if len(texts) == TEXTS_AT_ONCE:
                ask()
    if texts:
        ask()
    width = len(model.labels)
    return [np.array(rows).reshape(-1, width) for rows in found]


def _distinct(masks: BoolArray) -> tuple[BoolArray, IntArray]:
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
