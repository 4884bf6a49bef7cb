"""Gradients along the straight path from nothing to a text."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

from ..core.classifiers import Differentiable, Embedded
from ..core.inputs import Alignment, FloatArray, Text
from .batches import WORDS_AT_ONCE, by_length
from .tally import asked

if TYPE_CHECKING:
    from torch import Tensor

Output = Literal["logit", "probability"]


@dataclass(frozen=True)
class PathGradient:
    """A text's embedding relative to the baseline, and the mean gradient on the way there."""

    values: FloatArray  # (pieces, size)
    gradient: FloatArray  # (pieces, size)
    outputs: FloatArray  # (points,)
    alignment: Alignment


@contextlib.contextmanager
def evaluating(model: object) -> Iterator[None]:
    """The model in evaluation mode; each part is put back in the mode it was found in."""
    import torch

    if not isinstance(model, torch.nn.Module):
        yield
        return
    modes = [(part, part.training) for part in model.modules()]
    try:
        model.eval()
        yield
    finally:
        for part, mode in modes:
            part.training = mode


def path_gradients(
    model: Differentiable,
    inputs: Sequence[Text],
    targets: Sequence[int],
    *,
    points: Sequence[float] = (1.0,),
    weights: Sequence[float] = (1.0,),
    output: Output = "logit",
) -> list[PathGradient]:
    """Weighted sums of gradients at points between the baseline (0) and the text (1).

    The baseline has zero embeddings for all words and keeps special pieces as they are, so that
    what separates it from the text is the words alone (SPEC 3.4).
    """
    found: dict[int, PathGradient] = {}
    with evaluating(model):
        for batch in by_length([t.n_features * len(points) for t in inputs]):
            embedded = model.embed([inputs[i] for i in batch])
            wanted = [targets[i] for i in batch]
            results = _walk(model, embedded, wanted, points, weights, output)
            found.update(zip(batch, results, strict=True))
    asked(len(inputs) * len(points))
    return [found[i] for i in range(len(inputs))]


def _walk(
    model: Differentiable,
    embedded: Embedded,
    targets: Sequence[int],
    points: Sequence[float],
    weights: Sequence[float],
    output: Output,
) -> list[PathGradient]:
    import torch

    end = embedded.values.detach()
    start = without_words(embedded)
    batch, pieces, _ = end.shape
    total = torch.zeros(end.shape, dtype=torch.float64)
    outputs = np.zeros((batch, len(points)))
    step = max(1, WORDS_AT_ONCE // max(1, batch * pieces))
    for first in range(0, len(points), step):
        here = torch.tensor(points[first : first + step], dtype=end.dtype, device=end.device)
        share = torch.tensor(weights[first : first + step], dtype=torch.float64)
        m = len(here)
        alpha = here.repeat(batch).reshape(-1, 1, 1)  # (batch * m, 1, 1)
        many = embedded.with_values(end).repeat(m)
        origin = start.repeat_interleave(m, dim=0)
        at = (origin + alpha * (many.values - origin)).requires_grad_(True)
        value = chosen(model.logits(many.with_values(at)), targets, m, output)
        (gradient,) = torch.autograd.grad(value.sum(), at)
        by_point = gradient.detach().cpu().double().reshape(batch, m, pieces, -1)
        total += torch.einsum("bmpd,m->bpd", by_point, share)
        outputs[:, first : first + m] = value.detach().cpu().double().reshape(batch, m).numpy()
    difference = (end - start).cpu().double().numpy()
    gradients = total.numpy()
    return [
        PathGradient(difference[i], gradients[i], outputs[i], embedded.alignments[i])
        for i in range(batch)
    ]


def without_words(embedded: Embedded) -> Tensor:
    """The baseline: zero embeddings for words, special pieces as they are (SPEC 3.4, 3.7)."""
    import torch

    values = embedded.values.detach()
    return torch.where(embedded.feature.unsqueeze(-1), torch.zeros_like(values), values)


def chosen(logits: Tensor, targets: Sequence[int], times: int, output: Output) -> Tensor:
    """The explained number of each row, when every target has `times` rows."""
    import torch

    rows = torch.tensor(targets, device=logits.device).repeat_interleave(times).unsqueeze(1)
    values = torch.softmax(logits, dim=-1) if output == "probability" else logits
    return values.gather(1, rows).squeeze(1)
