"""Treebanks as files: trees in brackets, one a line, as the Stanford treebank is published."""

from __future__ import annotations

import gzip
import re
from collections.abc import Iterator
from pathlib import Path

from ..core.errors import DataError
from ..core.limits import LINE
from .readers import RawRow, RawTable, text_of_file
from .splits import NAMES, PARTS
from .trees import Tree, read_tree

COLUMN = "tree"
ENDINGS = (".txt", ".txt.gz")


def tree_table(path: Path) -> RawTable | None:
    """A row per tree of a file, or of all such files of a folder, which are parts where their names
    say train, dev or test; None where no file is one of trees."""
    if not path.is_dir():
        return RawTable.of(_rows(path), COLUMN) if _is_treebank(path) else None
    files = [p for p in sorted(path.iterdir()) if _is_treebank(p)]
    if not files:
        return None
    rows: list[RawRow] = []
    for file in files:
        part = {"split": name} if (name := _part(file)) else {}
        rows += [
            RawRow(len(rows) + i, {**row.values, **part}, row.fault and f"{file.name}: {row.fault}")
            for i, row in enumerate(_rows(file), start=1)
        ]
    return RawTable.of(rows, COLUMN)


def read_trees(path: str | Path) -> tuple[Tree, ...]:
    """The trees of a file or a folder of them."""
    table = tree_table(Path(path)) if Path(path).exists() else None
    if table is None:
        raise DataError(f"expected {path} to be a file of trees in brackets, one a line")
    return tuple(_read(row, path) for row in table.rows)


def _read(row: RawRow, path: str | Path) -> Tree:
    try:
        if row.fault:
            raise DataError(row.fault)
        return read_tree(row.values[COLUMN])
    except DataError as error:
        raise DataError(f"{path}, line {row.line}: {error}") from None


def _is_treebank(path: Path) -> bool:
    if not path.name.lower().endswith(ENDINGS) or not path.is_file():
        return False
    packed = path.suffix.lower() == ".gz"
    try:
        with gzip.open(path) if packed else path.open("rb") as file:
            return file.read(200).lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"(")
    except (OSError, EOFError):  # whoever reads it says what is wrong
        return False


def _rows(path: Path) -> Iterator[RawRow]:
    most = LINE.value
    for number, line in enumerate(text_of_file(path).split("\n"), start=1):
        if line.strip():
            fault = LINE.exceeded(len(line)) if len(line) > most else ""
            yield RawRow(number, {COLUMN: line.strip()}, fault)


def _part(path: Path) -> str:
    """The part that a file's name says it is, such as sst5.trees.dev.txt."""
    names = [NAMES.get(n, n) for n in re.split(r"[\W_]+", path.name.lower())]
    return next((name for name in names if name in PARTS), "")
