"""Classifiers over vectors of words that hang on the words around (definitions 1.9)."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor, nn

from ..core.classifiers import Embedded
from ..core.inputs import Alignment, BoolArray, FloatArray, Hiding, IntArray, Text
from ..core.plugins import Plugin
from ..engine.batches import by_length
from ..engine.gradients import evaluating
from .neural import AttentiveText, ConvolutionalText, NeuralArchitecture, WordNetwork
from .weights import Shapes, check_shapes, identity_with, load_weights, save_weights, shapes_in

NUMBERS_KEPT = 250_000_000
"""So many numbers of frozen vectors are remembered in training: a gigabyte."""

FILES = "encoder"
"""Where a model's folder keeps what its encoder must know beside its weights."""


class WordEncoder(nn.Module, ABC):
    """Reads whole texts and gives a vector for each word. What it gives for a text hangs on neither
    the texts beside it nor their order; its weights travel in the state of the model."""

    size: int
    """How long a vector is."""

    @abstractmethod
    def forward(self, texts: Sequence[Text]) -> Tensor:
        """The vectors of the words, zeros behind the last word read. Each text has a word at least;
        of hidden words it sees none that are deleted or padded, and `MASK_WORD` for those that are
        masked. → (texts, words of the longest, size)"""

    def words_read(self, text: Text) -> int:
        """How many words of a text come before the limit, if it has one."""
        return text.n_features

    @abstractmethod
    def save(self, folder: Path) -> None:
        """Writes what `WordVectors.load` needs beside the weights, into a folder that is there."""


class WordVectors(Plugin, ABC):
    """A source of vectors that hang on the words around; its fields are its settings."""

    step: ClassVar[float] = 5e-5
    """How large steps of training are when the encoder is tuned and nothing else is said."""

    @abstractmethod
    def open(self) -> WordEncoder:
        """The encoder that the settings name, with all it has learnt."""

    @abstractmethod
    def load(self, folder: Path, found: Shapes) -> WordEncoder:
        """One that was saved, with any weights: those of the model's file come after, and have
        these shapes. It is made twice, first on a device without memory."""


class ContextualText(WordNetwork):
    """An encoder, the vectors that it gives to words, and a network over them.

    Gradients are taken at these vectors. A word that is padded away is a zero in its place, and the
    encoder reads the text without it.
    """

    def __init__(
        self,
        architecture: NeuralArchitecture,
        labels: Sequence[str],
        encoder: WordEncoder,
        network: nn.Module,
    ) -> None:
        super().__init__()
        self.architecture = architecture
        self.labels = tuple(labels)
        self.encoder = encoder.requires_grad_(architecture.tuned)
        self.network = network
        self.frozen_vectors = _Memory()

    def train(self, mode: bool = True) -> ContextualText:
        """A frozen encoder drops nothing: its vectors are the same each time."""
        super().train(mode)
        if not self.architecture.tuned:
            self.encoder.eval()
        return self

    # ---- Classifier, Differentiable, Truncating ---------------------------------------------

    def probabilities(self, inputs: Sequence[Text]) -> FloatArray:
        """Answers in batches of like length."""
        found = np.zeros((len(inputs), len(self.labels)))
        with torch.inference_mode(), evaluating(self):
            for batch in by_length([t.n_features for t in inputs]):
                logits = self.logits(self.embed([inputs[i] for i in batch]))
                found[batch] = torch.softmax(logits.double(), dim=-1).cpu().numpy()
        return found

    def features_read(self, inputs: Sequence[Text]) -> list[int]:
        """How many words of each text come before the encoder's limit."""
        return [_Reading(text, self.encoder).words_read for text in inputs]

    def embed(self, inputs: Sequence[Text]) -> Embedded:
        """One piece per word, its vector the encoder's; what is behind the encoder's limit is not
        there."""
        readings = [_Reading(text, self.encoder) for text in inputs]
        seen = self._vectors([r.seen for r in readings])  # (batch, words seen, size)
        place = np.arange(max(max(1, t.n_features) for t in inputs))
        which = np.full((len(inputs), len(place)), seen.shape[1])  # a row of zeros behind the last
        for row, r in zip(which, readings, strict=True):
            row[r.places] = np.arange(len(r.places))
        present = np.stack([place < max(1, r.words_read) for r in readings])
        feature = np.stack([place < r.words_read for r in readings])
        chosen = torch.from_numpy(which).to(self.device)[:, :, None].expand(-1, -1, seen.shape[2])
        return Embedded(
            nn.functional.pad(seen, (0, 0, 0, 1)).gather(1, chosen),
            torch.from_numpy(present).to(self.device),
            torch.from_numpy(feature).to(self.device),
            tuple(Alignment.identity(t.n_features) for t in inputs),
        )

    def _vectors(self, texts: Sequence[Text]) -> Tensor:
        """What the encoder gives; in training, a frozen one is asked about each text once, and
        alone, so that what is remembered hangs on no batch."""
        if self.architecture.tuned:
            return self._encoded(texts)
        with torch.no_grad():
            if not self.training:
                return self._encoded(texts)
            rows = [self.frozen_vectors.of(text, lambda t: self._encoded([t])[0]) for text in texts]
            return nn.utils.rnn.pad_sequence(rows, batch_first=True)

    def _encoded(self, texts: Sequence[Text]) -> Tensor:
        found: Tensor = self.encoder(texts)
        return found

    # ---- on disk ----------------------------------------------------------------------------

    def save(self, folder: Path) -> None:
        """A folder of plain text and safetensors, which needs the encoder's own no longer."""
        save_weights(self, folder)
        (folder / FILES).mkdir(exist_ok=True)
        self.encoder.save(folder / FILES)

    def identity(self) -> str:
        """A hash of all that decides an answer; where the encoder lay does not."""
        source = self.architecture.word_vectors
        read = {k: v for k, v in vars(source).items() if k != "encoder"}
        settings = replace(self.architecture, embeddings="random").spec
        return identity_with(self, f"{settings}{type(source).__name__}{read}{self.labels}")

    @property
    def about(self) -> str:
        parameters = list(self.parameters())
        count = sum(p.numel() for p in parameters)
        trained = sum(p.numel() for p in parameters if p.requires_grad)
        return f"{self.architecture.spec}, {count:,} parameters, {trained:,} of them trained"


class AttentiveContextualText(AttentiveText, ContextualText):
    """Attention over vectors that hang on the words around."""


class ConvolutionalContextualText(ConvolutionalText, ContextualText):
    """Filters over vectors that hang on the words around."""

    def features_read(self, inputs: Sequence[Text]) -> list[int]:
        limits = zip(
            ContextualText.features_read(self, inputs),
            ConvolutionalText.features_read(self, inputs),
            strict=True,
        )
        return [min(both) for both in limits]


class _Reading:
    """What of a text an encoder sees, and where its words stand."""

    def __init__(self, text: Text, encoder: WordEncoder) -> None:
        self.text = text
        self.encoder = encoder

    @cached_property
    def _shown(self) -> BoolArray:
        return np.array([bool(word.strip()) for word in self.text.words], dtype=np.bool_)

    @cached_property
    def seen(self) -> Text:
        """The text without what is padded away; an unknown word where nothing is left."""
        return self.text.keep(self._shown, Hiding.DELETE).readable()

    @cached_property
    def _all_places(self) -> IntArray:
        found = np.flatnonzero(self._shown)
        return found if len(found) else np.zeros(1, dtype=np.int64)

    @cached_property
    def _limit(self) -> int:
        return self.encoder.words_read(self.seen)

    @cached_property
    def places(self) -> IntArray:
        """Where the words stand that are seen and read. (words read,)"""
        return self._all_places[: self._limit]

    @property
    def words_read(self) -> int:
        """How many words of the text come before the limit, those padded away too."""
        if self._limit < len(self._all_places):
            return int(self._all_places[self._limit])
        return self.text.n_features


class _Memory:
    """Vectors of the texts that were asked about, as many as fit; the oldest go first."""

    def __init__(self) -> None:
        self.vectors: OrderedDict[Text, Tensor] = OrderedDict()
        self.numbers = 0

    def of(self, text: Text, encoded: Any) -> Tensor:
        if text not in self.vectors:
            self.vectors[text] = found = encoded(text)
            self.numbers += found.numel()
            while self.numbers > NUMBERS_KEPT and len(self.vectors) > 1:
                _, old = self.vectors.popitem(last=False)
                self.numbers -= old.numel()
        return self.vectors[text]

    def __reduce__(self) -> tuple[type[_Memory], tuple[()]]:
        return _Memory, ()  # a copy starts with an empty one


def start(
    architecture: NeuralArchitecture, source: WordVectors, labels: Sequence[str], *, seed: int
) -> ContextualText:
    """An untrained network over what the source gives."""
    return _model(architecture, source.open(), labels, seed)


def load(
    architecture: NeuralArchitecture, source: WordVectors, folder: Path, labels: Sequence[str]
) -> ContextualText:
    """A model that was saved; what is wrong with it is one of the errors that `reading_model`
    tells."""
    file = folder / "model.safetensors"
    found = shapes_in(file)
    architecture.check_layers(found)
    own = {k.removeprefix("encoder."): v for k, v in found.items() if k.startswith("encoder.")}
    with torch.random.fork_rng(devices=[]):
        with torch.device("meta"):
            check_shapes(_model(architecture, source.load(folder / FILES, own), labels, 0), found)
        model = _model(architecture, source.load(folder / FILES, own), labels, 0)
    model.load_state_dict(load_weights(file))
    return model.eval()


def _model(
    architecture: NeuralArchitecture, encoder: WordEncoder, labels: Sequence[str], seed: int
) -> ContextualText:
    network = architecture.drawn_network(encoder.size, len(labels), seed=seed)
    kind = ContextualText
    if hasattr(network, "attention"):
        kind = AttentiveContextualText
    elif hasattr(network, "feature_maps"):
        kind = ConvolutionalContextualText
    return kind(architecture, labels, encoder, network)
