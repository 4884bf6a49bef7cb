"""Corpora that come with a package or are made on the spot, under a name."""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any, ClassVar

from ..core.errors import DataError, MissingExtra, VeracityError
from ..core.examples import Dataset, Example
from ..core.images import Image
from ..core.plugins import Plugin
from .pictures import PictureReader, Size
from .readers import Columns, RawTable
from .records import read_records
from .splits import sample_places
from .words import read_text

LABELS = ("negative", "positive")


class Corpus(Plugin, ABC):
    """Examples that a name and its settings stand for."""

    @abstractmethod
    def load(self) -> Dataset[Any]:
        """The examples, the same for the same settings."""


@dataclass(frozen=True)
class Reviews(Corpus):
    """Reviews out of an installed package, all or a sample with the labels in proportion."""

    limit: int | None = None
    """A sample of so many reviews; None: all."""
    seed: int = 0

    language: ClassVar[str] = "en"

    def __post_init__(self) -> None:
        if self.limit is not None and self.limit < 1:
            raise ValueError(f"expected a limit of 1 or more, got {self.limit}")

    @abstractmethod
    def texts(self) -> list[tuple[str, int]]:
        """Every text with its label, cleaned, before words are looked for."""

    def load(self) -> Dataset:
        """The sample, each example known by its place in the whole corpus."""
        texts = self.texts()
        examples = (
            Example(f"{self.plugin_name()}-{i}", read_text(texts[i][0], self.language), texts[i][1])
            for i in sample_places([label for _, label in texts], self.limit, self.seed)
        )
        return Dataset(self.spec, LABELS, tuple(examples))


@dataclass(frozen=True)
class Photographs(Corpus):
    """Pictures out of an installed package, all or a sample with the labels in proportion."""

    limit: int | None = None
    """A sample of so many pictures; None: all."""
    size: int | str | None = 128
    """What they are brought to, such as 64 or 96x64; None: as they are."""
    seed: int = 0

    def __post_init__(self) -> None:
        if self.limit is not None and self.limit < 1:
            raise ValueError(f"expected a limit of 1 or more, got {self.limit}")
        if self.size is not None:
            try:
                Size.of(self.size)
            except VeracityError as error:
                raise ValueError(str(error)) from None

    @abstractmethod
    def table(self) -> RawTable:
        """A row per picture, none of them read yet."""

    def load(self) -> Dataset[Image]:
        """The sample; every picture must be as we know it."""
        table = self.table()
        names = sorted({str(row.values.get("label")) for row in table.rows})
        labels = [names.index(str(row.values.get("label"))) for row in table.rows]
        rows = [table.rows[i] for i in sample_places(labels, self.limit, self.seed)]
        size = None if self.size is None else Size.of(self.size)
        found = read_records(
            RawTable(table.columns, tuple(rows)),
            Columns(),
            name=self.spec,
            labels=names,
            pictures=PictureReader(size=size),
        )
        for fault in found.faults:
            if fault.severity == "error":
                raise DataError(f"{self.spec}: {fault}")
        return replace(found.dataset, own_labels=())


def packaged(package: str, path: str, *, release: str, sha256: str, install: str = "") -> Path:
    """A data file, or a folder of them, inside a package that is never imported, and is the very
    one we know."""
    found = find_spec(package)
    if found is None or not found.submodule_search_locations:
        if install:  # not part of an extra
            raise DataError(f"{release.split()[0]} is not installed: {install}")
        raise MissingExtra(release.split()[0], "demo", "This corpus")
    file = Path(found.submodule_search_locations[0]) / path
    seen, kind = _content_hash(file), "folder" if file.is_dir() else "file"
    if seen != sha256:
        raise DataError(
            f"{file}: expected the {kind} of {release} (sha256 {sha256[:12]}…), got {seen[:12]}; "
            f"{install or 'install ' + release.replace(' ', '==')}"
        )
    return file


def _content_hash(path: Path) -> str:
    """Of a folder, that of the names and hashes of all files in it."""
    if path.is_file():
        return hashlib.sha256(path.read_bytes()).hexdigest()
    if not path.is_dir():
        return "no such file"
    digest = hashlib.sha256()
    for file in sorted(p for p in path.rglob("*") if p.is_file()):
        digest.update(f"{file.relative_to(path).as_posix()}\n{_content_hash(file)}\n".encode())
    return digest.hexdigest()
