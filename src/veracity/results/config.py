"""What an audit was asked for and what it was made with, as `run.json` keeps it."""

from __future__ import annotations

import contextlib
import functools
import warnings
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from ..core.files import check_format, read_json, reading, write_json
from ..core.metrics import Quantity
from ..core.schema import from_json

FORMAT = 2
FILE = "run.json"

_NAMES_BEFORE = {"config": "asked", "metadata": "made"}
"""What format 1 called them; all else in them is the same."""


@dataclass(frozen=True, kw_only=True)
class DatasetInfo:
    """The data, by what tells others from them."""

    name: str
    fingerprint: str
    size: int
    labels: tuple[str, ...]
    truth_kinds: tuple[str, ...] = ()
    kind: str = "text"
    """What the inputs are."""


@dataclass(frozen=True, kw_only=True)
class ModelInfo:
    """A model, down to its answers to a few of the texts."""

    identity: str
    labels: tuple[str, ...] = ()
    abilities: tuple[str, ...] = ()
    about: str = ""
    answers: tuple[tuple[float, ...], ...] = ()
    unread: Mapping[str, int] = field(default_factory=dict)
    """In so many `texts` so many `words` stand beyond what it reads."""

    def is_like(self, other: ModelInfo, *, same_data: bool) -> bool:
        """The same identity and, to rounding, the same answers to the same texts."""
        if self.identity != other.identity or not same_data:
            return self.identity == other.identity
        return np.shape(self.answers) == np.shape(other.answers) and np.allclose(
            self.answers, other.answers, atol=1e-3
        )


@dataclass(frozen=True, kw_only=True)
class ExplainerInfo:
    """A method and its settings."""

    settings: Mapping[str, Any]
    baseline: bool = False
    ceiling: bool = False
    signed: bool = True
    """False for a method that gives sizes only."""
    about: str = ""
    needs: str = ""
    code: str | None = None
    """A hash of the file of somebody's own plug-in; None for those of this package."""


@dataclass(frozen=True, kw_only=True)
class MetricInfo:
    """A test, its settings and what it measures."""

    settings: Mapping[str, Any]
    purpose: str
    of_model: bool
    quantities: Mapping[str, Quantity]
    quality: str = "faithfulness"
    about: str = ""
    code: str | None = None


@dataclass(frozen=True)
class SkippedMethod:
    """A method that could not explain a model."""

    model: str
    explainer: str
    why: str


@dataclass(frozen=True)
class TrainingSetInfo:
    """What methods learnt from."""

    name: str
    size: int
    fingerprint: str


@dataclass(frozen=True, kw_only=True)
class RelianceInfo:
    """Whether a model must have used what was planted, and the figures behind that."""

    forced: bool
    sentence: str
    accuracy: float = np.nan
    n: int = 0
    bound: float = np.nan
    ceiling: float = np.nan
    luck: float = np.nan
    learnt: bool = False


@dataclass(frozen=True, kw_only=True)
class BudgetPlan:
    """What a budget made of an audit."""

    sentence: str
    budget: int
    texts: int
    questions: int | None
    whole: str
    """The fingerprint of all texts that were given."""
    of: int = 0
    second_draw: bool = False
    dropped: tuple[str, ...] = ()
    total: int = 0


@dataclass(frozen=True, kw_only=True)
class RunConfig:
    """What an audit was asked for: its identity."""

    dataset: DatasetInfo
    models: Mapping[str, ModelInfo]
    explainers: Mapping[str, ExplainerInfo]
    metrics: Mapping[str, MetricInfo]
    skipped: tuple[SkippedMethod, ...]
    seed: int
    batch_size: int
    target: str | int
    ceilings: tuple[str, ...] = ()
    """Searches for the best that a test allows; older runs hold none."""
    sources: Mapping[str, str] = field(default_factory=dict)
    command: str = ""
    reliance: Mapping[str, RelianceInfo] = field(default_factory=dict)
    train: Mapping[str, TrainingSetInfo] = field(default_factory=dict)
    plan: BudgetPlan | None = None

    def __post_init__(self) -> None:
        known = ("predicted", "gold", *map(str, range(len(self.dataset.labels))))
        if str(self.target) not in known:
            raise ValueError(f"expected the target among {', '.join(known)}; got {self.target!r}")

    @property
    def baselines(self) -> list[str]:
        """The methods that look at nothing."""
        return [name for name, about in self.explainers.items() if about.baseline]

    def is_chosen_anew(self, now: RunConfig) -> bool:
        """Whether another budget chose other texts or settings of the same data."""
        old, new = self.plan, now.plan
        if old is None or old.whole != (new.whole if new else now.dataset.fingerprint):
            return False
        chosen = (old.texts, old.questions, old.dropped)
        return new is None or chosen != (new.texts, new.questions, new.dropped)

    def changed(self, now: RunConfig, redone: set[str]) -> list[str]:
        """What is another now, so that nothing made before can be used."""
        names = ("dataset", "seed", "batch_size", "target")
        found = [name for name in names if getattr(self, name) != getattr(now, name)]
        same = self.dataset == now.dataset
        if self.models.keys() != now.models.keys() or not all(
            model.is_like(now.models[name], same_data=same) for name, model in self.models.items()
        ):
            found.append("model")
        common = self.train.keys() & now.train.keys()
        if any(self.train[m].fingerprint != now.train[m].fingerprint for m in common):
            found.append("training data")
        for before, plugins in ((self.explainers, now.explainers), (self.metrics, now.metrics)):
            found += [
                f"version of {spec}"
                for spec, about in plugins.items()
                if about.code is not None and spec in before and spec not in redone
                if about.code != before[spec].code
            ]
        return found


@dataclass(frozen=True)
class Partial:
    """Where a budget ended the audit: so many texts went through all methods, and only the batches
    that they stand in are read; `why` says what to do."""

    texts: int
    of: int
    why: str
    batches: tuple[int, ...]


@dataclass(frozen=True)
class Resumption:
    """Other versions that went on with a run."""

    sentence: str
    versions: Mapping[str, str]
    at: str = ""


@dataclass(frozen=True)
class RunMetadata:
    """When and by what versions a run was made, and how far."""

    created: str
    versions: Mapping[str, str]
    resumed: tuple[Resumption, ...] = ()
    partial: Partial | None = None

    @classmethod
    def now(cls) -> RunMetadata:
        return cls(timestamp(), versions())


def write_config(folder: Path, config: RunConfig, metadata: RunMetadata) -> None:
    content = {"format": FORMAT, "config": asdict(config), "metadata": asdict(metadata)}
    write_json(folder / FILE, content)


def read_config(folder: Path) -> tuple[RunConfig, RunMetadata]:
    """Such folders are passed on, and people edit them: whatever is wrong is a RunError."""
    path = folder / FILE
    missing = (
        f"expected a run with a run.json in {folder}; there is none. "
        "Make one with `veracity audit --out FOLDER`"
    )
    with reading(path, missing=missing, remedy="Restore it, or run again"):
        content = read_json(path)
        old = content["format"] == 1
        check_format(content, 1 if old else FORMAT, path)
        config, metadata = (content[_NAMES_BEFORE[k] if old else k] for k in _NAMES_BEFORE)
        return from_json(RunConfig, config), from_json(RunMetadata, metadata, "metadata")


def resumed(metadata: RunMetadata, folder: Path) -> RunMetadata:
    """What is known of a run's making, with the versions that go on with it now, if others."""
    before, now = metadata.versions, versions()
    others = [
        f"{name} {before.get(name, '(none)')} (now {now.get(name, 'none')})"
        for name in sorted({*before, *now})
        if before.get(name) != now.get(name)
    ]
    if not others:
        return metadata
    sentence = (
        f"{folder} was begun with {', '.join(others)}. What it holds is kept, so figures of both "
        "may stand side by side: to compute all with the same, choose another folder"
    )
    warnings.warn(sentence, stacklevel=2)
    earlier = [r for r in metadata.resumed if r.versions != now]
    return replace(metadata, resumed=(*earlier, Resumption(sentence, now, timestamp())))


def versions() -> dict[str, str]:
    """What the numbers were made with."""
    return dict(_versions())


@functools.cache
def _versions() -> Mapping[str, str]:
    """Looked up once: whole descriptions of packages are read for it."""
    import platform
    from importlib import metadata

    found = {"python": platform.python_version()}
    for name in ("veracity", "numpy", "scipy", "torch", "transformers", "scikit-learn", "pyarrow"):
        with contextlib.suppress(metadata.PackageNotFoundError):
            found[name] = metadata.version(name)
    return found


def timestamp() -> str:
    """The time as records keep it."""
    return datetime.now(UTC).isoformat(timespec="seconds")
