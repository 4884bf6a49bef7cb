"""The command line: one thin function per verb."""

from __future__ import annotations

import io
import json
import sys
import warnings
from collections.abc import Iterator
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
    import shutil
    from dataclasses import asdict, replace

    from .auditing.learning import Reading
    from .data import leaks, sampled, split
    from .engine.asking import probabilities
    from .metrics.accuracy import classification
    from .models import RECORD, save_model
    from .models.architectures import architectures
    from .models.training import train as run_training
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
    parts = split(sampled(read, limit, seed=seed), seed=seed)
    say = _stderr()
    leaked = len(leaks(parts))
    balance = printable(_balance(parts.train.balance))
    say.print(f"{len(parts.train)} texts to train on: {balance}", markup=False)
    if leaked:
        say.print(f"{leaked} texts stand in more than one of the given splits", style="yellow")
    with Bars(as_json) as bars:
        trained = run_training(
            architecture,
            parts.train,
            parts.validation,
            training=training,
            checkpoint=out / "checkpoint",
            watch=lambda progress: bars.watch(architecture.spec, progress),
        )
    answers = probabilities(trained.model, [e.input for e in parts.test])
    test = classification([e.label for e in parts.test], answers.argmax(axis=1).tolist())
    record = {
        "training": asdict(training),
        "data": {
            "name": read.name,
            "fingerprint": read.fingerprint(),
            "balance": parts.train.balance,
            "leaks": leaked,
            "reading": reading.recorded(),
        },
        "history": [asdict(e) for e in trained.history],
        "test": test,
    }
    save_model(trained.model, architecture, out, record=record)
    shutil.rmtree(out / "checkpoint", ignore_errors=True)
    if as_json:
        _print_json({"model": str(out), "architecture": architecture.spec, **record})
        return
    best = trained.best
    say.print(
        f"Best after epoch {best.number + 1}: validation {best.validation_accuracy:.3f}, "
        f"test {test['accuracy']:.3f} ({len(parts.test)} texts)"
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
    from .core.files import written_whole
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
    found = _explained(loaded, explainer, inputs, wanted, seed, as_json)
    if out is not None:
        with written_whole(out) as file:
            for name, a in found:
                line = json.dumps(_attribution_json(name, a, loaded.labels), ensure_ascii=False)
                file.write(line.encode("utf-8", "replace") + b"\n")
    if as_json:
        rows = [_attribution_json(name, a, loaded.labels) for name, a in found]
        _print_json({"method": explainer.spec, "attributions": rows})
    elif out is not None:
        print(out)
    else:
        from .reports.terminal import print_attributions

        print_attributions(_stdout(), [a for _, a in found], loaded.labels)


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
    run: Annotated[Path, typer.Argument(help="Folder of an audit.")],
    out: Annotated[Path | None, typer.Option(help="File to write.")] = None,
    as_json: Json = False,
) -> None:
    """Build the HTML report of a run anew, without its model or its data."""
    from .reports.html import write_report
    from .results.run import Run

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
) -> list[tuple[str, Any]]:
    """Explanations in the order of the inputs, made in batches of like length."""
    from .auditing import Progress
    from .auditing import explain as run_explain
    from .engine.batches import by_length, mixed

    batches = list(by_length([text.n_features for _, text in inputs], budget=1000))
    found: dict[int, Any] = {}
    with Bars(as_json) as bars:
        for batch in (batches[i] for i in mixed(len(batches))):
            texts = [inputs[i][1] for i in batch]
            made = run_explain(model, texts, explainer, target=target, seed=seed)
            found.update(zip(batch, made, strict=True))
            if len(inputs) > 1:
                bars.watch("explain", Progress(len(found), len(inputs), explainer.spec))
    return [(name, found[i]) for i, (name, _) in enumerate(inputs)]


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
    """JSON has no NaN: what is not defined is null."""
    if isinstance(content, dict):
        return {str(k): _finite(v) for k, v in content.items()}
    if isinstance(content, list | tuple):
        return [_finite(v) for v in content]
    if isinstance(content, float) and content != content:
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


class Bars:
    """Progress on standard error; plain lines where that is not a terminal."""

    def __init__(self, quiet: bool) -> None:
        self.console = _stderr()
        self.quiet = quiet
        self.said: dict[str, int] = {}
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
            self.console.print(
                f"{what}: epoch {progress.number + 1}, loss {progress.loss:.3f}, "
                f"training {progress.train_accuracy:.3f}, "
                f"validation {progress.validation_accuracy:.3f}, {progress.seconds:.1f} s",
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
            self.bar.update(self.tasks[key], completed=done, description=text)
            if done == total and "epoch" in key:
                self.bar.update(self.tasks[key], visible=False)
            return
        tenth = 10 * done // max(total, 1)
        if "epoch" not in key and tenth > self.said.get(key, 0):
            self.said[key] = tenth
            self.console.print(f"{text} ({done} of {total})", markup=False)


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
