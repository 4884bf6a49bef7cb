"""Verbs that test methods and show what was found."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..core.errors import PluginError
from .exits import MISSED_THRESHOLD
from .options import (
    DataSource,
    Json,
    Limit,
    Methods,
    ModelSource,
    Out,
    Profile,
    Questions,
    Seed,
    Split,
    Train,
    TrainLayout,
    Workers,
)
from .reading import FileOptions, ModelOptions, is_costly, short_names, training_data
from .showing import Answer, ProgressBars, stderr, typed_command

if TYPE_CHECKING:
    from rich.console import Console


def audit(
    model: ModelSource,
    data: DataSource,
    file: FileOptions,
    service: ModelOptions,
    also: Annotated[
        list[str] | None, typer.Option(help="Another MODEL in the same run; may be repeated.")
    ] = None,
    methods: Methods = None,
    metrics: Annotated[
        list[str] | None,
        typer.Option("--metrics", "--metric", help="Separated by commas; by default all."),
    ] = None,
    out: Out = None,
    fail_under: Annotated[
        list[str] | None,
        typer.Option(
            help="Exit with 1 unless the best method reaches this, such as "
            "erasure.compactness=0.2; method:metric.quantity=value for one method; accuracy=0.8 "
            "for the model itself."
        ),
    ] = None,
    redo: Annotated[
        list[str] | None,
        typer.Option(help="A method of this run to compute anew; may be repeated."),
    ] = None,
    questions: Questions = None,
    plan_only: Annotated[
        bool,
        typer.Option("--plan", help="Say what would be asked of the model, and stop there."),
    ] = False,
    workers: Workers = 1,
    target: Annotated[str, typer.Option(help="predicted, gold, or a label.")] = "predicted",
    seed: Seed = 0,
    split: Split = "",
    limit: Limit = None,
    train: Train = "",
    train_layout: TrainLayout = "auto",
    profile: Profile = "recommended",
    as_json: Json = False,
) -> Answer:
    """Test explanation methods on a model and say which to believe; resumes when given again."""
    from ..auditing.audit import audit as run_audit
    from ..auditing.audit import default_folder, plan
    from ..auditing.thresholds import (
        Threshold,
        check_reachable,
        check_thresholds,
        missed_thresholds,
    )
    from ..core.plugins import split_specs
    from ..explainers import explainers
    from ..reports.html import write_report
    from ..reports.pairs import write_pair_pages

    # what is misspelt is told before anything is loaded
    bars = [Threshold.parse(text) for text in fail_under or []]
    for spec in split_specs(methods or []):
        explainers.make(spec, profile)
    check_thresholds(bars, split_specs(metrics or []), profile)
    part = file.part(data, split, limit, seed)
    names = short_names([model, *(also or [])])
    folder = out or default_folder(part, names)
    models = service.models(names, file.labels, beside=folder)
    check_reachable(bars, part, models, split_specs(metrics or []), profile)
    taught = training_data(train, replace(file, layout=train_layout), seed)
    if plan_only:
        found = plan(
            models,
            part,
            methods or "all",
            metrics or "all",
            train=taught,
            seed=seed,
            profile=profile,
            questions=questions,
        )
        return Answer(json={"plan": found.to_dict()}, lines=found.lines())

    def tell_plan(found: Any) -> None:
        if not as_json and is_costly(models):
            stderr().print("\n".join(found.lines()), markup=False, soft_wrap=True)

    with ProgressBars() as progress:
        result = run_audit(
            models,
            part,
            methods or "all",
            metrics or "all",
            out=folder,
            target=target,
            seed=seed,
            workers=workers,
            train=taught,
            profile=profile,
            questions=questions,
            redo=redo or (),
            sources={n: service.source(source, file.labels) for n, source in names.items()},
            command=typed_command(),
            watch=progress.of("audit"),
            tell_plan=tell_plan,
        )
        said = result.conclusions
        pages = write_pair_pages(result.run, conclusions=said) if part.pairs else []
        # links to those pages
        report = write_report(result.run, conclusions=said)
    failures = missed_thresholds(result.standings, bars, result.run.summaries())
    if bars and result.run.partial is not None:
        failures.append(
            f"expected all {part.nouns.many} for a bar; the budget held only part of them"
        )
    return audit_answer(result, report, failures, pages)


def compare(
    runs: Annotated[list[Path], typer.Argument(help="Folders of finished audits.")],
    on: Annotated[str, typer.Option(help="Only this quantity, such as erasure.new_p.")] = "",
    latex: Annotated[bool, typer.Option("--latex", help="Print a LaTeX table.")] = False,
) -> Answer:
    """Compare methods in pairs on the same examples, within a run or across several."""
    from ..results.run import Run
    from ..results.standings import across, standings

    opened = {path.name or str(path): Run.open(path) for path in runs}
    if len(opened) < len(runs):
        opened = {str(path): Run.open(path) for path in runs}
    one = next(iter(opened.values()))
    found = standings(one) if len(runs) == 1 else across(opened)
    if on:
        names = sorted({f"{s.metric}.{s.name}" for s in found})
        found = [s for s in found if f"{s.metric}.{s.name}" == on]
        if not found:
            raise PluginError(f"no quantity {on!r} here; there are: {', '.join(names)}")
    content = {"standings": [asdict(s) for s in found]}
    if latex:
        from ..reports.latex import latex_table

        return Answer(json=content, lines=[latex_table([s for s in found if s.better])])
    from ..reports.terminal import print_standings

    return Answer(json=content, show=lambda console: print_standings(console, found))


def report(
    run: Annotated[
        Path, typer.Argument(help="Folder of an audit, of a dry run or of a paper's experiments.")
    ],
    out: Annotated[Path | None, typer.Option(help="File to write.")] = None,
    pairs: Annotated[
        bool, typer.Option("--pairs", help="Instead, texts beside their adversarial twins.")
    ] = False,
    method: Annotated[
        str, typer.Option(help="With --pairs: the method to show; by default the advised one.")
    ] = "",
    model: Annotated[
        str, typer.Option(help="With --pairs: the model to show; by default a page for each.")
    ] = "",
) -> Answer:
    """Build the HTML report of a run anew, without its model or its data."""
    from ..experiments.dryrun_record import DryRun
    from ..reports.dryrun import write_dryrun
    from ..reports.html import write_report
    from ..results.findings import Findings
    from ..results.run import Run

    if pairs:
        from ..reports.pairs import write_pair_pages

        opened = Run.open(run)
        if out is not None and not model and len(opened.models) > 1:
            known = ", ".join(opened.models)
            raise PluginError(f"expected --model beside --out: one of {known}")
        pages = write_pair_pages(opened, model=model, method=method, out=out)
        return Answer(json={"pages": [str(page) for page in pages]}, lines=pages)
    if method or model:
        raise PluginError("expected --method and --model with --pairs only")
    if DryRun.is_here(run):
        path = write_dryrun(DryRun.open(run), out)
    elif Findings.are_here(run):
        from ..reports.findings import write_findings

        path = write_findings(Findings.read(run), run, out)
    else:
        path = write_report(Run.open(run), out)
    return Answer(json={"report": str(path)}, lines=[path])


def audit_answer(
    result: Any, report: Path, failures: Sequence[str] = (), pages: Sequence[Path] = ()
) -> Answer:
    """What an audit found; `failures` are thresholds that were missed."""
    from ..reports.terminal import print_conclusions
    from ..results.run import remarks
    from ..results.sampling import noise, own_errors

    run, models = result.run, result.conclusions.models

    def show(console: Console) -> None:
        print_conclusions(console, run, result.conclusions)
        for remark in remarks(run):
            console.print(remark, markup=False, soft_wrap=True)
        for failure in failures:
            stderr().print(failure, style="red", markup=False)

    return Answer(
        json=lambda: {
            "run": str(result.folder),
            "report": str(report),
            "pages": [str(page) for page in pages],
            "health": [c.health.to_dict() for c in models],
            "recommendations": [asdict(c.recommendation) for c in models],
            "verdicts": [_with(v, "sentence") for v in result.verdicts],
            "standings": [asdict(s) for s in result.standings],
            "noise": [_with(n, "share", "standard_error", "reach") for n in noise(run)],
            "own_errors": [asdict(e) for e in own_errors(run)],
            "models": {m: s.get("", {}) for m, s in run.summaries().items()},
            "plan": run.config.plan and asdict(run.config.plan),
            "partial": run.partial and asdict(run.partial),
            "computed": result.computed,
            "reused": result.reused,
            "failures": list(failures),
        },
        show=show,
        written=[("Report", report), *(("Pairs", page) for page in pages)],
        exit_code=MISSED_THRESHOLD if failures else 0,
    )


def _with(record: Any, *properties: str) -> dict[str, Any]:
    """A record with what it tells beyond its fields."""
    return asdict(record) | {name: getattr(record, name) for name in properties}
