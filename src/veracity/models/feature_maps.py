"""The last feature maps of any network, found by watching it run; none of its code is changed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count
from typing import Any

import torch
from torch import Tensor, nn


@dataclass(frozen=True)
class MapLayer:
    """The layer whose output are the maps, and which of its calls: networks use layers again."""

    name: str
    call: int

    def within(self, name: str) -> MapLayer:
        """The same layer of a network that has this one under a name."""
        return MapLayer(f"{name}.{self.name}", self.call)


class MappedNetwork(nn.Module):
    """A network from pixels to logits that may be stopped at its maps, or go on from others."""

    def __init__(self, network: nn.Module, layer: MapLayer, shape: tuple[int, int]) -> None:
        super().__init__()
        self.network = network
        self.layer = layer
        self.shape = shape

    def forward(self, values: Tensor) -> Tensor:
        logits: Tensor = self.network(values)
        return logits

    def maps(self, values: Tensor) -> Tensor:
        found: list[Tensor] = []
        with self._at_layer(lambda output: found.append(output)):
            self(values)
        return found[0]

    def decide(self, maps: Tensor) -> Tensor:
        """What it makes of other maps than those it found: in their place."""
        with self._at_layer(lambda _: maps):
            return self(maps.new_zeros((len(maps), 3, *self.shape)))  # type: ignore[no-any-return]

    @contextmanager
    def _at_layer(self, answer: Callable[[Tensor], Tensor | None]) -> Iterator[None]:
        calls = count()

        def hook(_: nn.Module, __: Any, output: Tensor) -> Tensor | None:
            return answer(output) if next(calls) == self.layer.call else None

        handle = self.network.get_submodule(self.layer.name).register_forward_hook(hook)
        try:
            yield
        finally:
            handle.remove()


def find_maps(network: nn.Module, shape: tuple[int, int]) -> MapLayer | None:
    """The last output in rows and columns; None for networks that go on with a sequence, such as
    one of patches, or that have none."""
    found: MapLayer | None = None
    calls: dict[str, count[int]] = {}

    def watching(name: str) -> Callable[..., None]:
        calls[name] = count()

        def hook(_: nn.Module, __: Any, output: Any) -> None:
            nonlocal found
            call = next(calls[name])
            if not isinstance(output, Tensor):
                return
            if output.dim() == 3:
                found = None
            elif output.dim() == 4 and output.shape[2] * output.shape[3] > 1:
                found = MapLayer(name, call)

        return hook

    handles = [
        part.register_forward_hook(watching(name)) for name, part in network.named_modules() if name
    ]
    try:
        with torch.no_grad():
            network(torch.zeros((1, 3, *shape), device=device_of(network)))
    finally:
        for handle in handles:
            handle.remove()
    return found


def device_of(network: nn.Module) -> torch.device:
    return next((p.device for p in network.parameters()), torch.device("cpu"))
