"""Pictures in the size that models read."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any

from ..core.classifiers import Classifier, Traits
from ..core.errors import ModelError
from ..core.examples import Dataset
from ..core.images import Image
from ..data.pictures import Size, resized


def fit_sizes(data: Dataset[Any], models: Mapping[str, Classifier]) -> Dataset[Any]:
    """The data as the models read them: pictures of another size are brought to it as the models
    would have it, by default so that they cover it, the middle kept, and all that is known of their
    pixels with them."""
    if data.kind != Image.kind:
        return data
    # somebody's function may read pictures of any size
    read = {name: shape for name, m in models.items() if (shape := Traits(m).shape)}
    if len(set(read.values())) > 1:
        told = " and ".join(f"{name} {w}×{h}" for name, (h, w) in read.items())
        raise ModelError(
            f"the models read pictures of different sizes ({told}), so that they would not be "
            "asked about the same ones. Audit them in separate runs"
        )
    if not read:
        return data
    height, width = next(iter(read.values()))
    usual = Size(width, height)
    sizes = {name: Traits(models[name]).framing or usual for name in read}
    strange = [e for e in data if e.input.shape != (height, width)]
    if strange and len(set(sizes.values())) > 1:
        told = "; ".join(f"{name}: {_told(size)}" for name, size in sizes.items())
        raise ModelError(
            f"the models bring pictures to {width}×{height} pixels in different ways ({told}), so "
            "that they would not be asked about the same ones. Choose one for all: --size "
            f'{width}x{height} (load_data(…, size="{width}x{height}")), or audit them in separate '
            "runs"
        )
    size = next(iter(sizes.values()))
    if strange:
        warnings.warn(
            f"{len(strange):,} of {data.nouns.counted(len(data))} of {data.name} "
            f"{'is' if len(strange) == 1 else 'are'} resized to {width}×{height} pixels, which "
            f"{' and '.join(read)} reads; {_told(size)}",
            stacklevel=2,
        )
    if size.share < 1 and len(strange) < len(data):
        warnings.warn(
            f"{len(data) - len(strange):,} of {len(data):,} pictures of {data.name} have "
            f"{width}×{height} pixels and are read whole; of such, too, {' and '.join(read)} would "
            f"by its own preparation see only {size.share:.0%} of either side, enlarged. Give "
            "larger pictures to have the same",
            stacklevel=2,
        )
    return resized(data, size) if strange else data


def _told(size: Size) -> str:
    """What becomes of pictures of other proportions."""
    if size.squashed:
        told = "proportions are not kept, as its preparation has it"
    else:
        told = "what covers more is cut off evenly at the edges"
    if size.share < 1:
        told += f", and all but {size.share:.0%} of either side, as its preparation has it"
    return told
