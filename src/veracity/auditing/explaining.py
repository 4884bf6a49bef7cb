"""One method on some texts, each explanation drawn from a generator of its own."""

from __future__ import annotations

import dataclasses
import operator
from collections.abc import Sequence
from typing import Any, SupportsIndex, cast

import numpy as np

from ..core.attributions import Attribution
from ..core.classifiers import Classifier, Truncating, abilities
from ..core.errors import DataError, ModelError
from ..core.explainers import Explainer
from ..core.inputs import FloatArray, Input, Text
from ..core.plugins import blamed_on, nearest
from ..data.loading import Source
from ..data.words import read_text
from ..engine.inference import probabilities
from ..engine.seeds import generator
from ..explainers import explainers as known_explainers
from ..models.loading import load_model
from .labels import introduce
from .training_sets import fit_explainer

Target = str | int
"""`predicted`, `gold`, or a label's name or number (definitions 0.3)."""

NOISE = 1e-7
"""Scores none of which is this share of the explained value are what its digits cannot tell."""


def explain(
    model: Any,
    texts: str | Input | Sequence[str | Input],
    method: str | Explainer = "lime",
    *,
    target: Target = "predicted",
    seed: int = 0,
    language: str = "auto",
    train: Source | None = None,
) -> list[Attribution[Any]]:
    """One method's explanations of texts, or of other inputs; the same input always gets the same.

    `train` is what methods that learn learn from; by default what the model was trained on. An
    explanation's notes say how many words the model did not read (`unread`), if there are any.
    """
    loaded = load_model(model)
    explainer = known_explainers.make(method)
    single = isinstance(texts, str) or hasattr(texts, "n_features")
    given = cast(Sequence[str | Input], [texts] if single else texts)
    inputs = [read_text(t, language) if isinstance(t, str) else t for t in given]
    kind = inputs[0].kind if inputs else Text.kind
    introduce(loaded, inputs)
    explainer = explainer.for_kind(kind)
    check_ability(explainer, loaded, kind)
    if not inputs:
        return []
    wanted = wanted_target(target, loaded.labels)
    if target == "gold":
        raise DataError(
            "target=gold needs labelled data: use `veracity audit`, or a label's name or number"
        )
    explainer = fit_explainer(explainer, loaded, train, seed=seed)
    answers = probabilities(loaded, inputs)
    targets = chosen_targets(wanted, answers, [0] * len(inputs))
    found = attributions(explainer, loaded, inputs, targets, list(map(str, inputs)), seed)
    unread = words_unread(loaded, inputs)
    return [
        dataclasses.replace(one, notes={**one.notes, "unread": float(words)}) if words else one
        for one, words in zip(found, unread, strict=True)
    ]


def attributions(
    explainer: Explainer,
    model: Classifier,
    inputs: Sequence[Input],
    targets: Sequence[int],
    names: Sequence[str],
    seed: int,
    *,
    second: bool = False,
) -> list[Attribution]:
    """A batch of checked explanations, each drawn from a generator of its own name; a second draw
    from another."""
    spec = explainer.spec
    more = ("second draw",) if second else ()
    some = [i for i, text in enumerate(inputs) if text.n_features]
    with blamed_on(explainer):
        found = explainer.explain(
            model,
            [inputs[i] for i in some],
            [targets[i] for i in some],
            [generator(seed, explainer.stream, names[i], *more) for i in some],
        )
        if len(found) != len(some):
            raise ValueError(f"expected {len(some)} explanations, one per text; got {len(found)}")
        for one in found:
            if not isinstance(one, Attribution):
                raise TypeError(f"expected Attributions, got {type(one).__name__}")
    by_place = dict(zip(some, found, strict=True))
    result = []
    for i, (text, target) in enumerate(zip(inputs, targets, strict=True)):
        one = by_place.get(i) or Attribution(text, target, np.zeros(0))
        if not np.isfinite(one.scores).all():
            raise ModelError(f"{spec} gave a score that is not a number for {str(text)[:80]!r}")
        result.append(dataclasses.replace(_without_noise(one), method=spec))
    return result


def _without_noise(one: Attribution) -> Attribution:
    """An explanation all of which is rounding says nothing, and shows nothing."""
    known = [abs(v) for v in (one.output_value, one.base_value) if np.isfinite(v)]
    if np.abs(one.scores).max(initial=0.0) >= NOISE * max(known, default=0.0):
        return one
    return dataclasses.replace(
        one,
        scores=np.zeros_like(one.scores),
        fragments=None if one.fragments is None else (),
        notes={k: v for k, v in one.notes.items() if k not in ("r2", "stability")},
    )


def check_ability(explainer: Explainer, model: Classifier, kind: str = Text.kind) -> None:
    """A method that the inputs and the model can support, or a sentence that says which ones do."""
    if unfit := explainer.unfit(kind):
        raise DataError(f"{explainer.spec} {unfit}. Choose another method")
    missing = explainer.missing(model)
    if missing is None:
        return
    able = [
        n
        for n in known_explainers.names()
        if isinstance(model, known_explainers.get(n).needs)
        and not known_explainers.make(n).for_kind(kind).unfit(kind)
    ]
    raise ModelError(
        f"{explainer.spec} needs a model with {missing}; this one has only "
        f"{', '.join(abilities(model))}. These would work: {', '.join(able)}"
    )


def words_unread(model: Classifier, inputs: Sequence[Input]) -> list[int]:
    """How many words of each text stand beyond a model's limit: they decide nothing, score zero."""
    if not isinstance(model, Truncating):
        return [0] * len(inputs)
    read = model.features_read(inputs)
    return [t.n_features - n for t, n in zip(inputs, read, strict=True)]


def wanted_target(target: Target, labels: Sequence[str]) -> Target:
    """The target with a label's number in place of its name, or a sentence that says what there
    is."""
    if target in ("predicted", "gold"):
        return target
    if target in labels:
        return list(labels).index(str(target))
    digits = isinstance(target, str) and target.isdecimal()
    if digits or isinstance(target, SupportsIndex):
        place = int(target) if isinstance(target, str) else operator.index(target)
        if 0 <= place < len(labels):
            return place
    raise DataError(
        f"no label is called {target!r}: {nearest(str(target), labels)} (a target is predicted, in "
        f"audits gold, a label's name, or its number below {len(labels)})"
    )


def chosen_targets(target: Target, answers: FloatArray, gold: Sequence[int]) -> list[int]:
    """What is explained of each text, once names are numbers."""
    if target == "predicted":
        return [int(i) for i in answers.argmax(axis=1)]
    return list(gold) if target == "gold" else [int(target)] * len(answers)
