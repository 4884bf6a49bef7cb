"""One training loop for every model: seeded, early-stopping, resumable."""

from __future__ import annotations

import contextlib
import copy
import inspect
import re
import time
import warnings
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import torch
from safetensors.torch import save
from torch import nn

from ..core.errors import DataError, ModelError
from ..core.examples import Dataset, Example
from ..core.files import FolderKind, read_json, remove_own, sole_writer, write_json, written_whole
from ..core.progress import TrainingProgress, Watcher
from ..core.schema import from_json
from ..engine.inference import probabilities
from ..engine.seeds import generator
from ..rules import rules_named
from .architecture import LATER, Architecture, CustomLoss, RateControlled, Training
from .distillation import Teaching, imitation
from .weights import load_weights, weights_of

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
    train_data: Dataset[Any],
    validation: Dataset[Any],
    *,
    training: Training | None = None,
    checkpoint: Path | None = None,
    watch: Watcher = lambda _: None,
) -> Trained:
    """Adam on cross-entropy, or on the model's own loss, until validation accuracy stops rising or
    is enough; the best weights are kept."""
    settings = training or architecture.usual_training
    _check(train_data, validation)
    if settings.keep is not None and checkpoint is None:
        raise ModelError("expected a folder to keep weights in, got none. Pass checkpoint=FOLDER")
    model = architecture.start(train_data, seed=settings.seed)
    # more epochs or patience may be asked of the same training; all else must be equal
    fixed = {k: v for k, v in asdict(settings).items() if k not in ("epochs", "patience")}
    # as earlier versions wrote it
    fixed = {k: v for k, v in fixed.items() if k not in LATER or v != LATER[k]}
    if settings.distil:
        # files of rules may change
        fixed |= {
            "distil": [repr(rule) for rule in rules_named(settings.distil)],
            "strength": settings.strength,
        }
    asked = {"architecture": architecture.spec, "training": fixed, "data": []}
    if checkpoint:
        asked["data"] = [d.fingerprint() for d in (train_data, validation)]
    kept = Checkpoint(checkpoint, asked, Epoch)
    loop = _Loop(
        model=model,
        settings=settings,
        optimiser=Adam(
            [p for p in model.parameters() if p.requires_grad],
            lr=settings.learning_rate,
            weight_decay=settings.weight_decay,
        ),
        checkpoint=kept,
        watch=watch,
        train_data=train_data,
        validation=validation,
        teaching=Teaching(settings.distil, settings.strength) if settings.distil else None,
    )
    with sole_writer(checkpoint, CHECKPOINT) if checkpoint else contextlib.nullcontext():
        state = loop.run()
    snapshots = tuple((number, kept.snapshot(number)) for number in state.kept)
    return Trained(model, tuple(state.history), state.history[state.best], snapshots)


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


class Adam(torch.optim.Adam):
    """Torch's own, without the compiler, which takes seconds to import and is for no step here."""

    step: Any = torch.no_grad()(inspect.unwrap(torch.optim.Adam.step))
    zero_grad: Any = inspect.unwrap(torch.optim.Adam.zero_grad)
    add_param_group: Any = inspect.unwrap(torch.optim.Adam.add_param_group)
    state_dict: Any = inspect.unwrap(torch.optim.Adam.state_dict)
    load_state_dict: Any = inspect.unwrap(torch.optim.Adam.load_state_dict)


@dataclass(kw_only=True)
class EpochLoop(ABC):
    """Epoch after epoch until enough is done; the best weights stay, and what was begun goes on."""

    diverged: ClassVar[str]
    """What is said when the loss is no longer finite."""

    model: Any
    settings: Any
    optimiser: torch.optim.Optimizer
    checkpoint: Checkpoint
    watch: Watcher

    @abstractmethod
    def epoch(self, number: int) -> Any:
        """One pass over the data, and how well others are told then."""

    @abstractmethod
    def merit(self, epoch: Any) -> Any:
        """What the best epoch has most of."""

    @abstractmethod
    def loss(self, batch: list[Example], time: float) -> tuple[torch.Tensor, int]:
        """The loss of a batch after so many epochs, in fractions, and by what it counts in the
        mean."""

    def begin(self, state: State) -> None:
        """What is set before an epoch, by how those before it went: nothing, as a rule."""
        return

    def done(self, state: State) -> bool:
        """Whether enough is done before all epochs are."""
        return False

    def worth_keeping(self, state: State, epoch: Any) -> bool:
        """Whether an epoch's weights are to stay."""
        return False

    def run(self) -> State:
        """Leaves the model with the weights of its best epoch."""
        state, best = self.checkpoint.restore(self.model, self.optimiser)
        while len(state.history) < self.settings.epochs and not self.done(state):
            self.begin(state)
            epoch = self.epoch(len(state.history))
            if self.worth_keeping(state, epoch):
                state.kept.append(epoch.number)
            state.history.append(epoch)
            improved = state.best < 0 or self.merit(epoch) > self.merit(state.history[state.best])
            if improved:
                state.best = epoch.number
                best = {k: v.detach().clone() for k, v in self.model.state_dict().items()}
            self.checkpoint.store(self.model, self.optimiser, state, improved)
            self.watch(TrainingProgress.of_epoch(epoch, self.settings.epochs))
        self.model.load_state_dict(best)
        self.model.eval()
        return state

    def descend(self, data: Dataset, number: int, clip: float | None) -> float:
        """Goes down the gradient of every batch; the mean loss. Everything random depends on the
        seed and the epoch alone, so a resumed run is equal."""
        s, total, seen = self.settings, 0.0, 0
        chosen = batches(data, s.batch_size, generator(s.seed, "epoch", str(number)))
        doing = f"epoch {number + 1}/{s.epochs}"
        self.model.train()
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(int(generator(s.seed, "dropout", str(number)).integers(2**62)))
            for i, batch in enumerate(chosen):
                loss, weight = self.loss(batch, number + i / len(chosen))
                if not torch.isfinite(loss):
                    raise ModelError(self.diverged)
                self.optimiser.zero_grad(set_to_none=True)
                loss.backward()  # type: ignore[no-untyped-call]
                if clip is not None:
                    nn.utils.clip_grad_norm_(self.model.parameters(), clip)
                self.optimiser.step()
                self.optimiser.zero_grad(set_to_none=True)
                total += float(loss.detach()) * weight
                seen += weight
                mean = total / seen
                self.watch(TrainingProgress(i + 1, len(chosen), doing, epoch=number, loss=mean))
        return total / seen


@dataclass(kw_only=True)
class _Loop(EpochLoop):
    diverged = "the training loss is no longer finite. Lower --learning-rate or set --clip"

    train_data: Dataset
    validation: Dataset
    teaching: Teaching | None = None
    """The rules that are taught, if any."""
    right: float = 0.0
    """Texts of the epoch so far that were told rightly."""

    def begin(self, state: State) -> None:
        slowed = times_slowed(state.history, self.settings.slow_after)
        for group in self.optimiser.param_groups:
            group["lr"] = self.settings.learning_rate * 0.1**slowed

    def done(self, state: State) -> bool:
        patience, since_best = self.settings.patience, len(state.history) - 1 - state.best
        if patience is not None and since_best > patience:
            return True
        return bool(state.history) and self.merit(state.history[-1])[:2] == (True, 0.0)

    def worth_keeping(self, state: State, epoch: Epoch) -> bool:
        """The first's, and those of every gain that is asked for."""
        gain = self.settings.keep
        if gain is None or not state.kept:
            return gain is not None
        last = state.history[state.kept[-1]].validation_accuracy
        return bool(epoch.validation_accuracy >= last + gain - ROUNDING)

    def merit(self, epoch: Epoch) -> tuple[bool, float, float]:
        """Accurate enough goes first, if anything is said to be enough; then those near enough to
        the rate they are to have, then the more accurate. Of several that are accurate enough but
        off that rate, the nearest to it is the best."""
        accuracy, rate = epoch.validation_accuracy, epoch.selection_rate
        sparing = rate is not None and isinstance(self.model, RateControlled)
        off = abs(rate - self.model.target_rate) if sparing else 0.0
        off = 0.0 if off <= NEAR_ENOUGH + ROUNDING else off
        enough = self.settings.stop_at is not None and accuracy >= self.settings.stop_at
        return enough, -off if enough else -float(off > 0), accuracy

    def epoch(self, number: int) -> Epoch:
        started = time.perf_counter()
        self.right = 0.0
        loss = self.descend(self.train_data, number, self.settings.clip)
        inputs, labels = zip(*((e.input, e.label) for e in self.validation), strict=True)
        accuracy = float(np.mean(probabilities(self.model, inputs).argmax(axis=1) == labels))
        rate = None
        if isinstance(self.model, RateControlled):
            rate = self.model.selection_rate(inputs)
        seconds = time.perf_counter() - started
        return Epoch(number, loss, self.right / len(self.train_data), accuracy, seconds, rate)

    def loss(self, batch: list[Example], time: float) -> tuple[torch.Tensor, int]:
        inputs, labels = [e.input for e in batch], torch.tensor([e.label for e in batch])
        if isinstance(self.model, CustomLoss):
            loss, logits = self.model.loss(inputs, labels)
            labels = labels.to(logits.device)
        else:
            logits = self.model.logits(self.model.embed(inputs))
            labels = labels.to(logits.device)
            loss = nn.functional.cross_entropy(logits, labels)
        if self.teaching is not None:
            loss = (1 - imitation(time)) * loss + self.teaching.loss(
                self.model, inputs, logits, time
            )
        self.right += float((logits.argmax(dim=1) == labels).sum())
        return loss, len(batch)


def times_slowed(history: Sequence[Epoch], after: int | None) -> int:
    """How often so many epochs have gone by without a gain."""
    if after is None:
        return 0
    times, last, best = 0, -1, -1.0
    for i, epoch in enumerate(history):
        if epoch.validation_accuracy > best:
            last, best = i, epoch.validation_accuracy
        elif i - last >= after:
            times, last = times + 1, i
    return times


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
        except (ValueError, LookupError, TypeError, AttributeError, OSError, RuntimeError) as error:
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
        serialised = save(weights_of(model))
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
