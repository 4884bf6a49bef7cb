"""An experiment's findings as one HTML page and on the terminal."""

from __future__ import annotations

import math
from pathlib import Path

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from ..results.findings import Cell, Findings
from . import charts
from .pages import rendered, write_page
from .showing import number, printable
from .steps import Links, step_pages

WIDE = 8
"""Tables with more columns need a wide terminal."""


def write_findings(found: Findings, folder: Path, path: Path | None = None) -> Path:
    """The page in the experiment's folder, with those of its steps that are missing; or elsewhere,
    from where links to these would lead nowhere."""
    page = path or folder / "report.html"
    links = step_pages(folder) if page.resolve().parent == folder.resolve() else {}
    return write_page(build_findings(found, links), page)


def build_findings(found: Findings, links: Links | None = None) -> str:
    return rendered(
        "findings.html",
        styles=("report.css", "charts.css", "findings.css"),
        scripts=(),
        filters={"figure": figure},
        pictures=bool(found.pictures),
        found=found,
        links=links or {},
        charts=[charts.chart(f) for f in found.figures],
        layout=charts,
    )


def figure(value: float, unit: str) -> str:
    """A share in percent with one decimal, or a plain number."""
    if unit == "%" and not math.isnan(value):
        return f"{100 * value:.1f} %".replace("-", "−")
    return number(value)


def print_findings(console: Console, found: Findings) -> None:
    """Claims first, then every table."""
    for statement, looks in found.statements.items():
        if looks[0].where:
            console.print(escape(statement))
        for claim in looks:
            subject = f"  {claim.where}" if claim.where else statement
            console.print(f"[b]{escape(claim.verdict)}[/]: {escape(subject)}")
            console.print(f"  {escape(claim.seen)}", style="dim")
    for table in found.tables:
        if len(table.columns) > WIDE and console.width < 160:
            console.print(f"{escape(table.title)}: too wide for here, see the report")
            continue
        shown = Table(title=escape(table.title), title_justify="left")
        for column, worded in zip(table.columns, table.worded, strict=True):
            shown.add_column(escape(column), justify="left" if worded else "right")
        for name, cells in table.rows:
            shown.add_row(escape(printable(name)), *(_cell(c, table.unit) for c in cells))
        console.print(shown)


def _cell(cell: Cell | str | None, unit: str) -> str:
    if cell is None:
        return ""
    if isinstance(cell, str):
        return escape(printable(cell))
    words = figure(cell.value, unit)
    if cell.spread is not None:
        words += f" ± {figure(cell.spread, unit)}"
    if cell.published is not None:
        words += f" (paper {figure(cell.published, unit)})"
    return words
