"""Do saliency maps show the mark that a network must use? (Zhou et al. 2022; definitions 9.5)"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from ...auditing.explaining import attributions
from ...auditing.training_sets import fitted
from ...changes import changed
from ...changes.reassign import Reassign
from ...core.attributions import Attribution
from ...core.changes import PLANTED
from ...core.errors import DataError
from ...core.examples import Dataset
from ...core.explainers import Explainer
from ...core.images import Image
from ...core.inputs import BoolArray
from ...core.metrics import Case, Row
from ...core.plugins import parse_spec
from ...core.progress import Progress
from ...core.segments import Pixels
from ...data.loading import load_data
from ...data.splits import Splits, sampled, split
from ...engine.executors import Executor, report_progress
from ...engine.inference import probabilities
from ...experiments.experiment import Step, StepResult
from ...experiments.training import TrainedModel, trained_once
from ...explainers import explainers
from ...metrics.attribution_mass import AttributionMass
from ...models.architecture import Training
from ...results.findings import Findings
from ...results.guarantees import reliance
from ...results.statistics import defined_mean
from ..recipe import Recipe, RecipeExperiment, Setup, check_among
from ._planted_images_draws import FIXED, MANIPULATIONS, Draw, Pair
from ._planted_images_findings import PlantedImagesReader
from ._planted_images_runs import EXPERIMENTS, NAMES, PictureRun, drawn_runs

STAND_IN = "made_shapes(n={n}, side={side}, labels=('circle', 'square', 'triangle', 'cross'))"
"""What is read where no pictures are given: shapes of which two and two look alike."""

ENOUGH = 0.95
"""Only networks of a higher test accuracy are held to the mark (definitions 5.4)."""

GAIN = 0.05
"""Weights are kept whenever validation accuracy is higher by this than when last kept."""

AT_ONCE = 16
"""So many pictures are explained together."""

OUTLINE = (255, 140, 0)


@dataclass(frozen=True)
class PlantedImages(Recipe):
    """Marks that tell the label: do saliency maps lie on them?"""

    title: ClassVar[str] = "Planted ground truth: do saliency maps show what a network must use?"

    experiments: tuple[str, ...] = tuple(EXPERIMENTS)
    """What to do: region, accuracy (along its trainings), visibility, correlation (of the original
    labels)."""
    manipulations: tuple[str, ...] = tuple(NAMES)
    """With which marks."""
    pairs: tuple[str, ...] = ()
    """Labels that look alike, such as 'crow/raven', the marked one last; by default those of the
    paper's birds."""

    def __post_init__(self) -> None:
        check_among("experiments", self.experiments, EXPERIMENTS)
        check_among("manipulations", self.manipulations, NAMES)
        if any(pair.count("/") != 1 for pair in self.pairs):
            raise ValueError(f"expected pairs such as 'crow/raven', got {self.pairs}")

    def experiment(self, setup: Setup) -> PlantedImagesExperiment:
        parts = pictures(setup)
        pairs = self.known_pairs(parts.train, setup.sizes)
        runs = drawn_runs(self.experiments, self.manipulations, pairs, setup.sizes, seed=setup.seed)
        return PlantedImagesExperiment(
            folder=setup.folder,
            setup=setup,
            parts=parts,
            pairs=pairs,
            runs=(PictureRun("marks"), PictureRun("species"), *runs),
        )

    def known_pairs(self, data: Dataset[Any], sizes: Mapping[str, Any]) -> list[Pair]:
        """The pairs of labels that look alike, out of the labels of the data."""
        named = [pair.split("/") for pair in self.pairs] or sizes["pairs"]
        found = [(first, second) for first, second in named if {first, second} <= {*data.labels}]
        if len(found) < 2 or (self.pairs and len(found) < len(named)):
            raise DataError(
                "expected two pairs of labels that look alike at least, all of them among "
                f"{', '.join(data.labels)}. Name them: planted_images(pairs=('crow/raven', …))"
            )
        return found

    def findings(
        self, experiment: PlantedImagesExperiment, results: Mapping[PictureRun, StepResult]
    ) -> Findings:
        reader = PlantedImagesReader(
            results=results, declared=self.declarations(), pairs=tuple(experiment.pairs)
        )
        reader.write_points(experiment.folder)
        return reader.findings(self, experiment.setup, experiment.parts)


# ---- data -----------------------------------------------------------------------------------


def pictures(setup: Setup) -> Splits:
    """At most so many pictures of each label for training, validation and test."""
    sizes, seed = setup.sizes, setup.seed
    total = sum(sizes["sizes"])
    source = str(setup.data or STAND_IN.format(n=4 * total, side=sizes["side"]))
    data = load_data(source, size=sizes["side"], segments=sizes["segments"], seed=seed)
    if data.kind != Image.kind:
        raise DataError(f"{source}: expected pictures, such as a folder of them for each label")
    dealt = split(data, shares=[n / total for n in sizes["sizes"]], seed=seed)
    found = []
    for part, n in zip((dealt.train, dealt.validation, dealt.test), sizes["sizes"], strict=True):
        if not all(part.balance.values()):
            raise DataError(
                f"{source}: expected pictures of each label for training, validation and test"
            )
        found.append(sampled(part, n * len(data.labels), seed=seed))
    return Splits(*found)


def of_pair(part: Dataset[Any], pair: Pair) -> Dataset[Any]:
    """The pictures of two labels alone."""
    places = {part.labels.index(name): place for place, name in enumerate(pair)}
    examples = (replace(e, label=places[e.label]) for e in part if e.label in places)
    return Dataset(f"{part.name} {'/'.join(pair)}", pair, tuple(examples))


def planted_pair(parts: Splits, draw: Draw, seed: int) -> Splits:
    """The pictures of two labels, each label kept with probability r, and those of the second
    marked: then, at a half, the mark alone tells the label."""
    by = [Reassign(r=draw.r), draw.mark]
    return Splits(
        *(
            changed(of_pair(part, draw.pair), by, seed=seed)
            for part in (parts.train, parts.validation, parts.test)
        )
    )


def of_each_label(data: Dataset[Any], n: int) -> Dataset[Any]:
    """The first so many pictures of each label."""
    seen: Counter[int] = Counter()
    chosen = []
    for place, example in enumerate(data):
        seen[example.label] += 1
        if seen[example.label] <= n:
            chosen.append(place)
    return data.select(chosen)


def first_marked(data: Dataset[Any]) -> Dataset[Any]:
    """The first picture of the second label alone."""
    return data.select([next(i for i, e in enumerate(data) if e.label == 1)])


# ---- steps ----------------------------------------------------------------------------------

SHARED = ("side", "sizes", "segments")
OWN: dict[str, tuple[str, ...]] = {
    "marks": (),
    "species": ("model", "species_training"),
    "accuracy": ("model", "training", "along"),
    **dict.fromkeys(("region", "visibility", "correlation"), ("model", "training", "methods")),
}
"""The settings that a step of each kind depends on, beside those that all share."""


@dataclass(frozen=True, kw_only=True)
class PlantedImagesExperiment(RecipeExperiment):
    """The pictures, and every network that is trained on them and looked at."""

    parts: Splits
    pairs: Sequence[Pair]
    runs: Sequence[PictureRun]

    def steps(self) -> list[Step]:
        data = self.parts.fingerprint()
        return [
            Step(
                key=run,
                name=run.step,
                settings={
                    "settings": {k: self.sizes[k] for k in (*SHARED, *OWN[run.experiment])},
                    "seed": self.setup.seed,
                    "data": data,
                    "which": [run.experiment, *([] if run.draw is None else drawn(run.draw))],
                },
                needs=(run.trained,) if run.trained != run else (),
                title=str(run),
            )
            for run in self.runs
        ]

    def work(self, step: Step, executor: Executor | None) -> StepResult:
        assert isinstance(step.key, PictureRun)
        kinds = {"marks": self._marks, "species": self._species, "accuracy": self._accuracy}
        return kinds.get(step.key.experiment, self._planted)(step.key)

    def _seed(self, run: PictureRun) -> int:
        # runs that differ in level or r alone draw the same pictures and weights
        return self.setup.seed + run.planted.group

    def _trained(self, run: PictureRun, parts: Splits) -> tuple[TrainedModel, StepResult]:
        """The network, and what its accuracy tells of it."""
        keep: dict[str, Any] = {"keep": GAIN} if run.trained.experiment == "region" else {}
        trained = trained_once(
            self.sizes["model"],
            parts,
            self.place(run.trained.step) / "model",
            training=Training(**_NO_END, **self.sizes["training"], **keep, seed=self._seed(run)),
            watch=report_progress,
        )
        relied = reliance(parts.test, _right(trained.model, parts.test))
        assert relied is not None
        return trained, {
            **trained.summary,
            **{k: getattr(relied, k) for k in ("accuracy", "n", "bound", "ceiling", "luck")},
            "passed": relied.accuracy > ENOUGH,
            "seed": self._seed(run),
        }

    def _planted(self, run: PictureRun) -> StepResult:
        """A network that is to find a mark: how much of each map lies where it may be."""
        parts = planted_pair(self.parts, run.planted, self._seed(run))
        trained, found = self._trained(run, parts)
        if not found["passed"]:
            return found | {"scores": []}
        model, methods = trained.model, self.sizes["methods"]
        found |= {"scores": shares(model, parts.test, methods, seed=self._seed(run))}
        if run.experiment == "region" and run.planted.group == 0:
            found |= {"maps": maps(model, parts.test, methods, seed=self._seed(run))}
        return found

    def _accuracy(self, run: PictureRun) -> StepResult:
        """The same at the weights that were kept along training, if it led far enough."""
        from ...models.training import at_snapshot

        parts = planted_pair(self.parts, run.planted, self._seed(run))
        trained, found = self._trained(run, parts)
        best = f"epoch-{trained.record['best']}.safetensors"  # the region's run has that already
        names = [name for name in trained.record.get("snapshots", ()) if name != best]
        along = []
        for name in names if found["passed"] else ():
            folder = self.place(run.trained.step) / "model" / "snapshots"
            earlier = at_snapshot(trained.model, folder / name)
            right = float(np.mean(_right(earlier, parts.test)))
            points = shares(earlier, parts.test, self.sizes["along"], seed=self._seed(run))
            along.append({"checkpoint": Path(name).stem, "accuracy": right, "scores": points})
        return found | {"along": along}

    def _species(self, run: PictureRun) -> StepResult:
        """A network that tells all labels apart, with nothing planted: what it takes for what."""
        trained = trained_once(
            self.sizes["model"],
            self.parts,
            self.place(run.step) / "model",
            training=Training(**_NO_END, **self.sizes["species_training"], seed=self.setup.seed),
            watch=report_progress,
        )
        test = self.parts.test
        taken_for = probabilities(trained.model, [e.input for e in test]).argmax(axis=1)
        confusion = np.zeros((len(test.labels), len(test.labels)), dtype=np.int64)
        np.add.at(confusion, ([e.label for e in test], taken_for), 1)
        return {**trained.summary, "labels": list(test.labels), "confusion": confusion.tolist()}

    def _marks(self, run: PictureRun) -> StepResult:
        """One picture as it is and under each manipulation, the region outlined."""
        one = first_marked(of_pair(self.parts.test, self.pairs[0]))
        (example,) = one
        found = [["as it is", example.input.wire]]
        for kind in MANIPULATIONS:
            settings: dict[str, Any] = FIXED[kind]
            (after,) = kind(**settings).changed(one, seed=self.setup.seed)
            region = np.logical_or.reduce(after.truths[PLANTED])
            found.append([NAMES[kind.plugin_name()], outlined(after.input.pixels, region).wire])
        return {"panels": found}


_NO_END: dict[str, Any] = {"patience": None}


def drawn(draw: Draw) -> list[Any]:
    """What tells one training from the others."""
    return [draw.mark.spec, *draw.pair, draw.r, draw.group]


def _right(model: Any, data: Dataset[Any]) -> list[bool]:
    answers = probabilities(model, [e.input for e in data]).argmax(axis=1)
    return [bool(y == e.label) for y, e in zip(answers, data, strict=True)]


# ---- maps -----------------------------------------------------------------------------------


def explained(model: Any, data: Dataset[Any], explainer: Explainer, *, seed: int) -> Iterator[Case]:
    """A method's explanations of the labels that the network gives, right or wrong."""
    for start in range(0, len(data), AT_ONCE):
        some = data.examples[start : start + AT_ONCE]
        inputs = [e.input for e in some]
        answers = probabilities(model, inputs)
        targets = answers.argmax(axis=1).tolist()
        found = attributions(explainer, model, inputs, targets, [e.id for e in some], seed)
        for example, answer, one in zip(some, answers, found, strict=True):
            yield Case(example, model, answer, one)
        report_progress(Progress(start + len(some), len(data), explainer.plugin_name()))


def ready(spec: str, model: Any, test: Dataset[Any]) -> Explainer:
    """A method as it suits pictures; what it compares them with are those of the run's test set."""
    explainer = explainers.make(spec).for_kind(Image.kind)
    return fitted(explainer, model, test) if explainer.learns else explainer


def shares(
    model: Any, test: Dataset[Any], methods: Mapping[str, int], *, seed: int
) -> list[dict[str, Any]]:
    """Attr% (definitions 5.2) of each method over so many test pictures of each label, in the
    region that all manipulations share."""
    metric = AttributionMass(truth=PLANTED)
    found = []
    for spec, n in methods.items():
        cases = list(explained(model, of_each_label(test, n), ready(spec, model, test), seed=seed))
        rows = metric.score(cases)
        for label in range(len(test.labels)):
            own = [
                row for row, case in zip(rows, cases, strict=True) if case.example.label == label
            ]
            found.append({"method": parse_spec(spec)[0], "label": label, **_summary(own)})
    return found


def _summary(rows: Sequence[Row]) -> dict[str, Any]:
    masses = [row["mass"] for row in rows]
    return {
        "region": defined_mean([row["share"] for row in rows]),
        "attr": defined_mean(masses),
        "n": len(rows),
        "undefined": int(np.isnan(masses).sum()),
    }


def maps(
    model: Any, test: Dataset[Any], methods: Mapping[str, int], *, seed: int
) -> list[list[str]]:
    """The first marked picture, and where each method sees what decides it."""
    one = first_marked(test)
    (example,) = one
    region = np.logical_or.reduce(example.truths[PLANTED])
    found = [["marked picture", outlined(example.input.pixels, region).wire]]
    for spec in methods:
        (case,) = explained(model, one, ready(spec, model, test), seed=seed)
        found.append([parse_spec(spec)[0], outlined(brightness(case.attribution), region).wire])
    return found


def brightness(found: Attribution[Image]) -> Pixels:
    """A map as a picture: white is the largest absolute score. → (height, width, 3)"""
    sizes = np.abs(found.scores)
    grey = 255 * sizes / (sizes.max() or 1.0)
    return np.repeat(grey.astype(np.uint8).reshape(*found.input.shape, 1), 3, axis=2)


def outlined(pixels: Pixels, region: BoolArray) -> Image:
    """A picture with the edge of a region drawn into it. region (pixels,)"""
    inside = region.reshape(pixels.shape[:2])
    around = np.pad(inside, 1)
    deep = around[:-2, 1:-1] & around[2:, 1:-1] & around[1:-1, :-2] & around[1:-1, 2:]
    shown = pixels.copy()
    shown[inside & ~deep] = OUTLINE
    return Image(shown)
