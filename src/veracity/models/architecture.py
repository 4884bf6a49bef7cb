"""What can be trained: settings that print as their identity and build a model."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, runtime_checkable

from ..core.errors import DataError
from ..core.examples import Dataset
from ..core.inputs import Text
from ..core.plugins import Plugin

if TYPE_CHECKING:
    from torch import Tensor, nn


STRENGTHS = (1, 2, 4)
"""Of rules that are taught: the formula, and what re-implementations and the released code make of
it (definitions 2.2)."""


LATER: Mapping[str, Any] = {"slow_after": None, "distil": (), "strength": 1}
"""Settings of training that came later, and what stands for them in records that lack them."""


@runtime_checkable
class CustomLoss(Protocol):
    """A model that is trained on something else than the cross-entropy of its logits."""

    def loss(self, inputs: Sequence[Text], labels: Tensor) -> tuple[Tensor, Tensor]:
        """The loss, and the logits. labels (batch,) → (), (batch, labels)"""


@runtime_checkable
class RateControlled(Protocol):
    """A model that is to read a given share of the words."""

    @property
    def target_rate(self) -> float: ...

    def selection_rate(self, inputs: Sequence[Text]) -> float: ...


@dataclass(frozen=True)
class Training:
    """How a model is trained (definitions 2.1)."""

    epochs: int = 20
    batch_size: int = 50
    learning_rate: float = 1e-3
    patience: int | None = 3
    """Epochs to wait for a gain; None waits for ever."""
    weight_decay: float = 0.0
    clip: float | None = None
    stop_at: float | None = None
    """Enough validation accuracy: reached, training ends, if the model also reads as few words as
    it is to read."""
    keep: float | None = None
    """Weights are kept whenever validation accuracy is higher by this than when last kept."""
    slow_after: int | None = None
    """Epochs without a gain after which steps are a tenth as long; None: never."""
    seed: int = 0
    distil: tuple[str, ...] = ()
    """Rules that are taught along the way (veracity list rules), or files of them."""
    strength: int = 1
    """How strongly: by the formula, or 2 or 4 times so, as others have it."""

    def __post_init__(self) -> None:
        if self.strength not in STRENGTHS:
            raise ValueError(f"expected a strength of 1, 2 or 4, got {self.strength}")
        if self.epochs < 1 or self.batch_size < 1 or (self.patience or 0) < 0:
            raise ValueError("expected at least one epoch, one text per batch and no less patience")
        if not self.learning_rate > 0 or self.weight_decay < 0:
            raise ValueError(
                "expected a learning rate above 0 and a weight decay of 0 or more, got "
                f"{self.learning_rate} and {self.weight_decay}"
            )
        if self.stop_at is not None and not 0 < self.stop_at <= 1:
            raise ValueError(f"expected to stop at an accuracy from 0 to 1, got {self.stop_at}")
        if self.keep is not None and not self.keep > 0:
            raise ValueError(f"expected to keep weights at gains above 0, got {self.keep}")


class Architecture(Plugin, ABC):
    """A kind of model; its fields are its sizes."""

    largest: ClassVar[Mapping[str, int]] = dict.fromkeys(
        ("size", "hidden", "filters", "attention", "widths", "memory"), 10_000
    )
    reads: ClassVar[str] = Text.kind
    """The kind of inputs that its models read."""
    training: ClassVar[Training] = Training()
    """What suits this kind of model when nothing else is said."""

    @property
    def usual_training(self) -> Training:
        """What suits these very settings when nothing else is said."""
        return self.training

    @abstractmethod
    def start(self, train: Dataset[Any], *, seed: int) -> Any:
        """An untrained model for this data."""

    @abstractmethod
    def load(self, folder: Path, labels: Sequence[str]) -> Any:
        """A model that `save` wrote."""


def sigmoid_logits(z: Any) -> Any:
    """Two logits whose softmax is the sigmoid of one unit: p(1) = σ(z). (batch, 1) → (batch, 2)"""
    import torch

    return torch.cat([-z / 2, z / 2], dim=1)


def head(size: int, n_labels: int, sigmoid: bool) -> nn.Linear:
    """The last layer: a unit per label, or a single one for two labels (definitions 1.1)."""
    from torch import nn

    if sigmoid and n_labels != 2:
        raise DataError(f"a sigmoid head needs two labels, the data has {n_labels}")
    return nn.Linear(size, 1 if sigmoid else n_labels)
