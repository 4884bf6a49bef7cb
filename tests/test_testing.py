"""Every promise of the contract suite, broken once: what a plug-in's author then reads."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest

from veracity import testing
from veracity.core.attributions import Attribution
from veracity.core.changes import Change
from veracity.core.classifiers import Differentiable, LinearFirstLayer, Movable, Truncating
from veracity.core.examples import Dataset
from veracity.core.explainers import Explainer
from veracity.core.images import Image
from veracity.core.inputs import ANY_KIND, Hiding
from veracity.core.metrics import Case, Metric, Quantity, Row
from veracity.core.truths import Truth, WordSets
from veracity.data.corpora.made_reviews import MadeReviews
from veracity.data.corpus import Corpus
from veracity.engine.inference import masked_probabilities, probabilities
from veracity.testing import (
    BagOfWords,
    check_change,
    check_classifier,
    check_corpus,
    check_explainer,
    check_metric,
    check_plugin,
    check_truth,
    small_model,
    small_pictures,
)


@dataclass(frozen=True)
class Lengths(Explainer):
    """Long words matter; or one promise is broken."""

    fault: str = ""
    learnt: list[int] = field(default_factory=list, init=False, compare=False)

    def n_questions(self, n_units: int) -> int | None:
        return 0

    def explain(
        self, model: Any, inputs: Sequence[Any], targets: Sequence[int], rngs: Sequence[Any]
    ) -> list[Attribution[Any]]:
        self.learnt.append(len(inputs))
        scores = [np.array([len(w) for w in text.words], dtype=float) for text in inputs]
        if self.fault == "company":
            scores = [s + len(inputs) for s in scores]
        if self.fault == "order":
            scores = [s + (i if 1 < len(inputs) < 6 else 0) for i, s in enumerate(scores)]
        if self.fault == "draws":
            scores = [s + rng.random() for s, rng in zip(scores, rngs, strict=True)]
        if self.fault == "no number":
            scores = [s * np.nan for s in scores]
        if self.fault == "target":
            targets = [1 - t for t in targets]
        if self.fault == "asks":
            probabilities(model, inputs)
        if self.fault == "NumPy":
            np.random.seed(len(self.learnt))
        if self.fault == "weights":
            next(model.parameters()).data += 1e-3
        if self.fault == "mode":
            model.eval()
        if self.fault == "dropout" and model.training:
            scores = [s + 1 for s in scores]
        return [Attribution(*row) for row in zip(inputs, targets, scores, strict=True)]


@dataclass(frozen=True)
class Still(Lengths):
    """Says that it draws."""

    draws: ClassVar[bool] = True


EXPLAINERS = {
    "company": "lengths(fault=company) depends on what is explained with it: scores of",
    "order": "lengths(fault=order) depends on the order of texts: scores of",
    "draws": "lengths(fault=draws) draws: set draws to True",
    "no number": "gave a score that is not a number for",
    "target": "explains another text or label than it was asked to",
    "asks": "cost at most 0 questions, and asks 1",
    "NumPy": "does not leave NumPy's generator as it was found",
}
OF_NETWORKS = {
    "weights": "does not leave the model's weights as it was found",
    "mode": "does not leave the model's mode as it was found",
    "dropout": "depends on whether the model is in training",
}


def test_an_explainer_that_keeps_its_promises() -> None:
    check_explainer(Lengths())
    check_explainer(Lengths(), small_model())


@pytest.mark.parametrize("fault", EXPLAINERS)
def test_explainers_that_break_one(fault: str) -> None:
    with pytest.raises(AssertionError, match=re.escape(EXPLAINERS[fault])):
        check_explainer(Lengths(fault))


@pytest.mark.parametrize("fault", OF_NETWORKS)
def test_explainers_that_break_one_on_networks(fault: str) -> None:
    with pytest.raises(AssertionError, match=OF_NETWORKS[fault]):
        check_explainer(Lengths(fault), small_model(Differentiable))


@pytest.mark.parametrize("ability", [Movable, LinearFirstLayer, Truncating])
def test_an_explainer_may_need_an_ability_without_a_word(ability: type) -> None:
    @dataclass(frozen=True)
    class Needy(Lengths):
        """Long words matter, to models of one kind."""

        needs: ClassVar[type] = ability

    assert Needy().missing(BagOfWords()) == ability.__name__
    assert Needy().missing(small_model(ability)) is None


def test_an_explainer_that_draws_nothing() -> None:
    with pytest.raises(AssertionError, match="still draws nothing: leave draws False"):
        check_explainer(Still())


@dataclass
class Thawed(Explainer):
    """Not frozen."""

    def explain(self, *_: Any) -> Any: ...


@dataclass(frozen=True)
class Silent(Explainer):
    def explain(self, *_: Any) -> Any: ...


@dataclass(frozen=True)
class Secretive(Explainer):
    """Keeps something."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "secret", 1)

    def explain(self, *_: Any) -> Any: ...


class Plain(Explainer):
    """No dataclass."""

    def explain(self, *_: Any) -> Any: ...


@pytest.mark.parametrize(
    ("plugin", "says"),
    [
        (Thawed(), "thawed is not frozen"),
        (Silent(), "silent has no docstring"),
        (Secretive(), "secretive keeps what is no setting of it: secret"),
        (Plain(), "plain is no dataclass"),
    ],
)
def test_plugins_that_are_none(plugin: Any, says: str) -> None:
    with pytest.raises(AssertionError, match=says):
        check_plugin(plugin)


class Brightness:
    """Answers by how bright a picture is."""

    labels = ("dark", "bright")

    def probabilities(self, inputs: Sequence[Image]) -> Any:
        bright = np.array([picture.pixels.mean() / 255 for picture in inputs])
        return np.stack([1 - bright, bright], axis=1)


@dataclass(frozen=True)
class Tiles(Explainer):
    """Hides one tile of a picture, then two, and says how many of these questions it asks."""

    takes: ClassVar[tuple[str, ...]] = ANY_KIND
    asked: int = 1

    def n_questions(self, n_units: int) -> int | None:
        return 1 + self.asked * (n_units == 64)  # tiles, of which there are 8 x 8; not pixels

    def explain(
        self, model: Any, inputs: Sequence[Any], targets: Sequence[int], rngs: Sequence[Any]
    ) -> list[Attribution[Any]]:
        shown = [np.arange(picture.n_units) >= np.arange(3)[:, None] for picture in inputs]
        answers = masked_probabilities(model, inputs, shown, Hiding.BLACK)
        return [
            Attribution(picture, target, np.full(picture.n_features, p[0, target]))
            for picture, target, p in zip(inputs, targets, answers, strict=True)
        ]


def test_questions_about_pictures_are_told_by_segments() -> None:
    pictures = [example.input for example in small_pictures().examples[:3]]
    check_explainer(Tiles(asked=2), Brightness(), pictures)
    with pytest.raises(AssertionError, match="64 units cost at most 2 questions, and asks 3"):
        check_explainer(Tiles(), Brightness(), pictures)


@dataclass(frozen=True)
class Counted(Metric):
    """How many words a text has; or one promise is broken."""

    purpose: ClassVar[str] = "count words"
    quantities: ClassVar[Mapping[str, Quantity]] = {"words": Quantity("words", "higher", True)}

    fault: str = ""

    def n_questions(self, n_units: int) -> int | None:
        return 0

    def score(self, cases: Sequence[Case]) -> list[Row]:
        if self.fault == "name":
            return [{"letters": 1.0} for _ in cases]
        if self.fault == "asks":
            probabilities(cases[0].model, [case.example.input for case in cases])
        more = len(cases) if self.fault == "company" else 0
        rows: list[Row] = [{"words": float(case.example.input.n_features + more)} for case in cases]
        if self.fault == "order" and len(cases) > 1 and cases[0].example.id == "odd-6":
            rows = rows[::-1]
        return rows[: -1 if self.fault == "rows" else None]


@dataclass(frozen=True)
class Shouted(Counted):
    """Says its purpose as a sentence."""

    purpose: ClassVar[str] = "Count words."


@dataclass(frozen=True)
class Headless(Counted):
    """Has no headline."""

    quantities: ClassVar[Mapping[str, Quantity]] = {"words": Quantity("words", "higher")}


@pytest.mark.parametrize(
    ("metric", "says"),
    [
        (Counted("rows"), "15 cases, 14 rows"),
        (Counted("name"), "describes what it gives for no case: words"),
        (Counted("company"), "depends on the cases beside one: words is 21, not 35"),
        (Counted("order"), "depends on the order of cases: words is"),
        (Counted("asks"), "cost at most 0 questions, and asks 1"),
        (Shouted(), "its purpose completes 'To …', got 'Count words.'"),
        (Headless(), "expected one headline among its quantities, got 0"),
    ],
)
def test_metrics_that_break_a_promise(metric: Metric, says: str) -> None:
    check_metric(Counted())
    with pytest.raises(AssertionError, match=says):
        check_metric(metric)


@dataclass(frozen=True)
class Louder(Change):
    """Says in its facts that it was here; or one promise is broken."""

    fault: str = ""

    def changed(self, data: Dataset, *, seed: int) -> Dataset:
        made = []
        for i, e in enumerate(data):
            facts = {} if self.fault == "facts" else {"louder": "yes"}
            if self.fault == "company":
                facts["company"] = str(len(data))
            if self.fault == "seed":
                facts["seed"] = str(np.random.default_rng().random())
            made.append(replace(e, label=1 - e.label, facts={**e.facts, **facts}))
            if self.fault == "stranger":
                made.append(replace(e, id=f"{e.id}-{i}"))
            if self.fault == "id":
                made.append(made[-1])
            if self.fault == "mask":
                made[-1] = replace(made[-1], truths={"rationale": (np.ones(1, dtype=bool),)})
        return replace(data, examples=tuple(made))


@pytest.mark.parametrize(
    ("fault", "says"),
    [
        ("facts", "changes made-0 and does not say so in its facts"),
        ("company", "depends on the order or the company of examples"),
        ("seed", "differs for the same seed"),
        ("stranger", "adds made-0-0, which is nobody's twin"),
        ("id", "has examples of the same id"),
        ("mask", "made-0 has a truth mask that is not one flag per feature"),
    ],
)
def test_changes_that_break_a_promise(fault: str, says: str) -> None:
    check_change(Louder())
    with pytest.raises(AssertionError, match=says):
        check_change(Louder(fault))


@dataclass(frozen=True)
class Random(Corpus):
    """Other reviews each time."""

    def load(self) -> Dataset:
        return MadeReviews(n=4, seed=int(np.random.default_rng().integers(10**6))).load()


def test_a_corpus_that_differs() -> None:
    check_corpus(MadeReviews(n=4))
    with pytest.raises(AssertionError, match="differs from one loading to the next"):
        check_corpus(Random())


@dataclass(frozen=True)
class Capitals(Truth):
    """Words with capitals."""

    def learnt(self, model: Any, train: Dataset, *, seed: int) -> WordSets:
        return WordSets(train.labels, (frozenset(["Dull"]), frozenset(["great"])))


def test_a_truth_in_capitals() -> None:
    with pytest.raises(AssertionError, match=r"words with capitals, such as \['Dull'\]"):
        check_truth(Capitals())


class Moody(BagOfWords):
    def __init__(self, fault: str) -> None:
        super().__init__()
        self.fault = fault

    def probabilities(self, inputs: Sequence[Any]) -> Any:
        found = super().probabilities(inputs)
        if self.fault == "sum":
            return found * 2
        if self.fault == "company":
            return np.roll(found, 1, axis=1) if len(inputs) == 1 else found
        return found[:, :1]


@pytest.mark.parametrize(
    ("fault", "says"),
    [
        ("shape", r"expected shape \(15, 2\), got \(15, 1\)"),
        ("sum", "expected probabilities that add up to 1"),
        ("company", "Moody answers differently for an input by itself"),
    ],
)
def test_models_that_break_a_promise(fault: str, says: str) -> None:
    check_classifier(BagOfWords())
    with pytest.raises(AssertionError, match=says):
        check_classifier(Moody(fault))


def test_the_page_for_authors_runs(tmp_path: Path) -> None:
    pages = Path(__file__).parents[1] / "docs" / "how-to"
    files = {
        "add-a-method": "my_methods/explainers/first_words.py",
        "add-a-metric": "my_methods/metrics/keystone.py",
        "test-a-plug-in": "test_my_methods.py",
    }
    for page, file in files.items():
        text = (pages / f"{page}.md").read_text("utf-8")
        code = re.findall(r"```python\n(.*?)```", text, flags=re.DOTALL)[0]
        (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / file).write_text(code, "utf-8")
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_my_methods.py"],
        cwd=tmp_path,
        env={**os.environ, "VERACITY_PLUGINS": "my_methods"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout
    assert "4 passed" in done.stdout


def test_every_check_is_on_the_page() -> None:
    page = (Path(__file__).parents[1] / "docs/how-to/test-a-plug-in.md").read_text("utf-8")
    for name in (n for n in vars(testing) if n.startswith("check_") and n != "check_settings"):
        assert f"`{name}(" in page


def test_nothing_heavy_is_loaded() -> None:
    code = (
        "import sys, veracity.testing; sys.exit(any(m in sys.modules for m in ('torch', 'jieba')))"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
