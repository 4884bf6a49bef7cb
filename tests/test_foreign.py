"""Somebody else's code: whatever it does but answer is an error under its name."""

from __future__ import annotations

import importlib
import os
import signal
import sys
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import pytest

from commands import run_command
from veracity.changes import changes
from veracity.cli.reading import only_own_exits
from veracity.core.errors import ModelError, PluginError
from veracity.core.examples import Dataset
from veracity.core.foreign import PACKAGE
from veracity.core.inputs import Text
from veracity.core.plugins import plugin_path
from veracity.models.adapters.callables import CallableClassifier
from veracity.models.loading import load_model

LEAVING = """
import sys

def leaves(texts):
    sys.exit(0)

def ends(texts):
    import os
    os._exit(0)

def interrupts(texts):
    raise KeyboardInterrupt

def cancels(texts):
    raise GeneratorExit

class Shy(Exception):
    def __str__(self):
        sys.exit(0)

def shy(texts):
    raise Shy

class Lazy:
    def __array__(self, dtype=None, copy=None):
        sys.exit(0)

def lazy(texts):
    return Lazy()

class Named:
    @property
    def labels(self):
        sys.exit(0)

    def __call__(self, texts):
        return [[0.5, 0.5] for _ in texts]

named = Named()

def __getattr__(name):
    sys.exit(0)
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("leaving.py").write_text(LEAVING, "utf-8")
    return tmp_path


@pytest.fixture
def our_handler() -> Iterator[None]:
    """As the command has one: an interruption by a person comes from a file of ours."""
    code = "def handler(*_):\n    raise KeyboardInterrupt"
    made: dict[str, Any] = {}
    exec(compile(code, str(PACKAGE / "cli" / "__init__.py"), "exec"), made)
    before = signal.signal(signal.SIGINT, made["handler"])
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.parametrize(
    ("name", "deed"),
    [
        ("leaves", r"called sys\.exit\(0\).* instead of answering"),
        ("ends", r"called os\._exit\(0\).* instead of answering"),
        ("interrupts", "raised KeyboardInterrupt"),
        ("cancels", "raised GeneratorExit"),
        ("shy", r"raised Shy.*: \(a message that cannot be printed\)"),
        ("lazy", r"called sys\.exit\(0\)"),
        ("named", r"called sys\.exit\(0\)"),
        ("absent", r"called sys\.exit\(0\)"),
    ],
)
@pytest.mark.usefixtures("our_handler")
def test_a_model_that_does_not_answer_has_failed(folder: Path, name: str, deed: str) -> None:
    with pytest.raises(ModelError, match=rf"{name}.*{deed}|{deed}.*{name}"):
        load_model(f"leaving.py:{name}").probabilities([Text.of_words(["good"])])


@pytest.mark.usefixtures("our_handler")
def test_a_person_may_interrupt_a_model() -> None:
    def pressed(texts: list[str]) -> NoReturn:
        signal.raise_signal(signal.SIGINT)
        raise AssertionError

    with pytest.raises(KeyboardInterrupt):
        CallableClassifier(pressed, ["a", "b"]).probabilities([Text.of_words(["good"])])


@pytest.mark.parametrize(("name", "deed"), [("leaves", "sys.exit(0)"), ("ends", "os._exit(0)")])
def test_a_model_that_leaves_passes_no_gate(folder: Path, name: str, deed: str) -> None:
    out = run_command(
        "explain", f"leaving.py:{name}", "good film", "--method", "occlusion", cwd=folder
    )
    assert (out.returncode, out.stdout) == (2, "")
    assert f"leaving.py:{name} called {deed}" in out.stderr


CHANGE = """
import sys
from dataclasses import dataclass
from veracity.core.changes import Change

@dataclass(frozen=True)
class Leave(Change):
    how: str = "leave"

    def changed(self, data, *, seed):
        sys.exit(0) if self.how == "leave" else 1 / 0
"""


@pytest.mark.parametrize(
    ("how", "deed"), [("leave", r"called sys\.exit\(0\)"), ("fail", "raised ZeroDivisionError")]
)
def test_a_plugin_that_leaves_is_called_by_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: str, deed: str
) -> None:
    (tmp_path / "leave.py").write_text(CHANGE, "utf-8")
    package = importlib.import_module(changes.package)
    monkeypatch.setattr(package, "__path__", [*package.__path__, str(tmp_path)])
    monkeypatch.delitem(sys.modules, f"{changes.package}.leave", raising=False)
    change = changes.make(f"leave(how={how})")
    fault = rf"plug-in leave \(.*leave.py, line 1\d\) {deed}"
    with pytest.raises(PluginError, match=fault), only_own_exits():
        change.changed(Dataset("nothing", (), ()), seed=0)


def test_a_broken_plugin_of_a_relative_folder_is_told_with_its_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "mine" / "changes").mkdir(parents=True)
    broken = tmp_path / "mine" / "changes" / "broken_off.py"
    broken.write_text('"""A change that cannot be read."""\n\n1 / 0\n', "utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("VERACITY_PLUGINS", "mine")
    package = importlib.import_module(changes.package)
    monkeypatch.setattr(package, "__path__", plugin_path(package.__path__, "changes"))
    with pytest.raises(PluginError, match=r"broken_off\.py, line 3\) raised ZeroDivisionError"):
        changes.make("broken_off")


@pytest.mark.parametrize(
    "leave", [lambda: exit_by(SystemExit(0)), lambda: exit_by(GeneratorExit())]
)
def test_nobody_else_ends_a_command(leave: Callable[[], None]) -> None:
    with pytest.raises(PluginError, match=r"not ours .*test_foreign\.py"), only_own_exits():
        leave()


def exit_by(error: BaseException) -> NoReturn:
    raise error


def test_code_that_prints_or_goes_elsewhere_leaves_results_where_they_are(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path)

    def wanders(texts: list[str]) -> Any:
        print("a word of mine")
        os.chdir(tmp_path / "elsewhere")
        return [[0.4, 0.6]] * len(texts)

    load_model(wanders, labels=("a", "b")).probabilities([Text.of_words(["x"])])
    assert Path.cwd() == tmp_path
    told = capsys.readouterr()
    assert "a word of mine" in told.err and not told.out


def test_code_may_begin_processes_that_end() -> None:
    def forks(texts: list[str]) -> Any:
        child = os.fork()
        if not child:
            os._exit(3)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 3
        return [[0.4, 0.6]] * len(texts)

    before = os._exit
    load_model(forks, labels=("a", "b")).probabilities([Text.of_words(["x"])])
    assert os._exit is before


def test_what_code_sets_for_all_is_set_back() -> None:
    def sets(texts: list[str]) -> Any:
        warnings.simplefilter("error")
        sys.setrecursionlimit(200)
        np.seterr(all="raise")
        return [[0.4, 0.6]] * len(texts)

    def settings() -> tuple[Any, ...]:
        return warnings.filters[:], sys.getrecursionlimit(), np.geterr()

    before = settings()
    load_model(sets, labels=("a", "b")).probabilities([Text.of_words(["x"])])
    assert settings() == before
