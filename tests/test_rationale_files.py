"""A user's own file of marked words and pairs: read as it is, or refused line by line."""

from __future__ import annotations

import csv
import json
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import veracity.auditing.audit
import veracity.reports.html
import veracity.reports.pairs  # noqa: F401  commands are forked from here: to load once is enough
from commands import run_command as run
from veracity.core.examples import Dataset
from veracity.data.loading import load_data, validate
from veracity.data.readers import Columns

MODEL = """
labels = ["negative", "positive"]
def predict(texts):
    up = [0.5 + 0.4 * ("great" in t) - 0.4 * ("dull" in t) for t in texts]
    return [[1 - p, p] for p in up]
"""

TEXTS = (
    ("a great film , really great", "positive", [[1, 5]]),
    ("the dull plot drags on", "negative", [[1], [3, 4]]),
    ("a great cast", "positive", [[1]]),
    ("so dull", "negative", [[0, 1]]),
)
"""Texts, labels, and the places of the words of each set."""


def jsonl(path: Path, *rows: Any) -> Path:
    told = [row if isinstance(row, str) else json.dumps(row, ensure_ascii=False) for row in rows]
    path.write_text("".join(line + "\n" for line in told), "utf-8")
    return path


def table(path: Path, *rows: dict[str, Any]) -> Path:
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    return path


def spans(text: str, places: list[int]) -> list[list[int]]:
    """The same words by their characters."""
    found, end = [], 0
    for word in text.split():
        start = text.index(word, end)
        end = start + len(word)
        found.append([start, end])
    return [found[i] for i in places]


def mask(text: str, places: list[int]) -> list[int]:
    return [int(i in places) for i in range(len(text.split()))]


def objects(text: str, places: list[int]) -> list[dict[str, int]]:
    return [{"start": a, "end": b} for a, b in spans(text, places)]


def marked(data: Dataset) -> list[list[list[int]]]:
    return [[np.flatnonzero(m).tolist() for m in e.truths.get("rationale", ())] for e in data]


SHAPES: dict[str, tuple[str, Any]] = {
    "indices": ("rationales", lambda text, sets: sets),
    "one set by itself": ("rationales", lambda text, sets: sets[0] if len(sets) == 1 else sets),
    "masks": ("rationale_masks", lambda text, sets: [mask(text, s) for s in sets]),
    "one mask by itself": (
        "rationale_masks",
        lambda text, sets: [[bool(m) for m in mask(text, s)] for s in sets][
            0 if len(sets) == 1 else slice(None)
        ],
    ),
    "spans": ("rationale_spans", lambda text, sets: [spans(text, s) for s in sets]),
    "spans by name": ("rationale_spans", lambda text, sets: [objects(text, s) for s in sets]),
}


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("kind", ["jsonl", "csv", "tsv.quoted"])
def test_marked_words_are_read_in_every_shape(shape: str, kind: str, tmp_path: Path) -> None:
    column, write = SHAPES[shape]
    rows = [
        {"text": text, "label": label, column: write(text, sets)} for text, label, sets in TEXTS
    ]
    if kind == "jsonl":
        path = jsonl(tmp_path / "r.jsonl", *rows)
    else:
        path = table(tmp_path / "r.csv", *({**r, column: json.dumps(r[column])} for r in rows))
    if kind == "tsv.quoted":
        lines = [f"{r['text']}\t{r['label']}\t{json.dumps(r[column])}" for r in rows]
        path = tmp_path / "r.tsv"
        path.write_text("\n".join([f"text\tlabel\t{column}", *lines]), "utf-8")
    assert marked(load_data(path)) == [sets for _, _, sets in TEXTS]
    assert validate(path)[1] == []


def test_tables_may_hold_plain_numbers_and_other_names(tmp_path: Path) -> None:
    rows = [
        {"review": text, "stars": label, "why": " | ".join(" ".join(map(str, s)) for s in sets)}
        for text, label, sets in TEXTS
    ]
    path = table(tmp_path / "r.csv", *rows)
    names = Columns.parse("text=review,label=stars,rationales=why")
    assert marked(load_data(path, columns=names)) == [sets for _, _, sets in TEXTS]
    zeros = [{"text": t, "label": y, "m": " ".join(map(str, mask(t, s[0])))} for t, y, s in TEXTS]
    path = table(tmp_path / "m.csv", *zeros)
    found = marked(load_data(path, columns=Columns.parse("rationale_masks=m")))
    assert found == [sets[:1] for _, _, sets in TEXTS]


def test_a_span_marks_the_words_it_touches_and_own_words_count(tmp_path: Path) -> None:
    row = {"text": "not-so-great film", "label": 1, "rationale_spans": [[7, 12]]}
    own = row | {"tokens": ["not-so-great", "film"], "id": "own"}
    data = load_data(jsonl(tmp_path / "r.jsonl", row, own))
    split_up, whole = data.examples
    assert [w for w, m in zip(split_up.input.words, split_up.truths["rationale"][0], strict=True)
            if m] == ["great"]  # fmt: skip
    assert marked(data)[1] == [[0]]
    masked = own | {"rationale_spans": None, "rationale_masks": [1, 0]}
    assert marked(load_data(jsonl(tmp_path / "m.jsonl", masked))) == [[[0]]]
    assert whole.input.words == ("not-so-great", "film")


FAULTS: list[tuple[dict[str, Any], str]] = [
    ({"rationale_masks": [1]}, "one value for each of 2 words, got 1"),
    ({"rationale_masks": [0, 2]}, "0 or 1 for each word"),
    ({"rationale_masks": [[0, 1], "x"]}, "0 or 1 for each word"),
    ({"rationale_masks": [0, 0]}, "none of its words is marked"),
    ({"rationale_masks": "0 x"}, "to be JSON"),
    ({"rationale_spans": [[3, 99]]}, "8 characters"),
    ({"rationale_spans": [[3, 3]]}, "out of range or empty"),
    ({"rationale_spans": [[-1, 2]]}, "out of range"),
    ({"rationale_spans": [[4, 5]]}, "holds no word"),
    ({"rationale_spans": [["0", "4"]]}, "places of characters"),
    ({"rationale_spans": [{"start": 0}]}, "places of characters"),
    ({"rationale_spans": {"start": 0, "end": 4}}, "to be a list"),
    ({"rationale_spans": 7}, "to be a list"),
    ({"rationales": [[0]], "rationale_masks": [1, 0]}, "in one column"),
    ({"rationales": True}, "to be a list"),
    ({"rationales": [[0.5]]}, "word indices"),
    ({"rationales": [[True]]}, "word indices"),
    ({"rationales": [[None]]}, "word indices"),
]


@pytest.mark.parametrize(("change", "says"), FAULTS)
def test_what_is_wrong_with_marked_words_is_told(
    change: dict[str, Any], says: str, tmp_path: Path
) -> None:
    good = {"text": "dull film", "label": 0, "rationales": [[0]]}
    bad = {"id": "x", "text": "ab c    " if says == "holds no word" else "abc defg", "label": 1}
    path = jsonl(tmp_path / "r.jsonl", good, bad | change)
    (fault,) = validate(path)[1]
    assert fault.line == 2 and says in fault.message


# ---- as a user ------------------------------------------------------------------------------


def told(result: subprocess.CompletedProcess[str]) -> Any:
    assert result.returncode == 0, result.stderr
    return json.loads(result.stdout)


@pytest.fixture
def place(tmp_path: Path) -> Path:
    (tmp_path / "model.py").write_text(MODEL)
    return tmp_path


def test_an_audit_scores_against_the_users_words_without_being_told(place: Path) -> None:
    rows = [
        {"text": text, "label": label, "rationale_masks": json.dumps([mask(text, s) for s in sets])}
        for text, label, sets in TEXTS
    ]
    table(place / "mine.csv", *rows)
    valid = told(run("data", "validate", "mine.csv", "--json", cwd=place))
    assert (valid["valid"], valid["examples"], valid["faults"]) == (True, 4, [])
    asked = ("audit", "model:predict", "mine.csv", "--methods", "occlusion, random_scores")
    found = told(run(*asked, "--out", "r", "--json", cwd=place))
    means = {
        (s["metric"], s["name"]): {e["method"]: e["mean"] for e in s["entries"]}
        for s in found["standings"]
    }
    assert ("feature_overlap", "f1") in means
    assert ("consistency", "map") not in means  # there are no pairs
    precision = means["rationale_match", "average_precision"]["occlusion"]
    # 1: "great" stands twice, so hiding one changes nothing: all equal, 2 of 6 words marked
    # 2: "dull" first (1 of 1), then four equal words (3 of 5): a third of the marked ones, the rest
    # 3: "great" first, the only one marked. 4: "dull" first, then "so": 1 of 1 and 2 of 2
    by_hand = [2 / 6, 1 / 3 * 1 + 2 / 3 * 3 / 5, 1.0, 1.0]
    assert precision == pytest.approx(np.mean(by_hand))


def test_every_fault_is_told_with_its_line_and_nothing_is_lost(place: Path) -> None:
    """All that can be wrong at once; the line numbers are those of an editor."""
    long = " ".join(["word"] * 5001)
    rows: list[tuple[Any, str]] = [
        ({"id": 1, "text": "a great film", "label": "positive", "rel_ids": [2],
          "rationales": [[1]]}, ""),
        ({"id": 2, "text": "a great film !", "label": "positive", "adv_type": "idr",
          "rationales": [[1]]}, ""),
        ({"id": 3, "text": "a dull film", "label": "negative", "rel_ids": ["gone"]},
         "error: rel_ids names 'gone', which no row has"),
        ({"id": 4, "text": "dull again", "label": "negative", "partner": "nobody"},
         "warning: the partner 'nobody' is in no row"),
        ({"id": 5, "text": "so dull", "label": "negative", "rationales": [[0, 7]]},
         "error: the rationale index 7 is out of range: the text has 2 words"),
        ({"id": 6, "text": "what a film", "label": "positive", "rel_ids": [8]}, ""),
        ({"id": 7, "text": "what a great film", "label": "positive", "rel_ids": [8]}, ""),
        ({"id": 8, "text": "what a film !", "label": "positive"},
         "error: expected one original, got those on lines 6, 7"),
        ({"id": 9, "text": "电影很好看", "label": "positive"},
         "warning: two languages in one file"),
        ({"id": 10, "text": long, "label": "negative"}, "error: expected at most 5,000 words"),
        ({"id": 1, "text": "another", "label": "negative"}, "error: the id '1' stands on line 1"),
        ({"id": 12, "text": "none marked", "label": "negative", "rationales": []},
         "warning: no word is marked"),
        ({"id": 13, "text": "an empty set", "label": "negative", "rationales": [[]]},
         "error: a rationale set is empty"),
        ({"id": 14, "text": "a great film ! !", "label": "positive", "sample_type": "adv",
          "partner": 2}, "error: expected an original, but that on line 2 is adv"),
        ({"id": 15, "text": "a great film ! ?", "label": "positive", "partner": 16,
          "sample_type": "adv"}, "error: expected an original, but that on line 16 is adv"),
        ({"id": 16, "text": "a great film ?", "label": "positive", "partner": 1,
          "sample_type": "adv"}, ""),
        ({"id": 17, "text": "not in order", "label": "negative", "rationales": [[2, 0]]},
         "error: expected a rationale set to be sorted"),
        ({"id": 18, "text": ["not", "text"], "label": "negative"},
         "error: expected the text to be a string, got list"),
        ({"id": 19, "text": "odd label", "label": {"a": 1}}, "error: expected the label to be"),
        ({"id": 20, "text": "odd list", "label": "negative", "rel_ids": {"a": 1}},
         "error: expected rel_ids to be a list"),
        ({"id": 21, "text": "odd twin", "label": "negative", "partner": [1]},
         "error: expected an id to be a string or a whole number"),
        ({"id": 22, "text": "odd type", "label": "negative", "adv_type": 5},
         "error: expected adv_type to be idr"),
        ({"id": 23, "text": "odd scores", "label": "negative", "rationales": [[0]],
          "scores": "x"}, "error: expected scores to be JSON"),
        ("[1, 2]", "error: expected a JSON object, got list"),
        ("{broken", "error: expected one JSON object per line"),
    ]  # fmt: skip
    marked = ({"rationales": [[0]], **row} if isinstance(row, dict) else row for row, _ in rows)
    jsonl(place / "bad.jsonl", *marked)
    result = run("data", "validate", "bad.jsonl", cwd=place)
    assert result.returncode == 2 and result.stderr == ""
    said = dict(line.split(": ", 1) for line in result.stdout.splitlines()[:-1])
    expected = {f"line {i}": says for i, (_, says) in enumerate(rows, 1) if says}
    assert said.keys() == expected.keys()
    for line, says in expected.items():
        assert said[line].startswith(says), (line, said[line])
    errors = [line for line, says in expected.items() if says.startswith("error")]
    assert result.stdout.splitlines()[-1] == (
        f"bad.jsonl: {len(errors)} errors, {len(expected) - len(errors)} warnings"
    )
    # an audit refuses, says how many and where to see them all, and leaves nothing behind
    asked = ("audit", "model:predict", "bad.jsonl", "--methods", "occlusion, random_scores")
    refused = run(*asked, "--out", "r", cwd=place)
    assert refused.returncode == 2 and "Traceback" not in refused.stderr
    assert f"{len(errors)} of {len(rows)} rows are faulty" in refused.stderr
    assert "veracity data validate bad.jsonl" in refused.stderr
    assert not (place / "r").exists()
    # asked to leave them out it says so, and audits the rest
    kept = run(*asked, "--out", "r", "--skip-bad", "--json", cwd=place)
    assert f"{len(errors)} faulty rows are left out" in kept.stderr
    found = told(kept)
    sizes = {e["n"] + e["undefined"] for s in found["standings"] for e in s["entries"]
             if s["metric"] == "erasure"}  # fmt: skip
    assert sizes == {len(rows) - len(errors)}
    assert {"consistency", "rationale_match"} <= {s["metric"] for s in found["standings"]}


def test_a_document_of_5000_words_is_audited(place: Path) -> None:
    rows = [
        {"text": " ".join(["word"] * 4999 + ["great"]), "label": "positive", "rationales": [4999]},
        {"text": "dull", "label": "negative", "rationales": [[0]]},
    ]
    jsonl(place / "long.jsonl", *rows)
    assert told(run("data", "validate", "long.jsonl", "--json", cwd=place))["faults"] == []
    asked = ("audit", "model:predict", "long.jsonl", "--methods", "random_scores")
    found = told(run(*asked, "--metrics", "rationale_match, erasure", "--json", cwd=place))
    assert {e["n"] for s in found["standings"] for e in s["entries"]} == {2}
