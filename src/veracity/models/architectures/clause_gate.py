"""A convolution behind a gate that learns which clause a rule lets decide (definitions 1.11)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor, nn

from ...core.inputs import Text
from ...rules import USUAL, detect, rules_named
from ..both_ways import both_ways
from ..neural import NeuralArchitecture, NeuralText
from .text_cnn import ConvolutionNetwork, TextCnn


@dataclass(frozen=True)
class ClauseGate(NeuralArchitecture):
    """Reads each word as far as a gate lets it through, which is taught by rules to open for the
    clause that ought to decide; where no rule applies, for all words."""

    rules: tuple[str, ...] = USUAL
    """Rules that say which clause ought to decide (veracity list rules), or files of them."""
    gate: int = 32
    """Units of the layer that decides on the gates, each way."""
    weight: float = 1.0
    """How much the gates count in the loss, beside the labels."""
    widths: tuple[int, ...] = (3, 4, 5)
    """How many words the filters of each width see."""
    filters: int = 100
    """Filters of each width."""

    sizes: ClassVar[tuple[str, ...]] = ("size", "vocabulary", "filters", "gate")

    def __post_init__(self) -> None:
        super().__post_init__()
        rules_named(self.rules)
        if self.weight < 0:
            raise ValueError(f"expected a weight of 0 or more, got {self.weight}")

    def network(self, size: int, n_labels: int) -> nn.Module:
        return GatedNetwork(self, size, n_labels)

    def kind(self, network: nn.Module) -> type[NeuralText]:
        return GatedText


class GatedNetwork(nn.Module):
    """Each word's embedding times its gate, and a convolution over that."""

    def __init__(self, settings: ClauseGate, size: int, n_labels: int) -> None:
        super().__init__()
        self.lstm = nn.LSTM(size, settings.gate, batch_first=True, bidirectional=True)
        self.score = nn.Linear(2 * settings.gate, 1)
        reader = TextCnn(widths=settings.widths, filters=settings.filters, dropout=settings.dropout)
        self.reader = ConvolutionNetwork(reader, size, n_labels)

    def gate_logits(self, values: Tensor, present: Tensor) -> Tensor:
        """How surely each word may pass. → (batch, words)"""
        found: Tensor = self.score(both_ways(self.lstm, values, present)).squeeze(2)
        return found

    def forward(self, values: Tensor, present: Tensor) -> Tensor:
        return self.read(values, present, self.gate_logits(values, present))

    def read(self, values: Tensor, present: Tensor, gates: Tensor) -> Tensor:
        """The logits of words that pass as far as this."""
        found: Tensor = self.reader(values * torch.sigmoid(gates).unsqueeze(2), present)
        return found


class GatedText(NeuralText):
    """A model that learns its gates from rules."""

    network: GatedNetwork
    architecture: ClauseGate

    def loss(self, inputs: Sequence[Text], labels: Tensor) -> tuple[Tensor, Tensor]:
        """The cross-entropy with the labels plus that of the gates with the rules."""
        embedded = self.embed(inputs)
        gates = self.network.gate_logits(embedded.values, embedded.present)
        logits = self.network.read(embedded.values, embedded.present, gates)
        wanted = torch.ones_like(gates)
        rules = rules_named(self.architecture.rules)
        for row, text in enumerate(inputs):
            structures = detect(text, rules, "strict").structures
            if structures:
                mask = torch.from_numpy(structures[0].dominant)
                wanted[row, : len(mask)] = mask.to(gates)
        words = embedded.feature
        taught = gates.new_zeros(())
        if words.any():  # texts may have none
            taught = nn.functional.binary_cross_entropy_with_logits(gates[words], wanted[words])
        own = nn.functional.cross_entropy(logits, labels.to(logits.device))
        return own + self.architecture.weight * taught, logits
