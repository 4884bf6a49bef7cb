"""Shapley values, exact or by weighted regression (SPEC 3.3)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from math import comb
from typing import Literal

import numpy as np

from ..core.attributions import Attribution
from ..core.classifiers import Classifier
from ..core.errors import PluginError
from ..core.explainers import Explainer
from ..core.inputs import BoolArray, FloatArray, Hiding, Text
from ..engine.asking import Output, masked_probabilities, value

EXACT_UP_TO = 12


@dataclass(frozen=True)
class KernelShap(Explainer):
    """Each word's fair share of the answer; shares add up to it (Lundberg & Lee).

    At least four samples per word are taken, whatever `samples` says.
    """

    samples: int = 512
    form: Literal["kernel", "exact"] = "kernel"
    hiding: Hiding = Hiding.MASK
    output: Output = "probability"

    def __post_init__(self) -> None:
        if self.samples < 4:
            raise ValueError(f"expected at least 4 samples, got {self.samples}")

    def explain(
        self,
        model: Classifier,
        inputs: Sequence[Text],
        targets: Sequence[int],
        rngs: Sequence[np.random.Generator],
    ) -> list[Attribution]:
        plans = [self._plan(text.n_features, rng) for text, rng in zip(inputs, rngs, strict=True)]
        answers = masked_probabilities(model, inputs, [z for z, _ in plans], self.hiding)
        found = []
        for text, target, (z, weights), rows in zip(inputs, targets, plans, answers, strict=True):
            v = value(rows, target, self.output)
            scores = exact_shapley(v) if self.form == "exact" else constrained_fit(z, v, weights)
            found.append(
                Attribution(text, target, scores, base_value=float(v[0]), output_value=float(v[-1]))
            )
        return found

    def _plan(self, n: int, rng: np.random.Generator) -> tuple[BoolArray, FloatArray]:
        """Which coalitions to ask about, and how much each counts; first none, last all."""
        if self.form == "exact":
            if n > EXACT_UP_TO:
                raise PluginError(
                    f"exact Shapley values are for texts of up to {EXACT_UP_TO} words, this one "
                    f"has {n}. Use form=kernel"
                )
            return all_coalitions(n), np.ones(2**n)
        # pairs of complements are worth one equation each: fewer leave words undetermined
        return coalitions(n, max(self.samples, 4 * n + 2), rng)


def all_coalitions(n: int) -> BoolArray:
    """Row s shows the words whose bits are set in s. → (2^n, n)"""
    return (np.arange(2**n)[:, None] >> np.arange(n) & 1).astype(np.bool_)


def exact_shapley(v: FloatArray) -> FloatArray:
    """Shapley values from the answers for all coalitions, in the order of `all_coalitions`."""
    n = len(v).bit_length() - 1
    sizes = all_coalitions(n).sum(axis=1)
    share = np.array([1 / (n * comb(n - 1, s)) for s in range(n)])  # |S|!(n-|S|-1)!/n!
    subsets = np.arange(len(v))
    scores = np.empty(n)
    for i in range(n):
        without = subsets[(subsets >> i & 1) == 0]
        scores[i] = share[sizes[without]] @ (v[without | 1 << i] - v[without])
    return scores


def coalitions(n: int, samples: int, rng: np.random.Generator) -> tuple[BoolArray, FloatArray]:
    """All coalitions when they are few; else the small and large ones whole, the rest drawn.

    A size is taken whole, with its complement, while the questions left suffice for a fair
    share of it; the weight of all other sizes is spread over coalitions drawn in pairs.
    """
    if n < 2 or 2**n <= samples:
        z = all_coalitions(n)
        sizes = z.sum(axis=1)
        weights = np.array([0.0 if s in (0, n) else _kernel(n, s) for s in sizes])
        return z, weights
    parts: list[BoolArray] = []
    weights_found: list[FloatArray] = []
    left = samples - 2
    size = 1
    while size <= n // 2:
        both = 1 if 2 * size == n else 2
        number = comb(n, size) * both
        open_sizes = range(size, n // 2 + 1)
        mass = [_mass(n, s) for s in open_sizes]
        if number > left or left * mass[0] / sum(mass) < number:
            break
        whole = _subsets(n, size)
        block = whole if both == 1 else np.vstack([whole, ~whole])
        parts.append(block)
        weights_found.append(np.full(len(block), _kernel(n, size)))
        left -= number
        size += 1
    if size <= n // 2 and left >= 2:
        open_sizes = range(size, n // 2 + 1)
        mass_left = np.array([_mass(n, s) for s in open_sizes])
        sizes = rng.choice(list(open_sizes), size=left // 2, p=mass_left / mass_left.sum())
        ranks = rng.random((len(sizes), n)).argsort(axis=1).argsort(axis=1)
        half = ranks < sizes[:, None]
        drawn = np.vstack([half, ~half])
        parts.append(drawn)
        weights_found.append(np.full(len(drawn), mass_left.sum() / len(drawn)))
    ends = np.array([np.zeros(n), np.ones(n)]).astype(np.bool_)
    z = np.vstack([ends[:1], *parts, ends[1:]])
    return z, np.concatenate([[0.0], *weights_found, [0.0]])


def _kernel(n: int, size: int) -> float:
    """The weight of one coalition of this size."""
    return (n - 1) / (comb(n, size) * size * (n - size))


def _mass(n: int, size: int) -> float:
    """The weight of all coalitions of this size and of their complements."""
    both = 1 if 2 * size == n else 2
    return both * (n - 1) / (size * (n - size))


def _subsets(n: int, size: int) -> BoolArray:
    chosen = np.array(list(combinations(range(n), size)))
    rows = np.zeros((len(chosen), n), dtype=np.bool_)
    np.put_along_axis(rows, chosen, True, axis=1)
    return rows


def constrained_fit(z: BoolArray, v: FloatArray, weights: FloatArray) -> FloatArray:
    """Weighted least squares under the constraint that the shares add up. First row none shown,
    last row all shown."""
    n = z.shape[1]
    total = v[-1] - v[0]
    if n == 1:
        return np.array([total])
    # the last word takes what the others leave: one unknown less, and the sum is exact
    x = z.astype(np.float64)
    last = x[:, -1]
    design = x[:, :-1] - last[:, None]
    y = v - v[0] - last * total
    root = np.sqrt(weights)
    others = np.linalg.lstsq(design * root[:, None], y * root, rcond=None)[0]
    return np.append(others, total - others.sum())
