"""The tables of a run as Parquet: written whole, checked when read, numbers as arrays."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ..core.attributions import Attribution, Fragment
from ..core.errors import RunError
from ..core.examples import Dataset, Example
from ..core.files import check_file, written_whole
from ..core.inputs import BoolArray, FloatArray, Input, input_kind
from ..core.limits import BYTES

if TYPE_CHECKING:
    import pyarrow as pa

PART_NAME = r"\d{5}\.parquet"
"""Names of parts: nothing else of a run is ever removed."""

SCORED = ["dataset", "model", "explainer", "metric", "example", "name", "value"]
"""The columns of a part of scores."""

_COLUMNS = {
    "predictions": {"example", "probabilities"},
    "attributions": {
        *("model", "explainer", "example", "target", "scores"),
        *("base_value", "output_value", "notes"),
    },
    "scores": {"model", "explainer", "metric", "example", "name", "value"},
}
"""What each kind of part holds at least."""

_EXAMPLES = {"example", "label", "facts"}
_DEPTHS = (("predictions", 3), ("attributions", 4), ("scores", 5), ("scores", 4))
"""How many steps above a part the folder of its kind is; scores of a model name no method."""


# ---- any table --------------------------------------------------------------------------------


def write_table(path: Path, columns: Mapping[str, Any]) -> None:
    """A Parquet file, whole or not at all."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    with written_whole(path) as file:
        pq.write_table(pa.table(dict(columns)), file, compression="zstd", write_page_checksum=True)


def read_table(path: Path, columns: list[str] | None = None) -> pa.Table:
    """A Parquet part, or a sentence that says which one is damaged."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        BYTES.check(check_file(path), path)
        # one small file, without pandas, which reading many at once imports
        with pq.ParquetFile(path, page_checksum_verification=True) as file:
            table = file.read(columns, use_threads=False)
        table.validate(full=True)
        seen = set(table.column_names)
        if not seen >= (set(columns) if columns else _needed(path)):
            raise ValueError(f"its columns are {', '.join(sorted(seen))[:80]}")
        return table.select(columns) if columns else table
    except (pa.ArrowException, OSError, ValueError, KeyError) as error:
        raise damaged(path, error) from None


def _needed(path: Path) -> set[str]:
    """The columns that a part must have where it lies."""
    kinds = (k for k, n in _DEPTHS if len(path.parts) >= n and path.parts[-n] == k)
    kind = next(kinds, None)
    return _EXAMPLES if kind is None else _COLUMNS[kind]


def damaged(path: Path, error: Exception) -> RunError:
    return RunError(
        f"the part {path} is damaged ({str(error).splitlines()[0]}). Give the audit command "
        "again: it computes damaged and missing parts anew and keeps the rest"
    )


def complete_part(path: Path, ids: Sequence[str], **belongs: str) -> pa.Table | None:
    """A part that can be read and is about these examples (scores may be about fewer) and this
    model, explainer or metric; None where there is none."""
    if not path.exists():
        return None
    try:
        table = read_table(path)
        seen = table["example"].to_pylist()
        right = {*seen} <= {*ids} if "value" in table.column_names else seen == list(ids)
        if right and all(table[k].unique().to_pylist() in ([], [v]) for k, v in belongs.items()):
            return table
    except (RunError, KeyError, ValueError):
        pass
    return None


def discard_part(path: Path) -> None:
    """Removes a part that is to be made again: until it is, nothing must read the old one."""
    if not path.exists():
        return
    try:
        path.unlink()
    except OSError as error:
        raise RunError(
            f"{path} is no part of a run and cannot be removed ({error.strerror}). Move it away"
        ) from None


def number_lists(rows: Sequence[FloatArray]) -> pa.Array:
    """Rows of numbers as one array; of 32 bits where these hold all of it."""
    import pyarrow as pa

    values = np.concatenate([*rows, np.zeros(0)])
    with np.errstate(over="ignore"):
        short = values.astype(np.float32)
    ends = np.cumsum([0, *map(len, rows)], dtype=np.int32)
    kept = short if np.array_equal(short, values, equal_nan=True) else values
    return pa.ListArray.from_arrays(pa.array(ends), pa.array(kept))


def rounded(scores: FloatArray) -> FloatArray:
    """Scores to what 32 bits hold, unless all are too large or too small for that."""
    largest = np.abs(scores).max(initial=0.0)
    return scores.astype(np.float32).astype(np.float64) if 1e-30 < largest < 1e38 else scores


def rows_of(column: pa.ChunkedArray) -> list[FloatArray]:
    """The same read back."""
    found: list[FloatArray] = []
    for chunk in column.chunks:
        if chunk.null_count or chunk.values.null_count:
            raise ValueError("a row of numbers is not there")
        values = chunk.values.to_numpy().astype(np.float64)
        ends = chunk.offsets.to_numpy()
        found += (values[start:end] for start, end in pairwise(ends))
    return found


# ---- examples ---------------------------------------------------------------------------------


def example_columns(data: Dataset[Any]) -> dict[str, Any]:
    """Examples with all that is known of them, truth masks as bits."""
    import pyarrow as pa

    inputs = [e.input.to_row() for e in data]
    mask = [("kind", pa.string()), ("length", pa.int64()), ("masks", pa.list_(pa.binary()))]
    return {
        "example": [e.id for e in data],
        **{name: [row[name] for row in inputs] for name in inputs[0]},
        "label": [e.label for e in data],
        "facts": [json.dumps(dict(e.facts)) for e in data],
        "truths": pa.array(
            [
                [
                    {
                        "kind": kind,
                        "length": e.input.n_features,
                        "masks": [np.packbits(mask).tobytes() for mask in masks],
                    }
                    for kind, masks in e.truths.items()
                ]
                for e in data
            ],
            type=pa.list_(pa.struct(mask)),
        ),
        "partner": pa.array([e.partner for e in data], type=pa.string()),
    }


def examples_in(table: pa.Table, kind: str) -> list[Example[Any]]:
    """Examples as they were written; older runs hold neither truth masks nor partners."""
    return [
        Example(
            r["example"],
            one,
            r["label"],
            truths=_masks(r.get("truths") or [], one.n_features),
            partner=r.get("partner"),
            facts=json.loads(r["facts"]),
        )
        for r in table.to_pylist()
        for one in [input_kind(kind).from_row(r)]
    ]


def _masks(kept: str | list[Mapping[str, Any]], n: int) -> dict[str, tuple[BoolArray, ...]]:
    """Truth masks from bits, or from the places that format 1 lists."""
    if isinstance(kept, str):
        return {
            kind: tuple(np.isin(np.arange(n), places) for places in sets)
            for kind, sets in json.loads(kept).items()
        }
    return {
        one["kind"]: tuple(
            np.unpackbits(np.frombuffer(bits, np.uint8), count=one["length"]).astype(np.bool_)
            for bits in one["masks"]
        )
        for one in kept
    }


# ---- attributions -----------------------------------------------------------------------------


def attribution_columns(
    found: Sequence[tuple[Example[Any], Attribution[Any]]],
    *,
    seconds: float,
    questions: float,
    **own: str,
) -> dict[str, Any]:
    """Seconds and questions are shared out evenly over the batch that they were spent on."""
    import pyarrow as pa

    n = len(found)
    piece = [("positions", pa.list_(pa.int64())), ("score", pa.float64()), ("kind", pa.string())]
    pieces = [None if a.fragments is None else list(map(asdict, a.fragments)) for _, a in found]
    return {
        **{name: [value] * n for name, value in own.items()},
        "example": [e.id for e, _ in found],
        "target": [a.target for _, a in found],
        "scores": number_lists([a.scores for _, a in found]),
        "level": [a.level for _, a in found],
        # typed, since parts without a single fragment must have the same columns
        "fragments": pa.array(pieces, type=pa.list_(pa.struct(piece))),
        "base_value": [float(a.base_value) for _, a in found],
        "output_value": [float(a.output_value) for _, a in found],
        "notes": [json.dumps({k: float(v) for k, v in a.notes.items()}) for _, a in found],
        "seconds": [seconds / n] * n,
        "questions": [questions / n] * n,
    }


def attributions_in(table: pa.Table, inputs: Mapping[str, Input]) -> dict[str, Attribution[Any]]:
    """One part's attributions by example. Older runs have neither levels nor fragments."""
    rest = table.drop_columns(["scores"]).to_pylist()
    return {
        r["example"]: Attribution(
            inputs[r["example"]],
            r["target"],
            scores,
            fragments=_fragments(r.get("fragments")),
            level=r.get("level", "word"),
            base_value=r["base_value"],
            output_value=r["output_value"],
            method=r["explainer"],
            notes=json.loads(r["notes"]),
        )
        for r, scores in zip(rest, rows_of(table["scores"]), strict=True)
    }


def _fragments(kept: Iterable[Mapping[str, Any]] | None) -> tuple[Fragment, ...] | None:
    if kept is None:
        return None
    return tuple(Fragment(tuple(f["positions"]), f["score"], f["kind"]) for f in kept)


# ---- predictions and scores -------------------------------------------------------------------


def predictions_in(table: pa.Table) -> dict[str, FloatArray]:
    """One part's class probabilities by example."""
    return dict(zip(table["example"].to_pylist(), rows_of(table["probabilities"]), strict=True))


def scores_in(path: Path) -> Iterable[tuple[str, str, float]]:
    """One part's values by example and quantity."""
    import pyarrow as pa

    table = read_table(path, ["example", "name", "value"])
    try:
        values = table["value"].cast(pa.float64()).to_numpy().tolist()
    except pa.ArrowException as error:
        raise damaged(path, error) from None
    return zip(table["example"].to_pylist(), table["name"].to_pylist(), values, strict=True)
