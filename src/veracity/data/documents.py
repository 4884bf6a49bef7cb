"""Annotations whose texts stand in files beside them, as ERASER publishes its data."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..core.errors import DataError
from ..core.files import read_bytes
from ..core.limits import BYTES, LINE
from .picture_folders import FileTree, is_archive, picture_table
from .readers import SAVED, RawRow, RawTable, read_table
from .treebanks import tree_table

DOCS = "docs"
"""The folder with a file per document, or, with .jsonl, the file with a line per document."""

FIELDS = frozenset({"annotation_id", "evidences"})
"""Columns that tell such annotations."""

_FLAT = ("id", "label", "tokens", "evidence")
_ORDER = ("train", "val", "dev", "test")


def read_source(path: Path, masks: Path | None = None) -> RawTable:
    """The rows of any file or folder; annotations with the documents that they speak of, pictures
    with the masks that lie as they do, trees one a line."""
    if masks is not None and not masks.exists():
        raise DataError(f"there is no folder {masks}: expected one with masks, or leave it out")
    tree = _pictures(path)
    if tree is not None:
        return picture_table(tree, None if masks is None else FileTree.of(masks))
    if masks is not None:
        raise DataError(
            f"{path}: expected a folder or an archive of pictures beside masks; of a table, name "
            "the column of masks: --columns mask=… (columns={'mask': …})"
        )
    if (trees := tree_table(path)) is not None:
        return trees
    if not path.is_dir():
        table = read_table(path)
        if not set(table.columns) >= FIELDS:
            return table
        shelf = DocumentStore.beside(path.parent)
        return RawTable.of((_joined(row, shelf, "") for row in table.rows), *_FLAT)
    if files := _annotations(path):
        return RawTable.of(_all(files, DocumentStore.beside(path)), *_FLAT)
    return read_table(path)


def _pictures(path: Path) -> FileTree | None:
    """What an archive holds, or a folder that is one of pictures, not of texts or tables."""
    if is_archive(path):
        return FileTree.of(path)
    if not path.is_dir() or any((path / name).exists() for name in SAVED):
        return None
    if (path / DOCS).exists() and any(path.glob("*.jsonl")):
        return None
    tree = FileTree.of(path)
    return tree if tree.pictures() else None


def _annotations(folder: Path) -> list[Path]:
    """The annotation files of a folder that holds documents, in the order of their use."""
    if not ((folder / DOCS).is_dir() or (folder / f"{DOCS}.jsonl").is_file()):
        return []
    found = [p for p in folder.iterdir() if p.suffix == ".jsonl" and p.stem != DOCS and p.is_file()]
    if not found:
        raise DataError(
            f"{folder}: expected annotations such as train.jsonl beside {DOCS}; there are none"
        )
    known = {name: place for place, name in enumerate(_ORDER)}
    return sorted(found, key=lambda p: (known.get(p.stem, len(known)), p.name))


@dataclass
class DocumentStore:
    """Documents by name, each read when it is first asked for."""

    place: Path
    documents: dict[str, tuple[list[str], list[int]]] = field(default_factory=dict)
    size: int = 0

    @classmethod
    def beside(cls, folder: Path) -> DocumentStore:
        """The documents that lie in a folder, as files or as lines of one file."""
        if (folder / DOCS).is_dir():
            return cls((folder / DOCS).resolve())
        path = folder / f"{DOCS}.jsonl"
        if not path.is_file():
            raise DataError(
                f"{folder}: expected {DOCS}/ or {DOCS}.jsonl with the documents that the "
                "annotations name; there is neither"
            )
        shelf = cls(path)
        for row in read_table(path).rows:
            name, text = row.values.get("docid"), row.values.get("document")
            if row.fault or not isinstance(name, str) or not isinstance(text, str):
                why = row.fault or "expected a docid and a document, both text"
                raise DataError(f"{path}, line {row.line}: {why}")
            shelf.documents[name] = _words(text)
        return shelf

    def words(self, name: Any) -> tuple[list[str], list[int]]:
        """A document's words, and how many each of its sentences has."""
        if not isinstance(name, str) or not name or "\0" in name:
            raise ValueError(f"expected a docid to be the name of a document, got {name!r}")
        if name not in self.documents:
            self.documents[name] = _words(self._read(name))
        return self.documents[name]

    def _read(self, name: str) -> str:
        if not self.place.is_dir():
            raise ValueError(f"{self.place.name} holds no document {name!r}")
        path = (self.place / name).resolve()  # links and dots followed: what is really meant
        if not path.is_relative_to(self.place) or path == self.place:
            raise ValueError(f"the docid {name!r} leads out of {DOCS}/; name a file in it")
        try:
            size = path.stat().st_size
            if not path.is_file():
                raise ValueError(f"the docid {name!r} is no file in {DOCS}/")
            if size > LINE.value:
                raise ValueError(f"the document {name!r}: {LINE.exceeded(size)}")
            self.size += size
            BYTES.check(self.size, f"the documents in {self.place}")
            return path.read_text("utf-8")
        except UnicodeDecodeError:
            raise ValueError(f"the document {name!r} is not UTF-8") from None
        except OSError as error:
            raise ValueError(
                f"the document {name!r} cannot be read in {DOCS}/ ({error.strerror})"
            ) from None


def _words(text: str) -> tuple[list[str], list[int]]:
    """A sentence per line, words apart by white space."""
    sentences = [line.split() for line in text.split("\n")]
    return [w for s in sentences for w in s], [len(s) for s in sentences if s]


def _all(files: list[Path], shelf: DocumentStore) -> Iterator[RawRow]:
    """Rows of several files are counted on, since each must have a number of its own."""
    before = 0
    for path in files:
        for row in read_table(path).rows:
            where = f"{path.name}, line {row.line}: "
            joined = _joined(row, shelf, where)
            values = joined.values if joined.fault else {"split": path.stem, **joined.values}
            yield RawRow(before + row.line, values, joined.fault)
        before += read_bytes(path).count(b"\n") + 1


def _joined(row: RawRow, shelf: DocumentStore, where: str) -> RawRow:
    if row.fault:
        return RawRow(row.line, row.values, where + row.fault)
    try:
        return RawRow(row.line, _record(dict(row.values), shelf))
    except ValueError as error:
        return RawRow(row.line, {"id": row.values.get("annotation_id")}, f"{where}{error}")


def _record(values: dict[str, Any], shelf: DocumentStore) -> dict[str, Any]:
    """One annotation as the flat layout has it; several documents stand one behind the other."""
    groups = values.get("evidences") or []
    if not isinstance(groups, list) or not all(isinstance(g, list) for g in groups):
        raise ValueError("expected evidences to be a list of lists of evidence")
    spans = [one for group in groups for one in group]
    if not all(isinstance(one, dict) for one in spans):
        raise ValueError("expected evidence to be objects with docid, start_token and end_token")
    named = values.get("docids") or [one.get("docid") for one in spans]
    if not isinstance(named, list) or not all(isinstance(name, str) for name in named):
        raise ValueError(f"expected docids to be names of documents, got {named!r}")
    # without any evidence the annotation itself names its document
    docids = list(dict.fromkeys(named)) or [values.get("annotation_id")]
    starts: dict[str, int] = {}
    tokens: list[str] = []
    lengths: list[int] = []
    for docid in docids:
        words, sentences = shelf.words(docid)
        starts[docid] = len(tokens)
        tokens += words
        lengths += sentences
    found = [[_place(one, starts, shelf) for one in group] for group in groups]
    query = values.get("query")
    return {
        "id": values.get("annotation_id"),
        "label": values.get("classification"),
        "tokens": tokens,
        "sentence_lengths": lengths,
        "evidence": [group for group in found if group],
        **({"query": query} if isinstance(query, str) and query else {}),
    }


def _place(one: dict[str, Any], starts: dict[str, int], shelf: DocumentStore) -> list[int]:
    docid, start, end = (one.get(key) for key in ("docid", "start_token", "end_token"))
    if not isinstance(docid, str) or docid not in starts:
        raise ValueError(f"the evidence names the document {docid!r}, the annotation does not")
    if type(start) is not int or type(end) is not int:
        raise ValueError(
            f"expected start_token and end_token to be numbers, got {start!r}, {end!r}"
        )
    n = len(shelf.words(docid)[0])
    if not 0 <= start < end <= n:
        raise ValueError(
            f"the evidence [{start}, {end}) is out of range or empty: {docid!r} has {n} words"
        )
    return [starts[docid] + start, starts[docid] + end]
