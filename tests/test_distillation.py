"""Rules taught to models (worked examples 2.1 to 2.5)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

from conftest import words
from veracity.core.examples import Dataset, Example
from veracity.core.inputs import FloatArray, Text
from veracity.data.splits import Splits
from veracity.engine.inference import probabilities
from veracity.models.architecture import Training
from veracity.models.architectures import architectures
from veracity.models.distillation import Teacher, Teaching, imitation, teacher
from veracity.models.training import train

P = np.array([[0.6, 0.4]])
CLAUSE = np.array([[0.1, 0.9]])


def test_ex_2_1_the_teacher() -> None:
    q = teacher(P, CLAUSE)
    assert q[0, 1] == pytest.approx(0.880222, abs=1e-6) and q.sum() == pytest.approx(1)


class Fixed:
    """Answers alike whatever is asked, but for a clause."""

    labels = ("negative", "positive")

    def __init__(self, whole: FloatArray, clause: FloatArray) -> None:
        self.whole, self.clause = whole, clause

    def probabilities(self, inputs: Any) -> FloatArray:
        return np.concatenate([self.whole if "but" in t.words else self.clause for t in inputs])


def test_ex_2_2_no_structure() -> None:
    taught = Teacher(Fixed(P, P), Teaching(("but",)))
    assert taught.probabilities([words("all of it good")]).tolist() == P.tolist()
    with_rule = Teacher(Fixed(P, CLAUSE), Teaching(("but",)))
    assert with_rule.probabilities([words("dull but good")])[0, 1] == pytest.approx(0.880222)


def test_ex_2_3_the_schedule() -> None:
    found = [imitation(t) for t in (0, 1, 5, 10, 20)]
    assert found == pytest.approx([0, 0.05, 0.226219, 0.401263, 0.641514], abs=1e-6)
    assert imitation(20, most=0.5) == 0.5


def test_ex_2_4_the_loss() -> None:
    logits = torch.log(torch.from_numpy(P))
    label = torch.nn.functional.cross_entropy(logits, torch.tensor([1]))
    assert float(label) == pytest.approx(0.916291, abs=1e-6)
    teaching = Teaching(("but",))
    part = teaching.loss(Fixed(P, CLAUSE), [words("dull but good")], logits, 1.0)
    assert float(part) == pytest.approx(0.05 * 0.867725, abs=1e-6)
    assert 0.95 * float(label) + float(part) == pytest.approx(0.913862, abs=1e-6)


def test_ex_2_5_strengths() -> None:
    found = [teacher(P, CLAUSE, strength=s)[0, 1] for s in (2, 4)]
    assert found == pytest.approx([0.987806, 0.999898], abs=1e-6)
    extreme = teacher(P, CLAUSE, strength=1e9)
    assert np.isfinite(extreme).all()


def test_the_teacher_moves_with_the_student_and_is_not_learnt_from() -> None:
    moved = np.array([[0.3, 0.7]])
    assert teacher(moved, CLAUSE)[0, 1] > teacher(P, CLAUSE)[0, 1]
    logits = torch.tensor([[0.2, -0.1]], requires_grad=True)

    class Counting(Fixed):
        graph = False

        def probabilities(self, inputs: Any) -> FloatArray:
            self.graph = self.graph or torch.is_grad_enabled()
            return super().probabilities(inputs)

    teaching = Teaching(("but",))
    q = teaching.answers(
        Fixed(P, CLAUSE), [words("dull but good")], torch.softmax(logits.detach(), 1).numpy()
    )
    loss = teaching.loss(Counting(P, CLAUSE), [words("dull but good")], logits, 3.0)
    (gradient,) = torch.autograd.grad(loss, logits)
    # of the cross-entropy with a constant: p − q
    expected = imitation(3.0) * (torch.softmax(logits, 1).detach().numpy() - q)
    assert gradient.numpy() == pytest.approx(expected, abs=1e-6)


def contrasts(n: int) -> Dataset:
    """Sentences whose second clause tells the label, and the first the other one."""
    rng = np.random.default_rng(0)
    good, bad = ["good", "fine", "great", "warm"], ["bad", "dull", "poor", "cold"]
    examples = []
    for i in range(n):
        label = int(rng.integers(2))
        a, b = (bad, good) if label else (good, bad)
        said = f"{rng.choice(a)} {rng.choice(a)} plot but {rng.choice(b)} acting"
        examples.append(Example(str(i), words(said), label))
    return Dataset("contrasts", ("negative", "positive"), tuple(examples))


def test_a_distilled_model_learns_otherwise_and_goes_on(tmp_path: Any) -> None:
    data = contrasts(120)
    parts = Splits(
        data.select(range(80)), data.select(range(80, 100)), data.select(range(100, 120))
    )
    made = architectures.make("text_cnn(size=8, filters=4, widths=(1, 2))")
    training = Training(epochs=3, batch_size=20, learning_rate=0.01, patience=None)
    plain = train(made, parts.train, parts.validation, training=training).model
    taught_by = replace(training, distil=("but",), strength=4)
    taught = train(made, parts.train, parts.validation, training=taught_by).model
    texts: list[Text] = [e.input for e in parts.test]
    assert not np.allclose(probabilities(plain, texts), probabilities(taught, texts))
    # stopped after an epoch and given again, the same weights
    folder = tmp_path / "checkpoint"
    train(
        made,
        parts.train,
        parts.validation,
        training=replace(taught_by, epochs=1),
        checkpoint=folder,
    )
    again = train(made, parts.train, parts.validation, training=taught_by, checkpoint=folder).model
    assert np.array_equal(probabilities(again, texts), probabilities(taught, texts))


def test_strengths_are_checked() -> None:
    with pytest.raises(ValueError, match="strength of 1, 2 or 4"):
        Training(strength=3)
