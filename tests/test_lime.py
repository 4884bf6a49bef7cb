"""LIME from fewer questions: when its top words have settled, or with a guess for the rest."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import veracity
from conftest import words
from veracity.core.errors import PluginError
from veracity.explainers import explainers
from veracity.explainers.lime import local_fit, neighbourhood

LONG = "the plot was great but the film was so dull that i left , although i like it a lot"


def scores(model: Any, spec: str, seed: int = 0) -> Any:
    return veracity.explain(model, words(LONG), spec, seed=seed)[0].scores


def test_stability_is_the_share_of_top_words_that_another_draw_finds() -> None:
    rng = np.random.default_rng(0)
    slopes = np.array([1.0, 0.8, 0.6, 0.4, 0.3, 0.25, 0.2, 0.1, 0.05, 0.0])
    told, seen = [], []
    for noise in (0.01, 0.5, 2.0):
        fits = []
        for _ in range(40):
            z = neighbourhood(10, 200, rng)
            y = z @ slopes + noise * rng.normal(size=200)
            fits.append(local_fit(z, y, alpha=0.0, rng=rng))
        tops = [set(np.argsort(-np.abs(f.coefficients))[:5]) for f in fits]
        seen.append(np.mean([len(a & b) / 5 for a in tops for b in tops if a is not b]))
        told.append(np.mean([f.stability for f in fits]))
    assert told[0] > 0.95
    assert told == sorted(told, reverse=True)
    assert told == pytest.approx(seen, abs=0.08)


def test_sampling_stops_when_the_top_words_have_settled(cnn: Any) -> None:
    easy = veracity.explain(cnn, words(LONG), "lime(samples=4000, settled=0.5)")[0]
    with pytest.warns(UserWarning, match="1 of 1 texts the top words have not settled after 4000"):
        hard = veracity.explain(cnn, words(LONG), "lime(samples=4000, settled=1.0)")[0]
    assert easy.notes["questions"] < hard.notes["questions"] <= 4000
    assert easy.notes["stability"] >= 0.5


def test_a_guess_for_the_samples_moves_less_from_seed_to_seed(cnn: Any, bag: Any) -> None:
    truth = scores(cnn, "lime(samples=30000, bow=False)", seed=100)
    spread = {}
    for spec in (
        "lime(samples=300, bow=False)",
        "lime(samples=5000, bow=False, questions=300)",
    ):
        found = np.array([scores(cnn, spec, seed) for seed in range(6)])
        spread[spec] = found.std(axis=0).mean()
        assert np.abs(found.mean(axis=0) - truth).mean() < 0.02
    drawn, guessed = spread.values()
    assert guessed < 0.7 * drawn
    bag.texts_read = 0
    veracity.explain(bag, words(LONG), "lime(samples=5000, questions=100)")
    assert bag.texts_read <= 101


@pytest.mark.parametrize("setting", ["settled=0", "settled=1.5", "questions=2", "samples=1"])
def test_settings_out_of_range_are_told(setting: str) -> None:
    with pytest.raises(PluginError, match="expected"):
        explainers.make(f"lime({setting})")
