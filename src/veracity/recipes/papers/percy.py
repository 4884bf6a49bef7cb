"""Do classifiers decide on the clause that ought to decide? (Gupta et al., "PERCY";
definitions 9.1)"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, NamedTuple, cast

from ...changes.structure import RULE, Structure
from ...core.errors import DataError
from ...core.examples import Dataset, Example
from ...data.loading import load_data
from ...data.splits import Fold, ReportOn, nested_folds, sampled, split
from ...engine.executors import Executor, report_progress
from ...experiments.experiment import Step, StepResult
from ...experiments.training import TrainedModel, trained_once
from ...explainers import explainers
from ...models.architecture import Training
from ...models.architectures import architectures
from ...models.distillation import Teaching
from ...results.findings import Findings
from ...rules import Mode
from ..recipe import Recipe, RecipeExperiment, Setup, check_among
from ._percy_findings import CORPORA, PercyReader
from ._percy_judging import Judging, judged
from ._percy_names import GRID, ClassifierName

BASE_MODELS = {"C": "text_cnn", "L": "lstm"}
VECTORS = {"G": "glove", "W": "word2vec"}
"""What is read for a letter that nothing is given for."""


class PercyStep(NamedTuple):
    """What to do (train, judge), with which classifier in which fold of which corpus."""

    what: str
    corpus: str
    classifier: str
    outer: int
    inner: int


@dataclass(frozen=True)
class Percy(Recipe):
    """Clauses that ought to decide, as in A but B: do they, in forty classifiers?"""

    title: ClassVar[str] = "Rule consistency: do classifiers decide on the right clause?"

    corpora: tuple[str, ...] = tuple(CORPORA)
    """On which texts: sst2, sentiment140 (of a folder that is given)."""
    vectors: tuple[str, ...] = tuple(VECTORS)
    """Letters of the paper's vectors, each with what stands for it: G, W, 'G=FILE', 'B=bert',
    'E=elmo(encoder=FOLDER)', 'sB=sentibert(encoder=FOLDER)'."""
    classifiers: tuple[str, ...] = ()
    """Which to train, such as CG or LDFW (C or L; D distilled; F tuned; its vectors); by default
    all eight of each vectors."""
    report_on: ReportOn = "outer"
    """What SST-2 is judged on: outer folds, or as released the inner ones that stopped training."""
    mode: Mode = "strict"
    """Sentences with exactly one structure, the first of each, or all."""
    strength: int = 1
    """How strongly rules are taught: by the formula, or 2 or 4 times so, as others have it."""

    def __post_init__(self) -> None:
        check_among("corpora", self.corpora, CORPORA)
        known = [str(name) for name in GRID if name.vectors in self.specs]
        if self.classifiers:
            check_among("classifiers", self.classifiers, known)
        Training(strength=self.strength)

    @property
    def specs(self) -> dict[str, str]:
        """What the letters of vectors stand for."""
        found: dict[str, str] = {}
        for given in self.vectors:
            letter, _, spec = given.partition("=")
            spec = spec or VECTORS.get(letter, "")
            if not spec or letter not in {name.vectors for name in GRID}:
                raise ValueError(f"expected vectors such as G, W or B=bert, got {given!r}")
            found[letter] = spec
        return found

    def chosen(self, sizes: Mapping[str, Any]) -> tuple[ClassifierName, ...]:
        """The classifiers to train, in the order of the paper's table."""
        named = self.classifiers or (self.vectors == tuple(VECTORS) and sizes.get("classifiers"))
        every = [name for name in GRID if name.vectors in self.specs]
        return tuple(name for name in every if not named or str(name) in named)

    def experiment(self, setup: Setup) -> PercyExperiment:
        sizes = setup.sizes
        for spec in sizes["explainers"].values():
            explainers.make(spec)
        given = None if setup.data is None else Path(setup.data)
        texts = {
            name: marked_texts(name, given, sizes, mode=self.mode, seed=setup.seed)
            for name in self.corpora
        }
        found = {name: data for name, data in texts.items() if data is not None}
        if not found:
            raise DataError(
                f"{given or 'packaged data'}: expected a folder that holds sst or sentiment140, or "
                "corpora with sst2, for which packaged sentences stand in. See "
                "docs/results/percy.md"
            )
        return PercyExperiment(
            folder=setup.folder,
            setup=setup,
            given=given,
            recipe=self,
            texts=found,
            classifiers=self.chosen(sizes),
        )

    def findings(
        self, experiment: PercyExperiment, results: Mapping[PercyStep, StepResult]
    ) -> Findings:
        setup = experiment.setup
        reader = PercyReader(
            declared=self.declarations(),
            results=results,
            names=experiment.classifiers,
            texts=experiment.texts,
            sizes=setup.sizes,
        )
        return Findings(
            recipe=self.plugin_name(),
            title=self.title,
            lead=reader.lead(setup.scale),
            config={
                "scale": setup.scale,
                "data": str(experiment.given or "packaged"),
                "seed": setup.seed,
                "classifiers": ", ".join(map(str, experiment.classifiers)),
                "vectors": ", ".join(f"{k} {v}" for k, v in self.specs.items()),
                "report_on": self.report_on,
                "mode": self.mode,
                "strength": self.strength,
                **{k: v for k, v in setup.sizes.items() if k != "corpora"},
            },
            tables=tuple(reader.tables()),
            claims=tuple(reader.claims()),
            figures=tuple(reader.figures()),
            texts=tuple(reader.shown()),
            notes=tuple(self._notes(reader, experiment)),
        )

    def _notes(self, reader: PercyReader, experiment: PercyExperiment) -> list[str]:
        sizes, declared = experiment.sizes, reader.declared
        missing = [CORPORA[c] for c in self.corpora if c not in experiment.texts]
        notes = [
            declared.note("protocol", report=declared.note(self.report_on), **sizes["folds"]),
            declared.note("structures", rules=", ".join(sizes["rules"]), mode=self.mode),
            declared.note("intervals", draws=sizes["draws"]),
            *map(declared.note, ("slip", "measured", "words")),
            declared.note("vectors", vectors=", ".join(f"{k} {v}" for k, v in self.specs.items())),
        ]
        if missing:
            notes.append(declared.note("missing", missing=", ".join(missing)))
        if experiment.given is None:
            notes.append(declared.note("stand_in"))
        return notes


# ---- data -----------------------------------------------------------------------------------


def has_structure(example: Example[Any]) -> bool:
    return RULE in example.facts


def in_proportion(example: Example[Any]) -> tuple[int, ...]:
    """What every part has its share of: structures, and labels among them."""
    return int(has_structure(example)), example.label


def marked_texts(
    name: str, given: Path | None, sizes: Mapping[str, Any], *, mode: Mode, seed: int
) -> Dataset | None:
    """The texts of a corpus with their structures marked; None where they are not there."""
    about = sizes["corpora"][name]
    files = [given / file for file in about["files"]] if given is not None else []
    if files and all(file.exists() for file in files):
        data = joined(name, [load_data(file) for file in files])
    elif "stand_in" in about and given is None:
        data = load_data(about["stand_in"])
    else:
        return None
    marked = Structure(tuple(sizes["rules"]), mode).changed(data, seed=seed)
    share = sizes.get("structured", {}).get(name, about.get("structured"))
    return drawn(marked, sizes["texts"][name], share, seed)


def joined(name: str, parts: list[Dataset]) -> Dataset:
    """Files as one dataset, whose own division is given up."""
    labels = parts[0].labels
    if len(labels) != 2 or any(part.labels != labels for part in parts):
        raise DataError(
            f"expected the files of {name} to have the same two labels, negative first; got "
            f"{' and '.join(', '.join(part.labels) for part in parts)}"
        )
    examples = tuple(replace(e, id=f"{part.name}-{e.id}", facts={}) for part in parts for e in part)
    return Dataset(name, labels, examples)


def drawn(data: Dataset, limit: int, share: float | None, seed: int) -> Dataset:
    """A sample of the texts; of so large a share with a structure, or as many as there are."""
    if share is None:
        return sampled(data, limit, seed=seed)
    sides = [[i for i, e in enumerate(data) if has_structure(e) == wanted] for wanted in (1, 0)]
    n = min(round(share * limit), len(sides[0]))
    counts = (n, min(round(n * (1 - share) / share), len(sides[1])))
    kept = [
        e.id
        for places, count in zip(sides, counts, strict=True)
        for e in sampled(data.select(places), count, seed=seed)
    ]
    wanted = set(kept)
    return data.select(i for i, e in enumerate(data) if e.id in wanted)


# ---- steps ----------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class PercyExperiment(RecipeExperiment):
    """The texts, and every classifier that is trained on a fold of them and judged."""

    given: Path | None
    recipe: Percy
    texts: Mapping[str, Dataset]
    classifiers: tuple[ClassifierName, ...]

    @cached_property
    def folds(self) -> Mapping[str, Mapping[tuple[int, int], Fold]]:
        """Those of each corpus that are done."""
        sizes, seed = self.sizes["folds"], self.setup.seed
        found: dict[str, dict[tuple[int, int], Fold]] = {}
        for name, data in self.texts.items():
            shares = self.sizes["corpora"][name].get("shares")
            if shares is not None:
                parts = split(data, shares=shares, seed=seed, stratum=in_proportion)
                found[name] = {(0, 0): Fold(0, 0, parts)}
                continue
            folds = nested_folds(
                data,
                outer=sizes["outer"],
                inner=sizes["inner"],
                report_on=self.recipe.report_on,
                seed=seed,
                stratum=in_proportion,
            )
            done = (sizes["outer_done"], sizes["inner_done"])
            found[name] = {
                (f.outer, f.inner): f for f in folds if f.outer < done[0] and f.inner < done[1]
            }
        return found

    @cached_property
    def _prints(self) -> Mapping[str, str]:
        return {name: data.fingerprint() for name, data in self.texts.items()}

    def steps(self) -> list[Step]:
        keys = [
            PercyStep("train", corpus, str(name), *fold)
            # LSTMs take longest
            for name in sorted(self.classifiers, key=lambda n: n.base, reverse=True)
            for corpus, folds in self.folds.items()
            for fold in folds
        ]
        return [self._step(key) for key in (*keys, *self._judged(keys))]

    def _judged(self, trained: list[PercyStep]) -> list[PercyStep]:
        """One for each outer fold, whose model was chosen by inner ones; or for each inner one."""
        if self.recipe.report_on == "inner":
            return [key._replace(what="judge") for key in trained]
        return list(dict.fromkeys(key._replace(what="judge", inner=0) for key in trained))

    def _choice(self, key: PercyStep) -> list[PercyStep]:
        """The trainings of which one is judged."""
        folds = [f for f in self.folds[key.corpus] if f[0] == key.outer]
        if self.recipe.report_on == "inner":
            folds = [(key.outer, key.inner)]
        return [key._replace(what="train", inner=inner) for _, inner in folds]

    def _step(self, key: PercyStep) -> Step:
        train = key.what == "train"
        settings = {
            "data": self._prints[key.corpus],
            "folds": [self.sizes["folds"][k] for k in ("outer", "inner")],
            "fold": [key.outer, key.inner],
            "report_on": self.recipe.report_on,
            "seed": self.setup.seed,
            "model": self._spec(key),
            "training": self._training(key),
        }
        if not train:
            names = ("explained", "lipschitz", "explainers", "profiles")
            settings |= {name: self.sizes.get(name) for name in names}
            settings["choice"] = len(self._choice(key))
        return Step(
            key=key,
            name="-".join(map(str, key)),
            settings=settings,
            needs=() if train else tuple(self._choice(key)),
            title=f"{key.what} {key.classifier} on {CORPORA[key.corpus]}, fold {key.outer + 1}"
            + (f".{key.inner + 1}" if train else ""),
        )

    def _spec(self, key: PercyStep) -> str:
        name = ClassifierName.parse(key.classifier)
        vectors = self.recipe.specs[name.vectors]
        more = self.sizes["models"][name.base]
        return f"{BASE_MODELS[name.base]}(embeddings={vectors!r}, tuned={name.tuned}, {more})"

    def _training(self, key: PercyStep) -> dict[str, Any]:
        rules = {"distil": tuple(self.sizes["rules"]), "strength": self.recipe.strength}
        taught = rules if ClassifierName.parse(key.classifier).distilled else {}
        return {**self.sizes["training"], **taught}

    def work(self, step: Step, executor: Executor | None) -> StepResult:
        key = cast(PercyStep, step.key)
        return self._train(key) if key.what == "train" else self._judge(key)

    def _trained(self, key: PercyStep) -> TrainedModel:
        return trained_once(
            architectures.make(self._spec(key)),
            self.folds[key.corpus][key.outer, key.inner].parts,
            self.place(self._step(key).name) / "model",
            training=Training(**self._training(key), seed=self.setup.seed),
            watch=report_progress,
        )

    def _train(self, key: PercyStep) -> StepResult:
        trained = self._trained(key)
        history = trained.record["history"]
        best = max(epoch["validation_accuracy"] for epoch in history)
        texts = len(self.folds[key.corpus][key.outer, key.inner].parts.train)
        return {**trained.summary, "validation": best, "texts": texts}

    def _judge(self, key: PercyStep) -> StepResult:
        choice = self._choice(key)
        results = {one: self._train(one)["validation"] for one in choice}
        best = max(choice, key=lambda one: (results[one], -one.inner))
        test = self.folds[key.corpus][best.outer, best.inner].parts.test
        distilled = ClassifierName.parse(key.classifier).distilled
        rules = Teaching(tuple(self.sizes["rules"]), self.recipe.strength)
        judging = Judging(
            data=test.select(i for i, e in enumerate(test) if has_structure(e)),
            folder=self.place(self._step(key).name),
            sizes=self.sizes,
            seed=self.setup.seed,
            teaching=rules if distilled else None,
        )
        return {"chosen": best.inner, **judged(self._trained(best).model, judging)}
