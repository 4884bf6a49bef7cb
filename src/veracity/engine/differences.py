"""Differences from a reference, followed by the rescale rule (definitions 3.7)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import torch
from torch import Tensor

from ..core.classifiers import Differentiable, Embedded
from ..core.errors import ModelError
from ..core.inputs import Input
from .gradients import PathGradient, without_features
from .propagation import (
    BENT,
    CURVED,
    OFF_ORIGIN,
    POWERS,
    Function,
    Propagation,
    answered,
    flat,
    followed,
    grafted,
    is_signal,
    propagated,
    replaced,
    signal_places,
    slope,
)

SMALL = 1e-7
"""Differences below this are none: the slope stands in for the quotient (definitions 3.7)."""


class Differences(Propagation):
    """Multipliers that share the difference from a reference among the inputs (definitions 3.7).

    The reference is run first and every answered call is remembered; the text then meets the same
    calls in the same order. So nothing need be known of how a model arranges its rows. Nobody
    follows the reference back, so that it needs no multipliers.
    """

    rules: ClassVar[dict[str, str]] = {
        **dict.fromkeys(
            (*CURVED, *BENT, *OFF_ORIGIN, *POWERS, "relu", "relu6", "prelu", "threshold", "abs"),
            "elementwise",
        ),
        **dict.fromkeys(("mul", "matmul", "einsum", "linear"), "product"),
        **dict.fromkeys(
            ("max_pool1d", "adaptive_max_pool1d", "max_pool2d", "adaptive_max_pool2d"), "pooled"
        ),
        "softmax": "softmax",
        "log_softmax": "log_softmax",
        "logsumexp": "log_sum_exp",
    }

    def __init__(self) -> None:
        super().__init__()
        self.calls: list[tuple[str, list[Tensor]]] = []
        self.place: int | None = None
        """The next call to be met again; None while the reference is run."""

    def at_reference(self, name: str, *signals: Tensor) -> list[Tensor]:
        """What these were when the reference was run."""
        if self.place is None:
            # copies, since the model may write into what it was given
            self.calls.append((name, [s.detach().clone() for s in signals]))
            return self.calls[-1][1]
        found = self.calls[self.place] if self.place < len(self.calls) else ("nothing", [])
        self.place += 1
        if found[0] != name or [f.shape for f in found[1]] != [s.shape for s in signals]:
            raise ModelError(
                "deep_lift expects a model that takes the same steps for a text and for its "
                f"reference; this one went on with {name} where it went on with {found[0]} before. "
                "Use integrated_gradients for it"
            )
        return found[1]

    def elementwise(self, func: Function, x: Tensor, *rest: Any, **named: Any) -> Tensor:
        """Δout / Δin; the slope where the difference is too small to divide by."""
        value = func(x, *rest, **named)
        if any(is_signal(r) for r in rest) or not is_signal(x):
            return value
        (before,) = self.at_reference(func.__name__, x)
        if self.place is None:
            return value
        here = x.detach()
        # where both are infinite, as hidden scores are, there is no difference
        step = torch.where(here == before, torch.zeros_like(here), here - before)
        close = step.abs() < SMALL
        quotient = (value.detach() - func(before, *rest, **named)) / torch.where(close, 1.0, step)
        at_here = slope(lambda at: func(at, *rest, **named), here)
        return grafted(value, x * torch.where(close, at_here, quotient))

    def product(self, func: Function, *factors: Any, **named: Any) -> Tensor:
        """Each factor times the mean of the other: ab - a'b' = Δa (b + b')/2 + Δb (a + a')/2."""
        value = func(*factors, **named)
        places = signal_places(factors)
        if len(places) != 2:
            return value
        each = flat(factors)
        before = self.at_reference(func.__name__, *(each[i] for i in places))
        if self.place is None:
            return value
        means = [(each[i].detach() + b) / 2 for i, b in zip(places, before, strict=True)]
        middle = replaced(factors, dict(zip(places, means, strict=True)))
        paths = [func(*replaced(middle, {i: each[i]}), **named) for i in places]
        return grafted(value, paths[0] + paths[1])

    def pooled(self, func: Function, x: Tensor, *rest: Any, **named: Any) -> Any:
        """The winner gets all; where the reference of a picture is not alike in all places, a fall
        is due to the place that won in the reference."""
        value, winner = func(x, *rest, **{**named, "return_indices": True})
        (before,) = self.at_reference(func.__name__, x)
        then, earlier = func(before, *rest, **{**named, "return_indices": True})
        plane = func.__name__.endswith("2d")
        last = -2 if plane else -1

        def at(values: Tensor, places: Tensor) -> Tensor:
            return values.flatten(last).gather(-1, places.flatten(last)).view_as(winner)

        # a winner that was no worse in the reference than any other has the difference itself
        own = ~torch.tensor(plane) | (value >= then) | (at(before, winner) >= then)
        due = torch.where(own, winner, earlier)
        found = grafted(value, _all_credit(at(x, due), at(before, due), value, then))
        return (found, winner) if named.get("return_indices") else found

    def won(self, x: Tensor, value: Tensor, winner: Tensor, dim: int) -> Tensor:
        (before,) = self.at_reference("max", x)
        was, then = before.gather(dim, winner), before.amax(dim, keepdim=True)
        return _all_credit(x.gather(dim, winner), was, value, then)

    def softmax(self, func: Function, x: Tensor, dim: int, dtype: Any = None) -> Tensor:
        with self:
            return torch.exp(torch.log_softmax(x, dim, dtype=dtype))

    def log_softmax(self, func: Function, x: Tensor, dim: int, dtype: Any = None) -> Tensor:
        with self:
            cast = x if dtype is None else x.to(dtype)
            return cast - torch.logsumexp(cast, dim, keepdim=True)

    def log_sum_exp(self, func: Function, x: Tensor, dim: Any, keepdim: bool = False) -> Tensor:
        """exp, sum and log, each by its quotient; put together by their logarithms, since the
        exponentials of a text and of its reference need not fit the same range."""
        value = func(x, dim, keepdim)
        (before,) = self.at_reference("logsumexp", x)
        if self.place is None:
            return value
        here = x.detach()
        now, then = func(here, dim, True), func(before, dim, True)
        step = torch.where(here == before, torch.zeros_like(here), here - before)
        logarithm = (here / 2 + before / 2) - (now / 2 + then / 2)
        ratio = (logarithm + _log_sinhc(step / 2) - _log_sinhc((now - then) / 2)).exp()
        # hidden places weigh nothing, and minus infinity times nothing is not a number
        seen = torch.where(ratio > 0, x, torch.zeros_like(x))
        return grafted(value, (seen * ratio).sum(dim, keepdim=keepdim))


def _all_credit(x: Tensor, before: Tensor, value: Tensor, then: Tensor) -> Tensor:
    """The winner gets the whole difference, even if another place won in the reference."""
    step = (x - before).detach()
    close = ~(step.abs() >= SMALL)
    ratio = (value.detach() - then) / torch.where(close, 1.0, step)
    return x * torch.where(close, 1.0, ratio)


def _log_sinhc(t: Tensor) -> Tensor:
    """log(sinh(t) / t), also for large t."""
    size = t.abs()
    safe = torch.where(size < 1e-2, torch.ones_like(size), size)
    large = safe + torch.log(-torch.expm1(-2 * safe) / (2 * safe))
    return torch.where(size < 1e-2, t * t / 6 - t**4 / 180, large)


def contributions(
    model: Differentiable, inputs: Sequence[Input], targets: Sequence[int]
) -> list[PathGradient]:
    """Embeddings and their multipliers, against a reference whose words are zero
    (definitions 3.7)."""

    def one_batch(embedded: Embedded, wanted: Sequence[int]) -> tuple[Tensor, list[Tensor]]:
        rules = Differences()
        reference = embedded.with_values(without_features(embedded))
        base = answered(model, reference, rules)[1].detach()
        rules.place = 0
        gradient, own = followed(model, embedded, wanted, rules)
        return gradient, [base, own]

    return propagated(model, inputs, targets, one_batch, passes=2)
