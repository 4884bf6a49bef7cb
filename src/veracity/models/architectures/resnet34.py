"""A residual network of 34 layers (He et al. 2016; definitions 1.7)."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

from torch import Tensor, nn

from ..pictures import PictureArchitecture

BLOCKS = (3, 4, 6, 3)


@dataclass(frozen=True)
class Resnet34(PictureArchitecture):
    """ResNet-34: four stages of basic blocks, whose last maps are averaged."""

    width: int = 64
    """Maps of the first stage; each later one has twice as many. Half of them train four times as
    fast on a processor."""

    def __post_init__(self) -> None:
        if self.width < 1:
            raise ValueError(f"expected a width of at least 1, got {self.width}")

    def network(self, n_labels: int) -> nn.Module:
        return ResidualNetwork(n_labels, self.width)


class ResidualNetwork(nn.Module):
    def __init__(self, n_labels: int, width: int) -> None:
        super().__init__()
        widths = [width << stage for stage in range(len(BLOCKS))]
        self.stem = nn.Sequential(
            nn.Conv2d(3, width, 7, stride=2, padding=3, bias=False),
            nn.BatchNorm2d(width),
            nn.ReLU(),
            nn.MaxPool2d(3, stride=2, padding=1),
        )
        stages = []
        for i, (count, (before, after)) in enumerate(
            zip(BLOCKS, pairwise((width, *widths)), strict=True)
        ):
            first = BasicBlock(before, after, stride=1 if i == 0 else 2)
            stages.append(
                nn.Sequential(first, *(BasicBlock(after, after) for _ in range(count - 1)))
            )
        self.stages = nn.Sequential(*stages)
        self.head = nn.Linear(widths[-1], n_labels)
        for part in self.modules():
            if isinstance(part, nn.Conv2d):
                nn.init.kaiming_normal_(part.weight, mode="fan_out", nonlinearity="relu")

    def maps(self, values: Tensor) -> Tensor:
        maps: Tensor = self.stages(self.stem(values))
        return maps

    def decide(self, maps: Tensor) -> Tensor:
        logits: Tensor = self.head(maps.mean(dim=(2, 3)))
        return logits

    def forward(self, values: Tensor) -> Tensor:
        return self.decide(self.maps(values))


class BasicBlock(nn.Module):
    """Two convolutions beside a short cut."""

    def __init__(self, before: int, width: int, stride: int = 1) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            nn.Conv2d(before, width, 3, stride=stride, padding=1, bias=False),
            nn.BatchNorm2d(width),
            nn.ReLU(),
            nn.Conv2d(width, width, 3, padding=1, bias=False),
            nn.BatchNorm2d(width),
        )
        self.short_cut: nn.Module = nn.Identity()
        if stride != 1 or before != width:
            self.short_cut = nn.Sequential(
                nn.Conv2d(before, width, 1, stride=stride, bias=False), nn.BatchNorm2d(width)
            )

    def forward(self, values: Tensor) -> Tensor:
        found: Tensor = nn.functional.relu(self.layers(values) + self.short_cut(values))
        return found
