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

AT_ONCE = 4096
"""So many maskings are read side by side: enough to fill the machine, few enough for its memory."""


@dataclass(frozen=True)
class LstmCell:
    """One direction of an LSTM. Gates stand in the order input, forget, output, candidate; the
    candidate's weights are doubled, since tanh(z) = 2 σ(2z) − 1 and one σ over all is faster."""

    input_weight: Tensor  # (4 hidden, size)
    state_weight: Tensor  # (hidden, 4 hidden)
    bias: Tensor  # (4 hidden,)

    @classmethod
    def of(cls, lstm: nn.LSTM, suffix: str = "") -> LstmCell:
        """The first layer's cell; the suffix `_reverse` names the one that reads backwards."""

        def taken(name: str) -> Tensor:
            # torch keeps input, forget, candidate, output
            gates = getattr(lstm, f"{name}_l0{suffix}").detach().chunk(4)
            return torch.cat([gates[0], gates[1], gates[3], 2 * gates[2]])

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

    def step(self, gates: Tensor, memory: Tensor, state: Tensor) -> None:
        """Moves memory and state (rows, hidden) on, in place, by the gates (rows, 4 hidden) before
        their nonlinearity."""
        take, keep, give, candidate = gates.sigmoid_().chunk(4, dim=1)
        memory.mul_(keep).addcmul_(take, candidate.mul_(2).sub_(1))
        torch.mul(give, memory.tanh(), out=state)


@dataclass(frozen=True)
class PrefixReading:
    """The states after one word, one per different beginning; they hold until the next word."""

    word: int
    states: Tensor  # (beginnings, hidden)
    starts: IntArray  # (beginnings,) the first of the sorted maskings that begin so
    back: IntArray  # (masks,) where each masking stands among the sorted ones

    @property
    def beginning(self) -> Tensor:
        """Which of the states each masking has reached. → (masks,)"""
        reached = np.searchsorted(self.starts, self.back, side="right") - 1
        return torch.from_numpy(reached).to(self.states.device)


def in_blocks(shown: BoolArray, at_once: int = AT_ONCE) -> Iterator[IntArray]:
    """Places of maskings that begin alike, so many at a time."""
    order = np.lexsort(shown.T[::-1])
    yield from (order[i : i + at_once] for i in range(0, len(order), at_once))


def readings(
    cell: LstmCell, words: Tensor, blank: Tensor, shown: BoolArray, *, delete: bool
) -> Iterator[PrefixReading]:
    """Reads maskings of a text side by side, from left to right. words (n, size), shown (masks, n)

    Hidden words are read as the blank, or skipped: the state is carried over them.
    """
    masks, n = shown.shape
    order = np.lexsort(shown.T[::-1])
    rows = shown[order]
    back = np.empty(masks, dtype=np.int64)
    back[order] = np.arange(masks)
    parted = _parted(rows)
    hidden, device = cell.hidden, words.device
    inputs = cell.projected(words)
    nothing = cell.projected(blank[None])
    bits = torch.from_numpy(rows).to(device, words.dtype)
    # two more columns say whether the word is shown: one product adds up all that a gate hears
    state = words.new_zeros((1, hidden + 2))
    memory = words.new_zeros((1, hidden))
    weight = torch.cat([cell.state_weight, nothing, nothing])
    starts = np.zeros(1, dtype=np.int64)
    for t in range(n):
        previous, starts = starts, np.flatnonzero(parted <= t)
        if len(starts) > len(previous):
            parent = np.searchsorted(previous, starts, side="right") - 1
            parents = torch.from_numpy(parent).to(device)
            state, memory = state.index_select(0, parents), memory.index_select(0, parents)
        if delete:
            moved = torch.from_numpy(np.flatnonzero(rows[starts, t])).to(device)
            before, remembered = state.index_select(0, moved)[:, :hidden], memory[moved]
            after = torch.empty_like(remembered)
            cell.step(torch.addmm(inputs[t], before, cell.state_weight), remembered, after)
            state[:, :hidden].index_copy_(0, moved, after)
            memory.index_copy_(0, moved, remembered)
        else:
            state[:, hidden] = bits[torch.from_numpy(starts).to(device), t]
            torch.sub(1, state[:, hidden], out=state[:, hidden + 1])
            weight[hidden] = inputs[t]
            cell.step(state @ weight, memory, state[:, :hidden])
        yield PrefixReading(t, state[:, :hidden], starts, back)


def _parted(rows: BoolArray) -> IntArray:
    """For sorted rows: the first word at which each differs from the one above it."""
    differs = rows[1:] != rows[:-1]
    first = np.where(differs.any(axis=1), differs.argmax(axis=1), rows.shape[1])
    return np.concatenate([[-1], first])
