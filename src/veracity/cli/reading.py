"""What was asked on the command line, read."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..core.errors import DataError, PluginError

if TYPE_CHECKING:
    from ..core.classifiers import Classifier
    from ..core.examples import Dataset


def label_list(labels: str) -> list[str] | None:
    return [name.strip() for name in labels.split(",")] if labels else None


def read_data(
    source: str,
    columns: str,
    labels: str,
    language: str,
    max_words: int,
    skip_bad: bool,
    layout: str = "auto",
) -> Dataset:
    from ..auditing.learning import Reading

    return Reading(source, columns, labels, language, max_words, skip_bad, layout=layout).data()


def part_of(data: Dataset, source: str, part: str, limit: int | None, seed: int) -> Dataset:
    """The part asked for: of a corpus the test part, of somebody's file all of it."""
    from ..data import sampled, split

    part = part or ("all" if Path(source).exists() else "test")
    if part not in ("all", "train", "validation", "test"):
        raise PluginError(f"expected --split to be train, validation, test or all, got {part!r}")
    chosen = data if part == "all" else getattr(split(data, seed=seed), part)
    return sampled(chosen, limit, seed=seed)


def training_data(
    source: str,
    columns: str,
    labels: str,
    language: str,
    max_words: int,
    skip_bad: bool,
    seed: int,
    layout: str = "auto",
) -> Dataset | None:
    from ..auditing.learning import training_part

    if not source:
        return None
    read = read_data(source, columns, labels, language, max_words, skip_bad, layout)
    return training_part(read, of_file=Path(source).exists(), seed=seed)


def short_names(sources: list[str]) -> dict[str, str]:
    """A short name for each model: the last part of its path, numbered where two are alike."""
    from ..models import model_name

    named: dict[str, str] = {}
    for source in sources:
        base = model_name(source)
        name, number = base, 2
        while name in named:
            name, number = f"{base}-{number}", number + 1
        named[name] = source
    return named


def loaded_model(
    source: str,
    labels: str,
    allow_unpickle: bool,
    budget: int | None,
    timeout: float,
    batch_size: int,
    cache: Path | None,
) -> Classifier:
    from ..models import load_model

    return load_model(
        source,
        labels=label_list(labels),
        allow_unpickle=allow_unpickle,
        budget=budget,
        timeout=timeout,
        batch_size=batch_size,
        cache=cache,
    )


def wanted_target(target: str, labels: tuple[str, ...]) -> str | int:
    from ..core.plugins import nearest

    if target == "predicted":
        return target
    if target in labels:
        return labels.index(target)
    if target.isdecimal() and int(target) < len(labels):
        return int(target)
    raise PluginError(f"no label is called {target!r}: {nearest(target, labels)}")


def numbers(option: str, text: str) -> tuple[float, ...]:
    try:
        return tuple(float(part) for part in text.split(",") if part.strip())
    except ValueError:
        raise PluginError(
            f"expected {option} to be numbers such as 1.0,0.9; got {text!r}"
        ) from None


def given_texts(texts: list[str], language: str, max_words: int) -> list[Any]:
    from ..data import read_text

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
