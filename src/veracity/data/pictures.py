"""Pictures out of files, arrays and other libraries' objects: 8-bit RGB, upright, of one size."""

from __future__ import annotations

import io
import math
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from ..core.errors import DataError, LimitError
from ..core.examples import Dataset, Example
from ..core.files import read_bytes
from ..core.images import Image
from ..core.inputs import AnyScalar, BoolArray
from ..core.limits import PICTURES, PIXELS
from ..core.segments import GRID, Pixels, numbered, segmented

FORMATS = ("PNG", "JPEG", "WEBP")
EXPECTED = "expected a picture as PNG, JPEG or WebP"
ORIENTATION = 0x0112
"""Where EXIF keeps how a camera was held."""

T = TypeVar("T")

_OTHERS = {
    b"GIF8": "a GIF, which may move: save the frame that is meant as PNG",
    b"BM": "a BMP: save it as PNG",
    b"II*\0": "a TIFF: save it as PNG",
    b"MM\0*": "a TIFF: save it as PNG",
    b"%PDF": "a PDF: save the page that is meant as PNG",
}
"""First bytes of what people take for such a picture; none of it is given to a decoder."""


@dataclass(frozen=True)
class Size:
    """Width and height that pictures are brought to: made so large that they cover it, the middle
    kept; or squashed into it."""

    width: int
    height: int
    squashed: bool = False
    """Whether all of a picture is kept, its proportions are not."""
    share: float = 1.0
    """How much of that part is kept, in its middle, on either side."""
    resample: int = 2
    """Pillow's number of the filter; bilinear."""

    @classmethod
    def of(cls, given: str | int) -> Size:
        """`64` is 64x64, `96x64` is width and height."""
        sides = str(given).strip().lower().replace("×", "x").split("x")
        numbers = [int(side) if side.strip().isdecimal() else 0 for side in sides if len(side) < 9]
        if len(sides) not in (1, 2) or len(numbers) != len(sides) or min(numbers) < 1:
            raise DataError(
                "expected a size in pixels such as 64 (a square) or 96x64 (width and height), got "
                f"{given!r:.40}"
            )
        PIXELS.check(numbers[0] * numbers[-1], f"size {given}")
        return cls(numbers[0], numbers[-1])

    def __str__(self) -> str:
        return f"{self.width}x{self.height}"

    def middle(self, width: int, height: int) -> tuple[float, float, float, float]:
        """The part of a picture, in its middle, that is kept, by default the largest that has these
        proportions: left, top, right, bottom."""
        scale = min(width / self.width, height / self.height)
        across, down = scale * self.width, scale * self.height
        if self.squashed:
            across, down = width, height
        left, top = (width - across * self.share) / 2, (height - down * self.share) / 2
        return left, top, width - left, height - top

    def fitted(self, picture: Any) -> Any:
        """One of Pillow's pictures in this size."""
        if picture.size == (self.width, self.height):
            return picture
        return picture.resize(
            (self.width, self.height), self.resample, box=self.middle(*picture.size)
        )

    def nearest(self, values: NDArray[AnyScalar]) -> NDArray[AnyScalar]:
        """Marks or numbers of pixels in this size: those of the nearest pixels.
        (height, width) → (height, width)"""
        height, width = values.shape
        left, top, right, bottom = self.middle(width, height)
        rows = top + (np.arange(self.height) + 0.5) * (bottom - top) / self.height
        columns = left + (np.arange(self.width) + 0.5) * (right - left) / self.width
        found: NDArray[AnyScalar] = values[
            rows.astype(np.int64).clip(0, height - 1)[:, None],
            columns.astype(np.int64).clip(0, width - 1)[None, :],
        ]
        return found


@dataclass(frozen=True)
class StoredFile:
    """A file of a folder or an archive, read when it is needed."""

    name: str
    read: Callable[[], bytes]


@dataclass
class PictureReader:
    """How the pictures of one source become inputs. What is wrong with one is a ValueError."""

    folder: Path = Path()
    """What the paths of a table are relative to."""
    size: Size | None = None
    segmentation: str | None = None
    """None: those that are cut stay so."""

    def __post_init__(self) -> None:
        check_segmentation(self.segmentation)

    def check_together(self, values: Iterable[Any]) -> None:
        """Pictures that would take too much together are refused by what their headers say, before
        any of them is decoded."""
        taken = 0
        for value in values:
            with suppress(ValueError):  # told where its row is read
                taken += 3 * self._pixels(value)
        if taken > PICTURES.value:
            raise LimitError(
                f"{PICTURES.exceeded(taken)}, or have the pictures made smaller: --size 128 "
                "(size=128)"
            )

    def _pixels(self, value: Any) -> int:
        """How many a picture will have, as far as can be told without decoding it."""
        if _missing(value):
            return 0
        if self.size is not None:
            return self.size.width * self.size.height
        if isinstance(value, Image) or _is_array(value):
            return math.prod(value.shape[:2])
        width, height = value.size if _is_pillow(value) else self._of_file(value, _header).size
        return int(width * height)

    def picture(self, value: Any, mask: Any = None) -> tuple[Image, BoolArray | None]:
        """A picture and, where there is a mask that marks something, the pixels that it marks."""
        if _missing(value):
            raise ValueError("the picture is missing")
        if isinstance(value, Image):
            shape = value.shape
            found = in_size(value, self.size, self.segmentation)
        else:
            opened, shape = self._opened(value, self.size)
            found = Image(_rgb(opened, self.size), self.segmentation or GRID)
        return found, None if _missing(mask) else self._mask(mask, shape)

    def _mask(self, value: Any, shape: tuple[int, int]) -> BoolArray | None:
        """→ (pixels,)"""
        try:
            marked = _marks(value if _is_array(value) else self._opened(value)[0])
        except ValueError as error:
            raise ValueError(f"the mask: {error}") from None
        if marked.shape != shape:
            raise ValueError(
                f"expected a mask of the picture's size {_size(shape)}, got {_size(marked.shape)}"
            )
        if not marked.any():
            return None
        return (marked if self.size is None else self.size.nearest(marked)).ravel()

    def _opened(self, value: Any, size: Size | None = None) -> tuple[Any, tuple[int, int]]:
        """One of Pillow's pictures, upright, and no smaller than is needed for a size; and the
        height and width of all of it."""
        if _is_pillow(value) or _is_array(value):
            found = _upright(value) if _is_pillow(value) else _of_array(np.asarray(value))
            return found, (found.height, found.width)
        return self._of_file(value, partial(_decoded, size=size))

    def _of_file(self, value: Any, read: Callable[[bytes], T]) -> T:
        """What is read out of the content of a picture's file, wherever that is."""
        if isinstance(value, StoredFile):
            return read(value.read())
        if isinstance(value, Mapping):  # as the datasets library has them
            inside = value.get("bytes")
            value = value.get("path") if inside is None else inside
        if isinstance(value, bytes | bytearray):
            return read(bytes(value))
        if isinstance(value, str | Path) and str(value):
            try:
                return read(self._read(value))
            except ValueError as error:
                raise ValueError(f"{value}: {error}") from None
        raise ValueError(
            "expected a picture as a path, the bytes of a file, an array or one of Pillow's "
            f"pictures, got {type(value).__name__}"
        )

    def _read(self, path: str | Path) -> bytes:
        try:
            return read_bytes(self.folder / path)
        except LimitError as error:
            raise ValueError(str(error)) from None
        except OSError as error:
            raise ValueError(f"cannot be read ({error.strerror})") from None


def check_segmentation(spec: str | None) -> None:
    """Told before any picture is read."""
    if spec is not None:
        segmented(np.zeros((8, 8, 3), dtype=np.uint8), spec)


def decoded(content: bytes) -> Any:
    """The picture in a file, upright, as Pillow has it."""
    return _decoded(content)[0]


def _decoded(content: bytes, size: Size | None = None) -> tuple[Any, tuple[int, int]]:
    """The picture in a file, upright, and the height and width of all of it: of a JPEG that is made
    much smaller, only so much is decoded as is needed."""
    with _own_limit():
        picture = _header(content)
        try:
            width, height = picture.size
            shape = (width, height) if _lies(picture) else (height, width)
            if size is not None:
                picture.draft(None, (2 * max(size.width, size.height),) * 2)
            return _upright(picture), shape
        except Exception as error:  # whatever a decoder says of a damaged file
            raise ValueError(_damaged(error)) from None


def _header(content: bytes) -> Any:
    """The picture in a file, of which nothing is decoded yet; it is refused by what its header
    says."""
    from PIL import Image as Pictures
    from PIL import UnidentifiedImageError

    if other := next((name for sign, name in _OTHERS.items() if content.startswith(sign)), ""):
        raise ValueError(f"{EXPECTED}, got {other}")
    with _own_limit():
        try:
            picture: Any = Pictures.open(io.BytesIO(content), formats=FORMATS)
            width, height = picture.size
            # photographs of some cameras hold a preview beside the picture
            frames = 1 if picture.format == "MPO" else getattr(picture, "n_frames", 1)
        except UnidentifiedImageError:
            start = f"a file that begins with {content[:12]!r}" if content else "an empty file"
            raise ValueError(f"{EXPECTED}, got {start}") from None
        except Exception as error:
            raise ValueError(_damaged(error)) from None
    if width * height > PIXELS.value:
        raise ValueError(f"{width:,}×{height:,} pixels: {PIXELS.exceeded(width * height)}")
    if frames > 1:
        raise ValueError(
            f"expected one picture, got an animation of {frames} frames: save the one that is "
            "meant by itself"
        )
    return picture


def _damaged(error: Exception) -> str:
    return f"expected a whole picture, but this is damaged or breaks off ({error}): fetch it again"


@contextmanager
def _own_limit() -> Iterator[None]:
    """Pillow's bound on pixels, and what it warns of, in place of ours would be two."""
    from PIL import Image as Pictures

    before = Pictures.MAX_IMAGE_PIXELS
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        Pictures.MAX_IMAGE_PIXELS = None
        try:
            yield
        finally:
            Pictures.MAX_IMAGE_PIXELS = before


def _lies(picture: Any) -> bool:
    """Whether a camera was held sideways, as the EXIF orientation says."""
    return picture.getexif().get(ORIENTATION) in (5, 6, 7, 8)


def _upright(picture: Any) -> Any:
    """Turned as its EXIF orientation says."""
    from PIL import ImageOps

    picture.load()
    return ImageOps.exif_transpose(picture)


def _rgb(picture: Any, size: Size | None) -> Pixels:
    """Any of Pillow's pictures as 8-bit RGB: 16 bits by their upper 8, alpha over white."""
    from PIL import Image as Pictures

    if picture.mode.startswith("I"):
        picture = Pictures.fromarray(_eight_bits(np.asarray(picture)))
    if picture.has_transparency_data:
        above = picture.convert("RGBA")
        picture = Pictures.new("RGBA", above.size, "white")
        picture.alpha_composite(above)
    picture = picture.convert("RGB")
    return np.array(picture if size is None else size.fitted(picture))


def _eight_bits(values: NDArray[Any]) -> Pixels:
    return (values.clip(0, 65535) // 257).astype(np.uint8)


def _of_array(values: NDArray[Any]) -> Any:
    """One of Pillow's pictures of numbers that somebody holds."""
    from PIL import Image as Pictures

    if values.ndim == 3 and values.shape[2] == 1:
        values = values[:, :, 0]
    if values.ndim not in (2, 3) or values.shape[2:] not in ((), (3,), (4,)) or not values.size:
        raise ValueError(
            "expected a picture of the shape (height, width), (height, width, 3) or "
            f"(height, width, 4), got {values.shape}"
        )
    if values.dtype == np.uint16:
        values = _eight_bits(values)
    elif values.dtype == np.bool_:
        values = values.astype(np.uint8) * 255
    elif values.dtype != np.uint8:
        of_ones = np.issubdtype(values.dtype, np.floating)
        if values.dtype.kind not in "iuf" or not (
            (values >= 0).all() and (values <= (1 if of_ones else 255)).all()
        ):
            raise ValueError(
                "expected a picture as whole numbers from 0 to 255 or as others from 0 to 1, got "
                f"{values.dtype}" + _range(values)
            )
        values = np.rint(values * 255 if of_ones else values).astype(np.uint8)
    return Pictures.fromarray(np.ascontiguousarray(values))


def _range(values: NDArray[Any]) -> str:
    return f" from {values.min():g} to {values.max():g}" if values.dtype.kind in "iuf" else ""


def _marks(mask: Any) -> BoolArray:
    """What is white, or 1, in a mask; colours by their brightest channel. → (height, width)"""
    values: NDArray[Any]
    most = 255
    if _is_array(mask):
        values = np.asarray(mask)
        values = values[:, :, 0] if values.ndim == 3 and values.shape[2] == 1 else values
        if values.ndim != 2 or values.dtype.kind not in "biuf":
            raise ValueError(f"expected numbers of the shape (height, width), got {values.shape}")
    elif mask.mode == "L" or mask.mode.startswith("I"):
        values = np.asarray(mask)
    elif mask.has_transparency_data:
        colours = np.asarray(mask.convert("RGBA"))
        values = colours[:, :, :3].max(axis=2) * (colours[:, :, 3] > 127)
    else:
        values = np.asarray(mask.convert("RGB")).max(axis=2)
    if values.dtype.kind == "f" or values.max() <= 1:
        most = 1
    elif values.max() > 255:
        most = 65535
    marked: BoolArray = values > most / 2
    if values.any() and not marked.any():
        raise ValueError(
            "expected black and white (0 and 1, or 0 and 255); the brightest pixel has "
            f"{values.max():g}"
        )
    return marked


def _missing(value: Any) -> bool:
    if isinstance(value, Mapping):
        return value.get("bytes") is None and not value.get("path")
    return value is None or (isinstance(value, str) and not value) or value is not value


def _is_array(value: Any) -> bool:
    return hasattr(value, "__array__") and hasattr(value, "shape")


def _is_pillow(value: Any) -> bool:
    """Told without importing the package: who holds such an object has."""
    return any(c.__name__ == "Image" and c.__module__ == "PIL.Image" for c in type(value).__mro__)


def is_picture(value: Any) -> bool:
    """Whether a program means a picture by this."""
    return isinstance(value, Image) or _is_pillow(value) or _is_array(value)


def _size(shape: tuple[int, ...]) -> str:
    return f"{shape[1]}×{shape[0]}"


# ---- pictures that are there already ----------------------------------------------------------


def in_size(picture: Image, size: Size | None, segmentation: str | None = None) -> Image:
    """A picture in another size; cut as it was, unless something is named."""
    from PIL import Image as Pictures

    cut = segmentation or picture.segmentation
    if size is None or picture.shape == (size.height, size.width):
        same = cut == picture.segmentation
        return picture if same else Image(picture.pixels, cut)
    pixels = np.array(size.fitted(Pictures.fromarray(picture.pixels)))
    if picture.label_map is None or cut != picture.segmentation:
        return Image(pixels, cut)
    return Image(pixels, cut, numbered(size.nearest(picture.label_map.reshape(picture.shape))))


def resized(
    dataset: Dataset[Image], size: Size | None, segmentation: str | None = None
) -> Dataset[Image]:
    """Pictures that are loaded, with all that is known of their pixels, in another size."""
    check_segmentation(segmentation)
    if size is None and segmentation is None:
        return dataset
    return replace(dataset, examples=tuple(_resized(e, size, segmentation) for e in dataset))


def _resized(
    example: Example[Image], size: Size | None, segmentation: str | None
) -> Example[Image]:
    shape = example.input.shape
    truths = example.truths
    if size is not None and shape != (size.height, size.width):
        truths = {
            kind: tuple(size.nearest(mask.reshape(shape)).ravel() for mask in masks)
            for kind, masks in truths.items()
        }
    return replace(example, input=in_size(example.input, size, segmentation), truths=truths)
