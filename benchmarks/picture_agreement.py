"""Where definitions are the same, so must be the answers: 20 pictures on two networks.

A ResNet-34 that was trained here for a few epochs, and an EfficientNet-Lite that others trained.
Differences are shares of a picture's largest score, since scores of networks this deep have no
common scale. Methods that draw are given the same draws; captum has the gradients then, and what is
made of them is written here by hand. Relevance, DeepLift and Grad-CAM go through the layers that
`spelled_out` writes down for the peers. All is done in doubles: in single precision captum differs
from itself by 1.5e-4, since rounding decides on which side of a bend of ReLU6 a unit lies.
"""

from __future__ import annotations

import copy
import warnings
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

import against_shap
import setting
from against_zennit import EPSILON, without_torchvision
from setting import Row
from veracity.core.examples import Dataset, Example
from veracity.core.images import Image
from veracity.core.inputs import BoolArray, FloatArray, Hiding
from veracity.engine.inference import masked_probabilities
from veracity.explainers import explainers
from veracity.explainers.lime import local_fit

PICTURES = 20
SIDE = 112
"""Of the pictures for EfficientNet, which reads any size: half that of its training."""
SEGMENTS = "grid(across=4)"
ENUMERATED = "grid(across=2)"
"""So few that all coalitions can be asked about."""
POINTS = 12
SMOOTH = "smooth_grad(samples=5)"
EXPECTED = "shap(form=expected_gradients, samples=8)"
EXACT = "shap(form=exact)"
SAMPLES = 50
ALIKE = 1e-4


def normalised(model: Any, pixels: Any) -> Tensor:
    """By hand, as the definition says. (batch, height, width, 3) → (batch, 3, height, width)"""
    planes = torch.from_numpy(np.ascontiguousarray(pixels)).permute(0, 3, 1, 2).to(model.mean) / 255
    mean, deviation = (t.reshape(1, 3, 1, 1) for t in (model.mean, model.deviation))
    found: Tensor = (planes - mean) / deviation
    return found


class Plane:
    """One picture as captum wants it: a normalised tensor and functions of it."""

    def __init__(self, model: Any, one: Image) -> None:
        self.model = model
        self.one = one
        self.here = normalised(model, one.pixels[None])

    def chances(self, values: Tensor) -> Tensor:
        return torch.softmax(self.model(values), dim=-1)

    def gradient(self, at: Tensor, target: int) -> FloatArray:
        """Of the target's logit, by captum. → (pixels, 3)"""
        from captum.attr import Saliency

        found = Saliency(self.model).attribute(at.requires_grad_(), target=target, abs=False)
        return by_pixel(found)


def by_pixel(values: Tensor) -> FloatArray:
    """(1, 3, height, width) → (pixels, 3)"""
    found: FloatArray = values.detach()[0].permute(1, 2, 0).reshape(-1, 3).double().numpy()
    return found


Peer = Callable[[Plane, int], FloatArray]


# ---- gradients ----------------------------------------------------------------------------------


def _gradient(plane: Plane, target: int) -> FloatArray:
    found: FloatArray = np.abs(plane.gradient(plane.here, target)).sum(axis=1)
    return found


def _input_x_gradient(plane: Plane, target: int) -> FloatArray:
    from captum.attr import InputXGradient

    found = InputXGradient(plane.model).attribute(plane.here.requires_grad_(), target=target)
    shares: FloatArray = np.abs(by_pixel(found)).sum(axis=1)
    return shares


def _integrated(plane: Plane, target: int) -> FloatArray:
    from captum.attr import IntegratedGradients

    found = IntegratedGradients(plane.chances).attribute(
        plane.here, target=target, n_steps=POINTS, internal_batch_size=4
    )
    shares: FloatArray = by_pixel(found).sum(axis=1)
    return shares


def _smooth(plane: Plane, target: int) -> FloatArray:
    explainer: Any = explainers.make(SMOOTH).for_kind(Image.kind)
    (rng,) = setting.generators(explainer, [plane.one])
    values = by_pixel(plane.here)
    reach = explainer.noise * (values.max() - values.min())
    total: FloatArray = np.zeros(len(values))
    for _ in range(explainer.samples):
        moved = values + rng.standard_normal(values.shape) * reach
        at = torch.from_numpy(moved.T.reshape(1, 3, *plane.one.shape))
        total += np.abs(plane.gradient(at, target)).sum(axis=1)
    mean: FloatArray = total / explainer.samples
    return mean


def _expected(others: Sequence[Image], plane: Plane, target: int) -> FloatArray:
    explainer: Any = explainers.make(EXPECTED).for_kind(Image.kind)
    (rng,) = setting.generators(explainer, [plane.one])
    which = rng.integers(len(others), size=explainer.samples)
    on_the_way = rng.random(explainer.samples)
    total = np.zeros((plane.one.n_features, 3))
    for i, share in zip(which, on_the_way, strict=True):
        start = normalised(plane.model, others[i].pixels[None])
        away = plane.here - start
        total += by_pixel(away) * plane.gradient((start + float(share) * away).detach(), target)
    shares: FloatArray = np.abs(total / explainer.samples).sum(axis=1)
    return shares


def _grad_cam(layers: Any, plane: Plane, target: int) -> FloatArray:
    """At what is averaged before the last layer."""
    from captum.attr import LayerAttribution, LayerGradCam

    cells = LayerGradCam(layers, layers[-4]).attribute(
        plane.here.detach(), target=target, relu_attributions=True
    )
    found = LayerAttribution.interpolate(cells, plane.one.shape, "bilinear")
    return by_pixel(found.expand(-1, 3, -1, -1))[:, 0]


# ---- layer by layer -----------------------------------------------------------------------------


class Residual(nn.Module):
    """A block whose sum is a module, on which peers hang their rule."""

    def __init__(self, layers: nn.Module, short_cut: nn.Module, after: nn.Module) -> None:
        without_torchvision()
        from zennit.layer import Sum

        super().__init__()
        self.layers, self.short_cut, self.after = layers, short_cut, after
        self.sum = Sum()

    def forward(self, values: Tensor) -> Tensor:
        both = torch.stack([self.layers(values), self.short_cut(values)], dim=-1)
        found: Tensor = self.after(self.sum(both))
        return found


def _resnet_layers(network: Any) -> list[nn.Module]:
    blocks = [
        Residual(block.layers, block.short_cut, nn.ReLU())
        for stage in network.stages
        for block in stage
    ]
    return [network.stem, *blocks, nn.AdaptiveAvgPool2d(1), nn.Flatten(), network.head]


def _lite_layers(network: Any) -> list[nn.Module]:
    def block(of: Any) -> nn.Module:
        parts = [of._depthwise_conv, of._bn1, nn.ReLU6(), of._project_conv, of._bn2]
        if hasattr(of, "_expand_conv"):
            parts = [of._expand_conv, of._bn0, nn.ReLU6(), *parts]
        settings, layers = of._block_args, nn.Sequential(*parts)
        alike = settings.input_filters == settings.output_filters
        skips = of.id_skip and settings.stride == 1 and alike
        return Residual(layers, nn.Identity(), nn.Identity()) if skips else layers

    stem = [network._conv_stem, network._bn0, nn.ReLU6()]
    head = [network._conv_head, network._bn1, nn.ReLU6()]
    ends = [nn.AdaptiveAvgPool2d(1), nn.Flatten(), network._fc]
    return [*stem, *map(block, network._blocks), *head, *ends]


def spelled_out(layers: list[nn.Module]) -> nn.Module:
    return copy.deepcopy(nn.Sequential(*layers)).eval()


def _lrp(layers: nn.Module, plane: Plane, target: int) -> FloatArray:
    from zennit.composites import LayerMapComposite
    from zennit.layer import Sum
    from zennit.rules import Epsilon, Norm, Pass
    from zennit.types import Activation, AvgPool, BatchNorm, Linear

    rule, shared = Epsilon(epsilon=EPSILON), Norm(stabilizer=1e-15)
    composite = LayerMapComposite(
        [(Activation, Pass()), (Linear, rule), (BatchNorm, rule), (AvgPool, shared), (Sum, shared)]
    )
    here = plane.here.detach().requires_grad_()
    with composite.context(layers) as changed:
        logits = changed(here)
        start = torch.zeros_like(logits)
        start[0, target] = logits[0, target].detach()
        (relevance,) = torch.autograd.grad(logits, here, start)
    shares: FloatArray = by_pixel(relevance).sum(axis=1)
    return shares


def _deep_lift(layers: nn.Module, plane: Plane, target: int) -> FloatArray:
    from captum.attr import DeepLift
    from captum.attr._core import deep_lift as rules

    rules.SUPPORTED_NON_LINEAR[nn.ReLU6] = rules.nonlinear  # it knows none for this
    found = DeepLift(layers, eps=1e-7).attribute(plane.here.detach(), target=target)
    shares: FloatArray = by_pixel(found).sum(axis=1)
    return shares


# ---- hidden segments ----------------------------------------------------------------------------


def _occlusion(plane: Plane, target: int) -> FloatArray:
    from captum.attr import FeatureAblation

    segments = torch.from_numpy(plane.one.segments.reshape(1, 1, *plane.one.shape))
    with torch.no_grad():
        found = FeatureAblation(plane.chances).attribute(
            plane.here,
            baselines=normalised(plane.model, np.zeros_like(plane.one.pixels[None])),
            target=target,
            feature_mask=segments,
            perturbations_per_eval=8,
        )
    return by_pixel(found)[:, 0]


def answers(model: Any, pictures: Any, at_once: int = 16) -> FloatArray:
    """Plain passes over pictures as arrays, as lime asks for them."""
    pixels = np.asarray(pictures)
    with torch.inference_mode():
        found = [
            torch.softmax(model(normalised(model, pixels[i : i + at_once])), dim=-1)
            for i in range(0, len(pixels), at_once)
        ]
    return torch.cat(found).numpy()


def hidden(one: Image, shown: BoolArray) -> Any:
    """Segments in black, written out. (masks, segments) → (masks, height, width, 3)"""
    return one.pixels * shown[:, one.segments].reshape(-1, *one.shape, 1)


def lime_fit(model: Any, one: Image, target: int) -> tuple[FloatArray, FloatArray]:
    """Our coefficients and theirs, for the maskings that they drew; each asks for itself."""
    from lime.lime_image import LimeImageExplainer
    from sklearn.metrics import pairwise_distances

    peer = LimeImageExplainer(random_state=0)
    segments = one.segments.reshape(one.shape)
    data, said = peer.data_labels(
        one.pixels, np.zeros_like(one.pixels), segments, partial(answers, model), SAMPLES
    )
    distances = pairwise_distances(data, data[:1], metric="cosine").ravel()
    found = peer.base.explain_instance_with_data(data, said, distances, target, one.n_units)[1]
    theirs = np.zeros(one.n_units)
    for segment, weight in found:
        theirs[segment] = weight
    shown = data.astype(bool)
    (own,) = masked_probabilities(model, [one], [shown], Hiding.BLACK)
    return local_fit(shown, own[:, target]).coefficients, theirs


def _shapley(plane: Plane, target: int) -> FloatArray:
    n = plane.one.n_units
    table = answers(plane.model, hidden(plane.one, against_shap.all_coalitions(n)))[:, target]
    found = against_shap.kernel(against_shap.Lookup(table).values, n, 2**n, 0)
    return plane.one.on_features(found)


# ---- rows ---------------------------------------------------------------------------------------


def apart(ours: Sequence[FloatArray], theirs: Sequence[FloatArray]) -> float:
    """The largest difference, as a share of the largest score of a picture."""
    return max(
        float(np.abs(a - b).max() / max(np.abs(b).max(), 1e-300))
        for a, b in zip(ours, theirs, strict=True)
    )


def _row(
    name: str, what: str, peer: str, pairs: Sequence[tuple[FloatArray, FloatArray]], note: str = ""
) -> dict[str, Any]:
    ours, theirs = zip(*pairs, strict=True)
    share = apart(ours, theirs)
    told = "the ratio is the largest difference, as a share of a picture's largest score"
    return Row(
        f"agreement: {what}, {name}",
        peer,
        max_difference=setting.largest(ours, theirs),
        value=share,
        bar=ALIKE,
        at_most=True,
        note=f"{told}; {note}" if note else told,
        more={"pictures": len(pairs)},
    ).written()


def agree(
    name: str, model: Any, pictures: list[Image], layers: list[nn.Module]
) -> list[dict[str, Any]]:
    """Every method on one network in doubles, whose layers peers are given in order."""
    warnings.simplefilter("ignore")
    targets = setting.predicted(model, pictures)
    train = Dataset("background", model.labels, tuple(Example("", one, 0) for one in pictures[:5]))
    others = [e.input for e in train]
    written = spelled_out(layers)
    _check_layers(written, model, pictures[0])
    peers: list[tuple[str, str, Peer, str]] = [
        ("gradient", "captum", _gradient, ""),
        ("input_x_gradient", "captum", _input_x_gradient, ""),
        (setting.INTEGRATED.format(steps=POINTS), "captum", _integrated, ""),
        (SMOOTH, "captum", _smooth, "the same noise"),
        (EXPECTED, "captum", partial(_expected, others), "the same draws"),
        ("grad_cam", "captum", partial(_grad_cam, written), "LayerGradCam, bilinear"),
        ("deep_lift", "captum", partial(_deep_lift, written), ""),
        ("lrp", "zennit", partial(_lrp, written), "every layer by the epsilon rule"),
        ("occlusion", "captum", _occlusion, "FeatureAblation"),
    ]
    rows = []
    for spec, peer, attribute, note in peers:
        learnt = train if spec == EXPECTED else None
        ours = [a.scores for a in setting.explain(model, pictures, targets, spec, train=learnt)]
        theirs = [
            attribute(Plane(model, one), target)
            for one, target in zip(pictures, targets, strict=True)
        ]
        rows.append(_row(name, spec, peer, list(zip(ours, theirs, strict=True)), note))
    fits = [lime_fit(model, *row) for row in zip(pictures, targets, strict=True)]
    rows.append(_row(name, "lime on lime's maskings", "lime", fits))
    tiled = [Image(one.pixels, ENUMERATED) for one in pictures]
    exact = [a.scores for a in setting.explain(model, tiled, targets, EXACT)]
    values = [_shapley(Plane(model, one), targets[i]) for i, one in enumerate(tiled)]
    rows.append(_row(name, EXACT, "shap", list(zip(exact, values, strict=True))))
    return rows


def _check_layers(written: nn.Module, model: Any, one: Image) -> None:
    """The layers that peers are given are those of the model (definitions 3.6)."""
    here = Plane(model, one).here
    with torch.no_grad():
        assert torch.allclose(written(here), model(here))


def resnet(quick: bool) -> list[dict[str, Any]]:
    model = setting.model("resnet34").double().eval()
    pictures = setting.pictures(2 if quick else PICTURES, segments=SEGMENTS)
    return agree("resnet34", model, pictures, _resnet_layers(model.network))


def efficientnet(quick: bool) -> list[dict[str, Any]]:
    model = setting.efficientnet(SIDE).double().eval()
    source = f"fruit(size={SIDE}, limit=150)"
    pictures = setting.pictures(2 if quick else PICTURES, source, segments=SEGMENTS)
    network = model.network.network.network
    return agree("efficientnet-lite0", model, pictures, _lite_layers(network))


CASES = {
    "agreement on 20 pictures, resnet34": resnet,
    "agreement on 20 pictures, efficientnet-lite0": efficientnet,
}
