"""Texts as rows of numbers, of words or of pieces: what networks that read them have in common."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import torch
from torch import Tensor, nn

from ..core.classifiers import Embedded
from ..core.inputs import FloatArray, IntArray, Text
from ..engine.batches import FEATURES_AT_ONCE, by_length
from ..engine.cache import cached_answers
from ..engine.gradients import evaluating

ABSENT = -1
"""In a row of numbers: nothing is here, behind a text's end or in a padded word's place."""


@dataclass(frozen=True)
class EmbeddedRows(Embedded):
    """A batch that knows its numbers: they stay those of the text, whatever its values become."""

    ids: Tensor  # (batch, pieces)

    def repeat(self, times: int) -> EmbeddedRows:
        many = super().repeat(times)
        ids = self.ids.repeat_interleave(times, dim=0)
        return EmbeddedRows(many.values, many.present, many.feature, many.alignments, ids)


class TextNetwork(nn.Module):
    """A network that reads texts, and what it says of itself."""

    reads: ClassVar[str] = Text.kind

    batch_dependent: ClassVar[bool] = True
    """In batches of another shape, sums of 32-bit numbers have other last digits."""

    labels: tuple[str, ...]

    @property
    def device(self) -> torch.device:
        return next(self.parameters()).device

    def probabilities(self, inputs: Sequence[Text]) -> FloatArray:
        """An answer per text. → (texts, labels)"""
        raise NotImplementedError


class RowClassifier(TextNetwork):
    """Asked in batches of like length, and about equal rows once."""

    at_once: ClassVar[int] = FEATURES_AT_ONCE
    """How many padded numbers are read at a time."""

    pad: int
    """The number that stands behind the end of shorter texts."""

    fewest: int = 1
    """Fewer numbers cannot be read."""

    def __init__(self) -> None:
        super().__init__()
        self.moved_text: Text | None = None

    @abstractmethod
    def _ids(self, text: Text) -> IntArray:
        """The numbers of what a text is read as."""

    @abstractmethod
    def row_logits(self, rows: Sequence[IntArray]) -> Tensor:
        """The answers to rows that are read together. → (rows, labels)"""

    def rows_read(self, n_words: int) -> int:
        """How many rows a text takes in the network: what bounds a batch."""
        return n_words

    def probabilities(self, inputs: Sequence[Text]) -> FloatArray:
        """Answers in batches of like length."""
        return self._answers([self._ids(text) for text in inputs])

    def _answers(self, given: Sequence[IntArray]) -> FloatArray:
        """The probabilities of every row. → (rows, labels)"""

        def ask(places: list[int]) -> FloatArray:
            rows = [given[i] for i in places]
            found = np.zeros((len(rows), len(self.labels)))
            with torch.inference_mode(), evaluating(self):
                for batch in by_length([self.rows_read(len(row)) for row in rows], self.at_once):
                    logits = self.row_logits([rows[i] for i in batch])
                    found[batch] = torch.softmax(logits.double(), dim=-1).cpu().numpy()
            return found

        return cached_answers(self, [row.tobytes() for row in given], ask, len(self.labels))

    def _padded(self, rows: Sequence[IntArray]) -> tuple[Tensor, Tensor]:
        """Rows of one length, and where they are more than padding. → both (rows, pieces)"""
        lengths = np.array([len(row) for row in rows])
        ids = np.full((len(rows), max(self.fewest, int(lengths.max()))), ABSENT, dtype=np.int64)
        ids[np.arange(ids.shape[1]) < lengths[:, None]] = np.concatenate(rows)
        given = torch.from_numpy(ids).to(self.device)
        return torch.where(given == ABSENT, self.pad, given), given != ABSENT
