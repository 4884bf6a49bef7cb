"""Attention: of words, of sentences, through layers."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import veracity
from commands import run_command
from conftest import words
from veracity.auditing.audit import audit
from veracity.core.classifiers import Attentive
from veracity.core.errors import ModelError, PluginError
from veracity.core.examples import Dataset, Example
from veracity.core.inputs import FloatArray, Hiding, Text
from veracity.data.splits import Splits
from veracity.engine.gradients import evaluating
from veracity.models.architectures.hierarchical_attention import (
    ENDS,
    AttentiveGru,
    HierarchicalAttention,
    HierarchicalNetwork,
    HierarchicalText,
)
from veracity.models.loading import load_model

TEXTS = ("great", "the film was great . but the plot ? ! dull", "a dull film !", "好电影。不好！")


def explained(model: Any, text: str, spec: str) -> FloatArray:
    return veracity.explain(model, words(text), spec)[0].scores


def runs(text: Text) -> list[list[int]]:
    """Positions by sentence, found word by word: signs in a row end one sentence."""
    found: list[list[int]] = [[]]
    ended = False
    for i, word in enumerate(text.words):
        sign = bool(word) and all(c in ENDS for c in word)
        if ended and not sign:
            found.append([])
        found[-1].append(i)
        ended = sign
    return found


# ---- the hierarchical model ---------------------------------------------------------------------


class Fixed(torch.nn.Module):
    """Weights by decree, row after row."""

    def __init__(self, weights: list[list[float]]) -> None:
        super().__init__()
        self.rows = torch.tensor(weights)

    def forward(self, values: torch.Tensor, present: torch.Tensor) -> tuple[Any, Any]:
        return values.mean(dim=1), self.rows


def test_ex_1_4_words_and_products() -> None:
    network: Any = HierarchicalNetwork(HierarchicalAttention(hidden=2), size=4, n_labels=2)
    network.words = Fixed([[0.5, 0.5], [0.9, 0.1]])
    network.sentences = Fixed([[0.6, 0.4]])
    of_word, of_sentence = network.attention(
        torch.zeros(1, 4, 4), torch.ones(1, 4, dtype=torch.bool), torch.tensor([[0, 0, 1, 1]])
    )
    assert of_word[0].tolist() == pytest.approx([0.5, 0.5, 0.9, 0.1])
    assert (of_word * of_sentence)[0].tolist() == pytest.approx([0.30, 0.30, 0.36, 0.04])


def test_default_sizes_are_those_of_the_specification(made: Splits) -> None:
    model: Any = HierarchicalAttention().start(made.train, seed=0)
    assert model.embedding.embedding_dim == 200
    for level, size in ((model.network.words, 200), (model.network.sentences, 100)):
        assert (level.gru.input_size, level.gru.hidden_size, level.gru.bidirectional) == (
            size,
            50,
            True,
        )
        assert level.keys.weight.shape == (100, 100)
        assert level.context.weight.shape == (1, 100)
    assert set(ENDS) <= set(model.vocabulary.words)


def literal_reading(part: AttentiveGru, rows: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """The formulas of definitions 1.5 for one sentence, or one text, alone."""
    states = part.gru(rows.unsqueeze(0))[0][0]
    context = part.context.weight[0]
    scores = torch.stack([torch.tanh(part.keys(h)) @ context for h in states])
    alpha = torch.exp(scores - scores.max())
    alpha = alpha / alpha.sum()
    mean = torch.stack([a * h for a, h in zip(alpha, states, strict=True)]).sum(dim=0)
    return mean, alpha


def test_the_network_is_its_formulas(hierarchical: Any) -> None:
    texts = [words(t) for t in TEXTS]
    together = hierarchical.probabilities(texts)
    of_words = hierarchical.attention(texts)
    products = hierarchical.attention(texts, "product")
    network = hierarchical.network
    for i, text in enumerate(texts):
        with torch.no_grad():
            values = hierarchical.embed([text]).values[0]
            sentences = runs(text)
            vectors, alphas = zip(
                *(literal_reading(network.words, values[p]) for p in sentences), strict=True
            )
            document, betas = literal_reading(network.sentences, torch.stack(vectors))
            p = torch.softmax(network.head(document), dim=0)
        assert together[i] == pytest.approx(p.numpy(), abs=1e-6)
        assert of_words[i] == pytest.approx(torch.cat(alphas).numpy(), abs=1e-6)
        expected = torch.cat([b * a for a, b in zip(alphas, betas, strict=True)]).numpy()
        assert products[i] == pytest.approx(expected, abs=1e-6)


@cache
def untrained() -> HierarchicalText:
    """It has seen no sign that ends a sentence."""
    text = Text.of_words(["a", "fine", "film"])
    data = Dataset("d", ("no", "yes"), tuple(Example(str(i), text, i) for i in range(2)))
    model = HierarchicalAttention(size=4, hidden=3, attention=3).start(data, seed=0)
    assert isinstance(model, HierarchicalText)
    return model.eval()


@given(st.lists(st.sampled_from(["a", "film", "x", ".", "!", "？", "3.5"]), max_size=12))
def test_sentences_end_at_signs(written: list[str]) -> None:
    model = untrained()
    text = Text.of_words(written)
    numbers = model.sentences(model.read([text])[0])[0].tolist()
    expected = [n for n, places in enumerate(runs(text)) for _ in places]
    assert numbers == (expected or [0])


def test_long_signs_end_sentences_too() -> None:
    long = Text.of_words(["so", "...", "yes", "!!", "no"])
    data = Dataset("d", ("no", "yes"), tuple(Example(str(i), long, i) for i in range(2)))
    model = HierarchicalAttention(size=4, hidden=3).start(data, seed=0)
    assert isinstance(model, HierarchicalText)
    assert model.sentences(model.read([long])[0]).tolist() == [[0, 0, 1, 1, 2]]


@pytest.mark.parametrize("how", [Hiding.PAD, Hiding.MASK])
def test_a_hidden_sign_ends_no_sentence(how: Hiding, hierarchical: Any) -> None:
    text = words("a great film . it was dull")
    shown = np.array([w != "." for w in text.words])
    (weights,) = hierarchical.attention([text.keep(shown, how)])
    assert weights.sum() == pytest.approx(1.0, abs=1e-6)
    (whole,) = hierarchical.attention([text])
    assert whole.sum() == pytest.approx(2.0, abs=1e-6)


def test_sentences_stay_while_embeddings_move(hierarchical: Any) -> None:
    texts = [words(t) for t in TEXTS]
    with torch.no_grad(), evaluating(hierarchical):
        embedded = hierarchical.embed(texts)
        logits = hierarchical.logits(embedded)
        many = embedded.repeat(3).with_values(embedded.repeat(3).values * 1.0)
        assert torch.allclose(hierarchical.logits(many), logits.repeat_interleave(3, dim=0))
        # the sign's embedding is gone, its sentence is not
        nothing = embedded.with_values(torch.zeros_like(embedded.values))
        of_word = hierarchical.weights(nothing, "words")[1].sum()
    assert of_word.item() == pytest.approx(len(runs(texts[1])), abs=1e-6) == 3


@pytest.mark.filterwarnings("ignore:integrated_gradients")
@pytest.mark.parametrize(
    "spec", ["attention(product=True)", "gradient", "integrated_gradients(steps=20)", "occlusion"]
)
def test_company_and_order_do_not_matter(spec: str, hierarchical: Any, made: Splits) -> None:
    texts = [words(t) for t in (*TEXTS, "a film ! " * 20)] + [e.input for e in made.test][:20]
    together = veracity.explain(hierarchical, texts, spec, target=1)
    backwards = veracity.explain(hierarchical, texts[::-1], spec, target=1)[::-1]
    for text, one, other in zip(texts, together, backwards, strict=True):
        (alone,) = veracity.explain(hierarchical, text, spec, target=1)
        scale = max(1.0, np.abs(alone.scores).max())
        assert np.abs(one.scores - alone.scores).max() <= 1e-6 * scale
        assert np.abs(other.scores - alone.scores).max() <= 1e-6 * scale


def test_it_is_trained_saved_and_explained_by_commands(tmp_path: Path) -> None:
    def run(*arguments: str) -> Any:
        result = run_command(*arguments, "--json", cwd=tmp_path)
        assert result.returncode == 0, result.stderr
        return json.loads(result.stdout)

    spec = "hierarchical_attention(size=8, hidden=4, attention=4)"
    run("train", spec, "made_reviews(n=100)", "--epochs", "1", "--out", "m")
    model: Any = load_model(tmp_path / "m")
    assert model.attention_ways == ("words", "product")
    said = run("explain", "m", "a fine film. so dull!", "--method", "attention(product=True)")
    (row,) = said["attributions"]
    assert sum(row["scores"]) == pytest.approx(1.0, abs=1e-4)


# ---- what the method promises -------------------------------------------------------------------


def test_attention_of_one_level_sums_to_one(attention_lstm: Any) -> None:
    for text in TEXTS:
        assert explained(attention_lstm, text, "attention").sum() == pytest.approx(1.0, abs=1e-6)


def test_hierarchical_attention_sums_to_one_per_sentence(hierarchical: Any) -> None:
    for text in TEXTS:
        scores = explained(hierarchical, text, "attention")
        for places in runs(words(text)):
            assert scores[places].sum() == pytest.approx(1.0, abs=1e-6)
        product = explained(hierarchical, text, "attention(product=True)")
        assert product.sum() == pytest.approx(1.0, abs=1e-6)
        share = explained(hierarchical, text, "attention(renormalise=True)")
        assert share == pytest.approx(scores / len(runs(words(text))), abs=1e-6)
        one_sentence = len(runs(words(text))) == 1
        assert (np.abs(product - scores).max() < 1e-6) == one_sentence


@pytest.mark.parametrize("layers", ["last", "rollout"])
def test_transformer_attention_leaves_some_to_special_pieces(layers: str, transformer: Any) -> None:
    for text in TEXTS:
        raw = explained(transformer, text, f"attention(layers={layers})")
        assert (raw >= 0).all()
        assert 0 < raw.sum() < 1
        whole = explained(transformer, text, f"attention(layers={layers}, renormalise=True)")
        assert whole.sum() == pytest.approx(1.0)
        assert whole == pytest.approx(raw / raw.sum())


def test_rollout_is_the_product_of_all_layers(transformer: Any) -> None:
    texts = [words(t) for t in TEXTS]
    found = transformer.attention(texts, "rollout")
    model = transformer.model
    before = model.config._attn_implementation
    model.set_attn_implementation("eager")
    try:
        for text, row in zip(texts, found, strict=True):
            ids, alignment = transformer._pieces(text)
            with torch.no_grad():
                answer = model(input_ids=torch.tensor(ids)[None], output_attentions=True)
            n = len(ids)
            total = np.eye(n)
            for layer in answer.attentions:
                heads = layer[0].numpy()
                mixed = np.zeros((n, n))
                for i in range(n):
                    for j in range(n):
                        mean = sum(head[i, j] for head in heads) / len(heads)
                        mixed[i, j] = 0.5 * mean + 0.5 * (i == j)
                total = mixed @ total
            assert total.sum(axis=1) == pytest.approx(np.ones(n))
            assert row == pytest.approx(alignment.to_features(total[0]), abs=1e-9)
    finally:
        model.set_attn_implementation(before)
    last = transformer.attention(texts)
    assert any(np.abs(a - b).max() > 1e-3 for a, b in zip(last, found, strict=True))


def test_a_way_that_a_model_lacks_is_told(
    attention_lstm: Attentive, hierarchical: Any, transformer: Any, cnn: Any, tmp_path: Path
) -> None:
    for model, spec, has in (
        (attention_lstm, "attention(product=True)", "by product, not by words"),
        (hierarchical, "attention(layers=rollout)", "by rollout, not by words, product"),
        (transformer, "attention(product=True)", "by product, not by last layer, rollout"),
        (cnn, "attention(layers=rollout)", "a model with attention; this one has only"),
    ):
        with pytest.raises(ModelError, match=has):
            veracity.explain(model, "a great film", spec)
    with pytest.raises(
        ModelError, match="attention by bogus; this one has attention only by words"
    ):
        attention_lstm.attention([words("great")], "bogus")
    with pytest.raises(PluginError, match="got both"):
        veracity.explain(transformer, "x", "attention(layers=rollout, product=True)")
    # an audit leaves such a pair out, says why, and does the rest
    data = Dataset("d", cnn.labels, (Example("a", words("a great film . so dull"), 1),))
    models = {"lstm": attention_lstm, "han": hierarchical}
    run = audit(models, data, "attention(product=True), occlusion", out=tmp_path / "r").run
    (skipped,) = run.config.skipped
    assert skipped.model == "lstm"
    assert skipped.why == "needs a model with attention by product, not by words"
    assert run.attributions("han", "attention(product=True)")
    assert not run.attributions("lstm", "attention(product=True)")
