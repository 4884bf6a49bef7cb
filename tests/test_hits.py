"""Convolutions taken apart: which n-gram a filter chose, and the methods that show it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
import torch

import veracity
from conftest import words
from veracity.core.classifiers import Convolutional, Embedded, FeatureMap, RowLayout
from veracity.core.examples import Dataset, Example
from veracity.core.inputs import Alignment, FloatArray, Text
from veracity.data.splits import Splits
from veracity.engine.hits import filter_hits
from veracity.models.architectures.text_cnn import TextCnn

SETTINGS = [
    TextCnn(size=6, widths=(2, 3, 4), filters=3),
    TextCnn(size=6, widths=(2, 3), filters=3, hidden=5, length=9),
    TextCnn(size=6, widths=(3, 4, 5), filters=3, padding="same", length=6),
    TextCnn(size=6, widths=(2, 4), filters=4, padding="same"),
]
TEXTS = ["great", "the film was dull", "a plot so thin that i left long before the end came"]


def started(settings: TextCnn, made: Splits) -> Any:
    """An untrained network, its every filter given something to find."""
    model: Any = settings.start(made.train, seed=1).eval()
    with torch.no_grad():
        for convolution in model.network.convolutions:
            convolution.bias.abs_()
        model.embedding.weight.mul_(10.0)
    return model


def test_ex_1_7_the_words_that_a_gram_covers() -> None:
    settings = TextCnn(size=1, widths=(4,), filters=1, padding="same")
    data = Dataset("d", ("a", "b"), (Example("0", words("a b c d e"), 0),))
    model: Any = settings.start(data, seed=0).eval()
    with torch.no_grad():
        model.network.convolutions[0].weight.fill_(1.0)
        model.network.convolutions[0].bias.zero_()
    text = words("a b c d e")
    ids = dict(zip(text.words, model.vocabulary.ids(text.words), strict=True))
    for strong, gram, covered in (("a", 0, (0, 1, 2)), ("e", 4, (3, 4))):
        with torch.no_grad():
            # everything else pulls down, so the gram with fewest other words wins
            model.embedding.weight.fill_(-1.0)
            model.embedding.weight[0] = 0.0
            model.embedding.weight[ids[strong]] = 10.0
        (hits,) = filter_hits(model, [text])
        assert hits.starts.tolist() == [gram - 1]
        assert hits.words(0) == covered


@pytest.mark.parametrize("settings", SETTINGS, ids=lambda s: s.spec)
def test_hits_are_the_lowest_best_window(settings: TextCnn, made: Splits) -> None:
    model = started(settings, made)
    texts = [words(t) for t in (*TEXTS, "dull dull dull dull dull dull")]
    for text, hits in zip(texts, filter_hits(model, texts, [1] * len(texts)), strict=True):
        with torch.no_grad():
            alone = model.embed([text])
            maps = model.feature_maps(alone)
            logits = model.logits(alone)[0]
        assert hits.logits == pytest.approx(logits.double().numpy(), abs=1e-5)
        k = 0
        for m in maps:
            for column in m.values[0].T.tolist():
                best = max(column)
                row = next(i for i, v in enumerate(column) if v >= best - 1e-6)
                limit: Any = settings.length or text.n_features
                last = min(text.n_features, limit)
                layout = m.layout
                first = row - layout.before
                expected = [w for w in range(first, first + layout.width) if 0 <= w < last]
                assert hits.values[k] == pytest.approx(best, abs=1e-6)
                assert hits.words(k) == tuple(expected)
                k += 1
        assert k == len(hits.values)


# ---- methods ----------------------------------------------------------------------------------


class Grams:
    """Filters whose strengths are given, under a linear last layer: the worked examples."""

    labels = ("no", "yes")

    def __init__(self, maps: Sequence[FeatureMap], weights: Sequence[float]) -> None:
        self.maps = tuple(maps)
        self.weights = torch.tensor(weights, dtype=torch.float64)

    def embed(self, inputs: Sequence[Text]) -> Embedded:
        n = inputs[0].n_features
        flags = torch.ones(1, n, dtype=torch.bool)
        values = torch.zeros(1, n, 1, dtype=torch.float64)
        return Embedded(values, flags, flags, (Alignment.identity(n),))

    def feature_maps(self, embedded: Embedded) -> tuple[FeatureMap, ...]:
        return self.maps

    def logits_of_maps(self, maps: Sequence[FeatureMap]) -> torch.Tensor:
        pooled = torch.cat([m.values.max(dim=1).values for m in maps], dim=1)
        z = pooled @ self.weights
        return torch.stack([-z, z], dim=1)

    def logits(self, embedded: Embedded) -> torch.Tensor:
        return self.logits_of_maps(self.feature_maps(embedded))

    def probabilities(self, inputs: Sequence[Text]) -> FloatArray:
        with torch.no_grad():
            row = torch.softmax(self.logits(self.embed(inputs)), dim=-1).numpy()
        return np.repeat(row, len(inputs), axis=0)


def gram(width: int, n: int, found: Sequence[tuple[int, float]]) -> FeatureMap:
    """A map of one width over n words: per filter, the row of its match and how strong it is."""
    values = torch.zeros(1, n - width + 1, len(found), dtype=torch.float64)
    for k, (row, value) in enumerate(found):
        values[0, row, k] = value
    return FeatureMap(RowLayout(width), values, torch.ones(1, n - width + 1, dtype=torch.bool))


def test_ex_3_12_grad_cam_text() -> None:
    two = gram(2, 5, [(0, 2.0), (3, 3.0)])  # A: words 0-1; C: words 3-4
    three = gram(3, 5, [(1, 1.0)])  # B: words 1-3
    model = Grams([two, three], [0.5, -0.2, 1.0])
    assert isinstance(model, Convolutional)
    (found,) = veracity.explain(model, words("a b c d e"), "grad_cam_text", target=1)
    assert found.scores == pytest.approx([1, 2, 1, 1 - 0.6, -0.6])
    (evidence,), (counter,) = found.evidence(5), found.counter_evidence(5)
    assert evidence.positions == (1, 2, 3)
    assert evidence.score == pytest.approx(4.0)
    assert counter.positions == (3, 4)
    assert counter.score == pytest.approx(-1.2)
    assert (evidence.kind, counter.kind, found.level) == ("evidence", "counter", "ngram")
    # the least effect is 0, so scaling changes sizes and no choice
    (scaled,) = veracity.explain(model, words("a b c d e"), "grad_cam_text(minmax=True)", target=1)
    assert [f.positions for f in scaled.fragments or ()] == [(1, 2, 3), (3, 4)]
    assert scaled.scores == pytest.approx([0.5, 1, 0.5, 0.5 - 1, -1])


def test_effects_without_a_difference_scale_to_nothing() -> None:
    model = Grams([gram(2, 2, [(0, 1.0)])], [1.0])
    (plain,) = veracity.explain(model, words("a b"), "grad_cam_text", target=1)
    (scaled,) = veracity.explain(model, words("a b"), "grad_cam_text(minmax=True)", target=1)
    assert plain.evidence(1)[0].positions == (0, 1)
    assert scaled.evidence(1) == []
    assert not scaled.scores.any()


def test_ex_3_11_grad_cam() -> None:
    from veracity.explainers.grad_cam import class_activation

    maps = np.array([[1.0, 0.0], [2.0, 1.0], [0.0, 3.0]])
    assert class_activation(maps, np.array([0.5, -0.2])) == pytest.approx([0.5, 0.8, 0.0])


def literal_grad_cam(model: Any, text: Text, target: int) -> FloatArray:
    """The definition, text by text, width by width, row by row."""
    embedded = model.embed([text])
    maps = model.feature_maps(embedded)
    for m in maps:
        m.values.retain_grad()
    model.logits_of_maps(maps)[0, target].backward()
    limit = model.architecture.length or text.n_features
    total = np.zeros(text.n_features)
    for m in maps:
        values, gradient = m.values[0].detach().numpy(), m.values.grad[0].numpy()
        rows = int(m.present[0].sum())
        alpha = [gradient[:rows, k].sum() / rows for k in range(values.shape[1])]
        for row in range(rows):
            height = max(0.0, sum(a * v for a, v in zip(alpha, values[row], strict=True)))
            layout = m.layout
            alone = layout.before or layout.after
            reach = [row] if alone else range(row, row + layout.width)
            inside = [w for w in reach if w < min(text.n_features, limit)]
            for w in inside:
                total[w] += height / len(inside)
    model.zero_grad(set_to_none=True)
    return total / len(maps)


# networks that cut texts are the point here
@pytest.mark.parametrize("settings", SETTINGS, ids=lambda s: s.spec)
def test_grad_cam_is_its_definition(settings: TextCnn, made: Splits) -> None:
    model = started(settings, made)
    texts = [words(t) for t in TEXTS]
    largest = 0.0
    for target in (0, 1):
        found = veracity.explain(model, texts, "grad_cam", target=target)
        for text, one in zip(texts, found, strict=True):
            assert one.scores == pytest.approx(literal_grad_cam(model, text, target), abs=1e-6)
            largest = max(largest, one.scores.max())
    assert largest > 0.01


@pytest.mark.parametrize("settings", SETTINGS[:2], ids=lambda s: s.spec)
def test_at_the_embedding_grad_cam_is_what_supports_of_gradient_times_input(
    settings: TextCnn, made: Splits
) -> None:
    model = started(settings, made)
    texts = [words(t) for t in TEXTS]
    found = veracity.explain(model, texts, "grad_cam(profile=paper)", target=1)
    sizes = veracity.explain(model, texts, "gradient(profile=paper)", target=1)
    for text, one, size in zip(texts, found, sizes, strict=True):
        embedded = model.embed([text])
        at = embedded.values.detach().requires_grad_(True)
        model.logits(embedded.with_values(at))[0, 1].backward()
        product = (at.grad * at.detach())[0].numpy()[: text.n_features]
        shown = product.shape[0]
        assert one.scores[:shown] == pytest.approx(np.maximum(product.sum(axis=1), 0), abs=1e-6)
        assert size.scores[:shown] == pytest.approx(np.linalg.norm(product, axis=1), abs=1e-6)
    assert max(one.scores.max() for one in found) > 0.001


def literal_grad_cam_text(model: Any, text: Text, target: int) -> tuple[FloatArray, list[Any]]:
    """The definition, filter by filter, span by span."""
    limit = min(text.n_features, model.architecture.length or text.n_features)
    (hits,) = filter_hits(model, [text])
    pooled = torch.tensor(hits.values, dtype=torch.float32, requires_grad=True)
    network = model.network
    hidden = torch.relu(network.dense(pooled)) if network.dense is not None else pooled
    network.head(hidden)[target].backward()
    gradient: Any = pooled.grad
    model.zero_grad(set_to_none=True)
    spans = [hits.words(k) for k in range(len(hits.values))]
    scores, fragments = np.zeros(text.n_features), []
    for kind, sign in (("evidence", 1), ("counter", -1)):
        effects = np.zeros(limit)
        for k, span in enumerate(spans):
            for w in span:
                effects[w] += max(0.0, sign * float(gradient[k])) * hits.values[k]
        free = [s for s in dict.fromkeys(spans) if s]
        while free:
            best = min(free, key=lambda s: (-round(sum(effects[list(s)]), 6), s[0], len(s)))
            if effects[list(best)].sum() <= 0:
                break
            fragments.append((kind, best))
            free = [s for s in free if not set(s) & set(best)]
        scores[:limit] += sign * effects
    return scores, fragments


@pytest.mark.parametrize("settings", SETTINGS, ids=lambda s: s.spec)
def test_grad_cam_text_is_its_definition(settings: TextCnn, made: Splits) -> None:
    model = started(settings, made)
    texts = [words(t) for t in TEXTS]
    kinds = set()
    for text, one in zip(
        texts, veracity.explain(model, texts, "grad_cam_text", target=1), strict=True
    ):
        scores, fragments = literal_grad_cam_text(model, text, 1)
        assert one.scores == pytest.approx(scores, abs=1e-6)
        assert [(f.kind, f.positions) for f in one.fragments or ()] == fragments
        kinds |= {kind for kind, _ in fragments}
    assert kinds == {"evidence", "counter"}


def literal_smooth_grad(model: Any, text: Text, rng: Any, absolute: bool) -> FloatArray:
    embedded = model.embed([text])
    point = embedded.values.detach()
    deviation = 0.15 * float(point.max() - point.min())
    total = torch.zeros_like(point, dtype=torch.float64)
    for _ in range(50):
        noise = torch.tensor(rng.standard_normal(point.shape[1:]) * deviation)
        at = (point + noise.to(point.dtype)).requires_grad_(True)
        (gradient,) = torch.autograd.grad(model.logits(embedded.with_values(at))[0, 1], at)
        total += gradient.abs() if absolute else gradient
    found: FloatArray = (total[0] / 50).norm(dim=1).numpy()
    return found


@pytest.mark.parametrize("absolute", [False, True])
def test_smooth_grad_is_its_definition(absolute: bool, cnn: Any) -> None:
    from veracity.engine.seeds import generator

    texts = [words(t) for t in TEXTS]
    spec = "smooth_grad(absolute=True)" if absolute else "smooth_grad"
    found = veracity.explain(cnn, texts, spec, target=1)
    for text, one in zip(texts, found, strict=True):
        expected = literal_smooth_grad(cnn, text, generator(0, spec, text.text), absolute)
        assert one.scores == pytest.approx(expected, abs=1e-5)


def test_smooth_grad_without_noise_is_the_gradient(cnn: Any) -> None:
    text = words(TEXTS[2])
    for norm in ("l2", "l1", "max_abs"):
        smooth = veracity.explain(cnn, text, f"smooth_grad(noise=0, norm={norm}, samples=3)")[0]
        plain = veracity.explain(cnn, text, f"gradient(norm={norm})")[0]
        assert smooth.scores == pytest.approx(plain.scores, abs=1e-6)
