"""Pictures in folders that are called as their labels, on disk or in a zip archive."""

from __future__ import annotations

import os
import zipfile
import zlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path, PurePosixPath

from ..core.errors import DataError, LimitError
from ..core.files import check_file, read_bytes
from ..core.limits import BYTES, FILES, PICTURES
from .fields import unwritable
from .pictures import StoredFile
from .readers import RawRow, RawTable
from .splits import NAMES, PARTS

ENDINGS = (".png", ".jpg", ".jpeg", ".jpe", ".jfif", ".webp")
OTHERS = (".gif", ".bmp", ".tif", ".tiff", ".heic", ".heif", ".avif", ".jp2")
"""Pictures that are not read: a row each, so that it is told."""
SPLITS = frozenset((*PARTS, *NAMES))
ARCHIVE = ".zip"


@dataclass(frozen=True)
class FileTree:
    """Files by their names, as in `train/cat/1.png`, and the folders around them."""

    files: Mapping[str, StoredFile]
    folders: frozenset[str]
    unread: Mapping[str, str] = field(default_factory=dict)
    """Files that cannot be read, and why."""
    not_followed: Mapping[str, str] = field(default_factory=dict)
    """Links to folders that are read elsewhere, and where."""

    @classmethod
    def of(cls, path: Path) -> FileTree:
        """What a folder or an archive holds, without what systems hide in it."""
        return _archived(path) if is_archive(path) else _on_disk(path)

    def pictures(self) -> list[str]:
        """The names of pictures, in order; those of kinds that are not read as well."""
        names = {*self.files, *self.unread}
        return sorted(name for name in names if name.lower().endswith((*ENDINGS, *OTHERS)))


def is_archive(path: Path) -> bool:
    return path.suffix.lower() == ARCHIVE and path.is_file()


def picture_table(tree: FileTree, masks: FileTree | None = None) -> RawTable:
    """A row per picture, in the order of names: what folders it lies in are its label and, if they
    are called so, its split; a label folder without a picture is a faulty row."""
    pictures = tree.pictures()
    start, in_splits = _layout(tree)
    depth = start + in_splits  # the place of the label in a name
    empty = _without_pictures(tree, depth)
    known: dict[str, StoredFile] = {}
    if masks is not None:
        known = {_stem(name): masks.files[name] for name in masks.pictures() if name in masks.files}
    rows = []
    for i, name in enumerate(sorted((*pictures, *empty)), 1):
        if name in empty:
            rows.append(RawRow(i, {}, "the folder of this label holds no picture", file=name))
            continue
        if name in tree.unread:
            rows.append(RawRow(i, {"id": name}, tree.unread[name], file=name))
            continue
        *around, own = name.split("/")
        if what := unwritable(name):
            whose = "the name of this file" if unwritable(own) else "that of a folder around it"
            fault = f"expected names in UTF-8, but {whose} holds {what}: rename it"
            rows.append(RawRow(i, {}, fault, file=name))
            continue
        values = {"id": name, "picture": tree.files[name]}
        if len(around) > depth:
            values["label"] = around[depth]
        if in_splits and len(around) > start:
            values["split"] = around[start]
        if (mask := known.pop(_stem(name), None)) is not None:
            values["mask"] = mask
        rows.append(RawRow(i, values, file=name))
    for left, fault in _left_over(tree, masks, known.values()):
        rows.append(RawRow(len(rows) + 1, {}, fault, "warning", file=left))
    told = {key for row in rows for key in row.values}
    # where every row is faulty, that is told row by row
    told |= {"label"} if any(row.fault and row.severity == "error" for row in rows) else set()
    others = sorted(told - {"id", "picture"})
    return RawTable(("id", "picture", *others) if rows else (), tuple(rows))


def _left_over(
    tree: FileTree, masks: FileTree | None, unused: Iterable[StoredFile]
) -> Iterator[tuple[str, str]]:
    """What lies there and is no row of the data, and why."""
    yield from tree.not_followed.items()
    yield from masks.not_followed.items() if masks is not None else ()
    for name in sorted(mask.name for mask in unused):
        yield name, f"the mask {name} has no picture of its name"


def _layout(tree: FileTree) -> tuple[int, bool]:
    """How many folders, each alone in the one before, lie around all of it; and whether those
    inside are parts of the data."""
    around = {tuple(n.split("/")[:-1]) for n in tree.pictures() if n not in tree.unread}
    folders = {tuple(name.split("/")) for name in tree.folders}
    start = 0
    while True:
        tops = {parts[start] for parts in around | folders if len(parts) > start}
        in_splits = bool(tops) and {top.lower() for top in tops} <= SPLITS
        if in_splits or len(tops) != 1 or min(map(len, around), default=0) < start + 2:
            return start, in_splits
        start += 1


def _without_pictures(tree: FileTree, depth: int) -> list[str]:
    full = {"/".join(name.split("/")[: depth + 1]) for name in tree.pictures()}
    labels = {"/".join(name.split("/")[: depth + 1]) for name in tree.folders}
    return sorted(f"{name}/" for name in labels - full if name.count("/") == depth)


def _stem(name: str) -> str:
    return str(PurePosixPath(name).with_suffix(""))


def _hidden(name: str) -> bool:
    return any(part.startswith(".") or part == "__MACOSX" for part in name.split("/"))


def _on_disk(path: Path) -> FileTree:
    """Links are followed to folders outside; no folder is read twice, or its pictures would stand
    under two names, and perhaps two labels."""
    files: dict[str, StoredFile] = {}
    folders: set[str] = set()
    not_followed: dict[str, str] = {}
    root = path.resolve()
    read: dict[Path, str] = {}
    for place, inside, names in os.walk(path, followlinks=True):
        here = Path(place).relative_to(path).as_posix()
        within = "" if here == "." else f"{here}/"
        around = Path(place).resolve()
        followed = []
        for name in sorted(name for name in inside if not _hidden(name)):
            real = (around / name).resolve()
            if elsewhere := _read_elsewhere(real, around / name, root, read):
                not_followed[within + name] = (
                    f"this link is not followed: it leads to {elsewhere}. Remove it, or put "
                    "copies of what is meant in its place"
                )
                continue
            read[real] = within + name
            followed.append(name)
        inside[:] = followed
        folders |= {within + name for name in followed}
        for name in names:
            if not _hidden(name):
                content = partial(_file, Path(place) / name)
                files[within + name] = StoredFile(within + name, content)
        FILES.check(len(files), path)
    return FileTree(files, frozenset(folders), not_followed=not_followed)


def _read_elsewhere(real: Path, called: Path, root: Path, read: Mapping[Path, str]) -> str:
    """Where the pictures of a folder are read already, or will be; else nothing."""
    if root.is_relative_to(real) or (called != real and called.is_relative_to(real)):
        return "a folder that it lies in"
    if called != real and real.is_relative_to(root):
        inside = real.relative_to(root).as_posix()
        if not _hidden(inside):
            return f"{inside}, a folder of the same data"
    return f"a folder that is read as {read[real]}" if real in read else ""


def _file(path: Path) -> bytes:
    try:
        return read_bytes(path)
    except LimitError as error:
        raise ValueError(str(error)) from None
    except OSError as error:
        raise ValueError(f"cannot be read ({error.strerror})") from None


def _archived(path: Path) -> FileTree:
    """Members are read one by one where they lie; nothing is unpacked to the disk."""
    try:
        check_file(path)
        archive = zipfile.ZipFile(path)
    except (zipfile.BadZipFile, OSError, ValueError, NotImplementedError) as error:
        raise DataError(f"{path}: expected a whole zip archive ({error}); fetch it again") from None
    members = archive.infolist()
    FILES.check(len(members), path)
    PICTURES.check(sum(member.file_size for member in members), path)
    files: dict[str, StoredFile] = {}
    folders: set[str] = set()
    unread: dict[str, str] = {}
    for member in members:
        name = member.filename.rstrip("/")
        if _hidden(name) and not name.startswith(".."):
            continue
        if why := _refused(member, files):
            unread[name] = why
            continue
        if not member.is_dir():
            files[name] = StoredFile(name, partial(_member, archive, member))
        folders |= set(_around(name if member.is_dir() else name.rpartition("/")[0]))
    return FileTree(files, frozenset(folders), unread)


def _around(folder: str) -> Iterator[str]:
    """A folder and those that it lies in."""
    parts = folder.split("/") if folder else []
    return ("/".join(parts[:i]) for i in range(1, len(parts) + 1))


def _refused(member: zipfile.ZipInfo, files: Mapping[str, StoredFile]) -> str:
    parts = member.filename.rstrip("/").split("/")
    if ".." in parts or "" in parts or "\\" in member.filename or ":" in parts[0]:
        return "expected the name of a file inside the archive; this one leads out of it"
    if member.filename in files:
        return "the archive holds more than one file of this name"
    if member.flag_bits & 1:
        return "this file is encrypted: pack it without a password"
    if member.file_size > BYTES.value:
        return BYTES.exceeded(member.file_size)
    return ""


def _member(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> bytes:
    try:
        with archive.open(member) as file:
            return file.read(member.file_size)
    except (zipfile.BadZipFile, zlib.error, OSError, EOFError, NotImplementedError) as error:
        raise ValueError(f"cannot be read out of the archive ({error})") from None
