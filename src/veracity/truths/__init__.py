"""Sources of pseudo ground truth, one file each: `hybrid.py` is the source `hybrid`."""

from __future__ import annotations

from ..core.classifiers import Classifier
from ..core.errors import DataError, ModelError
from ..core.examples import Dataset, check_texts
from ..core.plugins import Registry, plugin_path
from ..core.truths import Truth, WordSets

__path__ = plugin_path(__path__, "truths")

truths: Registry[Truth] = Registry("truth", __name__, Truth)


def learnt_truth(
    spec: str | Truth, model: Classifier | None, train: Dataset, seed: int = 0
) -> WordSets:
    """The words that a source of truth holds to decide each label of the training data."""
    source = truths.make(spec)
    check_texts(train, source.spec)
    if not len(train):
        raise DataError(f"{source.spec} learns from training data; {train.name} has no examples")
    if not train.labelled:
        raise DataError(f"{source.spec} learns from labels, and nobody labelled {train.name}")
    if model is not None and model.labels != train.labels:
        raise ModelError(
            f"expected a model with the labels of {train.name} ({', '.join(train.labels)}); this "
            f"one has {', '.join(model.labels)}"
        )
    return source.learnt(model, train, seed=seed)
