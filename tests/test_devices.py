"""Tensors are made where the values are that they meet."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

import veracity
from conftest import words
from veracity.core.inputs import Hiding
from veracity.explainers import explainers

MODELS = (
    "cnn", "lstm", "attention_lstm", "hierarchical", "transformer", "rationale_rl", "rationale_cr",
)  # fmt: skip
METHODS = {
    "lime": "lime(samples=80)",
    "shap": "shap(samples=80)",
    "smooth_grad": "smooth_grad(samples=2)",
    "integrated_gradients": "integrated_gradients(steps=3)",
}
TEXTS = [words("the film was great but dull ."), words("great")]

# a handful of points on the path is enough to see where they are
pytestmark = pytest.mark.filterwarnings("ignore:integrated_gradients", "ignore:deep_lift")


@pytest.mark.parametrize("name", MODELS)
def test_a_tensor_that_forgets_its_device_is_noticed(name: str, request: Any) -> None:
    """Within `torch.device("meta")`, what is made without a device is made elsewhere than where the
    model is, and cannot be used together with it; as a mask made on the CPU beside a GPU."""
    model = request.getfixturevalue(name)
    offered = [n for n in explainers.names() if isinstance(model, explainers.get(n).needs)]
    specs = [METHODS.get(n, n) for n in offered if not explainers.get(n)().learns]
    shown = np.random.default_rng(0).random((80, TEXTS[0].n_features)) < 0.5
    shown[0] = False  # nothing left to read
    for how in Hiding:
        expected = model.masked_probabilities(TEXTS[:1], [shown], how)[0]
        with torch.device("meta"):
            assert model.masked_probabilities(TEXTS[:1], [shown], how)[0] == pytest.approx(expected)
    for spec in specs:
        expected = [a.scores for a in veracity.explain(model, TEXTS, spec)]
        with torch.device("meta"):
            found = [a.scores for a in veracity.explain(model, TEXTS, spec)]
        for one, other in zip(found, expected, strict=True):
            assert one == pytest.approx(other, abs=1e-6), spec
    if hasattr(model, "moved"):
        by = 0.1 * np.ones((int(model.embed(TEXTS[1:]).feature.sum()), 32))
        with torch.device("meta"), model.shifted(TEXTS[1], by):
            assert np.isfinite(model.probabilities(TEXTS)).all()
