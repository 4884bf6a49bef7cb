"""Words chosen by gates that are often quite shut or quite open, and differentiable between
(definitions 1.6, 2.3)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor, nn
from torch.nn.functional import softplus

from ..rationales import RationaleArchitecture, RationaleNetwork, penalties

LEFT, RIGHT = -0.1, 1.1
"""Where the stretched variable lies; what is beyond 0 and 1 is folded onto them."""

SHUT = math.log(-LEFT / (RIGHT - LEFT))
OPEN = math.log((1 - LEFT) / (RIGHT - LEFT))
"""Logarithms of the points below which a gate is shut, and above which it is open."""

SMALLEST, LARGEST = 1e-6, 100.0
EDGE = 0.001
"""So much of the noise at either end is not used."""


@dataclass(frozen=True)
class RationaleCr(RationaleArchitecture):
    """Reads the words it chose: gates between 0 and 1, learnt by following them back."""

    def network(self, size: int, n_labels: int) -> nn.Module:
        return HardKumaNetwork(self, size, n_labels)


@dataclass(frozen=True)
class HardKuma:
    """A stretched and folded Kumaraswamy variable (Bastings et al.)."""

    a: Tensor
    b: Tensor

    @classmethod
    def of(cls, numbers: Tensor) -> HardKuma:
        """(rows, 2) → distributions of (rows,)"""
        a, b = softplus(numbers).clamp(SMALLEST, LARGEST).unbind(dim=1)
        return cls(a, b)

    def sampled(self, noise: Tensor) -> Tensor:
        """The value below which a share of `noise` lies."""
        u = EDGE + (1 - 2 * EDGE) * noise
        inner = -torch.expm1(torch.log1p(-u) / self.b)
        k = (inner.log() / self.a).exp()
        return (LEFT + (RIGHT - LEFT) * k).clamp(0.0, 1.0)

    def _log_above(self, log_point: float) -> Tensor:
        """log(1 − F(x)) = b log(1 − x^a)"""
        return self.b * (-torch.expm1(self.a * log_point)).log()

    @property
    def p_shut(self) -> Tensor:
        return -torch.expm1(self._log_above(SHUT))

    @property
    def p_open(self) -> Tensor:
        return self._log_above(OPEN).exp()

    @property
    def mean(self) -> Tensor:
        """b B(1 + 1/a, b): of the variable before it is stretched (definitions B26)."""
        first = 1 + 1 / self.a
        log_beta = torch.lgamma(first) + torch.lgamma(self.b) - torch.lgamma(first + self.b)
        return self.b * log_beta.exp()

    def decided(self) -> Tensor:
        """The mean if the gate is most likely between shut and open, else the likelier of both."""
        p_shut, p_open = self.p_shut, self.p_open
        between = 1 - p_shut - p_open > torch.maximum(p_shut, p_open)
        return torch.where(between, self.mean, (p_shut <= p_open).to(self.a.dtype))


class HardKumaNetwork(RationaleNetwork):
    """z ~ HardKuma(a, b), both softplus of a score."""

    numbers: ClassVar[int] = 2

    def sampled(self, numbers: Tensor, noise: Tensor) -> Tensor:
        return HardKuma.of(numbers).sampled(noise)

    def decided(self, numbers: Tensor) -> Tensor:
        return HardKuma.of(numbers).decided()

    def per_word(self, numbers: Tensor, gates: Tensor) -> Tensor:
        """P(z > 0)"""
        return 1 - HardKuma.of(numbers).p_shut

    def objective(self, wrong: Tensor, total: Tensor, selected: Tensor, lengths: Tensor) -> Tensor:
        s = self.settings
        return wrong.mean() + s.strength * penalties(total, lengths, s.rate, s.penalty).mean()
