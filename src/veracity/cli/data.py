"""Verbs that look at data."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from ..core.counts import counted
from . import listing
from .exits import BAD_INPUT
from .options import DataSource, Limit, RecordsFile, Seed
from .reading import FileOptions, check_new, label_list
from .showing import Answer


def describe(data: DataSource, file: FileOptions) -> Answer:
    """Size, balance, lengths, truths, duplicates and leaks."""
    from ..data.loading import describe
    from ..reports.showing import printable

    facts = describe(file.data(data))
    lines = []
    for name, value in facts.items():
        if isinstance(value, dict):
            value = ", ".join(f"{k} {_brief(v)}" for k, v in value.items()) or "none"
        elif isinstance(value, list):
            value = ", ".join(map(str, value))
        lines.append(printable(f"{name.replace('_', ' '):16} {_brief(value)}"))
    return Answer(json=facts, lines=lines)


def validate(data: DataSource, file: FileOptions) -> Answer:
    """List every fault with its line; exit with 2 if one is an error."""
    from ..data.loading import validate
    from ..data.readers import Columns
    from ..reports.showing import printable

    read, faults = validate(
        data,
        columns=Columns.parse(file.columns),
        labels=label_list(file.labels),
        language=file.language,
        max_words=file.max_words,
        skip_bad=file.skip_bad,
        layout=file.layout,
        size=file.size,
        segments=file.segments,
        masks=file.masks,
    )
    errors = [f for f in faults if f.severity == "error"]
    rows = [
        {"line": f.line, "severity": f.severity, "message": f.message}
        | ({"file": f.file} if f.file else {})
        for f in faults
    ]
    good = "no faults" if not faults else counted(len(errors), "error")
    return Answer(
        json={"valid": not errors, "examples": len(read or ()), "faults": rows},
        lines=[
            *(printable(f"{f.place}: {f.severity}: {f.message}") for f in faults),
            f"{data}: {good}, {counted(len(faults) - len(errors), 'warning')}",
        ],
        exit_code=BAD_INPUT if errors else 0,
    )


def convert(
    data: DataSource,
    out: Annotated[Path, typer.Option(help="File to write: JSON lines.")],
    to: Annotated[str, typer.Option(help="records (holds everything), dutrust or eraser.")],
    file: FileOptions,
    lossy: Annotated[
        bool, typer.Option("--lossy", help="Leave out what the layout cannot hold, and say what.")
    ] = False,
) -> Answer:
    """Write data in another layout."""
    from ..data.loading import write_data

    check_new(out)
    read = file.data(data)
    lost = write_data(read, out, layout=to, lossy=lossy)
    return Answer(
        json={"data": str(out), "examples": len(read), "lost": lost},
        notes=[f"not kept: {what} ({count} rows)" for what, count in lost.items()],
        lines=[out],
    )


def attack(
    data: DataSource,
    by: Annotated[
        list[str],
        typer.Option(
            help="Patterns, separated by commas, such as 'keyboard(share=0.2), negation'; see "
            "`veracity list changes`."
        ),
    ],
    out: RecordsFile,
    file: FileOptions,
    seed: Seed = 0,
    limit: Limit = None,
) -> Answer:
    """Put adversarial twins that patterns make beside their originals."""
    from collections import Counter

    from ..changes import attacked
    from ..core.changes import PATTERN
    from ..data.records import write_records

    check_new(out)
    made = attacked(file.part(data, "all", limit, seed), by, seed=seed)
    write_records(made, out)
    twins = Counter(e.facts[PATTERN] for e in made if PATTERN in e.facts)
    originals = sum(e.partner is None for e in made)
    return Answer(
        json={"data": str(out), "originals": originals, "twins": twins},
        notes=[f"{pattern}: {count} twins" for pattern, count in twins.items()],
        lines=[out],
    )


def _brief(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.4g}"
    if isinstance(value, dict):
        return "(" + ", ".join(f"{k} {_brief(v)}" for k, v in value.items()) + ")"
    return str(value)


VERBS = {
    "list": listing.VERBS["datasets"],
    "describe": describe,
    "validate": validate,
    "convert": convert,
    "attack": attack,
}
