"""Every short cut beside the slow way that it replaces."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from veracity.core.classifiers import LinearFirstLayer
from veracity.core.examples import Dataset
from veracity.core.inputs import Hiding, Text
from veracity.data.words import read_text
from veracity.engine.gradients import _walk, path_gradients
from veracity.engine.inference import _read_each
from veracity.models.adapters.sklearn_pipelines import CountingClassifier
from veracity.models.architectures import architectures
from veracity.models.loading import load_model
from veracity.models.neural import NeuralText
from veracity.models.vocabulary import Vocabulary

WORDS = tuple("abcdefghijklmnopqrstuvwxyz")


def test_texts_without_maskings_have_no_answers() -> None:
    model, text = untrained("lstm(size=2, hidden=2)", 3, 0), read_text("a b")
    none = [np.zeros((0, 2), dtype=np.bool_)] * 2
    found = model.masked_probabilities([text, text], none, Hiding.DELETE)
    assert [answers.shape for answers in found] == [(0, 3), (0, 3)]


def untrained(spec: str, labels: int, seed: int) -> NeuralText:
    """A model with random weights: short cuts must hold for any."""
    architecture: Any = architectures.make(spec)
    generator = torch.Generator().manual_seed(seed)
    words = Vocabulary.learnt([WORDS], 100)
    table = torch.randn(len(words), architecture.size, generator=generator)
    names = [f"label {i}" for i in range(labels)]
    model: NeuralText = architecture._model(words, names, table, seed)
    for parameter in model.network.parameters():  # biases of any size, too
        parameter.data += 0.3 * torch.randn(parameter.shape, generator=generator)
    return model.eval()


@st.composite
def convolutions(draw: st.DrawFn, size: int) -> str:
    widths = tuple(draw(st.lists(st.integers(1, 6), min_size=1, max_size=3)))
    padding = draw(st.sampled_from(["valid", "same"]))
    length = draw(st.none() | st.integers(1, 12))
    return (
        f"text_cnn(size={size}, widths={widths}, filters={draw(st.integers(1, 5))}, "
        f"padding={padding}, length={length}, hidden={draw(st.sampled_from([0, 3]))})"
    )


@st.composite
def specs(draw: st.DrawFn) -> str:
    kind = draw(st.sampled_from(["text_cnn", "lstm", "attention_lstm"]))
    size = draw(st.integers(1, 6))
    if kind == "text_cnn":
        return draw(convolutions(size))
    hidden = draw(st.integers(1, 5))
    return f"{kind}(size={size}, hidden={hidden})"


@settings(max_examples=150, deadline=None)
@given(
    spec=specs(),
    labels=st.integers(2, 4),
    lengths=st.lists(st.integers(1, 14), min_size=1, max_size=3),
    masks=st.integers(1, 90),
    how=st.sampled_from(list(Hiding)),
    seed=st.integers(0, 2**32 - 1),
)
def test_masking_short_cuts_equal_forward_passes(
    spec: str, labels: int, lengths: list[int], masks: int, how: Hiding, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    model = untrained(spec, labels, seed % 1000)
    inputs = [Text.of_words(rng.choice(WORDS, n).tolist()) for n in lengths]
    shown = [rng.random((masks, n)) < rng.random() for n in lengths]
    assert hasattr(model.network, "masked_logits")
    fast = [model.shortened(text, z, how) for text, z in zip(inputs, shown, strict=True)]
    slow = model.masked_one_by_one(inputs, shown, how)
    chosen = model.masked_probabilities(inputs, shown, how)
    for a, b, c in zip(fast, slow, chosen, strict=True):
        assert a.shape == (masks, labels)
        assert np.abs(a - b).max() < 1e-5
        assert np.abs(c - b).max() < 1e-5


@settings(max_examples=60, deadline=None)
@given(
    spec=convolutions(4),
    lengths=st.lists(st.integers(1, 14), min_size=1, max_size=3),
    output=st.sampled_from(["logit", "probability"]),
    seed=st.integers(0, 2**32 - 1),
)
def test_stretched_paths_equal_walked_ones(
    spec: str, lengths: list[int], output: Any, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    model = untrained(spec, 3, seed % 1000)
    inputs = [Text.of_words(rng.choice(WORDS, n).tolist()) for n in lengths]
    points, weights = rng.uniform(0.01, 1, (2, len(inputs), 5))
    assert isinstance(model, LinearFirstLayer)
    fast = path_gradients(
        model, inputs, [1] * len(inputs), points=points, weights=weights, output=output
    )
    slow, _ = _walk(model, model.embed(inputs), [1] * len(inputs), points, weights, output)
    for a, b in zip(fast, slow, strict=True):
        n = a.alignment.n_words
        np.testing.assert_allclose(a.gradient[:n], b.gradient[:n], atol=1e-5)
        np.testing.assert_allclose(a.outputs, b.outputs, atol=1e-5)


@pytest.mark.parametrize("kind", ["count", "binary", "tfidf", "sublinear", "reduced"])
@pytest.mark.parametrize("how", list(Hiding))
def test_counted_words_equal_texts_read_anew(kind: str, how: Hiding, reviews: Dataset) -> None:
    from sklearn.decomposition import TruncatedSVD
    from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline

    steps: dict[str, Any] = {
        "count": [CountVectorizer()],
        "binary": [CountVectorizer(binary=True, token_pattern=r"(?u)\b\w+\b")],
        "tfidf": [TfidfVectorizer(stop_words="english")],
        "sublinear": [TfidfVectorizer(sublinear_tf=True, norm="l1", max_features=80)],
        "reduced": [TfidfVectorizer(), TruncatedSVD(5, random_state=0)],
    }
    pipeline = make_pipeline(*steps[kind], LogisticRegression())
    pipeline.fit([e.input.text for e in reviews], [e.label for e in reviews])
    model: Any = load_model(pipeline)
    assert isinstance(model, CountingClassifier)
    inputs = [e.input for e in reviews.examples[:12]]
    inputs += [
        read_text("好看，电影 good"),
        read_text("don't re-do it, 3.5 stars!"),
        read_text("!"),
    ]
    rng = np.random.default_rng(0)
    shown = [rng.random((20, t.n_features)) < 0.5 for t in inputs]
    shown[0][0] = False
    fast = model.masked_probabilities(inputs, shown, how)
    slow = _read_each(model, inputs, shown, how)
    for a, b in zip(fast, slow, strict=True):
        np.testing.assert_allclose(a, b, atol=1e-9)


def test_pairs_of_words_are_not_counted_one_by_one(reviews: Dataset) -> None:
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline

    pipeline = make_pipeline(TfidfVectorizer(ngram_range=(1, 2)), LogisticRegression())
    pipeline.fit([e.input.text for e in reviews], [e.label for e in reviews])
    assert not isinstance(load_model(pipeline), CountingClassifier)
