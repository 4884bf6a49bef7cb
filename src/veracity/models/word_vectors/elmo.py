"""A bidirectional language model over letters (Peters et al. 2018; definitions 1.9)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import torch
from torch import Tensor

from ...core.files import read_json, write_json
from ...core.inputs import Text
from ..contextual import WordEncoder, WordVectors
from ..elmo import BidirectionalLm, ElmoOptions, ScalarMix
from ..elmo_files import OPTIONS, read_elmo
from ..weights import Shapes


@dataclass(frozen=True)
class Elmo(WordVectors):
    """A mixture of the layers of a language model that reads from both sides: their mean where it
    is frozen, weights that are learnt where it is tuned."""

    encoder: str
    """Folder of the published options and weights, or of what `veracity pretrain elmo` wrote."""

    step: ClassVar[float] = 1e-4

    def open(self) -> ElmoEncoder:
        return ElmoEncoder(read_elmo(Path(self.encoder)))

    def load(self, folder: Path, found: Shapes) -> ElmoEncoder:
        options = ElmoOptions.of(read_json(folder / OPTIONS))
        if options.layers + options.highways + len(options.filters) > len(found):
            raise ValueError(f"{OPTIONS} names more layers than the model's file has weights")
        return ElmoEncoder(BidirectionalLm(options))


class ElmoEncoder(WordEncoder):
    """The language model and the mixture of its layers."""

    def __init__(self, model: BidirectionalLm) -> None:
        super().__init__()
        self.model = model
        self.mix = ScalarMix(model.options.layers + 1)
        self.size = 2 * model.options.size

    def forward(self, texts: Sequence[Text]) -> Tensor:
        layers, lengths = self.model([text.words for text in texts])
        mixed: Tensor = self.mix(layers)[:, 1:-1]  # without the marks around the longest
        place = torch.arange(mixed.shape[1], device=lengths.device)
        read: Tensor = place < lengths[:, None] - 2
        return mixed * read.unsqueeze(-1)

    def save(self, folder: Path) -> None:
        write_json(folder / OPTIONS, self.model.options.to_json())
