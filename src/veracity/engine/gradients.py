"""Gradients along the straight path from nothing to a text, and around a text."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..core.classifiers import Differentiable, Embedded, Stretching
from ..core.inputs import Alignment, FloatArray, Text
from .batches import by_length
from .tally import asked

if TYPE_CHECKING:
    from torch import Tensor

Output = Literal["logit", "probability"]
Norm = Literal["l2", "l1", "max_abs"]

WORDS_AT_ONCE = 1024
"""How many padded words are followed back at a time: more leave the processor's cache."""

NUMBERS_AT_ONCE = 2_000_000
"""How many units of all points together a short cut may hold."""


@dataclass(frozen=True)
class PathGradient:
    """A text's embedding relative to the baseline, and the mean gradient on the way there."""

    values: FloatArray  # (pieces, size)
    gradient: FloatArray  # (pieces, size)
    outputs: FloatArray  # (points,)
    alignment: Alignment


@dataclass(frozen=True)
class NoisyGradient:
    """The mean gradient around a text."""

    gradient: FloatArray  # (pieces, size)
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
    points: ArrayLike = (1.0,),
    weights: ArrayLike = (1.0,),
    output: Output = "logit",
) -> list[PathGradient]:
    """Weighted sums of gradients at points between the baseline (0) and the text (1).

    Points and weights are the same for all texts, or have a row for each. Points without weight
    are only read for their output. The baseline has zero embeddings for all words and keeps
    special pieces as they are, so that what separates it from the text is the words alone
    (SPEC 3.4).
    """
    if not inputs:
        return []
    count = np.shape(points)[-1]
    at = np.broadcast_to(np.asarray(points, dtype=np.float64), (len(inputs), count))
    shares = np.broadcast_to(np.asarray(weights, dtype=np.float64), (len(inputs), count))
    found: dict[int, PathGradient] = {}
    with evaluating(model):
        for batch in by_length([t.n_features * count for t in inputs], WORDS_AT_ONCE):
            embedded = model.embed([inputs[i] for i in batch])
            wanted = [targets[i] for i in batch]
            if isinstance(model, Stretching):
                results = _stretch(model, embedded, wanted, at[batch], shares[batch], output)
            else:
                results = _walk(model, embedded, wanted, at[batch], shares[batch], output)
            found.update(zip(batch, results, strict=True))
    asked(len(inputs) * count)
    return [found[i] for i in range(len(inputs))]


def _walk(
    model: Differentiable,
    embedded: Embedded,
    targets: Sequence[int],
    points: FloatArray,
    weights: FloatArray,
    output: Output,
) -> list[PathGradient]:
    """The plain way: a pass through the whole model for every point."""
    import torch

    end = embedded.values.detach()
    start = without_words(embedded)
    batch, pieces, _ = end.shape
    total = torch.zeros(end.shape, dtype=torch.float64)
    outputs = np.zeros(points.shape)
    step = max(1, WORDS_AT_ONCE // max(1, batch * pieces))
    weightless = np.all(weights == 0, axis=0)
    for columns in _runs(weightless, step):
        m = len(columns)
        alpha = torch.from_numpy(points[:, columns]).to(end).reshape(-1, 1, 1)  # (batch * m, 1, 1)
        many = embedded.with_values(end).repeat(m)
        origin = start.repeat_interleave(m, dim=0)
        here = origin + alpha * (many.values - origin)
        if weightless[columns[0]]:
            with torch.no_grad():
                chosen = chosen_output(model.logits(many.with_values(here)), targets, output)
            outputs[:, columns] = chosen.cpu().double().reshape(batch, m).numpy()
        else:
            at = here.requires_grad_(True)
            by_point, outputs[:, columns] = _followed(model, many, at, targets, output)
            total += torch.einsum("bmpd,bm->bpd", by_point, torch.from_numpy(weights[:, columns]))
    difference = (end - start).cpu().double().numpy()
    gradients = total.numpy()
    return [
        PathGradient(difference[i], gradients[i], outputs[i], embedded.alignments[i])
        for i in range(batch)
    ]


def _runs(kind: NDArray[np.bool_], longest: int) -> Iterator[list[int]]:
    """Places of like kind, at most so many at a time."""
    for wanted in (False, True):
        places = np.flatnonzero(kind == wanted).tolist()
        yield from (places[i : i + longest] for i in range(0, len(places), longest))


def without_words(embedded: Embedded) -> Tensor:
    """The baseline: zero embeddings for words, special pieces as they are (SPEC 3.4, 3.7)."""
    import torch

    values = embedded.values.detach()
    return torch.where(embedded.feature.unsqueeze(-1), torch.zeros_like(values), values)


def _stretch(
    model: Stretching,
    embedded: Embedded,
    targets: Sequence[int],
    points: FloatArray,
    weights: FloatArray,
    output: Output,
) -> list[PathGradient]:
    """The short cut: the first layer is passed once, only what follows it at every point."""
    import torch

    values = embedded.values.detach().requires_grad_(True)
    units = model.stretched(embedded.with_values(values))  # (batch, units)
    end = units.detach()
    batch, size = end.shape
    total = torch.zeros((batch, size), dtype=torch.float64, device=end.device)
    outputs = np.zeros(points.shape)
    step = max(1, NUMBERS_AT_ONCE // max(1, batch * size))
    for first in range(0, points.shape[1], step):
        columns = slice(first, first + step)
        alpha = torch.from_numpy(points[:, columns]).to(end)
        here = (alpha.unsqueeze(-1) * end.unsqueeze(1)).requires_grad_(True)  # (batch, m, units)
        m = here.shape[1]
        logits = model.logits_along(here.reshape(-1, size))
        chosen = chosen_output(logits, targets, output)
        (gradient,) = torch.autograd.grad(chosen.sum(), here)
        share = torch.from_numpy(weights[:, columns]).to(end.device)
        total += torch.einsum("bmu,bm->bu", gradient.double(), share)
        outputs[:, columns] = chosen.detach().cpu().double().reshape(batch, m).numpy()
    (gradients,) = torch.autograd.grad((units * total.to(units)).sum(), values)
    ends = values.detach().cpu().double().numpy()
    slopes = gradients.cpu().double().numpy()
    return [
        PathGradient(ends[i], slopes[i], outputs[i], embedded.alignments[i]) for i in range(batch)
    ]


def noisy_gradients(
    model: Differentiable,
    inputs: Sequence[Text],
    targets: Sequence[int],
    rngs: Sequence[np.random.Generator],
    *,
    copies: int,
    noise: float,
    absolute: bool,
    output: Output = "logit",
) -> list[NoisyGradient]:
    """Mean gradients over copies of each text, its words moved at random (SPEC 3.5)."""
    found: dict[int, NoisyGradient] = {}
    with evaluating(model):
        for batch in by_length([t.n_features * copies for t in inputs], WORDS_AT_ONCE):
            embedded = model.embed([inputs[i] for i in batch])
            wanted, own = [targets[i] for i in batch], [rngs[i] for i in batch]
            means = _around(model, embedded, wanted, own, copies, noise, absolute, output)
            rows = zip(means, embedded.alignments, strict=True)
            found.update(zip(batch, (NoisyGradient(*row) for row in rows), strict=True))
    asked(len(inputs) * copies)
    return [found[i] for i in range(len(inputs))]


def _around(
    model: Differentiable,
    embedded: Embedded,
    targets: Sequence[int],
    rngs: Sequence[np.random.Generator],
    copies: int,
    noise: float,
    absolute: bool,
    output: Output,
) -> FloatArray:
    import torch

    point = embedded.values.detach()
    words = [flags.nonzero().squeeze(1) for flags in embedded.feature]
    ranges = [
        float(values[where].max() - values[where].min()) if len(where) else 0.0
        for values, where in zip(point, words, strict=True)
    ]
    batch, pieces, size = point.shape
    total = torch.zeros(point.shape, dtype=torch.float64)
    step = max(1, WORDS_AT_ONCE // max(1, batch * pieces))
    for first in range(0, copies, step):
        m = min(step, copies - first)
        moved = point.unsqueeze(1).repeat(1, m, 1, 1)  # (batch, m, pieces, size)
        for i, (where, rng) in enumerate(zip(words, rngs, strict=True)):
            # only words are moved: a draw depends on neither padding nor neighbours
            drawn = rng.standard_normal((m, len(where), size)) * (noise * ranges[i])
            moved[i, :, where] += torch.from_numpy(drawn).to(moved)
        many = embedded.with_values(point).repeat(m)
        at = moved.reshape(batch * m, pieces, size).requires_grad_(True)
        by_copy, _ = _followed(model, many, at, targets, output)
        total += (by_copy.abs() if absolute else by_copy).sum(dim=1)
    means: FloatArray = (total / copies).numpy()
    return means


def sizes(gradient: FloatArray, norm: Norm) -> FloatArray:
    """One unsigned number per piece. (pieces, size) → (pieces,)"""
    order = {"l2": 2, "l1": 1, "max_abs": np.inf}[norm]
    found: FloatArray = np.linalg.norm(gradient, ord=order, axis=1)
    return found


def _followed(
    model: Differentiable, many: Embedded, at: Tensor, targets: Sequence[int], output: Output
) -> tuple[Tensor, FloatArray]:
    """Gradients (batch, times, pieces, size) and outputs (batch, times) at several points each."""
    import torch

    batch = len(targets)
    chosen = chosen_output(model.logits(many.with_values(at)), targets, output)
    (gradient,) = torch.autograd.grad(chosen.sum(), at)
    outputs = chosen.detach().cpu().double().reshape(batch, -1).numpy()
    return gradient.detach().cpu().double().reshape(batch, -1, *at.shape[1:]), outputs


def chosen_output(logits: Tensor, targets: Sequence[int], output: Output = "logit") -> Tensor:
    """The value that is explained; rows may repeat each target. (rows, labels) → (rows,)"""
    import torch

    times = len(logits) // len(targets)
    rows = torch.tensor(targets, device=logits.device).repeat_interleave(times).unsqueeze(1)
    values = torch.softmax(logits, dim=-1) if output == "probability" else logits
    return values.gather(1, rows).squeeze(1)
