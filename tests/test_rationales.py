"""Models that choose the words they read: cells, gates, losses, training."""

from __future__ import annotations

import dataclasses
import itertools
import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

import veracity
from conftest import words
from veracity.core.classifiers import Selective, abilities
from veracity.core.errors import ModelError, PluginError
from veracity.core.examples import Dataset, Example
from veracity.core.inputs import FloatArray, Text
from veracity.data.loading import load_data
from veracity.data.splits import Splits, split
from veracity.engine.relevance import LayerRule, Relevance
from veracity.models.architecture import Training
from veracity.models.architectures import architectures
from veracity.models.architectures.rationale_cr import HardKuma, HardKumaNetwork, RationaleCr
from veracity.models.architectures.rationale_rl import BernoulliNetwork, RationaleRl
from veracity.models.loading import load_model, save_model
from veracity.models.rationales import Gates, penalties
from veracity.models.recurrent_convolution import PackedOrder, RecurrentConvolution, WordInputs
from veracity.models.training import at_snapshot, train

MODELS = ("rationale_rl", "rationale_cr")
KINDS = [
    f"{name}({settings})"
    for name in MODELS
    for settings in (
        "size=6, hidden=5, memory=3",
        "size=6, hidden=5, dependent=False",
        "size=6, hidden=5, memory=2, encoder=bilstm",
    )
]


# ---- the recurrent convolution -----------------------------------------------------------------


def filled(module: nn.Module, seed: int) -> nn.Module:
    """Weights and biases that are all different."""
    torch.manual_seed(seed)
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.copy_(torch.randn_like(parameter) * 0.6)
    return module


def literal_states(cell: RecurrentConvolution, read: Tensor, way: int) -> Tensor:
    """One text, word by word, as the SPEC says it. (words, size) → (words, hidden)"""
    into, first, second = cell.word_weight[way].chunk(3)
    h = c1 = c2 = torch.zeros(cell.hidden, dtype=read.dtype)
    found = []
    for x in read.flip(0) if way else read:
        gate = torch.sigmoid(into @ x + cell.state_weight[way] @ h + cell.gate_bias[way])
        c1, c2 = (
            gate * c1 + (1 - gate) * (first @ x),
            gate * c2 + (1 - gate) * (c1 + second @ x),
        )
        h = torch.tanh(c2 + cell.output_bias[way])
        found.append(h)
    states = torch.stack(found)
    return states.flip(0) if way else states


def both_ways(cell: RecurrentConvolution, read: Tensor) -> Tensor:
    ways = range(len(cell.word_weight))
    return torch.cat([literal_states(cell, read, way) for way in ways], dim=1)


def some_batch(seed: int, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
    """Numbers of padded texts, and which words are read: none of some texts, with gaps in all."""
    rng = np.random.default_rng(seed)
    values = torch.from_numpy(rng.normal(size=(6, 9, 4))).to(dtype)
    read = torch.from_numpy(rng.random((6, 9)) < rng.random((6, 1)))
    read[seed % 6] = False
    read[(seed + 1) % 6] = True
    return values, read


def test_ex_1_5_recurrent_convolution() -> None:
    cell = RecurrentConvolution(size=2, hidden=1, directions=1)
    with torch.no_grad():
        for parameter in cell.parameters():
            parameter.zero_()  # so the gate is one half
        cell.word_weight[0, 1, 0] = cell.word_weight[0, 2, 1] = 1.0
        read = torch.tensor([[2.0, 1.0], [0.0, 1.0]])
        order = PackedOrder.of(torch.ones(1, 2, dtype=torch.bool))
        state: tuple[Tensor, ...] = (torch.zeros(1, 1),) * 3
        for x, expected in zip(read, [(0.46212, 1.0, 0.5), (0.84828, 0.5, 1.25)], strict=True):
            state = cell.step(functional.linear(x[None], cell.word_weight[0]), state)
            assert [s.item() for s in state] == pytest.approx(expected, abs=1e-5)
        for plain in (False, True):
            found = cell(WordInputs(read, torch.arange(2)), order, plain=plain)
            assert found.flatten().tolist() == pytest.approx([0.46212, 0.84828], abs=1e-5)


@pytest.mark.parametrize("directions", [1, 2])
@pytest.mark.parametrize(("dtype", "near"), [(torch.float64, 1e-9), (torch.float32, 1e-5)])
def test_the_fast_recurrence_is_the_literal_one(
    dtype: torch.dtype, near: float, directions: int
) -> None:
    for seed in range(8):
        cell: Any = filled(RecurrentConvolution(4, 5, directions), seed).to(dtype)
        values, read = some_batch(seed, dtype)
        order = PackedOrder.of(read)
        expected = torch.zeros(6, 9, 5 * directions, dtype=dtype)
        for i in range(6):
            if read[i].any():
                expected[i, read[i]] = both_ways(cell, values[i, read[i]])
        weights = torch.randn_like(expected)
        slow = torch.autograd.grad(
            (expected * weights).sum(), list(cell.parameters()), retain_graph=True
        )
        for plain in (False, True):
            leaf = values.clone().requires_grad_(True)
            found = cell(WordInputs.of(leaf).read(order), order, plain=plain)
            assert torch.allclose(found, order.taken(expected), atol=near)
            total = (found * order.taken(weights)).sum()
            fast = torch.autograd.grad(total, [*cell.parameters(), leaf])
            for a, b in zip(fast, slow, strict=False):
                assert torch.allclose(a, b, atol=near * max(1.0, b.abs().max().item()))
            assert not fast[-1][~read].any()


def test_words_that_recur_are_multiplied_once_and_count_each_time() -> None:
    cell: Any = filled(RecurrentConvolution(4, 3), 1).double()
    _, read = some_batch(2, torch.float64)
    order = PackedOrder.of(read)
    table = torch.randn(5, 4, dtype=torch.float64, requires_grad=True)
    which = torch.randint(5, read.shape)
    scale = torch.rand(len(order.places), dtype=torch.float64, requires_grad=True)
    weights = torch.randn(len(order.places), 6, dtype=torch.float64)
    recurring = WordInputs(table, which).read(order, scale)
    spelt = WordInputs(recurring.spelt, torch.arange(len(scale)))
    found = []
    for given in (recurring, spelt):
        states = cell(given, order)
        leaves = [table, scale, *cell.parameters()]
        found.append([states, *torch.autograd.grad((states * weights).sum(), leaves)])
    for a, b in zip(*found, strict=True):
        assert torch.allclose(a, b, atol=1e-9)


def test_gradients_of_the_fast_recurrence_are_those_of_its_values() -> None:
    cell: Any = filled(RecurrentConvolution(4, 2), 1).double()
    values, read = some_batch(3, torch.float64)
    order = PackedOrder.of(read)
    leaf = order.taken(values).requires_grad_(True)
    parameters = list(cell.parameters())

    def run(x: Tensor, *_: Tensor) -> Tensor:
        found: Tensor = cell(WordInputs(x, torch.arange(len(x))), order)
        return found

    assert torch.autograd.gradcheck(run, (leaf, *parameters))


@pytest.mark.parametrize("plain", [False, True])
def test_words_that_do_not_move_the_state_might_as_well_not_be_there(plain: bool) -> None:
    for spec in KINDS:
        network: Any = filled(architectures.make(spec).network(4, 2), 2).double().eval()  # type: ignore[attr-defined]
        values, read = some_batch(5, torch.float64)
        present = torch.ones_like(read)
        everything = PackedOrder.of(present)
        taken = PackedOrder.of(read)
        given = WordInputs.of(values)
        expected = taken.ends(network.reader(given.read(taken), taken, plain=plain), 6)
        moves = everything.taken(read)
        skipped = network.reader(given.read(everything), everything, moves=moves, plain=True)
        assert torch.allclose(everything.ends(skipped, 6), expected, atol=1e-12)
        assert not expected[~read.any(dim=1)].any()


def test_nothing_to_read_is_defined() -> None:
    for spec in KINDS:
        network: Any = filled(architectures.make(spec).network(4, 2), 2).eval()  # type: ignore[attr-defined]
        values = torch.randn(3, 5, 4, requires_grad=True)
        present = torch.ones(3, 5, dtype=torch.bool)
        logits = network.read(WordInputs.of(values), present, torch.zeros(3, 5))
        assert torch.equal(logits, network.head.bias.expand(3, 2))
        (gradient,) = torch.autograd.grad(logits.sum(), values)
        assert not gradient.any()


# ---- gates -------------------------------------------------------------------------------------


def literal_gates(gate: Gates, states: Tensor, choose: Any, noise: Tensor) -> tuple[Tensor, Tensor]:
    """One text: each gate reads [h; s], then s = cell([h; z], s)."""
    memory: Any = gate.memory
    s = (torch.zeros(memory.hidden, dtype=states.dtype),) * 3
    numbers, gates = [], []
    for h, u in zip(states, noise, strict=True):
        numbers.append(gate.scores(torch.cat([h, s[0]])))
        gates.append(choose(numbers[-1][None], u[None]).squeeze(0))
        x = torch.cat([h, gates[-1][None]])
        parts = memory.word_weight[0] @ x
        s = tuple(t.squeeze(0) for t in memory.step(parts[None], tuple(t[None] for t in s)))
    return torch.stack(numbers), torch.stack(gates)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("kind", [BernoulliNetwork, HardKumaNetwork])
@pytest.mark.parametrize("chance", [True, False])
def test_dependent_gates_are_the_literal_ones(kind: Any, chance: bool, seed: int) -> None:
    settings = (RationaleRl if kind is BernoulliNetwork else RationaleCr)(hidden=2, memory=3)
    network: Any = filled(kind(settings, 4, 2), seed).double()
    values, read = some_batch(seed, torch.float64)
    order = PackedOrder.of(read)
    noise = torch.rand(6, 9, dtype=torch.float64)

    def choose(numbers: Tensor, u: Tensor) -> Tensor:
        found: Tensor = network.sampled(numbers, u) if chance else network.decided(numbers)
        return found

    per_number, per_gate = torch.randn(6, 9, network.numbers).double(), torch.randn(6, 9).double()
    total = torch.zeros((), dtype=torch.float64)
    expected = torch.zeros(6, 9, dtype=torch.float64)
    for i in range(6):
        if read[i].any():
            numbers, gates = literal_gates(
                network.gate, values[i, read[i]], choose, noise[i, read[i]]
            )
            expected[i, read[i]] = gates.detach()
            total = total + (numbers * per_number[i, read[i]]).sum()
            total = total + (gates * per_gate[i, read[i]]).sum()
    parameters = list(network.gate.parameters())
    slow = torch.autograd.grad(total, parameters)
    u = order.taken(noise)
    for plain in (False, True):
        numbers, gates = network.gate(
            order.taken(values), order, lambda n, here: choose(n, u[here]), plain=plain
        )
        assert torch.allclose(order.padded(gates, read), expected, atol=1e-9)
        summed = (numbers * order.taken(per_number)).sum()
        summed = summed + (gates * order.taken(per_gate)).sum()
        for a, b in zip(torch.autograd.grad(summed, parameters), slow, strict=True):
            assert torch.allclose(a, b, atol=1e-9 * max(1.0, b.abs().max().item()))
        assert gates.requires_grad == (kind is HardKumaNetwork)


def test_ex_1_6_gates_without_chance() -> None:
    found = HardKuma(torch.tensor([1.0, 0.2, 2.0]), torch.tensor([1.0, 1.0, 0.3]))
    assert found.p_shut.tolist() == pytest.approx([0.083333, 0.608364, 0.002088], abs=1e-5)
    assert found.p_open.tolist() == pytest.approx([0.083333, 0.017252, 0.576779], abs=1e-5)
    between = 1 - found.p_shut - found.p_open
    assert between.tolist() == pytest.approx([0.833333, 0.374384, 0.421132], abs=1e-5)
    assert found.decided().tolist() == pytest.approx([0.5, 0.0, 1.0], abs=1e-6)


@pytest.mark.parametrize(("a", "b"), [(1.0, 1.0), (0.3, 0.7), (2.0, 0.4), (0.5, 3.0), (4.0, 6.0)])
def test_gates_are_drawn_from_their_distribution(a: float, b: float) -> None:
    count = 200_000
    noise = (torch.arange(count, dtype=torch.float64) + 0.5) / count
    kuma = HardKuma(torch.full((count,), a).double(), torch.full((count,), b).double())
    drawn = kuma.sampled(noise)
    # the outermost thousandths of the noise are not used
    assert (drawn == 0).double().mean().item() == pytest.approx(kuma.p_shut[0].item(), abs=2e-3)
    assert (drawn == 1).double().mean().item() == pytest.approx(kuma.p_open[0].item(), abs=2e-3)
    for x in (0.1, 0.35, 0.8):
        point = (x + 0.1) / 1.2
        below = 1 - (1 - point**a) ** b
        assert (drawn <= x).double().mean().item() == pytest.approx(below, abs=2e-3)
    grid = (torch.arange(count).double() + 0.5) / count
    quantiles = (1 - (1 - grid) ** (1 / b)) ** (1 / a)
    assert kuma.mean[0].item() == pytest.approx(quantiles.mean().item(), abs=1e-3)


def test_extreme_gates_stay_numbers() -> None:
    numbers = torch.tensor(
        [
            [x, y]
            for x in (-200.0, -14.0, 0.0, 14.0, 200.0)
            for y in (-200.0, -14.0, 0.0, 14.0, 200.0)
        ]
    ).requires_grad_(True)
    for noise in (0.0, 0.5, 1.0):
        kuma = HardKuma.of(numbers)
        drawn = kuma.sampled(torch.full((25,), noise))
        outputs = drawn + kuma.p_shut + kuma.p_open + kuma.decided()
        (gradient,) = torch.autograd.grad(outputs.sum(), numbers)
        assert outputs.isfinite().all()
        assert gradient.isfinite().all()
        assert ((drawn >= 0) & (drawn <= 1)).all()


def test_open_or_shut_from_one_half_on() -> None:
    network = BernoulliNetwork(RationaleRl(hidden=2), 4, 2)
    numbers = torch.tensor([[0.0], [-1e-3], [2.0]])
    assert network.decided(numbers).tolist() == [1.0, 0.0, 1.0]
    many = torch.full((100_000, 1), math.log(0.3 / 0.7))
    assert network.sampled(many, torch.rand(100_000)).mean().item() == pytest.approx(0.3, abs=0.01)


# ---- losses ------------------------------------------------------------------------------------


def test_ex_2_6_three_penalties() -> None:
    selected, lengths = torch.tensor([1, 4]), torch.tensor([10, 20])
    expected = {"pooled": 0.016667, "mean_of_rates": 0.0, "per_review": 0.05}
    for how, value in expected.items():
        found = penalties(selected, lengths, 0.15, how)  # type: ignore[arg-type]
        assert found.shape == (2,)
        assert found.mean().item() == pytest.approx(value, abs=1e-6)


def cr_loss(wrong: float, open_: Sequence[Sequence[float]], rate: float, penalty: Any) -> float:
    settings = RationaleCr(hidden=2, rate=rate, penalty=penalty)
    network = HardKumaNetwork(settings, 4, 2)
    totals = torch.tensor([sum(row) for row in open_])
    lengths = torch.tensor([len(row) for row in open_])
    return network.objective(torch.full_like(totals, wrong), totals, lengths * 0, lengths).item()


def test_ex_2_7_loss_of_continuous_rationales() -> None:
    assert cr_loss(0.2, [(0.9, 0.1, 0.2, 0.0)], 0.1, "pooled") == pytest.approx(0.4, abs=1e-6)


def test_ex_2_9_rates_pooled_and_averaged() -> None:
    reviews = [(0.5, 0.5), (0.5, 0.0, 0.0, 0.0)]
    assert cr_loss(0.0, reviews, 0.2, "pooled") == pytest.approx(0.05, abs=1e-6)
    assert cr_loss(0.0, reviews, 0.2, "mean_of_rates") == pytest.approx(0.1125, abs=1e-6)


def test_ex_2_8_loss_of_reinforced_rationales() -> None:
    network = BernoulliNetwork(RationaleRl(hidden=2, rate=0.1, baseline="none"), 4, 2)
    wrong, total = torch.tensor([0.2]), torch.tensor([-1.5])
    found = network.objective(wrong, total, torch.tensor([3]), torch.tensor([10]))
    assert found.item() == pytest.approx(-0.4, abs=1e-6)
    # pooled, every review of the batch receives the same value
    pooled = network.objective(
        torch.zeros(2), torch.tensor([-1.0, -3.0]), torch.tensor([1, 4]), torch.tensor([10, 20])
    )
    assert pooled.item() == pytest.approx(-2 * abs(5 / 30 - 0.1), abs=1e-6)


@pytest.mark.parametrize("penalty", ["pooled", "mean_of_rates", "per_review"])
def test_other_reviews_as_baseline_leave_the_gradient_as_it_is(penalty: Any) -> None:
    settings = RationaleRl(hidden=2, rate=0.4, strength=0.7, penalty=penalty, baseline="others")
    network = BernoulliNetwork(settings, 4, 2).double()
    lengths, owner = torch.tensor([2, 3]), torch.tensor([0, 0, 1, 1, 1])
    scores = torch.randn(5, dtype=torch.float64, requires_grad=True)
    wrongs = torch.rand(2, 8, dtype=torch.float64)  # by which of its words a review is judged
    exact = torch.zeros((), dtype=torch.float64)
    expected = torch.zeros(5, dtype=torch.float64)
    for drawn in itertools.product((0.0, 1.0), repeat=5):
        z = torch.tensor(drawn, dtype=torch.float64)
        logs = network.per_word(scores.unsqueeze(1), z)
        totals = torch.stack([logs[owner == i].sum() for i in range(2)])
        selected = torch.stack([z[owner == i].sum() for i in range(2)])
        wrong = torch.stack([wrongs[0, int(2 * z[0] + z[1])], wrongs[1, int(z[2] + 2 * z[3])]])
        loss = wrong.mean() + 0.7 * penalties(selected, lengths, 0.4, penalty).mean()
        probability = totals.sum().exp()
        exact = exact + probability * loss
        estimate = network.objective(wrong, totals, selected, lengths)
        (gradient,) = torch.autograd.grad(estimate, scores, retain_graph=True)
        expected = expected + probability.detach() * gradient
    (gradient,) = torch.autograd.grad(exact, scores)
    assert torch.allclose(gradient, expected, atol=1e-12)
    assert gradient.abs().min() > 1e-4


@pytest.mark.parametrize("name", MODELS)
def test_what_trains_what(name: str) -> None:
    torch.manual_seed(0)
    network: Any = architectures.make(f"{name}(hidden=4, memory=3)").network(5, 2)  # type: ignore[attr-defined]
    values, present = torch.randn(4, 7, 5), torch.ones(4, 7, dtype=torch.bool)
    loss, logits = network.loss(WordInputs.of(values), present, torch.tensor([0, 1, 1, 0]))
    loss.backward()
    assert logits.shape == (4, 2)
    for part in (network.generator, network.gate, network.reader, network.head):
        assert all(p.grad is not None and p.grad.any() for p in part.parameters()), part
    network.zero_grad()
    _, logits = network.loss(WordInputs.of(values), present, torch.tensor([0, 1, 1, 0]))
    torch.autograd.backward(logits.sum())
    followed = network.generator.word_weight.grad is not None
    assert followed == (name == "rationale_cr")  # drawn zeros and ones are constants


# ---- models ------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", MODELS)
def test_reading_is_deleting_what_was_not_chosen(name: str, made: Splits, request: Any) -> None:
    model = request.getfixturevalue(name)
    network = model.network
    texts = [e.input for e in made.test.examples[:40]]
    gates = model.rationale(texts)
    assert [len(z) for z in gates] == [t.n_features for t in texts]
    assert 0 < sum((z > 0).sum() for z in gates) < sum(map(len, gates))
    rng = np.random.default_rng(0)
    with torch.no_grad():
        for text in texts:
            chosen = rng.random(text.n_features) < 0.5
            left = [w for w, c in zip(text.words, chosen, strict=True) if c]
            whole = model.embed([text])
            read = network.read(
                WordInputs.of(whole.values), whole.present, torch.from_numpy(chosen)[None].float()
            )
            if not left:
                assert torch.equal(read[0], network.head.bias)
                continue
            rest = model.embed([Text.of_words(left)])
            alone = network.read(WordInputs.of(rest.values), rest.present, torch.ones(1, len(left)))
            assert torch.allclose(read, alone, atol=1e-6)


@pytest.mark.parametrize("spec", KINDS)
def test_answers_do_not_depend_on_neighbours(spec: str, made: Splits) -> None:
    model: Any = architectures.make(spec).start(made.train, seed=1)
    filled(model.network, 3)
    texts = [e.input for e in made.test.examples[:30]] + [words("great"), Text("", ())]
    together, gates = model.probabilities(texts), model.rationale(texts)
    for i, text in enumerate(texts):
        assert model.probabilities([text])[0] == pytest.approx(together[i], abs=1e-6)
        assert model.rationale([text])[0] == pytest.approx(gates[i], abs=1e-6)
    words_read = sum((z > 0).sum() for z in gates)
    assert model.selection_rate(texts) == pytest.approx(words_read / sum(map(len, gates)))
    assert isinstance(model, Selective)
    assert abilities(model)[-1] == "rationales"


@pytest.mark.parametrize("spec", KINDS)
def test_rules_that_follow_a_network_back_meet_every_step(spec: str, made: Splits) -> None:
    model: Any = architectures.make(spec).start(made.train, seed=1).double()
    filled(model.network, 4).eval()
    embedded = model.embed([e.input for e in made.test.examples[:5]])
    with torch.no_grad():
        expected = model.logits(embedded)
        with Relevance(LayerRule()):
            found = model.logits(embedded)
    assert torch.allclose(found, expected, atol=1e-9)


@pytest.mark.filterwarnings("ignore:deep_lift")  # what opens a gate has no quotient
@pytest.mark.parametrize("method", ["rationale", "gradient", "lrp", "deep_lift", "occlusion"])
@pytest.mark.parametrize("spec", [KINDS[0], KINDS[5]])
def test_explanations_do_not_depend_on_neighbours(spec: str, method: str, made: Splits) -> None:
    model: Any = architectures.make(spec).start(made.train, seed=1)
    filled(model.network, 3)
    texts = [
        *sorted((e.input for e in made.test), key=lambda t: t.n_features)[:4:2],
        words("great"),
    ]
    together = veracity.explain(model, texts, method, target=1)
    assert any(a.scores.any() for a in together)
    for text, a in zip(texts, together, strict=True):
        alone = veracity.explain(model, [text], method, target=1)[0]
        assert alone.scores == pytest.approx(a.scores, abs=1e-5)


@pytest.mark.parametrize("spec", KINDS)
def test_saved_rationale_models_load_equal(spec: str, made: Splits, tmp_path: Path) -> None:
    architecture = architectures.make(spec)
    model: Any = architecture.start(made.train, seed=1)
    save_model(model, architecture, tmp_path / "m", record={})
    loaded: Any = load_model(tmp_path / "m")
    texts = [e.input for e in made.test.examples[:10]]
    assert np.array_equal(model.probabilities(texts), loaded.probabilities(texts))
    assert loaded.identity() == model.identity()
    assert loaded.target_rate == 0.1


@pytest.mark.parametrize(
    ("spec", "says"),
    [
        ("rationale_cr(rate=0.0)", "rate between 0 and 1"),
        ("rationale_rl(strength=-1.0)", "strength of 0 or more"),
        ("rationale_cr(encoder=gru)", "encoder to be rcnn or bilstm"),
        ("rationale_rl(memory=0)", "at least one unit"),
        ("rationale_cr(penalty=mean)", "penalty to be pooled or mean_of_rates or per_review"),
    ],
)
def test_impossible_rationale_models_are_told(spec: str, says: str) -> None:
    with pytest.raises(PluginError, match=says):
        architectures.make(spec)


def test_the_papers_rationale_models_are_as_they_say() -> None:
    for name in MODELS:
        made: Any = architectures.make(name)
        assert (made.size, made.tuned, made.dropout) == (200, False, 0.2)
        assert (made.encoder, made.hidden, made.memory) == ("rcnn", 200, 30)
        assert (made.dependent, made.penalty, made.strength) == (True, "pooled", 1.0)
        t = made.training
        assert (t.learning_rate, t.weight_decay, t.batch_size) == (4e-4, 2e-6, 256)
        assert (t.epochs, t.clip, t.stop_at, t.patience) == (100, 5.0, 0.97, None)
        network: Any = made.network(200, 2)
        for parameter, fan in [
            (network.head.weight, 402),
            (network.reader.word_weight, 400),
            (network.gate.memory.state_weight, 60),
        ]:
            bound = math.sqrt(6 / fan)
            assert 0.9 * bound < parameter.abs().max().item() <= bound
        assert not network.gate.memory.gate_bias.any()


# ---- the explainer -----------------------------------------------------------------------------


@pytest.mark.parametrize("name", MODELS)
def test_rationales_are_the_words_that_were_read(name: str, made: Splits, request: Any) -> None:
    model = request.getfixturevalue(name)
    texts = [e.input for e in made.test.examples[:20]]
    chosen = veracity.explain(model, texts, "rationale")
    gates = veracity.explain(model, texts, "rationale(binary=False)")
    for a, g, z in zip(chosen, gates, model.rationale(texts), strict=True):
        assert np.array_equal(g.scores, z)
        assert np.array_equal(a.scores, (z > 0).astype(float))
    assert {s for a in chosen for s in a.scores} == {0.0, 1.0}
    parts = any(0 < s < 1 for g in gates for s in g.scores)
    assert parts == (name == "rationale_cr"), "one model reads words in part, the other never does"


# ---- training ----------------------------------------------------------------------------------


def by_articles(data: Dataset) -> Dataset:
    """The same reviews, in which `the` stands for one label and `a` for the other."""
    rng = np.random.default_rng(0)
    examples = []
    for e in data:
        label = int(rng.integers(2))
        given = [("a", "the")[label] if w in ("a", "an", "the") else w for w in e.input.words]
        examples.append(Example(e.id, Text.of_words(given), label))
    return dataclasses.replace(data, examples=tuple(examples))


SMALL = {
    "rationale_cr": "rationale_cr(size=24, hidden=16, memory=6, rate=0.15)",
    "rationale_rl": "rationale_rl(size=24, hidden=16, memory=6, rate=0.17, baseline=others)",
}


@pytest.mark.parametrize("name", MODELS)
def test_models_find_the_words_that_decide(name: str) -> None:
    parts = split(by_articles(load_data("made_reviews(n=2000)")))
    architecture = architectures.make(SMALL[name])
    training = dataclasses.replace(
        architecture.training, epochs=12, batch_size=32, learning_rate=3e-3
    )
    trained = train(architecture, parts.train, parts.validation, training=training)
    assert trained.best.validation_accuracy >= 0.97
    assert trained.best.selection_rate == pytest.approx(trained.model.target_rate, abs=0.0101)
    assert trained.best is trained.history[-1]
    tests = [e.input for e in parts.test]
    gates = trained.model.rationale(tests)
    read = [
        w
        for t, z in zip(tests, gates, strict=True)
        for w, g in zip(t.words, z, strict=True)
        if g > 0
    ]
    assert np.mean([w in ("a", "the") for w in read]) > 0.8
    right = trained.model.probabilities(tests).argmax(axis=1) == [e.label for e in parts.test]
    assert right.mean() >= 0.95


class Scripted(nn.Module):
    """Says after each epoch what a script says, whatever it was trained on."""

    labels = ("no", "yes")

    def __init__(self, script: Sequence[tuple[float, float]]) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(1))
        self.script = script
        self.epoch = -1
        self.target_rate = 0.1

    def train(self, mode: bool = True) -> Scripted:
        self.epoch += mode
        return super().train(mode)

    def loss(self, inputs: Sequence[Text], labels: Tensor) -> tuple[Tensor, Tensor]:
        return self.weight.sum(), torch.zeros(len(inputs), 2)

    def probabilities(self, inputs: Sequence[Text]) -> FloatArray:
        right = np.arange(len(inputs)) < round(self.script[self.epoch][0] * len(inputs))
        truth = np.array([t.words[0] == "yes" for t in inputs])
        found: FloatArray = np.eye(2)[(truth == right).astype(int)]
        return found

    def selection_rate(self, inputs: Sequence[Text]) -> float:
        return self.script[self.epoch][1]


@dataclasses.dataclass(frozen=True)
class ScriptedArchitecture:
    script: tuple[tuple[float, float], ...]
    training = Training(epochs=9, patience=None)
    spec = "scripted"

    def start(self, train: Dataset, *, seed: int) -> Scripted:
        return Scripted(self.script)


SAID = Dataset(
    "said",
    ("no", "yes"),
    tuple(Example(str(i), words(f"{('no', 'yes')[i % 2]} t{i}"), i % 2) for i in range(100)),
)


@pytest.mark.parametrize(
    ("script", "stop_at", "epochs", "best"),
    [
        # stops at the first epoch that is accurate and reads few enough words
        ([(0.5, 0.5), (0.98, 0.3), (0.97, 0.11), (1.0, 0.1)], 0.97, 3, 2),
        ([(0.97, 0.111), (0.96, 0.1), (0.97, 0.09)], 0.97, 3, 2),
        # never both: the nearest rate of those that are accurate enough
        ([(0.9, 0.1), (0.97, 0.15), (0.99, 0.2), (0.5, 0.1)], 0.97, 4, 1),
        # never accurate enough: near enough to the rate, then accurate
        ([(0.9, 0.3), (0.6, 0.1), (0.7, 0.105), (0.8, 0.2)], 0.97, 4, 2),
        ([(0.9, 0.3), (0.6, 0.1), (0.7, 0.105), (1.0, 0.2)], None, 4, 2),
        ([(0.7, 0.3), (0.9, 0.4), (0.8, 0.2)], None, 3, 1),
    ],
)
def test_when_training_stops_and_what_is_best(
    script: list[tuple[float, float]], stop_at: float | None, epochs: int, best: int
) -> None:
    architecture: Any = ScriptedArchitecture(tuple(script))
    training = Training(epochs=len(script), patience=None, stop_at=stop_at)
    trained = train(architecture, SAID, SAID, training=training)
    assert [e.selection_rate for e in trained.history] == [rate for _, rate in script[:epochs]]
    assert trained.best.number == best


def test_enough_accuracy_is_enough_for_other_models(made: Splits) -> None:
    architecture = architectures.make("text_cnn(size=16, filters=8)")
    training = Training(epochs=40, patience=None, stop_at=0.9)
    trained = train(architecture, made.train, made.validation, training=training)
    accuracies = [e.validation_accuracy for e in trained.history]
    assert accuracies[-1] >= 0.9 > max(accuracies[:-1], default=0.0)
    assert len(accuracies) < 40
    assert trained.best is trained.history[-1]
    assert trained.best.selection_rate is None


def test_weights_are_kept_along_the_way(made: Splits, tmp_path: Path) -> None:
    architecture = architectures.make("text_cnn(size=8, filters=4)")
    training = Training(epochs=8, patience=None, keep=0.05)

    def run(folder: Path, epochs: int) -> Any:
        asked = dataclasses.replace(training, epochs=epochs)
        return train(architecture, made.train, made.validation, training=asked, checkpoint=folder)

    whole = run(tmp_path / "whole", 8)
    run(tmp_path / "parts", 2)
    resumed = run(tmp_path / "parts", 8)
    expected, last = [], -1.0
    for epoch in whole.history:
        if epoch.validation_accuracy >= last + 0.05 - 1e-9:
            expected.append(epoch.number)
            last = epoch.validation_accuracy
    assert 1 < len(expected) < 8
    for trained in (whole, resumed):
        assert [number for number, _ in trained.snapshots] == expected
        folder = trained.snapshots[0][1].parent
        listed = json.loads((folder / "snapshots.json").read_text())
        assert [row["epoch"] for row in listed] == expected
        assert {p.name for p in folder.glob("*.safetensors")} == {row["file"] for row in listed}
        for row, (number, path) in zip(listed, trained.snapshots, strict=True):
            earlier = at_snapshot(trained.model, path)
            answers = earlier.probabilities([e.input for e in made.validation]).argmax(axis=1)
            accuracy = np.mean(answers == [e.label for e in made.validation])
            assert accuracy == pytest.approx(trained.history[number].validation_accuracy)
            assert accuracy == pytest.approx(row["validation_accuracy"])
    assert trained.model.identity() == whole.model.identity()
    with pytest.raises(ModelError, match="folder to keep weights in"):
        train(architecture, made.train, made.validation, training=training)


def test_rationale_trainings_resume_exactly(tmp_path: Path) -> None:
    parts = split(by_articles(load_data("made_reviews(n=300)")))
    architecture = architectures.make("rationale_rl(size=8, hidden=4, memory=3, baseline=others)")

    def run(folder: Path, epochs: int) -> Any:
        training = dataclasses.replace(architecture.training, epochs=epochs, batch_size=32)
        return train(
            architecture, parts.train, parts.validation, training=training, checkpoint=folder
        )

    whole = run(tmp_path / "whole", 4)
    run(tmp_path / "parts", 2)
    resumed = run(tmp_path / "parts", 4)
    assert [e.loss for e in resumed.history] == [e.loss for e in whole.history]
    assert [e.selection_rate for e in resumed.history] == [e.selection_rate for e in whole.history]
    assert resumed.model.identity() == whole.model.identity()


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"stop_at": 1.5}, "accuracy from 0 to 1"),
        ({"keep": 0.0}, "gains above 0"),
        ({"weight_decay": -1.0}, "weight decay of 0 or more"),
        ({"patience": -1}, "patience"),
    ],
)
def test_impossible_trainings_are_told(settings: dict[str, Any], says: str) -> None:
    with pytest.raises(ValueError, match=says):
        Training(**settings)
