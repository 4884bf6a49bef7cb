"""Texts as the pieces of a transformers tokeniser, and the words that each piece belongs to."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..core.errors import ModelError
from ..core.inputs import MASK_WORD, Alignment, IntArray, Span, Text
from .encoders import UNLIMITED, first_line, piece_limit

LONGEST = 512
"""How many pieces are read of a text where neither model nor tokeniser names a limit."""


@dataclass(frozen=True)
class PieceReader:
    """A tokeniser that tells where its pieces stand, how many are read, and what hides one."""

    tokenizer: Any
    longest: int
    mask: int

    def pieces(self, text: Text) -> tuple[IntArray, Alignment]:
        """Numbers of the pieces, special ones included, and which words they belong to."""
        spelt = text.text or MASK_WORD
        try:
            found = self.tokenizer(
                spelt,
                truncation=True,
                max_length=self.longest,
                return_offsets_mapping=True,
                return_special_tokens_mask=True,
            )
        except Exception as error:  # tokenisers raise just that
            raise ModelError(
                f"the tokeniser cannot read {spelt[:40]!r} ({first_line(error)}). Copy the model's "
                "folder anew"
            ) from None
        ids = np.array(found["input_ids"], dtype=np.int64)
        marks = zip(found["offset_mapping"], found["special_tokens_mask"], strict=True)
        offsets = [(0, 0) if special else (int(a), int(b)) for (a, b), special in marks]
        if MASK_WORD in spelt:
            ids, offsets = self._masked(spelt, ids, offsets)
        return ids, Alignment.by_offsets(offsets, text.spans)

    def _masked(
        self, spelt: str, ids: IntArray, offsets: list[Span]
    ) -> tuple[IntArray, list[Span]]:
        """One piece for each masked word, where the tokeniser has several: a space, or bytes."""
        hidden = [spelt[a:b].strip() == MASK_WORD for a, b in offsets]
        ids = np.where(hidden, self.mask, ids)
        kept = np.ones(len(ids), dtype=np.bool_)
        for i in range(1, len(ids)):
            if hidden[i] and hidden[i - 1] and offsets[i - 1][1] == offsets[i][1]:
                kept[i] = False
            elif hidden[i] and spelt[slice(*offsets[i - 1])].isspace():
                kept[i - 1] = False
        return ids[kept], [offset for offset, k in zip(offsets, kept, strict=True) if k]


def words_read(text: Text, ids: IntArray, alignment: Alignment, longest: int) -> int:
    """How many words of a text come before the limit of its pieces."""
    last = int(alignment.word.max(initial=-1)) + 1
    return last if len(ids) >= longest else text.n_features


def mask_piece(tokenizer: Any, otherwise: int) -> int:
    """The piece that stands for a hidden one."""
    masks = (tokenizer.mask_token_id, tokenizer.unk_token_id)
    return next((i for i in masks if i is not None), otherwise)


def most_pieces(model: Any, tokenizer: Any) -> int:
    """How many pieces of a text the model can read."""
    positions = getattr(model.config.get_text_config(), "max_position_embeddings", None)
    before = [  # some families number positions from behind the number of padding
        part.padding_idx + 1
        for name, part in model.named_modules()
        if "position" in name.rpartition(".")[2] and getattr(part, "padding_idx", None) is not None
    ]
    limits = [(positions or math.inf) - max(before, default=0), piece_limit(tokenizer)]
    named = [int(n) for n in limits if 0 < n < UNLIMITED]
    return min(named, default=LONGEST)
