"""Oracles that obey a rule to a known degree, and what scores make of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from conftest import SHARED, words
from veracity.core.errors import DataError, PluginError
from veracity.core.examples import Dataset
from veracity.data.lexicon import own_lexicon
from veracity.data.loading import load_data
from veracity.explainers import explainers
from veracity.metrics import metrics
from veracity.metrics.rule_consistency import RuleConsistency
from veracity.recipes.papers import recipes
from veracity.recipes.papers._percy_oracles_findings import Standing
from veracity.recipes.papers._percy_oracles_models import (
    ClauseOracle,
    made_sentences,
    praise,
    word_odds,
    written_sentences,
)
from veracity.recipes.papers.percy_oracles import SST2, consistency, explained
from veracity.results.findings import Findings

RULES = ("but", "yet", "though", "while")
LEXICON = {"good": 1, "great": 1, "warm": 1, "dull": -1, "bad": -1}


def p1(obedience: float, text: str) -> float:
    model = ClauseOracle(obedience, RULES, LEXICON)
    return float(model.probabilities([words(text)])[0, 1])


def test_oracles_read_what_they_say() -> None:
    one, two = 1 / (1 + np.exp(-1.5)), 1 / (1 + np.exp(-3.0))
    for text, decides, whole in (
        ("dull bad plot but good cast", one, 1 - one),
        ("good cast though dull bad plot", one, 1 - one),
        ("good cast yet great warm plot", two, 1 / (1 + np.exp(-4.5))),
        ("dull while it was good", 1 - one, 0.5),
        ("the cast but good", one, one),
    ):
        assert p1(1.0, text) == pytest.approx(decides)
        assert p1(0.0, text) == pytest.approx(whole)
        assert p1(0.25, text) == pytest.approx(0.25 * decides + 0.75 * whole)
    # two keywords, or none: all words count
    for text in ("good but dull yet bad", "good dull bad"):
        assert p1(1.0, text) == p1(0.0, text) == pytest.approx(1 - one)
    # the clause that decides is not there
    assert p1(1.0, "dull bad but") == 0.5
    assert ClauseOracle(1.0, RULES).probabilities([words("")])[0].tolist() == [0.5, 0.5]
    with pytest.raises(ValueError, match=r"obedience from 0 to 1, got 1\.5"):
        ClauseOracle(1.5, RULES)


def test_gradients_give_the_other_clause_nothing() -> None:
    model = ClauseOracle(1.0, RULES, LEXICON)
    text = words("dull bad plot but good great cast")
    method = explainers.make("integrated_gradients(steps=20, rule=gauss_legendre)")
    (found,) = method.explain(model, [text], [1], [np.random.default_rng(0)])
    assert found.scores[[0, 1, 2, 3, 6]].tolist() == [0.0] * 5
    assert found.scores[4] == pytest.approx(found.scores[5])
    # what nothing is given says 0.5, and the rest is shared out
    assert found.scores.sum() == pytest.approx(p1(1.0, text.text) - 0.5, abs=1e-4)


def test_made_sentences_say_what_their_label_says() -> None:
    data = made_sentences(64, (3, 6), 3, RULES, seed=0)
    assert len(data) == 64 and data.balance == {"negative": 32, "positive": 32}
    contradict = []
    for example in data:
        own, other = (praise(example, side, own_lexicon()) for side in ("dominant", "other"))
        assert (own.sum() > 0) == bool(example.label)
        assert 1 <= np.count_nonzero(own) <= 3 and len(own) in (3, 6)
        contradict.append(np.sign(own.sum()) != np.sign(other.sum()))
    assert np.mean(contradict) == 0.5
    assert data.fingerprint() == made_sentences(64, (3, 6), 3, RULES, seed=0).fingerprint()


# ---- exact Shapley values -----------------------------------------------------------------------


def scored(data: Dataset, obedience: float, lexicon: Any) -> dict[str, float]:
    cases = explained(ClauseOracle(obedience, RULES, lexicon), data, "shap(form=exact)", seed=0)
    metric = metrics.make("rule_consistency")
    return dict(metric.summary(metric.score(cases)))


def test_oracle_above_bag_of_words_on_made_sentences() -> None:
    data = made_sentences(40, (3, 4), 3, RULES, seed=1)
    oracle, bag = (scored(data, share, own_lexicon()) for share in (1.0, 0.0))
    assert oracle["wrong"] == 0 and oracle["wrong_side"] < 0.1
    assert oracle["consistent"] > bag["consistent"] + 0.1
    # the score is low all the same: few words of a clause say anything
    assert oracle["consistent"] < 0.8


@pytest.mark.skipif(not SHARED.exists(), reason="no shared data")
def test_oracle_above_bag_of_words_on_structures_of_sst2() -> None:
    whole = Dataset("sst2", ("0", "1"), tuple(e for f in SST2 for e in load_data(SHARED / f)))
    weights = word_odds(whole)
    data = written_sentences(whole, RULES, weights)
    # exact values ask about every subset of words; of fewer than these hardly any is significant
    short = data.select(i for i, e in enumerate(data) if e.input.n_features == 11)
    assert len(short) == 11
    assert weights["masterpiece"] > 0.7 and weights["dull"] < -0.7 and "qzxv" not in weights
    oracle, bag = (scored(short, share, weights) for share in (1.0, 0.0))
    assert oracle["wrong"] == 0 < bag["wrong"]
    assert oracle["consistent"] > bag["consistent"]
    right_side = [r["consistent"] + r["not_significant"] for r in (oracle, bag)]
    assert right_side[0] > right_side[1] + 0.2


# ---- the test of tests --------------------------------------------------------------------------


def test_all_combinations_are_those_of_the_metric() -> None:
    """The short cut, one p-value for three reductions, beside the metric itself."""
    data = made_sentences(24, (3, 5, 8), 3, RULES, seed=2)
    cases = explained(ClauseOracle(0.75, RULES), data, "lime(samples=60)", seed=0)
    found = consistency(cases, ("student", "welch", "mannwhitney"))
    assert len(found) == 27
    for name, values in found.items():
        how, reduction, test = name.split(", ")
        metric: Any = RuleConsistency(contribution=how, reduction=reduction, test=test)  # type: ignore[arg-type]
        assert values == [int(row["consistent"]) for row in metric.score(cases)]
    assert len({tuple(v) for v in found.values()}) > 3


def test_an_order_is_sure_or_not() -> None:
    rng = np.random.default_rng(0)
    shares = (0.0, 0.5, 1.0)
    rising = np.stack([(rng.random(300) < share).astype(float) for share in (0.1, 0.5, 0.9)])
    flat = np.stack([(rng.random(300) < 0.5).astype(float) for _ in shares])
    assert Standing.of(rising, shares).upward == 2 and Standing.of(flat, shares).upward == 0
    assert Standing.of(rising[::-1], shares).upward == 0
    value, low, high = Standing.of(rising, shares).apart
    assert low < value < high and value == pytest.approx(0.8, abs=0.08)


def test_percy_oracles_runs_and_goes_on(tmp_path: Path) -> None:
    sizes = {"sentences": 16, "explainers": ["lime(samples=40)", "random_scores"]}
    recipe = recipes.make("percy_oracles")

    def go() -> Findings:
        return recipe.run(tmp_path, scale="smoke", sizes=sizes, workers=1)

    first = go()
    tables = {t.title: dict(t.rows) for t in first.tables}
    made = tables["Made sentences: who puts the oracles in order"]
    taken: Any = made["taking clauses away"]
    assert taken[2].value == 1.0 > taken[0].value
    assert "random_scores, split, sum, student" in made
    assert first.lead.startswith("Recommended: taking clauses away")
    moved: Any = made["taking clauses away: share of the movement"]
    assert moved[2].value == pytest.approx(1.0) and moved[0].value < moved[1].value < 0.99
    everyone: Any = tables["Made sentences: what bends the score of the perfect oracle"]["all"]
    assert everyone[-1] == "16"
    written = {p: p.stat().st_mtime_ns for p in (tmp_path / "steps").rglob("*") if p.is_file()}
    assert len(written) == 6
    assert repr(go()) == repr(first) == repr(Findings.read(tmp_path))
    assert written == {p: p.stat().st_mtime_ns for p in written}


def test_what_is_asked_of_oracles_is_checked(tmp_path: Path) -> None:
    with pytest.raises(PluginError, match="expected texts among made, written"):
        recipes.make("percy_oracles(texts=('maid',))")
    with pytest.raises(DataError, match="expected a folder that holds sst/"):
        recipes.make("percy_oracles").run(tmp_path / "run", scale="smoke", data=tmp_path)
