"""One pass over the words, from left to right (definitions 1.1)."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from ...core.inputs import BoolArray
from ..architecture import head, sigmoid_logits
from ..neural import NeuralArchitecture
from ..prefixes import LstmCell, in_blocks, readings


@dataclass(frozen=True)
class Lstm(NeuralArchitecture):
    """A unidirectional LSTM whose state at the last word decides."""

    hidden: int = 128
    """Units of the recurrent layer, each way."""
    sigmoid: bool = False
    """Whether two labels share one output unit."""

    def network(self, size: int, n_labels: int) -> nn.Module:
        return LastState(self, size, n_labels)


class LastState(nn.Module):
    """Reads the state at the last real word; what stands behind it cannot matter."""

    def __init__(self, settings: Lstm, size: int, n_labels: int) -> None:
        super().__init__()
        self.lstm = nn.LSTM(size, settings.hidden, batch_first=True)
        self.dropout = nn.Dropout(settings.dropout)
        self.head = head(settings.hidden, n_labels, settings.sigmoid)
        self.sigmoid = settings.sigmoid
        self.n_labels = n_labels

    def forward(self, values: Tensor, present: Tensor) -> Tensor:
        states, _ = self.lstm(values)  # (batch, words, hidden)
        last = present.sum(dim=1) - 1
        return self._decide(states[torch.arange(len(states), device=states.device), last])

    def masked_logits(
        self, words: Tensor, blank: Tensor, shown: BoolArray, *, delete: bool
    ) -> Tensor:
        """One step per different beginning, not per masking."""
        cell = LstmCell.of(self.lstm)
        found = words.new_empty((len(shown), self.n_labels))
        for places in in_blocks(shown):
            # only the states at the end decide; all of them would fill the memory
            (last,) = deque(readings(cell, words, blank, shown[places], delete=delete), maxlen=1)
            found[torch.from_numpy(places)] = self._decide(last.states)[last.beginning]
        return found

    def _decide(self, state: Tensor) -> Tensor:
        logits: Tensor = self.head(self.dropout(state))
        return sigmoid_logits(logits) if self.sigmoid else logits
