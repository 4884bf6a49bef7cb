"""Explanations word by word: what happens when words are taken away, by hand."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from conftest import WordWeights, words
from made_cases import case
from veracity.auditing.audit import audit
from veracity.core.examples import Dataset, Example
from veracity.core.inputs import MASK_WORD, UNKNOWN, FloatArray, Text
from veracity.core.metrics import Row
from veracity.metrics import metrics
from veracity.metrics.deletion import rises
from veracity.reports.charts import chart
from veracity.reports.html import build_report
from veracity.results.curves import deletion_figures
from veracity.results.findings import Figure, Points

# ---- deletion -------------------------------------------------------------------------------


class Answers:
    """Says what it is told to say of each text."""

    labels = ("negative", "positive")

    def __init__(self, known: dict[str, float]) -> None:
        self.known = known
        self.asked: list[str] = []

    def probabilities(self, inputs: Sequence[Text]) -> FloatArray:
        self.asked += [t.text for t in inputs]
        p = np.array([self.known[t.text] for t in inputs])
        return np.stack([1 - p, p], axis=1)


def deleted(model: Any, text: str, scores: Sequence[float], spec: str = "", label: int = 1) -> Row:
    one = case(text, scores)
    whole = model.probabilities([one.attribution.input])[0]
    asked = replace(
        one, model=model, probabilities=whole, example=replace(one.example, label=label)
    )
    return metrics.make(f"deletion({spec})").score([asked])[0]


def test_ex_5_18_increase_in_confidence() -> None:
    found = [rises(before, after) for before, after in ((0.8, 0.85), (0.6, 0.5))]
    assert np.mean(found) == pytest.approx(0.5)
    model = Answers(
        {"a b": 0.8, "b": 0.85, "a": 0.2, UNKNOWN.text: 0.5, "c d": 0.6, "d": 0.5, "c": 0.7}
    )
    rows = [deleted(model, "a b", [1, 2]), deleted(model, "c d", [1, 2])]
    assert metrics.make("deletion").summary(rows)["rise"] == pytest.approx(0.5)
    assert not rises(0.6, 0.6 + 1e-9)


def test_curves_by_hand() -> None:
    # importance: c, a, b
    answers = {"a b c": 0.9, "a b": 0.6, "b": 0.4, "c": 0.7, "a c": 0.8, UNKNOWN.text: 0.5}
    model = Answers(answers)
    row = deleted(model, "a b c", [2, 1, 3], "counts=(1, 2, 5)")
    # trapezoids of width 1/3: 0.9 0.6 0.4 0.5 while words go, 0.5 0.7 0.8 0.9 while they come
    assert row["deletion_area"] == pytest.approx((0.45 + 0.6 + 0.4 + 0.25) / 3)
    assert row["insertion_area"] == pytest.approx((0.25 + 0.7 + 0.8 + 0.45) / 3)
    assert row["rise"] == 0.0  # without b: 0.8
    assert [row[f"confidence_without_{k}"] for k in (1, 2, 5)] == pytest.approx([0.6, 0.4, 0.5])
    assert [row[f"accuracy_without_{k}"] for k in (1, 2)] == [1.0, 0.0]
    assert deleted(model, "a b c", [2, 1, 3], label=0)["accuracy_without_2"] == 1.0
    # each text once, the whole one when it was predicted
    model = Answers(answers)
    deleted(model, "a b c", [2, 1, 3], "counts=(1, 2, 5)")
    assert sorted(model.asked) == sorted(answers)


def test_a_right_order_falls_faster_and_rises_sooner(bag: WordWeights) -> None:
    text = "the great film was fine but also dull in parts here and there or so"
    weights = [bag.weights.get(w, 0.0) for w in text.split()]
    right, wrong = deleted(bag, text, weights), deleted(bag, text, [-w for w in weights])
    assert right["deletion_area"] < wrong["deletion_area"]
    assert right["insertion_area"] > wrong["insertion_area"]
    assert (right["rise"], wrong["rise"]) == (1.0, 0.0)


def test_long_texts_are_cut_into_equal_steps() -> None:
    model = WordWeights({f"w{i}": 0.05 for i in range(40)})
    text = " ".join(f"w{i}" for i in range(40))
    exact = deleted(model, text, range(40), "steps=40")
    model.texts_read = 0
    coarse = deleted(model, text, range(40), "counts=(4,), steps=10, least=0.1")
    # whole, ten while words go and nine while they come, of which one is the end of the ranking
    assert model.texts_read == 1 + 10 + 9
    assert coarse["deletion_area"] == pytest.approx(exact["deletion_area"], abs=2e-3)
    assert coarse["insertion_area"] == pytest.approx(exact["insertion_area"], abs=2e-3)


def test_a_line_per_method_falls_as_words_go(bag: WordWeights, tmp_path: Path) -> None:
    data = Dataset(
        "two",
        bag.labels,
        (Example("a", words("great film"), 1), Example("b", words("dull film"), 0)),
    )
    run = audit(
        {"m": bag}, data, "occlusion, random_scores", "deletion, erasure", out=tmp_path / "r"
    ).run
    accuracy, confidence = deletion_figures(run)["m"]
    line, chance = accuracy.series
    assert (line.name, line.dashed, chance.name, chance.dashed) == (
        "occlusion", False, "random_scores", True,
    )  # fmt: skip
    # both are right; without "great" and "dull" both are "film", which is called positive (0.1)
    assert line.x == (0, 1, 2, 3, 5, 10)
    assert line.y == (1.0, 0.5, 0.5, 0.5, 0.5, 0.5)
    # 1 / (1 + exp(-2.1)) and 1 / (1 + exp(-1.4)); then 0.525 of one label and 0.475 of the other
    first, second, *_ = confidence.series[0].y
    assert first == pytest.approx((0.890903 + 0.802184) / 2, abs=1e-6)
    assert second == pytest.approx(0.5)
    page = build_report(run)
    assert "Accuracy without the top words" in page
    assert page.count('<figure class="chart">') == 2
    assert "occlusion: 1.000, 0.500" in page
    drawn = chart(accuracy)
    assert [label for _, label in drawn.x_ticks] == ["0", "1", "2", "3", "5", "10"]
    heights = [mark.y for mark in drawn.series[0].marks]
    assert heights[0] < heights[1] == heights[2]  # further down is less
    plain = audit({"m": bag}, data, "occlusion", "erasure", out=tmp_path / "plain").run
    assert deletion_figures(plain) == {} and 'id="curves"' not in build_report(plain)


def test_many_lines_never_look_alike() -> None:
    series = tuple(Points(f"m{i}", (0.0, 1.0), (0.0, 1.0), line=True) for i in range(30))
    drawn = chart(Figure("t", "", "x", "y", series))
    assert len({(s.place, s.shape) for s in drawn.series}) == 30


# ---- erasure by hand ------------------------------------------------------------------------


def erased(known: dict[str, float], text: str, scores: Sequence[float], spec: str = "") -> Row:
    model = Answers({MASK_WORD: 0.5, **known})  # no more than five words: all of them are the first
    one = case(text, scores)
    whole = model.probabilities([one.attribution.input])[0]
    asked = replace(one, model=model, probabilities=whole)
    return metrics.make(f"erasure({spec})").score([asked])[0]


def test_erasure_by_hand_with_ties() -> None:
    answers = {"a b c d": 0.9, "a b": 0.8, "c d": 0.3, "a": 0.6, "b c d": 0.7}
    row = erased(answers, "a b c d", [2, 2, 1, 0])
    # 0.29 of four words is 1.16, so two: "a b" alone and "c d" without them
    assert row["sufficiency"] == pytest.approx(0.9 - 0.8)
    assert row["compactness"] == pytest.approx(0.9 - 0.3)
    assert row["new_p"] == 1.0  # 0.8 keeps the answer, 0.3 loses it
    # 0.01, 0.05, 0.1 and 0.2 of four words are one, the first of the two equal ones; 0.5 are two
    assert row["aopc_sufficiency"] == pytest.approx((4 * (0.9 - 0.6) + (0.9 - 0.8)) / 5)
    assert row["aopc_compactness"] == pytest.approx((4 * (0.9 - 0.7) + (0.9 - 0.3)) / 5)
    # by size a large negative score is first: "d" alone, "a b c" without it
    signed = {"a b c d": 0.9, "d": 0.2, "a b c": 0.95}
    row = erased(signed, "a b c d", [1, 0, 0, -2], "by=abs, ratio=0.25, ratios=(0.25,)")
    assert (row["sufficiency"], row["compactness"]) == pytest.approx((0.7, -0.05))
    assert row["new_p"] == 0.0  # 0.2 loses the answer already
    assert row["aopc_compactness"] == row["compactness"]  # one ratio, the same


def test_one_of_several_equal_words_is_erased_by_its_place() -> None:
    answers = {"good good film": 0.9, "good": 0.85, "good film": 0.88}
    row = erased(answers, "good good film", [3, 0, 0], "ratios=(0.3,)")
    # one word of three: the other "good" stays where the first is taken away
    assert (row["sufficiency"], row["compactness"]) == pytest.approx((0.05, 0.02))
    assert row["new_p"] == 0.0


def test_where_nothing_is_left_there_is_one_unknown_word() -> None:
    answers = {"great": 0.9, UNKNOWN.text: 0.4, "a b": 0.7}
    row = erased(answers, "great", [1.0])
    # a single word is its own explanation: kept alone it is the text, without it nothing is left
    assert (row["sufficiency"], row["compactness"]) == pytest.approx((0.0, 0.5))
    assert row["new_p"] == 1.0
    assert row["aopc_sufficiency"] == 0.0 and row["aopc_compactness"] == pytest.approx(0.5)
    whole = erased(answers, "a b", [1.0, 0.5], "ratio=1.0, ratios=(1.0,)")
    assert (whole["sufficiency"], whole["compactness"]) == pytest.approx((0.0, 0.3))


def test_an_even_answer_goes_to_the_first_label() -> None:
    answers = {"a b": 0.9, "a": 0.5, "b": 0.5}
    row = erased(answers, "a b", [1.0, 0.0], "ratio=0.5, ratios=(0.5,)")
    # both halves are even, so both are answered "negative": the words alone do not keep the answer
    assert row["new_p"] == 0.0
    assert (row["sufficiency"], row["compactness"]) == pytest.approx((0.4, 0.4))
