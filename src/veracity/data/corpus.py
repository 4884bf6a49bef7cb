"""Corpora that come with a package or are made on the spot, under a name."""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import ClassVar

from ..core.errors import DataError, MissingExtra
from ..core.examples import Dataset, Example
from ..core.plugins import Plugin
from .splits import sample_places
from .words import read_text

LABELS = ("negative", "positive")


class Corpus(Plugin, ABC):
    """Examples that a name and its settings stand for."""

    @abstractmethod
    def load(self) -> Dataset:
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


def packaged(package: str, path: str, *, release: str, sha256: str, install: str = "") -> Path:
    """A data file inside a package that is never imported, and is the very file we know."""
    found = find_spec(package)
    if found is None or not found.submodule_search_locations:
        if install:  # not part of an extra
            raise DataError(f"{release.split()[0]} is not installed: {install}")
        raise MissingExtra(release.split()[0], "demo", "This corpus")
    file = Path(found.submodule_search_locations[0]) / path
    seen = hashlib.sha256(file.read_bytes()).hexdigest() if file.is_file() else "no such file"
    if seen != sha256:
        raise DataError(
            f"{file}: expected the file of {release} (sha256 {sha256[:12]}…), got {seen[:12]}; "
            f"{install or 'install ' + release.replace(' ', '==')}"
        )
    return file
