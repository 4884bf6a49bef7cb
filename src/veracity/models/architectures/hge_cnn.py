"""The network of the human-grounded evaluations (definitions 1.2)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

from ..architecture import Training
from .text_cnn import TextCnn


@dataclass(frozen=True)
class HgeCnn(TextCnn):
    """A convolution over frozen GloVe vectors with a dense layer (Lertvittayakumjorn & Toni)."""

    embeddings: str = "glove"
    tuned: bool = False
    dropout: float = 0.0
    widths: tuple[int, ...] = (2, 3, 4)
    filters: int = 50
    hidden: int = 150
    length: int | Literal["mean"] | None = 150

    training: ClassVar[Training] = Training(
        epochs=100, batch_size=2048, learning_rate=1e-3, patience=3
    )
