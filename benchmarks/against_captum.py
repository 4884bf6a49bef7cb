"""The captum package: gradients and what is built on them, one sentence at a time as it is used.

What it asks by default: integrated gradients 50 points by Gauss-Legendre; two more evaluations
when the gap is asked for. DeepLift (rescale rule) and LRP (epsilon 1e-9) need a network of modules
without functional calls, which `Layers` spells out. Attributions have the shape of the embedding;
they are summed over its dimensions here, since a word is what ours explains.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

import setting
from setting import Row
from veracity.core.inputs import FloatArray, Text

STEPS = (50, 300)
COARSE_TO_FINE = (
    [setting.INTEGRATED.format(steps=n) for n in (8, 16, 24, 32, 40, 50, 64, 100, 200, 400)],
    [setting.ADAPTIVE.format(gap=g) for g in (0.02, 0.01, 0.005, 0.003, 0.002, 0.001, 1e-4, 1e-5)],
)
"""Of both kinds of steps ours is run with the fewest whose gap is no larger than captum's; the
faster of the two counts."""
ROUNDING = 1e-7
"""captum adds its gap up in single precision."""


class Point:
    """One sentence at its embeddings, as captum wants it: a tensor and a function of it."""

    def __init__(self, model: Any, text: Text) -> None:
        self.model = model
        self.embedded = model.embed([text])
        self.here = self.embedded.values.detach()
        zero = torch.zeros_like(self.here)
        # special pieces stay: both libraries start from the same place
        self.base = torch.where(self.embedded.feature.unsqueeze(-1), zero, self.here)

    def logits(self, values: Tensor) -> Tensor:
        many = self.embedded.repeat(len(values))
        found: Tensor = self.model.logits(many.with_values(values))
        return found

    def chances(self, values: Tensor) -> Tensor:
        return torch.softmax(self.logits(values), dim=-1)

    def words(self, pieces: Tensor) -> FloatArray:
        """(1, pieces) → (words,)"""
        alignment = self.embedded.alignments[0]
        found: FloatArray = alignment.to_features(pieces[0].detach().double().numpy())
        return found


# ---- integrated gradients -----------------------------------------------------------------------


def _integrated(
    model: Any, texts: Sequence[Text], targets: Sequence[int], steps: int
) -> list[tuple[FloatArray, float]]:
    from captum.attr import IntegratedGradients

    found = []
    for text, target in zip(texts, targets, strict=True):
        point = Point(model, text)
        scores, gap = IntegratedGradients(point.chances).attribute(
            point.here, point.base, target=target, n_steps=steps, return_convergence_delta=True
        )
        found.append((point.words(scores.sum(dim=-1)), abs(float(gap))))
    return found


def _case(quick: bool, name: str, steps: int, sentences: int, bar: float) -> dict[str, Any]:
    model = setting.model(name)
    model.eval()
    texts = setting.sentences(2 if quick else sentences, up_to=8 if quick else None)
    targets = setting.predicted(model, texts)
    _integrated(model, texts[:1], targets[:1], 10)
    peer_s, theirs = setting.timed(lambda: _integrated(model, texts, targets, steps))
    gap = _mean([g for _, g in theirs])
    same = setting.explain(model, texts, targets, setting.INTEGRATED.format(steps=steps))
    tried = []
    for family in COARSE_TO_FINE:
        for spec in family:
            ours_gap = _own_gap(model, texts, targets, spec)
            if ours_gap <= gap + ROUNDING:
                break
        seconds, _ = setting.timed(lambda: setting.explain(model, texts, targets, spec))  # noqa: B023
        tried.append((seconds, spec, ours_gap))
    ours_s, spec, ours_gap = min([t for t in tried if t[2] <= gap + ROUNDING] or tried)
    return Row(
        f"integrated gradients, {name}, no larger gap than {steps} steps",
        "captum",
        ours_s,
        peer_s,
        setting.largest([a.scores for a in same], [s for s, _ in theirs]),
        bar=bar,
        note=f"ours: {spec}; max_difference: at captum's own points",
        more={"sentences": len(texts), "ours_error": ours_gap, "peer_error": gap},
    ).written()


def _own_gap(model: Any, texts: Sequence[Text], targets: Sequence[int], spec: str) -> float:
    found = setting.explain(model, texts, targets, spec)
    return _mean([a.notes["completeness_gap"] for a in found])


def _mean(values: Sequence[float]) -> float:
    return float(np.mean(values))


def integrated_on_cnn(quick: bool) -> list[dict[str, Any]]:
    warnings.simplefilter("ignore")  # coarse steps are tried on purpose
    return [_case(quick, "text_cnn", steps, 100, 5) for steps in STEPS]


def integrated_on_minilm(quick: bool) -> list[dict[str, Any]]:
    warnings.simplefilter("ignore")
    setting.all_cores()
    return [
        _case(quick, "minilm", steps, sentences, 2)
        for steps, sentences in zip(STEPS, (30, 3), strict=True)
    ]


# ---- one backward pass --------------------------------------------------------------------------


class Layers(nn.Module):
    """The text CNN with the modules that peers hang their rules on.

    The maximum is a function and comes before the ReLU, as in ours. captum's rule for a pooling
    *module* shares the credit with the place that wins in the reference, which is the first of
    many equal ones; the definition gives it all to the place that wins in the text.
    """

    def __init__(self, network: Any) -> None:
        super().__init__()
        self.convolutions = network.convolutions
        self.active = nn.ModuleList(nn.ReLU() for _ in network.convolutions)
        self.head = network.head

    def forward(self, values: Tensor) -> Tensor:
        columns = values.transpose(1, 2)
        best = [
            active(convolution(columns).max(dim=2).values)
            for convolution, active in zip(self.convolutions, self.active, strict=True)
        ]
        logits: Tensor = self.head(torch.cat(best, dim=1))
        return logits


Attribute = Callable[[Point, int], FloatArray]


def _saliency(point: Point, target: int) -> FloatArray:
    from captum.attr import Saliency

    here = point.here.clone().requires_grad_()
    return point.words(
        Saliency(point.logits).attribute(here, target=target, abs=False).norm(dim=-1)
    )


def _input_x_gradient(point: Point, target: int) -> FloatArray:
    from captum.attr import InputXGradient

    here = point.here.clone().requires_grad_()
    return point.words(InputXGradient(point.logits).attribute(here, target=target).sum(dim=-1))


def _deep_lift(point: Point, target: int) -> FloatArray:
    from captum.attr import DeepLift

    layers = Layers(point.model.network)
    found = DeepLift(layers).attribute(point.here, point.base, target=target)
    return point.words(found.sum(dim=-1))


def _lrp(point: Point, target: int) -> FloatArray:
    from captum.attr import LRP
    from captum.attr._utils.lrp_rules import EpsilonRule

    layers = Layers(point.model.network)
    for convolution in layers.convolutions:
        convolution.rule = EpsilonRule()  # it has none of its own for one dimension
    # it takes the rules off again itself
    found = LRP(layers).attribute(point.here.clone().requires_grad_(), target=target)
    return point.words(found.sum(dim=-1))


BACKWARD: dict[str, Attribute] = {
    "gradient": _saliency,
    "input_x_gradient": _input_x_gradient,
    "deep_lift": _deep_lift,
    "lrp": _lrp,
}


def backward(
    quick: bool, peer: str = "captum", attributes: dict[str, Attribute] = BACKWARD
) -> list[dict[str, Any]]:
    """Each method on the text CNN: their sentences one by one, ours all together."""
    model = setting.model("text_cnn")
    model.eval()
    texts = setting.sentences(3 if quick else 100)
    targets = setting.predicted(model, texts)
    pairs = list(zip(texts, targets, strict=True))
    found = []
    for spec, attribute in attributes.items():
        case = f"{spec}, text CNN"
        attribute(Point(model, texts[0]), targets[0])
        peer_s, theirs = setting.timed(
            lambda: [attribute(Point(model, text), target) for text, target in pairs]  # noqa: B023
        )
        setting.explain(model, texts[:1], targets[:1], spec)
        ours_s, ours = setting.timed(
            lambda: setting.explain(model, texts, targets, spec),  # noqa: B023
            1 if quick else 3,
        )
        difference = setting.largest([a.scores for a in ours], theirs)
        more = {"sentences": len(texts)}
        found.append(Row(case, peer, ours_s, peer_s, difference, more=more).written())
    return found


CASES = {
    "integrated gradients, text CNN": integrated_on_cnn,
    "integrated gradients, MiniLM": integrated_on_minilm,
    "one backward pass, text CNN": backward,
}
