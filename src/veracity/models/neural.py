"""Classifiers over word embeddings: one class around any network from words to logits."""

from __future__ import annotations

import contextlib
import math
from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Self, cast

import numpy as np
import torch
from torch import Tensor, nn

from ..core.classifiers import Embedded, FeatureMap, attention_way
from ..core.examples import Dataset
from ..core.files import write_json
from ..core.inputs import Alignment, BoolArray, FloatArray, Hiding, IntArray, Text
from ..engine.batches import by_length
from ..engine.cache import caching
from ..engine.gradients import evaluating
from .architecture import Architecture, Training
from .embeddings import embedding_table, mean_norm
from .moving import MovedEmbedding
from .rows import RowClassifier, TextNetwork
from .vocabulary import PAD_ID, UNKNOWN_ID, Vocabulary
from .weights import (
    Shapes,
    check_shapes,
    identity_with,
    load_weights,
    reading_model,
    save_weights,
    shapes_in,
)
from .windows import Filters

if TYPE_CHECKING:
    from .architectures.text_cnn import ConvolutionNetwork
    from .contextual import WordVectors

WORTH_A_SHORT_CUT = 64
"""Fewer maskings of a text are read faster together with those of other texts."""


class WordNetwork(TextNetwork):
    """A network over vectors of words, wherever these come from, and what it can be asked."""

    architecture: NeuralArchitecture
    network: nn.Module

    @property
    def name(self) -> str:
        """What a run calls this model when nobody names it."""
        return self.architecture.plugin_name()

    def embed(self, inputs: Sequence[Text]) -> Embedded:
        """One piece per word; a text without words is one unknown piece that no word owns."""
        raise NotImplementedError

    def logits(self, embedded: Embedded) -> Tensor:
        return cast(Tensor, self.network(embedded.values, embedded.present))

    def per_word(
        self, inputs: Sequence[Text], read: Callable[[Embedded], Tensor]
    ) -> list[FloatArray]:
        """What is read of each word of a batch, without padding. read → (batch, words)"""
        found: list[FloatArray] = [np.zeros(0)] * len(inputs)
        with torch.inference_mode(), evaluating(self):
            for batch in by_length([t.n_features for t in inputs]):
                numbers = read(self.embed([inputs[i] for i in batch])).double().cpu().numpy()
                for i, row in zip(batch, numbers, strict=True):
                    found[i] = row[: inputs[i].n_features]
        return found


class NeuralText(WordNetwork, RowClassifier):
    """Words, a table of their vectors, and a network."""

    pad: int = PAD_ID

    def __init__(
        self,
        architecture: NeuralArchitecture,
        vocabulary: Vocabulary,
        labels: Sequence[str],
        table: Tensor,
        network: nn.Module,
    ) -> None:
        super().__init__()
        self.architecture = architecture
        self.vocabulary = vocabulary
        self.labels = tuple(labels)
        self.embedding: nn.Embedding | MovedEmbedding = nn.Embedding(
            table.shape[0], table.shape[1], padding_idx=PAD_ID, _weight=table
        )
        self.embedding.weight.requires_grad_(architecture.tuned)
        self.network = network

    def forward(self, ids: Tensor, present: Tensor) -> Tensor:
        return cast(Tensor, self.network(self.embedding(ids), present))

    # ---- Classifier, Maskable ---------------------------------------------------------------

    def row_logits(self, rows: Sequence[IntArray]) -> Tensor:
        return cast(Tensor, self(*self._padded(rows)))

    def masked_probabilities(
        self, inputs: Sequence[Text], shown: Sequence[BoolArray], how: Hiding
    ) -> list[FloatArray]:
        """The network's own short cut where it has one and it pays; else words are hidden by their
        numbers, and no text is spelt out or read again."""
        able = hasattr(self.network, "masked_logits")
        few = [i for i, masks in enumerate(shown) if not able or len(masks) < WORTH_A_SHORT_CUT]
        plain = self.masked_one_by_one([inputs[i] for i in few], [shown[i] for i in few], how)
        found = dict(zip(few, plain, strict=True))
        return [
            found[i] if i in found else self.shortened(inputs[i], shown[i], how)
            for i in range(len(inputs))
        ]

    def masked_one_by_one(
        self, inputs: Sequence[Text], shown: Sequence[BoolArray], how: Hiding
    ) -> list[FloatArray]:
        """The plain way: a forward pass for every different masking."""
        rows: list[IntArray] = []
        for text, masks in zip(inputs, shown, strict=True):
            ids = self._ids(text)[: text.n_features]
            if how == Hiding.DELETE:
                rows += [ids[mask] if mask.any() else np.array([UNKNOWN_ID]) for mask in masks]
            else:
                rows += list(np.where(masks, ids, PAD_ID if how == Hiding.PAD else UNKNOWN_ID))
        if not rows:
            return [np.zeros((0, len(self.labels))) for _ in inputs]
        answers = self._answers(rows)
        return np.split(answers, np.cumsum([len(masks) for masks in shown])[:-1])

    def shortened(self, text: Text, shown: BoolArray, how: Hiding) -> FloatArray:
        """All maskings of one text through the network's short cut."""
        ids = torch.from_numpy(self._ids(text)).to(self.device)
        blank = self.embedding.weight[PAD_ID if how == Hiding.PAD else UNKNOWN_ID].detach()
        delete = how == Hiding.DELETE
        # with nothing left to read, one unknown word is read (definitions 0.7)
        empty = ~shown.any(axis=1) if delete else np.zeros(len(shown), dtype=np.bool_)
        found = np.zeros((len(shown), len(self.labels)))
        with torch.inference_mode(), evaluating(self):
            if empty.any():
                one = torch.ones(1, 1, dtype=torch.bool, device=self.device)
                alone = self.network(blank[None, None], one)
                found[empty] = torch.softmax(alone.double(), dim=-1).cpu().numpy()
            if not empty.all():
                logits = self.network.masked_logits(  # type: ignore[operator]
                    self.embedding(ids), blank, shown[~empty], delete=delete
                )
                found[~empty] = torch.softmax(logits.double(), dim=-1).cpu().numpy()
        return found

    # ---- Differentiable ---------------------------------------------------------------------

    def read(self, inputs: Sequence[Text]) -> tuple[Tensor, Tensor]:
        """The words' numbers, padded, and which are no padding. (batch, words) both"""
        return self._padded([self._ids(t) for t in inputs])

    def _ids(self, text: Text) -> IntArray:
        """A number per word; while a text is moved, its words have numbers of their own."""
        if isinstance(self.embedding, MovedEmbedding) and text == self.moved_text:
            return self.embedding.own().cpu().numpy()
        return np.array(self.vocabulary.ids(text.words))

    def embed(self, inputs: Sequence[Text]) -> Embedded:
        ids, present = self.read(inputs)
        lengths = torch.tensor([t.n_features for t in inputs], device=self.device)
        feature = torch.arange(ids.shape[1], device=self.device) < lengths[:, None]
        alignments = tuple(Alignment.identity(t.n_features) for t in inputs)
        return Embedded(self.embedding(ids), present, feature, alignments)

    @contextlib.contextmanager
    def shifted(self, text: Text, by: FloatArray) -> Iterator[None]:
        """Within it, the words of this text stand elsewhere by so much; those that are not read,
        which come last, stay. by (words read, size)"""
        before = self.embedding
        assert isinstance(before, nn.Embedding)
        ids = torch.from_numpy(self._ids(text)).to(self.device)
        moved = torch.from_numpy(np.pad(by, ((0, len(ids) - len(by)), (0, 0))))
        self.embedding, self.moved_text = MovedEmbedding(before, ids, moved), text
        try:
            with caching():  # what is known of the text holds no longer
                yield
        finally:
            self.embedding, self.moved_text = before, None

    # ---- on disk ----------------------------------------------------------------------------

    def save(self, folder: Path) -> None:
        """A folder of plain text and safetensors."""
        save_weights(self, folder)
        write_json(folder / "vocabulary.json", self.vocabulary.words, indent=None)

    def identity(self) -> str:
        """A hash of all that decides an answer."""
        words = "\x1f".join(self.vocabulary.words)
        return identity_with(self, f"{self.architecture.spec}{self.labels}{words}")

    @property
    def about(self) -> str:
        count = sum(p.numel() for p in self.parameters())
        return (
            f"{self.architecture.spec}, {count:,} parameters, {len(self.vocabulary):,} words, mean "
            f"norm of their embeddings {self.mean_norm:.3g}"
        )

    @property
    def mean_norm(self) -> float:
        """How long the embeddings of known words are on average."""
        return mean_norm(self.embedding.weight.detach().cpu().numpy())


class AttentiveText(WordNetwork):
    """A network that weighs words by attention."""

    attention_ways: ClassVar[tuple[str, ...]] = ("words",)

    def attention(self, inputs: Sequence[Text], way: str | None = None) -> list[FloatArray]:
        """The weights of each text's words (definitions 3.12)."""
        chosen = attention_way(self, way)
        return self.per_word(inputs, lambda embedded: self.weights(embedded, chosen))

    def weights(self, embedded: Embedded, way: str) -> Tensor:
        """What the network gives each word, 0 at padding. → (batch, words)"""
        weights: Tensor = self.network.attention(embedded.values, embedded.present)  # type: ignore[operator]
        return weights


class ConvolutionalText(WordNetwork):
    """A network whose filters each choose an n-gram."""

    network: ConvolutionNetwork

    @property
    def most_words(self) -> int | None:
        """How many words of a text are read; None for all."""
        return self.network.length

    def features_read(self, inputs: Sequence[Text]) -> list[int]:
        return [min(t.n_features, self.most_words or t.n_features) for t in inputs]

    @property
    def filters(self) -> list[Filters]:
        """What a method needs that shares a match out among the words of its n-gram."""
        return self.network.filters

    def embed(self, inputs: Sequence[Text]) -> Embedded:
        """Words behind the length that the network reads are there, but nothing is due to them."""
        whole = super().embed(inputs)
        read = torch.arange(whole.feature.shape[1], device=self.device)
        limit = self.most_words or len(read)
        return replace(whole, feature=whole.feature & (read < limit))

    def feature_maps(self, embedded: Embedded) -> tuple[FeatureMap, ...]:
        return self.network.feature_maps(embedded.values, embedded.present)

    def logits_of_maps(self, maps: Sequence[FeatureMap]) -> Tensor:
        return self.network.logits_of_maps(maps)

    def first_layer(self, embedded: Embedded) -> Tensor:
        return self.network.first_layer(embedded.values, embedded.present)

    def logits_of_units(self, units: Tensor) -> Tensor:
        return self.network.logits_of_units(units)


class AttentiveNeuralText(AttentiveText, NeuralText):
    """Attention over vectors of a table."""


class ConvolutionalNeuralText(ConvolutionalText, NeuralText):
    """Filters over vectors of a table."""

    def rows_read(self, n_words: int) -> int:
        return int(max(min(n_words, self.network.length or n_words), self.network.fewest))


@dataclass(frozen=True)
class NeuralArchitecture(Architecture):
    """Settings shared by all models over word embeddings."""

    embeddings: str = "random"
    """random, corpus (learnt from the training texts), glove, or a file of vectors; or vectors that
    hang on the words around: bert, elmo(encoder=DIR) and others that `list word_vectors` names."""
    size: int = 100
    """Length of the word vectors, where these are drawn or learnt here."""
    norm: float | None = None
    """How long the vectors of known words are on average at first; None leaves them as they are."""
    tuned: bool = True
    """Whether the word vectors are trained too."""
    dropout: float = 0.5
    """Share of units that are dropped in training."""
    vocabulary: int = 50_000
    """How many of the most frequent words are known."""
    cased: bool = False
    """Whether Great and great are two words."""

    sizes: ClassVar[tuple[str, ...]] = ("size", "vocabulary", "filters", "hidden", "attention")
    """Settings that count something: each must be one at least, where there is such a thing."""

    contextual: ClassVar[bool] = True
    """Whether its networks need no more of words than their vectors."""

    def __post_init__(self) -> None:
        for name in self.sizes:
            count = getattr(self, name, None)
            if isinstance(count, int) and count < 1:
                raise ValueError(f"expected {name} to be 1 or more, got {count}")
        if not 0 <= self.dropout < 1:
            raise ValueError(f"expected dropout from 0 to below 1, got {self.dropout}")
        if self.norm is not None and not 0 < self.norm < math.inf:
            raise ValueError(f"expected norm to be above 0 or None, got {self.norm}")
        if self.word_vectors is not None:
            self._check_word_vectors()

    @property
    def word_vectors(self) -> WordVectors | None:
        """The source of vectors that hang on the words around; None of those that do not."""
        from .word_vectors import source_of

        return source_of(self.embeddings)

    @property
    def usual_training(self) -> Training:
        """What was learnt elsewhere is tuned in small steps."""
        source = self.word_vectors if self.tuned else None
        return replace(self.training, learning_rate=source.step) if source else self.training

    def _check_word_vectors(self) -> None:
        if not self.contextual:
            raise ValueError(
                "it needs words, not only their vectors: expected embeddings=random, "
                f"corpus, glove or a file, got {self.embeddings}. Vectors that hang on the words "
                "around are for text_cnn, lstm and attention_lstm"
            )
        if self.norm is not None or self.cased:
            raise ValueError(
                f"norm and cased are for tables of vectors; {self.embeddings} reads words and "
                "stretches vectors in its own way"
            )

    @abstractmethod
    def network(self, size: int, n_labels: int) -> nn.Module:
        """The layers between embedded words and logits."""

    def settled(self, train: Dataset) -> Self:
        """These settings with a number wherever they leave one to the training data."""
        return self

    def start(self, train: Dataset, *, seed: int) -> WordNetwork:
        if source := self.word_vectors:
            from .contextual import start

            return start(self.settled(train), source, train.labels, seed=seed)
        words = self.known_words(train)
        table = embedding_table(
            self.embeddings,
            words,
            (e.input.words for e in train),
            size=self.size,
            norm=self.norm,
            seed=seed,
        )
        return self.settled(train)._model(words, train.labels, table, seed)

    def known_words(self, train: Dataset) -> Vocabulary:
        return Vocabulary.learnt((e.input.words for e in train), self.vocabulary, cased=self.cased)

    def kind(self, network: nn.Module) -> type[NeuralText]:
        """The class whose abilities this network has."""
        if hasattr(network, "attention"):
            return AttentiveNeuralText
        return ConvolutionalNeuralText if hasattr(network, "feature_maps") else NeuralText

    def load(self, folder: Path, labels: Sequence[str]) -> WordNetwork:
        with reading_model(folder):
            if source := self.word_vectors:
                from .contextual import load

                return load(self, source, folder, labels)
            words = Vocabulary.read(folder / "vocabulary.json", cased=self.cased)
            file = folder / "model.safetensors"
            self._check(words, labels, shapes_in(file))
            weights = load_weights(file)
            model = self._model(words, labels, weights["embedding.weight"], seed=0)
            model.load_state_dict(weights)
        return model.eval()

    def _check(self, words: Vocabulary, labels: Sequence[str], found: Shapes) -> None:
        """Settings, words and labels are held against the file's header: a model that would not fit
        in memory is never begun."""
        rows, size = found["embedding.weight"]
        if rows != len(words):
            raise ValueError(f"it knows {len(words):,} words, but has embeddings of {rows:,}")
        self.check_layers(found)
        with torch.device("meta"):
            table = torch.empty(rows, size)
            check_shapes(self._model(words, labels, table, seed=0), found)

    def check_layers(self, found: Shapes) -> None:
        """Layers are made one by one, before any shape could be compared."""
        if any(isinstance(v, tuple) and len(v) > len(found) for v in vars(self).values()):
            raise ValueError(f"{self.spec[:80]} has more layers than its file has weights")

    def drawn_network(self, size: int, n_labels: int, *, seed: int) -> nn.Module:
        """The network with weights drawn by the seed."""
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            return self.network(size, n_labels)

    def _model(
        self, words: Vocabulary, labels: Sequence[str], table: Tensor, seed: int
    ) -> NeuralText:
        network = self.drawn_network(table.shape[1], len(labels), seed=seed)
        return self.kind(network)(self, words, labels, table, network)
