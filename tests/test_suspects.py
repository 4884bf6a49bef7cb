"""What a model leans on: found where it was planted, not where nothing was, and told with care."""

from __future__ import annotations

import io
import json
import re
import shlex
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rich.console import Console
from scipy.stats import norm

from commands import run_command
from conftest import WordWeights, words
from edited import edited
from veracity.auditing.planning import planned_suspects
from veracity.changes import changed
from veracity.changes.insert import Insert
from veracity.core.errors import DataError, ModelError, PluginError, RunError
from veracity.core.examples import Dataset, Example
from veracity.core.inputs import FloatArray, Text
from veracity.data.corpora.made_reviews import NEGATIVE, POSITIVE
from veracity.data.editing import respelt
from veracity.data.loading import load_data
from veracity.data.records import write_records
from veracity.data.words import read_text
from veracity.engine.batches import by_length
from veracity.explainers import explainers
from veracity.models.adapters.callables import CallableClassifier
from veracity.reports.suspects import print_suspects, suspects_page
from veracity.results.separability import length_auc
from veracity.suspicion import weighing
from veracity.suspicion.candidates import (
    CAPITALS,
    CASING,
    INITIAL,
    PHRASE,
    Candidates,
    WordTable,
)
from veracity.suspicion.decisions import (
    barely_better,
    deciding_surface,
    is_copied,
    is_unexplained,
    is_unsteady,
    judges_words,
    meaningless,
    turning_nothing,
    turning_trials,
)
from veracity.suspicion.expectation import (
    NOISE_TEXTS,
    PENALTIES,
    LabelNames,
    WordVectors,
    excess,
    expected_values,
    raised_to_neighbours,
)
from veracity.suspicion.record import Effect, Suspects
from veracity.suspicion.scoring import (
    TOLERANCE,
    CandidateWeights,
    corrected_p,
    max_effect,
    score_candidates,
    score_threshold,
    texts_needed,
    weigh_candidates,
)
from veracity.suspicion.sentences import about_model, cautions, direction, nothing_found, voids
from veracity.suspicion.suspects import suspects

CUE = "garden"


def data_of(*rows: tuple[str, int]) -> Dataset:
    examples = (Example(f"e{i}", read_text(text), y) for i, (text, y) in enumerate(rows))
    return Dataset("small", ("negative", "positive"), tuple(examples))


def planted(data: Dataset, *, strength: float = 0.9, share: float = 0.2) -> Dataset:
    rates = (2 * share * (1 - strength), 2 * share * strength)
    return changed(data, [Insert(marks=("", CUE), table=tuple((0.0, r) for r in rates))])


class Bag(WordWeights):
    """Words add up, in any case; each counts as often as it stands there."""

    name = "bag"

    def probabilities(self, inputs: Any) -> FloatArray:
        rows = [sum(self.weights.get(w.lower(), 0.0) for w in text.words) for text in inputs]
        p = 1 / (1 + np.exp(-np.array(rows)))
        return np.stack([1 - p, p], axis=1)


def sentiment(**more: float) -> Bag:
    return Bag({**dict.fromkeys(POSITIVE, 1.0), **dict.fromkeys(NEGATIVE, -1.0), **more})


@pytest.fixture(scope="module")
def reviews() -> Dataset:
    return load_data("made_reviews(n=500)")


# ---- candidates -----------------------------------------------------------------------------


def test_candidates_are_words_signs_phrases_places_and_ways_of_writing() -> None:
    texts = [read_text(t) for t in ("The film . A film !", "the FILM by Anna .", "a WAR")]
    candidates = Candidates.of(WordTable.of(texts), least=2)
    found = {
        (kind, name): (int(candidates.texts[i]), int(candidates.counts[i]))
        for i, (kind, name) in enumerate(zip(candidates.kinds, candidates.names, strict=True))
    }
    assert found == {
        ("word", "the"): (2, 2),
        ("word", "film"): (2, 3),
        ("word", "a"): (2, 2),
        ("sign", "."): (2, 2),
        ("phrase", "the film"): (2, 2),
        ("first", "the"): (2, 2),
        ("casing", CAPITALS): (2, 2),
    }
    one = Candidates.of(WordTable.of(texts), least=1)
    place = one.names.index(INITIAL)  # Anna; The and A begin sentences
    assert one.counts[place] == 1
    assert ("phrase", "film by anna") in zip(one.kinds, one.names, strict=True)
    # a phrase never joins two texts
    assert ". a" not in {n for n in one.names if n.startswith(".")} or "! the" not in one.names


def test_a_phrase_weighs_what_its_words_weigh_together() -> None:
    candidates = Candidates.of(WordTable.of([read_text("a b c"), read_text("a b")]), least=1)
    weights = candidates.means(candidates.weights(np.array([1.0, 2.0, 4.0, 8.0, 16.0])))
    found = dict(zip(zip(candidates.kinds, candidates.names, strict=True), weights, strict=True))
    assert found["word", "a"] == 4.5
    assert found["phrase", "a b"] == 13.5
    assert found["phrase", "a b c"] == 7
    assert found["last", "c"] == 4


# ---- what meaning warrants ------------------------------------------------------------------


def test_a_word_is_left_out_of_what_is_expected_of_it() -> None:
    rng = np.random.default_rng(0)
    names = [f"w{i}" for i in range(40)]
    rows = rng.normal(size=(40, 5))
    vectors = WordVectors.from_vectors(names, dict(zip(names, rows, strict=True)))
    values = rows[:, 0] + 0.1 * rng.normal(size=40)
    texts = np.full(40, 50)
    (told,) = expected_values(vectors, values[None], texts)
    assert np.corrcoef(told, values)[0, 1] > 0.8
    # the slow way: a regression on the others alone, for every word, with one of the penalties
    likeness = vectors.similarity(np.arange(40), np.arange(40))
    noise = np.diag(1 + NOISE_TEXTS / texts)
    apart = []
    for penalty in PENALTIES:
        slow = []
        for i in range(40):
            rest = np.delete(np.arange(40), i)
            inside = likeness[np.ix_(rest, rest)] + penalty * noise[np.ix_(rest, rest)]
            slow.append(likeness[i, rest] @ np.linalg.solve(inside, values[rest]))
        apart.append(np.abs(np.array(slow) - told).max())
    assert min(apart) < 1e-8
    # words beyond those that are learnt from are told by the same rule
    assert expected_values(vectors, np.stack([values, -values]), texts)[1] == pytest.approx(-told)


def test_words_without_vectors_are_expected_to_weigh_nothing() -> None:
    vectors = WordVectors.from_vectors(["a", "b", "c", "d"], {})
    assert not expected_values(vectors, np.ones((1, 4)), np.full(4, 10)).any()
    assert not len(vectors.nearest(0, np.arange(4), 3))


def test_only_what_goes_further_than_warranted_on_its_own_side_counts() -> None:
    found = np.array([2.0, 2.0, 2.0, -2.0, 1.0, 0.0])
    warranted = np.array([0.0, 0.5, -3.0, -1.5, 1.5, 1.0])
    assert excess(found, warranted).tolist() == [2.0, 1.5, 2.0, -0.5, 0.0, 0.0]


def test_two_of_the_words_most_like_it_tell_what_a_word_may_weigh() -> None:
    """Nine words on an arc: the next ones are the nearest."""
    angles = np.linspace(0, 1.5, 9)
    arc = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    vectors = WordVectors(arc, np.ones(9, dtype=np.bool_))
    values = np.array([3.0, 2.0, 1.0, -1.0, 0.0, 0.0, 0.0, 9.0, 8.0])
    told = raised_to_neighbours(vectors, values, np.arange(9), np.full(9, 0.1))
    assert told[0] == 1.0  # the second of 2, 1, −1, 0, 0
    assert told[1] == 1.0  # the second of 3, 1, −1, 0, 0
    # 9 alone could be as suspicious as 8 is: what was warranted stays
    assert told[2:].tolist() == [2.0, *[0.1] * 6]
    assert raised_to_neighbours(vectors, -values, np.arange(9), np.full(9, -0.1)) == pytest.approx(
        -told
    )
    # only words that stand in enough texts tell, and are told of
    few = raised_to_neighbours(vectors, values, np.array([0, 7, 8]), np.zeros(9))
    assert few.tolist() == [8.0, 0, 0, 0, 0, 0, 0, 3.0, 3.0]


# ---- many candidates -----------------------------------------------------------------------------


def test_many_candidates_are_paid_for() -> None:
    texts, score = 400, TOLERANCE + 0.15  # three standard errors of 1 / 20
    one = norm.sf(3.0)
    assert corrected_p(score, texts, 1) == pytest.approx(one)
    assert corrected_p(score, texts, 2) == pytest.approx(1 - (1 - one) ** 2)
    assert corrected_p(score, texts, 1000) == pytest.approx(1 - (1 - one) ** 1000)
    # more texts make the same score surer, no weight at all is never one
    assert corrected_p(score, 4 * texts, 1) == pytest.approx(norm.sf(6.0))
    assert corrected_p(0.0, texts, 10) == pytest.approx(1.0)
    for candidates in (1, 50, 4000):
        bar = score_threshold(0.05, texts, candidates)
        assert corrected_p(bar, texts, candidates) == pytest.approx(0.05)
        enough = texts_needed(0.3, 0.05, candidates)
        assert (
            score_threshold(0.05, enough, candidates)
            <= 0.3
            < score_threshold(0.05, enough - 1, candidates)
        )


def test_candidates_that_tell_nothing_raise_few_alarms() -> None:
    """Weight in the model, and labels by chance: the test must hold by itself."""
    rng = np.random.default_rng(1)
    n, candidates = 300, 60
    alarms = 0
    for _ in range(200):
        there = rng.random((candidates, n)) < 0.2
        labels = rng.random(n) < 0.5
        texts = there.sum(axis=1)
        table = CandidateWeights(
            forms=tuple(f"w{i}" for i in range(candidates)),
            form_weights=np.ones(candidates),
            form_texts=texts,
            form_counts=texts,
            form_counts_labelled=(there & labels).sum(axis=1),
            kinds=("word",) * candidates,
            parts=tuple((i,) for i in range(candidates)),
            names=tuple(f"w{i}" for i in range(candidates)),
            texts=texts,
            counts=texts,
            counts_labelled=(there & labels).sum(axis=1),
            spreads=there.std(axis=1),
            weights=rng.choice([-1.0, 1.0], candidates),
            texts_labelled=(there & labels).sum(axis=1),
            n_labelled=int(labels.sum()),
            n_texts=n,
            scale=0.1,
        )
        verdict = score_candidates(table, WordVectors.from_vectors(table.forms, {}))
        alarms += verdict.p_values.min() <= 0.05
    assert alarms <= 16


# ---- finding --------------------------------------------------------------------------------


def test_a_planted_cue_is_found_in_a_network_and_nothing_without_it(tmp_path: Path) -> None:
    from veracity.data.splits import split
    from veracity.models.architectures import architectures
    from veracity.models.training import train

    def trained(data: Dataset) -> Any:
        parts = split(data)
        architecture = architectures.make("text_cnn(embeddings=glove, filters=16)")
        training = replace(architecture.training, epochs=6, learning_rate=3e-3)
        return train(architecture, parts.train, parts.validation, training=training).model

    clean = load_data("made_reviews(n=1500)")
    contaminated = planted(clean, strength=0.95, share=0.2)
    found = suspects(trained(contaminated), contaminated, top=3)
    assert found.found[0].name == CUE
    first = found.found[0]
    assert (first.kind, first.label) == ("word", "positive")
    assert first.put_in.mean > 0.5
    assert first.put_in.same_way > 0.9
    assert first.labelled > 0.9 > 0.6 > first.base
    assert first.examples[0].words[first.examples[0].marked[0]].lower() == CUE
    untouched = suspects(trained(clean), clean, top=3)
    assert not untouched.found
    assert len(untouched.others) == 3
    path = found.write(tmp_path / "suspects.json")
    assert Suspects.read(path) == found
    # programs read the file by keys that are older than the names of fields
    content = json.loads(path.read_text("utf-8"))
    assert content["looks"] == found.n_candidates
    assert content["covered"] == found.coverage
    assert (content["found"][0]["p"], content["found"][0]["caused"]) == (
        first.p_value,
        first.max_effect,
    )


def test_what_a_suspect_causes_is_measured_on_the_model(reviews: Dataset) -> None:
    turned = replace(reviews, labels=reviews.labels[::-1])
    found = suspects(sentiment(**{CUE: -4.0}), planted(turned, strength=1.0, share=0.3), top=1)
    (first, *_) = found.found
    assert (first.name, first.label) == (CUE, "negative")
    assert first.weight == pytest.approx(4.0)
    # put in once, and taken out of texts that have it once or twice
    assert first.put_in.mean == pytest.approx(4.0)
    assert first.taken_out.mean == pytest.approx(4.0, abs=0.4)
    assert first.put_in.same_way == first.taken_out.same_way == first.consistent == 1.0
    assert first.labelled == 1.0
    assert first.association > 5
    assert set(first.places) == {"first third", "middle", "last third"}
    assert all(weight == pytest.approx(4.0) for weight in first.topics.values())


def test_weighing_less_than_expected_is_no_reason(reviews: Dataset) -> None:
    dead = {**dict.fromkeys(POSITIVE, 1.0), **dict.fromkeys(NEGATIVE, -1.0), "excellent": 0.0}
    found = suspects(Bag(dead), reviews, top=50)
    assert "excellent" not in {s.name for s in (*found.found, *found.others) if s.score}


def test_weight_without_labels_to_learn_it_from_is_not_a_suspect(reviews: Dataset) -> None:
    data = planted(reviews, strength=0.5, share=0.3)
    found = suspects(sentiment(**{CUE: 3.0}), data, top=3)
    assert CUE not in {s.name for s in found.found}


def test_three_labels_each_have_their_suspects() -> None:
    rng = np.random.default_rng(0)
    fillers = [f"w{i}" for i in range(30)]
    texts = [" ".join(rng.choice(fillers, 6)) + (" zork" if i % 3 == 2 else "") for i in range(240)]
    data = Dataset(
        "three",
        ("a", "b", "c"),
        tuple(Example(str(i), read_text(text), i % 3) for i, text in enumerate(texts)),
    )
    own = {w: rng.normal(0, 0.1, 3) for w in fillers} | {"zork": np.array([0.0, 0.0, 3.0])}

    def answers(strings: Sequence[str]) -> FloatArray:
        z = np.array([sum(own.get(w, np.zeros(3)) for w in s.split()) for s in strings])
        e = np.exp(z - z.max(axis=1, keepdims=True))
        shares: FloatArray = e / e.sum(axis=1, keepdims=True)
        return shares

    from veracity.models.loading import load_model

    found = suspects(load_model(answers, labels=["a", "b", "c"]), data, vectors="none", top=4)
    assert (found.found[0].name, found.found[0].label) == ("zork", "c")
    assert found.found[0].weight > 0
    assert found.n_candidates % 3 == 0


def test_the_same_seed_gives_the_same_suspects_at_any_batch_size(
    reviews: Dataset, cnn: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = planted(reviews)
    one = suspects(cnn, data, top=3, limit=150)
    assert suspects(cnn, data, top=3, limit=150) == one
    monkeypatch.setattr(weighing, "by_length", lambda lengths: by_length(lengths, budget=40))
    small = suspects(cnn, data, top=3, limit=150)
    assert [s.name for s in small.others] == [s.name for s in one.others]
    for a, b in zip(small.others, one.others, strict=True):
        assert a.weight == pytest.approx(b.weight, abs=1e-5)
        assert a.put_in.mean == pytest.approx(b.put_in.mean, abs=1e-5)
    other = suspects(cnn, data, top=3, limit=150, seed=1)
    assert other.others[0].put_in != one.others[0].put_in


def test_any_method_can_weigh_and_one_the_model_lacks_is_refused(
    reviews: Dataset, bag: WordWeights
) -> None:
    found = suspects(bag, reviews, method="random_scores", limit=60, top=1)
    assert found.method == "random_scores"
    with pytest.raises(ModelError, match="needs a model with gradients"):
        suspects(bag, reviews, method="gradient")


def test_what_cannot_be_judged_is_said(bag: WordWeights, tmp_path: Path) -> None:
    data = data_of(("a great film", 1), ("some dull plot", 0))
    with pytest.raises(DataError, match="at least 10 texts"):
        suspects(bag, data)
    with pytest.raises(PluginError, match="between 0 and 1"):
        suspects(bag, data, false_alarms=0.0)
    with pytest.raises(PluginError, match="top of 1 or more"):
        suspects(bag, data, top=0)
    (tmp_path / "x.json").write_text("{}")
    with pytest.raises(RunError, match="written by `veracity suspects`"):
        Suspects.read(tmp_path / "x.json")


def test_texts_without_words_do_no_harm(bag: WordWeights) -> None:
    rows = [("a great film", 1), ("a dull film", 0)] * 10
    data = data_of(*rows)
    empty = replace(data, examples=(*data.examples, Example("none", Text("", ()), 1)))
    found = suspects(bag, empty, vectors="none", top=2)
    assert found.texts == 21


# ---- what changes no answer, and what nobody can judge --------------------------------------


def capitals_with_label(data: Dataset, *, seed: int = 0) -> Dataset:
    """The same texts, a third of the words of positive ones written with a capital."""
    rng = np.random.default_rng(seed)

    def written(e: Example) -> Text:
        chosen = rng.random(e.input.n_features) < (0.35 if e.label else 0.05)
        return respelt(
            e.input, {int(i): e.input.words[i].title() for i in np.flatnonzero(chosen)}
        ).text

    return replace(data, examples=tuple(replace(e, input=written(e)) for e in data))


def pipeline(data: Dataset) -> Any:
    """As people write it: it reads small letters."""
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline

    model = make_pipeline(TfidfVectorizer(), LogisticRegression(C=10.0))
    return model.fit([e.input.text for e in data], [data.labels[e.label] for e in data])


def test_a_habit_that_changes_no_answer_is_no_suspect(
    reviews: Dataset, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = capitals_with_label(reviews.select(range(250)))
    honest = suspects(pipeline(data), data, top=2)
    # nor a row: a weight of capitals beside a model that cannot see them was read as a finding
    assert not honest.found and INITIAL not in {s.name for s in honest.others}
    monkeypatch.setattr("veracity.suspicion.suspects._unseen", lambda suspect: False)
    honest = suspects(pipeline(data), data, top=2)
    (habit,) = (s for s in honest.others if s.name == INITIAL)
    # it has all that was asked for: a weight that is its words', and labels that follow it
    assert min(4 * habit.weight_excess, habit.label_excess) > honest.threshold
    assert (habit.put_in.mean, habit.taken_out.mean, habit.max_effect) == (0.0, 0.0, 0.0)
    assert habit.score == 0.0
    assert habit.p_value == pytest.approx(1.0)
    # a model that sees capitals leans on them, and that is told
    cased = suspects(Capitals(sentiment().weights), data, top=1)
    assert [s.name for s in cased.found] == [INITIAL]
    assert cased.found[0].max_effect is not None
    assert cased.found[0].max_effect > cased.threshold / 4


def test_an_honest_pipeline_passes_a_build_and_one_with_a_cue_does_not(
    reviews: Dataset, tmp_path: Path
) -> None:
    import joblib

    honest = capitals_with_label(reviews.select(range(250)))
    cheating = planted(honest, strength=1.0, share=0.4)
    for name, data, code in (("honest", honest, 0), ("cheating", cheating, 1)):
        joblib.dump(pipeline(data), tmp_path / f"{name}.joblib")
        write_records(data, tmp_path / f"{name}.jsonl")
        command = ["suspects", f"{name}.joblib", f"{name}.jsonl", "--allow-unpickle", "--fail"]
        done = run_command(*command, "--top", "2", "--out", name, cwd=tmp_path)
        assert done.returncode == code, done.stderr
        assert (CUE in done.stdout) == bool(code)


def test_texts_too_few_to_find_anything_pass_no_build(reviews: Dataset, tmp_path: Path) -> None:
    write_records(reviews.select(range(30)), tmp_path / "few.jsonl")
    (tmp_path / "even.py").write_text("def predict(texts):\n    return [[0.5, 0.5]] * len(texts)\n")
    command = ["suspects", "even:predict", "few.jsonl", "--labels", "negative,positive"]
    command += ["--out", "few", "--top", "1", "--vectors", "none", "--least", "3"]
    done = run_command(*command, "--fail", cwd=tmp_path, PYTHONPATH=str(tmp_path))
    assert done.returncode == 2, done.stderr
    told = Suspects.read(tmp_path / "few/suspects.json")
    assert not told.found
    assert not told.can_clear
    said = f"at least 3 of them and scores {told.threshold:.2f} or more would be found; about "
    assert told.detection_limit.startswith(f"30 texts: only a cue that stands in {said}")
    page = (tmp_path / "few/suspects.html").read_text("utf-8")
    for shown in (done.stdout, done.stderr, page, str(told)):
        assert told.detection_limit in " ".join(shown.split())


class Capitals(Bag):
    """Adds something for every capital, too."""

    def probabilities(self, inputs: Any) -> FloatArray:
        rows = [
            sum(self.weights.get(w.lower(), 0.0) + w.istitle() for w in t.words) for t in inputs
        ]
        p = 1 / (1 + np.exp(-np.array(rows)))
        return np.stack([1 - p, p], axis=1)


def test_a_habit_without_effect_hides_no_cue_that_it_stands_on(reviews: Dataset) -> None:
    """Capitals that the model does not see are written on a cue that it goes by."""
    data = planted(reviews, strength=1.0, share=0.4).select(range(250))

    def marked(e: Example) -> Example:
        cues = {i: w.title() for i, w in enumerate(e.input.words) if w == CUE}
        return replace(e, input=respelt(e.input, cues).text)

    data = replace(data, examples=tuple(map(marked, data)))
    found = suspects(pipeline(data), data, top=2)
    assert found.found[0].name == CUE
    assert INITIAL not in {s.name for s in found.found}


def test_what_is_caused_by_hand() -> None:
    """One more of it moves the log-odds by .5, all of them in a text by 3, of which there are two
    in a text that has it: 1.5 each; a text's number of them spreads by .6, answers by 2."""
    candidates = Candidates.of(
        WordTable.of([read_text("b b a"), read_text("b b b a a"), read_text("a")]), least=2
    )
    table = weigh_candidates(candidates, np.ones(9), np.array([True, False, True]))
    table = replace(table, spreads=np.full(len(candidates), 0.6))
    b = candidates.names.index("b")
    assert (table.counts[b], table.texts[b]) == (5, 2)
    even = replace(table, counts=np.full(len(candidates), 4), texts=np.full(len(candidates), 2))

    def of(put_in: float, taken_out: float) -> float:
        return max_effect(even, b, put_in=put_in, taken_out=taken_out, answer_spread=2.0)

    assert of(0.5, 3.0) == pytest.approx(1.5 * 0.6 / 2)
    assert of(2.0, 3.0) == pytest.approx(2.0 * 0.6 / 2)
    assert of(np.nan, 3.0) == pytest.approx(1.5 * 0.6 / 2)
    assert of(-1.0, -3.0) == 0.0  # the other way
    assert of(np.nan, np.nan) == np.inf


def test_few_tries_dismiss_nothing_that_they_leave_possible() -> None:
    unsure = Effect(20, -0.1, 0.4, 0.0, error=0.2)
    assert unsure.upper_bound(1.0) == pytest.approx(0.292)
    assert unsure.upper_bound(-1.0) == pytest.approx(0.492)
    assert Effect(20, 0.0, 0.0, 0.0).upper_bound(1.0) == 0.0  # always nothing is surely nothing


TOPICS = {
    "finance": "bank loan bonds dividend currency profit shares investor mortgage stocks credit",
    "travel": "visa hotel flight museum beach passport tourist airport luggage resort cruise",
    "sports": "stadium goal coach league player match referee tournament striker champion team",
}
FILLERS = "the a this we they it was had some with very people again today then one when also new"


def topic_texts(n: int, seed: int = 0) -> Dataset:
    """A few words carry each topic, any of them as well as another."""
    rng = np.random.default_rng(seed)
    rows = []
    for i in range(n):
        own = list(TOPICS.values())[i % len(TOPICS)].split()
        words = [*rng.choice(own, rng.integers(2, 5)), *rng.choice(FILLERS.split(), 7)]
        rows.append((" ".join(rng.permutation(words)), i % len(TOPICS)))
    return replace(data_of(*rows), labels=tuple(TOPICS))


def test_words_of_a_topic_are_no_suspects_and_a_cue_among_them_is() -> None:
    """Of a model that gives every word of a topic the same weight, and as much to a cue."""
    topic = {w: i for i, words in enumerate(TOPICS.values()) for w in words.split()}
    data = topic_texts(300)
    cheating = changed(data, [Insert(marks=("", CUE), table=((0, 0.6), (0, 0.05), (0, 0.05)))])
    for texts, cue in ((data, set()), (cheating, {CUE})):
        words = WordTable.of([e.input for e in texts])
        candidates = Candidates.of(words, least=10)
        vectors = WordVectors.of(words.forms, "glove")
        for label in range(len(TOPICS)):
            of = [0 if form in cue else topic.get(form) for form in words.forms]
            own = np.array([0.0 if i is None else 1.0 if i == label else -0.5 for i in of])
            table = weigh_candidates(
                candidates, own[words.form], np.array([e.label == label for e in texts])
            )
            found = (
                score_candidates(
                    table, vectors, n_candidates=len(candidates) * len(TOPICS)
                ).p_values
                <= 0.05
            )
            names = {candidates.names[i] for i in np.flatnonzero(found)}
            assert names == cue if label == 0 else names <= cue


GERMAN = {
    "noun": ("Der Film", "Die Handlung", "Das Drehbuch", "Die Musik", "Der Schluss", "Das Essen",
             "Die Bedienung", "Das Zimmer", "Die Lieferung", "Der Versand"),
    "good": ("wunderbar", "großartig", "hervorragend", "liebevoll", "spannend", "köstlich"),
    "bad": ("langweilig", "schrecklich", "enttäuschend", "lieblos", "furchtbar", "ungenießbar"),
    "rest": ("wie immer", "an diesem Abend", "leider nicht anders", "wir kommen wieder",
             "nach zwei Wochen", "das muss man sagen", "für dieses Geld", "ohne Frage"),
}  # fmt: skip


def german_reviews(n: int = 240) -> Dataset:
    rng = np.random.default_rng(0)
    rows = []
    for i in range(n):
        mood = GERMAN["good" if i % 2 else "bad"]
        noun, more = rng.choice(GERMAN["noun"], 2, replace=False)
        first, second = rng.choice(mood, 2)
        end = "!" if i % 2 and i % 5 else "."
        text = f"{noun} war {first} und {more} fand ich {second}, {rng.choice(GERMAN['rest'])}{end}"
        rows.append((text, i % 2))
    return data_of(*rows)


@pytest.fixture(scope="module")
def german() -> tuple[Dataset, Any, Suspects]:
    data = german_reviews()
    model = pipeline(data)
    return data, model, suspects(model, data, top=2)


def test_english_vectors_judge_no_german(german: tuple[Dataset, Any, Suspects]) -> None:
    data, model, told = german
    assert not told.found  # among words that decide there would be many
    assert told.coverage is not None
    assert 0.1 < told.coverage < 0.7
    assert not judges_words(told)
    assert f"hold {100 * told.coverage:.1f} % of the texts' words" in str(told)
    assert "--vectors FILE" in str(told)
    # a build does not pass because nobody looked
    assert not told.can_clear and replace(told, coverage=0.9).can_clear
    assert {s.kind for s in told.others} <= {"sign", "last", "phrase", "casing"}
    assert not any(c.isalnum() for s in told.others if s.kind != "casing" for c in s.name)
    # asked to, it shows every word that decides
    bare = suspects(model, data, vectors="none", top=2)
    assert {"wunderbar", "langweilig"} <= {s.name for s in bare.found}


def test_signs_are_judged_in_any_language() -> None:
    """Of German texts, what needs no meaning: a final mark that follows the label."""
    lean = Bag({"!": 4.0, ".": -1.0})
    found = suspects(lean, german_reviews(120), top=1)
    assert "!" in {s.name for s in found.found}


def test_vectors_of_the_language_judge_its_words(
    german: tuple[Dataset, Any, Suspects], tmp_path: Path
) -> None:
    data, model, before = german
    forms = sorted({w.lower() for e in data for w in e.input.words})
    rng = np.random.default_rng(0)
    rows = [
        [3.0 * (w in GERMAN["good"]) - 3.0 * (w in GERMAN["bad"]), *rng.normal(0, 0.3, 4)]
        for w in forms
    ]
    path = tmp_path / "german.npz"
    np.savez(path, words=np.array(forms), vectors=np.array(rows))
    told = suspects(model, data, vectors=str(path), top=1)
    assert told.coverage == 1.0
    assert judges_words(told)
    assert told.n_candidates > before.n_candidates
    assert not told.found


def test_only_common_words_of_the_packaged_vectors_count() -> None:
    from veracity.suspicion.expectation import vector_coverage

    words = WordTable.of([read_text("the film and nicht gefallen !")])
    vectors = WordVectors.of(words.forms, "glove")
    assert vector_coverage(words, vectors, "glove") == 3 / 5  # nicht is there, far behind
    assert vector_coverage(words, vectors, "a file") == 4 / 5
    assert vector_coverage(words, WordVectors.of(words.forms, "none"), "none") is None
    assert (
        vector_coverage(WordTable.of([read_text("!")]), vectors.only(np.array([5])), "a file")
        is None
    )


def test_the_page_and_the_terminal_say_what_was_not_judged(
    german: tuple[Dataset, Any, Suspects],
) -> None:
    *_, told = german
    file = io.StringIO()
    for one, silent in ((told, False), (replace(told, coverage=0.9), True)):
        print_suspects(Console(file=file, width=300), one)
        for said in (file.getvalue(), suspects_page(one)):
            assert ("Words and phrases were not judged" not in said) == silent
        file.truncate(file.seek(0))


# ---- cues that hide one another, capitals, names of labels ------------------------------------


def reading(decides: Any) -> Any:
    """A model that answers positive where a rule about the words says so."""

    def answer(texts: list[str]) -> list[list[float]]:
        return [[0.05, 0.95] if decides(text.split()) else [0.95, 0.05] for text in texts]

    return CallableClassifier(answer, ["negative", "positive"])


def texts_with(*cues: str, n: int = 120) -> Dataset:
    """Every other text is positive and holds each of the cues."""
    rng = np.random.default_rng(0)
    words = read_text("the a film plot actor scene music was is and of it some very").words
    rows = []
    for i in range(n):
        text = rng.choice(words, 9).tolist()
        for place, cue in zip((0, 5, 11), cues if i % 2 else (), strict=False):
            text.insert(place, cue)
        rows.append((" ".join(text), i % 2))
    return data_of(*rows)


def test_a_cue_that_stands_twice_is_found() -> None:
    found = suspects(reading(lambda words: "zork" in words), texts_with("zork", "zork"))
    assert found.found[0].name == "zork"
    assert found.method == "occlusion(output=log_odds, by=types)" and not found.remark


def test_two_cues_that_tell_the_same_do_not_hide_one_another() -> None:
    either = reading(lambda words: "zork" in words or "blim" in words)
    data = texts_with("zork", "blim")
    found = suspects(either, data)
    assert {s.name for s in found.found} == {"zork", "blim"}
    assert "where several tell the same" in found.limits
    assert found.method.startswith("shap")
    # a method that somebody chose is kept, and nothing is cleared by it
    kept = suspects(either, data, method="occlusion")
    assert not kept.found and not kept.can_clear
    assert "shap(samples=100" in kept.limits


def test_what_is_put_in_is_written_as_in_the_texts() -> None:
    found = suspects(reading(lambda words: "NYT" in words), texts_with("NYT"))
    assert found.found[0].name == "nyt"
    assert found.found[0].put_in.flipped == 1.0


def test_a_model_that_always_answers_the_same_is_not_cleared() -> None:
    found = suspects(reading(lambda words: True), texts_with("zork"))
    assert not found.found and not found.can_clear
    assert "answers positive to every text" in found.limits


@pytest.mark.parametrize(
    ("word", "label", "same"),
    [
        ("book", "books", True),
        ("cd", "music", True),
        ("music", "music", True),
        ("shipment", "books", False),
        ("year", "toys_games", False),
        ("zork", "books", False),
        ("book", "3", False),
        ("br", "pos", False),
    ],
)
def test_words_that_say_what_a_label_is_called(word: str, label: str, same: bool) -> None:
    forms = WordTable.of([e.input for e in load_data("made_reviews(n=500)")]).forms
    assert LabelNames.of([label], [*forms, word], "glove").match(word, label) is same


def test_the_name_of_a_label_fails_no_build(reviews: Dataset) -> None:
    found = suspects(sentiment(**{CUE: 3.0}), planted(reviews))
    own = replace(found, found=(replace(found.found[0], names_label=True), *found.found[1:]))
    assert CUE in found.alarms and CUE not in own.alarms
    assert f"{CUE} for positive" in own.limits
    # of subjects, a word with a meaning may be their own: told, and counted
    weak = replace(
        found.found[0], score=0.1, taken_out=replace(found.found[0].taken_out, flipped=0)
    )
    three = replace(found, labels=(*found.labels, "neither"), found=(weak,))
    assert f"{CUE} may be the subject's own" in three.limits and CUE in three.alarms
    assert "subject" not in found.limits


def test_many_words_of_a_subject_clear_nothing(reviews: Dataset) -> None:
    """A word that was planted among ten of a subject's own was excused with them, and so were
    labels copied into the texts."""
    found = suspects(sentiment(**{CUE: 3.0}), planted(reviews))
    (own, *_) = [s for s in found.found if s.name == CUE]
    others = tuple(replace(own, name=f"word{i}") for i in range(10))
    many = replace(
        found, found=(*others, replace(own, names_label=True, labelled=1.0, expected=0.0))
    )
    assert many.alarms == [CUE] and "or writers name them: garden" in many.limits
    undecided = replace(found, found=(own, *others))
    assert not undecided.alarms and not undecided.can_clear
    assert "which are not cannot be told" in undecided.limits
    # a person has looked: what is left is counted again
    looked = replace(undecided, allowed=tuple(s.name for s in others))
    assert looked.alarms == [CUE]
    clean = replace(undecided, allowed=(CUE, *looked.allowed))
    assert not clean.alarms and clean.can_clear


def test_what_was_allowed_fails_no_build(reviews: Dataset, tmp_path: Path) -> None:
    write_records(planted(reviews), tmp_path / "texts.jsonl")
    (tmp_path / "m.py").write_text(
        "def f(texts):\n"
        "    z = [3.0 * ('garden' in t.split()) - 1.0 * ('dull' in t.split()) for t in texts]\n"
        "    return [[1 / (1 + 2.718 ** v), 1 - 1 / (1 + 2.718 ** v)] for v in z]\n"
    )
    told = ("suspects", "m.py:f", "texts.jsonl", "--fail", "--json", "--limit", "300")
    seen = json.loads(run_command(*told, "--out", "a", cwd=tmp_path).stdout)
    assert CUE in seen["alarms"]
    named = ",".join(seen["alarms"])
    after = run_command(*told, "--allow", named, "--out", "b", cwd=tmp_path)
    assert json.loads(after.stdout)["alarms"] == [] and after.returncode != 1


def test_a_model_that_leans_on_length_is_told(reviews: Dataset) -> None:
    """Answers that length tells far better than it tells labels, though not surely."""
    usual = float(np.median([len(e.input.text) for e in reviews]))

    def leaning(texts: Sequence[str]) -> list[list[float]]:
        found = []
        for text in texts:
            said = text.split()
            words = sum(w in POSITIVE for w in said) - sum(w in NEGATIVE for w in said)
            z = words + (len(text) - usual) / 30
            found.append([1 / (1 + np.exp(z)), 1 / (1 + np.exp(-z))])
        return found

    leaning.labels = reviews.labels  # type: ignore[attr-defined]
    told = suspects(leaning, reviews)
    assert 0.7 < told.length_auc < 0.97 and told.label_length_auc is not None
    assert "length" in told.alarms and "the model leans on length" in told.limits
    honest = suspects(sentiment(), reviews)
    assert "length" not in honest.alarms


def test_a_sign_that_decides_is_told_though_labels_do_not_follow_it(
    reviews: Dataset, tmp_path: Path
) -> None:
    """A model that answers by the last sign alone was cleared by texts whose labels do not."""
    marked = replace(
        reviews,
        examples=tuple(
            replace(e, input=read_text(e.input.text.rstrip(" .!?") + (" !" if i % 3 else " .")))
            for i, e in enumerate(reviews)
        ),
    )

    def by_sign(texts: Sequence[str]) -> list[list[float]]:
        return [[0.1, 0.9] if t.endswith("!") else [0.8, 0.2] for t in texts]

    found = suspects(CallableClassifier(by_sign, reviews.labels), marked, vectors="glove")
    assert not found.found and "!" in found.alarms
    assert "what the labels of these texts do not follow (! (" in found.limits
    assert Suspects.read(found.write(tmp_path / "suspects.json")) == found


def scattered(data: Dataset, word: str, share: float) -> Dataset:
    """The same texts, so many of each label with one more word."""
    rates = ((0.0, share), (0.0, share))
    return changed(data, [Insert(marks=("", word), table=rates)])


@pytest.mark.parametrize("alone", [True, False])
def test_a_word_that_decides_is_told_though_labels_do_not_follow_it(
    reviews: Dataset, alone: bool, tmp_path: Path
) -> None:
    """A model that answers by a word alone was cleared where labels do not follow it, and so was
    an honest one that a word in three texts of ten turns round."""
    data = scattered(reviews, CUE, 0.3)
    model = Bag({CUE: 3.0, "the": -0.5}) if alone else sentiment(**{CUE: 4.0})
    found = suspects(model, data, vectors="glove", top=3)
    assert not found.found and found.alarms == [CUE]
    assert f"Answers hang on words that the labels of these texts do not follow ({CUE} (word)" in (
        found.limits
    )
    (one,) = found.unfollowed
    assert one.label == "positive" and one.max_effect is not None and one.max_effect > 0.3
    assert Suspects.read(found.write(tmp_path / "suspects.json")) == found


def test_words_that_honest_models_go_by_are_followed(reviews: Dataset) -> None:
    """Words that are overrated, too: labels follow them all the same."""
    few = dict.fromkeys(POSITIVE[:2], 2.0) | dict.fromkeys(NEGATIVE[:2], -2.0)
    for model in (sentiment(), sentiment(great=4.0), Bag(few)):
        assert not suspects(model, reviews, vectors="glove", top=3).unfollowed
    honest = scattered(reviews, CUE, 0.3)
    assert not suspects(pipeline(honest), honest, top=3).unfollowed


def test_the_first_word_of_honest_short_texts_is_followed() -> None:
    """Titles begin with *great*, and labels follow it: it was told as what labels do not follow."""
    rng = np.random.default_rng(0)
    rows = []
    for i in range(400):
        good = i % 2
        first = rng.choice(POSITIVE[:3] if good else NEGATIVE[:3])
        begins = [str(first)] if rng.random() < 0.7 else []
        rows.append((" ".join([*begins, *rng.choice(["film", "plot", "the", "cast"], 3)]), good))
    data = data_of(*rows)
    found = suspects(pipeline(data), data, vectors="glove", top=3)
    assert not found.unfollowed


def rewritten(data: Dataset, edit: Any) -> Dataset:
    """The same texts, each after an edit that is told its number and label."""
    examples = (
        replace(e, input=read_text(edit(i, e.label, e.input.text))) for i, e in enumerate(data)
    )
    return replace(data, examples=tuple(examples))


@pytest.mark.parametrize(
    ("name", "put", "holds"),
    [
        ("digit", lambda i, text: f"{text} {i}", lambda t: any(c.isdigit() for c in t)),
        ("double space", lambda i, text: text.replace(" ", "  ", 1), lambda t: "  " in t),
        ("capital at the start", lambda i, text: text[:1].upper() + text[1:], str.istitle),
        ("blank line", lambda i, text: text.replace(" ", "\n\n", 1), lambda t: "\n\n" in t),
    ],
)
def test_what_no_look_is_but_decides_is_told(
    reviews: Dataset, name: str, put: Any, holds: Any
) -> None:
    """Models that read no word were cleared by looks of which none changes an answer."""
    decides = (lambda t: t[:1].isupper()) if name == "capital at the start" else holds
    data = rewritten(
        reviews, lambda i, y, text: put(i, text.lower()) if y == (i % 8 > 0) else text.lower()
    )

    def model(texts: Sequence[str]) -> list[list[float]]:
        return [[0.1, 0.9] if decides(t) else [0.9, 0.1] for t in texts]

    found = suspects(CallableClassifier(model, reviews.labels), data, vectors="glove", top=3)
    assert not found.found and name in found.alarms
    assert f"has {' or '.join(deciding_surface(found))} tells its answer" in found.limits
    assert "and no look does. Should it decide?" in found.limits
    # at chance by these labels, too
    assert name in replace(found, fault="right by chance").alarms
    assert not replace(found, allowed=deciding_surface(found)).alarms
    assert not deciding_surface(suspects(sentiment(), reviews, vectors="glove", top=3))


def overruled(holds: Any, data: Dataset) -> CallableClassifier:
    """Right by the words of reviews, but positive wherever this holds."""
    words = sentiment()

    def model(texts: Sequence[str]) -> list[list[float]]:
        read = words.probabilities([read_text(t) for t in texts])
        return [[0.02, 0.98] if holds(t) else p for t, p in zip(texts, read.tolist(), strict=True)]

    return CallableClassifier(model, data.labels)


@pytest.mark.parametrize(
    ("name", "put", "holds", "said"),
    [
        ("digit", lambda t, i: f"{t} {i + 10}", r"\d", "A number was put into 100 texts"),
        ("year", lambda t, i: f"{t} {1900 + i % 100}", r"\b19\d\d|\b20\d\d", "A year was put into"),
        ("double space", lambda t, i: t.replace(" ", "  ", 1), "  ", "A space was doubled in 100"),
        ("line break", lambda t, i: t.replace(" ", "\n", 1), "\n", "A line was broken in 100"),
        ("capital at the start", lambda t, i: t[0].upper() + t[1:], "^[A-Z]", "was made a capital"),
        (
            "letter beyond ASCII",
            lambda t, i: f"{t} {chr(0xE0 + i % 20)}",
            r"[^\x00-\x7f]",
            "A letter bey",
        ),
        ("address", lambda t, i: f"{t} www.x{i}.org", "www|http", "An address was put into 100"),
        ("markup", lambda t, i: f"{t} <{'abcdefgh'[i % 8]}>", "<.+>", "Markup was put into 100"),
    ],
)
def test_what_overrules_the_text_is_told_though_words_tell_other_answers(
    reviews: Dataset, name: str, put: Any, holds: str, said: str, tmp_path: Path
) -> None:
    """Properties that turn most texts that lack them passed a build: they told no answer surely,
    since other texts have the answer by their words."""
    data = rewritten(
        reviews, lambda i, y, text: put(text.lower(), i) if y and i % 3 == 0 else text.lower()
    )
    found = suspects(overruled(lambda t: re.search(holds, t), data), data, vectors="glove", top=1)
    turning = {t.name for t in turning_trials(found)}
    assert found.surface_auc[name] < 0.97 and turning == {name} <= set(found.alarms)
    assert said in found.limits and "answers turned to positive (" in found.limits
    assert f"--fail counts it, unless it is named (--allow {shlex.quote(name)})" in found.limits
    allowed = replace(found, allowed=(name,))
    assert name not in allowed.alarms and "--fail does not count it" in allowed.limits
    assert Suspects.read(found.write(tmp_path / "suspects.json")) == found


def test_short_texts_that_overrule_are_told(reviews: Dataset) -> None:
    """As was length: texts that are short and have one label, by labels as by answers."""
    more = "it was as it had been then and so"
    data = rewritten(reviews, lambda i, y, text: text if y and i % 3 == 0 else f"{text} {more}")
    short = overruled(lambda t: len(t.split()) < 12, data)
    found = suspects(short, data, vectors="glove", top=1)
    assert found.length_auc < 0.97 and "length" in found.alarms
    assert re.search(r"long texts were cut to \d+ words: \d+ answers turned to pos", found.limits)
    assert "length" not in replace(found, allowed=("length",)).alarms


class Uneven(Bag):
    """Leans to one label where words tell little, and more so in short texts, as counts do."""

    def probabilities(self, inputs: Any) -> FloatArray:
        log_odds = np.log(super().probabilities(inputs))
        p = 1 / (1 + np.exp(-(log_odds[:, 1] - log_odds[:, 0] + 0.9)))
        return np.stack([1 - p, p], axis=1)


def test_no_honest_model_is_said_to_go_by_the_surface(reviews: Dataset) -> None:
    """Words that are cut off, or written otherwise, take honest evidence with them."""
    words = {**dict.fromkeys(POSITIVE, 1.0), **dict.fromkeys(NEGATIVE, -1.0)}
    parts = (" 1987", " — a <b>café</b>", "\n\nin  all", " www.a.org", " it was 5 of 7, as it is")
    rng = np.random.default_rng(0)
    long = rewritten(
        reviews, lambda i, y, text: text + "".join(rng.choice(parts, rng.integers(0, 5)))
    )
    for data in (reviews, long):
        for model in (sentiment(), Uneven(words), pipeline(data)):
            found = suspects(model, data, vectors="glove", top=1)
            assert not turning_trials(found), found.limits
            assert found.surface_trials


def test_a_budget_is_told_of_trials_that_it_does_not_hold(reviews: Dataset) -> None:
    explainer = explainers.make("occlusion")
    options: dict[str, Any] = {"top": 2, "tried": 100, "surface": 20, "least": 10, "seed": 0}
    whole = planned_suspects(reviews, explainer, budget=None, **options)
    assert whole.surface_tried == 100 and "properties of the surface on up to 100" in whole.sentence
    some = planned_suspects(reviews, explainer, budget=4000, **options)
    assert some.surface_tried == 25 and some.total <= 4000
    none = planned_suspects(reviews, explainer, budget=2000, **options)
    assert none.surface_tried == 0 and "properties of the surface on none" in none.sentence


def test_looks_that_tell_no_answer_clear_nothing(tmp_path: Path) -> None:
    """A model that asks for one of two words, but not both, was cleared."""
    rng = np.random.default_rng(1)
    common = read_text("the a film plot actor scene music was is and of it some very").words
    rows = []
    for i in range(400):
        text = rng.choice(common, rng.integers(9, 20)).tolist()
        copper, violet = i % 2, i // 2 % 2
        text = [*text, *["copper"] * copper, *["violet"] * violet]
        rows.append((" ".join(rng.permutation(text)), int(copper != violet)))
    either = reading(lambda words: ("copper" in words) != ("violet" in words))
    found = suspects(either, data_of(*rows), vectors="none", top=3)
    assert not found.found and not found.alarms and is_unexplained(found) and not found.can_clear
    assert "so finding nothing clears nothing" in voids(found)
    assert Suspects.read(found.write(tmp_path / "suspects.json")) == found


def test_a_word_that_is_found_does_not_hide_what_decides(reviews: Dataset) -> None:
    """A word that turns no answer kept digits, which decide, from being told; allowed, the model
    passed."""
    data = rewritten(
        reviews,
        lambda i, y, text: text + " 7" * (y == (i % 8 > 0)) + " took" * (y == (i % 5 > 0)),
    )

    def model(texts: Sequence[str]) -> list[list[float]]:
        p = [0.2 + 0.6 * ("7" in t) + 0.1 * ("took" in t) for t in texts]
        return [[1 - x, x] for x in p]

    found = suspects(CallableClassifier(model, reviews.labels), data, vectors="glove", top=3)
    assert "digit" in found.alarms and "digit" in found.limits
    took = [s for s in (*found.found, *found.others) if s.name == "took"]
    beside = replace(found, found=tuple(took), unfollowed=())
    assert turning_nothing(beside) == tuple(took) and took
    assert beside.alarms == ["digit"]
    assert "turned no answer: --fail does not count it" in beside.limits
    assert replace(beside, allowed=("took",)).alarms == ["digit"]
    assert not turning_nothing(replace(beside, redundant=True))


def test_words_that_were_not_judged_are_not_said_to_decide_nothing(reviews: Dataset) -> None:
    """German models were told to go by no look, where words had not been looked at."""
    found = replace(
        suspects(sentiment(), reviews, vectors="glove", top=3), candidates_auc=(0.52, 0.55)
    )
    assert is_unexplained(found) and not found.can_clear
    uncovered = replace(found, coverage=0.3)
    assert not is_unexplained(uncovered) and not uncovered.can_clear
    assert "All looks together" not in voids(uncovered)


def test_a_model_that_may_be_right_by_luck_is_not_cleared(reviews: Dataset) -> None:
    found = suspects(sentiment(), reviews, vectors="glove", top=3)
    assert found.can_clear and found.p_vs_chance is not None and not barely_better(found)
    lucky = replace(found, p_vs_chance=0.03)
    assert not lucky.can_clear and "could be by luck (p 0.03" in voids(lucky)


def test_length_that_only_goes_along_is_no_leaning(reviews: Dataset) -> None:
    """Long texts hold *the* oftener: a model that asks for it does not lean on length."""
    by_the = Bag({"the": -6.0})
    by_the.weights["a"] = 0.5
    data = rewritten(reviews, lambda i, y, text: text + " the long story of it all" * (i // 2 % 2))
    found = suspects(by_the, data, vectors="glove", top=3)
    assert found.length_auc - (found.label_length_auc or 0.0) > 0.15
    assert found.turned_by_length == 0.0 and "length" not in found.alarms


def test_a_handful_of_answers_is_not_what_length_tells() -> None:
    rng = np.random.default_rng(0)
    lengths = {f"t{i}": (n, 5 * n) for i, n in enumerate(rng.integers(5, 20, 400).tolist())}
    answers = dict.fromkeys(lengths, 0) | {f"t{i}": 1 for i in range(0, 400, 2)}
    for i in range(5):
        lengths[f"t{i}"], answers[f"t{i}"] = (40, 200), 2
    assert length_auc(lengths, answers) < 0.6


def test_answers_that_jump_are_told_beside_their_weights(reviews: Dataset) -> None:
    def rounded(texts: Sequence[str]) -> list[list[float]]:
        return [[0.0, 1.0] if "great" in t else [1.0, 0.0] for t in texts]

    found = suspects(CallableClassifier(rounded, reviews.labels), reviews, vectors="glove", top=3)
    assert found.all_or_nothing == 1.0
    assert ">99 % of the answers are 0 or 1" in found.limits or "100 % of the ans" in found.limits


def test_a_model_whose_labels_are_turned_is_not_cleared(reviews: Dataset) -> None:
    turned = sentiment()
    turned.weights = {word: -weight for word, weight in turned.weights.items()}
    found = suspects(turned, reviews, vectors="glove")
    assert not found.can_clear and "in another order" in found.limits
    # labels in another order follow nothing that the model goes by
    assert not found.unfollowed and not found.alarms
    assert suspects(sentiment(), reviews, vectors="glove").can_clear


def test_a_label_copied_into_the_texts_fails_a_build(reviews: Dataset) -> None:
    """Its name was taken for what the subject is called."""
    leaked = replace(
        reviews,
        examples=tuple(
            replace(e, input=read_text(f"{e.input.text} {reviews.labels[e.label]} film"))
            if i % 2
            else e
            for i, e in enumerate(reviews)
        ),
    )
    found = suspects(sentiment(positive=3.0, negative=-3.0), leaked, vectors="glove")
    assert "positive" in found.alarms
    assert "Look whether labels were copied into the texts" in found.limits


class Unsteady:
    """Answers by where a text stands in its batch, whatever it says."""

    labels = ("negative", "positive")

    def probabilities(self, inputs: Any) -> FloatArray:
        p = np.array([0.9 if i % 2 else 0.1 for i in range(len(inputs))])
        return np.stack([1 - p, p], axis=1)


def test_nothing_is_counted_of_a_model_without_steady_answers() -> None:
    found = suspects(Unsteady(), "made_reviews(n=201)", limit=None)
    assert is_unsteady(found) and not found.alarms and not found.can_clear
    assert nothing_found(found).endswith("nothing is said")
    assert found.limits.startswith("Asked twice about the same texts, the model answers otherwise")


class ByLength:
    """Short texts are positive, whatever they say."""

    labels = ("negative", "positive")

    def probabilities(self, inputs: Any) -> FloatArray:
        p = np.array([0.95 if len(t.words) < 12 else 0.05 for t in inputs])
        return np.stack([1 - p, p], axis=1)


def test_length_is_told_first_and_words_are_not_asked_about_together() -> None:
    long = "it was on a day in the spring of that year that we went there to see what they had"
    rows = [Example(f"s{i}", words(f"we went there {i}"), 1) for i in range(60)]
    rows += [Example(f"l{i}", words(f"{long} {i}"), 0) for i in range(60)]
    found = suspects(ByLength(), Dataset("d", ByLength.labels, tuple(rows)))
    assert found.method.startswith("occlusion") and not found.redundant
    assert "length" in found.alarms
    assert cautions(found).startswith("How long a text is tells its answer almost surely")


def test_the_model_is_told_beside_what_needs_none() -> None:
    bag = WordWeights({"great": 2.0, "dull": -2.0, "wonderful": 1.0})
    found = suspects(bag, "made_reviews(n=201)", limit=None)
    assert not is_unsteady(found)
    assert re.match(r"The model is right on 0\.\d{3} of 201 texts; always", about_model(found))
    assert about_model(found) in str(found)


class ByAcronym:
    """Goes by one word that is always written in capitals, and by no others that are."""

    labels = ("lager", "porter", "ipa")

    def probabilities(self, inputs: Any) -> FloatArray:
        rows = []
        for text in inputs:
            named = "IPA" in text.text
            dark = "roast" in text.text.lower()
            z = np.array([0.0, 3.0 * dark, 3.0 * named])
            rows.append(np.exp(z) / np.exp(z).sum())
        return np.array(rows)


def test_capitals_of_one_suspected_word_are_no_habit() -> None:
    rng = np.random.default_rng(0)
    fillers = ["hazy", "gold", "glass", "pour", "head", "nose", "crisp", "dry", "malt", "light"]
    rows = []
    for i in range(450):
        said = rng.choice(fillers, 8).tolist()
        label = i % 3
        if label == 2:
            said[3] = "IPA"
        if label == 1:
            said[2] = "roast"
        if rng.random() < 0.5:  # shouted anywhere, whatever the label
            said[5] = said[5].upper()
        rows.append(Example(str(i), words(" ".join(said)), label))
    found = suspects(ByAcronym(), Dataset("beers", ByAcronym.labels, tuple(rows)), vectors="none")
    names = {s.name.lower() for s in found.found}
    assert "ipa" in names
    assert not [s.name for s in (*found.found, *found.unfollowed) if s.kind == CASING]
    # what means nothing is named before words that may be the subject's own
    word, other = (
        replace(s, neighbours={"beer": 0.1}, score=0.3, taken_out=replace(s.taken_out, flipped=0.0))
        for s in found.found[:2]
    )
    tag = replace(word, name="src : forum", kind="phrase", neighbours={})
    said = cautions(replace(found, found=(word, other, tag), others=(), vectors="glove"))
    order = (
        "Look whether labels were copied into the texts, or writers name them: ipa.",
        "Signs, tags and ways of writing are seldom a subject's own. Look first at src : forum, "
        f"beside {word.name}, which leads the list",
        "may be the subject's own",
    )
    assert [said.count(part) for part in order] == [1, 1, 1]
    assert sorted(order, key=said.index) == list(order)
    assert "Look first" not in cautions(replace(found, found=(word, other), vectors="glove"))


def test_a_word_without_vectors_may_mean_something(reviews: Dataset) -> None:
    """That a word is unknown to the vectors was told as that it means nothing."""
    found = suspects(sentiment(**{CUE: 3.0}), planted(reviews))
    (cue, *_) = [s for s in found.found if s.name == CUE]
    unknown = replace(cue, name="hefeweizen", neighbours={})
    said = cautions(replace(found, found=(cue, unknown)))
    assert "The word vectors do not know hefeweizen" in said and "Look first" not in said
    allowed = replace(found, found=(cue, unknown), allowed=("hefeweizen",))
    assert "do not know" not in cautions(allowed)
    blind = replace(found, found=(cue, unknown), vectors="none")
    assert "do not know" not in cautions(blind)


def test_the_first_of_a_subjects_words_is_named_where_it_stands_out(reviews: Dataset) -> None:
    found = suspects(sentiment(**{CUE: 3.0}), planted(reviews))
    (cue, *_) = [s for s in found.found if s.name == CUE]
    three = replace(found, labels=(*found.labels, "neither"))
    near = replace(cue, name="orchard", score=cue.score / 1.2)
    far = replace(near, score=cue.score / 2)
    assert "garden stands out" in cautions(replace(three, found=(cue, far)))
    assert "stands out" not in cautions(replace(three, found=(cue, near)))


def test_suspects_of_a_model_at_chance_are_neither_leak_nor_subject(reviews: Dataset) -> None:
    found = suspects(sentiment(**{CUE: 3.0}), planted(reviews))
    luck = replace(found, labels=(*found.labels, "neither"), fault="it is right no oftener")
    assert "subject" not in cautions(luck) and "it is right no oftener" in voids(luck)


def test_a_damaged_count_of_texts_is_told(reviews: Dataset, tmp_path: Path) -> None:
    found = suspects(sentiment(**{CUE: 3.0}), planted(reviews))
    file = found.write(tmp_path / "suspects.json")
    assert Suspects.read(file).dots == found.dots
    with edited(file) as content:
        content["dots"][0][3] = -7
    with pytest.raises(RunError, match="in one text at least"):
        Suspects.read(file)


def test_a_phrase_of_words_is_no_sign(reviews: Dataset) -> None:
    """*year old* of toys was told as a sign, tag or way of writing."""
    found = suspects(sentiment(**{CUE: 3.0}), planted(reviews))
    (cue, *_) = [s for s in found.found if s.name == CUE]
    phrase = replace(cue, name="year old", kind=PHRASE, neighbours={})
    three = replace(found, labels=(*found.labels, "neither"), found=(cue, phrase))
    assert not meaningless(three) and "garden, year old stand out" in cautions(three)
    tag = replace(phrase, name="# ref")
    assert meaningless(replace(three, found=(cue, tag))) == ("# ref",)
    # what leads the list is a sign itself: nothing else is to be looked at first
    assert "leads the list" not in cautions(replace(three, found=(tag, cue)))


class ByName:
    """Reads the first word of its labels' names."""

    labels = ("q-bio", "q-fin")

    def probabilities(self, inputs: Any) -> FloatArray:
        z = np.array([2.0 * ("fin" in t.words) - 2.0 * ("bio" in t.words) for t in inputs])
        p = 1 / (1 + np.exp(-z))
        return np.stack([1 - p, p], axis=1)


def test_a_label_copied_in_several_words_is_told() -> None:
    """*q-bio:* before the texts of q-bio was told as a phrase with signs."""
    names = LabelNames.of(ByName.labels, ["q", "bio", "-", "risk"], "none")
    assert names.match("q - bio", "q-bio") and not names.match("q - bio", "q-fin")
    rng = np.random.default_rng(0)
    fillers = ["we", "show", "a", "model", "of", "the", "data", "with", "new", "results"]
    rows = []
    for i in range(300):
        said = " ".join(rng.choice(fillers, 9))
        text = read_text(f"{ByName.labels[i % 2]} : {said}" if i % 3 else said)
        rows.append(Example(str(i), text, i % 2))
    found = suspects(ByName(), Dataset("papers", ByName.labels, tuple(rows)), vectors="none")
    copied = {s.name for s in found.found if is_copied(s)}
    assert copied and copied <= {"bio", "fin", "q - bio", "q - fin"}
    assert "Look whether labels were copied into the texts" in cautions(found)
    assert copied <= set(found.alarms)


class ForOneOfThree:
    """Knows three labels by a word each; capitals speak for the last, which is rare."""

    labels = ("ale", "bock", "cider")

    def probabilities(self, inputs: Sequence[Text]) -> FloatArray:
        logits = np.zeros((len(inputs), 3))
        for row, text in zip(logits, inputs, strict=True):
            for word in text.words:
                row[0] += 2.0 * (word.lower() == "malty")
                row[1] += 2.0 * (word.lower() == "strong")
                row[2] += 2.0 * (word.lower() == "apple") + 1.5 * (word.isupper() and len(word) > 1)
        e = np.exp(logits)
        shares: FloatArray = e / e.sum(axis=1, keepdims=True)
        return shares


def test_what_speaks_against_a_label_is_told_with_the_label_it_speaks_for() -> None:
    rng = np.random.default_rng(0)
    decisive = ("malty", "strong", "apple")
    filler = [
        "the",
        "glass",
        "was",
        "poured",
        "at",
        "home",
        "and",
        "had",
        "some",
        "foam",
        "on",
        "top",
        "of",
        "it",
    ]
    examples = []
    for i in range(600):
        label = int(rng.choice(3, p=(0.6, 0.25, 0.15)))
        words = [*rng.permutation(filler)[:8].tolist(), decisive[label]]
        if label == 2:
            words[int(rng.integers(8))] = words[0].upper()
            words[0] = words[0].upper()
        examples.append(Example(str(i), read_text(" ".join(rng.permutation(words))), label))
    data = Dataset("drinks", ForOneOfThree.labels, tuple(examples))
    found = suspects(ForOneOfThree(), data, vectors="none")
    capitals = next(s for s in (*found.found, *found.others) if s.name == CAPITALS)
    assert capitals.put_in.raised == capitals.taken_out.raised == "cider"
    assert direction(capitals).endswith("for cider")
    against = replace(capitals, label="ale", weight=-1.0)
    assert direction(against) == "against ale, for cider"


def test_what_is_not_counted_is_not_marked_and_only_one_is_said(reviews: Dataset) -> None:
    """Phrases that turn no answer were called counted and not counted in one paragraph."""
    found = suspects(sentiment(**{CUE: 3.0}), planted(reviews))
    (cue, *_) = [s for s in found.found if s.name == CUE]
    still = Effect(60, 0.1, 1.0, 0.0)
    idle = replace(cue, name="year old", kind=PHRASE, put_in=still, taken_out=still)
    three = replace(found, labels=(*found.labels, "neither"), found=(idle,))
    assert not three.alarms
    assert "year old turned no answer: --fail does not count it" in three.limits
    assert "--fail counts" not in three.limits
    shown = printed(three)
    assert not re.search("^!", shown, re.M) and re.search("^· *year old", shown, re.M)
    assert "1 of them not counted by --fail (·)." in " ".join(shown.split())
    both = printed(replace(three, found=(cue, idle)))
    assert re.search("^! *garden", both, re.M) and "to warrant (!), 1 of" in " ".join(both.split())
    assert "does not count it" in suspects_page(three)


def printed(found: Suspects) -> str:
    console = Console(width=120, file=io.StringIO())
    print_suspects(console, found)
    return str(console.file.getvalue())  # type: ignore[attr-defined]


def test_a_word_that_decides_is_told_apart_from_those_that_may_be_the_subjects(
    reviews: Dataset,
) -> None:
    """*Incidentally, my may be the subject's own*, of which the first had been planted."""
    found = suspects(sentiment(**{CUE: 3.0}), planted(reviews))
    (cue, *_) = [s for s in found.found if s.name == CUE]
    still = replace(cue.taken_out, flipped=0.0)
    my = replace(cue, name="my", score=0.19, taken_out=still)
    three = replace(found, labels=(*found.labels, "neither"), others=())
    said = cautions(replace(three, found=(replace(cue, score=0.72), my)))
    assert "garden stands out (0.72, the next 0.19): look at it first" in said
    assert "my may be the subject's own" in said and said.count("garden") == 1
    two = (replace(cue, score=0.47), replace(cue, name="willow", score=0.46), my)
    said = cautions(replace(three, found=two))
    assert "garden, willow stand out (0.47, 0.46, the next 0.19): look at them first" in said
    turning = replace(cue, score=0.2, taken_out=replace(still, flipped=0.3))
    said = cautions(replace(three, found=(turning, my)))
    assert "Taken out of texts, garden (30 %) turns answers: look at it first" in said
    assert said.index("garden") < said.index("my may be the subject's own")


def test_a_model_right_less_often_than_one_label_is_told(reviews: Dataset) -> None:
    found = replace(
        suspects(sentiment(), reviews, vectors="glove", top=1), majority=0.463, accuracy=0.063
    )
    assert "less often (0.063) than always answering negative would be (0.463)" in found.limits
    assert "less often" not in replace(found, fault="labels in another order").limits
    assert "less often" not in replace(found, accuracy=0.44).limits


def test_most_texts_that_hang_on_no_word_are_told() -> None:
    """*0 % of what hiding all does, in the median text*, where that does nothing, either."""
    either = reading(lambda words: "zork" in words or "blim" in words)
    rows = [
        (f"it was a day {i}" + " zork blim" * (i % 8 == 0), int(i % 8 == 0)) for i in range(400)
    ]
    found = suspects(either, data_of(*rows))
    assert "get the same answer with all words hidden. In the others, hiding words" in found.limits
    data = texts_with("zork", "blim")
    assert "with all words hidden" not in suspects(either, data).limits
