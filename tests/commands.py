"""The real command in a process of its own, forked from this one: to import torch anew for each of
some hundred commands would take minutes. What starts a process and ends it is tested with real
ones, in test_cli.py."""

from __future__ import annotations

import functools
import gc
import importlib
import os
import pkgutil
import signal
import subprocess
import sys
import tempfile
import time
import warnings
from contextlib import suppress
from pathlib import Path
from typing import Any, NoReturn

import veracity
from torture.commands import as_command
from veracity.core.errors import VeracityError
from veracity.core.plugins import KINDS, PLUGIN_FOLDERS, plugin_path

IMPORTED = (
    "torch",
    "scipy.optimize",
    "scipy.sparse.linalg",
    "scipy.stats",
    "pandas",  # by pyarrow
    "pyarrow.dataset",
    "pyarrow.parquet",
    "pydantic.fields",  # this and the next by typer, if they are there
    "pydantic.plugin._loader",
    "pydantic.type_adapter",
    "pydantic.types",
    "typer._adapters",
    "typer._click.decorators",
    "typer.rich_utils",
    "rich.markdown",
    "PIL.Image",
    "joblib",
    "sklearn.pipeline",
    "transformers.models.auto.modeling_auto",
    "transformers.models.auto.tokenization_auto",
    "transformers.models.bert.modeling_bert",
)
"""What takes long to import and is needed by many commands: done here once for all of them, as are
all modules of ours."""

PLUGINS = {
    "changes": "changes",
    "corpora": "data.corpora",
    "explainers": "explainers",
    "formats": "data.formats",
    "architectures": "models.architectures",
    "word_vectors": "models.word_vectors",
    "metrics": "metrics",
    "recipes": "recipes.papers",
    "rules": "rules",
    "truths": "truths",
}
"""Packages that look at VERACITY_PLUGINS when they are imported, which here was before."""
assert set(PLUGINS) == set(KINDS)


def run_command(
    *arguments: str, cwd: Path, timeout: float = 240, to: Any = None, **environment: str
) -> subprocess.CompletedProcess[str]:
    """What `veracity ...` says in this folder, and its exit code; `to` is what it prints to."""
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # newer versions of Python warn of threads
            _import()
            process = os.fork()
        if not process:
            _run(arguments, cwd, environment, to or out, err)
        code = _ended(process, timeout)
        said = []
        for file in (out, err):
            file.seek(0)
            said.append(file.read().decode("utf-8"))
    return subprocess.CompletedProcess(["veracity", *arguments], code, *said)


@functools.cache
def _import() -> None:
    for name in IMPORTED:
        with suppress(ImportError):
            importlib.import_module(name)
    for module in pkgutil.walk_packages(veracity.__path__, "veracity."):
        if not module.name.endswith("__main__"):
            importlib.import_module(module.name)
    from veracity.data.words import read_text
    from veracity.reports.pages import environment
    from veracity.results.config import versions

    with suppress(VeracityError):
        read_text("好电影")  # the dictionary of Chinese words takes a second to read
    templates = environment()
    templates.filters |= {"reason": str, "sure": str}  # those of the page itself
    for name in ("page.html", "parts.html", "pictures.html", "report.html"):
        templates.get_template(name)  # compiled once for all commands that write a page
    _build_commands()
    versions()  # of the packages that a run names
    gc.collect()
    gc.freeze()  # nobody looks through all this for garbage


def _build_commands() -> None:
    """All verbs with their options, which are the same in every command."""
    import typer.main

    from veracity.cli.main import app

    build = typer.main.get_command
    built = build(app)
    typer.main.get_command = lambda typer_instance: (
        built if typer_instance is app else build(typer_instance)
    )


def _run(
    arguments: tuple[str, ...], cwd: Path, environment: dict[str, str], out: Any, err: Any
) -> NoReturn:
    def prepare() -> None:
        os.chdir(cwd)
        os.environ.update(environment)
        nothing = os.open(os.devnull, os.O_RDONLY)
        for number, file in ((0, nothing), (1, out.fileno()), (2, err.fileno())):
            os.dup2(file, number)
        sys.path[:0] = [str(cwd), *environment.get("PYTHONPATH", "").split(os.pathsep)]
        if PLUGIN_FOLDERS in environment:
            for kind, name in PLUGINS.items():
                package = importlib.import_module(f"veracity.{name}")
                package.__path__ = plugin_path(package.__path__, kind)
            importlib.import_module("veracity.data.formats")._all.cache_clear()
            importlib.import_module("veracity.rules").known_rules.cache_clear()

    as_command(arguments, prepare)


def _ended(process: int, timeout: float) -> int:
    deadline = time.monotonic() + timeout
    while time.monotonic() < deadline:
        ended, status = os.waitpid(process, os.WNOHANG)
        if ended:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.01)
    os.kill(process, signal.SIGKILL)
    os.waitpid(process, 0)
    raise TimeoutError(f"the command took more than {timeout:g} seconds")
