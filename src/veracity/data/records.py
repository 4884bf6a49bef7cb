"""Rows into examples and back, in the record schema of SPEC 7.1; what is wrong keeps its line."""

from __future__ import annotations

import json
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal

import numpy as np

from ..core.errors import DataError
from ..core.examples import UNLABELLED, Dataset, Example
from ..core.inputs import BoolArray, Text
from .format import write_rows
from .readers import Columns, RawTable
from .words import is_chinese, read_text, text_of_tokens

FACTS: Mapping[str, tuple[str, ...]] = {
    "sentiment_type": ("single", "multiple", "obscure"),
    "sample_type": ("ori", "adv"),
    "adv_type": ("idr", "negative", "obscure", "lf", "csk"),
    "split": (),
}
"""Fields that become facts, and their values where the schema fixes them."""

KEEPS_LABEL = ("idr", "lf")

RATINGS: Mapping[str, int] = {"sufficient": 3, "understandable": 4, "compact": 4}
"""What people rate a rationale by, and the best rating; the worst is 1 (SPEC 7.2)."""


@dataclass(frozen=True)
class Fault:
    """What is wrong with one row; warnings never keep it out."""

    line: int
    message: str
    severity: Literal["error", "warning"] = "error"

    def __str__(self) -> str:
        return f"line {self.line}: {self.message}"


@dataclass(frozen=True)
class Records:
    """The usable examples, the lines they came from, and all faults in the order of lines."""

    dataset: Dataset
    lines: Mapping[str, int]
    faults: tuple[Fault, ...]
    rows: int = 0
    left_out: tuple[Fault, ...] = ()
    """Rows that are missing for no error of their own, and why."""


@dataclass(frozen=True)
class _Draft:
    """A sound row whose label has no number and whose twin no name yet."""

    line: int
    example: Example
    label: str
    rel_ids: tuple[str, ...]

    @property
    def text(self) -> str:
        return self.example.input.text


def read_records(
    table: RawTable,
    columns: Columns,
    *,
    name: str,
    labels: Sequence[str] | None = None,
    language: str = "auto",
    max_words: int = 5000,
) -> Records:
    """Every sound row as an example, every unsound one as a fault."""
    names, indexed = _label_names(table, columns, labels)
    drafts: list[_Draft] = []
    faults: list[Fault] = []
    left_out: list[Fault] = []
    first_line: dict[str, int] = {}
    claimed: set[str] = set()
    asked = asdict(columns).items()
    for number, row in enumerate(table.rows, 1):
        values = {field: row.values.get(column) if column else None for field, column in asked}
        wrong: list[str] = []
        # a faulty row without a name must not take that of another
        if not row.fault or values["id"] not in (None, ""):
            with _noted(wrong):
                values["id"] = _new_id(values["id"], row.line, number, first_line)
        if row.fault:
            told = Fault(row.line, row.fault, row.severity)
            (faults if row.severity == "error" else left_out).append(told)
        else:
            if not columns.label:
                values["label"] = UNLABELLED
            draft = _draft(row.line, values, names, indexed, language, max_words, wrong)
            faults += [Fault(row.line, message) for message in wrong]
            if draft is not None:
                drafts.append(draft)
                if values["text"] and values["tokens"] and values["text"] != draft.text:
                    message = "the text does not hold the tokens in this order: the tokens are read"
                    faults.append(Fault(row.line, message, "warning"))
        if (row.fault or wrong) and values["sample_type"] != "adv":
            with suppress(ValueError):
                claimed |= set(_rel_ids(values["rel_ids"]))
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
            f"no word is marked on {len(unmarked)} rows (lines {lines}): what tests against "
            "rationales leaves them out"
        )
        faults.append(Fault(unmarked[0], message, "warning"))
    bad = {fault.line for fault in faults if fault.severity == "error"}
    claimed |= {rel for draft in drafts if draft.line in bad for rel in draft.rel_ids}
    sound = [draft for draft in drafts if draft.line not in bad]
    orphans = _orphans(sound, set(first_line), claimed)
    left_out += [Fault(line, "its original is faulty", "warning") for line in sorted(orphans)]
    sound = [draft for draft in sound if draft.line not in orphans]
    return Records(
        Dataset(name, label_names, _examples(sound, label_names), own),
        {draft.example.id: draft.line for draft in sound},
        tuple(sorted(faults, key=lambda fault: fault.line)),
        len(table.rows),
        tuple(left_out),
    )


@contextmanager
def _noted(wrong: list[str]) -> Iterator[None]:
    """What is wrong with one part of a row is kept, and hides nothing of the next."""
    try:
        yield
    except ValueError as error:
        wrong.append(str(error))


def _new_id(value: Any, line: int, number: int, first_line: dict[str, int]) -> str:
    name = _id(value, str(number))
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
    if any(map(_BROKEN.search, names)):
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
    names: tuple[str, ...],
    indexed: bool,
    language: str,
    max_words: int,
    wrong: list[str],
) -> _Draft | None:
    """The row, if nothing is wrong with it; all that is, is noted."""
    text: Text | None = None
    marked: tuple[BoolArray, ...] | None = None
    truths: dict[str, tuple[BoolArray, ...]] = {}
    partner, label = "", ""
    rel_ids: tuple[str, ...] = ()
    broken = ((field, _broken(value)) for field, value in values.items())
    wrong += [f"{field} holds {what}; remove it" for field, what in broken if what]
    with _noted(wrong):
        text = _text(values["text"], values["tokens"], language, max_words)
    if text is not None:
        with _noted(wrong):
            marked = _rationales(values, text)
        with _noted(wrong):
            truths = _truths(values["truths"], text.n_features)
    if marked and "rationale" in truths:
        wrong.append("expected the rationales in one place, got them in truths as well")
    facts = _facts(values, None if marked is None else len(marked), wrong)
    with _noted(wrong):
        partner = _id(values["partner"], "")
    with _noted(wrong):
        rel_ids = _rel_ids(values["rel_ids"])
    with _noted(wrong):
        label = _label(values["label"], names, indexed)
    kind = facts.get("sample_type")
    if rel_ids and kind == "adv":
        wrong.append("expected rel_ids on originals only, got them on an adv row")
    if kind == "ori" and (partner or "adv_type" in facts):
        field = "adv_type" if "adv_type" in facts else "partner"
        wrong.append(f"expected {field} on adv rows only, got it on an original (ori)")
    if values["id"] in (partner, *rel_ids):
        wrong.append("expected a pair to be two rows, but this one is its own twin")
    if wrong or text is None:
        return None
    sets = {"rationale": marked, **truths} if marked else truths
    return _Draft(
        line, Example(values["id"], text, 0, sets, partner or None, facts), label, rel_ids
    )


_BROKEN = re.compile("[\0\ud800-\udfff]")


def _broken(value: Any) -> str:
    """What no file can hold, wherever in a value it stands; else nothing."""
    parts = [value]
    while parts:
        part = parts.pop()
        if isinstance(part, str):
            if found := _BROKEN.search(part):
                return "a NUL byte" if found[0] == "\0" else "half a character (a lone surrogate)"
        elif isinstance(part, list | dict):
            parts += [*part, *part.values()] if isinstance(part, dict) else part
    return ""


def _text(text: Any, tokens: Any, language: str, max_words: int) -> Text:
    if text is not None and not isinstance(text, str):
        raise ValueError(f"expected the text to be a string, got {type(text).__name__}")
    own = as_list(tokens, "tokens")
    for token in own:
        if not isinstance(token, str) or not token:
            raise ValueError(f"expected tokens to be non-empty strings, got {token!r}")
    found = text_of_tokens(own, text) if own else read_text(text or "", language)
    if not found.n_features:
        raise ValueError("the text is empty")
    if found.n_features > max_words:
        raise ValueError(
            f"expected at most {max_words:,} words, got {found.n_features:,}; "
            "shorten the text, or raise --max-words (max_words=…)"
        )
    return found


def _label(value: Any, names: tuple[str, ...], indexed: bool) -> str:
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if value is None or value == "":
        raise ValueError("the label is missing")
    if not isinstance(value, str | int):
        raise ValueError(f"expected the label to be a name or a whole number, got {value!r}")
    label = str(value).lower() if isinstance(value, bool) else str(value)
    if not names or label in names:
        return label
    if indexed and label.isdecimal() and int(label) < len(names):
        return names[int(label)]
    raise ValueError(f"expected the label to be one of {', '.join(names)}; got {label!r}")


def _id(value: Any, default: str) -> str:
    if value is None or value == "":
        return default
    if isinstance(value, bool) or not isinstance(value, str | int):
        raise ValueError(f"expected an id to be a string or a whole number, got {value!r}")
    return str(value)


def _rel_ids(value: Any) -> tuple[str, ...]:
    found = tuple(_id(rel, "") for rel in as_list(value, "rel_ids"))
    if len(set(found)) < len(found):
        raise ValueError(f"expected rel_ids to name every twin once, got {', '.join(found)}")
    return found


def _decoded(value: Any, field: str) -> Any:
    """Tables hold lists and objects as JSON."""
    if isinstance(value, str) and value:
        try:
            value = json.loads(value)
        except (ValueError, RecursionError):
            raise ValueError(f"expected {field} to be JSON, got {value[:40]!r}") from None
        if what := _broken(value):
            raise ValueError(f"{field} holds {what}; remove it")
    return value or None


def as_list(value: Any, field: str) -> list[Any]:
    """A list, written out or as JSON; nothing is an empty one."""
    value = _decoded(value, field)
    if value is not None and not isinstance(value, list):
        raise ValueError(f"expected {field} to be a list, got {type(value).__name__}")
    return value or []


def _mapping(value: Any, field: str) -> dict[str, Any]:
    value = _decoded(value, field)
    if value is not None and not isinstance(value, dict):
        raise ValueError(f"expected {field} to be an object, got {type(value).__name__}")
    return value or {}


def _truths(truths: Any, n: int) -> dict[str, tuple[BoolArray, ...]]:
    # Columnar files fill the kinds a row lacks with nulls.
    sets = {k: as_list(v, k) for k, v in _mapping(truths, "truths").items() if v is not None}
    return {k: tuple(_mask(one, k, n) for one in many) for k, many in sets.items() if many}


def _mask(indices: Any, kind: str, n: int) -> BoolArray:
    if not isinstance(indices, list) or any(type(i) is not int for i in indices):
        raise ValueError(f"expected a {kind} set to be a list of word indices, got {indices!r}")
    for i in indices:
        if not 0 <= i < n:
            raise ValueError(
                f"the {kind} index {i} is out of range: the text has {n} words (0-based)"
            )
    if any(a >= b for a, b in pairwise(indices)):
        raise ValueError(f"expected a {kind} set to be sorted, each index once; got {indices}")
    mask = np.zeros(n, dtype=np.bool_)
    mask[indices] = True
    return mask


# ---- rationales -----------------------------------------------------------------------------

RATIONALES = ("rationales", "rationale_spans", "rationale_masks")
"""The shapes in which people hold the words they marked: places of words, [start, end) places of
characters, or 0 and 1 for each word."""

_PLAIN_NUMBERS = re.compile(r"\s*-?\d+([\s,;]+-?\d+)*(\s*\|\s*-?\d+([\s,;]+-?\d+)*)*\s*")


def _rationales(values: dict[str, Any], text: Text) -> tuple[BoolArray, ...]:
    """Every set of marked words; a set by itself need not stand in a list of sets."""
    found = {field: _sets(values[field], field) for field in RATIONALES}
    given = [field for field in RATIONALES if found[field]]
    if len(given) > 1:
        raise ValueError(f"expected the rationales in one column, got {' and '.join(given)}")
    if not given:
        return ()
    (field,) = given
    if not all(found[field]):
        raise ValueError("a rationale set is empty")
    read = {"rationales": _of_places, "rationale_spans": _of_spans, "rationale_masks": _of_zeros}
    masks = tuple(read[field](one, text) for one in found[field])
    if not all(mask.any() for mask in masks):
        raise ValueError("a rationale set is empty: none of its words is marked")
    return masks


def _sets(value: Any, field: str) -> list[Any]:
    """Tables may also hold plain numbers, `1 2 | 5` being two sets."""
    if isinstance(value, str) and _PLAIN_NUMBERS.fullmatch(value):
        value = [[int(i) for i in re.findall(r"-?\d+", one)] for one in value.split("|")]
    sets = as_list(value, field)
    spans = field == "rationale_spans"
    alone = (_is_span(one) if spans else isinstance(one, int | float) for one in sets)
    return [sets] if sets and all(alone) else sets


def _is_span(value: Any) -> bool:
    if isinstance(value, dict):
        return True
    return isinstance(value, list) and len(value) == 2 and all(type(i) is int for i in value)


def _of_places(one: Any, text: Text) -> BoolArray:
    return _mask(one, "rationale", text.n_features)


def _of_zeros(one: Any, text: Text) -> BoolArray:
    if not isinstance(one, list) or not all(
        isinstance(m, int | float) and m in (0, 1) for m in one
    ):
        raise ValueError(f"expected a rationale mask to hold 0 or 1 for each word, got {one!r}")
    if len(one) != text.n_features:
        raise ValueError(
            f"expected a rationale mask with one value for each of {text.n_features} words, got "
            f"{len(one)}; if yours are other words, give them in tokens"
        )
    return np.array(one, dtype=np.bool_)


def _of_spans(one: Any, text: Text) -> BoolArray:
    """Words that a span holds at least a character of."""
    mask = np.zeros(text.n_features, dtype=np.bool_)
    for span in one if isinstance(one, list) else [one]:
        ends: Any = [span.get("start"), span.get("end")] if isinstance(span, dict) else span
        if not _is_span(ends):
            raise ValueError(
                f"expected rationale spans to be [start, end) places of characters, got {span!r}"
            )
        start, end = ends
        if not 0 <= start < end <= len(text.text):
            raise ValueError(
                f"the rationale span [{start}, {end}) is out of range or empty: the text has "
                f"{len(text.text)} characters (0-based)"
            )
        inside = [i for i, (a, b) in enumerate(text.spans) if a < end and b > start]
        if not inside:
            raise ValueError(f"the rationale span [{start}, {end}) holds no word")
        mask[inside] = True
    return mask


def _facts(values: dict[str, Any], sets: int | None, wrong: list[str]) -> dict[str, str]:
    facts: dict[str, str] = {}
    for field, known in FACTS.items():
        value = values[field]
        if value is None or value == "":
            continue
        if not isinstance(value, str) or (known and value not in known):
            wrong.append(f"expected {field} to be {' or '.join(known or ['text'])}; got {value!r}")
        else:
            facts[field] = value
    if "adv_type" in facts:
        facts.setdefault("sample_type", "adv")  # only twins have one
    with _noted(wrong):
        scores = as_list(values["scores"], "scores")
        if scores:
            _check_scores(scores, sets)
            facts["scores"] = json.dumps(scores, sort_keys=True)
    with _noted(wrong):
        own = _mapping(values["facts"], "facts")
        if twice := sorted({*FACTS, "scores"} & set(own)):
            raise ValueError(f"expected {twice[0]} in its own column, got it in facts")
        facts |= {key: _fact(value) for key, value in own.items() if value is not None}
    return facts


def _fact(value: Any) -> str:
    nested = isinstance(value, list | dict)
    return json.dumps(value, ensure_ascii=False, sort_keys=True) if nested else str(value)


def _check_scores(scores: list[Any], sets: int | None) -> None:
    for score in scores:
        if not isinstance(score, dict):
            raise ValueError("expected scores to be a list of objects, one per rationale")
        for name, best in RATINGS.items():
            if type(score.get(name)) is not int or not 1 <= score[name] <= best:
                raise ValueError(
                    f"expected scores to rate {name} from 1 to {best}, got {score.get(name)!r}"
                )
        if set(score) > set(RATINGS):
            odd = ", ".join(sorted(set(score) - set(RATINGS)))
            raise ValueError(f"expected scores to rate {', '.join(RATINGS)} only, got {odd}")
    if sets is not None and len(scores) != sets:
        raise ValueError(
            f"expected scores to be one per rationale, got {len(scores)} for {sets} rationales"
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


def _pair_faults(drafts: Sequence[_Draft], ids: set[str], claimed: set[str]) -> list[Fault]:
    """Twins must name one original, differ from it, and keep its label where the kind says so;
    those claimed have an original that is faulty itself, which is told already."""
    faults: list[Fault] = []
    known = {draft.example.id: draft for draft in drafts}
    originals: dict[str, list[_Draft]] = defaultdict(list)
    for draft in drafts:
        for rel in draft.rel_ids:
            originals[rel].append(draft)
            if rel not in ids:
                faults.append(Fault(draft.line, f"rel_ids names {rel!r}, which no row has"))
            elif rel in known and known[rel].example.facts.get("sample_type") == "ori":
                message = f"expected rel_ids to name adv rows, but {rel!r} is an original"
                faults.append(Fault(draft.line, message))
    for draft in drafts:
        named = draft.example.partner
        found = originals[draft.example.id]
        if named in known and known[named] not in found:
            found = [*found, known[named]]
        elif named is not None and named not in ids:
            # a sample may part a pair, so this keeps nobody out
            message = f"the partner {named!r} is in no row: the pair is not complete"
            faults.append(Fault(draft.line, message, "warning"))
        lonely = not found and named is None and draft.example.id not in claimed
        if draft.example.facts.get("sample_type") == "adv" and lonely:
            faults.append(Fault(draft.line, "no original names this adv row in its rel_ids"))
        if len(found) > 1:
            lines = ", ".join(str(original.line) for original in found)
            faults.append(Fault(draft.line, f"expected one original, got those on lines {lines}"))
        for original in found:
            itself = bool(originals[original.example.id]) or original.example.partner is not None
            faults += _twin_faults(draft, original, itself)
    return faults


def _twin_faults(twin: _Draft, original: _Draft, itself_twin: bool) -> Iterator[Fault]:
    texts = [draft.text for draft in (twin, original)]
    if texts[0] == texts[1]:
        yield Fault(twin.line, f"the same text as its original on line {original.line}")
    if original.example.facts.get("sample_type") == "adv" or itself_twin:
        yield Fault(
            twin.line, f"expected an original, but that on line {original.line} is adv, a twin"
        )
    if is_chinese(texts[0]) != is_chinese(texts[1]):
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
    ids = Counter(example.id for example in dataset)
    if any(count > 1 for count in ids.values()):
        raise DataError(f"expected unique ids, got {ids.most_common(1)[0][0]!r} more than once")
    twins = twins_of(dataset)
    used = {dataset.labels[example.label] for example in dataset}
    head: dict[str, Any] = {} if _in_order(used) == dataset.labels else {"labels": dataset.labels}
    rows = [_record(e, dataset.labels, twins.get(e.id, []), e.partner not in ids) for e in dataset]
    write_rows([row | head for row in rows[:1]] + rows[1:], path)


def as_number(name: str) -> int | str:
    """Names that are whole numbers are written as such, where they read back the same."""
    return int(name) if name.isdecimal() and str(int(name)) == name else name


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
