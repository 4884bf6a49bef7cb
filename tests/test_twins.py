"""Explanations beside people's, beside a twin's, and word by word; and models on twins."""

from __future__ import annotations

import html
import pickle
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from conftest import WordWeights, words
from veracity.auditing.audit import audit
from veracity.auditing.jobs import batches_of, with_originals
from veracity.core.attributions import Attribution
from veracity.core.errors import DataError, PluginError, RunError
from veracity.core.examples import Dataset, Example
from veracity.core.inputs import MASK_WORD, UNKNOWN, BoolArray, FloatArray, Text
from veracity.core.metrics import Case, Row
from veracity.experiments.augmentation_record import gains_of
from veracity.metrics import metrics
from veracity.metrics.consistency import Consistency, Membership, Variant, mean_overlap, shared
from veracity.metrics.deletion import rises
from veracity.metrics.movement import changed_words, found_share
from veracity.metrics.rationale_match import area, average_precision, matches
from veracity.reports.charts import chart
from veracity.reports.html import build_report
from veracity.reports.pairs import pairs_page, write_pairs
from veracity.results.curves import deletion_figures
from veracity.results.findings import Figure, Points
from veracity.results.pairs import pairs_of, top_word_changes
from veracity.results.robustness import Robustness, robustness
from veracity.results.run import Run
from veracity.results.statistics import grouped_interval, mcnemar, mean_intervals, wilson


def case(text: str, scores: Sequence[float], id_: str = "0", partner: str | None = None) -> Case:
    read = Text.of_words(text.split())
    example = Example(id_, read, 1, partner=partner)
    attribution = Attribution(read, 1, np.array(scores, dtype=float))
    return Case(example, WordWeights({}), np.array([0.4, 0.6]), attribution)


def pair(original: Case, twin: Case) -> list[Case]:
    return [original, replace(twin, original=original)]


# ---- twins in an audit ----------------------------------------------------------------------


def data_of(*rows: tuple[str, str, str | None]) -> Dataset:
    """Rows of id, text, partner."""
    return Dataset(
        "pairs",
        ("negative", "positive"),
        tuple(Example(i, words(t), n % 2, partner=p) for n, (i, t, p) in enumerate(rows)),
    )


def paired(n: int = 12) -> Dataset:
    """Originals of growing length; the twin of each is longer by far and stands far from it."""
    originals = [(f"o{i}", "great " * (i + 1), None) for i in range(n)]
    twins = [(f"t{i}", "a great film " * (n - i), f"o{i}") for i in range(n)]
    return data_of(*originals, *twins)


@pytest.mark.parametrize("size", [1, 2, 3, 5, 100])
def test_a_twin_stands_in_the_part_of_its_original(size: int) -> None:
    rows: list[tuple[str, str, str | None]] = [
        ("a2", "great " * 9, "a1"),
        ("x", "great", "y"),
        ("lost", "great great", "nowhere"),
        ("own", "dull", "own"),
        ("a", "great", None),
        ("a1", "great " * 30, "a"),
        ("y", "great " * 8, "x"),
        *((f"plain{i}", "great " * (i + 1), None) for i in range(12)),
    ]
    data = data_of(*rows)
    for order in (range(len(data)), [*reversed(range(len(data)))]):
        shuffled = data.select(order)
        found = batches_of(shuffled, size)
        assert sorted(i for batch in found for i in batch) == [*range(len(data))]
        part = {shuffled.examples[i].id: b for b, batch in enumerate(found) for i in batch}
        assert part["a"] == part["a1"] == part["a2"]
        assert part["x"] == part["y"]
        assert size > 3 or max(map(len, found)) <= 3


def test_a_case_knows_its_original() -> None:
    rows = [("o", None), ("t", "o"), ("u", "t"), ("own", "own"), ("lost", "nowhere")]
    cases = [case("a b", [1, 2], i, p) for i, p in rows]
    found = {c.example.id: c for c in with_originals(cases)}
    assert [None if c.original is None else c.original.example.id for c in found.values()] == [
        None, "o", "t", None, None,
    ]  # fmt: skip
    assert found["t"].original is cases[0]


def test_pairs_of_a_dataset() -> None:
    data = data_of(("o", "a", None), ("t", "b", "o"), ("u", "c", "o"), ("lost", "d", "nowhere"))
    assert [(o.id, t.id) for o, t in data.pairs] == [("o", "t"), ("o", "u")]


def scores_of(run: Run, metric: str) -> dict[tuple[str, str, str], float]:
    rows = run.scores().to_pylist()
    return {
        (r["explainer"], r["example"], r["name"]): r["value"] for r in rows if r["metric"] == metric
    }


class Elsewhere:
    """Does jobs as a worker would, with a copy of the work, the last job first."""

    def map(
        self, work: Callable[[Any], Any], jobs: Iterable[Any], *, progress: Any = None
    ) -> Iterator[Any]:
        copy = pickle.loads(pickle.dumps(work))
        yield from map(copy, reversed(list(jobs)))


def test_an_audit_compares_twins_whatever_its_parts(bag: WordWeights, tmp_path: Path) -> None:
    data = paired()
    methods = "occlusion, random_scores"
    wanted = ["consistency", "consistency(membership=multiset)", "erasure"]
    base = audit(bag, data, methods, wanted, out=tmp_path / "a", batch_size=100).run
    order = np.random.default_rng(0).permutation(len(data)).tolist()
    small = audit(
        bag,
        data.select(order),
        methods,
        wanted,
        out=tmp_path / "b",
        batch_size=3,
        executor=Elsewhere(),
    ).run
    for metric in wanted:
        one, other = scores_of(base, metric), scores_of(small, metric)
        assert one.keys() == other.keys()
        assert all(one[k] == pytest.approx(other[k], nan_ok=True) for k in one)
    found = scores_of(base, "consistency")
    assert all(np.isnan(found["random_scores", f"o{i}", "map"]) for i in range(12))
    # of the twin's words only one stands in the original
    assert found["random_scores", "t0", "map"] < 1
    # partners are kept with the run
    assert {e.id: e.partner for e in base.examples()} == {e.id: e.partner for e in data}


def test_other_metrics_do_not_notice_twins(bag: WordWeights, tmp_path: Path) -> None:
    data = paired(5)
    alone = replace(data, examples=tuple(replace(e, partner=None) for e in data))
    wanted = ["erasure"]
    runs = [
        audit(bag, d, "occlusion, random_scores", wanted, out=tmp_path / name, batch_size=4).run
        for name, d in (("pairs", data), ("alone", alone))
    ]
    one, other = (scores_of(run, "erasure") for run in runs)
    assert one == pytest.approx(other)


def test_without_pairs_there_is_nothing_to_compare(bag: WordWeights, tmp_path: Path) -> None:
    data = data_of(("a", "a great film", None), ("b", "a dull film", "nowhere"))
    with pytest.raises(DataError, match=r"consistency compares texts with their adversarial twins"):
        audit(bag, data, "occlusion", "consistency, erasure", out=tmp_path / "r")
    everything = audit(bag, data, "occlusion", out=tmp_path / "all")
    assert "consistency" not in everything.run.config.metrics
    pairs = data_of(("a", "a great film", None), ("b", "a dull film", "a"), ("c", "great", "a"))
    for twins, asked in (
        (("b",), {"movement"}),
        (("c",), {"consistency"}),
        ("bc", {"consistency", "movement"}),
    ):
        part = replace(pairs, examples=tuple(e for e in pairs if e.id in ("a", *twins)))
        everything = audit(bag, part, "occlusion", out=tmp_path / "".join(twins), extras=False)
        found = everything.run.config.metrics.keys()
        assert found & {"consistency", "movement"} == asked


# ---- consistency ----------------------------------------------------------------------------


def depths(original: str, twin: str, variant: str, membership: str) -> list[float]:
    """The printed formula, word by word."""
    found = []
    for i in range(1, len(twin) + 1):
        known = list(original[:i])
        hits = 0
        if membership == "string" and variant == "printed":
            hits = sum(w in known for w in twin[:i])
        elif membership == "multiset" and variant == "printed":
            for w in twin[:i]:
                if w in known:
                    known.remove(w)
                    hits += 1
        elif membership == "string":
            hits = sum(twin[j - 1] in original[:j] for j in range(1, i + 1))
        else:
            hits = sum(
                twin[:j].count(twin[j - 1]) <= original[:j].count(twin[j - 1])
                for j in range(1, i + 1)
            )
        found.append(hits / i)
    return found


def test_ex_5_9_overlap_at_every_depth() -> None:
    assert depths("abcd", "badc", "printed", "string") == pytest.approx([0, 1, 2 / 3, 1])
    assert mean_overlap("abcd", "badc") == pytest.approx(0.666667, abs=1e-6)
    assert depths("abcd", "badc", "own_rank", "string") == pytest.approx([0, 0.5, 1 / 3, 0.5])
    assert mean_overlap("abcd", "badc", variant="own_rank") == pytest.approx(0.333333, abs=1e-6)


def test_ex_5_10_an_inserted_word() -> None:
    assert depths("abc", "axbc", "printed", "string") == pytest.approx([1, 0.5, 2 / 3, 0.75])
    assert mean_overlap("abc", "axbc") == pytest.approx(0.729167, abs=1e-6)


def test_ex_5_11_not_symmetric_and_reversed() -> None:
    assert mean_overlap("abcd", "ab") == pytest.approx(1.0)
    assert mean_overlap("ab", "abcd") == pytest.approx(0.791667, abs=1e-6)
    assert mean_overlap("abcd", "dcba") == pytest.approx(0.416667, abs=1e-6)


def test_ex_5_12_repeated_words() -> None:
    original, twin = ("good", "x"), ("good", "good")
    assert mean_overlap(original, twin) == pytest.approx(1.0)
    assert mean_overlap(original, twin, membership="multiset") == pytest.approx(0.75)


def test_nothing_to_compare_is_nothing_in_common() -> None:
    assert mean_overlap("abc", "") == 0.0
    assert mean_overlap("", "abc") == 0.0
    assert shared("", "") == 0.0


@pytest.mark.parametrize("variant", ["printed", "own_rank"])
@pytest.mark.parametrize("membership", ["string", "multiset"])
def test_overlap_is_the_literal_formula(variant: Variant, membership: Membership) -> None:
    rng = np.random.default_rng(0)
    for _ in range(200):
        original, twin = (
            "".join(rng.choice(list("abcde"), size=rng.integers(1, 9))) for _ in range(2)
        )
        ours = mean_overlap(original, twin, variant=variant, membership=membership)
        assert ours == pytest.approx(np.mean(depths(original, twin, variant, membership)))


def test_consistency_ranks_by_score_and_compares_top_words() -> None:
    # by importance: the original d c b a, the twin d x c b a; the top words are the first two
    cases = pair(case("a b c d", [1, 2, 3, 4]), case("a b c x d", [1, 2, 3, 8, 9]))
    first, second = metrics.make("consistency(ratio=0.4)").score(cases)
    assert all(np.isnan(v) for v in first.values())
    assert second["map"] == pytest.approx(mean_overlap("dcba", "dxcba"))
    assert second["shared"] == pytest.approx(0.5)
    # the default takes 0.29 of each: two of four words, two of five
    assert metrics.make("consistency").score(cases)[1]["shared"] == pytest.approx(0.5)
    by_size = metrics.make("consistency(by=abs, variant=own_rank)")
    signs = pair(case("a b", [1, -2]), case("b a", [3, 1]))
    assert by_size.score(signs)[1]["map"] == pytest.approx(1.0)
    assert metrics.make("consistency").score(signs)[1]["map"] == pytest.approx(0.5)


def test_a_map_without_scores_agrees_with_nothing() -> None:
    silent, loud = case("a b", [0, 0]), case("a b", [1, 2])
    for cases in (pair(silent, loud), pair(loud, silent), pair(silent, silent)):
        assert np.isnan(metrics.make("consistency").score(cases)[1]["map"])


def test_repeated_top_words_count_once_each_by_copies() -> None:
    cases = pair(case("good x y", [9, 1, 0]), case("good good x", [9, 8, 1]))
    by_string = metrics.make("consistency(ratio=0.6)").score(cases)[1]["shared"]
    by_copies = metrics.make("consistency(ratio=0.6, membership=multiset)").score(cases)[1]
    assert by_string == pytest.approx(1.0)
    assert by_copies["shared"] == pytest.approx(0.5)


# ---- twins with another label ---------------------------------------------------------------


def turned(original: Case, twin: Case, *, answer: int = 0) -> list[Case]:
    """A twin with the other label, which the model answers with this one."""
    answers = np.array([0.7, 0.3]) if answer == 0 else np.array([0.3, 0.7])
    other = replace(twin, example=replace(twin.example, label=0), probabilities=answers)
    return pair(original, other)


def test_consistency_counts_twins_that_keep_their_label() -> None:
    one, other = case("a b c", [1, 2, 3]), case("a b x", [1, 2, 3])
    (_, counted), (_, left_out) = (
        metrics.make("consistency").score(c) for c in (pair(one, other), turned(one, other))
    )
    assert not np.isnan(counted["map"])
    assert np.isnan(left_out["map"]) and np.isnan(left_out["shared"])
    (_, paper) = metrics.make("consistency(twins=all)").score(turned(one, other))
    assert paper == counted


def test_movement_by_hand() -> None:
    original = case("a good film with wit", [0, 5, 0, 0, 1])
    # bad and without are new: of the two strongest one is among them, and 6 of 10 of the weight
    twin = case("a bad film without wit", [0, 4, 1, -2, -3])
    before, row = metrics.make("movement").score(turned(original, twin))
    assert all(np.isnan(v) for v in before.values())
    assert row == pytest.approx({"found": 1 / 2, "mass": 6 / 10, "share": 2 / 5})
    # by their sign the words against the answer come last
    signed = metrics.make("movement(by=signed)").score(
        turned(original, case("a bad film without wit", [0, 4, 1, -3, -2]))
    )
    assert signed[1]["found"] == 1 / 2
    # a label that stayed asks nothing, and an answer that did asks nothing of the explanation
    assert all(
        np.isnan(v) for v in metrics.make("movement").score(pair(original, twin))[1].values()
    )
    stayed = metrics.make("movement").score(turned(original, twin, answer=1))[1]
    assert stayed["share"] == 2 / 5 and np.isnan(stayed["found"]) and np.isnan(stayed["mass"])


@pytest.mark.parametrize(
    ("scores", "new", "share"),
    [
        ([0, 3, 1, 2], (1, 2), 1 / 2),
        ([0, 3, -2, 1], (1, 2), 1.0),
        ([1, 1, 1, 0], (0, 3), 1 / 3),  # two of three that tie are looked at, one of them is new
        ([5, 0, 0], (1, 2), 0.0),  # what has no score is not named
        ([0, 0, 0], (1,), 0.0),
        ([2, 2, 2, 2], (3,), 1 / 4),  # no word stands out: chance
    ],
)
def test_the_share_of_new_words_that_is_found(
    scores: list[float], new: tuple[int, ...], share: float
) -> None:
    assert found_share(np.array(scores, dtype=float), marked(len(scores), *new)) == pytest.approx(
        share
    )


def test_random_orders_find_the_share_of_new_words() -> None:
    rng = np.random.default_rng(0)
    new = marked(10, 1, 4, 5)
    found = [found_share(rng.normal(size=10), new) for _ in range(4000)]
    assert np.mean(found) == pytest.approx(0.3, abs=0.02)


@pytest.mark.parametrize(
    ("original", "twin", "new"),
    [
        ("a good film", "a bad film", (1,)),
        ("a good film", "a truly bad film", (1, 2)),
        ("a good film", "not a good film", (0,)),
        ("not a good film", "a good film", ()),  # only taken out: nothing is new
        ("good film", "Good film", (0,)),
        ("a b c", "a b b c", (2,)),
        ("x y", "p q r", (0, 1, 2)),
    ],
)
def test_new_words_of_a_twin(original: str, twin: str, new: tuple[int, ...]) -> None:
    found = changed_words(original.split(), twin.split())
    assert tuple(np.flatnonzero(found)) == new


def test_twins_without_or_of_new_words_ask_nothing() -> None:
    for twin in ("a film", "x y z"):
        cases = turned(case("a good film", [1, 2, 1]), case(twin, [1] * len(twin.split())))
        assert all(np.isnan(v) for v in metrics.make("movement").score(cases)[1].values())


def test_pages_ask_twins_with_another_label_what_turned_them(tmp_path: Path) -> None:
    rows = [
        ("o1", "a great film", 1, None),
        ("t1", "a dull film", 0, "o1"),  # turned, and occlusion names the word
        ("o2", "a great plot", 1, None),
        ("t2", "a tedious plot", 0, "o2"),  # the model does not know the word, and stays
        ("o3", "great", 1, None),
        ("t3", "great !", 1, "o3"),
    ]
    data = Dataset(
        "mixed",
        ("negative", "positive"),
        tuple(Example(i, words(t), label, partner=p) for i, t, label, p in rows),
    )
    model = WordWeights({"great": 2.0, "dull": -2.0}, bias=0.1)
    run = audit(
        {"m": model}, data, "occlusion, random_scores", out=tmp_path / "r", extras=False
    ).run
    scored = scores_of(run, "movement")
    assert scored["occlusion", "t1", "found"] == 1.0
    assert np.isnan(scored["occlusion", "t2", "found"])
    pairs = {p.twin.id: p for p in pairs_of(run, "m", "occlusion").pairs}
    assert pairs["t1"].new == ("dull",) and pairs["t1"].found == 1.0
    assert pairs["t1"].chance == pytest.approx(1 / 3)
    assert np.isnan(pairs["t1"].map) and not np.isnan(pairs["t3"].map)
    said = shown(pairs_page(pairs_of(run, "m", "occlusion")).replace("<header", "<main", 1))
    assert "in 1 that keep their label" in said
    assert "In 2 the label changed; in 1 of them the answer changed, too" in said
    assert (
        "the method finds 100 % of the words that turned it, where a random order finds 33 %"
        in said
    )
    assert "New in the twin: dull" in said


# ---- rationales -----------------------------------------------------------------------------


def marked(n: int, *places: int) -> BoolArray:
    return np.isin(np.arange(n), places)


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


# ---- robustness -----------------------------------------------------------------------------


def answered(*rows: tuple[str, bool, str | None, str, str]) -> tuple[Dataset, FloatArray]:
    """Rows of id, whether the model is right, partner, sentiment type, adversarial type."""
    examples = tuple(
        Example(
            i,
            words(f"text {i}"),
            n % 2,
            partner=partner,
            facts={
                k: v for k, v in (("sentiment_type", sentiment), ("adv_type", attack)) if v != ""
            },
        )
        for n, (i, _, partner, sentiment, attack) in enumerate(rows)
    )
    given = [n % 2 if right else 1 - n % 2 for n, (_, right, *_) in enumerate(rows)]
    return Dataset("tested", ("negative", "positive"), examples), np.eye(2)[given]


def test_ex_7_4_micro_accuracy() -> None:
    right = {"idr": [True] * 3 + [False], "csk": [True] + [False] * 5}
    rows = [
        row
        for attack, flags in right.items()
        for i, flag in enumerate(flags)
        for row in (
            (f"{attack}{i}", True, None, "single", ""),
            (f"{attack}{i}-twin", flag, f"{attack}{i}", "obscure", attack),
        )
    ]
    found = robustness(*answered(*rows))
    by_attack = {s.name: s for s in found.by_attack}
    assert by_attack["idr"].accuracy == pytest.approx(0.75)
    assert by_attack["csk"].accuracy == pytest.approx(0.166667, abs=1e-6)
    assert found.micro_accuracy == pytest.approx(0.4)
    assert found.micro_accuracy == pytest.approx(found.twins.accuracy)
    assert (found.originals.accuracy, found.all.accuracy) == pytest.approx((1.0, 0.7))
    assert {s.name: s.accuracy for s in found.by_sentiment} == pytest.approx(
        {"single": 1.0, "obscure": 0.4}
    )
    assert (found.both, found.lost, found.gained, found.neither) == (4, 6, 0, 0)
    assert found.p == pytest.approx(2 / 2**6)
    assert "40.0% of 10 twins" in str(found)


def test_types_must_add_up() -> None:
    found = robustness(*answered(("a", True, None, "single", ""), ("b", False, "a", "", "")))
    assert [s.name for s in found.by_attack] == ["untyped"]
    assert [s.name for s in found.by_sentiment] == ["single", "untyped"]
    assert found.micro_accuracy == found.twins.accuracy == 0.0
    with pytest.raises(ValueError, match="add up"):
        replace(found, by_attack=())


def test_who_is_a_twin() -> None:
    data, answers = answered(("a", True, None, "", ""), ("b", False, None, "", ""))
    adverse = replace(data.examples[1], facts={"sample_type": "adv"})
    found = robustness(replace(data, examples=(data.examples[0], adverse)), answers)
    assert (found.originals.total, found.twins.total, found.pairs) == (1, 1, 0)
    assert found.p == 1.0
    with pytest.raises(DataError, match="one answer per example"):
        robustness(data, answers[:1])
    nothing = robustness(data.select([]), np.zeros((0, 2)))
    assert np.isnan(nothing.all.accuracy)
    assert (nothing.all.low, nothing.all.high) == (0.0, 1.0)


def test_mcnemar_and_wilson_by_hand() -> None:
    assert mcnemar(8, 2) == mcnemar(2, 8) == pytest.approx(2 * (1 + 10 + 45) / 1024)
    assert mcnemar(0, 0) == mcnemar(3, 3) == 1.0
    assert wilson(8, 10) == pytest.approx((0.49016, 0.94332), abs=1e-5)
    assert wilson(0, 10) == pytest.approx((0.0, 0.27753), abs=1e-5)
    assert wilson(0, 0) == (0.0, 1.0)


def test_texts_that_are_right_together_count_for_less() -> None:
    def both(same: bool) -> Robustness:
        rows: list[tuple[str, bool, str | None, str, str]] = []
        for i in range(20):
            rows.append((f"o{i}", i < 10, None, "", ""))
            rows.append((f"t{i}", i < 10 if same else i % 2 == 0, f"o{i}", "", ""))
        return robustness(*answered(*rows))

    together, apart = both(True), both(False)
    assert (together.all.low, together.all.high) == pytest.approx(wilson(10, 20))
    # that they are independent is seen in 20 pairs only: spread 10 and dependence 1, and as much as
    # 2 x 3.8415 / 4 of spread more with dependence 2
    size = 40 / ((10 + 2 * 1.9207) / (10 + 1.9207))
    limits = wilson(size / 2, size)
    assert (apart.all.low, apart.all.high) == pytest.approx(limits, abs=1e-4)
    assert (together.twins.low, together.twins.high) == pytest.approx(wilson(10, 20))


def test_several_twins_of_one_original_are_no_independent_pairs() -> None:
    rows: list[tuple[str, bool, str | None, str, str]] = []
    for i in range(3):
        rows.append((f"o{i}", True, None, "", ""))
        rows += [(f"t{i}-{j}", False, f"o{i}", "", "") for j in range(4)]
    found = robustness(*answered(*rows))
    assert (found.lost, found.pairs) == (12, 12)
    assert found.p == pytest.approx(2 / 2**3)  # three originals, not twelve pairs


# ---- pairs ----------------------------------------------------------------------------------


def test_ex_7_5_what_entered_and_left() -> None:
    entered, left, stayed = top_word_changes(("company", "good", "find"), ("umm", "good", "find"))
    assert (entered, left, stayed) == (("umm",), ("company",), 2)
    assert top_word_changes(("a", "b", "b"), ("c", "c", "a")) == (("c",), ("b",), 1)


@pytest.fixture
def evil() -> Dataset:
    """Two pairs, of which the model gets one text of the second wrong; hostile to a page."""
    rows = [
        ("o1", "a great film", 1, None, (1,)),
        ("t1", "a great great film", 1, "o1", (1, 2)),
        ("o2", "a <script>alert(1)</script> dull film", 0, None, ()),
        ("t2", "a dull film , great & \"fine\" 'so'", 0, "o2", ()),
        ("<b>alone</b>", "fine", 1, None, ()),
    ]
    return Dataset(
        "<i>evil</i>",
        ("<u>bad</u>", "good"),
        tuple(
            Example(
                i,
                words(text),
                label,
                {"rationale": (marked(words(text).n_features, *places),)} if places else {},
                partner,
                {"adv_type": "<idr>"} if partner else {},
            )
            for i, text, label, partner, places in rows
        ),
    )


class Bag(WordWeights):
    labels = ("<u>bad</u>", "good")


@pytest.fixture
def evil_run(evil: Dataset, tmp_path: Path) -> Run:
    model = Bag({"great": 2.0, "dull": -1.5, "fine": 0.5}, bias=0.1)
    return audit({"m": model}, evil, "occlusion", "erasure", out=tmp_path / "r").run


def test_pairs_with_one_wrong_answer_come_first(evil_run: Run) -> None:
    found = pairs_of(evil_run, "m", "occlusion")
    assert [p.twin.id for p in found.pairs] == ["t2", "t1"]
    first, second = found.pairs
    assert first.one_wrong and first.twin.wrong and not first.original.wrong
    assert not second.one_wrong
    assert (second.original.label, second.original.answer) == ("good", "good")
    assert second.original.rationales == ((1,),)
    assert second.attack == "<idr>"
    # the model reads a word once however often it stands there: hiding one of two changes nothing
    assert second.original.top_words == ("great",)
    assert second.original.explained == "good"
    assert "dull" in first.left and "great" in first.entered
    stored = evil_run.attributions("m", "occlusion")
    assert first.map == Consistency().compared(stored["o2"], stored["t2"])["map"]
    assert np.isnan(second.map)
    assert found.mean_map == first.map
    assert found.one_wrong == 1


def test_what_a_run_does_not_hold_is_said(evil_run: Run, bag: WordWeights, tmp_path: Path) -> None:
    with pytest.raises(PluginError, match="no model 'n'"):
        pairs_of(evil_run, "n", "occlusion")
    with pytest.raises(PluginError, match="did you mean 'occlusion'"):
        pairs_of(evil_run, "m", "oclusion")
    data = data_of(("a", "a great film", None), ("b", "a dull film", None))
    alone = audit({"m": bag}, data, "occlusion", "erasure", out=tmp_path / "alone").run
    with pytest.raises(DataError, match="no pair"):
        pairs_of(alone, "m", "occlusion")
    evil_run.attribution_part("m", "occlusion", 0).unlink()
    with pytest.raises(RunError, match=r"no explanation of 'o1'.*again"):
        pairs_of(evil_run, "m", "occlusion")


def shown(page: str) -> str:
    """What a reader sees of a page."""
    body = page[page.index("<main") :]
    return html.unescape(re.sub(r"\s+", " ", re.sub(r"<[^>]*>", "", body)))


def test_the_page_shows_both_texts_and_escapes_everything(
    evil: Dataset, evil_run: Run, tmp_path: Path
) -> None:
    answers = evil_run.predictions("m")
    found = pairs_of(evil_run, "m", "occlusion")
    rates = robustness(evil, np.array([answers[e.id] for e in evil]))
    page = write_pairs(found, tmp_path / "pairs.html", robustness=rates).read_text("utf-8")
    for hostile in ("<script", "<i>evil", "<u>bad", "<idr>", "<b>alone"):
        assert hostile not in page
    said = shown(page)
    for e in evil.examples[:4]:
        assert e.input.text in said
    assert "Entered the top words" in said and "one answer is wrong" in said
    assert page.index("o2 → t2") < page.index("o1 → t1")
    assert "Marked: great great" in said
    assert "originals3 of 3" in said
    assert "http" not in re.sub(r'http-equiv="[^"]*"', "", page)
    plain = pairs_page(found)
    assert 'id="accuracy"' not in plain


def test_a_page_of_many_pairs_says_what_it_leaves_out(
    evil_run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = pairs_of(evil_run, "m", "occlusion")
    monkeypatch.setattr("veracity.reports.pairs.MOST_PAIRS", 1)
    page = pairs_page(found)
    assert "1 more pair is not shown" in page
    assert "o2 → t2" in page and "o1 → t1" not in page


def test_the_chapter_on_twins_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    chapter = (Path(__file__).parents[1] / "docs" / "how-to" / "twins.md").read_text("utf-8")
    rows, code = (
        re.findall(rf"```{kind}\n(.*?)```", chapter, re.DOTALL)[0] for kind in ("json", "python")
    )
    (tmp_path / "pairs.jsonl").write_text(rows, "utf-8")
    monkeypatch.chdir(tmp_path)
    exec(compile(code, "twins.md", "exec"), {"__name__": "twins"})
    said = capsys.readouterr().out
    assert "right on 100.0% of 2 originals" in said and "0.0% of 2 twins" in said
    assert "{'idr': 0.0, 'negative': 0.0} 0.0" in said
    assert "('hard'" in said
    assert "umm" in (tmp_path / "run" / "pairs.html").read_text("utf-8")
    found = Run.open(tmp_path / "run")
    assert {"consistency", "rationale_match", "deletion"} <= found.config.metrics.keys()


# ---- training on twins ----------------------------------------------------------------------


def test_gains_by_hand() -> None:
    rows: list[tuple[str, str | None]] = [(f"o{i}", None) for i in range(4)]
    rows += [(f"p{i}{c}", f"o{i}") for i in range(4) for c in "ab"]
    data = data_of(*((i, f"text {i}", partner) for i, partner in rows))
    kinds = {"originals": np.arange(4), "made": np.arange(4, 12), "none": np.arange(0)}
    plain = np.array([[1, 1, 1, 0, 0, 0, 0, 0, 0, 0, 1, 0]], dtype=bool)
    more = np.array([[1, 1, 0, 0, 1, 1, 1, 1, 1, 1, 1, 0]], dtype=bool)
    originals, made = gains_of(data, kinds, plain, more)
    # 3 of 4 right before, 2 of 4 after; one text lost, none gained: McNemar of (0, 1) is 1
    assert (originals.plain.accuracy, originals.augmented.accuracy) == (0.75, 0.5)
    assert (originals.difference, originals.p) == (-0.25, 1.0)
    assert (originals.plain.low, originals.plain.high) == pytest.approx(wilson(3, 4))
    # 1 of 8 and 7 of 8: +6/8. Two twins of one original are no independent draws: three originals
    # gain 1 each and the fourth 0, of whose 2**3 signs two are as extreme as all alike
    assert (made.texts, made.originals) == (8, 4)
    assert made.difference == pytest.approx(0.75)
    assert made.p == pytest.approx(2 / 8)
    assert made.low <= 0.75 <= made.high <= 1.0
    assert made.by_seed == (0.75,)
    # a second training in which nothing changes halves the differences, and leaves their signs
    twice = gains_of(data, kinds, np.vstack([plain, plain]), np.vstack([more, plain]))[1]
    assert twice.difference == pytest.approx(0.375)
    assert twice.by_seed == (0.75, 0.0)
    assert twice.p == pytest.approx(2 / 8)
    with pytest.raises(DataError, match="shapes"):
        gains_of(data, kinds, plain[:, :3], more)


def test_groups_are_drawn_whole() -> None:
    rng = np.random.default_rng(0)
    values = np.repeat(rng.normal(size=40), 10)
    alone = [str(i) for i in range(400)]
    low, high = grouped_interval(values, [str(i // 10) for i in range(400)])
    narrow = grouped_interval(values, alone)
    assert high - low > 2.5 * (narrow[1] - narrow[0])  # 40 draws, not 400: about the root of ten
    assert narrow == pytest.approx(tuple(mean_intervals(values[:, None])[0]))
    assert all(np.isnan(grouped_interval(np.zeros(0), [])))
