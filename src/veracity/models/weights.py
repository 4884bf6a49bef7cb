"""Weights in files: what a header says is held against a model before anything is allocated."""

from __future__ import annotations

import filecmp
import hashlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from math import prod
from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import load_file, save_file
from torch import nn

from ..core.errors import ModelError
from ..core.files import check_file
from ..core.limits import WEIGHTS

Shapes = Mapping[str, tuple[int, ...]]


@contextmanager
def reading_model(folder: Path) -> Iterator[None]:
    """Whatever is wrong with a model of ours while it is read is one sentence."""
    try:
        yield
    except FileNotFoundError as error:
        raise ModelError(f"{folder} is not complete: {error}") from None
    except (OSError, ValueError, KeyError, TypeError, RuntimeError) as error:
        raise ModelError(f"the model in {folder} is damaged: {error}") from error


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


def weights_of(model: nn.Module) -> dict[str, torch.Tensor]:
    """All that a model has learnt, as a file holds it."""
    return {name: t.detach().cpu().contiguous() for name, t in model.state_dict().items()}


def save_weights(model: nn.Module, folder: Path) -> None:
    """`model.safetensors` in a folder, new or whole; what a command that was killed behind it left
    is not written again."""
    folder.mkdir(parents=True, exist_ok=True)
    part, whole = folder / "model.safetensors.part", folder / "model.safetensors"
    save_file(weights_of(model), part)
    if whole.exists() and filecmp.cmp(part, whole, shallow=False):
        part.unlink()
    else:
        part.replace(whole)


def identity_with(model: nn.Module, settings: str) -> str:
    """A hash of settings and of all that a model has learnt: of all that decides an answer."""
    digest = hashlib.sha256(settings.encode())
    for name, weight in sorted(weights_of(model).items()):
        # NumPy knows no bfloat16
        numbers = weight.float() if weight.dtype == torch.bfloat16 else weight
        digest.update(name.encode() + numbers.numpy().tobytes())
    return digest.hexdigest()


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
