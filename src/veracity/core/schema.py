"""What a record on disk must look like before its parts are trusted."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from functools import cache
from types import UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

LARGEST = 2**53
"""Whole numbers beyond this are no counts, and no float holds them all."""

FAR = 1e150
"""Beyond this no number of a record is a result, and squares and differences are infinite."""

Form = Any
"""A type, or several joined by |; a list of one form, for lists; or an object's forms by key, where
`key?` may be absent and `*` stands for every key."""


def check_schema(value: Any, form: Form, where: str = "it") -> None:
    """A ValueError that names the first place where a value is not as expected."""
    if isinstance(form, list):
        _expect(isinstance(value, list), where, "a list", value)
        for i, one in enumerate(value):
            check_schema(one, form[0], f"{where}[{i}]")
    elif isinstance(form, dict):
        _expect(isinstance(value, dict), where, "an object", value)
        for key, inner in form.items():
            if key == "*":
                for name, one in value.items():
                    check_schema(one, inner, f"{where}.{name}"[:100])
                continue
            name = key.removesuffix("?")
            if name in value:
                check_schema(value[name], inner, name if where == "it" else f"{where}.{name}")
            else:
                _expect(key != name, where, f"an object with {name!r}", value)
    else:
        numbers = form in (int, float) or isinstance(form, UnionType)
        truth = numbers and isinstance(value, bool) and bool not in getattr(form, "__args__", ())
        name = getattr(form, "__name__", str(form))
        whole = form is float and isinstance(value, int)
        _expect((isinstance(value, form) or whole) and not truth, where, name, value)


def _expect(met: bool, where: str, expected: str, value: Any) -> None:
    if not met:
        raise ValueError(f"expected {where} to be {expected}, got {str(value)[:40]!r}")


@cache
def _fields(kind: type) -> tuple[dict[str, Any], list[str]]:
    """A record's types by name, and the names of those that must be given."""
    required = [
        f.name
        for f in dataclasses.fields(kind)
        if f.default is f.default_factory is dataclasses.MISSING
    ]
    return get_type_hints(kind), required


def from_json(kind: Any, value: Any, where: str = "it") -> Any:
    """A value of this type, most often a record, from what JSON keeps of it: lists for tuples, null
    for NaN. A ValueError names the first place where it is not as expected."""
    origin, inner = get_origin(kind), get_args(kind)
    if dataclasses.is_dataclass(kind) and isinstance(kind, type):
        _expect(isinstance(value, dict), where, "an object", value)
        types, required = _fields(kind)
        _expect(value.keys() <= types.keys(), where, f"an object with {', '.join(types)}", value)
        parts = {k: from_json(types[k], v, f"{where}.{k}"[-100:]) for k, v in value.items()}
        for name in required:
            _expect(name in value, where, f"an object with {name!r}", value)
        return kind(**parts)
    if origin is tuple:
        _expect(isinstance(value, list), where, "a list", value)
        kinds = (inner[0],) * len(value) if inner[-1] is ... else inner
        _expect(len(kinds) == len(value), where, f"a list of {len(kinds)}", value)
        pairs = enumerate(zip(kinds, value, strict=True))
        return tuple(from_json(k, v, f"{where}[{i}]") for i, (k, v) in pairs)
    if origin is Mapping:
        _expect(isinstance(value, dict), where, "an object", value)
        return {k: from_json(inner[1], v, f"{where}.{k}"[-100:]) for k, v in value.items()}
    if origin is Literal:
        _expect(value in inner, where, f"one of {', '.join(map(str, inner))}", value)
        return value
    if origin in (Union, UnionType):
        if value is None and type(None) in inner:
            return None
        options = [k for k in inner if k is not type(None)]
        if type(value) in options:
            return from_json(type(value), value, where)
        record = isinstance(value, dict)
        kind = next((k for k in options if dataclasses.is_dataclass(k) == record), options[0])
        return from_json(kind, value, where)
    if kind is Any:
        return value
    if kind is float and value is None:
        return math.nan
    check_schema(value, kind, where)
    _expect(not isinstance(value, int) or abs(value) < LARGEST, where, "a smaller number", value)
    far = isinstance(value, float) and abs(value) >= FAR
    _expect(not far, where, "a smaller number", value)
    return float(value) if kind is float else value
