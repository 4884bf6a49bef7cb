"""Pictures as pages hold them: small, with what each method says laid over them."""

from __future__ import annotations

import base64
import io
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..core.attributions import Attribution, ranking
from ..core.changes import DECOY, MANIPULATION, PLANTED, UNTOUCHED
from ..core.examples import Example
from ..core.images import Image
from ..core.inputs import BoolArray, FloatArray
from .coloured import STEPS

SIDE = 160
"""The longer side of a picture on a page, in pixels; smaller ones are stretched by the browser."""

MAP_SIDES = ((400, 96), (1000, 64))
"""Up to so many maps on a page, their longer side; of more, the last but smaller."""
LEAST_MAP_SIDE = 48

QUALITY = 55
"""Of pictures as WebP or JPEG, of 100."""

FULL = 0.99
"""From this quantile of strengths on, a map has its full colour: a few pixels always stand out."""

OPAQUE = 0.8
"""How much full colour hides of the picture below."""

TOP = 3
"""So many segments are named with their scores, the strongest."""

CARD = 700
"""About so many bytes of a page are around a map."""

MOST_EDGES = 600
"""An outline of more edges is drawn coarser."""

SUPPORTS = (0, 114, 178)
OPPOSES = (230, 97, 0)

REGIONS = {PLANTED: "planted region", DECOY: "decoy", "rationale": "region that ought to matter"}
"""What the truths that a page outlines are called; of other kinds, the kind and `region`."""


@dataclass(frozen=True, kw_only=True)
class Outline:
    """Where something is known to be: the path around it, in pixels of the picture."""

    kind: str
    path: str

    @property
    def drawn_as(self) -> str:
        return outline_class(self.kind)


@dataclass(frozen=True, kw_only=True)
class ShownPicture:
    """A picture as a page holds it, once, however often it is shown."""

    uri: str
    width: int
    height: int
    outlines: tuple[Outline, ...]
    """In pixels of the whole picture, as width and height."""

    @property
    def size(self) -> int:
        return len(self.uri) + sum(len(o.path) for o in self.outlines)


@dataclass(frozen=True, kw_only=True)
class Spot:
    """A segment among the strongest: where it lies and what it does."""

    segment: int
    score: float
    place: str
    regions: str
    """Of which known regions it is part, in words; empty where none is known."""

    @property
    def short(self) -> str:
        """Where it lies, for a line below a map, on which the region is outlined: of one region
        alone it need not be said which."""
        several = ", " in self.regions
        inside = self.regions if several else self.regions.partition(" the ")[0]
        return f"{self.place}, {inside}" if inside else self.place


@dataclass(frozen=True, kw_only=True)
class Overlay:
    """What one method says of a picture: a transparent map to be laid over it."""

    method: str
    target: str
    """The label that it explains."""
    uri: str
    spots: tuple[Spot, ...]
    signed: bool = True
    """Whether scores tell for and against."""

    @property
    def size(self) -> int:
        return len(self.uri) + sum(len(spot.short) for spot in self.spots) + CARD

    @property
    def alt(self) -> str:
        """What is where, for who does not see it."""
        if not self.spots:
            return f"{self.method}: all scores are zero"
        first = self.spots[0]
        inside = f", {first.regions}" if first.regions else ""
        said = f"{self.method}: strongest segment {first.place}{inside}"
        if not self.signed:
            return said
        return f"{said}; it {'supports' if first.score > 0 else 'opposes'} {self.target}"


# ---- pictures ---------------------------------------------------------------------------------


def shown_picture(example: Example[Any], side: int = SIDE) -> ShownPicture:
    """The picture, and an outline of every region that is known to matter or to mislead."""
    from PIL import Image as Pictures

    height, width = example.input.shape
    picture = Pictures.fromarray(example.input.pixels)
    small = picture.resize(_fitted(width, height, side), Pictures.Resampling.LANCZOS)
    outlines = tuple(
        Outline(kind=kind, path=outline(mask.reshape(height, width)))
        for kind, mask in known_regions(example).items()
    )
    return ShownPicture(uri=data_uri(small), width=width, height=height, outlines=outlines)


def known_regions(example: Example[Any]) -> dict[str, BoolArray]:
    """By kind of truth, all pixels that one of its masks marks. → (pixels,)"""
    return {
        kind: np.logical_or.reduce(masks)
        for kind, masks in example.truths.items()
        if masks and np.any(masks)
    }


def is_marked(example: Example[Any]) -> bool | None:
    """Whether a mark was put on the picture; None where nobody put marks on any."""
    if MANIPULATION not in example.facts:
        return None
    return any(one != UNTOUCHED for one in example.facts[MANIPULATION].split(","))


def outline(mask: BoolArray) -> str:
    """The edges between what is marked and what is not, as the path of an SVG. (height, width)"""
    step = 1
    while True:
        coarse = _blocks(mask, step) >= 0.5
        if not coarse.any():
            return ""
        edges = _edges(coarse, step, mask.shape)
        if len(edges) <= MOST_EDGES or min(coarse.shape) <= 8:
            return "".join(edges)
        step *= 2


def _blocks(values: BoolArray, step: int) -> FloatArray:
    """Means over squares of so many pixels; those at the edge may be cut off."""
    rows, columns = (range(0, n, step) for n in values.shape)
    if step == 1:
        return values.astype(np.float64)
    sums = np.add.reduceat(np.add.reduceat(values.astype(np.float64), rows, 0), columns, 1)
    heights = np.diff([*rows, values.shape[0]])
    widths = np.diff([*columns, values.shape[1]])
    found: FloatArray = sums / np.outer(heights, widths)
    return found


def _edges(mask: BoolArray, step: int, shape: tuple[int, ...]) -> list[str]:
    """Straight lines, each as long as it can be; the edge of the picture is one too."""
    found = []
    padded = np.pad(mask, 1)
    for axis, draw in ((0, "M{1} {0}h{2}"), (1, "M{0} {1}v{2}")):
        lines = np.diff(padded.astype(np.int8), axis=axis) != 0
        across = lines if axis == 0 else lines.T  # (lines, places along them)
        for i, line in enumerate(across[:, 1:-1]):
            turns = np.flatnonzero(np.diff(np.pad(line.astype(np.int8), 1)))
            along = shape[1 - axis]
            for start, stop in zip(turns[::2], turns[1::2], strict=True):
                first, last = int(start) * step, min(int(stop) * step, along)
                found.append(draw.format(min(i * step, shape[axis]), first, last - first))
    return found


def _fitted(width: int, height: int, side: int) -> tuple[int, int]:
    """No longer than this, in the same proportions, and never larger than it is."""
    scale = min(1.0, side / max(width, height))
    return max(1, round(width * scale)), max(1, round(height * scale))


def data_uri(picture: Any, *, lossless: bool = False) -> str:
    """As WebP where Pillow can write that, else as PNG."""
    from PIL import features

    file = io.BytesIO()
    if features.check("webp"):
        kind, settings = "webp", {"lossless": lossless, "quality": QUALITY, "method": 4}
        if lossless:
            settings["quality"] = 60
    else:
        kind, settings = "png", {"optimize": True}
    picture.save(file, kind.upper(), **settings)
    return f"data:image/{kind};base64,{base64.b64encode(file.getvalue()).decode()}"


# ---- maps -------------------------------------------------------------------------------------


def map_side(maps: int) -> int:
    """How large maps are where a page holds so many."""
    return next((side for most, side in MAP_SIDES if maps <= most), LEAST_MAP_SIDE)


def overlay(
    found: Attribution[Image],
    regions: Mapping[str, BoolArray],
    target: str,
    *,
    side: int = MAP_SIDES[0][1],
    signed: bool = True,
) -> Overlay:
    """A method's map, and its strongest segments in words."""
    from PIL import Image as Pictures

    height, width = found.input.shape
    values = _shrunk(found.scores.reshape(height, width), _fitted(width, height, side))
    spots = tuple(strongest(found, regions, TOP))
    return Overlay(
        method=found.method,
        target=target,
        uri=data_uri(Pictures.fromarray(coloured_map(values)), lossless=True),
        spots=spots,
        signed=signed,
    )


def coloured_map(values: FloatArray, *, steps: int | None = STEPS) -> np.ndarray[Any, Any]:
    """Scores as colour and opacity, the strongest opaque: what supports is blue, what opposes
    orange, as for words. (height, width) → (height, width, 4)"""
    sizes = np.abs(values)
    full = float(np.quantile(sizes, FULL)) or float(sizes.max(initial=0.0))
    strength = np.minimum(sizes / full, 1.0) if full > 0 else np.zeros_like(sizes)
    if steps is not None:
        strength = np.round(strength * steps) / steps
    colours = np.where((values >= 0)[..., None], SUPPORTS, OPPOSES)
    alpha = np.rint(255 * OPAQUE * strength)
    colours = np.where(alpha[..., None] > 0, colours, 0)
    return np.concatenate([colours, alpha[..., None]], axis=2).astype(np.uint8)


def _shrunk(values: FloatArray, size: tuple[int, int]) -> FloatArray:
    """Means over what becomes one pixel. size: width and height"""
    from PIL import Image as Pictures

    if values.shape == size[::-1]:
        return values
    picture = Pictures.fromarray(values.astype(np.float32))
    return np.asarray(picture.resize(size, Pictures.Resampling.BOX), dtype=np.float64)


def strongest(found: Attribution[Image], regions: Mapping[str, BoolArray], top: int) -> list[Spot]:
    """The segments with the largest scores, whichever sign; none that has no score."""
    one, scores = found.input, found.unit_scores
    chosen = [int(i) for i in ranking(scores, "abs")[:top] if scores[i] != 0]
    return [
        Spot(
            segment=i,
            score=float(scores[i]),
            place=place_of(one.segments == i, one.shape),
            regions=_inside(one.segments == i, regions),
        )
        for i in chosen
    ]


def place_of(mask: BoolArray, shape: tuple[int, int]) -> str:
    """Where the middle of some pixels lies, as one would say it. mask (pixels,)"""
    rows, columns = np.nonzero(mask.reshape(shape))
    row, column = (
        int(3 * (float(np.mean(at)) + 0.5) / n)
        for at, n in zip((rows, columns), shape, strict=True)
    )
    return _PLACES[min(row, 2)][min(column, 2)]


_PLACES = (
    ("in the upper left", "at the top", "in the upper right"),
    ("at the left", "in the centre", "at the right"),
    ("in the lower left", "at the bottom", "in the lower right"),
)


def _inside(segment: BoolArray, regions: Mapping[str, BoolArray]) -> str:
    """What part of a segment lies in each known region: all that counts as inside is half."""
    said = []
    for kind, mask in regions.items():
        share = float(mask[segment].mean())
        where = "inside" if share >= 0.5 else "partly inside" if share > 0 else "outside"
        said.append(f"{where} the {region_name(kind)}")
    return ", ".join(said)


def outline_class(kind: str) -> str:
    """How the outline of a kind of truth is drawn: what people told as neither of ours."""
    return kind if kind in (PLANTED, DECOY) else "told"


def outlined(pictures: Iterable[ShownPicture]) -> list[tuple[str, str]]:
    """The kinds of known regions in these pictures, as they are drawn and called."""
    kinds = dict.fromkeys(o.kind for p in pictures for o in p.outlines)
    return [(outline_class(kind), region_name(kind)) for kind in kinds]


def region_name(kind: str) -> str:
    return REGIONS.get(kind, f"{kind.replace('_', ' ')} region")


# ---- one picture as a file --------------------------------------------------------------------


def painted(found: Attribution[Image]) -> Any:
    """One of Pillow's pictures: the picture beside itself with the map laid over it, both at least
    so large that a person sees something."""
    from PIL import Image as Pictures

    height, width = found.input.shape
    scale = max(1, round(320 / max(width, height)))
    below = Pictures.fromarray(found.input.pixels).convert("RGBA")
    values = found.scores.reshape(height, width)
    above = Pictures.fromarray(coloured_map(values, steps=None))
    size = (width * scale, height * scale)
    left = below.resize(size, Pictures.Resampling.NEAREST)
    right = left.copy()
    right.alpha_composite(above.resize(size, Pictures.Resampling.NEAREST))
    gap = 8
    both = Pictures.new("RGB", (2 * size[0] + gap, size[1]), "white")
    both.paste(left.convert("RGB"), (0, 0))
    both.paste(right.convert("RGB"), (size[0] + gap, 0))
    return both


def picture_column(content: Sequence[Any]) -> Any:
    """Pictures one below the other, as one."""
    from PIL import Image as Pictures

    gap = 8
    width = max(one.width for one in content)
    height = sum(one.height for one in content) + gap * (len(content) - 1)
    whole = Pictures.new("RGB", (width, height), "white")
    top = 0
    for one in content:
        whole.paste(one, (0, top))
        top += one.height + gap
    return whole
