"""The folder of a dry run: what was asked for, and what became of each trial."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

from ..core.errors import RunError
from ..core.files import FolderKind, as_read, check_format, plain, read_json, reading, write_json
from ..core.inputs import Nouns, Text, input_kind
from ..core.schema import check_schema, from_json
from ..results.config import RunMetadata, resumed
from ..results.guarantees import LUCK, Reliance
from ..results.run import Run
from .experiment import STEPS, chosen, forget_step, kept_step

FILE = "dryrun.json"
FORMAT = 1
DRY_RUN = FolderKind("a dry run", FILE)

_FORM = {
    "asked": {
        "same": {"model": str, "training": dict, "keep": float, "limit": int | None},
        "scale?": str,
        "data": {"name": str, "size": int, "labels": [str], "kind?": str, "reading?": dict},
        "cues": {"*": {"title": str, "change?": str, "marks?": [str], "strengths?": [float]}},
        "seeds": int,
        "methods": [str],
        "skipped": [{"explainer": str, "why": str}],
        "trials": [str],
        "top?": int,
        "clean?": bool,
    },
    "trials": list,
    "clean?": list,
}
"""What `dryrun.json` holds: such folders are passed on, and people edit them."""

Status = Literal["scored", "not learnt", "learnt in part", "too few texts", "no place"]
Key = tuple[str, float]  # a cue's name and its strength


@dataclass(frozen=True, kw_only=True)
class Trial:
    """One model, trained on data with one cue, and whether its explanations can be held to it."""

    name: str
    cue: str
    strength: float
    seed: int
    changes: str
    status: Status
    why: str
    trained_on: int = 0
    tested_on: int = 0
    carriers: int = 0
    texts: int = 0
    accuracy: float = math.nan
    bound: float = math.nan
    ceiling: float = math.nan
    required: float = math.nan
    luck: float = math.nan
    epochs: int = 0
    training_seconds: float = 0.0
    audit_seconds: float = 0.0
    model: str = ""
    audit: str = ""

    @property
    def key(self) -> Key:
        return self.cue, self.strength

    def to_dict(self) -> dict[str, Any]:
        """What a file keeps of it: JSON has no NaN."""
        found: dict[str, Any] = plain(asdict(self))
        return found


@dataclass(frozen=True, kw_only=True)
class CleanTrial:
    """A model that never saw a cue, shown inputs that carry it: what a method shows of it there is
    a false alarm. Without an audit if the cue's own trial was not scored."""

    name: str
    """That of the trial."""
    texts: int = 0
    accuracy: float = math.nan
    """Of the model, by the labels that were there before, on inputs without the cue."""
    model: str = ""
    audit: str = ""
    audit_seconds: float = 0.0

    def to_dict(self) -> dict[str, Any]:
        found: dict[str, Any] = plain(asdict(self))
        return found


def clean_name(trial: str) -> str:
    """The step in which a model that never saw a trial's cue is shown it."""
    return f"clean-{trial}"


@dataclass(frozen=True)
class DryRun:
    """The folder of one dry run: what was asked for, and the trials that are done."""

    folder: Path
    config: Mapping[str, Any]
    made: RunMetadata
    done: Mapping[str, Trial]
    clean: Mapping[str, CleanTrial] = field(default_factory=dict)
    """By the trials' names; none in folders of earlier versions."""

    @classmethod
    def start(cls, folder: Path, config: Mapping[str, Any]) -> DryRun:
        """A new dry run, or the one in this folder if it was made of the same."""
        if not (folder / FILE).exists():
            return cls(folder, config, RunMetadata.now(), {})._written()
        before = cls.open(folder)
        now, same = as_read(config), before.config["same"]
        changed = [k for k, v in now["same"].items() if chosen(same.get(k)) != chosen(v)]
        if changed:
            raise RunError(
                f"{folder} holds a dry run with another {' and another '.join(changed)}. Choose "
                "another folder with --out, or delete that one"
            )
        done, clean = before.done, before.clean
        if before.config["methods"] != now["methods"]:
            # other methods are asked of the same models: audits go on from what they hold
            for name in (*done, *map(clean_name, clean)):
                forget_step(folder / STEPS / name)
            done, clean = {}, {}
        return cls(folder, config, resumed(before.made, folder), done, clean)._written()

    @classmethod
    def is_here(cls, folder: Path) -> bool:
        return (folder / FILE).is_file()

    @classmethod
    def open(cls, folder: str | Path) -> DryRun:
        """A dry run that was written before."""
        path = Path(folder) / FILE
        missing = (
            f"expected a dry run with a {FILE} in {folder}; there is none. "
            "Make one with `veracity dryrun`"
        )
        with reading(path, missing=missing, remedy="Restore it, or run again"):
            content = read_json(path)
            check_format(content, FORMAT, path)
            check_schema(content, _FORM)
            trials = {t.name: t for t in from_json(tuple[Trial, ...], content["trials"])}
            # while it is under way, each trial that is done is a step of its own
            names = [n for n in content["asked"]["trials"] if Path(n).name == n]
            trials |= {n: from_json(Trial, found) for n, found in _kept(folder, names)}
            shown = from_json(tuple[CleanTrial, ...], content.get("clean", []))
            clean = {t.name: t for t in shown} | {
                n: from_json(CleanTrial, found) for n, found in _kept(folder, names, clean_name)
            }
            if unknown := {t.cue for t in trials.values()} - {*content["asked"]["cues"]}:
                raise ValueError(f"trials have cues that it does not name: {sorted(unknown)}")
            made = from_json(RunMetadata, content["made"], "made")
            return cls(Path(folder), content["asked"], made, trials, clean)

    def with_trials(
        self, results: Iterable[Mapping[str, Any]], clean: Iterable[Mapping[str, Any]] = ()
    ) -> DryRun:
        """The same with these trials, written down."""
        trials = from_json(tuple[Trial, ...], list(results))
        shown = from_json(tuple[CleanTrial, ...], list(clean))
        return replace(
            self,
            done={**self.done, **{t.name: t for t in trials}},
            clean={**self.clean, **{t.name: t for t in shown}},
        )._written()

    def _written(self) -> DryRun:
        order = {name: place for place, name in enumerate(self.config["trials"])}
        # in the order of the plan, whichever was done first
        done = sorted(self.done.values(), key=lambda t: order.get(t.name, len(order)))
        rows = [t.to_dict() for t in done]
        content = {"format": FORMAT, "asked": self.config, "made": asdict(self.made)}
        clean = [self.clean[t.name].to_dict() for t in done if t.name in self.clean]
        write_json(self.folder / FILE, {**content, "trials": rows, "clean": clean})
        return self

    @cached_property
    def trials(self) -> list[Trial]:
        """Those of what was asked last, in its order."""
        return [self.done[name] for name in self.config["trials"] if name in self.done]

    @property
    def missing(self) -> int:
        """How many trials have not been made yet."""
        return len(self.config["trials"]) - len(self.trials)

    @property
    def lacks_clean(self) -> bool:
        """Whether a scored trial has nothing to tell false alarms by."""
        scored = [t.name for t in self.trials if t.status == "scored"]
        return any(name not in self.clean or not self.clean[name].audit for name in scored)

    @property
    def nouns(self) -> Nouns:
        """What its inputs are called."""
        return input_kind(str(self.config["data"].get("kind", Text.kind))).nouns

    @property
    def top(self) -> int:
        """So many of the strongest words or segments are looked at."""
        return int(self.config.get("top", 3))

    def title(self, cue: str) -> str:
        """What a cue is called in a sentence."""
        return str(self.config["cues"][cue]["title"])

    def run(self, trial: Trial | CleanTrial) -> Run:
        """The audit of a scored trial."""
        return Run.open(self.folder / trial.audit)


def _kept(
    folder: str | Path, trials: Sequence[str], step: Callable[[str], str] = str
) -> Iterator[tuple[str, Any]]:
    """What the steps of these trials found, as far as they are done."""
    for name in trials:
        kept = kept_step(Path(folder) / STEPS / step(name))
        if kept is not None:
            yield name, kept["found"]


def judged(reliance: Reliance, nouns: Nouns = Text.nouns) -> tuple[Status, str]:
    """What a model's accuracy allows to say about a cue, in a sentence."""
    seen = f"accuracy {reliance.accuracy:.3f} on {reliance.n} {nouns.many}"
    if reliance.forced:
        return "scored", reliance.told_of(nouns)
    if reliance.reached:
        return "too few texts", f"{seen} cannot rule out luck ({reliance.luck:.2g})"
    needed = f"{reliance.required:.3f} would force it to use the cue"
    if reliance.luck > LUCK:
        return "not learnt", f"the model did not learn this cue: {seen}, where {needed}"
    return "learnt in part", f"the model learnt this cue in part only: {seen}, where {needed}"
