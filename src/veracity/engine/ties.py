"""Which of several equal values wins: the first, whatever rounding says (definitions 1.2)."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch import Tensor

SINGLE, DOUBLE = 1e-5, 1e-12
"""What sums of many products may lose in single and in double precision, as a share of the sum."""


def first_best(values: Tensor, dim: int, rounding: float = SINGLE) -> Tensor:
    """The lowest place that reaches the maximum but for rounding; the dimension is kept."""
    best = values.amax(dim, keepdim=True)
    return (values >= best - rounding * best.abs()).byte().argmax(dim, keepdim=True)
