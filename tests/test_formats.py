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
from veracity.core.inputs import Text
from veracity.data.formats import formats
from veracity.data.loading import describe, load_data, validate, write_data
from veracity.data.words import read_text


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
    with pytest.warns(UserWarning, match="6 faulty rows"):
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
    with pytest.warns(UserWarning, match="4 faulty rows"):
        kept = load_data(path, skip_bad=True)
    assert [(e.id, marked(e)) for e in kept] == [("0", [[1], [0, 1]]), ("4", [[0]])]


def test_dutrust_and_pair_faults(tmp_path: Path) -> None:
    path = lines(tmp_path / "d.jsonl", *dutrust(rationales=[["x"]]))
    assert [(f.line, "places of words" in f.message) for f in validate(path)[1]] == [(1, True)]
    original, twin = dutrust()
    path = lines(tmp_path / "d.jsonl", original, twin | {"rationales": [["x"]]})
    assert [f.line for f in validate(path)[1]] == [2]
    path = lines(tmp_path / "d.jsonl", *dutrust(rationales=[[9]], sent_label=None))
    assert [f.line for f in validate(path)[1]] == [1, 1]  # each of the two is told
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
    code = "import veracity; print(veracity.load_data('r.csv').examples[0].input.text)"
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
    with pytest.raises(DataError, match=r"eraser cannot hold rationale \(1 rows\).*--lossy"):
        write_data(Dataset("d", ("no",), (many,)), tmp_path / "o.jsonl", layout="eraser")
    orphan = Example("t", read_text("a b"), 0, {}, "gone", {"sample_type": "adv"})
    with pytest.raises(DataError, match="its original 'gone'"):
        write_data(Dataset("d", ("no",), (orphan,)), tmp_path / "o.jsonl", layout="dutrust")
    with pytest.raises(DataError, match="read, not written"):
        write_data(Dataset("d", ("no",), (many,)), tmp_path / "o.jsonl", layout="paired")
    assert not (tmp_path / "o.jsonl").exists()


def test_what_would_be_lost_is_counted_and_left_out_only_if_asked(tmp_path: Path) -> None:
    original = Example(
        "1", Text.of_words(["so", "good"], "  "), 0, {"other": (np.array([True, False]),)}, None,
        {"sample_type": "ori", "split": "test", "query": "good?"},
    )  # fmt: skip
    facts = {"sample_type": "adv", "adv_type": "idr", "sentiment_type": "single"}
    twin = Example("2", read_text("so very good"), 1, {}, "1", facts)
    data = Dataset("d", ("01", "1"), (original, twin))
    both = dict.fromkeys(("split", "other", "adv_type", "sentiment_type"), 1)
    spaces = {"what stands between words": 1}
    for layout, own in (
        ("dutrust", {"query": 1}),
        ("eraser", {"pairs": 1, "sample_type": 2, **spaces}),
    ):
        with pytest.raises(DataError, match=rf"{layout} cannot hold .*adv_type \(1 rows\)"):
            write_data(data, tmp_path / f"{layout}.jsonl", layout=layout)
        lost = write_data(data, tmp_path / f"{layout}.jsonl", layout=layout, lossy=True)
        assert lost == both | own
        again = load_data(tmp_path / f"{layout}.jsonl")
        assert [again.labels[e.label] for e in again] == ["01", "1"]
    alternatives = (np.array([True, False, False]), np.array([False, False, True]))
    two = Dataset("d", ("x",), (Example("a", read_text("a b c"), 0, {"rationale": alternatives}),))
    with pytest.raises(DataError, match="cannot hold rationale"):
        write_data(two, tmp_path / "o.jsonl", layout="eraser")
    write_data(two, tmp_path / "o.jsonl", layout="eraser(sets=spans)")
    apart = load_data(tmp_path / "o.jsonl", layout="eraser(sets=spans)")
    assert marked(apart.examples[0]) == [[0], [2]]


def test_an_identical_pair_is_left_out_with_a_warning(tmp_path: Path) -> None:
    rows = [("Positive", "good", 0), ("Negative", "good", 0), ("Positive", "fine", 1),
            ("Negative", "dull", 1)]  # fmt: skip
    path = lines(
        tmp_path / "p.jsonl", *({"Sentiment": s, "Text": t, "batch_id": b} for s, t, b in rows)
    )
    (fault,) = validate(path)[1]
    assert (fault.line, fault.severity) == (2, "warning")
    with pytest.warns(UserWarning, match="1 other row is .*line 2: the same text .* on line 1"):
        assert [e.id for e in load_data(path)] == ["0-original", "1-original", "1-revised"]


@pytest.mark.parametrize("name", formats.names())
def test_every_format_is_told_from_the_others(name: str) -> None:
    one = formats.make(name)
    others = [formats.make(other) for other in formats.names() if other != name]
    assert not any(one.fields <= other.fields for other in others)


# ---- ERASER as it is published ---------------------------------------------------------------


def published(folder: Path, **change: Any) -> Path:
    """A folder with two documents, and annotations of both and of one that nobody gave evidence
    for; what is changed is in the last."""
    (folder / "docs").mkdir(parents=True)
    (folder / "docs" / "neg.txt").write_text("a dull plot .\nso very dull", "utf-8")
    (folder / "docs" / "pos.txt").write_text("a great film", "utf-8")

    def span(docid: str, start: int, end: int) -> dict[str, Any]:
        return {"docid": docid, "start_token": start, "end_token": end, "text": "…"}

    first = {
        "annotation_id": "neg.txt",
        "classification": "NEG",
        "evidences": [[span("neg.txt", 1, 2)], [span("neg.txt", 5, 7)]],
        "docids": None,
        "query": "What is the sentiment?",
    }
    last = {
        "annotation_id": "pos.txt",
        "classification": "POS",
        "evidences": [[span("pos.txt", 1, 2)]],
    }
    lines(folder / "train.jsonl", first)
    lines(folder / "val.jsonl", first | {"annotation_id": "again"}, last | change)
    return folder


def test_the_published_folder_of_eraser(tmp_path: Path) -> None:
    folder = published(tmp_path / "movies")
    data = load_data(folder)
    assert (data.name, data.labels) == ("movies", ("NEG", "POS"))
    first = data.examples[0]
    assert first.input.words == ("a", "dull", "plot", ".", "so", "very", "dull")
    assert marked(first) == [[1, 5, 6]]
    assert first.facts == {
        "split": "train", "sentence_lengths": "[4, 3]", "query": "What is the sentiment?",
    }  # fmt: skip
    assert [e.facts["split"] for e in data] == ["train", "val", "val"]
    apart = load_data(folder, layout="eraser(sets=spans)")
    assert marked(apart.examples[0]) == [[1], [5, 6]]
    # one file of annotations finds its documents as well
    assert [e.id for e in load_data(folder / "val.jsonl")] == ["again", "pos.txt"]
    # the flat layout holds the same, but for the names of the files
    lost = write_data(data, tmp_path / "flat.jsonl", layout="eraser", lossy=True)
    assert lost == {"split": 3}
    flat = load_data(tmp_path / "flat.jsonl")
    assert [(e.input.words, marked(e)) for e in flat] == [(e.input.words, marked(e)) for e in data]


def test_documents_in_one_file_and_several_of_them(tmp_path: Path) -> None:
    folder = published(
        tmp_path / "d",
        docids=["neg.txt", "pos.txt"],
        evidences=[[{"docid": "pos.txt", "start_token": 1, "end_token": 2},
                    {"docid": "neg.txt", "start_token": 0, "end_token": 1}]],
    )  # fmt: skip
    rows = [
        {"docid": path.name, "document": path.read_text("utf-8")}
        for path in sorted((folder / "docs").iterdir())
    ]
    before = load_data(folder, layout="eraser(sets=spans)")
    assert before.examples[-1].input.words[7:] == ("a", "great", "film")
    assert marked(before.examples[-1]) == [[0, 8]]  # one group: its spans suffice together
    lines(folder / "docs.jsonl", *rows)
    for path in (folder / "docs").iterdir():
        path.unlink()
    (folder / "docs").rmdir()
    assert load_data(folder, layout="eraser(sets=spans)").fingerprint() == before.fingerprint()


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"evidences": [[{"docid": "../secret", "start_token": 0, "end_token": 1}]]}, "leads out"),
        ({"docids": ["/etc/passwd"]}, "leads out"),
        ({"docids": ["link.txt"]}, "leads out"),
        ({"docids": ["."]}, "leads out"),
        ({"docids": ["sub"]}, "no file"),
        ({"docids": ["nowhere.txt"]}, "cannot be read"),
        ({"docids": ["large.txt"]}, "at most 500 characters"),
        ({"docids": ["latin.txt"]}, "not UTF-8"),
        ({"docids": ["a\0b"]}, "name of a document"),
        ({"docids": [["pos.txt"]]}, "names of documents"),
        ({"docids": "pos.txt"}, "names of documents"),
        ({"evidences": [{"docid": "pos.txt"}]}, "list of lists"),
        ({"evidences": [["pos.txt"]]}, "start_token"),
        ({"evidences": [[{"docid": "pos.txt", "start_token": "1", "end_token": 2}]]}, "numbers"),
        ({"evidences": [[{"docid": "pos.txt", "start_token": 2, "end_token": 4}]]}, "3 words"),
        ({"docids": ["neg.txt"]}, "the annotation does not"),
        ({"classification": None}, "label is missing"),
    ],
)
def test_annotations_cannot_reach_beyond_their_documents(
    tmp_path: Path, change: dict[str, Any], says: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = published(tmp_path / "movies", **change)
    (tmp_path / "movies" / "secret").write_text("a great film")
    (folder / "docs" / "link.txt").symlink_to(tmp_path / "movies" / "secret")
    (folder / "docs" / "large.txt").write_text("great " * 100)
    (folder / "docs" / "latin.txt").write_bytes(b"caf\xe9")
    (folder / "docs" / "sub").mkdir()
    monkeypatch.setenv("VERACITY_MAX_LINE", "500")
    (fault,) = validate(folder / "val.jsonl")[1]
    assert fault.line == 2 and says in fault.message
    (fault,) = [f for f in validate(folder)[1] if f.severity == "error"]
    assert says in fault.message
    assert says == "label is missing" or "val.jsonl, line 2: " in fault.message


def test_documents_must_be_there(tmp_path: Path) -> None:
    folder = published(tmp_path / "movies")
    (folder / "docs" / "pos.txt").unlink()
    (folder / "docs" / "neg.txt").unlink()
    (folder / "docs").rmdir()
    with pytest.raises(DataError, match=r"expected docs/ or docs.jsonl"):
        load_data(folder / "val.jsonl")
    (folder / "docs").mkdir()
    told = run_command("data", "validate", str(folder), cwd=tmp_path)
    assert told.returncode == 2 and told.stdout.count("cannot be read in docs/") == 3


# ---- the command line -----------------------------------------------------------------------


def test_an_audit_uses_the_rationales_of_the_file(tmp_path: Path, bag: WordWeights) -> None:
    from veracity.auditing.audit import audit

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
    assert json.loads(done.stdout) == {"data": "r.jsonl", "examples": 1, "lost": {}}
    assert marked(load_data(tmp_path / "r.jsonl").examples[0]) == [[1, 4, 5]]
    for name, says in (("r.jsonl", "is there already"), ("r.csv", "JSON lines are written")):
        asked = ("data", "convert", "r.jsonl", "--to", "eraser", "--out", name)
        refused = run_command(*asked, cwd=tmp_path)
        assert refused.returncode == 2 and says in refused.stderr
    listed = json.loads(run_command("list", "formats", "--json", cwd=tmp_path).stdout)
    assert [row["name"] for row in listed["formats"]] == formats.names()
    lines(tmp_path / "s.jsonl", eraser(split="test"))
    asked = ("data", "convert", "s.jsonl", "--to", "eraser", "--out", "s2.jsonl")
    refused = run_command(*asked, cwd=tmp_path)
    assert refused.returncode == 2 and "split (1 rows)" in refused.stderr
    done = run_command(*asked, "--lossy", cwd=tmp_path)
    assert (done.stdout, done.stderr) == ("s2.jsonl\n", "not kept: split (1 rows)\n")
    apart = ("--layout", "eraser(sets=spans)", "--json")
    told = json.loads(run_command("data", "describe", "e.jsonl", *apart, cwd=tmp_path).stdout)
    assert told["truths"]["rationale"]["mean_sets"] == 2


@pytest.mark.parametrize("wrong", [("--limit", "0"), ("--limit", "-5"), ("--max-words", "-1")])
def test_counts_are_of_one_or_more(tmp_path: Path, wrong: tuple[str, str]) -> None:
    asked = ("data", "attack", "made_reviews(n=20)", "--by", "keyboard", "--out", "x.jsonl")
    refused = run_command(*asked, *wrong, cwd=tmp_path)
    assert refused.returncode == 2 and wrong[0] in refused.stderr
    assert not (tmp_path / "x.jsonl").exists()


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
    assert [(f.severity, "the same text" in f.message) for f in faults] == [("warning", True)]
