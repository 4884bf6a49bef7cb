"""Explanations beside people's: rationales and overlap, by hand."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from made_cases import case, marked
from veracity.core.errors import PluginError
from veracity.core.metrics import Row
from veracity.metrics import metrics
from veracity.metrics.rationale_match import area, average_precision, matches

# ---- rationales -----------------------------------------------------------------------------


def judged(scores: Sequence[float], *sets: Sequence[int], spec: str = "") -> Row:
    """One text with these scores against sets of marked places."""
    one = case(" ".join(["very"] * len(scores)), scores)
    truths = tuple(marked(len(scores), *places) for places in sets)
    example = replace(one.example, truths={"rationale": truths})
    return metrics.make(f"rationale_match({spec})").score([replace(one, example=example)])[0]


def test_average_precision_by_hand() -> None:
    # ranks 1 and 3 are marked: (1/1 + 2/3) / 2
    assert average_precision(np.array([9, 5, 7, 1.0]), marked(4, 0, 1)) == pytest.approx(5 / 6)
    # the second and third place are equal: half of the marked words at 1/3, the rest at 2/4
    tied = np.array([3, 2, 2, 1.0])
    assert average_precision(tied, marked(4, 1, 3)) == pytest.approx(5 / 12)
    assert average_precision(tied, marked(4, 2, 3)) == pytest.approx(5 / 12)
    # all equal: the share of marked words, wherever they stand
    assert average_precision(np.zeros(4), marked(4, 3)) == pytest.approx(1 / 4)
    assert np.isnan(average_precision(np.zeros(4), marked(4)))


def test_average_precision_equals_scikit_learn() -> None:
    from sklearn.metrics import average_precision_score

    rng = np.random.default_rng(0)
    for _ in range(100):
        n = int(rng.integers(1, 12))
        scores = rng.integers(-3, 4, size=n).astype(float)
        known = rng.random(n) < 0.4
        known[rng.integers(n)] = True
        ours = average_precision(scores, known)
        assert ours == pytest.approx(average_precision_score(known, scores))


def test_the_area_by_trapezoids_is_erasers() -> None:
    from sklearn.metrics import auc, precision_recall_curve

    # ranks 1 and 3 are marked: recall 0 to 1/2 at precision 1, on to 1 from 1/2 to 2/3
    assert area(np.array([9, 5, 7, 1.0]), marked(4, 0, 1)) == pytest.approx(1 / 2 + 7 / 24)
    # a map without a score: a line from 1 down to the share, far above the share itself
    assert area(np.zeros(4), marked(4, 3)) == pytest.approx(5 / 8)
    assert judged([0, 0, 0, 0], [3])["auprc"] == pytest.approx(5 / 8)
    assert judged([0, 0, 0, 0], [3])["average_precision"] == pytest.approx(1 / 4)
    rng = np.random.default_rng(0)
    for _ in range(50):
        n = int(rng.integers(1, 12))
        scores = rng.integers(-3, 4, size=n).astype(float)
        known = rng.random(n) < 0.4
        known[rng.integers(n)] = True
        precision, recall, _ = precision_recall_curve(known, scores)
        assert area(scores, known) == pytest.approx(auc(recall, precision))


def test_scores_that_differ_by_rounding_are_equal() -> None:
    row = judged([3, 2, 2 + 1e-9, 1], [1, 3])
    assert row["average_precision"] == pytest.approx(5 / 12)
    assert row["average_precision"] == judged([3, 2 + 1e-9, 2, 1], [1, 3])["average_precision"]


def test_phrases_match_from_half_of_their_words_on() -> None:
    # chosen 0-1, 4 and 7, marked 0-3, 5 and 7: the first is half of its phrase, the third all
    chosen, known = marked(8, 0, 1, 4, 7), marked(8, 0, 1, 2, 3, 5, 7)
    assert matches(chosen, known) == (2, 3, 2, 3)
    assert matches(marked(8, 0, 1, 7), known) == (2, 2, 2, 3)
    assert matches(chosen, known, iou=0.6) == (1, 3, 1, 3)
    assert matches(marked(3), marked(3, 1)) == (0, 0, 0, 1)


def test_the_iou_f1_of_phrases_by_hand() -> None:
    # top four of eight words: 0, 1, 4, 7; precision 2/3, recall 2/3
    row = judged([9, 8, 0, 0, 7, 0, 0, 6], [0, 1, 2, 3, 5, 7], spec="ratio=0.5")
    assert row["iou_f1"] == pytest.approx(2 / 3)
    # one long phrase of which less than half was marked
    assert judged([9, 8, 7, 6], [0], spec="ratio=1.0")["iou_f1"] == 0.0
    assert judged([9, 8, 7, 6], [0, 1], spec="ratio=1.0")["iou_f1"] == 1.0


def test_repeated_words_are_told_apart_by_their_places() -> None:
    first, last = (judged([9, 0, 0, 0], [place], spec="ratio=0.25") for place in (0, 3))
    assert (first["average_precision"], first["iou_f1"]) == (1.0, 1.0)
    assert (last["average_precision"], last["iou_f1"]) == (0.25, 0.0)


def test_an_empty_selection_matches_nothing() -> None:
    for spec in ("ratio=0.0", "ratio=0.5"):
        row = judged([0, 0, 0, 0], [0, 1], spec=spec)
        assert (row["iou_f1"], row["chosen"]) == (0.0, 0.0)
        assert row["average_precision"] == row["share"] == 0.5
    assert judged([-1, -2, -3], [0], spec="ratio=0.0")["iou_f1"] == 0.0
    assert judged([-1, -2, 3], [2], spec="ratio=0.0")["iou_f1"] == 1.0


def test_several_rationales_together_or_the_best_of_them() -> None:
    scores = [9, 8, 1, 0, 0, 0]
    together = judged(scores, [0, 1], [4, 5])
    best = judged(scores, [4, 5], [0, 1], spec="sets=best")
    # 1, 1 and then, the three last being equal, 4 of 6
    assert together["average_precision"] == pytest.approx((1 + 1 + 2 * 4 / 6) / 4)
    assert together["share"] == pytest.approx(4 / 6)
    assert together["iou_f1"] == pytest.approx(2 / 3)  # one phrase of one, one of two
    assert (best["average_precision"], best["iou_f1"]) == (1.0, 1.0)
    assert best["share"] == pytest.approx(2 / 6)
    # neighbouring sets make one phrase together
    assert judged(scores, [0], [1])["iou_f1"] == 1.0
    empty = judged(scores, [], spec="sets=best")
    assert np.isnan(empty["average_precision"]) and np.isnan(empty["iou_f1"])


def test_phrases_are_pooled_over_texts() -> None:
    metric = metrics.make("rationale_match(ratio=0.5)")
    rows = [
        judged([9, 8, 0, 0], [0, 1], spec="ratio=0.5"),
        judged([9, 0, 8, 0], [0, 3], spec="ratio=0.5"),
    ]
    found = metric.summary(rows)
    assert found["iou_f1"] == pytest.approx((1 + 0.5) / 2)
    assert found["micro_iou_f1"] == pytest.approx(2 / 3)  # 2 of 3 either way


# ---- plausibility by hand -------------------------------------------------------------------


def overlapped(scores: Sequence[float], *sets: Sequence[int], spec: str = "ratio=0.5") -> Row:
    one = case(" ".join(["word"] * len(scores)), scores)
    truths = tuple(marked(len(scores), *places) for places in sets)
    example = replace(one.example, truths={"rationale": truths})
    return metrics.make(f"feature_overlap({spec})").score([replace(one, example=example)])[0]


def test_token_f1_by_hand_with_ties_and_several_sets() -> None:
    tied = [1, 1, 1, 0]  # two of four are chosen: of three equal words the first two
    row = overlapped(tied, [1, 2])
    assert (row["precision"], row["recall"], row["f1"]) == (0.5, 0.5, 0.5)
    # {2, 3}: nothing; {1}: 1 of 2 chosen, 1 of 1 known, so 2 * 0.5 * 1 / 1.5
    row = overlapped(tied, [2, 3], [1])
    assert row["f1"] == pytest.approx(2 / 3)
    assert (row["hits"], row["chosen"], row["known"]) == (1, 2, 1)
    # both sets reach 2 * 0.5 * 1 / 1.5: the first is taken; their union is all that was chosen
    row = overlapped([9, 8, 0, 0, 0, 0], [0], [1], spec="ratio=0.33")
    assert (row["f1"], row["recall"]) == pytest.approx((2 / 3, 1.0))
    together = overlapped([9, 8, 0, 0, 0, 0], [0], [1], spec="ratio=0.33, allow_union=True")
    assert together["f1"] == 1.0
    # a map without any score: ties go to the earlier places, so the first two words
    assert overlapped([0, 0, 0, 0], [0, 1])["f1"] == 1.0
    assert overlapped([0, 0, 0, 0], [2, 3])["f1"] == 0.0
    # equal words are told apart by their places: "word word word word" throughout
    assert overlapped([0, 0, 0, 1], [3], spec="ratio=0.25")["f1"] == 1.0


def test_token_f1_pooled_by_hand() -> None:
    rows = [
        overlapped([1, 1, 1, 0], [2, 3], [1]),  # 1 of 2 chosen, 1 known
        overlapped([3, 2, 0, 0], [2], [2, 3]),  # 0 of 2 chosen; no set fits: the shortest, 1 known
        overlapped([0, 0, 2, 3], [2, 3]),  # 2 of 2 chosen, 2 known
    ]
    found = metrics.make("feature_overlap(ratio=0.5)").summary(rows)
    assert found["macro_f1"] == pytest.approx((2 / 3 + 0 + 1) / 3)
    # pooled: 3 hits of 6 chosen and 4 known, 2 * 3 / (6 + 4)
    assert found["micro_f1"] == pytest.approx(0.6)
    assert (found["micro_precision"], found["micro_recall"]) == (0.5, 0.75)


def test_average_precision_by_sign_or_by_size() -> None:
    scores = [-1, 2, -3, 0]
    # signed: the places 1, 3, 0, 2; both marked ones first
    assert judged(scores, [1, 3])["average_precision"] == 1.0
    # by size: 2, 1, 0, 3; hits at the second and the fourth: (1/2 + 2/4) / 2
    assert judged(scores, [1, 3], spec="by=abs")["average_precision"] == pytest.approx(0.5)


def test_every_quantity_has_its_own_best_set() -> None:
    # the places in order; 0.33 of six words are two, one phrase: 0 and 1
    scores = [9, 8, 7, 6, 5, 0]
    row = judged(scores, [0, 1, 2, 3, 4], [1, 5], spec="sets=best, ratio=0.33")
    # of the first set: precision 1 throughout, and a phrase of five of which 2/5 are chosen: none
    # of the second: ranks 2 and 6, (1/2 + 2/6) / 2; the phrase 1 matches by half: 1/1 and 1/2
    assert row["average_precision"] == 1.0 and row["share"] == pytest.approx(5 / 6)
    assert row["iou_f1"] == pytest.approx(2 / 3)
    second = judged(scores, [1, 5], spec="ratio=0.33")
    assert second["average_precision"] == pytest.approx(5 / 12)
    # all together every word is marked: one phrase of six, of which a third is chosen
    union = judged(scores, [0, 1, 2, 3, 4], [1, 5], spec="ratio=0.33")
    assert (union["average_precision"], union["iou_f1"]) == pytest.approx((1.0, 0.0))
    assert union["share"] == 1.0


def test_settings_out_of_range_are_refused() -> None:
    for spec in (
        "deletion(steps=0)",
        "deletion(counts=(0,))",
        "deletion(least=0.0)",
        "rationale_match(iou=0.0)",
        "rationale_match(ratio=2.0)",
        "consistency(ratio=0.0)",
    ):
        with pytest.raises(PluginError, match="expected"):
            metrics.make(spec)
