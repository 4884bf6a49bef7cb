"""What is going to be asked, and what of it a budget holds."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from threading import Thread
from typing import Any

import numpy as np
import pytest

import veracity
from commands import run_command
from test_auditing import Answering, Server
from veracity.auditing.planning import (
    ENOUGH_TEXTS,
    AuditPlan,
    SuspectsPlan,
    plan_questions,
    plan_within_budget,
)
from veracity.core.errors import BudgetSpent
from veracity.core.examples import Dataset
from veracity.core.inputs import Text
from veracity.data.records import write_records
from veracity.data.splits import Splits
from veracity.explainers import explainers
from veracity.metrics import metrics
from veracity.models.adapters.callables import CallableClassifier
from veracity.reports.html import build_report
from veracity.reports.suspects import suspects_page
from veracity.results.run import Run

METHODS = ["lime", "shap", "occlusion", "random_scores"]
TESTS = ["erasure", "erasure(hiding=mask)", "deletion", "blank", "accuracy"]


@pytest.fixture(scope="module")
def texts(made: Splits) -> Dataset:
    return made.test.select(range(120))


@pytest.fixture
def server() -> Iterator[Server]:
    found = Server(("127.0.0.1", 0), Answering)
    found.texts, found.seen = [], []
    thread = Thread(target=found.serve_forever, args=(0.02,))
    thread.start()
    yield found
    found.shutdown()
    thread.join()
    found.server_close()


def url(server: Server) -> str:
    return f"http://127.0.0.1:{server.server_port}/predict"


def chosen(budget: int, texts: Dataset, **options: Any) -> AuditPlan:
    made = [explainers.make(m) for m in METHODS]
    tests = [metrics.make(m) for m in TESTS]
    settings = {
        "adjustable": frozenset({"lime", "shap"}),
        "optional": frozenset({"erasure(hiding=mask)"}),
    }
    return plan_within_budget(budget, texts, made, tests, **(settings | options))


@pytest.mark.parametrize("methods", [["occlusion"], ["lime(samples=50)", "shap(samples=90)"]])
def test_a_plan_is_a_bound_and_a_near_one(
    methods: list[str], texts: Dataset, tmp_path: Path
) -> None:
    asked: set[str] = set()

    def answer(given: list[str]) -> Any:
        asked.update(given)
        p = np.array([len(t) % 7 / 10 + 0.1 for t in given])
        return np.stack([1 - p, p], axis=1)

    some = texts.select(range(6))
    model = CallableClassifier(answer, labels=("negative", "positive"))
    tests = ["erasure", "deletion", "erasure(hiding=mask)"]
    found = veracity.plan(model, some, methods, tests)
    assert len(asked) <= 1, "nothing is asked for a plan but what the labels are"
    veracity.audit(model, some, methods, tests, out=tmp_path / "run")
    # what is left of different texts can read alike
    assert 0.6 * found.total < len(asked) <= found.total + 1


def test_what_tests_share_counts_once(texts: Dataset) -> None:
    methods = [explainers.make(m) for m in ("occlusion", "random_scores")]
    tests = [metrics.make(m) for m in ("erasure", "deletion", "accuracy")]
    plan = plan_questions(texts, methods, tests)
    shared = [item for item in plan.items if item.shared]
    assert [item.what.partition(" of ")[0] for item in shared] == [m.spec for m in tests[:2]]
    alone = sum(item.questions or 0 for item in plan.items if not item.shared)
    all_of_it = alone + sum(item.questions or 0 for item in shared)
    assert alone < plan.total < all_of_it


def test_what_a_budget_holds(texts: Dataset) -> None:
    everything = plan_questions(
        texts, [explainers.make(m) for m in METHODS], [metrics.make("erasure")]
    )
    assert everything.second_draw
    assert everything.of == 120
    plenty = chosen(10**7, texts)
    assert plenty.second_draw
    assert not plenty.dropped
    assert len(plenty.data) == 120
    without = chosen(plenty.total - 1, texts)
    assert without.dropped == ("the second draw",)
    assert "left out: the second draw" in without.sentence
    last = without
    for budget in (150_000, 60_000, 30_000, 10_000, 5_000):
        plan = chosen(budget, texts)
        assert plan.total <= budget
        assert plan.total > 0.8 * budget or len(plan.data) == len(texts)
        assert {e.id for e in plan.data} <= {e.id for e in last.data}, "the first stay the same"
        if (plan.questions or 0) > 80:
            assert len(plan.data) >= ENOUGH_TEXTS, "texts come before samples"
        last = plan
    q = last.questions
    assert q is not None
    assert 64 <= q < 80
    ones = sum(e.label for e in last.data) / len(last.data)
    assert ones == pytest.approx(sum(e.label for e in texts) / 120, abs=0.06), "in proportion"
    assert [e.spec for e in last.explainers][:2] == [f"lime(samples={q})", f"shap(samples={q})"]
    assert f"{len(last.data)} of 120 texts, {q} samples a text for lime and shap" in last.sentence
    assert "erasure(hiding=mask)" in last.dropped
    twice = replace(
        texts,
        examples=tuple(replace(e, input=Text.of_words(e.input.words * 3)) for e in texts),
    )
    long = chosen(9_000, twice)
    sums = [sum(m.n_questions(e.input.n_features) or 0 for e in long.data) for m in long.explainers]
    assert sums[0] == pytest.approx(sums[1], rel=0.1), "lime gets what shap needs"
    assert chosen(50_000, texts, adjustable=frozenset()).questions is None


def test_too_small_a_budget_says_what_is_needed(texts: Dataset) -> None:
    with pytest.raises(
        BudgetSpent,
        match=r"8 texts need up to [\d,]+ with \d+ a text for methods that sample, "
        "and all 120 as asked",
    ) as told:
        chosen(1_000, texts)
    assert "give methods fewer --questions" in str(told.value)
    needed = int(str(told.value).split("need up to ")[1].split(" ")[0].replace(",", ""))
    assert len(chosen(needed, texts).data) == 8  # for three methods and two tests


def test_an_endpoint_with_a_budget_ends_in_a_verdict(
    server: Server, texts: Dataset, tmp_path: Path
) -> None:
    write_records(texts, tmp_path / "data.jsonl")
    command = ["audit", url(server), "data.jsonl", "--out", "r", "--metrics", "erasure"]
    command += ["--methods", "lime, shap, random_scores"]
    done = run_command(*command, "--budget", "1900", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert 900 < len(server.texts) <= 1900
    assert done.stderr.index("questions at most") < done.stderr.index("questions holds")
    assert re.search(r"of 120 texts, \d+ samples a text for lime and shap", done.stdout)
    few = Run.open(tmp_path / "r")
    assert few.partial is None
    texts_before = len(few.examples())
    assert 8 <= texts_before < 120
    assert "of 120 texts" in build_report(few)
    # a larger budget goes on from there: nothing is asked twice
    more = run_command(*command, "--budget", "2300", "--json", cwd=tmp_path)
    assert more.returncode == 0, more.stderr
    assert len(server.texts) == len(set(server.texts)) <= 2300
    assert json.loads(more.stdout)["plan"]["texts"] > texts_before
    # a smaller one does not take away what was reached
    report = (tmp_path / "r" / "report.html").read_bytes()
    less = run_command(*command, "--budget", "1900", cwd=tmp_path)
    assert less.returncode == 2 and "a budget of 2,300 questions; one of 1,900" in less.stderr
    assert (tmp_path / "r" / "report.html").read_bytes() == report


def test_a_budget_spent_on_the_way_leaves_a_partial_result(
    server: Server, texts: Dataset, tmp_path: Path
) -> None:
    texts = texts.select(range(40))
    methods, tests = ["occlusion", "random_scores"], ["erasure"]
    model: Any = veracity.load_model(url(server), cache=tmp_path / "answers", budget=800)
    needed = veracity.plan(model, texts, methods, tests)
    assert len(needed.data) < 40
    # somebody else used the same budget
    model.probabilities([Text.of_words([f"word{i}"]) for i in range(400)])
    told: list[AuditPlan] = []
    found = veracity.audit(
        model, texts, methods, tests, out=tmp_path / "run", tell_plan=told.append
    )
    assert told[0].data == needed.data
    partial = found.run.partial
    assert partial is not None
    assert 0 < partial.texts < partial.of == len(needed.data)
    assert all(e.n == partial.texts for s in found.standings for e in s.entries)
    assert found.verdicts
    assert f"told by {partial.texts} of {partial.of} texts" in build_report(found.run)
    larger: Any = veracity.load_model(url(server), cache=tmp_path / "answers", budget=5_000)
    whole = veracity.audit(larger, texts, methods, tests, out=tmp_path / "run")
    assert whole.run.partial is None
    assert Run.open(tmp_path / "run").partial is None
    assert len(server.texts) == len(set(server.texts))


def test_a_plan_by_command(texts: Dataset, tmp_path: Path) -> None:
    write_records(texts, tmp_path / "data.jsonl")
    (tmp_path / "model.py").write_text("def f(texts): return [[0.5, 0.5] for _ in texts]\n")
    command = ["audit", "model.py:f", "data.jsonl", "--methods", "lime, occlusion", "--plan"]
    shown = run_command(*command, "--questions", "200", cwd=tmp_path)
    assert shown.returncode == 0, shown.stderr
    assert "lime(samples=200)" in shown.stdout
    assert "120 texts need at most" in shown.stdout
    assert not (tmp_path / "runs").exists()


def test_headers_come_from_the_environment_and_stay_secret(
    server: Server, texts: Dataset, tmp_path: Path
) -> None:
    write_records(texts.select(range(4)), tmp_path / "data.jsonl")
    command = ["audit", url(server), "data.jsonl", "--methods", "occlusion", "--metrics", "erasure"]
    given = ["--header", "Authorization: Bearer $TOKEN", "--header", "X-Team: a$$b"]
    missing = run_command(*command, *given, cwd=tmp_path)
    assert missing.returncode == 2
    assert "variable TOKEN, which is not set" in missing.stderr
    assert not server.texts
    bare = run_command(*command, "--header", "s3cret", cwd=tmp_path)
    assert "without a colon" in bare.stderr
    assert "s3cret" not in bare.stderr + bare.stdout
    done = run_command(*command, *given, "--out", "r", cwd=tmp_path, TOKEN="s3cret")
    assert done.returncode == 0, done.stderr
    assert all(h["Authorization"] == "Bearer s3cret" for h in server.seen)
    assert all(h["X-Team"] == "a$b" for h in server.seen)
    assert "s3cret" not in done.stdout + done.stderr
    for file in tmp_path.rglob("*"):
        assert not file.is_file() or b"s3cret" not in file.read_bytes(), file


def test_suspects_fit_a_budget_and_bear_that_it_is_spent(
    server: Server, texts: Dataset, tmp_path: Path
) -> None:
    model: Any = veracity.load_model(url(server), cache=tmp_path / "answers", budget=900)
    told: list[SuspectsPlan] = []
    options: dict[str, Any] = {"top": 3, "vectors": "none", "least_texts": 5}
    found = veracity.suspects(model, texts, tell_plan=told.append, **options)
    assert len(server.texts) <= 900
    assert found.texts == len(told[0].data) < 120
    assert told[0].total <= 900
    assert f"holds {found.texts} of 120 texts" in found.limits
    assert all(s.taken_out.texts for s in (*found.found, *found.others))
    # somebody else uses up what it would have needed
    other: Any = veracity.load_model(url(server), cache=tmp_path / "other", budget=900)
    other.probabilities([Text.of_words([f"word{i}"]) for i in range(500)])
    part = veracity.suspects(other, texts, **options)
    assert 0 < part.texts < found.texts
    assert f"told by {part.texts} of {found.texts} texts" in suspects_page(part)
    assert "a larger --budget" in part.limits
    with pytest.raises(BudgetSpent, match="10 texts need up to"):
        veracity.suspects(veracity.load_model(url(server), budget=100), texts, **options)


def test_plans_and_data_are_printed_for_people() -> None:
    data = veracity.load_data("made_reviews(n=30)")
    assert str(data) == f"{data.name}: {len(data)} examples, labels negative, positive"
    plan = plan_questions(
        data, [explainers.make("occlusion")], [metrics.make("erasure")], second_draw=False
    )
    assert str(plan).splitlines()[-1] == f"together: {plan.sentence}"
