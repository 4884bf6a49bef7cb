"""The recurrent convolution of Lei et al. over bigrams (definitions 1.6), and texts read side by
side.

Words that are not read are not there: a recurrence that carries its state over them unchanged does
what it would do if they were deleted. So only the words that are read are laid out, at each step
the next word of every text that has one, and no step is spent on padding.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable
from torch.overrides import has_torch_function

States = tuple[Tensor, ...]
"""What a recurrence remembers; the first of them is what others see of it. (rows, units) each"""


@dataclass(frozen=True, kw_only=True)
class PackedOrder:
    """Words in the order in which they are read: step by step, the longest texts first."""

    places: Tensor  # (read,) where each word stands in the flattened batch
    sizes: tuple[int, ...]  # how many texts have a word at each step; never rises
    turned: Tensor  # (read,) which word is read instead if every text is read from its end
    before: Tensor  # (read,) where the state before it stands, behind a zero state per text
    texts: Tensor  # (texts that have words,) the longest first
    last: Tensor  # (texts that have words,) their last words; the first ones are 0, 1, 2, …

    @classmethod
    def of(cls, read: Tensor) -> PackedOrder:
        """The order of the words that are to be read. (batch, words) bool"""
        lengths = read.sum(dim=1)
        texts = lengths.argsort(descending=True, stable=True)[: int((lengths > 0).sum())]
        lengths, rows = lengths[texts], torch.arange(len(texts), device=read.device)
        step = torch.arange(int(lengths.max()) if len(texts) else 0, device=read.device)
        there = step.unsqueeze(1) < lengths  # (steps, texts)
        # a stable sort puts the words that are read first and leaves them in their order
        words = (~read[texts]).byte().argsort(dim=1, stable=True)[:, : len(step)]
        number = torch.zeros_like(there, dtype=torch.long)
        number[there] = torch.arange(int(there.sum()), device=read.device)
        mirrored = (lengths - 1 - step.unsqueeze(1)).clamp(min=0)
        previous = torch.cat([rows.unsqueeze(0), len(texts) + number[:-1]])[: len(step)]
        return cls(
            places=(texts.unsqueeze(1) * read.shape[1] + words).T[there],
            sizes=tuple(there.sum(dim=1).tolist()),
            turned=number.gather(0, mirrored)[there],
            before=previous[there],
            texts=texts,
            last=number[lengths - 1, rows],
        )

    def taken(self, padded: Tensor) -> Tensor:
        """The words that are read, out of a padded batch. (batch, words, …) → (read, …)"""
        return padded.flatten(0, 1)[self.places]

    def padded(self, read: Tensor, like: Tensor) -> Tensor:
        """Numbers of the words that are read, put back into a batch of zeros. → (batch, words)"""
        found = read.new_zeros(like.numel())
        return found.index_copy(0, self.places, read).reshape(like.shape)

    def ends(self, states: Tensor, batch: int) -> Tensor:
        """The last state of either direction; zero for texts of which no word is read.

        (read, 2 units) → (batch, 2 units)
        """
        forward, backward = states.chunk(2, dim=1)
        reached = torch.cat([forward[self.last], backward[: len(self.last)]], dim=1)
        return states.new_zeros((batch, states.shape[1])).index_copy(0, self.texts, reached)

    def steps(self) -> Iterator[tuple[slice, slice]]:
        """Where the words of each step stand, and the states before them behind the zero states."""
        previous, start = 0, 0
        zeros = len(self.texts)
        for size in self.sizes:
            yield slice(start, start + size), slice(previous, previous + size)
            previous, start = zeros + start, start + size


@dataclass(frozen=True)
class WordInputs:
    """Embedded words by number, so that what recurs is held and multiplied once."""

    table: Tensor  # (different words, size)
    which: Tensor  # (…) rows of the table
    scale: Tensor | None = None  # (…) what each is multiplied by

    @classmethod
    def of(cls, values: Tensor) -> WordInputs:
        """A batch of words that are all different. (batch, words, size)"""
        count = values.shape[0] * values.shape[1]
        each = torch.arange(count, device=values.device).reshape(values.shape[:2])
        return cls(values.flatten(0, 1), each)

    def read(self, order: PackedOrder, scale: Tensor | None = None) -> WordInputs:
        """The words of a batch that are read, in that order, multiplied or as they are."""
        return WordInputs(self.table, order.taken(self.which), scale)

    @property
    def plain(self) -> bool:
        """Whether every step must be one of torch's own functions: a rule answers for each."""
        return has_torch_function((self.table,))

    @property
    def spelt(self) -> Tensor:
        """Every word's own numbers. (…, size)"""
        found = nn.functional.embedding(self.which, self.table)
        return found if self.scale is None else found * self.scale.unsqueeze(-1)


def word_by_word(
    step: Callable[[slice, States], States],
    start: States,
    order: PackedOrder,
    moves: Tensor | None = None,
) -> Tensor:
    """A recurrence in torch's own functions, each of which can then be answered by a rule.

    Where a word does not move the state, it is carried over unchanged. → (read, units)
    """
    states, found = start, []
    for here, _ in order.steps():
        states = tuple(s[: here.stop - here.start] for s in states)
        after = step(here, states)
        if moves is not None:
            moved = moves[here].unsqueeze(1)
            after = tuple(torch.where(moved, a, s) for a, s in zip(after, states, strict=True))
        states = after
        found.append(states[0])
    return torch.cat(found)


@dataclass(frozen=True)
class RecurrentStates:
    """The states of a recurrence at every word, each behind a zero state per text; written once."""

    gate: Tensor  # (directions, read, units) λ
    one: Tensor  # (directions, texts + read, units) c1
    two: Tensor  # c2
    seen: Tensor  # h

    @classmethod
    def empty(cls, parts: Tensor, order: PackedOrder) -> RecurrentStates:
        directions, read, width = parts.shape
        units, zeros = width // 3, len(order.texts)
        states = [parts.new_empty((directions, zeros + read, units)) for _ in range(3)]
        for state in states:
            state[:, :zeros] = 0
        return cls(parts.new_empty((directions, read, units)), *states)

    def forward(
        self, parts: Tensor, weight: Tensor, twice_bias: Tensor, at: slice, was: slice
    ) -> None:
        """One step: what the words add (directions, read, 3 units) is moved on into the states."""
        zeros = self.one.shape[1] - self.gate.shape[1]
        now = slice(zeros + at.start, zeros + at.stop)
        into, first, second = parts[:, at].chunk(3, dim=2)
        gate, one, two, seen = self.gate[:, at], self.one[:, now], self.two[:, now], self.seen
        for d in range(len(parts)):
            torch.addmm(into[d], seen[d, was], weight[d].T, out=gate[d])
        gate.sigmoid_()
        torch.lerp(first, self.one[:, was], gate, out=one)
        torch.add(self.one[:, was], second, out=two)
        torch.lerp(two, self.two[:, was], gate, out=two)
        # tanh(x) = 2 σ(2x) − 1, and σ is several times faster
        torch.add(twice_bias, two, alpha=2, out=seen[:, now]).sigmoid_()
        torch.sub(seen[:, now], 0.5, out=seen[:, now]).mul_(2)


class Backward:
    """The way back through a run: gradients of what the words added, and of the states."""

    def __init__(
        self, run: RecurrentStates, parts: Tensor, weight: Tensor, order: PackedOrder
    ) -> None:
        self.run, self.parts, self.weight = run, parts, weight
        self.zeros = len(order.texts)
        self.added = torch.empty_like(parts)
        shape = (len(parts), self.zeros, parts.shape[2] // 3)
        self.one, self.two, self.seen = (parts.new_zeros(shape) for _ in range(3))
        self.spare = [parts.new_empty(shape) for _ in range(2)]
        self.bias = parts.new_zeros((shape[0], shape[2]))

    def step(self, at: slice, was: slice) -> None:
        """From the gradient of the states after a step, held here, to that of those before it."""
        n = at.stop - at.start
        now = slice(self.zeros + at.start, self.zeros + at.stop)
        _, first, second = self.parts[:, at].chunk(3, dim=2)
        into, d_first, d_second = self.added[:, at].chunk(3, dim=2)
        one, two, seen = self.one[:, :n], self.two[:, :n], self.seen[:, :n]
        a, b = (s[:, :n] for s in self.spare)
        gate, h = self.run.gate[:, at], self.run.seen[:, now]
        torch.mul(h, h, out=a)
        torch.addcmul(seen, seen, a, value=-1, out=a)  # through tanh
        self.bias.add_(a.sum(dim=1))
        two.add_(a)
        torch.sub(self.run.two[:, was], self.run.one[:, was], out=a).sub_(second).mul_(two)
        torch.sub(self.run.one[:, was], first, out=b)
        a.addcmul_(b, one)  # through the gate
        torch.neg(gate, out=b).add_(1)
        torch.mul(a, gate, out=into).mul_(b)
        torch.mul(one, b, out=d_first)
        torch.mul(two, b, out=d_second)
        one.mul_(gate).add_(d_second)
        two.mul_(gate)
        for d in range(len(self.parts)):
            torch.mm(into[d], self.weight[d], out=seen[d])

    def state_weight(self, order: PackedOrder) -> Tensor:
        """The gradient of what the gate hears of the states, all steps at once."""
        into = self.added[:, :, : self.seen.shape[2]]
        return torch.bmm(into.transpose(1, 2), self.run.seen[:, order.before])


class _Recurrence(torch.autograd.Function):
    """All steps of all directions without a graph per step: the states at every word, from what the
    words add with bias.

    parts (directions, read, 3 units), weight (directions, units, units) → (directions, read, units)
    """

    @staticmethod
    def forward(
        ctx: Any, parts: Tensor, weight: Tensor, bias: Tensor, order: PackedOrder
    ) -> Tensor:
        run = RecurrentStates.empty(parts, order)
        twice_bias = 2 * bias.unsqueeze(1)
        for at, was in order.steps():
            run.forward(parts, weight, twice_bias, at, was)
        ctx.save_for_backward(parts, weight, run.gate, run.one, run.two, run.seen)
        ctx.order = order
        return run.seen[:, len(order.texts) :]

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, Tensor, Tensor, None]:
        parts, weight, *states = ctx.saved_tensors
        back = Backward(RecurrentStates(*states), parts, weight, ctx.order)
        for at, was in reversed(list(ctx.order.steps())):
            back.seen[:, : at.stop - at.start].add_(gradient[:, at])
            back.step(at, was)
        return back.added, back.state_weight(ctx.order), back.bias, None


class RecurrentConvolution(nn.Module):
    """λ = σ(W x + U h + b), c1 = λ c1 + (1−λ) W₁x, c2 = λ c2 + (1−λ)(c1 before + W₂x),
    h = tanh(c2 + b'), in one direction or in both."""

    def __init__(self, size: int, hidden: int, directions: int = 2) -> None:
        super().__init__()
        self.hidden = hidden
        self.word_weight = nn.Parameter(torch.empty(directions, 3 * hidden, size))  # W, W₁, W₂
        self.state_weight = nn.Parameter(torch.empty(directions, hidden, hidden))
        self.gate_bias = nn.Parameter(torch.empty(directions, hidden))
        self.output_bias = nn.Parameter(torch.empty(directions, hidden))

    def forward(
        self,
        words: WordInputs,
        order: PackedOrder,
        moves: Tensor | None = None,
        plain: bool = False,
    ) -> Tensor:
        """The state at every word, forward and backward side by side. → (read, 2 hidden)

        `plain` takes one step after another in torch's own functions, and only then may words be
        there that do not move the state.
        """
        turns = (None, order.turned)[: len(self.word_weight)]
        if plain:
            read = words.spelt
            found = [
                self._plain(d, _at(read, t), None if moves is None else _at(moves, t), order)
                for d, t in enumerate(turns)
            ]
        else:
            parts = self._parts(words, turns)
            found = _Recurrence.apply(parts, self.state_weight, self.output_bias, order)  # type: ignore[no-untyped-call]
        return torch.cat([_at(f, t) for f, t in zip(found, turns, strict=True)], dim=1)

    def _parts(self, words: WordInputs, turns: Sequence[Tensor | None]) -> Tensor:
        """What each word adds in each direction; a word that recurs is multiplied once.

        → (directions, read, 3 hidden)
        """
        bias, (directions, width, _) = self.wide_bias(), self.word_weight.shape
        table = words.table.expand(directions, *words.table.shape)
        weight = self.word_weight.transpose(1, 2)
        which = torch.stack(
            [d * len(words.table) + _at(words.which, t) for d, t in enumerate(turns)]
        )
        if words.scale is None:
            each = torch.baddbmm(bias, table, weight)
            return nn.functional.embedding(which, each.reshape(-1, width))
        parts = nn.functional.embedding(which, torch.bmm(table, weight).reshape(-1, width))
        scale = torch.stack([_at(words.scale, t) for t in turns]).unsqueeze(2)
        return torch.addcmul(bias, parts, scale)

    def wide_bias(self) -> Tensor:
        """The gate's bias, and none for the two others. → (directions, 1, 3 hidden)"""
        nothing = torch.zeros_like(self.gate_bias)
        return torch.cat([self.gate_bias, nothing, nothing], dim=1).unsqueeze(1)

    def _plain(self, way: int, words: Tensor, moves: Tensor | None, order: PackedOrder) -> Tensor:
        parts = nn.functional.linear(words, self.word_weight[way])

        def step(here: slice, states: States) -> States:
            return self.step(parts[here], states, way)

        start = words.new_zeros((len(order.texts), self.hidden))
        return word_by_word(step, (start, start, start), order, moves)

    def step(self, parts: Tensor, states: States, way: int = 0) -> States:
        """One step as it is defined, from what the words add without bias. (rows, 3 hidden)"""
        seen, one, two = states
        into, first, second = parts.chunk(3, dim=1)
        heard = nn.functional.linear(seen, self.state_weight[way], self.gate_bias[way])
        gate = torch.sigmoid(into + heard)
        new_one = gate * one + (1 - gate) * first
        new_two = gate * two + (1 - gate) * (one + second)
        return torch.tanh(new_two + self.output_bias[way]), new_one, new_two


def _at(values: Tensor, places: Tensor | None) -> Tensor:
    return values if places is None else values[places]
