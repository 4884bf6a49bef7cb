"""Rows out of files: tables, JSON and the folders of the `datasets` library."""

from __future__ import annotations

import codecs
import csv
import dataclasses
import gzip
import io
import zlib
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from ..core.errors import DataError
from ..core.files import check_file, parse_json, read_bytes, read_json
from ..core.limits import BYTES, LINE, VALUES
from ..core.plugins import nearest

FORMATS = (".csv", ".tsv", ".txt", ".jsonl", ".ndjson", ".json", ".parquet")
PICTURE_COLUMNS = ("picture", "image")
"""How a column of pictures is called where nobody says how: by us, and by the datasets library."""
SAVED = ("dataset_dict.json", "state.json")
"""By these, folders of the datasets library are known."""
DELIMITERS = {",": ".csv", "\t": ".tsv", ";": "", "|": ""}
"""What may stand between the fields of a table, and where it does if the header does not tell."""
SNIFFED = 200_000
"""Characters from which the sign between fields is told."""


@dataclass(frozen=True, kw_only=True)
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
    picture: str = "picture"
    mask: str = "mask"

    @classmethod
    def parse(cls, text: str) -> Columns:
        """`text=review,label=stars`, as it is written on the command line."""
        chosen: dict[str, str] = {}
        faults = []
        for part in filter(None, map(str.strip, text.split(","))):
            field, equals, column = map(str.strip, part.partition("="))
            if not equals:
                faults.append(f"expected columns such as text=review,label=stars; got {part!r}")
            elif field in chosen:
                faults.append(f"the {field} is in {chosen[field]!r} or in {column!r}: say one")
            else:
                chosen[field] = column
        return cls.of(chosen, faults)

    @classmethod
    def of(cls, given: Columns | Mapping[str, str] | str, faults: Sequence[str] = ()) -> Columns:
        """Names of columns as a program may give them; all that is wrong is told at once."""
        if isinstance(given, Columns):
            return given
        if isinstance(given, str):
            return cls.parse(given)
        known = [f.name for f in dataclasses.fields(cls)]
        unknown = [
            f"a record has no field {k!r}: {nearest(k, known)}" for k in given.keys() - known
        ]
        if wrong := [*faults, *sorted(unknown)]:
            raise DataError("; ".join(wrong))
        return cls(**given)

    def of_pictures(self, seen: tuple[str, ...]) -> Columns | None:
        """The names for a table of pictures, if it is one: as it is told, or where there are no
        texts and a column is called so, or as the datasets library calls it."""
        usual = Columns()
        if self.picture not in ("", usual.picture):
            return self
        if self.text != usual.text or {self.text, self.tokens} & set(seen) or not self.picture:
            return None
        found = next((name for name in PICTURE_COLUMNS if name in seen), None)
        return None if found is None else dataclasses.replace(self, picture=found)

    def check(self, seen: tuple[str, ...], where: str, *, pictures: bool = False) -> None:
        """Text (or tokens) or picture, label and every column that was asked for must be there; a
        label column without a name says that there is none."""
        given = {
            f.name: getattr(self, f.name)
            for f in dataclasses.fields(self)
            if getattr(self, f.name) != f.default and getattr(self, f.name)
        }
        needed = {} if self.tokens in seen or pictures else {"text": self.text}
        needed |= {"picture": self.picture} if pictures else {}
        needed |= {"label": self.label, **given} if self.label else given
        missing = {f: column for f, column in needed.items() if column not in seen}
        if not missing:
            return
        wanted = " and ".join(f"a column {column!r} for the {f}" for f, column in missing.items())
        what = "pictures" if pictures else "texts"
        none = f", or say label= if nobody labelled the {what}" if "label" in missing else ""
        hints = " ".join(
            hint if len(missing) == 1 else f"{column!r}: {hint}"
            for column in missing.values()
            if (hint := nearest(column, seen)).startswith("did") or len(missing) == 1
        )
        raise DataError(
            f"{where}: expected {wanted}; columns seen: {', '.join(seen) or 'none'}. Name yours "
            f"with --columns {','.join(f'{f}=…' for f in missing)} "
            f"(load_data(…, columns={{{', '.join(f'{f!r}: …' for f in missing)}}})){none}"
            f"{'; ' if hints else ''}{hints}"
        )


@dataclass(frozen=True)
class RawRow:
    """One row as it stands in a file, where it stands, and why it cannot be used, if so."""

    line: int
    values: Mapping[str, Any]
    fault: str = ""
    severity: Literal["error", "warning"] = "error"
    """A row with a warning is left out as well, but stops nobody."""
    file: str = ""
    """The file that the row is, where each is one."""


@dataclass(frozen=True)
class RawTable:
    """Rows and the names of their columns."""

    columns: tuple[str, ...]
    rows: tuple[RawRow, ...]

    @classmethod
    def of(cls, rows: Iterable[RawRow], *columns: str) -> RawTable:
        """Rows with these columns and all others that any of them has."""
        kept = tuple(rows)
        seen = (key for row in kept for key in row.values)
        return cls(tuple(dict.fromkeys((*columns, *seen))), kept)


def read_table(path: Path) -> RawTable:
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
    text = text_of_file(path)
    if ending in (".csv", ".tsv", ".txt"):
        delimiter = _delimiter(text, ending)
        VALUES.check(text.count(delimiter) + text.count("\n"), path)
        read = _tab_separated if delimiter == "\t" else _records
        return _delimited(read(text, path, delimiter), path)
    if ending == ".json":
        return RawTable.of(_json_list(text, path))
    VALUES.check(sum(map(text.count, ",[{\n")), path)
    return RawTable.of(_json_lines(text))


def text_of_file(path: Path) -> str:
    """What a file says, unpacked where its name ends in .gz, in whichever encoding it has."""
    return _decoded(_content(path, path.suffix.lower() == ".gz"), path)


def _content(path: Path, packed: bool) -> bytes:
    try:
        return read_bytes(path, packed=packed)
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise DataError(f"{path}: expected a whole gzip file ({error}); fetch it again") from None
    except OSError as error:
        raise DataError(f"{path}: cannot be read ({error.strerror})") from None


_MARKS = {  # the longer first: one begins with the other
    codecs.BOM_UTF32_LE: "utf-32",
    codecs.BOM_UTF32_BE: "utf-32",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}


def _encoding(content: bytes) -> str:
    """As its mark tells; without one UTF-8, unless every other byte is zero."""
    for mark, name in _MARKS.items():
        if content.startswith(mark):
            return name
    start = content[:1000]
    for name, zeros in (("utf-16-le", start[1::2]), ("utf-16-be", start[::2])):
        if zeros.count(0) > 0.5 * len(zeros) and start.count(0) < 0.75 * len(start):
            return name
    return "utf-8-sig"


def _decoded(content: bytes, path: Path) -> str:
    encoding = _encoding(content)
    try:
        return content.decode(encoding)
    except UnicodeDecodeError as error:
        if encoding != "utf-8-sig":
            raise DataError(
                f"{path}: expected {encoding.upper()}, as its first bytes say, but it breaks off "
                f"at byte {error.start}; save the file again, as UTF-8"
            ) from None
        line = content.count(b"\n", 0, error.start) + 1
        raise DataError(
            f"{path}: expected UTF-8, but byte {content[error.start]:#04x} at position "
            f"{error.start} (line {line}) is not; save the file as UTF-8 (UTF-16 is read too). In "
            f"Western Europe this is often Windows-1252: iconv -f WINDOWS-1252 -t UTF-8 {path.name}"
        ) from None


@contextmanager
def _field_limit() -> Iterator[None]:
    before = csv.field_size_limit(2**31 - 1)  # ours is told row by row
    try:
        yield
    finally:
        csv.field_size_limit(before)


Record = tuple[int, list[str]]


def _records(text: str, path: Path, delimiter: str) -> list[Record]:
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


def _delimiter(text: str, ending: str) -> str:
    """What cuts the header into most of the rows' fields; the ending tells where that is open."""

    def fit(sign: str) -> tuple[int, bool]:
        reader = csv.reader(io.StringIO(text[:SNIFFED], newline=""), delimiter=sign)
        header, *rows = [len(fields) for fields in reader if fields] or [0]
        return rows.count(header) if header > 1 else -1, DELIMITERS[sign] == ending

    with _field_limit():
        return max(DELIMITERS, key=fit)


def _tab_separated(text: str, path: Path, delimiter: str) -> list[Record]:
    """Quotes are quoting where that fits every record; else they are part of the text."""
    lines = text.replace("\r\n", "\n").split("\n")
    plain = [(i, line.split(delimiter)) for i, line in enumerate(lines, 1) if line]
    try:
        quoted = _records(text, path, delimiter)
    except DataError:
        return plain
    even = len({len(fields) for _, fields in plain}) <= 1
    longest = LINE.value
    swallowed = any(len(field) > longest for _, fields in quoted for field in fields)
    return plain if swallowed or (even and len(quoted) < len(plain)) else quoted


def _delimited(records: list[Record], path: Path) -> RawTable:
    if not records:
        raise DataError(f"{path} is empty: expected a header row with the names of the columns")
    header = [name.strip() for name in records[0][1]]
    if twice := sorted({name for name in header if header.count(name) > 1}):
        raise DataError(
            f"{path}: expected every column to have its own name; {', '.join(map(repr, twice))} "
            f"stands there more than once in {', '.join(header)}. Rename the others"
        )
    rows, most = [], LINE.value
    for line, fields in records[1:]:
        fault = ""
        if len(fields) != len(header):
            fault = f"expected {len(header)} fields, as in the header; got {len(fields)}"
        elif (longest := max(map(len, fields))) > most:
            fault = LINE.exceeded(longest)
        rows.append(RawRow(line, dict(zip(header, fields, strict=False)), fault))
    return RawTable(tuple(header), tuple(rows))


def _json_lines(text: str) -> Iterator[RawRow]:
    most = LINE.value
    for i, line in enumerate(text.split("\n"), 1):
        if len(line) > most:
            yield RawRow(i, {}, LINE.exceeded(len(line)))
        elif line.strip():
            try:
                yield _object(i, parse_json(line, f"line {i}"))
            except ValueError as error:
                yield RawRow(i, {}, f"expected one JSON object per line; {error}")


def _json_list(text: str, path: Path) -> Iterator[RawRow]:
    """The objects of a list, known by their place in it: it may all stand on one line."""
    try:
        values = parse_json(text, path)
    except ValueError as error:
        raise DataError(f"{path}: expected a JSON list of objects; {error}") from None
    if not isinstance(values, list):
        raise DataError(f"{path}: expected a JSON list of objects, got {type(values).__name__}")
    return (_object(i, value) for i, value in enumerate(values, 1))


def _object(line: int, value: Any) -> RawRow:
    if isinstance(value, dict):
        return RawRow(line, value)
    return RawRow(line, {}, f"expected a JSON object, got {type(value).__name__}")


def _parquet(path: Path) -> RawTable:
    import pyarrow.parquet as pq

    with _readable(path, "Parquet"):
        BYTES.check(check_file(path), path)
        with pq.ParquetFile(path) as file:
            table = _within(file.schema_arrow, _batches(file, path), path)
        try:
            about = parse_json((table.schema.metadata or {}).get(b"huggingface", b"{}").decode())
            features = about["info"]["features"]
        except (ValueError, KeyError, TypeError):
            features = {}
        return RawTable(tuple(table.column_names), tuple(arrow_rows(table, features, None, 0)))


@contextmanager
def _readable(path: Path, kind: str) -> Iterator[None]:
    """What is wrong with a file of tables, down to its single values, as one sentence."""
    import pyarrow as pa

    try:
        yield
    except (
        *(pa.ArrowException, OSError, ValueError, KeyError, OverflowError),
        SystemError,  # of Python itself: a value of less than no length
    ) as error:
        raise DataError(f"{path}: expected a whole {kind} file; {error}") from None


def _batches(file: Any, path: Path) -> Iterator[Any]:
    """So few rows at a time that even the largest value that the file can hold, in all of them, is
    within the limit."""
    about = file.metadata
    VALUES.check(about.num_rows * about.num_columns, path)
    groups = [about.row_group(i).total_byte_size for i in range(about.num_row_groups)]
    size = BYTES.value // max([1, *groups])
    yield from file.iter_batches(batch_size=min(max(size, 1), 10_000))


def _within(schema: Any, batches: Iterable[Any], path: Path) -> Any:
    """A table of batches that are read one by one, as long as they keep within the limits."""
    import pyarrow as pa

    kept, size, values = [], 0, 0
    for batch in batches:
        batch.validate(full=True)  # lengths out of a damaged file point anywhere in memory
        size += batch.nbytes
        BYTES.check(size, path)
        values += sum(map(_leaves, batch.columns))
        VALUES.check(values, path)
        kept.append(batch)
    return pa.Table.from_batches(kept, schema)


def _leaves(column: Any) -> int:
    """How many values a column holds, those in lists and structures counted one by one."""
    import pyarrow as pa

    kind = column.type
    if pa.types.is_dictionary(kind):
        column, kind = column.indices, column.indices.type
    if pa.types.is_struct(kind):
        return len(column) + sum(map(_leaves, column.flatten()))
    nested = (pa.types.is_list, pa.types.is_large_list, pa.types.is_fixed_size_list)
    if any(is_kind(kind) for is_kind in nested):
        return len(column) + _leaves(column.flatten())
    return len(column)


def arrow_rows(table: Any, features: Any, split: str | None, before: int) -> Iterator[RawRow]:
    """Rows of an Arrow table with the names of labels that its features number."""
    names = {
        column: feature["names"]
        for column, feature in (features.items() if isinstance(features, dict) else ())
        if isinstance(feature, dict)
        and feature.get("_type") == "ClassLabel"
        and isinstance(feature.get("names"), list)
    }
    for i, values in enumerate(table.to_pylist(), before + 1):
        for column, options in names.items():
            place = values.get(column)
            if isinstance(place, int) and 0 <= place < len(options):
                values[column] = options[place]
        yield RawRow(i, values if split is None else {"split": split, **values})


def _folder(path: Path) -> RawTable:
    """A Dataset or a DatasetDict as `save_to_disk` leaves it, read without that library."""
    if (path / "dataset_dict.json").exists():
        about = path / "dataset_dict.json"
        names = [Path(str(name)).name for name in _listed(about, "splits", _about(about))]
    elif (path / "state.json").exists():
        names = [""]
    else:
        raise DataError(
            f"{path} is a folder without dataset_dict.json or state.json: expected a file, a "
            "folder written by datasets' save_to_disk, or one with a subfolder of pictures "
            "(PNG, JPEG, WebP) for each label"
        )
    columns: dict[str, None] = {}
    rows: list[RawRow] = []
    for name in names:
        state = _about(path / name / "state.json")
        features = _about(path / name / "dataset_info.json")["features"]
        if state["_indices_data_files"]:
            raise DataError(f"{path / name}: save it again after flatten_indices()")
        split = name or str(state["_split"] or "") or None
        for part in _listed(path / name / "state.json", "_data_files", state):
            if not isinstance(part, dict) or not part.get("filename"):
                raise DataError(
                    f"{path / name / 'state.json'}: expected data files with a filename each, got "
                    f"{part!r}"
                )
            file = path / name / Path(str(part["filename"])).name
            table = _arrow(file)
            columns |= dict.fromkeys([*table.column_names, *(["split"] if split else [])])
            with _readable(file, "Arrow"):
                rows += arrow_rows(table, features, split, len(rows))
    return RawTable(tuple(columns), tuple(rows))


def _listed(path: Path, key: str, about: Mapping[str, Any]) -> list[Any]:
    found = about[key]
    if not isinstance(found, list):
        raise DataError(f"{path}: expected {key!r} to be a list, got {type(found).__name__}")
    return found


def _about(path: Path) -> defaultdict[str, Any]:
    try:
        about = read_json(path)
    except (OSError, ValueError) as error:
        raise DataError(f"{path}: expected a JSON object; {error}") from None
    if not isinstance(about, dict):
        raise DataError(f"{path}: expected a JSON object, got {type(about).__name__}")
    return defaultdict(list, about)


def _arrow(path: Path) -> Any:
    import pyarrow as pa

    with _readable(path, "Arrow"):
        BYTES.check(check_file(path), path)
        with pa.memory_map(str(path)) as source, pa.ipc.open_stream(source) as stream:
            return _within(stream.schema, stream, path)
