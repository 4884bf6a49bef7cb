"""The same answers as the field's own libraries, on the same questions."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import veracity
from conftest import words
from veracity.core.classifiers import Embedded
from veracity.core.examples import Dataset
from veracity.core.inputs import FloatArray, Text
from veracity.explainers.lime import local_fit
from veracity.models.loading import load_model

# the peers' own warnings about their own dependencies are theirs
pytestmark = pytest.mark.filterwarnings("ignore")


def largest(a: FloatArray, b: FloatArray) -> float:
    return float(np.abs(np.asarray(a) - np.asarray(b)).max(initial=0.0))


@pytest.mark.parametrize("bow", [True, False])
@pytest.mark.parametrize("features", [4, 8, None])
def test_lime_equals_the_lime_package_on_its_samples(
    bow: bool, features: int | None, cnn: Any
) -> None:
    from lime.lime_text import IndexedString, LimeTextExplainer

    sentence = "the plot was great but the film was dull and the cast was fine too"
    peer = LimeTextExplainer(
        bow=bow, split_expression=r"\s+", random_state=3, mask_string=None if bow else "\u2047"
    )

    def answer(texts: list[str]) -> FloatArray:
        found: FloatArray = cnn.probabilities([Text.of_words(t.split()) for t in texts])
        return found

    indexed = IndexedString(sentence, bow=bow, split_expression=r"\s+", mask_string="\u2047")
    data, answers, distances = peer._LimeTextExplainer__data_labels_distances(indexed, answer, 600)
    size = features or indexed.num_words()
    base = peer.base
    chosen = "auto" if features else "none"
    intercept, found, r2, _ = base.explain_instance_with_data(
        data, answers, distances, 1, size, feature_selection=chosen
    )[:4]
    theirs = np.zeros(indexed.num_words())
    for place, weight in found:
        theirs[place] = weight
    ours = local_fit(data.astype(bool), answers[:, 1], features=features)
    assert largest(ours.coefficients, theirs) < 1e-4
    assert ours.intercept == pytest.approx(
        intercept[1] if isinstance(intercept, dict) else intercept, abs=1e-4
    )
    assert ours.r2 == pytest.approx(r2, abs=1e-4)


@pytest.mark.parametrize("name", ["cnn", "attention_lstm"])
def test_shap_equals_the_shap_package(name: str, request: Any) -> None:
    import shap

    model = request.getfixturevalue(name)
    text = words("the plot was great but the film was dull")

    def answer(rows: FloatArray) -> FloatArray:
        from veracity.core.inputs import Hiding

        found: FloatArray = model.masked_probabilities([text], [rows > 0.5], Hiding.MASK)[0][:, 1]
        return found

    n = text.n_features
    peer = shap.KernelExplainer(answer, np.zeros((1, n)))
    theirs = peer.shap_values(np.ones((1, n)), nsamples=2**n, silent=True, l1_reg=0)[0]
    for spec in ("shap(samples=4096)", "shap(form=exact)"):
        ours = veracity.explain(model, text, spec, target=1)[0].scores
        assert largest(ours, theirs) < 1e-4
    exact = shap.ExactExplainer(answer, shap.maskers.Independent(np.zeros((1, n))))
    assert largest(ours, exact(np.ones((1, n))).values[0]) < 1e-6


@pytest.fixture(scope="module")
def minilm(minilm_folder: Path) -> Any:
    return load_model(minilm_folder)


@pytest.mark.parametrize("name", ["cnn", "attention_lstm", "minilm"])
def test_gradients_equal_captum(name: str, request: Any, reviews: Dataset) -> None:
    from captum.attr import InputXGradient, IntegratedGradients, Saliency

    model = request.getfixturevalue(name)
    model.eval()
    worst: dict[str, float] = {}
    n, steps = (3, 20) if name == "minilm" else (8, 50)
    for example in reviews.examples[:n]:
        text = example.input
        embedded = model.embed([text])
        point = embedded.values.detach()
        base = torch.where(embedded.feature.unsqueeze(-1), torch.zeros_like(point), point)

        def logits(values: torch.Tensor, embedded: Embedded = embedded) -> torch.Tensor:
            many = embedded.repeat(len(values))
            found: torch.Tensor = model.logits(many.with_values(values))
            return found

        def chances(values: torch.Tensor) -> torch.Tensor:
            return torch.softmax(logits(values), dim=-1)

        theirs = {
            f"integrated_gradients(steps={steps}, rule=gauss_legendre)": IntegratedGradients(
                chances
            )
            .attribute(point, base, target=1, n_steps=steps, method="gausslegendre")
            .sum(dim=-1),
            "input_x_gradient": InputXGradient(logits)
            .attribute(point.clone().requires_grad_(), target=1)
            .sum(dim=-1),
            "gradient": Saliency(logits)
            .attribute(point.clone().requires_grad_(), target=1, abs=False)
            .norm(dim=-1),
        }
        for spec, pieces in theirs.items():
            expected = embedded.alignments[0].to_features(pieces[0].detach().double().numpy())
            ours = veracity.explain(model, text, spec, target=1)[0].scores
            key = re.sub(r"\(.*", "", spec)
            worst[key] = max(worst.get(key, 0.0), largest(ours, expected))
    print(name, worst)
    assert max(worst.values()) < 1e-4, worst
