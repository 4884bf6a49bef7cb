"""Files become examples, faults keep their lines, what is written reads back."""

import csv
import gzip
import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from veracity.core.errors import DataError
from veracity.core.examples import Dataset, Example, read_labels, written_labels
from veracity.core.inputs import Text
from veracity.data.loading import describe, load_data, validate
from veracity.data.readers import Columns
from veracity.data.records import write_records
from veracity.data.words import read_text

ROWS = [
    {"id": "a", "text": 'A "fine" film, really', "label": "pos"},
    {"id": "b", "text": "two\nlines, dull", "label": "neg"},
    {"id": "c", "text": "schön 好看", "label": "pos"},
]
SHARED = Path(__file__).resolve().parents[2] / "shared" / "data"


def write(path: Path, rows: list[dict[str, Any]]) -> Path:
    """The rows in the format that the ending names."""
    name = path.name.removesuffix(".gz")
    if name.endswith(".parquet"):
        pq.write_table(pa.Table.from_pylist(rows), path)
        return path
    opened = gzip.open if path.suffix == ".gz" else open
    with opened(path, "wt", encoding="utf-8", newline="") as file:
        if name.endswith((".csv", ".tsv")):
            sign = "," if name.endswith(".csv") else "\t"
            writer = csv.DictWriter(file, list(rows[0]), delimiter=sign)
            writer.writeheader()
            writer.writerows(rows)
        elif name.endswith(".json"):
            json.dump(rows, file)
        else:
            file.writelines(json.dumps(row) + "\n" for row in rows)
    return path


@pytest.mark.parametrize(
    "name",
    [f"r.{kind}{gz}" for kind in ("csv", "tsv", "jsonl", "ndjson", "json") for gz in ("", ".gz")]
    + ["r.parquet"],
)
def test_every_format_gives_the_same_examples(tmp_path: Path, name: str) -> None:
    data = load_data(write(tmp_path / name, ROWS))
    assert data.name == "r"
    assert data.labels == ("neg", "pos")
    assert [(e.id, e.input.text, data.labels[e.label]) for e in data] == [
        (row["id"], row["text"], row["label"]) for row in ROWS
    ]
    assert data.examples[2].input.words == ("schön", "好看")


@pytest.mark.parametrize("parts", [False, True])
@pytest.mark.filterwarnings("ignore")
def test_folders_of_the_datasets_library(tmp_path: Path, parts: bool) -> None:
    import datasets

    features = datasets.Features(
        {"text": datasets.Value("string"), "label": datasets.ClassLabel(names=["neg", "pos"])}
    )
    train = datasets.Dataset.from_dict(
        {"text": ["bad film", "good film", "so so"], "label": [0, 1, 0]}, features=features
    )
    test = datasets.Dataset.from_dict({"text": ["fine"], "label": [1]}, features=features)
    saved = datasets.DatasetDict({"train": train, "test": test}) if parts else train
    saved.save_to_disk(str(tmp_path / "saved"))
    data = load_data(tmp_path / "saved")
    assert [data.labels[e.label] for e in data][:3] == ["neg", "pos", "neg"]
    assert [e.facts.get("split") for e in data] == (
        ["train", "train", "train", "test"] if parts else [None] * 3
    )
    train.to_parquet(str(tmp_path / "p.parquet"))
    assert load_data(tmp_path / "p.parquet").labels == ("neg", "pos")


def test_columns_are_named_and_misnamed(tmp_path: Path) -> None:
    path = write(
        tmp_path / "r.csv", [{"Review": "good", "stars": "5"}, {"Review": "bad", "stars": "1"}]
    )
    data = load_data(path, columns=Columns.parse("text=Review, label=stars"))
    assert data.labels == ("1", "5")
    assert [e.id for e in data] == ["1", "2"]
    with pytest.raises(
        DataError, match=r"expected a column 'review'.*Review, stars.*did you mean 'Review'"
    ):
        load_data(path, columns=Columns.parse("text=review,label=stars"))
    with pytest.raises(DataError, match="expected a column 'label'"):
        load_data(path, columns=Columns(text="Review"))
    with pytest.raises(DataError, match="did you mean 'label'"):
        Columns.parse("lable=stars")
    with pytest.raises(DataError, match="text=review,label=stars"):
        Columns.parse("text")


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("a, b,c", ["a", "b", "c"]),
        ('"Toys, Games & Co",Books', ["Toys, Games & Co", "Books"]),
        ('Books, "a, b"', ["Books", "a, b"]),
        ('Music "live",x', ['Music "live"', "x"]),
    ],
)
def test_label_names_may_hold_commas(text: str, names: list[str]) -> None:
    assert read_labels(text) == names
    assert read_labels(written_labels(names)) == names


def test_label_names_in_open_quotes_are_told() -> None:
    with pytest.raises(DataError, match="those with a comma in quotes"):
        read_labels('"a,b')


def test_labels_keep_numeric_order_or_the_given_one(tmp_path: Path) -> None:
    path = write(tmp_path / "r.jsonl", [{"text": "x", "label": n} for n in (10, 9, 1)])
    assert load_data(path).labels == ("1", "9", "10")
    assert load_data(path, labels=["10", "9", "1"]).examples[0].label == 0
    numbered = write(tmp_path / "n.jsonl", [{"text": "x", "label": 1}, {"text": "y", "label": 0}])
    named = load_data(numbered, labels=["negative", "positive"])
    assert named.balance == {"negative": 1, "positive": 1}
    assert named.examples[0].label == 1


def test_tables_hold_lists_as_json(tmp_path: Path) -> None:
    row = {"tokens": '["very", "good"]', "label": "1", "rationales": "[[1]]", "text": "",
           "facts": '{"x": {"y": [1]}, "n": 2}'}  # fmt: skip
    example = load_data(write(tmp_path / "r.csv", [row])).examples[0]
    assert example.input.text == "very good"
    assert example.truths["rationale"][0].tolist() == [False, True]
    assert example.facts == {"x": '{"y": [1]}', "n": "2"}


def test_quotes_in_tab_separated_files_are_text_unless_they_quote(tmp_path: Path) -> None:
    path = tmp_path / "r.tsv"
    path.write_text('label\ttext\n1\t" extreme ops " exceeds\n0\t"open\n1\tshut"\n')
    assert [e.input.text for e in load_data(path)] == ['" extreme ops " exceeds', '"open', 'shut"']
    path.write_text('label\ttext\n0\t"open\n1\tshut"\n')
    assert [e.input.text for e in load_data(path)] == ['"open', 'shut"']
    path.write_text('label\ttext\n0\t"he said ""no""\tand left"\n')
    assert load_data(path).examples[0].input.text == 'he said "no"\tand left'


def rated(**change: Any) -> dict[str, Any]:
    return {"sufficient": 3, "understandable": 3, "compact": 4} | change


FAULTS: list[tuple[dict[str, Any], str]] = [
    ({"text": ""}, "the text is empty"),
    ({"text": " \u200b\n"}, "the text is empty"),
    ({"text": "a\0b"}, "NUL"),
    ({"text": "half \ud800"}, "half a character"),
    ({"text": 5}, "expected the text to be a string, got int"),
    ({"text": "one two three four five six seven"}, "at most 6 words, got 7; .* raise --max-words"),
    ({"label": None}, "label is missing"),
    ({"label": "odd"}, "one of neg, pos; got 'odd'"),
    ({"label": [1]}, "label to be a name"),
    ({"id": "first"}, "'first' stands on line 1 already"),
    ({"id": [1]}, "id to be a string"),
    ({"tokens": "x y"}, "tokens to be JSON"),
    ({"tokens": {"a": 1}}, "tokens to be a list"),
    ({"tokens": ["ok", ""]}, "tokens to be non-empty strings"),
    ({"rationales": [[0, 9]]}, "index 9 is out of range: the text has 2 words"),
    ({"rationales": [[-1]]}, "index -1 is out of range"),
    ({"rationales": [[0], []]}, "rationale set is empty"),
    ({"rationales": [[1, 0]]}, "sorted"),
    ({"rationales": [[0, 0]]}, "sorted"),
    ({"rationales": ["ab"]}, "list of word indices"),
    ({"rationales": [0, [1]]}, "list of word indices|empty"),
    ({"truths": {"articles": [[7]]}}, "articles index 7"),
    ({"truths": [1]}, "truths to be an object"),
    ({"sample_type": "other"}, "sample_type to be ori or adv; got 'other'"),
    ({"sentiment_type": 3}, "sentiment_type to be single"),
    ({"scores": [3]}, "scores to be a list of objects"),
    ({"rel_ids": ["nobody"]}, "'nobody', which no row has"),
    ({"rel_ids": ["first"], "sample_type": "adv"}, "originals only"),
    ({"sample_type": "adv"}, "no original names this adv row"),
    ({"sample_type": "ori", "adv_type": "idr"}, "adv_type on adv rows only"),
    ({"sample_type": "ori", "partner": "first"}, "partner on adv rows only"),
    ({"partner": "bad"}, "its own twin"),
    ({"rel_ids": ["bad"]}, "its own twin"),
    ({"rationales": [[0]], "scores": [rated(sufficient=4)]}, "sufficient from 1 to 3, got 4"),
    ({"rationales": [[0]], "scores": [rated(sufficient=0)]}, "sufficient from 1 to 3, got 0"),
    ({"rationales": [[0]], "scores": [rated(understandable=5)]}, "from 1 to 4, got 5"),
    ({"rationales": [[0]], "scores": [rated(compact="4")]}, "compact from 1 to 4, got '4'"),
    ({"rationales": [[0]], "scores": [{"compact": 4}]}, "sufficient from 1 to 3, got None"),
    ({"rationales": [[0]], "scores": [rated(style=4)]}, "only, got style"),
    ({"rationales": [[0], [1]], "scores": [rated()]}, "got 1 for 2 rationales"),
    ({"scores": [rated()]}, "got 1 for 0 rationales"),
    ({"id": "a\0"}, "id holds a NUL byte"),
    ({"label": "\ud800"}, "label holds half a character"),
    ({"facts": {"k": ["\ud800"]}}, "facts holds half a character"),
    ({"facts": '{"k": "\\u0000"}'}, "facts holds a NUL byte"),
    ({"rationales": [[0]], "truths": {"rationale": [[1]]}}, "in one place"),
    ({"split": "test", "facts": {"split": "train"}}, "split in its own column"),
    ({"rationales": "-1"}, "index -1 is out of range"),
    ({"adv_type": "csk"}, "no original names this adv row"),
]


@pytest.mark.parametrize(("change", "message"), FAULTS)
def test_faults_are_found_on_their_line(
    tmp_path: Path, change: dict[str, Any], message: str
) -> None:
    first = {"id": "first", "text": "good film", "label": "pos"}
    bad = {"id": "bad", "text": "bad film", "label": "neg"} | change
    path = write(tmp_path / "r.jsonl", [first, bad, first | {"id": "last", "text": "dull"}])
    dataset, faults = validate(path, labels=["neg", "pos"], max_words=6)
    assert dataset is None
    assert {fault.line for fault in faults if fault.severity == "error"} == {2}
    with pytest.raises(DataError, match=message) as error:
        load_data(path, labels=["neg", "pos"], max_words=6)
    assert "1 of 3 rows" in str(error.value)
    assert "veracity data validate" in str(error.value)
    with pytest.warns(UserWarning, match="1 faulty row is left out, first: line 2: "):
        kept = load_data(path, labels=["neg", "pos"], max_words=6, skip_bad=True)
    assert [e.id for e in kept] == ["first", "last"]


def pair(**change: Any) -> list[dict[str, Any]]:
    original = {"id": 1, "text": "good", "label": 1, "sample_type": "ori", "rel_ids": [2]}
    twin = {"id": 2, "text": "good indeed", "label": 1, "sample_type": "adv", "adv_type": "idr"}
    return [original, twin | change]


def test_pairs_are_joined_and_checked(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    data = load_data(write(path, pair()))
    assert [e.partner for e in data] == [None, "1"]
    assert data.examples[1].facts == {"sample_type": "adv", "adv_type": "idr"}
    assert describe(data)["pairs"] == 1

    _, same = validate(write(path, pair(text="good")))
    assert [(f.line, f.severity) for f in same] == [(2, "error")]
    assert same[0].message == "the same text as its original on line 1"

    second = {"id": 3, "text": "fine", "label": 1, "sample_type": "ori", "rel_ids": [2]}
    _, two = validate(write(path, [*pair(), second]))
    assert [f.line for f in two] == [2]
    assert "one original, got those on lines 1, 3" in two[0].message

    flipped = write(path, pair(label=0))
    dataset, warned = validate(flipped)
    assert dataset is not None and len(load_data(flipped)) == 2
    assert [(f.line, f.severity) for f in warned] == [(2, "warning")]

    _, free = validate(write(path, pair(label=0, adv_type="csk")))
    assert free == []


def test_pairs_by_partner_are_checked_as_well(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    original = {"id": "o", "text": "good", "label": 1, "sample_type": "ori"}
    twin = {"id": "t", "text": "good indeed", "label": 1, "sample_type": "adv", "partner": "o"}

    def told(*rows: dict[str, Any]) -> list[tuple[int, str, str]]:
        return [(f.line, f.severity, f.message) for f in validate(write(path, list(rows)))[1]]

    assert told(original, twin) == []
    ((line, severity, message),) = told(original, twin | {"text": "good"})
    assert (line, severity) == (2, "error") and "same text" in message
    ((line, severity, message),) = told(original, twin | {"partner": "gone"})
    assert (line, severity) == (2, "warning") and "'gone' is in no row" in message
    ((line, severity, message),) = told(original, twin | {"text": "很好"})
    assert (line, severity) == (2, "warning") and "another language" in message
    ((line, severity, message),) = told(original, twin | {"label": 0, "adv_type": "lf"})
    assert (line, severity) == (2, "warning") and "keeps the label" in message
    other = original | {"id": "p", "text": "fine", "rel_ids": ["t"]}
    ((line, severity, message),) = told(original, twin, other)
    assert (line, severity) == (2, "error") and "lines 3, 1" in message
    ((line, severity, message),) = told(original | {"rel_ids": ["p"]}, other | {"rel_ids": []})
    assert (line, severity) == (1, "error") and "'p' is an original" in message
    chain = twin | {"id": "u", "text": "good it is", "partner": "t"}
    ((line, severity, message),) = told(original, twin, chain)
    assert (line, severity) == (3, "error") and "line 2 is adv" in message


def test_a_fault_does_not_cause_others(tmp_path: Path) -> None:
    for which in (0, 1):
        rows = pair()
        rows[which]["text"] = ""
        _, faults = validate(write(tmp_path / "r.jsonl", rows))
        assert [f.line for f in faults] == [which + 1]


def test_lines_are_those_an_editor_shows(tmp_path: Path) -> None:
    path = tmp_path / "r.csv"
    path.write_text('text,label\n"two\nlines",1\n\n,1\na,b,c\nonly\n')
    _, faults = validate(path)
    assert [(f.line, f.message[:26]) for f in faults] == [
        (5, "the text is empty"),
        (6, "expected 2 fields, as in t"),
        (7, "expected 2 fields, as in t"),
    ]
    lines = tmp_path / "r.jsonl"
    lines.write_text('{"text": "x", "label": 1}\n\n{broken\n[1]\n{"text": "", "label": 1}\n')
    _, faults = validate(lines)
    assert [f.line for f in faults] == [3, 4, 5]
    assert "expected one JSON object per line" in str(faults[0])


def test_only_the_first_three_faults_are_shown(tmp_path: Path) -> None:
    path = write(tmp_path / "r.jsonl", [{"text": "", "label": 1}] * 9)
    with pytest.raises(DataError) as error:
        load_data(path)
    assert "9 of 9" in str(error.value)
    assert "line 3" in str(error.value)
    assert "line 4" not in str(error.value)
    with pytest.raises(DataError, match="at least one usable row"):
        load_data(path, skip_bad=True)
    assert validate(path)[0] is None


def damaged(tmp_path: Path, kind: str) -> Path:
    path = tmp_path / kind
    if kind == "cut.parquet":
        path.write_bytes(write(tmp_path / "whole.parquet", ROWS).read_bytes()[:-40])
    elif kind == "cut.csv.gz":
        path.write_bytes(write(tmp_path / "whole.csv.gz", ROWS * 50).read_bytes()[:-20])
    elif kind == "flipped.csv.gz":
        content = bytearray(write(tmp_path / "whole.csv.gz", ROWS * 50).read_bytes())
        content[len(content) // 2] ^= 0xFF
        path.write_bytes(content)
    elif kind == "not.csv.gz":
        path.write_text("text,label\nx,1\n")
    elif kind == "latin.csv":
        path.write_bytes("text,label\nfine,1\nschön,1\n".encode("latin-1"))
    elif kind == "empty.csv":
        path.write_text("")
    elif kind == "header.csv":
        path.write_text("text,label\n")
    elif kind == "twice.csv":
        path.write_text("text,label,text\na,1,b\n")
    elif kind == "quote.csv":
        path.write_text('text,label\nx,1\n"never closed,1\n')
    elif kind == "huge.csv":
        path.write_text("text,label\n" + "x" * 10_000_001 + ",1\n")
    elif kind in ("object.json", "cut.json", "deep.json"):
        texts = {"object.json": '{"a": 1}', "cut.json": '[{"text"', "deep.json": "[" * 100_000}
        path.write_text(texts[kind])
    elif kind == "folder":
        path.mkdir()
    elif kind == "saved":
        path.mkdir()
        (path / "state.json").write_text('{"_data_files": [{"filename": "data.arrow"}]}')
        (path / "dataset_info.json").write_text("{}")
        (path / "data.arrow").write_bytes(b"no arrow")
    else:
        path.write_text("x")
    return path


@pytest.mark.parametrize(
    ("kind", "message"),
    [
        ("cut.parquet", "expected a whole Parquet file"),
        ("cut.csv.gz", "expected a whole gzip file"),
        ("flipped.csv.gz", "expected a whole gzip file"),
        ("not.csv.gz", "expected a whole gzip file"),
        ("latin.csv", r"expected UTF-8, but byte 0xf6 at position 21 \(line 3\)"),
        ("empty.csv", "is empty: expected a header row"),
        ("header.csv", "holds no rows"),
        ("twice.csv", "every column to have its own name"),
        ("quote.csv", "line 3: expected quoted fields"),
        ("huge.csv", "at most 10,000,000 characters"),
        ("object.json", "expected a JSON list of objects, got dict"),
        ("cut.json", "expected a JSON list of objects"),
        ("deep.json", "expected a JSON list of objects"),
        ("folder", "without dataset_dict.json or state.json"),
        ("saved", "expected a whole Arrow file"),
        ("data.xlsx", r"ends in \.csv, \.tsv"),
        ("data.parquet.gz", r"ends in \.csv, \.tsv"),
    ],
)
def test_damaged_files_are_refused_with_a_reason(tmp_path: Path, kind: str, message: str) -> None:
    with pytest.raises(DataError, match=message):
        load_data(damaged(tmp_path, kind))


def test_lengths_that_point_out_of_an_arrow_file_are_told(tmp_path: Path) -> None:
    """A flipped bit in the ends of texts asked for memory without end, or was a bus error."""
    place = tmp_path / "saved"
    place.mkdir()
    (place / "state.json").write_text('{"_data_files": [{"filename": "data.arrow"}]}')
    (place / "dataset_info.json").write_text("{}")
    table = pa.table({"text": ["good film", "bad film"], "label": ["pos", "neg"]})
    sink = pa.OSFile(str(place / "data.arrow"), "wb")
    with sink, pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    whole = (place / "data.arrow").read_bytes()
    ends = np.array([0, 9, 17], dtype=np.int32).tobytes()
    assert whole.count(ends) == 1
    far = np.array([0, 2**30, 2**31 - 1], dtype=np.int32).tobytes()
    (place / "data.arrow").write_bytes(whole.replace(ends, far))
    with pytest.raises(DataError, match="expected a whole Arrow file"):
        load_data(place)


def test_what_is_neither_file_nor_corpus() -> None:
    with pytest.raises(DataError, match=r"no file 'gone/data.csv'"):
        load_data("gone/data.csv")
    with pytest.raises(DataError, match="did you mean 'rotten_tomatoes'"):
        load_data("rotten_tomatos")


def test_a_dataset_passes_through() -> None:
    data = load_data("made_reviews(n=4)")
    assert load_data(data) is data
    assert validate(data) == (data, [])
    with pytest.raises(DataError, match="has the labels negative, positive"):
        load_data(data, labels=["no", "yes"])


def rich_dataset() -> Dataset:
    original = Example(
        "o",
        read_text("The “food”\u200b was good, 👍🏽 and it was it!"),
        2,
        {"rationale": (np.arange(13) == 5, np.arange(13) > 7), "articles": (np.zeros(13, bool),)},
        None,
        {"sample_type": "ori", "sentiment_type": "single", "split": "dev", "domain": "food"},
    )
    twin = Example(
        "t", read_text("服务 不好"), 0, {}, "o", {"sample_type": "adv", "adv_type": "csk"}
    )
    orphan = Example("x", Text.of_words(["no", "home"]), 0, {}, "elsewhere")
    rated = '[{"compact": 4, "sufficient": 3, "understandable": 2}]'
    marked = {"rationale": (np.ones(1, bool),)}
    scored = Example("s", read_text("ok"), 0, marked, None, {"scores": rated})
    return Dataset("rich", ("zero", "never", "a b"), (original, twin, orphan, scored))


@pytest.mark.parametrize("which", ["rich", "made", "numbers"])
def test_what_is_written_reads_back_as_the_same(tmp_path: Path, which: str) -> None:
    numbered = tuple(Example(c, read_text(c), i) for i, c in enumerate("ab"))
    data = {
        "rich": rich_dataset(),
        "made": load_data("made_reviews(n=40)"),
        "numbers": Dataset("numbers", ("0", "1"), numbered),
    }[which]
    path = tmp_path / "out.jsonl"
    write_records(data, path)
    assert load_data(path).fingerprint() == data.fingerprint()
    assert [p.name for p in tmp_path.iterdir()] == ["out.jsonl"]
    first = json.loads(path.read_text("utf-8").splitlines()[0])
    assert ("labels" in first) == (which == "rich")


def test_a_failed_write_leaves_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "out.jsonl"
    path.write_text("old")
    twice = Example("same", read_text("x"), 0)
    with pytest.raises(DataError, match="unique ids"):
        write_records(Dataset("d", ("a",), (twice, twice)), path)
    assert path.read_text() == "old"


def test_describe_counts_as_the_spec_does(tmp_path: Path) -> None:
    words = " ".join("abcdefghij")
    rows = [
        {"text": words, "label": 0, "rationales": [[2, 3]], "split": "train"},
        {"text": words.upper(), "label": 1, "rationales": [[1], [4, 5, 6]], "split": "test"},
    ]
    told = describe(load_data(write(tmp_path / "r.jsonl", rows)))
    assert told["truths"]["rationale"]["mean_share"] == pytest.approx(0.2)
    assert told["truths"]["rationale"]["mean_sets"] == 1.5
    assert told["words"]["min"] == told["words"]["max"] == 10
    assert (told["duplicate_texts"], told["leaks"], told["languages"]) == (1, 1, {"other": 2})
    assert told["facts"]["split"] == {"test": 1, "train": 1}
    _, faults = validate(tmp_path / "r.jsonl")
    assert [(f.line, f.severity) for f in faults] == [(1, "warning"), (2, "warning")]
    json.dumps(told)


@pytest.mark.parametrize(
    ("path", "columns", "labels", "counts"),
    [
        ("mr/mr.tsv", "", None, {"0": 5331, "1": 5331}),
        ("sst/sst2.dev.tsv", "", None, {"0": 428, "1": 444}),
        (
            "cad_imdb/test_paired.tsv.gz",
            "text=Text,label=Sentiment",
            None,
            {"Negative": 488, "Positive": 488},
        ),
        (
            "chnsenticorp/dev.tsv.gz",
            "",
            ["negative", "positive"],
            {"negative": 607, "positive": 593},
        ),
    ],
)
def test_public_files_are_read_whole(
    path: str, columns: str, labels: list[str] | None, counts: dict[str, int]
) -> None:
    if not (SHARED / path).exists():
        pytest.skip(f"public file {path} is not at hand")
    data = load_data(SHARED / path, columns=Columns.parse(columns), labels=labels)
    assert data.balance == counts
    if path.startswith("mr"):
        assert data.examples[0].input.words[10:13] == ('"', "conan", '"')


# ---- all that is wrong, and nothing else ----------------------------------------------------


def told(path: Path, **asked: Any) -> list[tuple[int, str, str]]:
    return [(f.line, f.severity, f.message) for f in validate(path, **asked)[1]]


def test_all_faults_of_a_row_are_told_and_rows_are_counted(tmp_path: Path) -> None:
    good = {"id": 1, "text": "good film", "label": 1}
    bad = {"id": 2, "text": "bad film", "rationales": [[9]], "scores": [rated()],
           "sentiment_type": "odd", "adv_type": "odd", "rel_ids": [3, 3]}  # fmt: skip
    path = write(tmp_path / "r.jsonl", [good, bad])
    found = told(path)
    assert [line for line, _, _ in found] == [2] * 5
    for says in ("index 9", "sentiment_type", "adv_type", "every twin once", "label is missing"):
        assert sum(says in message for _, _, message in found) == 1
    write(path, [good, {"id": 2, "text": "so so", "label": 0, "rel_ids": [7, 8]}])
    assert [line for line, _, _ in told(path)] == [2, 2]
    with pytest.raises(DataError, match="1 of 2 rows are faulty"):
        load_data(path)
    with pytest.warns(UserWarning, match=r": 1 faulty row is left out"):
        assert len(load_data(path, skip_bad=True)) == 1


def test_a_cell_that_is_too_long_hides_nothing(tmp_path: Path) -> None:
    for name, sign in (("r.csv", ","), ("r.tsv", "\t")):
        path = tmp_path / name
        rows = (("text", "label"), ("x" * 10_000_001, "1"), (" ", "1"), ("fine", "1"))
        path.write_text("\n".join(map(sign.join, rows)) + "\n")
        assert [(line, message[:26]) for line, _, message in told(path)] == [
            (2, "expected at most 10,000,00"),
            (3, "the text is empty"),
        ]
        with pytest.warns(UserWarning, match="2 faulty rows"):
            assert len(load_data(path, skip_bad=True)) == 1


def test_a_file_of_nonsense_is_told_line_by_line(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    path.write_text("nonsense\n[1]\n")
    assert [line for line, _, _ in told(path)] == [1, 2]
    with pytest.raises(DataError, match="2 of 2 rows are faulty"):
        load_data(path)


@pytest.mark.parametrize("name", ["r.jsonl", "r.csv"])
@pytest.mark.parametrize("by", ["rel_ids", "partner"])
def test_a_twin_goes_with_its_faulty_original(tmp_path: Path, name: str, by: str) -> None:
    rows: list[dict[str, Any]] = [
        {"id": 1, "text": "", "label": 1, "sample_type": "ori", "rel_ids": "[2]", "partner": ""},
        {"id": 2, "text": "good", "label": 1, "sample_type": "adv", "rel_ids": "", "partner": ""},
        {"id": 3, "text": "fine", "label": 1, "sample_type": "ori", "rel_ids": "", "partner": ""},
    ]
    if by == "partner":
        rows[0]["rel_ids"], rows[1]["partner"] = "", 1
    path = write(tmp_path / name, rows)
    assert [message for _, _, message in told(path)] == ["the text is empty"]
    with pytest.warns(UserWarning, match="1 other row is left out, first: line .: its original"):
        kept = load_data(path, skip_bad=True)
    assert [e.id for e in kept] == ["3"]
    write_records(kept, tmp_path / "out.jsonl")
    assert told(tmp_path / "out.jsonl") == []


def test_every_row_without_marked_words_is_told(tmp_path: Path) -> None:
    row = {"text": "good film", "label": 1}
    rows = [row | {"rationales": [[0]]}, row, row | {"rationales": None}, row | {"rationales": []}]
    ((line, severity, message),) = told(write(tmp_path / "r.jsonl", rows))
    assert (line, severity) == (2, "warning")
    assert message.startswith("no word is marked on 3 rows (lines 2, 3, 4)")
    table = write(tmp_path / "r.csv", [row | {"rationales": "[0]"}, row | {"rationales": ""}])
    assert [line for line, _, _ in told(table)] == [3]
    assert told(write(tmp_path / "r.jsonl", [row, row])) == []


@pytest.mark.parametrize("labels", [(" pos", "Pos", "pos"), ("1", "1.0")])
def test_labels_that_differ_by_a_slip_are_named(tmp_path: Path, labels: tuple[str, ...]) -> None:
    rows = [{"text": f"film {i}", "label": name} for i, name in enumerate((*labels, "neg"))]
    ((line, severity, message),) = told(write(tmp_path / "r.csv", rows))
    assert (line, severity) == (len(labels) + 1, "warning")
    assert ", ".join(map(repr, labels)) in message


def test_a_name_says_what_is_written(tmp_path: Path) -> None:
    data = load_data("made_reviews(n=4)")
    for name in ("x.parquet", "x.csv", "x.json", "x", "x.parquet.gz"):
        with pytest.raises(DataError, match=r"JSON lines are written.*\.jsonl"):
            write_records(data, tmp_path / name)
    assert not list(tmp_path.iterdir())
    write_records(data, tmp_path / "x.jsonl.gz")
    assert load_data(tmp_path / "x.jsonl.gz").fingerprint() == data.fingerprint()
