"""What a paper's experiment is: sizes by scale and words as data, steps, and what they show."""

from __future__ import annotations

import inspect
import tomllib
from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, ClassVar

from ..core.errors import PluginError
from ..core.files import FolderKind
from ..core.plugins import Plugin
from ..core.progress import Watcher
from ..engine.executors import Executor, Local, default_workers
from ..experiments.experiment import STEPS, Experiment, StepResult, run_steps
from ..results.declarations import Declarations
from ..results.findings import Findings

EXPERIMENT = FolderKind("an experiment", STEPS)


@dataclass(frozen=True)
class Setup:
    """What a recipe is run with: where, at which sizes, on which data."""

    folder: Path
    scale: str
    sizes: Mapping[str, Any]
    data: str | Path | None = None
    seed: int = 0


@dataclass(frozen=True, kw_only=True)
class RecipeExperiment(Experiment):
    """The steps of a recipe, at the sizes that it is run with."""

    setup: Setup

    @property
    def sizes(self) -> Mapping[str, Any]:
        return self.setup.sizes


def check_among(name: str, given: Sequence[str], known: Collection[str]) -> None:
    """Told before anything is done: something is chosen, and all of it is there."""
    if not given or not set(given) <= set(known):
        raise ValueError(f"expected {name} among {', '.join(known)}; got {given}")


class Recipe(Plugin, ABC):
    """An experiment that a folder keeps, so that what was done is not done again."""

    title: ClassVar[str]

    @classmethod
    @cache
    def settings(cls) -> Mapping[str, Any]:
        """What stands in the TOML file beside the recipe: scales, words and published figures."""
        path = Path(inspect.getfile(cls)).with_suffix(".toml")
        if not path.exists():
            raise PluginError(f"expected the recipe's scales in {path}; there is no such file")
        return tomllib.loads(path.read_text("utf-8"))

    @classmethod
    def declarations(cls) -> Declarations:
        """The same as tables, figures and claims to be filled in."""
        return Declarations(cls.settings())

    @classmethod
    def at_scale(cls, scale: str) -> Mapping[str, Any]:
        """The sizes of one scale, over those of all."""
        scales = cls.settings()["scales"]
        if scale not in scales:
            raise PluginError(f"expected the scale to be {', '.join(scales)}; got {scale!r}")
        found: Mapping[str, Any] = {**cls.settings().get("always", {}), **scales[scale]}
        return found

    def run(
        self,
        folder: Path,
        *,
        scale: str = "laptop",
        sizes: Mapping[str, Any] | None = None,
        data: str | Path | None = None,
        seed: int = 0,
        workers: int | None = None,
        executor: Executor | None = None,
        watch: Watcher = lambda _: None,
    ) -> Findings:
        """Does what is not done yet, by default in a process per core, and says what was found.
        `sizes` go before those of the scale."""
        setup = Setup(folder, scale, {**self.at_scale(scale), **(sizes or {})}, data, seed)
        experiment = self.experiment(setup)
        chosen = executor or Local(workers or default_workers())
        findings = self.findings(experiment, run_steps(experiment, chosen, watch=watch))
        findings.write(folder)
        return findings

    @abstractmethod
    def experiment(self, setup: Setup) -> Experiment:
        """The data, and the steps that are done with them."""

    @abstractmethod
    def findings(self, experiment: Any, results: Mapping[Any, StepResult]) -> Findings:
        """What the results of all steps show, beside what the paper printed."""
