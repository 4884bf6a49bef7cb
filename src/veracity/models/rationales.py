"""Models that choose the words they read (definitions 1.6, 2.3): a generator sets a gate per word,
and a
classifier of its own reads the words whose gate is open."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, cast

import numpy as np
import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable
from torch.nn.functional import cross_entropy, linear
from torch.nn.utils.rnn import PackedSequence, pack_padded_sequence, pad_packed_sequence

from ..core.inputs import FloatArray, Text
from ..core.plugins import Profiles
from .architecture import Training
from .both_ways import both_ways
from .neural import NeuralArchitecture, NeuralText
from .recurrent_convolution import (
    Backward,
    PackedOrder,
    RecurrentConvolution,
    RecurrentStates,
    States,
    WordInputs,
    word_by_word,
)

Penalty = Literal["pooled", "mean_of_rates", "per_review"]
Choice = Callable[[Tensor, slice], Tensor]
"""Gates from the numbers that speak for them, at these places. (rows, numbers) → (rows,)"""


def penalties(selected: Tensor, lengths: Tensor, rate: float, how: Penalty) -> Tensor:
    """How far each review of a batch is from the rate that is wanted.

    selected (…, batch), lengths (batch,) → (…, batch)
    """
    rates = selected / lengths
    if how == "mean_of_rates":
        rates = rates.mean(dim=-1, keepdim=True)
    elif how == "pooled":
        rates = selected.sum(dim=-1, keepdim=True) / lengths.sum()
    return (rates - rate).abs().expand(selected.shape)


@dataclass(frozen=True)
class RationaleArchitecture(NeuralArchitecture):
    """Settings shared by models that choose the words they read."""

    size: int = 200
    tuned: bool = False
    dropout: float = 0.2
    encoder: Literal["rcnn", "bilstm"] = "rcnn"
    """What reads words: recurrent convolutions or a bidirectional LSTM."""
    hidden: int = 200
    """Units of the recurrent layer, each way."""
    rate: float = 0.1
    """The share of words that the model is to read."""
    strength: float = 1.0
    """Weight of the penalty on another rate than that."""
    penalty: Penalty = "pooled"
    """Over what the rate is taken: all words of a batch, the reviews' mean rate, or each review."""
    dependent: bool = True
    """Whether a gate knows what was decided on the words before it."""
    memory: int = 30
    """How many units remember those decisions."""

    profiles: ClassVar[Profiles] = {"released": {"penalty": "per_review"}}
    training: ClassVar[Training] = Training(
        epochs=100,
        batch_size=256,
        learning_rate=4e-4,
        patience=None,
        weight_decay=2e-6,
        clip=5.0,
        stop_at=0.97,
    )
    contextual: ClassVar[bool] = False

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 < self.rate < 1 or self.strength < 0:
            raise ValueError(
                "expected a rate between 0 and 1 and a strength of 0 or more, "
                f"got rate={self.rate}, strength={self.strength}"
            )
        if self.memory < 1:
            raise ValueError(f"expected memory of at least one unit, got {self.memory}")

    def kind(self, network: nn.Module) -> type[NeuralText]:
        return SelectiveText


class SelectiveText(NeuralText):
    """A classifier that shows which words it read."""

    network: RationaleNetwork

    @property
    def target_rate(self) -> float:
        """The share of words that it is trained to read."""
        return self.network.settings.rate

    def rationale(self, inputs: Sequence[Text]) -> list[FloatArray]:
        """The gates of each text's words without chance: above 0 where a word is read."""
        return self.per_word(inputs, lambda e: self.network.gates(e.values, e.present))

    def selection_rate(self, inputs: Sequence[Text]) -> float:
        """The words that are read as a share of all words of these texts."""
        gates = np.concatenate(self.rationale(inputs))
        return float(np.mean(gates > 0)) if len(gates) else 0.0

    def loss(self, inputs: Sequence[Text], labels: Tensor) -> tuple[Tensor, Tensor]:
        """What training makes small, and the logits. labels (batch,) → (), (batch, labels)"""
        ids, present = self.read(inputs)
        different, which = torch.unique(ids, return_inverse=True)
        words = WordInputs(self.embedding(different), which)
        return self.network.loss(words, present, labels.to(self.device))


class RationaleNetwork(nn.Module):
    """Generator and classifier, which share nothing but the embeddings."""

    numbers: ClassVar[int]
    """How many numbers speak for a gate."""

    def __init__(self, settings: RationaleArchitecture, size: int, n_labels: int) -> None:
        super().__init__()
        self.settings = settings
        self.generator = _encoder(settings, size)
        memory = settings.memory if settings.dependent else 0
        self.gate = Gates(2 * settings.hidden, self.numbers, memory)
        self.reader = _encoder(settings, size)
        self.dropout = nn.Dropout(settings.dropout)
        self.head = nn.Linear(2 * settings.hidden, n_labels)
        _initialise(self)

    @abstractmethod
    def sampled(self, numbers: Tensor, noise: Tensor) -> Tensor:
        """Gates drawn with the help of noise from U(0, 1). (rows, numbers) → (rows,)"""

    @abstractmethod
    def decided(self, numbers: Tensor) -> Tensor:
        """Gates without chance. (rows, numbers) → (rows,)"""

    @abstractmethod
    def per_word(self, numbers: Tensor, gates: Tensor) -> Tensor:
        """What the objective sums over the words of a text. → (rows,)"""

    @abstractmethod
    def objective(self, wrong: Tensor, total: Tensor, selected: Tensor, lengths: Tensor) -> Tensor:
        """The loss, from each text's cross-entropy, sum over its words, and words. (batch,) each"""

    def forward(self, values: Tensor, present: Tensor) -> Tensor:
        """Logits by the gates without chance."""
        return self.read(WordInputs.of(values), present, self.gates(values, present))

    def gates(self, values: Tensor, present: Tensor) -> Tensor:
        """The gates without chance, 0 at padding. (batch, words, size) → (batch, words)"""
        order = PackedOrder.of(present)
        _, gates = self._generated(
            WordInputs.of(values), order, lambda numbers, _: self.decided(numbers)
        )
        return order.padded(gates, present)

    def loss(self, words: WordInputs, present: Tensor, labels: Tensor) -> tuple[Tensor, Tensor]:
        """The objective for gates drawn at random, and the logits."""
        order = PackedOrder.of(present)
        noise = torch.rand(len(order.places), device=present.device, dtype=words.table.dtype)
        numbers, drawn = self._generated(
            words, order, lambda numbers, here: self.sampled(numbers, noise[here])
        )
        gates = order.padded(drawn, present)
        logits = self.read(words, present, gates)
        wrong = cross_entropy(logits, labels, reduction="none")
        total = order.padded(self.per_word(numbers, drawn), present).sum(dim=1)
        return self.objective(wrong, total, (gates > 0).sum(dim=1), present.sum(dim=1)), logits

    def read(self, words: WordInputs, present: Tensor, gates: Tensor) -> Tensor:
        """Logits of a classifier that skips words whose gate is shut. (batch, words) each"""
        # a rule that compares two passes must meet the same steps, whatever the gates: only then
        # are words skipped one by one, and not left out from the start
        order = PackedOrder.of(present if words.plain else present & (gates > 0))
        taken = order.taken(gates)
        moves = taken > 0 if words.plain else None
        states = self.reader(words.read(order, taken), order, moves=moves, plain=words.plain)
        return cast(Tensor, self.head(self.dropout(order.ends(states, len(present)))))

    def _generated(
        self, words: WordInputs, order: PackedOrder, choose: Choice
    ) -> tuple[Tensor, Tensor]:
        """What speaks for each word's gate, and the gates. → (words, numbers), (words,)"""
        states = self.generator(words.read(order), order, plain=words.plain)
        return cast(tuple[Tensor, Tensor], self.gate(states, order, choose, plain=words.plain))


def _encoder(settings: RationaleArchitecture, size: int) -> nn.Module:
    kind = RecurrentConvolution if settings.encoder == "rcnn" else BothWaysLstm
    return kind(size, settings.hidden)


def _initialise(network: nn.Module) -> None:
    """Glorot's initialisation of every matrix by itself; biases are zero."""
    with torch.no_grad():
        for name, parameter in network.named_parameters():
            if "bias" in name:
                parameter.zero_()
                continue
            several = 3 if name.endswith("word_weight") else 4 if ".lstm." in name else 1
            for direction in parameter.reshape(-1, *parameter.shape[-2:]):
                for matrix in direction.chunk(several):
                    nn.init.xavier_uniform_(matrix)


class BothWaysLstm(nn.Module):
    """torch's LSTM in both directions, over words laid out in an order."""

    def __init__(self, size: int, hidden: int) -> None:
        super().__init__()
        self.lstm = nn.LSTM(size, hidden, bidirectional=True)

    def forward(
        self,
        words: WordInputs,
        order: PackedOrder,
        moves: Tensor | None = None,
        plain: bool = False,
    ) -> Tensor:
        """The state at every word, forward and backward side by side. → (read, 2 hidden)"""
        read = words.spelt
        if plain:
            back = order.turned
            turned = None if moves is None else moves[back]
            backward = self._plain("_reverse", read[back], order, turned)[back]
            return torch.cat([self._plain("", read, order, moves), backward], dim=1)
        if not len(read):
            return read[:, :1].expand(0, 2 * self.lstm.hidden_size)
        packed = PackedSequence(read, torch.tensor(order.sizes, device="cpu"))
        values, lengths = pad_packed_sequence(packed, batch_first=True)
        places = torch.arange(values.shape[1], device=lengths.device)
        states = both_ways(self.lstm, values, (places < lengths.unsqueeze(1)).to(values.device))
        return pack_padded_sequence(states, lengths, batch_first=True).data

    def _plain(
        self, suffix: str, words: Tensor, order: PackedOrder, moves: Tensor | None
    ) -> Tensor:
        parts = ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
        weights = [getattr(self.lstm, f"{part}_l0{suffix}") for part in parts]
        start = words.new_zeros((len(order.texts), self.lstm.hidden_size))

        def step(here: slice, states: States) -> States:
            seen, remembered = torch.lstm_cell(words[here], states, *weights)
            return seen, remembered

        return word_by_word(step, (start, start), order, moves)


class Gates(nn.Module):
    """A gate per word, from the state at it and, if there are units for that, from what was decided
    before: it reads [h; s], then s = cell([h; z], s)."""

    def __init__(self, width: int, numbers: int, memory: int) -> None:
        super().__init__()
        self.width = width
        self.scores = nn.Linear(width + memory, numbers)
        self.memory = RecurrentConvolution(width + 1, memory, directions=1) if memory else None

    def forward(
        self, states: Tensor, order: PackedOrder, choose: Choice, plain: bool = False
    ) -> tuple[Tensor, Tensor]:
        """What speaks for each gate, and the gates. (words, width) → (words, numbers), (words,)"""
        if self.memory is None:
            numbers: Tensor = self.scores(states)
            return numbers, choose(numbers, slice(None))
        if plain:
            return self._plain(self.memory, states, order, choose)
        scores, added, width = self.scores.weight, self.memory.word_weight[0], self.width
        found: tuple[Tensor, Tensor] = _DependentGates.apply(  # type: ignore[no-untyped-call]
            linear(states, scores[:, :width], self.scores.bias),
            linear(states, added[:, :width]) + self.memory.wide_bias()[0],
            scores[:, width:],
            added[:, width],
            self.memory.state_weight,
            self.memory.output_bias,
            (order, choose),
        )
        return found

    def _plain(
        self, memory: RecurrentConvolution, states: Tensor, order: PackedOrder, choose: Choice
    ) -> tuple[Tensor, Tensor]:
        numbers: list[Tensor] = []
        gates: list[Tensor] = []

        def step(here: slice, before: States) -> States:
            numbers.append(self.scores(torch.cat([states[here], before[0]], dim=1)))
            gates.append(choose(numbers[-1], here))
            known = torch.cat([states[here], gates[-1].unsqueeze(1)], dim=1)
            return memory.step(linear(known, memory.word_weight[0]), before)

        start = states.new_zeros((len(order.texts), memory.hidden))
        word_by_word(step, (start, start, start), order)
        return torch.cat(numbers), torch.cat(gates)


class _DependentGates(torch.autograd.Function):
    """Gates one after the other, each of which hears of those before, without a graph per step.

    A gate depends on its own numbers alone, so how it bends is found for all of them at once; one
    that does not bend, as a drawn 0 or 1, is a constant to all that follows.
    """

    @staticmethod
    def forward(
        ctx: Any,
        scores: Tensor,  # (words, numbers) as far as the state at the word decides them
        parts: Tensor,  # (words, 3 units) what it adds to the memory
        by_memory: Tensor,  # (numbers, units)
        from_gate: Tensor,  # (3 units,)
        weight: Tensor,  # (1, units, units)
        bias: Tensor,  # (1, units)
        choice: tuple[PackedOrder, Choice],
    ) -> tuple[Tensor, Tensor]:
        order, choose = choice
        numbers = torch.empty_like(scores)
        gates = scores.new_empty(len(scores))
        parts = parts.clone().unsqueeze(0)
        run = RecurrentStates.empty(parts, order)
        twice_bias = 2 * bias.unsqueeze(1)
        for at, was in order.steps():
            torch.addmm(scores[at], run.seen[0, was], by_memory.T, out=numbers[at])
            gates[at] = choose(numbers[at], at)
            parts[0, at].addr_(gates[at], from_gate)
            run.forward(parts, weight, twice_bias, at, was)
        if any(ctx.needs_input_grad):
            slope = _slope(choose, numbers)
            if slope is None:
                ctx.mark_non_differentiable(gates)
            states = (run.gate, run.one, run.two, run.seen)
            ctx.save_for_backward(parts, by_memory, from_gate, weight, gates, slope, *states)
            ctx.order = order
        return numbers, gates

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, d_numbers: Tensor, d_gates: Tensor) -> tuple[Tensor | None, ...]:
        parts, by_memory, from_gate, weight, gates, slope, *states = ctx.saved_tensors
        run, order = RecurrentStates(*states), ctx.order
        back = Backward(run, parts, weight, order)
        d_scores = d_numbers.clone()
        for at, was in reversed(list(order.steps())):
            back.step(at, was)
            if slope is not None:
                d_gate = torch.addmv(d_gates[at], back.added[0, at], from_gate)
                d_scores[at].addcmul_(d_gate.unsqueeze(1), slope[at])
            back.seen[0, : at.stop - at.start].addmm_(d_scores[at], by_memory)
        return (
            d_scores,
            back.added[0],
            d_scores.T @ run.seen[0, order.before],
            back.added[0].T @ gates,
            back.state_weight(order),
            back.bias,
            None,
        )


def _slope(choose: Choice, numbers: Tensor) -> Tensor | None:
    """The derivative of every gate by its numbers, if it has one. (words, numbers)"""
    with torch.enable_grad():
        at = numbers.detach().requires_grad_(True)
        gates = choose(at, slice(None))
        return torch.autograd.grad(gates.sum(), at)[0] if gates.requires_grad else None
