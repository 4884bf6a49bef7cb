"""Writing files so that a reader sees all of one or none of it."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import IO

from .errors import RunError

LOCK = "run.lock"


@contextlib.contextmanager
def written_whole(path: Path) -> Iterator[IO[bytes]]:
    """A file that appears under its name only once it is complete and on the disk."""
    aside = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with aside.open("wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        aside.replace(path)
        _sync_folder(path.parent)
    except OSError as error:
        raise RunError(
            f"could not write {path}: {error.strerror or error}. Nothing written before is lost: "
            "make room or choose another place, then give the same command again to go on"
        ) from error
    finally:
        with contextlib.suppress(OSError):
            aside.unlink(missing_ok=True)


@contextlib.contextmanager
def sole_writer(folder: Path) -> Iterator[None]:
    """One writer per folder at a time; the lock goes with the process, however it ends."""
    try:
        import fcntl
    except ImportError:  # not on this system: two writers would only repeat work
        yield
        return
    try:
        folder.mkdir(parents=True, exist_ok=True)
        file = (folder / LOCK).open("w")
    except OSError as error:
        raise RunError(
            f"could not write to {folder}: {error.strerror or error}. Choose another folder"
        ) from error
    with file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise RunError(
                f"another process is writing to {folder}. Wait for it, or choose another folder"
            ) from None
        yield


def check_own(folder: Path, sign: str, what: str) -> None:
    """Nothing of somebody else is written over: a folder must be new, empty, or hold the sign of
    our own work."""
    if not folder.exists() or (folder / sign).exists():
        return
    if not folder.is_dir():
        raise RunError(f"expected {folder} to be a folder; it is a file. Choose another place")
    if any(p.name != LOCK and p.suffix != ".part" for p in folder.iterdir()):
        raise RunError(
            f"expected {folder} to be a new or empty folder or {what}; it holds other files. "
            "Choose another folder"
        )


def _sync_folder(folder: Path) -> None:
    """Make the rename itself survive a power cut, where the system can."""
    with contextlib.suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
