"""Pictures that are named on the command line."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..core.errors import DataError

if TYPE_CHECKING:
    from ..core.examples import Dataset


def are_pictures(named: list[str], reads: str | None) -> bool:
    """Whether these are paths of pictures, or of folders or archives that hold some, and no texts;
    to a model that reads texts, a word that is also a folder's name is a word."""
    from ..data.picture_folders import ENDINGS, OTHERS

    ends = (*ENDINGS, *OTHERS)
    return bool(named) and all(
        name.strip() and (name.lower().endswith(ends) or (reads != "text" and bool(_inside(name))))
        for name in named
    )


def typed_pictures(named: list[str], size: str, segments: str | None) -> Dataset[Any]:
    """The pictures in these files, folders and archives by their names, or a sentence about the
    first that cannot be read."""
    from ..core.examples import UNLABELLED, Dataset, Example
    from ..data.pictures import PictureReader, Size

    reader = PictureReader(size=Size.of(size) if size else None, segmentation=segments or None)
    found = []
    for name in named:
        for inside, source in (_inside(name) or {"": Path(name)}).items():
            full = f"{name.rstrip('/')}/{inside}" if inside else name
            try:
                found.append(Example(full, reader.picture(source)[0], 0))
            except ValueError as error:
                raise DataError(f"{full}: {error}" if inside else str(error)) from None
    return Dataset(named[0] if len(named) == 1 else "these files", (UNLABELLED,), tuple(found))


def _inside(name: str) -> Mapping[str, Any]:
    """By their names, the pictures in a folder or an archive; none in anything else."""
    from ..data.picture_folders import FileTree, is_archive

    path = Path(name)
    try:
        if not (path.is_dir() or is_archive(path)):
            return {}
    except (OSError, ValueError):  # too long for a path: a text
        return {}
    tree = FileTree.of(path)
    for refused in tree.pictures():
        if refused in tree.unread:
            raise DataError(f"{name}/{refused}: {tree.unread[refused]}")
    return {inside: tree.files[inside] for inside in tree.pictures()}
