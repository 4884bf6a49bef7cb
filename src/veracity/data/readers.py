"""Rows out of files: tables, JSON and the folders of the `datasets` library."""

from __future__ import annotations

import csv
import dataclasses
import gzip
import io
import json
import zlib
from collections import defaultdict
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Self

from ..core.errors import DataError
from ..core.plugins import nearest

FORMATS = (".csv", ".tsv", ".jsonl", ".ndjson", ".json", ".parquet")
MAX_FIELD = 10_000_000
"""Characters in one field of a table: far above any text, far below what fills a machine."""


@dataclass(frozen=True)
class Columns:
    """What a file calls the fields of a record; an empty name leaves the field out."""

    text: str = "text"
    label: str = "label"
    id: str = "id"
    tokens: str = "tokens"
    rationales: str = "rationales"
    rationale_spans: str = "rationale_spans"
    rationale_masks: str = "rationale_masks"
    truths: str = "truths"
    split: str = "split"
    sentiment_type: str = "sentiment_type"
    sample_type: str = "sample_type"
    adv_type: str = "adv_type"
    rel_ids: str = "rel_ids"
    partner: str = "partner"
    scores: str = "scores"
    facts: str = "facts"
    labels: str = "labels"

    @classmethod
    def parse(cls, text: str) -> Self:
        """`text=review,label=stars`, as it is written on the command line."""
        known = [f.name for f in dataclasses.fields(cls)]
        chosen: dict[str, str] = {}
        for part in filter(None, map(str.strip, text.split(","))):
            field, equals, column = map(str.strip, part.partition("="))
            if not equals:
                raise DataError(f"expected columns such as text=review,label=stars; got {part!r}")
            if field not in known:
                raise DataError(f"a record has no field {field!r}: {nearest(field, known)}")
            chosen[field] = column
        return cls(**chosen)

    def check(self, seen: tuple[str, ...], where: str) -> None:
        """Text (or tokens), label and every column that was asked for must be there; a label column
        without a name says that there is none."""
        asked = {
            f.name: getattr(self, f.name)
            for f in dataclasses.fields(self)
            if getattr(self, f.name) != f.default and getattr(self, f.name)
        }
        needed = {"label": self.label, **asked} if self.label else asked
        if self.tokens not in seen:
            needed["text"] = self.text
        for field, column in needed.items():
            if column not in seen:
                none = ", or say label= if nobody labelled the texts" if field == "label" else ""
                raise DataError(
                    f"{where}: expected a column {column!r} for the {field}; columns seen: "
                    f"{', '.join(seen) or 'none'}. Name yours with --columns {field}=… "
                    f"(columns=Columns({field}=…)){none}; {nearest(column, seen)}"
                )


@dataclass(frozen=True)
class Row:
    """One row as it stands in a file, where it stands, and why it cannot be used, if so."""

    line: int
    values: Mapping[str, Any]
    fault: str = ""
    severity: Literal["error", "warning"] = "error"
    """A row with a warning is left out as well, but stops nobody."""


@dataclass(frozen=True)
class Table:
    """Rows and the names of their columns."""

    columns: tuple[str, ...]
    rows: tuple[Row, ...]


def read_table(path: Path) -> Table:
    """The rows of any file or folder that is understood."""
    if path.is_dir():
        return _folder(path)
    packed = path.suffix.lower() == ".gz"
    ending = Path(path.stem if packed else path.name).suffix.lower()
    if ending not in FORMATS or (packed and ending == ".parquet"):
        raise DataError(
            f"{path}: expected a file that ends in {', '.join(FORMATS)} (.gz may follow a text "
            f"format) or a folder written by datasets' save_to_disk; got {path.name!r}"
        )
    if ending == ".parquet":
        return _parquet(path)
    text = _decoded(_content(path, packed), path)
    if ending == ".csv":
        return _delimited(_records(text, path), path)
    if ending == ".tsv":
        return _delimited(_tab_separated(text, path), path)
    return _of_objects(_json_list(text, path) if ending == ".json" else _json_lines(text))


def _content(path: Path, packed: bool) -> bytes:
    try:
        content = path.read_bytes()
        return gzip.decompress(content) if packed else content
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise DataError(f"{path}: expected a whole gzip file ({error}); fetch it again") from None
    except OSError as error:
        raise DataError(f"{path}: cannot be read ({error.strerror})") from None


def _decoded(content: bytes, path: Path) -> str:
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise DataError(
            f"{path}: expected UTF-8, but byte {content[error.start]:#04x} at position "
            f"{error.start} (line {line}) is not; save the file as UTF-8"
        ) from None


@contextmanager
def _field_limit() -> Iterator[None]:
    before = csv.field_size_limit(2**31 - 1)  # ours is told row by row
    try:
        yield
    finally:
        csv.field_size_limit(before)


Record = tuple[int, list[str]]


def _records(text: str, path: Path, delimiter: str = ",") -> list[Record]:
    """Records and the lines they start on; strict, so that a stray quote swallows nothing."""
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
    records: list[Record] = []
    line = 1
    try:
        with _field_limit():
            for fields in reader:
                if fields:
                    records.append((line, fields))
                line = reader.line_num + 1
    except csv.Error as error:
        raise DataError(
            f"{path}, line {line}: expected quoted fields with inner quotes doubled; {error}"
        ) from None
    return records


def _tab_separated(text: str, path: Path) -> list[Record]:
    """Quotes are quoting where that fits every record; else they are part of the text."""
    lines = text.replace("\r\n", "\n").split("\n")
    plain = [(i, line.split("\t")) for i, line in enumerate(lines, 1) if line]
    try:
        quoted = _records(text, path, "\t")
    except DataError:
        return plain
    even = len({len(fields) for _, fields in plain}) <= 1
    swallowed = any(len(field) > MAX_FIELD for _, fields in quoted for field in fields)
    return plain if swallowed or (even and len(quoted) < len(plain)) else quoted


def _delimited(records: list[Record], path: Path) -> Table:
    if not records:
        raise DataError(f"{path} is empty: expected a header row with the names of the columns")
    header = records[0][1]
    if len(set(header)) < len(header):
        raise DataError(f"{path}: expected every column to have its own name; got {header}")
    rows = []
    for line, fields in records[1:]:
        fault = ""
        if len(fields) != len(header):
            fault = f"expected {len(header)} fields, as in the header; got {len(fields)}"
        elif (longest := max(map(len, fields))) > MAX_FIELD:
            fault = f"expected fields of at most {MAX_FIELD:,} characters, got {longest:,}"
        rows.append(Row(line, dict(zip(header, fields, strict=False)), fault))
    return Table(tuple(header), tuple(rows))


def _json_lines(text: str) -> Iterator[Row]:
    for i, line in enumerate(text.split("\n"), 1):
        if line.strip():
            try:
                yield _object(i, json.loads(line))
            except (ValueError, RecursionError) as error:
                yield Row(i, {}, f"expected one JSON object per line; {error}")


def _json_list(text: str, path: Path) -> Iterator[Row]:
    """The objects of a list, known by their place in it: it may all stand on one line."""
    try:
        values = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise DataError(f"{path}: expected a JSON list of objects; {error}") from None
    if not isinstance(values, list):
        raise DataError(f"{path}: expected a JSON list of objects, got {type(values).__name__}")
    return (_object(i, value) for i, value in enumerate(values, 1))


def _object(line: int, value: Any) -> Row:
    if isinstance(value, dict):
        return Row(line, value)
    return Row(line, {}, f"expected a JSON object, got {type(value).__name__}")


def _of_objects(rows: Iterator[Row]) -> Table:
    kept = tuple(rows)
    return Table(tuple(dict.fromkeys(key for row in kept for key in row.values)), kept)


def _parquet(path: Path) -> Table:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        table = pq.read_table(path)
    except (pa.ArrowException, OSError) as error:
        raise DataError(f"{path}: expected a whole Parquet file; {error}") from None
    try:
        about = json.loads((table.schema.metadata or {}).get(b"huggingface", b"{}"))
        features = about["info"]["features"]
    except (ValueError, KeyError, TypeError):
        features = {}
    return Table(tuple(table.column_names), tuple(_arrow_rows(table, features, None, 0)))


def _arrow_rows(table: Any, features: Any, split: str | None, before: int) -> Iterator[Row]:
    names = {
        column: feature.get("names", ())
        for column, feature in (features.items() if isinstance(features, dict) else ())
        if isinstance(feature, dict) and feature.get("_type") == "ClassLabel"
    }
    for i, values in enumerate(table.to_pylist(), before + 1):
        for column, options in names.items():
            place = values.get(column)
            if isinstance(place, int) and 0 <= place < len(options):
                values[column] = options[place]
        yield Row(i, values if split is None else {"split": split, **values})


def _folder(path: Path) -> Table:
    """A Dataset or a DatasetDict as `save_to_disk` leaves it, read without that library."""
    if (path / "dataset_dict.json").exists():
        names = [Path(str(name)).name for name in _about(path / "dataset_dict.json")["splits"]]
    elif (path / "state.json").exists():
        names = [""]
    else:
        raise DataError(
            f"{path} is a folder without dataset_dict.json or state.json: expected a file, or a "
            "folder written by datasets' save_to_disk"
        )
    columns: dict[str, None] = {}
    rows: list[Row] = []
    for name in names:
        state = _about(path / name / "state.json")
        features = _about(path / name / "dataset_info.json")["features"]
        if state["_indices_data_files"]:
            raise DataError(f"{path / name}: save it again after flatten_indices()")
        split = name or state["_split"] or None
        for part in state["_data_files"]:
            table = _arrow(path / name / Path(str(part["filename"])).name)
            columns |= dict.fromkeys([*table.column_names, *(["split"] if split else [])])
            rows += _arrow_rows(table, features, split, len(rows))
    return Table(tuple(columns), tuple(rows))


def _about(path: Path) -> defaultdict[str, Any]:
    try:
        about = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError) as error:
        raise DataError(f"{path}: expected a JSON object; {error}") from None
    if not isinstance(about, dict):
        raise DataError(f"{path}: expected a JSON object, got {type(about).__name__}")
    return defaultdict(list, about)


def _arrow(path: Path) -> Any:
    import pyarrow as pa

    try:
        with pa.memory_map(str(path)) as source:
            return pa.ipc.open_stream(source).read_all()
    except (pa.ArrowException, OSError) as error:
        raise DataError(f"{path}: expected a whole Arrow file; {error}") from None
