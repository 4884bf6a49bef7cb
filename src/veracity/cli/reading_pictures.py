"""Pictures that are named on the command line."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from ..core.errors import DataError

if TYPE_CHECKING:
    from ..core.examples import Dataset
    from ..core.images import Image


def are_pictures(named: list[str]) -> bool:
    """Whether these are paths of pictures, or of folders with pictures, and no texts."""
    from ..data.picture_folders import ENDINGS, OTHERS

    ends = (*ENDINGS, *OTHERS)
    found = [
        name for name in named if name.strip() and (name.lower().endswith(ends) or _folder(name))
    ]
    return bool(found) and len(found) == len(named)


def typed_pictures(named: list[str], size: str, segments: str) -> Dataset[Image]:
    """The pictures in these files and folders by their names, or a sentence about the first that
    cannot be read."""
    from ..core.examples import UNLABELLED, Dataset, Example
    from ..data.picture_folders import FileTree
    from ..data.pictures import PictureReader, Size

    reader = PictureReader(size=Size.of(size) if size else None, segmentation=segments)
    files: list[tuple[str, Path]] = []
    for name in named:
        inside = FileTree.of(Path(name)).pictures() if _folder(name) else [""]
        if not inside:
            raise DataError(f"expected pictures in the folder {name}, got none")
        files += [
            (f"{name.rstrip('/')}/{one}" if one else name, Path(name) / one) for one in inside
        ]
    found = []
    for name, path in files:
        try:
            found.append(Example(name, reader.picture(path)[0], 0))
        except ValueError as error:
            raise DataError(str(error)) from None
    return Dataset(named[0] if len(named) == 1 else "these files", (UNLABELLED,), tuple(found))


def _folder(name: str) -> bool:
    try:
        return Path(name).is_dir()
    except (OSError, ValueError):  # too long for a path: a text
        return False
