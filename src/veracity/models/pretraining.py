"""Encoders that learn sentiment from a lexicon and texts, before they see a label."""

from __future__ import annotations

import contextlib
import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, cast

import numpy as np
import torch

from ..core.errors import DataError, ModelError
from ..core.examples import Dataset, Example, check_texts
from ..core.files import FolderKind, check_own, sole_writer, write_json
from ..core.inputs import Alignment, IntArray
from ..core.progress import Watcher
from ..data.lexicon import emotions, mined_lexicon
from ..data.splits import Splits, split
from ..data.words import is_chinese
from ..engine.gradients import evaluating
from ..engine.seeds import generator
from .encoders import MOSTLY_UNKNOWN, Encoder, piece_limit, silent, unknown_share
from .sentiment_knowledge import Finder, Known, Losses, Masked, Masking, SentimentKnowledge, masked
from .training import Checkpoint, EpochLoop, clear

PRETRAINED = "pretraining.json"
"""What a folder written here is recognised by."""

ENCODER = FolderKind("an encoder", PRETRAINED)

CHECKED = 200
"""Texts by which the language of an encoder is told."""


@dataclass(frozen=True)
class EncoderTraining:
    """How an encoder is taught something before it sees labels."""

    epochs: int = 3
    batch_size: int = 32
    learning_rate: float = 5e-5
    longest: int = 128
    """Pieces of a text that are read."""
    seed: int = 0

    def __post_init__(self) -> None:
        if self.epochs < 1 or self.batch_size < 1 or self.longest < 3:
            raise ValueError("expected at least one epoch, one text per batch and three pieces")
        if not self.learning_rate > 0:
            raise ValueError(f"expected a learning rate above 0, got {self.learning_rate}")


@dataclass(frozen=True)
class Pretraining(EncoderTraining):
    """How an encoder is trained to tell hidden words."""

    masking: Masking = field(default_factory=Masking)


@dataclass(frozen=True)
class Pass:
    """One pass over the texts, and how well held-out ones were then told."""

    number: int
    loss: float
    words: float
    polarity: float
    pairs: float
    polarity_accuracy: float
    seconds: float

    def __str__(self) -> str:
        return (
            f"epoch {self.number + 1}, loss {self.loss:.3f}; held out: words {self.words:.3f}, "
            f"polarity {self.polarity:.3f} ({self.polarity_accuracy:.0%} right), "
            f"pairs {self.pairs:.3f}, {self.seconds:.1f} s"
        )

    @property
    def held_out(self) -> float:
        return self.words + self.polarity + self.pairs


@dataclass(frozen=True)
class Pretrained:
    """The encoder after its best pass, its tokeniser, and how it got there."""

    model: SentimentKnowledge
    tokenizer: Any
    record: Mapping[str, Any]
    history: tuple[Pass, ...]
    best: Pass

    def save(self, folder: Path) -> None:
        """The encoder as transformers writes it, without what only told hidden words."""
        with silent():
            self.model.encoder.save_pretrained(folder, safe_serialization=True)
            self.tokenizer.save_pretrained(folder)
        write_json(folder / PRETRAINED, self.record)


def pretrain(
    encoder: str | Path,
    data: Dataset,
    *,
    lexicon: Mapping[str, int],
    out: Path | None = None,
    mine: bool = False,
    pretraining: Pretraining | None = None,
    watch: Watcher = lambda _: None,
) -> Pretrained:
    """Trains an encoder to tell hidden emotional words, their polarity and what they are about
    (Tian et al. 2020), on the train part of the data; labels are not looked at. Given `out`, the
    encoder is written there, and what was begun goes on. `mine` adds words of the texts to the
    lexicon."""
    settings = pretraining or Pretraining()
    if out is not None:
        out = Path(out)
        check_own(out, ENCODER)
    check_texts(data, "pretraining")
    parts = split(data, seed=settings.seed)
    if not len(parts.train) or not len(parts.validation):
        raise DataError(
            f"expected texts to learn from and to measure on, got {len(parts.train)} and "
            f"{len(parts.validation)}. Bring more data"
        )
    words = _lexicon([e for part in (parts.train, parts.validation) for e in part], lexicon)
    if mine:
        words = mined_lexicon([e.input for e in parts.train], words)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(settings.seed)
        found, tokenizer, _ = Encoder.named(encoder).read("")
        _check(encoder, found, tokenizer, parts.train)
        model = SentimentKnowledge(found, tokenizer.pad_token_id or 0)
    finder = Finder.of([e.input for e in parts.train], words, settings.masking)
    reader = _Reader.of(tokenizer, settings, finder)
    asked = {
        "encoder": _identity(model),
        "pretraining": {k: v for k, v in asdict(settings).items() if k != "epochs"},
        "lexicon": dict(sorted(words.items())),
        "data": data.fingerprint(),
    }
    with sole_writer(out, ENCODER) if out else contextlib.nullcontext():
        kept = Checkpoint(out / "checkpoint" if out else None, asked, Pass)
        state = _PretrainingLoop(
            model=model,
            settings=settings,
            optimiser=torch.optim.AdamW(model.parameters(), lr=settings.learning_rate),
            checkpoint=kept,
            watch=watch,
            reader=reader,
            parts=parts,
            known={e.id: reader.known(e) for part in (parts.train, parts.validation) for e in part},
        ).run()
        history, best = tuple(state.history), state.history[state.best]
        record = {
            "format": 1,
            "encoder": str(encoder),
            "data": {"name": data.name, "fingerprint": data.fingerprint()},
            "words": len(words),
            "aspects": len(finder.aspects),
            "pretraining": asdict(settings),
            "history": [asdict(p) for p in history],
            "best": best.number,
        }
        done = Pretrained(model, tokenizer, record, history, best)
        if out is not None:
            done.save(out)
            clear(out / "checkpoint")
    return done


def _lexicon(examples: Sequence[Example], lexicon: Mapping[str, int]) -> dict[str, int]:
    """The given words, if texts hold some that praise and some that blame."""
    words = {word.casefold(): sign for word, sign in lexicon.items() if sign}
    seen = {e.polarity for one in examples for e in emotions(one.input, words)}
    if len(seen) == 2:
        return words
    han = [any(map(is_chinese, some)) for some in (words, [e.input.text for e in examples])]
    hint = "Give a lexicon that fits the texts, with words that praise and words that blame"
    if han[0] != han[1]:
        hint = (
            f"The lexicon {'is' if han[0] else 'is not'} Chinese, the texts "
            f"{'are' if han[1] else 'are not'}: give a lexicon in the language of the texts"
        )
    what = "only words that " + ("praise" if 1 in seen else "blame") if seen else "none"
    raise DataError(
        f"expected {len(examples):,} texts to hold words of the lexicon ({len(words):,}) that "
        f"praise and words that blame; found {what}. {hint}"
    )


def _check(encoder: str | Path, model: Any, tokenizer: Any, train: Dataset) -> None:
    if not getattr(tokenizer, "is_fast", False) or tokenizer.mask_token_id is None:
        raise ModelError(
            f"expected {encoder} to have a fast tokeniser with a mask token, which hides words; "
            f"got {type(tokenizer).__name__} without. Choose an encoder such as BERT or ERNIE"
        )
    if not hasattr(model.config, "hidden_size"):
        raise ModelError(f"expected an encoder such as BERT or ERNIE, got {type(model).__name__}")
    unknown = unknown_share(tokenizer, [e.input for e in train.examples[:CHECKED]])
    if unknown > MOSTLY_UNKNOWN:
        raise ModelError(
            f"{unknown:.0%} of the pieces of the texts are unknown to {encoder}: expected an "
            "encoder for the language of the texts. For Chinese there is the packaged one, chinese"
        )


def _identity(model: SentimentKnowledge) -> str:
    """Enough to tell encoders apart: the sums of all their weights."""
    sums = [float(w.double().sum()) for w in model.encoder.state_dict().values()]
    return f"{len(sums)} {math.fsum(sums):.12g}"


@dataclass(frozen=True)
class _Reader:
    """Texts as an encoder reads them, with what is hidden."""

    tokenizer: Any
    settings: Pretraining
    finder: Finder
    vocabulary: IntArray
    """Pieces that may stand for another."""

    @classmethod
    def of(cls, tokenizer: Any, settings: Pretraining, finder: Finder) -> _Reader:
        special = set(tokenizer.all_special_ids)
        pieces = [i for i in sorted(tokenizer.get_vocab().values()) if i not in special]
        return cls(tokenizer, settings, finder, np.array(pieces, dtype=np.int64))

    def known(self, example: Example) -> Known:
        found = self.tokenizer(
            example.input.text,
            truncation=True,
            max_length=min(self.settings.longest, piece_limit(self.tokenizer)),
            return_offsets_mapping=True,
            return_special_tokens_mask=True,
        )
        marks = zip(found["offset_mapping"], found["special_tokens_mask"], strict=True)
        offsets = [(0, 0) if special else (int(a), int(b)) for (a, b), special in marks]
        ids = np.array(found["input_ids"], dtype=np.int64)
        return self.finder.known(
            example.input, ids, Alignment.by_offsets(offsets, example.input.spans)
        )

    def masked(self, known: Known, *names: str) -> Masked:
        return masked(
            known,
            self.settings.masking,
            mask=self.tokenizer.mask_token_id,
            vocabulary=self.vocabulary,
            rng=generator(self.settings.seed, "mask", *names),
        )


@dataclass(kw_only=True)
class _PretrainingLoop(EpochLoop):
    diverged = "the loss is no longer finite. Lower --learning-rate"

    reader: _Reader
    parts: Splits
    known: Mapping[str, Known]

    def merit(self, epoch: Pass) -> float:
        return -epoch.held_out

    def epoch(self, number: int) -> Pass:
        started = time.perf_counter()
        loss = self.descend(self.parts.train, number, clip=1.0)
        told = self._told(self.parts.validation)
        return replace(told, number=number, loss=loss, seconds=time.perf_counter() - started)

    def loss(self, batch: Sequence[Example], time: float) -> tuple[torch.Tensor, int]:
        """What is hidden depends on the seed, the pass and the text."""
        return self._losses(batch, str(int(time))).total, 1

    def _losses(self, examples: Sequence[Example], name: str) -> Losses:
        hidden = [self.reader.masked(self.known[e.id], name, e.id) for e in examples]
        return cast(Losses, self.model.losses(hidden))

    def _told(self, data: Dataset) -> Pass:
        """The means over all held-out texts, hidden in the same way after every pass."""
        sums, counts, right = np.zeros(3), np.zeros(3), 0
        size = self.settings.batch_size
        with torch.inference_mode(), evaluating(self.model):
            for start in range(0, len(data), size):
                found = self._losses(data.examples[start : start + size], "held out")
                parts = [float(x) for x in (found.words, found.polarity, found.pairs)]
                sums += np.array(parts) * found.counts
                counts += found.counts
                right += found.right
        words, polarity, pairs = (sums / np.maximum(counts, 1)).tolist()
        return Pass(0, 0.0, words, polarity, pairs, right / max(1, int(counts[1])), 0.0)
