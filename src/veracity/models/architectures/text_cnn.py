"""Convolution over words (definitions 1.1 to 1.3)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Literal, Self, cast

import numpy as np
import torch
from torch import Tensor, nn

from ...core.classifiers import FeatureMap, RowLayout
from ...core.examples import Dataset
from ...core.inputs import BoolArray
from ...engine.ties import DOUBLE, SINGLE, first_best
from ..architecture import head, sigmoid_logits
from ..neural import NeuralArchitecture
from ..windows import Filters, Windows

LONGEST = 100_000
"""Every text is filled up to the length that is set: far above any text."""


@dataclass(frozen=True)
class TextCnn(NeuralArchitecture):
    """Parallel convolutions of several widths, ReLU, maximum over positions, one dense layer."""

    widths: tuple[int, ...] = (3, 4, 5)
    """How many words the filters of each width see."""
    filters: int = 100
    """Filters of each width."""
    sigmoid: bool = False
    """Whether two labels share one output unit."""
    hidden: int = 0
    """Units of a dense layer before the last; 0: none."""
    padding: Literal["valid", "same"] = "valid"
    """Whether filters see whole windows only, or a row per word."""
    length: int | Literal["mean"] | None = None
    """Words to which texts are cut or padded: a number, their mean, or None for neither."""

    sizes: ClassVar[tuple[str, ...]] = ("size", "vocabulary", "filters")

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.widths or min(self.widths) < 1:
            raise ValueError(f"expected widths of at least one word, got {self.widths}")
        if self.hidden < 0:
            raise ValueError(f"expected no fewer than 0 hidden units, got {self.hidden}")
        if isinstance(self.length, int) and not 1 <= self.length <= LONGEST:
            raise ValueError(f"expected a length of 1 to {LONGEST:,} words, got {self.length}")

    def settled(self, train: Dataset) -> Self:
        """The mean length of the training texts becomes a number, and is saved as one."""
        if self.length != "mean":
            return self
        mean = float(np.mean([e.input.n_features for e in train]))
        return replace(self, length=max(1, int(mean + 0.5)))

    def network(self, size: int, n_labels: int) -> nn.Module:
        return ConvolutionNetwork(self, size, n_labels)


class ConvolutionNetwork(nn.Module):
    """Each filter reports the strongest n-gram it found."""

    def __init__(self, settings: TextCnn, size: int, n_labels: int) -> None:
        super().__init__()
        if isinstance(settings.length, str):
            raise ValueError("length=mean is known only once a model is trained; give a number")
        self.convolutions = nn.ModuleList(
            nn.Conv1d(size, settings.filters, width) for width in settings.widths
        )
        self.widths = settings.widths
        self.same = settings.padding == "same"
        self.length = settings.length
        # the fewest rows that are convolved: every filter must find one place at least
        self.fewest = max(1 if self.same else max(settings.widths), settings.length or 0)
        pooled = settings.filters * len(settings.widths)
        self.dense = nn.Linear(pooled, settings.hidden) if settings.hidden else None
        self.dropout = nn.Dropout(settings.dropout)
        self.head = head(settings.hidden or pooled, n_labels, settings.sigmoid)
        self.sigmoid = settings.sigmoid

    def forward(self, values: Tensor, present: Tensor) -> Tensor:
        return self._decide(torch.relu(self._strongest(values, present)))

    def _strongest(self, values: Tensor, present: Tensor) -> Tensor:
        """Each filter's strongest match before the nonlinearity, which does not change which row
        wins. → (batch, filters of all widths)"""
        maps = [
            m.masked_fill(~own.unsqueeze(1), -torch.inf)
            for _, m, own in self._rows(values, present)
        ]
        if values.requires_grad and values.dtype == torch.float32 and not self.training:
            winners = self._first_strongest(maps, values, present)
            best = [m.gather(2, w).squeeze(2) for m, w in zip(maps, winners, strict=True)]
        else:
            best = [m.max(dim=2).values for m in maps]
        return torch.cat(best, dim=1)

    @torch.no_grad()
    def _first_strongest(
        self, maps: Sequence[Tensor], values: Tensor, present: Tensor
    ) -> list[Tensor]:
        """Where each filter's match is strongest, the first of equal ones.

        Texts with matches too near to tell apart are looked at in double precision, or the same
        n-gram in two places would win here or there by the shape of the batch.
        """
        winners, near = [], torch.zeros(len(values), dtype=torch.bool, device=values.device)
        for m in maps:
            best, winner = m.max(dim=2, keepdim=True)
            size = m.masked_fill(m.isinf(), 0.0).abs().amax(dim=(1, 2), keepdim=True)
            near |= ((m >= best - SINGLE * size).sum(dim=2) > 1).any(dim=1)
            winners.append(winner)
        if near.any():
            exact = self._rows(values[near].double(), present[near])
            for winner, (_, m, own) in zip(winners, exact, strict=True):
                rows = first_best(m.masked_fill(~own.unsqueeze(1), -torch.inf), 2, DOUBLE)
                winner[near] = rows
        return winners

    def _rows(self, values: Tensor, present: Tensor) -> Iterator[tuple[int, Tensor, Tensor]]:
        """Per width: what every filter says of every row, and which rows are a text's own.

        (batch, words, size) → width, (batch, filters, rows), (batch, rows)
        """
        values, present = values[:, : self.length], present[:, : self.length]
        # rows over a text's own padding count, rows over a neighbour's do not
        lengths = present.sum(dim=1).clamp(min=self.fewest)
        missing = max(0, self.fewest - values.shape[1])
        padded = nn.functional.pad(values * present.unsqueeze(-1), (0, 0, 0, missing))
        columns = padded.transpose(1, 2)  # (batch, size, words)
        for width, convolution in zip(self.widths, self._layers, strict=True):
            before, after = self.around(width)
            maps = nn.functional.conv1d(
                nn.functional.pad(columns, (before, after)),
                convolution.weight.to(columns.dtype),
                cast(Tensor, convolution.bias).to(columns.dtype),
            )
            last = lengths + before + after - (width - 1)
            yield width, maps, torch.arange(maps.shape[2], device=maps.device) < last.unsqueeze(1)

    def around(self, width: int) -> tuple[int, int]:
        """How many rows of zeros stand before and behind the text (definitions 1.3)."""
        return ((width - 1) // 2, width // 2) if self.same else (0, 0)

    # ---- what each filter found -------------------------------------------------------------

    def feature_maps(self, values: Tensor, present: Tensor) -> tuple[FeatureMap, ...]:
        """What every filter found in every row. (batch, words, size)"""
        found = []
        for width, maps, own in self._rows(values, present):
            layout = RowLayout(width, *self.around(width))
            active = torch.relu(maps).masked_fill(~own.unsqueeze(1), 0.0)
            found.append(FeatureMap(layout, active.transpose(1, 2), own))
        return tuple(found)

    def logits_of_maps(self, maps: Sequence[FeatureMap]) -> Tensor:
        """The strongest match of each filter decides. → (batch, labels)"""
        # no match is below zero, so rows that are not a text's own never win
        return self._decide(torch.cat([found.values.max(dim=1).values for found in maps], dim=1))

    # ---- short cuts -------------------------------------------------------------------------

    def masked_logits(
        self, words: Tensor, blank: Tensor, shown: BoolArray, *, delete: bool
    ) -> Tensor:
        """Looks windows up instead of convolving every masking anew."""
        windows = Windows(self.filters, least=self.fewest, most=self.length)
        return self._decide(torch.relu_(windows.pooled(words, blank, shown, delete=delete)))

    def first_layer(self, values: Tensor, present: Tensor) -> Tensor:
        """Each filter's strongest row without its bias, which is the same in every row."""
        return self._strongest(values, present) - self._bias

    def logits_of_units(self, units: Tensor) -> Tensor:
        return self._decide(torch.relu(units + self._bias))

    @property
    def filters(self) -> list[Filters]:
        """The filters of each width, as they are."""
        return [
            Filters(c.weight.detach(), cast(Tensor, c.bias).detach(), *self.around(w))
            for w, c in zip(self.widths, self._layers, strict=True)
        ]

    @property
    def _layers(self) -> Iterable[nn.Conv1d]:
        return cast(Iterable[nn.Conv1d], self.convolutions)

    @property
    def _bias(self) -> Tensor:
        return torch.cat([cast(Tensor, c.bias) for c in self._layers])

    def _decide(self, pooled: Tensor) -> Tensor:
        best = pooled if self.dense is None else torch.relu(self.dense(pooled))
        logits: Tensor = self.head(self.dropout(best))
        return sigmoid_logits(logits) if self.sigmoid else logits
