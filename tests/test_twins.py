"""Explanations beside those of a twin."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from conftest import WordWeights, words
from made_cases import case, data_of, marked, shown
from veracity.auditing.audit import audit
from veracity.auditing.jobs import batches_of, families, with_originals
from veracity.core.errors import DataError
from veracity.core.examples import Dataset, Example
from veracity.core.metrics import Case
from veracity.experiments.augmentation_record import gains_of
from veracity.metrics import metrics
from veracity.metrics.consistency import Membership, Variant, mean_overlap, shared
from veracity.metrics.movement import changed_words, found_share
from veracity.reports.pairs import pairs_page
from veracity.results.pairs import pairs_of
from veracity.results.run import Run


def pair(original: Case, twin: Case) -> list[Case]:
    return [original, replace(twin, original=original)]


# ---- twins in an audit ----------------------------------------------------------------------


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


def test_twins_of_twins_are_one_draw_in_sampling_and_in_statistics(
    bag: WordWeights, tmp_path: Path
) -> None:
    rows = [("o", "great a", None), ("t", "great b", "o"), ("u", "great c", "t"), ("p", "a", None)]
    data = data_of(*rows)
    drawn = [{data.examples[i].id for i in group} for group in families(data).values()]
    run = audit(bag, data, "occlusion", "erasure", out=tmp_path / "run").run
    column = run.column("erasure", "compactness")
    compared: dict[str, set[str]] = {}
    for example, family in zip(column.examples, column.families, strict=True):
        compared.setdefault(family, set()).add(example)
    assert drawn == [{"o", "t", "u"}, {"p"}]
    assert sorted(map(sorted, compared.values())) == sorted(map(sorted, drawn))
    right = np.array([True, True, True, False])
    (gain,) = gains_of(data, {"all": np.arange(4)}, right[None], ~right[None])
    assert gain.originals == 2


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
