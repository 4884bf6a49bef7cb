"""Pictures in the size that models read."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any

from ..core.classifiers import Classifier
from ..core.errors import ModelError
from ..core.examples import Dataset
from ..core.images import Image
from ..data.pictures import GRID, Size, resized


def fit_sizes(data: Dataset[Any], models: Mapping[str, Classifier]) -> Dataset[Any]:
    """The data as the models read them: pictures of another size are resized so that they cover
    it, the middle kept, and all that is known of their pixels with them."""
    if data.kind != Image.kind:
        return data
    # somebody's function may read pictures of any size
    read = {name: shape for name, m in models.items() if (shape := getattr(m, "shape", None))}
    if len(set(read.values())) > 1:
        told = " and ".join(f"{name} {w}×{h}" for name, (h, w) in read.items())
        raise ModelError(
            f"the models read pictures of different sizes ({told}), so that they would not be "
            "asked about the same ones. Audit them in separate runs"
        )
    strange = [e for e in data if e.input.shape not in read.values()]
    if not read or not strange:
        return data
    height, width = next(iter(read.values()))
    warnings.warn(
        f"{len(strange):,} of {data.nouns.counted(len(data))} of {data.name} "
        f"{'is' if len(strange) == 1 else 'are'} resized to "
        f"{width}×{height} pixels, which {' and '.join(read)} reads; what covers more is cut off "
        "evenly at the edges",
        stacklevel=2,
    )
    return resized(data, Size(width, height), GRID)
