"""Where examples come from: files, packaged corpora, made ones."""

from __future__ import annotations

import re
import warnings
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from ..core.counts import counted
from ..core.errors import DataError
from ..core.examples import Dataset, Example
from ..core.images import Image
from ..core.inputs import Text
from ..core.plugins import nearest, parse_spec
from .corpora import corpora
from .corpus import Photographs
from .documents import read_source
from .format import write_rows
from .formats import PLAIN, as_records, formats
from .in_memory import table_of
from .pictures import PictureReader, Size, resized
from .readers import PICTURE_COLUMNS, Columns, RawRow, RawTable
from .records import Fault, Records, read_records, write_records
from .splits import PARTS, Splits, content, given_parts, leaked, sampled
from .words import is_chinese

SHOWN_FAULTS = 3
SHOWN_SIZES = 10
DEFAULT_COLUMNS = Columns()

Source: TypeAlias = str | Path | Dataset[Any] | Iterable[Any]
"""A file, a folder, a corpus, or what a program holds: texts, pictures, records, a pandas
DataFrame, a Dataset of the datasets library."""

ColumnNames: TypeAlias = Columns | Mapping[str, str] | str
"""`Columns(text="review")`, `{"text": "review"}` or `"text=review"`."""


def load_data(
    source: Source,
    *,
    columns: ColumnNames = DEFAULT_COLUMNS,
    labels: Sequence[str] | None = None,
    language: str = "auto",
    max_words: int = 5000,
    skip_bad: bool = False,
    seed: int = 0,
    layout: str = "auto",
    limit: int | None = None,
    size: str | int | None = None,
    segments: str | None = None,
    masks: str | Path | None = None,
) -> Dataset[Any]:
    """Examples from a file, a folder, a corpus such as `made_reviews(n=500)`, a list of texts, of
    pictures or of records, a DataFrame, a dataset of the datasets library, or as they are; at most
    `limit`, drawn by `seed` with the labels in proportion. Pictures are brought to a `size`, such
    as 64 or "96x64", cut into `segments`, such as "slic(n=50)" (by default as they are cut; by a
    grid, where nobody has cut them), and get the truth masks that lie in the folder `masks` as the
    pictures do in theirs."""
    reading = _Reading(
        columns=Columns.of(columns),
        labels=labels,
        language=language,
        max_words=max_words,
        seed=seed,
        layout=layout,
        size=None if size is None or size == "" else Size.of(size),
        segments=segments or None,
        masks=Path(masks) if masks else None,
    )
    found = _read(source, reading)
    of_file = isinstance(source, str | Path)
    name = source if of_file else found.dataset.name
    where = "" if of_file else " (a line is a row, counted from 1)"
    all_of_them = (
        f"veracity data validate {name}" if of_file else "veracity.data.loading.validate(…)"
    )
    errors = [fault for fault in found.faults if fault.severity == "error"]
    bad = len({fault.line for fault in errors})
    if errors and not skip_bad:
        what = "files" if errors[0].file else "rows"
        shown = "\n".join(f"  {fault}" for fault in errors[:SHOWN_FAULTS])
        raise DataError(
            f"{name}: {bad} of {found.rows} {what} are faulty{where}, first:"
            f"\n{shown}\nSee them all with: {all_of_them}\n"
            "or leave them out with --skip-bad (skip_bad=True)"
        )
    if not len(found.dataset):
        raise DataError(f"{name}: expected at least one usable row, got none")
    left_out = [_left_out(bad, "faulty", errors[0])] if errors else []
    if others := found.left_out:
        left_out.append(_left_out(len(others), "other", others[0]))
    if left_out:
        message = f"{name}: {'; '.join(left_out)}. See them all with: {all_of_them}"
        warnings.warn(message, stacklevel=2)
    return sampled(found.dataset, limit, seed=seed)


def _left_out(n: int, kind: str, first: Fault) -> str:
    what = counted(n, f"{kind} {'file' if first.file else 'row'}")
    return f"{what} {'is' if n == 1 else 'are'} left out, first: {first}"


def validate(
    source: Source,
    *,
    columns: ColumnNames = DEFAULT_COLUMNS,
    labels: Sequence[str] | None = None,
    language: str = "auto",
    max_words: int = 5000,
    skip_bad: bool = False,
    seed: int = 0,
    layout: str = "auto",
    size: str | int | None = None,
    segments: str | None = None,
    masks: str | Path | None = None,
) -> tuple[Dataset[Any] | None, list[Fault]]:
    """Every fault with its line, and the dataset as `load_data` would give it, if it would."""
    reading = _Reading(
        columns=Columns.of(columns),
        labels=labels,
        language=language,
        max_words=max_words,
        seed=seed,
        layout=layout,
        size=None if size is None or size == "" else Size.of(size),
        segments=segments or None,
        masks=Path(masks) if masks else None,
    )
    found = _read(source, reading)
    faults = [*found.faults, *_leak_warnings(found), *_language_warnings(found)]
    blocked = not skip_bad and any(fault.severity == "error" for fault in faults)
    usable = len(found.dataset) > 0 and not blocked
    return (found.dataset if usable else None), sorted(faults, key=lambda fault: fault.line)


def write_data(
    dataset: Dataset, path: str | Path, *, layout: str = "records", lossy: bool = False
) -> dict[str, int]:
    """A dataset as JSON lines: our own records, which hold all of it, or another layout, which must
    say the same when it is read again. Gives what is lost all the same, and on how many rows."""
    if layout == "records":
        write_records(dataset, path)
        return {}
    rows = list(formats.make(layout).rows(dataset))
    lost = _lost(dataset, rows, layout)
    if lost and not lossy:
        losses = ", ".join(f"{what} ({count} rows)" for what, count in lost.items())
        raise DataError(
            f"{dataset.name}: {layout} cannot hold {losses}. Write records (--to records), which "
            "hold everything, or leave it out with --lossy (lossy=True)"
        )
    write_rows(rows, path)
    return lost


def _lost(dataset: Dataset, rows: list[dict[str, Any]], layout: str) -> dict[str, int]:
    """What differs once the rows are read again, and on how many; what is new is no loss."""
    table = RawTable.of(RawRow(i, row) for i, row in enumerate(rows, 1))
    longest = max((e.input.n_features for e in dataset), default=0)
    again = read_records(
        as_records(table, layout, dataset.name), DEFAULT_COLUMNS, name="", max_words=longest
    )
    for fault in again.faults:
        if fault.severity == "error":
            raise DataError(
                f"{dataset.name}: {layout} could not be read again, {fault}. Write records"
            )
    known = {e.id: _content(e, again.dataset.labels) for e in again.dataset}
    lost: Counter[str] = Counter()
    for e in dataset:
        lost.update(k for k, v in _content(e, dataset.labels).items() if known[e.id].get(k) != v)
    return dict(lost)


def _content(example: Example, labels: tuple[str, ...]) -> dict[str, Any]:
    """All that is known of an example, by the names that people use."""
    text = example.input
    return {
        "words": text.words,
        "what stands between words": (text.text, text.spans),
        "label": labels[example.label],
        "the order of labels": labels,
        **({"pairs": example.partner} if example.partner is not None else {}),
        **{k: [m.tolist() for m in masks] for k, masks in example.truths.items()},
        **example.facts,
    }


def describe(dataset: Dataset[Any]) -> dict[str, Any]:
    """What a reader wants to know before trusting a dataset (definitions 7.2)."""
    inputs = [example.input for example in dataset]
    of_texts = dataset.kind == Text.kind
    contents = Counter(map(content, inputs))
    about = {
        "truths": {kind: _truth_facts(dataset, kind) for kind in dataset.truth_kinds},
        "facts": _fact_counts(dataset),
        f"duplicate_{'texts' if of_texts else 'pictures'}": contents.total() - len(contents),
        "leaks": len(leaked(_given(dataset))),
    }
    if of_texts:
        languages = ("zh" if is_chinese(one.text) else "other" for one in inputs)
        about["languages"] = dict(Counter(languages))
    return {
        "name": dataset.name,
        "examples": len(dataset),
        "labels": list(dataset.labels),
        "balance": dataset.balance,
        **(_lengths(inputs) if of_texts else _sizes(inputs)),
        **about,
        "pairs": sum(example.partner is not None for example in dataset),
        "fingerprint": dataset.fingerprint(),
    }


def _lengths(inputs: Sequence[Text]) -> dict[str, Any]:
    lengths = np.array([one.n_features for one in inputs] or [0])
    quantiles = np.quantile(lengths, (0.25, 0.5, 0.75, 0.95))
    words = {
        "min": int(lengths.min()),
        "mean": float(lengths.mean()),
        "max": int(lengths.max()),
        "quantiles": dict(zip(("25%", "50%", "75%", "95%"), quantiles.tolist(), strict=True)),
    }
    return {"words": words}


def _sizes(inputs: Sequence[Image]) -> dict[str, Any]:
    """Width and height of pictures, the most frequent first, and how they are cut."""
    sizes = Counter(f"{width}×{height}" for height, width in (one.shape for one in inputs))
    shown = dict(sizes.most_common(SHOWN_SIZES))
    if others := len(sizes) - len(shown):
        shown[f"{others} others"] = sizes.total() - sum(shown.values())
    return {
        "sizes": shown,
        "segments": dict(Counter(one.segmentation for one in inputs)),
    }


@dataclass(frozen=True, kw_only=True)
class _Reading:
    """How a source is read."""

    columns: Columns
    labels: Sequence[str] | None
    language: str
    max_words: int
    seed: int
    layout: str
    size: Size | None
    segments: str | None
    masks: Path | None

    def check_texts(self, where: str) -> None:
        """Nobody is left to think that something was done to texts that is done to pictures."""
        given = {"size": self.size, "masks": self.masks, "segments": self.segments}
        if named := [name for name, value in given.items() if value is not None]:
            options = " and ".join(f"--{name} ({name}=…)" for name in named)
            raise DataError(
                f"{where} holds texts, but {options} {'is' if len(named) == 1 else 'are'} for "
                "pictures. Leave it out, or name the column of pictures: --columns picture=…"
            )


def _read(source: Source, reading: _Reading) -> Records:
    columns, labels, folder = reading.columns, reading.labels, Path()
    if isinstance(source, str | Path) and Path(source).exists():
        path = Path(source)
        table, where = read_source(path, reading.masks), str(path)
        folder = path if path.is_dir() else path.parent
        name = re.sub(r"\.gz$", "", path.resolve().name, flags=re.IGNORECASE).rsplit(".", 1)[0]
    elif isinstance(source, str | Path | Dataset):
        dataset = source if isinstance(source, Dataset) else _corpus(str(source), reading)
        if labels is not None and tuple(labels) != dataset.labels:
            raise DataError(
                f"{dataset.name} has the labels {', '.join(dataset.labels)}; got "
                f"{', '.join(labels)}: leave labels out, they are for files"
            )
        return Records(_as_asked(dataset, reading), {}, ())
    else:
        table, name = table_of(source, {columns.picture, columns.mask, *PICTURE_COLUMNS})
        where = f"the {name}"
        if name in ("texts", "pictures"):
            columns = _alone(columns, labels, name)
    if not table.rows:
        raise DataError(f"{where} holds no rows: expected at least one")
    pictures: PictureReader | None = None
    if (named := columns.of_pictures(table.columns)) is not None:
        columns = named
        pictures = PictureReader(folder, reading.size, reading.segments)
        if reading.layout not in PLAIN:
            raise DataError(f"{where} holds pictures: expected --layout (layout=…) with texts only")
    else:
        reading.check_texts(where)
        if columns == DEFAULT_COLUMNS:
            table = as_records(table, reading.layout, where)
    if columns != DEFAULT_COLUMNS and reading.layout not in PLAIN:
        raise DataError(
            f"{where}: expected --columns or --layout, not both: {reading.layout} names its columns"
        )
    if table.columns or not all(row.fault for row in table.rows):
        columns.check(table.columns, where, pictures=pictures is not None)
    return read_records(
        table,
        columns,
        name=name,
        labels=labels,
        language=reading.language,
        max_words=reading.max_words,
        pictures=pictures,
    )


def _as_asked(dataset: Dataset[Any], reading: _Reading) -> Dataset[Any]:
    """Examples that are there already, their pictures as they are asked for."""
    if dataset.kind != Image.kind:
        reading.check_texts(dataset.name)
        return dataset
    if reading.masks is not None:
        raise DataError(
            f"{dataset.name}: expected --masks (masks=…) with a folder of pictures only"
        )
    return resized(dataset, reading.size, reading.segments)


def _alone(columns: Columns, labels: Sequence[str] | None, what: str) -> Columns:
    """Texts alone are unlabelled; names of labels beside them are most likely meant as labels."""
    if labels is not None:
        one = what.removesuffix("s")
        raise DataError(
            "expected labels with records only: they are names in the order of numbers, and "
            f"{what} have no number. To give each {one} its label, give records such as "
            f"{{'{one}': …, 'label': …}}"
        )
    return replace(columns, label="")


def _corpus(spec: str, reading: _Reading) -> Dataset[Any]:
    if not re.fullmatch(r"\s*\w+\s*(\(.*\))?\s*", spec, flags=re.DOTALL):
        raise DataError(f"there is no file {spec!r}: expected a path or the name of a corpus")
    name, values = parse_spec(spec)
    if name not in corpora.names():
        raise DataError(
            f"there is no file and no corpus called {name!r}: {nearest(name, corpora.names())}"
        )
    corpus: Any = corpora.make(spec)
    if hasattr(corpus, "seed") and "seed" not in values:
        corpus = replace(corpus, seed=reading.seed)
    if reading.size is not None and isinstance(corpus, Photographs) and "size" not in values:
        corpus = replace(corpus, size=str(reading.size))  # not first all of them as they are
    dataset: Dataset[Any] = corpus.load()
    return dataset


def _given(dataset: Dataset) -> Splits:
    parts = given_parts(dataset)
    return Splits(*(dataset.select(parts.get(part, ())) for part in PARTS))


def _leak_warnings(found: Records) -> Iterator[Fault]:
    """An input in two parts of a dataset that is split already; each of its lines is named."""
    several = leaked(_given(found.dataset))
    for example in found.dataset:
        if content(example.input) in several:
            what = example.input.nouns.one
            message = f"the {what} of {example.id!r} stands in more than one split"
            yield found.fault(example.id, message)


def _language_warnings(found: Records) -> Iterator[Fault]:
    """Texts of two languages in one file, told once: where the fewer begin. Twins are told apart
    from their originals already."""
    alone = [e for e in found.dataset if e.partner is None and isinstance(e.input, Text)]
    chinese = [e for e in alone if is_chinese(e.input.text)]
    others = [e for e in alone if not is_chinese(e.input.text)]
    if not chinese or not others:
        return
    fewer = min(chinese, others, key=len)
    message = (
        f"two languages in one file: {len(chinese)} texts hold Chinese, {len(others)} do not; the "
        "fewer begin here. Words are told apart text by text, unless --language says how"
    )
    yield found.fault(fewer[0].id, message)


def _truth_facts(dataset: Dataset[Any], kind: str) -> dict[str, float]:
    """How much one kind of truth marks; shares are averaged over sets, as in definitions 7.2."""
    carriers = [example.truths[kind] for example in dataset if kind in example.truths]
    shares = [float(mask.mean()) for masks in carriers for mask in masks]
    return {
        "examples": len(carriers),
        "mean_share": float(np.mean(shares)),
        "mean_sets": len(shares) / len(carriers),
    }


def _fact_counts(dataset: Dataset) -> dict[str, dict[str, int]]:
    """Counts per type; facts with many values or lists in them would only fill the page."""
    counts: dict[str, Counter[str]] = {}
    for example in dataset:
        for key, value in example.facts.items():
            counts.setdefault(key, Counter())[value] += 1
    return {
        key: dict(sorted(c.items()))
        for key, c in sorted(counts.items())
        if len(c) <= 20 and not any(value.startswith("[") for value in c)
    }
