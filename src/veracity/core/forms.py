"""What a record on disk must look like before its parts are trusted."""

from __future__ import annotations

from types import UnionType
from typing import Any

Form = Any
"""A type, or several joined by |; a list of one form, for lists; or an object's forms by key, where
`key?` may be absent and `*` stands for every key."""


def check_form(value: Any, form: Form, where: str = "it") -> None:
    """A ValueError that names the first place where a value is not as expected."""
    if isinstance(form, list):
        _expect(isinstance(value, list), where, "a list", value)
        for i, one in enumerate(value):
            check_form(one, form[0], f"{where}[{i}]")
    elif isinstance(form, dict):
        _expect(isinstance(value, dict), where, "an object", value)
        for key, inner in form.items():
            if key == "*":
                for name, one in value.items():
                    check_form(one, inner, f"{where}.{name}"[:100])
                continue
            name = key.removesuffix("?")
            if name in value:
                check_form(value[name], inner, name if where == "it" else f"{where}.{name}")
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
