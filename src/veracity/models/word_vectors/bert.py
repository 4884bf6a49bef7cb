"""The last layer of a pretrained encoder (Devlin et al. 2019; definitions 1.9)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from ...core.errors import ModelError
from ...core.inputs import Alignment, Text
from ..contextual import WordEncoder, WordVectors
from ..encoders import Encoder, silent
from ..transformers_pieces import PieceReader, mask_piece, most_pieces, words_read
from ..weights import Shapes


@dataclass(frozen=True)
class Bert(WordVectors):
    """Vectors of word pieces in an encoder's last layer; a word's is the mean of its pieces'."""

    encoder: str = "minilm"
    """Folder of an encoder, or minilm or chinese."""
    longest: int = 128
    """How many pieces of a text are read."""

    def __post_init__(self) -> None:
        if self.longest < 3:
            raise ValueError(f"expected longest to be 3 pieces or more, got {self.longest}")

    def open(self) -> BertEncoder:
        model, tokenizer, _ = Encoder.named(self.encoder).read("")
        return BertEncoder(model, tokenizer, self.longest)

    def load(self, folder: Path, found: Shapes) -> BertEncoder:
        model, tokenizer = Encoder(folder).blank(found)
        return BertEncoder(model, tokenizer, self.longest)


class BertEncoder(WordEncoder):
    """An encoder of transformers and its tokeniser."""

    def __init__(self, model: Any, tokenizer: Any, longest: int) -> None:
        super().__init__()
        if not getattr(tokenizer, "is_fast", False):
            raise ModelError(
                f"expected a tokeniser that tells where its pieces stand, got "
                f"{type(tokenizer).__name__}. Choose an encoder with a tokenizer.json"
            )
        if getattr(model.config, "is_encoder_decoder", False) or not hasattr(
            model.config, "hidden_size"
        ):
            raise ModelError(
                f"expected an encoder such as BERT, got {type(model).__name__}, which has no last "
                "layer with a vector for each piece"
            )
        self.model = model
        self.size = int(model.config.hidden_size)
        pad = tokenizer.pad_token_id or 0
        longest = min(longest, most_pieces(model, tokenizer))
        self.pad = pad
        self.reader = PieceReader(tokenizer, longest, mask_piece(tokenizer, pad))

    def words_read(self, text: Text) -> int:
        return words_read(text, *self.reader.pieces(text), self.reader.longest)

    def layer(self, texts: Sequence[Text]) -> tuple[Tensor, list[Alignment]]:
        """The last layer's vectors of the pieces, and which words these belong to.
        → (texts, pieces, size)"""
        read = [self.reader.pieces(text) for text in texts]
        device = next(self.model.parameters()).device
        rows = [torch.from_numpy(ids) for ids, _ in read]
        ids = torch.nn.utils.rnn.pad_sequence(rows, batch_first=True, padding_value=self.pad)
        lengths = torch.tensor([len(row) for row in rows])
        present = torch.arange(ids.shape[1]) < lengths[:, None]
        answer = self.model(ids.to(device), attention_mask=present.long().to(device))
        return answer.last_hidden_state, [alignment for _, alignment in read]

    def forward(self, texts: Sequence[Text]) -> Tensor:
        pieces, alignments = self.layer(texts)
        return word_shares(alignments, pieces.shape[1]).to(pieces.device) @ pieces

    def save(self, folder: Path) -> None:
        with silent():
            self.model.config.save_pretrained(folder)
            self.reader.tokenizer.save_pretrained(folder)


def word_shares(alignments: Sequence[Alignment], pieces: int) -> Tensor:
    """What each piece adds to the mean of each word's. → (texts, words of the longest, pieces)"""
    shares = torch.zeros(len(alignments), max(a.n_words for a in alignments), pieces)
    for of_text, alignment in zip(shares, alignments, strict=True):
        of_text[alignment.word, alignment.piece] = 1.0
    return shares / shares.sum(dim=2, keepdim=True).clamp(min=1.0)
