"""Twins and their originals: how far explanations agree, and how far models are right on both."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from conftest import WordWeights, words
from veracity.auditing import audit
from veracity.auditing.jobs import batches_of, with_originals
from veracity.core.attributions import Attribution
from veracity.core.errors import DataError
from veracity.core.examples import Dataset, Example
from veracity.core.inputs import Text
from veracity.core.metrics import Case
from veracity.metrics import metrics
from veracity.metrics.consistency import Membership, Variant, mean_overlap, shared
from veracity.results.run import Run


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


def test_an_audit_compares_twins_whatever_its_parts(bag: WordWeights, tmp_path: Path) -> None:
    data = paired()
    methods = "occlusion, random_scores"
    wanted = ["consistency", "consistency(membership=multiset)", "erasure"]
    base = audit(bag, data, methods, wanted, out=tmp_path / "a", batch_size=100).run
    order = np.random.default_rng(0).permutation(len(data)).tolist()
    small = audit(bag, data.select(order), methods, wanted, out=tmp_path / "b", batch_size=3).run
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
    assert "consistency" not in everything.run.asked["metrics"]
    pairs = data_of(("a", "a great film", None), ("b", "a dull film", "a"))
    everything = audit(bag, pairs, "occlusion", out=tmp_path / "pairs")
    assert "consistency" in everything.run.asked["metrics"]


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
