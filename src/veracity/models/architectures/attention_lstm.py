"""A bidirectional LSTM that weighs its words (SPEC 1.4)."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from ..neural import NeuralArchitecture


@dataclass(frozen=True)
class AttentionLstm(NeuralArchitecture):
    """A bidirectional LSTM whose states are averaged by attention."""

    hidden: int = 200
    attention: int = 200
    dropout: float = 0.0

    def network(self, size: int, n_labels: int) -> nn.Module:
        return AttentionNetwork(self, size, n_labels)


class AttentionNetwork(nn.Module):
    """k = tanh(W h + c), a = softmax(q · k) over real words, logits = V Σ a h."""

    def __init__(self, settings: AttentionLstm, size: int, n_labels: int) -> None:
        super().__init__()
        self.lstm = nn.LSTM(size, settings.hidden, batch_first=True, bidirectional=True)
        self.keys = nn.Linear(2 * settings.hidden, settings.attention)
        self.query = nn.Linear(settings.attention, 1, bias=False)
        self.dropout = nn.Dropout(settings.dropout)
        self.head = nn.Linear(2 * settings.hidden, n_labels)

    def forward(self, values: Tensor, present: Tensor) -> Tensor:
        states = self.states(values, present)
        weights = self.weights(states, present)
        logits: Tensor = self.head(self.dropout((weights.unsqueeze(-1) * states).sum(dim=1)))
        return logits

    def attention(self, values: Tensor, present: Tensor) -> Tensor:
        """(batch, words, size) → (batch, words)"""
        return self.weights(self.states(values, present), present)

    def states(self, values: Tensor, present: Tensor) -> Tensor:
        # packed, so that the backward pass starts at each text's own last word
        packed = pack_padded_sequence(
            values, present.sum(dim=1).cpu(), batch_first=True, enforce_sorted=False
        )
        states, _ = pad_packed_sequence(
            self.lstm(packed)[0], batch_first=True, total_length=values.shape[1]
        )
        return states

    def weights(self, states: Tensor, present: Tensor) -> Tensor:
        scores = self.query(torch.tanh(self.keys(states))).squeeze(-1)
        return torch.softmax(scores.masked_fill(~present, -torch.inf), dim=1)
