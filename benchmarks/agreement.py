"""Where definitions are the same, so must be the answers: 50 sentences on each trained model.

Times are not compared here. Gradients, gradient × input and integrated gradients (captum) on all
three models; DeepLift and LRP (captum) and the epsilon rule (zennit) on the CNN, for which the
peers have rules; lime's regression on lime's own samples; shap's kernel and exact values on
sentences cut to eight words, all of whose coalitions can be asked about.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

import against_captum
import against_lime
import against_shap
import against_zennit
import setting
from setting import Row
from veracity.core.inputs import FloatArray, Text

SENTENCES = 50
POINTS = 12
CUT = 8
ALIKE = 1e-4


def _captum(name: str) -> Callable[[Any, Text, int], FloatArray]:
    if name == "integrated_gradients":
        return lambda model, text, target: against_captum._integrated(
            model, [text], [target], POINTS
        )[0][0]
    attribute = against_captum.BACKWARD[name]
    return lambda model, text, target: attribute(against_captum.Point(model, text), target)


def _zennit(model: Any, text: Text, target: int) -> FloatArray:
    return against_zennit._epsilon(against_captum.Point(model, text), target)


def _shap(model: Any, text: Text, target: int) -> FloatArray:
    table = against_shap._table(model, text, target)
    n = text.n_features
    return against_shap.kernel(against_shap.Lookup(table).values, n, 2**n, 0)


def _exact(model: Any, text: Text, target: int) -> FloatArray:
    import shap

    table = against_shap._table(model, text, target)
    lookup = against_shap.Lookup(table)
    masker = shap.maskers.Independent(np.zeros((1, text.n_features)))
    explainer = shap.ExactExplainer(lookup.values, masker)
    found: FloatArray = explainer(np.ones((1, text.n_features))).values[0]
    return found


def _row(
    model: Any, name: str, spec: str, peer: str, theirs: Any, texts: list[Text]
) -> dict[str, Any]:
    targets = setting.predicted(model, texts)
    ours = [a.scores for a in setting.explain(model, texts, targets, spec)]
    other = [theirs(model, text, target) for text, target in zip(texts, targets, strict=True)]
    return _written(f"{spec}, {name}", peer, setting.largest(ours, other), len(texts))


def _lime_row(model: Any, name: str, texts: list[Text]) -> dict[str, Any]:
    targets = setting.predicted(model, texts)
    apart = max(
        against_lime.Lime(model, bow, 60).fit_difference(text, target)
        for bow in (True, False)
        for text, target in zip(texts, targets, strict=True)
    )
    return _written(f"lime on lime's samples, {name}", "lime", apart, len(texts))


def _written(what: str, peer: str, apart: float, sentences: int) -> dict[str, Any]:
    return Row(
        f"agreement: {what}",
        peer,
        max_difference=apart,
        value=apart,
        bar=ALIKE,
        at_most=True,
        note="the ratio is the largest difference itself",
        more={"sentences": sentences},
    ).written()


def agree(quick: bool) -> list[dict[str, Any]]:
    warnings.simplefilter("ignore")
    rows = []
    for name in ("text_cnn", "attention_lstm", "minilm"):
        model = setting.model(name)
        model.eval()
        texts = setting.sentences(3 if quick else SENTENCES)
        cut = [Text.of_words(t.words[: 5 if quick else CUT]) for t in texts]
        steps = setting.INTEGRATED.format(steps=POINTS)
        pairs: list[tuple[str, str, Any, list[Text]]] = [
            ("gradient", "captum", _captum("gradient"), texts),
            ("input_x_gradient", "captum", _captum("input_x_gradient"), texts),
            (steps, "captum", _captum("integrated_gradients"), texts),
            (setting.KERNEL_SHAP.format(samples=512), "shap", _shap, cut),
            (setting.EXACT_SHAP, "shap", _exact, cut),
        ]
        if name == "text_cnn":
            pairs += [
                ("deep_lift", "captum", _captum("deep_lift"), texts),
                ("lrp", "captum", _captum("lrp"), texts),
                ("lrp", "zennit", _zennit, texts),
            ]
        rows += [_row(model, name, spec, peer, theirs, some) for spec, peer, theirs, some in pairs]
        rows.append(_lime_row(model, name, texts))
    return rows


CASES = {"agreement on 50 sentences": agree}
