"""Word vectors learnt from texts, and how long vectors are."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from veracity.core.errors import DataError, PluginError
from veracity.core.inputs import FloatArray
from veracity.data.corpus_vectors import WINDOW, corpus_vectors
from veracity.data.splits import Splits
from veracity.models.architectures import architectures
from veracity.models.embeddings import embedding_table, mean_norm
from veracity.models.loading import load_model, save_model
from veracity.models.vocabulary import PAD_ID, Vocabulary

TEXTS = [[int(i) for i in np.random.default_rng(n).zipf(1.6, size=20) % 12] for n in range(40)]


def literal(texts: list[list[int]], n_words: int, size: int) -> FloatArray:
    """Neighbours counted one by one and a full decomposition."""
    counts = np.zeros((n_words, n_words))
    for text in texts:
        for i, word in enumerate(text):
            for j in range(max(0, i - WINDOW), min(len(text), i + WINDOW + 1)):
                counts[word, text[j]] += i != j
    p, p_word = counts / counts.sum(), counts.sum(axis=1) / counts.sum()
    with np.errstate(divide="ignore"):
        information = np.maximum(np.log(p / np.outer(p_word, p_word)), 0.0)
    u, s, _ = np.linalg.svd(information)
    vectors: FloatArray = u[:, :size] * np.sqrt(s[:size])
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    return vectors


def test_vectors_are_those_of_the_literal_formula() -> None:
    found, slow = corpus_vectors(TEXTS, 12, size=5, seed=0), literal(TEXTS, 12, 5)
    assert found.shape == (12, 5)
    # each column up to its sign, which is the formula's to choose and ours to fix
    np.testing.assert_allclose(np.abs(found), np.abs(slow), atol=1e-8)
    np.testing.assert_allclose(found @ found.T, slow @ slow.T, atol=1e-8)


def test_vectors_are_the_same_whatever_the_start() -> None:
    np.testing.assert_array_equal(
        corpus_vectors(TEXTS, 12, size=5, seed=3), corpus_vectors(TEXTS, 12, size=5, seed=3)
    )
    np.testing.assert_allclose(
        corpus_vectors(TEXTS, 12, size=5, seed=0),
        corpus_vectors(TEXTS, 12, size=5, seed=1),
        atol=1e-8,
    )


def test_few_words_have_few_dimensions_and_absent_ones_none() -> None:
    found = corpus_vectors([[2, 3, 4, 2, 3]], 6, size=100, seed=0)
    assert found.shape == (6, 5)
    assert np.linalg.norm(found, axis=1)[[0, 1, 5]] == pytest.approx(0.0, abs=1e-9)
    with pytest.raises(DataError, match="texts of two words or more"):
        corpus_vectors([[2], [3]], 4, size=2, seed=0)


@pytest.mark.parametrize("source", ["corpus", "glove"])
def test_norm_is_the_mean_length_of_known_words(source: str) -> None:
    texts = [["the", "film", "was", "great"], ["a", "dull", "film", "qzxv"]]
    words = Vocabulary.learnt(texts)

    def table(norm: float | None) -> FloatArray:
        made = embedding_table(source, words, texts, size=4, norm=norm, seed=0)
        found: FloatArray = made.double().numpy()
        return found

    plain, long = table(None), table(2.5)
    assert mean_norm(long) == pytest.approx(2.5, rel=1e-6)
    assert not long[PAD_ID].any()
    # nothing but the length changes, of words that the source does not know neither
    np.testing.assert_allclose(long, plain * (2.5 / mean_norm(plain)), rtol=1e-5)


def test_a_saved_model_needs_no_texts_to_load(made: Splits, tmp_path: Path) -> None:
    architecture = architectures.make(
        "attention_lstm(embeddings=corpus, size=8, norm=2.0, tuned=False, hidden=4, attention=4)"
    )
    started: Any = architecture.start(made.train.select(range(100)), seed=0)
    assert started.embedding.weight.shape[1] == 8
    assert started.mean_norm == pytest.approx(2.0, rel=1e-6)
    assert "mean norm of their embeddings 2" in started.about
    save_model(started, architecture, tmp_path / "model", record={})
    loaded: Any = load_model(tmp_path / "model")
    inputs = [e.input for e in made.test][:20]
    np.testing.assert_array_equal(loaded.probabilities(inputs), started.probabilities(inputs))
    assert loaded.identity() == started.identity()
    assert loaded.about == started.about


def test_vectors_are_learnt_from_training_texts_alone(made: Splits) -> None:
    architecture = architectures.make("text_cnn(embeddings=corpus, size=8, filters=2)")
    some = made.train.select(range(100))
    again: Any = architecture.start(some, seed=0)
    other: Any = architecture.start(some.select(range(20)), seed=0)
    known: Any = architecture.start(some, seed=0)
    assert again.identity() == known.identity()
    assert set(other.vocabulary.words) < set(known.vocabulary.words)
    row = (known.vocabulary.row("the"), other.vocabulary.row("the"))
    vectors = [m.embedding.weight.detach().numpy() for m in (known, other)]
    assert not np.allclose(vectors[0][row[0]], vectors[1][row[1]])


@pytest.mark.parametrize("norm", ["0", "-1.0"])
def test_a_norm_of_nothing_is_refused(norm: str) -> None:
    with pytest.raises(PluginError, match="norm to be above 0"):
        architectures.make(f"lstm(norm={norm})")
