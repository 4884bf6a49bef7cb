"""What a model is worth on labelled texts, before anything is said of how it decides."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..core.classifiers import Traits
from ..core.examples import Dataset
from ..data.splits import sampled
from ..engine.inference import probabilities
from ..results.health import Health, judged
from .labels import fit_labels

TEXTS = 300
"""So many tell whether a model is right oftener than chance, and cost little."""


def model_health(name: str, model: Any, data: Dataset[Any], *, seed: int = 0) -> Health | None:
    """Judged by a sample of these; None where there are none with labels, or questions cost."""
    if not len(data) or not data.labelled or Traits(model).costly:
        return None
    part = sampled(fit_labels(data, {name: model}), TEXTS, seed=seed)
    said = probabilities(model, [e.input for e in part]).argmax(axis=1)
    gold = np.array([e.label for e in part], dtype=np.int64)
    return judged(Health(model=name, texts=len(part), kind=part.kind), gold, said, part.labels)
