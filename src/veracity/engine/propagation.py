"""Following an answer back to the words by rules other than the gradient (definitions 3.6, 3.7).

The model is run as it is. While it runs, each function it calls is answered with the function's own
value and with a backward pass that follows a rule, so that an ordinary gradient at the embeddings
is what the method propagates.
"""

from __future__ import annotations

import functools
import math
import types
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor
from torch.nn import functional
from torch.overrides import TorchFunctionMode

from ..core.classifiers import Differentiable, Embedded
from ..core.errors import ModelError
from ..core.inputs import Input
from .gradients import PathGradient, chosen_output, in_batches, records, without_features

Function = Callable[..., Tensor]

ROUNDING = 1e-9
"""What doubles may lose on the way: a lead below this is none."""

NAMES = {
    **dict.fromkeys(("multiply", "__mul__", "__rmul__"), "mul"),
    **dict.fromkeys(("divide", "true_divide", "__truediv__"), "div"),
    **dict.fromkeys(("__matmul__", "mm", "bmm", "mv", "dot"), "matmul"),
    **dict.fromkeys(("absolute", "__abs__"), "abs"),
    **{f"special_{name}": name for name in ("erf", "softmax", "log_softmax", "logsumexp")},
    "special_expit": "sigmoid",
    "__pow__": "pow",
    "clip": "clamp",
}
"""One name for what is spelt in several ways; a trailing underscore is taken off before."""

FACTORS = ("mat1", "batch1", "other", "mat2", "batch2")
"""What functions of two factors call them where they are given by name, in order."""

NARROWING = ("float", "half", "bfloat16")

CURVED = ("tanh", "gelu", "silu", "mish", "elu", "selu", "celu")
BENT = ("leaky_relu", "hardtanh", "hardswish", "softshrink", "hardshrink")
"""Activations that are nothing at zero."""

OFF_ORIGIN = ("sigmoid", "hardsigmoid", "log_sigmoid", "softplus", "clamp", "erf", "sin", "cos")
POWERS = ("exp", "expm1", "log", "log1p", "sqrt", "rsqrt", "reciprocal", "pow", "square")

DTYPE: Any = vars(torch._C.TensorBase)["dtype"].__get__
OWN_CHECKS = {"has_torch_function", "has_torch_function_unary", "has_torch_function_variadic"}


class _Grafted(torch.autograd.Function):
    """The value of one tensor with the backward pass of another."""

    @staticmethod
    def forward(ctx: Any, value: Tensor, path: Tensor) -> Tensor:
        return value.clone()  # not a view: the model may write into it

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[None, Tensor]:
        return None, gradient


def grafted(value: Tensor, path: Tensor) -> Tensor:
    """What the model computes, followed back along `path`."""
    found: Tensor = _Grafted.apply(value.detach(), path)  # type: ignore[no-untyped-call]
    return found


def is_signal(value: Any) -> bool:
    """Whether a value depends on the words; weights do not, they are made constants first."""
    return isinstance(value, Tensor) and value.requires_grad


def slope(function: Function, at: Tensor) -> Tensor:
    """The derivative of a function of single numbers, at each number."""
    with torch.enable_grad():
        point = at.detach().clone().requires_grad_(True)
        (found,) = torch.autograd.grad(function(point).sum(), point)
    return found


class Propagation(TorchFunctionMode):
    """Answers a model's calls while it runs; nothing is hung on the model or copied from it."""

    rules: ClassVar[dict[str, str]]
    """Which method answers which function."""

    written_out: ClassVar[dict[str, str]] = {
        "scaled_dot_product_attention": "attention",
        "layer_norm": "layer_norm",
        "rms_norm": "rms_norm",
        "div": "quotient",
        "glu": "gated",
        **dict.fromkeys(("max", "amax"), "maximum"),
        **dict.fromkeys(("addmm", "baddbmm", "addbmm"), "sum_with_product"),
        **dict.fromkeys(("lstm", "gru", "rnn_tanh", "rnn_relu"), "recurrent"),
        **dict.fromkeys(("lstm_cell", "gru_cell", "rnn_tanh_cell", "rnn_relu_cell"), "one_step"),
    }
    """What is computed from simpler functions, which are then answered in their turn."""

    def __init__(self) -> None:
        super().__init__()
        self.inside: list[Any] = []

    def __torch_function__(
        self, func: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:  # the mode is off in here, and on again under `with self`
        name = getattr(func, "__name__", "")
        if name == "__set__":
            return func(*args, **(kwargs or {}))
        if func == DTYPE and args[0].is_floating_point():
            return _precision(args[0])  # as which all numbers are read here
        in_place = name == "__setitem__" or (name.endswith("_") and not name.endswith("__"))
        if name == "__get__":  # of an attribute
            return func(*map(_constant, args))
        given, named, tensors = _read(list(args), kwargs or {}, in_place)
        signal = next((t for t in tensors if t.requires_grad), None)
        if signal is None:
            return func(*given, **named)
        if name in NARROWING:
            return signal
        wide = _precision(signal)
        given, named = [_widened(g, wide) for g in given], _widened(named, wide)
        plain = name.rstrip("_") if in_place else name
        plain = NAMES.get(plain, plain)
        if plain != "einsum" and func not in self.inside and _opens(func):
            self.inside.append(func)  # some call what torch reports under their own name
            try:
                with self:
                    return opened(func)(*given, **named)
            finally:
                self.inside.pop()
        answer = self.rules.get(plain) or self.written_out.get(plain)
        if answer is None:
            return func(*given, **named)
        if "input" in named:
            given.insert(0, named.pop("input"))
        given += [named.pop(key) for key in FACTORS if key in named]
        if not in_place:
            return getattr(self, answer)(func, *given, **named)

        def copying(first: Tensor, *rest: Any, **others: Any) -> Any:
            return func(first.clone(), *rest, **others)

        copying.__name__ = plain
        copies = [g.clone() if isinstance(g, Tensor) else g for g in given]
        return given[0].copy_(getattr(self, answer)(copying, *copies, **named))

    # ---- written out ------------------------------------------------------------------------

    def attention(
        self,
        func: Function,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        attn_mask: Tensor | None = None,
        dropout_p: float = 0.0,
        is_causal: bool = False,
        *,
        scale: float | None = None,
        enable_gqa: bool = False,
    ) -> Tensor:
        """softmax(q kᵀ · scale + mask) v, as its definition says."""
        with self:
            if enable_gqa:
                times = query.shape[-3] // key.shape[-3]
                key, value = (t.repeat_interleave(times, dim=-3) for t in (key, value))
            factor = query.shape[-1] ** -0.5 if scale is None else scale
            scores = torch.matmul(query, key.transpose(-2, -1)) * factor
            if is_causal:
                attn_mask = torch.ones_like(scores, dtype=torch.bool).tril()
            if attn_mask is not None and attn_mask.dtype == torch.bool:
                # not minus infinity: a padded row in which all is hidden must stay a number
                scores = scores.masked_fill(~attn_mask, torch.finfo(scores.dtype).min)
            elif attn_mask is not None:
                scores = scores + attn_mask
            return torch.matmul(torch.softmax(scores, -1), value)

    def layer_norm(
        self,
        func: Function,
        x: Tensor,
        shape: Sequence[int],
        weight: Tensor | None = None,
        bias: Tensor | None = None,
        eps: float = 1e-5,
        cudnn: bool = True,
    ) -> Tensor:
        with self:
            centred = x - x.mean(tuple(range(-len(shape), 0)), keepdim=True)
            found = torch.rms_norm(centred, list(shape), weight, eps)
            return found if bias is None else found + bias

    def rms_norm(
        self,
        func: Function,
        x: Tensor,
        shape: Sequence[int],
        weight: Tensor | None = None,
        eps: float | None = None,
    ) -> Tensor:
        with self:
            power = (x * x).mean(tuple(range(-len(shape), 0)), keepdim=True)
            found = x * torch.rsqrt(power + (torch.finfo(x.dtype).eps if eps is None else eps))
            return found if weight is None else found * weight

    def quotient(self, func: Function, a: Any, b: Any, **named: Any) -> Tensor:
        if not is_signal(b) or named.get("rounding_mode"):
            return func(a, b, **named)
        with self:
            product: Tensor = torch.reciprocal(b) * a
            return product

    def gated(self, func: Function, x: Tensor, dim: int = -1) -> Tensor:
        with self:
            signal, gate = x.chunk(2, dim)
            return signal * torch.sigmoid(gate)

    def maximum(
        self, func: Function, x: Tensor, dim: Any = None, keepdim: bool = False, **named: Any
    ) -> Any:
        """All goes to the winner: the first, where several differ by rounding alone."""
        if not isinstance(dim, int) or named:
            given = {"dim": dim, "keepdim": keepdim} if isinstance(dim, int | tuple | list) else {}
            return func(x, *([dim] if isinstance(dim, Tensor) else []), **given, **named)
        best = x.detach().amax(dim, keepdim=True)
        winner = (x >= best - ROUNDING * (1 + best.abs())).byte().argmax(dim, keepdim=True)
        found = grafted(best, self.won(x, best, winner, dim))
        if not keepdim:
            found, winner = found.squeeze(dim), winner.squeeze(dim)
        return found if func.__name__ == "amax" else torch.return_types.max((found, winner))

    def won(self, x: Tensor, value: Tensor, winner: Tensor, dim: int) -> Tensor:
        """What the winner is followed back by."""
        return x.gather(dim, winner)

    def sum_with_product(
        self, func: Function, x: Tensor, a: Tensor, b: Tensor, *, beta: float = 1, alpha: float = 1
    ) -> Tensor:
        with self:
            product = torch.matmul(a, b)
            return x * beta + (product.sum(0) if func.__name__ == "addbmm" else product) * alpha

    def recurrent(self, func: Function, *args: Any) -> tuple[Tensor, ...]:
        """Every layer and direction of a recurrent network, word by word."""
        if isinstance(args[3], list | tuple):  # packed: rows sorted by length, and so many per step
            values, sizes, start, flat, biased, layers, _, _, both_ways = args
            steps, time = list(values.split(sizes.tolist())), None
        else:
            values, start, flat, biased, layers, _, _, both_ways, batch_first = args
            time = 1 if batch_first else 0
            steps = list(values.unbind(time))
        starts = tuple(start) if func.__name__ == "lstm" else (start,)
        per = len(flat) // (layers * (2 if both_ways else 1))
        ends: list[tuple[Tensor, ...]] = []
        with self:
            for _ in range(layers):
                ways = []
                for way in range(2 if both_ways else 1):
                    place = len(ends)
                    cell = _Cell.of(func.__name__, flat[place * per : (place + 1) * per], biased)
                    states, end = _unrolled(cell, steps, [s[place] for s in starts], way == 1)
                    ways.append(states)
                    ends.append(end)
                steps = [
                    torch.cat(both, dim=-1) if len(both) > 1 else both[0]
                    for both in zip(*ways, strict=True)
                ]
            output = torch.cat(steps) if time is None else torch.stack(steps, dim=time)
            return output, *(torch.stack(parts) for parts in zip(*ends, strict=True))

    def one_step(self, func: Function, x: Tensor, state: Any, *weights: Any) -> Any:
        kind = func.__name__.removesuffix("_cell")
        with self:
            cell = _Cell.of(kind, [w for w in weights if w is not None], weights[-1] is not None)
            found = cell(x, tuple(state) if kind == "lstm" else (state,))
        return found if kind == "lstm" else found[0]


@dataclass(frozen=True)
class _Cell:
    """One step of a recurrent network, from weights laid out as torch lays them out."""

    kind: str
    weights: Sequence[Tensor]
    joint: Tensor  # (gates, input + state)
    bias: Tensor | None
    projection: Tensor | None

    @classmethod
    def of(cls, kind: str, weights: Sequence[Tensor], biased: bool) -> _Cell:
        joint = torch.cat([weights[0], weights[1]], dim=1)
        bias = weights[2] + weights[3] if biased else None
        rest = weights[4:] if biased else weights[2:]
        return cls(kind, weights, joint, bias, rest[0] if rest else None)

    def __call__(self, x: Tensor, state: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
        if self.kind == "gru":
            return self._gru(x, state[0])
        # one product, so that the bias is shared among words and state together
        z = functional.linear(torch.cat([x, state[0]], dim=1), self.joint, self.bias)
        if self.kind != "lstm":
            return (torch.tanh(z) if self.kind == "rnn_tanh" else torch.relu(z),)
        into, keep, new, out = z.chunk(4, dim=1)
        memory = torch.sigmoid(keep) * state[1] + torch.sigmoid(into) * torch.tanh(new)
        shown = torch.sigmoid(out) * torch.tanh(memory)
        if self.projection is not None:
            shown = functional.linear(shown, self.projection)
        return shown, memory

    def _gru(self, x: Tensor, state: Tensor) -> tuple[Tensor, ...]:
        by_input, by_state = self.weights[:2]
        biases = self.weights[2:4] if self.bias is not None else (None, None)
        reset, update, new = functional.linear(x, by_input, biases[0]).chunk(3, dim=1)
        old = functional.linear(state, by_state, biases[1])
        old_reset, old_update, old_new = old.chunk(3, dim=1)
        candidate = torch.tanh(new + torch.sigmoid(reset + old_reset) * old_new)
        kept = torch.sigmoid(update + old_update)
        return (candidate * (1 - kept) + kept * state,)


def _unrolled(
    cell: _Cell, steps: Sequence[Tensor], start: Sequence[Tensor], backwards: bool
) -> tuple[list[Tensor], tuple[Tensor, ...]]:
    """States at every step and at the end; rows may end early, the longest come first."""
    states: list[Tensor] = []
    state = tuple(start)
    ended: list[tuple[Tensor, ...]] = []
    if backwards:
        state = tuple(s[: len(steps[-1])] for s in start)
    for x in reversed(steps) if backwards else steps:
        n, before = len(x), len(state[0])
        if n < before:
            ended.append(tuple(s[n:] for s in state))
            state = tuple(s[:n] for s in state)
        elif n > before:
            state = tuple(torch.cat([s, s0[before:n]]) for s, s0 in zip(state, start, strict=True))
        state = cell(x, state)
        states.append(state[0])
    if ended:
        state = tuple(torch.cat(parts) for parts in zip(state, *reversed(ended), strict=True))
    return states[::-1] if backwards else states, state


# ---- calls -------------------------------------------------------------------------------------


def _opens(func: Any) -> bool:
    return isinstance(func, types.FunctionType) and not OWN_CHECKS.isdisjoint(
        func.__code__.co_names
    )


@functools.cache
def opened(func: types.FunctionType) -> Function:
    """The function without its question whether a mode is on: its own calls are then met."""
    answers = {name: lambda *_: False for name in OWN_CHECKS}
    inner = types.FunctionType(
        func.__code__,
        {**func.__globals__, **answers},
        func.__name__,
        func.__defaults__,
        func.__closure__,
    )
    inner.__kwdefaults__ = func.__kwdefaults__
    return inner


def _constant(value: Any) -> Any:
    # a leaf that asks for a gradient is a weight: the words are never a leaf
    weight = isinstance(value, Tensor) and value.requires_grad and value.is_leaf
    return value.detach() if weight else value


def _read(
    given: list[Any], named: dict[str, Any], in_place: bool
) -> tuple[list[Any], dict[str, Any], list[Tensor]]:
    """Arguments with weights as constants, and with numbers of one precision; and the tensors.

    The words are followed in doubles and weights are not, so that rounding, which depends on what
    else is in a batch, stays far below the smallest difference that a rule looks at.
    """
    found = _mapped(_constant, [given, named])
    tensors = _tensors(found)
    kinds = {t.dtype for t in tensors if t.is_floating_point()}
    if torch.float64 in kinds and len(kinds) > 1:
        kind = found[0][0].dtype if in_place else torch.float64
        found = _mapped(lambda t: t.to(kind) if t.is_floating_point() else t, found)
        tensors, kinds = _tensors(found), {kind}
    # the least double, with which models hide scores, is beyond what weights alone can hold
    most = min((torch.finfo(k).max for k in kinds), default=math.inf)
    within = [_within(g, most) for g in found[0]]
    return within, {key: _within(value, most) for key, value in found[1].items()}, tensors


def _within(value: Any, most: float) -> Any:
    finite = isinstance(value, float) and math.isfinite(value)
    return max(-most, min(most, value)) if finite else value


def _widened(value: Any, to: torch.dtype) -> Any:
    """A wish for another precision, which models have for norms and softmax, is not heard."""
    if isinstance(value, dict):
        return {key: _widened(v, to) for key, v in value.items()}
    return to if isinstance(value, torch.dtype) and value.is_floating_point else value


def _precision(tensor: Tensor) -> torch.dtype:
    """Doubles, except on the one kind of device that has none."""
    return tensor.detach().dtype if tensor.device.type == "mps" else torch.float64


def _mapped(function: Callable[[Tensor], Tensor], value: Any) -> Any:
    """The same arguments with every tensor replaced."""
    if isinstance(value, Tensor):
        return function(value)
    if type(value) in (list, tuple):
        return type(value)([_mapped(function, v) for v in value])
    if type(value) is dict:
        return {key: _mapped(function, v) for key, v in value.items()}
    return value


def _tensors(values: Any) -> list[Tensor]:
    """Those within a list, a tuple or a dictionary; it is called for every step of a model."""
    found: list[Tensor] = []
    for value in values.values() if isinstance(values, dict) else values:
        if isinstance(value, Tensor):
            found.append(value)
        elif isinstance(value, (list, tuple, dict)):
            found += _tensors(value)
    return found


def flat(factors: Sequence[Any]) -> list[Any]:
    """Factors in a row; einsum may be given them as a list."""
    return [f for g in factors for f in (g if isinstance(g, list | tuple) else [g])]


def signal_places(factors: Sequence[Any]) -> list[int]:
    return [i for i, factor in enumerate(flat(factors)) if is_signal(factor)]


def replaced(factors: Sequence[Any], new: dict[int, Tensor]) -> list[Any]:
    return [new.get(i, factor) for i, factor in enumerate(flat(factors))]


# ---- from texts to embeddings ------------------------------------------------------------------


def answered(
    model: Differentiable, embedded: Embedded, rules: Propagation
) -> tuple[Tensor, Tensor]:
    """The embeddings that are followed, and the logits (batch, labels) that lead back to them."""
    values = embedded.values.detach()
    values = values.to(_precision(values), copy=True).requires_grad_(True)
    with torch.enable_grad():
        # a copy: what the model sees is no leaf, so that every leaf it uses is a weight
        seen = embedded.with_values(values.clone())
        with rules:
            return values, model.logits(seen)


def followed(
    model: Differentiable, embedded: Embedded, targets: Sequence[int], rules: Propagation
) -> tuple[Tensor, Tensor]:
    """What to multiply the embeddings by, and the logits (batch, labels)."""
    values, logits = answered(model, embedded, rules)
    output = chosen_output(logits, targets)
    if not output.requires_grad:
        raise ModelError(
            "expected logits that depend on the embeddings by more than gates; here no path leads "
            "back to the words. Check that `logits` neither detaches them nor ends in a sigmoid"
        )
    (gradient,) = torch.autograd.grad(output.sum(), values, allow_unused=True)
    return torch.zeros_like(values) if gradient is None else gradient, logits.detach()


def propagated(
    model: Differentiable,
    inputs: Sequence[Input],
    targets: Sequence[int],
    one_batch: Callable[[Embedded, Sequence[int]], tuple[Tensor, list[Tensor]]],
    passes: int,
) -> list[PathGradient]:
    """Per batch: what to multiply the embeddings by, and the logits along the way, the inputs' own
    last."""

    def follow(batch: list[int], embedded: Embedded) -> tuple[list[PathGradient], Tensor]:
        wanted = [targets[i] for i in batch]
        gradients, logits = one_batch(embedded, wanted)
        outputs = torch.stack([chosen_output(each, wanted) for each in logits], dim=1)
        difference = embedded.values - without_features(embedded)
        found = records(difference, gradients, outputs.cpu().double().numpy(), embedded)
        return found, logits[-1].to(embedded.values)

    return in_batches(model, inputs, follow, passes=passes)
