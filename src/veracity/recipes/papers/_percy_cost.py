"""What the whole grid would cost, from what a part of it took."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ...engine.executors import default_workers
from ...experiments.experiment import StepResult
from ...explainers import explainers
from ...results.declarations import Declarations
from ...results.findings import Table, Value
from ._percy_judging import STUDENT
from ._percy_names import GRID, VECTORS, ClassifierName

MACHINES = 10

Hours = tuple[float, float, float]
"""Of training and of explaining with one process, and of the longest step."""


def cost_table(
    declared: Declarations,
    results: Mapping[Any, StepResult],
    names: Sequence[ClassifierName],
    sizes: Mapping[str, Any],
) -> Table:
    """Hours by vectors and in all: seconds per text and epoch, and seconds per question, as they
    were measured, times how many there are at scale paper."""
    paper = declared.content["scales"]["paper"]
    workers = default_workers()
    rows: dict[str, dict[str, Value]] = {}
    total, longest, done = np.zeros(2), 0.0, 0
    for letter, title in VECTORS.items():
        grid = [name for name in GRID if name.vectors == letter]
        measured: dict[str, list[Hours]] = {name.base: [] for name in grid}
        for name in names:
            if name.vectors == letter:
                measured[name.base].append(_hours(str(name), results, sizes, paper, declared))
        if not all(measured.values()):
            rows[title] = {"classifiers": f"{len(grid)}", "here": "not run"}
            continue
        # those that were not run cost what others of their base and vectors do
        each = np.array([np.mean(measured[name.base], axis=0) for name in grid])
        hours = each[:, :2].sum(axis=0)
        total, done = total + hours, done + len(grid)
        longest = max(longest, float(each[:, 2].max()))
        rows[title] = {"classifiers": f"{len(grid)}", **_told(hours, longest, workers)}
    rows["all that were run"] = {"classifiers": f"{done}", **_told(total, longest, workers)}
    return declared.table("cost", rows, epochs=paper["training"]["epochs"], cores=workers)


def _told(hours: Any, longest: float, workers: int) -> dict[str, Value]:
    """What is done at once cannot take less than its longest step."""
    here, ten = (max(float(hours.sum()) / (workers * n), longest) for n in (1, MACHINES))
    return {
        "training": f"{hours[0] / workers:,.1f}",
        "explaining": f"{hours[1] / workers:,.1f}",
        "here": f"{here:,.1f}",
        "ten": f"{ten:,.1f}",
    }


def _hours(
    name: str,
    results: Mapping[Any, StepResult],
    sizes: Mapping[str, Any],
    paper: Mapping[str, Any],
    declared: Declarations,
) -> Hours:
    """Of one classifier on both corpora."""
    own = {k: r for k, r in results.items() if k.classifier == name}
    trained = [r for k, r in own.items() if k.what == "train"]
    judged = [r for k, r in own.items() if k.what == "judge"]
    per_text = np.mean([r["seconds"] / (r["texts"] * r["epochs"]) for r in trained])
    per_sentence = sum(
        np.mean([_at_paper(r, sizes["explainers"][e], paper["explainers"][e]) for r in judged])
        for e in sizes["explainers"]
    )
    training, explaining, longest = 0.0, 0.0, 0.0
    for corpus in declared.published["sizes"].values():
        one = float(per_text) * corpus["texts"] * paper["training"]["epochs"] / 3600
        training += one * corpus["trainings"]
        explaining += float(per_sentence) * corpus["sentences"] / 3600
        longest = max(longest, one)
    return training, explaining, longest


def _at_paper(result: StepResult, spec: str, wanted: str) -> float:
    """Seconds of one explanation with as many questions as at scale paper."""
    here, there = explainers.make(spec), explainers.make(wanted)
    examples, seconds, _ = result["costs"][f"{STUDENT} {here.spec}"]
    words = round(result["words"])
    questions = [e.n_questions(words) or _steps(e) for e in (here, there)]
    return float(seconds / examples * questions[1] / questions[0])


def _steps(explainer: Any) -> int:
    return int(getattr(explainer, "steps", 1))
