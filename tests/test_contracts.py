"""One suite over every plug-in that the folders hold."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import veracity
from conftest import words
from veracity.auditing.audit import audit
from veracity.auditing.explaining import check_ability
from veracity.changes import changes
from veracity.core.errors import ModelError, PluginError
from veracity.core.examples import Dataset, Example
from veracity.core.inputs import Text
from veracity.core.plugins import PROFILES, Registry, settings
from veracity.data.corpora import corpora
from veracity.data.formats import formats
from veracity.data.loading import describe, load_data
from veracity.data.splits import split
from veracity.engine.call_counter import count_calls
from veracity.explainers import explainers
from veracity.metrics import metrics
from veracity.models.architectures import architectures
from veracity.results.run import Run
from veracity.testing import (
    check_architecture,
    check_change,
    check_classifier,
    check_corpus,
    check_explainer,
    check_metric,
    check_plugin,
    check_truth,
    small_data,
)
from veracity.truths import truths

MODELS = (
    "cnn", "lstm", "attention_lstm", "hierarchical", "transformer", "rationale_rl", "rationale_cr",
)  # fmt: skip
REGISTRIES: dict[str, Registry[Any]] = {
    "explainer": explainers,
    "metric": metrics,
    "model": architectures,
    "data": corpora,
    "truth": truths,
    "change": changes,
    "format": formats,
}

# the smallest settings under which a method still does all that it does
QUICK = {
    "lime": "lime(samples=60)",
    "shap": "shap(samples=60)",
    "smooth_grad": "smooth_grad(samples=8)",
    "local_lipschitz": "local_lipschitz(points=3)",
    "hge_cnn": "hge_cnn(embeddings=random, size=50)",
}

# on toy models the answer hardly moves between the ends of the path, and 5 % of that is nothing
pytestmark = [
    pytest.mark.filterwarnings("ignore:integrated_gradients"),
    # a gate that is shut in the text and open in the reference, or the reverse, has no quotient
    pytest.mark.filterwarnings("ignore:deep_lift"),
]


def pairs() -> list[tuple[str, str]]:
    """Every method on every model that can support it."""
    able = {
        "cnn": {"Classifier", "Differentiable", "Convolutional"},
        "lstm": {"Classifier", "Differentiable"},
        "attention_lstm": {"Classifier", "Differentiable", "Attentive"},
        "hierarchical": {"Classifier", "Differentiable", "Attentive"},
        "transformer": {"Classifier", "Differentiable", "Attentive"},
        "rationale_rl": {"Classifier", "Differentiable", "Selective"},
        "rationale_cr": {"Classifier", "Differentiable", "Selective"},
    }
    return [
        (name, model)
        for name in explainers.names()
        for model in MODELS
        if explainers.get(name).needs.__name__ in able[model]
    ]


def run_all(model: Any, data: Dataset, methods: Sequence[str], folder: Path, **options: Any) -> Run:
    metrics = "erasure, feature_overlap, consistency"
    return audit({"m": model}, data, methods, metrics, out=folder, train=lesson(), **options).run


@functools.cache
def lesson() -> Dataset:
    """What methods that learn learn from; few texts, to be quick."""
    return split(load_data("made_reviews(n=200)")).train


def all_scores(run: Run) -> dict[tuple[str, ...], float]:
    rows = run.scores().to_pylist()
    return {(r["explainer"], r["metric"], r["example"], r["name"]): r["value"] for r in rows}


def same(one: Run, other: Run) -> None:
    """Equal attributions and equal scores, to rounding."""
    for explainer in one.explainers:
        a, b = one.attributions("m", explainer), other.attributions("m", explainer)
        assert a.keys() == b.keys()
        for example, row in a.items():
            assert row.target == b[example].target
            scale = max(1.0, float(np.abs(row.scores).max(initial=0.0)))
            difference = np.abs(row.scores - b[example].scores).max(initial=0.0)
            assert difference <= 1e-6 * scale, (explainer, example, difference)
    scores, others = all_scores(one), all_scores(other)
    assert scores.keys() == others.keys()
    for key, value in scores.items():
        assert value == pytest.approx(others[key], abs=1e-6, nan_ok=True), key


@pytest.mark.parametrize("model_name", ["cnn", "transformer"])
def test_an_audit_does_not_depend_on_batches_order_or_workers(
    model_name: str, tmp_path: Path, request: Any
) -> None:
    """What methods and metrics promise one by one, kept by what runs them; a method that draws, one
    that learns, one that takes gradients."""
    model = request.getfixturevalue(model_name)
    data = small_data()
    methods = ["lime(samples=60)", "shap(samples=60, background=2)", "gradient"]
    # what is searched for, drawn twice and sent to workers is so whatever the model, and the
    # transformer came out of a pickle itself
    small = model_name == "cnn"
    run = functools.partial(run_all, model, methods=methods, extras=small)
    base = run(data, folder=tmp_path / "base", batch_size=64)
    order = data.select(np.random.default_rng(0).permutation(len(data)).tolist())
    same(base, run(order, folder=tmp_path / "two", batch_size=7, workers=2 if small else 1))
    if small:
        same(base, run(data, folder=tmp_path / "one", batch_size=1))


@pytest.mark.parametrize(("name", "model_name"), pairs())
def test_explainers_keep_their_promises(name: str, model_name: str, request: Any) -> None:
    model = request.getfixturevalue(model_name)
    check_explainer(explainers.make(QUICK.get(name, name)), model, train=lesson())


@pytest.mark.parametrize("name", metrics.names())
def test_metrics_keep_their_promises(name: str, cnn: Any) -> None:
    check_metric(metrics.make(QUICK.get(name, name)), cnn)


@pytest.mark.parametrize("name", changes.names())
def test_changes_keep_their_promises(name: str) -> None:
    check_change(changes.make(name))


@pytest.mark.parametrize("name", truths.names())
def test_truths_keep_their_promises(name: str, cnn: Any) -> None:
    check_truth(truths.make(name), cnn, lesson())


@pytest.mark.parametrize("model_name", MODELS)
def test_models_keep_their_promises(model_name: str, request: Any) -> None:
    check_classifier(request.getfixturevalue(model_name))


@pytest.mark.parametrize("name", [n for n in architectures.names() if n != "transformer"])
def test_architectures_keep_their_promises(name: str) -> None:
    check_architecture(architectures.make(QUICK.get(name, name)))


@pytest.mark.parametrize("name", corpora.names())
def test_corpora_keep_their_promises(name: str) -> None:
    size = ", size=16" if name in ("chest_xray", "fruit") else ""
    made = name in ("made_reviews", "made_shapes")
    corpus = corpora.make(f"{name}(n=300)" if made else f"{name}(limit=300{size})")
    check_corpus(corpus)
    data = corpus.load()
    assert len(data) == 300
    assert min(data.balance.values()) > (20 if name == "fruit" else 100)
    parts = split(data)
    assert len(parts.train) + len(parts.validation) + len(parts.test) == 300
    assert describe(data)["examples"] == 300


@pytest.mark.parametrize(
    ("kind", "name"), [(k, n) for k, r in REGISTRIES.items() for n in r.names()]
)
def test_plugins_are_what_their_files_say(kind: str, name: str) -> None:
    plugin: Any = REGISTRIES[kind].make(name)
    assert REGISTRIES[kind].get(name).plugin_name() == name == plugin.spec
    check_plugin(plugin)


LENGTHS = (1, 2, 3, 5, 9, 14, 40)
TELL_WHAT_THEY_ASK = [
    QUICK.get(name, name)
    for name in explainers.names()
    if explainers.make(name).n_questions(5) is not None
] + [
    "lime(samples=60, questions=20)",
    "lime(samples=60, bow=False)",
    "shap(samples=20)",
    "shap(form=gaussian, samples=20)",
    "shap(form=permutation, samples=20)",
    "shap(form=permutation, samples=100)",
    "shap(samples=60, background=2)",
]


@pytest.mark.parametrize("spec", TELL_WHAT_THEY_ASK)
def test_methods_ask_no_more_than_they_say(spec: str, cnn: Any) -> None:
    """At most: of words that stand twice, some maskings read alike."""
    texts = [words(" ".join(f"word{i}" for i in range(n))) for n in LENGTHS]
    check_explainer(explainers.make(spec), cnn, texts, train=lesson())
    method: Any = explainers.make(spec).fitted(cnn, lesson())
    if method.draws and not method.baseline:
        for text in (t for t in texts if t.n_features > 3):
            with count_calls() as counter:
                method.explain(cnn, [text], [1], [np.random.default_rng(text.n_features)])
            most = method.n_questions(text.n_features)
            assert counter.questions > most / 2, "a bound that is of use to a plan"


def test_metrics_say_what_they_ask() -> None:
    silent = {n for n in metrics.names() if metrics.make(n).n_questions(5) is None}
    assert silent == {"local_lipschitz"}, "what the explainer costs, so many times"


def test_methods_that_sample_get_the_same_number_of_questions() -> None:
    every = [explainers.make(n) for n in explainers.names()]
    sampled = [m for m in every if m.question_settings]
    assert {m.plugin_name() for m in sampled} == {"lime", "shap"}
    assert len({m.n_questions(60) for m in sampled}) == 1
    assert {m.with_questions(200).n_questions(40) for m in sampled} == {200}
    assert explainers.make("occlusion").with_questions(200).spec == "occlusion"
    assert explainers.make("shap(form=exact)").with_questions(200).spec == "shap(form=exact)"


def test_empty_and_one_word_texts(cnn: Any) -> None:
    texts = [Text("", ()), words("great"), Text("  ", ()), words("a dull film")]
    found = veracity.explain(cnn, texts, "occlusion")
    assert [len(a.scores) for a in found] == [0, 1, 0, 3]
    assert all(a.method == "occlusion" for a in found)


def test_an_audit_bears_empty_and_one_word_texts(cnn: Any, tmp_path: Path) -> None:
    texts = [Text("", ()), words("great"), words("a dull film")]
    kinds = ("rationale", "planted", "pseudo", "dominant", "other")
    data = Dataset(
        "odd",
        ("negative", "positive"),
        tuple(
            Example(
                str(i),
                t,
                i % 2,
                {k: (np.ones(t.n_features, dtype=bool),) for k in kinds},
                partner=str(i - 1) if i else None,
            )
            for i, t in enumerate(texts)
        ),
    )
    specs = [QUICK.get(name, name) for name in metrics.names()]
    rows = audit(cnn, data, "occlusion", specs, out=tmp_path / "r").run.scores().to_pylist()
    for spec in specs:
        assert {r["example"] for r in rows if r["metric"] == spec} == {"0", "1", "2"}


def test_a_method_the_model_cannot_support_is_told(cnn: Any, bag: Any) -> None:
    with pytest.raises(
        ModelError, match=r"attention needs a model with attention.*would work.*lime"
    ):
        check_ability(explainers.make("attention"), cnn)
    with pytest.raises(ModelError, match="only probabilities"):
        veracity.explain(bag, "great", "gradient")


# definitions 0.8: what differs from the defaults, for the options that there are
PROFILED = {
    ("rule_consistency", "paper"): {"contribution": "literal"},
    ("rule_consistency", "released"): {"reduction": "topk_mean", "tested": "topk", "strict": True},
    ("lime", "paper"): {"kernel": "paper"},
    ("shap", "released"): {"background": 50},
    ("integrated_gradients", "paper"): {"steps": 300},
    ("integrated_gradients", "released"): {"steps": 200, "rule": "gauss_legendre"},
    ("gradient", "paper"): {"times_input": True},
    ("grad_cam", "paper"): {"at": "embedding"},
    ("grad_cam_text", "released"): {"minmax": True},
    ("erasure", "paper"): {"by": "abs"},
    ("truth_agreement", "paper"): {"binary": "above_sd"},
    ("feature_overlap", "released"): {"allow_union": True, "no_overlap": "empty"},
    ("attention_lstm", "paper"): {"embeddings": "corpus", "size": 200, "tuned": False},
    ("rationale_rl", "released"): {"penalty": "per_review"},
    ("rationale_cr", "released"): {"penalty": "per_review"},
    ("integer_program", "paper"): {"size_term": False, "rule": "max"},
    ("hybrid", "paper"): {"size_term": False},
}


def test_profiles_set_what_papers_print_and_what_their_code_does() -> None:
    found = {}
    for registry in REGISTRIES.values():
        for name in registry.names():
            assert registry.make(f"{name}(profile=recommended)") == registry.make(name)
            for profile in PROFILES:
                made: Any = registry.make(name, profile)
                assert made == registry.make(f"{name}(profile={profile})")
                unlike = settings(made, defaults=False)
                if unlike != settings(registry.make(name), defaults=False):
                    found[name, profile] = unlike
    assert found == PROFILED


def test_what_is_told_wins_over_a_profile() -> None:
    made = explainers.make("integrated_gradients(profile=released, steps=7)", "paper")
    assert made.spec == "integrated_gradients(steps=7, rule=gauss_legendre)"
    with pytest.raises(PluginError, match="did you mean 'released'"):
        explainers.make("lime(profile=release)")
    with pytest.raises(PluginError, match="no profile is called 'printed': known"):
        explainers.make("occlusion", "printed")
