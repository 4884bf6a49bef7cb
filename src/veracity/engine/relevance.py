"""Relevance, shared out layer by layer (definitions 3.6)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import torch
from torch import Tensor

from ..core.classifiers import Differentiable, Embedded
from ..core.inputs import Input
from .gradients import PathGradient
from .propagation import (
    BENT,
    CURVED,
    Function,
    Propagation,
    flat,
    followed,
    grafted,
    is_signal,
    propagated,
    replaced,
    signal_places,
    slope,
)

Rule = Literal["epsilon", "gamma", "z_plus"]


@dataclass(frozen=True)
class LayerRule:
    """How a linear layer shares relevance among its inputs (definitions 3.6)."""

    kind: Rule = "epsilon"
    epsilon: float = 1e-7
    gamma: float = 0.25
    drop_bias: bool = False


class Relevance(Propagation):
    """Relevance R = x · s; the backward pass carries s. Gates and normalisers are constants."""

    rules: ClassVar[dict[str, str]] = {
        **dict.fromkeys(("linear", "conv1d", "conv2d", "conv3d"), "layer"),
        "batch_norm": "normalisation",
        **dict.fromkeys(("mul", "matmul", "einsum"), "product"),
        **dict.fromkeys(
            ("sigmoid", "hardsigmoid", "softmax", "erf", "rsqrt", "reciprocal"), "constant"
        ),
        **dict.fromkeys((*CURVED, *BENT, "relu6", "square"), "through_origin"),
        "clamp": "bounded",
        "pow": "power",
    }

    def __init__(self, layers: LayerRule) -> None:
        super().__init__()
        self.layers = layers

    def layer(
        self, func: Function, x: Tensor, weight: Tensor, bias: Tensor | None = None, *rest: Any
    ) -> Tensor:
        def operation(x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
            return func(x, weight, bias, *rest)

        value = operation(x, weight, bias)
        if not is_signal(x) or is_signal(weight):
            return value
        wide = 0.0 if bias is None else bias.reshape(*bias.shape, *[1] * (weight.dim() - 2))
        shares, share_of_bias = self._shares(operation, x, weight, wide, value)
        whole = shares if self.layers.drop_bias else shares + share_of_bias
        sign = torch.where(whole >= 0, 1.0, -1.0).to(whole)
        factor = (value / (whole + self.layers.epsilon * sign)).detach()
        return grafted(value, shares * factor)

    def normalisation(
        self,
        func: Function,
        x: Tensor,
        weight: Tensor | None,
        bias: Tensor | None,
        mean: Tensor,
        variance: Tensor,
        training: bool,
        *rest: Any,
    ) -> Tensor:
        """With known means and variances, a layer of one input per output."""
        if training:
            return func(x, weight, bias, mean, variance, training, *rest)
        _, eps, *_ = rest  # after the momentum
        scale = torch.rsqrt(variance + eps) * (1.0 if weight is None else weight)
        shift = (0.0 if bias is None else bias) - mean * scale
        wide = (-1, *[1] * (x.dim() - 2))

        def affine(x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
            return x * weight if bias is None else x * weight + bias.reshape(wide)

        return self.layer(affine, x, scale.reshape(1, *wide), shift)

    def _shares(
        self, operation: Function, x: Tensor, weight: Tensor, bias: Any, value: Tensor
    ) -> tuple[Tensor, Any]:
        """What the inputs of either sign give to each output, and what the bias gives."""
        if self.layers.kind == "epsilon":
            return operation(x, weight), bias
        constant = torch.as_tensor(bias).to(weight)
        above, below = torch.where(x > 0, x, 0), torch.where(x > 0, 0, x)
        up, down = weight.clamp(min=0), weight.clamp(max=0)
        if self.layers.kind == "z_plus":
            return operation(above, up) + operation(below, down), constant.clamp(min=0)
        gamma = self.layers.gamma
        up, down = weight + gamma * up, weight + gamma * down
        positive = value > 0
        return (
            torch.where(
                positive,
                operation(above, up) + operation(below, down),
                operation(above, down) + operation(below, up),
            ),
            constant + gamma * torch.where(positive, constant.clamp(min=0), constant.clamp(max=0)),
        )

    def product(self, func: Function, *factors: Any, **named: Any) -> Tensor:
        """Two factors that both depend on the words have half of the relevance each."""
        value = func(*factors, **named)
        each, places = flat(factors), signal_places(factors)
        if len(places) < 2:
            return value
        held = {i: each[i].detach() for i in places}
        paths = [func(*replaced(factors, {**held, i: each[i]}), **named) for i in places]
        return grafted(value, torch.stack(paths).mean(0))

    def constant(self, func: Function, *args: Any, **named: Any) -> Tensor:
        return func(*args, **named).detach()

    def through_origin(self, func: Function, x: Tensor, *rest: Any, **named: Any) -> Tensor:
        """f(x) / x of what arrives goes on to x, so nothing is lost where f(0) = 0."""
        value = func(x, *rest, **named)
        if any(is_signal(r) for r in rest) or not is_signal(x):
            return value
        at_zero = slope(lambda zero: func(zero, *rest, **named), x.new_zeros(()))
        ratio = torch.where(x == 0, at_zero, value / x)
        return grafted(value, x * ratio.detach())

    def bounded(self, func: Function, x: Tensor, *bounds: Any, **named: Any) -> Tensor:
        """An activation where it is nothing at zero; otherwise a guard, against zero, say."""
        numbers = not any(isinstance(b, Tensor) for b in (*bounds, *named.values()))
        active = numbers and is_signal(x) and not func(x.new_zeros(()), *bounds, **named)
        if active:
            return self.through_origin(func, x, *bounds, **named)
        return func(x, *bounds, **named)

    def power(self, func: Function, x: Any, exponent: Any) -> Tensor:
        if isinstance(exponent, Tensor) or 0 <= exponent < 1:
            return func(x, exponent)
        # a negative power is a normaliser
        return (self.constant if exponent < 0 else self.through_origin)(func, x, exponent)


def relevances(
    model: Differentiable, inputs: Sequence[Input], targets: Sequence[int], layers: LayerRule
) -> list[PathGradient]:
    """Embeddings and what to multiply them by to have their relevance for the target's logit."""

    def one_batch(embedded: Embedded, wanted: Sequence[int]) -> tuple[Tensor, list[Tensor]]:
        gradient, logits = followed(model, embedded, wanted, Relevance(layers))
        return gradient, [logits]

    return propagated(model, inputs, targets, one_batch, passes=1)
