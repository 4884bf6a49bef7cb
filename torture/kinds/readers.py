"""Tables and JSON built from scratch out of what trips readers up."""

from __future__ import annotations

import gzip
import json
import random
from pathlib import Path
from typing import Any

from ..case import Broken, bounded_memory, tried
from ..mutations import ODD, TOKENS, damaged

ABOUT = "made-up CSV, TSV, JSON, JSON lines and Parquet for the readers of data"
SHARE = 1.0
DEADLINE = 30.0

FIELDS = (
    *("text", "label", "id", "split", "tokens", "rationales", "partner", "rel_ids", "evidence"),
    *("sentiment_type", "adv_type", "annotation_id", "evidences", "classification", "sent_id"),
    *("context", "sentence", "premise", "review", "", "text", "labels", "scores", "docids", "ham"),
)
CELLS = (
    *(
        "a fine film",
        "dull",
        "0",
        "1",
        "-1",
        "1.5",
        "nan",
        "",
        " ",
        "positive",
        "negative",
        "train",
    ),
    *(
        "test",
        "[0, 1]",
        "[[0], [1, 2]]",
        "{}",
        "[",
        '"',
        '""',
        "'",
        "a\nb",
        "a\rb",
        "a\u2028b",
        "\x00",
    ),
    *(
        "=1+1",
        "@SUM(A1)",
        "好 电影",
        "\u202e",
        "e\u0301",
        "a" * 3000,
        "null",
        "1e999",
        "\ud800",
        "\x1a",
    ),
)


def prepare(place: Path) -> None:
    """Nothing to write."""


def case(number: int, rng: random.Random, place: Path, work: Path) -> str:
    ending = rng.choice(("csv", "tsv", "txt", "json", "jsonl", "csv", "jsonl", "parquet"))
    content = _content(rng, ending)
    if rng.random() < 0.2:
        content = damaged(rng, content)
    if rng.random() < 0.05:
        content, packed = gzip.compress(content), ".gz"
    else:
        packed = ""
    path = work / f"data.{ending}{packed}"
    path.write_bytes(content)
    with bounded_memory():
        _read(rng, path)
    return ending


def _read(rng: random.Random, path: Path) -> None:
    from veracity.data.loading import describe, load_data, validate
    from veracity.data.records import write_records

    columns = rng.choice(("", "", "", "text=text,label=", "text=review,label=id"))
    settings: dict[str, Any] = {"skip_bad": rng.random() < 0.6}
    if columns:
        settings["columns"] = columns
    if rng.random() < 0.2:
        settings["layout"] = rng.choice(("plain", "dutrust", "eraser", "human_attention", "paired"))
    if rng.random() < 0.2:
        settings["labels"] = rng.choice((["a", "b"], ["0", "1"], ["a"], ["a", "a"]))
    found: list[Any] = []
    if rng.random() < 0.5:
        tried(lambda: validate(path, **settings))
    if tried(lambda: found.append(load_data(path, **settings))) == "told":
        return
    describe(found[0])
    again = path.with_name("again.jsonl")
    tried(lambda: write_records(found[0], again))
    if again.exists() and load_data(again).fingerprint() != found[0].fingerprint():
        raise Broken("records read back differ from what was written")


def _content(rng: random.Random, ending: str) -> bytes:
    names = [rng.choice(FIELDS) for _ in range(rng.choice((1, 2, 2, 3, 5)))]
    if rng.random() < 0.8:
        names[:2] = ["text", "label"]
    rows = [[_cell(rng) for _ in names] for _ in range(rng.choice((0, 1, 3, 8)))]
    if ending in ("csv", "tsv", "txt"):
        return _table(rng, names, rows, "\t" if ending == "tsv" else rng.choice(",,;|\t"))
    objects = [dict(zip(names, map(_value(rng), row), strict=True)) for row in rows]
    if ending == "json":
        return json.dumps(objects if rng.random() < 0.9 else rng.choice(ODD)).encode()
    if ending == "jsonl":
        ends = rng.choice(("\n", "\r\n", "\r", "\n\n", "\u2028"))
        return ends.join(json.dumps(o) for o in objects).encode()
    return _parquet(rng, names, rows)


def _cell(rng: random.Random) -> str:
    """Mostly plain, so that one odd cell is what the reader has to do with."""
    return rng.choice(CELLS[:12]) if rng.random() < 0.8 else rng.choice(CELLS)


def _value(rng: random.Random) -> Any:
    return lambda cell: cell if rng.random() < 0.9 else rng.choice(ODD)


def _table(rng: random.Random, names: list[str], rows: list[list[str]], sign: str) -> bytes:
    quoted = rng.random() < 0.8
    end = rng.choice(("\n", "\n", "\r\n", "\r"))

    def written(cell: str) -> str:
        return (
            '"' + cell.replace('"', '""') + '"'
            if quoted and set(cell) & set('",;|\t\r\n')
            else cell
        )

    lines = [sign.join(map(written, row)) for row in (names, *rows)]
    if lines and rng.random() < 0.15:
        lines.insert(rng.randint(0, len(lines)), rng.choice(TOKENS).decode("latin-1"))
    encoding = rng.choice(("utf-8", "utf-8", "utf-8", "utf-8-sig", "utf-16", "latin-1", "utf-32"))
    return end.join(lines).encode(encoding, "replace")


def _parquet(rng: random.Random, names: list[str], rows: list[list[str]]) -> bytes:
    import io

    import pyarrow as pa
    import pyarrow.parquet as pq

    makers = (
        lambda c: c.encode("utf-8", "replace").decode(),
        len,
        lambda c: [c.encode("utf-8", "replace").decode()],
        lambda c: None,
        lambda c: float("nan"),
        lambda c: c.encode("utf-8", "replace"),
        lambda c: {"a": 1},
    )
    columns = {}
    for i, name in enumerate(dict.fromkeys(names)):
        make = makers[0] if rng.random() < 0.8 else rng.choice(makers)
        columns[name] = [make(row[i]) for row in rows]
    file = io.BytesIO()
    pq.write_table(pa.table(columns), file)
    return file.getvalue()
