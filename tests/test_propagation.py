"""Relevance and differences against worked examples, literal copies, peers and strange models."""

from __future__ import annotations

import copy
import sys
import types
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

import veracity
from conftest import words
from veracity.core.attributions import Attribution
from veracity.core.classifiers import Embedded
from veracity.core.errors import ModelError, PluginError
from veracity.core.examples import Dataset
from veracity.core.inputs import Alignment, FloatArray, Text
from veracity.engine.call_counter import count_calls
from veracity.engine.differences import Differences
from veracity.engine.propagation import Propagation
from veracity.engine.relevance import LayerRule, Relevance

MODELS = ("cnn", "lstm", "attention_lstm", "transformer")
SENTENCES = (
    "the plot was great but the film was dull .",
    "great",
    "a film that was so dull that i left early , although i like the cast and the plot of it",
    "wonderful film , dull plot",
    "the film was great !",
    "dull dull dull dull dull dull",
    "a great plot and a great film",
    "was it dull ? it was not",
    "but the plot",
    "the cast was fine and the film was better than the plot",
)


class Network:
    """A stranger's model: a function of embeddings, asked about the same few numbers each time."""

    labels = ("no", "yes")

    def __init__(self, logits: Any, values: Tensor, present: Tensor | None = None) -> None:
        self.function = logits
        self.values = values  # (texts, words, size)
        self.present = (
            torch.ones(values.shape[:2], dtype=torch.bool) if present is None else present
        )

    def embed(self, inputs: Sequence[Text]) -> Embedded:
        rows = [int(text.words[0].removeprefix("t")) for text in inputs]
        there = self.present[rows]
        alignments = tuple(Alignment.identity(text.n_features) for text in inputs)
        return Embedded(self.values[rows], there, there, alignments)

    def logits(self, embedded: Embedded) -> Tensor:
        found: Tensor = self.function(embedded.values, embedded.present)
        return found

    def probabilities(self, inputs: Sequence[Text]) -> FloatArray:
        with torch.no_grad():
            found = torch.softmax(self.logits(self.embed(inputs)).double(), dim=-1)
        return np.asarray(found.numpy(), dtype=np.float64)

    @property
    def texts(self) -> list[Text]:
        return [
            Text.of_words([f"t{i}", *["word"] * (int(n) - 1)])
            for i, n in enumerate(self.present.sum(dim=1))
        ]


def of_two(function: Any, *values: float) -> Network:
    """A formula over two words of one number each."""

    def logits(x: Tensor, present: Tensor) -> Tensor:
        answer = function(x.squeeze(-1))
        return torch.stack([torch.zeros_like(answer), answer], dim=1)

    return Network(logits, torch.tensor(values).double().reshape(1, -1, 1))


def explained(model: Network, spec: str) -> list[Attribution]:
    return veracity.explain(model, model.texts, spec, target=1)


def doubled(model: Any) -> Any:
    return copy.deepcopy(model).double()


def without_biases(model: Any) -> Any:
    changed = doubled(model)
    with torch.no_grad():
        for name, weight in changed.named_parameters():
            if "bias" in name:
                weight.zero_()
    return changed


# ---- worked examples ---------------------------------------------------------------------------


def test_ex_3_8_relevance_of_a_linear_unit() -> None:
    weight = torch.tensor([[3.0, -1.0]]).double()
    model = of_two(lambda x: functional.linear(x, weight).squeeze(-1), 1.0, 2.0)
    (found,) = explained(model, "lrp")
    assert found.scores == pytest.approx([3.0, -2.0], abs=1e-6)
    assert found.output_value == 1.0
    (found,) = explained(model, "lrp(epsilon=0.01)")
    assert found.scores == pytest.approx([2.970297, -1.980198], abs=1e-6)


def test_ex_3_8_the_bias_keeps_its_share_unless_it_is_dropped() -> None:
    weight, bias = torch.tensor([[3.0, -1.0]]).double(), torch.tensor([1.0]).double()
    model = of_two(lambda x: functional.linear(x, weight, bias).squeeze(-1), 1.0, 2.0)
    (kept,) = explained(model, "lrp")
    assert kept.scores == pytest.approx([3.0, -2.0], abs=1e-6)
    assert kept.notes["not_in_words"] == pytest.approx(1.0, abs=1e-6)
    (dropped,) = explained(model, "lrp(drop_bias=True)")
    assert dropped.scores == pytest.approx([6.0, -4.0], abs=1e-5)
    (positive,) = explained(model, "lrp(rule=z_plus)")
    assert positive.scores == pytest.approx([2 * 3 / (3 + 1), 0.0], abs=1e-6)
    (gamma,) = explained(model, "lrp(rule=gamma, gamma=1.0)")
    whole = 3 * 2 - 2 + 1 * 2  # positive shares count twice, that of the bias among them
    assert gamma.scores == pytest.approx([2 * 6 / whole, 2 * -2 / whole], abs=1e-6)


def test_ex_3_9_contributions_through_a_relu() -> None:
    model = of_two(lambda x: torch.relu(3 * x[:, 0] - x[:, 1] - 0.5), 1.0, 2.0)
    (found,) = explained(model, "deep_lift")
    assert found.scores == pytest.approx([1.5, -1.0])
    assert found.base_value == 0.0
    assert found.output_value == 0.5
    assert found.notes["gap"] < 1e-12


def test_a_product_is_shared_by_the_mean_of_the_other_factor() -> None:
    (found,) = explained(of_two(lambda x: x[:, 0] * x[:, 1] + x[:, 0], 2.0, 3.0), "deep_lift")
    assert found.scores == pytest.approx([2 * 1.5 + 2, 3 * 1.0])


# ---- literal copies ----------------------------------------------------------------------------


def literal(x: FloatArray, parts: dict[str, FloatArray], rule: str) -> FloatArray:
    """One filter of width two, its strongest place, a ReLU and one output, sum by sum.

    x: (words, size) → (words,)
    """
    filter_, bias, head, head_bias = (parts[k] for k in ("filter", "bias", "head", "head_bias"))
    starts = range(len(x) - 1)
    z = [float(bias) + sum(float(x[t + k] @ filter_[k]) for k in (0, 1)) for t in starts]
    winner = int(np.argmax(z))
    shown = max(z[winner], 0.0)
    scores = np.zeros(len(x))
    if rule == "lrp":
        epsilon = 1e-7
        answer = float(head) * shown + float(head_bias)
        relevance = shown * float(head) / (answer + epsilon * np.sign(answer)) * answer
        if shown > 0:
            for k in (0, 1):
                for d in range(x.shape[1]):
                    share = x[winner + k, d] * filter_[k, d]
                    scores[winner + k] += share / (z[winner] + epsilon) * relevance
        return scores
    before = float(bias)
    multiplier = (shown - max(before, 0.0)) / (z[winner] - before) * float(head)
    for k in (0, 1):
        scores[winner + k] = multiplier * float(x[winner + k] @ filter_[k])
    return scores


@pytest.mark.parametrize("rule", ["lrp", "deep_lift"])
@pytest.mark.parametrize("bias", [0.3, -0.3, 0.0])
def test_one_filter_by_hand(rule: str, bias: float) -> None:
    generator = np.random.default_rng(5)
    parts = {
        "filter": generator.normal(size=(2, 3)),
        "bias": np.array(bias),
        "head": np.array(-1.7),
        "head_bias": np.array(0.2),
    }
    weight = torch.tensor(parts["filter"].T[None])  # (1, size, width)

    def logits(x: Tensor, present: Tensor) -> Tensor:
        maps = functional.conv1d(x.transpose(1, 2), weight, torch.tensor(parts["bias"][None]))
        best = torch.relu(maps.max(dim=2).values)
        head, head_bias = torch.tensor(parts["head"][None, None]), torch.tensor(parts["head_bias"])
        answer = functional.linear(best, head, head_bias[None])
        return torch.cat([torch.zeros_like(answer), answer], dim=1)

    x = generator.normal(size=(20, 6, 3))
    found = explained(Network(logits, torch.tensor(x)), rule)
    expected = np.array([literal(row, parts, rule) for row in x])
    assert np.abs(expected).max() > 0.1
    assert np.array([a.scores for a in found]) == pytest.approx(expected, abs=1e-9)


# ---- our models --------------------------------------------------------------------------------


def logits_under(rules: Propagation, model: Any, embedded: Embedded) -> Tensor:
    seen = embedded.with_values(embedded.values.detach().requires_grad_(True).clone())
    with rules:
        found: Tensor = model.logits(seen)
    return found.detach()


@pytest.mark.parametrize("rules", [lambda: Relevance(LayerRule()), Differences])
@pytest.mark.parametrize("name", MODELS)
def test_the_network_that_is_followed_is_the_classifier(
    name: str, rules: Any, request: Any
) -> None:
    model = request.getfixturevalue(name).eval()
    embedded = model.embed([words(s) for s in SENTENCES])
    plain = model.logits(embedded).detach()
    assert plain.std(dim=0).min() > 1e-4  # a constant would agree with anything
    difference = (logits_under(rules(), model, embedded) - plain).abs().max()
    assert difference < (1e-12 if plain.dtype == torch.float64 else 2e-6)


@pytest.mark.parametrize("name", MODELS)
def test_contributions_sum_to_the_difference(name: str, request: Any) -> None:
    model = request.getfixturevalue(name)
    texts = [words(s) for s in SENTENCES]
    embedded = model.embed(texts)
    nothing = torch.where(embedded.feature.unsqueeze(-1), 0, embedded.values)
    base = model.logits(embedded.with_values(nothing)).detach()
    for target in (0, 1):
        found = veracity.explain(model, texts, "deep_lift", target=target)
        for row, a in zip(base, found, strict=True):
            assert a.base_value == pytest.approx(float(row[target]), abs=1e-5)
            assert a.scores.sum() == pytest.approx(a.output_value - a.base_value, abs=1e-5)
            assert a.notes["gap"] < 1e-9  # weights may be float32, the sums are not
    moved = [abs(a.output_value - a.base_value) for a in found]
    assert max(moved) > 0.01


@pytest.mark.parametrize("implementation", ["sdpa", "eager"])
def test_contributions_of_a_float32_transformer(implementation: str, transformer: Any) -> None:
    model = copy.deepcopy(transformer).float()
    model.model.set_attn_implementation(implementation)
    texts = [words(s) for s in SENTENCES]
    exact = veracity.explain(transformer, texts, "deep_lift", target=1)
    relevance = veracity.explain(transformer, texts, "lrp", target=1)
    for a, b in zip(veracity.explain(model, texts, "deep_lift", target=1), exact, strict=True):
        assert a.notes["gap"] < 1e-5
        assert a.scores == pytest.approx(b.scores, abs=1e-5)
    for a, b in zip(veracity.explain(model, texts, "lrp", target=1), relevance, strict=True):
        assert a.scores == pytest.approx(b.scores, abs=1e-5)
    assert {p.dtype for p in model.parameters()} == {torch.float32}


@pytest.mark.parametrize("name", ["cnn", "lstm", "attention_lstm"])
def test_relevance_is_conserved_without_biases(name: str, request: Any) -> None:
    model = request.getfixturevalue(name)
    # in a text shorter than a filter, a window of nothing but padding can win: its bias has no word
    texts = [words(s) for s in SENTENCES if words(s).n_features >= 5]
    for a in veracity.explain(without_biases(model), texts, "lrp", target=1):
        assert a.scores.sum() == pytest.approx(a.output_value, abs=1e-5)
        assert abs(a.output_value) > 1e-3
    for a in veracity.explain(model, texts, "lrp(drop_bias=True)", target=1):
        # a share of the bias over a sum near zero is large, and so is what epsilon takes of it
        assert a.scores.sum() == pytest.approx(
            a.output_value, abs=1e-4 * max(1, np.abs(a.scores).max())
        )
    kept = veracity.explain(model, texts, "lrp", target=1)
    assert max(abs(a.notes["not_in_words"]) for a in kept) > 0.05


def test_relevance_without_biases_is_input_times_gradient(cnn: Any) -> None:
    model = without_biases(cnn)
    texts = [words(s) for s in SENTENCES]
    ours = veracity.explain(model, texts, "lrp(epsilon=1e-12)", target=1)
    products = veracity.explain(model, texts, "input_x_gradient", target=1)
    for a, b in zip(ours, products, strict=True):
        assert a.scores == pytest.approx(b.scores, abs=1e-9)
    with_biases = veracity.explain(cnn, texts, "lrp(drop_bias=True)", target=1)
    others = veracity.explain(cnn, texts, "input_x_gradient", target=1)
    assert (
        max(np.abs(a.scores - b.scores).max() for a, b in zip(with_biases, others, strict=True))
        > 0.01
    )


@pytest.mark.parametrize(
    "spec", ["lrp", "lrp(rule=gamma)", "lrp(rule=z_plus)", "lrp(drop_bias=True)", "deep_lift"]
)
@pytest.mark.parametrize("name", MODELS)
def test_neighbours_and_padding_do_not_matter(name: str, spec: str, request: Any) -> None:
    model = request.getfixturevalue(name)
    texts = [words(s) for s in SENTENCES]
    together = veracity.explain(model, texts, spec, target=1)
    for text, a in zip(texts, together, strict=True):
        (alone,) = veracity.explain(model, text, spec, target=1)
        assert a.scores == pytest.approx(alone.scores, rel=1e-6, abs=1e-9)
        assert np.isfinite(a.scores).all()


def test_what_is_asked_is_counted(cnn: Any) -> None:
    texts = [words(s) for s in SENTENCES[:3]]
    for spec, passes in (("lrp", 1), ("deep_lift", 2)):
        with count_calls() as plain:
            veracity.explain(cnn, texts, "gradient", target=1)
        with count_calls() as tally:
            veracity.explain(cnn, texts, spec, target=1)
        assert tally.questions - plain.questions == 3 * (passes - 1)


# ---- strangers' models -------------------------------------------------------------------------


def recurrent(kind: Any, *, packed: bool, **options: Any) -> Any:
    layer = kind(4, 6, batch_first=True, **options)
    head = nn.LazyLinear(2)

    def logits(x: Tensor, present: Tensor) -> Tensor:
        if packed:
            lengths = present.sum(dim=1)
            rows = pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=False)
            states, last = layer(rows)
            states, _ = pad_packed_sequence(states, batch_first=True, total_length=x.shape[1])
        else:
            states, last = layer(x)
        end = last[0] if isinstance(last, tuple) else last
        found: Tensor = head((states * present.unsqueeze(-1)).sum(dim=1)) + end.sum(dim=0)[:, :2]
        return found

    return logits


def encoder(**options: Any) -> Any:
    layers = nn.TransformerEncoder(
        nn.TransformerEncoderLayer(4, 2, 8, **options), 2, enable_nested_tensor=False
    ).eval()
    head = nn.Linear(4, 2)

    def logits(x: Tensor, present: Tensor) -> Tensor:
        first = options.get("batch_first", False)
        found = layers(x if first else x.transpose(0, 1), src_key_padding_mask=~present)
        answer: Tensor = head(found[:, 0] if first else found[0])
        return answer

    return logits


def by_steps() -> Any:
    long, gated, head = nn.LSTMCell(4, 4), nn.GRUCell(4, 4), nn.Linear(4, 2)

    def logits(x: Tensor, present: Tensor) -> Tensor:
        shown = memory = other = torch.zeros(len(x), 4)
        for t in range(x.shape[1]):
            shown, memory = long(x[:, t], (shown, memory))
            other = gated(x[:, t], other)
        found: Tensor = head(shown + other)
        return found

    return logits


def written_into() -> Any:
    weight = nn.Parameter(torch.randn(4, 2))

    def logits(x: Tensor, present: Tensor) -> Tensor:
        y = x.clone()
        y.mul_(x)
        y = functional.relu(y - 0.1, inplace=True) + 0.5 * x
        y.tanh_()
        y = y / (1 + x.abs())
        pairs = torch.sigmoid(torch.einsum("bnd,bmd->bnm", y, x))
        kept = torch.zeros(len(x), 4)
        kept[:] = (pairs @ y).amax(dim=1)
        return kept @ weight + 1 / (1 + (x**2).sum(dim=(1, 2))).unsqueeze(1)

    return logits


def pooled() -> Any:
    narrow, flat, head = nn.Conv1d(4, 5, 3), nn.Conv2d(1, 5, (2, 4)), nn.Linear(5, 2)

    def logits(x: Tensor, present: Tensor) -> Tensor:
        some = functional.max_pool1d(narrow(x.transpose(1, 2)), 2)
        one = functional.adaptive_max_pool1d(torch.relu(flat(x.unsqueeze(1)).squeeze(3)), 1)
        found: Tensor = head(functional.elu(some).mean(dim=-1)) + head(one.squeeze(-1))
        return functional.log_softmax(found, dim=-1)

    return logits


def weighed() -> Any:
    attention = nn.MultiheadAttention(4, 2, batch_first=True).eval()
    norm, head = nn.LayerNorm(4), nn.Linear(4, 2)

    def logits(x: Tensor, present: Tensor) -> Tensor:
        seen, _ = attention(x, x, x, key_padding_mask=~present, need_weights=True)
        # the three spellings of one function
        scores = seen.sum(dim=-1).masked_fill(~present, -torch.inf)
        weights = scores.softmax(dim=1) + torch.softmax(scores, 1) + functional.softmax(scores, 1)
        found: Tensor = head(norm((weights.unsqueeze(-1) * functional.silu(seen)).sum(dim=1)))
        return found

    return logits


STRANGERS: dict[str, Any] = {
    "packed LSTM": lambda: recurrent(nn.LSTM, packed=True, num_layers=2, bidirectional=True),
    "projected LSTM": lambda: recurrent(nn.LSTM, packed=False, num_layers=2, proj_size=3),
    "GRU": lambda: recurrent(nn.GRU, packed=False, num_layers=2, bias=False),
    "packed GRU": lambda: recurrent(nn.GRU, packed=True, bidirectional=True),
    "RNN": lambda: recurrent(nn.RNN, packed=True, bidirectional=True, nonlinearity="relu"),
    "encoder": lambda: encoder(batch_first=True, activation="gelu"),
    "encoder, words first": lambda: encoder(norm_first=True),
    "by steps": by_steps,
    "written into": written_into,
    "pooled": pooled,
    "weighed": weighed,
}


@pytest.mark.filterwarnings("ignore:LSTM with projections is not supported with oneDNN")
@pytest.mark.parametrize("name", STRANGERS)
def test_strangers_networks_are_followed(name: str) -> None:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(3)
        values = torch.randn(4, 6, 4)
        function = STRANGERS[name]()
        present = torch.arange(6) < torch.tensor([6, 4, 6, 5])[:, None]
        model = Network(function, values, present)
        plain = model.logits(model.embed(model.texts)).detach()[:, 1]
    found = explained(model, "deep_lift")
    relevance = explained(model, "lrp")
    for answer, a, b in zip(plain, found, relevance, strict=True):
        # what is kept in float32 on the way rounds; nothing else is lost
        assert a.notes["gap"] < (1e-6 if name == "written into" else 1e-10)
        assert a.output_value == pytest.approx(float(answer), abs=2e-6)
        assert b.output_value == pytest.approx(float(answer), abs=2e-6)
    assert max(abs(a.output_value - a.base_value) for a in found) > 1e-3


def test_a_gate_is_a_constant() -> None:
    (found,) = explained(of_two(lambda x: x[:, 0] * torch.sigmoid(x[:, 1]), 2.0, 3.0), "lrp")
    assert found.scores == pytest.approx([found.output_value, 0.0])
    (found,) = explained(of_two(lambda x: torch.tanh(x[:, 0]) * x[:, 1], 2.0, 3.0), "lrp")
    assert found.scores == pytest.approx([found.output_value / 2] * 2)


@pytest.mark.parametrize(
    "active",
    [nn.ReLU6(), functional.relu6, lambda x: x.clamp(0, 6), lambda x: torch.clip(x, min=0, max=6)],
)
def test_what_is_cut_off_keeps_its_relevance(active: Any) -> None:
    model = of_two(lambda x: active(4 * x[:, 0]) + active(-x[:, 1]) + x[:, 1], 2.0, 1.0)
    (found,) = explained(model, "lrp")
    assert found.scores == pytest.approx([6.0, 1.0])


def test_a_guard_against_zero_is_no_activation() -> None:
    (found,) = explained(of_two(lambda x: x[:, 0].clamp(min=3) + x[:, 1], 2.0, 1.0), "lrp")
    assert found.scores == pytest.approx([0.0, 1.0])


def test_what_no_rule_covers_is_told() -> None:
    model = of_two(lambda x: torch.atan(4 * x[:, 0]) + x[:, 1], 1.0, 1.0)
    with pytest.warns(UserWarning, match=r"deep_lift: on 1 of 1 texts.*no rule covers"):
        (found,) = explained(model, "deep_lift")
    assert found.notes["gap"] > 0.1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        explained(of_two(lambda x: torch.tanh(4 * x[:, 0]) + x[:, 1], 1.0, 1.0), "deep_lift")


def test_a_model_that_changes_its_steps_is_told() -> None:
    def function(x: Tensor) -> Tensor:
        return torch.tanh(x[:, 0]) if float(x.detach().sum()) > 1 else torch.relu(x[:, 0])

    with pytest.raises(ModelError, match="same steps"):
        explained(of_two(function, 1.0, 1.0), "deep_lift")


def test_a_model_of_gates_alone_is_told() -> None:
    with pytest.raises(ModelError, match="no path leads back"):
        model = Network(lambda x, _: torch.sigmoid(x[:, :2, 0]), torch.ones(1, 2, 1))
        explained(model, "lrp")


def test_settings_are_checked() -> None:
    for spec in ("lrp(epsilon=0)", "lrp(gamma=-1)", "lrp(rule=alpha)"):
        with pytest.raises(PluginError):
            explained(of_two(lambda x: x.sum(dim=1), 1.0, 1.0), spec)


@pytest.mark.parametrize("spec", ["lrp", "deep_lift"])
def test_an_error_leaves_no_trace(spec: str, cnn: Any) -> None:
    text = words(SENTENCES[0])
    before = veracity.explain(cnn, text, "input_x_gradient", target=1)[0].scores
    plain = cnn.probabilities([text])

    def failing(x: Tensor, present: Tensor) -> Tensor:
        torch.tanh(functional.softmax(x, dim=-1))
        raise RuntimeError("a stranger's fault")

    with pytest.raises(RuntimeError, match="a stranger's fault"):
        explained(Network(failing, torch.ones(1, 2, 2)), spec)
    x = torch.ones(3, requires_grad=True)
    (gradient,) = torch.autograd.grad(torch.sigmoid(x).sum(), x)
    assert gradient.abs().min() > 0.1  # under the rules of relevance it would be nothing
    after = veracity.explain(cnn, text, "input_x_gradient", target=1)[0].scores
    assert np.array_equal(before, after)
    assert np.array_equal(plain, cnn.probabilities([text]))


# ---- peers -------------------------------------------------------------------------------------


class ByModules(nn.Module):
    """The trained CNN in the modules that peers hang their hooks on, with its own weights."""

    def __init__(self, model: Any) -> None:
        super().__init__()
        network = doubled(model).network
        self.convolutions, self.head = network.convolutions, network.head
        self.activations = nn.ModuleList(nn.ReLU() for _ in self.convolutions)

    def forward(self, values: Tensor) -> Tensor:
        best = [
            activation(first_of_equals(convolution(values)))
            for convolution, activation in zip(self.convolutions, self.activations, strict=True)
        ]
        found: Tensor = self.head(torch.cat(best, dim=1))
        return found


def first_of_equals(matches: Tensor) -> Tensor:
    """The largest match of each filter. N-grams can be alike, such as twice an unknown word and a
    comma: rounding, which differs between machines, must not choose among them."""
    later = 1e-9 * torch.arange(matches.shape[2])
    place = (matches - later).argmax(dim=2, keepdim=True)
    return matches.gather(2, place).squeeze(2)


def peers_largest_difference(cnn: Any, reviews: Dataset, spec: str, peer: Any) -> float:
    """Over 50 real sentences; a peer gets columns (1, size, words) and gives as many numbers."""
    worst, largest = 0.0, 0.0
    # peers know no padding: texts as long as the widest filter need none
    texts = [e.input for e in reviews if e.input.n_features >= 5][:50]
    assert len(texts) == 50
    network = ByModules(cnn)
    for text in texts:
        values = cnn.embed([text]).values.detach().double().transpose(1, 2)
        expected = peer(network, values).detach().sum(dim=1)[0].numpy()
        ours = veracity.explain(cnn, text, spec, target=1)[0].scores
        worst = max(worst, float(np.abs(ours - expected).max()))
        largest = max(largest, float(np.abs(ours).max()))
    print(f"{spec}: largest difference {worst:.2e}, largest score {largest:.2f}")
    assert largest > 0.1
    return worst


@pytest.mark.filterwarnings("ignore")
def test_relevance_equals_captum(cnn: Any, reviews: Dataset) -> None:
    from captum.attr import LRP
    from captum.attr._utils.lrp_rules import EpsilonRule

    def peer(network: ByModules, values: Tensor) -> Tensor:
        # a fresh copy per text: captum keeps relevances on the rules it is given
        fresh = copy.deepcopy(network)
        for layer in (*fresh.convolutions, fresh.head):
            layer.rule = EpsilonRule(1e-7)
        found: Tensor = LRP(fresh).attribute(values.requires_grad_(True), target=1)
        return found

    assert peers_largest_difference(cnn, reviews, "lrp", peer) < 1e-4


@pytest.mark.filterwarnings("ignore")
def test_contributions_equal_captum(cnn: Any, reviews: Dataset) -> None:
    from captum.attr import DeepLift

    def peer(network: ByModules, values: Tensor) -> Tensor:
        found: Tensor = DeepLift(network).attribute(values, torch.zeros_like(values), target=1)
        return found

    assert peers_largest_difference(cnn, reviews, "deep_lift", peer) < 1e-4


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("kind", ["epsilon", "gamma", "z_plus"])
def test_relevance_equals_zennit(
    kind: str, cnn: Any, reviews: Dataset, monkeypatch: pytest.MonkeyPatch
) -> None:
    # its part for torchvision stays out: no build of that fits the small CPU torch
    monkeypatch.setitem(sys.modules, "zennit.torchvision", types.ModuleType("zennit.torchvision"))
    from zennit import rules
    from zennit.core import Composite as composite  # noqa: N813

    made: Any = {
        "epsilon": lambda: rules.Epsilon(epsilon=1e-7),
        "gamma": lambda: rules.Gamma(gamma=0.25, stabilizer=1e-7),
        "z_plus": lambda: rules.ZPlus(stabilizer=1e-7),
    }[kind]

    def choose(context: Any, name: str, module: nn.Module) -> Any:
        return made() if isinstance(module, nn.Conv1d | nn.Linear) else None

    def peer(network: ByModules, values: Tensor) -> Tensor:
        values.requires_grad_(True)
        with composite(module_map=choose).context(network) as changed:
            answer = changed(values)
            start = torch.zeros_like(answer)
            start[:, 1] = answer[:, 1].detach()
            (found,) = torch.autograd.grad(answer, values, start)
        return found

    assert peers_largest_difference(cnn, reviews, f"lrp(rule={kind})", peer) < 1e-4
