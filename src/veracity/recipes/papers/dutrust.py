"""Are models robust, and explanations faithful and plausible? (Wang et al. 2021; SPEC 9.3)"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

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
from ...engine.executors import report_progress
from ...engine.inference import probabilities
from ...experiments.augmentation import augmentation
from ...experiments.training import trained_once
from ...explainers import explainers
from ...models.architectures import architectures
from ...models.loading import load_model
from ...results.findings import Findings
from ...results.robustness import is_twin, robustness
from ...results.run import Run
from ..recipe import Order, Recipe, done_once
from . import _dutrust_findings as show
from ._dutrust_findings import Found

SHARES = (0.8, 0.1, 0.1)
SAME = 80
"""Texts whose first letters and digits are alike, so many of them, are taken to be one text."""


@dataclass(frozen=True)
class Course:
    """What models are trained on: files that somebody brings, or a corpus that stands in."""

    stand_in: str
    encoder: str
    files: tuple[str, ...] = ()
    """Training, validation and test part."""


COURSES = {
    "chinese": Course(
        "chinese_reviews",
        "chinese",
        tuple(f"chnsenticorp/{part}.tsv.gz" for part in ("train", "dev", "test")),
    ),
    "sentences": Course("rotten_tomatoes", "minilm"),
    "reviews": Course("imdb", "minilm"),
}


@dataclass(frozen=True)
class Evaluation:
    """Texts that models and methods are tried on; without a file, pattern-made twins."""

    course: str
    file: str = ""


TRIALS = {
    "dutrust_chinese": Evaluation("chinese", "dutrust/senti_ch.jsonl"),
    "dutrust_english": Evaluation("sentences", "dutrust/senti_en.jsonl"),
    "cad_imdb": Evaluation("reviews", "cad_imdb/test_paired.tsv.gz"),
    "ham_yelp": Evaluation("reviews", "ham_yelp/ham.jsonl.gz"),
    "eraser_movies": Evaluation("reviews", "eraser_movies/val.jsonl.gz"),
    "patterns_chinese": Evaluation("chinese"),
    "patterns_english": Evaluation("sentences"),
}
BY_HAND = "cad_imdb"
"""Labelled pairs that people wrote: what pattern-made twins are compared with."""

Job = tuple[str, str, str]
"""What to do (train, try, augment), on which course or trial, with which model."""


@dataclass(frozen=True)
class DutrustRecipe(Recipe):
    """Twins and human rationales: robust models, faithful and plausible explanations?"""

    title: ClassVar[str] = "Trustworthiness: robust models, faithful and plausible explanations?"

    courses: tuple[str, ...] = tuple(COURSES)
    """Which of the three to do: chinese, sentences (English), reviews (English, long)."""
    models: tuple[str, ...] = tuple(show.NAMES)
    """Which models to train: lstm takes minutes, encoder and knowing most of the time."""
    methods: str = ""
    """Which methods to try, such as 'attention, lime(samples=300)'; by default the scale's."""

    def __post_init__(self) -> None:
        for spec in split_specs(self.methods):
            explainers.make(spec)  # what is misspelt is told before anything else
        if not self.models or not set(self.models) <= set(show.NAMES):
            raise ValueError(f"expected models among {', '.join(show.NAMES)}; got {self.models}")
        if not self.courses or not set(self.courses) <= set(COURSES):
            raise ValueError(f"expected courses among {', '.join(COURSES)}; got {self.courses}")

    def found(self, order: Order) -> Findings:
        sizes, seed = dict(order.sizes), order.seed
        sizes["methods"] = split_specs(self.methods) or sizes["methods"]
        given = None if order.data is None else Path(order.data)
        if given is not None and not given.is_dir():
            raise DataError(
                f"{given}: expected a folder that holds some of "
                f"{', '.join(sorted({f.split('/')[0] for f in _files()}))}. "
                "See docs/results/dutrust.md"
            )
        trials = dict(_trials(given, self.courses, sizes))
        parts = {
            name: _course(name, given, [trials[t] for t in _trials_of(name, trials)], sizes, seed)
            for name in self.courses
        }
        for name in self.courses:
            for trial in TRIALS:
                if TRIALS[trial] == Evaluation(name):
                    trials[trial] = _patterned(trial, parts[name].test, sizes, seed)
        # what takes longest goes first
        models = [m for m in reversed(sizes["models"]) if m in self.models]
        train = [("train", c, m) for m in models for c in self.courses if _takes(sizes, c, m)]
        # nothing waits for the comparison of trainings
        tries = [("augment", BY_HAND, "lstm")] if BY_HAND in trials and "lstm" in models else []
        tries += [
            ("try", t, m)
            for m in models
            for t in sorted(trials, key=lambda t: -_words(trials[t]))
            if _takes(sizes, TRIALS[t].course, m)
        ]
        work = _Work(parts, trials, order.folder, sizes, seed)
        found = order.done(work, train, tries, said=" ".join)
        return _findings(self, order.scale, given, sizes, seed, parts, trials, found)


# ---- data -----------------------------------------------------------------------------------


def _files() -> Iterator[str]:
    yield from (t.file for t in TRIALS.values() if t.file)
    yield from (f for c in COURSES.values() for f in c.files)


def _trials(
    given: Path | None, courses: Sequence[str], sizes: Mapping[str, Any]
) -> Iterator[tuple[str, Dataset]]:
    """The files that are there, cut to the words that are read."""
    for name, trial in TRIALS.items():
        path = given / trial.file if given is not None and trial.file else None
        if trial.course in courses and path is not None and path.exists():
            # a twin that was left as it is tells nothing
            yield name, shortened(load_data(path, skip_bad=True), sizes["words"])


def _trials_of(course: str, trials: Mapping[str, Dataset]) -> list[str]:
    return [name for name in trials if TRIALS[name].course == course]


def _course(
    name: str,
    given: Path | None,
    tried: Sequence[Dataset],
    sizes: Mapping[str, Any],
    seed: int,
) -> Splits:
    """Three parts without the texts that models are tried on."""
    course = COURSES[name]
    files = [given / f for f in course.files] if given is not None else []
    if files and all(f.exists() for f in files):
        parts = [load_data(f) for f in files]
    else:
        whole = split(load_data(course.stand_in), shares=SHARES, seed=seed)
        parts = [whole.train, whole.validation, whole.test]
    known = {_key(e.input) for data in tried for e in data}
    limits = (round(share * sizes["texts"][name]) for share in SHARES)
    return Splits(
        *(
            shortened(
                sampled(
                    part.select(i for i, e in enumerate(part) if _key(e.input) not in known),
                    limit,
                    seed=seed,
                ),
                sizes["words"],
            )
            for part, limit in zip(parts, limits, strict=True)
        )
    )


def _key(text: Text) -> str:
    return "".join(c for c in text.text.casefold() if c.isalnum())[:SAME]


def _patterned(name: str, test: Dataset, sizes: Mapping[str, Any], seed: int) -> Dataset:
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


def _takes(sizes: Mapping[str, Any], course: str, model: str) -> bool:
    return model != "knowing" or course in sizes["knowing_on"]


def _words(data: Dataset) -> int:
    return sum(e.input.n_features for e in data)


# ---- steps ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Work:
    """One job after the other; travels to a worker once."""

    parts: Mapping[str, Splits]
    trials: Mapping[str, Dataset]
    folder: Path
    sizes: Mapping[str, Any]
    seed: int

    def __call__(self, job: Job) -> tuple[Job, Found]:
        what, name, model = job
        if what == "train":
            return job, self._once(job, self._training(name, model), lambda: self._train(job))
        if what == "augment":
            asked = {**self._training(TRIALS[name].course, model), "texts": self.sizes["augmented"]}
            asked |= {"by": self.sizes["patterns"], "trial": self.trials[name].fingerprint()}
            return job, self._once(job, asked, lambda: self._augment(job))
        asked = {
            "trained": self._training(TRIALS[name].course, model),
            "trial": self.trials[name].fingerprint(),
            "explained": self._explained(name),
            **{k: self.sizes[k] for k in ("methods", "ratio")},
        }
        return job, self._once(job, asked, lambda: self._try(job))

    def _explained(self, trial: str) -> int:
        chosen: Mapping[str, int] = self.sizes["explained"]
        return chosen.get(trial, chosen["all"])

    @cached_property
    def _prints(self) -> Mapping[str, str]:
        return {
            name: "".join(p.fingerprint()[:16] for p in (s.train, s.validation, s.test))
            for name, s in self.parts.items()
        }

    def _once(
        self, job: Job, settings: Mapping[str, Any], work: Callable[[], Mapping[str, Any]]
    ) -> Found:
        return done_once(self._place(job), {"settings": settings, "seed": self.seed}, work)

    def _place(self, job: Job) -> Path:
        return self.folder / "steps" / "-".join(job)

    def _training(self, course: str, model: str) -> dict[str, Any]:
        """What a model depends on: what is done stays done when other settings change."""
        asked = {
            "model": self.sizes["models"][model],
            "training": self._lessons(model),
            "data": self._prints[course],
        }
        return {**asked, "knowledge": self.sizes["knowledge"]} if model == "knowing" else asked

    def _architecture(self, job: Job) -> Any:
        from ...models.architectures.transformer import Transformer

        _, course, model = job
        spec = self.sizes["models"][model]
        if spec != Transformer.plugin_name():
            return architectures.make(spec)
        encoder = COURSES[course].encoder
        if model == "knowing":
            encoder = str(self._knowing(job, encoder))
        return Transformer(encoder=encoder)

    def _knowing(self, job: Job, encoder: str) -> Path:
        """The encoder after it has learnt sentiment from the training texts, without labels."""
        from ...models.pretraining import PRETRAINED, Pretraining, pretrain

        place = self._place(job) / "encoder"
        if not (place / PRETRAINED).exists():
            train = self.parts[job[1]].train
            settings = Pretraining(**self.sizes["knowledge"], seed=self.seed)
            lexicon = own_lexicon()
            pretrain(
                encoder,
                train,
                lexicon=lexicon,
                out=place,
                pretraining=settings,
                watch=report_progress,
            )
        return place

    def _settings(self, architecture: Any, model: str) -> Any:
        return replace(architecture.training, **self._lessons(model), seed=self.seed)

    def _lessons(self, model: str) -> Mapping[str, Any]:
        """How a model is trained; the encoder that knows more as the other, if nothing is said."""
        found: Mapping[str, Any] = self.sizes.get(
            f"{model}_training", self.sizes["encoder_training"]
        )
        return found

    def _train(self, job: Job) -> Found:
        _, course, model = job
        parts = self.parts[course]
        architecture = self._architecture(job)
        student = trained_once(
            architecture,
            parts,
            self._place(job) / "model",
            data={"name": parts.train.name, "fingerprint": parts.train.fingerprint()},
            training=self._settings(architecture, model),
            watch=report_progress,
        )
        accuracy = student.record["test"]["accuracy"]
        return {
            "spec": self.sizes["models"][model],
            "accuracy": accuracy,
            "right": round(accuracy * len(parts.test)),
            "texts": len(parts.test),
            "train": len(parts.train),
            "epochs": len(student.record["history"]),
            "seconds": sum(e["seconds"] for e in student.record["history"]),
        }

    def _augment(self, job: Job) -> Found:
        _, trial, model = job
        course = TRIALS[trial].course
        parts = self.parts[course]
        train = sampled(parts.train, self.sizes["augmented"], seed=self.seed)
        architecture = self._architecture(("train", course, model))
        found = augmentation(
            architecture,
            train,
            self.trials[trial],
            by=self.sizes["patterns"],
            out=self._place(job) / "comparison",
            seed=self.seed,
            training=self._settings(architecture, model),
            watch=lambda _, progress: report_progress(progress),
        )
        return found.told()

    def _try(self, job: Job) -> Found:
        _, trial, name = job
        place = self._place(("train", TRIALS[trial].course, name)) / "model"
        model = load_model(place)
        data = fit_labels(self.trials[trial], {name: model})
        answers = probabilities(model, [e.input for e in data])
        found: Found = {"texts": len(data), "pairs": len(data.pairs)}
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
        some = sampled(data, self._explained(trial), seed=self.seed)
        ratio = self.sizes["ratio"]
        metrics = [f"erasure(ratio={ratio})", f"erasure(profile=paper, ratio={ratio})"]
        metrics += [f"consistency(ratio={ratio}, twins=all)"] if some.pairs else []
        metrics += [f"feature_overlap(ratio={ratio})"] if "rationale" in some.truth_kinds else []
        done = audit(
            {name: model},
            some,
            self.sizes["methods"],
            metrics,
            out=self._place(job) / "audit",
            seed=self.seed,
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
    show.BY_SIZE,
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
            name = {"new_p": show.BY_SIZE}.get(quantity, "") if by_size else quantity
            for method in column.methods if name in KEPT else ():
                if values := column.of(method):
                    row = [values.get(example) for example in examples]
                    found.setdefault(method, {})[name] = row
    return found


# ---- findings -------------------------------------------------------------------------------


def _findings(
    recipe: DutrustRecipe,
    scale: str,
    given: Path | None,
    sizes: Mapping[str, Any],
    seed: int,
    parts: Mapping[str, Splits],
    trials: Mapping[str, Dataset],
    found: Mapping[Job, Found],
) -> Findings:
    published = recipe.settings()["published"]
    trained = {(c, m): f for (what, c, m), f in found.items() if what == "train"}
    # in the order of the paper, whatever was done first
    tried = {
        (t, m): found["try", t, m] for t in trials for m in show.NAMES if ("try", t, m) in found
    }
    augmented = next((f for (what, _, _), f in found.items() if what == "augment"), None)
    # originals that patterns change are of the own test set
    own = {(t, m): trained[TRIALS[t].course, m] for t, m in tried if TRIALS[t].file}
    missing = [name for name, t in TRIALS.items() if t.course in parts and name not in trials]
    lead = (
        f"{len(trained)} model{'s' * (len(trained) > 1)} trained on "
        f"{', '.join(f'{name} ({s.train.name})' for name, s in parts.items())}; "
        f"tried on {', '.join(trials)}; scale {scale}."
    )
    tables = [
        show.accuracy_table(trained, tried, {t: TRIALS[t].course for t in trials}, published),
        *show.type_tables(tried, published),
        *show.method_tables(tried, published),
    ]
    if augmented:
        tables.append(show.augmentation_table(augmented, published["augmentation"]))
    return Findings(
        recipe.plugin_name(),
        recipe.title,
        lead,
        {"scale": scale, "data": str(given or "packaged"), "seed": seed, **sizes},
        tuple(tables),
        tuple(show.claims(tried, augmented, own)),
        tuple(show.method_figures(tried)),
        notes=(
            f"Texts are cut to {sizes['words']} words. Top words are {sizes['ratio']:.0%} of a "
            "text. Intervals are over texts, pairs drawn whole; models are trained once, so what "
            "another training would give is not in them.",
            "Differences between explanations are tested by paired sign flips over texts, texts of "
            "one pair together, and corrected (Holm) within each look; a look is confirmed if all "
            "its differences are surely above zero, and not confirmed if one is surely below.",
            "The paper's models read Chinese texts written for it, of which only 50 pairs without "
            "labels are public; its figures stand beside ours for orientation. Our encoder is far "
            "smaller than ERNIE; the one that learnt sentiment first stands where SKEP does.",
            "New_P by size ranks words by the absolute value of their scores, by sign those for "
            "the answer first. That the paper ranked by size is inferred from its figures alone: "
            "the group's later scripts rank by sign (SPEC D.3). MAP does not tell the two apart.",
            "Training texts that begin like a text that is tried were left out, and so were pairs "
            "whose difference lies behind the cut.",
            "Not judged: what the paper says of larger encoders, of texts with several sentiments, "
            "obscure ones and common sense (no labelled data at hand name them), and that "
            "plausibility grows with accuracy, for which three models are too few.",
            *(
                [f"Not tried, since the files were not given: {', '.join(missing)}."]
                * bool(missing)
            ),
        ),
    )
