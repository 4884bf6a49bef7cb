"""A recipe of four trainings that take a moment each: real steps, so that `run` can be killed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from veracity.data.loading import load_data
from veracity.data.splits import split
from veracity.experiments.experiment import Experiment, Step
from veracity.experiments.training import trained_once
from veracity.recipes.recipe import Recipe, Setup
from veracity.results.findings import Findings


@dataclass(frozen=True)
class TinySteps(Recipe):
    """Trains the same small model on four made-up corpora."""

    title: ClassVar[str] = "Four small trainings"

    @classmethod
    def at_scale(cls, scale: str) -> Mapping[str, Any]:
        return {"steps": 4}

    def experiment(self, setup: Setup) -> Experiment:
        return Trainings(setup.folder, setup.sizes["steps"])

    def findings(self, experiment: Any, results: Mapping[Any, Any]) -> Findings:
        return Findings(self.spec, self.title, "Done.", {"steps": list(results.values())})


@dataclass(frozen=True)
class Trainings(Experiment):
    """A training each; travels to a worker."""

    number: int

    def steps(self) -> list[Step]:
        return [Step(key=i, name=str(i), settings={"number": i}) for i in range(self.number)]

    def work(self, step: Step, executor: Any) -> Mapping[str, Any]:
        spec = f"made_reviews(n=160, seed={step.key})"
        model = "text_cnn(size=8, filters=4, widths=(1, 2), embeddings=random)"
        place = self.place(step.name) / "model"
        trained = trained_once(model, split(load_data(spec)), place, data={"name": spec})
        return {"test": dict(trained.record["test"])}
