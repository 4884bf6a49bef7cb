"""The cues that a dry run plants, by names that people understand."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from ..changes import Planting
from ..changes import changes as known_changes
from ..changes.reassign import Reassign
from ..core.errors import PluginError
from ..core.examples import Dataset
from ..core.plugins import nearest, parse_spec, split_specs


@dataclass(frozen=True)
class CueKind:
    """A kind of cue under a name that people understand."""

    title: str
    change: str
    marks: tuple[str, ...]
    """One is taken for each label."""
    decoys: tuple[str, ...] = ()

    def planting(self, n_labels: int) -> Planting:
        if n_labels > len(self.marks):
            raise PluginError(
                f"{self.title} can tell {len(self.marks)} labels apart, the data have {n_labels}. "
                "Leave it out, or give a change with as many marks to --cues"
            )
        made = known_changes.make(self.change)
        assert isinstance(made, Planting)
        return replace(made, marks=self.marks[:n_labels], decoys=self.decoys)


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
"""The cues that go by a name."""


@dataclass(frozen=True)
class Cue:
    """What is planted, at every strength that is to be tried."""

    name: str
    title: str
    planting: Planting
    strengths: tuple[float, ...]

    def at(self, strength: float) -> Planting:
        return replace(self.planting, strength=strength)

    @property
    def needs_case(self) -> bool:
        """Whether a model that folds capitals could not see it at all."""
        return self.planting.plugin_name() == "casing"


def cues_of(
    requested: str | Sequence[str], strengths: Sequence[float], data: Dataset, keep: float
) -> list[Cue]:
    """The cues by name or as changes, each checked against the data's labels."""
    n = len(data.labels)
    specs = split_specs(requested)
    if not specs:
        raise PluginError(f"expected at least one cue, got none; known: {', '.join(KINDS)}")
    bound = Reassign(r=keep).bound(n) if 0 <= keep <= 1 else 1.0
    found = []
    for spec in dict.fromkeys(specs):
        own: tuple[float, ...] = ()
        if spec in KINDS:
            title, planting = KINDS[spec].title, KINDS[spec].planting(n)
        else:
            title, planting = spec, _planting(spec)
            if "strength" in parse_spec(spec)[1]:
                own = (planting.strength,)
            # as many marks as labels, or a sentence that says so
            planting.probabilities(data.labels)
        found.append(Cue(spec, title, planting, own or tuple(strengths)))
        for strength in found[-1].strengths:
            _check_strength(strength, bound, keep, n)
    return found


def _planting(spec: str) -> Planting:
    name, values = parse_spec(spec)
    if name not in known_changes.names():
        raise PluginError(
            f"no cue is called {name!r}: {nearest(name, [*KINDS, *known_changes.names()])}"
        )
    made = known_changes.make(spec)
    if not isinstance(made, Planting):
        raise PluginError(f"expected a cue to be planted, but {name} plants nothing")
    if "table" in values:
        raise PluginError(f"{spec}: a dry run sets strengths, so give marks and no table")
    return made


def _check_strength(strength: float, bound: float, keep: float, n_labels: int) -> None:
    if not 1 / n_labels < strength <= 1:
        raise PluginError(
            f"expected strengths above {1 / n_labels:.3g}, which is chance with {n_labels} labels, "
            f"and up to 1; got {strength:g}"
        )
    if not bound < strength:
        raise PluginError(
            f"with --keep {keep:g} the text alone may tell {bound:g} of the labels, so a cue of "
            f"strength {strength:g} forces a model to nothing. Take --keep {1 / n_labels:.3g}, "
            "where the text tells nothing, or a greater strength"
        )
