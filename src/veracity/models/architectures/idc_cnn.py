"""The network whose grams can be marked as important (definitions 1.3)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

from ..architecture import Training
from .text_cnn import TextCnn


@dataclass(frozen=True)
class IdcCnn(TextCnn):
    """A convolution that keeps a row per word, on texts cut or padded to their mean length."""

    size: int = 128
    filters: int = 50
    padding: Literal["valid", "same"] = "same"
    length: int | Literal["mean"] | None = "mean"

    training: ClassVar[Training] = Training(epochs=10, batch_size=32, learning_rate=1e-3)
