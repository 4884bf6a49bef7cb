"""Do models that are built to follow a rule follow it, and at what price? (definitions 4.8)"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, NamedTuple, cast

from ...changes.structure import DOMINANT, OTHER
from ...core.errors import DataError
from ...core.examples import Dataset, Example
from ...core.inputs import Hiding, Text
from ...data.splits import Fold, nested_folds
from ...engine.executors import Executor, report_progress
from ...engine.seeds import generator
from ...experiments.experiment import Step, StepResult
from ...experiments.training import trained_once
from ...models.architecture import Training
from ...results.claims import Claim, corrected
from ...results.declarations import Declarations
from ...results.findings import Cell, Findings, Table, Value
from ..recipe import Recipe, RecipeExperiment, Setup, check_among
from ._percy_grid import CorpusGrid
from ._percy_judging import Judging, judged
from .percy import Percy, has_structure, in_proportion, marked_texts

PLAIN = "plain"
BUILDS = {
    PLAIN: "as it is",
    "distilled": "rule distilled",
    "gated": "gate that learns the clause",
    "alone": "learnt from the deciding clause alone",
    "exchanged": "learnt from exchanged clauses too",
}
CORPUS = "sst2"


class BuiltStep(NamedTuple):
    """Which model, in which outer fold."""

    build: str
    outer: int


@dataclass(frozen=True)
class PercyBuilt(Recipe):
    """Models built to pass: distilled, gated, learnt from single or from exchanged clauses."""

    title: ClassVar[str] = "Built to follow a rule: which models do, and at what price?"

    builds: tuple[str, ...] = tuple(BUILDS)
    """Which to train: plain, distilled, gated, alone, exchanged."""

    def __post_init__(self) -> None:
        check_among("builds", self.builds, BUILDS)
        if PLAIN not in self.builds:
            raise ValueError("expected plain among builds, which others are compared with")

    def experiment(self, setup: Setup) -> BuiltExperiment:
        sizes = {**Percy.at_scale(setup.scale), **setup.sizes}
        given = None if setup.data is None else Path(setup.data)
        data = marked_texts(CORPUS, given, sizes, mode="strict", seed=setup.seed)
        if data is None:
            raise DataError(
                f"{given}: expected a folder that holds "
                f"{', '.join(sizes['corpora'][CORPUS]['files'])}; there are no such files"
            )
        return BuiltExperiment(
            folder=setup.folder,
            setup=replace(setup, sizes=sizes),
            data=data,
            builds=tuple(b for b in BUILDS if b in self.builds),
        )

    def findings(
        self, experiment: BuiltExperiment, results: Mapping[BuiltStep, StepResult]
    ) -> Findings:
        setup, declared = experiment.setup, self.declarations()
        folds = list(dict.fromkeys(key.outer for key in results))
        grid = CorpusGrid(
            experiment.builds,
            {b: [results[BuiltStep(b, o)] for o in folds] for b in experiment.builds},
            tuple(map(str, folds)),
            setup.sizes["draws"],
        )
        judged_on = len(set(grid.answered.ids))
        return Findings(
            recipe=self.plugin_name(),
            title=self.title,
            lead=f"{len(experiment.builds)} models in {len(folds)} folds of "
            f"{experiment.data.name}, judged on {judged_on:,} sentences with a clause that ought "
            f"to decide; scale {setup.scale}.",
            config={k: v for k, v in setup.sizes.items() if k != "corpora"} | {"seed": setup.seed},
            tables=(_table(declared, grid, results),),
            claims=tuple(_claims(declared, grid)),
            notes=(declared.note("builds"), declared.note("labels")),
        )


def _table(
    declared: Declarations, grid: CorpusGrid, results: Mapping[BuiltStep, StepResult]
) -> Table:
    rows: dict[str, dict[str, Value]] = {}
    for build in grid.names:
        own = [r for key, r in results.items() if key.build == build]
        rows[BUILDS[build]] = {
            "accuracy": Cell.at(grid.answered.share(grid.right(build))),
            "all": Cell.of([r["accuracy"] for r in own]),
            **{e: Cell.at(grid.explained.share(grid.outcome(build, e))) for e in grid.explainers},
            "decides": Cell.at(grid.explained.share(grid.caused(build))),
            "kept": Cell.at(grid.explained.share(grid.caused(build, what="kept"))),
        }
    return declared.table("builds", rows)


def _claims(declared: Declarations, grid: CorpusGrid) -> list[Claim]:
    found = []
    for build in [b for b in grid.names if b != PLAIN]:
        scores = [
            grid.explained.compared(e, grid.outcome(build, e) - grid.outcome(PLAIN, e))
            for e in grid.explainers
        ]
        caused = grid.explained.compared("taken away", grid.caused(build) - grid.caused(PLAIN))
        right = grid.answered.compared(
            "accuracy", grid.right(build) - grid.right(PLAIN), least=-0.02
        )
        for name, looks in (("follows", [*scores, caused]), ("price", [right])):
            found.append(declared.claim(name, corrected(looks), where=BUILDS[build]))
    return found


# ---- what models learn from ---------------------------------------------------------------------


def alone(data: Dataset) -> Dataset:
    """The same texts, those with one structure without all but the clause that ought to decide."""

    def cut(example: Example) -> Example:
        if not has_structure(example):
            return example
        kept = example.input.keep(example.truths[DOMINANT][0], Hiding.DELETE)
        return replace(example, input=kept, truths={}, facts={})

    return replace(data, examples=tuple(map(cut, data)))


def exchanged(data: Dataset, seed: int) -> Dataset:
    """The same texts, and of each with one structure a second one, whose other clause is that of a
    text of the other label: what ought to decide, and so the label, stays."""
    structured = [e for e in data if has_structure(e)]
    by_label = [[e for e in structured if e.label == label] for label in (0, 1)]
    more = []
    for example in structured:
        others = by_label[1 - example.label]
        if others:
            donor = others[int(generator(seed, "exchanged", example.id).integers(len(others)))]
            more.append(_with_clause_of(example, donor))
    return replace(data, examples=(*data, *more))


def _with_clause_of(example: Example, donor: Example) -> Example:
    own, theirs = example.truths[DOMINANT][0], donor.truths[OTHER][0]
    clause = [w for w, kept in zip(donor.input.words, theirs, strict=True) if kept]
    words: list[str] = []
    placed = False
    for word, decides, other in zip(
        example.input.words, own, example.truths[OTHER][0], strict=True
    ):
        if decides or not other:
            words.append(word)
        elif not placed:
            words += clause
            placed = True
    return Example(
        f"{example.id} exchanged",
        Text.of_words(words),
        example.label,
        partner=example.id,
    )


# ---- steps --------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class BuiltExperiment(RecipeExperiment):
    """The texts, and every model that is trained on a fold of them and judged."""

    data: Dataset
    builds: tuple[str, ...]

    @cached_property
    def folds(self) -> Mapping[int, Fold]:
        """The first training of each outer fold that is done."""
        sizes = self.sizes["folds"]
        folds = nested_folds(
            self.data,
            outer=sizes["outer"],
            inner=sizes["inner"],
            seed=self.setup.seed,
            stratum=in_proportion,
        )
        return {f.outer: f for f in folds if f.outer < sizes["outer_done"] and not f.inner}

    def steps(self) -> list[Step]:
        names = ("explained", "lipschitz", "explainers", "profiles", "folds", "training")
        data = self.data.fingerprint()
        return [
            Step(
                key=BuiltStep(build, outer),
                name=f"{build}-{outer}",
                settings={
                    "settings": {k: self.sizes.get(k) for k in names},
                    "model": self._spec(build),
                    "rules": self.sizes["rules"],
                    "seed": self.setup.seed,
                    "data": data,
                },
                title=f"{BUILDS[build]}, fold {outer + 1}",
            )
            for build in self.builds
            for outer in self.folds
        ]

    def _spec(self, build: str) -> str:
        kind = "clause_gate" if build == "gated" else "text_cnn"
        return f"{kind}({self.sizes['built']})"

    def work(self, step: Step, executor: Executor | None) -> StepResult:
        key = cast(BuiltStep, step.key)
        parts = self.folds[key.outer].parts
        test = parts.test
        if key.build == "alone":
            parts = replace(parts, train=alone(parts.train))
        if key.build == "exchanged":
            parts = replace(parts, train=exchanged(parts.train, self.setup.seed))
        rules = tuple(self.sizes["rules"])
        taught: dict[str, Any] = {"distil": rules} if key.build == "distilled" else {}
        place = self.place(step.name)
        trained = trained_once(
            self._spec(key.build),
            parts,
            place / "model",
            training=Training(**self.sizes["training"], **taught, seed=self.setup.seed),
            watch=report_progress,
        )
        judging = Judging(
            data=test.select(i for i, e in enumerate(test) if has_structure(e)),
            folder=place,
            sizes=self.sizes,
            seed=self.setup.seed,
            teaching=None,
        )
        return {**trained.summary, **judged(trained.model, judging)}
