"""Long work in named steps: each done once, kept on the disk, and given to any executor."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ..core.errors import RunError
from ..core.files import as_read, read_json, reading, with_checksum, written_whole
from ..core.progress import Progress, Watcher
from ..engine.executors import Executor
from ..models.architecture import LATER

STEPS = "steps"
FILE = "found.json"

StepResult = dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class Step:
    """One piece of work: the settings that it depends on, and the steps that it needs."""

    key: Hashable
    """What it is about; results go by this."""
    name: str
    """The folder in which it is kept."""
    settings: Mapping[str, Any]
    """What it depends on: what is done stays done when other settings change."""
    needs: tuple[Hashable, ...] = ()
    title: str = ""
    """What it is called while it is under way; by default its name."""
    spreads: bool = False
    """Whether it has jobs of its own for the executor, and so none beside it."""

    def __str__(self) -> str:
        return self.title or self.name


@dataclass(frozen=True)
class Experiment(ABC):
    """What all steps share, such as data and sizes; travels to a worker once."""

    folder: Path

    @abstractmethod
    def steps(self) -> Sequence[Step]:
        """All that is to be done; of what can be done at once, what takes longest first."""

    @abstractmethod
    def work(self, step: Step, executor: Executor | None) -> Mapping[str, Any]:
        """Does one step, whose result is JSON; `executor` is there for a step that spreads."""

    def place(self, name: str) -> Path:
        """Where a step keeps its files."""
        return self.folder / STEPS / name


def run_steps(
    experiment: Experiment, executor: Executor, *, watch: Watcher | None = None
) -> dict[Any, StepResult]:
    """The results of all steps by their keys; a step begins when all that it needs is done. An
    experiment that runs within a step of another is given no watcher: its progress is told as that
    step's."""
    steps = experiment.steps()
    results: dict[Hashable, StepResult] = {}
    for step in steps:
        kept = kept_result(experiment.place(step.name), step.settings)
        if kept is not None:
            results[step.key] = kept

    def under_way(step: Step, progress: Progress) -> None:
        if watch is not None:
            watch(replace(progress, step=str(step)))

    def done(doing: str) -> None:
        if watch is not None:
            watch(Progress(len(results), len(steps), doing))

    done("first steps")
    while waiting := [s for s in steps if s.key not in results]:
        ready = [s for s in waiting if all(need in results for need in s.needs)]
        if not ready:
            raise ValueError(f"steps need what is not there: {', '.join(map(str, waiting))}")
        together = [s for s in ready if not s.spreads] or ready[:1]
        work = _StepWork(experiment, executor if together[0].spreads else None)
        watched = under_way if watch is not None else None
        for step, result in executor.map(work, together, progress=watched):
            results[step.key] = result
            done(str(step))
    return {step.key: results[step.key] for step in steps}


@dataclass(frozen=True)
class _StepWork:
    """A step as an executor does it."""

    experiment: Experiment
    executor: Executor | None

    def __call__(self, step: Step) -> tuple[Step, StepResult]:
        result = self.experiment.work(step, self.executor)
        return step, keep_step(self.experiment.place(step.name), step.settings, result)


def chosen(settings: Any) -> Any:
    """Settings without those that are None or came later and are what they were before: records of
    earlier versions do not name them."""
    if isinstance(settings, list | tuple):
        return [chosen(one) for one in settings]
    if not isinstance(settings, Mapping):
        return settings
    before = {name: chosen(value) for name, value in LATER.items()}
    named = {k: chosen(v) for k, v in settings.items() if v is not None}
    return {k: v for k, v in named.items() if k not in before or v != before[k]}


def kept_result(folder: Path, settings: Mapping[str, Any]) -> StepResult | None:
    """What a step found before, if it was done there with the same settings."""
    kept = kept_step(folder)
    if kept is None:
        return None
    if kept["asked"] != as_read(settings):
        raise RunError(
            f"{folder} holds a step of another experiment, or one that was done in another way. "
            "Choose another --out, or delete that one"
        )
    result: StepResult = kept["found"]
    return result


def kept_step(folder: Path) -> dict[str, Any] | None:
    """The settings (`asked`) and the result (`found`) of a step that was done, if it was."""
    path = folder / FILE
    if not path.exists():
        return None
    with reading(path, remedy="Delete it to do the step again"):
        content = read_json(path)
        return {key: content[key] for key in ("asked", "found")}


def keep_step(folder: Path, settings: Mapping[str, Any], result: Mapping[str, Any]) -> StepResult:
    """Writes down that a step is done, all of it or nothing."""
    # a figure that is not defined stays NaN, since None may mean something else in a result
    record = with_checksum({"asked": settings, "found": dict(result)})
    content = json.dumps(record, indent=1)
    with written_whole(folder / FILE) as file:
        file.write(content.encode())
    kept: StepResult = json.loads(content)["found"]
    return kept


def forget_step(folder: Path) -> None:
    """Lets a step be done again; what else it left stays."""
    (folder / FILE).unlink(missing_ok=True)
