"""Which n-gram each filter of a convolution chose, and what the answer owes to it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, cast

import numpy as np

from ..core.classifiers import Convolutional, FeatureMap, Layout, RowLayout
from ..core.inputs import FloatArray, Input, IntArray
from .batches import by_length
from .call_counter import add_calls
from .gradients import chosen_output, evaluating

if TYPE_CHECKING:
    from torch import Tensor

SHORTEST = 32
"""Texts count as this long at least: a network may pad them, and its maps are wide."""


@dataclass(frozen=True)
class Hits:
    """Per filter, widths in order: its strongest match and where that stands in one text."""

    values: FloatArray  # (filters,)
    starts: IntArray  # (filters,) the first word read, below 0 where padding stands before
    widths: IntArray  # (filters,)
    n_words: int
    """Words that the network read."""
    n_positions: int
    """Words and what stands behind them to fill the text up."""
    logits: FloatArray  # (labels,)
    gradient: FloatArray  # (filters,) of the target's logit; empty when no target was named

    def words(self, filter_: int) -> tuple[int, ...]:
        """The words of a filter's n-gram; none if it chose padding alone."""
        first, width = int(self.starts[filter_]), int(self.widths[filter_])
        return tuple(range(max(first, 0), min(first + width, self.n_words)))

    def spread(self, effects: FloatArray) -> FloatArray:
        """Each filter's effect on every position of its n-gram, added up. → (positions,)"""
        places = np.arange(self.n_positions)
        first, last = self.starts[:, None], (self.starts + self.widths)[:, None]
        total: FloatArray = effects @ ((places >= first) & (places < last))
        return total


@dataclass(frozen=True)
class MapGradient:
    """One map's activations for one input, and how the target's logit follows them."""

    layout: Layout
    values: FloatArray  # (cells, filters)
    gradient: FloatArray  # (cells, filters)
    n_read: int
    """Features that the network read."""


def filter_hits(
    model: Convolutional, inputs: Sequence[Input], targets: Sequence[int] | None = None
) -> list[Hits]:
    """What every filter chose in every text; ties go to the first row (definitions 1.2)."""
    import torch

    from .ties import first_best

    found: dict[int, Hits] = {}
    for batch, n_words, maps in _maps(model, inputs):
        rows = torch.cat([first_best(m.values, 1).squeeze(1) for m in maps], dim=1)
        # maps of a single row each are the pooled values, and lead to the same logits
        pooled = [
            replace(m, values=m.values.amax(dim=1, keepdim=True), present=m.present[:, :1])
            for m in maps
        ]
        values = torch.cat([m.values.squeeze(1) for m in pooled], dim=1)
        wanted = None if targets is None else [targets[i] for i in batch]
        logits, slopes = _followed(model, pooled, wanted)
        sizes = [m.values.shape[2] for m in maps]
        layouts = [cast(RowLayout, m.layout) for m in maps]
        before = np.repeat([layout.before for layout in layouts], sizes)
        widths = np.repeat([layout.width for layout in layouts], sizes)
        starts = rows.cpu().numpy() - before
        strengths = values.cpu().double().numpy()
        unknown = np.zeros((len(batch), 0))
        gradient = np.concatenate([s[:, 0] for s in slopes], axis=1) if slopes else unknown
        positions = layouts[0].n_positions(maps[0].present.sum(dim=1))
        for j, i in enumerate(batch):
            counts = n_words[j], int(positions[j])
            found[i] = Hits(strengths[j], starts[j], widths, *counts, logits[j], gradient[j])
    add_calls(len(inputs))
    return [found[i] for i in range(len(inputs))]


def map_gradients(
    model: Convolutional, inputs: Sequence[Input], targets: Sequence[int]
) -> list[list[MapGradient]]:
    """Per input and map: the input's own cells and the gradient of the target's logit there."""
    found: dict[int, list[MapGradient]] = {}
    for batch, n_words, maps in _maps(model, inputs):
        _, slopes = _followed(model, maps, [targets[i] for i in batch])
        for j, i in enumerate(batch):
            found[i] = []
            for m, slope in zip(maps, slopes, strict=True):
                own = int(m.present[j].sum())
                values = m.values[j, :own].cpu().double().numpy()
                found[i].append(MapGradient(m.layout, values, slope[j, :own], n_words[j]))
    add_calls(len(inputs))
    return [found[i] for i in range(len(inputs))]


def _maps(
    model: Convolutional, inputs: Sequence[Input]
) -> Iterator[tuple[list[int], list[int], tuple[FeatureMap, ...]]]:
    """Places of texts, how many of their words were read, and their feature maps."""
    import torch

    for batch in by_length([max(t.n_features, SHORTEST) for t in inputs]):
        with torch.no_grad(), evaluating(model):
            embedded = model.embed([inputs[i] for i in batch])
            maps = model.feature_maps(embedded)
        yield batch, embedded.feature.sum(dim=1).tolist(), maps


def _followed(
    model: Convolutional, maps: Sequence[FeatureMap], targets: Sequence[int] | None
) -> tuple[FloatArray, list[FloatArray]]:
    """Logits (batch, labels) and per map the gradient of the target's logit, if one is named."""
    import torch

    at: list[Tensor] = [m.values.detach().requires_grad_(targets is not None) for m in maps]
    with evaluating(model), torch.set_grad_enabled(targets is not None):
        logits = model.logits_of_maps([replace(m, values=v) for m, v in zip(maps, at, strict=True)])
        answers = logits.detach().cpu().double().numpy()
        if targets is None:
            return answers, []
        slopes = torch.autograd.grad(chosen_output(logits, targets).sum(), at)
    return answers, [slope.cpu().double().numpy() for slope in slopes]
