"""The fewest words that tell labels apart: worked examples, brute force, odd cases."""

from __future__ import annotations

import itertools
import os
import sys
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from conftest import words
from veracity.core.errors import DataError, MissingExtra, PluginError
from veracity.core.examples import Dataset, Example
from veracity.core.truths import PSEUDO
from veracity.data.corpora.made_reviews import NEGATIVE, POSITIVE
from veracity.data.splits import Splits
from veracity.truths import learnt_truth, truths
from veracity.truths._covering import (
    Cover,
    CoverSolution,
    components,
    dominant,
    highs,
    minimal_rows,
    scip,
    solve_cover,
)
from veracity.truths._programme import decisive_words, touched


def texts(*rows: tuple[str, int], labels: tuple[str, ...] = ("negative", "positive")) -> Dataset:
    return Dataset(
        "t", labels, tuple(Example(str(i), words(t), y) for i, (t, y) in enumerate(rows))
    )


def sets_of(
    rows: Sequence[tuple[str, int]], n_labels: int = 2, **options: Any
) -> tuple[list[set[str]], CoverSolution, int]:
    documents = [frozenset(text.split()) for text, _ in rows]
    labels = [label for _, label in rows]
    found, answer = decisive_words(
        documents, labels, n_labels, rng=np.random.default_rng(0), **options
    )
    return [set(s) for s in found], answer, touched(documents, labels, found)


def test_ex_6_10_words_that_only_one_label_has() -> None:
    found, answer, objective = sets_of(
        [("good movie", 1), ("good", 1), ("bad movie", 0), ("bad", 0)]
    )
    assert found == [{"bad"}, {"good"}]
    assert (objective, answer.proven, answer.gap, answer.slack) == (0, True, 0.0, False)


def test_ex_6_11_a_word_that_must_be_taken_although_both_have_it() -> None:
    found, answer, objective = sets_of([("good", 1), ("movie", 1), ("bad movie", 0)])
    assert found == [{"bad"}, {"good", "movie"}]
    assert objective == 1
    assert answer.cost == pytest.approx(1 + 3 / 7)


def test_ex_6_12_documents_that_contradict_each_other() -> None:
    found, answer, _ = sets_of([("movie", 1), ("movie", 0)])
    assert answer.slack
    assert len(answer.bare) == 1
    assert sorted(map(len, found)) == [0, 1]
    data = texts(("movie", 1), ("movie", 0), ("good", 1))
    learnt = learnt_truth("integer_program(least=1)", None, data)
    assert learnt.facts["slack"]
    assert len(learnt.facts["violated"]) == 1
    assert learnt.facts["violated"][0] in ("0", "1")
    assert "good" in learnt.words[1]


def test_the_order_of_documents_does_not_matter() -> None:
    rows = [("a b", 1), ("a b", 0), ("c d", 0), ("d c e", 1), ("e", 1)]
    first, answer, _ = sets_of(rows)
    turned, other, _ = sets_of(rows[::-1])
    assert first == turned and answer.cost == other.cost
    # documents that are left bare keep their places
    conflict = [("good", 1), ("movie", 1), ("movie", 0), ("movie", 1)]
    _, answer, _ = sets_of(conflict)
    assert answer.bare == (2,)


def test_ex_6_13_the_size_term() -> None:
    rows = [("good fine", 1), ("good", 1), ("bad", 0)]
    found, _, objective = sets_of(rows)
    assert (found, objective) == ([{"bad"}, {"good"}], 0)
    documents, labels = [frozenset(t.split()) for t, _ in rows], [y for _, y in rows]
    larger = [frozenset({"bad"}), frozenset({"good", "fine"})]
    _, _, without = sets_of(rows, size_term=False)
    assert without == touched(documents, labels, larger) == 0


def brute_force(
    rows: Sequence[tuple[str, int]], n_labels: int, size: float, penalty: float
) -> float:
    """The cheapest of all ways to give each word to one label or to none."""
    vocabulary = sorted({w for text, _ in rows for w in text.split()})
    best = np.inf
    for owners in itertools.product(range(n_labels + 1), repeat=len(vocabulary)):
        of = dict(zip(vocabulary, owners, strict=True))
        cost = size * sum(owner < n_labels for owner in owners)
        for text, label in rows:
            mine = [of[w] for w in text.split()]
            cost += sum(owner not in (label, n_labels) for owner in mine)
            cost += 0 if label in mine else penalty
        best = min(best, cost)
    return best


@pytest.mark.parametrize("n_labels", [2, 3])
def test_the_programme_equals_brute_force(n_labels: int) -> None:
    rng = np.random.default_rng(n_labels)
    slack = 0
    for _ in range(60):
        count = int(rng.integers(1, 7))
        rows = [
            (
                " ".join(f"w{j}" for j in rng.permutation(6)[: rng.integers(1, 3)]),
                int(rng.integers(n_labels)),
            )
            for _ in range(count)
        ]
        found, answer, objective = sets_of(rows, n_labels)
        vocabulary = len({w for text, _ in rows for w in text.split()})
        size = 1 / (1 + n_labels * vocabulary)
        expected = brute_force(rows, n_labels, size, 10.0 * count)
        assert answer.proven
        assert answer.cost == pytest.approx(expected, abs=1e-6)
        bare = [i for i, (t, y) in enumerate(rows) if not set(t.split()) & found[y]]
        assert tuple(bare) == answer.bare
        total = objective + size * sum(map(len, found)) + 10 * count * len(bare)
        assert total == pytest.approx(expected, abs=1e-6)
        assert not any(a & b for a, b in itertools.combinations(found, 2))
        assert answer.slack == bool(bare)
        slack += bool(bare)
    assert 2 < slack < 50


def random_cover(rng: np.random.Generator, columns: int, rows: int) -> Cover:
    """Half of the columns have a rival; each row can be covered in a few ways."""
    costs = rng.integers(0, 9, columns).astype(np.float64) + 0.001
    pairs = rng.permutation(columns)[: columns // 2].reshape(-1, 2)
    return Cover(
        costs,
        tuple(
            frozenset(rng.integers(0, columns, rng.integers(2, 7)).tolist()) for _ in range(rows)
        ),
        tuple(frozenset(pair.tolist()) for pair in pairs),
    )


def test_searching_and_fixing_lose_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Programmes treated as large ones: the search, its bound and what it fixes."""
    import veracity.truths._covering as module

    for seed in range(6):
        cover = random_cover(np.random.default_rng(seed), 80, 70)
        plain, _, _ = highs(cover, 600.0)
        monkeypatch.setattr(module, "SMALL", 400)
        rng = np.random.default_rng(0)
        small = solve_cover(cover, seconds=600, penalty=1e4, rng=rng, solver=highs)
        monkeypatch.setattr(module, "SMALL", 0)
        monkeypatch.setattr(module, "STALE", 8)
        large = solve_cover(cover, seconds=600, penalty=1e4, rng=rng, solver=highs)
        assert plain is not None
        for found in (small, large):
            assert found.proven
            assert not found.bare
            assert cover.fits(found.chosen)
            assert found.cost == pytest.approx(float(cover.costs @ plain), abs=1e-5)
            assert found.cost == pytest.approx(float(cover.costs @ found.chosen))


def labels_apart(rng: np.random.Generator, words: int, rows: int) -> Cover:
    """Two labels whose rows share no column; a word's two columns are rivals."""
    costs = rng.integers(0, 9, 2 * words).astype(np.float64) + 0.001
    return Cover(
        costs,
        tuple(
            frozenset((rng.integers(0, words, rng.integers(2, 6)) + i % 2 * words).tolist())
            for i in range(rows)
        ),
        tuple(frozenset({w, w + words}) for w in range(words)),
    )


def test_labels_solved_apart_give_the_same_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    """Prices hold rivals apart: the bound they give never exceeds what the best answer costs."""
    import veracity.truths._covering as module

    monkeypatch.setattr(module, "SMALL", 0)
    monkeypatch.setattr(module, "STALE", 4)
    closed = 0
    for seed in range(8):
        rng = np.random.default_rng(seed)
        cover = labels_apart(rng, 40, 60)
        exact, _, ended = highs(cover, 600.0)
        poor, _, _ = highs(replace(cover, costs=-cover.costs), 600.0)
        relaxed = module._relaxed(cover, 60.0)
        assert exact is not None and poor is not None and relaxed is not None
        assert ended == "optimal"
        least = float(cover.costs @ exact)
        end = time.perf_counter() + 600
        found, bound = module._divided(cover, np.arange(80), poor, relaxed, end, rng, highs)
        assert cover.fits(found)
        assert relaxed.bound - 1e-6 <= bound <= least + 1e-5
        assert least - 1e-5 <= cover.costs @ found < cover.costs @ poor
        # what the pieces take is an answer where no rivals meet
        taken, _, solved = module._apart(cover, components(replace(cover, rivals=())), 600.0, highs)
        assert solved
        if cover.fits(taken):
            assert cover.costs @ found == pytest.approx(float(cover.costs @ taken))
        closed += bound > least - 1e-5
        # with a last look at all labels at once nothing is left open
        whole = solve_cover(cover, seconds=600, penalty=1e5, rng=rng, solver=highs)
        assert whole.proven and cover.fits(whole.chosen)
        assert whole.cost == pytest.approx(least, abs=1e-5)
    assert closed  # prices alone are enough now and then


def test_pieces_that_do_not_meet_are_the_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    """A start that no single piece can leave: each has taken the rival of what the other needs."""
    import veracity.truths._covering as module

    monkeypatch.setattr(module, "STALE", 0)
    rows = (frozenset({0, 1}), frozenset({2, 3}))
    cover = Cover(np.array([1.0, 2, 1, 2]), rows, (frozenset({0, 3}), frozenset({1, 2})))
    relaxed = module._relaxed(cover, 60.0)
    assert relaxed is not None
    start, end = np.array([False, True, False, True]), time.perf_counter() + 60
    rng = np.random.default_rng(0)
    found, bound = module._divided(cover, np.arange(4), start, relaxed, end, rng, highs)
    assert [float(cover.costs @ found), bound] == pytest.approx([2.0, 2.0])


def test_pieces_without_an_answer_in_time_leave_the_best(monkeypatch: pytest.MonkeyPatch) -> None:
    import veracity.truths._covering as module

    monkeypatch.setattr(module, "STALE", 4)
    rng = np.random.default_rng(3)
    cover = labels_apart(rng, 40, 60)
    poor, _, _ = highs(replace(cover, costs=-cover.costs), 600.0)
    relaxed = module._relaxed(cover, 60.0)
    assert poor is not None and relaxed is not None

    def never(cover: Cover, seconds: float) -> tuple[None, float, str]:
        return None, -np.inf, "time limit"

    end = time.perf_counter() + 600
    found, bound = module._divided(cover, np.arange(80), poor, relaxed, end, rng, never)
    assert bound == relaxed.bound
    assert cover.fits(found) and cover.costs @ found <= cover.costs @ poor


def test_a_search_without_time_to_prove_tells_its_gap(monkeypatch: pytest.MonkeyPatch) -> None:
    import veracity.truths._covering as module

    monkeypatch.setattr(module, "SMALL", 0)
    monkeypatch.setattr(module, "STALE", 8)
    cover = random_cover(np.random.default_rng(1), 120, 160)

    def never(cover: Cover, seconds: float) -> tuple[None, float, str]:
        return None, -np.inf, "time limit"

    rng = np.random.default_rng(0)
    quick = solve_cover(cover, seconds=600, penalty=1e6, rng=rng, solver=never)
    exact = solve_cover(cover, seconds=600, penalty=1e6, rng=rng, solver=highs)
    assert exact.proven
    assert cover.fits(quick.chosen)
    assert quick.bound <= exact.cost + 1e-6 <= quick.cost + 2e-6
    assert quick.gap == pytest.approx((quick.cost - quick.bound) / quick.cost)
    assert quick.gap < 0.2


def test_a_solver_that_talks_is_not_heard(capfd: pytest.CaptureFixture[str]) -> None:
    def talking(cover: Cover, seconds: float) -> Any:
        os.write(1, b"from below Python\n")
        return highs(cover, seconds)

    print("before")
    found, answer, _ = sets_of([("good film", 1), ("bad film", 0)], solver=talking)
    print("after")
    assert answer.proven and found[1] == {"good"}
    assert capfd.readouterr().out == "before\nafter\n"


def test_without_any_time_there_is_still_an_answer() -> None:
    def never(cover: Cover, seconds: float) -> tuple[None, float, str]:
        return None, -np.inf, "time limit"

    found, answer, _ = sets_of(
        [("good film", 1), ("bad film", 0), ("movie", 1), ("movie", 0)], solver=never
    )
    assert not answer.proven
    assert len(answer.bare) == 1  # one of the two that contradict each other, and no other
    assert answer.bare[0] in (2, 3)
    assert "good" in found[1] and "bad" in found[0]
    assert 0 <= answer.bound <= answer.cost


def test_a_greedy_dead_end_is_left_again() -> None:
    """Column 0 looks best, but is the rival of the only column that covers the last row."""
    import veracity.truths._covering as module

    rows = (frozenset({0, 1}), frozenset({0, 2}), frozenset({0, 3}), frozenset({5}))
    cover = Cover(np.array([1.0, 2, 2, 2, 9, 1]), rows, (frozenset({0, 5}),))
    assert module._greedy(cover, cover.costs) is None
    end = time.perf_counter() + 600
    relaxed = module._Relaxed(0.0, np.zeros(6), np.zeros(1))
    found = module._found(cover, relaxed, end, np.random.default_rng(0))
    assert found is not None
    assert np.flatnonzero(found).tolist() == [1, 2, 3, 5]
    without_answer = replace(cover, rivals=(frozenset({0, 5}), frozenset({1, 5})))
    hopeless = replace(without_answer, rows=(*rows, frozenset({1, 0})))
    assert module._found(hopeless, relaxed, end, np.random.default_rng(0)) is None


def test_a_bound_without_time_for_the_linear_programme(monkeypatch: pytest.MonkeyPatch) -> None:
    import scipy.optimize

    import veracity.truths._covering as module

    late = scipy.optimize.OptimizeResult(status=1)
    monkeypatch.setattr(scipy.optimize, "linprog", lambda *_, **__: late)
    for seed in range(5):
        cover = random_cover(np.random.default_rng(seed), 60, 40)
        relaxed = module._relaxed(cover, 1.0)
        best, _, _ = highs(cover, 600.0)
        assert relaxed is not None and best is not None
        assert 0 < relaxed.bound <= cover.costs @ best + 1e-6


def test_what_is_dropped_is_never_needed() -> None:
    rows = [frozenset({0, 1}), frozenset({0, 1, 2}), frozenset({1}), frozenset({3, 4})]
    assert minimal_rows(rows) == [2, 3]
    # 4 costs more than 3 and covers no more; without a rival, 3 stands for both
    costs = np.array([1.0, 1.0, 1.0, 1.0, 2.0])
    assert dominant(Cover(costs, tuple(rows))).tolist() == [1, 3]
    rival = Cover(costs, tuple(rows), (frozenset({3, 0}),))
    assert dominant(rival).tolist() == [1, 3, 4]
    # of two that are alike, one stays
    assert len(dominant(Cover(np.ones(2), (frozenset({0, 1}),)))) == 1


def test_three_labels_and_a_label_without_documents() -> None:
    found, answer, objective = sets_of(
        [("good film", 0), ("bad film", 1), ("odd film", 2), ("film odd bad", 2)], 4
    )
    assert found == [{"good"}, {"bad"}, {"odd"}, set()]
    assert (objective, answer.slack) == (1, False)


def test_repeated_words_count_once_in_a_document_and_in_all_masks() -> None:
    data = texts(("good good good film", 1), ("bad bad film film", 0))
    found = learnt_truth("integer_program(least=2)", None, data)
    assert found.words == (frozenset({"bad"}), frozenset({"good"}))
    # three of four words and two of four: tokens, not types
    assert found.facts["covered"] == pytest.approx({"negative": 0.5, "positive": 0.75})
    with pytest.raises(DataError, match=r"no document of t has 3 of the 3 words.*least=…"):
        learnt_truth("integer_program(least=3)", None, data)
    marked = found.marked(data)
    assert marked.examples[0].truths[PSEUDO][0].tolist() == [True, True, True, False]


def test_the_words_that_a_programme_looks_at() -> None:
    data = texts(
        ("alpha alpha alpha common .", 1), ("beta common . gamma", 0), ("beta common .", 0),
        ("beta gamma common .", 1),
    )  # fmt: skip
    # idf: alpha ln 4, gamma ln 2, beta ln 4/3, common and the full stop 0
    top = truths.make("integer_program(words=2)").vocabulary(None, data)[0]  # type: ignore[attr-defined]
    assert top == ["alpha", "gamma"]
    # beta is said three times (0.863) and gamma twice (1.386)
    assert truths.make("integer_program(words=4)").vocabulary(None, data)[0] == [  # type: ignore[attr-defined]
        "alpha", "gamma", "beta", "common",
    ]  # fmt: skip
    kept = truths.make("integer_program(words=9, keep_punctuation=True)")
    assert "." in kept.vocabulary(None, data)[0]  # type: ignore[attr-defined]
    other = texts(("x x y", 1), ("z z y", 0), ("z", 0), ("x", 1), ("b", 1), ("a", 1))
    # ties in alphabetical order; a word said twice somewhere beats one said once in two places
    by_max = truths.make("integer_program(rule=max, words=3)").vocabulary(None, other)[0]  # type: ignore[attr-defined]
    assert by_max == ["x", "z", "a"]
    by_sum = truths.make("integer_program(words=2)").vocabulary(None, other)[0]  # type: ignore[attr-defined]
    assert by_sum == ["x", "z"]


def test_a_programme_finds_the_words_that_were_put_there(made: Splits) -> None:
    found = learnt_truth("integer_program(words=300)", None, made.train.select(range(400)))
    negative, positive = found.words
    assert not negative & positive
    planted = set(POSITIVE), set(NEGATIVE)
    assert len(positive & planted[0]) > 12 < len(negative & planted[1])
    assert not positive & planted[1]
    assert not negative & planted[0]
    facts = found.facts
    assert facts["violated"] == []
    assert facts["gap"] <= 0.05
    assert facts["documents"] + facts["dropped"] == 400
    assert facts["bound"] <= facts["cost"] + 1e-9
    assert facts["objective"] == int(facts["cost"])


def test_the_hybrid_finds_them_too(cnn: Any, made: Splits) -> None:
    spec = "hybrid(words=60, least=1)"
    found = learnt_truth(spec, cnn, made.train.select(range(400)))
    assert found.facts["source"].startswith("hybrid(")
    negative, positive = found.words
    assert len(found.scores) == 60 >= len(negative | positive)
    assert (negative | positive) <= set(found.scores)
    assert len(positive & set(POSITIVE)) > 12 < len(negative & set(NEGATIVE))


def test_a_hybrid_looks_at_words_that_are_not_rare(cnn: Any, made: Splits) -> None:
    train = made.train.select(range(60))
    counts = Counter(word.lower() for e in train for word in e.input.words)
    usual, lax = (
        truths.make(f"hybrid(words=1000{rule})").vocabulary(cnn, train)[0]  # type: ignore[attr-defined]
        for rule in ("", ", min_count=1")
    )
    assert {counts[word] for word in lax} & {1, 2, 3, 4}
    assert set(usual) == {word for word in lax if counts[word] >= 5}


def test_settings_that_make_no_sense_are_told() -> None:
    for spec in ("integer_program(words=0)", "hybrid(seconds=0)", "integer_program(least=-1)"):
        with pytest.raises(PluginError, match="expected"):
            truths.make(spec)
    with pytest.raises(PluginError, match="did you mean 'hybrid'"):
        truths.make("hybird")


def test_a_solver_that_is_not_installed_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyscipopt", None)
    with pytest.raises(MissingExtra, match=r"solver=scip needs.*pyscipopt.*veracity\[scip\]"):
        learnt_truth("integer_program(least=1, solver=scip)", None, texts(("a b", 0), ("c", 1)))


def test_another_solver_gives_the_same_answer() -> None:
    pytest.importorskip("pyscipopt")
    for seed in range(3):
        cover = random_cover(np.random.default_rng(seed), 60, 50)
        ours, bound, ended = scip(cover, 60.0)
        theirs, _, _ = highs(cover, 60.0)
        assert ours is not None and theirs is not None
        assert cover.fits(ours)
        assert cover.costs @ ours == pytest.approx(cover.costs @ theirs, abs=1e-5)
        assert ended == "optimal"
        assert bound == pytest.approx(float(cover.costs @ ours), abs=1e-5)
    nothing = Cover(np.ones(2), (frozenset({0}), frozenset({1})), (frozenset({0, 1}),))
    assert scip(nothing, 60.0)[::2] == (None, "infeasible")
    spec = "integer_program(least=1, solver=scip)"
    assert learnt_truth(spec, None, texts(("a b", 0), ("c", 1), ("c b", 1))).words[1] == {"c"}
