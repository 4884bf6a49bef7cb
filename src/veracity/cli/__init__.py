"""The command line: one thin function per verb."""

from __future__ import annotations

import io
import os
import sys
import traceback
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Annotated, TextIO, cast

import typer

from .. import __version__
from ..core.errors import DataError, VeracityError
from ..core.secrets import Discreet, hidden, learn
from . import (
    auditing,
    building,
    data,
    explaining,
    listing,
    planting,
    recipes,
    training,
    truths,
    twins,
)
from .exits import BAD_INPUT, BUG, INTERRUPTED
from .reading import with_options
from .showing import print_json

app = typer.Typer(
    help="Find out which explanations of a classifier tell the truth.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    add_completion=False,
    epilog="Start with: veracity demo. Add --debug to any command to see where an error arose.",
)
data_app = typer.Typer(help="Look at data before you trust it.", no_args_is_help=True)
build_app = typer.Typer(
    help="Build pairs with people, sheet by sheet: types, sample, twins, rationales, ratings, "
    "judge, assemble.",
    no_args_is_help=True,
)
truths_app = typer.Typer(
    help="Words held to decide where nobody marked any: pseudo ground truth.",
    no_args_is_help=True,
)
list_app = typer.Typer(help="What there is to choose from.", no_args_is_help=True)

for _verb in (
    training.demo,
    training.train,
    training.pretrain,
    explaining.explain,
    auditing.audit,
    twins.robustness,
    twins.augment,
    planting.plant,
    planting.dryrun,
    planting.suspects,
    recipes.run,
    auditing.compare,
    auditing.report,
):
    app.command()(with_options(_verb))
for _group, _module in (
    (data_app, data),
    (build_app, building),
    (truths_app, truths),
    (list_app, listing),
):
    for _name, _verb in _module.VERBS.items():
        _group.command(_name)(with_options(_verb))
data_app.add_typer(build_app, name="build")
app.add_typer(data_app, name="data")
app.add_typer(truths_app, name="truths")
app.add_typer(list_app, name="list")


@app.callback(invoke_without_command=True)
def _root(
    version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False,
) -> None:
    if version:
        print(__version__)
        raise typer.Exit


def main() -> None:
    """Runs a command; what goes wrong is said in a sentence, with a traceback on --debug only."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # a terminal that cannot show a sign still runs
    warnings.showwarning = _warning_told
    arguments = sys.argv[1:]
    learn(arguments)
    debug = "--debug" in arguments
    arguments = [a for a in arguments if a != "--debug"]
    with (
        redirect_stdout(cast(TextIO, Discreet(sys.stdout))),
        redirect_stderr(cast(TextIO, Discreet(sys.stderr))),
        _errors_told(debug, "--json" in arguments),
    ):
        _check_signs(arguments)
        app(args=arguments, prog_name="veracity")


def _check_signs(arguments: list[str]) -> None:
    """Words and paths in UTF-8: where the locale knows ASCII only, Python is started again in the
    mode that reads them."""
    strange = [a for a in (*arguments, str(Path.cwd())) if not a.isascii() and not _is_text(a)]
    if not strange:
        return
    try:
        for word in strange:
            os.fsencode(word).decode("utf-8")
    except UnicodeDecodeError:
        raise DataError(
            f"expected words and paths in UTF-8, got {strange[0]!r}. Rename the file, or write "
            "the text to a file"
        ) from None
    os.execv(sys.executable, [sys.executable, "-X", "utf8", "-m", "veracity", *sys.argv[1:]])


def _is_text(word: str) -> bool:
    try:
        word.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


def _warning_told(
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    file: TextIO | None = None,
    line: str | None = None,
) -> None:
    """Our own warnings in a line each; those of the libraries below are not the user's concern."""
    if category is UserWarning:
        print(f"veracity: {hidden(str(message))}", file=sys.stderr)


@contextmanager
def _errors_told(debug: bool, as_json: bool) -> Iterator[None]:
    try:
        yield
    except VeracityError as error:
        _fail(str(error), BAD_INPUT, debug, as_json, error)
    except (KeyboardInterrupt, SystemExit) as error:
        if isinstance(error, SystemExit) and error.code != INTERRUPTED:
            raise
        message = "interrupted. What was written is kept: the same command goes on from there"
        _fail(message, INTERRUPTED, debug, as_json, error)
    except BrokenPipeError:
        sys.stderr.close()
        raise SystemExit(0) from None
    except (OSError, MemoryError) as error:
        _fail(f"{error or type(error).__name__}", BAD_INPUT, debug, as_json, error)
    except Exception as error:
        message = (
            f"unexpected {type(error).__name__}: {error}. This should not happen: please report "
            "it with the output of the same command and --debug"
        )
        _fail(message, BUG, debug, as_json, error)


def _fail(message: str, code: int, debug: bool, as_json: bool, error: BaseException) -> None:
    if debug:
        traceback.print_exception(error)
        raise SystemExit(code)
    from ..reports.showing import printable

    message = hidden(message)
    if as_json:
        print_json({"error": message})
    for i, line in enumerate(message.splitlines()):
        print(("" if i else "veracity: ") + printable(line), file=sys.stderr)
    raise SystemExit(code) from None
