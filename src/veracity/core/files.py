"""Files and folders: read as far as limits go, written whole, and never over somebody else's."""

from __future__ import annotations

import contextlib
import gzip
import hashlib
import json
import math
import os
import re
import stat
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from .errors import RunError, VeracityError
from .limits import BYTES, NESTING, VALUES

LOCK = "run.lock"

_TEMPORARY = re.compile(r"\..+\.\d+\.part")

# ---- reading ----------------------------------------------------------------------------------

_KINDS = (
    (stat.S_ISDIR, "a folder"),
    (stat.S_ISFIFO, "a named pipe"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
)


def check_file(path: Path) -> int:
    """The size of a file; links are followed, and what may never end or answer is refused."""
    found = path.stat()
    for matches, name in _KINDS:
        if matches(found.st_mode):
            raise OSError(0, f"expected a file, got {name}", str(path))
    return found.st_size


def read_bytes(path: Path, *, packed: bool = False) -> bytes:
    """All of a file, unpacked where it is `packed` by gzip, unless it is larger than we take."""
    size = check_file(path)
    BYTES.check(size, path)
    with gzip.open(path) if packed else path.open("rb") as file:
        # as much memory is set aside as is asked for
        content = file.read(BYTES.value + 1 if packed else size + 1)
    if len(content) > BYTES.value:
        BYTES.check(len(content), path)
    return content


# ---- writing ----------------------------------------------------------------------------------


@contextlib.contextmanager
def written_whole(path: Path) -> Iterator[IO[bytes]]:
    """A file that appears under its name only once it is complete and on the disk."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with temporary.open("wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
        _sync_folder(path.parent)
    except OSError as error:
        raise RunError(
            f"could not write {path}: {error.strerror or error}. Nothing written before is lost: "
            "make room or choose another place, then give the same command again to go on"
        ) from error
    finally:
        with contextlib.suppress(OSError):
            temporary.unlink(missing_ok=True)


# ---- JSON -------------------------------------------------------------------------------------


CHECKSUM = "veracity_sha256"
"""The field by which a record of ours is known to be as it was written."""


def read_json(path: Path) -> Any:
    """What a JSON file holds, without its checksum; whatever is wrong with it, also that it is not
    as it was written, is a ValueError or an OSError."""
    value = parse_json(read_bytes(path).decode("utf-8"), path)
    if isinstance(value, dict) and CHECKSUM in value:
        checksum = value.pop(CHECKSUM)
        if checksum != _checksum(value):
            raise ValueError(
                f"its checksum does not fit what it holds. If somebody changed it on purpose, "
                f'remove "{CHECKSUM}" from it'
            )
    return value


def with_checksum(record: Mapping[str, Any]) -> dict[str, Any]:
    """A record by which `read_json` tells whether it was changed since."""
    return {**record, CHECKSUM: _checksum(record)}


def _checksum(record: Mapping[str, Any]) -> str:
    """Of what is said, however it is laid out and numbers are spelt: some write 25.0 as 25."""
    said = json.loads(json.dumps(record), parse_int=float)
    return hashlib.sha256(json.dumps(said, sort_keys=True).encode()).hexdigest()


def parse_json(text: str, where: object = "JSON") -> Any:
    """A value of bounded size and depth; whatever is wrong with it is a ValueError."""
    opened = text.count("[") + text.count("{")
    # each of these signs begins one value at most, so the memory taken is bounded beforehand
    VALUES.check(opened + text.count(","), where)
    try:
        value = json.loads(text)
    except RecursionError:
        raise ValueError(NESTING.exceeded()) from None
    if opened > NESTING.value and (depth := _depth(value)) > NESTING.value:
        raise ValueError(NESTING.exceeded(depth))
    return value


def _depth(value: Any) -> int:
    depth, level = 0, [value]
    while level := [v for v in level if isinstance(v, dict | list)]:
        depth += 1
        level = [x for v in level for x in (v.values() if isinstance(v, dict) else v)]
    return depth


@contextlib.contextmanager
def reading(
    path: Path,
    *,
    expected: str = "",
    missing: str = "",
    remedy: str = "",
    error: type[VeracityError] = RunError,
) -> Iterator[None]:
    """Whatever is wrong with a record of ours while it is read is one sentence: that it is not what
    was `expected`, by default that it is damaged; that it is `missing`; and what to do."""
    try:
        yield
    except (OSError, ValueError, LookupError, TypeError, AttributeError, OverflowError) as fault:
        if isinstance(fault, FileNotFoundError) and missing:
            raise error(missing) from None
        unread = isinstance(fault, OSError)
        why = fault.strerror if isinstance(fault, OSError) and fault.strerror else fault
        why = f"it has no {fault}" if isinstance(fault, KeyError) else why
        seen = f"{path} {'cannot be read' if unread else 'is damaged'} ({why})"
        sentences = (f"{expected}; {why}" if expected else seen, remedy)
        raise error(". ".join(filter(None, sentences))) from None


def check_format(
    content: Any, known: int, path: Path, error: type[VeracityError] = RunError
) -> None:
    """Files of versions to come are told from damaged ones."""
    if content["format"] != known:
        raise error(
            f"{path} has format {content['format']!r:.20}; this version reads {known}. "
            "Install the version of veracity that wrote it"
        )


def plain(value: Any) -> Any:
    """What JSON can say: lists for tuples, and null for numbers that are not defined."""
    if isinstance(value, Mapping):
        return {k: plain(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [plain(v) for v in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def as_read(value: Any) -> Any:
    """A value as it is read back from a file."""
    return json.loads(json.dumps(plain(value)))


def write_json(path: Path, value: Any, *, indent: int | None = 1, checksum: bool = True) -> Path:
    """What `read_json` reads, all of it or nothing. Records have a checksum, but not tables by
    name nor what is written for others alone."""
    found = plain(value)
    if checksum and isinstance(found, dict):
        found = with_checksum(found)
    content = json.dumps(found, indent=indent, ensure_ascii=False).encode()
    with written_whole(path) as file:
        file.write(content)
    return path


# ---- whose a file or folder is ----------------------------------------------------------------


def check_new(path: Path, sign: bytes = b"") -> None:
    """The rule for one file, told before any work is done: it must be new, or hold in its beginning
    the sign of what we write there."""
    if not os.path.lexists(path):
        return
    if path.is_dir():
        raise RunError(f"expected {path} to be a file; it is a folder. Choose another place")
    if sign and path.is_file():
        with path.open("rb") as file:
            if sign in file.read(4096):
                return
    other = ", and is no page of ours" if sign else ""
    raise RunError(f"{path} is there already{other}. Choose another name")


@dataclass(frozen=True)
class FolderKind:
    """What a folder that we write holds, such as "an audit", and the record in it by which a
    finished one is known."""

    name: str
    record: str

    @property
    def mark(self) -> str:
        """What the lock of such a folder says."""
        return f"veracity: {self.name}\n"


def check_own(folder: Path, kind: FolderKind) -> None:
    """The rule for every folder that is written: new, empty, or ours and of this kind, as it says
    itself. Nothing of somebody else is written over or removed."""
    if not os.path.lexists(folder):
        return
    if not folder.is_dir():
        what = "a file" if folder.exists() else "a link that leads nowhere"
        raise RunError(f"expected {folder} to be a folder; it is {what}. Choose another place")
    content = _lock_content(folder / LOCK)
    if not any(p.name != LOCK and not _TEMPORARY.fullmatch(p.name) for p in folder.iterdir()):
        if content is None or content in ("", kind.mark):
            return
    elif content == kind.mark or _is_earlier(folder, kind, content):
        return
    ours = content and re.fullmatch(r"veracity: (.+)\n", content)
    holds = f"{ours[1]} of ours" if ours else "other files"
    raise RunError(
        f"expected {folder} to be a new or empty folder or {kind.name} of ours; it holds {holds}. "
        "Choose another folder"
    )


def _lock_content(lock: Path) -> str | None:
    """What a lock says; None where there is none. A link is none of ours."""
    if not os.path.lexists(lock):
        return None
    if lock.is_symlink() or not lock.is_file():
        return "something else"
    with lock.open("rb") as file:
        return file.read(100).decode("utf-8", "replace")


def _is_earlier(folder: Path, kind: FolderKind, content: str | None) -> bool:
    """Folders of earlier versions, whose lock is empty, and copies that left the lock behind."""
    record = folder / kind.record
    if content == "":
        return record.exists()
    try:
        return content is None and "format" in read_json(record)
    except (OSError, ValueError, TypeError):
        return False


@contextlib.contextmanager
def sole_writer(folder: Path, kind: FolderKind) -> Iterator[None]:
    """One writer per folder at a time, and only where the folder is ours to write; the lock goes
    with the process, however it ends, and its file says whose the folder is."""
    check_own(folder, kind)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        file = (folder / LOCK).open("a")
    except OSError as error:
        raise RunError(
            f"could not write to {folder}: {error.strerror or error}. Choose another folder"
        ) from error
    with contextlib.closing(file):
        try:
            import fcntl

            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except ImportError:  # not on this system: two writers would only repeat work
            pass
        except OSError:
            raise RunError(
                f"another process is writing to {folder}. Wait for it, or choose another folder"
            ) from None
        if not _lock_content(folder / LOCK):
            # in place: under another file of the same name the lock would not be seen
            try:
                os.write(file.fileno(), kind.mark.encode())
            except OSError as error:
                raise RunError(
                    f"could not write to {folder}: {error.strerror}. Make room, or choose another "
                    "folder"
                ) from error
        yield


def remove_own(folder: Path, names: str) -> None:
    """Removes the files below a folder whose names are of this form, and folders that this leaves
    empty; whatever else lies there stays."""
    if folder.is_symlink() or not folder.is_dir():
        return
    for path in folder.iterdir():
        if path.is_dir() and not path.is_symlink():
            remove_own(path, names)
        elif re.fullmatch(names, path.name):
            path.unlink()
    with contextlib.suppress(OSError):  # something else lies there
        folder.rmdir()


def _sync_folder(folder: Path) -> None:
    """Make the rename itself survive a power cut, where the system can."""
    with contextlib.suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
