"""A small network for pictures, in place of a large one (definitions 1.7)."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from ..pictures import PictureArchitecture


@dataclass(frozen=True)
class PictureCnn(PictureArchitecture):
    """Three convolutions with normalisation and pooling, whose maps are averaged."""

    widths: tuple[int, ...] = (16, 32, 64)
    """Maps of each convolution."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.widths or min(self.widths) < 1:
            raise ValueError(f"expected a map or more for each convolution, got {self.widths}")

    def network(self, n_labels: int) -> nn.Module:
        return SmallNetwork(self.widths, n_labels)


class SmallNetwork(nn.Module):
    def __init__(self, widths: tuple[int, ...], n_labels: int) -> None:
        super().__init__()
        self.blocks = nn.ModuleList(
            nn.Sequential(nn.Conv2d(before, after, 3, padding=1), nn.BatchNorm2d(after), nn.ReLU())
            for before, after in zip((3, *widths), widths, strict=False)
        )
        self.head = nn.Linear(widths[-1], n_labels)

    def maps(self, values: Tensor) -> Tensor:
        for block in self.blocks:
            values = halved(block(values))
        return values

    def decide(self, maps: Tensor) -> Tensor:
        logits: Tensor = self.head(maps.mean(dim=(2, 3)))
        return logits

    def forward(self, values: Tensor) -> Tensor:
        return self.decide(self.maps(values))


def halved(maps: Tensor) -> Tensor:
    """The strongest of two by two places, as max_pool2d gives it, which takes many times longer on
    a processor; of equal ones only that one tells which is the winner that gradients go to."""
    if maps.requires_grad:
        return nn.functional.max_pool2d(maps, 2, ceil_mode=True)
    height, width = maps.shape[-2:]
    if height % 2 or width % 2:
        maps = nn.functional.pad(maps, (0, width % 2, 0, height % 2), value=-torch.inf)
    rows = torch.maximum(maps[..., ::2, :], maps[..., 1::2, :])
    return torch.maximum(rows[..., ::2], rows[..., 1::2])
