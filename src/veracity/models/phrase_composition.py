"""Vectors of phrases over a binary tree, by two levels of attention (SentiBERT, Yin et al. 2020;
definitions 1.10)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import gelu

from ..core.inputs import Alignment
from ..data.trees import Tree

SHARPNESS = 4
"""What the products of queries and values are divided by, whatever their size."""

SPREAD = 0.02
"""The deviation of weights that are drawn for layers of WIDTH, as BERT's are; narrower ones draw
wider, or what passes through several would vanish."""

WIDTH = 768

FAR = -1e4
"""What is attended to instead of nothing has no weight at all."""


@dataclass(frozen=True)
class Places:
    """Of the phrases of a batch of trees, which pieces are theirs, and what they are made of: their
    two halves, phrases where these are, else pieces; and themselves."""

    own: Tensor  # (texts, phrases, pieces)
    made_of: Tensor  # (texts, phrases, pieces + phrases)

    @classmethod
    def of(cls, trees: Sequence[Tree], alignments: Sequence[Alignment], pieces: int) -> Places:
        """Phrases in the order of their trees; behind the last, nothing."""
        phrases = max(len(tree.phrases) for tree in trees)
        own = np.zeros((len(trees), phrases, pieces), dtype=np.bool_)
        made_of = np.zeros((len(trees), phrases, pieces + phrases), dtype=np.bool_)
        for i, (tree, alignment) in enumerate(zip(trees, alignments, strict=True)):
            count = np.zeros((alignment.n_words + 1, pieces), dtype=np.int64)
            count[alignment.word + 1, alignment.piece] = 1
            count = count.cumsum(axis=0)  # of how many words before each a piece is part
            of_node = [count[node.end] > count[node.start] for node in tree.nodes]
            rows = {place: row for row, place in enumerate(tree.phrases)}
            for place, row in rows.items():
                own[i, row] = of_node[place]
                made_of[i, row, pieces + row] = True
                for half in tree.nodes[place].parts or (place,):
                    if half in rows:
                        made_of[i, row, pieces + rows[half]] = True
                    if half not in rows or half == place:  # a word
                        made_of[i, row, :pieces] |= of_node[half]
        return cls(torch.from_numpy(own), torch.from_numpy(made_of))

    def to(self, device: torch.device) -> Places:
        return Places(self.own.to(device), self.made_of.to(device))


class PhraseComposition(nn.Module):
    """From vectors of pieces those of phrases. Its weights have the names that are published."""

    def __init__(self, size: int, *, epsilon: float = 1e-12) -> None:
        super().__init__()
        self.trans = nn.Linear(size, size)
        self.bahdanau_attention = Query(size)
        self.linear_out = _merging(size)
        self.bahdanau_attention_3 = Query(size)
        self.linear_out_3 = _merging(size)
        self.trans_2 = nn.Linear(size, size)
        self.trans_3 = nn.Linear(size, size)
        self.LayerNorm = nn.LayerNorm(size, eps=epsilon)
        draw(self)

    def forward(self, pieces: Tensor, places: Places) -> Tensor:
        """(texts, pieces, size) → (texts, phrases, size)"""
        values = self.trans(pieces)
        own = places.own.to(values.dtype)
        # one more than there are, as in the released code
        mean = own @ values / (own.sum(dim=-1, keepdim=True) + 1)
        seen = self.bahdanau_attention(mean, values, places.own)
        first = self.linear_out(torch.cat([mean, seen], dim=-1))
        everything = torch.cat([values, first], dim=1)
        seen = self.bahdanau_attention_3(first, everything, places.made_of)
        second = self.linear_out_3(torch.cat([first, seen], dim=-1))
        found = self.LayerNorm(gelu(self.trans_2(second)))
        return cast(Tensor, self.LayerNorm(gelu(self.trans_3(found))))


class Query(nn.Module):
    """Attention by products, squeezed into −1 to 1."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self.linear_in = nn.Sequential(
            *(nn.Linear(size, size), nn.SELU(), nn.Dropout(0.1)),
            *(nn.Linear(size, size), nn.SELU(), nn.Dropout(0.1)),
        )

    def forward(self, asking: Tensor, values: Tensor, allowed: Tensor) -> Tensor:
        """The mean of the values that may be attended to; of none, zeros."""
        scores = torch.tanh(self.linear_in(asking) @ values.transpose(1, 2) / SHARPNESS)
        weights = torch.softmax(scores.masked_fill(~allowed, FAR), dim=-1) * allowed
        return weights @ values


class PhraseHead(nn.Module):
    """What a phrase's vector says of its label."""

    def __init__(self, size: int, labels: int, activation: Any, *, epsilon: float = 1e-12) -> None:
        super().__init__()
        self.transform = nn.Module()
        self.transform.dense = nn.Linear(size, size)
        self.transform.LayerNorm = nn.LayerNorm(size, eps=epsilon)
        self.decoder = nn.Linear(size, labels)
        self.activation = activation
        draw(self)

    def forward(self, phrases: Tensor) -> Tensor:
        """(…, size) → (…, labels)"""
        hidden = self.activation(self.transform.dense(phrases))  # type: ignore[operator]
        return cast(Tensor, self.decoder(self.transform.LayerNorm(hidden)))  # type: ignore[operator]


def _merging(size: int) -> nn.Sequential:
    return nn.Sequential(
        *(nn.Linear(2 * size, 2 * size), nn.SELU(), nn.Dropout(0.1)),
        *(nn.Linear(2 * size, size), nn.SELU()),
    )


def draw(module: nn.Module) -> None:
    """New weights."""
    for part in module.modules():
        if isinstance(part, nn.Linear):
            nn.init.normal_(part.weight, std=SPREAD * math.sqrt(WIDTH / part.in_features))
            nn.init.zeros_(part.bias)
