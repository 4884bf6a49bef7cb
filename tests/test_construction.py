"""Data built with people: the rules, and the way through all sheets."""

from __future__ import annotations

import csv
import json
import re
import shlex
from collections import Counter
from collections.abc import Callable, Sequence
from itertools import cycle
from pathlib import Path

import numpy as np
import pytest

from commands import run_command
from conftest import WordWeights
from veracity.core.errors import DataError
from veracity.core.examples import Dataset, Example
from veracity.core.inputs import Text
from veracity.data.loading import describe, load_data, validate
from veracity.data.records import write_records
from veracity.data.words import read_text
from veracity.studies.construction import (
    KEPT,
    LABELLED,
    MARKED,
    RATED,
    TYPED,
    WRITTEN,
    accepted,
    ask_ratings,
    ask_rationales,
    assemble,
    assign_types,
    by_model,
    choose_twins,
    judge,
    sample_types,
    sentiment_types,
    snippets,
)
from veracity.studies.sheets import Sheet, read_sheet, write_sheet

LEXICON = {"good": 1, "bad": -1}
GOOD = {"sufficient": "3", "understandable": "3", "compact": "4"}
Fill = Callable[[dict[str, str]], dict[str, str] | list[dict[str, str]]]


def fill(path: Path, how: Fill) -> None:
    """What people do: open a sheet, fill it in, save it."""
    with path.open(encoding="utf-8-sig", newline="") as file:
        reader = csv.DictReader(file)
        columns = list(reader.fieldnames or ())
        rows = [how(row) for row in reader]
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, columns)
        writer.writeheader()
        for row in rows:
            writer.writerows(row if isinstance(row, list) else [row])


def sheet(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8-sig", newline="") as file:
        return list(csv.DictReader(file))


def raw() -> Dataset:
    made = {
        "single": "good food number {}, so good",
        "multiple": "food good, service bad, bill {}",
        "obscure": "never again in {} years",
    }
    examples = [
        Example(f"{kind}-{i}", read_text(text.format(i)), i % 2)
        for kind, text in made.items()
        for i in range(4)
    ]
    return Dataset("raw", ("0", "1"), tuple(examples))


# ---- worked examples ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("ratings", "verdict"),
    [((3, 3, 4), True), ((3, 4, 3), False), ((3, 2, 4), False), ((2, 4, 4), False)],
)
def test_ex_7_1_acceptance(ratings: tuple[int, int, int], verdict: bool) -> None:
    named = dict(zip(("sufficient", "understandable", "compact"), ratings, strict=True))
    assert accepted(named) == verdict


def test_ex_7_2_sentiment_types() -> None:
    polarity = {"food good": 1, "service bad": 0, "good food": 1, "good view": 1}

    def classifier(parts: Sequence[Text]) -> list[int]:
        return [polarity[part.text] for part in parts]

    texts = ["food good, service bad", "good food, good view", "never again"]
    found = sentiment_types(texts, {"good": 1, "bad": -1}, classifier)
    assert found == ["multiple", "single", "obscure"]


# ---- rules ----------------------------------------------------------------------------------


def test_snippets_end_at_punctuation() -> None:
    assert snippets("Good food, bad view! Well - no") == ["Good food", "bad view", "Well", "no"]
    assert snippets("服务好，房间脏。") == ["服务好", "房间脏"]
    assert snippets("well-made") == ["well-made"]


def test_a_model_judges_all_snippets_at_once_and_neutral_ones_never() -> None:
    model = WordWeights({"good": 5.0, "bad": -5.0}, bias=0.5)
    texts = ["bad food, we came at noon", "good food, bad view"]
    # the bias would call `we came at noon` positive, and the first text multiple
    assert sentiment_types(texts, LEXICON, by_model(model)) == ["single", "multiple"]
    assert model.texts_read == 3


# ---- the way through ------------------------------------------------------------------------


def to_labels(folder: Path, seed: int = 0) -> None:
    """Up to texts that are labelled."""
    assert assign_types(raw(), folder, lexicon=LEXICON) == {
        "single": 4,
        "multiple": 4,
        "obscure": 4,
    }
    sample_types(folder, per_type=2, seed=seed)

    def write(row: dict[str, str]) -> dict[str, str]:
        able = row["adv_type"] in ("idr", "negative") and row["id"] != "obscure-0"
        return row | {"twin": f"{row['adv_type']}, {row['text']}" if able else ""}

    fill(folder / WRITTEN.name, write)
    choose_twins(folder, seed=seed)
    fill(folder / LABELLED.name, lambda row: row | {"label": "1", "sentiment_type": "single"})


def to_ratings(folder: Path, words: str = "0") -> None:
    """Up to rationale sets that are all rated well."""
    to_labels(folder)
    ask_rationales(folder)
    fill(folder / MARKED.name, lambda row: row | {"words": words})
    ask_ratings(folder)
    fill(folder / RATED.name, lambda row: row | GOOD)


def test_from_raw_texts_to_records(tmp_path: Path) -> None:
    to_labels(tmp_path)
    originals = sheet(tmp_path / WRITTEN.name)
    assert Counter(row["sentiment_type"] for row in originals) == dict.fromkeys(
        ("single", "multiple", "obscure"), 10
    )
    pairs = sheet(tmp_path / LABELLED.name)
    assert Counter(row["sample_type"] for row in pairs) == {
        "ori": len(pairs) // 2,
        "adv": len(pairs) // 2,
    }
    ask_rationales(tmp_path)
    first = sheet(tmp_path / MARKED.name)[0]
    assert first["numbered"].startswith("0:good 1:food")
    # two sets for the first text, one for every other
    fill(
        tmp_path / MARKED.name,
        lambda row: (
            [row | {"words": "1, 0"}, row | {"words": "2"}]
            if row["id"] == first["id"]
            else row | {"words": "0"}
        ),
    )
    assert ask_ratings(tmp_path) == {"sets": len(pairs) + 1}
    shown = sheet(tmp_path / RATED.name)
    assert (shown[0]["words"], shown[0]["rationale"]) == ("0 1", "good food")
    good = {"sufficient": "3", "understandable": "4", "compact": "4"}
    spoilt = shown[-1]["id"]
    fill(
        tmp_path / RATED.name,
        lambda row: row | good | ({"compact": "3"} if row["id"] == spoilt else {}),
    )
    assert judge(tmp_path) == {"accepted": len(pairs), "rejected": 1}
    data, waiting = assemble(tmp_path)
    assert (len(data), waiting) == (len(pairs) - 2, 1)

    returned = tmp_path / MARKED.in_round(2)
    (line,) = sheet(returned)
    assert (line["id"], line["why"], line["words"]) == (spoilt, "was 0: compact 3", "")
    fill(returned, lambda row: row | {"words": "1"})
    ask_ratings(tmp_path, turn=2)
    fill(tmp_path / RATED.in_round(2), lambda row: row | good)
    assert judge(tmp_path, turn=2) == {"accepted": 1, "rejected": 0}
    assert not (tmp_path / MARKED.in_round(3)).exists()

    data, waiting = assemble(tmp_path, name="built")
    assert (len(data), waiting) == (len(pairs), 0)
    write_records(data, tmp_path / "built.jsonl")
    again, faults = validate(tmp_path / "built.jsonl")
    assert faults == [] and again is not None
    assert again.fingerprint() == data.fingerprint()
    example = next(e for e in data if e.id == first["id"])
    assert [np.flatnonzero(m).tolist() for m in example.truths["rationale"]] == [[0, 1], [2]]
    assert json.loads(example.facts["scores"])[0] == {k: int(v) for k, v in good.items()}
    told = describe(again)
    assert told["pairs"] == len(pairs) // 2
    assert set(told["facts"]["adv_type"]) <= {"idr", "negative"}


def test_equal_numbers_are_drawn_anew_for_each_seed(tmp_path: Path) -> None:
    drawn = {}
    for seed in (0, 0, 1):
        folder = tmp_path / f"{seed}-{len(list(tmp_path.iterdir()))}"
        to_labels(folder, seed)
        drawn[folder.name] = [(r["id"], r["text"]) for r in sheet(folder / LABELLED.name)]
    same, twin, other = drawn.values()
    assert same == twin != other


def test_corrections_of_people_count(tmp_path: Path) -> None:
    assign_types(raw(), tmp_path, lexicon=LEXICON)
    fill(tmp_path / TYPED.name, lambda row: row | {"corrected_type": "single"})
    with pytest.raises(DataError, match="got only multiple 0, obscure 0"):
        sample_types(tmp_path, per_type=1)
    fill(tmp_path / TYPED.name, lambda row: row | {"corrected_type": "funny"})
    with pytest.raises(DataError, match=r"(?s)line 2: expected a type of single, .* 2 more"):
        sample_types(tmp_path, per_type=1)


def test_all_raters_must_accept_and_sets_can_be_given_up(tmp_path: Path) -> None:
    to_ratings(tmp_path)
    first = sheet(tmp_path / RATED.name)[0]["id"]

    def rate(row: dict[str, str]) -> list[dict[str, str]]:
        low = {"sufficient": "2"} if row["id"] == first else {}
        return [row, row | low]

    fill(tmp_path / RATED.name, rate)
    assert judge(tmp_path)["rejected"] == 1
    assert sheet(tmp_path / MARKED.in_round(2))[0]["why"] == "was 0: sufficient 2"
    assert ask_ratings(tmp_path, turn=2) == {"sets": 0}
    assert not (tmp_path / RATED.in_round(2)).exists()
    assert assemble(tmp_path)[1] == 1


# ---- faults ---------------------------------------------------------------------------------


def test_what_people_filled_in_is_never_written_over(tmp_path: Path) -> None:
    to_labels(tmp_path)
    steps: list[Callable[[], object]] = [
        lambda: assign_types(raw(), tmp_path, lexicon=LEXICON),
        lambda: sample_types(tmp_path, per_type=1),
        lambda: choose_twins(tmp_path),
    ]
    for step in steps:
        with pytest.raises(DataError, match="people may have filled it in"):
            step()
    with pytest.raises(DataError, match=r"4-rationales.csv is not there: do the step before"):
        judge(tmp_path)


def test_every_fault_of_a_sheet_is_told_with_its_line(tmp_path: Path) -> None:
    to_labels(tmp_path)
    fill(tmp_path / LABELLED.name, lambda row: row | {"label": ""} if row["partner"] else row)
    with pytest.raises(DataError, match=r"(?s)line 3: the label is missing.*line 5: the label"):
        ask_rationales(tmp_path)
    fill(tmp_path / LABELLED.name, lambda row: row | {"label": "1"})
    ask_rationales(tmp_path)
    fill(tmp_path / MARKED.name, lambda row: row | {"words": "" if "-adv" in row["id"] else "99"})
    with pytest.raises(
        DataError, match=r"(?s)line 2: expected numbers of words.*line 3:.*got none"
    ):
        ask_ratings(tmp_path)
    fill(tmp_path / MARKED.name, lambda row: row | {"words": "0"})
    ask_ratings(tmp_path)
    fill(tmp_path / RATED.name, lambda row: row | {"sufficient": "4", "compact": "4"})
    with pytest.raises(DataError, match="line 2: expected sufficient to be rated from 1 to 3"):
        judge(tmp_path)
    assert not (tmp_path / KEPT.name).exists()


def test_twins_that_are_none_are_refused(tmp_path: Path) -> None:
    assign_types(raw(), tmp_path, lexicon=LEXICON)
    sample_types(tmp_path, per_type=1)
    with pytest.raises(DataError, match="at least one twin"):
        choose_twins(tmp_path)
    fill(tmp_path / WRITTEN.name, lambda row: row | {"twin": row["text"]})
    with pytest.raises(DataError, match="line 2: the twin is the same text"):
        choose_twins(tmp_path)
    fill(tmp_path / WRITTEN.name, lambda row: row | {"twin": row["text"].replace(" ", "  ")})
    with pytest.raises(DataError, match="line 2: the twin is the same text"):
        choose_twins(tmp_path)
    fill(tmp_path / WRITTEN.name, lambda row: row | {"twin": "很好"})
    with pytest.raises(DataError, match="another language"):
        choose_twins(tmp_path)
    path = tmp_path / WRITTEN.name
    path.write_text(path.read_text("utf-8").replace("adv_type", "kind", 1), "utf-8")
    with pytest.raises(DataError, match="adv_type is missing"):
        choose_twins(tmp_path)


@pytest.mark.parametrize("slip", [{"id": "nobody"}, {"words": "99"}, {"compact": "9"}])
def test_accepted_sets_that_cannot_be_are_told_with_their_lines(
    tmp_path: Path, slip: dict[str, str]
) -> None:
    to_ratings(tmp_path)
    judge(tmp_path)
    fill(tmp_path / KEPT.name, lambda row: row | slip)
    with pytest.raises(DataError, match=r"6-accepted.csv: mend these lines:\n  line 2: "):
        assemble(tmp_path)


def test_texts_that_are_gone_are_missed(tmp_path: Path) -> None:
    to_ratings(tmp_path)
    judge(tmp_path)
    first, twin, *_ = (row["id"] for row in sheet(tmp_path / LABELLED.name))
    fill(tmp_path / LABELLED.name, lambda row: [] if row["id"] == first else row)
    with pytest.raises(DataError, match=r"3-labels.csv: .*\n  line 2: the other text of its pair"):
        assemble(tmp_path)
    fill(tmp_path / LABELLED.name, lambda row: [] if row["id"] == twin else row)
    with pytest.raises(DataError, match=r"6-accepted.csv: .*\n  line 2: 3-labels.csv has no text"):
        assemble(tmp_path)


def test_labels_by_sloppy_hands_are_refused_and_sound_ones_counted(tmp_path: Path) -> None:
    to_labels(tmp_path)

    def label(*labels: str) -> None:
        each = cycle(labels)
        kinds = {"ori": "", "adv": "idr"}
        fill(
            tmp_path / LABELLED.name,
            lambda row: row | {"label": next(each), "adv_type": kinds[row["sample_type"]]},
        )

    label("negative ", "negative", "NEGATIVE", "nega tive", "?")
    odd = r"(?s):\n  line 4: .*'NEGATIVE' is 'negative' els.*line 5: .*'nega tive'.*line 6: .*'\?'"
    with pytest.raises(DataError, match=odd):
        ask_rationales(tmp_path)
    label("negative", "positive ")
    with pytest.warns(UserWarning, match="line 3: idr keeps the label, but negative became posit"):
        found = ask_rationales(tmp_path)
    half = found["texts"] // 2
    assert found["labels"] == {"negative": half, "positive": half}


def test_what_is_judged_is_what_was_marked(tmp_path: Path) -> None:
    to_ratings(tmp_path, "0 1")
    rated = (tmp_path / RATED.name).read_bytes()
    first = sheet(tmp_path / RATED.name)[0]["id"]

    def change(how: Fill) -> None:
        (tmp_path / RATED.name).write_bytes(rated)
        fill(tmp_path / RATED.name, lambda row: how(row) if row["id"] == first else row)

    change(lambda row: [])
    with pytest.raises(DataError, match=f"words 0 1 of '{first}' are marked on line 2 of 4-rat"):
        judge(tmp_path)
    change(lambda row: [row, row | {"words": "1"}])
    with pytest.raises(DataError, match=f"line 3: words 1 of '{first}' are no set of 4-rationales"):
        judge(tmp_path)
    change(lambda row: [row, row | {"words": "1,0", "compact": "3"}])
    assert judge(tmp_path)["rejected"] == 1
    assert first not in {row["id"] for row in sheet(tmp_path / KEPT.name)}


def test_sheets_of_later_rounds_are_named_and_never_half_written(tmp_path: Path) -> None:
    to_ratings(tmp_path)
    fill(tmp_path / RATED.name, lambda row: row | {"compact": "3"})
    judge(tmp_path)
    (tmp_path / KEPT.name).unlink()
    with pytest.raises(DataError, match=r"4-rationales-round-2.csv is there already"):
        judge(tmp_path)
    assert not (tmp_path / KEPT.name).exists()
    with (tmp_path / MARKED.in_round(2)).open("a") as file:
        file.write("short,line\n")
    with pytest.raises(DataError, match=r"4-rationales-round-2.csv: mend these lines"):
        ask_ratings(tmp_path, turn=2)


def test_ids_stand_once(tmp_path: Path) -> None:
    twice = "line 3: expected an id of its own, got 's1', as on line 2"
    assign_types(raw(), tmp_path, lexicon=LEXICON)
    fill(tmp_path / TYPED.name, lambda row: row | {"id": "s1"})
    with pytest.raises(DataError, match=twice):
        sample_types(tmp_path, per_type=4)
    pair = {"text": "good", "adv_type": "idr", "twin": "so good"}
    write_sheet(WRITTEN, tmp_path, [{"id": f"s1{end}"} | pair for end in ("", "-adv", "-adv-adv")])
    choose_twins(tmp_path)
    assert len({row["id"] for row in sheet(tmp_path / LABELLED.name)}) == 6
    fill(tmp_path / LABELLED.name, lambda row: row | {"id": "s1"})
    with pytest.raises(DataError, match=twice):
        ask_rationales(tmp_path)


def test_spreadsheets_compute_nothing(tmp_path: Path) -> None:
    cells = ["=HYPERLINK(1)", "+1", "-1", "@a", "\tx", " =1", "'=1", "''-", "it's", "'quoted'", ""]
    one = Sheet("one.csv", ("text",))
    write_sheet(one, tmp_path, [{"text": cell} for cell in cells])
    shown = [row["text"] for row in sheet(tmp_path / one.name)]
    assert not any(cell.strip().startswith(("=", "+", "-", "@")) for cell in shown)
    assert shown[4] == "'\tx" and shown[-3:] == cells[-3:]
    assert [line.values["text"] for line in read_sheet(one, tmp_path)] == cells


# ---- the command line -----------------------------------------------------------------------


def test_build_verbs_lead_through_the_sheets(tmp_path: Path) -> None:
    chapter = (Path(__file__).parents[1] / "docs/how-to/pairs.md").read_text("utf-8")
    types, sample = re.findall(r"^veracity data build (.*)", chapter, flags=re.MULTILINE)

    def build(*arguments: str) -> dict[str, str]:
        done = run_command("data", "build", *arguments, "--json", cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        told: dict[str, str] = json.loads(done.stdout)
        return told

    assert build(*shlex.split(types))["written"] == "pairs/1-types.csv"
    build(*shlex.split(sample))
    folder = tmp_path / "pairs"
    fill(folder / WRITTEN.name, lambda row: row | {"twin": f"well, {row['text']}"})
    said = run_command("data", "build", "twins", "pairs", cwd=tmp_path).stderr
    assert "give each twin its sentiment_type" in " ".join(said.split())
    fill(
        folder / LABELLED.name,
        lambda row: row | {"label": "0", "sentiment_type": row["sentiment_type"] or "obscure"},
    )
    build("rationales", "pairs")
    fill(folder / MARKED.name, lambda row: row | {"words": "0"})
    build("ratings", "pairs")
    last = sheet(folder / RATED.name)[-1]["id"]
    fill(
        folder / RATED.name,
        lambda row: row | GOOD | ({"compact": "1"} if row["id"] == last else {}),
    )
    build("judge", "pairs")
    given_up = run_command("data", "build", "ratings", "pairs", "--round", "2", cwd=tmp_path)
    assert given_up.stdout == "" and "nothing is left to rate" in given_up.stderr
    assert build("assemble", "pairs", "--out", "pairs.jsonl") == {
        "written": "pairs.jsonl",
        "pairs": 29,
        "waiting": 1,
    }
    assert len(load_data(tmp_path / "pairs.jsonl")) == 58
    early = run_command("data", "build", "sample", "nowhere", "--per-type", "1", cwd=tmp_path)
    assert early.returncode == 2 and "do the step before" in early.stderr
