"""Recurrent networks that read texts of different lengths in both directions."""

from __future__ import annotations

import torch
from torch import Tensor, nn


def both_ways(network: nn.LSTM | nn.GRU, values: Tensor, present: Tensor) -> Tensor:
    """The states at every word, forward and backward side by side; each text is read backwards from
    its own last word. What stands behind a text means nothing.

    Padded and not packed: the gradient of a packed sequence takes ten times as long, since torch
    fills zeros for the whole batch at every word. (batch, words, size) → (batch, words, 2 hidden)
    """
    lengths = present.sum(dim=1, keepdim=True)
    places = torch.arange(values.shape[1], device=values.device).expand(present.shape)
    turned = torch.where(places < lengths, lengths - 1 - places, places)
    backwards = _at(values, turned)
    states = [_one_way(network, values, ""), _at(_one_way(network, backwards, "_reverse"), turned)]
    return torch.cat(states, dim=2)


def _at(values: Tensor, places: Tensor) -> Tensor:
    """(batch, words, size) at other places of the same texts."""
    return values.gather(1, places.unsqueeze(2).expand(-1, -1, values.shape[2]))


def _one_way(network: nn.LSTM | nn.GRU, values: Tensor, suffix: str) -> Tensor:
    names = ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
    weights = [getattr(network, f"{name}_l0{suffix}") for name in names]
    start = values.new_zeros(1, len(values), network.hidden_size)
    settings = (weights, True, 1, 0.0, network.training, False, True)
    if isinstance(network, nn.LSTM):
        return torch.lstm(values, (start, start), *settings)[0]
    return torch.gru(values, start, *settings)[0]
