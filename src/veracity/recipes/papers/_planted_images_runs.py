"""Which networks the planted-image experiments train, and what they are called."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ...changes import PictureMark
from ...core.plugins import format_spec
from ._planted_images_draws import (
    FIXED,
    MANIPULATIONS,
    Draw,
    Pair,
    correlation_draws,
    region_draws,
    visibility_draws,
)

EXPERIMENTS = {
    "region": "Region",
    "accuracy": "Accuracy",
    "visibility": "Visibility",
    "correlation": "Original correlation",
}

NAMES = {kind.plugin_name(): kind.plugin_name().replace("_", " ") for kind in MANIPULATIONS}
"""What the manipulations are called."""


@dataclass(frozen=True)
class PictureRun:
    """What a step is about."""

    experiment: str
    """One of `EXPERIMENTS`, `species` (all labels, nothing planted), `marks` (nothing trained)."""
    draw: Draw | None = None

    @property
    def planted(self) -> Draw:
        """What was drawn for a network that is to find a mark."""
        assert self.draw is not None
        return self.draw

    @property
    def step(self) -> str:
        """The name of the step's folder."""
        if self.draw is None:
            return self.experiment
        parts = [self.experiment, self.draw.mark.plugin_name(), str(self.draw.group)]
        if self.experiment == "visibility":
            parts.append(f"level{self.draw.level + 1}")
        if self.experiment == "correlation":
            parts.append(f"r{self.draw.r:g}")
        return "-".join(parts)

    @property
    def trained(self) -> PictureRun:
        """The step that trains it: weights kept along training are those of the region's runs."""
        return replace(self, experiment="region") if self.experiment == "accuracy" else self

    def __str__(self) -> str:
        if self.draw is None:
            return self.experiment
        first, second = self.draw.pair
        what = f"{NAMES[self.draw.mark.plugin_name()]} {self.draw.group + 1}"
        more = {
            "visibility": f", level {self.draw.level + 1}",
            "correlation": f", r = {self.draw.r:g}",
        }
        return f"{self.experiment}, {what}{more.get(self.experiment, '')}: {first} / {second}"


def drawn_runs(
    experiments: Sequence[str],
    manipulations: Sequence[str],
    pairs: Sequence[Pair],
    sizes: Mapping[str, Any],
    seed: int,
) -> Iterator[PictureRun]:
    """All that is trained and looked at: those first on which others wait."""
    drawn = {
        "region": region_draws(pairs, n=sizes["runs"], level=sizes.get("region_level"), seed=seed),
        "visibility": (
            d
            for d in visibility_draws(pairs, groups=sizes["groups"], seed=seed)
            if d.level + 1 in sizes["levels"]
        ),
        "correlation": correlation_draws(
            pairs, each=sizes["each"], correlations=sizes["correlations"], seed=seed
        ),
    }
    wanted = {name: drawn[name] for name in drawn if name in _trained(experiments)}
    runs = [
        PictureRun(name, draw)
        for name, draws in wanted.items()
        for draw in draws
        if draw.mark.plugin_name() in manipulations
    ]
    yield from runs
    if "accuracy" in experiments:
        yield from (replace(r, experiment="accuracy") for r in runs if r.experiment == "region")


def _trained(experiments: Sequence[str]) -> set[str]:
    return {PictureRun(name).trained.experiment for name in experiments}


def parameters(mark: PictureMark, digits: int | None = None) -> str:
    """A mark with its extent and visibility, those too that are as they are by default; for a page,
    rounded."""
    values = {name: getattr(mark, name) for name in FIXED[type(mark)]}
    if digits is not None:
        values = {
            name: float(f"{value:.{digits}g}") if isinstance(value, float) else value
            for name, value in values.items()
        }
    return format_spec(mark.plugin_name(), values)
