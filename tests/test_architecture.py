"""Data flow one way: a module imports only from its left."""

from __future__ import annotations

import ast
import importlib
import re
from pathlib import Path

import pytest

import veracity

ROOT = Path(__file__).parents[1] / "src" / "veracity"
ORDER = (
    "core",
    "engine",
    "data",
    "rules",
    "changes",
    "models",
    "truths",
    "explainers",
    "metrics",
    "results",
    "auditing",
    "testing",
    "suspicion",
    "experiments",
    "recipes",
    "studies",
    "reports",
    "cli",
)
FILES = sorted(path for path in ROOT.rglob("*.py") if path.parent != ROOT or path.stem in ORDER)


FRONT_DOOR = {"core/attributions.py": "attribution_html", "auditing/audit.py": "audit_html"}
"""What is reached beyond the order, by the package itself: how it looks in a notebook."""


def layer_named(module: str, package: tuple[str, ...]) -> str | None:
    """The layer of a module that is named in a call, `..reports.html` or `veracity.reports.html`;
    None of other packages' modules."""
    name = module.lstrip(".")
    if level := len(module) - len(name):
        target = [*package[: len(package) - level + 1], *name.split(".")]
    elif name.partition(".")[0] == "veracity":
        target = name.split(".")[1:]
    else:
        return None
    return target[0] if target else None


def layers_called(node: ast.Call, package: tuple[str, ...]) -> set[str]:
    """The layer that `import_module("…")` or `__import__("…")` reaches; of a name that is put
    together, what is known of its beginning."""
    function = node.func
    named = function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")
    if named not in ("import_module", "__import__") or not node.args:
        return set()
    given = node.args[0]
    first = given.values[0] if isinstance(given, ast.JoinedStr) else given
    if not isinstance(first, ast.Constant):
        return set()
    layer = layer_named(str(first.value), package)
    return {layer} if layer is not None and layer in ORDER else set()


def layers_imported(path: Path) -> set[str]:
    return layers_in(path.read_text("utf-8"), path.relative_to(ROOT))


def layers_in(source: str, path: Path) -> set[str]:
    package = path.parent.parts
    found = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Call):
            found |= layers_called(node, package)
        if isinstance(node, ast.ImportFrom) and node.level:
            base = package[: len(package) - node.level + 1]
            target = (*base, *(node.module or "").split("."))
            names = [a.name for a in node.names] if not target[0] else [target[0]]
            others = {*names} - {*ORDER} if not target[0] else set()
            assert others <= {FRONT_DOOR.get(str(path)), "__version__"}, f"{path}: {others}"
            found |= {name for name in names if name in ORDER}
        elif isinstance(node, ast.Import | ast.ImportFrom):
            names = (
                [a.name for a in node.names]
                if isinstance(node, ast.Import)
                else [node.module or ""]
            )
            assert not any(n.split(".")[0] == "veracity" for n in names), (
                f"{path}: import relatively"
            )
    return found


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(ROOT)))
def test_imports_only_from_the_left(path: Path) -> None:
    own = path.relative_to(ROOT).parts[0].removesuffix(".py")
    for layer in layers_imported(path):
        assert ORDER.index(layer) <= ORDER.index(own), f"{own} must not import {layer}"


def test_imports_by_call_are_seen() -> None:
    path = Path("experiments/dryrun.py")
    for call in (
        'import_module("..reports.html", __package__)',
        'importlib.import_module("veracity.reports.html")',
        'importlib.import_module(f"veracity.reports.{name}")',
        '__import__("veracity.reports")',
    ):
        assert layers_in(call, path) == {"reports"}, call
    assert layers_in('import_module(".reports", __package__)', path) == {"experiments"}
    assert layers_in('import_module("numpy")', path) == set()


def test_every_folder_has_its_place() -> None:
    folders = {p.name for p in ROOT.iterdir() if p.is_dir() and p.name != "__pycache__"}
    assert folders <= set(ORDER)
    # a folder that is imported would take the place of a function of its name
    assert not folders & set(veracity.__all__)


CALLED = re.compile(r"\bveracity((?:\.[A-Za-z_]\w*)+)\(")
"""A function that a message, a page or a docstring names with all that it takes to import it."""


def functions_named() -> list[str]:
    pages = [p for p in ROOT.rglob("*") if p.suffix in (".py", ".html", ".toml")]
    return sorted({name[1:] for path in pages for name in CALLED.findall(path.read_text("utf-8"))})


def test_functions_that_are_named_can_be_called() -> None:
    named = functions_named()
    assert "audit" in named
    for name in named:
        module, _, function = f"veracity.{name}".rpartition(".")
        assert callable(getattr(importlib.import_module(module), function, None)), name
