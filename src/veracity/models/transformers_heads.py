"""Classification heads of the transformers library: what their answers are called, and which one
is asked about."""

from __future__ import annotations

from typing import Any

from ..core.errors import ModelError
from ..core.plugins import nearest


def label_names(config: Any) -> list[str]:
    """What the model's answers are called, each by a name of its own."""
    names = [str(config.id2label.get(i, "")) for i in range(config.num_labels)]
    if "" in names or len(set(names)) < len(names):
        raise ModelError(
            f"expected config.json to give each of the model's {len(names)} labels a name of its "
            f"own (id2label); got {str(config.id2label)[:80]}"
        )
    return names


def label_asked(config: Any, label: str | None) -> int | None:
    """The number of the one label that is asked about; None where labels exclude each other, and a
    softmax over them is the model's answer."""
    names, kind = label_names(config), config.problem_type
    if label is not None:
        if label not in names:
            raise ModelError(f"the model has no label {label!r}: {nearest(label, names)}")
        return names.index(label)
    if kind == "multi_label_classification":
        raise ModelError(
            f"this model's {len(names)} labels do not exclude each other ({', '.join(names)}). "
            f"Audit them one at a time, each as yes or no: write FOLDER:LABEL, such as "
            f"FOLDER:{names[0]}, or load_model(…, label={names[0]!r}), with data labelled 0 and 1"
        )
    if len(names) < 2 or kind == "regression":
        raise ModelError(
            "expected a classifier with two labels or more; this model answers "
            f"{len(names)} number{'s' * (len(names) != 1)} ({kind or 'no problem_type'}). If the "
            f"number is a logit of yes, write FOLDER:{names[0]}. If it is a measure, decide what "
            "is high: a function of a list of texts, or of pictures as arrays, that returns the "
            "probability of high for each is a model too (file.py:function)"
        )
    return None


def asked_names(config: Any, asked: int | None) -> tuple[str, ...]:
    """The labels of the answers: all, or no and yes where one of them is asked about."""
    names = label_names(config)
    return tuple(names) if asked is None else (f"not {names[asked]}", names[asked])
