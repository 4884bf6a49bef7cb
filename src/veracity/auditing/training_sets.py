"""What methods learn from: data that a user names, or that a model's record names."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from ..changes import changed
from ..core.classifiers import Classifier, Traits
from ..core.errors import DataError, VeracityError
from ..core.examples import Dataset, read_labels
from ..core.explainers import Explainer
from ..core.images import Image
from ..core.plugins import blamed_on
from ..core.segments import GRID
from ..data.loading import Source, load_data
from ..data.readers import Columns
from ..data.splits import given_parts, sampled, split

TrainingSet = Dataset | str
"""Training data, or why there are none."""


@dataclass(frozen=True)
class DataConfig:
    """How data were read, as the command line says it: what a model's record must keep."""

    source: str
    columns: str = ""
    labels: str = ""
    language: str = "auto"
    max_words: int = 5000
    skip_bad: bool = False
    limit: int | None = None
    changes: str = ""
    """What was done to the sample before it was split."""
    layout: str = "auto"
    size: str = ""
    segments: str | None = None
    masks: str = ""

    def data(self) -> Dataset:
        """All examples that the source holds."""
        names = read_labels(self.labels) if self.labels else None
        return load_data(
            self.source,
            columns=Columns.parse(self.columns),
            # names are for files: a corpus has its own
            labels=names if Path(self.source).exists() else None,
            language=self.language,
            max_words=self.max_words,
            skip_bad=self.skip_bad,
            layout=self.layout,
            size=self.size,
            segments=self.segments,
            masks=self.masks,
        )

    def prepared(self, data: Dataset, *, seed: int) -> Dataset:
        """The sample of what was read, changed: what is then split."""
        sample = sampled(data, self.limit, seed=seed)
        return changed(sample, self.changes, seed=seed) if self.changes else sample

    def recorded(self) -> dict[str, Any]:
        """For a record, which may be read from another folder."""
        here: dict[str, Any] = {
            name: str(Path(value).resolve())
            for name, value in (("source", self.source), ("masks", self.masks))
            if value and Path(value).exists()
        }
        return asdict(replace(self, **here))


def fit_explainer(
    explainer: Explainer, model: Classifier, train: Source | None, *, seed: int
) -> Explainer:
    """The method, having learnt what it must; or a sentence that says what it needs."""
    if not explainer.learns or (explainer.ready and train is None):
        return explainer
    training_set = training_sets({"": model}, train, seed=seed)[""]
    return fitted(explainer, model, check_training_set(explainer, training_set))


def fitted(explainer: Explainer, model: Classifier, training_set: Dataset) -> Explainer:
    """The method with what it learnt; what goes wrong in somebody's own is called by its name."""
    with blamed_on(explainer):
        learnt = explainer.fitted(model, training_set)
    return learnt.for_kind(training_set.kind)  # a copy that it made of itself has forgotten that


def training_sets(
    models: Mapping[str, Classifier], train: Source | None, *, seed: int
) -> dict[str, TrainingSet]:
    """For each model what was given, or else what its record says it was trained on."""
    if not models or train is None:
        return {name: _recorded(model) for name, model in models.items()}
    if isinstance(train, Dataset):
        return dict.fromkeys(models, train)
    of_corpus = isinstance(train, str | Path) and not Path(train).exists()
    part = training_part(load_data(train), of_file=not of_corpus, seed=seed)
    return dict.fromkeys(models, part)


def check_training_set(explainer: Explainer, training_set: TrainingSet) -> Dataset:
    """Training data, or a sentence that says how to give them."""
    if isinstance(training_set, Dataset):
        return training_set
    raise DataError(
        f"{explainer.spec} learns from training data, but {training_set}. Give them with --train "
        "DATA (train=…)"
    )


def training_part(data: Dataset, *, of_file: bool, seed: int) -> Dataset:
    """The part to train on; of a file that names no parts, all of it."""
    if of_file and not given_parts(data).get("train"):
        return data
    return split(data, seed=seed).train


def _recorded(model: Classifier) -> TrainingSet:
    """The very texts that a model was trained on, read again."""
    record = Traits(model).record
    about = record.get("data", {})
    if "reading" not in about:
        return "none were given"
    try:
        reading = DataConfig(**about["reading"])
        data = _as_kept(reading, about.get("fingerprint"))
        seed = record["training"]["seed"]
    except (VeracityError, KeyError, TypeError):
        return f"those of this model ({about.get('name')}) cannot be read any more"
    if data.fingerprint() != about.get("fingerprint"):
        return f"those of this model ({about.get('name')}) have changed"
    return split(reading.prepared(data, seed=seed), seed=seed).train


def _as_kept(reading: DataConfig, fingerprint: str | None) -> Dataset:
    """The data that a record tells of. Those of earlier versions say `grid` where nobody chose: of
    texts, too, and of pictures that a corpus had cut otherwise."""
    if reading.segments != GRID:
        return reading.data()
    data = replace(reading, segments=None).data()
    if data.kind != Image.kind or data.fingerprint() == fingerprint:
        return data
    return reading.data()
