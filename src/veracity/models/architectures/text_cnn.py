"""Convolution over words (SPEC 1.1)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import cast

import torch
from torch import Tensor, nn

from ...core.inputs import BoolArray
from ..architecture import head, sigmoid_logits
from ..neural import NeuralArchitecture
from ..windows import Filters, Windows


@dataclass(frozen=True)
class TextCnn(NeuralArchitecture):
    """Parallel convolutions of several widths, ReLU, maximum over positions, one dense layer."""

    widths: tuple[int, ...] = (3, 4, 5)
    filters: int = 100
    sigmoid: bool = False

    def network(self, size: int, n_labels: int) -> nn.Module:
        return ConvolutionNetwork(self, size, n_labels)


class ConvolutionNetwork(nn.Module):
    """Each filter reports the strongest n-gram it found."""

    def __init__(self, settings: TextCnn, size: int, n_labels: int) -> None:
        super().__init__()
        self.convolutions = nn.ModuleList(
            nn.Conv1d(size, settings.filters, width) for width in settings.widths
        )
        self.longest = max(settings.widths)
        self.dropout = nn.Dropout(settings.dropout)
        self.head = head(settings.filters * len(settings.widths), n_labels, settings.sigmoid)
        self.sigmoid = settings.sigmoid

    def forward(self, values: Tensor, present: Tensor) -> Tensor:
        return self._decide(self.pooled(values, present))

    def pooled(self, values: Tensor, present: Tensor) -> Tensor:
        """Each filter's strongest activation. → (batch, filters of all widths)"""
        return torch.relu(self._strongest(values, present))

    def _strongest(self, values: Tensor, present: Tensor) -> Tensor:
        """(batch, words, size) → (batch, filters of all widths)"""
        # texts shorter than the widest filter are padded with zeros up to its width
        lengths = present.sum(dim=1).clamp(min=self.longest)
        missing = max(0, self.longest - values.shape[1])
        padded = nn.functional.pad(values * present.unsqueeze(-1), (0, 0, 0, missing))
        columns = padded.transpose(1, 2)  # (batch, size, words)
        best = []
        for convolution in self.convolutions:
            maps = convolution(columns)  # (batch, filters, starts)
            starts = torch.arange(maps.shape[2], device=maps.device)
            last = lengths.unsqueeze(1) - (columns.shape[2] - maps.shape[2])
            # windows that reach into another text's padding are not this text's
            maps = maps.masked_fill((starts >= last).unsqueeze(1), -torch.inf)
            best.append(maps.max(dim=2).values)
        return torch.cat(best, dim=1)

    def masked_logits(
        self, words: Tensor, blank: Tensor, shown: BoolArray, *, delete: bool
    ) -> Tensor:
        """Looks windows up instead of convolving every masking anew."""
        filters = [Filters(c.weight.detach(), cast(Tensor, c.bias).detach()) for c in self._layers]
        windows = Windows(filters, least=self.longest)
        return self._decide(torch.relu_(windows.pooled(words, blank, shown, delete=delete)))

    def stretched(self, values: Tensor, present: Tensor) -> Tensor:
        """Each filter's strongest window without its bias, which is the same in every window."""
        bias = torch.cat([cast(Tensor, c.bias) for c in self._layers])
        return self._strongest(values, present) - bias

    def logits_along(self, units: Tensor) -> Tensor:
        bias = torch.cat([cast(Tensor, c.bias) for c in self._layers])
        return self._decide(torch.relu(units + bias))

    @property
    def _layers(self) -> Iterable[nn.Conv1d]:
        return cast(Iterable[nn.Conv1d], self.convolutions)

    def _decide(self, pooled: Tensor) -> Tensor:
        logits: Tensor = self.head(self.dropout(pooled))
        return sigmoid_logits(logits) if self.sigmoid else logits
