"""What the fields of one row may hold, in the record schema of definitions 7.1."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from itertools import pairwise
from typing import Any

import numpy as np

from ..core.inputs import BoolArray, Text
from .words import read_text, text_of_tokens

FACTS: Mapping[str, tuple[str, ...]] = {
    "sentiment_type": ("single", "multiple", "obscure"),
    "sample_type": ("ori", "adv"),
    "adv_type": ("idr", "negative", "obscure", "lf", "csk"),
    "split": (),
}
"""Fields that become facts, and their values where the schema fixes them."""

RATINGS: Mapping[str, int] = {"sufficient": 3, "understandable": 4, "compact": 4}
"""What people rate a rationale by, and the best rating; the worst is 1 (definitions 7.2)."""


@contextmanager
def noted(wrong: list[str]) -> Iterator[None]:
    """What is wrong with one part of a row is kept, and hides nothing of the next."""
    try:
        yield
    except ValueError as error:
        wrong.append(str(error))


UNWRITABLE = re.compile("[\0\ud800-\udfff]")


def unwritable(value: Any) -> str:
    """What no file can hold, wherever in a value it stands; else nothing."""
    parts = [value]
    while parts:
        part = parts.pop()
        if isinstance(part, str):
            if found := UNWRITABLE.search(part):
                return "a NUL byte" if found[0] == "\0" else "half a character (a lone surrogate)"
        elif isinstance(part, list | dict):
            parts += [*part, *part.values()] if isinstance(part, dict) else part
    return ""


def text_field(text: Any, tokens: Any, language: str, max_words: int) -> Text:
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


def label_field(value: Any, names: tuple[str, ...], indexed: bool) -> str:
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


def id_field(value: Any, default: str) -> str:
    if value is None or value == "":
        return default
    if isinstance(value, bool) or not isinstance(value, str | int):
        raise ValueError(f"expected an id to be a string or a whole number, got {value!r}")
    return str(value)


def rel_ids_field(value: Any) -> tuple[str, ...]:
    found = tuple(id_field(rel, "") for rel in as_list(value, "rel_ids"))
    if len(set(found)) < len(found):
        raise ValueError(f"expected rel_ids to name every twin once, got {', '.join(found)}")
    return found


def _decoded(value: Any, field: str, kind: type, expected: str) -> Any:
    """A list or an object, written out or as JSON, as tables hold it; nothing is an empty one."""
    if isinstance(value, str) and value:
        try:
            value = json.loads(value)
        except (ValueError, RecursionError):
            raise ValueError(f"expected {field} to be JSON, got {value[:40]!r}") from None
        if what := unwritable(value):
            raise ValueError(f"{field} holds {what}; remove it")
    if value and not isinstance(value, kind):
        raise ValueError(f"expected {field} to be {expected}, got {type(value).__name__}")
    return value or kind()


def as_list(value: Any, field: str) -> list[Any]:
    """A list, written out or as JSON; nothing is an empty one."""
    return list(_decoded(value, field, list, "a list"))


def _mapping(value: Any, field: str) -> dict[str, Any]:
    return dict(_decoded(value, field, dict, "an object"))


def truths_field(truths: Any, n: int) -> dict[str, tuple[BoolArray, ...]]:
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


def rationales_field(values: dict[str, Any], text: Text) -> tuple[BoolArray, ...]:
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


def facts_field(values: dict[str, Any], sets: int | None, wrong: list[str]) -> dict[str, str]:
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
    with noted(wrong):
        scores = as_list(values["scores"], "scores")
        if scores:
            _check_scores(scores, sets)
            facts["scores"] = json.dumps(scores, sort_keys=True)
    with noted(wrong):
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


def as_number(name: str) -> int | str:
    """Names that are whole numbers are written as such, where they read back the same."""
    return int(name) if name.isdecimal() and str(int(name)) == name else name
