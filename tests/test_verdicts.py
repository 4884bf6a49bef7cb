"""What an audit concludes of models whose explanations are known, beside what an analyst would."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from known_models import setups
from veracity.auditing.audit import Audit, audit
from veracity.core.inputs import FloatArray
from veracity.core.metrics import Quantity
from veracity.reports.scoreboard import against_chance
from veracity.results.columns import Column
from veracity.results.conclusions import Conclusion
from veracity.results.health import Health, chance_of_all_right
from veracity.results.power import detectable_mean
from veracity.results.standings import Entry, Standing, compare, compare_all
from veracity.results.standings import _compare as columns_compared
from veracity.results.statistics import at_least, paired_tests, percent, texts_needed
from veracity.results.verdicts import verdicts

Concluded = Callable[[str], Conclusion]
LEADS = "leads every other method"


@pytest.fixture(scope="module")
def audited(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Audit]:
    """The audit of a case, made once."""

    @cache
    def of(name: str) -> Audit:
        case = setups()[name]()
        out = tmp_path_factory.mktemp("case") / "run"
        return audit(case.model, case.data, case.methods, case.metrics, out=out, **case.more)

    return of


@pytest.fixture(scope="module")
def concluded(audited: Callable[[str], Audit]) -> Concluded:
    """What is said of the first model of a case."""
    return lambda name: audited(name).conclusions.models[0]


def sentences(one: Conclusion) -> list[str]:
    """All that a reader is told."""
    advice = one.recommendation
    told = [v.sentence for v in one.verdicts]
    return [*told, one.health.summary, advice.sentence, *advice.reasons, *advice.cautions]


# ---- any case --------------------------------------------------------------------------------


@pytest.mark.parametrize("name", setups())
def test_what_is_said_hangs_together(name: str, audited: Callable[[str], Audit]) -> None:
    found = audited(name)
    for one in found.conclusions.models:
        advice, fault = one.recommendation, one.health.fault
        advised = {v.use for v in one.verdicts if v.use}
        assert (advice.method is None) == (not advised)
        if fault:  # a model at fault gets no method anywhere, and the box says why and what to do
            assert not advised and fault in advice.sentence and one.health.diagnosis in fault
            assert all(one.health.diagnosis in v.sentence for v in one.verdicts)
        if advice.method:
            assert advice.method in {m for v in one.verdicts if v.use for m in (v.use, *v.tied)}
            assert f"Use {advice.method}" in advice.sentence and advice.explain and advice.repeat
            # one method for one purpose, wherever it is told
            assert all(advice.method not in v.tied for v in one.verdicts)
        for v in one.verdicts:
            assert v.use not in v.tied and len(v.sentence) < 900
            own = [s for s in found.standings if s.model == v.model and s.metric in v.metrics]
            near = [
                {e.method for e in s.entries if e.is_best or e.tied_with_best}
                for s in own
                if s.headline
            ]
            if LEADS in v.sentence:
                # in every test that shows anything, nothing else is best or tied
                assert v.use is not None and not v.tied and not v.disagree
                assert {v.use} in near
                assert all(n == {v.use} for n in near) or "with words" in v.sentence.split(LEADS)[1]
            if v.tied:
                assert all({*v.tied} <= n for n in near) or "No method is shown" in v.sentence
        for sentence in sentences(one):
            assert not re.search(r"\bnan\b|None|e\+00|below 0 |see below|  |\.\.", sentence)


# ---- models with one right explanation -------------------------------------------------------


@pytest.mark.parametrize("name", ["linear", "interaction"])
def test_where_all_methods_are_right_the_cheapest_is_named(name: str, concluded: Concluded) -> None:
    """Analyst: shap, lime and occlusion mark the same words; take the cheapest, none leads."""
    one = concluded(name)
    assert not one.health.fault and not one.health.caution
    assert one.recommendation.method == "occlusion" and not one.recommendation.cautions
    for v in one.verdicts:
        assert v.use == "occlusion" and {*v.tied} == {"shap", "lime"} and not v.disagree
        assert LEADS not in v.sentence
        assert "lime and shap score the same" in v.sentence
        assert "with words deleted or masked, the same to this model" in v.sentence
        assert v.sentence.count("100 % of the way from random scores to the best found") == 1


def test_occlusion_is_blind_where_one_word_of_several_suffices(concluded: Concluded) -> None:
    """Analyst: shap or lime; occlusion changes nothing by hiding one word and shows nothing."""
    one = concluded("saturation")
    assert not one.health.fault and one.recommendation.method in ("shap", "lime")
    for v in one.verdicts:
        assert {v.use, *v.tied} == {"shap", "lime"} and not v.disagree
        assert v.sentence.endswith("Not shown to beat random scores: occlusion.")


def test_only_the_last_words_decide(audited: Callable[[str], Audit], concluded: Concluded) -> None:
    """Analyst: shap finds the last words where words are masked; where deleted, others move up
    and no method is ahead of the others."""
    one = concluded("decoder")
    assert one.recommendation.method == "shap" and not one.health.fault
    marked = audited("decoder").run.attributions("Known", "shap").values()
    assert all(np.abs(one.scores[:-3]).max() < 1e-6 for one in marked)
    for v in one.verdicts:
        assert LEADS not in v.sentence and not v.disagree
        assert "It is best with words masked and not told apart from" in v.sentence
        assert v.sentence.endswith("with words deleted.")
    assert one.recommendation.cautions == (
        "shap is ahead of lime and occlusion only with words masked, which is how it hides words "
        "itself",
    )


# ---- models at fault -------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["constant", "dead"])
def test_nothing_is_recommended_where_answers_hang_on_no_word(
    name: str, concluded: Concluded
) -> None:
    """Analyst: the model reads nothing; no explanation of it means anything."""
    one = concluded(name)
    assert one.recommendation.method is None and not any(v.use for v in one.verdicts)
    assert (
        "nothing shows that they hang on words" in one.health.fault
        and "trained" in one.recommendation.sentence
    )
    assert one.health.moved is not None and one.health.moved < 1e-5


@pytest.mark.parametrize("k", [2, 4, 20])
def test_labels_in_another_order_are_told_with_the_order(k: int, concluded: Concluded) -> None:
    """Analyst: it is never right, but would always be with its labels one place on."""
    one = concluded(f"mislabelled, {k}")
    order = [f"topic{(i + 1) % k:02d}" for i in range(k)]
    assert one.health.label_order == tuple(order) and one.health.label_order_accuracy == 1.0
    assert one.recommendation.method is None and one.verdicts[0].use is None
    assert f"--labels {','.join(order)}" in one.recommendation.sentence
    assert one.recommendation.sentence.count(order[0]) == 1  # told once, however many there are


def test_below_chance_in_two_labels_they_are_swapped(concluded: Concluded) -> None:
    """Analyst: 0.3 of two labels is 0.7 of them swapped."""
    one = concluded("below chance")
    assert one.health.label_order == ("positive", "negative")
    assert one.health.label_order_accuracy == pytest.approx(0.7)
    assert one.recommendation.method is None


def test_a_weak_model_is_accused_of_nothing(concluded: Concluded) -> None:
    """Analyst: 0.6 of four labels is weak, but no order fits better: explain it."""
    one = concluded("weak")
    assert one.health.accuracy is not None and 0.4 < one.health.accuracy < 0.75
    assert not one.health.label_order and not one.health.fault and not one.health.caution
    assert one.recommendation.method == "occlusion"


def test_what_may_be_chance_is_a_caution(concluded: Concluded) -> None:
    """Analyst: 0.55 on 40 texts may be chance; take what is said of methods with care."""
    one = concluded("no better than chance")
    assert not one.health.fault and one.recommendation.method is not None
    assert "40 texts do not show" in one.health.caution
    assert one.recommendation.cautions == (one.health.caution,)


def test_of_two_models_only_the_faulty_one_gets_no_method(audited: Callable[[str], Audit]) -> None:
    """Analyst: judge each by itself."""
    found = audited("two models").conclusions
    assert found.of("good").recommendation.method == "occlusion"
    assert found.of("dead").recommendation.method is None
    assert "for dead" in found.of("dead").recommendation.sentence
    assert all(v.use for v in found.of("good").verdicts)


# ---- how much the texts can show -------------------------------------------------------------


@pytest.mark.parametrize(("name", "n"), [("three texts", 3), ("six texts", 6)])
def test_too_few_texts_are_told_with_how_many_suffice(
    name: str, n: int, audited: Callable[[str], Audit], concluded: Concluded
) -> None:
    """Analyst: no result of so few texts could pass; that is no failing of methods or model."""
    one = concluded(name)
    k = max(s.chance_comparisons for s in audited(name).standings if s.headline)
    assert not one.health.fault and one.recommendation.method is None
    for v in one.verdicts:
        assert f"{n} texts are too few for {k} comparisons" in v.sentence
        assert f"at least {texts_needed(k)} texts" in v.sentence and "is ahead" in v.sentence
        assert "no method is shown" not in v.sentence
    # nobody can say what the model is worth
    assert one.health.caution
    assert n != 3 or "cannot show whether the model is right oftener" in one.health.caution


def test_ways_of_hiding_that_are_one_to_a_model_are_compared_once(
    audited: Callable[[str], Audit], concluded: Concluded
) -> None:
    """Analyst: 2 x 2/256 is below 0.05; to call twelve what are two would be untrue."""
    assert {s.chance_comparisons for s in audited("eight texts").standings if s.headline} == {2}
    assert concluded("eight texts").recommendation.method == "occlusion"


def test_eight_of_eight_suffice_for_one_comparison(concluded: Concluded) -> None:
    """Analyst: ahead on all eight texts in the only comparison made, p = 2/256: that is shown."""
    one = concluded("eight texts, one comparison")
    assert one.recommendation.method == "occlusion" and LEADS not in one.verdicts[0].sentence
    assert "in one way only (deleted)" in one.verdicts[0].sentence


def test_texts_of_one_word_tell_nothing(concluded: Concluded) -> None:
    """Analyst: the only word is hidden first by any method; three longer texts are too few."""
    one = concluded("one word")
    assert one.recommendation.method is None and not one.health.fault
    for v in one.verdicts:
        assert "on 3 of 25 texts only" in v.sentence and "longer" in v.sentence
        assert "no method is shown" not in v.sentence


# ---- labels ----------------------------------------------------------------------------------


def test_a_useful_detector_of_rare_texts_is_not_at_chance(concluded: Concluded) -> None:
    """Analyst: right on less than the majority's share, but all three rare texts are found."""
    one = concluded("97:3, useful")
    state = one.health
    assert state.accuracy is not None and state.majority is not None
    assert state.accuracy < state.majority == pytest.approx(0.97)
    assert not state.fault and not state.caution and one.recommendation.method is not None


def test_always_the_common_label_is_no_reading(concluded: Concluded) -> None:
    """Analyst: 0.97 is what saying nothing gives."""
    one = concluded("97:3, constant")
    assert one.recommendation.method is None
    assert "answers negative to each of the 100 texts" in one.health.fault
    assert one.health.moved is not None and one.health.moved > 0.01  # it does read


def test_twenty_labels_are_no_hindrance(concluded: Concluded) -> None:
    """Analyst: a good model; any method that counts words is right."""
    one = concluded("twenty labels")
    assert not one.health.fault and not one.health.caution
    assert one.recommendation.method == "occlusion" and one.health.majority == pytest.approx(0.05)


def test_without_labels_methods_are_judged_all_the_same(concluded: Concluded) -> None:
    """Analyst: whether the model is right is another question, and open."""
    one = concluded("unlabelled")
    assert one.health.accuracy is None and not one.health.fault and not one.health.caution
    assert "Nobody labelled the 30 texts" in one.health.summary
    assert one.recommendation.method == "occlusion"


# ---- what was compared -----------------------------------------------------------------------


@pytest.mark.parametrize("name", ["one method", "no chance"])
def test_without_chance_that_is_a_caution(name: str, concluded: Concluded) -> None:
    """Analyst: nobody knows whether random words would do as well."""
    one = concluded(name)
    assert one.recommendation.cautions == ("nothing was compared with chance: add random_scores",)
    for v in one.verdicts:
        assert "Nothing was compared with chance" in v.sentence and LEADS not in v.sentence


def test_one_method_leads_nobody(concluded: Concluded) -> None:
    """Analyst: it beats chance; there is no other."""
    one = concluded("one method and chance")
    assert one.recommendation.method == "occlusion" and not one.recommendation.cautions
    assert LEADS not in one.verdicts[0].sentence


def test_twins_with_another_label_are_asked_whether_explanations_move(
    concluded: Concluded,
) -> None:
    """Analyst: the word that was turned is the one to be marked; to stay the same is wrong here."""
    one = concluded("turned twins")
    purposes = {v.purpose: v for v in one.verdicts}
    assert "point at the words that changed the answer" in purposes
    assert not any("slightly changed" in purpose for purpose in purposes)
    assert purposes["point at the words that changed the answer"].use == "occlusion"


def test_home_advantage_is_told(concluded: Concluded) -> None:
    """Analyst: each method wins where words are hidden its own way, so tests disagree. To order
    words none is shown to beat chance where words are deleted, so there the other test decides."""
    one = concluded("home advantage")
    order, show = one.verdicts
    assert order.use == "occlusion(hiding=mask)" and not order.disagree
    assert "No method is shown to beat random scores with words deleted" in order.sentence
    assert f"{LEADS} with words masked" in order.sentence
    assert show.disagree and not show.tied and LEADS not in show.sentence
    assert "occlusion with words deleted; occlusion(hiding=mask) with words masked" in show.sentence
    # neither is shown to beat chance where the other wins
    assert show.sentence.endswith(
        "Not shown in every test to beat random scores: occlusion(hiding=mask) and occlusion."
    )
    assert [c.split(" with ")[-1] for c in one.recommendation.cautions] == [
        "words deleted",
        "words masked",
    ]
    # the effect is told for the way of hiding under which the verdict holds
    assert "words masked" in one.recommendation.effect


def test_what_random_words_do_stands_beside_what_marked_words_do(concluded: Concluded) -> None:
    """Analyst: masking any word turns this model, so masking is no test of it. The verdict does not
    say that; what random words do, beside it, lets a reader see it."""
    one = concluded("masks frighten")
    (show,) = [v for v in one.verdicts if v.purpose.startswith("show")]
    deleted, masked = re.findall(
        r"compactness with words \w+ ([\d.]+) .*?scores ([\d.]+)", show.sentence
    )
    assert float(deleted[0]) - float(deleted[1]) > 0.3
    assert 0 <= float(masked[0]) - float(masked[1]) < 0.03


# ---- records made by hand --------------------------------------------------------------------


def entry(method: str, mean: float, **more: object) -> Entry:
    usual = {
        "low": mean,
        "high": mean,
        "n": 50,
        "undefined": 0,
        "group": "a",
        "p_best": 1.0,
        "p_chance": 0.01,
        "is_chance": False,
        "is_best": False,
        "tied_with_best": False,
        "better_than_chance": True,
    }
    return Entry(method=method, mean=mean, **{**usual, **more})  # type: ignore[arg-type]


def standing_of(metric: str, entries: tuple[Entry, ...]) -> Standing:
    return Standing(
        model="m",
        metric=metric,
        name="x",
        better="higher",
        about="",
        purpose="show words",
        headline=True,
        entries=entries,
    )


def test_a_rival_that_is_not_shown_to_beat_chance_is_still_a_rival() -> None:
    """Analyst: the second is not told apart from the first, so the first does not lead it."""
    entries = (
        entry("first", 0.5, is_best=True),
        entry("second", 0.4, tied_with_best=True, p_chance=0.06, better_than_chance=False),
        entry("random", 0.1, is_chance=True, p_chance=None, better_than_chance=None),
    )
    standing = standing_of("erasure", entries)
    (said,) = verdicts([standing])
    assert said.use == "first" and LEADS not in said.sentence
    assert "Not shown to beat random scores: second." in said.sentence


@pytest.mark.parametrize(
    ("kind", "more"),
    [
        ("text", "Give more texts, and longer ones (so far"),
        ("image", "Give more pictures, and finer segments (so far"),  # size adds none to a grid
    ],
)
def test_what_is_asked_for_is_what_would_tell_more(kind: str, more: str) -> None:
    entries = (
        entry("first", 0.5, is_best=True, n_unlike_chance=2, could_beat_chance=False,
              better_than_chance=False, p_chance=1.0),
        entry("random", 0.1, is_chance=True, p_chance=None, better_than_chance=None),
    )  # fmt: skip
    (said,) = verdicts([replace(standing_of("erasure", entries), kind=kind, chance_comparisons=1)])
    assert more in said.sentence


def test_a_rival_in_one_of_two_tests_is_not_led() -> None:
    """Analyst: it is ahead in one test only."""
    chance = entry("random", 0.1, is_chance=True, p_chance=None, better_than_chance=None)
    first = entry("first", 0.5, is_best=True)
    standings = [
        standing_of(metric, (first, second, chance))
        for metric, second in (
            ("one", entry("second", 0.4, tied_with_best=True)),
            ("other", entry("second", 0.2, p_best=0.01)),
        )
    ]
    (said,) = verdicts(standings)
    assert said.use == "first" and not said.tied and LEADS not in said.sentence
    assert "Best or tied in some of these tests: second." in said.sentence


def test_of_methods_that_tie_the_preferred_one_is_named() -> None:
    """Analyst: shap is told apart in the other test, so here, where it ties, it is named too."""
    entries = (entry("occlusion", 0.5, is_best=True), entry("shap", 0.49, tied_with_best=True))
    (usual,) = verdicts([standing_of("erasure", entries)])
    (said,) = verdicts([standing_of("erasure", entries)], preferred="shap")
    assert usual.use == "occlusion" and usual.tied == ("shap",)
    assert said.use == "shap" and said.tied == ("occlusion",)
    assert said.sentence.startswith("To show words, use shap: erasure x 0.490")
    beaten = (entries[0], entry("shap", 0.2, p_best=0.01))
    (led,) = verdicts([standing_of("erasure", beaten)], preferred="shap")
    assert led.use == "occlusion" and LEADS in led.sentence


def test_what_is_not_shown_to_beat_chance_is_not_called_chance() -> None:
    """Analyst: 0.123 against 0.029 with p = .07 of 24 texts is open."""
    open_ = entry("gradient", 0.123, is_best=True, p_chance=0.07, better_than_chance=False)
    chance = entry("random", 0.029, is_chance=True, p_chance=None, better_than_chance=None)
    assert against_chance(open_) == ("≈", "not shown to beat chance")
    (said,) = verdicts([standing_of("erasure", (open_, chance))])
    assert said.use is None and said.more_texts
    assert "no method is shown to beat random scores" in said.sentence
    assert "random scores 0.029, which does not rule out luck (p 0.07, all" in said.sentence
    assert "More texts may tell" in said.sentence


def test_what_is_surely_worse_than_chance_is_said_to_be() -> None:
    worse = entry("grad_cam", 0.001, is_best=True, p_chance=8.6e-6, better_than_chance=False)
    chance = entry("random", 0.0, is_chance=True, p_chance=None, better_than_chance=None)
    (said,) = verdicts([standing_of("consistency", (worse, chance))])
    assert said.use is None and not said.more_texts
    assert "surely worse (p 8.6e-06" in said.sentence and "rule out luck" not in said.sentence


def test_texts_of_one_label_are_no_evidence_against_a_model() -> None:
    # three orders of (2, 1): all right by chance in one of them
    assert chance_of_all_right(np.array([2, 1])) == pytest.approx(1 / 3)
    assert chance_of_all_right(np.array([5])) == 1.0
    state = Health(
        model="m",
        texts=5,
        accuracy=0.8,
        low=0.4,
        high=0.9,
        majority=1.0,
        majority_label="positive",
        chance_accuracy=0.8,
        p_vs_chance=1.0,
        can_beat_chance=False,
        moved=0.3,
    )
    assert not state.fault and "cannot show" in state.caution


def test_what_is_called_detectable_is_found_in_four_of_five() -> None:
    """By the normal distribution it was found in about half of such audits."""
    rng = np.random.default_rng(0)

    def audited(behind: float) -> Standing:
        tables = {str(i): rng.normal(size=(10, 2)) for i in range(5)}
        tables["0"][:, 1] -= behind
        return compare_all(tables, ["a", "b"])[0]

    behind = float(np.mean([audited(0.0).detectable or np.nan for _ in range(30)]))
    found = [not any(e.tied_with_best for e in audited(behind).entries) for _ in range(150)]
    assert 0.65 < np.mean(found) < 0.9


@pytest.mark.parametrize(
    ("draw", "n", "comparisons"),
    [
        (lambda rng, shape: rng.normal(size=shape), 10, 4),
        # most score 0 by either method
        (lambda rng, shape: drops(rng, shape) - drops(rng, shape), 10, 4),
        (lambda rng, shape: drops(rng, shape) - drops(rng, shape), 20, 4),
        # the better is a little ahead on most texts, and far behind on some
        (lambda rng, shape: 0.25 - rng.gamma(0.25, size=shape), 20, 4),
        (lambda rng, shape: 0.25 - rng.gamma(0.25, size=shape), 20, 40),
        (lambda rng, shape: rng.lognormal(size=shape) - rng.lognormal(size=shape), 20, 40),
    ],
)
def test_what_is_called_detectable_is_found_whatever_the_scores(
    draw: Callable[[np.random.Generator, tuple[int, int]], FloatArray], n: int, comparisons: int
) -> None:
    """By the standard deviation alone .16 to .70 of all but the first were found."""
    rng = np.random.default_rng(0)
    stated = [detectable_mean(row, comparisons) or np.nan for row in draw(rng, (200, n))]
    differences = draw(rng, (n, 300)) + np.mean(stated)
    found = paired_tests(differences) <= 0.05 / comparisons
    assert 0.75 <= found.mean() <= 0.95


def drops(rng: np.random.Generator, shape: tuple[int, int]) -> FloatArray:
    """Like the fall of a probability: three of five texts do not move at all."""
    return np.where(rng.random(shape) < 0.6, 0.0, rng.beta(0.5, 2, shape))


def test_a_lead_that_is_lower_is_detectable_as_one_that_is_higher() -> None:
    values = np.random.default_rng(0).gamma(0.5, size=(20, 2))
    higher = compare(values, ["a", "b"], better="higher").detectable
    lower = compare(-values, ["a", "b"], better="lower").detectable
    assert higher == pytest.approx(lower)


def test_methods_that_seldom_differ_are_said_to() -> None:
    """Two texts of thirty told what the spread is, and any difference above .05 seemed sure."""
    rng = np.random.default_rng(0)
    scores = np.stack([rng.normal(size=30)] * 2 + [rng.normal(size=30) - 9], axis=1)
    scores[:2, 0] += [0.2, 0.1]
    found = compare_all({"fall": scores}, ["a", "b", "random"], chance=["random"])[0]
    assert found.detectable is None and found.differing == 2
    (said,) = verdicts([replace(found, headline=True, purpose="show words")])
    assert (
        "Not told apart from it: b (they differ on 2 texts only, too few to say what differences "
        "may be missed)." in said.sentence
    )
    more = scores.copy()
    more[:, 0] += rng.normal(size=30)
    other = compare_all({"fall": more}, ["a", "b", "random"], chance=["random"])[0]
    tests = [replace(found, where="masked"), replace(other, where="deleted")]
    (both,) = verdicts([replace(s, headline=True, purpose="show words") for s in tests])
    assert re.search(
        r"differences below [\d.]+ may be missed; with words masked they differ on 2 texts only",
        both.sentence,
    )


def test_methods_that_never_differ_leave_nothing_to_miss() -> None:
    found = compare(np.random.default_rng(0).normal(size=(20, 1)).repeat(2, axis=1), ["a", "b"])
    assert found.detectable == 0 and found.differing is None


def test_of_too_few_texts_no_difference_is_called_detectable() -> None:
    values = np.random.default_rng(0).normal(size=(9, 6)) + 5.0 * np.arange(6)
    found = compare(values, [f"m{i}" for i in range(6)])
    assert texts_needed(found.comparisons) == 10 and found.detectable is None
    assert all(e.is_best or e.tied_with_best for e in found.entries)
    (said,) = verdicts([replace(found, headline=True, purpose="show words")])
    assert "to tell methods apart in 15 comparisons takes 10 texts" in said.sentence


def test_no_more_is_called_detectable_than_there_can_be() -> None:
    """A share of texts was said to need a difference of 2.56."""
    rng = np.random.default_rng(0)
    values = (rng.random((12, 4)) < (0.6, 0.55, 0.5, 0.45)).astype(float)
    names = [str(i) for i in range(12)]
    one = replace(column_of(names, values, names), methods=list("abcd"))
    free, share = (replace(one, quantity=Quantity("", "higher", share=s)) for s in (False, True))
    (unbounded, found) = (columns_compared([column], ())[0] for column in (free, share))
    assert unbounded.detectable is not None and unbounded.detectable > found.entries[0].mean
    assert found.detectable is None and found.differing is None
    (said,) = verdicts([replace(found, headline=True, purpose="show words")])
    assert "(any difference may be missed)" in said.sentence


def column_of(examples: list[str], values: FloatArray, families: list[str]) -> Column:
    return Column(
        model="",
        metric="",
        name="",
        quantity=Quantity("", "higher"),
        purpose="",
        methods=["a", "b"],
        examples=examples,
        values=values,
        families=families,
    )


def test_twins_count_once_in_what_is_detectable() -> None:
    """Every text twice is no more evidence than every text once."""
    values = np.random.default_rng(0).normal(size=(20, 2))
    names = [str(i) for i in range(20)]
    once, twice = (
        columns_compared([column_of(n, v, [x[:-1] for x in n])], ())[0]
        for n, v in (
            ([f"{x}a" for x in names], values),
            ([f"{x}{y}" for x in names for y in "ab"], values.repeat(2, axis=0)),
        )
    )
    assert once.detectable == pytest.approx(twice.detectable)


def test_what_may_be_missed_holds_for_every_method_that_is_not_told_apart() -> None:
    """Two that agree closely with the best said nothing of a third that scatters."""
    rng = np.random.default_rng(1)
    best = rng.normal(size=30)
    close, scattered = best - 0.01 + rng.normal(size=(2, 30)) * [[0.01], [1.0]]
    found = compare(
        np.stack([best, close, scattered - 0.1], axis=1), ["best", "close", "scattered"]
    )
    behind = {e.method: found.entries[0].mean - e.mean for e in found.entries if e.tied_with_best}
    assert found.detectable is not None and "scattered" in behind
    assert all(found.detectable > difference for difference in behind.values())


def test_ways_of_hiding_that_differ_in_no_figure_shown_are_one_test() -> None:
    rng = np.random.default_rng(0)
    values = rng.normal(size=(40, 2)) + np.array([1.0, 0.0])
    nearly = values + rng.normal(size=(40, 2)) * 1e-5
    tests = [
        replace(compare_all({"fall": v}, ["a", "random"], chance=["random"])[0], where=where)
        for v, where in ((values, "deleted"), (nearly, "masked"))
    ]
    (said,) = verdicts([replace(s, headline=True, purpose="show words") for s in tests])
    assert "with words deleted or masked, nearly the same to this model" in said.sentence


def test_scores_that_no_text_tells_from_chance_are_not_too_few() -> None:
    values = np.zeros((30, 2))
    found = compare_all({"fall": values}, ["a", "random"], chance=["random"])[0]
    entry = next(e for e in found.entries if e.method == "a")
    assert against_chance(entry) == ("=", "as chance in every text")


@pytest.mark.parametrize(
    ("share", "near", "least"),
    [
        (0.825, "83 %", "82 %"),
        (0.9868, "99 %", "98 %"),
        (0.99, "99 %", "99 %"),
        (float("inf"), "–", "–"),
        (float("nan"), "–", "–"),
    ],
)
def test_halves_go_up_and_bounds_go_down(share: float, near: str, least: str) -> None:
    assert (percent(share), at_least(share)) == (near, least)
