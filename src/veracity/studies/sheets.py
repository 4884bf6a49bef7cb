"""Tables that people fill in: CSV with a header, never written over."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from ..core.errors import DataError
from ..core.files import written_whole
from ..data.readers import read_table

SHOWN = 10
"""Faults told at once; the sheet is then mended and given again."""

_LINE = r"(\A|[\n\r\v\f\x1c-\x1e\x85\u2028\u2029])"
"""Where a cell starts, and where somebody may take a new line for a new cell."""
_FORMULA = r"('*[^\S\n\r\v\f\x1c-\x1e\x85\u2028\u2029]*[=+\-@\t])"
"""How a cell starts that a spreadsheet may compute; in a sheet it has one apostrophe more."""

Read = TypeVar("Read")


@dataclass(frozen=True)
class Sheet:
    """A sheet's name and columns; later rounds have a name of their own."""

    name: str
    columns: tuple[str, ...]
    once: bool = False
    """Whether an id stands on one line only."""

    def in_round(self, turn: int) -> str:
        """The name of the sheet in a round, from 1."""
        stem, dot, ending = self.name.rpartition(".")
        return self.name if turn == 1 else f"{stem}-round-{turn}{dot}{ending}"


@dataclass(frozen=True)
class SheetLine:
    """One line of a sheet and where an editor shows it; what is not filled in is empty."""

    number: int
    values: Mapping[str, str]

    def __getitem__(self, column: str) -> str:
        return self.values.get(column, "").strip()


def write_sheet(
    sheet: Sheet, folder: Path, rows: Iterable[Mapping[str, str]], *, turn: int = 1
) -> Path:
    """A sheet for people to fill in; what they filled in before is never lost."""
    path = unwritten(sheet, folder, turn=turn)
    text = io.StringIO()
    # all in quotes: the writer itself leaves a bare carriage return without
    writer = csv.DictWriter(
        text, sheet.columns, restval="", lineterminator="\n", quoting=csv.QUOTE_ALL
    )
    writer.writeheader()
    writer.writerows(
        {key: re.sub(_LINE + _FORMULA, r"\1'\2", cell) for key, cell in row.items()} for row in rows
    )
    with written_whole(path) as file:
        file.write(text.getvalue().encode("utf-8-sig"))  # spreadsheets ask for the mark
    return path


def unwritten(sheet: Sheet, folder: Path, *, turn: int = 1) -> Path:
    """Where a sheet will stand, if nothing stands there yet."""
    path = folder / sheet.in_round(turn)
    if path.exists():
        raise DataError(
            f"{path} is there already, and people may have filled it in. Move it away, or work in "
            "another folder"
        )
    return path


def read_sheet(
    sheet: Sheet, folder: Path, *, turn: int = 1, empty: bool = False
) -> Sequence[SheetLine]:
    """The lines of a sheet that people filled in."""
    path = folder / sheet.in_round(turn)
    if not path.exists():
        raise DataError(f"{path} is not there: do the step before this one first")
    table = read_table(path)
    lacking = [column for column in sheet.columns if column not in table.columns]
    if lacking:
        raise DataError(
            f"{path}: expected the columns {', '.join(sheet.columns)}; {', '.join(lacking)} is "
            "missing. Save the sheet with all its columns"
        )
    faults = [f"line {row.line}: {row.fault}" for row in table.rows if row.fault]
    refuse_faulty(faults, sheet, folder, turn=turn)
    if not table.rows and not empty:
        raise DataError(f"{path}: expected at least one line below the header, got none")
    lines = [
        SheetLine(
            row.line,
            {k: re.sub(f"{_LINE}'{_FORMULA}", r"\1\2", str(v)) for k, v in row.values.items()},
        )
        for row in table.rows
    ]
    first: dict[str, int] = {}
    for line in lines if sheet.once else ():
        at = first.setdefault(line["id"], line.number)
        if not line["id"] or at != line.number:
            other = f", as on line {at}" if at != line.number else ""
            fault = f"expected an id of its own, got {line['id']!r}{other}"
            faults.append(f"line {line.number}: {fault}")
    refuse_faulty(faults, sheet, folder, turn=turn)
    return lines


def read_lines(
    sheet: Sheet,
    folder: Path,
    read: Callable[[SheetLine], Read],
    *,
    turn: int = 1,
    empty: bool = False,
) -> list[Read]:
    """What `read` makes of every line; where it raises a ValueError, the line has a fault."""
    found, faults = [], []
    for line in read_sheet(sheet, folder, turn=turn, empty=empty):
        try:
            found.append(read(line))
        except ValueError as error:
            faults.append(f"line {line.number}: {error}")
    refuse_faulty(faults, sheet, folder, turn=turn)
    return found


def refuse_faulty(faults: Sequence[str], sheet: Sheet, folder: Path, *, turn: int = 1) -> None:
    """Every fault of a sheet in one error, so that it is mended once."""
    if faults:
        raise DataError(f"{folder / sheet.in_round(turn)}: mend these lines:\n{listed(faults)}")


def listed(faults: Sequence[str]) -> str:
    """The first faults, a line each, and how many more there are."""
    more = [f"and {len(faults) - SHOWN} more"] if len(faults) > SHOWN else []
    return "\n".join(f"  {fault}" for fault in [*faults[:SHOWN], *more])
