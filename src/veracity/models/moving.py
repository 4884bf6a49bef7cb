"""Embeddings that stand a little beside where they were."""

from __future__ import annotations

import torch
from torch import Tensor, nn


class MovedEmbedding(nn.Module):
    """An embedding with rows of its own for the pieces of one text, behind those of all pieces."""

    def __init__(self, base: nn.Embedding, pieces: Tensor, by: Tensor) -> None:
        super().__init__()
        self.base = base
        self.pieces = pieces  # (own pieces,) as the base numbers them
        with torch.no_grad():
            self.rows = base(pieces) + by.to(base.weight)  # (own pieces, size)

    @property
    def weight(self) -> Tensor:
        return self.base.weight

    def own(self) -> Tensor:
        """The numbers of the rows that the text has for itself."""
        places = torch.arange(len(self.pieces), device=self.pieces.device)
        return places + self.base.num_embeddings

    def original(self, ids: Tensor) -> Tensor:
        """The numbers that all texts use."""
        place = (ids - self.base.num_embeddings).clamp(min=0)
        return torch.where(self._is_own(ids), self.pieces[place], ids)

    def forward(self, ids: Tensor) -> Tensor:
        place = (ids - self.base.num_embeddings).clamp(min=0)
        return torch.where(
            self._is_own(ids)[..., None], self.rows[place], self.base(self.original(ids))
        )

    def _is_own(self, ids: Tensor) -> Tensor:
        return ids >= self.base.num_embeddings
