"""Sentiment knowledge as an objective for any encoder: hide emotional words and what they are
about, and have them told again (SKEP, Tian et al. 2020)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pad_sequence

from ..core.inputs import Alignment, IntArray, Text
from ..data.lexicon import FUNCTION_WORDS, Emotion, emotions

NOTHING = -100
"""A piece that nothing is asked about."""

LEFT, OTHER = 0.1, 0.1
"""Shares of the ordinary pieces asked about that stay as they are, or become some other piece."""


@dataclass(frozen=True)
class Masking:
    """How much is hidden: so many pairs of aspect and emotional word, then emotional words, then
    ordinary pieces up to a share of all."""

    share: float = 0.1
    pairs: int = 2
    reach: int = 3
    """Words between an emotional word and the farthest that it may be about."""
    least: int = 5
    """Times that a word must stand beside emotional ones to be an aspect."""

    def __post_init__(self) -> None:
        if not 0 < self.share < 1 or self.pairs < 0 or self.reach < 1 or self.least < 1:
            raise ValueError(
                "expected a share between 0 and 1, no fewer than 0 pairs, and a reach and a least "
                f"count of at least 1; got {self.share}, {self.pairs}, {self.reach}, {self.least}"
            )


@dataclass(frozen=True)
class Known:
    """The pieces of a text, and those of its emotional words and pairs."""

    ids: IntArray  # (pieces,)
    ordinary: IntArray  # places of pieces that are neither special nor of an emotional word
    emotional: tuple[IntArray, ...]  # places of the pieces of each emotional word
    polarity: tuple[int, ...]  # of each: 1 praises, 0 blames
    aspects: tuple[IntArray | None, ...]  # of each, the places of what it is about


@dataclass(frozen=True)
class Masked:
    """A text with pieces hidden, and what is asked about it."""

    ids: IntArray  # (pieces,)
    words: IntArray  # (pieces,) the piece that stood there, or nothing
    polarity: IntArray  # (pieces,) 1 praises, 0 blames, or nothing
    pairs: IntArray  # the different pieces of the hidden pairs


def nearby(text: Text, emotion: Emotion, taken: set[int], reach: int) -> list[int]:
    """Words that an emotional one may be about, nearest first, of two as near the one before it: in
    its clause, not emotional, not a function word. Without a tagger these stand in for the nouns of
    the paper."""
    found: list[tuple[int, int]] = []
    for step, start in ((-1, emotion.first), (1, emotion.behind - 1)):
        for distance in range(1, reach + 1):
            place = start + step * distance
            if not 0 <= place < text.n_features:
                break
            word = text.words[place].casefold()
            if not any(c.isalnum() for c in word):
                break  # a sign ends the clause
            if place not in taken and word not in FUNCTION_WORDS:
                found.append((distance, place))
    return [place for _, place in sorted(found, key=lambda pair: pair[0])]


@dataclass(frozen=True)
class Finder:
    """What a lexicon and a corpus know about a text."""

    lexicon: Mapping[str, int]
    aspects: frozenset[str]
    reach: int

    @classmethod
    def of(cls, texts: Sequence[Text], lexicon: Mapping[str, int], masking: Masking) -> Finder:
        """With the words that stand beside emotional ones often enough as aspects."""
        counts: Counter[str] = Counter()
        for text in texts:
            found = emotions(text, lexicon)
            taken = _places(found)
            for emotion in found:
                near = nearby(text, emotion, taken, masking.reach)
                counts.update({text.words[place].casefold() for place in near})
        often = frozenset(word for word, count in counts.items() if count >= masking.least)
        return cls(lexicon, often, masking.reach)

    def known(self, text: Text, ids: IntArray, alignment: Alignment) -> Known:
        """By places of pieces; words that the encoder does not read are left out."""
        own: list[list[int]] = [[] for _ in text.spans]
        for piece, word in zip(alignment.piece.tolist(), alignment.word.tolist(), strict=True):
            own[word].append(piece)

        def pieces(first: int, behind: int) -> IntArray:
            return np.array(sorted({p for some in own[first:behind] for p in some}), dtype=np.int64)

        found = emotions(text, self.lexicon)
        taken = _places(found)
        read = [(e, pieces(e.first, e.behind)) for e in found]
        read = [(e, at) for e, at in read if len(at)]
        about: list[IntArray | None] = []
        for emotion, _ in read:
            near = nearby(text, emotion, taken, self.reach)
            often = (p for p in near if text.words[p].casefold() in self.aspects and own[p])
            place = next(often, None)
            about.append(None if place is None else pieces(place, place + 1))
        hidden = np.concatenate([np.zeros(0, dtype=np.int64), *(at for _, at in read)])
        return Known(
            ids,
            np.setdiff1d(alignment.piece, hidden),
            tuple(at for _, at in read),
            tuple(int(e.polarity > 0) for e, _ in read),
            tuple(about),
        )


def _places(found: Sequence[Emotion]) -> set[int]:
    return {place for e in found for place in range(e.first, e.behind)}


def masked(
    known: Known, masking: Masking, *, mask: int, vocabulary: IntArray, rng: np.random.Generator
) -> Masked:
    """Pairs first, all of their pieces; then other emotional words as far as the share goes; then
    ordinary pieces to fill it, as in BERT. Of a hidden pair the pieces are told by the
    classification token, so only the polarity is asked at their places. A text of fewer than ten
    pieces has one to hide. `vocabulary` is what a piece may be replaced by."""
    ids = known.ids.copy()
    words, polarity = (np.full(len(ids), NOTHING, dtype=np.int64) for _ in range(2))
    total = len(known.ordinary) + sum(map(len, known.emotional))
    room = max(1, int(masking.share * total)) if total else 0
    order = rng.permutation(len(known.emotional))
    paired = [i for i in order if known.aspects[i] is not None][: masking.pairs]
    in_pairs = np.zeros(len(ids), dtype=np.bool_)
    for i in paired:
        in_pairs[known.emotional[i]] = True
        in_pairs[known.aspects[i]] = True
        polarity[known.emotional[i]] = known.polarity[i]
    hidden = in_pairs.copy()
    for i in order:
        at = known.emotional[i]
        if i not in paired and len(at) <= room and not in_pairs[at].any():
            hidden[at] = True
            words[at], polarity[at] = ids[at], known.polarity[i]
            room -= len(at)
    left = known.ordinary[~hidden[known.ordinary]]
    asked = rng.permutation(left)[:room]
    words[asked] = ids[asked]
    pairs = np.unique(ids[in_pairs])
    ids[hidden] = mask
    drawn, others = rng.random(len(asked)), rng.choice(vocabulary, len(asked))
    ids[asked] = np.where(
        drawn < LEFT, ids[asked], np.where(drawn < LEFT + OTHER, others, mask)
    )  # fmt: skip
    return Masked(ids, words, polarity, pairs)


@dataclass(frozen=True)
class Losses:
    """The three parts of the objective, each a mean over what it was asked about."""

    words: Tensor
    polarity: Tensor
    pairs: Tensor
    right: int
    """Polarities told rightly."""
    counts: tuple[int, int, int]

    @property
    def total(self) -> Tensor:
        return self.words + self.polarity + self.pairs


class _ToPieces(nn.Module):
    """From what the encoder says to a value for every piece, by the encoder's own embeddings."""

    def __init__(self, size: int, table: nn.Embedding, bias: float) -> None:
        super().__init__()
        width = table.embedding_dim
        self.turn = nn.Sequential(nn.Linear(size, width), nn.GELU(), nn.LayerNorm(width))
        self.bias = nn.Parameter(torch.full((table.num_embeddings,), bias))

    def forward(self, hidden: Tensor, table: Tensor) -> Tensor:
        logits: Tensor = self.turn(hidden) @ table.T + self.bias  # (n, vocabulary)
        return logits


class SentimentKnowledge(nn.Module):
    """An encoder and what tells hidden words, polarities and pairs from what it says."""

    def __init__(self, encoder: Any, pad: int) -> None:
        super().__init__()
        self.encoder = encoder
        self.pad = pad
        size = encoder.config.hidden_size
        table = encoder.get_input_embeddings()
        self.words = _ToPieces(size, table, 0.0)
        self.polarity = nn.Linear(size, 2)
        # few of all pieces are in a pair: begun at one half each, the many others would drown them
        self.pairs = _ToPieces(size, table, -float(np.log(table.num_embeddings)))

    def forward(self, ids: Tensor) -> Tensor:
        """What the encoder says of each piece. (batch, pieces) → (batch, pieces, size)"""
        found = self.encoder(input_ids=ids, attention_mask=(ids != self.pad).long())
        return cast(Tensor, found.last_hidden_state)

    def losses(self, batch: Sequence[Masked]) -> Losses:
        """Cross-entropy over the vocabulary and over both polarities at hidden pieces; of pairs the
        binary cross-entropy over the vocabulary at the first piece, per piece of the pairs."""
        said = self.forward(_padded([m.ids for m in batch], self.pad))
        words = _padded([m.words for m in batch], NOTHING)
        polarity = _padded([m.polarity for m in batch], NOTHING)
        table = self.encoder.get_input_embeddings().weight
        at = words != NOTHING
        word_loss = _mean(self.words(said[at], table), words[at])
        at = polarity != NOTHING
        guesses = self.polarity(said[at])
        paired = [i for i, m in enumerate(batch) if len(m.pairs)]
        asked = torch.zeros(len(paired), len(table))
        for row, i in enumerate(paired):
            asked[row, torch.from_numpy(batch[i].pairs)] = 1.0
        each = nn.functional.binary_cross_entropy_with_logits(
            self.pairs(said[paired, 0], table), asked, reduction="none"
        )
        per_piece = each.sum(dim=1) / asked.sum(dim=1)
        return Losses(
            word_loss,
            _mean(guesses, polarity[at]),
            per_piece.sum() / max(1, len(paired)),
            int((guesses.argmax(dim=1) == polarity[at]).sum()),
            (int((words != NOTHING).sum()), int(at.sum()), len(paired)),
        )


def _mean(logits: Tensor, asked: Tensor) -> Tensor:
    """Nothing where nothing was asked."""
    return nn.functional.cross_entropy(logits, asked, reduction="sum") / max(1, len(asked))


def _padded(rows: Sequence[IntArray], value: int) -> Tensor:
    tensors = [torch.from_numpy(row) for row in rows]
    return pad_sequence(tensors, batch_first=True, padding_value=value)
