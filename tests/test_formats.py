"""Other people's files: told by their columns, read with their rationales, written back."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from commands import run_command
from conftest import SHARED, WordWeights
from veracity.core.errors import DataError, PluginError
from veracity.core.examples import Dataset, Example
from veracity.data import describe, formats, load_data, read_text, validate, write_data


def lines(path: Path, *rows: dict[str, Any]) -> Path:
    path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), "utf-8")
    return path


def marked(example: Example) -> list[list[int]]:
    return [np.flatnonzero(mask).tolist() for mask in example.truths.get("rationale", ())]


def dutrust(**change: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    original = {
        "sent_id": 1,
        "context": "it 's a charming journey",
        "sent_token": ["it", "'s", "a", "charming", "journey"],
        "sent_label": 1,
        "sample_type": "ori",
        "rel_ids": [9],
        "rationales": [["4", "3"], [3]],
    }
    twin = {
        "sent_id": 9,
        "context": "it 's a very charming journey",
        "sent_token": ["it", "'s", "a", "very", "charming", "journey"],
        "sent_label": 1,
        "sample_type": "disturb",
        "rationales": [[4]],
    }
    return original | change, twin


def eraser(**change: Any) -> dict[str, Any]:
    row = {"id": "x", "label": 0, "tokens": list("abcdef"), "sentence_lengths": [4, 2]}
    return row | {"evidence": [[4, 6], [1, 2]]} | change


def person(**change: Any) -> dict[str, Any]:
    row = {"text_id": 0, "label": "1", "annotator_label": "yes", "part": "p", "text": "so good"}
    return row | {"tokens": ["so", "good"], "mask": [0, 1]} | change


# ---- worked examples ------------------------------------------------------------------------


def test_ex_7_3_statistics_of_rationales(tmp_path: Path) -> None:
    words = list("abcdefghij")
    rows = (
        {"id": 1, "tokens": words, "label": 0, "rationales": [[2, 3]]},
        {"id": 2, "tokens": words[::-1], "label": 1, "rationales": [[1], [4, 5, 6]]},
    )
    told = describe(load_data(lines(tmp_path / "r.jsonl", *rows)))["truths"]["rationale"]
    assert told["mean_share"] == pytest.approx(np.mean([0.2, 0.1, 0.3])) == pytest.approx(0.2)
    assert told["mean_sets"] == 1.5


# ---- each layout ----------------------------------------------------------------------------


def test_dutrust_pairs_labels_and_rationales(tmp_path: Path) -> None:
    data = load_data(lines(tmp_path / "d.jsonl", *dutrust()))
    original, twin = data
    assert original.input.words == ("it", "'s", "a", "charming", "journey")
    assert marked(original) == [[3, 4], [3]]
    assert (twin.partner, twin.facts["sample_type"]) == ("1", "adv")
    assert data.labels == ("1",)


def test_dutrust_without_labels_says_so(tmp_path: Path) -> None:
    rows = [{k: v for k, v in row.items() if k != "sent_label"} for row in dutrust()]
    data = load_data(lines(tmp_path / "d.jsonl", *rows))
    assert data.labels == ("unlabelled",)
    write_data(data, tmp_path / "again.jsonl", layout="dutrust")
    assert "label" not in (tmp_path / "again.jsonl").read_text("utf-8")
    assert load_data(tmp_path / "again.jsonl").fingerprint() == data.fingerprint()


def test_eraser_spans_are_one_set_or_one_each(tmp_path: Path) -> None:
    path = lines(tmp_path / "e.jsonl", eraser())
    assert marked(load_data(path).examples[0]) == [[1, 4, 5]]
    assert marked(load_data(path, layout="eraser(sets=spans)").examples[0]) == [[4, 5], [1]]
    assert load_data(path).examples[0].facts["sentence_lengths"] == "[4, 2]"
    assert "sentence_lengths" not in describe(load_data(path))["facts"]


def test_each_person_has_a_set_and_an_answer(tmp_path: Path) -> None:
    highlighted = ['<i class="pen">so</i>', "good"]
    rows = (
        person(),
        person(annotator_label="no", mask=[1, 0], tokens=highlighted),
        person(text_id=1, text="bad", tokens=["bad"], mask=[1], label="0", annotator_label="idk"),
    )
    path = lines(tmp_path / "h.jsonl", *rows)
    first, second = load_data(path)
    assert marked(first) == [[1], [0]]
    assert first.input.text == "so good"
    assert [first.facts[f"annotator_{i}"] for i in (1, 2)] == ["yes", "no"]
    assert second.facts["annotators"] == "1"
    right = load_data(path, layout="human_attention(people=right)").examples
    assert [marked(e) for e in right] == [[[1]], []]


def test_pairs_of_a_table_know_their_original(tmp_path: Path) -> None:
    path = tmp_path / "p.tsv"
    rows = ['Positive\t"so ""good""<br />really"\t4', 'Negative\t"so ""bad""<br />really"\t4']
    path.write_text("\n".join(["Sentiment\tText\tbatch_id", *rows]) + "\n")
    original, twin = load_data(path)
    assert original.input.text == 'so "good"\nreally'
    assert (original.id, original.partner, twin.partner) == ("4-original", None, "4-original")
    assert (original.label, twin.label) == (1, 0)


# ---- faults ---------------------------------------------------------------------------------


def test_every_fault_keeps_its_line_and_the_rest_is_kept(tmp_path: Path) -> None:
    bad = [
        (eraser(id="a", evidence=[[4, 7]]), "out of range"),
        (eraser(id="b", evidence=[[4, 4]]), "empty"),
        (eraser(id="c", evidence=[4, 5]), "places of words"),
        (eraser(id="d", sentence_lengths=[4, 4]), "add up to the 6 tokens"),
        (eraser(id="e", tokens=["x", ""], sentence_lengths=[], evidence=[]), "non-empty"),
        (eraser(id="f", evidence="[["), "JSON"),
    ]
    path = lines(tmp_path / "e.jsonl", eraser(), *(row for row, _ in bad))
    _, faults = validate(path)
    assert [fault.line for fault in faults] == [2, 3, 4, 5, 6, 7]
    for fault, (_, says) in zip(faults, bad, strict=True):
        assert says in fault.message
    assert [e.id for e in load_data(path, skip_bad=True)] == ["x"]


def test_a_person_who_read_something_else_does_not_spoil_the_review(tmp_path: Path) -> None:
    rows = (
        person(),
        person(tokens=["so", "bad"]),
        person(mask=[1]),
        person(text_id=None),
        person(mask=[1, 1]),
        person(text_id=4, text="fine", tokens=["fine"], mask=[1]),
    )
    path = lines(tmp_path / "h.jsonl", *rows)
    with path.open("a") as file:
        file.write("{broken\n")
    _, faults = validate(path)
    assert [fault.line for fault in faults] == [2, 3, 4, 7]
    kept = load_data(path, skip_bad=True)
    assert [(e.id, marked(e)) for e in kept] == [("0", [[1], [0, 1]]), ("4", [[0]])]


def test_dutrust_and_pair_faults(tmp_path: Path) -> None:
    path = lines(tmp_path / "d.jsonl", *dutrust(rationales=[["x"]]))
    assert [(f.line, "places of words" in f.message) for f in validate(path)[1]] == [(1, True)]
    path = lines(tmp_path / "d.jsonl", *dutrust(rationales=[[9]], sent_label=None))
    assert [f.line for f in validate(path)[1]] == [1]
    table = tmp_path / "p.tsv"
    rows = ("Positive\tgood\t1", "Negative\tbad\t1", "Negative\tdull\t1", "Positive\tfine\t")
    table.write_text("\n".join(["Sentiment\tText\tbatch_id", *rows]) + "\n")
    faults = validate(table)[1]
    assert [f.line for f in faults] == [4, 5]
    assert "from line 2" in faults[0].message
    assert "batch_id" in faults[1].message


# ---- choosing -------------------------------------------------------------------------------


def test_a_format_can_be_chosen_and_refused(tmp_path: Path) -> None:
    path = lines(tmp_path / "e.jsonl", eraser())
    assert marked(load_data(path, layout="plain").examples[0]) == []
    with pytest.raises(DataError, match=r"columns of dutrust \(context, sent_token\).*evidence"):
        load_data(path, layout="dutrust")
    with pytest.raises(PluginError, match="did you mean 'eraser'"):
        load_data(path, layout="erasr")
    both = lines(tmp_path / "b.jsonl", eraser() | dutrust(rel_ids=[])[0])
    with pytest.raises(DataError, match="--layout dutrust or eraser"):
        load_data(both)
    assert len(load_data(both, layout="eraser")) == 1


def test_a_new_format_is_one_file(tmp_path: Path) -> None:
    folder = tmp_path / "mine" / "formats"
    folder.mkdir(parents=True)
    (folder / "shouted.py").write_text(
        '"""Mine."""\n'
        "from dataclasses import dataclass\n"
        "from veracity.data.format import Format, turned\n\n\n"
        "@dataclass(frozen=True)\n"
        "class Shouted(Format):\n"
        '    """TEXT and LABEL."""\n\n'
        '    fields = frozenset({"TEXT", "LABEL"})\n\n'
        "    def records(self, table):\n"
        '        return turned(table, lambda v: {"text": v["TEXT"], "label": v["LABEL"]})\n'
    )
    (tmp_path / "r.csv").write_text("TEXT,LABEL\nFINE,yes\n")
    code = "from veracity.data import load_data; print(load_data('r.csv').examples[0].input.text)"
    environment = {**os.environ, "VERACITY_PLUGINS": str(tmp_path / "mine")}
    command = [sys.executable, "-c", code]
    said = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert said.stdout.strip() == "FINE", said.stderr


# ---- writing --------------------------------------------------------------------------------


def test_what_is_written_reads_back(tmp_path: Path) -> None:
    for name, path in (
        ("dutrust", lines(tmp_path / "d.jsonl", *dutrust())),
        ("eraser", lines(tmp_path / "e.jsonl", eraser(), eraser(id="y", evidence=[]))),
    ):
        data = load_data(path)
        write_data(data, tmp_path / "out.jsonl", layout=name)
        assert load_data(tmp_path / "out.jsonl").fingerprint() == data.fingerprint()


def test_what_a_layout_cannot_hold_is_refused(tmp_path: Path) -> None:
    two = (np.array([True, False, True]), np.array([False, True, False]))
    many = Example("m", read_text("a b c"), 0, {"rationale": two})
    with pytest.raises(DataError, match="m: expected one rationale set"):
        write_data(Dataset("d", ("no",), (many,)), tmp_path / "o.jsonl", layout="eraser")
    orphan = Example("t", read_text("a b"), 0, {}, "gone", {"sample_type": "adv"})
    with pytest.raises(DataError, match="its original 'gone'"):
        write_data(Dataset("d", ("no",), (orphan,)), tmp_path / "o.jsonl", layout="dutrust")
    with pytest.raises(DataError, match="read, not written"):
        write_data(Dataset("d", ("no",), (many,)), tmp_path / "o.jsonl", layout="paired")
    assert not (tmp_path / "o.jsonl").exists()


@pytest.mark.parametrize("name", formats.names())
def test_every_format_is_told_from_the_others(name: str) -> None:
    one = formats.make(name)
    others = [formats.make(other) for other in formats.names() if other != name]
    assert not any(one.fields <= other.fields for other in others)


# ---- the command line -----------------------------------------------------------------------


def test_an_audit_uses_the_rationales_of_the_file(tmp_path: Path, bag: WordWeights) -> None:
    from veracity.auditing import audit

    rows = [
        eraser(id=str(i), tokens=["the", "dull", "plot"], sentence_lengths=[3], evidence=[[1, 2]])
        for i in range(4)
    ]
    path = lines(tmp_path / "e.jsonl", *rows)
    run = audit(
        {"bag": bag},
        path,
        "occlusion, random_scores",
        "feature_overlap, erasure",
        out=tmp_path / "run",
    )
    judged = {(s.metric, e.method) for s in run.standings for e in s.entries}
    assert ("feature_overlap", "occlusion") in judged


def test_data_are_converted_and_formats_listed(tmp_path: Path) -> None:
    lines(tmp_path / "e.jsonl", eraser())
    done = run_command(
        "data", "convert", "e.jsonl", "--to", "records", "--out", "r.jsonl", "--json", cwd=tmp_path
    )
    assert json.loads(done.stdout) == {"data": "r.jsonl", "examples": 1}
    assert marked(load_data(tmp_path / "r.jsonl").examples[0]) == [[1, 4, 5]]
    again = run_command(
        "data", "convert", "r.jsonl", "--to", "eraser", "--out", "r.jsonl", cwd=tmp_path
    )
    assert again.returncode == 2 and "is there already" in again.stderr
    listed = json.loads(run_command("list", "formats", "--json", cwd=tmp_path).stdout)
    assert [row["name"] for row in listed["formats"]] == formats.names()
    asked = ("--layout", "eraser(sets=spans)", "--json")
    told = json.loads(run_command("data", "describe", "e.jsonl", *asked, cwd=tmp_path).stdout)
    assert told["truths"]["rationale"]["mean_sets"] == 2


# ---- public files ---------------------------------------------------------------------------


def public(name: str) -> Path:
    if not (SHARED / name).exists():
        pytest.skip(f"public file {name} is not at hand")
    return SHARED / name


@pytest.mark.parametrize("language", ["en", "ch"])
def test_public_dutrust(language: str) -> None:
    data = load_data(public(f"dutrust/senti_{language}.jsonl"))
    assert describe(data)["facts"]["sample_type"] == {"adv": 50, "ori": 50}
    assert sum(e.partner is not None for e in data) == 50


def test_public_eraser(tmp_path: Path) -> None:
    path = public("eraser_movies/val.jsonl.gz")
    told = describe(load_data(path))
    assert (told["examples"], told["truths"]["rationale"]["examples"]) == (200, 200)
    write_data(load_data(path), tmp_path / "again.jsonl", layout="eraser")
    again = load_data(tmp_path / "again.jsonl")
    assert again.fingerprint() == load_data(path).fingerprint()


def test_public_human_attention() -> None:
    told = describe(load_data(public("ham_yelp/ham.jsonl.gz")))
    sets = told["truths"]["rationale"]
    assert (told["examples"], sets["examples"] * sets["mean_sets"]) == (1545, 4853)
    assert told["facts"]["annotators"] == {"1": 1, "2": 131, "3": 1062, "4": 351}


def test_public_pairs() -> None:
    dataset, faults = validate(public("cad_imdb/dev_paired.tsv.gz"))
    assert dataset is not None and faults == []
    assert (len(dataset), describe(dataset)["pairs"]) == (490, 245)
    named = {e.id: e for e in dataset}
    assert all(named[e.partner].label != e.label for e in dataset if e.partner)
    _, faults = validate(public("cad_imdb/test_paired.tsv.gz"))
    assert ["the same text" in f.message for f in faults] == [True]
