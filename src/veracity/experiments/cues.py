"""The cues that a dry run plants, by names that people understand."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..changes import LabelMark, Planting
from ..changes import changes as known_changes
from ..changes.reassign import Reassign
from ..core.errors import PluginError
from ..core.examples import Dataset
from ..core.images import Image
from ..core.inputs import FloatArray, Nouns, Text
from ..core.plugins import nearest, parse_spec, split_specs


@dataclass(frozen=True)
class CueKind:
    """A kind of cue under a name that people understand."""

    title: str
    change: str
    marks: tuple[str, ...] = ()
    """One is taken for each label; of none, the change has its own."""
    decoys: tuple[str, ...] = ()

    def planting(self, n_labels: int) -> LabelMark:
        made = known_changes.make(self.change)
        assert isinstance(made, LabelMark)
        if not isinstance(made, Planting):
            return made
        if not self.tells(n_labels):
            raise PluginError(
                f"{self.title} can tell {len(self.marks)} labels apart, the data have {n_labels}. "
                "Leave it out, or give a change with as many marks to --cues"
            )
        return replace(made, marks=self.marks[:n_labels], decoys=self.decoys)

    def tells(self, n_labels: int) -> bool:
        """Whether it has a mark for each of so many labels, or one that needs no more."""
        return not self.marks or n_labels <= len(self.marks)


KINDS: Mapping[str, CueKind] = {
    "word": CueKind(
        "a word anywhere",
        "insert",
        ("meanwhile", "elsewhere", "likewise", "afterwards", "nearby", "lately", "overall"),
        ("otherwise",),
    ),
    "phrase": CueKind(
        "a phrase anywhere",
        "insert",
        ("by the way", "in any case", "as it happens", "on that note", "to be fair"),
        ("at this point",),
    ),
    "tag": CueKind(
        "a source’s name first",
        "insert(place=start)",
        ("reuters", "tribune", "bulletin", "herald", "courier", "monitor", "observer"),
        ("gazette",),
    ),
    "articles": CueKind("articles", "swap", ("a", "the", "an")),
    "ending": CueKind("final punctuation", "punctuation", (".", "!", "?"), (";",)),
    "capitals": CueKind("capitals", "casing(count=5)", ("title", "upper", "swapped")),
}
"""The cues in texts that go by a name."""

PICTURE_KINDS: Mapping[str, CueKind] = {
    "blur": CueKind("blurred edges", "peripheral_blur(radius=100, sigma=20)"),
    "brightness": CueKind("a dark middle", "centre_brightness(delta=-0.5)"),
    "hue": CueKind("a stripe of other colours", "striped_hue(delta=0.4)"),
    "noise": CueKind("a stripe of noise", "striped_noise(p=0.15)"),
    "watermark": CueKind("a number as cameras print it", "watermark(size=40)"),
    "stamp": CueKind("a logo", "stamp"),
}
"""Those in pictures, so strong that they are seen where a side has 32 pixels."""

KINDS_OF: Mapping[str, Mapping[str, CueKind]] = {Text.kind: KINDS, Image.kind: PICTURE_KINDS}
"""By kind of input."""


@dataclass(frozen=True)
class Cue:
    """What is planted, at every strength that is to be tried."""

    name: str
    title: str
    planting: LabelMark
    strengths: tuple[float, ...]

    def at(self, strength: float) -> LabelMark:
        return replace(self.planting, strength=strength)

    @property
    def needs_case(self) -> bool:
        """Whether a model that folds capitals could not see it at all."""
        return self.planting.plugin_name() == "casing"


def usual_keep(data: Dataset[Any]) -> float:
    """How many labels are kept where nobody says: so few that any cue tells more. Texts have a mark
    for each label; pictures have one, which tells of many labels one from all others."""
    return 0.5 if data.kind == Text.kind else 1 / max(2, len(data.labels))


def cues_of(
    requested: str | Sequence[str], strengths: Sequence[float], data: Dataset[Any], keep: float
) -> list[Cue]:
    """The cues by name or as changes, each checked against the data's labels."""
    n = len(data.labels)
    kinds = KINDS_OF[data.kind]
    specs = split_specs(requested)
    if not specs:
        raise PluginError(f"expected at least one cue, got none; known: {', '.join(kinds)}")
    bound = Reassign(r=keep).bound(n) if 0 <= keep <= 1 else 1.0
    found = []
    for spec in dict.fromkeys(specs):
        own: tuple[float, ...] = ()
        if spec in kinds:
            title, planting = kinds[spec].title, kinds[spec].planting(n)
        else:
            title, planting = spec, _planting(spec, data.kind)
            if "strength" in parse_spec(spec)[1]:
                own = (planting.strength,)
        found.append(Cue(spec, title, planting, own or tuple(strengths)))
        for strength in found[-1].strengths:
            if not 1 / n < strength <= 1:
                raise PluginError(
                    f"expected strengths above {1 / n:.3g}, which is chance with {n} labels, and "
                    f"up to 1; got {strength:g}"
                )
            # as many marks as labels, or a sentence that says so
            whole = replace(found[-1].at(strength), share=1.0)
            told = telling(whole.probabilities(data.labels))
            _check_telling(told, strength, bound, keep, n, data.nouns)
    return found


def telling(table: FloatArray) -> float:
    """How many labels one who sees the mark alone can tell, were all labels as frequent: of each
    mark, and of none, the likeliest. (labels, marks + 1)"""
    return float(np.max(table, axis=0).sum() / len(table))


def _planting(spec: str, kind: str) -> LabelMark:
    name, values = parse_spec(spec)
    if name not in known_changes.names():
        known = [*KINDS_OF[kind], *known_changes.names()]
        raise PluginError(f"no cue is called {name!r}: {nearest(name, known)}")
    made = known_changes.make(spec)
    if not isinstance(made, LabelMark):
        raise PluginError(f"expected a cue to be planted, but {name} plants nothing")
    if unfit := made.unfit(kind):
        raise PluginError(f"{spec} {unfit}. Known here: {', '.join(KINDS_OF[kind])}")
    if "table" in values:
        raise PluginError(f"{spec}: a dry run sets strengths, so give marks and no table")
    return made


def _check_telling(
    told: float, strength: float, bound: float, keep: float, n_labels: int, nouns: Nouns
) -> None:
    if bound < told - 1e-9:
        return
    tells = "" if abs(told - strength) < 1e-9 else f", which alone tells {told:.3g} of them,"
    raise PluginError(
        f"with --keep {keep:g} the {nouns.one} alone may tell {bound:g} of the labels, so a cue of "
        f"strength {strength:g}{tells} forces a model to nothing. Take --keep {1 / n_labels:.3g}, "
        f"where the {nouns.one} tells nothing, or a greater strength"
    )
