"""One suite over every plug-in that the folders hold."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import veracity
from conftest import words
from veracity.auditing.audit import audit
from veracity.auditing.explaining import check_ability
from veracity.core.attributions import Attribution
from veracity.core.errors import ModelError, PluginError
from veracity.core.examples import Dataset, Example
from veracity.core.inputs import Text
from veracity.core.metrics import Case
from veracity.core.plugins import PROFILES, Registry, first_line, settings
from veracity.data.corpora import corpora
from veracity.data.loading import describe, load_data
from veracity.data.splits import Splits, split
from veracity.engine.call_counter import count_calls
from veracity.explainers import explainers
from veracity.metrics import metrics
from veracity.models.architectures import architectures
from veracity.models.training import train
from veracity.results.run import Run
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
}

# the smallest settings under which a method still does all that it does
QUICK = {
    "lime": "lime(samples=60)",
    "shap": "shap(samples=60)",
    "smooth_grad": "smooth_grad(samples=8)",
    "hge_cnn": "hge_cnn(embeddings=random, size=50)",
}

# on toy models the answer hardly moves between the ends of the path, and 5 % of that is nothing
pytestmark = [
    pytest.mark.filterwarnings("ignore:integrated_gradients"),
    # a gate that is shut in the text and open in the reference, or the reverse, has no quotient
    pytest.mark.filterwarnings("ignore:deep_lift"),
]


@pytest.fixture(scope="module")
def mixed(made: Splits) -> Dataset:
    """Texts of many lengths: made reviews, one word, repeated words, long, other scripts; twins far
    from their originals in length and place, one of them with a twin of its own."""
    odd = ["great", "dull dull dull", "a film " * 30, "好电影", "😀 great 😀", "<script>x</script>"]
    extra = tuple(
        Example(f"odd-{i}", words(t), i % 2, {"rationale": (np.ones(words(t).n_features, bool),)})
        for i, t in enumerate(odd)
    )
    first = made.test.examples[0].id
    partners = {"odd-0": first, "odd-1": "odd-2", "odd-2": first, "odd-4": "odd-0"}
    twins = tuple(dataclasses.replace(e, partner=partners.get(e.id)) for e in extra)
    return dataclasses.replace(made.test, examples=(*made.test.examples[:8], *twins))


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
    return audit({"m": model}, data, methods, out=folder, train=lesson(), **options).run


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


# audits of many parts are slow; what these models add to them is in tests of their own
@pytest.mark.parametrize(
    "model_name",
    [m for m in MODELS if m not in ("hierarchical", "rationale_rl", "rationale_cr")],
)
def test_batch_size_order_and_workers_do_not_matter(
    model_name: str, mixed: Dataset, tmp_path: Path, request: Any
) -> None:
    model = request.getfixturevalue(model_name)
    # what is no method is run beside those that are
    named = [name for name, m in pairs() if m == model_name and not explainers.get(name).ceiling]
    methods = [QUICK.get(name, name) for name in named]
    base = run_all(model, mixed, methods, tmp_path / "base", batch_size=64)
    if model_name != "transformer":  # its own batches are tested with it
        same(base, run_all(model, mixed, methods, tmp_path / "one", batch_size=1))
    order = np.random.default_rng(0).permutation(len(mixed)).tolist()
    same(base, run_all(model, mixed.select(order), methods, tmp_path / "shuffled", batch_size=7))
    if model_name in ("cnn", "transformer"):
        same(base, run_all(model, mixed, methods, tmp_path / "two", batch_size=7, workers=2))


@pytest.mark.parametrize("name", explainers.names())
def test_the_same_seed_gives_the_same_answer_and_another_seed_another(
    name: str, attention_lstm: Any, cnn: Any, rationale_cr: Any
) -> None:
    needs = explainers.get(name).needs
    model = next(m for m in (attention_lstm, cnn, rationale_cr) if isinstance(m, needs))
    text = words("the plot was great but the film was so dull that i left , although i like it")
    spec = QUICK.get(name, name)
    one, two = (veracity.explain(model, text, spec, train=lesson())[0].scores for _ in range(2))
    assert np.array_equal(one, two)
    other = veracity.explain(model, text, spec, seed=1, train=lesson())[0].scores
    random = explainers.get(name).draws
    assert np.array_equal(one, other) != random


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
    method: Any = explainers.make(spec).fitted(cnn, lesson())
    for n in LENGTHS:
        text = words(" ".join(f"word{i}" for i in range(n)))
        with count_calls() as tally:
            method.explain(cnn, [text], [1], [np.random.default_rng(n)])
        most = method.n_questions(n)
        assert tally.questions <= most
        if method.draws and not method.baseline and n > 3:
            assert tally.questions > most / 2, "a bound that is of use to a plan"


@pytest.mark.parametrize("name", metrics.names())
def test_metrics_ask_no_more_than_they_say(name: str, cnn: Any) -> None:
    metric = metrics.make(name)
    if metric.n_questions(5) is None:
        assert name == "local_lipschitz", "what the explainer costs, so many times"
        return
    for n in LENGTHS:
        text = words(" ".join(f"word{i}" for i in range(n)))
        truths = {k: (np.arange(n) < 2,) for k in ("rationale", "planted", "pseudo")}
        scores = np.random.default_rng(n).normal(size=n)
        answers = cnn.probabilities([text])[0]
        case = Case(
            Example("a", text, int(answers.argmax()), truths),
            cnn,
            answers,
            Attribution(text, 1, scores),
        )
        with count_calls() as tally:
            metric.score([case])
        assert tally.questions <= (metric.n_questions(n) or 0)


def test_methods_that_sample_get_the_same_number_of_questions() -> None:
    sampled = [explainers.make(n) for n in explainers.names() if explainers.get(n).asks_by]
    assert {m.plugin_name() for m in sampled} == {"lime", "shap"}
    assert len({m.n_questions(60) for m in sampled}) == 1
    assert {m.with_questions(200).n_questions(40) for m in sampled} == {200}
    assert explainers.make("occlusion").with_questions(200).spec == "occlusion"
    assert explainers.make("shap(form=exact)").with_questions(200).spec == "shap(form=exact)"


def state(model: Any) -> list[Any]:
    return [
        [(n, p.requires_grad, p.grad is None) for n, p in model.named_parameters()],
        [(n, m.training) for n, m in model.named_modules()],
        [len(m._forward_hooks) + len(m._backward_hooks) for m in model.modules()],
        {k: v.clone() for k, v in model.state_dict().items()}.keys(),
        torch.random.get_rng_state().tolist(),
        np.random.get_state()[1].tolist(),  # type: ignore[index]
    ]


@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize(("name", "model_name"), pairs())
def test_the_model_is_left_as_it_was_found(
    name: str, model_name: str, training: bool, request: Any
) -> None:
    model = request.getfixturevalue(model_name)
    model.train(training)
    weights = {k: v.clone() for k, v in model.state_dict().items()}
    try:
        before = state(model)
        spec = QUICK.get(name, name)
        first = veracity.explain(model, "a great film", spec, train=lesson())[0].scores
        assert state(model) == before
        assert all(torch.equal(v, weights[k]) for k, v in model.state_dict().items())
    finally:
        model.eval()
    # dropout is off while explaining, whatever mode the model was in
    again = veracity.explain(model, "a great film", spec, train=lesson())[0].scores
    assert np.array_equal(first, again)


@pytest.mark.parametrize(("name", "model_name"), pairs())
def test_empty_and_one_word_texts(name: str, model_name: str, request: Any) -> None:
    model = request.getfixturevalue(model_name)
    texts = [Text("", ()), words("great"), Text("  ", ()), words("a dull film")]
    found = veracity.explain(model, texts, QUICK.get(name, name), train=lesson())
    assert [len(a.scores) for a in found] == [0, 1, 0, 3]
    assert all(np.isfinite(a.scores).all() for a in found)
    assert all(a.method == QUICK.get(name, name) for a in found)


@pytest.mark.parametrize("metric_name", metrics.names())
def test_metrics_bear_empty_and_one_word_texts(metric_name: str, cnn: Any, tmp_path: Path) -> None:
    texts = [Text("", ()), words("great"), words("a dull film")]
    kinds = ("rationale", "planted", "pseudo")
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
    run = audit(cnn, data, "occlusion", ["erasure", metric_name], out=tmp_path / "r").run
    found = [r for r in run.scores().to_pylist() if r["metric"] == metric_name]
    assert {r["example"] for r in found} == {"0", "1", "2"}


@pytest.mark.parametrize("metric_name", metrics.names())
def test_metrics_describe_what_they_give(metric_name: str) -> None:
    metric = metrics.make(metric_name)
    assert metric.purpose[0].islower()
    assert not metric.purpose.endswith(".")
    assert sum(q.headline for q in metric.quantities.values()) == 1
    assert all(q.about for q in metric.quantities.values())


@pytest.mark.parametrize(
    ("kind", "name"), [(k, n) for k, r in REGISTRIES.items() for n in r.names()]
)
def test_plugins_are_what_their_files_say(kind: str, name: str) -> None:
    cls = REGISTRIES[kind].get(name)
    made: Any = REGISTRIES[kind].make(name)
    assert cls.plugin_name() == name == made.spec
    assert dataclasses.is_dataclass(cls)
    assert first_line(cls), "a list shows the first line of the docstring"
    assert not hasattr(made, "__dict__") or set(vars(made)) == set(settings(made))
    with pytest.raises(dataclasses.FrozenInstanceError):
        made.anything = 1


@pytest.mark.parametrize("name", [n for n in architectures.names() if n != "transformer"])
def test_architectures_train_and_repeat(name: str, made: Splits) -> None:
    architecture = architectures.make(QUICK.get(name, name))
    quick = dataclasses.replace(architecture.training, epochs=1)
    small = made.train.select(range(64))
    models = [train(architecture, small, made.validation, training=quick).model for _ in range(2)]
    assert models[0].identity() == models[1].identity()
    fresh: Any = architecture.start(small, seed=0)
    assert fresh.identity() == architecture.start(small, seed=0).identity()
    assert fresh.identity() != models[0].identity()
    assert fresh.identity() != architecture.start(small, seed=1).identity()


@pytest.mark.parametrize("name", corpora.names())
def test_corpora_are_sound(name: str) -> None:
    options = "n=300" if name == "made_reviews" else "limit=300"
    data = load_data(f"{name}({options})")
    assert len(data) == 300
    assert len({e.id for e in data}) == 300
    assert min(data.balance.values()) > 100
    assert data.fingerprint() == load_data(f"{name}({options})").fingerprint()
    for e in data:
        assert e.input.words == tuple(e.input.text[a:b] for a, b in e.input.spans)
        assert all(w.strip() for w in e.input.words)
        assert all(len(m) == e.input.n_features for ms in e.truths.values() for m in ms)
    parts = split(data)
    assert len(parts.train) + len(parts.validation) + len(parts.test) == 300
    assert describe(data)["examples"] == 300


def test_a_method_the_model_cannot_support_is_told(cnn: Any, bag: Any) -> None:
    with pytest.raises(
        ModelError, match=r"attention needs a model with attention.*would work.*lime"
    ):
        check_ability(explainers.make("attention"), cnn)
    with pytest.raises(ModelError, match="only probabilities"):
        veracity.explain(bag, "great", "gradient")


# SPEC 0.8: what differs from the defaults, for the options that there are
PROFILED = {
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
