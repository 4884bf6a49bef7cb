"""Long texts: what is asked about them is asked in pieces that fit, and what cannot fit is told."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from veracity.core.errors import DataError
from veracity.core.inputs import BoolArray, FloatArray, Hiding, Text
from veracity.engine import cache, inference
from veracity.engine.cache import caching
from veracity.engine.inference import masked_probabilities
from veracity.engine.seeds import generator
from veracity.explainers import explainers
from veracity.explainers.occlusion import all_but_one
from veracity.models.adapters.callables import CallableClassifier


class Watched:
    """Answers by the share of words shown, and notes how much it was given at once."""

    labels = ("no", "yes")

    def __init__(self) -> None:
        self.cells: list[int] = []
        self.texts: list[int] = []

    def probabilities(self, inputs: Sequence[Text]) -> FloatArray:
        self.texts.append(sum(t.n_features for t in inputs))
        p = np.array([t.n_features / 1000 for t in inputs])
        return np.stack([1 - p, p], axis=1)

    def answers(self, masks: BoolArray) -> FloatArray:
        weighed = np.ascontiguousarray(masks) * np.linspace(0, 1 / masks.shape[1], masks.shape[1])
        p = weighed.sum(axis=1)
        return np.stack([1 - p, p], axis=1)


class Masking(Watched):
    def masked_probabilities(
        self, inputs: Sequence[Text], shown: Sequence[BoolArray], how: Hiding
    ) -> list[FloatArray]:
        self.cells.append(sum(masks.size for masks in shown))
        return [self.answers(masks) for masks in shown]


def text(n: int) -> Text:
    return Text.of_words([f"w{i}" for i in range(n)])


def explained(model: Any, spec: str, texts: list[Text]) -> list[FloatArray]:
    rngs = [generator(0, spec, t.text) for t in texts]
    made = explainers.make(spec).explain(model, texts, [1] * len(texts), rngs)
    return [a.scores for a in made]


SPECS = ("occlusion", "lime(samples=60)", "shap(samples=60)", "search(exact=2,questions=40)")
PERMUTED = "shap(samples=60, form=permutation)"


@pytest.mark.parametrize("spec", [*SPECS, PERMUTED, "lime(samples=60, questions=50)"])
def test_blocks_change_no_answer(monkeypatch: pytest.MonkeyPatch, spec: str) -> None:
    texts = [text(n) for n in (3, 30, 1, 17)]
    whole = explained(Masking(), spec, texts)
    monkeypatch.setattr(inference, "CELLS_AT_ONCE", 100)
    model = Masking()
    for before, after in zip(whole, explained(model, spec, texts), strict=True):
        np.testing.assert_array_equal(before, after)
    assert len(model.cells) > 5
    assert max(model.cells) <= 100


@pytest.mark.parametrize("spec", ["occlusion", PERMUTED, "search(beam=1, questions=9)"])
def test_a_long_text_is_never_masked_all_at_once(
    monkeypatch: pytest.MonkeyPatch, spec: str
) -> None:
    monkeypatch.setattr(inference, "CELLS_AT_ONCE", 2**16)
    model = Masking()
    explained(model, spec, [text(900)])
    assert sum(model.cells) >= 900 * 900
    assert max(model.cells) <= 2**16


def test_few_words_are_spelt_out_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inference, "FEATURES_HELD", 1000)
    monkeypatch.setattr(inference, "LEAST_FEATURES", 1)
    model = Watched()
    (found,) = masked_probabilities(model, [text(90)], [all_but_one(np.arange(90))], Hiding.DELETE)
    np.testing.assert_allclose(found[:, 1], [0.09, *[0.089] * 90])
    assert max(model.texts) <= 1090


def test_the_memory_is_bounded_by_words(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cache, "MOST_FEATURES", 1000)
    model = CallableClassifier(lambda texts: [[0.5, 0.5] for _ in texts], ["a", "b"])
    with caching() as kept:
        masked_probabilities(model, [text(90)], [all_but_one(np.arange(90))], Hiding.DELETE)
        assert 900 < sum(t.n_features for _, t in kept.answers) == kept.features <= 1000  # type: ignore[attr-defined]


@pytest.mark.parametrize("spec", ["lime", "shap", "shap(form=gaussian)", "lime(questions=50)"])
def test_methods_that_cannot_do_long_texts_say_so(spec: str) -> None:
    with pytest.raises(DataError, match="expected at most 5,000 words, got 60,000"):
        explained(Masking(), spec, [text(60_000)])
