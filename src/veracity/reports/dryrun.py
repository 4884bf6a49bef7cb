"""A dry run as one HTML file: which methods would have shown which cues."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from urllib.parse import quote

import numpy as np

from ..core.inputs import Text
from ..core.progress import Progress, Watcher
from ..experiments.dryrun_findings import HALF, CueResult, DryRunFindings, as_measured, findings
from ..experiments.dryrun_record import DryRun, Key, Trial
from ..experiments.dryrun_sentences import SIGNS, any_few, glance, headline, remarks, with_mark
from ..results.guarantees import LUCK, REACH
from ..results.run import SUMMARIES
from . import plots
from .html import write_report
from .pages import BROWSER, THEME, is_newer, rendered, write_page
from .picture_cards import PictureStore, picture_overlays
from .pictures import outlined
from .sentences import ExplainedInput, SentenceStore, choose, explained
from .showing import percent

EXAMPLES = 4
"""So many sentences are shown of each cue at each of the strengths."""

ROOM = 2_500_000  # bytes for all of them
EASY = 16
"""So many words are read at a glance."""

MOST_TRIED = 20


def write_dryrun(
    dry: DryRun,
    path: Path | None = None,
    *,
    found: DryRunFindings | None = None,
    watch: Watcher = lambda _: None,
) -> Path:
    """Put the page in the folder, or where it is asked for, and the audits' reports with them."""
    path = path or dry.folder / "report.html"
    stale = []
    for trial in dry.trials:
        audit = dry.folder / trial.audit
        if trial.status != "scored":
            continue
        if not is_newer(audit / "report.html", audit / SUMMARIES):
            stale.append(trial)
    for number, trial in enumerate(stale, start=1):
        write_report(dry.run(trial))
        watch(Progress(number, len(stale), trial.name))
    return write_page(build_dryrun(dry, path.parent, found), path)


def build_dryrun(
    dry: DryRun, place: Path | None = None, found: DryRunFindings | None = None
) -> str:
    """The whole page as text; links lead from the folder in which it will lie."""
    found = found or findings(dry)
    page = DryRunPage(dry, found, place or dry.folder)
    pictured = page.pictured is not None
    return rendered(
        "dryrun.html",
        styles=("report.css", "pictures.css") if pictured else ("report.css",),
        scripts=BROWSER if page.kept.items else (THEME,),
        pictures=pictured,
        page=page,
        headline=headline(dry, found),
        remarks=remarks(dry, found),
        dry=dry,
        config=dry.config,
        found=found,
        signs=SIGNS,
        nouns=dry.nouns,
        glance=glance(dry, "a method’s"),
        any_few=any_few(dry),
        with_mark=with_mark,
        plots=plots,
        half=HALF,
        reach=REACH,
        luck=LUCK,
    )


@dataclass(frozen=True)
class _Contrast:
    """One text in which one method shows the cue and another does not."""

    cell: CueResult
    sentence: ExplainedInput
    shows: str
    fails: str


def _is_right(sentence: ExplainedInput) -> bool:
    answers = sentence.probabilities
    return answers is not None and int(np.argmax(answers)) == sentence.example.label


@dataclass(frozen=True)
class DryRunPage:
    """What the template asks for."""

    dry: DryRun
    found: DryRunFindings
    place: Path

    @cached_property
    def groups(self) -> list[tuple[str, list[CueResult]]]:
        """The title of every cue and its columns, strongest first."""
        cues = dict.fromkeys(cell.cue for cell in self.found.cells)
        return [
            (self.dry.title(cue), [c for c in self.found.cells if c.cue == cue]) for cue in cues
        ]

    @property
    def panels(self) -> list[plots.Rise]:
        """A plot per method, if there is more than one strength to plot."""
        if len({cell.strength for cell in self.found.cells}) < 2:
            return []
        titles = {cell.cue: self.dry.title(cell.cue) for cell in self.found.cells}
        return [plots.rise(p, self.found.cells, titles) for p in self.found.profiles]

    @property
    def cues(self) -> list[tuple[str, str]]:
        """The cues in the plots, with the shape of their marks."""
        return [(title, plots.shape(i)) for i, (title, _) in enumerate(self.groups)]

    @property
    def costs(self) -> list[plots.CostRow]:
        return plots.cost_rows((p.method, p.seconds, p.questions) for p in self.found.profiles)

    @property
    def clean_accuracies(self) -> list[float]:
        """Of the models that never saw a cue, each once."""
        found = {c.model: c.accuracy for c in self.dry.clean.values() if c.audit}
        return list(found.values())

    def link(self, trial: Trial) -> str:
        """The audit's own report, as seen from this page."""
        target = self.dry.folder.resolve() / trial.audit / "report.html"
        return quote(os.path.relpath(target, self.place.resolve()).replace(os.sep, "/"))

    # ---- sentences --------------------------------------------------------------------------

    @property
    def has_sentences(self) -> bool:
        """Whether what was explained can be read on a page."""
        return self.dry.nouns == Text.nouns

    @property
    def pictured(self) -> PictureStore | None:
        """The pictures of the page, where its inputs are pictures."""
        return self.kept if isinstance(self.kept, PictureStore) else None

    @property
    def outlined(self) -> list[tuple[str, str]]:
        """The kinds of known regions on the page, and what they are called."""
        return outlined(self.pictured.pictures if self.pictured is not None else ())

    @property
    def sizes(self) -> list[str]:
        """The methods on the page that give sizes only, no sides."""
        runs = [self.dry.run(c.trials[0]).config.explainers for c in self.found.cells[:1]]
        return [m for about in runs for m in self.methods if m in about and not about[m].signed]

    @property
    def numbers(self) -> dict[str, int]:
        """By method, its place among the boxes that choose what is shown."""
        return {method: i for i, method in enumerate(self.methods)}

    @cached_property
    def contrast(self) -> _Contrast | None:
        """The text that tells best apart a method that shows a cue and one that does not."""
        shows = next((p.method for p in self.found.methods if p.exposes), None)
        if shows is None or not self.has_sentences:
            return None
        pairs = [
            (cell.sights[shows].share - sight.share, cell, sight.method)
            for cell in self.found.cells
            for sight in cell.sights.values()
            if shows in cell.sights and any(p.method == sight.method for p in self.found.methods)
        ]
        for gap, cell, fails in sorted(pairs, key=lambda pair: -pair[0])[:MOST_TRIED]:
            if gap <= 0:
                break
            seen = self.seen[cell.key]
            for s in self._texts(cell):
                known = tuple(seen.get((m, s.example.id)) for m in (shows, fails))
                if known == (1.0, 0.0) and not s.ngrams.keys() & {shows, fails}:
                    return _Contrast(cell, s, shows, fails)
        return None

    @cached_property
    def seen(self) -> dict[Key, dict[tuple[str, str], float]]:
        """How surely a reader of each method sees the cue in each text of its first trial, as was
        scored."""
        return {
            cell.key: {
                (method, example): value
                for run in [self.dry.run(cell.trials[0])]
                for column in [run.column(as_measured(run, "exposure"), "seen")]
                for method in column.methods
                for example, value in column.of(method).items()
            }
            for cell in self.found.cells
        }

    def _texts(self, cell: CueResult) -> list[ExplainedInput]:
        """Short ones first, of those that the model reads as the cue says."""
        sentences = [s for s in self._explained[cell.key] if _is_right(s)]
        return sorted(sentences, key=lambda s: abs(s.example.input.n_features - EASY))

    @cached_property
    def _explained(self) -> dict[Key, Sequence[ExplainedInput]]:
        """The texts of each cue's first trial."""
        return {c.key: explained(self.dry.run(c.trials[0]))[0].sentences for c in self.found.cells}

    @cached_property
    def kept(self) -> SentenceStore:
        """A few texts of every scored cue, with what every method said of them."""
        groups = [f"{self.dry.title(c.cue)} ({percent(c.strength)})" for c in self.found.cells]
        labels = self.dry.config["data"]["labels"]
        if not self.has_sentences:
            return self._pictures(PictureStore(groups, self.methods, labels, ROOM, "cue"))
        kept = SentenceStore(groups, self.methods, labels, ROOM, "cue")
        for place, cell in enumerate(self.found.cells):
            chosen = choose(self._explained[cell.key], EXAMPLES, seed=cell.trials[0].seed)
            one = self.contrast
            if one is not None and one.cell is cell:
                chosen = [one.sentence, *(s for s in chosen if s is not one.sentence)]
            for s in chosen:
                # the same text carries another cue elsewhere
                kept.add(s, place, f"{cell.trials[0].name} {s.example.id}")
        return kept

    def _pictures(self, kept: PictureStore) -> PictureStore:
        """A few pictures of every scored cue, under the map of every method."""
        for place, cell in enumerate(self.found.cells):
            chosen = choose(self._explained[cell.key], EXAMPLES, seed=cell.trials[0].seed)
            maps = picture_overlays(self.dry.run(cell.trials[0]), [chosen])
            for s in chosen:
                # the same picture carries another mark elsewhere
                name = f"{cell.trials[0].name} {s.example.id}"
                kept.add_picture(s, place, name, maps.get((s.model, s.example.id)))
        return kept

    @property
    def drawn(self) -> int | None:
        """Where the contrast stands among the sentences of the page, if it does."""
        if self.contrast is None:
            return None
        place = self.found.cells.index(self.contrast.cell)
        return next((i for i, x in enumerate(self.kept.items) if x["model"] == place), None)

    @property
    def methods(self) -> list[str]:
        return [p.method for p in self.found.profiles]
