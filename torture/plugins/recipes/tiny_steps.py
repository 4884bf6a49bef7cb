"""A recipe of four trainings that take a moment each: real steps, so that `run` can be killed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from veracity.data.loading import load_data
from veracity.data.splits import split
from veracity.experiments.training import trained_once
from veracity.models.architectures import architectures
from veracity.recipes.recipe import Order, Recipe, done_once
from veracity.results.findings import Findings


@dataclass(frozen=True)
class TinySteps(Recipe):
    """Trains the same small model on four made-up corpora."""

    title: ClassVar[str] = "Four small trainings"

    @classmethod
    def at_scale(cls, scale: str) -> Mapping[str, Any]:
        return {"steps": 4}

    def found(self, order: Order) -> Findings:
        jobs = list(range(order.sizes["steps"]))
        found = order.done(Step(order.folder), jobs, said=str)
        return Findings(self.spec, self.title, "Done.", {"steps": [found[i] for i in jobs]})


@dataclass(frozen=True)
class Step:
    """One training; travels to a worker."""

    folder: Path

    def __call__(self, number: int) -> tuple[int, Any]:
        place = self.folder / "steps" / str(number)
        return number, done_once(place, {"number": number}, lambda: self._trained(place, number))

    def _trained(self, place: Path, number: int) -> dict[str, Any]:
        spec = f"made_reviews(n=160, seed={number})"
        parts = split(load_data(spec))
        model = architectures.make("text_cnn(size=8, filters=4, widths=(1, 2), embeddings=random)")
        student = trained_once(model, parts, place / "model", data={"name": spec})
        return {"test": dict(student.record["test"])}
