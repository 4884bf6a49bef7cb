"""What a paper's experiment is: settings by scale as data, steps that are done once, findings."""

from __future__ import annotations

import json
import tomllib
from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any, ClassVar, TypeVar

from ..core.errors import PluginError, RunError
from ..core.files import FolderKind, read_json, written_whole
from ..core.plugins import Plugin
from ..core.progress import Progress, Watcher
from ..engine.executors import Executor, Local, default_workers
from ..results.findings import Findings

Job = TypeVar("Job", bound=Hashable)
Result = TypeVar("Result")

EXPERIMENT = FolderKind("an experiment", "steps")

SCALES = ("smoke", "laptop", "paper")


@dataclass(frozen=True)
class Order:
    """What is asked of an experiment, whichever it is."""

    folder: Path
    scale: str
    sizes: Mapping[str, Any]
    data: str | Path | None
    seed: int
    executor: Executor
    watch: Watcher

    def done(
        self,
        work: Callable[[Job], tuple[Job, Result]],
        *stages: Sequence[Job],
        said: Callable[[Job], str],
        more: int = 0,
    ) -> dict[Job, Result]:
        """What became of each job; a stage begins when the one before it is done. So many more
        steps are to follow."""
        found: dict[Job, Result] = {}
        steps = sum(map(len, stages)) + more
        self.watch(Progress(0, steps, "first steps"))
        for stage in stages:
            for job, result in self.executor.map(
                work, stage, progress=lambda job, p: self.watch(replace(p, step=said(job)))
            ):
                found[job] = result
                self.watch(Progress(len(found), steps, said(job)))
        return {job: found[job] for stage in stages for job in stage}


class Recipe(Plugin, ABC):
    """An experiment that a folder keeps, so that what was done is not done again."""

    title: ClassVar[str]

    @classmethod
    @cache
    def settings(cls) -> Mapping[str, Any]:
        """What stands in the TOML file beside the recipe: scales and published figures."""
        name = f"{cls.plugin_name()}.toml"
        return tomllib.loads((files(__package__) / "papers" / name).read_text("utf-8"))

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
        scale: str,
        data: str | Path | None,
        seed: int,
        workers: int | None = None,
        executor: Executor | None = None,
        watch: Watcher = lambda _: None,
    ) -> Findings:
        """Does what is not done yet, by default in a process per core, and says what was found."""
        chosen = executor or Local(workers or default_workers())
        order = Order(folder, scale, self.at_scale(scale), data, seed, chosen, watch)
        findings = self.found(order)
        findings.write(folder)
        return findings

    @abstractmethod
    def found(self, order: Order) -> Findings:
        """What a recipe adds: its steps, each done once, and what they show."""


def done_once(
    folder: Path, asked: Mapping[str, Any], work: Callable[[], Mapping[str, Any]]
) -> dict[str, Any]:
    """What this step found, from the disk if it was done there before with the same settings."""
    path, now = folder / "found.json", json.loads(json.dumps(asked))
    if path.exists():
        try:
            before = read_json(path)
            if before["asked"] == now:
                found: dict[str, Any] = before["found"]
                return found
        except (ValueError, KeyError, TypeError) as error:
            raise RunError(f"{path} is damaged ({error}). Delete it to do the step again") from None
        raise RunError(
            f"{folder} holds a step of another experiment. Choose another --out, or delete that one"
        )
    result = dict(work())
    folder.mkdir(parents=True, exist_ok=True)
    with written_whole(path) as file:
        file.write(json.dumps({"asked": now, "found": result}, indent=1).encode())
    return json.loads(json.dumps(result))  # type: ignore[no-any-return]
