"""The command line: one thin function per verb."""

from __future__ import annotations

import io
import json
import math
import sys
import time
import warnings
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TextIO

import typer

from . import __version__
from .core.errors import DataError, PluginError, VeracityError

if TYPE_CHECKING:
    from rich.console import Console

    from .core.classifiers import Classifier
    from .core.examples import Dataset

app = typer.Typer(
    help="Find out which explanations of a classifier tell the truth.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    add_completion=False,
    epilog="Start with: veracity demo. Add --debug to any command to see where an error arose.",
)
data_app = typer.Typer(help="Look at data before you trust it.", no_args_is_help=True)
list_app = typer.Typer(help="What there is to choose from.", no_args_is_help=True)
app.add_typer(data_app, name="data")
app.add_typer(list_app, name="list")

KEPT_AT_A_TIME = 100
"""So many explanations are written together; a kill costs no more."""

FAILED_BAR = 1
BAD_INPUT = 2
INTERRUPTED = 130
BUG = 70

# ---- options that several verbs share -------------------------------------------------------

Json = Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else.")]
Seed = Annotated[int, typer.Option(help="Makes every random choice repeatable.")]
Out = Annotated[Path | None, typer.Option(help="Folder to write to.")]
ModelSource = Annotated[
    str,
    typer.Argument(
        metavar="MODEL",
        help="A folder (ours or transformers'), a .pkl/.joblib file, module:callable, or a URL.",
    ),
]
DataSource = Annotated[
    str,
    typer.Argument(
        metavar="DATA",
        help="A corpus such as rotten_tomatoes or made_reviews(n=500), or a file: CSV, TSV, JSON "
        "lines, Parquet (.gz too), or a folder written by the datasets library.",
    ),
]
ColumnsOption = Annotated[
    str, typer.Option("--columns", help="Column names, such as text=review,label=stars.")
]
Labels = Annotated[
    str, typer.Option(help="Label names in the order of their numbers, separated by commas.")
]
Language = Annotated[str, typer.Option(help="How words are told apart: auto, en or zh.")]
MaxWords = Annotated[int, typer.Option(help="Longest text that is accepted.")]
SkipBad = Annotated[bool, typer.Option("--skip-bad", help="Leave faulty rows out.")]
Split = Annotated[
    str,
    typer.Option(
        help="train, validation, test or all; by default test of a corpus, all of a file."
    ),
]
Limit = Annotated[int | None, typer.Option(help="Take a sample of so many examples.")]
AllowUnpickle = Annotated[
    bool,
    typer.Option("--allow-unpickle", help="Load pickled models, which can run any code."),
]
Budget = Annotated[
    int | None, typer.Option(help="For a URL: at most so many texts are sent in all.")
]
Timeout = Annotated[float, typer.Option(help="For a URL: seconds to wait for an answer.")]
BatchSize = Annotated[int, typer.Option(help="For a URL: texts per request.")]

Train = Annotated[
    str,
    typer.Option(
        "--train",
        metavar="DATA",
        help="What methods that learn learn from: the train part of a corpus or a file. By default "
        "what the model was trained on, if its folder says so.",
    ),
]


# ---- verbs ----------------------------------------------------------------------------------


@app.command()
def demo(
    out: Annotated[Path, typer.Option(help="Folder to write to.")] = Path("runs/demo"),
    sentences: Annotated[int, typer.Option(min=1, help="How many reviews to audit.")] = 200,
    workers: Annotated[int, typer.Option(min=1, help="Worker processes.")] = 1,
    as_json: Json = False,
) -> None:
    """Train two models on reviews, audit eight methods on them, write a report."""
    from .recipes.demo import demo as run_demo
    from .reports.html import write_report

    with Bars(as_json) as bars:
        audit = run_demo(out, sentences=sentences, workers=workers, watch=bars.watch)
        report = write_report(audit.run)
    _tell_audit(audit, report, as_json)


@app.command()
def train(
    model: Annotated[
        str,
        typer.Argument(metavar="MODEL", help="Such as text_cnn or 'text_cnn(embeddings=glove)'."),
    ],
    data: DataSource,
    out: Annotated[Path, typer.Option(help="Folder for the trained model.")],
    epochs: Annotated[int | None, typer.Option(help="At most so many passes.")] = None,
    batch_size: Annotated[int | None, typer.Option(help="Texts per step.")] = None,
    learning_rate: Annotated[float | None, typer.Option(help="Adam's step size.")] = None,
    patience: Annotated[int | None, typer.Option(help="Epochs to wait for a gain.")] = None,
    clip: Annotated[float | None, typer.Option(help="Largest gradient norm.")] = None,
    weight_decay: Annotated[float | None, typer.Option(help="Pull of weights to zero.")] = None,
    stop_at: Annotated[
        float | None,
        typer.Option(
            help="Stop at this validation accuracy, such as 0.97; models that choose the words "
            "they read must then also read as few as they are to read."
        ),
    ] = None,
    keep: Annotated[
        float | None,
        typer.Option(
            help="Keep weights in OUT/snapshots whenever validation accuracy rose by this, such "
            "as 0.05."
        ),
    ] = None,
    seed: Seed = 0,
    columns: ColumnsOption = "",
    labels: Labels = "",
    language: Language = "auto",
    max_words: MaxWords = 5000,
    skip_bad: SkipBad = False,
    limit: Limit = None,
    as_json: Json = False,
) -> None:
    """Train a model; stopped, it goes on from its last epoch when given again."""
    from dataclasses import replace

    from .auditing.learning import Reading
    from .auditing.training import trained_once
    from .data import leaks, split
    from .models import RECORD
    from .models.architectures import architectures
    from .reports.showing import printable

    architecture = architectures.make(model)
    if (out / RECORD).exists():
        raise PluginError(f"{out} holds a trained model already. Choose another --out")
    asked: dict[str, Any] = {
        "epochs": epochs,
        "batch_size": batch_size,
        "learning_rate": learning_rate,
        "patience": patience,
        "clip": clip,
        "weight_decay": weight_decay,
        "stop_at": stop_at,
        "keep": keep,
        "seed": seed,
    }
    try:
        training = replace(
            architecture.training, **{k: v for k, v in asked.items() if v is not None}
        )
    except ValueError as error:
        raise PluginError(str(error)) from None
    reading = Reading(data, columns, labels, language, max_words, skip_bad, limit)
    read = reading.data()
    parts = split(reading.prepared(read, seed=seed), seed=seed)
    say = _stderr()
    leaked = len(leaks(parts))
    balance = printable(_balance(parts.train.balance))
    say.print(f"{len(parts.train)} texts to train on: {balance}", markup=False)
    if leaked:
        say.print(f"{leaked} texts stand in more than one of the given splits", style="yellow")
    about = {
        "name": read.name,
        "fingerprint": read.fingerprint(),
        "balance": parts.train.balance,
        "leaks": leaked,
        "reading": reading.recorded(),
    }
    with Bars(as_json) as bars:
        student = trained_once(
            architecture,
            parts,
            out,
            data=about,
            training=training,
            watch=lambda progress: bars.watch(architecture.spec, progress),
        )
    record = student.record
    if as_json:
        _print_json({"model": str(out), "architecture": architecture.spec, **record})
        return
    best = record["history"][record["best"]]
    say.print(
        f"Best after epoch {best['number'] + 1}: validation {best['validation_accuracy']:.3f}, "
        f"test {record['test']['accuracy']:.3f} ({len(parts.test)} texts)"
    )
    print(out)


@app.command()
def explain(
    model: ModelSource,
    texts: Annotated[list[str] | None, typer.Argument(help="Texts; - reads lines.")] = None,
    method: Annotated[str, typer.Option(help="Such as lime or 'lime(samples=5000)'.")] = "lime",
    data: Annotated[str, typer.Option(help="Explain a corpus or a file instead.")] = "",
    target: Annotated[str, typer.Option(help="predicted, or a label's name or number.")] = (
        "predicted"
    ),
    out: Annotated[Path | None, typer.Option(help="Write JSON lines to this file.")] = None,
    seed: Seed = 0,
    columns: ColumnsOption = "",
    labels: Labels = "",
    language: Language = "auto",
    max_words: MaxWords = 5000,
    skip_bad: SkipBad = False,
    split: Split = "",
    limit: Limit = None,
    allow_unpickle: AllowUnpickle = False,
    budget: Budget = None,
    timeout: Timeout = 30.0,
    batch_size: BatchSize = 32,
    train: Train = "",
    as_json: Json = False,
) -> None:
    """Colour the words of texts by how they speak for a label."""
    from .auditing import check_ability
    from .auditing.learning import taught
    from .explainers import explainers

    if bool(texts) == bool(data):
        raise DataError("expected texts or --data, and not both. Try: veracity explain MODEL TEXT")
    explainer = explainers.make(method)
    loaded = _load(model, labels, allow_unpickle, budget, timeout, batch_size, None)
    check_ability(explainer, loaded)
    learnt_from = _training(train, columns, labels, language, max_words, skip_bad, seed)
    explainer = taught(explainer, loaded, learnt_from, seed=seed)
    if data:
        read = _data(data, columns, labels, language, max_words, skip_bad)
        inputs = [(e.id, e.input) for e in _part(read, data, split, limit, seed)]
    else:
        inputs = [(str(i), t) for i, t in enumerate(_given_texts(texts or [], language, max_words))]
    wanted = _target(target, loaded.labels)
    if out is not None:
        _explained_to(out, loaded, explainer, inputs, wanted, seed, as_json)
        if as_json:
            _print_json({"method": explainer.spec, "attributions": len(inputs), "out": str(out)})
        else:
            print(out)
        return
    found = dict(_explained(loaded, explainer, inputs, wanted, seed, as_json))
    in_order = [(name, found[i]) for i, (name, _) in enumerate(inputs)]
    if as_json:
        rows = [_attribution_json(name, a, loaded.labels) for name, a in in_order]
        _print_json({"method": explainer.spec, "attributions": rows})
    else:
        from .reports.terminal import print_attributions

        print_attributions(_stdout(), [a for _, a in in_order], loaded.labels)


@app.command()
def audit(
    model: ModelSource,
    data: DataSource,
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
            "erasure.compactness=0.2; method:metric.quantity=value for one method."
        ),
    ] = None,
    workers: Annotated[int, typer.Option(min=1, help="Worker processes.")] = 1,
    target: Annotated[str, typer.Option(help="predicted, gold, or a label.")] = "predicted",
    seed: Seed = 0,
    columns: ColumnsOption = "",
    labels: Labels = "",
    language: Language = "auto",
    max_words: MaxWords = 5000,
    skip_bad: SkipBad = False,
    split: Split = "",
    limit: Limit = None,
    allow_unpickle: AllowUnpickle = False,
    budget: Budget = None,
    timeout: Timeout = 30.0,
    batch_size: BatchSize = 32,
    train: Train = "",
    as_json: Json = False,
) -> None:
    """Test explanation methods on a model and say which to believe; resumes when given again."""
    from .auditing import audit as run_audit
    from .auditing import default_folder
    from .auditing.bars import Bar, check_bars, missed
    from .core.plugins import split_specs
    from .explainers import explainers
    from .reports.html import write_report

    # what is misspelt is told before anything is loaded
    bars = [Bar.parse(text) for text in fail_under or []]
    for spec in split_specs(methods or []):
        explainers.make(spec)
    check_bars(bars, split_specs(metrics or []))
    read = _data(data, columns, labels, language, max_words, skip_bad)
    part = _part(read, data, split, limit, seed)
    names = _names([model, *(also or [])])
    folder = out or default_folder(part, names)
    answers = Path(f"{folder.resolve()}.answers.sqlite")
    models = {
        name: _load(source, labels, allow_unpickle, budget, timeout, batch_size, answers)
        for name, source in names.items()
    }
    first = next(iter(models.values()))
    with Bars(as_json) as shown:
        result = run_audit(
            models,
            part,
            methods or "all",
            metrics or "all",
            out=folder,
            target=target if target == "gold" else _target(target, first.labels),
            seed=seed,
            workers=workers,
            train=_training(train, columns, labels, language, max_words, skip_bad, seed),
            watch=lambda progress: shown.watch("audit", progress),
        )
        report = write_report(result.run)
    failures = missed(result.standings, bars)
    _tell_audit(result, report, as_json, failures)
    if failures:
        raise typer.Exit(FAILED_BAR)


@app.command()
def plant(
    data: DataSource,
    out: Annotated[Path, typer.Option(help="File to write: JSON lines, one record each.")],
    by: Annotated[
        list[str] | None,
        typer.Option(
            help="Changes, separated by commas; see `veracity list changes`. By default "
            "'reassign, insert': labels by the toss of a coin, and a word that tells them."
        ),
    ] = None,
    seed: Seed = 0,
    columns: ColumnsOption = "",
    labels: Labels = "",
    language: Language = "auto",
    max_words: MaxWords = 5000,
    skip_bad: SkipBad = False,
    limit: Limit = None,
    as_json: Json = False,
) -> None:
    """Change data so that a good model must use words that you know; then train and audit on it."""
    from dataclasses import replace

    from .changes import changed
    from .core.plugins import split_specs
    from .data import sampled, split, write_records
    from .data.splits import PARTS
    from .results.guarantees import planted_facts

    if out.exists():
        raise DataError(f"{out} is there already. Choose another --out")
    read = _data(data, columns, labels, language, max_words, skip_bad)
    steps = split_specs(by or ["reassign, insert"])
    planted = changed(sampled(read, limit, seed=seed), steps, seed=seed)
    parts = split(planted, seed=seed)
    part_of = {e.id: name for name in PARTS for e in getattr(parts, name)}
    examples = tuple(
        replace(e, facts={**e.facts, "split": part_of[e.id]}) for e in planted if e.id in part_of
    )
    write_records(replace(planted, examples=examples), out)
    facts = {"data": str(out), "name": planted.name, **planted_facts(planted)}
    if as_json:
        _print_json(facts)
        return
    say = _stderr()
    for line in (
        f"{facts['carriers']:,} of {facts['examples']:,} texts carry a planted cue, on "
        f"{facts['word_share']:.1%} of all words; {facts['decoys']:,} a decoy",
        f"without the cue, at most {facts['bound']:.3f} can be expected; with nothing else, "
        f"{facts['ceiling']:.3f}; a model must reach {facts['required']:.3f} to have used it",
        f"next: veracity train text_cnn {out} --out MODEL; veracity audit MODEL {out} --split test",
    ):
        say.print(line, markup=False, highlight=False)
    print(out)


@app.command()
def run(
    recipe: Annotated[
        str, typer.Argument(metavar="RECIPE", help="Such as planted_text; see list recipes.")
    ],
    scale: Annotated[
        str, typer.Option(help="smoke (minutes), laptop (an hour or two) or paper (as published).")
    ] = "laptop",
    data: Annotated[
        str, typer.Option(help="A file or corpus to use instead of the one that comes with us.")
    ] = "",
    out: Out = None,
    seed: Seed = 0,
    as_json: Json = False,
) -> None:
    """Do a paper's experiments and show its tables beside ours; resumes when given again."""
    from .core.files import sole_writer
    from .recipes.papers import recipes
    from .reports.findings import print_findings, write_findings

    chosen = recipes.make(recipe)
    folder = out or Path("runs") / f"{chosen.plugin_name()}-{scale}"
    with Bars(as_json) as bars, sole_writer(folder):
        found = chosen.run(
            folder,
            scale=scale,
            data=data or None,
            seed=seed,
            watch=lambda progress: bars.watch(
                "audit" if type(progress).__module__.endswith("jobs") else recipe, progress
            ),
        )
        report = write_findings(found, folder)
    if as_json:
        _print_json({"report": str(report), "findings": str(folder / "findings.json")})
        return
    print_findings(_stdout(), found)
    print(report)


@app.command()
def dryrun(
    model: Annotated[
        str,
        typer.Argument(
            metavar="MODEL",
            help="What to train anew: an architecture such as text_cnn or "
            "'attention_lstm(hidden=50)', a folder written by `veracity train`, the folder of a "
            "transformers encoder, or transformer, the packaged MiniLM.",
        ),
    ],
    data: DataSource,
    scale: Annotated[
        str,
        typer.Option(
            metavar="smoke|laptop|full",
            help="How much is tried. smoke, some minutes: every kind of cue at two strengths, two "
            "seeds, 3,000 texts, quick settings. laptop, about an hour: three strengths, three "
            "seeds, all texts. full, a day: five strengths, five seeds, all methods as they are. "
            "Encoders take minutes to train: smoke tries three cues once.",
        ),
    ] = "smoke",
    cues: Annotated[
        list[str] | None,
        typer.Option(
            "--cues",
            "--cue",
            help="word, phrase, tag, articles, ending, capitals, or a change of your own such as "
            "\"insert(marks=('sent', 'dated'))\"; separated by commas.",
        ),
    ] = None,
    strengths: Annotated[
        str, typer.Option(help="How often a cue tells the label, such as 1.0,0.9.")
    ] = "",
    keep: Annotated[
        float,
        typer.Option(help="Share of labels that are kept; by 0.5 the text tells nothing of two."),
    ] = 0.5,
    methods: Annotated[
        list[str] | None,
        typer.Option("--methods", "--method", help="Separated by commas; by default all."),
    ] = None,
    seeds: Annotated[
        int | None, typer.Option(min=1, help="So many trainings of every cue and strength.")
    ] = None,
    sentences: Annotated[
        int | None, typer.Option(min=1, help="How many texts with the cue each audit explains.")
    ] = None,
    limit: Limit = None,
    out: Out = None,
    workers: Annotated[
        int | None, typer.Option(min=1, help="Worker processes; by default one per core.")
    ] = None,
    columns: ColumnsOption = "",
    labels: Labels = "",
    language: Language = "auto",
    max_words: MaxWords = 5000,
    skip_bad: SkipBad = False,
    as_json: Json = False,
) -> None:
    """Would this method have shown me that my model cheats? Plants cues and finds out; resumes."""
    from .auditing.dryrun import carried_out, default_workers, planned
    from .auditing.learning import Reading
    from .reports.dryrun import write_dryrun

    plan = planned(
        model,
        Reading(data, columns, labels, language, max_words, skip_bad, limit),
        scale=scale,
        cues=cues or (),
        strengths=_numbers("--strengths", strengths),
        keep=keep,
        methods=methods or (),
        seeds=seeds,
        sentences=sentences,
        out=out,
    )
    n = len(plan.jobs)
    _stderr().print(
        f"{n} trainings and audits of {plan.architecture.spec}: {len(plan.cues)} cues, "
        f"{plan.seeds} seeds, {len(plan.methods)} methods; in {plan.folder}",
        markup=False,
        soft_wrap=True,
    )
    with Bars(as_json) as bars:
        done = carried_out(
            plan,
            workers=workers or default_workers(n),
            watch=lambda progress: bars.watch("dry run", progress),
        )
        report = write_dryrun(
            done.record,
            found=done.findings,
            watch=lambda progress: bars.watch("reports", progress),
        )
    _tell_dryrun(done, report, as_json)


@app.command()
def suspects(
    model: ModelSource,
    data: DataSource,
    method: Annotated[
        str,
        typer.Option(help="What weighs words; by default what is quick and right on the model."),
    ] = "",
    top: Annotated[int, typer.Option(help="How many leaders to look into closely.")] = 10,
    false_alarms: Annotated[
        float,
        typer.Option(help="Of models of untouched data, so many may show a suspect."),
    ] = 0.05,
    least: Annotated[int, typer.Option(help="Texts in which a look must stand.")] = 10,
    vectors: Annotated[
        str, typer.Option(help="What tells meaning: glove, a file of word vectors, or none.")
    ] = "",
    out: Out = None,
    fail: Annotated[bool, typer.Option("--fail", help="Exit with 1 if something is found.")] = (
        False
    ),
    seed: Seed = 0,
    columns: ColumnsOption = "",
    labels: Labels = "",
    language: Language = "auto",
    max_words: MaxWords = 5000,
    skip_bad: SkipBad = False,
    split: Split = "",
    limit: Annotated[int, typer.Option(min=1, help="Look at so many texts at most.")] = 3000,
    allow_unpickle: AllowUnpickle = False,
    budget: Budget = None,
    timeout: Timeout = 30.0,
    batch_size: BatchSize = 32,
    as_json: Json = False,
) -> None:
    """List what a model leans on beyond what it means for the task."""
    from dataclasses import asdict

    from .auditing import default_folder
    from .auditing.suspects import suspects as find_suspects
    from .explainers import explainers
    from .reports.suspects import PAGE, print_suspects, write_suspects
    from .results.suspects import FILE

    if method:
        explainers.make(method)
    read = _data(data, columns, labels, language, max_words, skip_bad)
    part = _part(read, data, split, limit, seed)
    (name,) = _names([model])
    folder = out or default_folder(part, ["suspects", name])
    answers = Path(f"{folder.resolve()}.answers.sqlite")
    loaded = _load(model, labels, allow_unpickle, budget, timeout, batch_size, answers)
    with Bars(as_json) as shown:
        found = find_suspects(
            {name: loaded},
            part,
            method=method or None,
            limit=None,
            top=top,
            false_alarms=false_alarms,
            least_texts=least,
            vectors=vectors or None,
            seed=seed,
            watch=lambda progress: shown.watch("suspects", progress),
        )
    found.write(folder / FILE)
    page = write_suspects(found, folder / PAGE)
    if as_json:
        _print_json({"report": str(page), **asdict(found)})
    else:
        console = _stdout()
        print_suspects(console, found)
        console.print(f"\nReport: {page}", markup=False, soft_wrap=True)
    if fail and found.found:
        raise typer.Exit(FAILED_BAR)


@app.command()
def compare(
    runs: Annotated[list[Path], typer.Argument(help="Folders of finished audits.")],
    on: Annotated[str, typer.Option(help="Only this quantity, such as erasure.new_p.")] = "",
    latex: Annotated[bool, typer.Option("--latex", help="Print a LaTeX table.")] = False,
    as_json: Json = False,
) -> None:
    """Compare methods in pairs on the same examples, within a run or across several."""
    from .results.run import Run
    from .results.standings import across, standings

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
        _print_json({"standings": [_standing_json(s) for s in found]})
    elif latex:
        from .reports.latex import latex_table

        print(latex_table([s for s in found if s.better]))
    else:
        from .reports.terminal import print_standings

        print_standings(_stdout(), found)


@app.command()
def report(
    run: Annotated[Path, typer.Argument(help="Folder of an audit or of a dry run.")],
    out: Annotated[Path | None, typer.Option(help="File to write.")] = None,
    as_json: Json = False,
) -> None:
    """Build the HTML report of a run anew, without its model or its data."""
    from .reports.dryrun import write_dryrun
    from .reports.html import write_report
    from .results.dryrun import DryRun
    from .results.run import Run

    if DryRun.is_here(run):
        path = write_dryrun(DryRun.open(run), out)
    else:
        path = write_report(Run.open(run), out)
    if as_json:
        _print_json({"report": str(path)})
    else:
        print(path)


@data_app.command("list")
def data_list(as_json: Json = False) -> None:
    """The corpora that go by a name."""
    list_datasets(as_json)


@data_app.command("describe")
def data_describe(
    data: DataSource,
    columns: ColumnsOption = "",
    labels: Labels = "",
    language: Language = "auto",
    max_words: MaxWords = 5000,
    skip_bad: SkipBad = False,
    as_json: Json = False,
) -> None:
    """Size, balance, lengths, truths, duplicates and leaks."""
    from .data import describe
    from .reports.showing import printable

    facts = describe(_data(data, columns, labels, language, max_words, skip_bad))
    if as_json:
        _print_json(facts)
        return
    for name, value in facts.items():
        if isinstance(value, dict):
            value = ", ".join(f"{k} {_brief(v)}" for k, v in value.items()) or "none"
        elif isinstance(value, list):
            value = ", ".join(map(str, value))
        print(printable(f"{name.replace('_', ' '):16} {_brief(value)}"))


@data_app.command("validate")
def data_validate(
    data: DataSource,
    columns: ColumnsOption = "",
    labels: Labels = "",
    language: Language = "auto",
    max_words: MaxWords = 5000,
    as_json: Json = False,
) -> None:
    """List every fault with its line; exit with 1 if there is one."""
    from .data import Columns, validate

    read, faults = validate(
        data,
        columns=Columns.parse(columns) if columns else Columns(),
        labels=_label_list(labels),
        language=language,
        max_words=max_words,
    )
    errors = [f for f in faults if f.severity == "error"]
    if as_json:
        rows = [{"line": f.line, "severity": f.severity, "message": f.message} for f in faults]
        _print_json({"valid": not errors, "examples": len(read or ()), "faults": rows})
    else:
        from .reports.showing import printable

        for fault in faults:
            print(printable(f"line {fault.line}: {fault.severity}: {fault.message}"))
        good = "no faults" if not faults else f"{len(errors)} errors"
        print(f"{data}: {good}, {len(faults) - len(errors)} warnings")
    if errors:
        raise typer.Exit(1)


@list_app.command("explainers")
def list_explainers(as_json: Json = False) -> None:
    """The explanation methods, with what they need of a model."""
    from .core.classifiers import ability_name
    from .explainers import explainers

    _list(explainers, as_json, lambda cls: ability_name(cls.needs), "needs")


@list_app.command("metrics")
def list_metrics(as_json: Json = False) -> None:
    """The tests of explanations, with what they measure."""
    from .metrics import metrics

    _list(metrics, as_json, lambda cls: ", ".join(cls.quantities), "quantities")


@list_app.command("models")
def list_models(as_json: Json = False) -> None:
    """The models that can be trained here."""
    from .models.architectures import architectures

    _list(architectures, as_json, lambda cls: f"{cls.training.epochs} epochs", "training")


@list_app.command("changes")
def list_changes(as_json: Json = False) -> None:
    """The ways to change data so that the truth is known."""
    from .changes import changes

    _list(changes, as_json, lambda cls: "", "")


@list_app.command("recipes")
def list_recipes(as_json: Json = False) -> None:
    """The papers' experiments."""
    from .recipes.papers import recipes

    _list(recipes, as_json, lambda cls: ", ".join(cls.settings()["scales"]), "scales")


@list_app.command("datasets")
def list_datasets(as_json: Json = False) -> None:
    """The corpora that go by a name."""
    from .data.corpora import corpora

    _list(corpora, as_json, lambda cls: "", "")


@app.callback(invoke_without_command=True)
def _root(
    version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False,
) -> None:
    if version:
        print(__version__)
        raise typer.Exit


# ---- reading what was asked -----------------------------------------------------------------


def _label_list(labels: str) -> list[str] | None:
    return [name.strip() for name in labels.split(",")] if labels else None


def _data(
    source: str, columns: str, labels: str, language: str, max_words: int, skip_bad: bool
) -> Dataset:
    from .auditing.learning import Reading

    return Reading(source, columns, labels, language, max_words, skip_bad).data()


def _part(data: Dataset, source: str, part: str, limit: int | None, seed: int) -> Dataset:
    """The part asked for: of a corpus the test part, of somebody's file all of it."""
    from .data import sampled, split

    part = part or ("all" if Path(source).exists() else "test")
    if part not in ("all", "train", "validation", "test"):
        raise PluginError(f"expected --split to be train, validation, test or all, got {part!r}")
    chosen = data if part == "all" else getattr(split(data, seed=seed), part)
    return sampled(chosen, limit, seed=seed)


def _training(
    source: str,
    columns: str,
    labels: str,
    language: str,
    max_words: int,
    skip_bad: bool,
    seed: int,
) -> Dataset | None:
    from .auditing.learning import training_part

    if not source:
        return None
    read = _data(source, columns, labels, language, max_words, skip_bad)
    return training_part(read, of_file=Path(source).exists(), seed=seed)


def _names(sources: list[str]) -> dict[str, str]:
    """A short name for each model: the last part of its path, numbered where two are alike."""
    from .models import model_name

    named: dict[str, str] = {}
    for source in sources:
        base = model_name(source)
        name, number = base, 2
        while name in named:
            name, number = f"{base}-{number}", number + 1
        named[name] = source
    return named


def _load(
    source: str,
    labels: str,
    allow_unpickle: bool,
    budget: int | None,
    timeout: float,
    batch_size: int,
    cache: Path | None,
) -> Classifier:
    from .models import load_model

    return load_model(
        source,
        labels=_label_list(labels),
        allow_unpickle=allow_unpickle,
        budget=budget,
        timeout=timeout,
        batch_size=batch_size,
        cache=cache,
    )


def _target(target: str, labels: tuple[str, ...]) -> str | int:
    from .core.plugins import nearest

    if target == "predicted":
        return target
    if target in labels:
        return labels.index(target)
    if target.isdecimal() and int(target) < len(labels):
        return int(target)
    raise PluginError(f"no label is called {target!r}: {nearest(target, labels)}")


def _numbers(option: str, text: str) -> tuple[float, ...]:
    try:
        return tuple(float(part) for part in text.split(",") if part.strip())
    except ValueError:
        raise PluginError(
            f"expected {option} to be numbers such as 1.0,0.9; got {text!r}"
        ) from None


def _given_texts(texts: list[str], language: str, max_words: int) -> list[Any]:
    from .data import read_text

    typed = texts != ["-"]
    lines = texts if typed else [line.rstrip("\n") for line in sys.stdin if line.strip()]
    found = []
    for number, line in enumerate(lines, start=1):
        if "\0" in line:
            raise DataError(f"text {number} holds a NUL byte: expected plain text. Remove it")
        text = read_text(line, language)
        if not text.n_features:
            raise DataError(f"text {number} has no words: expected at least one")
        if text.n_features > max_words:
            raise DataError(
                f"text {number} has {text.n_features:,} words: expected at most {max_words:,}. "
                "Shorten it, or raise --max-words"
            )
        found.append(text)
    if not found:
        raise DataError("expected at least one text on standard input, got none")
    return found


def _explained(
    model: Classifier,
    explainer: Any,
    inputs: list[tuple[str, Any]],
    target: str | int,
    seed: int,
    as_json: bool,
    done: Collection[int] = (),
) -> Iterator[tuple[int, Any]]:
    """The place and the explanation of every input not done yet, in batches of like length."""
    from .auditing import Progress
    from .auditing import explain as run_explain
    from .engine.batches import by_length, mixed

    left = [i for i in range(len(inputs)) if i not in done]
    batches = list(by_length([inputs[i][1].n_features for i in left], budget=1000))
    count = len(inputs) - len(left)
    with Bars(as_json) as bars:
        for batch in (batches[i] for i in mixed(len(batches))):
            places = [left[i] for i in batch]
            texts = [inputs[i][1] for i in places]
            made = run_explain(model, texts, explainer, target=target, seed=seed)
            yield from zip(places, made, strict=True)
            count += len(batch)
            if len(inputs) > 1:
                bars.watch("explain", Progress(count, len(inputs), explainer.spec))


def _explained_to(
    out: Path,
    model: Classifier,
    explainer: Any,
    inputs: list[tuple[str, Any]],
    target: str | int,
    seed: int,
    as_json: bool,
) -> None:
    """Explanations as JSON lines; what was written before a kill is not asked again."""
    import hashlib

    from .auditing import known_answers
    from .results.lines import Lines

    texts = hashlib.sha256(repr([(name, t.text, t.spans) for name, t in inputs]).encode())
    asked = {
        "method": explainer.spec,
        "answers": known_answers(model, [text for _, text in inputs]),
        "inputs": texts.hexdigest(),
        "target": target,
        "seed": seed,
    }
    lines = Lines(out, asked)
    lines.open()
    rows: list[tuple[int, Any]] = []
    for place, a in _explained(model, explainer, inputs, target, seed, as_json, lines.done):
        rows.append((place, _attribution_json(inputs[place][0], a, model.labels)))
        if len(rows) >= KEPT_AT_A_TIME:
            lines.add(rows)
            rows = []
    lines.add(rows)
    lines.finish()


# ---- showing --------------------------------------------------------------------------------


def _stderr() -> Console:
    from rich.console import Console

    return Console(stderr=True, highlight=False)


def _stdout() -> Console:
    from rich.console import Console

    return Console(highlight=False)


def _print_json(content: Any) -> None:
    text = json.dumps(_finite(content), ensure_ascii=False)
    print(text.encode("utf-8", "replace").decode())


def _finite(content: Any) -> Any:
    """JSON has neither NaN nor infinity: what is not defined is null."""
    if isinstance(content, dict):
        return {str(k): _finite(v) for k, v in content.items()}
    if isinstance(content, list | tuple):
        return [_finite(v) for v in content]
    if isinstance(content, float) and not math.isfinite(content):
        return None
    return content


def _brief(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.4g}"
    if isinstance(value, dict):
        return "(" + ", ".join(f"{k} {_brief(v)}" for k, v in value.items()) + ")"
    return str(value)


def _balance(balance: dict[str, int]) -> str:
    total = sum(balance.values())
    return ", ".join(f"{name} {n} ({n / total:.0%})" for name, n in balance.items())


def _attribution_json(name: str, a: Any, labels: tuple[str, ...]) -> dict[str, Any]:
    return _finite(  # type: ignore[no-any-return]
        {
            "id": name,
            "text": a.input.text,
            "words": list(a.input.words),
            "spans": [list(span) for span in a.input.spans],
            "target": labels[a.target],
            "scores": [float(s) for s in a.scores],
            "base_value": a.base_value,
            "output_value": a.output_value,
            "notes": {k: float(v) for k, v in a.notes.items()},
        }
    )


def _standing_json(standing: Any) -> dict[str, Any]:
    from dataclasses import asdict

    return asdict(standing)


def _tell_audit(
    result: Any, report: Path, as_json: bool, failures: list[str] | None = None
) -> None:
    from dataclasses import asdict

    if as_json:
        _print_json(
            {
                "run": str(result.folder),
                "report": str(report),
                "verdicts": [asdict(v) for v in result.verdicts],
                "standings": [_standing_json(s) for s in result.standings],
                "models": {m: s.get("", {}) for m, s in result.run.summaries().items()},
                "computed": result.computed,
                "reused": result.reused,
                "failures": failures or [],
            }
        )
        return
    from .reports.terminal import print_standings

    console = _stdout()
    print_standings(console, result.run)
    for failure in failures or []:
        _stderr().print(failure, style="red", markup=False)
    console.print(f"\nReport: {report}", markup=False, soft_wrap=True)


def _tell_dryrun(done: Any, report: Path, as_json: bool) -> None:
    from dataclasses import asdict

    from .results.dryrun import headline, remarks

    found = done.findings
    if as_json:
        _print_json(
            {
                "dryrun": str(done.folder),
                "report": str(report),
                "headline": headline(done.record, found),
                "remarks": remarks(done.record, found),
                "methods": [asdict(p) for p in found.profiles],
                "cues": [asdict(cell) for cell in found.cells],
                "trials": [asdict(trial) for trial in done.record.trials],
                "made": done.made,
                "reused": done.reused,
            }
        )
        return
    from .reports.terminal import print_dryrun

    console = _stdout()
    print_dryrun(console, done.record, found)
    console.print(f"\nReport: {report}", markup=False, soft_wrap=True)


class Bars:
    """Progress on standard error; plain lines where that is not a terminal."""

    def __init__(self, quiet: bool) -> None:
        self.console = _stderr()
        self.quiet = quiet
        self.said: dict[str, int] = {}
        self.begun: dict[str, tuple[float, int]] = {}
        self.tasks: dict[str, Any] = {}
        self.bar: Any = None

    def __enter__(self) -> Bars:
        from rich.progress import (
            BarColumn,
            MofNCompleteColumn,
            Progress,
            TextColumn,
            TimeElapsedColumn,
            TimeRemainingColumn,
        )

        if self.console.is_terminal:
            self.bar = Progress(
                TextColumn("{task.description}", markup=False),
                BarColumn(),
                MofNCompleteColumn(),
                TimeElapsedColumn(),
                TimeRemainingColumn(),
                console=self.console,
            )
            self.bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self.bar is not None:
            self.bar.stop()

    def watch(self, what: str, progress: Any) -> None:
        """Takes the progress of a training or of an audit."""
        name = type(progress).__name__
        if name == "Epoch":
            rate = progress.selection_rate
            self.console.print(
                f"{what}: epoch {progress.number + 1}, loss {progress.loss:.3f}, "
                f"training {progress.train_accuracy:.3f}, "
                f"validation {progress.validation_accuracy:.3f}, "
                f"{'' if rate is None else f'words read {rate:.3f}, '}{progress.seconds:.1f} s",
                markup=False,
            )
        elif hasattr(progress, "batches"):
            key = f"{what}: epoch {progress.epoch + 1}/{progress.epochs}"
            self._show(key, progress.batch, progress.batches, f"{key}, loss {progress.loss:.3f}")
        else:
            self._show(what, progress.done, progress.total, f"{what}: {progress.doing}")

    def _show(self, key: str, done: int, total: int, text: str) -> None:
        if self.bar is not None:
            if key not in self.tasks:
                self.tasks[key] = self.bar.add_task(text, total=total)
            self.bar.update(self.tasks[key], completed=done, total=total, description=text)
            if done == total and "epoch" in key:
                self.bar.update(self.tasks[key], visible=False)
            return
        started, before = self.begun.setdefault(key, (time.monotonic(), done))
        tenth = 10 * done // max(total, 1)
        if "epoch" not in key and tenth > self.said.get(key, 0):
            self.said[key] = tenth
            left = (time.monotonic() - started) / max(done - before, 1) * (total - done)
            soon = f", about {left / 60:.0f} min left" if done > before and left >= 60 else ""
            self.console.print(f"{text} ({done} of {total}{soon})", markup=False)


def _list(registry: Any, as_json: bool, extra: Any, heading: str) -> None:
    from .core.plugins import first_line, settings

    rows = []
    for name in registry.names():
        cls = registry.get(name)
        options = settings(cls()) if _has_defaults(cls) else {}
        row = {"name": name, "about": first_line(cls), "settings": options}
        if heading:
            row[heading] = extra(cls)
        rows.append(row)
    if as_json:
        _print_json({registry.kind + "s": rows})
        return
    from rich.markup import escape
    from rich.table import Table

    table = Table(box=None, pad_edge=False)
    table.add_column("name", style="bold", no_wrap=True)
    table.add_column("what it is, and its settings")
    if heading:
        table.add_column(heading, style="dim")
    for row in rows:
        shown = ", ".join(f"{k}={v}" for k, v in row["settings"].items())
        about = row["about"] if not shown else f"{row['about']}\n[dim]{escape(shown)}[/dim]"
        table.add_row(row["name"], about, *([row[heading]] if heading else []))
    _stdout().print(table)


def _has_defaults(cls: type) -> bool:
    import dataclasses

    return dataclasses.is_dataclass(cls) and all(
        f.default is not dataclasses.MISSING for f in dataclasses.fields(cls)
    )


# ---- entry ----------------------------------------------------------------------------------


def main() -> None:
    """Runs a command; what goes wrong is said in a sentence, with a traceback on --debug only."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # a terminal that cannot show a sign still runs
    warnings.showwarning = _warning_told
    arguments = sys.argv[1:]
    debug = "--debug" in arguments
    arguments = [a for a in arguments if a != "--debug"]
    with _errors_told(debug, "--json" in arguments):
        app(args=arguments, prog_name="veracity")


def _warning_told(
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    file: TextIO | None = None,
    line: str | None = None,
) -> None:
    """Our own warnings in a line each; those of the libraries below are not the user's concern."""
    if category is UserWarning:
        print(f"veracity: {message}", file=sys.stderr)


@contextmanager
def _errors_told(debug: bool, as_json: bool) -> Iterator[None]:
    try:
        yield
    except VeracityError as error:
        _fail(str(error), BAD_INPUT, debug, as_json, error)
    except (KeyboardInterrupt, SystemExit) as error:
        if isinstance(error, SystemExit) and error.code != INTERRUPTED:
            raise
        message = "interrupted. What was written is kept: the same command goes on from there"
        _fail(message, INTERRUPTED, debug, as_json, error)
    except BrokenPipeError:
        sys.stderr.close()
        raise SystemExit(0) from None
    except (OSError, MemoryError) as error:
        _fail(f"{error or type(error).__name__}", BAD_INPUT, debug, as_json, error)
    except Exception as error:
        message = (
            f"unexpected {type(error).__name__}: {error}. This should not happen: please report "
            "it with the output of the same command and --debug"
        )
        _fail(message, BUG, debug, as_json, error)


def _fail(message: str, code: int, debug: bool, as_json: bool, error: BaseException) -> None:
    if debug:
        raise error
    from .reports.showing import printable

    if as_json:
        _print_json({"error": message})
    for i, line in enumerate(message.splitlines()):
        print(("" if i else "veracity: ") + printable(line), file=sys.stderr)
    raise SystemExit(code) from None
