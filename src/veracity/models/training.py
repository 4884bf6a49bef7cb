"""One training loop for every model: seeded, early-stopping, resumable."""

from __future__ import annotations

import contextlib
import copy
import re
import time
import warnings
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.torch import save
from torch import nn

from ..core.errors import DataError, ModelError
from ..core.examples import Dataset, Example
from ..core.files import FolderKind, read_json, remove_own, sole_writer, write_json, written_whole
from ..core.inputs import Text
from ..core.progress import TrainingProgress, Watcher
from ..core.schema import from_json
from ..engine.inference import probabilities
from ..engine.seeds import generator
from .architecture import Architecture, CustomLoss, RateControlled, Training
from .weights import load_weights

SNAPSHOTS = "snapshots"
CHECKPOINT = FolderKind("a checkpoint", "state.json")

_PARTS = r"(weights|best|optimiser|epoch)-\d+\.(safetensors|pt)"
_KEPT = rf"{_PARTS}|state\.json|snapshots\.json|run\.lock"
"""Names of files that a checkpoint holds: nothing else is ever removed."""

NEAR_ENOUGH = 0.01
"""A model reads few enough words if their share is within this of what it is to be
(definitions 2.1)."""

ROUNDING = 1e-9


@dataclass(frozen=True)
class Epoch:
    """How one pass over the data went."""

    number: int
    loss: float
    train_accuracy: float
    validation_accuracy: float
    seconds: float
    selection_rate: float | None = None
    """The share of words read in validation, of models that are to read few."""

    def __str__(self) -> str:
        rate = self.selection_rate
        return (
            f"epoch {self.number + 1}, loss {self.loss:.3f}, training {self.train_accuracy:.3f}, "
            f"validation {self.validation_accuracy:.3f}, "
            f"{'' if rate is None else f'words read {rate:.3f}, '}{self.seconds:.1f} s"
        )


Weights = dict[str, torch.Tensor]


@dataclass(frozen=True)
class Trained:
    """A trained model and how it got there."""

    model: Any
    history: tuple[Epoch, ...]
    best: Epoch
    snapshots: tuple[tuple[int, Path], ...] = ()
    """Epochs whose weights were kept, and the files that hold them."""


def at_snapshot(model: Any, file: Path) -> Any:
    """A copy of a model with the weights that it had when they were kept."""
    earlier = copy.deepcopy(model)
    earlier.load_state_dict(load_weights(file))
    return earlier.eval()


def train(
    architecture: Architecture,
    train_data: Dataset,
    validation: Dataset,
    *,
    training: Training | None = None,
    checkpoint: Path | None = None,
    watch: Watcher = lambda _: None,
) -> Trained:
    """Adam on cross-entropy, or on the model's own loss, until validation accuracy stops rising or
    is enough; the best weights are kept."""
    settings = training or architecture.training
    _check(train_data, validation)
    if settings.keep is not None and checkpoint is None:
        raise ModelError("expected a folder to keep weights in, got none. Pass checkpoint=FOLDER")
    model = architecture.start(train_data, seed=settings.seed)
    # more epochs or patience may be asked of the same training; all else must be equal
    fixed = {k: v for k, v in asdict(settings).items() if k not in ("epochs", "patience")}
    if settings.slow_after is None:
        del fixed["slow_after"]  # as earlier versions wrote it
    asked = {"architecture": architecture.spec, "training": fixed, "data": []}
    if checkpoint:
        asked["data"] = [d.fingerprint() for d in (train_data, validation)]
    kept = Checkpoint(checkpoint, asked, Epoch)
    with sole_writer(checkpoint, CHECKPOINT) if checkpoint else contextlib.nullcontext():
        return _Loop(model, settings, kept).run(train_data, validation, watch)


def _check(train_data: Dataset, validation: Dataset) -> None:
    if not len(train_data) or not len(validation):
        raise DataError(
            f"expected examples to train and to validate on, got {len(train_data)} and "
            f"{len(validation)}. Bring more data"
        )
    absent = [name for name, count in train_data.balance.items() if not count]
    if absent or len(train_data.labels) < 2:
        raise DataError(
            "expected training examples of at least two labels and of every label; "
            f"got {train_data.balance}"
        )


@dataclass
class State:
    """What a resumed training must know."""

    history: list[Any]
    best: int = -1
    kept: list[int] = field(default_factory=list)

    @property
    def since_best(self) -> int:
        return len(self.history) - 1 - self.best

    def slowed(self, after: int | None) -> int:
        """How often so many epochs have gone by without a gain."""
        if after is None:
            return 0
        times, last, best = 0, -1, -1.0
        for i, epoch in enumerate(self.history):
            if epoch.validation_accuracy > best:
                last, best = i, epoch.validation_accuracy
            elif i - last >= after:
                times, last = times + 1, i
        return times

    def worth_keeping(self, epoch: Epoch, gain: float | None) -> bool:
        """Whether an epoch's weights are to stay: the first's, and those of every such gain."""
        if gain is None or not self.kept:
            return gain is not None
        last = self.history[self.kept[-1]].validation_accuracy
        return bool(epoch.validation_accuracy >= last + gain - ROUNDING)


class _Loop:
    def __init__(self, model: Any, settings: Training, checkpoint: Checkpoint) -> None:
        self.model = model
        self.settings = settings
        self.checkpoint = checkpoint
        parameters = [p for p in model.parameters() if p.requires_grad]
        self.optimiser = torch.optim.Adam(
            parameters, lr=settings.learning_rate, weight_decay=settings.weight_decay
        )

    def run(self, train_data: Dataset, validation: Dataset, watch: Watcher) -> Trained:
        s = self.settings
        state, best = self.checkpoint.restore(self.model, self.optimiser)
        while len(state.history) < s.epochs and not self._done(state):
            for group in self.optimiser.param_groups:
                group["lr"] = s.learning_rate * 0.1 ** state.slowed(s.slow_after)
            epoch = self._epoch(len(state.history), train_data, validation, watch)
            if state.worth_keeping(epoch, s.keep):
                state.kept.append(epoch.number)
            state.history.append(epoch)
            improved = state.best < 0 or self._merit(epoch) > self._merit(state.history[state.best])
            if improved:
                state.best = epoch.number
                best = self._weights()
            self.checkpoint.store(self.model, self.optimiser, state, improved)
            watch(TrainingProgress.of_epoch(epoch, s.epochs))
        self.model.load_state_dict(best)
        self.model.eval()
        snapshots = tuple((number, self.checkpoint.snapshot(number)) for number in state.kept)
        return Trained(self.model, tuple(state.history), state.history[state.best], snapshots)

    def _done(self, state: State) -> bool:
        patience = self.settings.patience
        if patience is not None and state.since_best > patience:
            return True
        return bool(state.history) and self._merit(state.history[-1])[:2] == (True, 0.0)

    def _merit(self, epoch: Epoch) -> tuple[bool, float, float]:
        """What the best epoch has most of. Accurate enough goes first, if anything is said to be
        enough; then those near enough to the rate they are to have, then the more accurate. Of
        several that are accurate enough but off that rate, the nearest to it is the best."""
        accuracy, rate = epoch.validation_accuracy, epoch.selection_rate
        sparing = rate is not None and isinstance(self.model, RateControlled)
        off = abs(rate - self.model.target_rate) if sparing else 0.0
        off = 0.0 if off <= NEAR_ENOUGH + ROUNDING else off
        enough = self.settings.stop_at is not None and accuracy >= self.settings.stop_at
        return enough, -off if enough else -float(off > 0), accuracy

    def _weights(self) -> Weights:
        return {k: v.detach().clone() for k, v in self.model.state_dict().items()}

    def _epoch(
        self, number: int, train_data: Dataset, validation: Dataset, watch: Watcher
    ) -> Epoch:
        """Everything random depends on the seed and the epoch alone, so a resumed run is equal."""
        s, started = self.settings, time.perf_counter()
        chosen = batches(train_data, s.batch_size, generator(s.seed, "epoch", str(number)))
        loss_sum = right = 0.0
        doing = f"epoch {number + 1}/{s.epochs}"
        self.model.train()
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(int(generator(s.seed, "dropout", str(number)).integers(2**62)))
            for i, batch in enumerate(chosen):
                loss, hits = self._step(batch)
                loss_sum += loss * len(batch)
                right += hits
                seen = sum(len(b) for b in chosen[: i + 1])
                watch(
                    TrainingProgress(i + 1, len(chosen), doing, epoch=number, loss=loss_sum / seen)
                )
        n = len(train_data)
        accuracy = _accuracy(self.model, validation)
        rate = None
        if isinstance(self.model, RateControlled):
            rate = self.model.selection_rate([e.input for e in validation])
        seconds = time.perf_counter() - started
        return Epoch(number, loss_sum / n, right / n, accuracy, seconds, rate)

    def _step(self, batch: list[Example]) -> tuple[float, float]:
        labels = torch.tensor([e.label for e in batch])
        loss, logits = self._loss([e.input for e in batch], labels)
        labels = labels.to(logits.device)
        if not torch.isfinite(loss):
            raise ModelError(
                "the training loss is no longer finite. Lower --learning-rate or set --clip"
            )
        self.optimiser.zero_grad(set_to_none=True)
        loss.backward()  # type: ignore[no-untyped-call]
        if self.settings.clip is not None:
            nn.utils.clip_grad_norm_(self.model.parameters(), self.settings.clip)
        self.optimiser.step()
        self.optimiser.zero_grad(set_to_none=True)
        return float(loss.detach()), float((logits.argmax(dim=1) == labels).sum())

    def _loss(self, inputs: list[Text], labels: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        if isinstance(self.model, CustomLoss):
            return self.model.loss(inputs, labels)
        logits = self.model.logits(self.model.embed(inputs))
        return nn.functional.cross_entropy(logits, labels.to(logits.device)), logits


def batches(data: Dataset, size: int, rng: np.random.Generator) -> list[list[Example]]:
    """A shuffled epoch in which each batch holds texts of like length: little padding."""
    shuffled = rng.permutation(len(data))
    chunk = size * 20
    found = []
    for start in range(0, len(shuffled), chunk):
        near = sorted(
            shuffled[start : start + chunk], key=lambda i: data.examples[i].input.n_features
        )
        found += [near[i : i + size] for i in range(0, len(near), size)]
    return [[data.examples[i] for i in found[b]] for b in rng.permutation(len(found))]


def _accuracy(model: Any, data: Dataset) -> float:
    answers = probabilities(model, [e.input for e in data])
    return float(np.mean(answers.argmax(axis=1) == [e.label for e in data]))


class Checkpoint:
    """After each epoch: weights, best weights and optimiser; nothing in it is unpickled as code."""

    def __init__(self, folder: Path | None, asked: Mapping[str, Any], epoch: type[Any]) -> None:
        self.folder = folder
        self.asked = asked
        self.epoch = epoch

    def restore(self, model: Any, optimiser: torch.optim.Optimizer) -> tuple[State, Weights]:
        """The state after the last finished epoch and the best weights, if there are any; whatever
        is damaged starts over."""
        nothing: tuple[State, Weights] = State([]), {}
        if self.folder is None or not (self.folder / "state.json").exists():
            return nothing
        untouched = copy.deepcopy((model.state_dict(), optimiser.state_dict()))
        try:
            content = read_json(self.folder / "state.json")
            if content["asked"] != self.asked:
                raise ModelError(
                    f"{self.folder} holds the checkpoint of another training. Choose another "
                    "folder, or delete that one"
                )
            history = [from_json(self.epoch, e) for e in content["history"]]
            state = State(history, content["best"], content["kept"])
            done = content["epochs_done"]
            if done != len(history) or {state.best, *state.kept} - {*range(done)}:
                raise ValueError("its history does not fit its epochs")
            best = load_weights(self.folder / f"best-{state.best}.safetensors")
            for weights in (best, *(load_weights(self.snapshot(n)) for n in state.kept)):
                model.load_state_dict(weights)
            model.load_state_dict(load_weights(self.folder / f"weights-{done}.safetensors"))
            moments = load_weights(self.folder / f"optimiser-{done}.safetensors")
            optimiser.load_state_dict(_unpacked(moments, optimiser))
        except (
            ValueError,
            LookupError,
            TypeError,
            AttributeError,
            OSError,
            RuntimeError,
        ) as error:
            warnings.warn(
                f"the checkpoint in {self.folder} is damaged ({error}): training starts over",
                stacklevel=2,
            )
            model.load_state_dict(untouched[0])
            optimiser.load_state_dict(untouched[1])
            return nothing
        return state, best

    def store(self, model: Any, optimiser: Any, state: State, improved: bool) -> None:
        """The state file is replaced last: it always speaks of files that are complete."""
        if self.folder is None:
            return
        self.folder.mkdir(parents=True, exist_ok=True)
        done = len(state.history)
        weights = {k: v.detach().cpu().contiguous() for k, v in model.state_dict().items()}
        serialised = save(weights)
        parts = {
            f"weights-{done}.safetensors": serialised,
            f"optimiser-{done}.safetensors": save(_packed(optimiser)),
        }
        if improved:
            parts[f"best-{state.best}.safetensors"] = serialised
        if done - 1 in state.kept:
            parts[f"{SNAPSHOTS}/{self.snapshot(done - 1).name}"] = serialised
        for name, content in parts.items():
            with written_whole(self.folder / name) as file:
                file.write(content)
        record = {
            "asked": self.asked,
            "epochs_done": done,
            "history": [asdict(e) for e in state.history],
            "best": state.best,
            "kept": state.kept,
        }
        write_json(self.folder / "state.json", record, indent=None)
        for path in self.folder.iterdir():
            past = path.name not in {*parts, f"best-{state.best}.safetensors"}
            if past and re.fullmatch(_PARTS, path.name) and not path.is_dir():
                path.unlink()
        if state.kept:
            self._list_snapshots(state)

    def snapshot(self, number: int) -> Path:
        """Where the weights of an epoch are kept."""
        assert self.folder is not None
        return self.folder / SNAPSHOTS / f"epoch-{number}.safetensors"

    def _list_snapshots(self, state: State) -> None:
        """A list of what is kept, for people; files of a training that was started over go."""
        files = {self.snapshot(number): state.history[number] for number in state.kept}
        rows = [
            {"epoch": e.number, "file": path.name, "validation_accuracy": e.validation_accuracy}
            for path, e in files.items()
        ]
        folder = next(iter(files)).parent
        write_json(folder / "snapshots.json", rows)
        for path in folder.iterdir():
            if path not in files and re.fullmatch(_PARTS, path.name) and not path.is_dir():
                path.unlink()


def clear(checkpoint: Path) -> None:
    """Removes a checkpoint that is no longer needed, and nothing that others put there."""
    remove_own(checkpoint, _KEPT)


def _packed(optimiser: torch.optim.Optimizer) -> Weights:
    """What an optimiser remembers of each parameter, as tensors by name."""
    return {
        f"{place}.{name}": value.detach().cpu().contiguous()
        for place, moments in optimiser.state_dict()["state"].items()
        for name, value in moments.items()
    }


def _unpacked(moments: Weights, optimiser: torch.optim.Optimizer) -> dict[str, Any]:
    """The same as the optimiser takes it; what does not fit its parameters is no memory of it."""
    parameters = [p for group in optimiser.param_groups for p in group["params"]]
    state: dict[int, Weights] = {}
    for key, value in moments.items():
        place, _, name = key.partition(".")
        if value.shape not in (parameters[int(place)].shape, torch.Size(())):
            raise ValueError(f"{key} has the shape {tuple(value.shape)}")
        state.setdefault(int(place), {})[name] = value
    kinds = {frozenset(one) for one in state.values()}
    if len(kinds) > 1 or {*state} - {*range(len(parameters))}:
        raise ValueError("the optimiser's state is not that of this model")
    return {"state": state, "param_groups": optimiser.state_dict()["param_groups"]}
