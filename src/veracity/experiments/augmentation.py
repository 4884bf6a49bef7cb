"""Does training on pattern-made twins help, and against whom? (definitions 7.3)"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from ..auditing.labels import fit_labels, fit_labels_to
from ..changes import attacked
from ..core.changes import PATTERN
from ..core.errors import DataError, RunError
from ..core.examples import Dataset
from ..core.files import FolderKind, as_read, check_own, sole_writer, write_json
from ..core.inputs import BoolArray, IntArray
from ..core.plugins import split_specs
from ..core.progress import Watcher
from ..data.loading import load_data
from ..data.splits import Splits, normalised, split
from ..engine.executors import Executor, Local, report_progress
from ..engine.inference import probabilities
from ..models.architectures import architectures
from .augmentation_record import FILE, Augmentation, gains_of
from .experiment import Experiment, Step, StepResult, chosen, run_steps
from .training import trained_once

if TYPE_CHECKING:
    from ..models.architecture import Architecture, Training

MODELS = "models"
"""Where the trained models lie in the folder of a comparison."""

COMPARISON = FolderKind("a comparison", MODELS)

TAKING_PART = ("single", "obscure")
"""Sentiment types of originals that patterns rewrite well; what has no type takes part too."""


@dataclass(frozen=True)
class _TestSet:
    """The texts both models are tried on, and where each kind stands."""

    data: Dataset
    kinds: dict[str, IntArray]
    left_out: int


def augmentation(
    architecture: str | Architecture,
    train: str | Path | Dataset,
    twins: str | Path | Dataset,
    *,
    by: str | Sequence[str],
    out: str | Path,
    tested_by: str | Sequence[str] = (),
    seeds: int = 1,
    seed: int = 0,
    training: Training | None = None,
    executor: Executor | None = None,
    watch: Watcher | None = None,
) -> Augmentation:
    """Trains an architecture on texts, and on them and their pattern-made twins, and tries both on
    originals, on pattern-made and on hand-made twins; given again, it resumes.

    `tested_by` are the patterns of the test, by default those of the training.
    """
    if seeds < 1:
        raise DataError(f"expected at least one training, got {seeds}")
    folder = Path(out)
    check_own(folder, COMPARISON)
    made = architectures.make(architecture)
    trains, tries = split_specs(by), split_specs(tested_by) or split_specs(by)
    given, wanted = load_data(train), load_data(twins)
    if not wanted.labelled:
        raise DataError(f"{wanted.name} has no labels, so nobody knows which answers are right")
    tested = _tested(fit_labels_to(wanted, given.name, given.labels), tries, seed)
    parts, held_out = _without(split(given, seed=seed), tested.data)
    more = attacked(parts.train, trains, seed=seed)
    experiment = AugmentationExperiment(
        folder=folder,
        architecture=made,
        training=training or made.training,
        parts={"plain": parts, "augmented": replace(parts, train=more)},
        tested=tested.data,
        seeds=range(seed, seed + seeds),
    )
    with sole_writer(folder, COMPARISON):
        results = run_steps(experiment, executor or Local(), watch=watch)
        right = {
            kind: np.array([results[kind, number]["right"] for number in experiment.seeds])
            for kind in experiment.parts
        }
        found = Augmentation(
            architecture=made.spec,
            train=given.name,
            tested=tested.data.name,
            by=", ".join(trains),
            tested_by=", ".join(tries),
            seeds=seeds,
            train_texts=len(parts.train),
            added_texts=len(more) - len(parts.train),
            held_out=held_out,
            left_out=tested.left_out,
            gains=gains_of(tested.data, tested.kinds, right["plain"], right["augmented"]),
        )
        write_json(folder / FILE, asdict(found), checksum=False)
    return found


@dataclass(frozen=True, kw_only=True)
class AugmentationExperiment(Experiment):
    """Every training both ways, and which of the tested texts each model gets right."""

    architecture: Architecture
    training: Training
    parts: Mapping[str, Splits]
    tested: Dataset
    seeds: range

    def steps(self) -> list[Step]:
        prints = {kind: parts.fingerprint() for kind, parts in self.parts.items()}
        tested = self.tested.fingerprint()
        return [
            Step(
                key=(kind, number),
                name=f"{kind}-{number}",
                settings={
                    "trained": self._settings(number),
                    "data": prints[kind],
                    "tested": tested,
                },
            )
            for number in self.seeds
            for kind in self.parts
        ]

    def _settings(self, number: int) -> list[Any]:
        return [self.architecture.spec, asdict(replace(self.training, seed=number))]

    def work(self, step: Step, executor: Executor | None) -> StepResult:
        kind, number = cast(tuple[str, int], step.key)
        parts, place = self.parts[kind], self.folder / MODELS / step.name
        settings = as_read(self._settings(number))
        train = parts.train
        source = {"name": train.name, "fingerprint": train.fingerprint(), "asked": settings}
        trained = trained_once(
            self.architecture,
            parts,
            place,
            data=source,
            training=replace(self.training, seed=number),
            watch=report_progress,
        )
        if chosen(trained.record["data"].get("asked")) != chosen(settings):
            raise RunError(
                f"{place} holds a model that was trained in another way. Choose another folder, or "
                "delete that one"
            )
        return {"right": _right(trained.model, self.tested).tolist()}


def _tested(data: Dataset, patterns: Sequence[str], seed: int) -> _TestSet:
    """Originals, what people made of them and what patterns do, where patterns can be trusted."""
    by_hand = [(o, t) for o, t in data.pairs if PATTERN not in t.facts]
    kept = [(o, t) for o, t in by_hand if o.facts.get("sentiment_type", "single") in TAKING_PART]
    if not kept:
        why = (
            "all originals have several sentiments"
            if by_hand
            else "all its twins were made by patterns"
            if data.pairs
            else "it holds no pair. Give originals their twins' ids in rel_ids, or twins their "
            "original's in partner"
        )
        raise DataError(
            f"{data.name}: expected pairs of an original and a twin that somebody wrote; {why}"
        )
    originals = tuple({o.id: o for o, _ in kept}.values())
    patterned = attacked(replace(data, examples=originals), patterns, seed=seed)
    written = tuple(t for _, t in kept)
    made = tuple(e for e in patterned if PATTERN in e.facts)
    sizes = {"originals": len(originals), "pattern-made": len(made), "hand-made": len(written)}
    kind_of = np.repeat(list(sizes), list(sizes.values()))
    kinds = {name: np.flatnonzero(kind_of == name) for name in sizes}
    everything = replace(data, examples=(*originals, *made, *written))
    return _TestSet(everything, kinds, len(by_hand) - len(kept))


def _without(parts: Splits, tested: Dataset) -> tuple[Splits, int]:
    """Parts to learn from without the texts that are tested, and how many those are."""
    known = {normalised(e.input.text) for e in tested}
    fresh = [
        part.select(i for i, e in enumerate(part) if normalised(e.input.text) not in known)
        for part in (parts.train, parts.validation, parts.test)
    ]
    held_out = sum(map(len, (parts.train, parts.validation, parts.test))) - sum(map(len, fresh))
    if not len(fresh[0]) or not len(fresh[1]):
        raise DataError(
            f"{parts.train.name}: expected texts to train on besides the {held_out:,} that are "
            "tested; there are too few. Bring other training data"
        )
    return Splits(*fresh), held_out


def _right(model: Any, tested: Dataset) -> BoolArray:
    fitted = fit_labels(tested, {"model": model})
    answers = probabilities(model, [e.input for e in fitted])
    gold = np.array([e.label for e in fitted])
    right: BoolArray = answers.argmax(axis=1) == gold
    return right
