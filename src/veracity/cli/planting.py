"""Verbs about cues: planted ones, and those a model may lean on."""

from __future__ import annotations

from dataclasses import asdict, replace
from pathlib import Path
from typing import Annotated, Any

import typer

from ..core.counts import counted
from ..core.errors import DataError
from ..core.examples import read_labels
from ..core.inputs import Text
from .exits import MISSED_THRESHOLD
from .options import (
    DataSource,
    Json,
    Limit,
    Methods,
    ModelSource,
    Out,
    RecordsFile,
    Seed,
    Split,
    WorkersPerCore,
)
from .reading import FileOptions, ModelOptions, check_new, is_costly, numbers, short_names
from .showing import Answer, ProgressBars, stderr


def plant(
    data: DataSource,
    out: RecordsFile,
    file: FileOptions,
    by: Annotated[
        list[str] | None,
        typer.Option(
            help="Changes, separated by commas; see `veracity list changes`. By default "
            "'reassign, insert': labels by the toss of a coin, and a word that tells them."
        ),
    ] = None,
    seed: Seed = 0,
    limit: Limit = None,
) -> Answer:
    """Change data so that a good model must use words that you know; then train and audit on it."""
    from ..changes import changed
    from ..core.plugins import split_specs
    from ..data.records import write_records
    from ..data.splits import PARTS, sampled, split
    from ..results.guarantees import planted_facts

    check_new(out)
    read = file.data(data)
    if read.kind != Text.kind:
        raise DataError(
            f"{read.name} holds {read.nouns.many}, which lines of JSON cannot: expected texts. "
            "`veracity dryrun` plants marks in pictures, trains and audits; in Python, "
            "veracity.changes.changed plants them"
        )
    steps = split_specs(by or ["reassign, insert"])
    planted = changed(sampled(read, limit, seed=seed), steps, seed=seed)
    parts = split(planted, seed=seed)
    part_of = {e.id: name for name in PARTS for e in getattr(parts, name)}
    examples = tuple(
        replace(e, facts={**e.facts, "split": part_of[e.id]}) for e in planted if e.id in part_of
    )
    facts = planted_facts(planted)
    if not facts["carriers"]:
        raise DataError(
            f"{', '.join(steps)}: nothing was planted in {len(read):,} texts. Raise share, or "
            "choose a cue for which they offer a place"
        )
    write_records(replace(planted, examples=examples), out)
    forced = facts["required"] > facts["bound"] + 0.005
    needed = f"a model must reach {facts['required']:.3f} on test texts to have used it"
    return Answer(
        json={"data": str(out), "name": planted.name, **facts},
        notes=[
            f"{facts['carriers']:,} of {facts['examples']:,} texts carry a planted cue, on "
            f"{facts['word_share']:.1%} of all words; {facts['decoys']:,} a decoy",
            f"without the cue, at most {facts['bound']:.3f} can be expected; with nothing else, "
            f"{facts['ceiling']:.3f}; {needed if forced else 'nothing forces a model to use it'}",
            f"next: veracity train text_cnn {out} --out MODEL; veracity audit MODEL {out} "
            "--split test",
        ],
        lines=[out],
    )


def dryrun(
    model: Annotated[
        str,
        typer.Argument(
            metavar="MODEL",
            help="What to train anew: an architecture such as text_cnn, "
            "'attention_lstm(hidden=50)' or, for pictures, resnet34; a folder written by "
            "`veracity train`; the folder of a transformers encoder, or transformer, the packaged "
            "MiniLM.",
        ),
    ],
    data: DataSource,
    file: FileOptions,
    scale: Annotated[
        str,
        typer.Option(
            metavar="smoke|laptop|full",
            help="How much is tried. smoke, some minutes: every kind of cue at two strengths, two "
            "seeds, 3,000 texts, quick settings. laptop, about an hour: three strengths, three "
            "seeds, all texts. full, a day: five strengths, five seeds, all methods as they are. "
            "Encoders take minutes to train: smoke tries three cues once. Pictures: smoke suits "
            "picture_cnn at 32 pixels, every mark, two seeds, 1,000 pictures; laptop resnet34 at "
            "64 pixels, some hours.",
        ),
    ] = "smoke",
    cues: Annotated[
        list[str] | None,
        typer.Option(
            "--cues",
            "--cue",
            help="word, phrase, tag, articles, ending, capitals; of pictures blur, brightness, "
            "hue, noise, watermark, stamp; or a change of your own such as "
            "\"insert(marks=('sent', 'dated'))\"; separated by commas.",
        ),
    ] = None,
    strengths: Annotated[
        str, typer.Option(help="How often a cue tells the label, such as 1.0,0.9.")
    ] = "",
    keep: Annotated[
        float | None,
        typer.Option(
            help="Share of labels that are kept; by 0.5 the text tells nothing of two. By default "
            "0.5; of pictures so few that they tell nothing."
        ),
    ] = None,
    methods: Methods = None,
    seeds: Annotated[
        int | None, typer.Option(min=1, help="So many trainings of every cue and strength.")
    ] = None,
    sentences: Annotated[
        int | None, typer.Option(min=1, help="How many texts with the cue each audit explains.")
    ] = None,
    clean: Annotated[
        bool,
        typer.Option(
            "--clean/--no-clean",
            help="Whether every cue is also shown to a model that never saw it: what a method "
            "shows of it there is a false alarm. A training per seed, an audit per trial.",
        ),
    ] = True,
    limit: Limit = None,
    out: Out = None,
    workers: WorkersPerCore = None,
) -> Answer:
    """Would this method have shown me that my model cheats? Plants cues and finds out; resumes."""
    from ..engine.executors import Local, default_workers
    from ..experiments.dryrun import run_dryrun
    from ..experiments.dryrun_plan import plan_dryrun
    from ..reports.dryrun import write_dryrun

    plan = plan_dryrun(
        model,
        file.reading(data, limit),
        scale=scale,
        cues=cues or (),
        strengths=numbers("--strengths", strengths),
        keep=keep,
        methods=methods or (),
        seeds=seeds,
        sentences=sentences,
        clean=clean,
        out=out,
    )
    n = len(plan.trials)
    audits = f"up to {counted(n, 'audit')}"
    more = f"; {counted(len(plan.clean_models), 'training')} and {audits} for false alarms"
    stderr().print(
        f"{counted(n, 'training')} and {audits} of {plan.architecture.spec}: "
        f"{counted(len(plan.cues), 'cue')}, {counted(plan.seeds, 'seed')}, "
        f"{counted(len(plan.methods), 'method')}{more if clean else ''}; in {plan.folder}",
        markup=False,
        soft_wrap=True,
    )
    with ProgressBars() as bars:
        done = run_dryrun(
            plan,
            Local(workers or default_workers(n)),
            watch=bars.of("dry run"),
        )
        report = write_dryrun(done.record, found=done.findings, watch=bars.of("reports"))
    return _dryrun_answer(done, report)


def suspects(
    model: ModelSource,
    data: DataSource,
    file: FileOptions,
    service: ModelOptions,
    method: Annotated[
        str,
        typer.Option(help="What weighs words; by default what is quick and right on the model."),
    ] = "",
    top: Annotated[int, typer.Option(help="How many leaders to look into closely.")] = 10,
    false_alarms: Annotated[
        float,
        typer.Option(
            help="Of models of untouched reviews, so many may show a suspect; of topics, more do."
        ),
    ] = 0.05,
    least: Annotated[int, typer.Option(help="Texts in which a look must stand.")] = 10,
    vectors: Annotated[
        str, typer.Option(help="What tells meaning: glove, a file of word vectors, or none.")
    ] = "",
    allow: Annotated[
        list[str] | None,
        typer.Option(
            help="Looks that are right to use, separated by commas, such as lens,seat: --fail does "
            "not count them."
        ),
    ] = None,
    out: Out = None,
    fail: Annotated[
        bool,
        typer.Option(
            "--fail", help="Exit with 1 if something is found, with 2 if that could not be told."
        ),
    ] = False,
    seed: Seed = 0,
    split: Split = "",
    limit: Annotated[int, typer.Option(min=1, help="Look at so many texts at most.")] = 3000,
    as_json: Json = False,
) -> Answer:
    """List what a model leans on beyond what it means for the task."""
    from ..auditing.audit import default_folder
    from ..core.files import check_own, sole_writer
    from ..explainers import explainers
    from ..reports.pages import check_page
    from ..reports.suspects import PAGE, print_suspects, write_suspects
    from ..suspicion.record import FILE, SUSPECTS
    from ..suspicion.suspects import suspects as find_suspects

    if method:
        explainers.make(method)
    part = file.part(data, split, limit, seed)
    names = short_names([model])
    folder = out or default_folder(part, ["suspects", *names])
    check_own(folder, SUSPECTS)
    check_page(folder / PAGE)
    models = service.models(names, file.labels, beside=folder)

    def tell_plan(plan: Any) -> None:
        if not as_json and is_costly(models):
            stderr().print(plan.sentence, markup=False, soft_wrap=True)

    with ProgressBars() as bars:
        found = find_suspects(
            models,
            part,
            method=method or None,
            limit=None,
            top=top,
            false_alarms=false_alarms,
            least_texts=least,
            vectors=vectors or None,
            seed=seed,
            watch=bars.of("suspects"),
            tell_plan=tell_plan,
        )
    named = [name for one in allow or [] for name in read_labels(one)]
    found = replace(found, allowed=tuple(named))
    with sole_writer(folder, SUSPECTS):
        page = write_suspects(found, folder / PAGE)
        found.write(folder / FILE)

    answer = Answer(
        json={
            "report": str(page),
            "alarms": found.alarms,
            "can_clear": found.can_clear,
            "limits": found.limits,
            **found.to_dict(),
        },
        show=lambda console: print_suspects(console, found),
        written=[("\nReport", page)],
    )
    if fail and found.alarms:
        return replace(answer, exit_code=MISSED_THRESHOLD)
    if fail and not found.can_clear:
        answer.print(as_json)
        raise DataError(found.limits)
    return answer


def _dryrun_answer(done: Any, report: Path) -> Answer:
    from ..experiments.dryrun_sentences import headline, remarks
    from ..reports.terminal import print_dryrun

    found = done.findings
    return Answer(
        json=lambda: {
            "dryrun": str(done.folder),
            "report": str(report),
            "headline": headline(done.record, found),
            "remarks": remarks(done.record, found),
            "methods": [asdict(p) for p in found.profiles],
            "cues": [asdict(cell) for cell in found.cells],
            "trials": [asdict(trial) for trial in done.record.trials],
            "made": done.made,
            "reused": done.reused,
        },
        show=lambda console: print_dryrun(console, done.record, found),
        written=[("\nReport", report)],
    )
