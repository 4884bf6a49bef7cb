"""Recurrent networks with many subsets of a text's words hidden: what begins alike is run once.

Maskings are sorted, so that those with a common beginning stand together; at every word the
network takes one step per different beginning, and a word's input projection is computed once.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn

from ..core.inputs import BoolArray, IntArray


@dataclass(frozen=True)
class Cell:
    """One direction of an LSTM, its gates reordered so that the three sigmoids stand together."""

    input_weight: Tensor  # (4 hidden, size)
    state_weight: Tensor  # (hidden, 4 hidden)
    bias: Tensor  # (4 hidden,)

    @classmethod
    def of(cls, lstm: nn.LSTM, suffix: str = "") -> Cell:
        """The first layer's cell; the suffix `_reverse` names the one that reads backwards."""
        hidden = lstm.hidden_size
        # torch keeps input, forget, candidate, output
        order = torch.cat([torch.arange(0, 2 * hidden), torch.arange(3 * hidden, 4 * hidden)])
        order = torch.cat([order, torch.arange(2 * hidden, 3 * hidden)])

        def taken(name: str) -> Tensor:
            found: Tensor = getattr(lstm, f"{name}_l0{suffix}").detach()
            return found[order]

        return cls(
            taken("weight_ih"),
            taken("weight_hh").T.contiguous(),
            taken("bias_ih") + taken("bias_hh"),
        )

    @property
    def hidden(self) -> int:
        return int(self.state_weight.shape[0])

    def projected(self, words: Tensor) -> Tensor:
        """What each word adds to the gates, whatever was read before it."""
        return torch.addmm(self.bias, words, self.input_weight.T)

    def step(self, inputs: Tensor, state: Tensor, memory: Tensor) -> tuple[Tensor, Tensor]:
        """inputs (rows, 4 hidden), state and memory (rows, hidden) → the next state and memory"""
        h = self.hidden
        gates = torch.addmm(inputs, state, self.state_weight)
        opened = gates[:, : 3 * h].sigmoid_()
        candidate = gates[:, 3 * h :].tanh_()
        memory = torch.addcmul(opened[:, :h] * candidate, opened[:, h : 2 * h], memory)
        return opened[:, 2 * h :] * memory.tanh(), memory


@dataclass(frozen=True)
class Reading:
    """The states after one word, one per different beginning."""

    word: int
    states: Tensor  # (beginnings, hidden)
    beginning: Tensor  # (masks,): which of the states a masking has reached


def readings(
    cell: Cell, words: Tensor, blank: Tensor, shown: BoolArray, *, delete: bool
) -> Iterator[Reading]:
    """Reads all maskings of a text at once, from left to right. words (n, size), shown (masks, n)

    Hidden words are read as the blank, or skipped: the state is carried over them.
    """
    masks, n = shown.shape
    order = np.lexsort(shown.T[::-1])
    rows = shown[order]
    parted = _parted(rows)
    device = words.device
    inputs = cell.projected(words)
    nothing = cell.projected(blank[None])
    state = words.new_zeros((1, cell.hidden))
    memory = state
    starts = np.zeros(1, dtype=np.int64)
    back = np.empty(masks, dtype=np.int64)
    back[order] = np.arange(masks)
    for t in range(n):
        previous, starts = starts, np.flatnonzero(parted <= t)
        parent = np.searchsorted(previous, starts, side="right") - 1
        bits = rows[starts, t]
        if len(starts) > len(previous):
            parents = torch.from_numpy(parent).to(device)
            state, memory = state[parents], memory[parents]
        elif delete:
            state, memory = state.clone(), memory.clone()  # the last reading keeps its own
        if delete:
            moved = torch.from_numpy(np.flatnonzero(bits)).to(device)
            if len(moved):
                here = inputs[t].expand(len(moved), -1)
                state[moved], memory[moved] = cell.step(here, state[moved], memory[moved])
        else:
            here = torch.where(torch.from_numpy(bits).to(device)[:, None], inputs[t], nothing)
            state, memory = cell.step(here, state, memory)
        reached = np.searchsorted(starts, np.arange(masks), side="right") - 1
        yield Reading(t, state, torch.from_numpy(reached[back]).to(device))


def _parted(rows: BoolArray) -> IntArray:
    """For sorted rows: the first word at which each differs from the one above it."""
    differs = rows[1:] != rows[:-1]
    first = np.where(differs.any(axis=1), differs.argmax(axis=1), rows.shape[1])
    return np.concatenate([[-1], first])
