"""Verbs about which clause ought to decide."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from .options import DataSource, Limit, Seed
from .reading import FileOptions, check_new
from .showing import Answer

if TYPE_CHECKING:
    from rich.console import Console

RuleNames = Annotated[
    str,
    typer.Option("--rules", help="Names of rules (veracity list rules), or TOML files of them."),
]
Detection = Annotated[
    str,
    typer.Option("--mode", help="strict (exactly one keyword in a text), first or all structures."),
]


def find(
    data: DataSource,
    file: FileOptions,
    rules: RuleNames = "but, yet, though, while",
    mode: Detection = "strict",
    page: Annotated[Path | None, typer.Option(help="HTML file to write.")] = None,
    records: Annotated[
        Path | None, typer.Option(help="JSON lines to write: the texts, their clauses marked.")
    ] = None,
    seed: Seed = 0,
    limit: Limit = None,
) -> Answer:
    """Show which texts have two clauses of which one ought to decide, and what is passed over."""
    from ..changes.structure import Structure
    from ..core.plugins import check_settings, split_specs
    from ..data.records import write_records
    from ..reports.pages import check_page
    from ..reports.rules import FoundRules, write_rules
    from ..rules import rules_named

    chosen = rules_named(rules)
    check_settings(Structure, {"mode": mode})
    if page is not None:
        check_page(page)
    if records is not None:
        check_new(records)
    found = FoundRules(file.part(data, "all", limit, seed), chosen, mode)  # type: ignore[arg-type]
    written = []
    if records is not None:
        change = Structure(rules=tuple(split_specs(rules)), mode=found.mode)
        write_records(change.changed(found.data, seed=seed), records)
        written.append(("Records", records))
    if page is not None:
        written.append(("Page", write_rules(found, page)))

    def show(console: Console) -> None:
        from ..reports.terminal import plain_table

        table = plain_table()
        for name in ("rule", *found.data.labels):
            table.add_column(name, justify="left" if name == "rule" else "right")
        for rule, counts in found.by_rule.items():
            table.add_row(rule, *(f"{n:,}" for n in counts.values()))
        console.print(table)
        total = len(found.data)
        console.print(f"{found.n_texts:,} of {total:,} texts have a structure ({mode})")
        for reason, n in found.passed_over.items():
            console.print(f"passed over: {n:,} with {reason}")

    return Answer(json=found.to_dict(), show=show, written=written)


VERBS = {"find": find}
