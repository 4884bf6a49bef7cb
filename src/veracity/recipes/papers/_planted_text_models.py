"""Which models the planted-text experiments train, and what they are called."""

from __future__ import annotations

from typing import NamedTuple

DATASET_NAMES = {"article": "Article", "cn": "CN", "nc": "NC"}
KINDS = {"rationale_cr": "continuous relaxation", "rationale_rl": "reinforcement"}


class PlantedModel(NamedTuple):
    """Which model a step is about."""

    dataset: str
    kind: str
    """attention, methods (all others on the former), or one of `KINDS`."""
    value: float
    """The number of the run, or the share of words to read."""
    vectors: str = ""
    """Which word vectors one with attention reads."""
    norm: float | None = None
    """How long these were made on average; None leaves them as they are."""

    @property
    def step(self) -> str:
        """The name of the step's folder."""
        norm = f"norm{self.norm:g}" if self.norm is not None else ""
        parts = (self.kind, self.vectors, norm, self.dataset, f"{self.value:g}")
        return "-".join(filter(None, parts))

    @property
    def trained(self) -> PlantedModel:
        """The step that trains it."""
        return self._replace(kind="attention") if self.vectors else self

    def __str__(self) -> str:
        name = f"{DATASET_NAMES[self.dataset]}, {self.kind.replace('_', ' ')} {self.value:g}"
        return name + (f", {self.vectors} vectors, {length(self.norm)}" if self.vectors else "")


def length(norm: float | None) -> str:
    """How long the vectors were made, in words."""
    return "as they are" if norm is None else f"norm {norm:g}"
