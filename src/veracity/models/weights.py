"""Weights in files: what a header says is held against a model before anything is allocated."""

from __future__ import annotations

from collections.abc import Mapping
from math import prod
from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import load_file
from torch import nn

from ..core.files import check_file
from ..core.limits import WEIGHTS

Shapes = Mapping[str, tuple[int, ...]]


def shapes_in(path: Path) -> dict[str, tuple[int, ...]]:
    """The shape of every tensor in a file; nothing else of it is read. What is wrong with the file
    is a ValueError or an OSError."""
    WEIGHTS.check(check_file(path), path)
    try:
        with safe_open(path, framework="pt") as file:
            names = file.keys()
            return {name: tuple(file.get_slice(name).get_shape()) for name in names}
    except SafetensorError as error:
        raise ValueError(f"{path.name}: {error}") from None


def load_weights(path: Path) -> dict[str, torch.Tensor]:
    """The tensors of a file; what is wrong with it is a ValueError or an OSError."""
    WEIGHTS.check(check_file(path), path)
    try:
        return load_file(path)
    except SafetensorError as error:
        raise ValueError(f"{path.name}: {error}") from None


def count(shapes: Shapes) -> int:
    """How many numbers these tensors hold."""
    return sum(map(prod, shapes.values()))


def check_shapes(expected: nn.Module, found: Shapes) -> None:
    """The tensors that a model needs are those of its file: told by shapes, before it is built."""
    needed = {name: tuple(t.shape) for name, t in expected.state_dict().items()}
    for name in sorted(needed.keys() | found.keys()):
        if needed.get(name) != found.get(name):
            raise ValueError(
                f"by its settings {name} has {_said(needed.get(name))}, by its file "
                f"{_said(found.get(name))}"
            )


def _said(shape: tuple[int, ...] | None) -> str:
    return "no weights" if shape is None else f"the shape {shape}"
