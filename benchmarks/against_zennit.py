"""The zennit package: layer-wise relevance with the epsilon rule on the text CNN.

Its Epsilon rule has epsilon 1e-6 by default, set to ours here (1e-7). It stabilises with
sign(0) = +1 as we do, leaves ReLU and pooling to the gradient, which gives all to the winner, and
lets the bias keep its share.
"""

from __future__ import annotations

import sys
import types
from typing import Any

import torch

from against_captum import Layers, Point, backward
from veracity.core.inputs import FloatArray

EPSILON = 1e-7


def without_torchvision() -> None:
    """It imports torchvision for image models alone; with the CPU torch that import fails."""
    sys.modules.setdefault("zennit.torchvision", types.ModuleType("zennit.torchvision"))


def _epsilon(point: Point, target: int) -> FloatArray:
    without_torchvision()
    from zennit.composites import LayerMapComposite
    from zennit.rules import Epsilon, Pass
    from zennit.types import Activation, Convolution, Linear

    layers = Layers(point.model.network)
    rule = Epsilon(epsilon=EPSILON)
    composite = LayerMapComposite([(Activation, Pass()), (Convolution, rule), (Linear, rule)])
    here = point.here.clone().requires_grad_()
    with composite.context(layers) as changed:
        logits = changed(here)
        start = torch.zeros_like(logits)
        start[0, target] = logits[0, target].detach()
        (relevance,) = torch.autograd.grad(logits, here, start)
    return point.words(relevance.sum(dim=-1))


def epsilon(quick: bool) -> list[dict[str, Any]]:
    return backward(quick, "zennit", {"lrp": _epsilon})


CASES = {"epsilon rule, text CNN": epsilon}
