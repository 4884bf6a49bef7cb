"""Pages of what an experiment's steps left: its audits, texts beside twins, sets of words."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from ..core.truths import WordSets
from ..results.run import Run
from ..results.truths import word_view
from .html import write_report
from .pages import is_newer, pair_page
from .truths import write_words

Links = Mapping[str, Mapping[str, str]]
"""By step, what its pages show and the way to them."""


def step_pages(folder: Path) -> Links:
    """The pages of an experiment's steps, with the way from its folder. Those that are newer than
    what they show stay."""
    steps = folder / "steps"
    found: dict[str, dict[str, str]] = {}
    for what, page in sorted([*_audits(steps), *_words(steps)], key=lambda each: each[1].parent):
        parts = page.parent.relative_to(steps).parts
        name = " ".join(part.replace("-", " ") for part in parts if part != "audit")
        found.setdefault(name, {})[what] = page.relative_to(folder).as_posix()
    return found


def _audits(steps: Path) -> Iterator[tuple[str, Path]]:
    for file in steps.rglob("run.json"):
        run, report = Run.open(file.parent), file.parent / "report.html"
        ids = {e.id: e.partner for e in run.examples()}
        paired = any(partner != name and partner in ids for name, partner in ids.items())
        beside = [pair_page(run, model) for model in run.models] if paired else []
        if not all(is_newer(page, file) for page in (report, *beside)):
            if paired:
                from .pairs import write_pair_pages

                write_pair_pages(run)
            write_report(run)  # links to those pages
        yield "audit", report
        yield from (("pairs", page) for page in beside)


def _words(steps: Path) -> Iterator[tuple[str, Path]]:
    for file in steps.rglob("words.json"):
        page = file.with_suffix(".html")
        if not is_newer(page, file):
            write_words(word_view(WordSets.load(file)), page)
        yield "words", page
