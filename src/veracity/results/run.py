"""A run on disk: written part by part, resumed, and read back without torch or the data."""

from __future__ import annotations

import contextlib
import hashlib
import json
import re
import warnings
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ..core.attributions import Attribution, Fragment
from ..core.errors import RunError
from ..core.examples import Dataset, Example
from ..core.files import FolderKind, check_file, read_json, remove_own, written_whole
from ..core.inputs import BoolArray, FloatArray, Text
from ..core.limits import BYTES
from ..core.metrics import Row
from ..core.schema import check_schema

if TYPE_CHECKING:
    import pyarrow as pa

FORMAT = 1
AUDIT = FolderKind("an audit", "run.json")

_PART = r"\d{5}\.parquet"
"""Names of parts: nothing else of a run is ever removed."""

_QUANTITY = {
    "about?": str,
    "better?": str,
    "headline?": bool,
    "share?": bool,
    "bounds?": list | None,
    "searched?": bool,
}
_NAMES = {"*": str}
_FORM = {
    "asked": {
        "dataset": {
            "name": str,
            "fingerprint": str,
            "size": int,
            "labels": [str],
            "truth_kinds?": [str],
        },
        "models": {
            "*": {
                "identity": str,
                "labels?": [str],
                "abilities?": [str],
                "about?": str,
                "answers?": [[float]],
                "unread?": {"*": int},
            }
        },
        "explainers": {
            "*": {
                "settings": dict,
                "baseline?": bool,
                "ceiling?": bool,
                "about?": str,
                "needs?": str,
                "code?": str,
            }
        },
        "metrics": {
            "*": {
                "settings": dict,
                "purpose": str,
                "about?": str,
                "of_model": bool,
                "quality?": str,
                "code?": str,
                "quantities": {"*": _QUANTITY},
            }
        },
        "skipped": [{"model": str, "explainer": str, "why": str}],
        "ceilings?": [str],
        "sources?": _NAMES,
        "command?": str,
        "reliance?": {"*": {"forced": bool, "sentence": str}},
        "train?": {"*": {"name": str, "size": int, "fingerprint": str}},
        "seed": int,
        "batch_size": int,
        "target": str | int,
        "plan?": dict | None,
    },
    "made": {
        "created": str,
        "versions": {"veracity": str, "*": str},
        "resumed?": [{"sentence": str, "versions": dict}],
        "partial?": {"texts": int, "of": int, "why": str, "batches": [int]},
    },
}
_PLAN = {"sentence": str, "budget": int, "texts": int, "questions": int | None, "whole": str}
"""What `run.json` holds: such folders are passed on, and people edit them."""


SCORED = ["dataset", "model", "explainer", "metric", "example", "name", "value"]
"""The columns of a part of scores."""


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
    explainer: str
    examples: int
    seconds: float
    questions: float


@dataclass(frozen=True)
class Run:
    """The folder of one audit. `asked` identifies it; parts fill it."""

    folder: Path
    asked: Mapping[str, Any]
    made: Mapping[str, Any]

    # ---- opening ----------------------------------------------------------------------------

    @classmethod
    def start(
        cls, folder: Path, asked: Mapping[str, Any], data: Dataset, *, redo: Collection[str] = ()
    ) -> Run:
        """A new run, or the one already in this folder if the same was asked of it, without what it
        holds of the methods to be done anew."""
        if (folder / "run.json").exists():
            return cls._resume(folder, asked, data, redo)
        run = cls(folder, asked, {"created": timestamp(), "versions": versions()})
        run._write_examples(data)
        run._write_json()
        return run

    @classmethod
    def _resume(
        cls, folder: Path, asked: Mapping[str, Any], data: Dataset, redo: Collection[str]
    ) -> Run:
        before = cls.open(folder)
        now = json.loads(json.dumps(asked))
        if _chosen_anew(before.asked, now):
            before._check_replacement(now.get("plan"))
            # all that was answered is kept elsewhere: nothing is asked twice
            before._clear()
            return cls.start(folder, asked, data)
        changed = [
            k for k in ("dataset", "seed", "batch_size", "target") if before.asked[k] != now[k]
        ]
        same_texts = before.asked["dataset"] == now["dataset"]
        if not _same_models(before.asked["models"], now["models"], answers=same_texts):
            changed.append("model")
        learnt, learns = before.asked.get("train", {}), now.get("train", {})
        if any(
            learnt[m]["fingerprint"] != learns[m]["fingerprint"] for m in learnt.keys() & learns
        ):
            changed.append("training data")
        for kind in ("explainers", "metrics"):
            changed += [
                f"version of {spec}"
                for spec, about in now[kind].items()
                if spec not in redo
                if about.get("code") != before.asked[kind].get(spec, about).get("code")
            ]
        if changed:
            edited = [c for c in changed if c.removeprefix("version of ") in now["explainers"]]
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
        made = resumed(before.made, folder)
        run = cls(folder, {**asked, "train": {**learnt, **learns}}, made)
        if not is_complete(folder / "examples.parquet", [e.id for e in data]):
            run._write_examples(data)
        run._write_json()
        return run

    def _forget(self, explainer: str) -> None:
        """Removes a method's parts, and nothing else that may lie beside them."""
        for model in self.models:
            attributed = self.attribution_part(model, explainer, 0).parent
            scored = self.score_part(model, explainer, "any", 0).parents[1]
            for folder in (attributed, scored):
                remove_own(folder, _PART)

    @classmethod
    def open(cls, folder: str | Path) -> Run:
        """A run that was written before."""
        path = Path(folder) / "run.json"
        try:
            content = read_json(path)
            if content["format"] != FORMAT:
                raise RunError(
                    f"{path} has format {content['format']!r:.20}; this version reads {FORMAT}. "
                    "Install the version of veracity that wrote it"
                )
            check_schema(content, _FORM)
            if content["asked"].get("plan"):
                check_schema(content["asked"]["plan"], _PLAN, "plan")
            return cls(Path(folder), content["asked"], content["made"])
        except FileNotFoundError:
            raise RunError(
                f"expected a run with a run.json in {folder}; there is none. "
                "Make one with `veracity audit --out FOLDER`"
            ) from None
        except OSError as error:
            raise RunError(f"{path} cannot be read ({error.strerror}). Restore it") from None
        except (ValueError, KeyError, TypeError) as error:
            raise RunError(f"{path} is damaged ({error}). Restore it, or run again") from None

    def _check_replacement(self, plan: Mapping[str, Any] | None) -> None:
        """A finished run is not given up for one that a lower budget makes."""
        old = self.asked["plan"]
        finished = (self.folder / "summaries.json").exists()
        if plan and finished and plan["budget"] < old["budget"]:
            raise RunError(
                f"{self.folder} holds a finished run on {old['texts']:,} texts with a budget of "
                f"{old['budget']:,} questions; one of {plan['budget']:,} holds less "
                f"({plan['texts']:,} texts). Leave the budget as it was, or choose another folder; "
                "nothing was changed"
            )

    def _clear(self) -> None:
        (self.folder / "run.json").unlink()
        for kind in ("predictions", "attributions", "scores", "second_draw"):
            remove_own(self.folder / kind, _PART)
        (self.folder / "summaries.json").unlink(missing_ok=True)

    @property
    def partial(self) -> Mapping[str, Any] | None:
        """Where a budget ended the audit: `texts` of so many (`of`) went through all methods, and
        only these are read; `why` says what to do."""
        found: Mapping[str, Any] | None = self.made.get("partial")
        return found

    def marked(self, partial: Mapping[str, Any] | None) -> Run:
        """This run as partial, or as whole."""
        if partial == self.partial:
            return self
        rest = {k: v for k, v in self.made.items() if k != "partial"}
        run = replace(self, made={**rest, "partial": partial} if partial else rest)
        run._write_json()
        return run

    def _parts(self, first: Path) -> list[Path]:
        """All parts that belong to the same as the first one, without what is not finished."""
        paths = sorted(first.parent.glob("*.parquet"))
        if self.partial is None:
            return paths
        finished = {f"{batch:05d}" for batch in self.partial["batches"]}
        return [path for path in paths if path.stem in finished]

    def _write_json(self) -> None:
        content = {"format": FORMAT, "asked": self.asked, "made": self.made}
        with written_whole(self.folder / "run.json") as file:
            file.write(json.dumps(content, indent=1, ensure_ascii=False).encode())

    # ---- writing ----------------------------------------------------------------------------

    def _part(self, kind: str, *keys: str | int) -> Path:
        *folders, last = [f"{k:05d}" if isinstance(k, int) else slug(k) for k in keys]
        return self.folder.joinpath(kind, *folders, f"{last}.parquet")

    @property
    def second_draw(self) -> Run:
        """Part of the texts, explained with other random numbers by methods that draw."""
        return replace(self, folder=self.folder / "second_draw")

    def prediction_part(self, model: str, batch: int) -> Path:
        return self._part("predictions", model, batch)

    def attribution_part(self, model: str, explainer: str, batch: int) -> Path:
        return self._part("attributions", model, explainer, batch)

    def score_part(self, model: str, explainer: str, metric: str, batch: int) -> Path:
        return self._part("scores", model, explainer, metric, batch)

    def _write_examples(self, data: Dataset) -> None:
        import pyarrow as pa

        write_table(
            self.folder / "examples.parquet",
            {
                "example": [e.id for e in data],
                "text": [_clean(e.input.text) for e in data],
                "starts": [[s for s, _ in e.input.spans] for e in data],
                "ends": [[t for _, t in e.input.spans] for e in data],
                "label": [e.label for e in data],
                "facts": [json.dumps(dict(e.facts)) for e in data],
                "truths": [_places(e.truths) for e in data],
                "partner": pa.array([e.partner for e in data], type=pa.string()),
            },
        )

    def write_predictions(
        self, path: Path, examples: Sequence[Example], probabilities: FloatArray
    ) -> None:
        write_table(path, {"example": [e.id for e in examples], "probabilities": probabilities})

    def write_attributions(
        self,
        path: Path,
        model: str,
        explainer: str,
        found: Sequence[tuple[Example, Attribution]],
        cost: tuple[float, float],
    ) -> None:
        """Seconds and questions are shared out evenly over the batch that they were spent on."""
        import pyarrow as pa

        n = len(found)
        seconds, questions = cost
        piece = [
            ("positions", pa.list_(pa.int64())),
            ("score", pa.float64()),
            ("kind", pa.string()),
        ]
        own = [None if a.fragments is None else list(map(asdict, a.fragments)) for _, a in found]
        write_table(
            path,
            {
                "model": [model] * n,
                "explainer": [explainer] * n,
                "example": [e.id for e, _ in found],
                "target": [a.target for _, a in found],
                "scores": [a.scores for _, a in found],
                "level": [a.level for _, a in found],
                # typed, since parts without a single fragment must have the same columns
                "fragments": pa.array(own, type=pa.list_(pa.struct(piece))),
                "base_value": [float(a.base_value) for _, a in found],
                "output_value": [float(a.output_value) for _, a in found],
                "notes": [json.dumps({k: float(v) for k, v in a.notes.items()}) for _, a in found],
                "seconds": [seconds / n] * n,
                "questions": [questions / n] * n,
            },
        )

    def write_scores(
        self,
        path: Path,
        model: str,
        explainer: str,
        metric: str,
        rows: Sequence[tuple[str, Row]],
    ) -> None:
        """Long form: one line per example and quantity."""
        flat = [(example, name, float(v)) for example, row in rows for name, v in row.items()]
        n = len(flat)
        write_table(
            path,
            {
                "dataset": [str(self.asked["dataset"]["name"])] * n,
                "model": [model] * n,
                "explainer": [explainer] * n,
                "metric": [metric] * n,
                "example": [example for example, _, _ in flat],
                "name": [name for _, name, _ in flat],
                "value": [value for _, _, value in flat],
            },
        )

    def write_summaries(self, summaries: Mapping[str, Any]) -> None:
        """Aggregates that are not means, such as pooled F1: {model: {explainer: {metric: row}}}."""
        with written_whole(self.folder / "summaries.json") as file:
            file.write(json.dumps(summaries, indent=1).encode())

    # ---- reading ----------------------------------------------------------------------------

    @property
    def models(self) -> tuple[str, ...]:
        return tuple(self.asked["models"])

    @property
    def explainers(self) -> tuple[str, ...]:
        return tuple(self.asked["explainers"])

    @property
    def ceilings(self) -> tuple[str, ...]:
        """The searches that show what is possible; older runs hold none."""
        return tuple(self.asked.get("ceilings", ()))

    @property
    def labels(self) -> tuple[str, ...]:
        return tuple(self.asked["dataset"]["labels"])

    def examples(self) -> list[Example]:
        """The examples as they were read; older runs hold neither truth masks nor partners."""
        return [
            Example(
                r["example"],
                Text(r["text"], tuple(zip(r["starts"], r["ends"], strict=True))),
                r["label"],
                truths=_masks(r.get("truths") or "{}", len(r["starts"])),
                partner=r.get("partner"),
                facts=json.loads(r["facts"]),
            )
            for r in read_table(self.folder / "examples.parquet").to_pylist()
        ]

    def families(self) -> dict[str, str]:
        """Each example's original, or itself: what comparisons draw whole. Without the texts."""
        table = read_table(self.folder / "examples.parquet")
        names = table["example"].to_pylist()
        known = "partner" in table.column_names
        partners = table["partner"].to_pylist() if known else [None] * len(names)
        return {name: partner or name for name, partner in zip(names, partners, strict=True)}

    def lengths(self) -> dict[str, tuple[int, int]]:
        """Each example's words and characters."""
        table = read_table(self.folder / "examples.parquet", ["example", "starts", "text"])
        rows = zip(*(table[name].to_pylist() for name in table.column_names), strict=True)
        return {name: (len(starts), len(text)) for name, starts, text in rows}

    def median_words(self) -> float:
        """How many words texts have, half of them fewer."""
        starts = read_table(self.folder / "examples.parquet", ["starts"])["starts"].to_pylist()
        return float(np.median([len(s) for s in starts])) if starts else 0.0

    def gold(self) -> dict[str, int]:
        """Each example's label, without the texts."""
        table = read_table(self.folder / "examples.parquet", ["example", "label"]).to_pydict()
        return dict(zip(table["example"], table["label"], strict=True))

    def model_scores(self, model: str, metric: str, name: str) -> FloatArray:
        """One quantity of a test of the model itself; empty where it was not made."""
        folder = self.score_part(model, "", metric, 0).parent
        found = [
            value
            for path in sorted(folder.glob("*.parquet"))
            for _, value in _named(read_table(path, ["name", "value"]), name)
        ]
        return np.array(found, dtype=np.float64)

    def values(self, model: str, explainer: str, metric: str, name: str) -> dict[str, float]:
        """One quantity of one method by example, where it is defined."""
        found: dict[str, float] = {}
        for path in self._parts(self.score_part(model, explainer, metric, 0)):
            rows = read_table(path, ["example", "name", "value"]).to_pydict()
            for example, quantity, value in zip(*rows.values(), strict=True):
                if quantity == name and not np.isnan(value):
                    found[example] = value
        return found

    def predictions(self, model: str) -> dict[str, FloatArray]:
        """Class probabilities by example, labels in the dataset's order."""
        return {
            r["example"]: np.array(r["probabilities"])
            for path in self._parts(self.prediction_part(model, 0))
            for r in read_table(path).to_pylist()
        }

    def attributions(self, model: str, explainer: str) -> dict[str, dict[str, Any]]:
        """Stored attributions by example, as `read_attributions` gives them."""
        return {
            example: row
            for path in self._parts(self.attribution_part(model, explainer, 0))
            for example, row in read_attributions(path).items()
        }

    def scores(self, *, ceilings: bool = False) -> pa.Table:
        """All scores of what was asked, in long form; those of searches only where wanted."""
        import pyarrow as pa

        firsts = [
            self.score_part(model, explainer, metric, 0)
            for model in self.models
            for explainer in (*self.explainers, *(self.ceilings if ceilings else ()), "")
            for metric in self.asked["metrics"]
        ]
        parts = [read_table(path, SCORED) for first in firsts for path in self._parts(first)]
        relied = self.asked.get("reliance", {}).values()
        if not parts and relied and not any(r["forced"] for r in relied):
            # nothing could be held against the methods, so nothing was scored
            names = ("dataset", "model", "explainer", "metric", "example", "name")
            empty = {name: pa.array([], pa.string()) for name in names}
            return pa.table({**empty, "value": pa.array([], pa.float64())})
        if not parts:
            raise RunError(f"{self.folder} holds no scores yet. Give the audit command again")
        try:
            return pa.concat_tables(parts)
        except pa.ArrowException as error:
            raise RunError(
                f"the scores in {self.folder} are of different kinds ({str(error)[:80]}). Give the "
                "audit command again: it computes damaged parts anew"
            ) from None

    def costs(self) -> list[Cost]:
        """Seconds and model questions per model and method."""
        found = []
        for model in self.models:
            for explainer in self.explainers:
                parts = self._parts(self.attribution_part(model, explainer, 0))
                tables = [read_table(path, ["seconds", "questions"]) for path in parts]
                columns = [t.to_pydict() for t in tables]
                found.append(
                    Cost(
                        model,
                        explainer,
                        sum(t.num_rows for t in tables),
                        float(sum(sum(c["seconds"]) for c in columns)),
                        float(sum(sum(c["questions"]) for c in columns)),
                    )
                )
        return found

    def summaries(self) -> dict[str, Any]:
        """What `write_summaries` wrote, with labels by name in what is about models; nothing when
        the run has not finished."""
        path = self.folder / "summaries.json"
        try:
            found: dict[str, Any] = read_json(path) if path.exists() else {}
            check_schema(found, {"*": {"*": {"*": {"*": float | int | None}}}})
        except (OSError, ValueError) as error:
            raise RunError(
                f"{path} is damaged ({error}). Give the audit command again: it writes it anew"
            ) from None
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


def _named(table: pa.Table, name: str) -> list[tuple[str, float]]:
    columns = table.to_pydict()
    pairs = zip(columns["name"], columns["value"], strict=True)
    return [(n, v) for n, v in pairs if n == name]


def resumed(made: Mapping[str, Any], folder: Path) -> dict[str, Any]:
    """What is known of a run's making, with the versions that go on with it now, if others."""
    before, now = made.get("versions", {}), versions()
    others = [
        f"{name} {before.get(name, '(none)')} (now {now.get(name, 'none')})"
        for name in sorted({*before, *now})
        if before.get(name) != now.get(name)
    ]
    if not others:
        return dict(made)
    sentence = (
        f"{folder} was begun with {', '.join(others)}. What it holds is kept, so figures of both "
        "may stand side by side: to compute all with the same, choose another folder"
    )
    warnings.warn(sentence, stacklevel=2)
    earlier = [r for r in made.get("resumed", []) if r["versions"] != now]
    told = {"at": timestamp(), "versions": now, "sentence": sentence}
    return {**made, "resumed": [*earlier, told]}


def remarks(run: Run) -> list[str]:
    """What a budget made of a run, in sentences."""
    found = []
    if run.asked.get("plan"):
        found.append(f"Chosen: {run.asked['plan']['sentence']}.")
    if run.partial is not None:
        of = f"{run.partial['texts']:,} of {run.partial['of']:,} texts"
        found.append(f"Partial: all of this is told by {of}. {run.partial['why']}.")
    return found


def _chosen_anew(before: Mapping[str, Any], now: Mapping[str, Any]) -> bool:
    """Whether another budget chose other texts or settings of the same data."""
    old, new = before.get("plan"), now.get("plan")
    if not old:
        return False
    given = new["whole"] if new else now["dataset"]["fingerprint"]
    keys = ("texts", "questions", "dropped")
    return bool(old["whole"] == given) and (not new or any(old[key] != new[key] for key in keys))


def _same_models(before: Mapping[str, Any], now: Mapping[str, Any], *, answers: bool) -> bool:
    """The same names, identities and, to rounding, the same answers to the same texts."""
    if before.keys() != now.keys():
        return False
    if not answers:
        return all(before[m]["identity"] == now[m]["identity"] for m in now)
    return all(
        before[m]["identity"] == now[m]["identity"]
        and np.shape(before[m].get("answers", [])) == np.shape(now[m].get("answers", []))
        and np.allclose(before[m].get("answers", []), now[m].get("answers", []), atol=1e-3)
        for m in now
    )


def write_table(path: Path, columns: Mapping[str, Any]) -> None:
    """A Parquet file, whole or not at all."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    arrays = {k: list(v) if isinstance(v, np.ndarray) else v for k, v in columns.items()}
    with written_whole(path) as file:
        pq.write_table(pa.table(arrays), file, compression="zstd", write_page_checksum=True)


_COLUMNS = {
    "predictions": {"example", "probabilities"},
    "attributions": {
        *("model", "explainer", "example", "target", "scores"),
        *("base_value", "output_value", "notes"),
    },
    "scores": {"model", "explainer", "metric", "example", "name", "value"},
}
"""What each kind of part holds at least."""

_EXAMPLES = {"example", "text", "starts", "ends", "label", "facts"}
_DEPTHS = (("predictions", 3), ("attributions", 4), ("scores", 5), ("scores", 4))
"""How many steps above a part the folder of its kind is; scores of a model name no method."""


def _needed(path: Path) -> set[str]:
    """The columns that a part must have where it lies."""
    kinds = (k for k, n in _DEPTHS if len(path.parts) >= n and path.parts[-n] == k)
    kind = next(kinds, None)
    return _EXAMPLES if kind is None else _COLUMNS[kind]


def read_table(path: Path, columns: list[str] | None = None) -> pa.Table:
    """A Parquet part, or a sentence that says which one is damaged."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        BYTES.check(check_file(path), path)
        table = pq.read_table(
            path, columns=columns, partitioning=None, page_checksum_verification=True
        )
        table.validate(full=True)
        seen = set(table.column_names)
        if not seen >= (set(columns) if columns else _needed(path)):
            raise ValueError(f"its columns are {', '.join(sorted(seen))[:80]}")
        return table
    except (pa.ArrowException, OSError, ValueError, KeyError) as error:
        raise RunError(
            f"the part {path} is damaged ({str(error).splitlines()[0]}). Give the audit command "
            "again: it computes damaged and missing parts anew and keeps the rest"
        ) from None


def read_attributions(path: Path) -> dict[str, dict[str, Any]]:
    """One part's attributions by example: target, scores, fragments, level, base_value,
    output_value, notes. Older runs have no fragments."""
    return {
        r["example"]: {
            **r,
            "scores": np.array(r["scores"], dtype=np.float64),
            "level": r.get("level", "word"),
            "fragments": None
            if r.get("fragments") is None
            else tuple(
                Fragment(tuple(f["positions"]), f["score"], f["kind"]) for f in r["fragments"]
            ),
            "notes": json.loads(r["notes"]),
        }
        for r in read_table(path).to_pylist()
    }


def is_complete(path: Path, ids: Collection[str], **belongs: str) -> bool:
    """Whether a part exists, can be read and is about these examples (scores may be about fewer)
    and this model, explainer or metric; any other is removed, to be made again."""
    if not path.exists():
        return False
    try:
        columns = read_table(path).to_pydict()
        right = {*columns["example"]} <= {*ids} if "value" in columns else columns["example"] == ids
        right &= all({*columns[key]} <= {name} for key, name in belongs.items())
    except (RunError, KeyError, ValueError):
        right = False
    if not right:
        try:
            path.unlink()
        except OSError as error:
            raise RunError(
                f"{path} is no part of a run and cannot be removed ({error.strerror}). Move it away"
            ) from None
    return right


def versions() -> dict[str, str]:
    """What the numbers were made with."""
    import platform
    from importlib import metadata

    found = {"python": platform.python_version()}
    for name in ("veracity", "numpy", "scipy", "torch", "transformers", "scikit-learn", "pyarrow"):
        with contextlib.suppress(metadata.PackageNotFoundError):
            found[name] = metadata.version(name)
    return found


def _places(truths: Mapping[str, tuple[BoolArray, ...]]) -> str:
    """Truth masks as the places that they mark."""
    return json.dumps(
        {k: [np.flatnonzero(mask).tolist() for mask in masks] for k, masks in truths.items()}
    )


def _masks(places: str, n: int) -> dict[str, tuple[BoolArray, ...]]:
    return {
        kind: tuple(np.isin(np.arange(n), marked) for marked in sets)
        for kind, sets in json.loads(places).items()
    }


def timestamp() -> str:
    """The time as records keep it."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def _clean(text: str) -> str:
    """Lone surrogates cannot be stored as UTF-8; one character stays one character."""
    return text.encode("utf-8", "replace").decode() if not _encodable(text) else text


def _encodable(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
