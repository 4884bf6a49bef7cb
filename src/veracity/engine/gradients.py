"""Gradients along the straight path from nothing to an input, and around an input."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..core.classifiers import Differentiable, Embedded, LinearFirstLayer, Traits
from ..core.errors import ModelError
from ..core.inputs import Alignment, FloatArray, Input
from .batches import FEATURES_AT_ONCE, by_length
from .call_counter import add_calls
from .inference import uncounted_probabilities

if TYPE_CHECKING:
    from torch import Tensor

GradientOutput = Literal["logit", "probability"]
Norm = Literal["l2", "l1", "max_abs"]

FOLLOWED_AT_ONCE = 1024
"""How many padded features are followed back at a time: more leave the processor's cache."""

SAME_ANSWER = 1e-3
"""Probabilities nearer than this are one answer: batches and precisions round differently."""

NUMBERS_AT_ONCE = 2_000_000
"""How many units of all points together a short cut may hold."""


def followed_at_once(model: object) -> int:
    """How many features of this model are followed back at a time."""
    own = Traits(model).followed_at_once
    return FOLLOWED_AT_ONCE if own is None else own


@dataclass(frozen=True)
class PathGradient:
    """An input's embedding relative to the baseline, and the mean gradient on the way there or
    around it."""

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
    inputs: Sequence[Input],
    targets: Sequence[int],
    *,
    points: ArrayLike = (1.0,),
    weights: ArrayLike = (1.0,),
    output: GradientOutput = "logit",
) -> list[PathGradient]:
    """Weighted sums of gradients at points between the baseline (0) and the text (1).

    Points and weights are the same for all texts, or have a row for each. Points without weight
    are only read for their output. The baseline has zero embeddings for all words and keeps
    special pieces as they are, so that what separates it from the text is the words alone
    (definitions 3.4).
    """
    if not inputs:
        return []
    count = np.shape(points)[-1]
    at = np.broadcast_to(np.asarray(points, dtype=np.float64), (len(inputs), count))
    shares = np.broadcast_to(np.asarray(weights, dtype=np.float64), (len(inputs), count))

    def follow(batch: list[int], embedded: Embedded) -> tuple[list[PathGradient], Tensor]:
        wanted = [targets[i] for i in batch]
        given = embedded, wanted, at[batch], shares[batch], output
        return (
            _through_first_layer(model, *given)
            if isinstance(model, LinearFirstLayer)
            else _walk(model, *given)
        )

    return in_batches(model, inputs, follow, passes=count, budget=followed_at_once(model))


def in_batches(
    model: Differentiable,
    inputs: Sequence[Input],
    follow: Callable[[list[int], Embedded], tuple[list[PathGradient], Tensor]],
    *,
    passes: int,
    budget: int = FEATURES_AT_ONCE,
) -> list[PathGradient]:
    """What `follow` finds in batches of like length; it also gives the logits of the inputs
    themselves, where it came by them."""
    found: dict[int, PathGradient] = {}
    with evaluating(model):
        for batch in by_length([t.n_features * passes for t in inputs], budget):
            embedded = model.embed([inputs[i] for i in batch])
            results, logits = follow(batch, embedded)
            check_answers(model, [inputs[i] for i in batch], logits)
            found.update(zip(batch, results, strict=True))
    add_calls(len(inputs) * passes)
    return [found[i] for i in range(len(inputs))]


def _walk(
    model: Differentiable,
    embedded: Embedded,
    targets: Sequence[int],
    points: FloatArray,
    weights: FloatArray,
    output: GradientOutput,
) -> tuple[list[PathGradient], Tensor]:
    """The plain way: a pass through the whole model for every point. Also the logits at the ends of
    the paths, as far as they were reached."""
    import torch

    end, start = embedded.values.detach(), without_features(embedded)
    total = torch.zeros(end.shape, dtype=torch.float64, device="cpu")
    outputs = np.zeros(points.shape)
    ends = end.new_full((len(end), len(model.labels)), torch.nan)

    def on_the_way(columns: list[int]) -> Tensor:
        alpha = torch.from_numpy(points[:, columns]).to(end).reshape(-1, 1, 1)  # (batch * m, 1, 1)
        origin = start.repeat_interleave(len(columns), dim=0)
        return origin + alpha * (end.repeat_interleave(len(columns), dim=0) - origin)

    unweighted = np.all(weights == 0, axis=0)
    passes = _passes(model, embedded, targets, on_the_way, unweighted, output)
    for columns, gradient, logits in passes:
        if gradient is not None:
            total += torch.einsum("bmpd,bm->bpd", gradient, torch.from_numpy(weights[:, columns]))
        chosen = chosen_output(logits, targets, output)
        outputs[:, columns] = _numbers(chosen).reshape(len(end), -1)
        ends = _reached(ends, logits, points[:, columns])
    return records(end - start, total, outputs, embedded), ends


def _passes(
    model: Differentiable,
    embedded: Embedded,
    targets: Sequence[int],
    points: Callable[[list[int]], Tensor],
    unweighted: NDArray[np.bool_],
    output: GradientOutput,
) -> Iterator[tuple[list[int], Tensor | None, Tensor]]:
    """As many points of each input as fit at a time, which `points` makes: their places, gradients
    (batch, points, pieces, size) unless they have no weight, logits (batch * points, labels)."""
    import torch

    batch, pieces, size = embedded.values.shape
    step = max(1, followed_at_once(model) // max(1, batch * pieces))
    for columns in _runs(unweighted, step):
        here = points(columns)
        many = embedded.repeat(len(columns)).with_values(here)
        if unweighted[columns[0]]:
            with torch.no_grad():
                logits = model.logits(many)
            yield columns, None, logits
            continue
        here.requires_grad_(True)
        logits = model.logits(many)
        (gradient,) = torch.autograd.grad(chosen_output(logits, targets, output).sum(), here)
        by_point = gradient.detach().cpu().double().reshape(batch, -1, pieces, size)
        yield columns, by_point, logits.detach()


def records(
    difference: Tensor, gradients: Tensor, outputs: FloatArray, embedded: Embedded
) -> list[PathGradient]:
    rows = (_numbers(difference), _numbers(gradients), outputs, embedded.alignments)
    return [PathGradient(*row) for row in zip(*rows, strict=True)]


def _reached(ends: Tensor, logits: Tensor, points: FloatArray) -> Tensor:
    """The logits at the texts themselves, where they are among these. points (batch, m)"""
    import torch

    there = torch.from_numpy(points == 1.0).to(ends.device)
    rows = logits.detach().to(ends).reshape(*there.shape, -1)
    last = rows.gather(1, there.byte().argmax(1)[:, None, None].expand(-1, 1, rows.shape[2]))
    return torch.where(there.any(1)[:, None], last.squeeze(1), ends)


def check_answers(model: Differentiable, inputs: Sequence[Input], logits: Tensor) -> None:
    """What is explained is what the model answers, or a sentence that says it is not.

    A model may read embeddings otherwise than texts: padding it knows by number only, say. Rows
    that are not known are left out. logits (inputs, labels)
    """
    import torch

    known = (~logits.isnan().any(dim=1)).nonzero().flatten().tolist()
    texts = [inputs[i] for i in known]
    if not texts:
        return

    # not counted: to be explained, the answers were asked for before
    answers = uncounted_probabilities(model, texts)
    followed = _numbers(torch.softmax(logits.detach().double(), dim=-1))[known]
    apart = np.abs(answers - followed).max(axis=1)
    worst = int(apart.argmax())
    if apart[worst] > max(SAME_ANSWER, 8 * torch.finfo(logits.dtype).eps):
        label = int(np.abs(answers - followed)[worst].argmax())
        raise ModelError(
            f"expected the model's answer to {str(texts[worst])[:60]!r} to be the same from its "
            f"embeddings as from the text; {model.labels[label]} has {followed[worst, label]:.4f} "
            f"from embeddings and {answers[worst, label]:.4f} from the text, so gradients would "
            "explain another answer. Methods that only ask the model would work: occlusion, lime, "
            "shap"
        )


def _numbers(values: Tensor) -> FloatArray:
    found: FloatArray = values.detach().cpu().double().numpy()
    return found


def _runs(kind: NDArray[np.bool_], longest: int) -> Iterator[list[int]]:
    """Places of like kind, at most so many at a time."""
    for wanted in (False, True):
        places = np.flatnonzero(kind == wanted).tolist()
        yield from (places[i : i + longest] for i in range(0, len(places), longest))


def without_features(embedded: Embedded) -> Tensor:
    """The baseline: zero embeddings for features, special pieces as they are (definitions 3.4,
    3.7)."""
    import torch

    values = embedded.values.detach()
    return torch.where(embedded.feature.unsqueeze(-1), torch.zeros_like(values), values)


def _through_first_layer(
    model: LinearFirstLayer,
    embedded: Embedded,
    targets: Sequence[int],
    points: FloatArray,
    weights: FloatArray,
    output: GradientOutput,
) -> tuple[list[PathGradient], Tensor]:
    """The short cut: the first layer is passed once, only what follows it at every point."""
    import torch

    values = embedded.values.detach().requires_grad_(True)
    units = model.first_layer(embedded.with_values(values))  # (batch, units)
    end = units.detach()
    batch, size = end.shape
    total = torch.zeros((batch, size), dtype=torch.float64, device=end.device)
    outputs = np.zeros(points.shape)
    ends = end.new_full((batch, len(model.labels)), torch.nan)
    step = max(1, NUMBERS_AT_ONCE // max(1, batch * size))
    for first in range(0, points.shape[1], step):
        columns = slice(first, first + step)
        alpha = torch.from_numpy(points[:, columns]).to(end)
        here = (alpha.unsqueeze(-1) * end.unsqueeze(1)).requires_grad_(True)  # (batch, m, units)
        m = here.shape[1]
        logits = model.logits_of_units(here.reshape(-1, size))
        chosen = chosen_output(logits, targets, output)
        (gradient,) = torch.autograd.grad(chosen.sum(), here)
        share = torch.from_numpy(weights[:, columns]).to(end.device)
        total += torch.einsum("bmu,bm->bu", gradient.double(), share)
        outputs[:, columns] = _numbers(chosen).reshape(batch, m)
        ends = _reached(ends, logits, points[:, columns])
    (gradients,) = torch.autograd.grad((units * total.to(units)).sum(), values)
    return records(values, gradients, outputs, embedded), ends


def noisy_gradients(
    model: Differentiable,
    inputs: Sequence[Input],
    targets: Sequence[int],
    rngs: Sequence[np.random.Generator],
    *,
    copies: int,
    noise: float,
    absolute: bool,
    output: GradientOutput = "logit",
) -> list[PathGradient]:
    """Mean gradients over copies of each input, its features moved at random (definitions 3.5)."""
    import torch

    def follow(batch: list[int], embedded: Embedded) -> tuple[list[PathGradient], Tensor]:
        with torch.no_grad():
            logits = model.logits(embedded)
        end = embedded.values.detach()
        total = torch.zeros(end.shape, dtype=torch.float64, device="cpu")
        nearby = _nearby(embedded, [rngs[i] for i in batch], noise)
        weighted = np.zeros(copies, dtype=np.bool_)
        wanted = [targets[i] for i in batch]
        for _, gradient, _ in _passes(model, embedded, wanted, nearby, weighted, output):
            assert gradient is not None
            total += (gradient.abs() if absolute else gradient).sum(dim=1)
        nothing = np.zeros((len(batch), 0))
        return records(end - without_features(embedded), total / copies, nothing, embedded), logits

    return in_batches(model, inputs, follow, passes=copies, budget=followed_at_once(model))


def expected_gradients(
    model: Differentiable,
    inputs: Sequence[Input],
    targets: Sequence[int],
    rngs: Sequence[np.random.Generator],
    *,
    others: Sequence[Input],
    draws: int,
) -> list[FloatArray]:
    """Per input, the mean of (x - b) times the gradient at b + u (x - b), over drawn others b and
    u from 0 to 1: what the answer owes to not being like the others (definitions 3.14).
    → (pieces, size) each"""
    import torch

    with evaluating(model), torch.no_grad():
        elsewhere = model.embed(others).values.detach()  # (others, pieces, size)

    def expected(one: Input, target: int, rng: np.random.Generator) -> FloatArray:
        which = torch.from_numpy(rng.integers(len(others), size=draws))
        on_the_way = torch.from_numpy(rng.random(draws)).to(elsewhere)
        embedded = model.embed([one])
        here = embedded.values.detach()[0]
        check_answers(model, [one], model.logits(embedded).detach())
        total = torch.zeros(here.shape, dtype=torch.float64)

        def points(columns: list[int]) -> Tensor:
            start = elsewhere[which[columns]]
            return start + on_the_way[columns, None, None] * (here - start)

        weighted = np.zeros(draws, dtype=np.bool_)
        for columns, gradient, _ in _passes(model, embedded, [target], points, weighted, "logit"):
            assert gradient is not None
            away = (here - elsewhere[which[columns]]).cpu().double()
            total += (away * gradient[0]).sum(dim=0)
        return _numbers(total / draws)

    with evaluating(model):
        found = [expected(*row) for row in zip(inputs, targets, rngs, strict=True)]
    add_calls(len(inputs) * draws)
    return found


def _nearby(
    embedded: Embedded, rngs: Sequence[np.random.Generator], noise: float
) -> Callable[[list[int]], Tensor]:
    """Makes copies whose features are moved by a share of the range of an input's embeddings."""
    import torch

    point = embedded.values.detach()
    features = [flags.nonzero().squeeze(1) for flags in embedded.feature]
    ranges = [
        float(values[where].max() - values[where].min()) if len(where) else 0.0
        for values, where in zip(point, features, strict=True)
    ]

    def copies(columns: list[int]) -> Tensor:
        moved = point.unsqueeze(1).repeat(1, len(columns), 1, 1)  # (batch, m, pieces, size)
        for i, (where, rng) in enumerate(zip(features, rngs, strict=True)):
            # only features are moved: a draw depends on neither padding nor neighbours
            drawn = rng.standard_normal((len(columns), len(where), point.shape[2]))
            moved[i, :, where] += torch.from_numpy(drawn * (noise * ranges[i])).to(moved)
        return moved.flatten(0, 1)

    return copies


def sizes(gradient: FloatArray, norm: Norm) -> FloatArray:
    """One unsigned number per piece. (pieces, size) → (pieces,)"""
    order = {"l2": 2, "l1": 1, "max_abs": np.inf}[norm]
    found: FloatArray = np.linalg.norm(gradient, ord=order, axis=1)
    return found


def chosen_output(
    logits: Tensor, targets: Sequence[int], output: GradientOutput = "logit"
) -> Tensor:
    """The value that is explained; rows may repeat each target. (rows, labels) → (rows,)"""
    import torch

    times = len(logits) // len(targets)
    rows = torch.tensor(targets, device=logits.device).repeat_interleave(times).unsqueeze(1)
    values = torch.softmax(logits, dim=-1) if output == "probability" else logits
    return values.gather(1, rows).squeeze(1)
