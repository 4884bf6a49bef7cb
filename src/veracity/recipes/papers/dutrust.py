"""Are models robust, and explanations faithful and plausible? (Wang et al. 2021;
definitions 9.3)"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, cast

from ...auditing.audit import audit
from ...auditing.labels import fit_labels
from ...changes import attacked
from ...core.errors import DataError
from ...core.examples import Dataset, Example
from ...core.inputs import Text
from ...core.plugins import parse_spec, split_specs
from ...data.lexicon import own_lexicon
from ...data.loading import load_data
from ...data.splits import Splits, normalised, sampled, split
from ...engine.executors import Executor, report_progress
from ...engine.inference import probabilities
from ...experiments.augmentation import augmentation
from ...experiments.experiment import Step, StepResult
from ...experiments.training import trained_once
from ...explainers import explainers
from ...models.architectures import architectures
from ...models.loading import load_model
from ...results.findings import Findings
from ...results.robustness import is_twin, robustness
from ...results.run import Run
from ..recipe import Recipe, RecipeExperiment, Setup, check_among
from ._dutrust_findings import BY_SIZE, MODEL_NAMES, DutrustReader

SHARES = (0.8, 0.1, 0.1)
SAME = 80
"""Texts whose first letters and digits are alike, so many of them, are taken to be one text."""
COURSES = ("chinese", "sentences", "reviews")
BY_HAND = "cad_imdb"
"""Labelled pairs that people wrote: what pattern-made twins are compared with."""

Sizes = Mapping[str, Any]
DutrustStep = tuple[str, str, str]
"""What to do (train, try, augment), on which course or trial, with which model."""


@dataclass(frozen=True)
class DutrustRecipe(Recipe):
    """Twins and human rationales: robust models, faithful and plausible explanations?"""

    title: ClassVar[str] = "Trustworthiness: robust models, faithful and plausible explanations?"

    courses: tuple[str, ...] = COURSES
    """Which of the three to do: chinese, sentences (English), reviews (English, long)."""
    models: tuple[str, ...] = tuple(MODEL_NAMES)
    """Which models to train: lstm takes minutes, encoder and knowing most of the time."""
    methods: str = ""
    """Which methods to try, such as 'attention, lime(samples=300)'; by default the scale's."""

    def __post_init__(self) -> None:
        for spec in split_specs(self.methods):
            explainers.make(spec)  # what is misspelt is told before anything else
        check_among("models", self.models, MODEL_NAMES)
        check_among("courses", self.courses, COURSES)

    def experiment(self, setup: Setup) -> DutrustExperiment:
        methods = split_specs(self.methods) or setup.sizes["methods"]
        sizes, seed = {**setup.sizes, "methods": methods}, setup.seed
        given = None if setup.data is None else Path(setup.data)
        if given is not None and not given.is_dir():
            raise DataError(
                f"{given}: expected a folder that holds some of "
                f"{', '.join(sorted({f.split('/')[0] for f in _files(sizes)}))}. "
                "See docs/results/dutrust.md"
            )
        trials = dict(_trials(given, self.courses, sizes))
        of = sizes["trials"]
        parts = {
            name: _course(
                name, given, [trials[t] for t in trials if of[t]["course"] == name], sizes, seed
            )
            for name in self.courses
        }
        for trial, about in of.items():
            if about["course"] in parts and "file" not in about:
                trials[trial] = _patterned(trial, parts[about["course"]].test, sizes, seed)
        return DutrustExperiment(
            folder=setup.folder,
            setup=replace(setup, sizes=sizes),
            given=given,
            parts=parts,
            trials=trials,
            # what takes longest goes first
            models=[m for m in reversed(sizes["models"]) if m in self.models],
        )

    def findings(
        self, experiment: DutrustExperiment, results: Mapping[DutrustStep, StepResult]
    ) -> Findings:
        setup, trials = experiment.setup, experiment.trials
        sizes, of = setup.sizes, setup.sizes["trials"]
        reader = DutrustReader(self.declarations(), results, of, trials=list(trials))
        missing = [t for t in of if of[t]["course"] in experiment.parts and t not in trials]
        trained = len(reader.trained)
        sources = ", ".join(f"{n} ({s.train.name})" for n, s in experiment.parts.items())
        notes = ["texts", "tests", "models", "ranking", "left_out", "not_judged"]
        return Findings(
            recipe=self.plugin_name(),
            title=self.title,
            lead=f"{trained} model{'s' * (trained > 1)} trained on {sources}; tried on "
            f"{', '.join(trials)}; scale {setup.scale}.",
            config={
                "scale": setup.scale,
                "data": str(experiment.given or "packaged"),
                "seed": setup.seed,
                **{k: v for k, v in sizes.items() if k not in ("courses", "trials")},
            },
            tables=tuple(reader.tables()),
            claims=tuple(reader.claims()),
            figures=tuple(reader.figures()),
            notes=tuple(
                reader.declared.note(
                    name, words=sizes["words"], ratio=sizes["ratio"], missing=", ".join(missing)
                )
                for name in [*notes, *(["missing"] if missing else [])]
            ),
        )


# ---- data -----------------------------------------------------------------------------------


def _files(sizes: Sizes) -> Iterator[str]:
    yield from (t["file"] for t in sizes["trials"].values() if "file" in t)
    yield from (f for c in sizes["courses"].values() for f in c.get("files", ()))


def _trials(
    given: Path | None, courses: Sequence[str], sizes: Sizes
) -> Iterator[tuple[str, Dataset]]:
    """The files that are there, cut to the words that are read."""
    for name, trial in sizes["trials"].items():
        path = given / trial["file"] if given is not None and "file" in trial else None
        if trial["course"] in courses and path is not None and path.exists():
            # a twin that was left as it is tells nothing
            yield name, shortened(load_data(path, skip_bad=True), sizes["words"])


def _course(
    name: str, given: Path | None, tried: Sequence[Dataset], sizes: Sizes, seed: int
) -> Splits:
    """Three parts without the texts that models are tried on."""
    course = sizes["courses"][name]
    files = [given / f for f in course.get("files", ())] if given is not None else []
    if files and all(f.exists() for f in files):
        parts = [load_data(f) for f in files]
    else:
        whole = split(load_data(course["stand_in"]), shares=SHARES, seed=seed)
        parts = [whole.train, whole.validation, whole.test]
    known = {_key(e.input) for data in tried for e in data}

    def taken(part: Dataset, share: float) -> Dataset:
        others = part.select(i for i, e in enumerate(part) if _key(e.input) not in known)
        some = sampled(others, round(share * sizes["texts"][name]), seed=seed)
        return shortened(some, sizes["words"])

    return Splits(*map(taken, parts, SHARES))


def _key(text: Text) -> str:
    return "".join(c for c in text.text.casefold() if c.isalnum())[:SAME]


def _patterned(name: str, test: Dataset, sizes: Sizes, seed: int) -> Dataset:
    some = sampled(test, sizes["twins"], seed=seed)
    by = sizes["chinese_patterns" if "chinese" in name else "patterns"]
    return attacked(some, by, seed=seed)


def shortened(data: Dataset, words: int) -> Dataset:
    """Texts and what is marked in them, cut to their first words. What is left out: texts of which
    nothing that was marked is left, and pairs whose difference lies behind the cut."""
    cut = [short for e in data if (short := _cut(e, words)) is not None]
    kept = replace(data, examples=tuple(cut))
    same = {
        side.id
        for both in kept.pairs
        if len({normalised(side.input.text) for side in both}) == 1
        for side in both
    }
    return kept.select(i for i, e in enumerate(cut) if e.id not in same)


def _cut(example: Example, words: int) -> Example | None:
    text = example.input
    if text.n_features <= words:
        return example
    truths = {
        kind: tuple(m[:words] for m in masks if m[:words].any())
        for kind, masks in example.truths.items()
    }
    if not all(truths.values()):
        return None
    short = Text(text.text[: text.spans[words - 1][1]], text.spans[:words])
    return replace(example, input=short, truths=truths)


def _words(data: Dataset) -> int:
    return sum(e.input.n_features for e in data)


# ---- steps ----------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class DutrustExperiment(RecipeExperiment):
    """The texts, every model that is trained on them and every trial of it."""

    given: Path | None
    parts: Mapping[str, Splits]
    trials: Mapping[str, Dataset]
    models: Sequence[str]

    def _course_of(self, trial: str) -> str:
        course: str = self.sizes["trials"][trial]["course"]
        return course

    def steps(self) -> list[Step]:
        def takes(course: str, model: str) -> bool:
            return model != "knowing" or course in self.sizes["knowing_on"]

        train = [("train", c, m) for m in self.models for c in self.parts if takes(c, m)]
        # nothing waits for the comparison of trainings
        by_hand = BY_HAND in self.trials and "lstm" in self.models
        tries = [("augment", BY_HAND, "lstm")] if by_hand else []
        tries += [
            ("try", t, m)
            for m in self.models
            for t in sorted(self.trials, key=lambda t: -_words(self.trials[t]))
            if takes(self._course_of(t), m)
        ]
        return [
            Step(
                key=key,
                name="-".join(key),
                settings={"settings": self._settings(key), "seed": self.setup.seed},
                needs=() if what == "train" else (("train", self._course_of(name), model),),
                title=" ".join(key),
            )
            for key in [*train, *tries]
            for what, name, model in [key]
        ]

    def work(self, step: Step, executor: Executor | None) -> StepResult:
        what, name, model = cast(DutrustStep, step.key)
        if what == "train":
            return self._train(name, model)
        return self._augment(name, model) if what == "augment" else self._try(name, model)

    def _settings(self, key: DutrustStep) -> dict[str, Any]:
        what, name, model = key
        if what == "train":
            return self._training(name, model)
        trained = self._training(self._course_of(name), model)
        trial = {"trial": self.trials[name].fingerprint()}
        if what == "augment":
            patterns = {"texts": self.sizes["augmented"], "by": self.sizes["patterns"]}
            return {**trained, **patterns, **trial}
        return {
            "trained": trained,
            **trial,
            "explained": self._explained(name),
            **{k: self.sizes[k] for k in ("methods", "ratio")},
        }

    def _explained(self, trial: str) -> int:
        chosen: Mapping[str, int] = self.sizes["explained"]
        return chosen.get(trial, chosen["all"])

    @cached_property
    def _prints(self) -> Mapping[str, str]:
        return {name: parts.fingerprint() for name, parts in self.parts.items()}

    def _training(self, course: str, model: str) -> dict[str, Any]:
        """What a model depends on."""
        settings = {
            "model": self.sizes["models"][model],
            "training": self._changed(model),
            "data": self._prints[course],
        }
        if model == "knowing":
            settings["knowledge"] = self.sizes["knowledge"]
        return settings

    def _changed(self, model: str) -> Mapping[str, Any]:
        """How a model is trained; the encoder that knows more as the other, if nothing is said."""
        found: Mapping[str, Any] = self.sizes.get(
            f"{model}_training", self.sizes["encoder_training"]
        )
        return found

    def _folder(self, course: str, model: str) -> Path:
        return self.place(f"train-{course}-{model}")

    def _architecture(self, course: str, model: str) -> Any:
        from ...models.architectures.transformer import Transformer

        spec = self.sizes["models"][model]
        if spec != Transformer.plugin_name():
            return architectures.make(spec)
        encoder = self.sizes["courses"][course]["encoder"]
        if model == "knowing":
            encoder = str(self._knowing(course, encoder))
        return Transformer(encoder=encoder)

    def _knowing(self, course: str, encoder: str) -> Path:
        """The encoder after it has learnt sentiment from the training texts, without labels."""
        from ...models.pretraining import PRETRAINED, Pretraining, pretrain

        place = self._folder(course, "knowing") / "encoder"
        if not (place / PRETRAINED).exists():
            pretrain(
                encoder,
                self.parts[course].train,
                lexicon=own_lexicon(),
                out=place,
                pretraining=Pretraining(**self.sizes["knowledge"], seed=self.setup.seed),
                watch=report_progress,
            )
        return place

    def _train(self, course: str, model: str) -> StepResult:
        parts, architecture = self.parts[course], self._architecture(course, model)
        summary = trained_once(
            architecture,
            parts,
            self._folder(course, model) / "model",
            training=self._settings_of(architecture, model),
            watch=report_progress,
        ).summary
        return {
            **summary,
            "spec": self.sizes["models"][model],
            "right": round(summary["accuracy"] * len(parts.test)),
            "texts": len(parts.test),
            "train": len(parts.train),
        }

    def _settings_of(self, architecture: Any, model: str) -> Any:
        return replace(architecture.training, **self._changed(model), seed=self.setup.seed)

    def _augment(self, trial: str, model: str) -> StepResult:
        course, seed = self._course_of(trial), self.setup.seed
        architecture = self._architecture(course, model)
        found = augmentation(
            architecture,
            sampled(self.parts[course].train, self.sizes["augmented"], seed=seed),
            self.trials[trial],
            by=self.sizes["patterns"],
            out=self.place(f"augment-{trial}-{model}") / "comparison",
            seed=seed,
            training=self._settings_of(architecture, model),
        )
        return asdict(found)

    def _try(self, trial: str, name: str) -> StepResult:
        model = load_model(self._folder(self._course_of(trial), name) / "model")
        data = fit_labels(self.trials[trial], {name: model})
        answers = probabilities(model, [e.input for e in data])
        found: StepResult = {"texts": len(data), "pairs": len(data.pairs)}
        if data.labelled:
            right = answers.argmax(axis=1) == [e.label for e in data]
            found["accuracy"] = float(right.mean())
            if data.pairs:
                found["robustness"] = asdict(robustness(data, answers))
                found["right"] = {e.id: bool(r) for e, r in zip(data, right, strict=True)}
                found["robustness_pairs"] = [[o.id, t.id] for o, t in data.pairs]
                found["adv_types"] = {
                    e.id: e.facts["adv_type"] for e in data if e.facts.get("adv_type")
                }
        some = sampled(data, self._explained(trial), seed=self.setup.seed)
        ratio = self.sizes["ratio"]
        metrics = [f"erasure(ratio={ratio})", f"erasure(profile=paper, ratio={ratio})"]
        metrics += [f"consistency(ratio={ratio}, twins=all)"] if some.pairs else []
        metrics += [f"feature_overlap(ratio={ratio})"] if "rationale" in some.truth_kinds else []
        done = audit(
            {name: model},
            some,
            self.sizes["methods"],
            metrics,
            out=self.place(f"try-{trial}-{name}") / "audit",
            seed=self.setup.seed,
            extras=False,  # no claim speaks of what a search would reach
            watch=report_progress,
        )
        found["examples"] = [e.id for e in some]
        found["partners"] = [e.family for e in some]
        found["twins"] = [is_twin(e) for e in some]
        found["methods"] = _rows(done.run, [e.id for e in some])
        return found


KEPT = (
    "map",
    "new_p",
    BY_SIZE,
    "f1",
    "hits",
    "chosen",
    "known",
    "aopc_compactness",
    "aopc_sufficiency",
)


def _rows(run: Run, examples: Sequence[str]) -> dict[str, dict[str, list[float | None]]]:
    """By method and quantity, a value per example; of words ranked by size only New_P, under a name
    of its own."""
    (model,) = run.models
    found: dict[str, dict[str, list[float | None]]] = {}
    for metric in run.config.metrics:
        by_size = parse_spec(metric)[1].get("by") == "abs"
        for quantity, column in run.columns(metric, model).items():
            name = {"new_p": BY_SIZE}.get(quantity, "") if by_size else quantity
            for method in column.methods if name in KEPT else ():
                if values := column.of(method):
                    row = [values.get(example) for example in examples]
                    found.setdefault(method, {})[name] = row
    return found
