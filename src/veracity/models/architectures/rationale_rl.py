"""Words chosen by chance, and taught by the answers they lead to (definitions 1.6, 2.3)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import torch
from torch import Tensor, nn
from torch.nn.functional import binary_cross_entropy_with_logits

from ..rationales import RationaleArchitecture, RationaleNetwork, penalties


@dataclass(frozen=True)
class RationaleRl(RationaleArchitecture):
    """Reads the words it chose: each gate is open or shut by chance, learnt by REINFORCE.

    `baseline=none` holds every choice to account for all that its batch costs, and each review for
    the whole pooled penalty, of which hardly anything is due to it. `baseline=others` holds a
    choice to account for the difference that its own review makes to the batch: the gradient of the
    batch's loss, with far less noise.
    """

    baseline: Literal["none", "others"] = "none"
    """What a choice is held to account for: all, or what its own review adds."""

    def network(self, size: int, n_labels: int) -> nn.Module:
        return BernoulliNetwork(self, size, n_labels)


class BernoulliNetwork(RationaleNetwork):
    """z ~ Bernoulli(σ(score)); without chance 1 from a probability of one half on."""

    numbers: ClassVar[int] = 1
    settings: RationaleRl

    def sampled(self, numbers: Tensor, noise: Tensor) -> Tensor:
        return (noise < torch.sigmoid(numbers.squeeze(1))).to(numbers.dtype)

    def decided(self, numbers: Tensor) -> Tensor:
        return (torch.sigmoid(numbers.squeeze(1)) >= 0.5).to(numbers.dtype)

    def per_word(self, numbers: Tensor, gates: Tensor) -> Tensor:
        """log p(z)"""
        return -binary_cross_entropy_with_logits(numbers.squeeze(1), gates, reduction="none")

    def objective(self, wrong: Tensor, total: Tensor, selected: Tensor, lengths: Tensor) -> Tensor:
        """The classifier learns from its errors, the generator from what its choices cost."""
        s = self.settings
        cost = wrong.detach()
        if s.baseline == "none":
            penalty = penalties(selected, lengths, s.rate, s.penalty)
        else:
            count = len(cost)
            cost = cost - (cost.sum() - cost) / max(count - 1, 1)
            penalty = count * self._differences(selected, lengths)
        return wrong.mean() + ((cost + s.strength * penalty) * total).mean()

    def _differences(self, selected: Tensor, lengths: Tensor) -> Tensor:
        """What the penalty of a batch would lose if one review had the rate wanted. (batch,)"""
        s = self.settings
        instead = selected.to(self.head.weight.dtype).repeat(len(selected), 1)
        instead.diagonal().copy_(s.rate * lengths)
        now = penalties(selected, lengths, s.rate, s.penalty).mean()
        return now - penalties(instead, lengths, s.rate, s.penalty).mean(dim=-1)
