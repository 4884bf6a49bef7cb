"""Tables that people fill in: CSV with a header, never written over."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from ..core.errors import DataError
from ..core.files import written_whole
from .readers import read_table

SHOWN = 10
"""Faults told at once; the sheet is then mended and given again."""


@dataclass(frozen=True)
class Sheet:
    """A sheet's name and columns; later rounds have a name of their own."""

    name: str
    columns: tuple[str, ...]

    def in_turn(self, turn: int) -> str:
        """The name of the sheet in a round, from 1."""
        stem, dot, ending = self.name.rpartition(".")
        return self.name if turn == 1 else f"{stem}-round-{turn}{dot}{ending}"


@dataclass(frozen=True)
class Line:
    """One line of a sheet and where an editor shows it; what is not filled in is empty."""

    number: int
    values: Mapping[str, str]

    def __getitem__(self, column: str) -> str:
        return self.values.get(column, "").strip()


def write_sheet(
    sheet: Sheet, folder: Path, rows: Iterable[Mapping[str, str]], *, turn: int = 1
) -> Path:
    """A sheet for people to fill in; what they filled in before is never lost."""
    path = folder / sheet.in_turn(turn)
    if path.exists():
        raise DataError(
            f"{path} is there already, and people may have filled it in. Move it away, or work in "
            "another folder"
        )
    text = io.StringIO()
    writer = csv.DictWriter(text, sheet.columns, restval="", lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    with written_whole(path) as file:
        file.write(text.getvalue().encode("utf-8-sig"))  # spreadsheets ask for the mark
    return path


def read_sheet(sheet: Sheet, folder: Path, *, turn: int = 1, empty: bool = False) -> Sequence[Line]:
    """The lines of a sheet that people filled in."""
    path = folder / sheet.in_turn(turn)
    if not path.exists():
        raise DataError(f"{path} is not there: do the step before this one first")
    table = read_table(path)
    lacking = [column for column in sheet.columns if column not in table.columns]
    if lacking:
        raise DataError(
            f"{path}: expected the columns {', '.join(sheet.columns)}; {', '.join(lacking)} is "
            "missing. Save the sheet with all its columns, separated by commas"
        )
    told([f"line {row.line}: {row.fault}" for row in table.rows if row.fault], sheet, folder)
    if not table.rows and not empty:
        raise DataError(f"{path}: expected at least one line below the header, got none")
    return [Line(row.line, {k: str(v) for k, v in row.values.items()}) for row in table.rows]


def told(faults: Sequence[str], sheet: Sheet, folder: Path, *, turn: int = 1) -> None:
    """Every fault of a sheet in one error, so that it is mended once."""
    if faults:
        more = f"\n  and {len(faults) - SHOWN} more" if len(faults) > SHOWN else ""
        listed = "\n".join(f"  {fault}" for fault in faults[:SHOWN])
        raise DataError(f"{folder / sheet.in_turn(turn)}: mend these lines:\n{listed}{more}")
