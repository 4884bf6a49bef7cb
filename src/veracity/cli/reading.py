"""What was asked on the command line, read."""

from __future__ import annotations

import dataclasses
import functools
import inspect
import os
import shlex
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from string import Template
from typing import TYPE_CHECKING, Any, get_type_hints

import typer

from ..core.errors import DataError, PluginError
from ..core.examples import read_labels
from ..core.foreign import describe_failure, is_interrupt, is_own_file, raised_at
from ..core.plugins import blame
from ..core.secrets import header_secrets, redact, register
from .options import (
    AllowUnpickle,
    BatchSize,
    Budget,
    ColumnsOption,
    Header,
    Json,
    Labels,
    Language,
    Layout,
    Masks,
    MaxWords,
    Segments,
    Size,
    SkipBad,
    Timeout,
)
from .showing import Answer, without_token

if TYPE_CHECKING:
    from ..auditing.training_sets import DataConfig
    from ..core.classifiers import Classifier
    from ..core.examples import Dataset
    from ..models.architecture import Architecture, Training


def check_new(out: Path, *, records: bool = True) -> None:
    """Told before any work is done: nothing is written over, and records get a name under which
    they can be read back."""
    from ..core.files import check_new as check_new_file
    from ..data.format import check_ending

    if records:
        check_ending(out)
    check_new_file(out)


def label_list(labels: str) -> list[str] | None:
    return read_labels(labels) if labels else None


@dataclass(frozen=True, kw_only=True)
class FileOptions:
    """How a file of examples is read."""

    columns: ColumnsOption = ""
    labels: Labels = ""
    language: Language = "auto"
    max_words: MaxWords = 5000
    skip_bad: SkipBad = False
    layout: Layout = "auto"
    size: Size = ""
    segments: Segments = None
    masks: Masks = ""

    def reading(self, source: str, limit: int | None = None) -> DataConfig:
        from ..auditing.training_sets import DataConfig

        return DataConfig(source, **asdict(self), limit=limit)

    def data(self, source: str) -> Dataset:
        return self.reading(source).data()

    def part(self, source: str, split: str, limit: int | None, seed: int) -> Dataset:
        """The part asked for, or a sample of it."""
        return part_of(self.data(source), source, split, limit, seed)


@dataclass(frozen=True)
class ModelOptions:
    """How somebody's model is loaded and asked."""

    allow_unpickle: AllowUnpickle = False
    budget: Budget = None
    timeout: Timeout = 30.0
    batch_size: BatchSize = 32
    header: Header = None

    def source(self, source: str, labels: str = "") -> str:
        """A model as another command would name it, without what opens it."""
        words = [redact(source)]
        words += ["--allow-unpickle"] if self.allow_unpickle else []
        words += ["--labels", labels] if labels else []
        for header in self.header or []:
            words += ["--header", without_token(header)]
        return shlex.join(words)

    def model(self, source: str, labels: str, *, cache: Path | None = None) -> Classifier:
        from ..models.loading import load_model

        return load_model(
            source,
            labels=label_list(labels),
            cache=cache,
            allow_unpickle=self.allow_unpickle,
            budget=self.budget,
            timeout=self.timeout,
            batch_size=self.batch_size,
            headers=headers(self.header or []),
        )

    def models(
        self, names: Mapping[str, str], labels: str, *, beside: Path
    ) -> dict[str, Classifier]:
        """Models by name; the answers of endpoints are kept beside the folder of a run, and links
        are followed as far as they lead."""
        cache = Path(f"{os.path.realpath(beside)}.answers.sqlite")
        return {name: self.model(source, labels, cache=cache) for name, source in names.items()}


def is_costly(models: Mapping[str, Classifier]) -> bool:
    """Whether questions to one of them cost money, so that a person wants to know how many."""
    from ..core.classifiers import Traits

    return any(Traits(model).costly for model in models.values())


OUR_HEADERS = ("content-length", "transfer-encoding", "host", "connection", "content-type")


def headers(lines: list[str]) -> dict[str, str]:
    """`Name: value` with variables of the environment put in; no message repeats a value."""
    found = {}
    for line in lines:
        name, colon, value = line.partition(":")
        if not colon:
            raise PluginError(
                "expected --header to be a name, a colon and a value, such as "
                "'Authorization: Bearer $TOKEN'; got one without a colon"
            )
        if name.strip().lower() in OUR_HEADERS:
            raise PluginError(
                f"--header {name.strip()} is set by the command itself, from what it sends. Leave "
                "it out"
            )
        try:
            found[name.strip()] = Template(value.strip()).substitute(os.environ).strip()
            register(header_secrets(found[name.strip()]))
        except KeyError as missing:
            raise PluginError(
                f"--header {name.strip()} names the variable {missing.args[0]}, which is not set "
                "in the environment. Export it, or write $$ for a dollar sign"
            ) from None
        except ValueError:
            raise PluginError(
                f"--header {name.strip()} holds a dollar sign that begins no variable's name. "
                "Write $$ for a dollar sign"
            ) from None
    return found


GROUPS = (FileOptions, ModelOptions)


def command(verb: Callable[..., Answer]) -> Callable[..., None]:
    """A verb as the command line sees it: in place of a group, each of its options; its answer is
    printed, as JSON where that is asked for, and gives the exit code."""
    own, spread, groups = [], [], {}
    for one in inspect.signature(verb, eval_str=True).parameters.values():
        if one.annotation not in GROUPS:
            own.append(one.replace(kind=inspect.Parameter.KEYWORD_ONLY))
            continue
        groups[one.name] = one.annotation
        hints = get_type_hints(one.annotation, include_extras=True)
        for option in fields(one.annotation):
            spread.append(
                inspect.Parameter(
                    option.name,
                    inspect.Parameter.KEYWORD_ONLY,
                    default=option.default,
                    annotation=hints[option.name],
                )
            )
    as_json = inspect.Parameter(
        "as_json", inspect.Parameter.KEYWORD_ONLY, default=False, annotation=Json
    )
    shown = [*(one for one in own if one.name != "as_json"), *spread, as_json]

    @functools.wraps(verb)
    def run(*, as_json: bool, **given: Any) -> None:
        for name, group in groups.items():
            given[name] = group(**{option.name: given.pop(option.name) for option in fields(group)})
        if any(one.name == "as_json" for one in own):
            given["as_json"] = as_json
        with only_own_exits():
            answer = verb(**given)
            answer.print(as_json)
            if answer.exit_code:
                raise typer.Exit(answer.exit_code)

    run.__signature__ = inspect.Signature(shown)  # type: ignore[attr-defined]
    run.__annotations__ = {one.name: one.annotation for one in shown}
    return run


@contextmanager
def only_own_exits() -> Iterator[None]:
    """A command ends where we say so: what a model or a plug-in does to end it is its fault."""
    try:
        with blame():
            yield
    except (SystemExit, KeyboardInterrupt, GeneratorExit, typer.Exit) as error:
        file, line = raised_at(error)
        # where nobody reads on, what prints for us leaves by itself
        if (
            is_own_file(file)
            or is_interrupt(error)
            or isinstance(error.__context__, BrokenPipeError)
        ):
            raise
        raise PluginError(
            f"code that is not ours ({file}, line {line}) {describe_failure(error)}. Mend it "
            "there, or leave it out; --debug shows how it came to that"
        ) from error


def part_of(data: Dataset, source: str, part: str, limit: int | None, seed: int) -> Dataset:
    """The part asked for: of a corpus the test part, of somebody's file all of it."""
    from ..data.splits import sampled, split

    part = part or ("all" if Path(source).exists() else "test")
    if part not in ("all", "train", "validation", "test"):
        raise PluginError(f"expected --split to be train, validation, test or all, got {part!r}")
    chosen = data if part == "all" else getattr(split(data, seed=seed), part)
    return sampled(chosen, limit, seed=seed)


def training_data(source: str, file: FileOptions, seed: int) -> Dataset | None:
    from ..auditing.training_sets import training_part

    if not source:
        return None
    return training_part(file.data(source), of_file=Path(source).exists(), seed=seed)


def short_names(sources: list[str]) -> dict[str, str]:
    """A short name for each model: the last part of its path, numbered where two are alike."""
    from ..models.loading import model_name

    named: dict[str, str] = {}
    for source in sources:
        base = model_name(source)
        name, number = base, 2
        while name in named:
            name, number = f"{base}-{number}", number + 1
        named[name] = source
    return named


def read_training(architecture: Architecture, **options: Any) -> Training:
    """How an architecture is trained, with what was asked for in place of its own."""
    asked = {name: value for name, value in options.items() if value is not None}
    try:
        return dataclasses.replace(architecture.usual_training, **asked)
    except ValueError as error:
        raise PluginError(str(error)) from None


def emotional_words(files: Sequence[Path] | None) -> Mapping[str, int]:
    """Those of these files, or a small stock of our own."""
    from ..data.lexicon import own_lexicon, read_lexicon

    return read_lexicon(*files) if files else own_lexicon()


def numbers(option: str, text: str) -> tuple[float, ...]:
    try:
        return tuple(float(part) for part in text.split(",") if part.strip())
    except ValueError:
        raise PluginError(
            f"expected {option} to be numbers such as 1.0,0.9; got {text!r}"
        ) from None


def typed_texts(texts: list[str], language: str, max_words: int) -> Dataset:
    """The texts that were typed, or lines of standard input, by their numbers from 0."""
    from ..core.examples import UNLABELLED, Dataset, Example
    from ..data.words import read_text

    typed = texts != ["-"]
    lines = texts if typed else [line.rstrip("\n") for line in sys.stdin if line.strip()]
    found: list[Example[Any]] = []
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
        found.append(Example(str(len(found)), text, 0))
    if not found:
        raise DataError("expected at least one text on standard input, got none")
    return Dataset("these texts", (UNLABELLED,), tuple(found))
