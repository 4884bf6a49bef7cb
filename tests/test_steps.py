"""Pages behind an experiment's page: those of its steps."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from commands import run_command
from conftest import WordWeights, words
from veracity.auditing.audit import audit
from veracity.core.examples import Dataset, Example
from veracity.core.truths import WordSets
from veracity.reports.findings import write_findings
from veracity.results.findings import Findings

FOUND = Findings("idc", "title", "lead", {"seed": 0})


@pytest.fixture
def folder(bag: WordWeights, tmp_path: Path) -> Path:
    """An experiment with an audit of pairs, another without, and a set of words."""
    both = tuple(
        Example(i, words(t), 1, partner=p)
        for i, t, p in (("o", "a great film", None), ("t", "so great a film", "o"))
    )
    for name, examples in (("try-pairs-bag/audit", both), ("try-alone-bag/audit", both[:1])):
        data = Dataset("few", ("negative", "positive"), examples)
        audit({"m": bag}, data, "occlusion", "erasure", out=tmp_path / "steps" / name)
    (tmp_path / "steps/reviews-wga").mkdir()
    sets = WordSets(("bad", "good"), (frozenset({"dull"}), frozenset({"<great>"})))
    sets.save(tmp_path / "steps/reviews-wga/words.json")
    FOUND.write(tmp_path)
    return tmp_path


def test_every_step_has_its_pages_and_is_linked(folder: Path) -> None:
    page = write_findings(FOUND, folder).read_text("utf-8")
    links = re.findall(r'href="(steps/[^"]+)">(\w+)<', page)
    assert links == [
        ("steps/reviews-wga/words.html", "words"),
        ("steps/try-alone-bag/audit/report.html", "audit"),
        ("steps/try-pairs-bag/audit/report.html", "audit"),
        ("steps/try-pairs-bag/audit/pairs.html", "pairs"),
    ]
    assert "try pairs bag:" in page
    assert "so" in (folder / links[3][0]).read_text("utf-8")
    assert 'href="pairs.html"' in (folder / links[2][0]).read_text("utf-8")
    words_page = (folder / links[0][0]).read_text("utf-8")
    assert "&lt;great&gt;" in words_page and "<great>" not in words_page
    # what is there is not made again
    before = {link: (folder / link).stat().st_mtime_ns for link, _ in links}
    write_findings(FOUND, folder)
    assert before == {link: (folder / link).stat().st_mtime_ns for link, _ in links}
    # unless it shows something else, or a part is missing
    (folder / "steps/reviews-wga/words.json").touch()
    (folder / links[3][0]).unlink()
    write_findings(FOUND, folder)
    after = {link: (folder / link).stat().st_mtime_ns for link, _ in links}
    assert [link for link in before if before[link] != after[link]] == [
        links[0][0],
        links[2][0],
        links[3][0],
    ]


def test_the_page_of_an_experiment_is_built_anew(folder: Path) -> None:
    done = run_command("report", str(folder), cwd=folder)
    assert done.returncode == 0 and done.stdout.strip() == str(folder / "report.html")
    assert "Look closer" in (folder / "report.html").read_text("utf-8")
    # elsewhere its links would lead nowhere
    (folder / "else").mkdir()
    for place, linked in (("copy.html", True), ("else/copy.html", False)):
        done = run_command("report", str(folder), "--out", place, cwd=folder)
        assert done.returncode == 0, done.stderr
        assert ("Look closer" in (folder / place).read_text("utf-8")) is linked
