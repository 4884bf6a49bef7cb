"""Cutting work into pieces that fit, with little padding."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence

FEATURES_AT_ONCE = 4096
"""How many padded features one pass through a model may hold."""


def mixed(count: int) -> list[int]:
    """Places of batches in an order in which short and long ones alternate by chance, always the
    same: from what was done so far can be told how long the rest will take."""
    order = list(range(count))
    random.Random(count).shuffle(order)
    return order


def by_length(lengths: Sequence[int], budget: int = FEATURES_AT_ONCE) -> Iterator[list[int]]:
    """Places of items of like length, so many at a time that their padded size stays in budget."""
    order = sorted(range(len(lengths)), key=lambda i: (lengths[i], i))
    batch: list[int] = []
    for i in order:
        if batch and max(lengths[i], 1) * (len(batch) + 1) > budget:
            yield batch
            batch = []
        batch.append(i)
    if batch:
        yield batch
