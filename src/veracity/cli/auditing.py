"""Verbs that test methods and show what was found."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer

from ..core.errors import PluginError
from .exits import FAILED_BAR
from .options import (
    DataSource,
    Json,
    Limit,
    ModelSource,
    Out,
    Profile,
    Questions,
    Seed,
    Split,
    Train,
    TrainLayout,
)
from .reading import FileOptions, ModelOptions, answers_beside, part_of, short_names, training_data
from .showing import ProgressBars, print_json, stderr, stdout, typed_command


def audit(
    model: ModelSource,
    data: DataSource,
    file: FileOptions,
    service: ModelOptions,
    also: Annotated[
        list[str] | None, typer.Option(help="Another MODEL in the same run; may be repeated.")
    ] = None,
    methods: Annotated[
        list[str] | None,
        typer.Option("--methods", "--method", help="Separated by commas; by default all."),
    ] = None,
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
    workers: Annotated[int, typer.Option(min=1, help="Worker processes.")] = 1,
    target: Annotated[str, typer.Option(help="predicted, gold, or a label.")] = "predicted",
    seed: Seed = 0,
    split: Split = "",
    limit: Limit = None,
    train: Train = "",
    train_layout: TrainLayout = "auto",
    profile: Profile = "recommended",
    as_json: Json = False,
) -> None:
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
    read = file.data(data)
    part = part_of(read, data, split, limit, seed)
    names = short_names([model, *(also or [])])
    folder = out or default_folder(part, names)
    answers = answers_beside(folder)
    models = {
        name: service.model(source, file.labels, cache=answers) for name, source in names.items()
    }
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
        if as_json:
            print_json({"plan": found.to_dict()})
        else:
            print(*found.lines(), sep="\n")
        return

    def tell_plan(found: Any) -> None:
        if not as_json and any(getattr(m, "costly", False) for m in models.values()):
            stderr().print("\n".join(found.lines()), markup=False, soft_wrap=True)

    with ProgressBars(as_json) as shown:
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
            watch=lambda progress: shown.watch("audit", progress),
            tell_plan=tell_plan,
        )
        said = result.conclusions
        pages = write_pair_pages(result.run, conclusions=said) if part.pairs else []
        # links to those pages
        report = write_report(result.run, conclusions=said)
    failures = missed_thresholds(result.standings, bars, result.run.summaries())
    if bars and result.run.partial is not None:
        failures.append("expected all texts for a bar; the budget held only part of them")
    tell_audit(result, report, as_json, failures, pages)
    if failures:
        raise typer.Exit(FAILED_BAR)


def compare(
    runs: Annotated[list[Path], typer.Argument(help="Folders of finished audits.")],
    on: Annotated[str, typer.Option(help="Only this quantity, such as erasure.new_p.")] = "",
    latex: Annotated[bool, typer.Option("--latex", help="Print a LaTeX table.")] = False,
    as_json: Json = False,
) -> None:
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
    if as_json:
        print_json({"standings": [_standing_json(s) for s in found]})
    elif latex:
        from ..reports.latex import latex_table

        print(latex_table([s for s in found if s.better]))
    else:
        from ..reports.terminal import print_standings

        print_standings(stdout(), found)


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
    as_json: Json = False,
) -> None:
    """Build the HTML report of a run anew, without its model or its data."""
    from ..experiments.dryrun_findings import DryRun
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
        if as_json:
            print_json({"pages": [str(page) for page in pages]})
        else:
            print(*pages, sep="\n")
        return
    if method or model:
        raise PluginError("expected --method and --model with --pairs only")
    if DryRun.is_here(run):
        path = write_dryrun(DryRun.open(run), out)
    elif Findings.are_here(run):
        from ..reports.findings import write_findings

        path = write_findings(Findings.read(run), run, out)
    else:
        path = write_report(Run.open(run), out)
    if as_json:
        print_json({"report": str(path)})
    else:
        print(path)


def tell_audit(
    result: Any,
    report: Path,
    as_json: bool,
    failures: list[str] | None = None,
    pages: Sequence[Path] = (),
) -> None:
    from dataclasses import asdict

    from ..results.sampling import noise, own_errors

    if as_json:
        plan, partial = result.run.config.plan, result.run.partial
        print_json(
            {
                "run": str(result.folder),
                "report": str(report),
                "pages": [str(page) for page in pages],
                "health": [_health_json(c.health) for c in result.conclusions.models],
                "recommendations": [asdict(c.recommendation) for c in result.conclusions.models],
                "verdicts": [asdict(v) for v in result.verdicts],
                "standings": [_standing_json(s) for s in result.standings],
                "noise": [_noise_json(n) for n in noise(result.run)],
                "own_errors": [asdict(e) for e in own_errors(result.run)],
                "models": {m: s.get("", {}) for m, s in result.run.summaries().items()},
                "plan": plan and asdict(plan),
                "partial": partial and asdict(partial),
                "computed": result.computed,
                "reused": result.reused,
                "failures": failures or [],
            }
        )
        return
    from ..reports.terminal import print_conclusions
    from ..results.run import remarks

    console = stdout()
    print_conclusions(console, result.run, result.conclusions)
    for remark in remarks(result.run):
        console.print(remark, markup=False, soft_wrap=True)
    for failure in failures or []:
        stderr().print(failure, style="red", markup=False)
    console.print(f"Report: {report}", markup=False, soft_wrap=True)
    for page in pages:
        console.print(f"Pairs: {page}", markup=False, soft_wrap=True)


def _health_json(found: Any) -> dict[str, Any]:
    from dataclasses import asdict

    return asdict(found) | {name: getattr(found, name) for name in ("summary", "fault", "caution")}


def _noise_json(found: Any) -> dict[str, Any]:
    from dataclasses import asdict

    derived = ("share", "standard_error", "reach")
    return asdict(found) | {name: getattr(found, name) for name in derived}


def _standing_json(standing: Any) -> dict[str, Any]:
    from dataclasses import asdict

    return asdict(standing)
