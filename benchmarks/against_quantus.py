"""The quantus package: pixel flipping, taken to words, against our erasure.

Quantus knows images, time series and tables, no texts. A sentence can pass as a series of word
numbers with one channel, whose flipped values become the unknown word: that is what erasure with
hiding=mask asks at every number of words. By default it flips one feature at a time, from the
highest score down, and returns the curve of the label's probability; its batches must be of one
length, so sentences are grouped. It keeps nothing but the words, it never keeps them alone:
sufficiency has no counterpart, so ours answers twice the questions.
"""

from __future__ import annotations

from itertools import groupby
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

import setting
from against_zennit import without_torchvision
from setting import Row
from veracity.core.attributions import Attribution
from veracity.core.examples import Example
from veracity.core.inputs import FloatArray
from veracity.core.metrics import Case
from veracity.engine.inference import probabilities
from veracity.metrics import metrics
from veracity.models.vocabulary import UNKNOWN_ID

EXPLAINED_BY = "input_x_gradient"
Group = list[tuple[Example, Attribution]]


class Numbers(nn.Module):
    """The text CNN for arrays of word numbers: (batch, 1, words) → logits."""

    def __init__(self, model: Any) -> None:
        super().__init__()
        self.model = model

    def forward(self, values: Tensor) -> Tensor:
        ids = values[:, 0].long()
        logits: Tensor = self.model(ids, torch.ones_like(ids, dtype=torch.bool))
        return logits


def _flipped(metric: Any, model: Any, group: Group) -> list[FloatArray]:
    """One curve per sentence of a group of one length."""
    ids = np.array([model.vocabulary.ids(e.input.words) for e, _ in group])[:, None]
    scores = np.array([a.scores for _, a in group])[:, None]
    found = metric(
        model=Numbers(model).eval(),
        x_batch=ids.astype(np.float32),
        y_batch=np.array([a.target for _, a in group]),
        a_batch=scores,
        channel_first=True,
        softmax=True,
    )
    return [np.asarray(curve) for curve in found]


def _erased(model: Any, group: Group) -> list[float]:
    n = group[0][0].input.n_features
    shares = tuple(k / n for k in range(1, n + 1))
    metric = metrics.make(f"erasure(ratio=1.0, ratios={shares}, hiding=mask)")
    answers = probabilities(model, [e.input for e, _ in group])
    cases = [Case(e, model, p, a) for (e, a), p in zip(group, answers, strict=True)]
    return [row["aopc_compactness"] for row in metric.score(cases)]


def flipping(quick: bool) -> list[dict[str, Any]]:
    without_torchvision()
    import quantus

    model = setting.model("text_cnn")
    model.eval()
    chosen = setting.examples(4 if quick else 100)
    texts = [e.input for e in chosen]
    targets = setting.predicted(model, texts)
    explained = setting.explain(model, texts, targets, EXPLAINED_BY)
    pairs = sorted(zip(chosen, explained, strict=True), key=lambda p: p[0].input.n_features)
    groups: list[Group] = [
        list(same) for _, same in groupby(pairs, key=lambda p: p[0].input.n_features)
    ]
    metric = quantus.PixelFlipping(
        features_in_step=1,
        perturb_baseline=UNKNOWN_ID,
        normalise=False,
        abs=False,
        disable_warnings=True,
    )
    _flipped(metric, model, groups[0])
    _erased(model, groups[0])
    peer_s, theirs = setting.timed(lambda: [_flipped(metric, model, group) for group in groups])
    ours_s, ours = setting.timed(lambda: [_erased(model, group) for group in groups])
    curves = [curve for group in theirs for curve in group]
    whole = probabilities(model, [e.input for e, _ in pairs])
    fall = [
        float(p[a.target] - curve.mean())
        for (_, a), p, curve in zip(pairs, whole, curves, strict=True)
    ]
    mine = [value for group in ours for value in group]
    return [
        Row(
            "erasure at every number of words, text CNN",
            "quantus",
            ours_s,
            peer_s,
            float(np.abs(np.array(fall) - np.array(mine)).max()),
            note="pixel flipping; ours answers sufficiency as well",
            more={"sentences": len(texts)},
        ).written()
    ]


CASES = {"quantus, flipping words": flipping}
