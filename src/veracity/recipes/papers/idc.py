"""Do methods mark the words that decide, by truths that nobody wrote down? (Khaleel et al. 2021;
SPEC 9.4)"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar, cast

import numpy as np

from ...auditing.audit import audit
from ...auditing.labels import fit_labels_to
from ...core.errors import DataError
from ...core.examples import Dataset, Example
from ...core.inputs import BoolArray
from ...core.plugins import parse_spec
from ...core.progress import Progress, Watcher
from ...core.truths import WordSets
from ...data.loading import load_data
from ...data.readers import Columns
from ...data.splits import Splits, sampled, split
from ...data.words import read_text
from ...engine.executors import Executor, report_progress
from ...engine.inference import probabilities
from ...experiments.training import trained_once
from ...explainers import explainers
from ...metrics.relative_confidence import RelativeConfidence
from ...metrics.truth_agreement import TruthAgreement
from ...models.architectures import architectures
from ...models.loading import load_model
from ...results.findings import Findings
from ...truths import learnt_truth, truths
from ...truths.gram_activation import GramActivation
from ..recipe import Order, Recipe, done_once
from . import _idc_findings as show
from ._idc_judging import Agreed, Found, confidences, method_agreement, people_agreement

STAND_IN = "rotten_tomatoes"
"""What is read where no reviews are given: most of the very sentences that the paper used."""
TRUTHS = ("wga", "milp", "hybrid")
REVIEWS, PEOPLE, STARS = "reviews", "people", "stars"
ANY = "any"
"""WGA whose words lead one other label, not all: as the paper's listing has it (SPEC B8)."""
STRONGEST = 20

Job = tuple[str, str, int]
"""Which reviews, what to learn from them (a model or a truth), and in which training: what hangs on
a model is learnt anew with each."""


@dataclass(frozen=True)
class Idc(Recipe):
    """Words that decide by three pseudo ground truths: who marks them, and would people?"""

    title: ClassVar[str] = "Pseudo ground truth: do methods mark the words that decide?"

    people: str = ""
    """A file of reviews in which several people marked words, such as human attention maps; each
    set of words counts as one person's. Truths are learnt from 60 % of these reviews and compared
    with people on another 20 %, unless there is something else to learn from."""
    learn_from: str = ""
    """Other reviews, as a file or a corpus, that the truths for people are learnt from."""
    stars: str = ""
    """The column of `learn_from` with finer labels, such as the stars of a review: truths for
    people are learnt with these as labels too, and then joined, as in the paper."""
    validation: bool = False
    """Whether truths are learnt from validation texts too; the paper's counts hint at it (B22)."""
    truths: tuple[str, ...] = TRUTHS
    """Which truths to learn: wga takes minutes, each of the others as long as its programme may."""
    seeds: int = 0
    """How often models are trained anew, with what hangs on them; 0 takes what the scale says."""
    cnn: str = ""
    """Train another convolution than the scale says, such as 'idc_cnn(norm=1.1)'."""
    wga: str = ""
    """Learn a truth otherwise than the scale says, such as 'gram_activation(scale=global_max)'."""
    milp: str = ""
    """As wga, such as 'integer_program(words=3000)'."""
    hybrid: str = ""
    """As wga, such as 'hybrid(words=3000)'."""

    def __post_init__(self) -> None:
        if self.stars and not (self.people and self.learn_from):
            raise ValueError(
                "expected stars to be a column of learn_from, and people to compare with"
            )
        if "wga" not in self.truths or not set(self.truths) <= set(TRUTHS):
            raise ValueError(
                f"expected wga, and of {', '.join(TRUTHS[1:])} what you like; got {self.truths}"
            )
        if self.seeds < 0:
            raise ValueError(f"expected seeds to be 0 or more, got {self.seeds}")
        if self.cnn:
            architectures.make(self.cnn)
        for what in TRUTHS:
            if getattr(self, what):
                truths.make(getattr(self, what))  # what is misspelt is told before anything else

    def found(self, order: Order) -> Findings:
        seed = order.seed
        own = {what: getattr(self, what) for what in TRUTHS if getattr(self, what)}
        sizes = {
            **order.sizes,
            **{of: self._sources({**order.sizes[of], **own}) for of in ("truths", "people_truths")},
            "seeds": self.seeds or order.sizes["seeds"],
            "cnn": self.cnn or order.sizes["cnn"],
        }
        source = STAND_IN if order.data is None else str(order.data)
        texts = sampled(load_data(source), sizes.get("limit"), seed=seed)
        sides = {REVIEWS: split(texts, shares=sizes["shares"], seed=seed)}
        marked: Dataset | None = None
        belongs: tuple[int, ...] = ()
        if self.people:
            sides[PEOPLE], marked = self._marked(sizes, seed)
        if self.stars:
            sides[STARS], belongs = self._starred(sides[PEOPLE], seed)
        work = _Work(sides, belongs, order.folder, sizes, seed, self.validation)
        # what takes longest goes first
        trainings = range(sizes["seeds"])
        first = [
            *((REVIEWS, "han", t) for t in trainings),
            *((s, "milp", 0) for s in sides if "milp" in work.sources(s)),
            *((s, "cnn", t) for s in sides for t in (trainings if s == REVIEWS else [0])),
        ]
        second = [
            (s, what, t)
            for what in ("hybrid", "wga", ANY)
            for s in sides
            for t in (trainings if s == REVIEWS else [0])
            if what in work.sources(s)
        ]
        more = len(trainings) + len(sides) - 1
        found = order.done(work, first, second, said=_said, more=more)
        total = len(found) + more
        agreed = []
        for t in trainings:
            agreed.append(work.methods_judged(t, order.executor, order.watch))
            order.watch(Progress(len(found) + len(agreed), total, _said((REVIEWS, "methods", t))))
        people = {}
        for side in sides:
            if marked is not None and side != REVIEWS:
                people[side] = work.people_judged(side, marked)
                order.watch(Progress(len(found) + len(agreed) + len(people), total, side))
        return _findings(self, order.scale, source, sizes, seed, sides, found, agreed, people)

    def _sources(self, known: Mapping[str, str]) -> dict[str, str]:
        return {what: spec for what, spec in known.items() if what in self.truths}

    def _marked(self, sizes: Mapping[str, Any], seed: int) -> tuple[Splits, Dataset]:
        """What truths for people are learnt from, and the reviews, marked by people, that they are
        compared on."""
        data, limit = load_data(self.people), sizes.get("limit")
        several = [i for i, e in enumerate(data) if len(e.truths.get("rationale", ())) > 1]
        if not several:
            raise DataError(
                f"{self.people}: expected reviews in which two people or more marked words, each a "
                "rationale set of its own; got none. Give another file as people=…, or none"
            )
        marked = sampled(data.select(several), limit, seed=seed)
        if not self.learn_from:
            own = split(marked, shares=sizes["shares"], seed=seed)
            return Splits(*map(as_words, (own.train, own.validation, own.test))), own.test
        others = sampled(load_data(self.learn_from), limit, seed=seed)
        marked = fit_labels_to(marked, self.learn_from, others.labels)
        parts = split(others, shares=(0.8, 0.2, 0.0), seed=seed)
        return replace(parts, test=as_words(marked)), marked

    def _starred(self, parts: Splits, seed: int) -> tuple[Splits, tuple[int, ...]]:
        """The reviews that truths for people are learnt from under their finer labels, and the
        label that each of these belongs to; models are tested on half of the validation part."""
        fine = load_data(self.learn_from, columns=Columns(label=self.stars))
        stars = {e.id: e.label for e in fine}
        kept = (*parts.train, *parts.validation)
        belongs = {stars[e.id]: e.label for e in kept}
        mixed = len(belongs) < len(fine.labels) or any(
            belongs[stars[e.id]] != e.label for e in kept
        )
        if mixed or len(fine.labels) <= len(parts.train.labels):
            raise DataError(
                f"{self.learn_from}: expected more {self.stars} ({', '.join(fine.labels)}) than "
                f"labels ({', '.join(parts.train.labels)}), each to go with one label, and some "
                "reviews of each. Give a file, and name another column of it as stars=…, or none"
            )

        def starred(part: Dataset) -> Dataset:
            examples = tuple(replace(e, label=stars[e.id]) for e in part)
            return replace(part, labels=fine.labels, examples=examples)

        halves = split(starred(parts.validation), shares=(0.5, 0.5, 0.0), seed=seed)
        own = Splits(starred(parts.train), halves.train, halves.validation)
        return own, tuple(belongs[i] for i in range(len(fine.labels)))


def _said(job: Job) -> str:
    side, what, training = job
    return f"{side} {what}" + (f", training {training + 1}" if training else "")


def as_words(data: Dataset) -> Dataset:
    """Texts with the words that our rules find: people's tokens may carry signs, as in `did.`."""
    return replace(
        data,
        examples=tuple(replace(e, input=read_text(e.input.text), truths={}) for e in data),
    )


# ---- steps ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Work:
    """One model or truth after the other; travels to a worker once."""

    sides: Mapping[str, Splits]
    belongs: tuple[int, ...]
    """The label that each of the stars belongs to, if truths are learnt from stars."""
    folder: Path
    sizes: Mapping[str, Any]
    seed: int
    validation: bool
    prints: Mapping[str, str] = field(init=False)

    def __post_init__(self) -> None:
        prints = {
            side: "".join(
                part.fingerprint()[:16] for part in (parts.train, parts.validation, parts.test)
            )
            for side, parts in self.sides.items()
        }
        object.__setattr__(self, "prints", prints)

    def __call__(self, job: Job) -> tuple[Job, Found]:
        _, what, _ = job
        make = self._trained if what in ("cnn", "han") else self._learnt
        return job, self._once(job, self._settings(job), lambda: make(job))

    def _once(
        self, job: Job, settings: Mapping[str, Any], work: Callable[[], Mapping[str, Any]]
    ) -> Found:
        asked = {"settings": settings, "seed": self._seed(job), "data": self.prints[job[0]]}
        return done_once(self._place(job), asked, work)

    def _seed(self, job: Job) -> int:
        return self.seed + job[2]

    def _place(self, job: Job) -> Path:
        side, what, training = job
        return self.folder / "steps" / "-".join([side, what, *([str(training)] * bool(training))])

    def _settings(self, job: Job) -> dict[str, Any]:
        """What a step depends on: what is done stays done when other settings change."""
        side, what, training = job
        if what in ("cnn", "han"):
            return {"model": self.sizes[what], "training": self.sizes["training"]}
        own = {"source": self.sources(side)[what], "validation": self.validation}
        return own if what == "milp" else {**own, **self._settings((side, "cnn", training))}

    def sources(self, side: str) -> Mapping[str, str]:
        """The truths that are learnt on a side, by name."""
        found: Mapping[str, str] = self.sizes["truths" if side == REVIEWS else "people_truths"]
        wga = truths.make(found["wga"])
        if side != STARS or not isinstance(wga, GramActivation):
            return found
        return {**found, ANY: replace(wga, margin="any").spec}

    # ---- models and truths ------------------------------------------------------------------

    def _trained(self, job: Job) -> Found:
        side, what, _ = job
        parts = self.sides[side]
        architecture = architectures.make(self.sizes[what])
        student = trained_once(
            architecture,
            parts,
            self._place(job) / "model",
            data={"name": parts.train.name, "fingerprint": parts.train.fingerprint()},
            training=replace(architecture.training, **self.sizes["training"], seed=self._seed(job)),
            watch=report_progress,
        )
        counts = Counter(e.label for e in parts.test)
        return {
            "model": architecture.spec,
            "accuracy": student.record["test"]["accuracy"],
            "majority": max(counts.values()) / len(parts.test),
            "texts": len(parts.test),
            "epochs": len(student.record["history"]),
            "seconds": sum(e["seconds"] for e in student.record["history"]),
            "reads": getattr(student.model, "most_words", None),
        }

    def _learnt(self, job: Job) -> Found:
        side, what, training = job
        parts = self.sides[side]
        train = parts.train
        if self.validation:
            train = replace(train, examples=(*train.examples, *parts.validation.examples))
        model = (
            None if what == "milp" else load_model(self._place((side, "cnn", training)) / "model")
        )
        sets = learnt_truth(self.sources(side)[what], model, train, self._seed(job))
        sets.save(self._place(job) / "words.json")
        facts = sets.facts
        return {
            **{k: facts.get(k) for k in ("source", "seconds", "status", "gap", "vocabulary")},
            **{k: facts[k] for k in ("documents", "dropped", "sizes", "covered")},
            "violated": len(facts["violated"]) if "violated" in facts else None,
            "covered_test": sets.shares(parts.test),
            "strongest": {
                name: strongest(sets, train, label) for label, name in enumerate(train.labels)
            },
        }

    def _sets(self, side: str, training: int = 0) -> dict[str, WordSets]:
        found = {
            what: WordSets.load(
                self._place((side, what, 0 if what == "milp" else training)) / "words.json"
            )
            for what in self.sources(side)
        }
        if side != STARS:
            return found
        labels = self.sides[PEOPLE].train.labels
        return {what: sets.joined(labels, self.belongs) for what, sets in found.items()}

    # ---- what they say ----------------------------------------------------------------------

    def methods_judged(self, training: int, executor: Executor, watch: Watcher) -> Found:
        """Every method against every truth; in the first training every truth against the model
        too, and in the others the paper's methods alone."""
        names = ("binaries", "paper_methods", "draws", "test_draws")
        learnt = (*self.sources(REVIEWS), "han")
        settings: dict[str, Any] = {
            **{name: self.sizes[name] for name in names},
            "methods": self._compared(training),
            "explained": self.sizes.get("explained"),
            **{what: self._settings((REVIEWS, what, training)) for what in learnt},
        }
        job = (REVIEWS, "methods", training)
        return self._once(job, settings, lambda: self._methods(job, executor, watch))

    def _compared(self, training: int) -> list[str]:
        every: list[str] = self.sizes["methods"]
        return [m for m in every if not training or parse_spec(m)[0] in show.METHODS]

    def _methods(self, job: Job, executor: Executor, watch: Watcher) -> Found:
        place, training = self._place(job), job[2]
        sources = self.sources(REVIEWS)
        test = sampled(self.sides[REVIEWS].test, self.sizes.get("explained"), seed=self.seed)
        for what, sets in self._sets(REVIEWS, training).items():
            test = sets.marked(test, what)
        agreement = {
            (truth, binary): TruthAgreement(truth=truth, binary=binary)
            for truth in sources
            for binary in self.sizes["binaries"]
        }
        remaining = {
            (truth, remove): RelativeConfidence(truth=truth, remove=remove, seed=self.seed)
            for truth in sources
            for remove in ("marked", "random")
        }
        agreed: list[Agreed] = []
        of_source: Found = {}
        methods = self._compared(training)
        known = {parse_spec(m)[0] for m in methods}
        instead = {m: spec for m, spec in self.sizes["paper_methods"].items() if m in known}
        for model, asked, other in (("cnn", methods, instead), ("han", ["attention"], {})):
            network = load_model(self._place((REVIEWS, model, training)) / "model")
            answers = probabilities(network, [e.input for e in test]).argmax(axis=1)
            right = [i for i, e in enumerate(test) if e.label == answers[i]]
            if not right:
                raise DataError(f"{model} gets no test text right: nothing can be judged by it")
            metrics: list[Any] = list(agreement.values())
            of_model = model == "cnn" and not training
            found = audit(
                {model: network},
                test.select(right),
                [*asked, *other.values()],
                [*metrics, *remaining.values()] if of_model else metrics,
                out=place / model,
                seed=self.seed,
                executor=executor,
                extras=False,
                watch=_within(watch, f"{_said(job)}, {model}"),
            )
            agreed.append(Agreed.read(found.run, _specs(asked), agreement, instead=_specs(other)))
            if of_model:
                of_source = confidences(found.run, remaining, self.seed)
        judged = method_agreement(
            *agreed,
            draws=self.sizes["draws"],
            test_draws=self.sizes["test_draws"],
            seed=self.seed,
        )
        return {**judged, "confidence": of_source}

    def people_judged(self, side: str, marked: Dataset) -> Found:
        """Every truth of a side against the people who marked these reviews."""
        names = ("draws", "test_draws")
        settings = {
            **{name: self.sizes[name] for name in names},
            **{what: self._settings((side, what, 0)) for what in self.sources(side)},
            "marked": marked.fingerprint(),
        }

        def work() -> Found:
            return people_agreement(
                [cast(Sequence[Any], e.truths["rationale"]) for e in marked],
                {what: [held(s, e) for e in marked] for what, s in self._sets(side).items()},
                draws=self.sizes["draws"],
                test_draws=self.sizes["test_draws"],
                seed=self.seed,
            )

        return self._once((side, "agreement", 0), settings, work)


def _specs(methods: Mapping[str, str] | Sequence[str]) -> dict[str, str]:
    """Methods by name, as a run calls them."""
    specs = methods.values() if isinstance(methods, Mapping) else methods
    return {parse_spec(spec)[0]: explainers.make(spec).spec for spec in specs}


def _within(watch: Watcher, doing: str) -> Watcher:
    return lambda progress: watch(replace(progress, step=doing))


def strongest(sets: WordSets, train: Dataset, label: int) -> list[str]:
    """The words of a label's set that decide most: by their scores where the source gives any,
    then by how many texts of the label hold them."""
    read = (set(map(str.lower, e.input.words)) for e in train if e.label == label)
    texts = Counter(word for words in read for word in words & sets.words[label])
    scores = {w: sets.scores[w][label] if w in sets.scores else 0.0 for w in sets.words[label]}
    return sorted(scores, key=lambda w: (-scores[w], -texts[w], w))[:STRONGEST]


def held(sets: WordSets, example: Example) -> BoolArray:
    """Which of a text's own tokens hold a word of the set of its label. → (tokens,)"""
    read = read_text(example.input.text)
    chosen = [
        span
        for span, inside in zip(read.spans, sets.mask(read.words, example.label), strict=True)
        if inside
    ]
    return np.array(
        [any(a < end and start < b for a, b in chosen) for start, end in example.input.spans],
        dtype=np.bool_,
    )


# ---- findings -------------------------------------------------------------------------------


def _findings(
    recipe: Idc,
    scale: str,
    source: str,
    sizes: Mapping[str, Any],
    seed: int,
    sides: Mapping[str, Splits],
    found: Mapping[Job, Found],
    agreed: Sequence[Found],
    people: Mapping[str, Found],
) -> Findings:
    published = recipe.settings()["published"]
    parts = sides[REVIEWS]
    models = {job: f for job, f in found.items() if job[1] in ("cnn", "han")}
    accuracy = {
        what: [f["accuracy"] for (side, w, _), f in models.items() if (side, w) == (REVIEWS, what)]
        for what in ("cnn", "han")
    }
    lead = (
        f"{len(parts.train):,} reviews of {Path(source).name} to learn from, "
        f"{len(parts.validation):,} to validate on and {len(parts.test):,} to test on, scale "
        f"{scale}; over {len(agreed)} trainings the CNN gets {np.mean(accuracy['cnn']):.1%} of "
        f"them right, the HAN {np.mean(accuracy['han']):.1%}."
    )
    learnt = {
        (side, what, t): found[side, what, t]
        for side in sides
        for what in (*TRUTHS, ANY)
        for t in range(len(agreed))
        if (side, what, t) in found
    }
    kept = [t for t in TRUTHS if t in recipe.truths]
    tables = [
        *(show.method_table(truth, agreed, published[truth]) for truth in kept),
        show.fit_table(kept, agreed, published),
        show.model_table(models, seed),
        show.truth_table(learnt, published["documents"]),
        show.binary_table(agreed[0], sizes["binaries"]),
        show.confidence_table(agreed[0]["confidence"], published["confidence"]),
        *(show.people_table(side, f, published["people"]) for side, f in people.items()),
        show.word_table(learnt),
    ]
    return Findings(
        recipe.plugin_name(),
        recipe.title,
        lead,
        {
            "scale": scale,
            "reviews": source,
            "people": recipe.people or "none",
            "people's truths from": recipe.learn_from or "their own reviews",
            "stars": recipe.stars or "none",
            "truths learnt from": "training and validation texts"
            if recipe.validation
            else "training texts",
            "seed": seed,
            **sizes,
        },
        tuple(tables),
        (
            *show.method_claims(agreed),
            *show.confidence_claims(agreed[0]["confidence"]),
            *(claim for side, f in people.items() for claim in show.people_claims(side, f)),
        ),
        (
            show.beside_figure(kept, agreed, published),
            *(show.people_figure(side, f) for side, f in people.items()),
        ),
        (),
        show.notes(sizes, recipe.validation, recipe.people, recipe.learn_from, recipe.stars),
    )
