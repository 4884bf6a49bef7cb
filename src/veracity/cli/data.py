"""Verbs that look at data."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from ..core.errors import DataError
from .listing import list_datasets
from .options import (
    ColumnsOption,
    DataSource,
    Json,
    Labels,
    Language,
    Layout,
    Limit,
    MaxWords,
    Seed,
    SkipBad,
)
from .reading import label_list, read_data
from .showing import print_json, stderr


def describe(
    data: DataSource,
    columns: ColumnsOption = "",
    labels: Labels = "",
    language: Language = "auto",
    max_words: MaxWords = 5000,
    skip_bad: SkipBad = False,
    layout: Layout = "auto",
    as_json: Json = False,
) -> None:
    """Size, balance, lengths, truths, duplicates and leaks."""
    from ..data import describe
    from ..reports.showing import printable

    facts = describe(read_data(data, columns, labels, language, max_words, skip_bad, layout))
    if as_json:
        print_json(facts)
        return
    for name, value in facts.items():
        if isinstance(value, dict):
            value = ", ".join(f"{k} {_brief(v)}" for k, v in value.items()) or "none"
        elif isinstance(value, list):
            value = ", ".join(map(str, value))
        print(printable(f"{name.replace('_', ' '):16} {_brief(value)}"))


def validate(
    data: DataSource,
    columns: ColumnsOption = "",
    labels: Labels = "",
    language: Language = "auto",
    max_words: MaxWords = 5000,
    layout: Layout = "auto",
    as_json: Json = False,
) -> None:
    """List every fault with its line; exit with 1 if there is one."""
    from ..data import Columns, validate

    read, faults = validate(
        data,
        columns=Columns.parse(columns) if columns else Columns(),
        labels=label_list(labels),
        language=language,
        max_words=max_words,
        layout=layout,
    )
    errors = [f for f in faults if f.severity == "error"]
    if as_json:
        rows = [{"line": f.line, "severity": f.severity, "message": f.message} for f in faults]
        print_json({"valid": not errors, "examples": len(read or ()), "faults": rows})
    else:
        from ..reports.showing import printable

        for fault in faults:
            print(printable(f"line {fault.line}: {fault.severity}: {fault.message}"))
        good = "no faults" if not faults else f"{len(errors)} errors"
        print(f"{data}: {good}, {len(faults) - len(errors)} warnings")
    if errors:
        raise typer.Exit(1)


def convert(
    data: DataSource,
    out: Annotated[Path, typer.Option(help="File to write: JSON lines.")],
    to: Annotated[str, typer.Option(help="records (holds everything), dutrust or eraser.")],
    columns: ColumnsOption = "",
    labels: Labels = "",
    language: Language = "auto",
    max_words: MaxWords = 5000,
    skip_bad: SkipBad = False,
    layout: Layout = "auto",
    as_json: Json = False,
) -> None:
    """Write data in another layout."""
    from ..data import write_data

    if out.exists():
        raise DataError(f"{out} is there already. Choose another --out")
    read = read_data(data, columns, labels, language, max_words, skip_bad, layout)
    write_data(read, out, layout=to)
    if as_json:
        print_json({"data": str(out), "examples": len(read)})
    else:
        print(out)


def attack(
    data: DataSource,
    by: Annotated[
        list[str],
        typer.Option(
            help="Patterns, separated by commas, such as 'keyboard(share=0.2), negation'; see "
            "`veracity list changes`."
        ),
    ],
    out: Annotated[Path, typer.Option(help="File to write: JSON lines, one record each.")],
    seed: Seed = 0,
    columns: ColumnsOption = "",
    labels: Labels = "",
    language: Language = "auto",
    max_words: MaxWords = 5000,
    skip_bad: SkipBad = False,
    layout: Layout = "auto",
    limit: Limit = None,
    as_json: Json = False,
) -> None:
    """Put adversarial twins that patterns make beside their originals."""
    from collections import Counter

    from ..changes import attacked
    from ..changes._attack import PATTERN
    from ..data import sampled, write_records

    if out.exists():
        raise DataError(f"{out} is there already. Choose another --out")
    read = read_data(data, columns, labels, language, max_words, skip_bad, layout)
    made = attacked(sampled(read, limit, seed=seed), by, seed=seed)
    write_records(made, out)
    twins = Counter(e.facts[PATTERN] for e in made if PATTERN in e.facts)
    if as_json:
        originals = sum(e.partner is None for e in made)
        print_json({"data": str(out), "originals": originals, "twins": twins})
        return
    for pattern, count in twins.items():
        stderr().print(f"{pattern}: {count} twins", markup=False)
    print(out)


def _brief(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.4g}"
    if isinstance(value, dict):
        return "(" + ", ".join(f"{k} {_brief(v)}" for k, v in value.items()) + ")"
    return str(value)


VERBS = {
    "list": list_datasets,
    "describe": describe,
    "validate": validate,
    "convert": convert,
    "attack": attack,
}
