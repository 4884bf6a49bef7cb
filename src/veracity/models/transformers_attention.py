"""Attention of the transformers library's models: how it is shown, and followed through layers."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from typing import Any

import torch
from torch import Tensor


def rollout(layers: Sequence[Tensor], places: Tensor) -> Tensor:
    """How much of each piece reaches the one that is classified through all layers, if each layer
    takes half from the piece itself and half by attention (Abnar & Zuidema).
    layers (batch, pieces, pieces), places (batch,) → (batch, pieces)"""
    row = torch.zeros_like(layers[0][:, :1])
    row.scatter_(2, places[:, None, None], 1.0)
    for layer in reversed(layers):  # only one row of the product is wanted: from the left
        row = (row @ layer + row) / 2
    return row.squeeze(1)


@contextlib.contextmanager
def showing_attention(model: Any) -> Iterator[None]:
    """The implementation that returns its weights, for as long as they are read.

    To record them the library hangs hooks on the model and leaves them there, after which it can
    no longer be sent to a worker: they are taken off again.
    """
    mark = "_output_capturing_hooks_installed"
    before = model.config._attn_implementation
    hooks = [(p, dict(p._forward_hooks), mark in p.__dict__) for p in model.modules()]
    try:
        model.set_attn_implementation("eager")
        yield
    finally:
        model.set_attn_implementation(before)
        for part, found, was_marked in hooks:
            part._forward_hooks.clear()
            part._forward_hooks.update(found)
            if not was_marked:
                part.__dict__.pop(mark, None)
