"""A bidirectional LSTM that weighs its words (definitions 1.4)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, cast

import torch
from torch import Tensor, nn

from ...core.inputs import BoolArray
from ...core.plugins import Profiles
from ..both_ways import both_ways
from ..neural import NeuralArchitecture
from ..prefixes import AT_ONCE, LstmCell, in_blocks, readings

NUMBERS_AT_ONCE = 20_000_000
"""How many keys of all maskings of a text are held at a time."""


@dataclass(frozen=True)
class AttentionLstm(NeuralArchitecture):
    """A bidirectional LSTM whose states are averaged by attention."""

    hidden: int = 200
    """Units of the recurrent layer, each way."""
    attention: int = 200
    """Units of the layer that weighs states."""
    dropout: float = 0.0

    profiles: ClassVar[Profiles] = {"paper": {"embeddings": "corpus", "size": 200, "tuned": False}}

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
        states = both_ways(self.lstm, values, present)
        weights = self.weights(states, present)
        return cast(Tensor, self.head(self.dropout((weights.unsqueeze(-1) * states).sum(dim=1))))

    def attention(self, values: Tensor, present: Tensor) -> Tensor:
        """(batch, words, size) → (batch, words)"""
        return self.weights(both_ways(self.lstm, values, present), present)

    def weights(self, states: Tensor, present: Tensor) -> Tensor:
        scores = self.query(torch.tanh(self.keys(states))).squeeze(-1)
        return torch.softmax(scores.masked_fill(~present, -torch.inf), dim=1)

    def masked_logits(
        self, words: Tensor, blank: Tensor, shown: BoolArray, *, delete: bool
    ) -> Tensor:
        """One step per different beginning and per different end, not per masking."""
        most = max(64, NUMBERS_AT_ONCE // (len(words) * self.keys.out_features))
        found = words.new_empty((len(shown), self.head.out_features))
        for places in in_blocks(shown, min(AT_ONCE, most)):
            part = self._masked_logits(words, blank, shown[places], delete)
            found[torch.from_numpy(places)] = part
        return found

    def _masked_logits(
        self, words: Tensor, blank: Tensor, shown: BoolArray, delete: bool
    ) -> Tensor:
        # keys and votes are sums of a forward and a backward part, each computed once per state
        masks, n = shown.shape
        hidden = self.lstm.hidden_size
        key_forward, key_backward = torch.split(self.keys.weight, hidden, dim=1)
        vote_forward, vote_backward = torch.split(self.head.weight, hidden, dim=1)
        forward = [
            (r.states @ key_forward.T + self.keys.bias, r.states @ vote_forward.T, r.beginning)
            for r in readings(LstmCell.of(self.lstm), words, blank, shown, delete=delete)
        ]
        scores = words.new_empty((masks, n))
        votes = words.new_empty((masks, n, len(self.head.weight)))
        turned = shown[:, ::-1]
        for r in readings(
            LstmCell.of(self.lstm, "_reverse"), words.flip(0), blank, turned, delete=delete
        ):
            keys, vote, beginning = forward.pop()
            at = n - 1 - r.word
            here = keys[beginning] + (r.states @ key_backward.T)[r.beginning]
            scores[:, at] = self.query(here.tanh_()).squeeze(-1)
            votes[:, at] = vote[beginning] + (r.states @ vote_backward.T)[r.beginning]
        if delete:
            scores.masked_fill_(~torch.from_numpy(shown).to(scores.device), -torch.inf)
        weights = torch.softmax(scores, dim=1)
        return (weights.unsqueeze(-1) * votes).sum(dim=1) + self.head.bias
