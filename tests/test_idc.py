"""The experiments with pseudo ground truth, small."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from veracity.core.errors import DataError, PluginError
from veracity.core.examples import Dataset, Example
from veracity.core.inputs import Text
from veracity.core.truths import WordSets
from veracity.data.loading import load_data
from veracity.data.records import write_records
from veracity.metrics.truth_agreement import agreement
from veracity.recipes.papers import recipes
from veracity.recipes.papers._idc_findings import IdcReader
from veracity.recipes.papers._idc_judging import (
    FIGURES,
    FORMS,
    MAIN,
    PAPER,
    READINGS,
    AgreementCounts,
    method_agreement,
    people_agreement,
    pooled,
    resampled,
)
from veracity.recipes.papers.idc import TRUTHS, Idc, held, strongest
from veracity.results.findings import Cell, Findings
from veracity.results.statistics import percentiles, resampling_tests

SIX = ("gradient", "grad_cam", "integrated_gradients", "deep_lift", "lrp", "attention")


# ---- the whole ------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def marked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Reviews in which one person marked all opinions and another those that decide."""
    data = load_data("made_reviews(n=240, seed=5)")
    examples = [
        replace(e, truths={"rationale": (*e.truths["polarity"], *e.truths["rationale"])}, facts={})
        for e in data
    ]
    path = tmp_path_factory.mktemp("people") / "people.jsonl"
    write_records(replace(data, examples=tuple(examples)), path)
    return path


def test_idc_runs_and_goes_on(marked: Path, tmp_path: Path) -> None:
    programme = "words=200, least=1, seconds=0.3"
    sources = {
        "wga": "gram_activation",
        "milp": f"integer_program({programme})",
        "hybrid": "hybrid",
    }
    tiny = {
        "limit": 400,
        "explained": 60,
        "cnn": "idc_cnn(size=16, filters=12, dropout=0.1)",
        "han": "hierarchical_attention(size=12, hidden=6, attention=6)",
        "training": {"epochs": 4, "learning_rate": 0.01},
        "methods": ["gradient", "lrp", "deep_lift", "grad_cam", "random_scores"],
        "truths": sources,
        "people_truths": sources,
    }
    # a truth learnt otherwise than the scale says, and reviews with stars
    own = f"hybrid({programme}, scale=none)"
    with (tmp_path / "stars.tsv").open("w") as file:
        file.write("label\tstars\ttext\n")
        data = load_data("made_reviews(n=300, seed=8)")
        for i, e in enumerate(data):
            file.write(f"{data.labels[e.label]}\t{1 + 3 * e.label + i // 2 % 2}\t{e.input.text}\n")
    learn = f"learn_from={str(tmp_path / 'stars.tsv')!r}, stars=stars"
    recipe = recipes.make(f"idc(people={str(marked)!r}, {learn}, hybrid={own!r})")
    steps: list[Any] = []

    def go() -> Findings:
        return recipe.run(
            tmp_path / "run",
            scale="smoke",
            sizes=tiny,
            data="made_reviews(n=400)",
            seed=0,
            workers=1,
            watch=steps.append,
        )

    first = go()
    tables = {t.title: dict(t.rows) for t in first.tables}
    # a training more: another model, other words, the same programme over words
    assert {"CNN", "HAN", "CNN, training 2", "HAN, training 2"} < set(tables["Models"])
    assert [row for row in tables["Truths"] if "training" in row] == [
        *("WGA, training 2", "Hybrid, training 2")
    ]
    learnt_twice = [
        (tmp_path / f"run/steps/reviews-wga{i}/words.json").read_text() for i in ("", "-1")
    ]
    assert learnt_twice[0] != learnt_twice[1]
    assert list(tables["Methods against WGA"]) == [
        *("saliency", "Grad-CAM", "DeepLIFT", "LRP", "HAN attention", "random_scores")
    ]
    lrp, random = (tables["Methods against WGA"][m][0] for m in ("LRP", "random_scores"))
    assert isinstance(lrp, Cell) and isinstance(random, Cell)
    assert lrp.published == 0.59 and random.published is None
    assert (lrp.n, random.n) == (2, None) and random.low is not None
    assert lrp.value > 0.3 > random.value
    rows = ("without WGA's words", "without as many at random (WGA)")
    (without, *_), (control, *_) = (tables["Relative confidence"][row] for row in rows)
    assert isinstance(without, Cell) and isinstance(control, Cell)
    assert without.published == 0.52 and without.value < control.value - 0.02
    people = tables["Truths against people, learnt from labels"]
    mutual, wga = people["people with each other"][-1], people["WGA"][-1]
    assert isinstance(mutual, Cell) and isinstance(wga, Cell)
    assert 0.5 < mutual.value < 1 and wga.value > 0.1
    starred = tables["Truths against people, learnt from stars"]
    assert list(starred) == [
        *("WGA", "MILP", "Hybrid", "WGA, leading one label", "people with each other")
    ]
    assert starred["people with each other"] == people["people with each other"]
    # what leads all other stars leads one of them
    strict, lax = (
        WordSets.load(tmp_path / f"run/steps/stars-{what}/words.json") for what in ("wga", "any")
    )
    assert strict.labels == ("1", "2", "4", "5") and "margin=any" in lax.facts["source"]
    assert all(few <= many for few, many in zip(strict.words, lax.words, strict=True))
    both = ("person 1", "person 2", "all")
    assert [f.names for f in first.figures] == [(), both, both]
    assert [c.where for c in first.claims] == [
        *("in profile paper",) * 5, *("as recommended",) * 5, "", "",
        *("learnt from labels",) * 2, *("learnt from stars",) * 2,
    ]  # fmt: skip
    learnt = json.loads((tmp_path / "run/steps/people-hybrid/found.json").read_text())["found"]
    assert "scale=none" in learnt["source"]
    with pytest.raises(PluginError, match="gram_activation"):
        recipes.make("idc(wga=gram_activaton)")
    with pytest.raises(PluginError, match="idc_cnn"):
        recipes.make("idc(cnn=idc_cn)")
    for wrong in ("('milp',)", "('wga', 'nonsense')"):
        with pytest.raises(PluginError, match="expected wga, and of milp, hybrid"):
            recipes.make(f"idc(truths={wrong})")
    # nothing is done again, and the same is found
    run = tmp_path / "run"
    written = {f: f.stat().st_mtime_ns for f in (run / "steps").rglob("*") if f.is_file()}
    assert (steps[-1].done, steps[-1].total) == (22, 22)
    assert repr(go()) == repr(first) == repr(Findings.read(run))
    assert written == {f: f.stat().st_mtime_ns for f in (run / "steps").rglob("*") if f.is_file()}


def test_reviews_that_nobody_marked_twice_are_told(tmp_path: Path) -> None:
    write_records(load_data("made_reviews(n=20)"), tmp_path / "once.jsonl")
    recipe = Idc(people=str(tmp_path / "once.jsonl"))
    with pytest.raises(DataError, match="two people or more"):
        recipe._marked(Idc.at_scale("smoke"), 0)


def test_people_are_compared_on_reviews_that_nothing_was_learnt_from(marked: Path) -> None:
    sizes = Idc.at_scale("smoke")
    parts, asked = Idc(people=str(marked))._marked(sizes, 0)
    assert [len(p) for p in (parts.train, parts.validation, parts.test)] == [144, 48, 48]
    learnt = {e.input.text for part in (parts.train, parts.validation) for e in part}
    assert not learnt & {e.input.text for e in asked}
    assert [e.id for e in asked] == [e.id for e in parts.test]
    # other reviews to learn from leave all for the comparison, under the same labels
    parts, asked = Idc(people=str(marked), learn_from="made_reviews(n=50)")._marked(sizes, 0)
    assert (len(parts.train), len(parts.validation), len(asked)) == (40, 10, 240)
    assert parts.train.labels == parts.test.labels == asked.labels


def test_stars_belong_to_labels(marked: Path, tmp_path: Path) -> None:
    def starred(rows: list[str]) -> Any:
        (tmp_path / "stars.tsv").write_text("label\tstars\ttext\n" + "\n".join(rows))
        recipe = Idc(people=str(marked), learn_from=str(tmp_path / "stars.tsv"), stars="stars")
        parts, _ = recipe._marked(Idc.at_scale("smoke"), 0)
        return parts, *recipe._starred(parts, 0)

    names = ("negative", "positive")
    rows = [f"{names[i % 2]}\t{1 + i % 2 * 3 + i // 2 % 2}\ttext number {i}" for i in range(100)]
    coarse, fine, belongs = starred(rows)
    assert fine.train.labels == ("1", "2", "4", "5") and belongs == (0, 0, 1, 1)
    assert [e.id for e in fine.train] == [e.id for e in coarse.train]
    assert [belongs[e.label] for e in fine.train] == [e.label for e in coarse.train]
    tested = {e.id for e in fine.test} | {e.id for e in fine.validation}
    assert tested == {e.id for e in coarse.validation}
    with pytest.raises(DataError, match="go with one label"):
        starred([*rows, *(f"{names[i % 2]}\t3\tmore text {i}" for i in range(50))])
    # nothing is finer in a corpus
    recipe = Idc(people=str(marked), learn_from="made_reviews(n=60)", stars="stars")
    parts, _ = recipe._marked(Idc.at_scale("smoke"), 0)
    with pytest.raises(DataError, match="expected more stars"):
        recipe._starred(parts, 0)
    with pytest.raises(ValueError, match="column of learn_from"):
        Idc(people=str(marked), stars="stars")


def test_tokens_of_people_hold_words_of_ours() -> None:
    sets = WordSets(("no", "yes"), (frozenset({"dull"}), frozenset({"great", "well"})))
    text = Text.of_words(["Great,", "well-made", "dull", "greatest", "fun."])
    assert held(sets, Example("0", text, 1)).tolist() == [True, True, False, False, False]
    assert held(sets, Example("0", text, 0)).tolist() == [False, False, True, False, False]


def test_strongest_words_by_score_or_by_texts() -> None:
    words = (frozenset({"a"}), frozenset({"b", "c", "d"}))
    scored = WordSets(("0", "1"), words, {"b": (0, 0.3), "c": (0, 0.9), "d": (0, 0.3), "a": (1, 0)})
    texts = ("b d", "d c d d", "D x")
    data = Dataset(
        "d",
        ("0", "1"),
        tuple(Example(str(i), Text.of_words(t.split()), 1) for i, t in enumerate(texts)),
    )
    assert strongest(scored, data, 1) == ["c", "d", "b"]
    assert strongest(WordSets(("0", "1"), words), data, 1) == ["d", "b", "c"]


# ---- figures --------------------------------------------------------------------------------


def some_counts(texts: int, columns: int, seed: int = 0) -> Any:
    rng = np.random.default_rng(seed)
    return rng.integers(0, 6, size=(texts, columns, 4)).astype(float)


def test_drawn_kappas_equal_the_slow_way() -> None:
    counts = some_counts(12, 3)
    drawn = pooled(resampled(counts, draws=40, seed=7))
    rng = np.random.default_rng(7)
    for draw in drawn:
        times = rng.multinomial(12, np.full(12, 1 / 12))
        texts = [i for i, n in enumerate(times) for _ in range(n)]
        assert len(texts) == 12
        for column, kappa in enumerate(draw):
            tp, fp, fn, tn = (sum(counts[i, column, k] for i in texts) for k in range(4))
            assert kappa == pytest.approx(agreement(tp, fp, fn, tn)["kappa"])


def test_figures_of_sums_are_those_of_agreement_at_the_edges_too() -> None:
    rng = np.random.default_rng(1)
    sums = np.array([*np.ndindex(2, 2, 2, 2), *rng.integers(0, 9, (30, 4)).tolist()], dtype=float)
    for name in FIGURES:
        expected = [agreement(*row)[name] for row in sums]
        assert pooled(sums, name) == pytest.approx(np.array(expected), nan_ok=True)


def test_intervals_of_pooled_kappas_cover_what_they_should() -> None:
    """Half of all texts agree well and half badly: how wide a kappa of 100 texts varies is known
    from drawing such texts anew."""
    rng = np.random.default_rng(0)

    def drawn_texts() -> Any:
        good = rng.random(100) < 0.5
        return np.where(good[:, None], [8.0, 2, 2, 8], [4.0, 6, 6, 4])[:, None]

    anew = [pooled(drawn_texts().sum(axis=0))[0] for _ in range(500)]
    ends = [percentiles(pooled(resampled(drawn_texts(), draws=300, seed=i)))[0] for i in range(40)]
    assert np.mean(ends, axis=0) == pytest.approx(np.quantile(anew, [0.025, 0.975]), abs=0.03)


def test_p_values_of_draws() -> None:
    draws = np.array([[1.0, -1.0, 0.0, 1.0]] * 99)
    draws[:10, 3] = -1.0
    assert resampling_tests(draws) == pytest.approx([0.02, 0.02, 1.0, 0.22])


def agreed(quality: dict[str, float], seed: int, texts: int = 300) -> AgreementCounts:
    """Methods that call a share of the important words important, and of the others less."""
    rng = np.random.default_rng(seed)
    looks = tuple((truth, reading) for reading in READINGS for truth in TRUTHS)
    counts = np.zeros((texts, len(quality), len(looks), 4))
    for i, (truth, _) in enumerate(looks):
        fade = 0.5 if truth == "milp" else 1.0
        for j, good in enumerate(quality.values()):
            tp = rng.binomial(4, good * fade, size=texts)
            fp = rng.binomial(16, 0.1, size=texts)
            counts[:, j, i] = np.stack([tp, fp, 4 - tp, 16 - fp], axis=1)
    return AgreementCounts(tuple(f"t{i}" for i in range(texts)), tuple(quality), looks, counts)


def test_methods_are_compared_on_texts_that_both_models_get_right() -> None:
    cnn = agreed(dict.fromkeys(SIX[:-1], 0.7) | {"gradient": 0.4}, seed=1)
    han = agreed({"attention": 0.2}, seed=2).on([f"t{i}" for i in range(299, 99, -1)])
    found = method_agreement(cnn, han, draws=200, test_draws=2000, seed=0)
    assert found["texts"] == {"cnn": 300, "han": 200, "both": 200}
    pair = next(d for d in found["differences"] if (d["one"], d["other"]) == (SIX[0], SIX[-1]))
    assert (pair["reading"], pair["truth"]) == (PAPER, "wga")
    both = [t for t in cnn.texts if t in han.texts]
    one = agreement(*cnn.on(both).of("gradient", "wga", PAPER).sum(axis=0))["kappa"]
    other = agreement(*han.of("attention", "wga", PAPER).sum(axis=0))["kappa"]
    assert pair["interval"][0] == pytest.approx(one - other)
    assert pair["interval"][1] > 0 and pair["p"] < 0.05
    kappa = found["agreement"]["wga"]["threshold"]["lrp"]["kappa"]
    assert kappa[0] == pytest.approx(agreement(*cnn.of("lrp", "wga", MAIN).sum(axis=0))["kappa"])
    assert verdicts(found)[:2] == ["confirmed"] * 2


def test_people_against_truths_and_each_other() -> None:
    def mask(*places: int) -> Any:
        return np.isin(np.arange(6), places)

    marks = [[mask(0, 1), mask(0)], [mask(2), mask(2, 3)], [mask(4), mask(4), mask(5)]] * 4
    truths = {"wga": [mask(0), mask(2), mask(4)] * 4, "milp": [mask(5), mask(5), mask(0)] * 4}
    found = people_agreement(marks, truths, draws=50, test_draws=100, seed=0)
    assert found["persons"] == ["person 1", "person 2", "all"]  # a third is there too rarely
    # person 1 marks 4 words in 18, WGA 3 of these: tp 3, fp 1, fn 0, tn 14
    assert found["kappa"]["wga"]["person 1"][0] == pytest.approx(agreement(3, 1, 0, 14)["kappa"])
    # seven readings; the third person of the last review found another word
    assert found["kappa"]["wga"]["all"][0] == pytest.approx(agreement(6, 3, 1, 32)["kappa"])
    # the first two: in two reviews one of them has a word more, in the third they agree
    assert found["mutual"][0] == pytest.approx(agreement(3, 1, 1, 13)["kappa"])
    assert found["differences"][0]["interval"][0] > 0.5


# ---- claims ---------------------------------------------------------------------------------


def difference(truth: str, one: str, other: str, value: float, p: float = 0.001) -> Any:
    ends = [value, value - 0.01, value + 0.01]
    return {"truth": truth, "one": one, "other": other, "interval": ends, "p": p, "reading": PAPER}


def confidence(wga: float = 0.2, p: float = 0.001) -> Any:
    def said(value: float) -> Any:
        return {form: [value, value - 0.01, value + 0.01] for form in FORMS}

    def of(fall: float) -> Any:
        return {
            "marked": said(0.75 - fall) | {"removed": [0.17, 0.16, 0.18]},
            "random": said(0.72) | {"removed": [0.17, 0.16, 0.18]},
            "control": said(fall - 0.03) | {"p": p},
            "over_wga": said(wga - fall) | {"p": p},
        }

    return {"whole": [0.75] * 3, "wga": of(wga), "milp": of(0.1), "hybrid": of(0.12)}


def figures(p: float = 0.001, **changes: Any) -> Any:
    """What the paper printed, as if we had found it."""
    printed = Idc.settings()["published"]
    kappas = {t: {m: row[0] for m, row in printed[t].items()} for t in TRUTHS}
    for name, value in changes.items():
        for of in kappas.values():
            of[name] = value
    four = ("lrp", "deep_lift", "grad_cam", "integrated_gradients")
    pairs = [
        *((m, "gradient") for m in four),
        *((m, n) for i, m in enumerate(four) for n in four[i + 1 :]),
        *(("gradient", "attention"), ("lrp", "attention")),
    ]
    return {
        "texts": {"cnn": 1600, "han": 1600, "both": 1400},
        "agreement": {
            t: {PAPER: {m: {"kappa": [k, k - 0.025, k + 0.025]} for m, k in of.items()}}
            for t, of in kappas.items()
        },
        "differences": [
            difference(t, one, other, of[one] - of[other], p)
            for t, of in kappas.items()
            for one, other in pairs
        ],
        "half": {PAPER: [0.43, 0.40, 0.46]},
    }


def reader(*trainings: Any, **people: Any) -> IdcReader:
    results = {("reviews", "methods", i): found for i, found in enumerate(trainings)}
    marked = {(side, "agreement", 0): found for side, found in people.items()}
    return IdcReader(Idc.declarations(), results | marked)


def verdicts(*trainings: Any) -> list[str]:
    claims = reader(*trainings).method_claims()
    return [c.verdict for c in claims if c.where == READINGS[PAPER]]


def of_confidence(*given: float, **more: float) -> list[str]:
    found = reader({"confidence": confidence(*given, **more)})
    return [claim.verdict for claim in found.confidence_claims()]


def test_the_papers_own_figures_confirm_its_claims() -> None:
    assert verdicts(figures()) == ["confirmed"] * 5
    assert of_confidence() == ["confirmed"] * 2


def test_a_claim_has_to_hold_in_every_training() -> None:
    assert verdicts(figures(), figures(), figures()) == ["confirmed"] * 5
    assert verdicts(figures(), figures(gradient=0.7))[0] == "refuted"
    assert verdicts(figures(), figures(p=0.4))[0] == "open"
    # a look in each of three trainings: what refutes in one may be luck
    assert verdicts(figures(), figures(), figures(gradient=0.7, p=0.03))[0] == "open"
    wide = figures() | {"half": {PAPER: [0.9, 0.85, 0.95]}}
    assert verdicts(figures(), wide)[4] == "refuted"


def test_one_truth_alone_makes_its_own_claims() -> None:
    found = figures() | {"half": {}}
    found["differences"] = [d for d in found["differences"] if d["truth"] == "wga"]
    claims = list(reader(found).method_claims())
    assert [c.verdict for c in claims] == ["confirmed"] * 4
    assert claims[0].statement.startswith("Under WGA LRP, DeepLIFT")
    alone = {k: v for k, v in confidence().items() if k in ("whole", "wga")}
    one = reader({"confidence": alone})
    assert [c.verdict for c in one.confidence_claims()] == ["confirmed"]
    rows = dict(one.confidence_table().rows)
    assert len(rows) == 3


def test_claims_are_refuted_by_the_opposite() -> None:
    assert verdicts(figures(gradient=0.7))[0] == "refuted"
    assert verdicts(figures(attention=0.7))[1] == "refuted"
    assert verdicts(figures(deep_lift=0.8))[2:4] == ["refuted"] * 2
    assert verdicts(figures() | {"half": {PAPER: [0.9, 0.85, 0.95]}})[4] == "refuted"
    assert of_confidence(0.01) == ["refuted"] * 2


def test_claims_stay_open_where_nothing_is_sure() -> None:
    assert verdicts(figures(p=0.4))[:2] == ["open"] * 2
    # LRP may be worse than DeepLIFT by more than counts as equal, but that is not sure
    assert verdicts(figures(p=0.4, deep_lift=0.61, lrp=0.59))[2] == "open"
    assert verdicts(figures() | {"half": {PAPER: [0.6, 0.5, 0.7]}})[4] == "open"
    # few texts make a margin so wide that anything is within it
    few = figures()
    for of in few["agreement"].values():
        for figure in of[PAPER].values():
            value = figure["kappa"][0]
            figure["kappa"] = [value, value - 0.3, value + 0.3]
    for pair in few["differences"]:
        value = pair["interval"][0]
        pair["interval"] = [value, value - 0.3, value + 0.3]
    assert verdicts(few)[3] == "open"
    assert of_confidence(p=0.2) == ["open"] * 2


def test_figures_are_means_over_trainings_beside_the_papers() -> None:
    printed = Idc.settings()["published"]

    def training(more: float) -> Any:
        of = {
            m: {name: [row[i] + more, 0.0, 1.0] for i, name in enumerate(FIGURES)}
            for m, row in printed["wga"].items()
        }
        return {"texts": {"cnn": 9, "han": 8}, "agreement": {"wga": dict.fromkeys(READINGS, of)}}

    several = [training(0.02), training(0.04), training(0.06)]
    extra = several[0]["agreement"]["wga"][PAPER] | {"lime": {n: [0.9, 0.8, 1] for n in FIGURES}}
    several[0]["agreement"]["wga"] = dict.fromkeys(READINGS, extra)
    rows = dict(reader(*several).method_table("wga").rows)
    lrp, lime = rows["LRP"][0], rows["lime"][0]
    assert isinstance(lrp, Cell) and isinstance(lime, Cell)
    assert lrp.value == pytest.approx(0.63) and (lrp.n, lrp.published) == (3, 0.59)
    # over trainings, whatever the intervals over texts: 0.04 and t of 2 degrees, 4.303
    assert lrp.spread == pytest.approx(0.02)
    assert (lrp.low, lrp.high) == pytest.approx((0.63 - 0.0497, 0.63 + 0.0497), abs=1e-3)
    assert (lime.low, lime.high, lime.marked, lrp.marked) == (0.8, 1, True, False)
    recommended = rows["LRP"][3]
    assert isinstance(recommended, Cell) and recommended.published is None
    fit = dict(reader(*several).fit_table().rows)["WGA, in profile paper"]
    assert isinstance(fit[0], Cell) and fit[0].value == pytest.approx(0.04)
    assert fit[1:] == ("18 of 18", "all fit")
    far = dict(reader(training(0.1)).fit_table().rows)["WGA, in profile paper"]
    assert far[1] == "0 of 18" and "and 12 more" in str(far[2])


def people_figures(wga: float, other: float, p: float = 0.001) -> Any:
    above = [wga - 0.35, wga - 0.37, wga - 0.33]
    return {
        "reviews": 309,
        "marks": 900,
        "persons": ["person 1", "all"],
        "mutual": [0.35, 0.33, 0.37],
        "kappa": {},
        "above_mutual": {"wga": {"person 1": above, "all": above}},
        "above_mutual_p": {"person 1": p},
        "differences": [difference("all", "wga", t, wga - other, p) for t in ("milp", "hybrid")],
    }


def test_claims_about_people() -> None:
    def said(*values: float) -> list[str]:
        claims = reader(people=people_figures(*values)).people_claims("people")
        return [claim.verdict for claim in claims]

    assert said(0.45, 0.2) == ["confirmed", "confirmed"]
    assert said(0.1, 0.2) == ["refuted", "refuted"]
    assert said(0.35, 0.3, 0.5) == ["open", "open"]


def test_published_figures_are_those_of_the_paper() -> None:
    printed = Idc.settings()["published"]
    assert all(set(printed[t]) == set(SIX) for t in TRUTHS)
    assert printed["wga"]["lrp"] == [0.59, 0.72, 0.63]
    assert printed["milp"]["attention"] == [0.09, 0.13, 0.19]
    assert printed["hybrid"]["integrated_gradients"] == [0.42, 0.56, 0.50]
    assert printed["wga"]["gradient"] == [0.33, 0.40, 0.53]
    assert printed["confidence"] == {"whole": 0.75, "wga": 0.52}
    assert json.loads(json.dumps(printed)) == printed
