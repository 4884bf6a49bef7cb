"""Rows of what a program holds: texts, records, a DataFrame, a dataset of the datasets library."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping
from typing import Any

from ..core.errors import DataError
from .pictures import is_picture
from .readers import RawRow, RawTable, arrow_rows

EXPECTED = (
    "expected a path, the name of a corpus, a pandas DataFrame, a list of texts or pictures, a "
    "list of records such as {'text': …, 'label': …}, or a Dataset of the datasets library"
)


def table_of(source: Any, pictures: Collection[str] = ()) -> tuple[RawTable, str]:
    """The rows, counted from 1, and a name for what they came in; what stands in the columns of
    pictures is left as it is."""
    if _is_of(source, "pandas", "DataFrame"):
        return _frame(source, pictures), "dataframe"
    if _is_of(source, "datasets", "Dataset"):
        return _parts({None: source}), str(getattr(source.info, "dataset_name", "") or "dataset")
    if _is_of(source, "datasets", "DatasetDict"):
        return _parts(dict(source)), "dataset"
    if isinstance(source, Mapping) or not isinstance(source, Iterable):
        raise DataError(f"{EXPECTED}; got {type(source).__name__}")
    items = list(source)
    if not items:
        raise DataError(f"{EXPECTED}; got an empty {type(source).__name__}")
    if all(isinstance(item, str) for item in items):
        return _records({"text": text} for text in items), "texts"
    if all(map(is_picture, items)):
        return _records(({"picture": one} for one in items), {"picture"}), "pictures"
    if not all(isinstance(item, Mapping) for item in items):
        kinds = sorted({type(item).__name__ for item in items})
        raise DataError(f"{EXPECTED}; got a list of {' and '.join(kinds)}")
    return _records(items, pictures), "records"


def _is_of(source: Any, package: str, name: str) -> bool:
    """Told without importing the package: who holds such an object has."""
    return any(
        c.__name__ == name and c.__module__.split(".")[0] == package for c in type(source).__mro__
    )


def _frame(frame: Any, pictures: Collection[str]) -> RawTable:
    names = [str(name) for name in frame.columns]
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise DataError(f"expected every column to have its own name; twice: {', '.join(twice)}")
    rows = frame.itertuples(False, None)
    return _records((dict(zip(names, row, strict=True)) for row in rows), pictures)


def _records(records: Iterable[Mapping[Any, Any]], pictures: Collection[str] = ()) -> RawTable:
    return RawTable.of(
        RawRow(i, {str(k): v if k in pictures else _plain(v) for k, v in record.items()})
        for i, record in enumerate(records, 1)
    )


def _parts(parts: Mapping[Any, Any]) -> RawTable:
    """Parts by name; a part by itself may know what it is part of."""
    columns: dict[str, None] = {}
    rows: list[RawRow] = []
    for name, part in parts.items():
        split = name or (str(part.split) if part.split else None)
        columns |= dict.fromkeys([*part.column_names, *(["split"] if split else [])])
        rows += arrow_rows(
            part.with_format("arrow")[:], part.features.to_dict(), split, before=len(rows)
        )
    return RawTable(tuple(columns), tuple(rows))


def _plain(value: Any) -> Any:
    """Numbers and lists of Python in place of other libraries'; what is missing is None."""
    if hasattr(value, "tolist"):  # arrays and single numbers of numpy
        value = value.tolist()
    if isinstance(value, Mapping):
        return {str(k): _plain(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(v) for v in value]
    missing = isinstance(value, float) and math.isnan(value)
    return None if missing or type(value).__name__ in ("NAType", "NaTType") else value
