"""Phrases composed over trees, against a literal copy that goes from node to node."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from veracity.core.inputs import Alignment
from veracity.data.trees import Tree, balanced, read_tree, right_branching
from veracity.models.phrase_composition import PhraseComposition, Places

SIZE = 8

TREES = [
    read_tree("(3 (2 It) (4 (4 (2 's) (4 (2 a) (4 (3 lovely) (2 film)))) (2 .)))"),
    read_tree("(1 (0 bad) (2 film))"),
    read_tree("(4 fine)"),
    balanced([f"w{i}" for i in range(9)]),
    right_branching([f"w{i}" for i in range(7)]),
]


def composition(seed: int = 0) -> PhraseComposition:
    """Weights large enough to matter."""
    torch.manual_seed(seed)
    found = PhraseComposition(SIZE).double()
    for weight in found.parameters():
        torch.nn.init.normal_(weight, std=0.5)
    return found.eval()


def alignment(tree: Tree, rng: np.random.Generator) -> Alignment:
    """One to three pieces a word, between two special ones."""
    counts = rng.integers(1, 4, len(tree.words))
    word = np.repeat(np.arange(len(counts)), counts)
    return Alignment(np.arange(len(word)) + 1, word, np.ones(len(word)), len(counts))


def literal(net: PhraseComposition, tree: Tree, pieces: Tensor, words: Alignment) -> list[Tensor]:
    """Definitions 1.10, phrase by phrase, child by child, number by number."""

    def dense(layer: Any, x: Tensor) -> Tensor:
        found: Tensor = layer.weight @ x + layer.bias
        return found

    def selu(x: Tensor) -> Tensor:
        positive = torch.clamp(x, min=0)
        return 1.0507009873554805 * (positive + 1.6732632423543772 * (torch.exp(x - positive) - 1))

    def gelu(x: Tensor) -> Tensor:
        return x * 0.5 * (1 + torch.erf(x / math.sqrt(2)))

    def norm(x: Tensor) -> Tensor:
        centred = x - x.mean()
        scale = torch.sqrt((centred**2).mean() + 1e-12)
        return net.LayerNorm.weight * centred / scale + net.LayerNorm.bias

    def attend(query: Any, asking: Tensor, values: list[Tensor]) -> Tensor:
        layers = query.linear_in
        hidden = selu(dense(layers[3], selu(dense(layers[0], asking))))
        weights = [math.exp(math.tanh(float(hidden @ v) / 4)) for v in values]
        return sum((w * v for w, v in zip(weights, values, strict=True)), torch.zeros(SIZE)) / sum(
            weights
        )

    def merge(layers: Any, one: Tensor, other: Tensor) -> Tensor:
        return selu(dense(layers[3], selu(dense(layers[0], torch.cat([one, other])))))

    values = [dense(net.trans, x) for x in pieces]

    def own(place: int) -> list[Tensor]:
        node = tree.nodes[place]
        linked = zip(words.piece, words.word, strict=True)
        return [values[p] for p, w in linked if node.start <= w < node.end]

    def first(place: int) -> Tensor:
        inside = own(place)
        mean = sum(inside, torch.zeros(SIZE)) / (len(inside) + 1)
        return merge(net.linear_out, mean, attend(net.bahdanau_attention, mean, inside))

    def phrases(place: int) -> list[Tensor]:
        """Those of a node and of all below it, from the top."""
        node = tree.nodes[place]
        if node.parts is None and place:
            return []
        mine, parts = first(place), []
        for half in node.parts or (place,):
            is_phrase = tree.nodes[half].parts is not None
            parts += [first(half)] if is_phrase else own(half)
        seen = attend(net.bahdanau_attention_3, mine, [*parts, mine])
        merged = merge(net.linear_out_3, mine, seen)
        found = norm(gelu(dense(net.trans_3, norm(gelu(dense(net.trans_2, merged))))))
        return [found, *(x for half in node.parts or () for x in phrases(half))]

    return phrases(0)


def test_batches_of_trees_are_the_literal_recursion() -> None:
    net, rng = composition(), np.random.default_rng(1)
    words = [alignment(tree, rng) for tree in TREES]
    longest = max(int(a.piece.max()) + 2 for a in words)
    pieces = torch.from_numpy(rng.normal(size=(len(TREES), longest, SIZE)))
    with torch.no_grad():
        found = net(pieces, Places.of(TREES, words, longest))
        for i, tree in enumerate(TREES):
            expected = literal(net, tree, pieces[i], words[i])
            assert len(expected) == len(tree.phrases)
            torch.testing.assert_close(
                found[i, : len(expected)], torch.stack(expected), atol=1e-10, rtol=0
            )


def test_a_tree_is_composed_alike_alone_and_beside_others() -> None:
    net, rng = composition(), np.random.default_rng(2)
    words = [alignment(tree, rng) for tree in TREES]
    longest = max(int(a.piece.max()) + 2 for a in words)
    pieces = torch.from_numpy(rng.normal(size=(len(TREES), longest, SIZE)))
    with torch.no_grad():
        together = net(pieces, Places.of(TREES, words, longest))
        for i, tree in enumerate(TREES):
            own = int(words[i].piece.max()) + 2
            alone = net(pieces[i : i + 1, :own], Places.of([tree], [words[i]], own))
            torch.testing.assert_close(
                together[i, : len(tree.phrases)], alone[0], atol=1e-12, rtol=0
            )


@pytest.mark.parametrize("cut", [1, 3])
def test_words_without_pieces_leave_no_gap(cut: int) -> None:
    """What is behind the limit of a reader: numbers all the same, and gradients."""
    net, tree = composition(), TREES[0]
    words = Alignment(np.arange(cut) + 1, np.arange(cut), np.ones(cut), len(tree.words))
    pieces = torch.randn(1, cut + 2, SIZE, dtype=torch.double, requires_grad=True)
    found = net(pieces, Places.of([tree], [words], cut + 2))
    found.sum().backward()
    assert pieces.grad is not None
    assert torch.isfinite(found).all() and torch.isfinite(pieces.grad).all()


def test_the_tree_decides() -> None:
    """The same words in another tree are other phrases; the root of both is not the same."""
    net, rng = composition(), np.random.default_rng(3)
    words = [f"w{i}" for i in range(6)]
    where = alignment(balanced(words), rng)
    pieces = torch.from_numpy(rng.normal(size=(1, int(where.piece.max()) + 2, SIZE)))
    roots = [
        net(pieces, Places.of([rule(words)], [where], pieces.shape[1]))[0, 0]
        for rule in (balanced, right_branching)
    ]
    assert (roots[0] - roots[1]).abs().max() > 1e-3
