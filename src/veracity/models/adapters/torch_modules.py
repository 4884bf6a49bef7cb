"""Somebody's PyTorch network of pictures as a classifier with gradients."""

from __future__ import annotations

import reprlib
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from ...core.errors import ModelError
from ...core.foreign import guarded
from ...engine.gradients import evaluating
from ..feature_maps import MappedNetwork, device_of, find_maps
from ..pictures import DEVIATION, MEAN, MappedPicture, NeuralPicture
from .callables import checked_labels, numbered_labels, resolved


class OwnNetwork(nn.Module):
    """A network that is made anew, by whoever made it, where another process needs it: a class from
    a file has no module that could be imported there."""

    def __init__(self, network: nn.Module, spec: str) -> None:
        super().__init__()
        self.network = network
        self.spec = spec

    def forward(self, values: Tensor) -> Tensor:
        logits: Tensor = self.network(values)
        return logits

    def __reduce_ex__(self, protocol: Any) -> Any:
        return (_made_again, (self.spec,)) if self.spec else super().__reduce_ex__(protocol)


def _made_again(spec: str) -> OwnNetwork:
    return OwnNetwork(resolved(spec), spec)


def picture_network(
    network: Any, labels: Sequence[str] | None = None, *, spec: str = ""
) -> NeuralPicture:
    """A network from normalised pixels (batch, 3, height, width) to logits (batch, labels). Its
    attributes say how it is used: `size`, and if need be `labels`, `mean` and `std`."""
    name = spec or type(network).__name__
    shape = _shape(network.size, name)
    with guarded(f"the model {name}", " on an empty picture"), evaluating(network):
        with torch.no_grad():
            logits = network(torch.zeros((1, 3, *shape), device=device_of(network)))
        _check_logits(logits, name)
        layer = find_maps(network, shape)
    given = getattr(network, "labels", None) if labels is None else labels
    names = (
        numbered_labels(logits.shape[1]) if given is None else checked_labels(given, source=name)
    )
    if len(names) != logits.shape[1]:
        raise ModelError(
            f"expected {logits.shape[1]} labels, one per output of {name}; got {len(names)}"
        )
    own: nn.Module = OwnNetwork(network, spec)
    kind = NeuralPicture if layer is None else MappedPicture
    if layer is not None:
        own = MappedNetwork(own, layer.within("network"), shape)
    made = kind(
        own,
        names,
        shape,
        mean=_channels(network, "mean", MEAN, name),
        deviation=_channels(network, "std", DEVIATION, name),
        name=type(network).__name__,
    )
    made.to(device_of(network))
    return made.eval() if spec else made  # a live one is left as its owner has it


def _shape(size: Any, name: str) -> tuple[int, int]:
    shape = tuple(size) if isinstance(size, list | tuple) else (size, size)
    if len(shape) != 2 or not all(isinstance(n, int) and 0 < n < 10_000 for n in shape):
        raise ModelError(
            f"expected `size` of {name} to be the side of its pictures in pixels, or their height "
            f"and width; got {reprlib.repr(size)}"
        )
    return shape


def _channels(network: Any, which: str, usual: Sequence[float], name: str) -> tuple[float, ...]:
    given = getattr(network, which, usual)
    try:
        found = tuple(map(float, given))
    except (TypeError, ValueError):
        found = ()
    if len(found) != 3 or (which == "std" and min(found) <= 0):
        raise ModelError(
            f"expected `{which}` of {name} to be three numbers, one per channel"
            f"{', above 0' if which == 'std' else ''}; got {reprlib.repr(given)}"
        )
    return found


def _check_logits(found: Any, name: str) -> None:
    if not isinstance(found, Tensor) or found.dim() != 2 or len(found) != 1 or found.shape[1] < 2:
        seen = tuple(found.shape) if isinstance(found, Tensor) else type(found).__name__
        raise ModelError(
            f"expected {name} to give a tensor of logits, (1, labels) for one picture; got {seen}"
        )
    if (found >= 0).all() and abs(float(found.sum()) - 1) < 1e-4:
        raise ModelError(
            f"expected logits of {name}, got what sums to 1: leave its softmax out, since methods "
            "ask about logits"
        )
