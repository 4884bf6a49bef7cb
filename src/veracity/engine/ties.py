"""Which of several equal values wins: the first, whatever rounding says (SPEC 1.2)."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode

ROUNDING = 1e-5
"""What sums of many products of single precision may lose, as a share of the largest."""


def first_best(values: Tensor, dim: int) -> Tensor:
    """The lowest place that reaches the maximum but for rounding; the dimension is kept."""
    best = values.amax(dim, keepdim=True)
    size = values.masked_fill(values.isinf(), 0.0).abs().amax(dim, keepdim=True)
    return (values >= best - ROUNDING * size).to(torch.uint8).argmax(dim, keepdim=True)


class FirstWins(TorchFunctionMode):
    """While a model runs, gradients of its maxima go to the first of equal places.

    Without it rounding chooses, which differs with the shape of a batch: the same text would be
    explained differently in other company.
    """

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        found = func(*args, **(kwargs or {}))
        if func not in (torch.max, Tensor.max) or not isinstance(found, tuple):
            return found
        x = args[0]
        if not x.requires_grad:
            return found
        named = kwargs or {}
        dim = named.get("dim", args[1] if len(args) > 1 else 0)
        kept = named.get("keepdim", args[2] if len(args) > 2 else False)
        place = first_best(x.detach(), dim)
        winner = x.gather(dim, place)
        values, indices = (winner, place) if kept else (winner.squeeze(dim), place.squeeze(dim))
        # the value is the maximum; only who is credited with it changes
        return torch.return_types.max((values + (found[0] - values).detach(), indices))
