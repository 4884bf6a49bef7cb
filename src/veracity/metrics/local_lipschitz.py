"""Does an explanation change little where the input changes little? (definitions 5.11)"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, cast

import numpy as np

from ..core.classifiers import Movable
from ..core.inputs import FloatArray
from ..core.metrics import Case, Metric, Quality, Quantity, Row
from ..engine.inference import probabilities
from ..engine.seeds import generator


@dataclass(frozen=True)
class LocalLipschitz(Metric):
    """How far an explanation moves at most, for every step that the embeddings are moved."""

    purpose: ClassVar[str] = "say much the same of inputs that are much the same to the model"
    usual: ClassVar[bool] = False
    largest: ClassVar[Mapping[str, int]] = {"points": 100_000}
    quantities: ClassVar[Mapping[str, Quantity]] = {
        "lipschitz": Quantity(
            "largest change of the explanation per change of the embeddings nearby", "lower", True
        ),
        "kept": Quantity("share of the points nearby that get the same answer, and so count"),
    }

    points: int = 100
    """How many points nearby are looked at, each for the price of an explanation."""
    radius: float = 0.1
    """How far embeddings are moved at most."""
    relative: bool = False
    """Whether the radius is measured in mean lengths of the embeddings of words."""
    seed: int = 0

    def __post_init__(self) -> None:
        if self.points < 1:
            raise ValueError(f"expected 1 point or more, got {self.points}")
        if not self.radius > 0:
            raise ValueError(f"expected a radius above 0, got {self.radius}")

    @property
    def quality(self) -> Quality:
        return "stability"

    def score(self, cases: Sequence[Case]) -> list[Row]:
        return [self._row(case) for case in cases]

    def _row(self, case: Case) -> Row:
        text, model = case.example.input, case.model
        if not text.n_features or not isinstance(model, Movable) or case.explain_again is None:
            return dict.fromkeys(self.quantities, float("nan"))
        embedded = model.embed([text])
        pieces = embedded.values[embedded.feature].detach().cpu().double().numpy()
        scale = float(np.linalg.norm(pieces, axis=1).mean()) if self.relative else 1.0
        rng = generator(self.seed, "nearby", case.example.id)
        answer = int(np.argmax(case.probabilities))
        seen = []
        for _ in range(self.points):
            by = in_ball(pieces.shape, self.radius * scale, rng)
            with model.shifted(text, by):
                if int(np.argmax(probabilities(model, [text])[0])) == answer:
                    seen.append((case.explain_again().scores, float(np.linalg.norm(by))))
        return {
            "lipschitz": lipschitz(case.attribution.scores, seen),
            "kept": len(seen) / self.points,
        }


def lipschitz(scores: FloatArray, nearby: Iterable[tuple[FloatArray, float]]) -> float:
    """The largest ratio of the distance of explanations to that of their inputs; NaN without any.
    The shorter of two explanations goes on with zeros."""
    ratios = [_distance(scores, other) / distance for other, distance in nearby if distance > 0]
    return max(ratios, default=float("nan"))


def among_sentences(
    ids: Sequence[Sequence[int]], answers: Sequence[int], scores: Sequence[FloatArray]
) -> list[float]:
    """The same over other sentences with the same answer in place of points nearby, with the
    largest difference of word numbers as distance, as the authors' code has it. Numbers of words
    are no distances: for comparison only. Position by position, the shorter goes on with zeros."""
    found = []
    for i, answer in enumerate(answers):
        others = [j for j, other in enumerate(answers) if other == answer and j != i]
        nearby = [(scores[j], _largest_gap(ids[i], ids[j])) for j in others]
        found.append(lipschitz(scores[i], nearby))
    return found


def in_ball(shape: tuple[int, ...], radius: float, rng: np.random.Generator) -> FloatArray:
    """A point drawn evenly from a ball, the array read as one vector."""
    direction = rng.standard_normal(shape)
    length = radius * rng.random() ** (1 / direction.size)
    return cast(FloatArray, direction * (length / np.linalg.norm(direction)))


def _distance(one: FloatArray, other: FloatArray) -> float:
    return float(np.linalg.norm(np.subtract(*_padded(one, other))))


def _largest_gap(one: Sequence[int], other: Sequence[int]) -> float:
    a, b = _padded(np.asarray(one, dtype=np.float64), np.asarray(other, dtype=np.float64))
    return float(np.abs(a - b).max(initial=0.0))


def _padded(one: FloatArray, other: FloatArray) -> tuple[FloatArray, FloatArray]:
    size = max(len(one), len(other))
    return np.pad(one, (0, size - len(one))), np.pad(other, (0, size - len(other)))
