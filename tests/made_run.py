"""A run folder made up from a few sentences, for tests and for looking at reports."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from veracity.core.attributions import Attribution
from veracity.core.examples import Dataset, Example
from veracity.core.inputs import FloatArray, Text
from veracity.core.schema import from_json
from veracity.results.config import RunConfig
from veracity.results.run import Run

ATTACK = "<script>alert(1)</script>"
BREAKOUT = '"></script><img src=x onerror=alert(2)><!--'

GOOD = ("wonderful", "moving", "sharp", "charming", "brilliant", "honest")
BAD = ("dull", "clumsy", "boring", "shallow", "tedious", "weak")
FRAMES = (
    "A {a} film, with a {b} script and {c} acting.",
    "I found the second half {a}, though the ending is {b}.",
    "Not {a} at all: {b} from the first scene to the last.",
    "The cast is {a}; the story, sadly or not, is {b} and {c}.",
    "{a} direction, {b} dialogue, and music that stays with you.",
)
CHINESE = (
    (("这", "部", "电影", "真", "好看", "，", "演员", "也", "很", "出色", "。"), 1),
    (("剧情", "无聊", "，", "浪费", "时间", "。"), 0),
)
SPECIAL = (
    (f"{ATTACK} so this film is {BREAKOUT} wonderful", 1),
    ("Loved it 😀👍🏽 the 👩‍👩‍👧 scenes are moving ❤️", 1),
    ("{{ 7*7 }} [bold red]dull[/] \x1b[31mtedious\x1b[0m \u2028 \u202ekaew\u202c ${x} \\", 0),
    ("Dull.", 0),
)

GIVES_NGRAMS = "grad_cam_text"

QUALITY = {
    "random_scores": 0.0,
    "gradient(times_input=True)": 0.25,
    "attention": 0.15,
    "lime(samples=500)": 0.75,
    "shap(samples=500)": 0.8,
    "occlusion": 0.6,
}
COST = {
    "random_scores": (0.00002, 0.0),
    "gradient(times_input=True)": (0.004, 1.0),
    "attention": (0.003, 1.0),
    "lime(samples=500)": (0.21, 500.0),
    "shap(samples=500)": (0.26, 500.0),
    "occlusion": (0.02, 14.0),
}

METRICS: dict[str, dict[str, Any]] = {
    "evidence_hits(k=3)": {
        "settings": {"k": 3, "kind": "decisive"},
        "purpose": "point at the words that decide",
        "about": "Compares the top words with words known to decide the label.",
        "of_model": False,
        "quantities": {
            "precision": {
                "about": "share of a method's top three words that are known to decide",
                "better": "higher",
                "headline": True,
            },
            "recall": {
                "about": "share of the deciding words among the top three",
                "better": "higher",
                "headline": False,
            },
            "first_hit": {
                "about": "rank of the first deciding word",
                "better": "lower",
                "headline": False,
            },
        },
    },
    "erasure(ratio=0.2)": {
        "settings": {"ratio": 0.2, "hiding": "delete"},
        "purpose": "show what the model itself relied on",
        "about": "Hides the top words and watches the probability fall.",
        "of_model": False,
        "quantities": {
            "comprehensiveness": {
                "about": "fall of the probability when the top words are hidden",
                "better": "higher",
                "headline": True,
            },
            "sufficiency": {
                "about": "fall of the probability when only the top words are kept",
                "better": "lower",
                "headline": True,
            },
            "words_hidden": {"about": "how many words were hidden", "better": ""},
        },
    },
    "accuracy": {
        "settings": {},
        "purpose": "know how far the model can be trusted at all",
        "about": "How often the model is right.",
        "of_model": True,
        "quantities": {"correct": {"about": "1 when right", "better": "higher", "headline": True}},
    },
}


def words_of(text: str) -> Text:
    """Words and signs of a text that puts spaces between words."""
    spans = tuple(m.span() for m in re.finditer(r"\w+|[^\w\s]+", text))
    return Text(text, spans)


def made_examples(size: int, long: int, rng: np.random.Generator) -> list[Example]:
    """Sentences from frames, then the difficult ones."""
    texts: list[tuple[Text, int]] = []
    for i in range(size):
        label = i % 2
        own, other = (GOOD, BAD) if label else (BAD, GOOD)
        a, b = rng.choice(own, size=2)
        text = FRAMES[i % len(FRAMES)].format(a=a, b=b, c=rng.choice([*own, *other]))
        texts.append((words_of(text[0].upper() + text[1:]), label))
    texts += [(words_of(text), label) for text, label in SPECIAL]
    texts += [(Text.of_words(words, ""), label) for words, label in CHINESE]
    if long:
        filler = rng.choice(["and", "then", "the", "plot", "goes", "on", *GOOD, *BAD], size=long)
        texts.append((Text.of_words([str(w) for w in filler]), 1))
    return [Example(f"review-{i:03d}", text, label) for i, (text, label) in enumerate(texts)]


def truth(text: Text) -> FloatArray:
    """What the words weigh in this made-up world."""
    good, bad = {*GOOD, "好看", "出色", "loved"}, {*BAD, "无聊", "浪费"}
    words = [w.lower() for w in text.words]
    return np.array([float(w in good) - float(w in bad) for w in words])


def made_scores(method: str, text: Text, target: int, rng: np.random.Generator) -> FloatArray:
    """The truth, seen as clearly as the method can."""
    quality = QUALITY.get(method, 0.5)
    sign = 1.0 if target else -1.0
    noise = rng.normal(scale=0.35, size=text.n_features)
    scores: FloatArray = sign * quality * truth(text) + (1 - quality) * noise
    if method == "attention":
        scores = np.abs(scores) / max(np.abs(scores).sum(), 1e-9)
    return scores


def made_row(metric: str, method: str, rng: np.random.Generator) -> dict[str, float]:
    """Numbers that are better for better methods; now and then one is not defined."""
    q = 0.25 + 0.5 * QUALITY.get(method, 0.5)
    if metric.startswith("evidence"):
        undefined = rng.random() < 0.05
        return {
            "precision": float("nan") if undefined else float(rng.binomial(3, q)) / 3,
            "recall": float(rng.binomial(4, q)) / 4,
            "first_hit": 1.0 + float(rng.poisson(3 * (1 - q))),
        }
    return {
        "comprehensiveness": float(np.clip(rng.normal(q * 0.6, 0.2), -1, 1)),
        "sufficiency": float(np.clip(rng.normal(0.5 - q * 0.5, 0.25), -1, 1)),
        "words_hidden": float(rng.integers(1, 6)),
    }


def made_config(
    data: Dataset, models: Sequence[str], methods: Sequence[str], metrics: Mapping[str, Any]
) -> dict[str, Any]:
    """What an audit would have been asked for, as JSON keeps it."""
    return {
        "dataset": {
            "name": data.name,
            "fingerprint": data.fingerprint(),
            "size": len(data),
            "labels": list(data.labels),
            "truth_kinds": ["decisive"],
        },
        "models": {
            m: {
                "identity": f"sha256:{abs(len(m)) * 7919:064x}",
                "labels": list(data.labels),
                "abilities": ["probabilities", "fast masking", "gradients"][: 3 if i == 0 else 2],
                "about": "a made-up classifier that weighs a dozen words",
            }
            for i, m in enumerate(models)
        },
        "explainers": {
            m: {
                "settings": {"samples": 500, "hiding": "delete"} if "samples" in m else {},
                "baseline": m == "random_scores",
                "about": f"The made-up method behind {m}.",
                "needs": "probabilities",
            }
            for m in methods
        },
        "metrics": dict(metrics),
        "skipped": [
            {"model": m, "explainer": "attention", "why": "the model has no attention"}
            for m in models[1:]
            if "attention" in methods
        ],
        "seed": 7,
        "batch_size": 64,
        "target": "predicted",
    }


def made_run(
    folder: Path,
    *,
    name: str = "made-up reviews",
    size: int = 54,
    long: int = 5000,
    labels: tuple[str, ...] = ("negative", "positive"),
    models: Sequence[str] = ("reviews-cnn", "reviews-bow"),
    methods: Sequence[str] = tuple(QUALITY),
    metrics: Mapping[str, Any] = METRICS,
) -> Run:
    """Write a whole run with the code that writes real ones."""
    rng = np.random.default_rng(5)
    data = Dataset(name, labels, tuple(made_examples(size, long, rng)))
    config = from_json(RunConfig, made_config(data, models, methods, metrics))
    run = Run.start(folder, config, data)
    skipped = {(s.model, s.explainer) for s in run.config.skipped}
    summaries: dict[str, Any] = {}
    for model in models:
        p = np.array([_probabilities(e, rng) for e in data])
        run.write_predictions(model, 0, data.examples, p)
        accuracy = float(np.mean([p[i].argmax() == e.label for i, e in enumerate(data)]))
        if "accuracy" in metrics:
            rows = [
                (e.id, {"correct": float(q.argmax() == e.label)})
                for e, q in zip(data, p, strict=True)
            ]
            run.write_scores(model, "", "accuracy", 0, rows)
            of_model = {"accuracy": accuracy, "weighted_f1": accuracy - 0.01, "macro_f1": 0.81}
            summaries[model] = {"": {"accuracy": of_model}}
        for method in methods:
            if (model, method) not in skipped:
                _write_method(run, data, model, method, p.argmax(axis=1), rng)
    run.write_summaries(summaries)
    return run


def _probabilities(example: Example, rng: np.random.Generator) -> FloatArray:
    lean = truth(example.input).sum() + rng.normal(scale=0.8)
    positive = 1 / (1 + np.exp(-1.5 * lean))
    return np.array([1 - positive, positive])


def _attribution(method: str, text: Text, target: int, rng: np.random.Generator) -> Attribution:
    """Scores, and for one method n-grams of its own."""
    found = Attribution(text, target, made_scores(method, text, target, rng), method=method)
    if method != GIVES_NGRAMS:
        return found
    pieces = (*found.evidence(5, "ngram"), *found.counter_evidence(5, "ngram"))
    return dataclasses.replace(found, fragments=pieces, level="ngram")


def _write_method(
    run: Run,
    data: Dataset,
    model: str,
    method: str,
    targets: Sequence[int] | Any,
    rng: np.random.Generator,
) -> None:
    found = [
        (e, _attribution(method, e.input, int(t), rng)) for e, t in zip(data, targets, strict=True)
    ]
    seconds, questions = COST.get(method, (0.01, 10.0))
    n = len(data)
    run.write_attributions(model, method, 0, found, seconds=seconds * n, questions=questions * n)
    for metric, about in run.config.metrics.items():
        if not about.of_model:
            rows = [(e.id, made_row(metric, method, rng)) for e in data]
            run.write_scores(model, method, metric, 0, rows)
