"""SentiBERT learns the labels of phrases in a treebank (definitions 1.10)."""

from __future__ import annotations

import contextlib
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

from ..core.errors import DataError
from ..core.examples import Dataset, Example, check_texts
from ..core.files import FolderKind, check_own, sole_writer, write_json
from ..core.inputs import IntArray
from ..core.progress import Watcher
from ..data.parsing import Parser
from ..data.splits import Splits, split
from ..data.treebanks import COLUMN
from ..data.trees import Tree, bracket_f1, read_tree
from ..engine.batches import by_length
from ..engine.gradients import evaluating
from .encoders import Encoder
from .pretraining import EncoderTraining
from .sentibert import PhraseEncoder, SentiBert
from .training import Checkpoint, EpochLoop, clear
from .weights import identity_with
from .word_vectors.bert import BertEncoder

RECORD = "sentibert.json"
"""What a folder written here is recognised by."""

SENTIBERT = FolderKind("a SentiBERT network", RECORD)

UNLABELLED = -100
"""Nodes whose label nobody gave are neither learnt nor counted."""

MOST_LABELS = 100


@dataclass(frozen=True)
class PhraseEpoch:
    """One pass over the trees, and how many labels of held-out ones were then told."""

    number: int
    loss: float
    phrases: float
    roots: float
    seconds: float

    def __str__(self) -> str:
        return (
            f"epoch {self.number + 1}, loss {self.loss:.3f}; held out: phrases {self.phrases:.3f}, "
            f"roots {self.roots:.3f}, {self.seconds:.1f} s"
        )


@dataclass(frozen=True)
class Level:
    """Labels of nodes of one kind: how many there are, the share that is told, and the share that
    the most frequent one among those learnt from would be."""

    nodes: int
    accuracy: float
    majority: float


@dataclass(frozen=True)
class Treebank:
    """Texts of several parts with their trees, by id."""

    parts: Splits
    trees: Mapping[str, Tree]

    @classmethod
    def of(cls, data: Dataset, *, seed: int) -> Treebank:
        """Every text must have come with a tree, and some nodes with labels."""
        check_texts(data, "sentibert")
        lacking = next((e for e in data if COLUMN not in e.facts), None)
        if lacking is not None:
            raise DataError(
                f"expected every text of {data.name} to have a tree with labels, such as "
                f"(3 (3 good) (2 film)); {lacking.id} has none. Give a file of trees, one a line, "
                f"or a column {COLUMN!r}"
            )
        trees = {e.id: read_tree(e.facts[COLUMN]).fitted(e.input) for e in data}
        labels = sorted(
            {n.label for tree in trees.values() for n in tree.nodes if n.label is not None}
        )
        if len(labels) < 2 or labels[-1] >= MOST_LABELS:
            raise DataError(
                f"expected trees whose nodes have at least two labels, numbers from 0 to "
                f"{MOST_LABELS - 1}, got {', '.join(map(str, labels[-5:])) or 'none'}"
            )
        parts = split(data, seed=seed)
        if not len(parts.train) or not len(parts.validation):
            raise DataError(
                f"expected trees to learn from and to measure on, got {len(parts.train)} and "
                f"{len(parts.validation)}. Bring more data"
            )
        return cls(parts, trees)

    @property
    def n_labels(self) -> int:
        return 1 + max(n.label or 0 for tree in self.trees.values() for n in tree.nodes)

    def of_texts(self, examples: Sequence[Example]) -> list[Tree]:
        return [self.trees[e.id] for e in examples]


@dataclass(frozen=True)
class PretrainedPhrases:
    """The network after its best pass, and how it got there."""

    model: SentiBert
    record: Mapping[str, Any]
    history: tuple[PhraseEpoch, ...]
    best: PhraseEpoch

    def save(self, folder: Path) -> None:
        """As the published network lies in its folder, and how it was made."""
        self.model.save(folder)
        write_json(folder / RECORD, self.record)


def pretrain_sentibert(
    encoder: str,
    data: Dataset,
    *,
    out: Path | None = None,
    against: str | None = None,
    training: EncoderTraining | None = None,
    watch: Watcher = lambda _: None,
) -> PretrainedPhrases:
    """Trains an encoder and what composes phrases to tell the label of every phrase. Given `out`,
    the network is written there, and what was begun goes on. With `against`, such as spacy, texts
    of the test part are also read with trees from there, to tell what that costs."""
    settings = training or EncoderTraining()
    if out is not None:
        check_own(out, SENTIBERT)
    bank = Treebank.of(data, seed=settings.seed)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(settings.seed)
        model = new_sentibert(encoder, bank.n_labels, longest=settings.longest)
    asked = {
        "encoder": identity_with(model, encoder),
        "training": {k: v for k, v in asdict(settings).items() if k != "epochs"},
        "data": data.fingerprint(),
    }
    with sole_writer(out, SENTIBERT) if out else contextlib.nullcontext():
        state = _PhraseLoop(
            model=model,
            settings=settings,
            optimiser=torch.optim.AdamW(model.parameters(), lr=settings.learning_rate),
            checkpoint=Checkpoint(out / "checkpoint" if out else None, asked, PhraseEpoch),
            watch=watch,
            bank=bank,
        ).run()
        history, best = tuple(state.history), state.history[state.best]
        record = {
            "format": 1,
            "encoder": encoder,
            "labels": bank.n_labels,
            "data": {"name": data.name, "fingerprint": data.fingerprint()},
            "training": asdict(settings),
            "history": [asdict(epoch) for epoch in history],
            "best": best.number,
            "test": {k: asdict(v) for k, v in levels(model, bank, bank.parts.test).items()},
        }
        if against is not None:
            record["other_trees"] = other_trees(model, bank, bank.parts.test, against)
        done = PretrainedPhrases(model, record, history, best)
        if out is not None:
            done.save(out)
            clear(out / "checkpoint")
    return done


def new_sentibert(encoder: str, labels: int, *, longest: int) -> SentiBert:
    """An encoder that exists, under phrases that have learnt nothing yet."""
    found, tokenizer, _ = Encoder.named(encoder).read("")
    return SentiBert(PhraseEncoder(BertEncoder(found, tokenizer, longest)), labels)


# ---- how well labels are told -----------------------------------------------------------------


def told(model: SentiBert, data: Dataset, trees: Sequence[Tree]) -> list[IntArray]:
    """By text, the label that the model gives each phrase of its tree."""
    found: list[IntArray] = [np.zeros(0, dtype=np.int64)] * len(data)
    with torch.inference_mode(), evaluating(model):
        for batch in by_length([e.input.n_features for e in data]):
            some = [trees[i] for i in batch]
            logits = model([data.examples[i].input for i in batch], some)
            for i, tree, row in zip(batch, some, logits.argmax(dim=2).cpu().numpy(), strict=True):
                found[i] = row[: len(tree.phrases)]
    return found


def levels(model: SentiBert, bank: Treebank, data: Dataset) -> dict[str, Level]:
    """How many labels of phrases, and of whole texts, are told."""
    trees = bank.of_texts(data.examples)
    known = bank.of_texts(bank.parts.train.examples)
    answers = told(model, data, trees)
    found = {}
    for name, count in (("phrases", None), ("roots", 1)):
        usual = Counter(x for t in known for x in _labels(t)[:count] if x >= 0).most_common(1)
        gold = np.array([x for t in trees for x in _labels(t)[:count]])
        given = np.array([x for row in answers for x in row[:count]])
        found[name] = _level(gold, given, usual[0][0] if usual else UNLABELLED)
    return found


def _level(gold: IntArray, given: IntArray, usual: int) -> Level:
    labelled = gold >= 0
    if not labelled.any():
        return Level(0, float("nan"), float("nan"))
    gold, given = gold[labelled], given[labelled]
    return Level(len(gold), float(np.mean(gold == given)), float(np.mean(gold == usual)))


def other_trees(model: SentiBert, bank: Treebank, data: Dataset, source: str) -> dict[str, Any]:
    """What trees from elsewhere cost: how far their phrases are those of the treebank, and how many
    labels of roots, and of phrases that both have, are told with either."""
    parser = Parser((source,))
    gold, other = bank.of_texts(data.examples), [parser.tree(e.input) for e in data]
    right: dict[str, list[list[bool]]] = {"phrases": [[], []], "roots": [[], []]}
    rows = (_by_span(trees, told(model, data, trees)) for trees in (gold, other))
    for tree, of_gold, of_other in zip(gold, *rows, strict=True):
        for i, place in enumerate(tree.phrases):
            node = tree.nodes[place]
            span = (node.start, node.end)
            if node.label is None or span not in of_other:
                continue
            for level in ("phrases", "roots") if i == 0 else ("phrases",):
                for answers, hits in zip((of_gold, of_other), right[level], strict=True):
                    hits.append(answers[span] == node.label)
    return {
        "source": source,
        "bracket_f1": bracket_f1(other, gold),
        **{
            f"shared_{level}" if level == "phrases" else level: {
                "nodes": len(own),
                "own_trees": float(np.mean(own)) if own else None,
                "other_trees": float(np.mean(others)) if others else None,
            }
            for level, (own, others) in right.items()
        },
    }


def _by_span(trees: Sequence[Tree], answers: Sequence[IntArray]) -> list[dict[Any, int]]:
    return [
        {(t.nodes[p].start, t.nodes[p].end): int(x) for p, x in zip(t.phrases, row, strict=True)}
        for t, row in zip(trees, answers, strict=True)
    ]


def _labels(tree: Tree) -> list[int]:
    found = (tree.nodes[place].label for place in tree.phrases)
    return [UNLABELLED if label is None else label for label in found]


@dataclass(kw_only=True)
class _PhraseLoop(EpochLoop):
    diverged = "the loss is no longer finite. Lower --learning-rate"

    bank: Treebank

    def merit(self, epoch: PhraseEpoch) -> float:
        return epoch.phrases

    def epoch(self, number: int) -> PhraseEpoch:
        started = time.perf_counter()
        loss = self.descend(self.bank.parts.train, number, clip=1.0)
        held_out = levels(self.model, self.bank, self.bank.parts.validation)
        seconds = time.perf_counter() - started
        accuracies = (held_out["phrases"].accuracy, held_out["roots"].accuracy)
        return PhraseEpoch(number, loss, *accuracies, seconds)

    def loss(self, batch: list[Example], time: float) -> tuple[torch.Tensor, int]:
        """The mean over all phrases of the batch, which counts by how many they are."""
        trees = self.bank.of_texts(batch)
        logits = self.model([e.input for e in batch], trees)
        labels = torch.full(logits.shape[:2], UNLABELLED)
        for row, tree in zip(labels, trees, strict=True):
            row[: len(tree.phrases)] = torch.tensor(_labels(tree))
        many = int((labels >= 0).sum())
        # a batch without labels teaches nothing
        summed = nn.functional.cross_entropy(
            logits.flatten(0, 1), labels.flatten().to(logits.device), reduction="sum"
        )
        return summed / max(1, many), many
