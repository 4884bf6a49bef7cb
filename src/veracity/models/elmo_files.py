"""The published files of ELMo: options in JSON, weights in HDF5."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
import torch

from ..core.errors import MissingExtra, ModelError
from ..core.files import check_file, read_json, write_json, written_whole
from ..core.limits import WEIGHTS
from .elmo import BidirectionalLm, ElmoOptions

OPTIONS = "options.json"
WEIGHTS_FILE = "weights.hdf5"

UNPACKED = 100
"""A file that unpacks to more than so many times its size is none of weights."""


def read_elmo(folder: Path) -> BidirectionalLm:
    """The model whose options and weights lie in a folder, under the names that they are published
    with, such as elmo_2x1024_128_2048cnn_1xhighway_options.json."""
    options_file, weights_file = _file(folder, "options.json"), _file(folder, "weights.hdf5")
    with _told(options_file):
        options = ElmoOptions.of(read_json(options_file))
    with _told(weights_file):
        weights = _weights(options, weights_file)
    with torch.device("meta"):
        model = BidirectionalLm(options)
    model.load_state_dict(weights, assign=True)
    return model.eval()


def write_elmo(model: BidirectionalLm, folder: Path) -> None:
    """The same two files."""
    library, weights = _h5py(), model.state_dict()
    write_json(folder / OPTIONS, model.options.to_json())
    with written_whole(folder / WEIGHTS_FILE) as file, library.File(file, "w") as packed:
        for path, own, _ in model.options.datasets():
            packed.create_dataset(path, data=weights[own].detach().cpu().float().numpy())


def check_writable() -> None:
    """The package that writes weights is there; told before they are learnt."""
    _h5py()


def _file(folder: Path, ending: str) -> Path:
    """The one file of a folder that ends so."""
    if not folder.is_dir():
        there = "a file" if folder.exists() else "not there"
        raise ModelError(
            f"expected the folder of an ELMo with {OPTIONS} and {WEIGHTS_FILE}; {str(folder)!r} is "
            f"{there}. Make one with `veracity pretrain elmo DATA --out {folder.name or 'FOLDER'}`"
        )
    found = sorted(path for path in folder.iterdir() if path.name.endswith(ending))
    if len(found) != 1:
        seen = ", ".join(path.name for path in found[:3]) or "none"
        raise ModelError(f"expected one file in {folder} whose name ends in {ending}, found {seen}")
    return found[0]


def _weights(options: ElmoOptions, path: Path) -> dict[str, torch.Tensor]:
    """Every dataset by the name of the parameter that holds it; all shapes are looked at first."""
    library = _h5py()
    expected = list(options.datasets())
    size = check_file(path)
    WEIGHTS.check(4 * sum(prod(shape) for _, _, shape in expected), path)
    with library.File(path, "r") as packed:
        found = {own: _dataset(packed, name, shape) for name, own, shape in expected}
        if sum(one.nbytes for one in found.values()) > UNPACKED * size:
            raise ValueError("its datasets are far larger than the file")
        return {own: _numbers(one) for own, one in found.items()}


def _dataset(packed: Any, name: str, shape: tuple[int, ...]) -> Any:
    """A dataset of this very file; links to others are not followed."""
    library, place, parts = _h5py(), packed, name.split("/")
    for part in parts:
        inside = isinstance(place, library.Group) and part in place
        link = place.get(part, getlink=True) if inside else None
        if not isinstance(link, library.HardLink):
            raise ValueError(f"expected it to hold the dataset {name}")
        place = place[part]
    if not isinstance(place, library.Dataset) or place.is_virtual or place.external:
        raise ValueError(f"expected {name} to be a dataset of the file itself")
    if place.shape != shape or place.dtype.kind != "f":
        raise ValueError(
            f"by its options {name} has numbers of the shape {shape}, by the file {place.dtype} of "
            f"the shape {place.shape}"
        )
    return place


def _numbers(dataset: Any) -> torch.Tensor:
    numbers = np.asarray(dataset[...], dtype=np.float32)
    if not np.isfinite(numbers).all():
        raise ValueError(f"{dataset.name} holds NaN or infinity")
    return torch.from_numpy(numbers)


@contextmanager
def _told(path: Path) -> Iterator[None]:
    """Whatever is wrong with a file is one sentence."""
    try:
        yield
    except (OSError, ValueError, KeyError, TypeError, RuntimeError) as error:
        raise ModelError(
            f"expected {path} to be of the published form of ELMo: {error}. Copy it anew"
        ) from error


def _h5py() -> Any:
    try:
        import h5py
    except ImportError:
        raise MissingExtra("h5py", "elmo", "a weight file of ELMo") from None
    return h5py
