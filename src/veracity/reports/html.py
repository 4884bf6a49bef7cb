"""A run as one HTML file that needs nothing else: no network, no torch, no data."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from ..core.changes import PLANTED
from ..core.images import Image
from ..results.conclusions import Conclusions, conclude
from ..results.config import MetricInfo
from ..results.curves import deletion_figures
from ..results.run import Run, remarks
from ..results.sampling import Noise, OwnError, leads, noise, own_errors, questions_per_text
from ..results.standings import Standing
from ..results.verdicts import Verdict
from . import charts, plots
from .pages import BROWSER, pair_page, rendered, write_page
from .picture_cards import PicturePayload, picture_payload
from .pictures import outlined
from .scoreboard import Board, board, comparisons, leading
from .sentences import (
    Explained,
    ExplainedInput,
    Payload,
    explained,
    least_agreed,
    methods_in_order,
    payload,
)

LARGEST = 5_000_000
"""A report stays below so many bytes, whatever the run holds."""

_ROOMS = (3_000_000, 1_500_000, 500_000, 50_000)  # for sentences, tried from the left
_PICTURE_ROOMS = (4_200_000, *_ROOMS)


def write_report(
    run: Run, path: Path | None = None, *, conclusions: Conclusions | None = None
) -> Path:
    """Put the report in the run's folder, or where it is asked for."""
    return write_page(build_report(run, conclusions), path or run.folder / "report.html")


def build_report(run: Run, conclusions: Conclusions | None = None) -> str:
    """The whole page as text; what a run says is computed unless it is given."""
    said = conclusions or conclude(run)
    found = said.standings
    texts = explained(run)
    pictured = run.config.dataset.kind == Image.kind
    shown = picture_payload if pictured else payload
    page = ""
    for room in _PICTURE_ROOMS if pictured else _ROOMS:
        page = _render(_Page(run, said, found, texts, shown(run, texts, room=room)))
        if len(page.encode("utf-8", "replace")) < LARGEST:
            return page
    # no sentence is to blame: so many methods and quantities only fit without the lesser ones
    headlines = [s for s in found if s.headline]
    return _render(_Page(run, said, headlines, texts, shown(run, texts, room=0)))


def _render(page: _Page) -> str:
    return rendered(
        "report.html",
        styles=(
            "report.css",
            "charts.css",
            *(("pictures.css",) if page.pictured is not None else ()),
        ),
        scripts=BROWSER,
        nouns=page.run.nouns,
        shown_as=("picture", "Pictures")
        if page.pictured is not None
        else ("sentence", "Sentences"),
        pictures=page.pictured is not None,
        filters={"reason": _reason, "sure": _sure},
        page=page,
        run=page.run,
        config=page.run.config,
        remarks=remarks(page.run),
        comparisons=comparisons,
        leads=leads,
        plots=plots,
        layout=charts,
    )


@dataclass(frozen=True)
class _Page:
    """What the template asks for."""

    run: Run
    conclusions: Conclusions
    standings: Sequence[Standing]
    by_model: Sequence[Explained]
    payload: Payload

    @property
    def methods(self) -> list[str]:
        return methods_in_order(self.run)

    @property
    def pictured(self) -> PicturePayload | None:
        """The pictures of the page, where its inputs are pictures."""
        return self.payload if isinstance(self.payload, PicturePayload) else None

    @property
    def numbers(self) -> dict[str, int]:
        """By method, its place among the boxes that choose what is shown."""
        return {method: i for i, method in enumerate(self.methods)}

    @property
    def outlined(self) -> list[tuple[str, str]]:
        """The kinds of known regions on the page, and what they are called."""
        return outlined(self.pictured.pictures if self.pictured is not None else ())

    @property
    def sizes(self) -> list[str]:
        """The methods on the page that give sizes only, no sides."""
        return [m for m in self.methods if not self.run.config.explainers[m].signed]

    def pairs(self, model: str) -> str:
        """The page beside this one that shows texts and their twins; empty without one."""
        path = pair_page(self.run, model)
        return path.name if path.exists() else ""

    def of(self, model: str) -> list[Standing]:
        return [s for s in self.standings if s.model == model]

    def board(self, model: str, *, headline: bool) -> Board | None:
        first = leading(self.of(model))
        columns = first if headline else [s for s in self.of(model) if s not in first]
        return board(model, columns, baselines=self.run.config.baselines) if columns else None

    def panels(self, model: str) -> list[plots.Panel]:
        return [plots.panel(s, self.run.config.baselines) for s in leading(self.of(model))]

    @cached_property
    def class_panels(self) -> dict[str, list[plots.ClassPanel]]:
        """By model, a panel per method: weight on the planted region against its size, by class;
        of pictures only, whose regions differ in size."""
        metrics = [
            name
            for name, about in self.run.config.metrics.items()
            if name.partition("(")[0] == "attribution_mass" and about.settings["truth"] == PLANTED
        ]
        if self.pictured is None or not metrics:
            return {}
        found = {model: self._class_panels(model, metrics[0]) for model in self.run.models}
        return {model: panels for model, panels in found.items() if panels}

    def _class_panels(self, model: str, metric: str) -> list[plots.ClassPanel]:
        columns, gold = self.run.columns(metric, model), self.run.gold()
        if not {"mass", "share"} <= set(columns):
            return []
        mass, share = columns["mass"], columns["share"]
        rows: dict[str, dict[str, list[tuple[float, float]]]] = {}
        for method in mass.methods:
            masses, shares = mass.of(method), share.of(method)
            for name in masses:
                label = self.run.labels[gold[name]]
                rows.setdefault(method, {}).setdefault(label, []).append(
                    (shares[name], masses[name])
                )
        most = max((s for one in rows.values() for r in one.values() for s, _ in r), default=0.1)
        return [
            plots.class_panel(
                method, {x: rows[method][x] for x in self.run.labels if x in rows[method]}, most
            )
            for method in self.methods
            if method in rows
        ]

    @cached_property
    def curves(self) -> dict[str, list[charts.Chart]]:
        """By model, how answers fall as words go."""
        found = deletion_figures(self.run)
        return {model: [charts.chart(f) for f in figures] for model, figures in found.items()}

    @property
    def undefined(self) -> bool:
        return any(e.undefined for s in self.standings for e in s.entries)

    @cached_property
    def quantities(self) -> list[tuple[str, MetricInfo]]:
        """The metrics that test explanations, for the legend."""
        return [(m, a) for m, a in self.run.config.metrics.items() if not a.of_model]

    @property
    def explained(self) -> int:
        return sum(len(t.sentences) for t in self.by_model)

    @property
    def has_ngrams(self) -> bool:
        return any(s.ngrams for t in self.by_model for s in t.sentences)

    def disputed(self, explained: Explained) -> list[tuple[ExplainedInput, int | None]]:
        """The five sentences with the least agreement, and where they stand on the page."""
        least = [s for s in least_agreed(explained.sentences) if not math.isnan(s.agreement)][:5]
        return [(s, self.payload.places.get((s.model, s.example.id))) for s in least]

    @cached_property
    def costs(self) -> dict[str, list[plots.CostRow]]:
        found = self.run.costs()
        return {
            model: plots.cost_rows(
                (c.method, c.seconds_per_text, c.questions_per_text)
                for c in found
                if c.model == model and c.examples
            )
            for model in self.run.models
        }

    @cached_property
    def noise(self) -> list[Noise]:
        """What a second draw showed; nothing where no method draws."""
        return noise(self.run)

    @cached_property
    def own_errors(self) -> list[OwnError]:
        return list(own_errors(self.run))

    @cached_property
    def questions(self) -> Mapping[tuple[str, str], float]:
        return questions_per_text(self.run)

    def model_metrics(self, model: str) -> list[tuple[str, Mapping[str, float]]]:
        summaries = self.run.summaries().get(model, {}).get("", {})
        return [
            # which label is answered to nothing is told by name already
            (m, {name: value for name, value in summaries[m].items() if name != "label"})
            for m in self.run.config.metrics
            if m in summaries
        ]


def _reason(verdict: Verdict) -> str:
    """Why, as a sentence of its own below the purpose and the method."""
    return verdict.reason[:1].upper() + verdict.reason[1:]


def _sure(verdict: Verdict) -> str:
    if verdict.disagree:
        return "tests disagree"
    if verdict.tied:
        return f"tied with {len(verdict.tied)}"
    if verdict.leads:
        return "small lead" if verdict.close else "clear lead"
    return "best or tied"
