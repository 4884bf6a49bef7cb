"""Structures such as A but B, and whether a model decides on the right clause."""

from __future__ import annotations

import json
import math
import statistics
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from commands import run_command
from conftest import SHARED, words
from veracity.changes import changed
from veracity.changes.structure import DOMINANT, OTHER, RULE
from veracity.core.attributions import Attribution
from veracity.core.errors import DataError, PluginError
from veracity.core.examples import Dataset, Example
from veracity.core.metrics import Case
from veracity.data.loading import load_data
from veracity.metrics import metrics
from veracity.metrics.rule_consistency import RuleConsistency, contributions, difference_p
from veracity.rules import Mode, Rule, detect, known_rules, read_rules, rules_named

FOUR = rules_named("but, yet, though, while")


def clauses(text: str, mode: Mode, rules: tuple[Rule, ...] = FOUR) -> list[tuple[str, str, str]]:
    """Rule, what stands before the keyword, and what after it."""
    read = words(text)
    found = []
    for s in detect(read, rules, mode).structures:
        one, other = (" ".join(np.array(read.words)[mask]) for mask in (s.dominant, s.other))
        first = known_rules()[s.rule].dominant == "before"
        found.append((s.rule, one, other) if first else (s.rule, other, one))
    return found


def test_ex_4_1_modes_of_detection() -> None:
    assert clauses("good but slow", "strict") == [("but", "good", "slow")]
    assert clauses("but i like it", "strict") == []
    two = "good but slow yet fun"
    assert clauses(two, "strict") == []
    assert clauses(two, "all") == [("but", "good", "slow yet fun"), ("yet", "good but slow", "fun")]
    assert clauses("i try but but fail", "strict") == []
    assert clauses("i try but but fail", "first") == [("but", "i try", "but fail")]


def test_ex_4_9_though_and_yet() -> None:
    said = "even though it rains yet we walk"
    assert clauses(said, "strict") == []
    assert clauses(said, "all") == [
        ("though", "even", "it rains yet we walk"),
        ("yet", "even though it rains", "we walk"),
    ]


def test_what_dominates_is_as_the_table_says() -> None:
    """SPEC 4.1."""
    sides = {name: known_rules()[name].dominant for name in ("but", "yet", "though", "while")}
    assert sides == {"but": "after", "yet": "after", "though": "before", "while": "before"}


def test_texts_that_are_passed_over_say_why() -> None:
    assert detect(words("good , but ..."), FOUR).reason == "a clause without words"
    assert detect(words("but it is good"), FOUR).reason == "a clause without words"
    assert detect(words("good but bad but good"), FOUR).reason == "more than one keyword"
    assert detect(words("but but but"), FOUR).structures == ()
    assert detect(words("a butter knife"), FOUR).reason == ""
    assert detect(words(""), FOUR).structures == ()


def test_chinese_turns() -> None:
    rules = rules_named("danshi, suiran")
    (one,) = detect(words("房间很小，但是服务很好。"), rules[:1]).structures
    text = words("房间很小，但是服务很好。")
    assert "服务" in np.array(text.words)[one.dominant]
    assert "房间" in np.array(text.words)[one.other]
    (one,) = detect(words("虽然房间很小，服务很好。"), rules).structures
    text = words("虽然房间很小，服务很好。")
    assert "".join(np.array(text.words)[one.other]) == "房间很小"
    assert "".join(np.array(text.words)[one.dominant]) == "服务很好"
    # a keyword of Chinese is none in a text without a Chinese character
    assert detect(words("no turn here"), rules).reason == ""


@pytest.mark.skipif(not SHARED.exists(), reason="no shared data")
def test_counts_on_the_treebank() -> None:
    """Of 1,066 sentences with one *but* that is not first, and 1,082 with any, four have no word
    on one side of it: what is left of the latter are the paper's 1,078."""
    texts = [
        words(line.partition("\t")[2])
        for part in ("train", "dev", "test")
        for line in (SHARED / f"sst/sst2.{part}.tsv").read_text("utf-8").splitlines()[1:]
    ]
    assert len(texts) == 9613
    asked: tuple[tuple[str, Mode], ...] = (
        *(("but", "strict"), ("but", "first")),
        ("but, yet, though, while", "strict"),
    )
    found = [
        sum(bool(detect(t, rules_named(rules), mode).structures) for t in texts)
        for rules, mode in asked
    ]
    assert found == [1062, 1078, 1225]


# ---- rules of the user's own ------------------------------------------------------------------


def written(folder: Path, text: str) -> Path:
    file = folder / "mine.toml"
    file.write_text(text, "utf-8")
    return file


def test_rules_in_a_few_lines(tmp_path: Path) -> None:
    file = written(
        tmp_path,
        '[however]\nkeywords = ["however", "on the other hand"]\n'
        "[last_sentence]\npattern = '(?P<other>.+[.!?])\\s+(?P<dominant>[^.!?]+[.!?]*)$'\n",
    )
    rules = rules_named(f"{file}")
    text = words("It was long. However, I liked it")
    found = detect(text, rules, "all").structures
    assert [s.rule for s in found] == ["last_sentence", "however"]
    assert " ".join(np.array(text.words)[found[0].dominant]) == "However , I liked it"
    assert " ".join(np.array(text.words)[found[1].dominant]) == ", I liked it"
    (one,) = detect(words("cheap on the other hand dull"), rules).structures
    assert one.sign == (1, 5) and one.dominant.tolist() == [False] * 5 + [True]


def test_a_later_rule_takes_the_place_of_one_of_its_name(tmp_path: Path) -> None:
    file = written(tmp_path, "[but]\nkeywords = ['except']\n")
    assert [r.keywords for r in rules_named(f"but, {file}")] == [("except",)]
    assert [r.keywords for r in rules_named(f"{file}, but")] == [("but",)]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("[mine]\nabout = 'x'\n", "rule mine: expected keywords or a pattern, got neither"),
        ("[mine]\nkeywords = ['x']\npattern = 'y'\n", "got both"),
        ("[mine]\nkeywords = ['']\n", "expected each keyword to be a word"),
        ("[mine]\nkeywords = 'but'\n", "expected keywords to be a list of words"),
        ("[mine]\nkeywords = ['x']\ndominant = 'left'\n", "before or after, got 'left'"),
        ("[mine]\nkeywords = ['x']\nside = 'left'\n", "unknown side; a rule has"),
        ("[mine]\npattern = '('\n", "cannot read the pattern"),
        ("[mine]\npattern = '.*'\n", "the groups dominant and other"),
        ("mine = 3\n", r"expected a table such as \[mine\]"),
        ("[mine\n", "expected TOML"),
        (
            "[mine]\nkeywords = ['x']\n[mine]\nkeywords = ['y']\n",
            "expected TOML with a table for each",
        ),
        ("", "got none"),
    ],
)
def test_bad_rules_are_told(text: str, told: str, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=told):
        read_rules(written(tmp_path, text))


def test_a_pattern_without_end_is_stopped(tmp_path: Path) -> None:
    file = written(tmp_path, "[slow]\npattern = '^(?P<other>(a|a)+)(?P<dominant>c)$'\n")
    with pytest.raises(DataError, match=r"rule slow came to no end within 1 s"):
        detect(words("a" * 60 + "cd"), rules_named(str(file)))
    everything = written(tmp_path, "[all]\npattern = '(?P<other>.*)(?P<dominant>.*)'\n")
    assert detect(words("good and bad"), rules_named(str(everything)), "all").structures == ()


def test_unknown_rules_are_told(tmp_path: Path) -> None:
    with pytest.raises(PluginError, match="did you mean 'but'"):
        rules_named("butt")
    with pytest.raises(DataError, match="cannot read the rules"):
        rules_named(str(tmp_path / "nowhere.toml"))
    with pytest.raises(PluginError, match="no rule is called 'xyz'"):
        changed(sentences("a but b"), "structure(rules=('xyz',))")


def sentences(*texts: str, label: int = 1) -> Dataset:
    examples = (Example(str(i), words(text), label) for i, text in enumerate(texts))
    return Dataset("some", ("negative", "positive"), tuple(examples))


def test_structures_are_marked_in_data() -> None:
    data = changed(sentences("good but slow yet fun", "all good"), "structure(mode=all)")
    first, second = data
    assert first.facts[RULE] == "but,yet" and RULE not in second.facts
    assert [m.tolist() for m in first.truths[DOMINANT]] == [
        [False, False, True, True, True],
        [False, False, False, False, True],
    ]
    assert [m.sum() for m in first.truths[OTHER]] == [1, 3]
    assert len(changed(sentences("a but b", "c"), "structure(alone=true)")) == 1


# ---- the metric -------------------------------------------------------------------------------


def test_ex_4_2_contributions() -> None:
    a, b = np.array([0.02, -0.10, 0.01, -0.30]), np.array([0.03, 0.25, 0.05, 0.60])
    sums = [float(contributions(w, 0.8, "split").sum()) for w in (a, b)]
    assert sums == pytest.approx([0.104, 0.744])
    assert [s / 4 for s in sums] == pytest.approx([0.026, 0.186])
    assert [float(contributions(w, 0.8, "literal").sum()) for w in (a, b)] == pytest.approx(
        [-0.21, 0.93]
    )
    assert [float(contributions(w, 0.1, "split").sum()) for w in (a, b)] == pytest.approx(
        [0.363, 0.093]
    )
    assert [float(contributions(w, 0.1, "literal").sum()) for w in (a, b)] == pytest.approx(
        [0.35, 0.93]
    )
    assert contributions(a, 0.8, "abs").tolist() == [0.02, 0.10, 0.01, 0.30]


def test_ex_4_3_sums_favour_the_longer_clause() -> None:
    a, b = np.array([0.3, 0.3]), np.full(7, 0.1)
    by_sum, by_mean = RuleConsistency(), RuleConsistency(reduction="mean")
    assert by_sum.reduced(a) == pytest.approx(0.6) and by_sum.reduced(b) == pytest.approx(0.7)
    assert by_mean.reduced(a) == pytest.approx(0.3) and by_mean.reduced(b) == pytest.approx(0.1)
    top = RuleConsistency(reduction="topk_mean", k=2)
    assert top.reduced(np.array([0.1, 0.5, 0.3])) == pytest.approx(0.4)


A = np.array([0.016, 0.02, 0.008, 0.06])


def test_ex_4_4_not_significant() -> None:
    b = np.array([0.024, 0.2, 0.04, 0.48])
    assert difference_p(A, b, "student") == pytest.approx(0.183279, abs=1e-6)
    assert difference_p(A, b, "welch") == pytest.approx(0.227548, abs=1e-6)


def test_t_tests_are_those_of_scipy() -> None:
    from scipy import stats

    rng = np.random.default_rng(0)
    for n, m in ((2, 2), (1, 5), (7, 3), (30, 12)):
        one, other = rng.normal(0, 1, n), rng.normal(0.3, 2, m)
        assert difference_p(one, other, "student") == pytest.approx(
            stats.ttest_ind(one, other).pvalue
        )
        if n > 1:
            expected = stats.ttest_ind(one, other, equal_var=False).pvalue
            assert difference_p(one, other, "welch") == pytest.approx(expected)


def test_ex_4_5_significant() -> None:
    b = np.array([0.32, 0.36, 0.40, 0.48])
    assert difference_p(A, b, "student") == pytest.approx(5.5022e-05, abs=1e-8)
    assert difference_p(A, b, "mannwhitney") == pytest.approx(2 / 70)
    assert difference_p(A, b, "permutation") == pytest.approx(2 / 70)


@pytest.mark.parametrize("values", [[0.1, 0.2, 0.3], [0.5, 0.1, 0.1, 0.3, 0.2], [0.2, 0.2, 0.7]])
def test_all_permutations_of_a_single_word(values: list[float]) -> None:
    def difference(place: int) -> float:
        return values[place] - statistics.mean(v for i, v in enumerate(values) if i != place)

    every = [difference(i) for i in range(len(values))]
    low = statistics.mean(d <= every[0] + 1e-12 for d in every)
    high = statistics.mean(d >= every[0] - 1e-12 for d in every)
    one, other = np.array(values[:1]), np.array(values[1:])
    for pair in ((one, other), (other, one)):
        assert difference_p(*pair, "permutation") == pytest.approx(min(1, 2 * min(low, high)))


def test_ex_4_6_few_words() -> None:
    def p(*values: list[float]) -> float:
        return difference_p(np.array(values[0]), np.array(values[1]), "student")

    assert p([0.1], [0.2, 0.3]) == pytest.approx(0.333333, abs=1e-6)
    assert math.isnan(p([0.1], [0.2]))
    assert p([0.1, 0.1], [0.2, 0.2]) == 0
    assert math.isnan(p([0.1, 0.1], [0.1, 0.1]))


def test_ex_4_7_outcomes() -> None:
    metric = RuleConsistency()
    found = [
        metric.outcome(right=True, dominant=0.7, other=0.1, p=0.01),
        metric.outcome(right=True, dominant=0.7, other=0.1, p=0.2),
        metric.outcome(right=True, dominant=0.1, other=0.7, p=0.01),
        metric.outcome(right=False, dominant=0.7, other=0.1, p=0.001),
    ]
    assert found == ["consistent", "not_significant", "wrong_side", "wrong"]
    assert np.mean([o == "consistent" for o in found]) == 0.25
    assert metric.outcome(right=True, dominant=1, other=0, p=0.05) == "consistent"
    strict = RuleConsistency(strict=True)
    assert strict.outcome(right=True, dominant=1, other=0, p=0.05) == "not_significant"
    assert metric.outcome(right=True, dominant=1, other=0, p=math.nan) == "not_significant"


def scored(text: str, scores: list[float], p1: float, **settings: Any) -> dict[str, float]:
    """A sentence of the label positive, explained as given."""
    (example,) = changed(sentences(text), "structure")
    target = settings.pop("target", 1)
    signed = np.array(scores) * (1 if target else -1)
    case = Case(example, None, np.array([1 - p1, p1]), Attribution(example.input, target, signed))  # type: ignore[arg-type]
    (row,) = RuleConsistency(**settings).score([case])
    return dict(row)


FIRST = [0.02, 0.025, 0.01, 0.075]


@pytest.mark.parametrize("target", [0, 1])
def test_ex_4_8_scores(target: int) -> None:
    """The words of example 4.4, then those of 4.5, by the probability of the positive label; the
    label that is explained makes no difference."""
    weak = scored("a b c d but e f g h", [*FIRST, 0, 0.03, 0.25, 0.05, 0.6], 0.8, target=target)
    assert weak["not_significant"] == 1 and weak["p"] == pytest.approx(0.183279, abs=1e-6)
    strong = [*FIRST, 0, 0.40, 0.45, 0.50, 0.60]
    assert scored("a b c d but e f g h", strong, 0.8, target=target)["consistent"] == 1
    assert scored("a b c d though e f g h", strong, 0.8, target=target)["wrong_side"] == 1
    assert scored("a b c d but e f g h", strong, 0.4, target=target)["wrong"] == 1


def test_ex_4_10_sum_against_maximum() -> None:
    row = scored("a b c but d e", [0.2, 0.2, 0.2, 0, 0.3, 0.05], 1.0)
    assert (row["other"], row["dominant"]) == pytest.approx((0.6, 0.35))
    assert (row["other_most"], row["dominant_most"]) == pytest.approx((0.2, 0.3))
    assert row["p"] == pytest.approx(0.805840, abs=1e-6) and row["wrong_side"] == 1


def test_profiles() -> None:
    paper, released = (
        metrics.make(f"rule_consistency(profile={p})") for p in ("paper", "released")
    )
    assert isinstance(paper, RuleConsistency) and isinstance(released, RuleConsistency)
    assert paper.contribution == "literal" and paper.reduction == "sum"
    assert (released.reduction, released.tested, released.strict) == ("topk_mean", "topk", True)


def test_several_structures_are_scored_apart() -> None:
    (example,) = changed(sentences("a b but c yet d"), "structure(mode=all)")
    scores = np.array([0.0, 0.1, 0.0, 0.2, 0.0, 0.9])
    case = Case(example, None, np.array([0.1, 0.9]), Attribution(example.input, 1, scores))  # type: ignore[arg-type]
    metric = RuleConsistency(level=0.99)
    (row,) = metric.score([case])
    assert row["structures"] == 2
    summary = metric.summary([row, {}])
    assert summary["structures"] == 2
    assert (
        sum(summary[name] for name in ("wrong", "wrong_side", "not_significant", "consistent")) == 1
    )


def test_texts_without_a_structure_have_no_row() -> None:
    (example,) = sentences("plain")
    case = Case(example, None, np.array([0.1, 0.9]), Attribution(example.input, 1, np.array([0.1])))  # type: ignore[arg-type]
    assert RuleConsistency().score([case]) == [{}]
    assert "'other'" in RuleConsistency().missing(sentences("plain"))
    # the made reviews mark what decides, and nothing else
    assert RuleConsistency().missing(load_data("made_reviews(n=20)"))


# ---- verbs ------------------------------------------------------------------------------------


def test_what_rules_find_is_shown(tmp_path: Path) -> None:
    (tmp_path / "data.csv").write_text(
        "text,label\n"
        "good but <b>slow</b>,negative\nslow but good,positive\nbut good,positive\n"
        "fine though long,positive\nall good,positive\n"
    )
    found = run_command(
        *(
            "rules",
            "find",
            "data.csv",
            "--page",
            "page.html",
            "--records",
            "marked.jsonl",
            "--json",
        ),
        cwd=tmp_path,
    )
    assert found.returncode == 0, found.stderr
    told = json.loads(found.stdout)
    assert told["by_rule"]["but"] == {"negative": 1, "positive": 1}
    assert (told["texts"], told["with_structure"]) == (5, 3)
    assert told["passed_over"] == {"a clause without words": 1}
    page = (tmp_path / "page.html").read_text("utf-8")
    assert "<b>slow" not in page and 'class="clause dominant"' in page
    marked = load_data(tmp_path / "marked.jsonl")
    assert {"dominant", "other"} == set(marked.truth_kinds)
    again = run_command("rules", "find", "data.csv", "--records", "marked.jsonl", cwd=tmp_path)
    assert again.returncode == 2 and "marked.jsonl" in again.stderr
    wrong = run_command("rules", "find", "data.csv", "--mode", "any", cwd=tmp_path)
    assert wrong.returncode == 2 and "expected mode to be" in wrong.stderr


def test_rules_are_listed(tmp_path: Path) -> None:
    said = run_command("list", "rules", cwd=tmp_path)
    assert said.returncode == 0
    assert all(name in said.stdout for name in ("but", "yet", "though", "while", "danshi"))


class ByClause:
    """Answers by what stands after *but* alone, or by the mean of all words."""

    labels = ("negative", "positive")

    def __init__(self, obeys: bool) -> None:
        self.obeys = obeys

    def probabilities(self, inputs: Any) -> Any:
        found = []
        for text in inputs:
            said = list(text.words)
            if self.obeys and "but" in said:
                said = said[said.index("but") + 1 :]
            z = sum({"good": 2.0, "great": 2.0, "bad": -2.0, "dull": -2.0}.get(w, 0) for w in said)
            found.append([1 / (1 + np.exp(z)), 1 / (1 + np.exp(-z))])
        return np.array(found)


def test_the_clause_that_moves_the_answer() -> None:
    data = changed(sentences("bad and dull but good", "good"), "structure")
    rows = {}
    for obeys in (True, False):
        model = ByClause(obeys)
        cases = [
            Case(e, model, model.probabilities([e.input])[0], None)  # type: ignore[arg-type]
            for e in data
        ]
        rows[obeys] = metrics.make("clause_effect").score(cases)
        assert rows[obeys][1] == {}
    assert rows[True][0]["decides"] == 1 and rows[True][0]["kept"] == 1
    assert rows[True][0]["other"] == pytest.approx(0)
    # all words: the answer is negative, and owed to the first clause
    assert rows[False][0]["decides"] == 0 and rows[False][0]["kept"] == 0


@pytest.mark.parametrize(
    ("labels", "clause", "others", "concluded", "says"),
    [
        ("n,p", -1, True, True, "is right on 1.000 of 24 texts with a structure"),
        ("p,n", -1, True, False, "Nothing is concluded of how by_clause.py:answer decides"),
        ("n,p", 0, True, True, "is right on 0.000 of 24 texts with a structure"),
        ("n,p", 0, False, True, "it may go by the other clause, or its labels may be turned"),
    ],
)
def test_a_model_is_judged_by_texts_without_a_structure(
    labels: str, clause: int, others: bool, concluded: bool, says: str, tmp_path: Path
) -> None:
    """One that goes by the other clause is wrong in every sentence that has two, and so is one
    whose labels are turned: only the second is not to be explained."""
    texts = [("the cast was dull but good", 1), ("the cast was good but dull", 0)] * 12
    texts += [("a good film", 1), ("a dull film", 0)] * 15 * others
    rows = "\n".join(f"{text} {i},{'np'[label]}" for i, (text, label) in enumerate(texts))
    (tmp_path / "own.csv").write_text(f"text,label\n{rows}\n", "utf-8")
    (tmp_path / "by_clause.py").write_text(
        "import numpy as np\n"
        "def answer(texts):\n"
        f"    heard = [t.split(' but ')[{clause}] for t in texts]\n"
        "    z = np.array([t.count('good') - t.count('dull') for t in heard])\n"
        "    p = 1 / (1 + np.exp(-3.0 * z))\n"
        "    return np.stack([1 - p, p], axis=1)\n",
        "utf-8",
    )
    command = ("rules", "audit", "by_clause.py:answer", "own.csv", "--labels", labels)
    done = run_command(*command, "--methods", "occlusion", "--out", "run", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    page = (tmp_path / "run/rules.html").read_text("utf-8")
    for said in (" ".join(done.stdout.split()), page):
        assert says in said
        assert ("Nothing is concluded of how" in said) != concluded
        assert ("owes it significantly to the clause that ought to decide" in said) == concluded
        assert ("moves more for the one that ought to decide" in said) == concluded
