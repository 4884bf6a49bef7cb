"""Layouts of other people's files, one file each: the file `eraser.py` is the format `eraser`."""

from __future__ import annotations

import functools

from ...core.errors import DataError
from ...core.plugins import Registry, plugin_path
from ..format import Format, translated
from ..readers import RawTable

__path__ = plugin_path(__path__, "formats")

formats: Registry[Format] = Registry("format", __name__, Format)

PLAIN = ("auto", "plain")
"""Not layouts of others: found by the columns, or taken as it is."""


@functools.cache
def _all() -> tuple[Format, ...]:
    """Looked up once: every file that is read asks for them."""
    return tuple(formats.get(name)() for name in formats.names())


def as_records(table: RawTable, spec: str, where: str) -> RawTable:
    """The table in our own layout; `auto` looks at its columns, `plain` leaves it alone."""
    if spec == "plain":
        return table
    if spec != "auto":
        form = formats.make(spec)
        if not form.recognises(table):
            raise DataError(
                f"{where}: expected the columns of {spec} ({', '.join(sorted(form.fields))}); "
                f"columns seen: {', '.join(table.columns) or 'none'}"
            )
        return translated(table, form)
    known = [form for form in _all() if form.recognises(table)]
    if len(known) > 1:
        names = " or ".join(form.plugin_name() for form in known)
        raise DataError(
            f"{where}: its columns fit more than one format; choose with --layout {names} "
            "(layout=…)"
        )
    return translated(table, known[0]) if known else table
