"""A pretrained encoder with a new head (definitions 1.8)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from ...core.errors import ModelError
from ...core.examples import Dataset
from ..architecture import Architecture, Training
from ..encoders import Encoder
from ..transformers_loading import load_transformer, new_transformer
from ..transformers_text import TransformerText


@dataclass(frozen=True)
class Transformer(Architecture):
    """An encoder from a local folder, fine-tuned; packaged: minilm (English) and chinese."""

    encoder: str = "minilm"
    """Folder of an encoder, or minilm or chinese."""

    training: ClassVar[Training] = Training(epochs=3, batch_size=32, learning_rate=5e-5, patience=1)

    def start(self, train: Dataset, *, seed: int) -> TransformerText:
        return new_transformer(Encoder.named(self.encoder), train.labels, seed)

    def load(self, folder: Path, labels: Sequence[str]) -> TransformerText:
        found = load_transformer(folder)
        if found.labels != tuple(labels):
            raise ModelError(
                f"the model in {folder} has the labels {', '.join(found.labels)[:80]}, its record "
                f"{', '.join(labels)[:80]}: they do not belong together. Copy the folder anew"
            )
        return found
