"""Moved embeddings, and how far explanations move with them."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from conftest import WordWeights, words
from veracity.auditing.audit import audit
from veracity.auditing.explaining import attributions
from veracity.core.classifiers import Movable
from veracity.core.errors import PluginError
from veracity.core.examples import Dataset, Example
from veracity.core.inputs import FloatArray, Hiding, Text
from veracity.engine.inference import masked_probabilities, probabilities
from veracity.engine.seeds import generator
from veracity.explainers import explainers
from veracity.metrics import metrics
from veracity.metrics.local_lipschitz import among_sentences, in_ball, lipschitz
from veracity.models.architectures import architectures

TEXT = words("the plot is dull . a wonderful cast")
MODELS = ("cnn", "lstm", "attention_lstm", "hierarchical", "transformer", "rationale_cr")
METHODS = ("occlusion", "lime(samples=100)", "gradient", "integrated_gradients(steps=100)", "lrp")


def test_ex_5_15_the_largest_ratio_counts() -> None:
    nearby = [(np.array([0.25, 0.1]), 0.1), (np.array([0.2, 0.13]), 0.1)]
    assert lipschitz(np.array([0.2, 0.1]), nearby) == pytest.approx(0.5)
    assert lipschitz(np.array([0.2, 0.1]), nearby[1:]) == pytest.approx(0.3)


def test_no_point_is_no_figure_and_no_step_is_skipped() -> None:
    assert np.isnan(lipschitz(np.array([1.0]), []))
    assert lipschitz(np.array([1.0]), [(np.array([9.0]), 0.0), (np.array([2.0]), 0.5)]) == 2.0


def test_other_sentences_as_the_released_code_has_them() -> None:
    # the first two share an answer: largest gap of numbers 7 - 3 = 4, and 5 against nothing
    ids, answers = [[3, 9], [7, 9, 5], [1]], [1, 1, 0]
    scores = [np.array([0.1, 0.2]), np.array([0.1, 0.5, 0.4]), np.array([1.0])]
    assert among_sentences(ids, answers, scores) == pytest.approx(
        [0.5 / 5, 0.5 / 5, float("nan")], nan_ok=True
    )


def test_points_fill_the_ball_evenly() -> None:
    rng = np.random.default_rng(0)
    lengths = [float(np.linalg.norm(in_ball((3, 1), 2.0, rng))) for _ in range(2000)]
    assert max(lengths) <= 2
    # half of the volume of a ball in three dimensions lies within 0.794 of its radius
    assert np.mean(np.array(lengths) < 2 * 0.5 ** (1 / 3)) == pytest.approx(0.5, abs=0.03)


def shape(model: Any, text: Text) -> tuple[int, ...]:
    embedded = model.embed([text])
    return tuple(embedded.values[embedded.feature].shape)


def answers(model: Any, text: Text) -> FloatArray:
    rng = np.random.default_rng(1)
    shown = rng.random((70, text.n_features)) < 0.6
    rows = [probabilities(model, [text])]
    for how in Hiding:
        rows += masked_probabilities(model, [text], [shown], how)
        rows += masked_probabilities(model, [text], [shown[:5]], how)
    if hasattr(model, "attention"):
        rows.append(np.tile(model.attention([text])[0][:2], (1, 1)))
    return np.concatenate(rows)


@pytest.mark.parametrize("name", MODELS)
def test_moved_by_nothing_all_is_as_before(name: str, request: pytest.FixtureRequest) -> None:
    model = request.getfixturevalue(name)
    assert isinstance(model, Movable)
    before = answers(model, TEXT)
    with model.shifted(TEXT, np.zeros(shape(model, TEXT))):
        np.testing.assert_allclose(answers(model, TEXT), before, atol=2e-6)
        other = words("a dull plot")
    np.testing.assert_array_equal(answers(model, TEXT), before)
    assert probabilities(model, [other]).shape == (1, 2)


@pytest.mark.filterwarnings("ignore:.*Raise steps")
@pytest.mark.parametrize("name", MODELS)
def test_moving_a_text_is_changing_the_table(name: str, request: pytest.FixtureRequest) -> None:
    """No piece of the text stands there twice: a model with another table is the slow copy."""
    model = request.getfixturevalue(name)
    text = words("dull ." if name == "transformer" else "plot is dull . wonderful cast")
    by = 0.3 * np.random.default_rng(0).standard_normal(shape(model, text))
    slow = copy.deepcopy(model)
    with torch.no_grad():
        if name == "transformer":
            ids, alignment = model._pieces(text)
            places = torch.from_numpy(ids[np.unique(alignment.piece)])
            table = slow.model.get_input_embeddings()
        else:
            places, table = model.read([text])[0][0], slow.embedding
        assert len(set(places.tolist())) == len(places)
        table.weight[places] += torch.from_numpy(by).float()
    with model.shifted(text, by):
        np.testing.assert_allclose(answers(model, text), answers(slow, text), atol=2e-6)
        for spec in METHODS:
            method = explainers.make(spec)
            if method.missing(model) is None:
                one, two = (
                    attributions(method, m, [text], [1], ["x"], 0)[0].scores for m in (model, slow)
                )
                np.testing.assert_allclose(one, two, atol=1e-5, err_msg=spec)
    assert np.abs(answers(slow, text) - answers(model, text)).max() > 1e-3


def test_it_is_left_as_found_after_an_error(cnn: Any) -> None:
    before = cnn.embedding
    with pytest.raises(RuntimeError), cnn.shifted(TEXT, np.zeros(shape(cnn, TEXT))):
        raise RuntimeError
    assert cnn.embedding is before
    assert cnn.moved_text is None


def some(n: int = 4) -> Dataset:
    texts = ("the plot is dull", "a wonderful cast", "dull dull film", "")
    rows = tuple(Example(str(i), words(t), i % 2) for i, t in enumerate(texts[:n]))
    return Dataset("some", ("negative", "positive"), rows)


def test_an_audit_measures_it_where_it_is_named(cnn: Any, tmp_path: Path) -> None:
    spec = "local_lipschitz(points=6, radius=0.5)"
    methods = ["gradient", "lime(samples=60)", "random_scores"]
    one = audit(cnn, some(), methods, [spec], out=tmp_path / "one", batch_size=1)
    two = audit(cnn, some(), methods, [spec], out=tmp_path / "two", batch_size=3)
    model = next(iter(one.run.models))
    found, again = (a.run.summaries()[model] for a in (one, two))
    for method in methods:
        row = found[method]
        assert row[spec] == pytest.approx(again[method][spec], rel=1e-5)
    # what looks at nothing moves nowhere: the random numbers are the same
    assert found["random_scores"][spec]["lipschitz"] == 0
    assert found["gradient"][spec]["lipschitz"] > 0
    assert 0 < found["gradient"][spec]["kept"] <= 1
    usual = audit(cnn, some(), ["gradient"], out=tmp_path / "usual")
    assert not any("lipschitz" in m for m in usual.run.summaries()[model]["gradient"])


def test_the_literal_maximum_is_found(cnn: Any, tmp_path: Path) -> None:
    spec = "local_lipschitz(points=5, radius=0.2, relative=True)"
    data = some(1)
    run = audit(cnn, data, ["input_x_gradient"], [spec], out=tmp_path / "run", seed=3).run
    text, method = data.examples[0].input, explainers.make("input_x_gradient")
    target = int(probabilities(cnn, [text])[0].argmax())
    table = cnn.embed([text]).values[0].detach().double().numpy()
    rng, ratios = generator(0, "nearby", "0"), []
    base = attributions(method, cnn, [text], [target], ["0"], 3)[0].scores
    for _ in range(5):
        by = in_ball(table.shape, 0.2 * np.linalg.norm(table, axis=1).mean(), rng)
        slow = copy.deepcopy(cnn)
        with torch.no_grad():
            slow.embedding.weight[cnn.read([text])[0][0]] += torch.from_numpy(by).float()
        assert probabilities(slow, [text])[0].argmax() == target
        there = attributions(method, slow, [text], [target], ["0"], 3)[0].scores
        ratios.append(np.linalg.norm(there - base) / np.linalg.norm(by))
    (found,) = run.summaries().values()
    assert found["input_x_gradient"][spec]["lipschitz"] == pytest.approx(max(ratios), rel=1e-4)


def test_a_text_that_is_cut_is_moved_where_it_is_read(tmp_path: Path) -> None:
    model: Any = architectures.make("text_cnn(size=8, filters=4, length=3)").start(some(), seed=0)
    spec = "local_lipschitz(points=3)"
    run = audit(model, some(), ["gradient"], [spec], out=tmp_path / "run").run
    (found,) = run.summaries().values()
    assert found["gradient"][spec]["lipschitz"] > 0


def test_a_model_without_embeddings_has_no_figure(bag: WordWeights, tmp_path: Path) -> None:
    spec = "local_lipschitz(points=2)"
    run = audit(bag, some(), ["occlusion"], [spec], out=tmp_path / "run").run
    assert run.summaries()["WordWeights"]["occlusion"][spec]["lipschitz"] is None


@pytest.mark.parametrize("spec", ["local_lipschitz(points=0)", "local_lipschitz(radius=0.0)"])
def test_settings_without_sense_are_refused(spec: str) -> None:
    with pytest.raises(PluginError):
        metrics.make(spec)
