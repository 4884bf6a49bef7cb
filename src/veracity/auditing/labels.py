"""Labels of data and models, brought to one order."""

from __future__ import annotations

import dataclasses
import textwrap
import warnings
from collections.abc import Mapping, Sequence

from ..core.classifiers import Classifier, Traits
from ..core.errors import DataError, ModelError
from ..core.examples import UNLABELLED, Dataset
from ..core.images import Image
from ..core.inputs import Input, Text, input_kind

SHOWN_LABELS = 10
"""So many labels that a model does not know are named."""

MEANT = {
    Text.kind: "Give it texts, or choose a model that reads {many}",
    Image.kind: "Name a file, a folder or a .zip of pictures that is there",
}
"""By the kind of input that a model reads, what to do when it is given {many} of another."""


def introduce(model: Classifier, inputs: Sequence[Input]) -> None:
    """Shows a model what it will be asked, before anything looks at its labels: for these
    somebody's code may have to be asked. One that reads another kind of input is told apart."""
    reads = Traits(model).reads
    strange = next((one for one in inputs if reads not in (None, one.kind)), None)
    if reads is not None and strange is not None:
        expected, seen = input_kind(reads).nouns, strange.nouns
        shown = textwrap.shorten(str(strange), 60, placeholder=" …")
        raise ModelError(
            f"expected {expected.many}, which this model reads; got {seen.many} ({shown!r}). "
            + MEANT[reads].format(many=seen.many)
        )
    Traits(model).probe_with(inputs)


def fit_labels(data: Dataset, models: Mapping[str, Classifier]) -> Dataset:
    """The data with its labels in the models' order and under the more telling names."""
    if not len(data):
        raise DataError(f"expected at least one example in {data.name}, got none")
    for model in models.values():
        introduce(model, [e.input for e in data])
    orders = {tuple(x.casefold() for x in m.labels): name for name, m in models.items()}
    if len({frozenset(order) for order in orders}) < len(orders):
        raise ModelError(
            f"the models {' and '.join(orders.values())} give the same labels in different "
            "orders, so one column would mean two things. Audit them in separate runs"
        )
    if not data.labelled:
        return _without_labels(data, models)
    for name, model in models.items():
        data = fit_labels_to(data, f"the model {name}", model.labels)
    return data


def _without_labels(data: Dataset, models: Mapping[str, Classifier]) -> Dataset:
    """Data that nobody labelled, under the labels that the models answer and one more."""
    if len({tuple(m.labels) for m in models.values()}) > 1:
        raise ModelError(
            f"{data.name} has no labels, and the models {' and '.join(models)} answer different "
            "ones. Audit them in separate runs"
        )
    answered = tuple(next(iter(models.values())).labels)
    if UNLABELLED in answered:
        raise ModelError(f"a label named {UNLABELLED!r} stands for none. Rename it in the model")
    examples = tuple(dataclasses.replace(e, label=len(answered)) for e in data)
    return dataclasses.replace(data, labels=(*answered, UNLABELLED), examples=examples)


def fit_labels_to(data: Dataset, name: str, labels: Sequence[str]) -> Dataset:
    """The same for labels that somebody of this name gives."""
    if data.labels == tuple(labels):
        return data
    folded = {label.casefold(): i for i, label in enumerate(labels)}
    used = {e.label for e in data}
    numbers = [_number(label) for label in data.labels]
    if all(data.labels[i].casefold() in folded for i in used):
        places = {i: folded[data.labels[i].casefold()] for i in used}
    elif all(numbers[i] is not None and numbers[i] < len(labels) for i in used):  # type: ignore[operator]
        places = {i: numbers[i] or 0 for i in used}
    elif len(labels) == len(data.labels) and all(_number(x) is not None for x in labels):
        warnings.warn(
            f"{name} does not name its labels: they are taken to be "
            f"{', '.join(data.labels)}, in this order. If that is wrong, say --labels",
            stacklevel=4,
        )
        return data
    else:
        strange = [data.labels[i] for i in sorted(used) if data.labels[i].casefold() not in folded]
        others = f" and {len(strange) - SHOWN_LABELS} others" * (len(strange) > SHOWN_LABELS)
        raise DataError(
            f"expected the labels of {data.name} to be among those of {name} "
            f"({', '.join(labels)}); saw {', '.join(strange[:SHOWN_LABELS])}{others}. Rename them "
            "in the data, or give the model's with --labels in the order of its output"
        )
    examples = tuple(dataclasses.replace(e, label=places[e.label]) for e in data)
    return dataclasses.replace(data, labels=tuple(labels), examples=examples)


def _number(label: str) -> int | None:
    """The index that a nameless label such as `1`, `1.0` or `LABEL_1` stands for."""
    digits = label.upper().removeprefix("LABEL_").removesuffix(".0")
    return int(digits) if digits.isdecimal() else None
