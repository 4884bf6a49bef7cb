"""Models that are trained once: what is there is taken, what was begun goes on."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..core.classifiers import Traits
from ..core.errors import RunError
from ..core.files import check_own, sole_writer
from ..core.progress import Watcher
from ..data.splits import Splits
from ..engine.inference import probabilities
from ..metrics.accuracy import classification
from ..models.loading import MODEL, RECORD, load_model, save_model

if TYPE_CHECKING:
    from ..models.architecture import Architecture, Training


@dataclass(frozen=True)
class TrainedModel:
    """A trained model, its record, and whether it was trained just now."""

    model: Any
    record: Mapping[str, Any]
    fresh: bool

    @property
    def summary(self) -> dict[str, Any]:
        """What experiments note of a training."""
        history = self.record.get("history", [])
        return {
            "accuracy": self.record["test"]["accuracy"],
            "epochs": len(history),
            "seconds": sum(epoch["seconds"] for epoch in history),
        }


def trained_once(
    architecture: str | Architecture,
    parts: Splits,
    folder: Path,
    *,
    data: Mapping[str, Any] | None = None,
    training: Training | None = None,
    watch: Watcher = lambda _: None,
) -> TrainedModel:
    """The model in this folder; trained first, from its last epoch on, if it is not there yet.

    `data` goes into the model's record: the name and fingerprint of what was read, and how; by
    default those of the training part.
    """
    from ..models.architectures import architectures
    from ..models.training import SNAPSHOTS, clear, train

    check_own(folder, MODEL)
    source = data or {"name": parts.train.name, "fingerprint": parts.train.fingerprint()}
    if (folder / RECORD).exists():
        return _kept(folder, source)
    with sole_writer(folder, MODEL):
        made = architectures.make(architecture)
        settings, checkpoint = training or made.usual_training, folder / "checkpoint"
        trained = train(
            made,
            parts.train,
            parts.validation,
            training=settings,
            checkpoint=checkpoint,
            watch=watch,
        )
        answers = probabilities(trained.model, [e.input for e in parts.test])
        record = {
            "training": asdict(settings),
            "data": dict(source),
            "history": [asdict(e) for e in trained.history],
            "best": trained.best.number,
            "test": classification([e.label for e in parts.test], answers.argmax(axis=1).tolist()),
        }
        if trained.snapshots:
            record["snapshots"] = [path.name for _, path in trained.snapshots]
            shutil.copytree(checkpoint / SNAPSHOTS, folder / SNAPSHOTS, dirs_exist_ok=True)
        save_model(trained.model, made, folder, record=record)
        clear(checkpoint)
    return TrainedModel(trained.model, record, fresh=True)


def _kept(folder: Path, data: Mapping[str, Any]) -> TrainedModel:
    model = load_model(folder)
    record = Traits(model).record
    before = record.get("data", {})
    if before and _which(before) != _which(data):
        raise RunError(
            f"{folder} holds a model that was trained on other data ({before.get('name')}). "
            "Choose another folder, or delete that one"
        )
    return TrainedModel(model, record, fresh=False)


def _which(data: Mapping[str, Any]) -> tuple[Any, ...]:
    """What tells training data apart; records of earlier versions know no changes."""
    reading = data.get("reading", {})
    return data.get("fingerprint"), reading.get("limit"), reading.get("changes", "")
