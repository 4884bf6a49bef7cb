"""Models built to follow a rule."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from conftest import words
from veracity.changes import changed
from veracity.changes.structure import RULE
from veracity.core.errors import DataError, PluginError
from veracity.core.examples import Dataset, Example
from veracity.data.loading import load_data
from veracity.models.architecture import Training
from veracity.models.architectures import architectures
from veracity.models.training import train
from veracity.recipes.papers import recipes
from veracity.recipes.papers.percy_built import alone, exchanged
from veracity.results.findings import Cell, Findings


def marked(*rows: tuple[str, int]) -> Dataset:
    examples = (Example(str(i), words(text), label) for i, (text, label) in enumerate(rows))
    return changed(Dataset("some", ("negative", "positive"), tuple(examples)), "structure")


def said(data: Dataset) -> list[tuple[str, int]]:
    return [(" ".join(e.input.words), e.label) for e in data]


ROWS = (
    ("dull plot but warm cast", 1),
    ("cold cast though a great song", 0),
    ("all of it good", 1),
)


def test_the_other_clause_is_left_out() -> None:
    assert said(alone(marked(*ROWS))) == [("warm cast", 1), ("cold cast", 0), ROWS[2]]


def test_clauses_are_exchanged_and_labels_stay() -> None:
    found = exchanged(marked(*ROWS), seed=0)
    assert said(found) == [
        *ROWS,
        ("a great song but warm cast", 1),
        ("cold cast though dull plot", 0),
    ]
    assert [e.partner for e in found][3:] == ["0", "1"]
    assert all(RULE not in e.facts for e in found.examples[3:])
    # without a text of the other label there is nothing to exchange with
    assert len(exchanged(marked(ROWS[0], ROWS[2]), seed=0)) == 2


def test_gates_learn_which_clause_decides() -> None:
    data = load_data("made_reviews(n=300)")
    made = architectures.make("clause_gate(size=16, filters=6, gate=8, weight=2.0)")
    training = Training(epochs=8, batch_size=20, learning_rate=0.02, patience=None)
    model: Any = train(
        made, data.select(range(240)), data.select(range(240, 300)), training=training
    ).model
    assert hasattr(model, "loss")
    test = changed(data.select(range(240, 300)), "structure(alone=true)")
    embedded = model.embed([e.input for e in test])
    gates = torch.sigmoid(model.network.gate_logits(embedded.values, embedded.present))
    for side, low, high in (("dominant", 0.7, 1.0), ("other", 0.0, 0.3)):
        found = [
            float(g[: len(e.truths[side][0])][torch.from_numpy(e.truths[side][0])].mean())
            for g, e in zip(gates.detach(), test, strict=True)
        ]
        assert low <= np.mean(found) <= high


@pytest.mark.parametrize(
    ("setting", "told"),
    [("weight=-1.0", "weight of 0 or more"), ("gate=0", "gate to be 1"), ("rules=('x',)", "'x'")],
)
def test_gates_are_checked(setting: str, told: str) -> None:
    with pytest.raises(PluginError, match=told):
        architectures.make(f"clause_gate({setting})")


def test_percy_built_runs_and_goes_on(tmp_path: Path) -> None:
    sizes = {
        "texts": {"sst2": 120},
        "structured": {"sst2": 0.6},
        "folds": {"outer": 3, "inner": 2, "outer_done": 1, "inner_done": 1},
        "explained": 5,
        "lipschitz": {"sentences": 1, "points": 1},
        "built": "size=8, filters=4",
        "training": {"epochs": 1, "batch_size": 32, "learning_rate": 0.01},
        "explainers": {"lime": "lime(samples=30)"},
        "draws": 50,
    }
    recipe = recipes.make("percy_built(builds=('plain', 'gated', 'exchanged'))")

    def go() -> Findings:
        return recipe.run(tmp_path, scale="smoke", sizes=sizes, workers=1)

    first = go()
    (table,) = first.tables
    assert [row for row, _ in table.rows] == [
        *("as it is", "gate that learns the clause", "learnt from exchanged clauses too")
    ]
    assert all(isinstance(cell, Cell) for _, cells in table.rows for cell in cells)
    assert len(first.claims) == 4
    written = {p: p.stat().st_mtime_ns for p in (tmp_path / "steps").rglob("*") if p.is_file()}
    assert repr(go()) == repr(first) == repr(Findings.read(tmp_path))
    assert written == {p: p.stat().st_mtime_ns for p in written}
    with pytest.raises(PluginError, match="expected plain among builds"):
        recipes.make("percy_built(builds=('gated',))")
    with pytest.raises(DataError, match="expected a folder that holds sst"):
        recipe.run(tmp_path / "other", scale="smoke", data=tmp_path)
