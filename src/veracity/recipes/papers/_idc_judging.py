"""From scores and marks to figures with intervals: what agrees with what, and how surely."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from ...core.inputs import BoolArray, FloatArray
from ...core.metrics import Metric
from ...experiments.experiment import StepResult
from ...metrics.truth_agreement import COUNTS, counted
from ...results.run import Run
from ...results.statistics import (
    holm,
    mean_intervals,
    percentiles,
    resampled_sums,
    resampling_tests,
    sign_flip_tests,
)

SALIENCY, ATTENTION, BEST = "gradient", "attention", "lrp"
FIRST_FOUR = ("lrp", "deep_lift", "grad_cam", "integrated_gradients")
FORMS = ("printed", "ratio", "bounded")
FIGURES = ("kappa", "precision", "recall")
MAIN, PAPER = "threshold", "paper"
"""How scores become important words where nothing else is said (definitions 5.9), and what fits the
paper's figures: another way, and methods in profile `paper` (definitions D.2)."""
PAPER_BINARY = "above_sd"
READINGS = {PAPER: "in profile paper", MAIN: "as recommended"}

Interval = list[float]
"""A figure and the ends of its 95 % interval."""


def scores_of(
    run: Run, explainers: Sequence[str], metrics: Sequence[str], names: Sequence[str]
) -> tuple[list[str], FloatArray]:
    """Texts, and their scores; NaN where there is none. → (texts, explainers, metrics, names)"""
    (model,) = run.models
    texts = [e.id for e in run.examples()]
    found = np.full((len(texts), len(explainers), len(metrics), len(names)), np.nan)
    for m, metric in enumerate(metrics):
        columns = run.columns(metric, model)
        for n, column in enumerate(map(columns.get, names)):
            for e, explainer in enumerate(explainers):
                if column is not None and explainer in column.methods:
                    values = column.of(explainer)
                    found[:, e, m, n] = [values.get(text, np.nan) for text in texts]
    return texts, found


@dataclass(frozen=True)
class AgreementCounts:
    """How often a model's methods and the truths agreed on the words of each text."""

    texts: tuple[str, ...]
    methods: tuple[str, ...]
    looks: tuple[tuple[str, str], ...]
    """A truth, and how scores become important words, or `paper` for the paper's reading."""
    counts: FloatArray  # (texts, methods, looks, 4) tp, fp, fn, tn

    @classmethod
    def read(
        cls,
        run: Run,
        specs: Mapping[str, str],
        metrics: Mapping[tuple[str, str], Metric],
        *,
        instead: Mapping[str, str],
    ) -> AgreementCounts:
        """What an audit scored; methods go by their names, whatever their settings. In the paper's
        reading some are another method `instead`."""
        every = [m.spec for m in metrics.values()]
        texts, counts = scores_of(run, list(specs.values()), every, COUNTS)
        wanted = {look: m.spec for look, m in metrics.items() if look[1] == PAPER_BINARY}
        others = list({**specs, **instead}.values())
        _, more = scores_of(run, others, list(wanted.values()), COUNTS)
        return cls(
            tuple(texts),
            tuple(specs),
            (*metrics, *((truth, PAPER) for truth, _ in wanted)),
            np.nan_to_num(np.concatenate([counts, more], axis=2)),
        )

    def of(self, method: str, truth: str, reading: str) -> FloatArray:
        """(texts, 4)"""
        return self.counts[:, self.methods.index(method), self.looks.index((truth, reading))]

    def on(self, texts: Sequence[str]) -> AgreementCounts:
        """The same of these texts alone, in this order."""
        place = {text: i for i, text in enumerate(self.texts)}
        rows = self.counts[[place[text] for text in texts]]
        return AgreementCounts(tuple(texts), self.methods, self.looks, rows)


def pooled(sums: FloatArray, name: str = "kappa") -> FloatArray:
    """A figure of counts that were summed over texts, as `agreement` has it. (…, 4) → (…)"""
    tp, fp, fn, tn = np.moveaxis(sums, -1, 0)
    with np.errstate(invalid="ignore", divide="ignore"):
        if name == "precision":
            return np.where(
                tp + fp > 0, tp / (tp + fp), np.where(tp + fp + fn + tn > 0, 0.0, np.nan)
            )
        if name == "recall":
            return np.asarray(tp / (tp + fn))
        n = tp + fp + fn + tn
        observed = (tp + tn) / n
        expected = ((tp + fp) * (tp + fn) + (fn + tn) * (fp + tn)) / n**2
        kappa = (observed - expected) / (1 - expected)
        return np.where(expected < 1, kappa, np.where(n > 0, observed == 1, np.nan))


def resampled(counts: FloatArray, *, draws: int, seed: int) -> FloatArray:
    """Counts summed over drawn texts, the same texts in all columns. (texts, …) → (draws, …)"""
    flat = counts.reshape(len(counts), -1)
    return resampled_sums(flat, draws=draws, seed=seed).reshape(draws, *counts.shape[1:])


def with_ends(values: FloatArray, drawn: FloatArray) -> list[Interval]:
    """Figures beside the ends of their intervals. (k,), (draws, k) → k rows"""
    return _intervals(values, percentiles(drawn))


def _intervals(values: FloatArray, ends: FloatArray) -> list[Interval]:
    return [[float(v), float(a), float(b)] for v, (a, b) in zip(values, ends, strict=True)]


# ---- methods --------------------------------------------------------------------------------


def method_agreement(
    cnn: AgreementCounts, han: AgreementCounts, *, draws: int, test_draws: int, seed: int
) -> StepResult:
    """Every method against every truth, with what the paper compares tested in pairs."""
    both = [text for text in cnn.texts if text in set(han.texts)]
    return {
        "texts": {"cnn": len(cnn.texts), "han": len(han.texts), "both": len(both)},
        "agreement": _agreement((cnn, han), draws, seed),
        "differences": _differences(cnn, cnn.on(both), han.on(both), test_draws, seed),
        "half": {r: _half(cnn, r, draws, seed) for r in READINGS if ("milp", r) in cnn.looks},
    }


def _agreement(models: Sequence[AgreementCounts], draws: int, seed: int) -> StepResult:
    """By truth, binarisation and method: kappa, precision and recall."""
    found: StepResult = {}
    for agreed in models:
        sums = agreed.counts.sum(axis=0)  # (methods, looks, 4)
        drawn = resampled(agreed.counts, draws=draws, seed=seed)
        for name in FIGURES:
            values, spread = pooled(sums, name), pooled(drawn, name)
            for i, method in enumerate(agreed.methods):
                rows = with_ends(values[i], spread[:, i])
                for (truth, binary), row in zip(agreed.looks, rows, strict=True):
                    by_method = found.setdefault(truth, {}).setdefault(binary, {})
                    by_method.setdefault(method, {})[name] = row
    return found


def _differences(
    cnn: AgreementCounts,
    cnn_both: AgreementCounts,
    han_both: AgreementCounts,
    draws: int,
    seed: int,
) -> list[StepResult]:
    """Differences of kappas on the same texts, corrected for all looks of one reading."""
    four = [m for m in FIRST_FOUR if m in cnn.methods]
    of_cnn = [*((method, SALIENCY) for method in four), *combinations(four, 2)]
    with_han = [(m, ATTENTION) for m in (SALIENCY, BEST) if m in cnn.methods]
    truths = list(dict.fromkeys(truth for truth, _ in cnn.looks))
    readings = [r for r in READINGS if (truths[0], r) in cnn.looks]
    asked: list[tuple[str, str, str, str]] = []
    columns: list[FloatArray] = []
    values: list[FloatArray] = []
    for pairs, first, second in ((of_cnn, cnn, cnn), (with_han, cnn_both, han_both)):
        looks = [
            (r, truth, one, other) for r in readings for truth in truths for one, other in pairs
        ]
        if not looks or not first.texts:
            continue
        counts = np.stack(
            [
                np.stack([first.of(one, truth, r), second.of(other, truth, r)], axis=1)
                for r, truth, one, other in looks
            ],
            axis=1,
        )  # (texts, looks, 2, 4)
        drawn = pooled(resampled(counts, draws=draws, seed=seed))
        asked += looks
        columns.append(drawn[..., 0] - drawn[..., 1])
        kappas = pooled(counts.sum(axis=0))
        values.append(kappas[..., 0] - kappas[..., 1])
    return _tested(asked, values, columns)


def _tested(
    asked: Sequence[tuple[str, str, str, str]], values: list[FloatArray], columns: list[FloatArray]
) -> list[StepResult]:
    """Differences with intervals and p-values after all looks of their reading."""
    if not asked:
        return []
    drawn = np.concatenate(columns, axis=1)
    p = np.array(resampling_tests(drawn))
    for reading in {look[0] for look in asked}:
        own = [i for i, look in enumerate(asked) if look[0] == reading]
        p[own] = holm(p[own])
    ends = with_ends(np.concatenate(values), drawn)
    return [
        {
            **dict(zip(("reading", "truth", "one", "other"), look, strict=True)),
            "interval": interval,
            "p": float(q),
        }
        for look, interval, q in zip(asked, ends, p, strict=True)
    ]


def _half(cnn: AgreementCounts, reading: str, draws: int, seed: int) -> Interval:
    """The mean kappa under MILP as a share of that under WGA, of the paper's methods."""
    methods = [m for m in (SALIENCY, *FIRST_FOUR) if m in cnn.methods]
    counts = np.stack(
        [np.stack([cnn.of(m, t, reading) for m in methods], axis=1) for t in ("milp", "wga")],
        axis=1,
    )  # (texts, 2, methods, 4)

    def share(sums: FloatArray) -> FloatArray:
        milp, wga = np.moveaxis(pooled(sums).mean(axis=-1), -1, 0)
        found: FloatArray = np.where(wga > 0, milp / np.where(wga > 0, wga, 1.0), np.nan)
        return found

    value = share(counts.sum(axis=0)[None])
    return with_ends(value, share(resampled(counts, draws=draws, seed=seed))[:, None])[0]


# ---- confidence -----------------------------------------------------------------------------


def confidences(run: Run, metrics: Mapping[tuple[str, str], Metric], seed: int) -> StepResult:
    """What is left of the confidence without the words of each truth and without as many others.

    Differences are of what is left without random words and without the truth's, so that more is
    better for the truth; and of each other truth and WGA.
    """
    names = (*FORMS, "removed", "confidence")
    _, scores = scores_of(run, [""], [m.spec for m in metrics.values()], names)
    scores = scores[:, 0]  # (texts, metrics, names)
    place = {key: i for i, key in enumerate(metrics)}
    truths = list(dict.fromkeys(truth for truth, _ in metrics))

    def intervals(values: FloatArray) -> list[Interval]:
        return _intervals(np.nanmean(values, axis=0), mean_intervals(values))

    found: StepResult = {
        truth: {
            remove: dict(zip(names, intervals(scores[:, place[truth, remove]]), strict=True))
            for remove in ("marked", "random")
        }
        for truth in truths
    }
    control = np.stack(
        [scores[:, place[t, "random"], :3] - scores[:, place[t, "marked"], :3] for t in truths],
        axis=1,
    )  # (texts, truths, forms)
    others = [t for t in truths if t != "wga"]
    wga = scores[:, place["wga", "marked"], :3]
    rivals = [(scores[:, place[t, "marked"], :3] - wga)[:, None] for t in others]
    every = np.concatenate([control, *rivals], axis=1)
    p = holm(sign_flip_tests(every[:, :, FORMS.index("printed")], seed=seed))
    rows = intervals(every.reshape(len(every), -1))
    for i, one in enumerate((*truths, *others)):
        forms = dict(zip(FORMS, rows[3 * i : 3 * i + 3], strict=True)) | {"p": float(p[i])}
        found[one]["control" if i < len(truths) else "over_wga"] = forms
    found["whole"] = found[truths[0]]["marked"]["confidence"]
    return found


# ---- people ---------------------------------------------------------------------------------


def people_agreement(
    marks: Sequence[Sequence[BoolArray]],
    truths: Mapping[str, Sequence[BoolArray]],
    *,
    draws: int,
    test_draws: int,
    seed: int,
) -> StepResult:
    """Each truth against each person, in the order in which a review names them, against all of
    them together, and people against each other: the mean kappa of two of them."""
    most = max(map(len, marks))
    named = [i for i in range(most) if sum(len(m) > i for m in marks) >= len(marks) / 2]
    counts = np.zeros((len(marks), len(truths), most, 4))
    couples = list(combinations(named, 2))
    mutual = np.zeros((len(marks), len(couples), 4))
    for review, people in enumerate(marks):
        for t, held in enumerate(truths.values()):
            for i, mark in enumerate(people):
                counts[review, t, i] = counted(mark, held[review])
        for i, (one, other) in enumerate(couples):
            if other < len(people):
                mutual[review, i] = counted(people[one], people[other])
    persons = [f"person {i + 1}" for i in named] + ["all"]
    of_person = np.concatenate(
        [counts[:, :, named], counts.sum(axis=2, keepdims=True)], axis=2
    )  # (reviews, truths, persons, 4)
    columns = np.concatenate(
        [of_person.reshape(len(marks), -1, 4), mutual], axis=1
    )  # (reviews, truths * persons + couples, 4)

    def figures(sums: FloatArray) -> FloatArray:
        """Kappas of truths with persons, and last that of people with each other. (…, columns)"""
        found = pooled(sums)
        own, between = np.split(found, [len(truths) * len(persons)], axis=-1)
        known = (~np.isnan(between)).sum(axis=-1, keepdims=True)
        total = np.nansum(between, axis=-1, keepdims=True)
        mean = np.where(known > 0, total / np.maximum(known, 1), np.nan)
        return np.concatenate([own, mean], axis=-1)

    drawn = figures(resampled(columns, draws=draws, seed=seed))
    kappas = figures(columns.sum(axis=0))
    rows = with_ends(kappas, drawn)
    beyond = drawn[:, :-1] - drawn[:, -1:]
    below = with_ends(kappas[:-1] - kappas[-1], beyond)
    found: StepResult = {
        "reviews": len(marks),
        "marks": sum(map(len, marks)),
        "persons": persons,
        "mutual": rows[-1],
        "kappa": {},
        "above_mutual": {},
    }
    for t, truth in enumerate(truths):
        at = slice(t * len(persons), (t + 1) * len(persons))
        found["kappa"][truth] = dict(zip(persons, rows[at], strict=True))
        found["above_mutual"][truth] = dict(zip(persons, below[at], strict=True))
    names = list(truths)
    first = names.index("wga") * len(persons)
    # each person is a look of its own
    p = holm(resampling_tests(beyond[:, first : first + len(persons) - 1]))
    found["above_mutual_p"] = dict(zip(persons, p.tolist(), strict=False))
    pairs = [("", "all", "wga", other) for other in ("milp", "hybrid") if other in names]
    tests = pooled(resampled(of_person[:, :, -1], draws=test_draws, seed=seed))
    whole = pooled(of_person[:, :, -1].sum(axis=0))
    wga = names.index("wga")
    found["differences"] = _tested(
        pairs,
        [np.array([whole[wga] - whole[names.index(other)]]) for *_, other in pairs],
        [(tests[:, wga] - tests[:, names.index(other)])[:, None] for *_, other in pairs],
    )
    return found
