"""Which rule-consistency score orders models rightly? Oracles in known mixtures
(definitions 4.7)"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any, ClassVar, cast

from ...auditing.explaining import attributions
from ...changes.structure import DOMINANT, OTHER
from ...core.errors import DataError
from ...core.examples import Dataset
from ...core.metrics import Case
from ...data.lexicon import own_lexicon
from ...data.loading import load_data
from ...data.splits import sampled
from ...engine.executors import Executor
from ...engine.inference import probabilities
from ...experiments.experiment import Step, StepResult
from ...explainers import explainers
from ...metrics import metrics
from ...metrics.rule_consistency import RuleConsistency
from ...results.findings import Findings
from ...results.rules import EFFECT
from ..recipe import Recipe, RecipeExperiment, Setup, check_among
from ._percy_oracles_findings import TEXTS, OraclesReader
from ._percy_oracles_models import (
    ClauseOracle,
    made_sentences,
    traits,
    word_odds,
    written_sentences,
)

STAND_IN = "rotten_tomatoes"
SST2 = ("sst/sst2.train.tsv", "sst/sst2.dev.tsv", "sst/sst2.test.tsv")

OracleStep = tuple[str, float]
"""Which sentences, and with which share of its answer the oracle obeys the rule."""


@dataclass(frozen=True)
class PercyOracles(Recipe):
    """Oracles that obey a rule to a known degree: which score puts them in order?"""

    title: ClassVar[str] = "Oracles: which score of rule consistency orders models rightly?"

    texts: tuple[str, ...] = tuple(TEXTS)
    """On which sentences: made, written (of a folder with sst, else packaged ones)."""

    def __post_init__(self) -> None:
        check_among("texts", self.texts, TEXTS)

    def experiment(self, setup: Setup) -> OraclesExperiment:
        sizes, seed = setup.sizes, setup.seed
        for spec in sizes["explainers"]:
            explainers.make(spec)
        weights: dict[str, Mapping[str, float]] = {"made": own_lexicon()}
        found: dict[str, Dataset] = {}
        if "made" in self.texts:
            found["made"] = made_sentences(
                sizes["sentences"], sizes["lengths"], sizes["most"], sizes["rules"], seed=seed
            )
        if "written" in self.texts:
            data = _read(setup.data)
            weights["written"] = word_odds(data)
            written = written_sentences(data, sizes["rules"], weights["written"])
            found["written"] = sampled(written, sizes["sentences"], seed=seed)
        return OraclesExperiment(folder=setup.folder, setup=setup, texts=found, weights=weights)

    def findings(
        self, experiment: OraclesExperiment, results: Mapping[OracleStep, StepResult]
    ) -> Findings:
        setup = experiment.setup
        reader = OraclesReader(self.declarations(), results, tuple(experiment.texts))
        counts = {name: len(data) for name, data in experiment.texts.items()}
        return Findings(
            recipe=self.plugin_name(),
            title=self.title,
            lead=reader.lead(counts),
            config={"scale": setup.scale, "seed": setup.seed, **setup.sizes},
            tables=tuple(reader.tables()),
            claims=tuple(reader.claims()),
            figures=tuple(reader.figures()),
            notes=tuple(map(reader.declared.note, ("oracle", "texts", "order"))),
        )


def _read(data: str | Path | None) -> Dataset:
    """SST-2 of a folder, or packaged sentences of the same reviews."""
    if data is None:
        return load_data(STAND_IN)
    files = [Path(data) / name for name in SST2]
    there = [load_data(file) for file in files if file.exists()]
    if not there:
        raise DataError(f"{data}: expected a folder that holds {SST2[0]}; there is no such file")
    examples = (e for part in there for e in part)
    return Dataset("sst2", there[0].labels, tuple(examples))


@dataclass(frozen=True, kw_only=True)
class OraclesExperiment(RecipeExperiment):
    """The sentences, and an oracle for each mixture."""

    texts: Mapping[str, Dataset]
    weights: Mapping[str, Mapping[str, float]]
    """Of words, by kind of sentences."""

    def steps(self) -> list[Step]:
        prints = {name: data.fingerprint() for name, data in self.texts.items()}
        names = ("rules", "explainers", "tests")
        return [
            Step(
                key=(name, float(share)),
                name=f"{name}-{round(100 * share)}",
                settings={
                    "settings": {k: self.sizes[k] for k in names},
                    "seed": self.setup.seed,
                    "data": [prints[name], weights_print(self.weights[name])],
                    "obedience": share,
                },
                title=f"{TEXTS[name]}, {share:.0%} by the clause",
            )
            for name in self.texts
            for share in self.sizes["mixtures"]
        ]

    def work(self, step: Step, executor: Executor | None) -> StepResult:
        name, share = cast(OracleStep, step.key)
        data = self.texts[name]
        weights = self.weights[name]
        model = ClauseOracle(share, tuple(self.sizes["rules"]), weights)
        answers = probabilities(model, [e.input for e in data])
        scores = {}
        for spec in self.sizes["explainers"]:
            cases = explained(model, data, spec, self.setup.seed)
            name_of = explainers.make(spec).plugin_name()
            scores[name_of] = consistency(cases, self.sizes["tests"])
        cases = [Case(e, model, p, None) for e, p in zip(data, answers, strict=True)]  # type: ignore[arg-type]
        effects = metrics.make(EFFECT).score(cases)
        return {
            "right": [int(case.right) for case in cases],
            "decides": [int(row["decides"]) for row in effects],
            "scores": scores,
            "share": [share_of_movement(row) for row in effects],
            "traits": [traits(e, weights) for e in data],
        }


def share_of_movement(effect: Mapping[str, float]) -> float:
    """How much of what the answer moves, without one clause and without the other, it moves without
    the one that ought to decide; half where it does not move."""
    dominant, other = abs(effect["dominant"]), abs(effect["other"])
    return dominant / (dominant + other) if dominant + other else 0.5


def explained(model: ClauseOracle, data: Dataset, spec: str, seed: int) -> list[Case]:
    """Every sentence with its explanation."""
    inputs = [e.input for e in data]
    answers = probabilities(model, inputs)
    found = attributions(
        explainers.make(spec),
        model,
        inputs,
        answers.argmax(axis=1).tolist(),
        [e.id for e in data],
        seed,
    )
    rows = zip(data, answers, found, strict=True)
    return [Case(example, model, p, one) for example, p, one in rows]


def weights_print(weights: Mapping[str, float]) -> str:
    """Tells these weights of words from others."""
    return hashlib.sha256(repr(sorted(weights.items())).encode()).hexdigest()


def consistency(cases: Sequence[Case], tests: Sequence[str]) -> dict[str, list[int]]:
    """Whether each sentence is consistent, by contribution, reduction and test. The test looks at
    all words whatever the reduction, so its p-value is found once."""
    found: dict[str, list[int]] = {}
    for how, test in product(("split", "literal", "abs"), tests):
        metric = RuleConsistency(contribution=how, test=test)  # type: ignore[arg-type]
        sides = [_sides(metric, case) for case in cases]
        p = [metric.p_value(*side) for side in sides]
        for reduction in ("sum", "mean", "topk_mean"):
            reducing = RuleConsistency(contribution=how, test=test, reduction=reduction)  # type: ignore[arg-type]
            found[f"{how}, {reduction}, {test}"] = [
                int(
                    reducing.outcome(
                        right=case.right,
                        dominant=reducing.reduced(side[0]),
                        other=reducing.reduced(side[1]),
                        p=value,
                    )
                    == "consistent"
                )
                for case, side, value in zip(cases, sides, p, strict=True)
            ]
    return found


def _sides(metric: RuleConsistency, case: Case) -> tuple[Any, Any]:
    added = metric.contributions(case)
    truths = case.example.truths
    return added[truths[DOMINANT][0]], added[truths[OTHER][0]]
