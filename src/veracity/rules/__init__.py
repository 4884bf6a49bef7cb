"""Rules about which clause ought to decide, as tables of TOML files: `[but]` is the rule `but`."""

from __future__ import annotations

import functools
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path

from ..core.errors import DataError, PluginError
from ..core.files import read_bytes
from ..core.plugins import nearest, plugin_path, split_specs
from .rule import ClausePair, FoundClauses, Mode, Rule, detect

__all__ = [
    "USUAL",
    "ClausePair",
    "FoundClauses",
    "Mode",
    "Rule",
    "detect",
    "known_rules",
    "read_rules",
    "rules_named",
]

USUAL = ("but", "yet", "though", "while")
"""The four rules of Gupta et al.: what is looked for unless rules are named."""


def read_rules(path: Path) -> dict[str, Rule]:
    """The rules of a file, by name; a table that is no rule is told with its name."""
    try:
        tables = tomllib.loads(read_bytes(path).decode("utf-8-sig"))
    except OSError as error:
        raise DataError(f"cannot read the rules in {path}: {error.strerror or error}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as error:
        raise DataError(f"{path}: expected TOML with a table for each rule: {error}") from None
    if not tables:
        raise DataError(
            f"{path}: expected a table for each rule, such as [however] with keywords = "
            '["however"], got none'
        )
    found = {}
    for name, table in tables.items():
        try:
            found[name] = Rule.of(name, table)
        except ValueError as error:
            raise DataError(f"{path}: rule {name}: {error}") from None
    return found


@functools.cache
def known_rules() -> Mapping[str, Rule]:
    """The rules that go by a name: ours, and those of plug-in folders."""
    folders = plugin_path([str(Path(__file__).parent)], "rules")
    files = [file for folder in folders for file in sorted(Path(folder).glob("*.toml"))]
    return {name: rule for file in files for name, rule in read_rules(file).items()}


def rules_named(given: str | Sequence[str]) -> tuple[Rule, ...]:
    """The rules that names, and files with all that they hold, stand for: `but, my_rules.toml`."""
    found: dict[str, Rule] = {}
    for name in split_specs(given):
        if name.endswith(".toml"):
            found |= read_rules(Path(name))
        elif name in known_rules():
            found[name] = known_rules()[name]
        else:
            raise PluginError(
                f"no rule is called {name!r}: {nearest(name, known_rules())}; a file of rules ends "
                "in .toml"
            )
    if not found:
        raise PluginError(f"expected rules such as {', '.join(USUAL)}, got none")
    return tuple(found.values())
