"""A bidirectional language model that is taught on texts, without labels (definitions 1.9)."""

from __future__ import annotations

import contextlib
import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from ..core.errors import DataError
from ..core.examples import Dataset, Example, check_texts
from ..core.files import check_own, sole_writer, write_json
from ..core.progress import Watcher
from ..data.splits import Splits, split
from ..engine.gradients import evaluating
from .elmo import BidirectionalLm, ElmoOptions
from .elmo_files import check_writable, write_elmo
from .pretraining import ENCODER, PRETRAINED
from .training import Checkpoint, EpochLoop, clear
from .vocabulary import PAD_ID, UNKNOWN_ID, Vocabulary

MARK = PAD_ID
"""What is told where a text begins or ends; padding is never told."""

IGNORED = -100


@dataclass(frozen=True, kw_only=True)
class ElmoPretraining:
    """Sizes of a language model, and how it is trained."""

    size: int = 64
    """How long the state of one direction is; the vectors of words are twice as long."""
    memory: int = 256
    """Cells of one direction."""
    vocabulary: int = 10_000
    """How many of the most frequent words are told apart when the next one is guessed."""
    longest: int = 100
    """Words of a text that are read."""
    epochs: int = 3
    batch_size: int = 32
    learning_rate: float = 1e-3
    seed: int = 0

    def __post_init__(self) -> None:
        for name in ("size", "memory", "vocabulary", "longest", "epochs", "batch_size"):
            if getattr(self, name) < 1:
                raise ValueError(f"expected {name} to be 1 or more, got {getattr(self, name)}")
        if not self.learning_rate > 0:
            raise ValueError(f"expected a learning rate above 0, got {self.learning_rate}")

    @property
    def options(self) -> ElmoOptions:
        """The published model with fewer of everything."""
        options = ElmoOptions(
            letter_size=16,
            filters=((1, 16), (2, 16), (3, 32), (4, 64), (5, 64)),
            highways=1,
            word_letters=50,
            activation="relu",
            size=self.size,
            memory=self.memory,
            layers=2,
            memory_clip=3.0,
            state_clip=3.0,
        )
        options.check()
        return options


@dataclass(frozen=True)
class LanguagePass:
    """One pass over the texts, and how well held-out words were guessed then."""

    number: int
    loss: float
    forward: float
    """Perplexity of the next word, given those before it."""
    backward: float
    """Perplexity of the word before, given those behind it."""
    seconds: float

    @property
    def perplexity(self) -> float:
        """Of both: how many words, equally likely, would be as hard to guess among."""
        return math.sqrt(self.forward * self.backward)

    def __str__(self) -> str:
        return (
            f"epoch {self.number + 1}, loss {self.loss:.3f}; held-out perplexity forward "
            f"{self.forward:.1f}, backward {self.backward:.1f}, {self.seconds:.1f} s"
        )


@dataclass(frozen=True)
class PretrainedElmo:
    """The language model after its best pass, and how it got there."""

    model: BidirectionalLm
    record: Mapping[str, Any]
    history: tuple[LanguagePass, ...]
    best: LanguagePass


class WordGuesser(nn.Module):
    """A language model and the layer that guesses words by its states."""

    def __init__(self, options: ElmoOptions, words: Vocabulary) -> None:
        super().__init__()
        self.model = BidirectionalLm(options)
        self.guess = nn.Linear(options.size, len(words))
        self.dropout = nn.Dropout(0.1)
        self.words = words

    def forward(self, texts: Sequence[Sequence[str]]) -> tuple[Tensor, Tensor]:
        """How badly the words and the mark behind them are guessed from the left, and those with
        the mark before them from the right: the sum over all (2,), and how many there are."""
        layers, lengths = self.model(texts)
        forward, backward = self.dropout(layers[-1]).chunk(2, dim=2)
        rows = [torch.tensor([MARK, *self.words.ids(text), MARK]) for text in texts]
        targets = nn.utils.rnn.pad_sequence(rows, batch_first=True, padding_value=IGNORED)
        targets = targets.to(lengths.device)
        sums = [
            nn.functional.cross_entropy(
                self.guess(states).flatten(0, 1),
                told.flatten(),
                ignore_index=IGNORED,
                reduction="sum",
            )
            for states, told in (
                (forward[:, :-1], targets[:, 1:]),
                (backward[:, 1:], _but_behind(targets)),
            )
        ]
        return torch.stack(sums), (lengths - 1).sum()


def _but_behind(targets: Tensor) -> Tensor:
    """What stands before each place from the second on; nothing for padding."""
    return targets[:, :-1].masked_fill(targets[:, 1:] == IGNORED, IGNORED)


def pretrain_elmo(
    data: Dataset,
    *,
    out: Path | None = None,
    pretraining: ElmoPretraining | None = None,
    watch: Watcher = lambda _: None,
) -> PretrainedElmo:
    """Trains a language model on the train part of the data and measures it on the validation
    part; labels are not looked at. Given `out`, the published files are written there, and what was
    begun goes on."""
    settings = pretraining or ElmoPretraining()
    if out is not None:
        check_own(out := Path(out), ENCODER)
        check_writable()
    check_texts(data, "pretraining")
    parts = _with_words(split(data, seed=settings.seed))
    words = Vocabulary.learnt((e.input.words for e in parts.train), settings.vocabulary, cased=True)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(settings.seed)
        model = WordGuesser(settings.options, words)
    asked = {
        "elmo": {k: v for k, v in asdict(settings).items() if k != "epochs"},
        "data": data.fingerprint(),
    }
    with sole_writer(out, ENCODER) if out else contextlib.nullcontext():
        state = _LanguageLoop(
            model=model,
            settings=settings,
            optimiser=torch.optim.Adam(model.parameters(), lr=settings.learning_rate),
            checkpoint=Checkpoint(out / "checkpoint" if out else None, asked, LanguagePass),
            watch=watch,
            parts=parts,
        ).run()
        history, best = tuple(state.history), state.history[state.best]
        record = {
            "format": 1,
            "data": {"name": data.name, "fingerprint": data.fingerprint()},
            "words": len(words.words),
            "unknown": _unknown(words, parts.validation, settings.longest),
            "perplexity": best.perplexity,
            "unigram_perplexity": unigram_perplexity(words, parts, settings.longest),
            "pretraining": asdict(settings),
            "history": [asdict(one) for one in history],
            "best": best.number,
        }
        if out is not None:
            write_elmo(model.model, out)
            write_json(out / PRETRAINED, record)
            clear(out / "checkpoint")
    return PretrainedElmo(model.model.eval(), record, history, best)


def _with_words(parts: Splits) -> Splits:
    """The texts that have a word."""
    kept = {
        name: part.select([i for i, e in enumerate(part) if e.input.n_features])
        for name, part in (("train", parts.train), ("validation", parts.validation))
    }
    if not all(len(part) for part in kept.values()):
        raise DataError(
            f"expected texts to learn from and to measure on, got {len(kept['train'])} and "
            f"{len(kept['validation'])} with words. Bring more data"
        )
    return replace(parts, **kept)


def unigram_perplexity(words: Vocabulary, parts: Splits, longest: int) -> float:
    """That of guessing by frequency alone, whatever stands around: counts of the train part, one
    added to each (definitions 1.9)."""
    counts = np.ones(len(words))
    for ids in _told(words, parts.train, longest):
        np.add.at(counts, ids, 1)
    logs = np.log(counts / counts.sum())
    told = np.concatenate(_told(words, parts.validation, longest))
    return float(np.exp(-logs[told].mean()))


def _told(words: Vocabulary, data: Dataset, longest: int) -> list[Any]:
    """What is guessed of each text: its words and one mark."""
    return [np.array([*words.ids(e.input.words[:longest]), MARK]) for e in data]


def _unknown(words: Vocabulary, data: Dataset, longest: int) -> float:
    told = np.concatenate(_told(words, data, longest))
    return float(np.mean(told == UNKNOWN_ID))


@dataclass(kw_only=True)
class _LanguageLoop(EpochLoop):
    diverged = "the loss is no longer finite. Lower --learning-rate"

    parts: Splits

    def merit(self, epoch: LanguagePass) -> float:
        return -epoch.perplexity

    def epoch(self, number: int) -> LanguagePass:
        started = time.perf_counter()
        loss = self.descend(self.parts.train, number, clip=5.0)
        forward, backward = self._held_out()
        return LanguagePass(number, loss, forward, backward, time.perf_counter() - started)

    def loss(self, batch: Sequence[Example], time: float) -> tuple[Tensor, int]:
        sums, count = self.model(self._texts(batch))
        return sums.sum() / (2 * count), int(count)

    def _texts(self, batch: Sequence[Example]) -> list[tuple[str, ...]]:
        return [e.input.words[: self.settings.longest] for e in batch]

    def _held_out(self) -> tuple[float, float]:
        """The perplexities over all held-out texts."""
        sums, total = np.zeros(2), 0
        examples, size = self.parts.validation.examples, self.settings.batch_size
        with torch.inference_mode(), evaluating(self.model):
            for start in range(0, len(examples), size):
                found, count = self.model(self._texts(examples[start : start + size]))
                sums += found.double().cpu().numpy()
                total += int(count)
        forward, backward = np.exp(sums / total).tolist()
        return forward, backward
