"""Changes of datasets: what they put where, what they record, what a model must then use."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from veracity.changes import Attack, PictureMark, Planting, changed, changes
from veracity.changes._regions import joint_effective_region
from veracity.changes.reassign import Reassign
from veracity.changes.swap import Swap
from veracity.core.attributions import Attribution
from veracity.core.changes import DECOY, MANIPULATION, ORIGINAL_LABEL, PLANTED, UNTOUCHED
from veracity.core.errors import DataError, PluginError
from veracity.core.examples import Dataset, Example
from veracity.core.inputs import Text
from veracity.data.editing import inserted, respelt
from veracity.data.loading import load_data
from veracity.data.records import write_records
from veracity.data.words import read_text
from veracity.metrics.attribution_mass import attribution_share
from veracity.results.guarantees import Reliance, luck, reliance, shapley_range

WORDS = st.lists(st.sampled_from(("a", "The", "beer", "good", ",", "!", "it's")), min_size=1)


def one(text: str, label: int) -> Dataset:
    return Dataset("one", ("no", "yes"), (Example("1", read_text(text), label),))


def many(n: int) -> Dataset:
    text = Text.of_words(["fine"])
    return Dataset("many", ("no", "yes"), tuple(Example(str(i), text, i % 2) for i in range(n)))


def places(example: Example, kind: str) -> list[int]:
    return np.flatnonzero(example.truths[kind][0]).tolist() if kind in example.truths else []


# ---- worked examples ------------------------------------------------------------------------


def test_ex_6_1_reassignment_matrix() -> None:
    change = Reassign(matrix=((0.7, 0.3), (0.3, 0.7)))
    assert change.bound(2) == 0.7
    data = many(100_000)
    after = change.changed(data, seed=0)
    flipped = np.mean([a.label != b.label for a, b in zip(after, data, strict=True)])
    assert abs(flipped - 0.3) <= 0.005
    by_r = Reassign(r=0.7)
    assert by_r.probabilities(2) == pytest.approx(np.array(change.matrix))


def test_ex_6_2_articles() -> None:
    after = Swap().changed(one("I had the beer at a bar", 0), seed=0).examples[0]
    assert after.input.text == "I had a beer at a bar"
    assert places(after, PLANTED) == [2, 5]
    attention = np.array([0.1, 0.1, 0.3, 0.1, 0.1, 0.2, 0.1])
    assert attribution_share(attention, after.truths[PLANTED][0]) == pytest.approx(0.5)


def test_ex_6_3_correlating_then_not() -> None:
    data = one("the beer was a hit in the town .", 1)
    drawn = {
        Swap(part="first").changed(data, seed=seed).examples[0].input.text: seed
        for seed in range(20)
    }
    assert set(drawn) == {
        "the beer was the hit in a town .",
        "the beer was the hit in the town .",
    }
    after = (
        Swap(part="first").changed(data, seed=drawn["the beer was the hit in a town ."]).examples[0]
    )
    assert (places(after, PLANTED), places(after, DECOY)) == ([0, 3], [6])
    turned = Swap(part="second").changed(data, seed=0).examples[0]
    assert (places(turned, PLANTED), places(turned, DECOY)) == ([6], [0, 3])


def test_ex_6_15_absence_is_evidence() -> None:
    image = np.full((10, 10), 0.5)
    top, bottom = image.copy(), image.copy()
    top[0], bottom[9] = 1.0, 1.0
    both = joint_effective_region(image, [bottom, top])
    assert both.mean() == pytest.approx(0.2)
    assert np.flatnonzero(both.any(axis=1)).tolist() == [0, 9]
    one_sided = joint_effective_region(image, [image, top])
    assert one_sided.mean() == pytest.approx(0.1)
    assert np.flatnonzero(one_sided.any(axis=1)).tolist() == [0]


def test_ex_5_4_accuracy_by_luck() -> None:
    assert luck(0.6, 100, 0.5) == pytest.approx(0.028444, abs=1e-6)
    assert luck(0.9, 10, 0.5) == pytest.approx(0.010742, abs=1e-6)
    assert luck(1.0, 50, 1.0) == 1.0
    # 0.905 of 10 is not a whole number: the floor bounds loosely, the ceiling tightly
    assert luck(0.905, 10, 0.5) == pytest.approx(0.010742, abs=1e-6)
    assert luck(0.905, 10, 0.5, "ceil") == pytest.approx(0.5**10)
    with pytest.raises(ValueError, match="between 0 and 1"):
        luck(1.2, 10, 0.5)


@pytest.mark.parametrize(
    ("p", "r", "expected"),
    [
        (1.0, 0.7, (0.8, 0.2)),
        (0.95, 0.7, (0.777778, 0.222222)),
        (1.0, 1.0, (0.5, 0.5)),
        (0.6, 0.9, (0.5, 0.5)),  # a model below r: r is put down to its accuracy
    ],
)
def test_ex_5_5_shapley_range(p: float, r: float, expected: tuple[float, float]) -> None:
    assert shapley_range(p, r) == pytest.approx(expected, abs=1e-6)


def test_no_range_for_a_coin() -> None:
    assert np.isnan(shapley_range(0.5, 0.7)).all()


# ---- edits ----------------------------------------------------------------------------------


@given(WORDS, st.integers(0, 20), st.sampled_from(["indeed", "by the way", "[wire]"]))
def test_an_insertion_keeps_every_other_word(words: list[str], place: int, mark: str) -> None:
    text, added = Text.of_words(words), read_text(mark)
    place = min(place, len(words))
    edit = inserted(text, place, added)
    assert edit.text.words == (*words[:place], *added.words, *words[place:])
    assert edit.came_from[edit.came_from >= 0].tolist() == list(range(len(words)))
    mask = np.arange(len(words)) % 2 == 0
    kept = [w for w, m in zip(edit.text.words, edit.carried(mask), strict=True) if m]
    assert kept == words[::2]


@given(WORDS, st.data())
def test_a_respelling_changes_only_its_words(words: list[str], data: st.DataObject) -> None:
    text = read_text("  " + " ; ".join(words) + "\n")
    n = text.n_features
    chosen = data.draw(st.sets(st.integers(0, n - 1)))
    edit = respelt(text, dict.fromkeys(chosen, "XX"))
    assert edit.text.words == tuple("XX" if i in chosen else text.words[i] for i in range(n))
    assert respelt(text, {}).text == text


def test_chinese_is_planted_without_spaces() -> None:
    text = read_text("这个酒店很好")
    edit = inserted(text, text.n_features, read_text("顺便"))
    assert edit.text.text == "这个酒店很好顺便"


# ---- every change ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name",
    [n for n in changes.names() if not issubclass(changes.get(n), Attack | PictureMark)],
)
def test_every_change_keeps_its_word(name: str) -> None:
    data = load_data("made_reviews(n=60)")
    after = changed(data, name, seed=1)
    if name not in ("punctuation", "swap", "structure"):  # which draw nothing here
        assert after.fingerprint() != changed(data, name, seed=2).fingerprint()
    for before, e in zip(data, after, strict=True):
        assert ("rationale" in e.truths) == (name != "reassign")
        for kind, masks in before.truths.items():
            if kind not in e.truths:
                continue
            marked = [w for w, m in zip(before.input.words, masks[0], strict=True) if m]
            now = [w for w, m in zip(e.input.words, e.truths[kind][0], strict=True) if m]
            assert len(now) == len(marked)  # what was known of a word is still known of it


PLANTINGS = [n for n in changes.names() if issubclass(changes.get(n), Planting)]


@pytest.mark.parametrize("name", PLANTINGS)
def test_every_planting_tells_the_label(name: str) -> None:
    data = changed(load_data("made_reviews(n=400)"), f"reassign, {name}(strength=0.9, share=0.5)")
    told = [e for e in data if e.facts[MANIPULATION] != UNTOUCHED]
    assert 0.4 < len(told) / len(data) < 0.6
    right = np.mean([int(e.facts[MANIPULATION]) == e.label for e in told])
    assert 0.85 < right < 0.95
    assert all(PLANTED in e.truths and e.truths[PLANTED][0].any() for e in told)
    assert not any(PLANTED in e.truths for e in data if e.facts[MANIPULATION] == UNTOUCHED)
    assert all(e.facts[ORIGINAL_LABEL] in data.labels and e.facts["bound"] == "0.5" for e in data)


@pytest.mark.parametrize("name", [n for n in PLANTINGS if n != "swap"])
def test_decoys_tell_nothing_and_stand_apart(name: str) -> None:
    decoy = {"insert": "otherwise", "punctuation": ";", "casing": "swapped"}[name]
    spec = f"{name}(decoys=({decoy!r},), decoy_share=0.5)"
    data = changed(load_data("made_reviews(n=600)"), f"reassign, {spec}")
    share = [np.mean([DECOY in e.truths for e in data if e.label == y]) for y in (0, 1)]
    assert np.abs(np.array(share) - 0.5).max() < 0.08
    for e in data:
        if DECOY in e.truths:
            assert not (e.truths[DECOY][0] & e.truths[PLANTED][0]).any()


def test_a_table_says_which_label_gets_which_mark() -> None:
    spec = "insert(marks=('', 'indeed'), table=((1.0, 0.0), (0.25, 0.75)))"
    data = changed(load_data("made_reviews(n=400)"), spec)
    shown = ["indeed" in e.input.words for e in data]
    assert not any(s for s, e in zip(shown, data, strict=True) if e.label == 0)
    assert 0.65 < np.mean([s for s, e in zip(shown, data, strict=True) if e.label == 1]) < 0.85


def test_texts_without_a_place_are_kept_or_dropped() -> None:
    data = one("good beer", 1)
    kept = Swap().changed(data, seed=0).examples[0]
    assert kept.facts[MANIPULATION] == UNTOUCHED and PLANTED not in kept.truths
    assert not len(Swap(unmarked="drop").changed(data, seed=0))


def test_balanced_reassignment_is_exact() -> None:
    data = many(1000)
    after = Reassign(r=0.7, draw="balanced").changed(data, seed=3)
    for label in (0, 1):
        mine = [a for a, b in zip(after, data, strict=True) if b.label == label]
        assert sum(e.label == label for e in mine) == 350


def test_planted_data_survive_the_disk(tmp_path: Path) -> None:
    data = changed(load_data("made_reviews(n=50)"), "reassign, insert(decoys=('besides',))")
    write_records(data, tmp_path / "planted.jsonl")
    assert load_data(tmp_path / "planted.jsonl").fingerprint() == data.fingerprint()


@pytest.mark.parametrize(
    ("by", "error", "says"),
    [
        ("reasign", PluginError, "did you mean 'reassign'"),
        ("reassign(r=1.2)", PluginError, "between 0 and 1"),
        ("reassign(matrix=((0.5, 0.6), (0.5, 0.5)))", PluginError, "add up to 1"),
        (
            "reassign(matrix=((1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0)))",
            DataError,
            "2 × 2",
        ),
        ("insert(marks=('x', 'x'))", PluginError, "all different"),
        ("insert(marks=('x', 'y', 'z'))", DataError, "one per label"),
        ("insert(strength=2)", PluginError, "strength between 0 and 1"),
        ("insert(decoys=('meanwhile',))", PluginError, "unlike the marks"),
        ("punctuation(marks=('.', 'ouch'))", PluginError, "one sign each"),
        ("casing(marks=('title', 'loud'))", PluginError, "upper, title"),
        ("swap(decoys=('an',))", PluginError, "no decoys"),
        ("insert, reassign", DataError, "put reassign first"),
    ],
)
def test_faults_are_told(by: str, error: type[Exception], says: str) -> None:
    with pytest.raises(error, match=says):
        changed(load_data("made_reviews(n=4)"), by)


# ---- what must be used ----------------------------------------------------------------------


def test_only_accuracy_beyond_the_text_forces_reliance() -> None:
    data = changed(load_data("made_reviews(n=400)"), "reassign, swap")
    right = [True] * 400
    forced = reliance(data, right)
    assert forced is not None and forced.forced
    assert forced.bound == 0.5 and forced.ceiling > 0.95
    blind = reliance(data, [i % 2 == 0 for i in range(400)])
    assert blind is not None and not blind.forced
    assert "below the" in blind.sentence
    untouched_labels = reliance(changed(load_data("made_reviews(n=50)"), "swap"), [True] * 50)
    assert untouched_labels is not None and not untouched_labels.forced
    assert "Put reassign" in untouched_labels.sentence
    few = reliance(data.select(range(4)), [True] * 4)
    assert few is not None and not few.forced and "rule out luck" in few.sentence
    assert reliance(load_data("made_reviews(n=5)"), [True] * 5) is None


def test_a_random_map_gets_the_share_of_the_region() -> None:
    data = changed(load_data("made_reviews(n=600)"), "reassign, swap")
    rng = np.random.default_rng(0)
    pairs = [
        (attribution_share(rng.random(e.input.n_features), e.truths[PLANTED][0]), e)
        for e in data
        if PLANTED in e.truths
    ]
    share = np.mean([e.truths[PLANTED][0].mean() for _, e in pairs])
    assert abs(np.mean([mass for mass, _ in pairs]) - share) < 0.02


def test_attribution_records_still_fit(tmp_path: Path) -> None:
    example = changed(load_data("made_reviews(n=1)"), "insert").examples[0]
    scores = np.ones(example.input.n_features)
    assert Attribution(example.input, 0, scores).scores.shape == example.truths[PLANTED][0].shape
    assert replace(example).input.text.count("meanwhile") <= 1


def test_a_model_may_fall_short_by_one_standard_error() -> None:
    required = 0.97
    for n, accuracy, reached in ((1000, 0.965, True), (1000, 0.964, False), (100, 0.96, True)):
        known = Reliance(
            accuracy=accuracy, n=n, bound=0.5, ceiling=1.0, luck=luck(accuracy, n, 0.5)
        )
        assert known.required == pytest.approx(required)
        assert known.reached is reached and known.forced is reached
