"""Trees that imitate the model on the matches of its filters (definitions 3.11)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import ClassVar, Self, cast

import numpy as np

from ..core.attributions import Attribution, Fragment, Kind
from ..core.classifiers import Classifier, Convolutional
from ..core.errors import DataError, MissingExtra, PluginError
from ..core.examples import Dataset
from ..core.explainers import Explainer
from ..core.inputs import BoolArray, FloatArray, Input, IntArray
from ..data.splits import split
from ..engine.hits import Hits, filter_hits
from ._batch import Inputs, Rngs, Targets

LEAF = -1
DECIMALS = 5
"""Matches are rounded: no branch may hang on the order in which a batch was added up."""


@dataclass(frozen=True, eq=False)
class Tree:
    """One label against the rest. Node 0 is the root; a node's children come after it."""

    feature: IntArray  # (nodes,) the filter that is looked at
    threshold: FloatArray  # (nodes,) to the right if the match is above
    left: IntArray  # (nodes,) LEAF where there are no children
    right: IntArray  # (nodes,)
    chance: FloatArray  # (nodes,) share of the label among the training texts that come here

    @property
    def nodes(self) -> int:
        return len(self.left)

    @property
    def leaves(self) -> int:
        return int((self.left == LEAF).sum())

    @property
    def depth(self) -> int:
        """Counted in nodes: a single leaf has depth 1."""
        depths = np.ones(self.nodes, dtype=np.int64)
        for node in np.flatnonzero(self.left != LEAF):
            depths[[self.left[node], self.right[node]]] = depths[node] + 1
        return int(depths.max())

    def levels(self, values: FloatArray) -> Iterator[tuple[IntArray, IntArray]]:
        """Which rows reach which nodes, step by step from the root. (texts, filters)"""
        rows = np.arange(len(values))
        nodes = np.zeros(len(values), dtype=np.int64)
        while len(rows):
            yield rows, nodes
            inner = self.left[nodes] != LEAF
            rows, nodes = rows[inner], nodes[inner]
            above = values[rows, self.feature[nodes]] > self.threshold[nodes]
            nodes = np.where(above, self.right[nodes], self.left[nodes])

    def chances(self, values: FloatArray) -> FloatArray:
        """The share of the label at each row's leaf. (texts, filters) → (texts,)"""
        found = np.zeros(len(values))
        for rows, nodes in self.levels(values):
            found[rows] = self.chance[nodes]
        return found

    def found(self, values: FloatArray) -> list[int]:
        """The filters that a text must have matched to come where it does, in path order."""
        nodes = [int(nodes[0]) for _, nodes in self.levels(values[None])]
        steps = pairwise(nodes)
        return [int(self.feature[node]) for node, after in steps if after == self.right[node]]

    def pruned(self, values: FloatArray, labels: BoolArray) -> Tree:
        """Bottom-up, pairs of leaves that other texts do not need are merged."""
        total, positive = np.zeros(self.nodes), np.zeros(self.nodes)
        for rows, nodes in self.levels(values):
            np.add.at(total, nodes, 1)
            np.add.at(positive, nodes, labels[rows])
        correct = np.where(self.chance > 0.5, positive, total - positive)  # as a leaf
        left, right = self.left.copy(), self.right.copy()
        for node in reversed(np.flatnonzero(left != LEAF)):
            pair = [left[node], right[node]]
            if (left[pair] == LEAF).all() and correct[node] >= correct[pair].sum():
                left[node] = right[node] = LEAF
        return replace(self, left=left, right=right)._without_orphans()

    def _without_orphans(self) -> Tree:
        kept = [0]
        for node in kept:  # grows while it is read
            if self.left[node] != LEAF:
                kept += [int(self.left[node]), int(self.right[node])]
        kept.sort()
        place = np.full(self.nodes + 1, LEAF)  # the last entry maps LEAF to itself
        place[kept] = np.arange(len(kept))
        return Tree(
            self.feature[kept],
            self.threshold[kept],
            place[self.left[kept]],
            place[self.right[kept]],
            self.chance[kept],
        )


@dataclass(frozen=True, eq=False)
class Forest:
    """A tree per label, and what each filter stands for."""

    trees: tuple[Tree, ...]
    stands_for: IntArray  # (filters,) the label whose logit a match goes with; -1 if it is constant
    fidelity: float
    """Macro-F1 against the model's own answers, on texts that no tree has seen."""

    def predictions(self, values: FloatArray) -> IntArray:
        """The label whose tree is surest. (texts, filters) → (texts,)"""
        chances = np.array([tree.chances(values) for tree in self.trees])
        return cast(IntArray, chances.argmax(axis=0))

    def notes(self, label: int) -> dict[str, float]:
        """How faithful the forest is, and how large the tree that speaks for a label."""
        tree = self.trees[label]
        sizes = {"nodes": tree.nodes, "leaves": tree.leaves, "depth": tree.depth}
        return {"fidelity": self.fidelity, **{k: float(v) for k, v in sizes.items()}}


@dataclass(frozen=True)
class DecisionTree(Explainer):
    """N-grams on the way through a tree that imitates the model, learnt from training data.

    Every branch that asked for a match names an n-gram: evidence if its filter stands for the
    label, else counter-evidence, in the order of the path. The n-gram at place p has the score
    1/p, negative when it speaks against the label, and its words share that evenly. `dedupe`
    leaves out n-grams that were named before.
    """

    needs: ClassVar[type] = Convolutional
    dedupe: bool = False
    """Whether n-grams that were named before are left out."""
    forest: Forest | None = field(default=None, init=False, repr=False, compare=False)

    @property
    def learns(self) -> bool:
        return True

    @property
    def ready(self) -> bool:
        return self.forest is not None

    def fitted(self, model: Classifier, train: Dataset) -> Self:
        """Trees grown on most of the data, pruned on a tenth, measured on another."""
        parts = split(train)
        given = (parts.train, parts.validation, parts.test)
        if not all(map(len, given)):
            raise DataError(
                f"{self.spec} needs texts to grow trees on, to prune them and to measure them: "
                f"expected 3 different ones at least, {train.name} has {len(train)}"
            )
        able = cast(Convolutional, model)
        grown, other, unseen = (_answers(able, [e.input for e in part]) for part in given)
        trees = tuple(
            grow(grown.values, grown.labels == label).pruned(other.values, other.labels == label)
            for label in range(len(model.labels))
        )
        forest = Forest(trees, stands_for(grown.values, grown.logits), np.nan)
        fidelity = macro_f1(unseen.labels, forest.predictions(unseen.values))
        made = replace(self)
        object.__setattr__(made, "forest", replace(forest, fidelity=fidelity))
        return made

    def explain(
        self, model: Classifier, inputs: Inputs, targets: Targets, rngs: Rngs
    ) -> list[Attribution[Input]]:
        if self.forest is None:
            raise PluginError(f"{self.spec} learns from training data: call fitted(model, train)")
        found = filter_hits(cast(Convolutional, model), inputs)
        return [
            Attribution(
                text,
                target,
                shared(fragments, text.n_features),
                fragments=fragments,
                level="ngram",
                notes=self.forest.notes(target),
            )
            for text, target, hits in zip(inputs, targets, found, strict=True)
            for fragments in [named(self.forest, target, hits, self.dedupe)]
        ]


@dataclass(frozen=True)
class _Answers:
    values: FloatArray  # (texts, filters)
    logits: FloatArray  # (texts, labels)
    labels: IntArray  # (texts,) the model's answers


def _answers(model: Convolutional, inputs: Inputs) -> _Answers:
    hits = filter_hits(model, inputs)
    logits = np.array([h.logits for h in hits])
    return _Answers(rounded(np.array([h.values for h in hits])), logits, logits.argmax(axis=1))


def rounded(values: FloatArray) -> FloatArray:
    """Matches as the trees see them; scikit-learn compares in single precision."""
    return values.round(DECIMALS).astype(np.float32).astype(np.float64)


def named(forest: Forest, label: int, hits: Hits, dedupe: bool) -> tuple[Fragment, ...]:
    """The n-grams along the path of a label's tree; those that are all padding are not named."""
    spans: list[tuple[tuple[int, ...], Kind]] = []
    for k in forest.trees[label].found(rounded(hits.values)):
        words = hits.words(k)
        kind: Kind = "evidence" if forest.stands_for[k] == label else "counter"
        if words and not (dedupe and (words, kind) in spans):
            spans.append((words, kind))
    return tuple(
        Fragment(words, (1 if kind == "evidence" else -1) / place, kind)
        for place, (words, kind) in enumerate(spans, start=1)
    )


def shared(fragments: Sequence[Fragment], n: int) -> FloatArray:
    """Word scores from fragments: each shares its score among its words."""
    scores = np.zeros(n)
    for fragment in fragments:
        scores[list(fragment.positions)] += fragment.score / len(fragment.positions)
    return scores


def grow(values: FloatArray, labels: BoolArray) -> Tree:
    """A full CART tree by Gini impurity. (texts, filters), (texts,)"""
    try:
        from sklearn.tree import DecisionTreeClassifier
    except ImportError:
        raise MissingExtra("scikit-learn", "sklearn", "decision_tree") from None
    grown = DecisionTreeClassifier(criterion="gini", random_state=0).fit(values, labels)
    nodes = grown.tree_
    place = {bool(label): i for i, label in enumerate(grown.classes_)}
    shares = nodes.value[:, 0] / nodes.value[:, 0].sum(axis=1, keepdims=True)
    return Tree(
        nodes.feature.astype(np.int64),
        nodes.threshold.astype(np.float64),
        nodes.children_left.astype(np.int64),
        nodes.children_right.astype(np.int64),
        shares[:, place[True]] if True in place else np.zeros(nodes.node_count),
    )


def stands_for(values: FloatArray, logits: FloatArray) -> IntArray:
    """The label whose logit each filter correlates with most. → (filters,)"""
    x = values - values.mean(axis=0)
    y = logits - logits.mean(axis=0)
    spread = np.sqrt((x**2).sum(axis=0))[:, None] * np.sqrt((y**2).sum(axis=0))
    defined = (values.max(axis=0) > values.min(axis=0))[:, None] & (spread > 0)
    together = np.where(defined, x.T @ y / np.where(defined, spread, 1.0), -np.inf)
    return np.where(defined.any(axis=1), together.argmax(axis=1), -1)


def macro_f1(expected: IntArray, found: IntArray) -> float:
    """The mean over labels of F1; labels that nobody gave are left out."""
    scores = []
    for label in np.union1d(expected, found):
        both = ((expected == label) & (found == label)).sum()
        scores.append(2 * both / ((expected == label).sum() + (found == label).sum()))
    return float(np.mean(scores))
