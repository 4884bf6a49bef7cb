"""How a transformers folder has its pictures prepared, found by showing some to its own processor:
each family has defaults, keys and steps of its own, and what comes out is what counts."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..core.errors import ModelError
from ..core.files import read_json, reading
from ..core.inputs import FloatArray
from ..core.schema import check_schema
from ..core.segments import Pixels
from ..data.pictures import Size
from .encoders import first_line, silent

FILE = "preprocessor_config.json"
FILES = (FILE, "processor_config.json")
"""Where the library looks; the second holds what is for pictures among other things."""

LARGEST = 4096
"""Sides beyond it are no size of pictures that a classifier reads."""

EXACT = 1e-5
"""Values that differ by less, as a share of the largest, are the same in 32-bit numbers."""

USUAL = ("do_resize", "do_rescale", "do_normalize", "do_center_crop", "do_flip_channel_order")

OWN = (
    "A function of a list of arrays that prepares them and returns a row of probabilities for each "
    "is a model too (file.py:function)"
)

Shape = tuple[int, int]


@dataclass(frozen=True)
class Preparation:
    """What becomes of a picture before the network reads it."""

    framing: Size
    framed: bool
    """Whether pictures of another size are framed as the processor would; else the middle is."""
    mean: tuple[float, ...]
    deviation: tuple[float, ...]
    """Of red, green and blue, where 255 is 1."""
    order: tuple[int, ...]
    """Which of them comes first, second and third."""

    def levels(self, values: FloatArray) -> FloatArray:
        """The 8-bit numbers that values were made of. (…, 3)"""
        found = np.empty_like(values)
        found[..., self.order] = values
        return (found * self.deviation + self.mean) * 255


class Processor:
    """The library's own way from pictures to what the network reads."""

    def __init__(self, folder: Path) -> None:
        import transformers

        library: Any = transformers.AutoImageProcessor
        self.folder = folder
        self.content = _checked(folder)
        try:
            with silent():
                self.made: Any = library.from_pretrained(
                    str(folder), local_files_only=True, trust_remote_code=False, backend="pil"
                )
        except Exception as error:  # whatever it says of a stranger's file
            raise self.refused(error) from None

    def __call__(self, pixels: Pixels, **settings: Any) -> FloatArray:
        """(height, width, 3) → (its height, its width, 3)"""
        try:
            with silent():
                found = self.made(
                    [pixels], return_tensors="pt", input_data_format="channels_last", **settings
                )["pixel_values"]
            (values,) = found.double().numpy()  # (3, height, width)
            channels, _, _ = values.shape
        except Exception as error:
            raise self.refused(error) from None
        if channels != 3:
            raise self.refused(f"it makes {channels} channels of three")
        return np.moveaxis(values, 0, -1)

    def refused(self, why: BaseException | str) -> ModelError:
        told = why if isinstance(why, str) else first_line(why)
        return ModelError(
            f"expected {self.folder / FILE} to say how pictures are prepared for the model, as "
            f"AutoImageProcessor of transformers reads it: {told}. Copy it anew. {OWN}"
        )

    @property
    def resample(self) -> int:
        """The filter of resizing, by the number that Pillow gives it."""
        given = getattr(self.made, "resample", None)
        return int(given) if isinstance(given, int) and 0 <= given <= 5 else Size.resample


def preparation(folder: Path, config: Any) -> Preparation:
    """How pictures are prepared for the model in a folder; what no rescaling, normalising and order
    of channels can do is refused."""
    processor = Processor(folder)
    height, width = shape = _shape(processor, config)
    plain = _values(processor, Size(width, height, resample=processor.resample))
    framing = _framing(processor, plain, shape)
    if framing is None:
        return plain
    return Preparation(framing, True, plain.mean, plain.deviation, plain.order)


def _checked(folder: Path) -> dict[str, Any]:
    """What is said about pictures, with sizes that can be made."""
    found: dict[str, Any] = {}
    for path in (folder / name for name in reversed(FILES)):
        if path.exists():
            with reading(path, remedy="Copy the folder anew", error=ModelError):
                content = read_json(path)
                check_schema(content, dict)
                if path.name != FILE:
                    content = content.get("image_processor") or {}
                    check_schema(content, dict)
                _check_sizes(content)
                found = found or content
    if not found:
        raise ModelError(
            f"expected {FILE} in {folder}, which says how pictures are prepared for the model; it "
            "is not there, and a guess would change its answers. Save beside the model the "
            f"processor that it was trained with, processor.save_pretrained({str(folder)!r}), or "
            "write one with your numbers: ViTImageProcessor(size=…, image_mean=…, image_std=…)"
            ".save_pretrained(…)"
        )
    return found


def _check_sizes(content: dict[str, Any]) -> None:
    share = content.get("crop_pct")
    share = 1.0 if share is None else share
    check_schema(share, float, "crop_pct")
    if not 0.01 <= share <= 1:
        raise ValueError(f"expected crop_pct to be from 0.01 to 1, got {share}")
    for name in ("size", "crop_size", "pad_size"):
        for side in _numbers(content.get(name)):
            if not (isinstance(side, int) and 0 < side / share <= LARGEST):
                raise ValueError(
                    f"expected {name} to be a size of pictures, up to {LARGEST} pixels, got "
                    f"{str(content[name])[:60]}"
                )


def _numbers(value: Any) -> Iterator[Any]:
    """What is inside lists and objects."""
    if isinstance(value, dict | list):
        for one in value.values() if isinstance(value, dict) else value:
            yield from _numbers(one)
    elif value is not None:
        yield value


def _shape(processor: Processor, config: Any) -> Shape:
    """The size that square pictures come out in; if they come out as they are, the model's own."""
    found = {processor(ramps(side, side)).shape[:2] for side in (256, 300)}
    if len(found) == 1:
        return found.pop()
    side = getattr(config, "image_size", None)
    shape = tuple(side) if isinstance(side, list | tuple) else (side, side)
    if len(shape) != 2 or not all(isinstance(n, int) and 0 < n <= LARGEST for n in shape):
        raise ModelError(
            f"expected {processor.folder / FILE} or config.json to name the size that the model "
            f"reads (size or image_size); got none: pictures come out in their own size. {OWN}"
        )
    return shape


def _values(processor: Processor, size: Size) -> Preparation:
    """What becomes of the numbers of pixels, from noise in the model's size."""
    noise = np.random.default_rng(0).integers(0, 256, (size.height, size.width, 3), dtype=np.uint8)
    found = processor(noise, do_resize=False, do_center_crop=False)
    given = noise.reshape(-1, 3) / 255
    if found.shape != noise.shape:
        h, w = found.shape[:2]
        raise _unlike(
            processor, f"{size.width}×{size.height} pixels become {w}×{h} without any resizing"
        )
    values = found.reshape(-1, 3)
    weights: Any = np.linalg.lstsq(np.c_[given, np.ones(len(given))], values, rcond=None)[0]
    order = tuple(int(i) for i in np.abs(weights[:3]).argmax(axis=0))
    scale, offset = weights[order, range(3)], weights[3]
    gap = np.abs(given[:, order] * scale + offset - values).max()
    if sorted(order) != [0, 1, 2] or not scale.all() or gap > EXACT * np.abs(values).max():
        raise _unlike(processor, f"values differ by up to {gap:.2g} from all that these can make")
    at = np.argsort(order)  # where red, green and blue went
    return Preparation(
        size,
        False,
        # as somebody wrote them: 32-bit numbers hold seven digits
        tuple(round(float(v), 7) + 0.0 for v in (-offset / scale)[at]),
        tuple(float(f"{v:.7g}") for v in (1 / scale)[at]),
        order,
    )


def _unlike(processor: Processor, seen: str) -> ModelError:
    keys = [k for k, v in processor.content.items() if k.startswith("do_") and v and k not in USUAL]
    named = f" ({', '.join(keys)} set)" if keys else ""
    return ModelError(
        f"expected {processor.folder / FILE} to have pictures rescaled, normalised and their "
        f"channels put in order, which gradients can be followed through; {seen}{named}. {OWN}"
    )


def _framing(processor: Processor, plain: Preparation, shape: Shape) -> Size | None:
    """Which part of a picture is brought to the model's size: all of it, squashed, or the middle,
    or less of either; None if it is something else."""
    height, width = shape
    wide = processor(ramps(256, 512))
    if wide.shape[:2] != shape or min(shape) < 2:
        return None
    levels = plain.levels(wide)
    across = _slope(levels[..., 0].mean(axis=0)) * width * 511 / 512
    down = _slope(levels[..., 1].mean(axis=1)) * height * 255 / 256
    left, top, right, bottom = plain.framing.middle(512, 256)
    middle = across / ((right - left) / 512), down / ((bottom - top) / 256)
    squashed = abs(across - down) < abs(middle[0] - middle[1])
    share = down if squashed else middle[1]
    if not 0 < share < 2:
        return None
    # pictures are enlarged to a whole number of pixels before their edges are cut off
    share = min(1.0, height / max(1, round(height / share)))
    framing = Size(width, height, squashed, share, processor.resample)
    for picture in (ramps(256, 512), ramps(400, 200)):
        expected = plain.levels(processor(picture))
        if expected.shape[:2] != shape:
            return None
        # an odd number of pixels is halved in one way or the other
        if np.abs(_framed(picture, framing) - expected).max() > 2 + 256 / min(shape):
            return None
    return framing


def ramps(height: int, width: int) -> Pixels:
    """A picture that shows where its parts come from: red from left to right, green downwards."""
    found = np.zeros((height, width, 3), dtype=np.uint8)
    found[..., 0] = np.linspace(0, 255, width).round()
    found[..., 1] = np.linspace(0, 255, height).round()[:, None]
    return found


def _slope(levels: FloatArray) -> float:
    """How much of the whole ramp lies between two neighbours."""
    return float(np.polyfit(np.arange(len(levels)), levels, 1)[0]) / 255


def _framed(picture: Pixels, framing: Size) -> NDArray[Any]:
    from PIL import Image as Pictures

    return np.array(framing.fitted(Pictures.fromarray(picture)), dtype=np.float64)
