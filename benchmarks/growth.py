"""How time and peak memory grow with sentences, words, samples and labels.

Every point is a process of its own; one that would take long, going by the point before it, is
not tried. The models are untrained: what is measured does not depend on what they learnt.
"""

from __future__ import annotations

import json
import resource
import sys
import time
import warnings
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

import plots
import setting
from setting import Row
from veracity.core.attributions import Attribution
from veracity.core.examples import Dataset, Example
from veracity.core.inputs import Text
from veracity.core.metrics import Case
from veracity.engine.inference import probabilities
from veracity.metrics import metrics
from veracity.models.architectures import architectures

METHODS = {
    "lime": setting.LIME.format(samples="{samples}", bow=False),
    "shap": setting.KERNEL_SHAP,
    "integrated_gradients": "integrated_gradients(steps=20)",
    "occlusion": "occlusion",
    "erasure": setting.ERASURE,
}
MODELS = {
    "text_cnn": "text_cnn(size=300)",
    "lstm": "lstm(size=100)",
    "transformer": "transformer",
}
KNOWN_WORDS = 2000
GIVE_UP = 70.0
"""Seconds that a point may be expected to take, if cost grows in step with size."""
MOST_MEMORY = 2048


@dataclass(frozen=True)
class Point:
    """One measurement: what is run, on how much."""

    sweep: str
    size: int
    method: str
    model: str = "text_cnn"
    sentences: int = 20
    words: int = 20
    samples: int = 100
    labels: int = 2


def points(quick: bool) -> Iterator[list[Point]]:
    """Curves, each from small to large."""
    sizes = {
        "sentences": (10, 50) if quick else (100, 1000, 10_000),
        "words": (10, 50) if quick else (10, 100, 1000),
        "samples": (100, 500) if quick else (100, 1000, 10_000),
        "labels": (2, 5) if quick else (2, 20),
    }
    methods = ("lime", "erasure") if quick else METHODS
    for sweep, grown in sizes.items():
        for method in methods:
            if sweep == "samples" and method not in ("lime", "shap"):
                continue
            # few long texts, many short ones: the curves are about growth, not about patience
            base = Point(sweep, 0, method, sentences=2 if sweep == "words" else 20)
            yield [Point(**{**asdict(base), sweep: size, "size": size}) for size in grown]
    for model in ("lstm", "transformer"):
        for method in ("occlusion",) if quick else ("lime", "occlusion", "integrated_gradients"):
            base = Point("words", 0, method, model, sentences=1 if model == "transformer" else 2)
            yield [replace(base, words=n, size=n) for n in ((5, 10) if quick else (10, 40, 160))]


def _data(point: Point) -> Dataset:
    rng = np.random.default_rng(setting.SEED)
    names = [f"word{i}" for i in range(KNOWN_WORDS)]
    # every word once and every label, so that the vocabulary is full
    train = [
        Example(f"t{i}", Text.of_words(names[i * 10 : i * 10 + 10]), i % point.labels)
        for i in range(KNOWN_WORDS // 10)
    ]
    asked = [
        Example(
            f"{i}", Text.of_words([names[j] for j in rng.integers(0, KNOWN_WORDS, point.words)]), 0
        )
        for i in range(point.sentences)
    ]
    labels = tuple(f"label{i}" for i in range(point.labels))
    return Dataset("grown", labels, tuple(train + asked))


def measure(point: Point) -> dict[str, Any]:
    """The body of a point's process."""
    setting.all_cores()
    warnings.simplefilter("ignore")
    data = _data(point)
    model: Any = architectures.make(MODELS[point.model]).start(data, seed=0)
    model.eval()
    chosen = data.examples[-point.sentences :]
    texts = [e.input for e in chosen]
    spec = METHODS[point.method].format(samples=point.samples)
    targets = [0] * len(texts)
    small = [Text.of_words(texts[0].words[:6])]
    if point.method == "erasure":
        answers = probabilities(model, texts)
        rng = np.random.default_rng(0)
        cases = [
            Case(e, model, p, Attribution(e.input, 0, rng.normal(size=e.input.n_features)))
            for e, p in zip(chosen, answers, strict=True)
        ]
        metric = metrics.make(spec)
        started = time.perf_counter()
        metric.score(cases)
    else:
        setting.explain(model, small, [0], spec)
        started = time.perf_counter()
        setting.explain(model, texts, targets, spec)
    seconds = time.perf_counter() - started
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return {**asdict(point), "spec": spec, "seconds": seconds, "peak_memory_mb": round(peak)}


def _apart(point: Point) -> dict[str, Any]:
    return setting.in_own_process(__file__, asdict(point))


def curves(quick: bool) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = []
    stopped = []
    for curve in points(quick):
        for place, point in enumerate(curve):
            if place and rows[-1]["seconds"] * point.size / rows[-1]["size"] > GIVE_UP:
                stopped.append(f"{point.method}, {point.model} at {point.size} {point.sweep}")
                break
            rows.append(_apart(point))
    stem = setting.RESULTS / ("quick-growth" if quick else "growth")
    stem.parent.mkdir(exist_ok=True)
    stem.with_suffix(".json").write_text(json.dumps(rows, indent=1) + "\n")
    sweeps = list(dict.fromkeys(row["sweep"] for row in rows))
    plots.panels(rows, sweeps, ("seconds", "peak_memory_mb"), stem)
    note = f"{len(rows)} points in {stem.name}.json"
    if stopped:
        note += f"; not tried, expected to take over {GIVE_UP:g} s: {'; '.join(stopped)}"
    seconds = sum(row["seconds"] for row in rows)
    return [Row("growth with sentences, words, samples, labels", "", seconds, note=note).written()]


def memory(quick: bool) -> list[dict[str, Any]]:
    """No method may pass the limit on long texts with many labels."""
    words = 50 if quick else 1000
    found = [
        _apart(Point("memory", words, method, sentences=1, words=words, samples=100, labels=20))
        for method in METHODS
    ]
    worst = max(found, key=lambda row: row["peak_memory_mb"])
    return [
        Row(
            f"peak memory at {words} words × 20 labels, text CNN",
            "",
            sum(row["seconds"] for row in found),
            value=worst["peak_memory_mb"] / MOST_MEMORY,
            bar=1,
            at_most=True,
            note=f"ratio: to {MOST_MEMORY} MB; most: {worst['spec']}, {worst['peak_memory_mb']} MB",
            more={"peak_mb": {row["method"]: row["peak_memory_mb"] for row in found}},
        ).written()
    ]


CASES = {"growth curves": curves, "memory of long texts": memory}

if __name__ == "__main__":
    print(json.dumps(measure(Point(**json.loads(sys.argv[1])))))
