"""Reading in both directions without packing is reading in both directions."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from veracity.models.both_ways import both_ways


def packed(network: nn.LSTM | nn.GRU, values: Tensor, present: Tensor) -> Tensor:
    """torch's own way, which is slow to differentiate."""
    lengths = present.sum(dim=1)
    sequence = pack_padded_sequence(values, lengths, batch_first=True, enforce_sorted=False)
    states, _ = pad_packed_sequence(
        network(sequence)[0], batch_first=True, total_length=values.shape[1]
    )
    return states


@pytest.mark.parametrize("kind", [nn.LSTM, nn.GRU])
@given(
    lengths=st.lists(st.integers(1, 9), min_size=1, max_size=6),
    spare=st.integers(0, 3),
    seed=st.integers(0, 99),
)
def test_states_and_gradients_are_those_of_packed_texts(
    kind: type[nn.LSTM] | type[nn.GRU], lengths: list[int], spare: int, seed: int
) -> None:
    torch.manual_seed(seed)
    network = kind(3, 4, batch_first=True, bidirectional=True)
    present = torch.arange(max(lengths) + spare) < torch.tensor(lengths).unsqueeze(1)
    values = torch.randn(*present.shape, 3)
    weights = torch.randn(*present.shape, 8) * present.unsqueeze(2)
    found = []
    for way in (both_ways, packed):
        given_values = values.clone().requires_grad_()
        states = way(network, given_values, present) * present.unsqueeze(2)
        inside = torch.autograd.grad(
            (states * weights).sum(), [given_values, *network.parameters()]
        )
        found.append([states, *inside])
    for ours, theirs in zip(*found, strict=True):
        assert (ours - theirs).abs().max() < 1e-5
