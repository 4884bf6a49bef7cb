"""Rows into examples and back, in the record schema of definitions 7.1; what is wrong keeps its
line."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np

from ..core.errors import DataError
from ..core.examples import UNLABELLED, Dataset, Example
from ..core.images import Image
from ..core.inputs import BoolArray, Text
from .fields import (
    FACTS,
    UNWRITABLE,
    as_number,
    facts_field,
    id_field,
    label_field,
    noted,
    rationales_field,
    rel_ids_field,
    text_field,
    truths_field,
    unwritable,
)
from .format import write_rows
from .pictures import PictureReader
from .readers import Columns, RawTable
from .words import is_chinese, text_of_tokens

KEEPS_LABEL = ("idr", "lf")


@dataclass(frozen=True)
class Fault:
    """What is wrong with one row; warnings never keep it out."""

    line: int
    message: str
    severity: Literal["error", "warning"] = "error"
    file: str = ""
    """The file that the row is, where each is one."""

    @property
    def place(self) -> str:
        """Where people look for it."""
        return self.file or f"line {self.line}"

    def __str__(self) -> str:
        return f"{self.place}: {self.message}"


@dataclass(frozen=True)
class Records:
    """The usable examples, the lines they came from, and all faults in the order of lines."""

    dataset: Dataset[Any]
    lines: Mapping[str, int]
    faults: tuple[Fault, ...]
    rows: int = 0
    left_out: tuple[Fault, ...] = ()
    """Rows that are missing for no error of their own, and why."""
    files: Mapping[int, str] = field(default_factory=dict)
    """The files that lines stand for, where each is one."""

    def fault(self, name: str, message: str) -> Fault:
        """A warning where an example stands."""
        line = self.lines.get(name, 0)
        return Fault(line, message, "warning", self.files.get(line, ""))


@dataclass(frozen=True)
class _Draft:
    """A sound row whose label has no number and whose twin no name yet."""

    line: int
    example: Example[Any]
    label: str
    rel_ids: tuple[str, ...]

    @property
    def input(self) -> Text | Image:
        found: Text | Image = self.example.input
        return found


def read_records(
    table: RawTable,
    columns: Columns,
    *,
    name: str,
    labels: Sequence[str] | None = None,
    language: str = "auto",
    max_words: int = 5000,
    pictures: PictureReader | None = None,
) -> Records:
    """Every sound row as an example, every unsound one as a fault; of pictures, where it is told
    how these are read."""
    names, indexed = _label_names(table, columns, labels)
    drafts: list[_Draft] = []
    faults: list[Fault] = []
    left_out: list[Fault] = []
    first_line: dict[str, int] = {}
    claimed: set[str] = set()
    fields = asdict(columns).items()
    if pictures is not None:
        given = (row.values.get(columns.picture) for row in table.rows if not row.fault)
        pictures.check_together(given)
    for number, row in enumerate(table.rows, 1):
        values = {field: row.values.get(column) if column else None for field, column in fields}
        wrong: list[str] = []
        # a faulty row without a name must not take that of another
        if not row.fault or values["id"] not in (None, ""):
            with noted(wrong):
                values["id"] = _new_id(values["id"], row.line, number, first_line)
        if row.fault:
            fault = Fault(row.line, row.fault, row.severity)
            (faults if row.severity == "error" else left_out).append(fault)
        else:
            if not columns.label:
                values["label"] = UNLABELLED
            draft = _draft(
                row.line,
                values,
                names=names,
                indexed=indexed,
                language=language,
                max_words=max_words,
                pictures=pictures,
                wrong=wrong,
            )
            faults += [Fault(row.line, message) for message in wrong]
            if draft is not None:
                drafts.append(draft)
                read = draft.input.text if isinstance(draft.input, Text) else ""
                if values["text"] and values["tokens"] and values["text"] != read and read:
                    message = "the text does not hold the tokens in this order: the tokens are read"
                    faults.append(Fault(row.line, message, "warning"))
        if (row.fault or wrong) and values["sample_type"] != "adv":
            with suppress(ValueError):
                claimed |= set(rel_ids_field(values["rel_ids"]))
    used = _in_order({draft.label for draft in drafts})
    label_names = names or used
    # rows that number their labels keep their order under any names
    own = () if indexed or labels is None else _written_names(table, columns) or used
    faults += [*left_out, *_label_warnings(drafts), *_pair_faults(drafts, set(first_line), claimed)]
    unmarked = [draft.line for draft in drafts if "rationale" not in draft.example.truths]
    if 0 < len(unmarked) < len(drafts):
        # told once: patterns make many such twins
        lines = ", ".join(map(str, unmarked[:10])) + (", …" if len(unmarked) > 10 else "")
        message = (
            f"no {'word' if pictures is None else 'pixel'} is marked on {len(unmarked)} rows "
            f"(lines {lines}): what tests against rationales leaves them out"
        )
        faults.append(Fault(unmarked[0], message, "warning"))
    bad = {fault.line for fault in faults if fault.severity == "error"}
    claimed |= {rel for draft in drafts if draft.line in bad for rel in draft.rel_ids}
    sound = [draft for draft in drafts if draft.line not in bad]
    orphans = _orphans(sound, set(first_line), claimed)
    left_out += [Fault(line, "its original is faulty", "warning") for line in sorted(orphans)]
    sound = [draft for draft in sound if draft.line not in orphans]
    files = {row.line: row.file for row in table.rows}
    return Records(
        Dataset(name, label_names, _examples(sound, label_names), own),
        {draft.example.id: draft.line for draft in sound},
        tuple(_placed(fault, files) for fault in sorted(faults, key=lambda fault: fault.line)),
        len(table.rows),
        tuple(_placed(fault, files) for fault in left_out),
        files,
    )


def _placed(fault: Fault, files: Mapping[int, str]) -> Fault:
    return replace(fault, file=files.get(fault.line, ""))


def _new_id(value: Any, line: int, number: int, first_line: dict[str, int]) -> str:
    name = id_field(value, str(number))
    if name in first_line:
        raise ValueError(
            f"the id {name!r} stands on line {first_line[name]} already; "
            "make ids unique, or number the rows with columns id="
        )
    first_line[name] = line
    return name


def _label_names(
    table: RawTable, columns: Columns, labels: Sequence[str] | None
) -> tuple[tuple[str, ...], bool]:
    """The names that are given, if any, and whether the rows number them instead."""
    if not columns.label:
        return (UNLABELLED,), False
    names = _written_names(table, columns) if labels is None else tuple(map(str, labels))
    if len(set(names)) < len(names):
        raise DataError(f"expected every label once, got {', '.join(names)}")
    if any(map(UNWRITABLE.search, names)):
        raise DataError(f"expected names of labels that can be written, got {names!r}")
    seen = {str(row.values.get(columns.label)) for row in table.rows}
    return names, not seen & set(names)


def _written_names(table: RawTable, columns: Columns) -> tuple[str, ...]:
    """The names that the rows themselves give, in their order; none where they give none."""
    written = next((row.values.get(columns.labels) for row in table.rows), None)
    return tuple(map(str, written)) if isinstance(written, list) else ()


def _in_order(labels: Iterable[str]) -> tuple[str, ...]:
    """Numbers by size, anything else by the alphabet."""
    try:
        return tuple(sorted(labels, key=lambda label: (float(label), label)))
    except ValueError:
        return tuple(sorted(labels))


def _draft(
    line: int,
    values: dict[str, Any],
    *,
    names: tuple[str, ...],
    indexed: bool,
    language: str,
    max_words: int,
    pictures: PictureReader | None,
    wrong: list[str],
) -> _Draft | None:
    """The row, if nothing is wrong with it; all that is, is noted."""
    found: Text | Image | None = None
    marked: tuple[BoolArray, ...] | None = None
    truths: dict[str, tuple[BoolArray, ...]] = {}
    partner, label = "", ""
    rel_ids: tuple[str, ...] = ()
    broken = ((field, unwritable(value)) for field, value in values.items())
    wrong += [f"{field} holds {what}; remove it" for field, what in broken if what]
    with noted(wrong):
        if pictures is not None:
            found, mask = pictures.picture(values["picture"], values["mask"])
            marked = None if mask is None else (mask,)
        else:
            found = text_field(values["text"], values["tokens"], language, max_words)
    if found is not None:
        if isinstance(found, Text):
            with noted(wrong):
                marked = rationales_field(values, found)
        with noted(wrong):
            truths = truths_field(values["truths"], found.n_features)
    if marked and "rationale" in truths:
        wrong.append("expected the rationales in one place, got them in truths as well")
    facts = facts_field(values, None if marked is None else len(marked), wrong)
    with noted(wrong):
        partner = id_field(values["partner"], "")
    with noted(wrong):
        rel_ids = rel_ids_field(values["rel_ids"])
    with noted(wrong):
        label = label_field(values["label"], names, indexed)
    kind = facts.get("sample_type")
    if rel_ids and kind == "adv":
        wrong.append("expected rel_ids on originals only, got them on an adv row")
    if kind == "ori" and (partner or "adv_type" in facts):
        field = "adv_type" if "adv_type" in facts else "partner"
        wrong.append(f"expected {field} on adv rows only, got it on an original (ori)")
    if values["id"] in (partner, *rel_ids):
        wrong.append("expected a pair to be two rows, but this one is its own twin")
    if wrong or found is None:
        return None
    sets = {"rationale": marked, **truths} if marked else truths
    return _Draft(
        line, Example(values["id"], found, 0, sets, partner or None, facts), label, rel_ids
    )


def _label_warnings(drafts: Sequence[_Draft]) -> Iterator[Fault]:
    """Labels that a slip of the pen tells apart, where the last of them begins."""
    spellings: dict[str, dict[str, int]] = defaultdict(dict)
    for draft in drafts:
        plain = " ".join(draft.label.split()).casefold()
        with suppress(ValueError):
            plain = str(float(plain))
        spellings[plain].setdefault(draft.label, draft.line)
    for lines in spellings.values():
        if len(lines) > 1:
            seen = ", ".join(map(repr, lines))
            message = f"the labels {seen} are {len(lines)} labels; if one is meant, write it alike"
            yield Fault(max(lines.values()), message, "warning")


def _pair_faults(drafts: Sequence[_Draft], ids: set[str], claimed: set[str]) -> Iterator[Fault]:
    """Twins must name one original, differ from it, and keep its label where the kind says so;
    those claimed have an original that is faulty itself, which is told already."""
    known = {draft.example.id: draft for draft in drafts}
    originals: dict[str, list[_Draft]] = defaultdict(list)
    for draft in drafts:
        for rel in draft.rel_ids:
            originals[rel].append(draft)
            if rel not in ids:
                yield Fault(draft.line, f"rel_ids names {rel!r}, which no row has")
            elif rel in known and known[rel].example.facts.get("sample_type") == "ori":
                message = f"expected rel_ids to name adv rows, but {rel!r} is an original"
                yield Fault(draft.line, message)
    for draft in drafts:
        named = draft.example.partner
        found = originals[draft.example.id]
        if named in known and known[named] not in found:
            found = [*found, known[named]]
        elif named is not None and named not in ids:
            # a sample may part a pair, so this keeps nobody out
            message = f"the partner {named!r} is in no row: the pair is not complete"
            yield Fault(draft.line, message, "warning")
        lonely = not found and named is None and draft.example.id not in claimed
        if draft.example.facts.get("sample_type") == "adv" and lonely:
            yield Fault(draft.line, "no original names this adv row in its rel_ids")
        if len(found) > 1:
            lines = ", ".join(str(original.line) for original in found)
            yield Fault(draft.line, f"expected one original, got those on lines {lines}")
        for original in found:
            itself = bool(originals[original.example.id]) or original.example.partner is not None
            yield from _twin_faults(draft, original, itself)


def _twin_faults(twin: _Draft, original: _Draft, itself_twin: bool) -> Iterator[Fault]:
    inputs = [draft.input for draft in (twin, original)]
    texts = [one.text for one in inputs if isinstance(one, Text)]
    if texts[0] == texts[1] if texts else inputs[0] == inputs[1]:
        what = inputs[0].nouns.one
        yield Fault(twin.line, f"the same {what} as its original on line {original.line}")
    if original.example.facts.get("sample_type") == "adv" or itself_twin:
        message = f"expected an original, but that on line {original.line} is adv, a twin"
        yield Fault(twin.line, message)
    if texts and is_chinese(texts[0]) != is_chinese(texts[1]):
        message = f"in another language than its original on line {original.line}"
        yield Fault(twin.line, message, "warning")
    kind = twin.example.facts.get("adv_type")
    if kind in KEEPS_LABEL and original.label != twin.label:
        message = f"{kind} keeps the label, but {original.label} became {twin.label}"
        yield Fault(twin.line, message, "warning")


def _orphans(sound: Sequence[_Draft], ids: set[str], claimed: set[str]) -> set[int]:
    """The lines of twins whose original stands in the file and cannot be used."""
    kept = {draft.example.id for draft in sound}
    kept_twins = {rel for draft in sound for rel in draft.rel_ids}
    return {
        draft.line
        for draft in sound
        if draft.example.facts.get("sample_type") != "ori"
        and draft.example.id not in kept_twins
        and draft.example.partner not in kept
        and (draft.example.id in claimed or draft.example.partner in ids)
    }


def _examples(drafts: Sequence[_Draft], labels: tuple[str, ...]) -> tuple[Example, ...]:
    number = {label: i for i, label in enumerate(labels)}
    original = {rel: draft.example.id for draft in drafts for rel in draft.rel_ids}
    return tuple(
        replace(
            draft.example,
            label=number[draft.label],
            partner=original.get(draft.example.id, draft.example.partner),
        )
        for draft in drafts
    )


def twins_of(dataset: Dataset) -> dict[str, list[str]]:
    """The ids of each original's twins, where both are there."""
    ids = {example.id for example in dataset}
    twins: dict[str, list[str]] = defaultdict(list)
    for example in dataset:
        if example.partner is not None and example.partner in ids:
            twins[example.partner].append(example.id)
    return dict(twins)


def write_records(dataset: Dataset, path: str | Path) -> None:
    """A dataset as JSON lines that read back as the same dataset; all of it or nothing."""
    if dataset.kind != Text.kind:
        raise DataError(
            f"{dataset.name} holds pictures: expected texts, since lines of JSON hold no others. "
            "Keep pictures in folders called as their labels"
        )
    ids = Counter(example.id for example in dataset)
    if any(count > 1 for count in ids.values()):
        raise DataError(f"expected unique ids, got {ids.most_common(1)[0][0]!r} more than once")
    twins = twins_of(dataset)
    used = {dataset.labels[example.label] for example in dataset}
    head: dict[str, Any] = {} if _in_order(used) == dataset.labels else {"labels": dataset.labels}
    rows = [_record(e, dataset.labels, twins.get(e.id, []), e.partner not in ids) for e in dataset]
    write_rows([row | head for row in rows[:1]] + rows[1:], path)


def _record(
    example: Example, labels: tuple[str, ...], rel_ids: list[str], orphan: bool
) -> dict[str, Any]:
    words = list(example.input.words)
    if text_of_tokens(words, example.input.text) != example.input:
        raise DataError(f"{example.id}: expected words that can be found in the text again")
    name = labels[example.label]
    sets = {k: [np.flatnonzero(m).tolist() for m in ms] for k, ms in sorted(example.truths.items())}
    facts = dict(example.facts)
    record = {
        "id": example.id,
        "text": example.input.text,
        "tokens": words,
        "label": as_number(name),
        **{key: facts.pop(key) for key in FACTS if key in facts},
        "scores": json.loads(facts.pop("scores", "null")),
        "rel_ids": rel_ids,
        "partner": example.partner if orphan else None,
        "rationales": sets.pop("rationale", None),
        "truths": sets,
        "facts": facts,
    }
    return {key: value for key, value in record.items() if value not in (None, [], {})}
