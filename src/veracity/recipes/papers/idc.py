"""Do methods mark the words that decide, by truths that nobody wrote down? (Khaleel et al. 2021;
definitions 9.4)"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, cast

import numpy as np

from ...auditing.audit import audit
from ...auditing.labels import fit_labels_to
from ...core.errors import DataError
from ...core.examples import Dataset, Example
from ...core.inputs import BoolArray
from ...core.plugins import parse_spec
from ...core.truths import WordSets
from ...data.loading import load_data
from ...data.readers import Columns
from ...data.splits import Splits, sampled, split
from ...data.words import read_text
from ...engine.executors import Executor, report_progress
from ...engine.inference import probabilities
from ...experiments.experiment import Step, StepResult
from ...experiments.training import trained_once
from ...explainers import explainers
from ...metrics.relative_confidence import RelativeConfidence
from ...metrics.truth_agreement import TruthAgreement
from ...models.architectures import architectures
from ...models.loading import load_model
from ...results.declarations import Declarations
from ...results.findings import Findings
from ...truths import learnt_truth, truths
from ...truths.gram_activation import GramActivation
from ..recipe import Recipe, RecipeExperiment, Setup
from ._idc_findings import METHODS, IdcReader
from ._idc_judging import AgreementCounts, confidences, method_agreement, people_agreement

STAND_IN = "rotten_tomatoes"
"""What is read where no reviews are given: most of the very sentences that the paper used."""
TRUTHS = ("wga", "milp", "hybrid")
REVIEWS, PEOPLE, STARS = "reviews", "people", "stars"
ANY = "any"
"""WGA whose words lead one other label, not all: as the paper's listing has it (definitions B8)."""
STRONGEST = 20

IdcStep = tuple[str, str, int]
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

    def experiment(self, setup: Setup) -> IdcExperiment:
        given, seed = setup.sizes, setup.seed
        own = {what: getattr(self, what) for what in TRUTHS if getattr(self, what)}
        sizes = {
            **given,
            **{of: self._sources({**given[of], **own}) for of in ("truths", "people_truths")},
            "seeds": self.seeds or given["seeds"],
            "cnn": self.cnn or given["cnn"],
        }
        source = STAND_IN if setup.data is None else str(setup.data)
        texts = sampled(load_data(source), sizes.get("limit"), seed=seed)
        sides = {REVIEWS: split(texts, shares=sizes["shares"], seed=seed)}
        marked: Dataset | None = None
        belongs: tuple[int, ...] = ()
        if self.people:
            sides[PEOPLE], marked = self._marked(sizes, seed)
        if self.stars:
            sides[STARS], belongs = self._starred(sides[PEOPLE], seed)
        return IdcExperiment(
            folder=setup.folder,
            setup=replace(setup, sizes=sizes),
            source=source,
            sides=sides,
            marked=marked,
            belongs=belongs,
            validation=self.validation,
        )

    def findings(
        self, experiment: IdcExperiment, results: Mapping[IdcStep, StepResult]
    ) -> Findings:
        setup, parts = experiment.setup, experiment.sides[REVIEWS]
        reader = IdcReader(self.declarations(), results, setup.seed)
        accuracy = {
            what: np.mean([s["accuracy"] for (side, w, _), s in results.items()
                           if (side, w) == (REVIEWS, what)])
            for what in ("cnn", "han")
        }  # fmt: skip
        lead = (
            f"{len(parts.train):,} reviews of {Path(experiment.source).name} to learn from, "
            f"{len(parts.validation):,} to validate on and {len(parts.test):,} to test on, scale "
            f"{setup.scale}; over {len(reader.trainings)} trainings the CNN gets "
            f"{accuracy['cnn']:.1%} of them right, the HAN {accuracy['han']:.1%}."
        )
        learnt = "training and validation texts" if self.validation else "training texts"
        return Findings(
            recipe=self.plugin_name(),
            title=self.title,
            lead=lead,
            config={
                "scale": setup.scale,
                "reviews": experiment.source,
                "people": self.people or "none",
                "people's truths from": self.learn_from or "their own reviews",
                "stars": self.stars or "none",
                "truths learnt from": learnt,
                "seed": setup.seed,
                **setup.sizes,
            },
            tables=tuple(reader.tables(setup.sizes["binaries"])),
            claims=tuple(reader.claims()),
            figures=tuple(reader.figures()),
            notes=tuple(self._notes(reader.declared, setup.sizes)),
        )

    def _notes(self, declared: Declarations, sizes: Mapping[str, Any]) -> Iterator[str]:
        yield declared.note("truths")
        yield declared.note("cnn", cnn=sizes["cnn"])
        yield declared.note("with_validation" if self.validation else "without_validation")
        yield declared.note("reads")
        yield declared.note("trainings", **{k: sizes[k] for k in ("seeds", "draws", "test_draws")})
        if self.people:
            name = "people_from_others" if self.learn_from else "people_from_their_own"
            yield declared.note(name, source=self.learn_from)
        if self.stars:
            more = ", which its truths are not learnt from" * self.validation
            yield declared.note("stars", stars=self.stars, more=more)

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


def as_words(data: Dataset) -> Dataset:
    """Texts with the words that our rules find: people's tokens may carry signs, as in `did.`."""
    return replace(
        data,
        examples=tuple(replace(e, input=read_text(e.input.text), truths={}) for e in data),
    )


# ---- steps ----------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class IdcExperiment(RecipeExperiment):
    """The reviews of every side, and every model and truth that is learnt from them."""

    source: str
    sides: Mapping[str, Splits]
    marked: Dataset | None
    """The reviews in which people marked words."""
    belongs: tuple[int, ...]
    """The label that each of the stars belongs to, if truths are learnt from stars."""
    validation: bool

    @cached_property
    def _prints(self) -> Mapping[str, str]:
        return {side: parts.fingerprint() for side, parts in self.sides.items()}

    def steps(self) -> list[Step]:
        trainings = range(self.sizes["seeds"])
        several = {side: trainings if side == REVIEWS else [0] for side in self.sides}
        # what takes longest goes first
        keys = [
            *((REVIEWS, "han", t) for t in trainings),
            *((side, "milp", 0) for side in self.sides if "milp" in self.sources(side)),
            *((side, "cnn", t) for side in self.sides for t in several[side]),
            *(
                (side, what, t)
                for what in ("hybrid", "wga", ANY)
                for side in self.sides
                for t in several[side]
                if what in self.sources(side)
            ),
            *((REVIEWS, "methods", t) for t in trainings),
            *((side, "agreement", 0) for side in self.sides if side != REVIEWS),
        ]
        return [self._step(key) for key in keys]

    def _step(self, key: IdcStep) -> Step:
        side, what, training = key
        return Step(
            key=key,
            name="-".join([side, what, *([str(training)] * bool(training))]),
            settings={
                "settings": self._settings(key),
                "seed": self.setup.seed + training,
                "data": self._prints[side],
            },
            needs=self._needs(key),
            title=f"{side} {what}" + (f", training {training + 1}" if training else ""),
            spreads=what == "methods",
        )

    def _needs(self, key: IdcStep) -> tuple[IdcStep, ...]:
        side, what, training = key
        if what in ("methods", "agreement"):
            learnt = [(side, t, 0 if t == "milp" else training) for t in self.sources(side)]
            models = [(side, m, training) for m in ("cnn", "han") if what == "methods"]
            return *learnt, *models
        return () if what in ("cnn", "han", "milp") else ((side, "cnn", training),)

    def work(self, step: Step, executor: Executor | None) -> StepResult:
        key = cast(IdcStep, step.key)
        if key[1] == "methods":
            return self._methods(key, executor)
        kinds = {"cnn": self._trained, "han": self._trained, "agreement": self._people}
        return kinds.get(key[1], self._learnt)(key)

    def _place(self, key: IdcStep) -> Path:
        return self.place(self._step(key).name)

    def _settings(self, key: IdcStep) -> dict[str, Any]:
        """What a step depends on: what is done stays done when other settings change."""
        side, what, training = key
        if what in ("cnn", "han"):
            return {"model": self.sizes[what], "training": self.sizes["training"]}
        if what in ("methods", "agreement"):
            names = ["draws", "test_draws"]
            names += ["binaries", "paper_methods"] if what == "methods" else []
            learnt = [*self.sources(side), *(["han"] if what == "methods" else [])]
            shared = {
                **{name: self.sizes[name] for name in names},
                **{one: self._settings((side, one, training)) for one in learnt},
            }
            if what == "agreement":
                assert self.marked is not None
                return {**shared, "marked": self.marked.fingerprint()}
            explained = {"explained": self.sizes.get("explained")}
            return {**shared, **explained, "methods": self._compared(training)}
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

    def _trained(self, key: IdcStep) -> StepResult:
        side, what, training = key
        parts = self.sides[side]
        architecture = architectures.make(self.sizes[what])
        seed = self.setup.seed + training
        trained = trained_once(
            architecture,
            parts,
            self._place(key) / "model",
            training=replace(architecture.training, **self.sizes["training"], seed=seed),
            watch=report_progress,
        )
        counts = Counter(e.label for e in parts.test)
        return {
            **trained.summary,
            "model": architecture.spec,
            "majority": max(counts.values()) / len(parts.test),
            "texts": len(parts.test),
            "reads": getattr(trained.model, "most_words", None),
        }

    def _learnt(self, key: IdcStep) -> StepResult:
        side, what, training = key
        parts = self.sides[side]
        train = parts.train
        if self.validation:
            train = replace(train, examples=(*train.examples, *parts.validation.examples))
        model = None if what == "milp" else self._model((side, "cnn", training))
        sets = learnt_truth(self.sources(side)[what], model, train, self.setup.seed + training)
        sets.save(self._place(key) / "words.json")
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

    def _model(self, key: IdcStep) -> Any:
        return load_model(self._place(key) / "model")

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

    def _compared(self, training: int) -> list[str]:
        """All methods; after the first training the paper's alone."""
        every: list[str] = self.sizes["methods"]
        return [m for m in every if not training or parse_spec(m)[0] in METHODS]

    def _methods(self, key: IdcStep, executor: Executor | None) -> StepResult:
        """Every method against every truth; in the first training every truth against the model
        too."""
        training, seed = key[2], self.setup.seed
        sources = self.sources(REVIEWS)
        test = sampled(self.sides[REVIEWS].test, self.sizes.get("explained"), seed=seed)
        for what, sets in self._sets(REVIEWS, training).items():
            test = sets.marked(test, what)
        agreement = {
            (truth, binary): TruthAgreement(truth=truth, binary=binary)
            for truth in sources
            for binary in self.sizes["binaries"]
        }
        remaining = {
            (truth, remove): RelativeConfidence(truth=truth, remove=remove, seed=seed)
            for truth in sources
            for remove in ("marked", "random")
        }
        counts: list[AgreementCounts] = []
        of_source: StepResult = {}
        methods = self._compared(training)
        known = {parse_spec(m)[0] for m in methods}
        instead = {m: spec for m, spec in self.sizes["paper_methods"].items() if m in known}
        for model, wanted, other in (("cnn", methods, instead), ("han", ["attention"], {})):
            network = self._model((REVIEWS, model, training))
            answers = probabilities(network, [e.input for e in test]).argmax(axis=1)
            right = [i for i, e in enumerate(test) if e.label == answers[i]]
            if not right:
                raise DataError(f"{model} gets no test text right: nothing can be judged by it")
            metrics: list[Any] = list(agreement.values())
            of_model = model == "cnn" and not training
            found = audit(
                {model: network},
                test.select(right),
                [*wanted, *other.values()],
                [*metrics, *remaining.values()] if of_model else metrics,
                out=self._place(key) / model,
                seed=seed,
                executor=executor,
                extras=False,
                watch=report_progress,
            )
            counts.append(
                AgreementCounts.read(
                    found.run, _specs(wanted), agreement, instead=_specs(other.values())
                )
            )
            if of_model:
                of_source = confidences(found.run, remaining, seed)
        draws = {k: self.sizes[k] for k in ("draws", "test_draws")}
        return {**method_agreement(*counts, **draws, seed=seed), "confidence": of_source}

    def _people(self, key: IdcStep) -> StepResult:
        """Every truth of a side against the people who marked these reviews."""
        assert self.marked is not None
        return people_agreement(
            [cast(Sequence[Any], e.truths["rationale"]) for e in self.marked],
            {what: [held(s, e) for e in self.marked] for what, s in self._sets(key[0]).items()},
            draws=self.sizes["draws"],
            test_draws=self.sizes["test_draws"],
            seed=self.setup.seed,
        )


def _specs(methods: Iterable[str]) -> dict[str, str]:
    """Methods by name, as a run calls them."""
    return {parse_spec(spec)[0]: explainers.make(spec).spec for spec in methods}


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
