"""Words make sentences, sentences make the text, and both are weighed (definitions 1.5)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar, cast

import torch
from torch import Tensor, nn

from ...core.classifiers import Embedded
from ...core.examples import Dataset
from ...core.inputs import Text
from ..architecture import Training
from ..both_ways import both_ways
from ..moving import MovedEmbedding
from ..neural import AttentiveText, NeuralArchitecture, NeuralText
from ..rows import EmbeddedRows
from ..vocabulary import Vocabulary

ENDS = ".!?。！？"
"""Words made of these signs end a sentence."""


@dataclass(frozen=True)
class HierarchicalAttention(NeuralArchitecture):
    """Bidirectional GRUs over the words of sentences and over sentences, both with attention."""

    size: int = 200
    hidden: int = 50
    """Units of the recurrent layer, each way."""
    attention: int = 100
    """Units of the layer that weighs states."""

    training: ClassVar[Training] = Training(epochs=10, batch_size=32)
    contextual: ClassVar[bool] = False

    def network(self, size: int, n_labels: int) -> nn.Module:
        return HierarchicalNetwork(self, size, n_labels)

    def known_words(self, train: Dataset) -> Vocabulary:
        # a sign that no training text has still ends a sentence, so it must not be unknown
        learnt = super().known_words(train).words
        signs = (sign for sign in ENDS if sign not in learnt)
        return Vocabulary((*learnt, *signs), self.cased)

    def kind(self, network: nn.Module) -> type[NeuralText]:
        return HierarchicalText


class HierarchicalText(AttentiveText, NeuralText):
    """Finds sentences by the numbers of words, so that a hidden sign ends none."""

    attention_ways: ClassVar[tuple[str, ...]] = ("words", "product")

    @cached_property
    def ends(self) -> list[int]:
        """The numbers of the words that end a sentence."""
        words = self.vocabulary
        return [words.row(word) for word in words.words if set(word) <= set(ENDS)]

    def sentences(self, ids: Tensor) -> Tensor:
        """The number of each word's sentence; signs in a row end one sentence. (batch, words)"""
        known = self.embedding.original(ids) if isinstance(self.embedding, MovedEmbedding) else ids
        sign = torch.isin(known, torch.tensor(self.ends, dtype=torch.long, device=known.device))
        last = sign & ~nn.functional.pad(sign[:, 1:], (0, 1))
        return last.cumsum(dim=1) - last.long()

    def forward(self, ids: Tensor, present: Tensor) -> Tensor:
        return cast(Tensor, self.network(self.embedding(ids), present, self.sentences(ids)))

    def embed(self, inputs: Sequence[Text]) -> EmbeddedRows:
        found = super().embed(inputs)
        ids, _ = self.read(inputs)
        return EmbeddedRows(found.values, found.present, found.feature, found.alignments, ids)

    def logits(self, embedded: Embedded) -> Tensor:
        sentence = self.sentences(cast(EmbeddedRows, embedded).ids)
        return cast(Tensor, self.network(embedded.values, embedded.present, sentence))

    def weights(self, embedded: Embedded, way: str) -> Tensor:
        sentence = self.sentences(cast(EmbeddedRows, embedded).ids)
        network = cast(HierarchicalNetwork, self.network)
        of_word, of_sentence = network.attention(embedded.values, embedded.present, sentence)
        return of_word * of_sentence if way == "product" else of_word


class HierarchicalNetwork(nn.Module):
    """s_i = Σ α_it h_it over the words of a sentence; the text is Σ α_i h_i over its sentences."""

    def __init__(self, settings: HierarchicalAttention, size: int, n_labels: int) -> None:
        super().__init__()
        both_ways = 2 * settings.hidden
        self.words = AttentiveGru(size, settings.hidden, settings.attention)
        self.sentences = AttentiveGru(both_ways, settings.hidden, settings.attention)
        self.dropout = nn.Dropout(settings.dropout)
        self.head = nn.Linear(both_ways, n_labels)

    def forward(self, values: Tensor, present: Tensor, sentence: Tensor) -> Tensor:
        return cast(Tensor, self.head(self.dropout(self.read(values, present, sentence)[0])))

    def attention(self, values: Tensor, present: Tensor, sentence: Tensor) -> tuple[Tensor, Tensor]:
        """For each word its weight α_it and that of its sentence α_i; both (batch, words)."""
        _, of_word, of_sentence = self.read(values, present, sentence)
        return of_word, of_sentence

    def read(
        self, values: Tensor, present: Tensor, sentence: Tensor
    ) -> tuple[Tensor, Tensor, Tensor]:
        """The texts' vectors, and for each word its weight and its sentence's. 0 at padding."""
        counts = sentence.masked_fill(~present, 0).amax(dim=1) + 1  # (batch,) sentences of a text
        before = counts.cumsum(dim=0) - counts
        owner = (before.unsqueeze(1) + sentence)[present]  # (words of all texts,)
        words, is_word = grouped(values[present], torch.bincount(owner))
        vectors, word_weights = self.words(words, is_word)
        sentences, is_sentence = grouped(vectors, counts)
        texts, sentence_weights = self.sentences(sentences, is_sentence)
        of_word, of_sentence = (values.new_zeros(present.shape) for _ in range(2))
        of_word[present] = word_weights[is_word]
        of_sentence[present] = sentence_weights[is_sentence][owner]
        return texts, of_word, of_sentence


class AttentiveGru(nn.Module):
    """u = tanh(W h + b), α = softmax(u · context) over what is there; gives Σ α h and α."""

    def __init__(self, size: int, hidden: int, attention: int) -> None:
        super().__init__()
        self.gru = nn.GRU(size, hidden, batch_first=True, bidirectional=True)
        self.keys = nn.Linear(2 * hidden, attention)
        self.context = nn.Linear(attention, 1, bias=False)

    def forward(self, values: Tensor, present: Tensor) -> tuple[Tensor, Tensor]:
        """(groups, items, size) → (groups, 2 hidden), (groups, items)"""
        states = both_ways(self.gru, values, present)
        scores = self.context(torch.tanh(self.keys(states))).squeeze(-1)
        weights = torch.softmax(scores.masked_fill(~present, -torch.inf), dim=1)
        return (weights.unsqueeze(-1) * states).sum(dim=1), weights


def grouped(items: Tensor, sizes: Tensor) -> tuple[Tensor, Tensor]:
    """Items in a row as padded groups of these sizes, and where an item stands.

    (items, size), (groups,) → (groups, longest, size), (groups, longest)
    """
    places = torch.arange(int(sizes.max()), device=sizes.device) < sizes.unsqueeze(1)
    padded = items.new_zeros(*places.shape, items.shape[1])
    padded[places] = items
    return padded, places
