"""The shap package: time on the text CNN at equal samples, error per question on MiniLM.

What it asks by default: KernelExplainer 2n + 2,048 coalitions and then, for more than a few words,
an L1 regression that keeps ten of them (switched off here: l1_reg=0); PermutationExplainer ten
permutations forwards and backwards; SamplingExplainer 1,000 n; PartitionExplainer 500 on a tree
of neighbouring words, which gives Owen values of that tree, not Shapley values.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import comb
from typing import Any

import numpy as np

import plots
import setting
from setting import Row
from veracity.core.inputs import MASK_WORD, BoolArray, FloatArray, Hiding, Text
from veracity.engine.inference import masked_probabilities
from veracity.models.vocabulary import UNKNOWN_ID

SAMPLES = 2048
LONGEST = 12
"""Up to so many words all coalitions can be asked about."""
BUDGETS = (64, 128, 256, 512, 1024, 2048)
COMPARED = (128, 256, 512, 1024)
SEEDS = 3
"""Errors are averaged over so many draws."""

NEVER = "MISSED: ours does not reach that error at any budget tried"

Values = Callable[[FloatArray], FloatArray]


def all_coalitions(n: int) -> BoolArray:
    return (np.arange(2**n)[:, None] >> np.arange(n) & 1).astype(np.bool_)


def exact(v: FloatArray) -> FloatArray:
    """Shapley values by their definition; written here, so that ours is judged by another hand."""
    n = len(v).bit_length() - 1
    sets = np.arange(len(v))
    sizes = all_coalitions(n).sum(axis=1)
    scores = np.zeros(n)
    for i in range(n):
        without = sets[(sets >> i & 1) == 0]
        share = np.array([1 / (n * comb(n - 1, int(s))) for s in sizes[without]])
        scores[i] = share @ (v[without | 1 << i] - v[without])
    return scores


def kernel(values: Values, n: int, samples: int, seed: int) -> FloatArray:
    import shap

    np.random.seed(seed)
    explainer = shap.KernelExplainer(values, np.zeros((1, n)))
    found: FloatArray = explainer.shap_values(
        np.ones((1, n)), nsamples=samples, silent=True, l1_reg=0
    )[0]
    return found


# ---- time, on the text CNN ----------------------------------------------------------------------


def _cnn_values(model: Any, text: Text, target: int) -> Values:
    ids = np.array(model.vocabulary.ids(text.words))
    return lambda rows: setting.direct(model, list(np.where(rows > 0.5, ids, UNKNOWN_ID)))[
        :, target
    ]


def on_cnn(quick: bool) -> list[dict[str, Any]]:
    model = setting.model("text_cnn")
    samples = 256 if quick else SAMPLES
    spec = setting.KERNEL_SHAP.format(samples=samples)
    texts = setting.sentences(3 if quick else 100)
    targets = setting.predicted(model, texts)
    jobs = [
        (_cnn_values(model, text, target), text.n_features, samples, 0)
        for text, target in zip(texts, targets, strict=True)
    ]
    setting.explain(model, texts[:1], targets[:1], spec)
    kernel(*jobs[0])
    ours_s, _ = setting.timed(lambda: setting.explain(model, texts, targets, spec))
    peer_s, _ = setting.timed(lambda: [kernel(*job) for job in jobs])
    errors = _errors(model, samples, 2 if quick else 10)
    return [
        Row(
            f"Kernel SHAP {samples} samples, text CNN",
            "shap",
            ours_s,
            peer_s,
            _where_both_are_exact(model, samples, 2 if quick else 10),
            bar=25,
            note=(
                "max_difference: where the samples cover all coalitions; errors: mean distance to "
                f"exact values on {LONGEST}-word sentences"
            ),
            more={"sentences": len(texts), **errors},
        ).written()
    ]


def _of_length(low: int, high: int, count: int) -> list[Text]:
    return [t for t in setting.sentences(2000, up_to=high) if t.n_features >= low][:count]


def _errors(model: Any, samples: int, count: int) -> dict[str, float]:
    """Mean distance to the exact values, on sentences too long to be enumerated in the budget."""
    texts = _of_length(LONGEST, LONGEST, count)
    targets = setting.predicted(model, texts)
    tables = [_table(model, text, target) for text, target in zip(texts, targets, strict=True)]
    truth = [exact(v) for v in tables]
    found = {}
    for budget in sorted({samples, 256}):
        spec = setting.KERNEL_SHAP.format(samples=budget)
        ours = [
            a.scores
            for seed in range(SEEDS)
            for a in setting.explain(model, texts, targets, spec, seed)
        ]
        theirs = [
            kernel(Lookup(v).values, LONGEST, budget, seed) for seed in range(SEEDS) for v in tables
        ]
        name = "" if budget == samples else f"_{budget}_samples"
        found[f"ours_error{name}"] = setting.mean_difference(ours, truth * SEEDS)
        found[f"peer_error{name}"] = setting.mean_difference(theirs, truth * SEEDS)
    return found


def _where_both_are_exact(model: Any, samples: int, count: int) -> float:
    texts = _of_length(5, int(np.log2(samples)) - 1, count)
    targets = setting.predicted(model, texts)
    ours = setting.explain(model, texts, targets, setting.KERNEL_SHAP.format(samples=samples))
    theirs = [
        kernel(_cnn_values(model, text, target), text.n_features, samples, 0)
        for text, target in zip(texts, targets, strict=True)
    ]
    return setting.largest([a.scores for a in ours], theirs)


# ---- error per question, on MiniLM --------------------------------------------------------------


def _table(model: Any, text: Text, target: int) -> FloatArray:
    """The model's answers for all coalitions: asked once, then every estimator reads them."""
    shown = all_coalitions(text.n_features)
    return masked_probabilities(model, [text], [shown], Hiding.MASK)[0][:, target]


@dataclass
class Lookup:
    """A classifier that reads its answers off a table and counts the questions."""

    table: FloatArray
    questions: int = 0
    labels: tuple[str, ...] = ("other", "target")

    def values(self, rows: FloatArray) -> FloatArray:
        shown = np.asarray(rows) > 0.5
        self.questions += len(shown)
        found: FloatArray = self.table[shown @ (1 << np.arange(shown.shape[1]))]
        return found

    def of_strings(self, texts: Sequence[str]) -> FloatArray:
        """For the masker of texts, which speaks in strings."""
        shown = [[w != MASK_WORD for w in text.split()] for text in texts]
        return self.values(np.array(shown, dtype=float))

    def probabilities(self, inputs: Sequence[Text]) -> FloatArray:
        p = self.values(np.array([[w != MASK_WORD for w in t.words] for t in inputs], dtype=float))
        return np.stack([1 - p, p], axis=1)

    def masked_probabilities(
        self, inputs: Sequence[Text], shown: Sequence[BoolArray], how: Hiding
    ) -> list[FloatArray]:
        found = []
        for masks in shown:
            p = self.values(masks.astype(float))
            found.append(np.stack([1 - p, p], axis=1))
        return found


Estimator = Callable[[Lookup, Text, int, int], FloatArray]


def _ours(spec: str) -> Estimator:
    def estimate(lookup: Lookup, text: Text, budget: int, seed: int) -> FloatArray:
        filled = spec.format(samples=budget)
        return setting.explain(lookup, [text], [1], filled, seed)[0].scores

    return estimate


def _kernel(lookup: Lookup, text: Text, budget: int, seed: int) -> FloatArray:
    return kernel(lookup.values, text.n_features, budget, seed)


def _permutation(lookup: Lookup, text: Text, budget: int, seed: int) -> FloatArray:
    import shap

    n = text.n_features
    masker = shap.maskers.Independent(np.zeros((1, n)))
    explainer = shap.PermutationExplainer(lookup.values, masker, seed=seed)
    found: FloatArray = explainer(
        np.ones((1, n)), max_evals=max(budget, 2 * n + 1), silent=True
    ).values[0]
    return found


def _sampling(lookup: Lookup, text: Text, budget: int, seed: int) -> FloatArray:
    import shap

    np.random.seed(seed)
    n = text.n_features
    explainer = shap.SamplingExplainer(lookup.values, np.zeros((1, n)))
    found = explainer.shap_values(np.ones((1, n)), nsamples=budget, silent=True)
    scores: FloatArray = np.asarray(found)[0]
    return scores


def _partition(lookup: Lookup, text: Text, budget: int, seed: int) -> FloatArray:
    import shap

    # the blank keeps a mask apart from the word behind it
    masker = shap.maskers.Text(r"\s+", mask_token=f"{MASK_WORD} ", collapse_mask_token=False)
    explainer = shap.PartitionExplainer(lookup.of_strings, masker)
    return np.asarray(explainer([text.text], max_evals=budget, silent=True).values[0])


SHAP: dict[str, Estimator] = {
    "shap kernel": _kernel,
    "shap permutation": _permutation,
    "shap sampling": _sampling,
    "shap partition": _partition,
}


def on_minilm(quick: bool) -> list[dict[str, Any]]:
    setting.all_cores()
    model = setting.model("minilm")
    words = 6 if quick else LONGEST
    texts = _of_length(words, words, 2 if quick else 8)
    targets = setting.predicted(model, texts)
    seconds, tables = setting.timed(
        lambda: [_table(model, text, target) for text, target in zip(texts, targets, strict=True)]
    )
    mine = {
        name: _ours(spec)
        for name, spec in (
            ("ours kernel", setting.KERNEL_SHAP),
            ("ours permutation", setting.PERMUTATION_SHAP),
            ("ours gaussian", setting.GAUSSIAN_SHAP),
        )
    }
    budgets = (16, 32, 48) if quick else BUDGETS
    curves = {
        name: [_point(estimate, texts, tables, budget) for budget in budgets]
        for name, estimate in (SHAP | mine).items()
    }
    stem = setting.RESULTS / ("quick-questions" if quick else "questions")
    plots.curves(curves, "questions per sentence", "mean error per word", stem)
    compared = (16, 32) if quick else COMPARED
    return [
        _compared(curves, budget, budgets, seconds / len(texts), len(texts)) for budget in compared
    ]


def _point(
    estimate: Estimator, texts: Sequence[Text], tables: Sequence[FloatArray], budget: int
) -> tuple[float, float]:
    """Mean questions and mean error, over sentences and three seeds."""
    questions, errors = [], []
    for text, table in zip(texts, tables, strict=True):
        truth = exact(table)
        for seed in range(3):
            lookup = Lookup(table)
            scores = estimate(lookup, text, budget, seed)
            questions.append(lookup.questions)
            errors.append(float(np.abs(scores - truth).mean()))
    # float32 answers: below this an error is rounding, and a log axis has no zero
    return float(np.mean(questions)), max(float(np.mean(errors)), 1e-9)


def _compared(
    curves: dict[str, list[tuple[float, float]]],
    budget: int,
    budgets: Sequence[int],
    seconds: float,
    sentences: int,
) -> dict[str, Any]:
    """How many questions ours needs for what the best of theirs reaches at this budget."""
    place = budgets.index(budget)
    best = min(SHAP, key=lambda name: curves[name][place][1])
    asked, error = curves[best][place]
    needed = {
        name: _needed(curve, error) for name, curve in curves.items() if name.startswith("ours")
    }
    mine = min(needed, key=lambda name: needed[name])
    reached = math.isfinite(needed[mine])
    return Row(
        f"SHAP on MiniLM, questions for the error of {best} at {budget}",
        "shap",
        value=needed[mine] / asked if reached else None,
        bar=0.5,
        at_most=True,
        note=f"ratio: questions of {mine} to those of {best}" if reached else NEVER,
        more={
            "sentences": sentences,
            "ours_questions": needed[mine] if reached else None,
            "peer_questions": asked,
            "peer_error": error,
            "exact_s_per_sentence": seconds,
            "curves": curves,
        },
    ).written()


def _needed(curve: Sequence[tuple[float, float]], error: float) -> float:
    """Questions until a curve falls to an error, on a straight line between measured points."""
    points = [(np.log(q), np.log(e)) for q, e in sorted(curve)]
    if points[0][1] <= np.log(error):
        return float(np.exp(points[0][0]))
    for (q0, e0), (q1, e1) in pairwise(points):
        if e1 <= np.log(error):
            share = (e0 - np.log(error)) / (e0 - e1)
            return float(np.exp(q0 + share * (q1 - q0)))
    return math.inf


CASES = {"Kernel SHAP, text CNN": on_cnn, "SHAP on MiniLM, error per question": on_minilm}
