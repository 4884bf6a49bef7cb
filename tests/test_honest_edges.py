"""Where a method has nothing to say, or might say it by accident."""

from __future__ import annotations

import json
import math
import weakref
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

import veracity
from conftest import words
from veracity.core.errors import DataError, PluginError
from veracity.core.files import plain
from veracity.core.inputs import FloatArray, Hiding
from veracity.engine.ties import first_best
from veracity.explainers import explainers
from veracity.models.architectures import architectures
from veracity.models.prefixes import readings

NEIGHBOUR = "one of the many longer texts that may stand beside it in a batch"
TIED = ("good " * 10, "这部电影非常好看，但是演员很差。", "zyx " * 6)
"""The same n-gram again and again: which place a filter chose is for rounding to say."""


@pytest.mark.parametrize("text", TIED)
@pytest.mark.parametrize(
    "method",
    [
        "gradient",
        "input_x_gradient",
        "integrated_gradients(steps=200, output=logit)",
        "integrated_gradients(gap=0.001)",
        "smooth_grad(samples=4)",
        "grad_cam_text",
        "lrp",
        "deep_lift",
    ],
)
def test_equal_ngrams_are_explained_alike_in_any_company(cnn: Any, method: str, text: str) -> None:
    (alone,) = veracity.explain(cnn, [text], method)
    together, _ = veracity.explain(cnn, [text, NEIGHBOUR], method)
    size = np.abs(alone.scores).max()
    np.testing.assert_allclose(alone.scores, together.scores, atol=1e-5 * size)


def test_the_first_of_equal_places_wins() -> None:
    near = torch.tensor([[1.0, 3.0 - 1e-6, 3.0, 2.0]], dtype=torch.float64)
    assert first_best(near, 1).tolist() == [[1]]
    assert first_best(near, 1, rounding=1e-12).tolist() == [[2]]
    hidden = torch.tensor([[-torch.inf, -2.0, -torch.inf]])
    assert first_best(hidden, 1).tolist() == [[1]]


def nothing_matters(texts: list[str]) -> FloatArray:
    return np.full((len(texts), 3), 1 / 3)


@pytest.mark.parametrize(
    "method",
    [
        "lime(samples=100)",
        "lime(samples=100, questions=30)",
        "shap(form=gaussian, samples=40)",
        "shap(samples=60)",
        "occlusion",
    ],
)
def test_a_model_that_reads_nothing_gets_no_colour(method: str) -> None:
    (found,) = veracity.explain(nothing_matters, ["the plot is fine but the end is awful"], method)
    assert not found.scores.any()
    assert not found.evidence(3) and not found.counter_evidence(3)
    assert "stability" not in found.notes and "r2" not in found.notes


def test_a_budget_of_questions_holds_on_long_texts(cnn: Any) -> None:
    text = " ".join(f"word{i}" for i in range(90))
    for budget in (4, 50, 300):
        (found,) = veracity.explain(cnn, [text], f"lime(questions={budget})")
        assert found.notes["questions"] <= budget


def test_targets_go_by_name_or_number(cnn: Any) -> None:
    by_name, by_number = (
        veracity.explain(cnn, ["a dull film"], "occlusion", target=target)[0]
        for target in (cnn.labels[0], 0)
    )
    assert by_name.target == by_number.target == 0
    for bad in ("neither", "gold", 1.0, None, 7):
        with pytest.raises(DataError, match=r"name,? or"):
            veracity.explain(cnn, ["a dull film"], "occlusion", target=bad)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "spec",
    [
        "lime(features=0)",
        "lime(width=0)",
        "lime(alpha=-5)",
        "smooth_grad(noise=1e999)",
        "lrp(epsilon=1e999)",
    ],
)
def test_settings_without_meaning_are_refused(spec: str) -> None:
    with pytest.raises(PluginError, match="expected"):
        explainers.make(spec)


@pytest.mark.parametrize(
    "spec",
    ["text_cnn(size=0)", "text_cnn(dropout=2)", "lstm(hidden=0)", "attention_lstm(attention=-1)"],
)
def test_sizes_without_meaning_are_refused(spec: str) -> None:
    with pytest.raises(PluginError, match="expected"):
        architectures.make(spec)


def test_one_number_has_one_identity() -> None:
    assert explainers.make("lime(width=30)").spec == explainers.make("lime(width=30.0)").spec
    assert explainers.make("lime(samples=30)").spec == "lime(samples=30)"


def test_json_knows_no_infinity() -> None:
    said = json.dumps(plain({"error": math.inf, "gap": [math.nan, 1.5]}), allow_nan=False)
    assert json.loads(said) == {"error": None, "gap": [None, 1.5]}


def test_reading_maskings_keeps_only_the_last_states(lstm: Any, monkeypatch: Any) -> None:
    alive: dict[int, weakref.ref[Any]] = {}
    most = 0

    def watched(*given: Any, **named: Any) -> Iterator[Any]:
        nonlocal most
        for reading in readings(*given, **named):
            held = replace(reading)
            alive[reading.word] = weakref.ref(held)
            most = max(most, sum(ref() is not None for ref in alive.values()))
            yield held

    monkeypatch.setattr("veracity.models.architectures.lstm.readings", watched)
    shown = np.random.default_rng(0).random((80, 30)) < 0.5
    lstm.shortened(words("w " * 30), shown, Hiding.MASK)
    assert 0 < most <= 4  # of thirty words
