"""What becomes of a model's answers as words go, the most important first (definitions 5.13)."""

from __future__ import annotations

import re
from collections.abc import Mapping

import numpy as np

from ..core.examples import Example
from ..core.inputs import FloatArray
from .columns import Column
from .findings import Figure, Points
from .run import Run

_COUNTED = re.compile(r"(accuracy|confidence)_without_(\d+)")

_TITLES = {
    "accuracy": ("Accuracy without the top {units}", "share of {many} answered right"),
    "confidence": ("Confidence without the top {units}", "mean probability of the explained label"),
}


def deletion_figures(run: Run) -> dict[str, list[Figure]]:
    """By model: a line per method through what is left without its first 1, 2, 3 … words."""
    metrics = [m for m in run.config.metrics if m.partition("(")[0] == "deletion"]
    if not metrics:
        return {}
    examples = run.examples()
    found: dict[str, list[Figure]] = {}
    for model in run.models:
        whole = _whole(run, model, examples)
        found[model] = [
            _figure(what, metric if len(metrics) > 1 else "", lines, whole[what], run)
            for metric in metrics
            for means in [_means(run.columns(metric, model))]
            for what in _TITLES
            if (lines := means.get(what))
        ]
    return {model: figures for model, figures in found.items() if figures}


Lines = Mapping[str, Mapping[float, float]]
"""By method: by number of words that are gone, the mean over texts."""


def _means(columns: Mapping[str, Column]) -> dict[str, Lines]:
    found: dict[str, dict[str, dict[float, float]]] = {}
    for name, column in columns.items():
        counted = _COUNTED.fullmatch(name)
        for method in column.methods if counted else ():
            values = list(column.of(method).values())
            if counted and values:
                lines = found.setdefault(counted[1], {})
                lines.setdefault(method, {})[float(counted[2])] = float(np.mean(values))
    return dict(found)


def _whole(run: Run, model: str, examples: list[Example]) -> dict[str, float]:
    """What both are before any word is gone."""
    answers = run.predictions(model)
    rows = [(e, answers[e.id]) for e in examples if e.id in answers]
    target = run.config.target

    def explained(example: Example, p: FloatArray) -> float:
        if target == "predicted":
            return float(p.max())
        return float(p[example.label if target == "gold" else int(target)])

    return {
        "accuracy": float(np.mean([int(np.argmax(p)) == e.label for e, p in rows])),
        "confidence": float(np.mean([explained(e, p) for e, p in rows])),
    }


def _figure(what: str, metric: str, lines: Lines, whole: float, run: Run) -> Figure:
    """Methods in the order of the run, chance as a dashed line."""
    title, y = (run.nouns.fill(said) for said in _TITLES[what])
    dashed = run.config.baselines
    series = tuple(
        Points.of(m, [(0.0, whole), *sorted(lines[m].items())], line=True, dashed=m in dashed)
        for m in run.explainers
        if m in lines
    )
    removed = f"{run.nouns.units} removed, the most important first"
    return Figure(title, metric, removed, y, series)
