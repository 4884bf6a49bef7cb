"""Maskings of a text per second, against plain forward passes of the same network."""

from __future__ import annotations

from typing import Any

import numpy as np

import setting
from setting import Row
from veracity.core.inputs import BoolArray, Hiding, IntArray, Text
from veracity.engine.inference import masked_probabilities
from veracity.models.vocabulary import UNKNOWN_ID

WORDS = 20


def _of_words(n: int, count: int) -> list[Text]:
    """Test sentences cut to one length."""
    long = [t for t in setting.sentences(2000) if t.n_features >= n]
    return [Text.of_words(t.words[:n]) for t in long[:count]]


def _drawn(n: int, samples: int, place: int) -> BoolArray:
    """What LIME draws: the number of hidden words uniform, then which."""
    rng = np.random.default_rng([setting.SEED, place])
    ranks = rng.random((samples, n)).argsort(axis=1).argsort(axis=1)
    return ranks >= rng.integers(1, n + 1, size=samples)[:, None]


def _rows(model: Any, text: Text, shown: BoolArray, how: Hiding) -> list[IntArray]:
    ids = np.array(model.vocabulary.ids(text.words))
    if how == Hiding.DELETE:
        return [ids[z] if z.any() else np.array([UNKNOWN_ID]) for z in shown]
    return list(np.where(shown, ids, UNKNOWN_ID))


def _cnn(quick: bool, how: Hiding, bar: float | None) -> list[dict[str, Any]]:
    model = setting.model("text_cnn")
    texts = _of_words(WORDS, 2 if quick else 10)
    samples = 500 if quick else 5000
    shown = [_drawn(WORDS, samples, i) for i in range(len(texts))]
    masked_probabilities(model, texts[:1], shown[:1], how)
    ours_s, ours = setting.timed(lambda: masked_probabilities(model, texts, shown, how), 3)
    rows = [r for text, z in zip(texts, shown, strict=True) for r in _rows(model, text, z, how)]
    setting.direct(model, rows[:128])
    peer_s, theirs = setting.timed(lambda: setting.direct(model, rows), 1 if quick else 2)
    n = len(rows)
    return [
        Row(
            f"masked samples, text CNN, {how.value}",
            "direct forward",
            ours_s,
            peer_s,
            setting.largest(ours, np.split(theirs, len(texts))),
            bar=bar,
            note=f"{n / ours_s:,.0f} against {n / peer_s:,.0f} samples/s",
            more={"sentences": len(texts), "samples": n},
        ).written()
    ]


def masked(quick: bool) -> list[dict[str, Any]]:
    return _cnn(quick, Hiding.MASK, None)


def deleted(quick: bool) -> list[dict[str, Any]]:
    return _cnn(quick, Hiding.DELETE, None)


def recurrent(quick: bool) -> list[dict[str, Any]]:
    """LIME as a whole, fit included, against the forward passes alone."""
    found = []
    samples = 500 if quick else 5000
    for name, bar in (("lstm", 3.0), ("attention_lstm", None)):
        model = setting.model(name)
        texts = setting.sentences(2 if quick else 10)
        targets = setting.predicted(model, texts)
        spec = setting.LIME.format(samples=samples, bow=False)
        setting.explain(model, texts[:1], targets[:1], spec)
        ours_s, _ = setting.timed(lambda: setting.explain(model, texts, targets, spec))  # noqa: B023
        shown = [_drawn(t.n_features, samples, i) for i, t in enumerate(texts)]
        rows = [_rows(model, t, z, Hiding.MASK) for t, z in zip(texts, shown, strict=True)]
        setting.direct(model, rows[0][:256])
        peer_s, theirs = setting.timed(lambda: [setting.direct(model, r) for r in rows])  # noqa: B023
        ours = masked_probabilities(model, texts, shown, Hiding.MASK)
        n = samples * len(texts)
        found.append(
            Row(
                f"LIME {samples} samples, {name}",
                "batched forward",
                ours_s,
                peer_s,
                setting.largest(ours, theirs),
                bar=bar,
                note=f"{n / ours_s:,.0f} against {n / peer_s:,.0f} samples/s",
                more={"sentences": len(texts), "samples": n},
            ).written()
        )
    return found


CASES = {
    "masked samples, masked": masked,
    "masked samples, deleted": deleted,
    "LIME on recurrent networks": recurrent,
}
