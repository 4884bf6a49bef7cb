"""Words and the phrases around them, composed over trees (SentiBERT, Yin et al. 2020;
definitions 1.10)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import torch
from torch import Tensor

from ...core.errors import ModelError
from ...core.inputs import Text
from ...data.parsing import Parser
from ..contextual import WordEncoder, WordVectors
from ..encoders import Encoder
from ..sentibert import PhraseEncoder, read_sentibert
from ..weights import Shapes
from .bert import BertEncoder, word_shares

Parts = Literal["both", "words", "phrases"]


@dataclass(frozen=True)
class Sentibert(WordVectors):
    """A word's own vector in an encoder that learnt labels of phrases, and beside it that of the
    smallest phrase around the word."""

    encoder: str = ""
    """Folder of a network that `veracity pretrain sentibert` made, or of a published one."""
    trees: str | tuple[str, ...] = "spacy"
    """Where trees come from: spacy, balanced, right or a file; of several, the first that knows a
    text."""
    parts: Parts = "both"
    """What a vector is made of: the word, the phrase, or both, one behind the other."""
    longest: int = 128
    """How many pieces of a text are read."""
    pickled: bool = False
    """Whether pickled tensors are read where a folder holds no safetensors."""

    def __post_init__(self) -> None:
        if self.longest < 3:
            raise ValueError(f"expected longest to be 3 pieces or more, got {self.longest}")
        _ = self.parser

    @property
    def parser(self) -> Parser:
        """What knows the trees of texts."""
        return Parser((self.trees,) if isinstance(self.trees, str) else self.trees)

    def open(self) -> SentibertEncoder:
        if not self.encoder:
            raise ModelError(
                "sentibert needs the folder of a network: sentibert(encoder=DIR). Make one: "
                "veracity pretrain sentibert TREES --out DIR"
            )
        found = read_sentibert(Path(self.encoder), longest=self.longest, pickled=self.pickled)
        return SentibertEncoder(found.phrases, self)

    def load(self, folder: Path, found: Shapes) -> SentibertEncoder:
        model, tokenizer = Encoder(folder).blank(found)
        return SentibertEncoder(PhraseEncoder(BertEncoder(model, tokenizer, self.longest)), self)


class SentibertEncoder(WordEncoder):
    """Words and phrases of texts whose trees are looked up or parsed."""

    def __init__(self, phrases: PhraseEncoder, settings: Sentibert) -> None:
        super().__init__()
        self.phrases = phrases
        self.parts = settings.parts
        self.parser = settings.parser
        self.size = phrases.encoder.size * (2 if settings.parts == "both" else 1)

    def words_read(self, text: Text) -> int:
        return self.phrases.encoder.words_read(text)

    def forward(self, texts: Sequence[Text]) -> Tensor:
        trees = [self.parser.tree(text) for text in texts]
        found = self.phrases(texts, trees)
        shares = word_shares(found.alignments, found.pieces.shape[1]).to(found.pieces.device)
        words: Tensor = shares @ found.pieces
        if self.parts == "words":
            return words
        around = torch.zeros(words.shape[:2], dtype=torch.long)
        for row, tree in zip(around, trees, strict=True):
            rows = {place: i for i, place in enumerate(tree.phrases)}
            row[: len(tree.words)] = torch.tensor([rows[place] for place in tree.smallest()])
        index = around.to(words.device)[:, :, None].expand(-1, -1, found.phrases.shape[2])
        # behind the last word read there is none
        phrases = found.phrases.gather(1, index) * shares.any(dim=2, keepdim=True)
        return phrases if self.parts == "phrases" else torch.cat([words, phrases], dim=2)

    def save(self, folder: Path) -> None:
        self.phrases.encoder.save(folder)
