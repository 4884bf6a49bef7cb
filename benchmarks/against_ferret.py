"""The ferret package on MiniLM: six explanations of each sentence and how faithful they are.

It lives in an environment of its own, since it needs an older NumPy; `ferret_side.py` runs there,
says what it really asks, and reports over a pipe. Its units are the tokeniser's pieces and ours are
words, so pieces are added up to words before scores are compared.
"""

from __future__ import annotations

import json
import os
import subprocess
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

import setting
from setting import Row
from veracity.core.examples import Example
from veracity.core.inputs import FloatArray, Text
from veracity.core.metrics import Case
from veracity.engine.cache import AnswerCache, caching
from veracity.engine.call_counter import count_calls
from veracity.engine.inference import probabilities
from veracity.metrics import metrics

HERE = Path(__file__).resolve().parent
PYTHON = Path(
    os.environ.get("VERACITY_BENCH_FERRET", HERE.parent / ".venv-ferret" / "bin" / "python")
)
QUESTIONS = 320
SAMPLED = (
    # with these ours changes no more from seed to seed than ferret's LIME; every run checks it.
    # Both put the same questions, which are asked once
    setting.GAUSSIAN_SHAP.format(samples=QUESTIONS),
    setting.GUESSED_LIME.format(samples=QUESTIONS),
)
SHARES = "(0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)"
ERASURE = f"{setting.ERASURE}(ratios={SHARES})"
REST = (
    "gradient(norm=l1)",
    "input_x_gradient",
    # ferret's second pass along the path asks the same questions for another sum
    setting.ADAPTIVE.format(gap=0.02),
    "integrated_gradients(gap=0.02, output=logit)",
)
TEN = (
    "random_scores",
    "occlusion",
    "occlusion(hiding=mask)",
    "gradient",
    "gradient(norm=l1)",
    "gradient(norm=max_abs)",
    "input_x_gradient",
    "input_x_gradient(output=probability)",
    "integrated_gradients(steps=10)",
    "attention",
)


def _ferret(**job: Any) -> dict[str, Any]:
    done = subprocess.run(
        [str(PYTHON), str(HERE / "ferret_side.py")],
        input=json.dumps({"model": str(setting.MODELS / "minilm"), **job}),
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": ""},
    )
    if done.returncode:
        raise RuntimeError(f"ferret's side failed: {done.stderr.strip()[-2000:]}")
    found: dict[str, Any] = json.loads(done.stdout.strip().splitlines()[-1])
    return found


def _missing(case: str) -> list[dict[str, Any]]:
    reason = f"there is no environment for ferret ({PYTHON}); `make bench` makes it"
    return [setting.skipped(case, "ferret", reason)]


# ---- six explanations and their evaluation ------------------------------------------------------


def six(quick: bool) -> list[dict[str, Any]]:
    if not PYTHON.exists():
        return _missing("six explanations and their faithfulness, MiniLM")
    warnings.simplefilter("ignore")
    threads = setting.all_cores()
    model = setting.model("minilm")
    chosen = setting.examples(2 if quick else 50, up_to=8 if quick else None)
    texts = [e.input for e in chosen]
    targets = setting.predicted(model, texts)
    checked = min(len(texts), 2 if quick else 5)
    theirs = _ferret(texts=[t.text for t in texts], targets=targets, threads=threads, again=checked)
    word_scores = [
        [_to_words(model, text, scores) for scores in each]
        for text, each in zip(texts, theirs["scores"], strict=True)
    ]
    spread = {
        name: _spread(
            [each[place] for each in theirs["scores"][:checked]],
            [each[place] for each in theirs["again"]],
        )
        for place, name in ((0, "shap"), (1, "lime"))
    }
    specs = (*SAMPLED, *REST)
    setting.explain(model, texts[:1], targets[:1], specs[0])
    memory = AnswerCache()
    with count_calls() as asked, caching(memory):
        times, found = zip(
            *(
                setting.timed(lambda: setting.explain(model, texts, targets, spec))  # noqa: B023
                for spec in specs
            ),
            strict=True,
        )
    own_spread = {
        name: _spread(
            [a.scores for a in found[place][:checked]],
            [
                a.scores
                for a in setting.explain(
                    model, texts[:checked], targets[:checked], specs[place], seed=1
                )
            ],
        )
        for place, name in ((0, "shap"), (1, "lime"))
    }
    # its SHAP draws nothing, which no sampling can match: the limit of its LIME serves for both
    steady = max(own_spread.values()) <= spread["lime"]
    with caching(memory):
        judged_s, judged = setting.timed(lambda: _judged(model, chosen, found))
    agreement = {
        theirs["methods"][place]: setting.rank_agreement(
            [a.scores for a in found[place]], [each[place] for each in word_scores]
        )
        for place in range(len(specs))
    }
    rounding = setting.largest(
        [a.scores for place in (2, 3) for a in found[place]],
        [each[place] for place in (2, 3) for each in word_scores],
    )
    shared = {"sentences": len(texts), "threads": threads}
    rows = [
        Row(
            "six explanations, MiniLM",
            "ferret",
            sum(times),
            sum(theirs["seconds"]),
            rounding,
            bar=2,
            note=(
                f"ours is {'' if steady else 'NOT '}as steady as ferret's LIME; max_difference: "
                "gradient and gradient × input, summed to words"
            ),
            more={
                **shared,
                "ours_questions": asked.questions,
                "peer_questions": sum(theirs["rows"]),
                "peer_questions_each": dict(zip(theirs["methods"], theirs["rows"], strict=True)),
                "ours_seed_to_seed": own_spread,
                "peer_seed_to_seed": spread,
                "rank_agreement": agreement,
            },
        ),
        Row(
            "faithfulness of six explanations, MiniLM",
            "ferret",
            judged_s,
            theirs["evaluation_seconds"],
            note="comprehensiveness, sufficiency, Kendall's tau with leaving one out",
            more={**shared, "peer_questions": theirs["evaluation_rows"], "ours_tau": judged},
        ),
        Row(
            "six explanations and their faithfulness, MiniLM",
            "ferret",
            sum(times) + judged_s,
            sum(theirs["seconds"]) + theirs["evaluation_seconds"],
            bar=2,
            note="aim: 4",
            more=shared,
        ),
    ]
    names = ("Partition SHAP", "LIME", *theirs["methods"][2:])
    rows += [
        Row(f"{name}, MiniLM", "ferret", ours_s, peer_s, note=f"ours: {spec}", more=shared)
        for name, spec, ours_s, peer_s in zip(names, specs, times, theirs["seconds"], strict=True)
    ]
    return [row.written() for row in rows]


def _spread(a: Sequence[Any], b: Sequence[Any]) -> float:
    """The mean change from seed to seed, as a share of the mean size of a score."""
    one, other = np.concatenate([*map(np.asarray, a)]), np.concatenate([*map(np.asarray, b)])
    return float(np.abs(one - other).mean() / np.abs(np.concatenate([one, other])).mean())


def _to_words(model: Any, text: Text, pieces: Sequence[float]) -> FloatArray:
    alignment = model.embed([text]).alignments[0]
    found: FloatArray = alignment.to_features(np.asarray(pieces, dtype=np.float64))
    return found


def _judged(model: Any, chosen: Sequence[Example], found: Sequence[Any]) -> list[float]:
    """Erasure and tau for every method; leaving one out is asked once and serves them all."""
    from scipy.stats import kendalltau

    texts = [e.input for e in chosen]
    answers = probabilities(model, texts)
    cases = [
        Case(example, model, p, attribution)
        for explained in found
        for example, p, attribution in zip(chosen, answers, explained, strict=True)
    ]
    metrics.make(ERASURE).score(cases)
    left_out = setting.explain(model, texts, [a.target for a in found[0]], "occlusion")
    return [
        float(
            np.nan_to_num(
                [
                    kendalltau(a.scores, b.scores).statistic
                    for a, b in zip(explained, left_out, strict=True)
                ]
            ).mean()
        )
        for explained in found
    ]


# ---- erasure alone ------------------------------------------------------------------------------


def erasure(quick: bool) -> list[dict[str, Any]]:
    """Ten explanations of each sentence, the same ones for both, judged by both."""
    case = "erasure of ten explanations, MiniLM"
    if not PYTHON.exists():
        return _missing(case)
    warnings.simplefilter("ignore")
    threads = setting.all_cores()
    model = setting.model("minilm")
    chosen = setting.examples(2 if quick else 20, up_to=8 if quick else None)
    texts = [e.input for e in chosen]
    targets = setting.predicted(model, texts)
    found = [setting.explain(model, texts, targets, spec) for spec in TEN]
    answers = probabilities(model, texts)
    cases = [
        Case(example, model, p, attribution)
        for explained in found
        for example, p, attribution in zip(chosen, answers, explained, strict=True)
    ]
    metric = metrics.make(ERASURE)
    metric.score(cases[:1])
    with count_calls() as asked:
        ours_s, ours = setting.timed(lambda: metric.score(cases))
    given = [
        [_to_pieces(model, text, explained[i].scores) for explained in found]
        for i, text in enumerate(texts)
    ]
    theirs = _ferret(texts=[t.text for t in texts], targets=targets, threads=threads, given=given)
    mine = np.array([r["aopc_compactness"] for r in ours]).reshape(len(TEN), -1)
    other = np.array(theirs["evaluations"])[:, :, 0].T  # (explanations, sentences)
    return [
        Row(
            case,
            "ferret",
            ours_s,
            theirs["evaluation_seconds"],
            bar=3,
            note=(
                "comprehensiveness and sufficiency at 10 % to 100 %; definitions differ (pieces, "
                "positive scores only, rounded down), so ranks are compared"
            ),
            more={
                "sentences": len(texts),
                "threads": threads,
                "ours_questions": asked.questions,
                "peer_questions": theirs["evaluation_rows"],
                "rank_agreement": setting.rank_agreement([mine.ravel()], [other.ravel()]),
            },
        ).written()
    ]


def _to_pieces(model: Any, text: Text, scores: FloatArray) -> list[float]:
    """A word's score on each of its pieces, so that they stay together; special ones get none."""
    embedded = model.embed([text])
    alignment = embedded.alignments[0]
    pieces = np.zeros(embedded.values.shape[1])
    pieces[alignment.piece] = scores[alignment.word]
    return [float(p) for p in pieces]


CASES = {"ferret, six explanations": six, "ferret, erasure of ten": erasure}
