"""What is measured of a trained classifier: rule consistency by each explainer, what taking a
clause away does, how stable explanations are, and what they cost."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ...auditing.audit import audit
from ...changes.structure import DOMINANT, OTHER
from ...core.examples import Dataset, Example
from ...data.lexicon import own_lexicon
from ...data.splits import sampled
from ...engine.executors import report_progress
from ...engine.inference import probabilities
from ...explainers import explainers
from ...metrics import metrics
from ...metrics.rule_consistency import OUTCOMES, RuleConsistency
from ...models.distillation import Teacher, Teaching
from ...results.rules import CATEGORIES, EFFECT, METRIC, in_category, sentences
from ...results.run import Run

STUDENT, TEACHER = "student", "teacher"
CAUSES = ("decides", "kept")
SHOWN_WORDS = 40


@dataclass(frozen=True, kw_only=True)
class Judging:
    """What a classifier is judged on, where, and how closely."""

    data: Dataset
    """The sentences with a structure that it has not learnt from."""
    folder: Path
    sizes: Mapping[str, Any]
    seed: int
    teaching: Teaching | None
    """Of a distilled model."""

    @property
    def methods(self) -> dict[str, str]:
        """The explainers by name, each as its settings spell it."""
        return {k: explainers.make(v).spec for k, v in self.sizes["explainers"].items()}

    @property
    def tests(self) -> dict[str, str]:
        """Rule consistency by each profile."""
        return {p: metrics.make(METRIC, p).spec for p in self.sizes["profiles"]}


def judged(model: Any, judging: Judging) -> dict[str, Any]:
    """All that is measured, by sentence, as JSON."""
    data = judging.data
    models = {STUDENT: model}
    if judging.teaching is not None:
        models[TEACHER] = Teacher(model, judging.teaching)
    some = sampled(data, judging.sizes.get("explained"), seed=judging.seed)
    run = audit(
        models,
        some,
        list(judging.methods.values()),
        [*dict.fromkeys(judging.tests.values()), EFFECT],
        out=judging.folder / "audit",
        seed=judging.seed,
        extras=False,
        watch=report_progress,
    ).run
    ids = [e.id for e in some]
    return {
        "answers": {
            "ids": [e.id for e in data],
            "gold": [e.label for e in data],
            **{who: _answers(one, data) for who, one in models.items()},
        },
        "explained": ids,
        "outcomes": {who: _outcomes(run, who, ids, judging) for who in models},
        "causal": {who: _causal(run, who, ids) for who in models},
        "categories": _categories(run, ids, judging),
        "clauses": [_clauses(e) for e in some],
        "shown": list(_shown(run, judging)),
        "words": float(np.mean([e.input.n_features for e in some])),
        "costs": {f"{c.model} {c.method}": [c.examples, c.seconds, c.questions]
                  for c in run.costs() if c.examples},
        "lipschitz": _lipschitz(model, some, judging),
    }  # fmt: skip


def _answers(model: Any, data: Dataset) -> list[int]:
    found: list[int] = probabilities(model, [e.input for e in data]).argmax(axis=1).tolist()
    return found


def _outcomes(run: Run, who: str, ids: Sequence[str], judging: Judging) -> dict[str, Any]:
    """By explainer: each outcome of each sentence, and whether it is consistent by each profile.
    One that a model has not the ability for is left out."""
    found = {}
    for name, method in judging.methods.items():
        rows = {p: run.rows(who, method, test) for p, test in judging.tests.items()}
        if all(rows.values()):
            first = next(iter(rows.values()))
            found[name] = {
                **{outcome: [first[i][outcome] for i in ids] for outcome in OUTCOMES},
                **{p: [of[i]["consistent"] for i in ids] for p, of in rows.items()},
            }
    return found


def _causal(run: Run, who: str, ids: Sequence[str]) -> dict[str, list[float]]:
    rows = run.rows(who, "", EFFECT)
    return {name: [rows[i][name] for i in ids] for name in CAUSES}


def _categories(run: Run, ids: Sequence[str], judging: Judging) -> dict[str, list[bool]]:
    """Which sentences are of which kind, as the first explainer has it (definitions 4.6)."""
    method, test = _first(judging)
    rows = run.rows(STUDENT, method, test)
    rule = RuleConsistency(**run.config.metrics[test].settings)
    return {name: [in_category(rows[i], name, rule) for i in ids] for name in CATEGORIES}


def _first(judging: Judging) -> tuple[str, str]:
    return next(iter(judging.methods.values())), next(iter(judging.tests.values()))


def _clauses(example: Example) -> list[int]:
    """Words of sentiment in the clause that ought to decide and in the other one, and what they add
    up to in each."""
    words = [own_lexicon().get(word.lower(), 0) for word in example.input.words]
    sides = [
        [words[i] for i in np.flatnonzero(example.truths[side][0])] for side in (DOMINANT, OTHER)
    ]
    return [*(sum(map(bool, side)) for side in sides), *(sum(side) for side in sides)]


def _shown(run: Run, judging: Judging) -> Iterator[dict[str, Any]]:
    """A sentence of each kind and label, its words coloured towards the second label."""
    method, test = _first(judging)
    scored = run.attributions(STUDENT, method)
    for category in CATEGORIES:
        for e in sentences(run, STUDENT, method, test, category, judging.seed):
            found = scored[e.id]
            towards = found.strengths() * (1 if found.target else -1)
            kinds = [_side(e, i) for i in range(e.input.n_features)]
            words = zip(e.input.words, towards.tolist(), kinds, strict=True)
            yield {
                "category": category,
                "label": e.label,
                "words": [list(word) for word in words][:SHOWN_WORDS],
            }


def _side(example: Example, place: int) -> str:
    of = (side for side in (DOMINANT, OTHER) if example.truths[side][0][place])
    return next(of, "")


def _lipschitz(model: Any, data: Dataset, judging: Judging) -> dict[str, list[float]]:
    """A few sentences' estimates by each explainer: every one costs as many explanations as there
    are points."""
    sizes = judging.sizes["lipschitz"]
    test = metrics.make(f"local_lipschitz(points={sizes['points']})").spec
    few = sampled(data, sizes["sentences"], seed=judging.seed)
    run = audit(
        {STUDENT: model},
        few,
        list(judging.methods.values()),
        [test],
        out=judging.folder / "lipschitz",
        seed=judging.seed,
        extras=False,
        watch=report_progress,
    ).run
    return {
        name: [row["lipschitz"] for row in run.rows(STUDENT, method, test).values()]
        for name, method in judging.methods.items()
    }
