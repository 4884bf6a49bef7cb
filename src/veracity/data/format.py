"""Layouts of files that others fixed: rows of theirs become rows of ours, and back."""

from __future__ import annotations

import gzip
import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, ClassVar

from ..core.errors import DataError
from ..core.examples import Dataset
from ..core.files import written_whole
from ..core.plugins import Plugin
from .readers import RawRow, RawTable

Values = dict[str, Any]

WRITTEN = (".jsonl", ".ndjson")


class Format(Plugin, ABC):
    """Rows into the record schema of definitions 7.1; checking them is the schema's business
    alone."""

    fields: ClassVar[frozenset[str]]
    """Columns that, found together, tell this layout from others."""

    def recognises(self, table: RawTable) -> bool:
        """Whether a table is laid out so."""
        return self.fields <= set(table.columns)

    @abstractmethod
    def records(self, table: RawTable) -> Iterator[RawRow]:
        """Every row under the names of our fields; one that cannot be turned says why."""

    def rows(self, dataset: Dataset) -> Iterator[Values]:
        """A dataset in this layout, where the layout can hold it."""
        raise DataError(
            f"{dataset.name}: {self.plugin_name()} files are read, not written; write records "
            "(--to records), dutrust or eraser"
        )


def turned(
    table: RawTable, turn: Callable[[Values], Values], ids: Sequence[str] = ("id",)
) -> Iterator[RawRow]:
    """Each row by itself; what is wrong with it stays on its line."""
    for row in table.rows:
        if row.fault:
            yield row
            continue
        try:
            yield RawRow(row.line, turn(dict(row.values)))
        except ValueError as error:
            # what pairs are known by stays: a fault must not cause others
            known = {k: v for k, v in row.values.items() if k in ("rel_ids", "partner")}
            known["id"] = next((row.values[k] for k in ids if k in row.values), None)
            yield RawRow(row.line, known, str(error))


def translated(table: RawTable, form: Format) -> RawTable:
    """A table of another layout as one of records."""
    rows = tuple(form.records(table))
    seen = (key for row in rows for key in row.values)
    # the layout has both, even where every row is faulty: that is then told row by row
    return RawTable(tuple(dict.fromkeys((*seen, "text", "label"))), rows)


def check_ending(path: str | Path) -> None:
    """A name must say what is written under it, or nobody could read it back."""
    if not str(path).lower().removesuffix(".gz").endswith(WRITTEN):
        raise DataError(
            f"{path}: JSON lines are written, so expected a name that ends in "
            f"{' or '.join(WRITTEN)} (.gz may follow)"
        )


def write_rows(rows: Iterable[Values], path: str | Path) -> None:
    """JSON lines, all of them or nothing."""
    check_ending(path)
    content = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows).encode()
    packed = str(path).lower().endswith(".gz")
    with written_whole(Path(path)) as file:
        file.write(gzip.compress(content, mtime=0) if packed else content)
