"""What a method says for and against an answer: words, n-grams, and both on disk."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import veracity
from conftest import WordWeights, words
from veracity.auditing.audit import audit
from veracity.core.attributions import Attribution, Fragment, FragmentLevel, distinct_words
from veracity.core.errors import PluginError
from veracity.core.examples import Dataset, Example
from veracity.core.inputs import Text
from veracity.core.metrics import Case, Metric, Quantity, Row
from veracity.explainers import explainers
from veracity.explainers.random_scores import RandomScores, drawn_spans
from veracity.results.run import Run


def scored(*scores: float) -> Attribution:
    return Attribution(Text.of_words([f"w{i}" for i in range(len(scores))]), 1, np.array(scores))


def places(fragments: Sequence[Fragment]) -> list[tuple[int, ...]]:
    return [f.positions for f in fragments]


# ---- from word scores ---------------------------------------------------------------------------


def test_pieces_carry_their_words() -> None:
    text = Text.of_words(["not", "a", "good", "film", ",", "not", "at", "all"])
    own = (Fragment((0, 5), 0.5), Fragment((2,), -0.2, "counter"))
    a = Attribution(text, 0, np.array([0.2, 0, -0.2, 0, 0, 0.3, 0.1, 0]), own)
    assert [f.words for f in a.evidence(2)] == [("not", "not")]
    assert [f.words for f in a.counter_evidence(2)] == [("good",)]
    assert [f.words for f in a.evidence(1, "ngram")] == [("film", ",", "not", "at")]
    assert a.evidence(1) == [Fragment((0, 5), 0.5)]


def test_ex_3_10_words_to_ngrams() -> None:
    a = scored(1, 3, -2, 2, 0.5)
    found = a.evidence(3, "ngram")
    assert places(found) == [(0, 1), (3, 4)]
    assert [f.score for f in found] == [4.0, 2.5]
    assert {f.kind for f in found} == {"evidence"}
    assert places(a.evidence(1, "ngram")) == [(0, 1)]
    assert places(a.counter_evidence(3, "ngram")) == []  # no span of these words is negative


def test_ex_3_16_distinct_words_and_positions() -> None:
    text = Text.of_words(["good", "bad", "good", "fine"])
    scores = np.array([0.5, -0.2, 0.5, 0.3])
    owner = np.array([0, 1, 0, 2])
    lime = Attribution(text, 1, scores, distinct_words(owner, np.array([0.5, -0.2, 0.3])))
    assert places(lime.evidence(2)) == [(0, 2), (3,)]
    assert places(lime.counter_evidence(2)) == [(1,)]
    assert distinct_words(owner, np.array([0.0, -0.2, 1e-17])) == (Fragment((1,), -0.2, "counter"),)
    lrp = Attribution(text, 1, scores)
    assert places(lrp.evidence(2)) == [(0,), (2,)]
    assert places(lrp.counter_evidence(2)) == [(1,)]


def test_counter_evidence_keeps_its_sign() -> None:
    a = scored(-1, -3, 2, -2, -0.5)
    (first, second) = a.counter_evidence(3, "ngram")
    assert first == Fragment((0, 1), -4.0, "counter")
    assert second == Fragment((3, 4), -2.5, "counter")
    assert a.counter_evidence(1) == [Fragment((1,), -3.0, "counter")]


def test_ties_go_to_the_smaller_start_then_to_the_smaller_width() -> None:
    assert places(scored(0, 1, 1, 0).evidence(9, "ngram")) == [(0, 1, 2)]
    assert places(scored(1, 1, 0, 0, 1, 1).evidence(9, "ngram")) == [(0, 1), (2, 3, 4, 5)]
    # in binary 0.1 + 0.2 is above 0.3, and 0.1 + 0.2 - 0.3 is above 0: neither may count
    assert places(scored(0.3, 0, -9, -9, 0.1, 0.2).evidence(1, "ngram")) == [(0, 1)]
    assert places(scored(0.1, 0.2, -0.3).evidence(1, "ngram")) == [(0, 1)]
    assert places(scored(-0.3, 0.1, 0.2).counter_evidence(9, "ngram")) == [(0, 1)]
    assert scored(0.1 + 0.2, -0.3).evidence(9, "ngram") == []


def test_any_sign_takes_what_there_is() -> None:
    a = scored(-1, -2, 0.5)
    assert places(a.evidence(9)) == [(2,)]
    assert places(a.evidence(9, any_sign=True)) == [(2,), (0,), (1,)]
    assert places(a.counter_evidence(2, any_sign=True)) == [(1,), (0,)]
    assert places(a.evidence(9, "ngram")) == []
    assert places(a.evidence(9, "ngram", any_sign=True)) == [(1, 2)]


@pytest.mark.parametrize("n", [0, 1])
def test_short_texts_have_no_ngrams(n: int) -> None:
    a = scored(*[1.0] * n)
    assert a.evidence(3, "ngram") == a.counter_evidence(3, "ngram") == []
    assert places(a.evidence(3)) == [(i,) for i in range(n)]
    assert places(scored(0, 0).evidence(3)) == []


def literal_ngrams(scores: Sequence[int], m: int, sign: int) -> list[tuple[int, ...]]:
    """definitions 3.8 read aloud."""
    n = len(scores)
    spans = [tuple(range(s, s + w)) for w in (2, 3, 4) for s in range(n - w + 1)]
    value = {span: sign * sum(scores[i] for i in span) for span in spans}
    taken: list[tuple[int, ...]] = []
    for span in sorted(spans, key=lambda p: (-value[p], p[0], len(p))):
        free = all(not set(span) & set(other) for other in taken)
        if value[span] > 0 and free and len(taken) < m:
            taken.append(span)
    return taken


@given(st.lists(st.integers(-4, 4), max_size=14), st.integers(0, 6))
def test_ngrams_are_the_definition(scores: list[int], m: int) -> None:
    a = scored(*map(float, scores))
    assert places(a.evidence(m, "ngram")) == literal_ngrams(scores, m, 1)
    assert places(a.counter_evidence(m, "ngram")) == literal_ngrams(scores, m, -1)


@given(st.lists(st.floats(-1, 1), max_size=12), st.integers(0, 12))
def test_words_are_the_best_positive_ones(scores: list[float], m: int) -> None:
    a = scored(*scores)
    found = a.evidence(m)
    assert all(f.score > 0 for f in found)
    chosen = {f.positions[0] for f in found}
    assert len(chosen) == len(found) <= m
    rest = [s for i, s in enumerate(scores) if i not in chosen]
    scale = max(map(abs, scores), default=0.0)
    if found:
        assert max(rest, default=-1.0) <= min(f.score for f in found) + 1e-6 * scale


# ---- a method's own fragments -------------------------------------------------------------------


def own(level: FragmentLevel) -> Attribution:
    fragments = (
        Fragment((2, 3), 0.1, "evidence"),
        Fragment((0, 1), 0.9, "counter"),
        Fragment((1, 2), 0.7, "evidence"),
    )
    text = Text.of_words(["a", "b", "c", "d"])
    return Attribution(text, 1, np.array([4.0, 0.0, 0.0, -1.0]), fragments, level)


def test_own_fragments_come_in_their_own_order() -> None:
    a = own("ngram")
    for unit in (None, "ngram"):
        assert places(a.evidence(9, unit)) == [(2, 3), (1, 2)]
        assert places(a.evidence(1, unit)) == [(2, 3)]
        assert places(a.counter_evidence(9, unit)) == [(0, 1)]
    assert places(a.evidence(9, "word")) == [(0,)]
    assert places(own("word").evidence(9, "ngram")) == [(0, 1)]
    assert places(own("word").evidence(9, "word")) == [(2, 3), (1, 2)]


def test_a_method_that_found_no_fragment_has_none() -> None:
    a = Attribution(Text.of_words(["a", "b"]), 1, np.array([1.0, 2.0]), (), "ngram")
    assert a.evidence(3) == a.evidence(3, "ngram") == []
    assert places(a.evidence(3, "word")) == [(1,), (0,)]


def test_fragments_must_lie_in_the_text() -> None:
    with pytest.raises(ValueError, match="features 0 to 1"):
        Attribution(Text.of_words(["a", "b"]), 1, np.zeros(2), (Fragment((1, 2), 1.0),))


def test_lime_gives_a_piece_per_distinct_word(bag: WordWeights) -> None:
    text = words("great film , dull but great")
    (found,) = veracity.explain(bag, text, "lime(samples=400, features=2)", target=1)
    assert found.level == "word"
    assert places(found.evidence(5)) == [(0, 5)]
    assert places(found.counter_evidence(5)) == [(3,)]
    assert found.evidence(1)[0].score == found.scores[0] == found.scores[5]
    assert places(found.evidence(1, "ngram")) == [(0, 1)]
    (each,) = veracity.explain(bag, text, "lime(samples=400, bow=False)", target=1)
    assert each.fragments is None


# ---- at random ----------------------------------------------------------------------------------


def drawn(method: RandomScores, n: int, seed: int) -> Attribution[Any]:
    text = Text.of_words([f"w{i}" for i in range(n)])
    rng = np.random.default_rng(seed)
    (found,) = method.explain(WordWeights({}), [text], [1], [rng])
    return found


@given(st.integers(1, 30), st.integers(0, 2**32))
def test_random_words_suffice_for_both_sides(n: int, seed: int) -> None:
    a = drawn(RandomScores(), n, seed)
    m = n // 2
    assert a.fragments is None
    chosen = [f.positions[0] for f in (*a.evidence(m), *a.counter_evidence(m))]
    assert len(set(chosen)) == len(chosen) == 2 * m
    assert (a.scores > 0).sum() == n - m


def test_random_words_are_drawn_evenly() -> None:
    first = Counter(drawn(RandomScores(), 5, seed).evidence(1)[0].positions for seed in range(2000))
    assert len(first) == 5
    assert all(abs(count - 400) < 80 for count in first.values())


@given(st.integers(0, 25), st.integers(0, 2**32))
def test_random_ngrams_fill_the_text_without_overlap(n: int, seed: int) -> None:
    a = drawn(RandomScores("ngram"), n, seed)
    assert a.level == "ngram"
    for found, sign in ((a.evidence(99), 1), (a.counter_evidence(99), -1)):
        covered = [i for f in found for i in f.positions]
        assert len(set(covered)) == len(covered)
        assert {len(f.positions) for f in found} <= {2, 3, 4}
        assert all(list(p) == list(range(p[0], p[-1] + 1)) for p in places(found))
        assert not any({i, i + 1}.isdisjoint(covered) for i in range(n - 1))  # no room for another
        strengths = [sign * f.score for f in found]
        assert strengths == sorted(strengths, reverse=True)
        assert all(s > 0 for s in strengths)
    assert a.scores.sum() == pytest.approx(sum(f.score for f in a.fragments or ()), abs=1e-9)


def rejected_until_it_fits(
    n: int, widths: Sequence[int], rng: np.random.Generator
) -> Iterator[tuple[int, int]]:
    """definitions 3.1 read aloud: a width, a start, and again if it overlaps; never ends."""
    taken: set[int] = set()
    while True:
        width = int(rng.choice(widths))
        start = int(rng.integers(0, n - width + 1))
        if taken.isdisjoint(range(start, start + width)):
            taken.update(range(start, start + width))
            yield start, start + width


def test_random_ngrams_have_the_chances_of_drawing_again_and_again() -> None:
    rng = np.random.default_rng(0)
    draws = 3000
    ours, literal = Counter[Any](), Counter[Any]()
    for _ in range(draws):
        ours[tuple(drawn_spans(8, (2, 3), rng)[:2])] += 1
        again = rejected_until_it_fits(8, (2, 3), rng)
        literal[next(again), next(again)] += 1
    assert ours.keys() == literal.keys()
    for pair in ours:
        assert abs(ours[pair] - literal[pair]) < 5 * np.sqrt(2 * max(ours[pair], 10)), pair
    one, other = Counter[Any](), Counter[Any]()
    for (first, _), count in ours.items():
        one[first] += count
    for (first, _), count in literal.items():
        other[first] += count
    assert all(abs(one[span] - other[span]) < 0.03 * draws for span in one)


def test_both_ends_of_a_text_can_be_drawn() -> None:
    seen = {s for seed in range(200) for s in drawn_spans(6, (2,), np.random.default_rng(seed))}
    assert seen == {(i, i + 2) for i in range(5)}


def test_random_ngrams_of_any_width() -> None:
    a = drawn(RandomScores("ngram", widths=(1, 5)), 12, 3)
    assert {len(f.positions) for f in a.fragments or ()} <= {1, 5}
    with pytest.raises(PluginError, match="at least one word"):
        explainers.make("random_scores(widths=())")
    with pytest.raises(PluginError, match="at least one word"):
        explainers.make("random_scores(widths=(0, 2))")


# ---- on disk ------------------------------------------------------------------------------------

METHODS = "lime(samples=40), random_scores(unit=ngram), occlusion"
SEEN: dict[tuple[str, str], Attribution] = {}


@dataclass(frozen=True)
class Looks(Metric):
    """Keeps what a metric is shown."""

    purpose: ClassVar[str] = "see what a metric sees"
    quantities: ClassVar[Mapping[str, Quantity]] = {"seen": Quantity("one", headline=True)}

    time: int = 1

    def score(self, cases: Sequence[Case]) -> list[Row]:
        SEEN.update({(c.attribution.method, c.example.id): c.attribution for c in cases})
        return [{"seen": 1.0} for _ in cases]


def test_a_metric_sees_the_same_evidence_fresh_and_stored(bag: WordWeights, tmp_path: Path) -> None:
    texts = ["great film , dull but great", "fine", "", "a dull dull plot and a great end"]
    data = Dataset(
        "few",
        bag.labels,
        tuple(Example(f"e{i}", words(t) if t else Text("", ()), 1) for i, t in enumerate(texts)),
    )

    def seen(time: int) -> dict[tuple[str, str], Attribution]:
        SEEN.clear()
        audit({"m": bag}, data, METHODS, [Looks(time)], out=tmp_path / "run")
        return dict(SEEN)

    fresh, stored = seen(1), seen(2)
    assert fresh.keys() == stored.keys()
    assert len(fresh) == 3 * len(texts)
    for key, a in fresh.items():
        b = stored[key]
        assert (b.target, b.fragments, b.level, b.method) == (
            a.target,
            a.fragments,
            a.level,
            key[0],
        )
        assert b.notes == a.notes
        assert np.array_equal(b.scores, a.scores)
        assert np.array_equal([b.base_value], [a.base_value], equal_nan=True)
        assert b.evidence(3) == a.evidence(3)
    assert fresh["lime(samples=40)", "e0"].evidence(1)[0].positions == (0, 5)
    assert fresh["random_scores(unit=ngram)", "e1"].fragments == ()
    assert fresh["occlusion", "e0"].fragments is None

    # a run from before fragments were kept
    for path in (tmp_path / "run" / "attributions").rglob("*.parquet"):
        table = pq.read_table(path, partitioning=None)
        pq.write_table(table.drop_columns(["level", "fragments"]), path)
    old = Run.open(tmp_path / "run").attributions("m", "lime(samples=40)")
    assert {(one.level, one.fragments) for one in old.values()} == {("word", None)}
    again = seen(3)
    assert np.array_equal(
        again["lime(samples=40)", "e3"].scores, fresh["lime(samples=40)", "e3"].scores
    )
