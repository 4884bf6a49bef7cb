"""Spec strings and options, made up and mutated: read, or refused in a sentence."""

from __future__ import annotations

import dataclasses
import functools
import random
import string
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ..case import Broken, bounded_memory, tried

ABOUT = "spec strings, columns, bars, headers; explainers that were made are used"
SHARE = 1.0
DEADLINE = 60.0

VALUES = (
    *("0", "1", "-1", "2", "3", "10", "0.5", "-0.5", "1e-9", "1e308", "-1e308", "5e-324", "1e999"),
    *("nan", "inf", "True", "False", "None", "null", "true", "''", "'a'", "a", "paper", "released"),
    *(
        "()",
        "(1,)",
        "(1, 2)",
        "(0,)",
        "(-1,)",
        "('a', 'b')",
        "('', '')",
        "[]",
        "[1]",
        "{}",
        "{1: 2}",
    ),
    *(
        "'\\x00'",
        "'\\ud800'",
        "'\\n'",
        "b'a'",
        "...",
        "1j",
        "-",
        "1 if 1 else 2",
        "lambda: 0",
        "f'{1}'",
    ),
    *("__import__('os')", "(" * 50 + ")" * 50, "'" + "a" * 300 + "'", "1_000", "0x10", "٣", "好"),
)
"""None of them asks for much work, only for odd work."""
SIGNS = (
    string.ascii_lowercase + string.digits + "()[]{},=.:;'\"\\ \t\n_-+*/<>!@#$%^&|~`?\x00é好\ud800‮"
)


def prepare(place: Path) -> None:
    """Nothing to write."""


@functools.cache
def _registries() -> dict[str, Any]:
    from veracity.changes import changes
    from veracity.data.corpora import corpora
    from veracity.data.formats import formats
    from veracity.explainers import explainers
    from veracity.metrics import metrics
    from veracity.models.architectures import architectures
    from veracity.recipes.papers import recipes
    from veracity.truths import truths

    found = (explainers, metrics, changes, architectures, truths, formats, corpora, recipes)
    return {registry.kind: registry for registry in found}


@functools.cache
def _names(kind: str) -> dict[str, tuple[str, ...]]:
    registry = _registries()[kind]
    return {
        name: tuple(f.name for f in dataclasses.fields(registry.get(name)) if f.init)
        for name in registry.names()
    }


def case(number: int, rng: random.Random, place: Path, work: Path) -> str:
    if rng.random() < 0.2:
        return _option(rng)
    kind = rng.choice(list(_registries()))
    spec = _spec(rng, _names(kind))
    if rng.random() < 0.3:
        spec = _mutated(rng, spec)
    made: list[Any] = []
    registry = _registries()[kind]
    profile = rng.choice(("recommended", "recommended", "paper", "released", "none"))
    with bounded_memory():
        tried(lambda: made.append(registry.make(spec, profile)))
        if not made:
            return kind
        _same_again(registry, made[0])
        if kind in ("explainer", "change") and rng.random() < 0.5:
            tried(lambda: _used(kind, made[0]))
            return f"{kind} used"
    return kind


def _spec(rng: random.Random, names: dict[str, tuple[str, ...]]) -> str:
    name = rng.choice(list(names))
    known = [*names[name], "profile", "nothing"]
    chosen = rng.sample(known, min(len(known), rng.choice((0, 1, 1, 2, 3))))
    return f"{name}({', '.join(f'{key}={rng.choice(VALUES)}' for key in chosen)})"


def _mutated(rng: random.Random, text: str) -> str:
    letters = list(text)
    for _ in range(rng.choice((1, 2, 5))):
        place = rng.randint(0, len(letters))
        what = rng.random()
        if what < 0.4:
            letters[place:place] = rng.choice(SIGNS) * rng.choice((1, 1, 3, 40))
        elif what < 0.7:
            del letters[place : place + rng.choice((1, 1, 4))]
        else:
            start = rng.randint(0, len(letters))
            letters[place:place] = letters[start : start + 8]
    return "".join(letters)


def _same_again(registry: Any, made: Any) -> None:
    """What was read prints as a text that reads as the same."""
    again = registry.make(made.spec)
    if again.spec != made.spec:
        raise Broken(f"{made.spec!r} reads as {again.spec!r}")


class _Model:
    """A model of two words, with nothing but probabilities."""

    labels = ("bad", "good")

    def probabilities(self, inputs: Any) -> Any:
        import numpy as np

        p = np.array([0.2 + 0.6 * ("great" in t.words) - 0.1 * ("dull" in t.words) for t in inputs])
        return np.stack([1 - p, p], axis=1)


def _used(kind: str, made: Any) -> None:
    if kind == "explainer":
        import veracity

        texts = ["a great film , not dull at all", "dull"]
        veracity.explain(_Model(), texts, made)
        return
    from veracity.changes import changed
    from veracity.data.loading import load_data

    changed(load_data("made_reviews(n=6)"), [made], seed=0)


def _option(rng: random.Random) -> str:
    from veracity.auditing.thresholds import Threshold
    from veracity.cli.reading import headers, label_list, numbers
    from veracity.core.plugins import split_specs
    from veracity.data.readers import Columns

    readers: dict[str, tuple[Callable[[str], object], tuple[str, ...]]] = {
        "bar": (
            Threshold.parse,
            ("erasure.compactness=0.2", "lime:erasure.new_p=0.3", "accuracy=0.8"),
        ),
        "columns": (Columns.parse, ("text=review,label=stars", "text=a,label=", "id=x,text=y")),
        "header": (
            lambda t: headers([t]),
            ("Authorization: Bearer $TOKEN", "X-Key: $$a", "A: ${B}"),
        ),
        "numbers": (lambda t: numbers("--strengths", t), ("1.0,0.9", "1", "")),
        "labels": (label_list, ("a,b", "a")),
        "specs": (split_specs, ("lime(samples=5), occlusion", "lime, shap(form=exact)")),
        "model": (
            _load,
            ("http://user:secret@127.0.0.1:1/a?key=b", "module:name", "a.py:f", "m.pkl"),
        ),
    }
    name = rng.choice(list(readers))
    read, examples = readers[name]
    text = _mutated(rng, rng.choice(examples))
    tried(lambda: read(text))
    return f"{name} option"


def _load(text: str) -> None:
    from veracity.models.loading import load_model

    load_model(text)
