"""Functions and scikit-learn pipelines as models."""

from __future__ import annotations

import importlib
import pickle
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import pytest
from sklearn.calibration import CalibratedClassifierCV
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.svm import LinearSVC

from veracity.core.classifiers import Classifier
from veracity.core.errors import ModelError
from veracity.core.inputs import Hiding, Text
from veracity.engine.inference import masked_probabilities
from veracity.models.adapters.callables import CallableClassifier, load_callable
from veracity.models.adapters.sklearn_pipelines import SklearnClassifier, load_pickled
from veracity.models.loading import load_model

SOURCE = """
import numpy as np
import neighbour

THRESHOLD = 3

def lengths(texts):
    assert type(texts) is list and all(type(t) is str for t in texts)
    p = [neighbour.share(t) for t in texts]
    return [[1 - x, x] for x in p]

def named(texts):
    return lengths(texts)

named.labels = ["short", "long"]

def flat(texts):
    return np.array([neighbour.share(t) for t in texts], dtype=np.float32)

def column(texts):
    return flat(texts)[:, None]

def three(texts):
    return [[0.2, 0.3, 0.5] for _ in texts]

def first_only(texts):
    return lengths(texts[:1])

def failing(texts):
    raise KeyError("no such weight")

def words(texts):
    return [["0.5", "0.5"] for _ in texts]

def holes(texts):
    return [[None, 1.0] for _ in texts]

def ragged(texts):
    return [[0.5, 0.5], [1.0]]

def nan(texts):
    return [[float("nan"), 1.0] for _ in texts]

def logits(texts):
    return [[-2.0, 3.0] for _ in texts]

def scores(texts):
    return [[0.9, 0.8] for _ in texts]

class Box:
    def predict(self, texts):
        return lengths(texts)

box = Box()
"""
NEIGHBOUR = "def share(text):\n    return min(len(text), 10) / 10\n"
TEXTS = [Text.of_words(words) for words in (["bad"], ["so", "good"], ["a", "b", "c", "d", "e"])]
ANSWER = np.array([[0.7, 0.3], [0.3, 0.7], [0.1, 0.9]])


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.setattr(sys, "path", list(sys.path))
    (tmp_path / "somemodel.py").write_text(SOURCE)
    (tmp_path / "neighbour.py").write_text(NEIGHBOUR)
    monkeypatch.chdir(tmp_path)
    importlib.invalidate_caches()
    yield tmp_path / "somemodel.py"
    for name in ("somemodel", "neighbour"):
        sys.modules.pop(name, None)


@pytest.mark.parametrize("where", ["somemodel", "somemodel.py", "{folder}/somemodel.py"])
def test_module_and_file(file: Path, where: str) -> None:
    model = load_callable(f"{where.format(folder=file.parent)}:lengths")
    assert isinstance(model, Classifier)
    assert model.labels == ("0", "1")
    np.testing.assert_allclose(model.probabilities(TEXTS), ANSWER)
    assert model.probabilities([]).shape == (0, 2)


def test_labels_by_option_attribute_and_probe(file: Path) -> None:
    assert load_callable("somemodel:named").labels == ("short", "long")
    assert load_callable("somemodel:named", ["no", "yes"]).labels == ("no", "yes")
    assert load_callable("somemodel:three").labels == ("0", "1", "2")


@pytest.mark.parametrize("name", ["flat", "column"])
def test_one_number_per_text_is_the_second_label(file: Path, name: str) -> None:
    model = load_callable(f"somemodel:{name}", ("neg", "pos"))
    np.testing.assert_allclose(model.probabilities(TEXTS), ANSWER, atol=1e-6)


def test_method_of_an_object(file: Path) -> None:
    np.testing.assert_allclose(load_callable("somemodel:box.predict").probabilities(TEXTS), ANSWER)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("first_only", r"3 × 2, got the shape 1 × 2"),
        ("three", r"3 × 2, got the shape 3 × 3"),
        ("failing", r"raised KeyError on 3 texts: 'no such weight'"),
        ("words", r"expected a table of numbers, one row per input, got \[\['0.5', '0.5'\]"),
        ("holes", r"expected a table of numbers, one row per input, got \[\[None, 1.0\]"),
        ("ragged", r"cannot be read as one"),
        ("nan", r"row 0 holds a value that is not finite: \[nan, 1.0\]"),
        ("logits", r"row 0 holds a value outside 0 … 1: \[-2.0, 3.0\]"),
        ("scores", r"row 0 does not sum to 1: \[0.9, 0.8\]"),
    ],
)
def test_wrong_answers_are_named(file: Path, name: str, expected: str) -> None:
    model = load_callable(f"somemodel:{name}", ("neg", "pos"))
    with pytest.raises(ModelError, match=expected) as caught:
        model.probabilities(TEXTS)
    assert f"somemodel:{name}" in str(caught.value)
    if name == "failing":
        assert isinstance(caught.value.__cause__, KeyError)


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ("somemodel", "expected package.module:function"),
        ("somemodel:", "expected package.module:function"),
        ("somemodle:lengths", "no module is called 'somemodle'"),
        ("somemodel.deep:lengths", "no module is called .somemodel.deep."),
        ("somemodle.py:lengths", "did you mean 'somemodel.py'"),
        ("somemodel:lenghts", "no function 'lenghts': did you mean 'lengths'"),
        ("somemodel.py:lenghts", "no function 'lenghts': did you mean 'lengths'"),
        ("somemodel:THRESHOLD", "expected somemodel:THRESHOLD to be a function"),
    ],
)
def test_wrong_names_are_named(file: Path, spec: str, expected: str) -> None:
    with pytest.raises(ModelError, match=expected):
        load_callable(spec)


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("import surely_absent", "raised ModuleNotFoundError: No module named 'surely_absent'"),
        ("1 / 0", "raised ZeroDivisionError"),
        ("raise SystemExit(2)", r"called sys\.exit\(2\)"),
        ("def", "raised SyntaxError"),
    ],
)
@pytest.mark.parametrize("where", ["fails_at_once", "fails_at_once.py"])
def test_failing_imports_say_what_failed(
    file: Path, where: str, source: str, expected: str
) -> None:
    file.with_name("fails_at_once.py").write_text(source)
    with pytest.raises(ModelError, match=expected):
        load_callable(f"{where}:f")


@pytest.mark.parametrize("where", ["somemodel", "somemodel.py"])
def test_callable_reaches_another_process(file: Path, where: str) -> None:
    model = load_callable(f"{where}:lengths", ("neg", "pos"))
    read = "import pickle, sys; m, x = pickle.load(sys.stdin.buffer); "
    done = subprocess.run(
        [sys.executable, "-c", read + "print(m.labels, m.probabilities(x).round(6).tolist())"],
        input=pickle.dumps((model, TEXTS)),
        capture_output=True,
        check=True,
    )
    assert done.stdout.decode().strip() == f"('neg', 'pos') {ANSWER.tolist()}"


def test_identity_follows_source_and_answers(file: Path) -> None:
    def identity(name: str) -> str:
        model: Any = load_callable(f"somemodel.py:{name}")
        found: str = model.identity()
        return found

    first = identity("lengths")
    assert identity("lengths") == first
    assert str(file.parent) not in first
    assert identity("flat") != first
    sys.modules["neighbour"].__dict__["share"] = lambda text: 0.25  # weights that were retrained
    assert identity("lengths") != first
    del sys.modules["neighbour"]
    assert identity("lengths") == first
    file.write_text(SOURCE.replace("THRESHOLD = 3", "THRESHOLD = 4"))
    assert identity("lengths") != first


def half(texts: Sequence[str]) -> list[list[float]]:
    return [[0.5, 0.5] for _ in texts]


def test_live_function() -> None:
    model: Classifier = CallableClassifier(half, ["neg", "pos"])
    assert model.labels == ("neg", "pos")
    assert model.probabilities(TEXTS).tolist() == [[0.5, 0.5]] * 3
    copy = pickle.loads(pickle.dumps(model))
    assert copy.probabilities(TEXTS).tolist() == [[0.5, 0.5]] * 3
    assert copy.identity() == CallableClassifier(half).identity()
    assert "half" in copy.identity()


def test_live_lambda_and_wrong_things() -> None:
    tilted = CallableClassifier(lambda texts: [0.9] * len(texts))
    even = CallableClassifier(lambda texts: [0.5] * len(texts))
    assert tilted.labels == ("0", "1")
    assert tilted.identity() != even.identity()
    with pytest.raises(ModelError, match="expected a function"):
        CallableClassifier(3)  # type: ignore[arg-type]
    for labels in (["a"], ["a", "a"], "ab"):
        with pytest.raises(ModelError, match="two or more different labels"):
            CallableClassifier(half, labels)


REVIEWS = ["good film", "a good story", "bad film", "a bad bad story"] * 3
STARS = [1, 1, 0, 0] * 3


@pytest.fixture(scope="module")
def pipeline() -> Pipeline:
    return make_pipeline(TfidfVectorizer(), LogisticRegression()).fit(REVIEWS, STARS)


@pytest.mark.parametrize("suffix", [".pkl", ".pickle", ".joblib"])
def test_pickled_pipeline(pipeline: Pipeline, tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"model{suffix}"
    if suffix == ".joblib":
        joblib.dump(pipeline, path)
    else:
        path.write_bytes(pickle.dumps(pipeline))
    with pytest.raises(ModelError, match=r"runs code.*--allow-unpickle.*allow_unpickle=True"):
        load_pickled(path, allow_unpickle=False)
    model = load_pickled(path, allow_unpickle=True)
    texts = [Text.of_words(["good", "film"]), Text.of_words(["bad"]), Text("", ())]
    assert isinstance(model, Classifier)
    assert model.labels == ("0", "1")
    expected = pipeline.predict_proba(["good film", "bad", ""])
    np.testing.assert_array_equal(model.probabilities(texts), expected)
    assert expected[0, 1] > 0.5 > expected[1, 1]
    assert model.probabilities([]).shape == (0, 2)
    copy = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(copy.probabilities(texts), expected)
    assert copy.identity() == model.identity() == SklearnClassifier(pipeline).identity()


class Trap:
    """Leaves a mark when it is unpickled."""

    def __init__(self, mark: Path) -> None:
        self.mark = mark

    def __reduce__(self) -> tuple[object, ...]:
        return Path.touch, (self.mark,)


def test_nothing_runs_without_permission(tmp_path: Path) -> None:
    mark, path = tmp_path / "mark", tmp_path / "model.pkl"
    path.write_bytes(pickle.dumps(Trap(mark)))
    with pytest.raises(ModelError, match="--allow-unpickle"):
        load_pickled(path, allow_unpickle=False)
    assert not mark.exists()
    with pytest.raises(ModelError, match="NoneType has no predict_proba"):
        load_pickled(path, allow_unpickle=True)
    assert mark.exists(), "the trap itself must work, or this test shows nothing"


def test_files_that_are_no_pickles(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=r"expected a file that ends in \.pkl"):
        load_pickled(tmp_path / "model.bin", allow_unpickle=True)
    with pytest.raises(ModelError, match="there is no file"):
        load_pickled(tmp_path / "model.pkl", allow_unpickle=True)
    (tmp_path / "model.pkl").write_text("hello")
    with pytest.raises(ModelError, match="cannot be unpickled"):
        load_pickled(tmp_path / "model.pkl", allow_unpickle=True)
    (tmp_path / "model.pkl").write_bytes(b"csurely_absent\nthing\n.")
    with pytest.raises(ModelError, match="needs the package 'surely_absent'"):
        load_pickled(tmp_path / "model.pkl", allow_unpickle=True)


def test_pipeline_without_probabilities() -> None:
    margin = make_pipeline(TfidfVectorizer(), LinearSVC()).fit(REVIEWS, STARS)
    expected = r"TfidfVectorizer \+ LinearSVC has no predict_proba.*CalibratedClassifierCV"
    with pytest.raises(ModelError, match=expected):
        SklearnClassifier(margin)
    advice = make_pipeline(TfidfVectorizer(), CalibratedClassifierCV(LinearSVC(), cv=2))
    model: Classifier = SklearnClassifier(advice.fit(REVIEWS, ["neg", "pos"] * 6))
    assert model.labels == ("neg", "pos")
    assert model.probabilities([Text.of_words(["good"])]).shape == (1, 2)


def test_pipelines_that_cannot_answer(pipeline: Pipeline) -> None:
    with pytest.raises(ModelError, match="expected one that has been fitted"):
        SklearnClassifier(make_pipeline(TfidfVectorizer(), LogisticRegression()))
    with pytest.raises(ModelError, match=r"has 2 classes \(0, 1\).*got a, b, c"):
        SklearnClassifier(pipeline, ["a", "b", "c"])
    bare = SklearnClassifier(LogisticRegression().fit([[0.0], [1.0]], [0, 1]), ["neg", "pos"])
    with pytest.raises(ModelError, match="begins with a vectorizer") as caught:
        bare.probabilities(TEXTS)
    assert caught.value.__cause__ is not None


def test_identity_follows_what_was_learnt(pipeline: Pipeline) -> None:
    again = make_pipeline(TfidfVectorizer(), LogisticRegression()).fit(REVIEWS, STARS)
    other = make_pipeline(TfidfVectorizer(), LogisticRegression(C=2)).fit(REVIEWS, STARS)
    identity = SklearnClassifier(pipeline).identity()
    assert SklearnClassifier(again).identity() == identity
    assert SklearnClassifier(other).identity() != identity
    opaque = make_pipeline(FunctionTransformer(lambda x: x), *[s for _, s in again.steps])
    # what cannot be pickled is known by its steps; an audit also remembers some of its answers
    assert SklearnClassifier(opaque).identity().startswith("sklearn ")


def test_identity_survives_use_and_fitting_again() -> None:
    def fitted() -> SklearnClassifier:
        words = TfidfVectorizer(stop_words=["a", "the", "of"])
        return SklearnClassifier(make_pipeline(words, LogisticRegression()).fit(REVIEWS, STARS))

    model = fitted()
    identity = model.identity()
    copy = pickle.loads(pickle.dumps(model))
    copy.probabilities(TEXTS)
    assert vars(model.pipeline[0])["_stop_words_id"] != vars(copy.pipeline[0])["_stop_words_id"]
    assert identity == copy.identity() == fitted().identity() == model.identity()


def test_importing_the_adapters_is_light() -> None:
    heavy = "{'torch', 'sklearn', 'joblib', 'httpx'} & set(sys.modules)"
    modules = ", ".join(
        f"veracity.models.adapters.{m}" for m in ("callables", "endpoints", "sklearn_pipelines")
    )
    code = f"import sys, {modules}; print({heavy} or 'light')"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "light"


@pytest.mark.parametrize("kind", ["RandomForestClassifier", "GradientBoostingClassifier"])
def test_trees_are_asked_with_words_hidden_and_known_again(kind: str, tmp_path: Path) -> None:
    from sklearn import ensemble
    from sklearn.feature_extraction.text import CountVectorizer
    from sklearn.pipeline import make_pipeline

    texts = ["a good film", "a bad film", "good fun", "bad acting"] * 5
    forest = getattr(ensemble, kind)(n_estimators=5, random_state=0)
    fitted = make_pipeline(CountVectorizer(), forest).fit(texts, ["pos", "neg"] * 10)
    joblib.dump(fitted, tmp_path / "forest.joblib")
    one, two = (load_model(tmp_path / "forest.joblib", allow_unpickle=True) for _ in range(2))
    text = Text.of_words(["a", "good", "film"])
    shown = np.array([[True, True, True], [True, False, True]])
    (found,) = masked_probabilities(one, [text], [shown], Hiding.DELETE)
    read = fitted.predict_proba(["a good film", "a film"])
    np.testing.assert_allclose(found, read)
    assert one.identity() == two.identity()  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    "source", ["m" * 300, "a" * 300 + ":answer", "m" * 300 + ".py", "http://x/y?k=\udcff\ud83d"]
)
def test_names_that_nothing_can_have_are_told(source: str) -> None:
    with pytest.raises(ModelError):
        load_model(source)
