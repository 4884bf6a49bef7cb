"""The promises of every plug-in, for anybody's test suite: each function raises an AssertionError
whose sentence says which promise is broken.

Models and data are small and made on the spot; give your own to have a plug-in tried on them.
"""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import json
import pickle
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from .auditing.explaining import attributions
from .auditing.jobs import with_originals
from .changes.structure import Structure
from .core.attributions import Attribution
from .core.changes import DECOY, PLANTED, Change
from .core.classifiers import (
    Attentive,
    Classifier,
    Differentiable,
    Maskable,
    Selective,
)
from .core.errors import VeracityError
from .core.examples import Dataset, Example
from .core.explainers import Explainer
from .core.images import Image
from .core.inputs import FloatArray, Text
from .core.metrics import Case, Metric, Row
from .core.plugins import Plugin, check_settings, description, parse_spec
from .core.truths import PSEUDO, Truth
from .data.corpora.made_reviews import NEGATIVE, POSITIVE, MadeReviews
from .data.corpora.made_shapes import MadeShapes
from .data.corpus import LABELS, Corpus
from .data.words import read_text
from .engine.call_counter import count_calls
from .engine.gradients import evaluating
from .engine.inference import probabilities
from .explainers import explainers

if TYPE_CHECKING:
    from .models.architecture import Architecture

TOLERANCE = 1e-6
"""What sums in another order may differ by, as a share of the largest score."""

ROUNDING = 1e-5
"""What answers in single precision may differ by."""


# ---- something to try plug-ins on ------------------------------------------------------------


class BagOfWords:
    """A model that is known through and through: words of praise and blame, each with a weight."""

    labels = LABELS

    def __init__(self) -> None:
        self.weights = {word: 1 + i / 25 for i, word in enumerate(POSITIVE)}
        self.weights |= {word: -1 - i / 25 for i, word in enumerate(NEGATIVE)}

    def probabilities(self, inputs: Sequence[Text]) -> FloatArray:
        z = [sum(self.weights.get(w.lower(), 0.1) for w in text.words) for text in inputs]
        positive = 1 / (1 + np.exp(-np.array(z, dtype=np.float64)))
        return np.stack([1 - positive, positive], axis=1)


_SMALL = (
    "text_cnn(size=8, filters=6, widths=(1, 2), embeddings=random)",
    "attention_lstm(size=8, hidden=6, attention=6, embeddings=random)",
    "rationale_cr(size=8, hidden=6, memory=3, embeddings=random)",
)


def small_model(needs: type = Classifier) -> Any:
    """A bag of words, or a small network with random weights that has the ability."""
    if isinstance(BagOfWords(), needs):
        return BagOfWords()
    from .models.architectures import architectures

    models = (architectures.make(spec).start(small_data(), seed=0) for spec in _SMALL)
    found = next((model for model in models if isinstance(model, needs)), None)
    _promise(found is not None, f"no small model here has {needs.__name__}: give one (model=…)")
    return found


@functools.cache
def small_data() -> Dataset:
    """Made reviews, and texts that break what was made for reviews: of no word and of one, of one
    word repeated, long, in other scripts; with truths of every kind, and with twins."""
    reviews = Structure().changed(MadeReviews(n=8).load(), seed=0)
    odd = ("", "great", "dull dull dull", "a film " * 10, "好电影", "😀 great 😀", "<b>x</b> dull")
    twins = {"odd-1": "made-0", "odd-2": "odd-3", "odd-3": "made-0", "odd-5": "odd-1"}
    texts = [Example(f"odd-{i}", read_text(t), i % 2) for i, t in enumerate(odd)]
    examples = (
        dataclasses.replace(
            e,
            truths={**e.truths, **{k: (_some(e),) for k in ("rationale", PLANTED, DECOY, PSEUDO)}},
            partner=twins.get(e.id),
        )
        for e in (*reviews, *texts)
    )
    return dataclasses.replace(reviews, name="small data", examples=tuple(examples))


@functools.cache
def small_pictures() -> Dataset[Image]:
    """Coloured pictures of three sizes, two of which are no squares."""
    shapes = ((24, 24), (24, 36), (40, 28))
    rng = np.random.default_rng(0)
    made = [rng.integers(0, 256, (*shapes[i % 3], 3), dtype=np.uint8) for i in range(12)]
    examples = (Example(f"picture-{i}", Image(pixels), i % 2) for i, pixels in enumerate(made))
    return Dataset("small pictures", LABELS, tuple(examples))


def _some(example: Example) -> Any:
    return np.arange(example.input.n_features) % 3 == 0


# ---- plug-ins --------------------------------------------------------------------------------


def check_plugin(plugin: Plugin) -> None:
    """Frozen settings that print as the plug-in's identity, and a line for lists."""
    cls: Any = type(plugin)
    spec = plugin.spec
    _promise(dataclasses.is_dataclass(cls), f"{spec} is no dataclass: its fields are its settings")
    frozen = cls.__dataclass_params__.frozen
    _promise(frozen, f"{spec} is not frozen: its settings are its identity")
    # a dataclass without a docstring gets one made of its signature
    written = description(cls).partition("(")[0] not in ("", cls.__name__)
    _promise(written, f"{spec} has no docstring, whose beginning is shown in lists")
    fields = {f.name for f in dataclasses.fields(cls)}
    hidden = ", ".join(sorted(set(vars(plugin)) - fields - {"_given", "_told"}))
    _promise(not hidden, f"{spec} keeps what is no setting of it: {hidden}")
    name, values = parse_spec(spec)
    _promise(name == cls.plugin_name(), f"{spec} does not print its name, {cls.plugin_name()}")
    check_settings(cls, values)
    _promise(cls(**values) == plugin, f"{spec} is not made again by the text that it prints")
    _promise(_sent(plugin) == plugin, f"{spec} changes on its way to another process")


def check_explainer(
    explainer: Explainer,
    model: Any = None,
    inputs: Sequence[Any] | None = None,
    *,
    train: Dataset | None = None,
) -> None:
    """An attribution per input that depends on neither company nor order, nor on anything but the
    generator of its input; and a model left as it was found."""
    check_plugin(explainer)
    spec, data = explainer.spec, small_data()
    model = small_model(explainer.needs) if model is None else model
    # each is explained many times over: all odd texts, and of the reviews three
    given = [e.input for e in data.examples[-10:]] if inputs is None else list(inputs)
    lacking = explainer.missing(model)
    _promise(lacking is None, f"{spec} needs a model with {lacking}: give one (model=…)")
    with _left_as_found(spec, model):
        method = explainer.fitted(model, train or data) if explainer.learns else explainer
        _promise(method.ready, f"{spec} has learnt, and is not ready")
        targets = [int(i) for i in probabilities(model, given).argmax(axis=1)]

        def explained(places: Sequence[int], *, by: Explainer = method, seed: int = 0) -> Any:
            texts = [given[i] for i in places]
            named = [f"text {i}" for i in places]
            try:
                return attributions(by, model, texts, [targets[i] for i in places], named, seed)
            except VeracityError as error:  # too few explanations, or scores that are no numbers
                raise AssertionError(str(error)) from error

        every = range(len(given))
        whole = explained(every)
        for i, one in zip(every, whole, strict=True):
            asked = one.input == given[i] and one.target == targets[i]
            _promise(asked, f"{spec} explains another text or label than it was asked to")
            sizes = method.signed or one.scores.min(initial=0.0) >= 0
            _promise(sizes, f"{spec} gives scores below zero: leave signed True")
        for i in every:
            with count_calls() as counter:
                _same(explained([i]), [whole[i]], f"{spec} depends on what is explained with it")
            n = given[i].n_units
            _asks_no_more(spec, counter.questions, method.n_questions(n), n)
        halves = every[: len(every) // 2], every[len(every) // 2 :]
        backwards = [a for half in halves if half for a in explained(half[::-1])]
        ordered = [whole[i] for half in halves for i in half[::-1]]
        _same(backwards, ordered, f"{spec} depends on the order of texts")
        sent = explained(every[:3], by=_sent(method))
        _same(sent, whole[:3], f"{spec} explains differently in another process")
        other = explained(every, seed=1)
        moved = any(
            not np.array_equal(a.scores, b.scores) for a, b in zip(whole, other, strict=True)
        )
        _promise(explainer.draws or not moved, f"{spec} draws: set draws to True")
        # of other inputs nobody knows whether random numbers ought to matter
        still = explainer.draws and not moved and inputs is None
        _promise(not still, f"{spec} draws nothing: leave draws False")
    if hasattr(model, "modules"):
        modes = [(part, part.training) for part in model.modules()]
        model.train(not any(mode for _, mode in modes))
        try:
            with _left_as_found(spec, model):
                message = f"{spec} depends on whether the model is in training"
                _same(explained(every), whole, message)
        finally:
            for part, mode in modes:
                part.training = mode


def check_metric(metric: Metric, model: Any = None, data: Dataset | None = None) -> None:
    """What it gives is described; a row per case that depends on no other case, for texts without
    words too; and a model left as it was found."""
    check_plugin(metric)
    spec = metric.spec
    purpose = metric.purpose
    _promise(purpose[:1].islower(), f"{spec}: its purpose completes 'To …', got {purpose!r}")
    _promise(not purpose.endswith("."), f"{spec}: its purpose is no sentence, got {purpose!r}")
    quantities = metric.effective_quantities
    headlines = sum(q.headline for q in quantities.values())
    wanted = int(metric.ranks)
    _promise(
        headlines == wanted,
        f"{spec}: expected {'one headline' if wanted else 'no headline'} among its quantities, got "
        f"{headlines}",
    )
    for name, quantity in quantities.items():
        _promise(bool(quantity.about), f"{spec}: nothing says what {name} is about")
    model = small_model() if model is None else model
    data = small_data() if data is None else data
    lacking = metric.missing(data)
    _promise(not lacking, f"{lacking}, or give others here (data=…)")
    with _left_as_found(spec, model):
        cases = _cases(model, data)
        rows = metric.score(cases)
        _promise(len(rows) == len(cases), f"{spec}: {len(cases)} cases, {len(rows)} rows")
        seen = {*metric.summary(rows), *(name for row in rows for name in row)}
        unseen = ", ".join(sorted(set(quantities) - seen))
        _promise(not unseen, f"{spec} describes what it gives for no case: {unseen}")
        for case, row in zip(cases, rows, strict=True):
            with count_calls() as counter:
                (alone,) = metric.score([case])
            _same_row(alone, row, f"{spec} depends on the cases beside one")
            if case.original is None:
                n = case.example.input.n_units
                _asks_no_more(spec, counter.questions, metric.n_questions(n), n)
        backwards = _sent(metric).score(cases[::-1])[::-1]
        for one, row in zip(backwards, rows, strict=True):
            _same_row(one, row, f"{spec} depends on the order of cases")


def check_change(change: Change, data: Dataset[Any] | None = None) -> None:
    """Sound examples that are the same for the same seed, drawn for each example alone; each says
    what happened to it, and the data that were given stay as they are. Tried on texts and on
    pictures, whichever it takes."""
    check_plugin(change)
    small: list[Dataset[Any]] = [MadeReviews(n=40).load(), small_pictures()]
    fit = [some for some in small if not change.unfit(some.kind)]
    given = fit if data is None else [data]
    _promise(bool(given), f"{change.spec} takes no inputs that are known here: give some (data=…)")
    for some in given:
        _check_changed(change, some)


def _check_changed(change: Change, data: Dataset[Any]) -> None:
    spec = change.spec
    before = data.fingerprint()
    after = change.changed(data, seed=1)
    _promise(data.fingerprint() == before, f"{spec} changes the very data that it was given")
    check_dataset(after)
    _promise(after.labels == data.labels, f"{spec} gives the data other labels")
    again = _sent(change).changed(data, seed=1)
    _promise(after.fingerprint() == again.fingerprint(), f"{spec} differs for the same seed")
    known = {e.id: e for e in data}
    for e in after:
        old = known.get(e.id)
        strange = old is None and e.partner not in known
        _promise(not strange, f"{spec} adds {e.id}, which is nobody's twin")
        told = (
            old is None or e.facts != old.facts or (e.input == old.input and e.label == old.label)
        )
        _promise(told, f"{spec} changes {e.id} and does not say so in its facts")
    chosen = list(range(1, len(data), 3))[::-1]
    families = [data.examples[i].family for i in chosen]
    expected = [e for family in families for e in after if e.family == family]
    alone = change.changed(data.select(chosen), seed=1)
    same = dataclasses.replace(after, examples=tuple(expected)).fingerprint() == alone.fingerprint()
    _promise(same, f"{spec} depends on the order or the company of examples")


def check_dataset(data: Dataset[Any]) -> None:
    """Every example once, with a label that there is, words where they stand, masks that fit."""
    name = data.name
    _promise(len(set(data.labels)) == len(data.labels), f"{name} names a label twice")
    _promise(len({e.id for e in data}) == len(data), f"{name} has examples of the same id")
    for e in data:
        _promise(0 <= e.label < len(data.labels), f"{name}: {e.id} has no label of the data")
        masks = [mask for kind in e.truths.values() for mask in kind]
        fit = all(mask.shape == (e.input.n_features,) and mask.dtype == np.bool_ for mask in masks)
        _promise(fit, f"{name}: {e.id} has a truth mask that is not one flag per feature")
        if isinstance(e.input, Text):
            _promise(
                all(map(str.strip, e.input.words)), f"{name}: {e.id} has words without a letter"
            )


def check_corpus(corpus: Corpus) -> None:
    """Sound examples, the same whenever they are loaded."""
    check_plugin(corpus)
    data = corpus.load()
    _promise(len(data) > 0, f"{corpus.spec} has no examples")
    check_dataset(data)
    again = corpus.load().fingerprint()
    _promise(data.fingerprint() == again, f"{corpus.spec} differs from one loading to the next")


def check_truth(truth: Truth, model: Any = None, train: Dataset | None = None) -> None:
    """Words for each label of the data, the same for the same seed."""
    from .core.classifiers import Convolutional

    check_plugin(truth)
    spec = truth.spec
    model = small_model(Convolutional) if model is None else model
    train = MadeReviews(n=40).load() if train is None else train
    with _left_as_found(spec, model):
        found = truth.learnt(model, train, seed=0)
        again = _sent(truth).learnt(model, train, seed=0)
    _promise(found.labels == train.labels, f"{spec} learns words for other labels than the data's")
    _promise(found.words == again.words, f"{spec} differs for the same seed")
    odd = [w for words in found.words for w in words if not found.cased and w != w.lower()]
    _promise(not odd, f"{spec} has words with capitals, such as {odd[:1]}: say cased=True")
    json.dumps(found.facts)


def check_classifier(model: Any, inputs: Sequence[Any] | None = None) -> None:
    """Probabilities that depend on neither company nor order; abilities that agree with them."""
    _promise(isinstance(model, Classifier), "expected labels and a method probabilities")
    name, labels = type(model).__name__, model.labels
    given = [e.input for e in small_data()] if inputs is None else list(inputs)
    named = isinstance(labels, tuple) and len(set(labels)) == len(labels) > 1
    _promise(named, f"{name}: expected a tuple of two labels or more, got {labels!r}")
    with _left_as_found(name, model):
        answers = np.asarray(model.probabilities(given))
        shape = (len(given), len(labels))
        _promise(answers.shape == shape, f"{name}: expected shape {shape}, got {answers.shape}")
        sums = np.isfinite(answers).all() and (answers >= 0).all()
        sums = sums and np.abs(answers.sum(axis=1) - 1).max(initial=0.0) < 1e-5
        _promise(bool(sums), f"{name}: expected probabilities that add up to 1 for each input")
        alone = [np.asarray(model.probabilities([one]))[0] for one in given]
        _near(alone, answers, f"{name} answers differently for an input by itself")
        backwards = np.asarray(model.probabilities(given[::-1]))[::-1]
        _near(backwards, answers, f"{name} answers differently in another order")
        _check_abilities(name, model, [one for one in given if one.n_features])


def _check_abilities(name: str, model: Any, inputs: Sequence[Any]) -> None:
    answers = np.asarray(model.probabilities(inputs))
    if isinstance(model, Maskable):
        rows = [np.vstack([np.ones(i.n_units), np.arange(i.n_units) % 2]) for i in inputs]
        shown = [row > 0 for row in rows]
        for how in inputs[0].hidings:
            hidden = model.masked_probabilities(inputs, shown, how)
            _near([h[0] for h in hidden], answers, f"{name} answers differently when all is shown")
            for one, masks, together in zip(inputs, shown, hidden, strict=True):
                (alone,) = model.masked_probabilities([one], [masks], how)
                broken = f"{name} answers differently to words hidden in an input by itself"
                _near(alone, together, broken)
    if isinstance(model, Differentiable):
        with evaluating(model):
            logits = model.logits(model.embed(inputs)).detach().double()
        followed = logits.softmax(dim=1).cpu().numpy()
        _near(followed, answers, f"{name} answers differently by its logits")
    weights: list[FloatArray] = []
    if isinstance(model, Attentive):
        weights += [w for way in model.attention_ways for w in model.attention(inputs, way)]
    if isinstance(model, Selective):
        weights += model.rationale(inputs)
    sizes = [i.n_features for i in inputs]
    fit = [len(w) for w in weights] == sizes * (len(weights) // max(1, len(sizes)))
    _promise(fit, f"{name}: expected a weight for each feature of an input")
    _promise(all((w >= 0).all() for w in weights), f"{name}: expected no weight below 0")


def check_architecture(architecture: Architecture, data: Dataset[Any] | None = None) -> None:
    """Models that start and train the same for the same seed, answer as models must, and are the
    same once saved and loaded."""
    from .models.loading import load_model, save_model
    from .models.training import train

    check_plugin(architecture)
    spec = architecture.spec
    if data is None:
        pictured = architecture.reads == Image.kind
        data = MadeShapes(n=40, side=32).load() if pictured else MadeReviews(n=80).load()
    training = dataclasses.replace(architecture.usual_training, epochs=1)
    seeds = (0, 0, 1)
    fresh = [architecture.start(data, seed=seed).identity() for seed in seeds]
    _promise(fresh[0] == fresh[1], f"{spec} starts differently for the same seed")
    _promise(fresh[0] != fresh[2], f"{spec} starts alike for another seed")
    models = [train(architecture, data, data, training=training).model for _ in range(2)]
    _promise(models[0].identity() == models[1].identity(), f"{spec} trains differently again")
    _promise(models[0].identity() != fresh[0], f"{spec} learns nothing from training")
    pictures = [e.input for e in data.examples[:6]]
    check_classifier(models[0], pictures if architecture.reads == Image.kind else None)
    with tempfile.TemporaryDirectory() as folder:
        save_model(models[0], architecture, Path(folder) / "model", record={})
        loaded: Any = load_model(Path(folder) / "model")
    _promise(loaded.identity() == models[0].identity(), f"{spec} is another model once loaded")


# ---- what is compared ------------------------------------------------------------------------


def _promise(kept: bool, broken: str) -> None:
    if not kept:
        raise AssertionError(broken)


def _sent(plugin: Any) -> Any:
    """As it arrives in another process."""
    return pickle.loads(pickle.dumps(plugin))


def _cases(model: Any, data: Dataset[Any]) -> list[Case]:
    """Each example as explained by occlusion, beside its original."""
    method = explainers.make("occlusion")

    def case(e: Example[Any], answer: FloatArray) -> Case:
        def explain() -> Attribution[Any]:
            (found,) = attributions(method, model, [e.input], [int(answer.argmax())], [e.id], 0)
            return found

        return Case(e, model, answer, explain(), explain_again=explain)

    answers = probabilities(model, [e.input for e in data])
    return with_originals([case(e, answer) for e, answer in zip(data, answers, strict=True)])


def _same(found: Sequence[Any], expected: Sequence[Any], broken: str) -> None:
    for one, other in zip(found, expected, strict=True):
        most = TOLERANCE * max(1.0, float(np.abs(other.scores).max(initial=0.0)))
        gap = float(np.abs(one.scores - other.scores).max(initial=0.0))
        _promise(gap <= most, f"{broken}: scores of {str(other.input)[:40]!r} differ by {gap:.2g}")


def _same_row(found: Row, expected: Row, broken: str) -> None:
    _promise(found.keys() == expected.keys(), f"{broken}: {sorted(found)}, {sorted(expected)}")
    for name, value in expected.items():
        near = np.isclose(found[name], value, rtol=0, atol=TOLERANCE, equal_nan=True)
        _promise(bool(near), f"{broken}: {name} is {found[name]:.6g}, not {value:.6g}")


def _near(found: Any, expected: Any, broken: str) -> None:
    gap = float(np.abs(np.asarray(found) - np.asarray(expected)).max(initial=0.0))
    _promise(gap <= ROUNDING, f"{broken}: by {gap:.2g}")


def _asks_no_more(spec: str, asked: int, most: int | None, n: int) -> None:
    kept = most is None or asked <= most or n == 0
    _promise(kept, f"{spec} says that {n} units cost at most {most} questions, and asks {asked}")


@contextmanager
def _left_as_found(name: str, model: Any) -> Iterator[None]:
    before = _state(model)
    yield
    after = _state(model)
    for what, value in before.items():
        _promise(after[what] == value, f"{name} does not leave {what} as it was found")


def _state(model: Any) -> dict[str, Any]:
    """All that a plug-in could change without saying so."""
    state: dict[str, Any] = {"NumPy's generator": repr(np.random.get_state())}
    torch = sys.modules.get("torch")
    if torch is None or not isinstance(model, torch.nn.Module):
        return state
    parameters = list(model.named_parameters())
    weights = model.state_dict()
    return state | {
        "torch's generator": bytes(torch.random.get_rng_state().numpy()),
        "the model's weights": {k: _digest(v) for k, v in weights.items()},
        "the model's gradients": [(n, p.requires_grad, p.grad is None) for n, p in parameters],
        "the model's mode": [(n, m.training) for n, m in model.named_modules()],
        "the model's hooks": [
            len(m._forward_hooks) + len(m._forward_pre_hooks) + len(m._backward_hooks)
            for m in model.modules()
        ],
    }


def _digest(weight: Any) -> str:
    return hashlib.sha256(weight.detach().cpu().contiguous().numpy().tobytes()).hexdigest()
