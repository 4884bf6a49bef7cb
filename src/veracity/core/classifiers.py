"""What a model must offer, and the abilities it may have beyond that."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

import numpy as np

from .errors import ModelError
from .inputs import Alignment, BoolArray, FloatArray, Hiding

if TYPE_CHECKING:
    from torch import Tensor


@runtime_checkable
class Classifier(Protocol):
    """Anything that gives each input a probability per label: each reads inputs of its own kind,
    and may say which (`Traits`)."""

    @property
    def labels(self) -> tuple[str, ...]: ...

    def probabilities(self, inputs: Sequence[Any]) -> FloatArray: ...  # (inputs, labels)


@dataclass(frozen=True)
class Traits:
    """What a model may say of itself beside what it can do, by attributes of these names, and what
    is held of one that says nothing. Read when asked for: some are looked up over a network."""

    model: object

    @property
    def reads(self) -> str | None:
        """The kind of input that it reads, `text` or `image`; None where nobody knows."""
        return getattr(self.model, "reads", None)

    @property
    def shape(self) -> tuple[int, int] | None:
        """Height and width of the pictures that it reads; None where any will do."""
        return getattr(self.model, "shape", None)

    @property
    def framing(self) -> Any:
        """How pictures are brought to that shape, a `Size`; None for the usual way."""
        return getattr(self.model, "framing", None)

    @property
    def costly(self) -> bool:
        """Whether a question costs money or much time, so that none is asked for comfort."""
        return bool(getattr(self.model, "costly", False))

    @property
    def budget(self) -> int | None:
        """How many questions it answers; None for any number."""
        return getattr(self.model, "budget", None)

    @property
    def batch_dependent(self) -> bool:
        """Whether its last digits hang on what is read together."""
        return bool(getattr(self.model, "batch_dependent", False))

    @property
    def followed_at_once(self) -> int | None:
        """How many features are best followed back at a time; None for the usual number."""
        return getattr(self.model, "followed_at_once", None)

    @property
    def name(self) -> str:
        """What it goes by, if it is given without a name; else its type."""
        return getattr(self.model, "name", None) or type(self.model).__name__

    @property
    def about(self) -> str:
        """What it is, in the words of a report; else its type."""
        return str(getattr(self.model, "about", type(self.model).__name__))

    @property
    def record(self) -> Mapping[str, Any]:
        """What is on record of its training; empty where nothing is."""
        found: Mapping[str, Any] = getattr(self.model, "record", {})
        return found

    def identity(self) -> str:
        """What changes when its answers do, by which a run notices another model; else its type."""
        own = getattr(self.model, "identity", None)
        kind = type(self.model)
        return str(own()) if own else f"{kind.__module__}.{kind.__name__}"

    def probe_with(self, inputs: Sequence[Any]) -> None:
        """Shows it what it will be asked, if it must see that to know its own labels."""
        getattr(self.model, "probe_with", lambda _: None)(inputs)


@runtime_checkable
class Maskable(Classifier, Protocol):
    """Answers for many maskings of an input faster than by reading each as a new text."""

    def masked_probabilities(
        self, inputs: Sequence[Any], shown: Sequence[BoolArray], how: Hiding
    ) -> list[FloatArray]: ...  # per input: shown (masks, words) → (masks, labels)


@dataclass(frozen=True)
class Embedded:
    """A padded batch of embedded pieces: the point where gradients are taken."""

    values: Tensor  # (batch, pieces, size)
    present: Tensor  # (batch, pieces) bool: not padding
    feature: Tensor  # (batch, pieces) bool: belongs to a word, so it may be attributed to
    alignments: tuple[Alignment, ...]

    def with_values(self, values: Tensor) -> Embedded:
        return replace(self, values=values)

    def repeat(self, times: int) -> Embedded:
        """Each row `times` times in a row, to evaluate many points per input at once."""
        return Embedded(
            self.values.repeat_interleave(times, dim=0),
            self.present.repeat_interleave(times, dim=0),
            self.feature.repeat_interleave(times, dim=0),
            tuple(a for a in self.alignments for _ in range(times)),
        )


@runtime_checkable
class Differentiable(Classifier, Protocol):
    """Can be followed from its embeddings to its logits by gradients."""

    def embed(self, inputs: Sequence[Any]) -> Embedded: ...

    def logits(self, embedded: Embedded) -> Tensor: ...  # (batch, labels)


@runtime_checkable
class LinearFirstLayer(Differentiable, Protocol):
    """Its first layer, bias left out, grows in proportion to the embeddings, and no special piece
    stands among them: a whole path from zero needs one pass through it."""

    def first_layer(self, embedded: Embedded) -> Tensor: ...  # (batch, units) without its bias

    def logits_of_units(self, units: Tensor) -> Tensor: ...  # (points, units) → (points, labels)


@runtime_checkable
class Movable(Differentiable, Protocol):
    """Lets the embeddings of a text be shifted for a while, whoever asks of it in whatever way."""

    def shifted(
        self, text: Any, by: FloatArray
    ) -> AbstractContextManager[None]: ...  # by (pieces of words, size)


@runtime_checkable
class Attentive(Classifier, Protocol):
    """Weighs words by attention, in one way or several."""

    @property
    def attention_ways(self) -> tuple[str, ...]: ...  # the first is what is meant if none is named

    def attention(
        self, inputs: Sequence[Any], way: str | None = None
    ) -> list[FloatArray]: ...  # per input: (words,)


def attention_way(model: Attentive, way: str | None) -> str:
    """The way asked for, or the model's first; a sentence if it has no such way."""
    if way is None:
        return model.attention_ways[0]
    if way not in model.attention_ways:
        raise ModelError(
            f"expected a model with attention by {way}; this one has attention only by "
            f"{', '.join(model.attention_ways)}"
        )
    return way


@runtime_checkable
class Selective(Classifier, Protocol):
    """Reads only the words that it chose."""

    def rationale(
        self, inputs: Sequence[Any]
    ) -> list[FloatArray]: ...  # per input: (words,) from 0 to 1, above 0 where a word is read


class Layout(Protocol):
    """Which features of an input the cells of a feature map read."""

    def on_features(
        self, cells: FloatArray, n_features: int
    ) -> FloatArray: ...  # (cells,) → (n_features,), of so many that are read


@dataclass(frozen=True)
class RowLayout:
    """Cells in a row, each reading so many features in a row, with padding around the input."""

    width: int
    before: int = 0
    after: int = 0

    @property
    def cell_per_feature(self) -> bool:
        """Whether padding gives every feature a cell of its own."""
        return self.before + self.after == self.width - 1

    def features(self, cell: int, n_features: int) -> range:
        """Which features a cell reads, of so many that are read."""
        first = cell - self.before
        return range(max(first, 0), min(first + self.width, n_features))

    def on_features(self, cells: FloatArray, n_features: int) -> FloatArray:
        """A cell per feature is that feature's; any other is shared evenly by what it reads."""
        if self.cell_per_feature:
            return cells[:n_features]
        scores = np.zeros(n_features)
        for cell, value in enumerate(cells):
            read = self.features(cell, n_features)
            if read:
                scores[read] += value / len(read)
        return scores

    def n_positions(self, cells: Tensor) -> Tensor:
        """Of inputs with so many cells: features and what fills them up behind."""
        return cells + self.width - 1 - self.before - self.after


@dataclass(frozen=True)
class PlaneLayout:
    """Cells in rows and columns, over a picture of which each reads an equal part."""

    cells: tuple[int, int]
    shape: tuple[int, int]

    def on_features(self, cells: FloatArray, n_features: int) -> FloatArray:
        """Resized to the picture, bilinearly with half-pixel centres (definitions 3.9)."""
        down, across = (
            _between(few, many) for few, many in zip(self.cells, self.shape, strict=True)
        )
        found: FloatArray = (down @ cells.reshape(self.cells) @ across.T).ravel()
        return found


def _between(few: int, many: int) -> FloatArray:
    """How each of many places mixes its two neighbours among few. → (many, few)"""
    places = np.clip((np.arange(many) + 0.5) * few / many - 0.5, 0, few - 1)
    distance = np.abs(places[:, None] - np.arange(few))
    found: FloatArray = np.maximum(1 - distance, 0.0)
    return found


@dataclass(frozen=True)
class FeatureMap:
    """What filters of one size found in every cell of a batch of inputs."""

    layout: Layout
    values: Tensor  # (batch, cells, filters) after ReLU; zero in cells that are not an input's own
    present: Tensor  # (batch, cells) bool: an input's own cells, those over its own padding too


@runtime_checkable
class Convolutional(Differentiable, Protocol):
    """Finds n-grams by filters and decides by the strongest match of each."""

    def feature_maps(self, embedded: Embedded) -> tuple[FeatureMap, ...]: ...  # one per size

    def logits_of_maps(self, maps: Sequence[FeatureMap]) -> Tensor: ...  # (batch, labels)


@runtime_checkable
class Truncating(Classifier, Protocol):
    """Reads only the first features of an input; what stands behind them decides nothing."""

    def features_read(self, inputs: Sequence[Any]) -> list[int]: ...  # of each input


ABILITIES: dict[str, type] = {
    "probabilities": Classifier,
    "fast masking": Maskable,
    "gradients": Differentiable,
    "attention": Attentive,
    "convolutional filters": Convolutional,
    "rationales": Selective,
}


def abilities(model: object) -> tuple[str, ...]:
    """What this model can do, found by looking at it."""
    return tuple(name for name, ability in ABILITIES.items() if isinstance(model, ability))


def ability_name(ability: type) -> str:
    """The word for an ability in messages; one that has none goes by its own name."""
    return next((name for name, known in ABILITIES.items() if known is ability), ability.__name__)
