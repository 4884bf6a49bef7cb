"""Do attention and rationales show what a model must use? (Zhou et al. 2022; definitions 9.5)"""

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
from ...core.attributions import Attribution
from ...core.changes import DECOY, PLANTED
from ...core.errors import DataError
from ...core.examples import Dataset, Example
from ...core.inputs import FloatArray, Text
from ...core.metrics import Case
from ...data.loading import load_data
from ...data.readers import read_table
from ...data.splits import Splits, normalised, sampled
from ...data.vectors import GLOVE
from ...data.words import read_text
from ...engine.executors import Executor, report_progress
from ...engine.inference import probabilities
from ...engine.seeds import generator
from ...experiments.experiment import Step, StepResult
from ...experiments.training import trained_once
from ...metrics.attribution_mass import attribution_share
from ...metrics.selection import Selection
from ...models.architecture import Training
from ...results.findings import Findings
from ...results.guarantees import Reliance, reliance
from ..recipe import Recipe, RecipeExperiment, Setup, check_among
from ._planted_text_findings import PlantedTextReader
from ._planted_text_models import DATASET_NAMES, KINDS, PlantedModel

DATASETS = {"article": Swap(), "cn": Swap(part="first"), "nc": Swap(part="second")}
assert DATASETS.keys() == DATASET_NAMES.keys()
STAND_IN = "imdb"
"""What is read where no reviews are given."""
SHOWN_WORDS = 60
PARTS = ("attention", "norms", "methods", "rationales")


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
        check_among("parts", self.parts, PARTS)
        check_among("datasets", self.datasets, DATASETS)

    def experiment(self, setup: Setup) -> PlantedTextExperiment:
        source = STAND_IN if setup.data is None else str(setup.data)
        texts = reviews(source, sum(setup.sizes["sizes"]), setup.sizes["words"], setup.seed)
        return PlantedTextExperiment(
            folder=setup.folder,
            setup=setup,
            source=source,
            texts=texts,
            models=self.models(setup.sizes),
        )

    def models(self, sizes: Mapping[str, Any]) -> list[PlantedModel]:
        """The models to train, and last what is done with them once they are there."""
        kinds = [v for v in ("corpus", "glove") if v != "glove" or find_spec(GLOVE)]
        attention = [
            PlantedModel(name, "attention", float(i), vectors)
            for name in self.datasets
            for vectors in kinds
            for i in range(sizes["runs"])
        ]
        stretched = [
            PlantedModel("article", "attention", float(i), vectors, norm)
            for vectors in kinds
            for norm in sizes["norms"][vectors]
            for i in range(sizes["norm_runs"])
        ]
        rationales = [
            PlantedModel(name, kind, rate)
            for kind in KINDS
            for name in self.datasets
            for rate in sizes["rates"][name]
        ]
        by_part = {
            "attention": attention,
            "norms": stretched if "article" in self.datasets else [],
            "rationales": rationales,
        }
        models = [m for part in by_part if part in self.parts for m in by_part[part]]
        # all lengths of vectors in one run before any in the next, and what takes longest last
        models.sort(key=lambda m: (not m.vectors, m.dataset, m.value if m.vectors else 0.0))
        methods = [m._replace(kind="methods") for m in attention if m.vectors == "corpus"]
        return models + methods * ("methods" in self.parts)

    def findings(
        self, experiment: PlantedTextExperiment, results: Mapping[PlantedModel, StepResult]
    ) -> Findings:
        reader = PlantedTextReader(self.declarations(), results)
        return reader.findings(self, experiment.setup, experiment.source)


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

SHARED = ("sizes", "words")
_RATIONALE = ("rationale", "rationale_training")
_ATTENTION = ("attention", "attention_training", "corpus")
OWN = {
    "attention": _ATTENTION,
    "methods": (*_ATTENTION, "explained", "methods"),
    "rationale_cr": _RATIONALE,
    "rationale_rl": (*_RATIONALE, "reinforced"),
}
"""The settings that a step of each kind depends on, beside those that all share."""


@dataclass(frozen=True, kw_only=True)
class PlantedTextExperiment(RecipeExperiment):
    """The reviews, and every model that is trained on them and looked at."""

    source: str
    texts: Dataset
    models: Sequence[PlantedModel]

    def steps(self) -> list[Step]:
        data = self.texts.fingerprint()
        return [
            Step(
                key=model,
                name=model.step,
                settings={
                    "settings": {k: self.sizes[k] for k in (*SHARED, *OWN[model.kind])},
                    "seed": self.setup.seed,
                    "data": data,
                    "which": [model.dataset, model.kind, model.value],
                    **({"vectors": model.vectors, "norm": model.norm} if model.vectors else {}),
                },
                needs=(model.trained,) if model.trained in set(self.models) - {model} else (),
                title=str(model),
            )
            for model in self.models
        ]

    def work(self, step: Step, executor: Executor | None) -> StepResult:
        assert isinstance(step.key, PlantedModel)
        model = step.key
        kinds = {"attention": self._attention, "methods": self._methods}
        return kinds.get(model.kind, self._rationale)(model, self._parts(model))

    def _seed(self, model: PlantedModel) -> int:
        # the numbers of runs are their seeds; of rationales, rates differ and nothing else
        return self.setup.seed + (int(model.value) if model.vectors else 0)

    def _parts(self, model: PlantedModel) -> Splits:
        change = DATASETS[model.dataset]
        return planted_parts(self.texts, change, self.sizes["sizes"], self._seed(model))

    def _trained(
        self, which: PlantedModel, parts: Splits, spec: str, training: Mapping[str, Any]
    ) -> tuple[Any, StepResult, Reliance]:
        trained = trained_once(
            spec,
            parts,
            self.place(which.trained.step) / "model",
            training=Training(**{"patience": None, **training}, seed=self._seed(which)),
            watch=report_progress,
        )
        model = trained.model
        answers = probabilities(model, [e.input for e in parts.test]).argmax(axis=1)
        right = [bool(y == e.label) for y, e in zip(answers, parts.test, strict=True)]
        relied = reliance(parts.test, right)
        assert relied is not None
        found = {
            **trained.summary,
            "model": spec,
            "norm": model.mean_norm,
            "norm_read": _norm_read(model, parts.test),
            **asdict(relied),
            "forced": relied.forced,
            "sentence": relied.sentence,
        }
        return model, found, relied

    def _attentive(
        self, which: PlantedModel, parts: Splits
    ) -> tuple[Any, StepResult, dict[str, Any]]:
        """The model with attention, what is known of it, and how it is audited."""
        corpus = f", {self.sizes['corpus']}" if which.vectors == "corpus" else ""
        length = "" if which.norm is None else f", norm={which.norm}"
        model, found, relied = self._trained(
            which,
            parts,
            f"attention_lstm(embeddings={which.vectors}{corpus}{length}, tuned=False, "
            f"{self.sizes['attention']})",
            {**self.sizes["attention_training"], "keep": 0.05},
        )
        kinds = [k for k in (PLANTED, DECOY) if k in parts.test.truth_kinds]
        # what all test texts tell of the model holds for the few that are explained
        audited = {
            "metrics": [f"attribution_mass(truth={kind})" for kind in kinds],
            "out": self.place(which.step) / which.kind,
            "seed": self._seed(which),
            "reliance": {"model": relied},
            "extras": False,
            "watch": report_progress,
        }
        return model, found, audited

    def _attention(self, which: PlantedModel, parts: Splits) -> StepResult:
        """A model with attention: its own weights on all test texts."""
        model, found, audited = self._attentive(which, parts)
        done = audit({"model": model}, parts.test, ["attention"], **audited)
        first = parts.test.examples[0]
        return found | {
            "attention": done.run.summaries().get("model", {}).get("attention", {}),
            "along": _along(model, parts.test, self.place(which.step) / "model" / "snapshots"),
            "text": _words(first, model.attention([first.input])[0]),
        }

    def _methods(self, which: PlantedModel, parts: Splits) -> StepResult:
        """Every other method on a model with attention and some of the test texts."""
        model, found, audited = self._attentive(which, parts)
        some = sampled(parts.test, self.sizes["explained"], seed=self._seed(which))
        methods = ["attention", *self.sizes["methods"]]
        done = audit({"model": model}, some, methods, **audited)
        return found | {"methods": done.run.summaries().get("model", {})}

    def _rationale(self, which: PlantedModel, parts: Splits) -> StepResult:
        """A model that reads a given share of the words: which did it choose?"""
        vectors = "embeddings=glove" if find_spec(GLOVE) else "size=100"
        more = self.sizes["reinforced"] if which.kind == "rationale_rl" else ""
        settings = ", ".join(
            filter(None, (vectors, f"rate={which.value}", self.sizes["rationale"], more))
        )
        model, found, _ = self._trained(
            which, parts, f"{which.kind}({settings})", self.sizes["rationale_training"]
        )
        gates = model.rationale([e.input for e in parts.test])
        metric = Selection(ratio=0.0)
        no_answer = np.zeros(2)  # which words are selected does not hang on the answer
        rows = metric.score(
            [
                Case(e, model, no_answer, Attribution(e.input, e.label, z))
                for e, z in zip(parts.test, gates, strict=True)
            ]
        )
        return found | {
            "selection": dict(metric.summary(rows)),
            "text": _words(parts.test.examples[0], (gates[0] > 0).astype(np.float64)),
        }


def _norm_read(model: Any, test: Dataset) -> float:
    """How long the vectors of the words are that the model reads: of frequent words more often."""
    ids, present = model.read([e.input for e in test])
    norms = model.embedding.weight.detach().norm(dim=1)
    return float(norms[ids[present]].mean())


def _words(example: Example, values: FloatArray) -> list[list[Any]]:
    """The first words of a text, each with its value and what it is."""

    def kind(place: int) -> str:
        marked = (k for k in (PLANTED, DECOY) if any(m[place] for m in example.truths.get(k, ())))
        return next(marked, "")

    words = example.input.words[:SHOWN_WORDS]
    return [[w, float(values[i]), kind(i)] for i, w in enumerate(words)]


def _along(model: Any, test: Dataset, folder: Path) -> list[list[float]]:
    """Accuracy and the attention on planted words of the weights kept along training."""
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
