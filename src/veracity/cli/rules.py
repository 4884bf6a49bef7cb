"""Verbs about which clause ought to decide."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ..core.errors import DataError
from ..data.splits import sampled
from ..rules import USUAL
from .options import (
    DataSource,
    Limit,
    ModelSource,
    Out,
    Profile,
    Questions,
    Seed,
    Split,
    Workers,
)
from .reading import FileOptions, ModelOptions, check_new, short_names
from .showing import Answer, ProgressBars, typed_command

if TYPE_CHECKING:
    from rich.console import Console

RuleNames = Annotated[
    str,
    typer.Option("--rules", help="Names of rules (veracity list rules), or TOML files of them."),
]
USUAL_RULES = ", ".join(USUAL)
ModeOption = Annotated[
    str,
    typer.Option("--mode", help="strict (exactly one keyword in a text), first or all structures."),
]


def find(
    data: DataSource,
    file: FileOptions,
    rules: RuleNames = USUAL_RULES,
    mode: ModeOption = "strict",
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
    from ..reports.found_rules import FoundRules, write_found_rules
    from ..reports.pages import check_page
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
        written.append(("Page", write_found_rules(found, page)))

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


def audit(
    model: ModelSource,
    data: DataSource,
    file: FileOptions,
    service: ModelOptions,
    rules: RuleNames = USUAL_RULES,
    mode: ModeOption = "strict",
    methods: Annotated[
        list[str] | None,
        typer.Option(
            "--methods",
            "--method",
            help="Separated by commas; by default lime, shap and integrated_gradients, as far as "
            "the model lets them.",
        ),
    ] = None,
    out: Out = None,
    workers: Workers = 1,
    questions: Questions = None,
    split: Split = "",
    seed: Seed = 0,
    limit: Limit = None,
    profile: Profile = "recommended",
) -> Answer:
    """Say whether a model decides on the clause that ought to decide; resumes when given again."""
    from ..auditing.audit import audit as run_audit
    from ..auditing.audit import default_folder
    from ..auditing.health import model_health
    from ..changes import changed
    from ..changes.structure import Structure
    from ..core.plugins import check_settings, split_specs
    from ..explainers import explainers
    from ..reports.rules import print_outcomes, write_rules
    from ..results.rules import effects, metrics_of, outcomes
    from ..rules import rules_named

    rules_named(rules)
    check_settings(Structure, {"mode": mode})
    marking = Structure(rules=tuple(split_specs(rules)), mode=mode, alone=True)  # type: ignore[arg-type]
    whole = file.part(data, split, None, seed)
    part = changed(whole, [marking], seed=seed)
    if not len(part):
        raise DataError(
            f"{data}: no text has a structure by {rules} (mode {mode}). See what was passed over: "
            "veracity rules find"
        )
    known = {e.id for e in part}
    others = whole.select([i for i, e in enumerate(whole) if e.id not in known])
    part = sampled(part, limit, seed=seed)
    names = short_names([model])
    folder = out or default_folder(part, names)
    models = service.models(names, file.labels, beside=folder)
    ((name, answering),) = models.items()
    able = [m for m in USUAL_METHODS if explainers.make(m).missing(answering) is None]
    with ProgressBars() as progress:
        result = run_audit(
            models,
            part,
            methods or able,
            ["rule_consistency", "clause_effect"],
            out=folder,
            seed=seed,
            workers=workers,
            profile=profile,
            questions=questions,
            extras=False,
            sources={n: service.source(source, file.labels) for n, source in names.items()},
            command=typed_command(),
            watch=progress.of("audit"),
        )
        judged = model_health(name, answering, others, seed=seed)
        elsewhere = {} if judged is None else {name: judged}
        page = write_rules(result.run, elsewhere)
    run = result.run
    found = [one for metric in metrics_of(run) for one in outcomes(run, metric)]
    return Answer(
        json={
            "run": str(run.folder),
            "page": str(page),
            "elsewhere": {model: one.to_dict() for model, one in elsewhere.items()},
            "outcomes": [asdict(one) for one in found],
            "effects": {m: {k: asdict(v) for k, v in e.items()} for m, e in effects(run).items()},
        },
        show=lambda console: print_outcomes(console, run, elsewhere),
        written=[("Page", page)],
    )


USUAL_METHODS = ("lime", "shap", "integrated_gradients")
"""The methods of PERCY."""

VERBS = {"find": find, "audit": audit}
