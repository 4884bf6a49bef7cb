"""What training on pattern-made twins changed: on a page, and in a terminal."""

from __future__ import annotations

import tomllib
from pathlib import Path

from rich.console import Console
from rich.table import Table
from rich.text import Text as Line

from ..experiments.augmentation_record import Augmentation, Rate
from ..results.declarations import Declarations, beside
from ..results.findings import Cell, Findings, Value
from .findings import write_findings
from .showing import exact_percent, number, printable

DECLARED = Path(__file__).with_suffix(".toml")
KINDS = ("plain", "augmented")


def write_augmentation(found: Augmentation, folder: Path) -> Path:
    """The page beside the models."""
    declared = Declarations(tomllib.loads(DECLARED.read_text("utf-8")))
    cells = {kind: {g.name: _cell(getattr(g, kind)) for g in found.gains} for kind in KINDS}
    rows: dict[str, dict[str, Value]] = {
        gain.name: {
            "texts": f"{gain.texts:,}",
            **{kind: cells[kind][gain.name] for kind in KINDS},
            "difference": Cell(gain.difference, low=gain.low, high=gain.high),
            "p": number(gain.p),
        }
        for gain in found.gains
    }
    bars = beside(cells, list(rows), gap=0.3, bars=True)
    page = Findings(
        recipe="augment",
        title="Does training on pattern-made twins help, and against whom?",
        lead=_lead(found),
        config={
            "trained": found.architecture,
            "on": found.train,
            "twins by": found.by,
            "tested on": found.tested,
            "pattern-made there by": found.tested_by,
            "trainings of each kind": found.seeds,
        },
        tables=(declared.table("gains", rows),),
        figures=(declared.figure("right", bars, names=list(rows)),),
        notes=tuple(f"{remark[0].upper()}{remark[1:]}." for remark in _remarks(found)),
    )
    return write_findings(page, folder)


def _cell(rate: Rate) -> Cell:
    return Cell(rate.accuracy, low=rate.low, high=rate.high)


def _lead(found: Augmentation) -> str:
    return (
        f"{found.architecture}, trained on {found.train_texts:,} texts of {found.train}, "
        f"and on {found.added_texts:,} twins by {found.by} as well"
    )


def print_augmentation(console: Console, found: Augmentation) -> None:
    """A row per kind of text: both accuracies, their difference, and whether it is luck."""
    console.print(Line(printable(_lead(found))))
    table = Table(title="accuracy and 95 % intervals", title_justify="left")
    for name in ("tested on", "texts", "plain", "augmented", "difference", "p"):
        table.add_column(name, justify="left" if name == "tested on" else "right")
    for gain in found.gains:
        table.add_row(
            gain.name,
            f"{gain.texts:,}",
            *(exact_percent(rate.accuracy) for rate in (gain.plain, gain.augmented)),
            f"{exact_percent(gain.difference, signed=True)} "
            f"({100 * gain.low:+.1f} to {100 * gain.high:+.1f})".replace("-", "−")
            if gain.originals > 1
            else exact_percent(gain.difference, signed=True),
            number(gain.p),
        )
    console.print(table)
    for remark in _remarks(found):
        console.print(Line(f"• {remark}"))


def _remarks(found: Augmentation) -> list[str]:
    remarks = []
    if found.left_out:
        remarks.append(f"{found.left_out:,} pairs take no part: their original is of type multiple")
    if found.held_out:
        remarks.append(f"{found.held_out:,} texts were kept from training: they are tested")
    if found.seeds == 1:
        remarks.append("one training of each kind: more of them (--seeds) tell what is luck")
    else:
        for gain in found.gains:
            each = ", ".join(f"{100 * d:+.1f}" for d in gain.by_seed).replace("-", "−")
            remarks.append(f"{gain.name}: differences by training {each}")
    return remarks
