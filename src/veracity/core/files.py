"""Writing files so that a reader sees all of one or none of it."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import IO

from .errors import RunError


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


def _sync_folder(folder: Path) -> None:
    """Make the rename itself survive a power cut, where the system can."""
    with contextlib.suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
