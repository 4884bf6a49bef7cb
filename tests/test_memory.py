"""Asking once what is asked often."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from conftest import WordWeights, words
from veracity.auditing.audit import audit
from veracity.core.inputs import Hiding
from veracity.data.splits import Splits
from veracity.engine import cache
from veracity.engine.cache import AnswerCache, caching
from veracity.engine.inference import masked_probabilities, probabilities


def test_a_question_is_put_once_while_remembered(bag: WordWeights) -> None:
    text = words("a great dull film")
    shown = np.eye(4, dtype=bool)
    before = masked_probabilities(bag, [text], [shown], Hiding.DELETE)[0]
    bag.texts_read = 0
    with caching():
        first = masked_probabilities(bag, [text], [shown], Hiding.DELETE)[0]
        assert bag.texts_read == 4
        again = masked_probabilities(bag, [text, text], [shown, ~shown], Hiding.DELETE)
        assert bag.texts_read == 8
    assert np.array_equal(first, before)
    assert np.array_equal(again[0], before)
    masked_probabilities(bag, [text], [shown], Hiding.DELETE)
    assert bag.texts_read == 12  # forgotten outside


def test_models_do_not_share_what_they_said() -> None:
    one, other = WordWeights({"great": 2.0}), WordWeights({"great": -2.0})
    with caching():
        a, b = (probabilities(m, [words("great")])[0, 1] for m in (one, other))
    assert a == pytest.approx(1 - b)


def test_the_oldest_answers_are_forgotten_first(
    bag: WordWeights, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cache, "MOST_ANSWERS", 2)
    texts = [words(w) for w in ("great", "dull", "fine")]
    with caching() as kept:
        for text in texts:
            probabilities(bag, [text])
        assert len(kept.answers) == 2
        bag.texts_read = 0
        assert len(probabilities(bag, texts)) == 3
        assert bag.texts_read == 1


def test_a_memory_travels_empty(bag: WordWeights) -> None:
    kept = AnswerCache()
    with caching(kept):
        probabilities(bag, [words("great")])
    assert kept.answers
    assert not pickle.loads(pickle.dumps(kept)).answers


def test_metrics_of_several_methods_share_their_questions(
    made: Splits, bag: WordWeights, tmp_path: Path
) -> None:
    def read(methods: str) -> int:
        bag.texts_read = 0
        audit({"m": bag}, data, methods, "erasure", out=tmp_path / str(len(methods)))
        return bag.texts_read

    data: Any = made.test.select(range(10))
    one = read("occlusion")
    both = read("occlusion, occlusion(output=log_odds)")
    explaining = sum(len(e.input.words) + 1 for e in data)
    assert both - one <= explaining  # the same ranking: its erasure needs no further question


@pytest.mark.parametrize("name", ["lstm", "cnn"])
def test_a_part_made_again_is_the_same_to_the_last_bit(
    name: str, made: Splits, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    """Whatever was computed before it in the same process, or not."""
    model = request.getfixturevalue(name)
    data: Any = made.test.select(range(12))
    methods = "occlusion, lime(samples=40), gradient, random_scores"
    audit({"m": model}, data, methods, out=tmp_path / "run", batch_size=4)
    parts = sorted((tmp_path / "run" / "scores").rglob("*.parquet"))
    before = [part.read_bytes() for part in parts]
    assert len(parts) > 40
    for part in parts[::3]:
        part.unlink()
    audit({"m": model}, data, methods, out=tmp_path / "run", batch_size=4)
    assert [part.read_bytes() for part in parts] == before
