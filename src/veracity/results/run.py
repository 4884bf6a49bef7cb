"""A run on disk: written part by part, resumed, and read back without torch or the data."""

from __future__ import annotations

import hashlib
import re
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ..core.attributions import Attribution
from ..core.errors import PluginError, RunError
from ..core.examples import Dataset, Example, families
from ..core.files import FolderKind, read_json, reading, remove_own, write_json
from ..core.inputs import FloatArray, Input, Nouns, input_kind
from ..core.metrics import Quantity, Row
from ..core.plugins import nearest
from ..core.schema import check_schema
from .columns import HIDDEN_HOW, Column, best_of
from .config import (
    FILE,
    BudgetPlan,
    Partial,
    RunConfig,
    RunMetadata,
    read_config,
    resumed,
    versions,
    write_config,
)
from .parts import (
    PART_NAME,
    SCORED,
    attribution_columns,
    attributions_in,
    complete_part,
    damaged,
    discard_part,
    example_columns,
    examples_in,
    number_lists,
    predictions_in,
    read_table,
    scores_in,
    write_table,
)

if TYPE_CHECKING:
    import pyarrow as pa

AUDIT = FolderKind("an audit", FILE)
SUMMARIES = "summaries.json"
STANDINGS = "standings.json"


def slug(text: str) -> str:
    """A folder name that people can read and that no two texts share."""
    readable = re.sub(r"[^A-Za-z0-9._-]+", "-", text).strip("-.")[:60]
    if readable == text:
        return text
    return f"{readable}-{hashlib.sha256(text.encode()).hexdigest()[:8]}"


@dataclass(frozen=True)
class Cost:
    """What a method's explanations of one model took."""

    model: str
    method: str
    examples: int
    seconds: float
    questions: float

    @property
    def seconds_per_text(self) -> float:
        return self.seconds / self.examples

    @property
    def questions_per_text(self) -> float:
        return self.questions / self.examples


@dataclass(frozen=True)
class Run:
    """The folder of one audit. `config` identifies it; parts fill it."""

    folder: Path
    config: RunConfig
    metadata: RunMetadata
    draw: str = ""
    """The folder of explanations and scores of another draw, inside that of the run."""

    # ---- opening ----------------------------------------------------------------------------

    @classmethod
    def start(
        cls, folder: Path, config: RunConfig, data: Dataset, *, redo: Collection[str] = ()
    ) -> Run:
        """A new run, or the one already in this folder if the same was asked of it, without what it
        holds of the methods to be done anew."""
        if (folder / FILE).exists():
            return cls._resume(folder, config, data, set(redo))
        run = cls(folder, config, RunMetadata.now())
        write_table(run._examples_part, example_columns(data))
        return run._written()

    @classmethod
    def _resume(cls, folder: Path, config: RunConfig, data: Dataset, redo: set[str]) -> Run:
        before = cls.open(folder)
        if before.config.is_chosen_anew(config):
            before._check_replacement(config.plan)
            # all that was answered is kept elsewhere: nothing is asked twice
            before._clear()
            return cls.start(folder, config, data)
        changed = before.config.changed(config, redo)
        if changed:
            edited = [c for c in changed if c.removeprefix("version of ") in config.explainers]
            anew = "; a method whose file was edited is done anew with --redo METHOD (redo=…)"
            anew = anew if len(edited) == len(changed) else ""
            raise RunError(
                f"{folder} holds a run with another {' and another '.join(changed)}. Choose "
                f"another folder for this run, or delete that one{anew}"
            )
        for spec in redo:
            # before the record says that they are of the new version
            before._forget(spec)
            before.second_draw._forget(spec)
        # what methods learnt from is kept while their parts are, whatever is asked now
        learnt = {**before.config.train, **config.train}
        run = cls(folder, replace(config, train=learnt), resumed(before.metadata, folder))
        if complete_part(run._examples_part, [e.id for e in data]) is None:
            discard_part(run._examples_part)
            write_table(run._examples_part, example_columns(data))
        return run._written()

    def _forget(self, explainer: str) -> None:
        """Removes a method's parts, and nothing else that may lie beside them."""
        for model in self.models:
            attributed = self.attribution_part(model, explainer, 0).parent
            scored = self.score_part(model, explainer, "any", 0).parents[1]
            for folder in (attributed, scored):
                remove_own(folder, PART_NAME)

    @classmethod
    def open(cls, folder: str | Path) -> Run:
        """A run that was written before."""
        return cls(Path(folder), *read_config(Path(folder)))

    def _check_replacement(self, plan: BudgetPlan | None) -> None:
        """A finished run is not given up for one that a lower budget makes."""
        old = self.config.plan
        finished = (self.folder / SUMMARIES).exists()
        if plan and old and finished and plan.budget < old.budget:
            raise RunError(
                f"{self.folder} holds a finished run on {old.texts:,} {self.nouns.many} with a "
                f"budget of {old.budget:,} questions; one of {plan.budget:,} holds less "
                f"({plan.texts:,} {self.nouns.many}). Leave the budget as it was, or choose "
                "another folder; nothing was changed"
            )

    def _clear(self) -> None:
        (self.folder / FILE).unlink()
        for kind in ("predictions", "attributions", "scores", "second_draw"):
            remove_own(self.folder / kind, PART_NAME)
        for name in (SUMMARIES, STANDINGS):
            (self.folder / name).unlink(missing_ok=True)

    @property
    def partial(self) -> Partial | None:
        """Where a budget ended the audit."""
        return self.metadata.partial

    def with_partial(self, partial: Partial | None) -> Run:
        """This run as partial, or as whole."""
        if partial == self.partial:
            return self
        return replace(self, metadata=replace(self.metadata, partial=partial))._written()

    def _written(self) -> Run:
        write_config(self.folder, self.config, self.metadata)
        return self

    # ---- places -----------------------------------------------------------------------------

    def _part(self, kind: str, *keys: str | int) -> Path:
        *folders, last = [f"{k:05d}" if isinstance(k, int) else slug(k) for k in keys]
        return self.folder.joinpath(kind, *folders, f"{last}.parquet")

    def _parts(self, first: Path) -> list[Path]:
        """All parts that belong to the same as the first one, without what is not finished."""
        paths = sorted(first.parent.glob("*.parquet"))
        if self.partial is None:
            return paths
        finished = {f"{batch:05d}" for batch in self.partial.batches}
        return [path for path in paths if path.stem in finished]

    @property
    def second_draw(self) -> Run:
        """Part of the texts, explained with other random numbers by methods that draw."""
        return replace(self, draw="second_draw")

    @property
    def _examples_part(self) -> Path:
        return self.folder / "examples.parquet"

    def prediction_part(self, model: str, batch: int) -> Path:
        return self._part("predictions", model, batch)

    def attribution_part(self, model: str, explainer: str, batch: int) -> Path:
        return self._part(f"{self.draw}/attributions".lstrip("/"), model, explainer, batch)

    def score_part(self, model: str, explainer: str, metric: str, batch: int) -> Path:
        return self._part(f"{self.draw}/scores".lstrip("/"), model, explainer, metric, batch)

    def score_parts(self, *, searches: bool = False) -> list[Path]:
        """All scores of what was asked; those of searches only where wanted."""
        methods = (*self.explainers, *(self.config.ceilings if searches else ()), "")
        found = [
            path
            for model in self.models
            for explainer in methods
            for metric in self.config.metrics
            for path in self._parts(self.score_part(model, explainer, metric, 0))
        ]
        relied = self.config.reliance.values()
        # where nothing could be held against the methods, nothing was scored
        if not found and (not relied or any(r.forced for r in relied)):
            raise RunError(f"{self.folder} holds no scores yet. Give the audit command again")
        return found

    def scores_fingerprint(self) -> str:
        """Another whenever a score, or what scores are compared by, may be another."""
        names = [*self.config.metrics, *self.explainers, *self.config.ceilings]
        digest = hashlib.sha256(f"{versions().get('veracity')} {names} {self.partial}".encode())
        for path in (self._examples_part, *self.score_parts(searches=True)):
            file = path.stat() if path.exists() else None
            known = (path.relative_to(self.folder), file and (file.st_size, file.st_mtime_ns))
            digest.update(str(known).encode())
        return digest.hexdigest()

    # ---- writing ----------------------------------------------------------------------------

    def write_predictions(
        self, model: str, batch: int, examples: Sequence[Example], probabilities: FloatArray
    ) -> None:
        columns = {
            "example": [e.id for e in examples],
            "probabilities": number_lists([*probabilities]),
        }
        write_table(self.prediction_part(model, batch), columns)

    def write_attributions(
        self,
        model: str,
        explainer: str,
        batch: int,
        found: Sequence[tuple[Example[Any], Attribution[Any]]],
        *,
        seconds: float,
        questions: float,
    ) -> None:
        columns = attribution_columns(
            found, seconds=seconds, questions=questions, model=model, explainer=explainer
        )
        write_table(self.attribution_part(model, explainer, batch), columns)

    def write_scores(
        self, model: str, explainer: str, metric: str, batch: int, rows: Sequence[tuple[str, Row]]
    ) -> None:
        """Long form: one line per example and quantity."""
        flat = [(example, name, float(v)) for example, row in rows for name, v in row.items()]
        own = (self.config.dataset.name, model, explainer, metric)
        lines = [(*own, *line) for line in flat]
        columns = {name: [line[i] for line in lines] for i, name in enumerate(SCORED)}
        write_table(self.score_part(model, explainer, metric, batch), columns)

    def write_summaries(self, summaries: Mapping[str, Any]) -> None:
        """Aggregates that are not means, such as pooled F1: {model: {explainer: {metric: row}}}."""
        write_json(self.folder / SUMMARIES, summaries, checksum=False)

    # ---- reading ----------------------------------------------------------------------------

    @property
    def models(self) -> tuple[str, ...]:
        return tuple(self.config.models)

    @property
    def explainers(self) -> tuple[str, ...]:
        return tuple(self.config.explainers)

    @property
    def labels(self) -> tuple[str, ...]:
        return self.config.dataset.labels

    @property
    def nouns(self) -> Nouns:
        """What people call the inputs and what is hidden of them."""
        return input_kind(self.config.dataset.kind).nouns

    def examples(self) -> list[Example[Any]]:
        """The examples as they were read; older runs hold neither truth masks nor partners."""
        try:
            return examples_in(read_table(self._examples_part), self.config.dataset.kind)
        except (ValueError, KeyError, TypeError) as error:
            raise damaged(self._examples_part, error) from None

    @cached_property
    def inputs(self) -> dict[str, Input]:
        """By example, what the models read."""
        return {e.id: e.input for e in self.examples()}

    def families(self) -> dict[str, str]:
        """By example the family that comparisons draw whole, as `Dataset.families` has it. Without
        the texts."""
        table = read_table(self._examples_part)
        names = table["example"].to_pylist()
        known = "partner" in table.column_names
        partners = table["partner"].to_pylist() if known else [None] * len(names)
        return families(dict(zip(names, partners, strict=True)))

    def gold(self) -> dict[str, int]:
        """Each example's label, without the texts."""
        table = read_table(self._examples_part, ["example", "label"]).to_pydict()
        return dict(zip(table["example"], table["label"], strict=True))

    def predictions(self, model: str) -> dict[str, FloatArray]:
        """Class probabilities by example, labels in the dataset's order."""
        return {
            example: row
            for path in self._parts(self.prediction_part(model, 0))
            for example, row in predictions_in(read_table(path)).items()
        }

    def stored_attributions(
        self, model: str, explainer: str, batch: int, inputs: Mapping[str, Input]
    ) -> list[Attribution[Any]] | None:
        """One part's, of these inputs; None where it must be computed anew."""
        path = self.attribution_part(model, explainer, batch)
        table = complete_part(path, list(inputs), model=model, explainer=explainer)
        try:
            return None if table is None else list(attributions_in(table, inputs).values())
        except (ValueError, KeyError, TypeError):
            return None

    def attributions(self, model: str, explainer: str) -> dict[str, Attribution[Any]]:
        """What a method said of a model's answers, by example."""
        found: dict[str, Attribution[Any]] = {}
        for path in self._parts(self.attribution_part(model, explainer, 0)):
            try:
                found |= attributions_in(read_table(path), self.inputs)
            except (ValueError, KeyError, TypeError) as error:
                raise damaged(path, error) from None
        return found

    def scores(self, *, searches: bool = False) -> pa.Table:
        """All scores of what was asked, in long form; those of searches only where wanted."""
        import pyarrow as pa

        parts = [read_table(path, SCORED) for path in self.score_parts(searches=searches)]
        if not parts:
            empty = {name: pa.array([], pa.string()) for name in SCORED}
            return pa.table({**empty, "value": pa.array([], pa.float64())})
        try:
            return pa.concat_tables(parts)
        except pa.ArrowException as error:
            raise RunError(
                f"the scores in {self.folder} are of different kinds ({str(error)[:80]}). Give the "
                "audit command again: it computes damaged parts anew"
            ) from None

    def rows(self, model: str, explainer: str, metric: str) -> dict[str, dict[str, float]]:
        """All quantities of one test of one method by example; of a test of the model, of none."""
        found: dict[str, dict[str, float]] = {}
        for path in self._parts(self.score_part(model, explainer, metric, 0)):
            for example, name, value in scores_in(path):
                found.setdefault(example, {})[name] = value
        return found

    def columns(self, metric: str, model: str) -> dict[str, Column]:
        """All that one test measured of one model, by quantity; of a test of the model itself, with
        one method without a name."""
        about = self.config.metrics.get(metric)
        if about is None:
            return {}
        methods = ("",) if about.of_model else (*self.explainers, *self.config.ceilings)
        rows = {method: self.rows(model, method, metric) for method in methods}
        place, families = self._axes[model]
        if not {*place} >= {example for found in rows.values() for example in found}:
            raise RunError(
                f"{self.folder} holds scores of {self.nouns.many} that {model} did not answer. "
                "Give the audit command again"
            )
        by_name: defaultdict[str, defaultdict[str, FloatArray]] = defaultdict(
            lambda: defaultdict(lambda: np.full(len(place), np.nan))
        )
        for method, found in rows.items():
            for example, row in found.items():
                for name, value in row.items():
                    by_name[name][method][place[example]] = value
        columns = {}
        for name, of_name in by_name.items():
            own = [m for m in of_name if m not in self.config.ceilings]
            searches = [of_name[m] for m in of_name if m in self.config.ceilings]
            if not own:
                continue
            values = np.stack([of_name[m] for m in own], axis=1)
            quantity = about.quantities.get(name, Quantity(""))
            columns[name] = Column(
                model=model,
                metric=metric,
                name=name,
                quantity=quantity,
                purpose=about.purpose,
                methods=own,
                examples=list(place),
                values=values,
                families=families,
                best_found=best_of(quantity, values, searches),
                hidden_how=HIDDEN_HOW.get(about.settings.get("hiding", ""), ""),
                quality=about.quality,
            )
        return columns

    def column(self, metric: str, quantity: str, model: str = "") -> Column:
        """One quantity of a model, which need not be named where there is but one."""
        of = model or self.models[0]
        if (not model and len(self.models) > 1) or of not in self.models:
            raise PluginError(f"no model {model!r} in {self.folder}: {nearest(of, self.models)}")
        if metric not in self.config.metrics:
            raise PluginError(
                f"no test {metric!r} in {self.folder}: {nearest(metric, self.config.metrics)}"
            )
        found = self.columns(metric, of)
        if quantity not in found:
            raise PluginError(f"no quantity {quantity!r} of {metric}: {nearest(quantity, found)}")
        return found[quantity]

    @cached_property
    def _axes(self) -> dict[str, tuple[dict[str, int], list[str]]]:
        """By model: the places of the texts that it answered, and their families."""
        family = self.families()
        found = {}
        for model in self.models:
            parts = self._parts(self.prediction_part(model, 0))
            ids = sorted({e for p in parts for e in read_table(p, ["example"])[0].to_pylist()})
            found[model] = ({e: i for i, e in enumerate(ids)}, [family.get(e, e) for e in ids])
        return found

    def costs(self) -> list[Cost]:
        """Seconds and model questions per model and method."""
        found = []
        for model in self.models:
            for explainer in self.explainers:
                parts = self._parts(self.attribution_part(model, explainer, 0))
                tables = [read_table(path, ["seconds", "questions"]) for path in parts]
                columns = [t.to_pydict() for t in tables]
                texts = sum(t.num_rows for t in tables)
                seconds = float(sum(sum(c["seconds"]) for c in columns))
                questions = float(sum(sum(c["questions"]) for c in columns))
                found.append(Cost(model, explainer, texts, seconds, questions))
        return found

    def summaries(self) -> dict[str, Any]:
        """What `write_summaries` wrote, with labels by name in what is about models; nothing when
        the run has not finished."""
        path = self.folder / SUMMARIES
        with reading(path, remedy="Give the audit command again: it writes it anew"):
            found: dict[str, Any] = read_json(path) if path.exists() else {}
            check_schema(found, {"*": {"*": {"*": {"*": float | int | None}}}})
        for by_method in found.values():
            for metric, figures in by_method.get("", {}).items():
                named = {self._of_label(name): value for name, value in figures.items()}
                by_method[""][metric] = named
        return found

    def _of_label(self, name: str) -> str:
        """`recall_of_2` as `recall_of_sport`: people know labels by name."""
        what, of, number = name.rpartition("_of_")
        known = bool(of) and number.isdecimal() and int(number) < len(self.labels)
        return f"{what}_of_{self.labels[int(number)]}" if known else name


def remarks(run: Run) -> list[str]:
    """What a budget made of a run, in sentences."""
    found = []
    if run.config.plan:
        found.append(f"Chosen: {run.config.plan.sentence}.")
    if run.partial is not None:
        of = f"{run.partial.texts:,} of {run.partial.of:,} {run.nouns.many}"
        found.append(f"Partial: all of this is told by {of}. {run.partial.why}.")
    return found
