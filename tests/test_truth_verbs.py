"""Words held to decide, as a person meets them: learnt, shown, compared, marked, audited."""

from __future__ import annotations

import json
import math
import re
from dataclasses import replace
from html.parser import HTMLParser
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from commands import run_command
from conftest import SHARED, words
from veracity.core.errors import DataError, PluginError
from veracity.core.examples import Dataset, Example
from veracity.core.truths import PSEUDO, WordSets
from veracity.data.corpora.made_reviews import NEGATIVE, POSITIVE
from veracity.data.lexicon import own_lexicon, read_lexicons
from veracity.data.loading import load_data
from veracity.data.records import write_records
from veracity.data.splits import Splits
from veracity.models.loading import save_model
from veracity.reports.truths import MOST_WORDS, print_words, words_page, write_words
from veracity.results.truths import polarities, remarks, word_view

LABELS = ("negative", "positive")
SETS = WordSets(
    LABELS,
    (frozenset({"dull", "fun", "plot"}), frozenset({"great", "fine", "once"})),
    {
        "dull": (0.5, 0.0),
        "fun": (0.4, 0.1),
        "plot": (0.9, 0.2),
        "great": (0.1, 0.9),
        "fine": (0.1, 0.7),
        "once": (0.0, 1.0),
        "awful": (0.2, 0.0),
    },
)
TEXTS = Dataset(
    "texts",
    LABELS,
    tuple(
        Example(f"t{i}", words(text), label)
        for i, (text, label) in enumerate(
            [
                ("A dull plot , dull all the way", 0),
                ("no fun , and the plot is dull", 0),
                ("the plot ! dull", 0),
                ("Great , and great fun", 1),
                ("fine , great and not dull", 1),
                ("great once", 1),
            ]
        )
    ),
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, cnn: Any, made: Splits) -> Path:
    """A model and its data, as somebody has them."""
    path = tmp_path_factory.mktemp("truths")
    save_model(cnn, cnn.architecture, path / "model", record={})
    write_records(made.train.select(range(300)), path / "train.jsonl")
    write_records(made.test.select(range(40)), path / "test.jsonl")
    return path


def told(*arguments: str, cwd: Path) -> Any:
    done = run_command("truths", *arguments, "--json", cwd=cwd)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


# ---- the way from data to an audit ------------------------------------------------------------


def test_from_data_to_an_audit(folder: Path) -> None:
    said = run_command(
        "truths", "learn", "gram_activation", "train.jsonl", "--model", "model", "--split", "all",
        "--out", "words.json", cwd=folder,
    )  # fmt: skip
    assert said.returncode == 0, said.stderr
    assert said.stdout == "words.json\n"
    assert "gram_activation reads 300 texts of train" in said.stderr
    assert re.search(r"positive: \d+ words, \d+\.\d% of the words of its texts", said.stderr)
    sets = WordSets.load(folder / "words.json")
    assert len(sets.words[1] & set(POSITIVE)) > 10 < len(sets.words[0] & set(NEGATIVE))
    assert not sets.words[1] & set(NEGATIVE)

    told_mark = told("mark", "words.json", "test.jsonl", "--out", "marked.jsonl", cwd=folder)
    marked = load_data(folder / "marked.jsonl")
    assert PSEUDO in marked.truth_kinds
    assert [e.truths[PSEUDO][0].tolist() for e in marked] == [
        e.truths[PSEUDO][0].tolist() for e in sets.marked(load_data(folder / "test.jsonl"))
    ]
    assert told_mark["examples"] == 40 >= told_mark["with_marks"] > 20
    assert 0 < told_mark["share"] < 0.5

    # no option names the kind of truth: the audit finds it
    audit = run_command(
        "audit", "model", "marked.jsonl", "--methods", "occlusion, random_scores", "--out", "run",
        "--json", cwd=folder,
    )  # fmt: skip
    assert audit.returncode == 0, audit.stderr
    found = json.loads(audit.stdout)
    (kappa,) = [
        s for s in found["standings"] if (s["metric"], s["name"]) == ("truth_agreement", "kappa")
    ]
    means = {e["method"]: e["mean"] for e in kappa["entries"]}
    assert means["occlusion"] > 0.3 > means["random_scores"] + 0.1
    confidence = found["models"]["model"]["relative_confidence"]
    assert confidence["printed"] < confidence["confidence"]

    mark = ("truths", "mark", "words.json")
    again = run_command(*mark, "test.jsonl", "--out", "marked.jsonl", cwd=folder)
    assert again.returncode == 2
    assert "marked.jsonl is there already" in again.stderr
    twice = run_command(*mark, "marked.jsonl", "--out", "m2.jsonl", cwd=folder)
    assert "holds marks of the kind 'pseudo' already. Choose another --kind" in twice.stderr
    named = run_command(
        *mark, "marked.jsonl", "--out", "m2.jsonl", "--kind", "second", "--predicted-by", "model",
        cwd=folder,
    )  # fmt: skip
    assert named.returncode == 0, named.stderr
    assert "truth_agreement(truth=second)" in named.stderr
    both = load_data(folder / "m2.jsonl")
    assert {"pseudo", "second"} <= set(both.truth_kinds)


def test_a_programme_tells_its_gap_its_limits_and_what_it_dropped(folder: Path) -> None:
    spec = "integer_program(words=200, seconds=20)"
    found = told("learn", spec, "train.jsonl", "--limit", "200", "--out", "ip.json", cwd=folder)
    assert found["words"] == "ip.json"
    assert found["gap"] >= 0
    assert found["violated"] == []
    # the sample first, then its training part
    assert found["documents"] + found["dropped"] == 160
    sets = WordSets.load(folder / "ip.json")
    assert sets.scores == {}
    shown = told("show", "ip.json", cwd=folder)
    assert shown["labels"]["positive"]["order"] == "texts"
    counts = [w["texts"] for w in shown["labels"]["positive"]["words"]]
    assert counts == sorted(counts, reverse=True)
    assert counts[0] > 2


def test_what_is_wrong_is_told_and_nothing_is_written(folder: Path) -> None:
    learn = ("truths", "learn")
    for arguments, message in (
        (("hybird", "train.jsonl"), "did you mean 'hybrid'"),
        (("gram_activation", "train.jsonl"), "got none. Train one with"),
        (("integer_program(words=0)", "train.jsonl"), "expected at least one word"),
        (("integer_program", "train.jsonl", "--split", "half"), "expected --split to be"),
        (("integer_program", "missing.csv"), "missing.csv"),
    ):
        done = run_command(*learn, *arguments, "--out", "none.json", cwd=folder)
        assert done.returncode == 2, done.stderr
        assert message in done.stderr
    assert not (folder / "none.json").exists()
    (folder / "other.json").write_text('{"labels": ["a"]}')
    done = run_command("truths", "show", "other.json", cwd=folder)
    assert "expected a file of word sets at other.json; it has no 'words'" in done.stderr
    SETS.save(folder / "sets.json")
    replace(SETS, labels=("sport", "news")).save(folder / "topics.json")
    mark = ("truths", "mark", "topics.json", "test.jsonl", "--out", "no.jsonl")
    done = run_command(*mark, cwd=folder)
    assert "expected data with the labels sport, news" in done.stderr
    assert "--labels" in done.stderr
    assert not (folder / "no.jsonl").exists()
    done = run_command("truths", "show", "topics.json", "--lexicon", "own", cwd=folder)
    assert "Name them with --positive and --negative" in done.stderr
    done = run_command("truths", "show", "sets.json", "--lexicon", "nowhere.txt", cwd=folder)
    assert "nowhere.txt: expected a word list" in done.stderr


@pytest.mark.parametrize(
    "change",
    [
        {"words": ["dull", "great"]},
        {"words": [["dull"], [1]]},
        {"words": [["dull"]]},
        {"labels": ["a", "a"]},
        {"labels": "ab"},
        {"scores": {"dull": [0.5]}},
        {"scores": {"dull": [0.5, float("nan")]}},
        {"scores": {"dull": [10**400, 0]}},
        {"scores": {"dull": "ab"}},
        {"texts_seen": {"dull": [1]}},
        {"facts": 7},
    ],
)
def test_files_of_others_are_looked_over(change: dict[str, Any], tmp_path: Path) -> None:
    path = tmp_path / "words.json"
    SETS.save(path)
    path.write_text(json.dumps(json.loads(path.read_text()) | change))
    with pytest.raises(DataError, match="expected a file of word sets"):
        WordSets.load(path)


# ---- what is shown ----------------------------------------------------------------------------


def test_the_strongest_words_stand_first_and_rare_ones_last() -> None:
    view = word_view(SETS, TEXTS, least=2)
    negative, positive = view.labels
    assert [m.word for m in negative.members] == ["plot", "dull", "fun"]
    # once and fine stand in one text of their label each
    assert [m.word for m in positive.members] == ["great", "once", "fine"]
    dull = negative.members[1]
    assert (dull.score, dull.texts, dull.elsewhere) == (0.5, 3, 1)
    assert word_view(SETS, TEXTS, least=1).labels[1].members[0].word == "once"
    # without scores texts count, without either the alphabet
    plain = replace(SETS, scores={})
    assert word_view(plain, TEXTS).labels[1].members[0].word == "great"
    unknown = word_view(plain)
    assert [m.word for m in unknown.labels[1].members] == ["fine", "great", "once"]
    assert math.isnan(unknown.labels[1].members[0].texts)


def test_contexts_come_from_the_texts_first_of_the_own_label() -> None:
    view = word_view(SETS, TEXTS)
    dull = next(m for m in view.labels[0].members if m.word == "dull")
    assert [(p.id, p.label) for p in dull.places] == [
        ("t0", "negative"), ("t1", "negative"), ("t4", "positive"),
    ]  # fmt: skip
    assert (dull.places[0].before, dull.places[0].word) == ("A ", "dull")
    great = next(m for m in view.labels[1].members if m.word == "great")
    assert great.places[0].word == "Great"
    long = Dataset("long", LABELS, (Example("0", words("x " * 50 + "dull" + " y" * 50), 0),))
    (place,) = next(m for m in word_view(SETS, long).labels[0].members if m.word == "dull").places
    assert place.before.startswith("… x")
    assert place.after.endswith("y …")
    assert len(place.before.split()) == len(place.after.split()) == 9
    huge = Dataset("huge", LABELS, (Example("0", words("z" * 5000 + " dull"), 0),))
    (place,) = next(m for m in word_view(SETS, huge).labels[0].members if m.word == "dull").places
    assert len(place.before) < 100


def test_lexicons_by_hand() -> None:
    lexicon = {"dull": -1, "fun": 1, "awful": -1, "great": 1, "superb": 1, "once": 1}
    view = word_view(SETS, lexicons={"mine": lexicon}, polarity=(-1, 1))
    positive, negative = view.comparisons
    assert (positive.lexicon, positive.polarity, positive.labels) == ("mine", 1, ("positive",))
    assert (positive.same, positive.other, positive.unlisted) == (("once", "great"), (), ("fine",))
    assert positive.precision == pytest.approx(2 / 3)
    assert positive.recall == pytest.approx(2 / 4)
    # superb was not looked at: nobody could have found it; fun was
    assert positive.met == 3
    assert positive.recall_met == pytest.approx(2 / 3)
    assert positive.jaccard == pytest.approx(2 / 5)
    assert (negative.same, negative.other) == (("dull",), ("fun",))
    assert negative.unlisted == ("plot",)
    assert negative.opposed == pytest.approx(1 / 3)
    within = word_view(SETS, TEXTS, lexicons={"mine": lexicon}, polarity=(-1, 1)).comparisons[1]
    assert (within.met, within.recall_met) == (1, 1.0)  # awful stands in no text
    unknown = word_view(replace(SETS, scores={}), lexicons={"mine": lexicon}, polarity=(-1, 1))
    assert unknown.comparisons[0].met is None
    assert math.isnan(unknown.comparisons[0].recall_met)


def test_which_labels_praise() -> None:
    assert polarities(("negative", "neutral", "positive")) == (-1, 0, 1)
    assert polarities(("0", "1")) == (-1, 1)
    assert polarities(("1", "2", "3", "4", "5")) == (-1, -1, 0, 1, 1)
    assert polarities(("0", "1"), by_number=False) == (0, 0)
    assert polarities(("ham", "spam")) == (0, 0)
    assert polarities(("ham", "spam"), ["ham"], ["spam"]) == (1, -1)
    with pytest.raises(PluginError, match="no label is called 'span'"):
        polarities(("ham", "spam"), ["span"])
    with pytest.raises(PluginError, match="not both"):
        polarities(("ham", "spam"), ["spam"], ["spam"])


def test_lists_that_are_named_alike_are_one_lexicon(tmp_path: Path) -> None:
    (tmp_path / "opinion_positive.txt").write_text("; comment\nGood\nfine\n")
    (tmp_path / "opinion_negative.txt").write_text("bad\n")
    (tmp_path / "numbers.txt").write_text("bad\t-2\nnice\t1.5\n")
    found = read_lexicons(*sorted(tmp_path.iterdir()), "own")
    assert found["opinion"] == {"good": 1, "fine": 1, "bad": -1}
    assert found["numbers"] == {"bad": -1, "nice": 1}
    assert found["own"] == own_lexicon()
    assert len(found) == 3


@pytest.mark.skipif(not (SHARED / "lexicons").exists(), reason="needs the lexicons")
def test_the_lexicons_that_people_have_are_read() -> None:
    found = read_lexicons(*sorted((SHARED / "lexicons").glob("*.txt")))
    assert set(found) == {"AFINN-en-165", "opinion", "vader_lexicon"}
    for lexicon in found.values():
        assert lexicon["wonderful"] == 1
        assert lexicon["awful"] == -1
        assert len(lexicon) > 3000


def test_remarks_say_what_to_beware_of() -> None:
    facts = {
        "gap": 0.031, "status": "time limit", "documents": 90, "dropped": 10,
        "violated": [f"v{i}" for i in range(7)], "covered": {"negative": 0.05},
    }  # fmt: skip
    said = "\n".join(remarks(replace(SETS, facts=facts)))
    assert "negative: 3 words, 5.0% of the words of its texts\npositive: 3 words\n" in said
    assert "best sets cost up to 3.1% less (gap)" in said
    assert "10 of 100 texts left out: too few words looked at" in said
    assert "7 texts hold no word of their label’s set (v0, v1, v2, v3, v4, …)" in said
    optimal = "\n".join(remarks(replace(SETS, facts=facts | {"status": "optimal", "gap": 0.0})))
    assert "proven" in optimal
    # a file can say anything
    odd = {"gap": "x", "documents": None, "dropped": [1], "violated": 3, "covered": 7}
    assert len(list(remarks(replace(SETS, facts=odd)))) == 2


def printed(view: Any, width: int) -> str:
    console = Console(file=StringIO(), width=width)
    print_words(console, view, 3)
    return console.file.getvalue()  # type: ignore[attr-defined, no-any-return]


def test_the_terminal_shows_words_whole() -> None:
    view = word_view(SETS, TEXTS, lexicons={"own": own_lexicon()}, polarity=(-1, 1), least=1)
    for width in (60, 80, 140):
        said = printed(view, width)
        assert re.search(r"^plot +0\.900 +3 +0", said, flags=re.MULTILINE)
        assert max(map(len, said.splitlines())) <= width
    assert "A dull plot , dull all the way" in printed(view, 140)
    assert "own says the opposite of fun" in printed(view, 140)
    hostile = replace(SETS, words=(frozenset({"\x1b[31mred[bold]"}), SETS.words[1]))
    said = printed(word_view(hostile), 80)
    assert "\x1b" not in said
    assert "red[bold]" in said


# ---- the page ---------------------------------------------------------------------------------


class Tags(HTMLParser):
    """What a browser would see."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.names: set[str] = set()
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.names |= {name for name, _ in attrs}


ATTACK = "<img src=x onerror=alert(1)>\"'></script><script>alert(2)</script>"


def test_the_page_holds_what_there_is_to_see(tmp_path: Path) -> None:
    lexicon = {"dull": -1, "fun": 1, "great": 1}
    view = word_view(SETS, TEXTS, lexicons={"mine": lexicon}, polarity=(-1, 1), least=1)
    page = write_words(view, tmp_path / "words.html").read_text("utf-8")
    cloud = re.findall(r'<li class="c(\d)" title="([\d.]+)"><bdi>(\w+)</bdi>', page)
    sizes = {word: int(step) for step, _, word in cloud}
    # by score, and the strongest of a label is the largest
    assert sizes["once"] == sizes["plot"] == 9 > sizes["great"] > sizes["fine"] == 0
    assert "<mark>dull</mark>" in page
    assert "1 negative word on the opposite side of mine" in page
    assert "1 negative word not in mine" in page
    assert 'data-value="0.9">0.900</td>' in page
    assert "http:" not in page.replace("http://www.w3.org", "")
    alike = replace(SETS, scores=dict.fromkeys(SETS.scores, (1.0, 1.0)))
    assert "size by texts of the label" in words_page(word_view(alike, TEXTS))
    nothing = replace(SETS, words=(frozenset(), frozenset()), scores={})
    assert "No word was found to decide this label." in words_page(word_view(nothing, TEXTS))


def test_a_hostile_file_runs_nothing() -> None:
    odd = (ATTACK, "‮turned", "\ud800", "w" * 9000)
    sets = WordSets(
        (ATTACK, "b" * 3000),
        (frozenset(odd), frozenset({"fine"})),
        facts={"source": ATTACK, "trained_on": ATTACK, "violated": [ATTACK], "gap": ATTACK},
    )
    data = Dataset(
        ATTACK, sets.labels, (Example(ATTACK, words(f"fine {'w' * 9000} so"), 0),)
    )  # fmt: skip
    view = word_view(
        sets, data, lexicons={ATTACK: {"fine": 1, "bad": -1}}, polarity=(-1, 1), least=1
    )
    page = words_page(view)
    seen = Tags(page)
    assert "img" not in seen.tags
    assert seen.tags.count("script") == 1
    assert not {name for name in seen.names if name.startswith("on")}
    assert "style" not in seen.names  # the policy would not allow it
    assert "w" * 200 not in page
    assert len(page.encode("utf-8", "replace")) < 100_000
    print_words(Console(file=StringIO(), width=80), view, 5)


def test_large_sets_make_no_endless_page() -> None:
    many = frozenset(f"word{i:05}" for i in range(20_000))
    sets = WordSets(LABELS, (many, frozenset()), dict.fromkeys(many, (1.0, 0.0)))
    page = words_page(word_view(sets, lexicons={"own": own_lexicon()}, polarity=(-1, 1)))
    assert len(re.findall(r'<th scope="row" lang="">', page)) == MOST_WORDS
    assert "and 19,850 more" in page
    assert len(page) < 500_000
