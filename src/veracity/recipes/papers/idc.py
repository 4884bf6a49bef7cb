"""Do methods mark the words that decide, by truths that nobody wrote down? (Khaleel et al. 2021;
SPEC 9.4)"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar, cast

import numpy as np

from ...auditing import audit
from ...auditing.labels import fit_labels_to
from ...auditing.training import trained_once
from ...core.classifiers import Cutting
from ...core.errors import DataError
from ...core.examples import Dataset, Example
from ...core.inputs import BoolArray
from ...core.plugins import parse_spec
from ...core.truths import WordSets
from ...data import Columns, Splits, load_data, read_text, sampled, split
from ...engine.asking import probabilities
from ...engine.executors import tell
from ...metrics.relative_confidence import RelativeConfidence
from ...metrics.truth_agreement import TruthAgreement
from ...models import load_model
from ...models.architectures import architectures
from ...results.findings import Findings
from ...truths import learnt_truth, truths
from ...truths.gram_activation import GramActivation
from ..recipe import Order, Recipe, Step, Watcher, Within, done_once
from . import _idc_findings as show
from ._idc_judging import Agreed, Found, confidences, method_agreement, people_agreement

STAND_IN = "rotten_tomatoes"
"""What is read where no reviews are given: most of the very sentences that the paper used."""
TRUTHS = ("wga", "milp", "hybrid")
REVIEWS, PEOPLE, STARS = "reviews", "people", "stars"
ANY = "any"
"""WGA whose words lead one other label, not all: as the paper's listing has it (SPEC B8)."""
STRONGEST = 20

Job = tuple[str, str]
"""Which reviews, and what to learn from them: a model or a truth."""


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
    wga: str = ""
    """Learn a truth otherwise than the scale says, such as 'gram_activation(scale=global_max)'."""
    milp: str = ""
    hybrid: str = ""

    def __post_init__(self) -> None:
        if self.stars and not (self.people and self.learn_from):
            raise ValueError(
                "expected stars to be a column of learn_from, and people to compare with"
            )
        for what in TRUTHS:
            if getattr(self, what):
                truths.make(getattr(self, what))  # what is misspelt is told before anything else

    def found(self, order: Order) -> Findings:
        seed = order.seed
        own = {what: getattr(self, what) for what in TRUTHS if getattr(self, what)}
        sizes = {
            **order.sizes,
            **{of: {**order.sizes[of], **own} for of in ("truths", "people_truths")},
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
        first = [(REVIEWS, "han"), *((s, what) for what in ("milp", "cnn") for s in sides)]
        second = [(s, what) for what in ("hybrid", "wga", ANY) for s in sides]
        second = [(s, what) for s, what in second if what in work.sources(s)]
        found = order.done(work, first, second, said=" ".join, more=len(sides))
        agreed = work.methods_judged(order.workers, order.watch)
        total = len(found) + len(sides)
        order.watch(Step(len(found) + 1, total, "methods"))
        people = {}
        for side in sides:
            if marked is not None and side != REVIEWS:
                people[side] = work.people_judged(side, marked)
                order.watch(Step(len(found) + 1 + len(people), total, side))
        return _findings(self, order.scale, source, sizes, seed, sides, found, agreed, people)

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
        _, what = job
        make = self._trained if what in ("cnn", "han") else self._learnt
        return job, self._once(job, self._settings(job), lambda: make(job))

    def _once(
        self, job: Job, settings: Mapping[str, Any], work: Callable[[], Mapping[str, Any]]
    ) -> Found:
        asked = {"settings": settings, "seed": self.seed, "data": self.prints[job[0]]}
        return done_once(self._place(job), asked, work)

    def _place(self, job: Job) -> Path:
        return self.folder / "steps" / "-".join(job)

    def _settings(self, job: Job) -> dict[str, Any]:
        """What a step depends on: what is done stays done when other settings change."""
        side, what = job
        if what in ("cnn", "han"):
            return {"model": self.sizes[what], "training": self.sizes["training"]}
        own = {"source": self.sources(side)[what], "validation": self.validation}
        return own if what == "milp" else {**own, **self._settings((side, "cnn"))}

    def sources(self, side: str) -> Mapping[str, str]:
        """The truths that are learnt on a side, by name."""
        found: Mapping[str, str] = self.sizes["truths" if side == REVIEWS else "people_truths"]
        wga = truths.make(found["wga"])
        if side != STARS or not isinstance(wga, GramActivation):
            return found
        return {**found, ANY: replace(wga, margin="any").spec}

    # ---- models and truths ------------------------------------------------------------------

    def _trained(self, job: Job) -> Found:
        side, what = job
        parts = self.sides[side]
        architecture = architectures.make(self.sizes[what])
        student = trained_once(
            architecture,
            parts,
            self._place(job) / "model",
            data={"name": parts.train.name, "fingerprint": parts.train.fingerprint()},
            training=replace(architecture.training, **self.sizes["training"], seed=self.seed),
            watch=tell,
        )
        counts = Counter(e.label for e in parts.test)
        return {
            "model": architecture.spec,
            "accuracy": student.record["test"]["accuracy"],
            "majority": max(counts.values()) / len(parts.test),
            "texts": len(parts.test),
            "epochs": len(student.record["history"]),
            "seconds": sum(e["seconds"] for e in student.record["history"]),
            "reads": student.model.most_words if isinstance(student.model, Cutting) else None,
        }

    def _learnt(self, job: Job) -> Found:
        side, what = job
        parts = self.sides[side]
        train = parts.train
        if self.validation:
            train = replace(train, examples=(*train.examples, *parts.validation.examples))
        model = None if what == "milp" else load_model(self._place((side, "cnn")) / "model")
        sets = learnt_truth(self.sources(side)[what], model, train, self.seed)
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

    def _sets(self, side: str) -> dict[str, WordSets]:
        found = {
            what: WordSets.load(self._place((side, what)) / "words.json")
            for what in self.sources(side)
        }
        if side != STARS:
            return found
        labels = self.sides[PEOPLE].train.labels
        return {what: sets.joined(labels, self.belongs) for what, sets in found.items()}

    # ---- what they say ----------------------------------------------------------------------

    def methods_judged(self, workers: int, watch: Watcher) -> Found:
        """Every method against every truth, and every truth against the model."""
        names = ("methods", "binaries", "draws", "test_draws")
        settings: dict[str, Any] = {
            **{name: self.sizes[name] for name in names},
            "explained": self.sizes.get("explained"),
            **{what: self._settings((REVIEWS, what)) for what in (*TRUTHS, "han")},
        }
        job = (REVIEWS, "methods")
        return self._once(job, settings, lambda: self._methods(self._place(job), workers, watch))

    def _methods(self, place: Path, workers: int, watch: Watcher) -> Found:
        test = sampled(self.sides[REVIEWS].test, self.sizes.get("explained"), seed=self.seed)
        for what, sets in self._sets(REVIEWS).items():
            test = sets.marked(test, what)
        agreement = {
            (truth, binary): TruthAgreement(truth=truth, binary=binary)
            for truth in TRUTHS
            for binary in self.sizes["binaries"]
        }
        remaining = {
            (truth, remove): RelativeConfidence(truth=truth, remove=remove, seed=self.seed)
            for truth in TRUTHS
            for remove in ("marked", "random")
        }
        agreed: list[Agreed] = []
        of_source: Found = {}
        for model, methods in (("cnn", self.sizes["methods"]), ("han", ["attention"])):
            network = load_model(self._place((REVIEWS, model)) / "model")
            answers = probabilities(network, [e.input for e in test]).argmax(axis=1)
            right = [i for i, e in enumerate(test) if e.label == answers[i]]
            if not right:
                raise DataError(f"{model} gets no test text right: nothing can be judged by it")
            metrics: list[Any] = list(agreement.values())
            found = audit(
                {model: network},
                test.select(right),
                methods,
                metrics if model == "han" else [*metrics, *remaining.values()],
                out=place / model,
                seed=self.seed,
                workers=workers,
                extras=False,
                watch=_within(watch, f"methods, {model}"),
            )
            specs = {parse_spec(spec)[0]: spec for spec in found.run.explainers}
            agreed.append(Agreed.read(found.run, specs, agreement))
            if model == "cnn":
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
            **{what: self._settings((side, what)) for what in self.sources(side)},
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

        return self._once((side, "agreement"), settings, work)


def _within(watch: Watcher, doing: str) -> Watcher:
    return lambda news: watch(Within(doing, news))


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
    agreed: Found,
    people: Mapping[str, Found],
) -> Findings:
    published = recipe.settings()["published"]
    parts = sides[REVIEWS]
    lead = (
        f"{len(parts.train):,} reviews of {Path(source).name} to learn from, "
        f"{len(parts.validation):,} to validate on and {len(parts.test):,} to test on, scale "
        f"{scale}; the CNN gets {found[REVIEWS, 'cnn']['accuracy']:.1%} of them right, the HAN "
        f"{found[REVIEWS, 'han']['accuracy']:.1%}."
    )
    truths = {
        side: {t: found[side, t] for t in (*TRUTHS, ANY) if (side, t) in found} for side in sides
    }
    tables = [
        show.model_table({job: f for job, f in found.items() if job[1] in ("cnn", "han")}, seed),
        show.truth_table(truths, published["documents"]),
        *(show.method_table(truth, agreed, published[truth]) for truth in TRUTHS),
        show.binary_table(agreed, sizes["binaries"]),
        show.confidence_table(agreed["confidence"], published["confidence"]),
        *(show.people_table(side, f, published["people"]) for side, f in people.items()),
        show.word_table(truths),
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
            *(claim for side, f in people.items() for claim in show.people_claims(side, f)),
        ),
        (
            show.beside_figure(agreed, published),
            *(show.people_figure(side, f) for side, f in people.items()),
        ),
        (),
        show.notes(sizes, recipe.validation, recipe.people, recipe.learn_from, recipe.stars),
    )
