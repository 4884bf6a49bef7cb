"""Architectures, training, and adapters for other people's models."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast
from urllib.parse import urlsplit

from ..core.classifiers import Classifier
from ..core.errors import ModelError
from ..core.files import FolderKind, check_format, check_own, read_json, reading, write_json
from ..core.schema import check_schema

if TYPE_CHECKING:
    from .architecture import Architecture

RECORD = "veracity.json"
"""What a model folder of ours is recognised by."""

FORMAT = 1

MODEL = FolderKind("a model", RECORD)


def load_model(
    source: Any,
    *,
    labels: Sequence[str] | None = None,
    label: str | None = None,
    allow_unpickle: bool = False,
    batch_size: int = 32,
    timeout: float = 30.0,
    budget: int | None = None,
    cache: str | Path | None = None,
    headers: Mapping[str, str] | None = None,
) -> Classifier:
    """A classifier from a folder, a pickled pipeline, `module:callable`, a URL or a live object.

    `label` is for transformers whose labels do not exclude each other: this one is asked about, yes
    or no. `FOLDER:LABEL` says the same.
    `batch_size`, `timeout`, `budget`, `cache` and `headers` are for URLs.
    """
    if not isinstance(source, str | Path):
        return _live(source, labels, label)
    text = str(source)
    if text.startswith(("http://", "https://")):
        from .adapters.endpoints import Endpoint

        return Endpoint(
            text,
            labels=tuple(labels) if labels else None,
            batch_size=batch_size,
            timeout=timeout,
            budget=budget,
            cache=Path(cache) if cache else None,
            headers=tuple((headers or {}).items()),
        )
    path = Path(text)
    # what is too long for a name is no folder, and no error
    if os.path.isdir(text):  # noqa: PTH112
        return _from_folder(path, labels, label)
    if path.suffix in (".pkl", ".pickle", ".joblib"):
        from .adapters.sklearn_pipelines import load_pickled

        return load_pickled(path, allow_unpickle=allow_unpickle, labels=labels)
    folder, _, name = text.rpartition(":")
    if folder and os.path.isdir(folder):  # noqa: PTH112
        return _from_folder(Path(folder), labels, name)
    if ":" in text:
        from .adapters.callables import load_callable

        return load_callable(text, labels=labels)
    there = os.path.exists(text)  # noqa: PTH110
    raise ModelError(
        f"expected a model folder, a .pkl or .joblib file, module:callable or a URL; {text!r} is "
        f"{'a file of another kind' if there else 'not there'}. "
        "Train one with `veracity train`, or check the path"
    )


def model_name(source: str | Path) -> str:
    """A short name for a model: the host of a URL, never its credentials; else its file."""
    text = str(source)
    if text.startswith(("http://", "https://")):
        parts = urlsplit(text)
        return f"{parts.hostname}:{parts.port}" if parts.port else str(parts.hostname)
    return Path(text).name or Path(text).resolve().name


def _from_folder(folder: Path, labels: Sequence[str] | None, label: str | None) -> Classifier:
    record = folder / RECORD
    if record.exists():
        from .architectures import architectures

        content = read_record(folder)
        names = content["labels"]
        if labels and len(labels) != len(names):
            raise ModelError(
                f"expected {len(names)} labels, one per output of {folder} ({', '.join(names)}); "
                f"got {', '.join(labels)}"
            )
        found = architectures.make(content["architecture"]).load(folder, labels or names)
        found.record = content
        return cast(Classifier, found)
    if (folder / "config.json").exists():
        if _reads_images(folder):
            from .transformers_pictures import load_image_transformer

            return load_image_transformer(folder, labels, label)
        from .transformers_loading import load_transformer

        return load_transformer(folder, labels, label)
    raise ModelError(
        f"expected a folder written by `veracity train` ({RECORD}) or by transformers "
        f"(config.json); {folder} has neither"
    )


def _reads_images(folder: Path) -> bool:
    """Whether a transformers folder holds an image classifier."""
    with reading(folder / "config.json", remedy="Copy the folder anew", error=ModelError):
        content = read_json(folder / "config.json")
        names = content.get("architectures") if isinstance(content, dict) else None
    known = names if isinstance(names, list) else []  # others are refused with the folder's faults
    return any(str(name).endswith("ForImageClassification") for name in known)


def read_record(folder: Path) -> dict[str, Any]:
    """What `save_model` wrote of a model, looked over: such folders pass from hand to hand."""
    path = folder / RECORD
    remedy = "Copy it anew, or train the model again"
    with reading(path, remedy=remedy, error=ModelError):
        content = read_json(path)
        check_format(content, FORMAT, path, ModelError)
        check_labels(content["labels"])
        check_schema(
            content,
            {
                "architecture": str,
                "training?": dict,
                "data?": {"name?": str, "fingerprint?": str, "reading?": dict},
                "history?": [dict],
            },
        )
    return cast(dict[str, Any], content)


def check_labels(names: Any) -> None:
    """Labels are told apart by name."""
    if not isinstance(names, list | tuple) or not all(isinstance(n, str) for n in names):
        raise ValueError("expected its labels to be a list of names")
    if len(names) < 2 or len(set(names)) < len(names):
        raise ValueError(f"expected two different labels or more, got {list(names)[:5]}")


def _live(source: Any, labels: Sequence[str] | None, label: str | None) -> Classifier:
    from .adapters.callables import CallableClassifier, is_classifier, is_picture_network

    if is_classifier(source):
        live: Classifier = source
        return live
    if is_picture_network(source):
        from .adapters.torch_modules import picture_network

        return picture_network(source, labels)
    if hasattr(source, "tokenizer") and hasattr(source, "model"):
        from .transformers_loading import wrapped

        task = getattr(source, "task", "text-classification")
        if task not in ("text-classification", "sentiment-analysis"):
            raise ModelError(
                f"expected a pipeline for text-classification, got one for {task}. A function of a "
                "list of texts, or of pictures as arrays, that calls it and returns a row of "
                "probabilities for each is a model too"
            )
        return wrapped(source.model, source.tokenizer, label)
    if hasattr(source, "predict_proba"):
        from .adapters.sklearn_pipelines import sklearn_classifier

        return sklearn_classifier(source, labels=labels)
    if callable(source):
        return CallableClassifier(source, labels=labels)
    raise ModelError(
        "expected a classifier, a transformers pipeline, a scikit-learn pipeline with "
        f"predict_proba, a PyTorch network or a callable; got {type(source).__name__}"
    )


def save_model(
    model: Any, architecture: Architecture, folder: Path, *, record: Mapping[str, Any]
) -> None:
    """A folder that `load_model` reads; the record is written last, when all else is there."""
    check_own(folder, MODEL)
    model.save(folder)
    # a model's own architecture has numbers where the one asked for left them to the data
    settled = getattr(model, "architecture", architecture)
    content = {
        "format": FORMAT,
        "architecture": settled.spec,
        "labels": list(model.labels),
        **record,
    }
    write_json(folder / RECORD, content)
