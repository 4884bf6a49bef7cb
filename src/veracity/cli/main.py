"""The command line: one thin function per verb."""

from __future__ import annotations

import atexit
import errno
import io
import os
import signal
import sys
import threading
import traceback
import warnings
from contextlib import redirect_stderr, redirect_stdout, suppress
from pathlib import Path
from typing import Annotated, TextIO, cast

import typer

from .. import __version__
from ..core.errors import DataError, VeracityError
from ..core.secrets import RedactingStream, redact, register_arguments
from . import (
    auditing,
    building,
    data,
    explaining,
    listing,
    planting,
    recipes,
    rules,
    training,
    truths,
    twins,
)
from .exits import BAD_INPUT, BUG, CLOSED_PIPE, SIGNALLED, Signals, ignore_signals
from .reading import command
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
rules_app = typer.Typer(
    help="Which clause of a text ought to decide, and does it?", no_args_is_help=True
)
list_app = typer.Typer(
    help="What there is to choose from.",
    epilog="A name tells more: veracity list lime.",
    no_args_is_help=True,
    cls=listing.PluginGroup,
)

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
    app.command()(command(_verb))
for _group, _module in (
    (data_app, data),
    (build_app, building),
    (truths_app, truths),
    (rules_app, rules),
    (list_app, listing),
):
    for _name, _verb in _module.VERBS.items():
        _group.command(_name)(command(_verb))
data_app.add_typer(build_app, name="build")
app.add_typer(data_app, name="data")
app.add_typer(truths_app, name="truths")
app.add_typer(rules_app, name="rules")
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
    warnings.showwarning = _show_warning
    for name, least in (("COLUMNS", 1), ("SOURCE_DATE_EPOCH", 0)):  # libraries fail at others
        if not _is_number(os.environ.get(name, "80"), least):
            del os.environ[name]
    arguments = sys.argv[1:]
    register_arguments(arguments)
    debug = "--debug" in arguments
    arguments = [a for a in arguments if a != "--debug"]
    error: BaseException | None = None
    with (
        redirect_stdout(_redacting(sys.stdout)),
        redirect_stderr(_redacting(sys.stderr)),
    ):
        with Signals.handled() as signals:
            try:
                _check_encoding(arguments)
                app(args=arguments, prog_name="veracity")
            except BaseException as raised:
                signals.ended = True
                error = raised
        message, code = _outcome(error, signals.number)
        if message:
            _report(redact(message), "--json" in arguments, error if debug else None)
        for stream in (sys.stdout, sys.stderr):
            _flush_error(stream)  # else Python says so at exit, and with a code of its own
    # what a stranger's code left behind, a thread or a closed stream, would keep us or have a code
    # of its own, and so would another signal
    closed = any(stream is not None and stream.closed for stream in (sys.stdout, sys.stderr))
    if signals.number is not None or closed or threading.active_count() > 1:
        os._exit(code)
    # to leave takes seconds where much was loaded: a signal in these ends what is done already
    atexit.register(ignore_signals)
    raise SystemExit(code)


def _redacting(stream: TextIO | None) -> TextIO | None:
    """A stream that prints no secret; one that who called has closed stays so."""
    return None if stream is None else cast(TextIO, RedactingStream(stream))


def _check_encoding(arguments: list[str]) -> None:
    """Words and paths in UTF-8: where the locale knows ASCII only, Python is started again in the
    mode that reads them."""
    try:
        here = str(Path.cwd())
    except FileNotFoundError:
        raise DataError("the working folder is gone. Change to one that is there") from None
    strange = [a for a in (*arguments, here) if not a.isascii() and not _is_text(a)]
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


def _is_number(word: str, least: int) -> bool:
    return word.isascii() and word.isdecimal() and len(word) < 20 and int(word) >= least


def _is_text(word: str) -> bool:
    try:
        word.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


def _show_warning(
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    file: TextIO | None = None,
    line: str | None = None,
) -> None:
    """Our own warnings in a line each; those of the libraries below are not the user's concern."""
    if category is UserWarning:
        print(f"veracity: {redact(str(message))}", file=sys.stderr)


def _outcome(error: BaseException | None, received: int | None) -> tuple[str, int]:
    """What is to be said, and the exit code: the one place that decides both."""
    lost = _flush_error(sys.stdout)
    code = error.code if isinstance(error, SystemExit) else None
    behind = error.__context__ if isinstance(error, SystemExit) else None
    interrupted = isinstance(error, KeyboardInterrupt) or code == SIGNALLED + signal.SIGINT
    if interrupted or (received is not None and error is not None and code != 0):
        number = received or signal.SIGINT
        said = "interrupted. What was written is kept: the same command goes on from there"
        if sys.argv[1:2] == ["suspects"]:
            said = (
                "interrupted. Of a look for suspects nothing is kept: it begins anew (see --limit)"
            )
        return said, SIGNALLED + number
    if any(isinstance(e, BrokenPipeError) for e in (error, behind, lost)):
        return "", CLOSED_PIPE
    full = lost or error
    # without a buffer printing itself fails; what fails to be written to a file of ours names it
    if isinstance(full, OSError) and (lost or full.errno in (errno.ENOSPC, errno.EIO)):
        said = f"could not write to standard output or to the disk: {full.strerror or full}"
        return f"{said}. Make room and give the same command again", BAD_INPUT
    if error is None or (isinstance(code, int) and code == getattr(behind, "exit_code", None)):
        return "", code if isinstance(code, int) else 0  # said already
    if isinstance(behind, typer.Abort):
        return f"a file ended too early: {behind.__cause__}", BAD_INPUT
    if isinstance(error, SystemExit):
        said = f"code of a model or a plug-in ended the program with sys.exit({code!r})"
        return f"{said}; expected it to answer", BAD_INPUT
    if isinstance(error, VeracityError):
        return str(error), BAD_INPUT
    if isinstance(error, OSError) and error.strerror and isinstance(error.filename, str):
        name = error.filename
        return f"{name[:200]}{'…' * (len(name) > 200)}: {error.strerror}", BAD_INPUT
    if isinstance(error, OSError | MemoryError):
        return f"{error or type(error).__name__}", BAD_INPUT
    return (
        f"unexpected {type(error).__name__}: {error}. This should not happen: please report it "
        "with the output of the same command and --debug",
        BUG,
    )


def _report(message: str, as_json: bool, error: BaseException | None) -> None:
    try:
        from ..reports.showing import printable
    except BaseException:  # a signal in the middle of an import leaves it broken

        def printable(text: str) -> str:
            return text.encode("ascii", "backslashreplace").decode()

    with suppress(OSError):
        if as_json:
            print_json({"error": message})
    with suppress(OSError):
        if error is not None:
            traceback.print_exception(error)
        for i, line in enumerate(message.splitlines()):
            print(("" if i else "veracity: ") + printable(line), file=sys.stderr)


def _flush_error(stream: TextIO | None) -> OSError | None:
    """Why what was printed reaches nobody, if so; what is left of it is then let go."""
    if stream is None or stream.closed:  # by who called
        return None
    try:
        stream.flush()
    except OSError as error:
        with suppress(OSError, ValueError):
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, stream.fileno())
            os.close(nowhere)
        return error
    return None
