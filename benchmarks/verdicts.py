"""How often an audit's verdict is wrong, and how often a difference that is there is found.

`python benchmarks/verdicts.py --audits 200 --seed 0` makes up audits whose truth is known and lets
the tool judge them. First score tables: methods that are equal in truth, and one that is worse by
the difference that the page calls detectable. Then answers of models, healthy and faulty. Then real
audits of bags of words with methods that are the truth plus noise. `--only` names one part.
"""

from __future__ import annotations

import argparse
import math
import os
import tempfile
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

import veracity
from interval_coverage import drops, head
from veracity.core.attributions import Attribution
from veracity.core.classifiers import Classifier
from veracity.core.examples import Dataset, Example
from veracity.core.explainers import Explainer
from veracity.core.inputs import FloatArray, IntArray, Text
from veracity.core.metrics import Quantity
from veracity.results.columns import Column
from veracity.results.health import Health, judged
from veracity.results.standings import Standing, _compare
from veracity.results.verdicts import Verdict, verdicts

SIZES = (10, 20, 50, 200)
WAYS = ("delete", "mask")
PURPOSES = ("show words", "order words")
Draw = Callable[[np.random.Generator, int, int], FloatArray]
"""Scores of so many texts by so many methods, all alike in truth. (texts, methods)"""


def correlated(rng: np.random.Generator, n: int, k: int) -> FloatArray:
    return math.sqrt(0.9) * rng.normal(size=(n, 1)) + math.sqrt(0.1) * rng.normal(size=(n, k))


def unlike(shape: float) -> Draw:
    """Equal means, but skewed the one way and the other (gamma, skewness 2 / sqrt(shape)): their
    differences are not symmetric, which the test by signs takes them to be."""

    def draw(rng: np.random.Generator, n: int, k: int) -> FloatArray:
        skewed = (rng.gamma(shape, size=(n, k)) - shape) / math.sqrt(shape)
        return np.where(np.arange(k) % 2 == 0, skewed, -skewed)

    return draw


SCORES: dict[str, Draw] = {
    "normal": lambda rng, n, k: rng.normal(size=(n, k)),
    "correlated .9": correlated,
    "skewed": lambda rng, n, k: rng.lognormal(size=(n, k)),
    "60 % are 0": lambda rng, n, k: drops(rng, (n, k)),
    "few texts differ": lambda rng, n, k: (
        rng.normal(size=(n, 1)) + np.where(rng.random((n, 1)) < 0.2, rng.normal(size=(n, k)), 0.0)
    ),
    "skewed both ways, 1": unlike(4.0),
    "skewed both ways, 2": unlike(1.0),
    "skewed both ways, 4": unlike(0.25),
}


def tables(
    rng: np.random.Generator, draw: Draw, n: int, k: int, shift: FloatArray | None = None
) -> list[Column]:
    """An audit's headline columns: two purposes, each by two ways of hiding that are much alike.
    The last method is chance."""
    methods = [f"method{i}" for i in range(k - 1)] + ["random"]
    names = [str(i) for i in range(n)]
    quantity = Quantity("", "higher", headline=True)
    columns = []
    for purpose in PURPOSES:
        common = draw(rng, n, k)
        for way in WAYS:
            # seven texts of ten score the same, however words are hidden
            values = np.where(rng.random((n, 1)) < 0.7, common, draw(rng, n, k))
            values = values if shift is None else values + shift
            columns.append(
                Column(
                    model="",
                    metric=purpose,
                    name=way,
                    quantity=quantity,
                    purpose=purpose,
                    methods=methods,
                    examples=names,
                    values=values,
                    families=names,
                    hidden_how=way,
                )
            )
    return columns


def judge(columns: Sequence[Column]) -> tuple[list[Standing], list[Verdict]]:
    found = _compare(columns, ["random"])
    return found, verdicts(found)


def called_worse(found: Sequence[Standing]) -> bool:
    """Whether any method but chance is told apart from the best of a headline test."""
    return any(
        not (e.is_chance or e.is_best or e.tied_with_best)
        for s in found
        if s.headline
        for e in s.entries
    )


def leads(audits: int, seed: int, most: int = 12) -> None:
    """All alike, chance too: is any method recommended? All alike but for chance: does one lead
    every other, is any called worse?"""
    head(f"{audits} audits each, 3 to {most} methods: recommended; leads; called worse", SIZES)
    total: Counter[str] = Counter()
    for name, draw in SCORES.items():
        row = []
        for n in SIZES:
            rng = np.random.default_rng([seed, n])
            wrong: Counter[str] = Counter()
            for _ in range(audits):
                k = int(rng.integers(3, most + 1))
                _, said = judge(tables(rng, draw, n, k))
                wrong["recommended"] += any(v.use for v in said)
                above = np.append(np.zeros(k - 1), -6.0)
                found, said = judge(tables(rng, draw, n, k, above))
                wrong["leads"] += any(v.leads for v in said)
                wrong["worse"] += called_worse(found)
            row.append(
                " ".join(f"{wrong[w] / audits:.3f}" for w in ("recommended", "leads", "worse"))
            )
            total += wrong
            total["audits"] += audits
        print(f"| {name} | {' | '.join(row)} |", flush=True)
    shares = {w: total[w] / total["audits"] for w in ("recommended", "leads", "worse")}
    print(
        f"\nof {2 * total['audits']:,} audits in all:", {w: round(s, 4) for w, s in shares.items()}
    )


def pairs(audits: int, seed: int) -> None:
    """Two methods and chance: a lead takes one difference only, so it is easiest to get by luck."""
    leads(audits, seed, 3)


def power(audits: int, seed: int) -> None:
    for k in (3, 6):
        powers(audits, seed, k)


def powers(audits: int, seed: int, k: int) -> None:
    """One method behind all others by what a standing calls detectable: how often is it called
    worse in that test? And how many of the tests call any so?"""
    head(f"{audits} audits of {k - 1} methods each: found (of what part of the tests)", SIZES)
    for name, draw in SCORES.items():
        row = []
        for n in SIZES:
            rng = np.random.default_rng([seed, n])
            named: list[float | None] = []
            for _ in range(max(20, audits // 4)):
                above = np.append(np.zeros(k - 1), -6.0)
                found, _ = judge(tables(rng, draw, n, k, above))
                named += [s.detectable for s in found]
            stated = [difference for difference in named if difference]
            if not stated:
                row.append("none stated")
                continue
            behind = np.zeros(k)
            behind[k - 2], behind[k - 1] = -float(np.mean(stated)), -20.0
            told = []
            for _ in range(audits):
                found, _ = judge(tables(rng, draw, n, k, behind))
                told += [
                    not e.tied_with_best and not e.is_best
                    for s in found
                    for e in s.entries
                    if e.method == f"method{k - 2}"
                ]
            part = len(stated) / len(named)
            row.append(f"{np.mean(told):.2f}" + (f" ({part:.0%})" if part < 1 else ""))
        print(f"| {name} | {' | '.join(row)} |", flush=True)


# ---- gates -----------------------------------------------------------------------------------


def labels_of(k: int) -> list[str]:
    return [f"label{i}" for i in range(k)]


def answers(rng: np.random.Generator, n: int, k: int, accuracy: float) -> tuple[IntArray, IntArray]:
    """Gold labels, unequal in number, and answers that are right so often; each label has its own
    way of being mistaken."""
    gold = rng.choice(k, n, p=rng.dirichlet(np.full(k, 5.0)))
    mistakes = rng.dirichlet(np.full(k, 1.0), size=k)
    np.fill_diagonal(mistakes, 0.0)
    mistakes /= mistakes.sum(axis=1, keepdims=True)
    wrong = np.array([rng.choice(k, p=mistakes[g]) for g in gold])
    return gold, np.where(rng.random(n) < accuracy, gold, wrong)


def state_of(gold: IntArray, said: IntArray, k: int) -> Health:
    return judged(Health(model="", texts=len(gold), moved=0.5), gold, said, labels_of(k))


def gates(audits: int, seed: int) -> None:
    """Models fit to be explained, and models that are not: what is said of them?"""
    sizes = (20, 50, 200)
    kinds = ("order", "chance", "caution", "nothing")

    def kind(state: Health) -> str:
        if state.label_order:
            return "order"
        return "chance" if state.fault else "caution" if state.caution else "nothing"

    def told(name: str, make: Callable[[np.random.Generator, int], Health]) -> None:
        row = []
        for n in sizes:
            rng = np.random.default_rng([seed, n])
            said = Counter(kind(make(rng, n)) for _ in range(audits))
            row.append(" ".join(f"{said[w] / audits:.3f}" for w in kinds))
        print(f"| {name} | {' | '.join(row)} |", flush=True)

    def drawn(rng: np.random.Generator, n: int, low: float, high: float) -> Health:
        """Right oftener by at least .15 than always the same answer among equal labels."""
        k = int(rng.integers(2, 21))
        accuracy = float(rng.uniform(max(low, 1 / k + 0.15), max(high, 1 / k + 0.15)))
        return state_of(*answers(rng, n, k, accuracy), k)

    def permuted(rng: np.random.Generator, n: int, k: int) -> Health:
        gold, said = answers(rng, n, k, float(rng.uniform(0.6, 0.95)))
        order = np.roll(np.arange(k), 1) if k < 4 else rng.permutation(k)
        while k >= 4 and (order == np.arange(k)).mean() > 0.5:
            order = rng.permutation(k)
        return state_of(gold, order[said], k)

    def blind(rng: np.random.Generator, n: int) -> Health:
        k = int(rng.integers(2, 21))
        gold, said = answers(rng, n, k, 0.8)
        return state_of(gold, rng.permutation(said), k)

    head(f"{audits} models each: labels accused; at chance; caution; nothing", sizes)
    told("healthy, right on .40 to .60", lambda rng, n: drawn(rng, n, 0.40, 0.60))
    told("healthy, right on .60 to .80", lambda rng, n: drawn(rng, n, 0.60, 0.80))
    told("healthy, right on .80 to .95", lambda rng, n: drawn(rng, n, 0.80, 0.95))
    for k in (2, 4, 20):
        told(f"{k} labels in another order", lambda rng, n, k=k: permuted(rng, n, k))  # type: ignore[misc]
    told("answers dealt out at random", blind)
    told("two labels, right on .50", lambda rng, n: state_of(*answers(rng, n, 2, 0.5), 2))
    told("two labels, right on .60", lambda rng, n: state_of(*answers(rng, n, 2, 0.6), 2))
    told("two labels, right on .30", lambda rng, n: state_of(*answers(rng, n, 2, 0.3), 2))


# ---- real audits -----------------------------------------------------------------------------


class Bag:
    """A linear bag of words."""

    labels = ("no", "yes")

    def __init__(self, weights: dict[str, float]) -> None:
        self.weights = weights

    def probabilities(self, inputs: Sequence[Text]) -> FloatArray:
        z = np.array([sum(self.weights.get(w, 0.0) for w in text.words) for text in inputs])
        p = 1 / (1 + np.exp(-z))
        return np.stack([1 - p, p], axis=1)


@dataclass(frozen=True)
class Noisy(Explainer):
    """The weights of a bag of words, plus noise; with noise alone it is a guess."""

    which: int = 0
    noise: float = 1.0
    signal: float = 1.0

    def explain(
        self,
        model: Classifier,
        inputs: Sequence[Text],
        targets: Sequence[int],
        rngs: Sequence[np.random.Generator],
    ) -> list[Attribution]:
        known: Any = getattr(model, "weights", {})
        return [
            Attribution(
                text,
                target,
                self.signal
                * (1 if target else -1)
                * np.array([known.get(w, 0.0) for w in text.words])
                + self.noise * rng.normal(size=text.n_features),
            )
            for text, target, rng in zip(inputs, targets, rngs, strict=True)
        ]


def bags(rng: np.random.Generator, n: int) -> tuple[Bag, Dataset]:
    vocabulary = [f"w{i}" for i in range(40)]
    bag = Bag(dict(zip(vocabulary, rng.normal(size=40), strict=True)))
    lengths = rng.integers(5, 12, size=n).tolist()
    texts = [Text.of_words(rng.choice(vocabulary, k).tolist()) for k in lengths]
    right = rng.random(n) < 0.85
    said = bag.probabilities(texts).argmax(axis=1)
    examples = [
        Example(str(i), text, int(y if ok else 1 - y))
        for i, (text, y, ok) in enumerate(zip(texts, said, right, strict=True))
    ]
    return bag, Dataset("bags", bag.labels, tuple(examples))


def real(audits: int, seed: int) -> None:
    """Whole audits: guesses, equal methods, and one that is truly better."""
    os.fsync = lambda fd: None  # nothing here need outlive a power cut
    sets: dict[str, list[Explainer]] = {
        "guesses only": [Noisy(which=i, signal=0.0) for i in range(3)],
        "equal methods": [Noisy(which=i) for i in range(3)],
        "one is better": [Noisy(which=0, noise=0.1), *(Noisy(which=i) for i in (1, 2))],
    }
    sizes = (12, 30, 80)
    head(f"{audits} audits each: recommended; leads; called worse; recommended is best", sizes)
    for name, methods in sets.items():
        row = []
        for n in sizes:
            rng = np.random.default_rng([seed, n])
            seen: Counter[str] = Counter()
            for _ in range(audits):
                bag, data = bags(rng, n)
                with tempfile.TemporaryDirectory() as folder:
                    said = veracity.audit(
                        bag,
                        data,
                        [*methods, "random_scores"],
                        "erasure, erasure(hiding=mask), deletion, deletion(hiding=mask)",
                        out=folder,
                        extras=False,
                        seed=int(rng.integers(1 << 30)),
                    ).conclusions
                method = said.models[0].recommendation.method
                seen["recommended"] += method is not None
                seen["leads"] += any(v.leads for v in said.models[0].verdicts)
                seen["worse"] += called_worse(said.standings)
                seen["best"] += method == methods[0].spec
            shares = ("recommended", "leads", "worse", "best")
            row.append(" ".join(f"{seen[w] / audits:.3f}" for w in shares))
        print(f"| {name} | {' | '.join(row)} |", flush=True)


PARTS = {"leads": leads, "pairs": pairs, "power": power, "gates": gates, "real": real}

if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--audits", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", choices=PARTS)
    asked = parser.parse_args()
    for name, part in PARTS.items():
        if asked.only in (None, name):
            part(asked.audits, asked.seed)
