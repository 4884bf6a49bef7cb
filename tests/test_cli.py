"""What a person types and what they are told, right or wrong."""

from __future__ import annotations

import gzip
import json
import os
import re
import shlex
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from commands import run_command as run
from veracity.data.records import write_records
from veracity.data.splits import Splits
from veracity.models.loading import save_model


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory, cnn: Any, made: Splits) -> Path:
    folder = tmp_path_factory.mktemp("place")
    save_model(cnn, cnn.architecture, folder / "model", record={})
    write_records(made.test.select(range(12)), folder / "reviews.jsonl")
    (folder / "reviews.csv").write_text(
        "review,stars\na great film,positive\na dull film,negative\n", encoding="utf-8"
    )
    return folder


def told(result: subprocess.CompletedProcess[str]) -> Any:
    """The one object on standard output, and nothing else there."""
    assert result.returncode == 0, result.stderr
    assert result.stdout.count("\n") == 1
    return json.loads(result.stdout)


def test_starting_is_quick() -> None:
    def seconds(*command: str) -> float:
        times = []
        for _ in range(3):
            started = time.perf_counter()
            subprocess.run([sys.executable, *command], check=True, capture_output=True)
            times.append(time.perf_counter() - started)
        return min(times)

    bare = seconds("-c", "pass")
    assert seconds("-c", "import veracity") - bare < 0.5
    assert seconds("-m", "veracity", "--help") < 1.0
    check = "import sys, veracity, veracity.cli.main; assert 'torch' not in sys.modules"
    seconds("-c", check)


@pytest.mark.parametrize("kind", ["explainers", "metrics", "models", "datasets", "truths"])
def test_lists(kind: str, place: Path) -> None:
    (rows,) = told(run("list", kind, "--json", cwd=place)).values()
    assert all(row["about"] for row in rows)
    plain = run("list", kind, cwd=place)
    assert plain.returncode == 0
    assert all(row["name"] in plain.stdout for row in rows)
    if kind == "datasets":
        assert told(run("data", "list", "--json", cwd=place))["datasets"] == rows


def test_every_verb_has_help(place: Path) -> None:
    verbs = (
        "demo",
        "train",
        "pretrain",
        "explain",
        "audit",
        "robustness",
        "augment",
        "plant",
        "run",
        "dryrun",
        "suspects",
        "compare",
        "report",
        "data",
        "truths",
        "list",
    )
    main = run("--help", cwd=place).stdout
    for verb in verbs:
        assert verb in main
        assert run(verb, "--help", cwd=place).returncode == 0
    assert run("--version", cwd=place).stdout.strip() == "0.1.0"


def test_training_tells_the_words_read_and_keeps_weights(tmp_path: Path) -> None:
    asked = ["--stop-at", "0.6", "--keep", "0.05", "--weight-decay", "1e-5", "--seed", "1"]
    spec = "rationale_cr(size=16, hidden=8, memory=4, rate=0.85)"
    result = run("train", spec, "made_reviews(n=200)", "--out", "m", *asked, "--epochs", "3",
                 "--json", cwd=tmp_path)  # fmt: skip
    record = told(result)
    assert ", words read " in " ".join(result.stderr.split())
    assert [record["training"][k] for k in ("stop_at", "keep", "weight_decay")] == [0.6, 0.05, 1e-5]
    assert all(0 <= e["selection_rate"] <= 1 for e in record["history"])
    kept = {p.name for p in (tmp_path / "m" / "snapshots").iterdir()}
    assert kept == {*record["snapshots"], "snapshots.json"}
    assert "epoch-0.safetensors" in kept
    assert not (tmp_path / "m" / "checkpoint").exists()
    shown = run("explain", "m", "a wonderful film", "--method", "rationale", cwd=tmp_path)
    assert shown.returncode == 0, shown.stderr


def test_train_explain_audit_compare_report(place: Path, tmp_path: Path) -> None:
    trained = run(
        "train", "text_cnn(size=16, filters=8)", str(place / "reviews.jsonl"), "--out", "m",
        "--epochs", "2", "--json", cwd=tmp_path,
    )  # fmt: skip
    record = told(trained)
    assert len(record["history"]) == 2
    assert "texts to train on" in trained.stderr
    assert "epoch 2, loss" in trained.stderr
    assert not (tmp_path / "m" / "checkpoint").exists()
    again = run("train", "text_cnn", str(place / "reviews.jsonl"), "--out", "m", cwd=tmp_path)
    assert again.returncode == 2
    assert "holds a trained model already" in again.stderr

    explain = ["explain", "m", "a great film", "--method", "occlusion"]
    found = told(run(*explain, "--json", cwd=tmp_path))
    (row,) = found["attributions"]
    assert row["words"] == ["a", "great", "film"]
    assert len(row["scores"]) == 3
    assert row["probabilities"][row["answer"]] == max(row["probabilities"].values())
    assert sum(row["probabilities"].values()) == pytest.approx(1)
    shown = run(*explain, "--top", "2", cwd=tmp_path).stdout
    assert re.search(rf"answer {row['answer']} \({row['answer']} 0\.\d+, \w+ 0\.\d+\)", shown)
    largest = max(row["scores"], key=abs)
    word = row["words"][row["scores"].index(largest)]
    assert re.search(rf"{word} +[+−]{abs(largest):.3f}\n", shown)
    assert "1 more (--top)" in shown
    (tmp_path / "mine.html").write_text("<p>mine</p>", "utf-8")
    refused = run(*explain, "--html", "mine.html", cwd=tmp_path)
    assert (refused.returncode, refused.stdout) == (2, "")
    assert "no page of ours" in refused.stderr
    for _ in range(2):  # a page of ours may be written over
        page = run(*explain, "--html", "e.html", cwd=tmp_path)
        assert (page.returncode, page.stdout) == (0, "e.html\n")

    audit = ["audit", "m", str(place / "reviews.jsonl"), "--methods", "occlusion,random_scores"]
    result = told(run(*audit, "--out", "r", "--json", cwd=tmp_path))
    assert result["computed"] > 0
    assert {v["model"] for v in result["verdicts"]} == {"m"}
    plain = run(*audit, "--out", "r", cwd=tmp_path)
    assert "Report: r/report.html" in plain.stdout
    high = ["--fail-under", "erasure.compactness=0.999"]
    failed = run(*audit, "--out", "r", "--json", *high, cwd=tmp_path)
    assert failed.returncode == 1
    assert "at least 0.999" in json.loads(failed.stdout)["failures"][0]
    assert "at least 0.999" in run(*audit, "--out", "r", *high, cwd=tmp_path).stderr
    passed = run(*audit, "--out", "r", "--fail-under", "erasure.compactness=-1", cwd=tmp_path)
    assert passed.returncode == 0

    only = run("compare", "r", "--on", "erasure.new_p", "--json", cwd=tmp_path)
    standings = told(only)["standings"]
    assert [s["name"] for s in standings] == ["new_p"]
    assert "occlusion" in run("compare", "r", cwd=tmp_path).stdout
    assert r"\begin{tabular}" in run("compare", "r", "--latex", cwd=tmp_path).stdout
    unknown = run("compare", "r", "--on", "erasure.newp", cwd=tmp_path)
    assert "erasure.new_p" in unknown.stderr
    told(run(*audit, "--out", "r2", "--seed", "1", "--json", cwd=tmp_path))
    both = told(run("compare", "r", "r2", "--json", cwd=tmp_path))["standings"]
    assert {e["method"] for e in both[0]["entries"]} >= {"r/m/occlusion", "r2/m/occlusion"}

    (tmp_path / "r" / "report.html").unlink()
    assert told(run("report", "r", "--json", cwd=tmp_path)) == {"report": "r/report.html"}
    assert (tmp_path / "r" / "report.html").stat().st_size > 10_000


def test_explaining_a_file_keeps_its_order(place: Path, tmp_path: Path) -> None:
    result = run(
        "explain", str(place / "model"), "--data", str(place / "reviews.jsonl"), "--out", "e.jsonl",
        "--method", "gradient", cwd=tmp_path,
    )  # fmt: skip
    assert result.returncode == 0, result.stderr
    rows = [json.loads(line) for line in (tmp_path / "e.jsonl").read_text().splitlines()]
    given = [json.loads(line) for line in (place / "reviews.jsonl").read_text().splitlines()]
    assert [r["id"] for r in rows] == [g["id"] for g in given]
    assert [r["text"] for r in rows] == [g["text"] for g in given]


def test_a_killed_explanation_goes_on(tmp_path: Path) -> None:
    (tmp_path / "slow.py").write_text(
        "import os, time\n"
        "def answer(texts):\n"
        "    time.sleep(float(os.environ.get('SECONDS_A_TEXT', '0')) * len(texts))\n"
        "    rows = [0.1 + 0.8 * ('great' in t) for t in texts]\n"
        "    return [[1 - p, p] for p in rows]\n"
    )
    asked = (
        "explain", "slow.py:answer", "--labels", "negative,positive",
        "--data", "made_reviews(n=600)", "--split", "all",
        "--out", "e.jsonl", "--method", "lime(samples=100)",
    )  # fmt: skip
    process = subprocess.Popen(
        [sys.executable, "-m", "veracity", *asked],
        cwd=tmp_path,
        env={**os.environ, "SECONDS_A_TEXT": "0.0002"},  # that it is killed in time
        stderr=subprocess.DEVNULL,
    )
    part = tmp_path / "e.jsonl.part"
    while process.poll() is None and not (part.exists() and part.read_bytes().count(b"\n") > 1):
        time.sleep(0.02)
    process.kill()
    process.wait()
    kept = part.read_bytes().count(b"\n") - 1
    assert 0 < kept < 600 and not (tmp_path / "e.jsonl").exists()
    other = run(*asked[:-1], "occlusion", cwd=tmp_path)
    assert other.returncode == 2 and "other work" in other.stderr
    result = run(*asked, cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    rows = (tmp_path / "e.jsonl").read_text("utf-8").splitlines()
    assert len(rows) == 600 and not part.exists()


def test_data_verbs(place: Path, tmp_path: Path) -> None:
    facts = told(run("data", "describe", str(place / "reviews.jsonl"), "--json", cwd=tmp_path))
    assert facts["examples"] == 12
    assert "rationale" in facts["truths"]
    assert "balance" in run("data", "describe", "made_reviews(n=30)", cwd=tmp_path).stdout
    good = run("data", "validate", str(place / "reviews.jsonl"), cwd=tmp_path)
    assert good.returncode == 0
    assert "no faults" in good.stdout
    lines = (place / "reviews.jsonl").read_text().splitlines()
    bad = [
        lines[0],
        "not json",
        lines[0],
        json.dumps({**json.loads(lines[1]), "rationales": [[99]]}),
    ]
    (tmp_path / "bad.jsonl").write_text("\n".join(bad))
    found = run("data", "validate", "bad.jsonl", "--json", cwd=tmp_path)
    assert found.returncode == 2
    faults = json.loads(found.stdout)["faults"]
    assert [f["line"] for f in faults if f["severity"] == "error"] == [2, 3, 4]


# ---- bad input ------------------------------------------------------------------------------

LONG = "word " * 10_000


def bad_files(folder: Path) -> None:
    (folder / "labels.csv").write_text("text,label\na film,spam\nb film,ham\n")
    (folder / "markup.csv").write_text("text,label\na film,[/b]\nb film,\x1b[31mred\n")
    (folder / "empty.csv").write_text("text,label\n,positive\n")
    (folder / "nothing.csv").write_text("text,label\n")
    (folder / "nul.csv").write_text("text,label\na\0b film,positive\n")
    (folder / "rationale.jsonl").write_text(
        '{"id": "1", "text": "a film", "label": "positive", "rationales": [[7]]}\n'
    )
    (folder / "long.csv").write_text(f"text,label\n{LONG},positive\n")
    (folder / "cut.parquet").write_bytes(b"PAR1\x00\x00cut")
    (folder / "latin.csv").write_bytes("text,label\ncaf\xe9,positive\n".encode("latin-1"))
    (folder / "cut.csv.gz").write_bytes(gzip.compress(b"text,label\na,positive\n" * 50)[:40])
    (folder / "nan.py").write_text(
        "labels = ['negative', 'positive']\n"
        "def f(texts):\n    return [[float('nan')] * 2] * len(texts)\n"
    )
    (folder / "shape.py").write_text("def f(texts):\n    return [[0.5, 0.5]]\n")
    (folder / "logits.py").write_text("def f(texts):\n    return [[-2.0, 5.0]] * len(texts)\n")
    (folder / "crash.py").write_text("def f(texts):\n    raise RuntimeError('no weights')\n")


REVIEWS = "reviews.jsonl"
BAD: list[tuple[list[str], str]] = [
    (["audit", "model", "nowhere.csv"], "no file 'nowhere.csv'"),
    (["audit", "model", "rotten_tomatos"], "did you mean 'rotten_tomatoes'"),
    (["audit", "model", "reviews.csv"], "--columns"),
    (["audit", "model", "reviews.csv", "--columns", "text=reviw,label=stars"], "review"),
    (["audit", "model", "reviews.csv", "--columns", "txt=review"], "text"),
    (["audit", "model", "labels.csv"], "among those of the model"),
    (["audit", "model", "empty.csv"], "validate empty.csv"),
    (["audit", "model", "nothing.csv"], "at least one"),
    (["audit", "model", "nul.csv"], "NUL"),
    (["audit", "model", "rationale.jsonl"], "7"),
    (["audit", "model", "long.csv"], "--max-words"),
    (["audit", "model", "cut.parquet"], "cut.parquet"),
    (["audit", "model", "latin.csv"], "UTF-8"),
    (["audit", "model", "cut.csv.gz"], "cut.csv.gz"),
    (["audit", "modle", REVIEWS], "not there"),
    (["audit", "model", REVIEWS, "--methods", "attention"], "would work"),
    (["audit", "model", REVIEWS, "--methods", "lmie"], "did you mean 'lime'"),
    (["audit", "model", REVIEWS, "--methods", "lime(samples=x)"], "expected samples to be int"),
    (["audit", "model", REVIEWS, "--metrics", "erasre"], "did you mean 'erasure'"),
    (["audit", "model", REVIEWS, "--target", "postive"], "did you mean 'positive'"),
    (["audit", "model", REVIEWS, "--split", "tset"], "train, validation, test or all"),
    (["audit", "model", REVIEWS, "--fail-under", "compactness"], "cannot read the bar"),
    (["audit", "model", REVIEWS, "--fail-under", "erasure.newp=1"], "did you mean 'erasure.new_p'"),
    (["audit", "model", REVIEWS, "--methods", "lime(samples={[1]: 2})"], "cannot read"),
    (["audit", "model", "markup.csv"], "among those of the model"),
    (["audit", "nan.py:f", REVIEWS, "--methods", "occlusion"], "not finite"),
    (["audit", "shape.py:f", REVIEWS, "--methods", "occlusion"], "one row per input"),
    (["audit", "logits.py:f", REVIEWS, "--methods", "occlusion"], "outside 0 … 1"),
    (["audit", "crash.py:f", REVIEWS, "--methods", "occlusion"], "no weights"),
    (["audit", "crash.py:g", REVIEWS], "no function 'g': known: f"),
    (["audit", "http://127.0.0.1:9/x", REVIEWS, "--timeout", "1"], "127.0.0.1:9"),
    (["explain", "model", ""], "no words"),
    (["explain", "model", LONG], "10,000 words"),
    (["explain", "model"], "expected texts or --data"),
    (["train", "text_cn", "made_reviews(n=50)", "--out", "t"], "did you mean 'text_cnn'"),
    (
        ["train", "text_cnn", "made_reviews(n=50)", "--out", "t", "--epochs", "0"],
        "at least one epoch",
    ),
    (["train", "text_cnn(embeddings=nofile)", "made_reviews(n=50)", "--out", "t"], "no file"),
    (["report", "nowhere"], "run.json"),
    (["compare", "nowhere"], "run.json"),
    (["data", "describe", "made_reviews(m=5)"], "no setting 'm': known: n, seed, structure"),
]


@pytest.mark.parametrize(
    ("command", "says"), BAD, ids=lambda v: " ".join(v)[:60] if isinstance(v, list) else ""
)
def test_bad_input_is_told_in_a_sentence(
    command: list[str], says: str, place: Path, tmp_path: Path
) -> None:
    for path in place.iterdir():
        (tmp_path / path.name).symlink_to(path)
    bad_files(tmp_path)
    before = {p.name for p in tmp_path.iterdir()}
    result = run(*command, "--json", cwd=tmp_path)
    assert result.returncode == 2, (result.stdout, result.stderr)
    assert says in result.stderr
    assert "\nveracity: " in f"\n{result.stderr}"
    assert "Traceback" not in result.stderr
    assert "\x1b" not in result.stderr
    assert says in json.loads(result.stdout)["error"]
    left = {p.name for p in tmp_path.iterdir()} - before - {"__pycache__"}
    leftovers = [p for name in left for p in (tmp_path / name).rglob("*") if p.suffix == ".parquet"]
    assert leftovers == [], "half-written output"


@pytest.mark.parametrize(
    "text",
    [
        "great",
        "😀 👩‍👩‍👧 great",
        "这部电影很好看",
        "<script>alert(1)</script>",
        "é́",
        "x" * 3000,
        "\x1b[31mred",
    ],
)
def test_odd_texts_are_explained(text: str, place: Path) -> None:
    shown = run("explain", str(place / "model"), text, "--method", "lime(samples=50)", cwd=place)
    assert shown.returncode == 0, shown.stderr
    assert "\x1b[31m" not in shown.stdout
    (row,) = told(
        run(
            "explain",
            str(place / "model"),
            text,
            "--method",
            "lime(samples=50)",
            "--json",
            cwd=place,
        )
    )["attributions"]
    assert row["text"] == text
    assert row["words"]


def test_long_texts_pass_when_asked(place: Path) -> None:
    found = told(
        run("explain", str(place / "model"), LONG, "--max-words", "20000", "--method", "gradient",
            "--json", cwd=place)
    )  # fmt: skip
    assert len(found["attributions"][0]["scores"]) == 10_000


def test_debug_shows_where(place: Path) -> None:
    result = run("audit", "nowhere", "reviews.jsonl", "--debug", cwd=place)
    assert result.returncode != 0
    assert "Traceback" in result.stderr


def test_bad_rows_can_be_left_out(place: Path, tmp_path: Path) -> None:
    lines = (place / "reviews.jsonl").read_text().splitlines()
    (tmp_path / "some.jsonl").write_text("\n".join([*lines, '{"text": "", "label": "positive"}']))
    command = ["audit", str(place / "model"), "some.jsonl", "--methods", "occlusion", "--json"]
    assert run(*command, cwd=tmp_path).returncode == 2
    told(run(*command, "--skip-bad", cwd=tmp_path))


def test_interrupting_says_how_to_go_on(place: Path, tmp_path: Path) -> None:
    import signal

    process = subprocess.Popen(
        [sys.executable, "-m", "veracity", "audit", str(place / "model"), "made_reviews(n=2000)",
         "--split", "all", "--methods", "lime(samples=500)", "--out", "r"],
        cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        # a shell that runs the tests in the background has its children ignore the signal
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )  # fmt: skip
    deadline = time.monotonic() + 60
    while not (tmp_path / "r" / "attributions").exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)  # once: what a library swallows is given again
    _, stderr = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "the same command goes on" in stderr
    assert "Traceback" not in stderr


def test_suspects_are_told_written_and_can_fail_a_build(tmp_path: Path) -> None:
    (tmp_path / "leaning.py").write_text(
        "def predict(texts):\n"
        "    rows = [0.9 if 'zork' in t else 0.3 for t in texts]\n"
        "    return [[1 - p, p] for p in rows]\n"
    )
    names = ("one", "two", "three", "four", "five", "six", "seven")
    rows = [
        f"{names[i % 7]} {names[i % 5]} {names[i % 3]}{' zork' * (i % 2)},{('no', 'yes')[i % 2]}"
        for i in range(180)
    ]
    (tmp_path / "data.csv").write_text("\n".join(["text,label", *rows]))
    common = ["suspects", "leaning:predict", "data.csv", "--labels", "no,yes", "--limit", "150"]
    common += ["--top", "2", "--out", "s"]
    result = run(*common, "--json", "--fail", cwd=tmp_path, PYTHONPATH=_with(tmp_path))
    assert result.returncode == 1, result.stderr
    found = json.loads(result.stdout)
    assert (found["found"][0]["name"], found["found"][0]["label"]) == ("zork", "yes")
    assert found["texts"] == 150
    assert (tmp_path / "s/suspects.html").exists()
    assert json.loads((tmp_path / "s/suspects.json").read_text("utf-8"))["looks"] == found["looks"]
    plain = run(*common, cwd=tmp_path, PYTHONPATH=_with(tmp_path))
    assert plain.returncode == 0, plain.stderr
    assert "zork" in plain.stdout
    assert "suspects.html" in plain.stdout
    assert "(150 of" in plain.stderr
    wrong = run(*common, "--false-alarms", "2", cwd=tmp_path, PYTHONPATH=_with(tmp_path))
    assert wrong.returncode == 2
    assert "between 0 and 1" in wrong.stderr


def _with(folder: Path) -> str:
    return os.pathsep.join([str(folder), os.environ.get("PYTHONPATH", "")])


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--out", "loop"), "a link that leads nowhere"),
        (("--out", "loop/deeper"), "symbolic links"),
        (("--header", "Content-Length: 3"), "set by the command itself"),
    ],
)
def test_odd_options_end_in_a_sentence(words: tuple[str, ...], said: str, tmp_path: Path) -> None:
    (tmp_path / "loop").symlink_to("loop")
    (tmp_path / "m.py").write_text("def answer(texts):\n    return [[0.4, 0.6]] * len(texts)\n")
    out = run(
        "audit", "m.py:answer", "made_reviews(n=60)", "--methods", "occlusion", *words, cwd=tmp_path
    )
    assert out.returncode == 2, out.stderr
    assert said in out.stderr


def test_the_command_that_mends_an_order_of_labels_keeps_its_promise(tmp_path: Path) -> None:
    """Labels with commas can be given, and in another order the same texts are drawn."""
    (tmp_path / "m.py").write_text(
        "def answer(texts):\n"
        "    return [[.8, .1, .1] if 'toy' in t else [.1, .8, .1] if 'book' in t\n"
        "            else [.1, .1, .8] for t in texts]\n"
    )
    names = {"toy": '"Toys, Games"', "book": "Books", "song": 'Music "live"'}
    rows = [
        f"a {word} of the year {i},{names[word if i % 5 else 'song']}"
        for i in range(60)
        for word in names
    ]
    (tmp_path / "d.csv").write_text("\n".join(["text,label", *rows]) + "\n", "utf-8")
    methods = ("--methods", "occlusion,random_scores", "--metrics", "erasure")
    first = told(run("audit", "m.py:answer", "d.csv", "--limit", "40", *methods, "--out", "r",
                     "--json", cwd=tmp_path))  # fmt: skip
    (state,), (advice,) = first["health"], first["recommendations"]
    assert state["order"] == ["Toys, Games", "Books", 'Music "live"']
    again = shlex.split(advice["repeat"])[1:]
    second = told(run(*again, "--json", cwd=tmp_path))
    assert second["health"][0]["accuracy"] == pytest.approx(state["order_accuracy"])


def test_odd_surroundings_do_not_matter(tmp_path: Path) -> None:
    (tmp_path / "m.py").write_text("def answer(texts):\n    return [[0.4, 0.6]] * len(texts)\n")
    out = run(
        "audit", "m.py:answer", "made_reviews(n=60)", "--methods", "occlusion", cwd=tmp_path,
        COLUMNS="0", SOURCE_DATE_EPOCH="rubbish",
    )  # fmt: skip
    assert (out.returncode, bool(out.stdout)) == (0, True), out.stderr


def test_threads_wait_without_spinning_unless_told_otherwise(tmp_path: Path) -> None:
    """Beside one busy process an epoch of a small network took ten times as long."""
    (tmp_path / "m.py").write_text(
        "import os\ndef answer(texts):\n    raise ValueError(os.environ['OMP_WAIT_POLICY'])\n"
    )
    for given, seen in (({}, "PASSIVE"), ({"OMP_WAIT_POLICY": "ACTIVE"}, "ACTIVE")):
        surroundings = {k: v for k, v in os.environ.items() if k != "OMP_WAIT_POLICY"} | given
        out = subprocess.run(
            [sys.executable, "-m", "veracity", "explain", "m.py:answer", "a film"],
            cwd=tmp_path, env=surroundings, capture_output=True, text=True,
        )  # fmt: skip
        assert out.returncode == 2 and seen in out.stderr


def test_a_working_folder_that_is_gone_is_told(tmp_path: Path) -> None:
    (tmp_path / "gone").mkdir()
    script = f"rmdir {tmp_path}/gone && {sys.executable} -m veracity list metrics"
    out = subprocess.run(
        script, shell=True, cwd=tmp_path / "gone", capture_output=True, text=True, check=False
    )
    assert out.returncode == 2
    assert "the working folder is gone" in out.stderr


def test_a_name_too_long_for_a_file_is_cut(tmp_path: Path) -> None:
    out = run("data", "describe", "9" * 9000, cwd=tmp_path)
    assert out.returncode == 2
    assert len(out.stderr) < 400
