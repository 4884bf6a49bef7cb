"""The tables, claims and figures of the experiments with pseudo ground truth."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from ...results.findings import Cell, Claim, Figure, Points, Table, Verdict
from ...results.statistics import wilson
from ._idc_judging import (
    ATTENTION,
    BEST,
    FIGURES,
    FIRST_FOUR,
    FORMS,
    MAIN,
    PAPER,
    READINGS,
    SALIENCY,
    Found,
    Interval,
)

NAMES = {"wga": "WGA", "milp": "MILP", "hybrid": "Hybrid"}
TRUTHS = {**NAMES, "any": "WGA, leading one label"}
METHODS = {
    "gradient": "saliency",
    "grad_cam": "Grad-CAM",
    "integrated_gradients": "IG",
    "deep_lift": "DeepLIFT",
    "lrp": "LRP",
    "attention": "HAN attention",
}
SIDES = {"reviews": "", "people": "for people, ", "stars": "for people by stars, "}
LEARNT = {"people": "learnt from labels", "stars": "learnt from stars"}
MODELS = {"cnn": "CNN", "han": "HAN"}
BINARIES = {
    "threshold": "from 0.3 of the highest",
    "above_sd": "above mean + sd",
    "topk_ratio": "top 29 %",
    "oracle_k": "as many as the truth",
    "positive": "all above 0",
}

SURE = 0.05
"""A p-value, after all looks, below which a difference counts."""

EQUAL = 0.02
"""Kappas that differ by no more are equal: as far as the paper's four best lie apart."""

SHOWN = 3
"""So many differences are named in a claim."""
FAR_SHOWN = 6
"""So many figures that do not fit are named in a row."""

NEAR = 0.05
"""A figure that differs from the paper's by no more fits it."""

TELLING = 0.05
"""A margin of error wider than this holds anything."""
ABOUT_HALF = (0.35, 0.65)
"""What counts as about half; the paper's own shares go from 0.42 to 0.56."""


def _cell(interval: Interval, published: float | None = None, marked: bool = False) -> Cell:
    value, low, high = interval
    return Cell(value, low=low, high=high, published=published, marked=marked)


def _signed(value: float) -> str:
    return f"{value:+.3f}".replace("-", "−")


def _said(interval: Interval) -> str:
    value, low, high = map(_signed, interval)
    return f"{value} ({low} to {high})"


def _listed(pairs: Sequence[Found]) -> str:
    """Some of them: a sentence is no table."""
    more = len(pairs) - SHOWN
    return ", ".join(map(_pair, pairs[:SHOWN])) + (f" and {more} more" if more > 0 else "")


# ---- tables ---------------------------------------------------------------------------------


def _training(number: int) -> str:
    return f", training {number + 1}" if number else ""


def model_table(models: Mapping[tuple[str, str, int], Found], seed: int) -> Table:
    rows = []
    for (side, what, training), found in models.items():
        n = found["texts"]
        low, high = wilson(found["accuracy"] * n, n)
        rows.append(
            (
                f"{SIDES[side]}{MODELS[what]}{_training(training)}",
                (
                    Cell(found["accuracy"], low=low, high=high, n=n),
                    Cell(found["majority"]),
                    f"first {found['reads']} words" if found["reads"] else "all words",
                    str(found["epochs"]),
                    f"{found['seconds']:.0f} s",
                    str(seed + training),
                ),
            )
        )
    return Table(
        "Models",
        "Test accuracy beside that of always answering the most frequent label.",
        ("model", "accuracy", "most frequent", "reads", "epochs", "training", "seed"),
        tuple(rows),
    )


def truth_table(
    truths: Mapping[tuple[str, str, int], Found], published: Mapping[str, str]
) -> Table:
    rows = []
    for (side, truth, training), f in truths.items():
        printed = f" (paper {published[truth]})" if side == "reviews" else ""
        covered = [f["covered"], f["covered_test"]]
        rows.append(
            (
                f"{SIDES[side]}{TRUTHS[truth]}{_training(training)}",
                (
                    " / ".join(f"{n:,}" for n in f["sizes"].values()),
                    f"{f['documents']:,}{printed}",
                    f"{f['dropped']:,}",
                    "–" if f["gap"] is None else f"{f['gap']:.1%}",
                    "–" if f["violated"] is None else str(f["violated"]),
                    " | ".join(
                        " / ".join(f"{share:.1%}" for share in shares.values())
                        for shares in covered
                    ),
                    f"{f['seconds']:.0f} s",
                ),
            )
        )
    return Table(
        "Truths",
        "Words in the set of each label; texts used and left out (WGA: those that the model gets "
        "wrong; the others: those with too few words of the vocabulary); how much cheaper the best "
        "sets might be; texts left without a word; the share of words of a label's texts that its "
        "set covers, in training | test texts.",
        ("truth", "words", "texts", "left out", "gap", "bare", "covered", "time"),
        tuple(rows),
    )


def _methods(agreed: Found, truth: str) -> list[str]:
    """The paper's methods in its order, then the others."""
    known = agreed["agreement"][truth][MAIN]
    return [*(m for m in METHODS if m in known), *(m for m in known if m not in METHODS)]


def _over(
    trainings: Sequence[Found], truth: str, reading: str, method: str, figure: int
) -> list[Interval]:
    """A figure of a method in each training that has it."""
    of = (t["agreement"][truth][reading] for t in trainings)
    return [f[method][FIGURES[figure]] for f in of if method in f]


def _mean(intervals: Sequence[Interval], published: float | None = None) -> Cell:
    """Over trainings, whose interval is that of their mean: texts of one model are not independent.
    A single one has an interval over texts."""
    if len(intervals) == 1:
        return _cell(intervals[0], published)
    return Cell.of([value for value, _, _ in intervals], published=published, within=(-1.0, 1.0))


def method_table(
    truth: str, trainings: Sequence[Found], published: Mapping[str, Sequence[float]]
) -> Table:
    def cells(method: str, reading: str) -> list[Cell]:
        printed = published.get(method, (None,) * 3) if reading == PAPER else (None,) * 3
        return [_mean(_over(trainings, truth, reading, method, i), printed[i]) for i in range(3)]

    rows = [
        (METHODS.get(m, m), [c for reading in READINGS for c in cells(m, reading)])
        for m in _methods(trainings[0], truth)
    ]
    for column in (0, 3):
        best = max((row[column].value for _, row in rows), default=float("nan"))
        for _, row in rows:
            row[column] = replace(row[column], marked=row[column].value == best)
    texts = trainings[0]["texts"]
    return Table(
        f"Methods against {NAMES[truth]}",
        "Words that a method calls important against the truth's, pooled over the test texts that "
        f"the model gets right ({texts['cnn']:,} of the CNN's, {texts['han']:,} of the HAN's in "
        "the first training). First in profile paper: important is what scores more than a "
        "standard deviation above the mean of its text, Grad-CAM and saliency are taken at the "
        "embeddings; then as recommended (rec.): from 0.3 of a text's highest score on, "
        "Grad-CAM in the filters' maps, saliency by the gradient alone. "
        + (
            f"Means over {len(trainings)} trainings of both models, the truth learnt anew from "
            "each, with intervals over trainings; what is beyond the paper was done once, with "
            "intervals over texts."
            if len(trainings) > 1
            else "One training, with 95 % intervals over texts."
        ),
        (
            "method",
            *(f"{'rec. ' * (r == MAIN)}{name}" for r in READINGS for name in FIGURES),
        ),
        tuple((name, tuple(row)) for name, row in rows),
    )


def fit_table(
    truths: Sequence[str], trainings: Sequence[Found], published: Mapping[str, Any]
) -> Table:
    """What fits the paper and what does not: the distance of each figure from the printed one."""
    rows = []
    for truth in truths:
        for reading, said in READINGS.items():
            apart = [
                (METHODS[m], name, value, printed, abs(value - printed))
                for m, figures in published[truth].items()
                for i, (name, printed) in enumerate(zip(FIGURES, figures, strict=True))
                if (found := _over(trainings, truth, reading, m, i))
                for value in [_mean(found).value]
            ]
            far = sorted((a for a in apart if not a[-1] <= NEAR), key=lambda a: -a[-1])
            more = len(far) - FAR_SHOWN
            listed = ", ".join(
                f"{m} {name} {v:.2f} ({p:.2f})" for m, name, v, p, _ in far[:FAR_SHOWN]
            )
            rows.append(
                (
                    f"{NAMES[truth]}, {said}",
                    (
                        Cell(sum(a[-1] for a in apart) / len(apart)) if apart else None,
                        f"{len(apart) - len(far)} of {len(apart)}",
                        (listed + f" and {more} more" * (more > 0)) or "all fit",
                    ),
                )
            )
    return Table(
        "What fits the paper",
        f"How far kappa, precision and recall of its six methods lie from the printed ones, how "
        f"many within {NEAR}, and those furthest off (printed in brackets). The paper says neither "
        "how scores become important words nor where Grad-CAM is taken; profile paper is what fits "
        "its WGA figures, not what is known to have been done.",
        ("truth, reading", "mean difference", f"within {NEAR}", "does not fit"),
        tuple(rows),
    )


def binary_table(agreed: Found, binaries: Sequence[str]) -> Table:
    rows = tuple(
        (
            f"{NAMES[truth]}: {METHODS.get(method, method)}",
            tuple(_cell(by_binary[b][method]["kappa"]) for b in binaries),
        )
        for truth, by_binary in agreed["agreement"].items()
        for method in _methods(agreed, truth)
    )
    return Table(
        "Other ways to call words important",
        "Kappa where scores become important words in other ways; the paper does not say how.",
        ("truth, method", *(BINARIES[b] for b in binaries)),
        rows,
    )


def _known(found: Found) -> list[tuple[str, str]]:
    """The truths that were learnt, and their names."""
    return [(truth, name) for truth, name in NAMES.items() if truth in found]


def confidence_table(found: Found, published: Mapping[str, float]) -> Table:
    def cells(of: Mapping[str, Interval], printed: float | None) -> tuple[Cell, ...]:
        return (_cell(of["printed"], printed), *(_cell(of[n]) for n in ("ratio", "bounded")))

    whole = found["whole"]
    rows: list[tuple[str, tuple[Cell | str | None, ...]]] = [
        (
            "nothing removed",
            (_cell(whole, published["whole"]), Cell(1.0), _cell(whole), Cell(0.0), None),
        )
    ]
    for truth, name in _known(found):
        of = found[truth]
        removed = _cell(of["marked"]["removed"])
        left = cells(of["marked"], published.get(truth))
        rows.append((f"without {name}'s words", (*left, removed, None)))
        control = _cell(of["control"]["printed"])
        rows.append(
            (f"without as many at random ({name})", (*cells(of["random"], None), removed, control))
        )
    return Table(
        "Relative confidence",
        "What is left of the first CNN's confidence in texts that it gets right, in the printed "
        "form and two others; less is better for the truth. Last, by how much more is left (as "
        "printed) without as many words at random. The paper's 0.57 and 0.61 belong to MILP and "
        "Hybrid, but it does not say clearly which to which; it removed 15 to 20 % of words.",
        ("words", "printed", "ratio", "bounded", "share removed", "left more"),
        tuple(rows),
    )


def people_table(side: str, found: Found, published: Mapping[str, float]) -> Table:
    rows = [
        (TRUTHS[truth], tuple(_cell(kappas[p]) for p in found["persons"]))
        for truth, kappas in found["kappa"].items()
    ]
    blank: tuple[Cell | str | None, ...] = (None,) * (len(found["persons"]) - 1)
    mutual = _cell(found["mutual"], published["mutual"])
    return Table(
        f"Truths against people, {LEARNT[side]}",
        f"Kappa of the words of each truth with those that people marked in {found['reviews']:,} "
        f"reviews that nothing was learnt from ({found['marks']:,} readings; person 1 is whoever "
        "comes first in a review, not the same one throughout), and of people with each other. A "
        "token counts as the truth's if it holds one of its words. The paper's people read Amazon "
        "reviews.",
        ("truth", *found["persons"]),
        (*rows, ("people with each other", (*blank, mutual))),
    )


def word_table(truths: Mapping[tuple[str, str, int], Found]) -> Table:
    rows = tuple(
        (f"{SIDES[side]}{TRUTHS[truth]}: {label}", (", ".join(words),))
        for (side, truth, training), f in truths.items()
        if not training
        for label, words in f["strongest"].items()
    )
    return Table(
        "The words that decide most",
        "By the score that WGA gives them, then, as MILP's, by how many texts hold them.",
        ("truth and label", "words"),
        rows,
    )


# ---- claims ---------------------------------------------------------------------------------


def verdict(yes: bool, no: bool) -> Verdict:
    """What was shown; open where neither was."""
    return "confirmed" if yes else "not confirmed" if no else "open"


def _above(found: Found) -> bool:
    return bool(found["interval"][0] > 0 and found["p"] < SURE)


def _below(found: Found) -> bool:
    return bool(found["interval"][0] < 0 and found["p"] < SURE)


def _pair(found: Found) -> str:
    one, other = (METHODS.get(found[k], found[k]) for k in ("one", "other"))
    return (
        f"{NAMES[found['truth']]}{_training(found['training'])}: {one} − {other} "
        f"{_signed(found['interval'][0])}"
    )


def _all_above(statement: str, where: str, pairs: Sequence[Found]) -> Claim:
    """Confirmed where every difference is surely above zero; not where one is surely below."""
    sure, wrong = [d for d in pairs if _above(d)], [d for d in pairs if _below(d)]
    unsure = [d for d in pairs if d not in sure and d not in wrong]
    least = min(pairs, key=lambda d: d["interval"][0])
    return Claim(
        statement,
        verdict(len(sure) == len(pairs), bool(wrong)),
        f"{len(sure)} of {len(pairs)} differences in kappa are surely above 0 (paired bootstrap "
        f"over texts in each training, Holm over all comparisons)"
        + (f"; surely below: {_listed(wrong)}" if wrong else "")
        + (f"; not told apart: {_listed(unsure)}" if unsure else "")
        + f". The least is {_pair(least)}.",
        where,
    )


def _differences(trainings: Sequence[Found], reading: str) -> list[Found]:
    """Those of every training: a claim has to hold in each, so that a lucky one decides nothing.
    What refutes it is counted as often as was trained."""
    return [
        {**d, "training": i, "p": min(1.0, d["p"] * len(trainings))}
        for i, found in enumerate(trainings)
        for d in found["differences"]
        if d["reading"] == reading
    ]


def method_claims(trainings: Sequence[Found]) -> Iterator[Claim]:
    for reading, where in READINGS.items():
        every = _differences(trainings, reading)
        under = _under(every)
        over = [d for d in every if d["other"] == SALIENCY]
        if over:
            yield _all_above(
                f"{under} {_names(d['one'] for d in over)} agree better than saliency.", where, over
            )
        attention = [d for d in every if (d["one"], d["other"]) == (SALIENCY, ATTENTION)]
        if attention:
            yield _all_above(
                f"{under} saliency agrees better than the HAN's attention.", where, attention
            )
        lrp = [_as_first(d, BEST) for d in every if BEST in (d["one"], d["other"])]
        if lrp:
            yield _best_claim(f"LRP has the best or equal best kappa {_lower(under)}.", where, lrp)
        four = [d for d in every if d["one"] in FIRST_FOUR and d["other"] in FIRST_FOUR]
        if four:
            yield _margin_claim(where, four, trainings, reading)
        half = [found["half"][reading] for found in trainings if reading in found["half"]]
        if half:
            yield _half_claim(where, half)


def _under(pairs: Sequence[Found]) -> str:
    names = [NAMES[t] for t in NAMES if any(d["truth"] == t for d in pairs)]
    return "Under all three truths" if len(names) == 3 else f"Under {' and '.join(names)}"


def _lower(words: str) -> str:
    return words[:1].lower() + words[1:]


def _names(methods: Iterable[str]) -> str:
    """The methods that were compared, as the paper calls them."""
    seen = set(methods)
    *most, last = [METHODS[m] for m in FIRST_FOUR if m in seen]
    return f"{', '.join(most)} and {last}" if most else last


def _as_first(found: Found, method: str) -> Found:
    """The same difference with this method as the first."""
    if found["one"] == method:
        return found
    value, low, high = found["interval"]
    return {
        **found,
        "one": found["other"],
        "other": found["one"],
        "interval": [-value, -high, -low],
    }


def _best_claim(statement: str, where: str, pairs: Sequence[Found]) -> Claim:
    near = all(d["interval"][1] > -EQUAL for d in pairs)
    beaten = [d for d in pairs if _below(d)]
    worst = min(pairs, key=lambda d: d["interval"][0])
    return Claim(
        statement,
        verdict(near, bool(beaten)),
        f"equal is taken as within {EQUAL}. The worst for LRP is {_pair(worst)} (95 % interval "
        f"{_signed(worst['interval'][1])} to {_signed(worst['interval'][2])})"
        + (f"; surely beaten: {_listed(beaten)}." if beaten and not near else "."),
        where,
    )


def _margin_claim(
    where: str, pairs: Sequence[Found], trainings: Sequence[Found], reading: str
) -> Claim:
    """The margin of error is that of one kappa: half of the wider of both intervals."""

    def margin(d: Found) -> float:
        of = trainings[d["training"]]["agreement"][d["truth"]][reading]
        ends = [of[d[k]]["kappa"] for k in ("one", "other")]
        return float(max((high - low) / 2 for _, low, high in ends))

    inside = [d for d in pairs if abs(d["interval"][0]) <= margin(d)]
    beyond = [
        d
        for d in pairs
        if d["p"] < SURE and (d["interval"][1] > margin(d) or d["interval"][2] < -margin(d))
    ]
    told = sum(d["p"] < SURE for d in pairs)
    widest = max(pairs, key=lambda d: abs(d["interval"][0]))
    return Claim(
        f"{_names(d[k] for d in pairs for k in ('one', 'other'))} differ only by about a margin "
        "of error.",
        verdict(len(inside) == len(pairs) and max(map(margin, pairs)) <= TELLING, bool(beyond)),
        f"{len(inside)} of {len(pairs)} differences are within the margin of one kappa; the widest "
        f"is {_pair(widest)} at a margin of {margin(widest):.3f}. A paired test on the same texts, "
        f"which is sharper, tells {told} of them apart.",
        where,
    )


def _half_claim(where: str, shares: Sequence[Interval]) -> Claim:
    least, most = ABOUT_HALF
    return Claim(
        "Kappas under MILP are about half of those under WGA.",
        verdict(
            all(least <= low and high <= most for _, low, high in shares),
            any(high < least or low > most for _, low, high in shares),
        ),
        "the mean over the CNN's methods is "
        + ", ".join(f"{value:.2f} ({low:.2f} to {high:.2f})" for value, low, high in shares)
        + f" of WGA's (95 % interval) in the trainings; about half is taken as {least} to {most}.",
        where,
    )


def confidence_claims(found: Found) -> Iterator[Claim]:
    known = [truth for truth, _ in _known(found)]
    control = {t: found[t]["control"] for t in known}
    lower = [t for t, d in control.items() if d["printed"][0] > 0 and d["p"] < SURE]
    higher = [t for t, d in control.items() if d["printed"][0] < 0 and d["p"] < SURE]
    falls = {t: found["whole"][0] - found[t]["marked"]["printed"][0] for t in known}
    yield Claim(
        "Without the words of any of the truths confidence falls.",
        verdict(len(lower) == len(control), bool(higher)),
        "from "
        + f"{found['whole'][0]:.3f} by "
        + ", ".join(f"{falls[t]:.3f} ({NAMES[t]})" for t in known)
        + "; more than without as many random words by "
        + ", ".join(f"{_said(d['printed'])} {NAMES[t]}" for t, d in control.items())
        + " (as printed, 95 % intervals; the verdict rests on this difference).",
    )
    rivals = {t: found[t]["over_wga"] for t in known if t != "wga"}
    if not rivals:
        return
    sure = [t for t, d in rivals.items() if d["printed"][0] > 0 and d["p"] < SURE]
    wrong = [t for t, d in rivals.items() if d["printed"][0] < 0 and d["p"] < SURE]
    yield Claim(
        "WGA's words lower confidence most.",
        verdict(len(sure) == len(rivals), bool(wrong)),
        "left more without the words of "
        + ", ".join(f"{NAMES[t]}: {_said(d['printed'])}" for t, d in rivals.items())
        + "; removed were "
        + ", ".join(f"{found[t]['marked']['removed'][0]:.1%} ({NAMES[t]})" for t in known)
        + " of the words, where the paper says 15 to 20 %. "
        + "In the other forms: "
        + ", ".join(
            f"{form} {_signed(d[form][0])} ({NAMES[t]})"
            for form in FORMS[1:]
            for t, d in rivals.items()
        )
        + ".",
    )


def people_claims(side: str, found: Found) -> Iterator[Claim]:
    where = LEARNT[side]
    pairs = found["differences"]
    yield Claim(
        "Of the three truths, WGA agrees best with people.",
        verdict(all(map(_above, pairs)), any(map(_below, pairs))),
        "with all people together, WGA's kappa less that of "
        + ", ".join(f"{NAMES[d['other']]}: {_said(d['interval'])}" for d in pairs)
        + ".",
        where,
    )
    above = {p: d for p, d in found["above_mutual"]["wga"].items() if p != "all"}
    sure = {p for p, q in found["above_mutual_p"].items() if q < SURE}
    yield Claim(
        "WGA agrees with some people better than they agree with each other.",
        verdict(
            any(p in sure and value > 0 for p, (value, _, _) in above.items()),
            all(p in sure and value < 0 for p, (value, _, _) in above.items()),
        ),
        f"people agree at {found['mutual'][0]:.2f}; WGA's kappa less that is "
        + ", ".join(f"{_said(d)} with {p}" for p, d in above.items())
        + " (the verdict counts each person as a look).",
        where,
    )


# ---- figures --------------------------------------------------------------------------------


def beside_figure(
    truths: Sequence[str], trainings: Sequence[Found], published: Mapping[str, Any]
) -> Figure:
    series = []
    for truth in truths:
        for reading, said in READINGS.items():
            known = [m for m in METHODS if _over(trainings, truth, reading, m, 0)]
            cells = [_mean(_over(trainings, truth, reading, m, 0)) for m in known]
            series.append(
                Points(
                    f"{NAMES[truth]}, {said}",
                    tuple(published[truth][m][0] for m in known),
                    tuple(c.value for c in cells),
                )
            )
    ends = (0.0, max(x for s in series for x in s.x))
    return Figure(
        "Kappa: the paper's and ours",
        "a point per method, the mean over trainings; on the dashed line both are equal",
        "published",
        "ours",
        (*series, Points("equal", ends, ends, line=True, dashed=True)),
    )


def people_figure(side: str, found: Found) -> Figure:
    persons, kinds = found["persons"], len(found["kappa"])
    bars = [
        Points(
            TRUTHS[truth],
            tuple(i + (n - (kinds - 1) / 2) / 4 for i in range(len(persons))),
            tuple(kappas[p][0] for p in persons),
            low=tuple(kappas[p][1] for p in persons),
            high=tuple(kappas[p][2] for p in persons),
            bars=True,
        )
        for n, (truth, kappas) in enumerate(found["kappa"].items())
    ]
    ends = (-0.5, len(persons) - 0.5)
    mutual = Points(
        "people with each other", ends, (found["mutual"][0],) * 2, line=True, dashed=True
    )
    return Figure(
        f"Truths against people, {LEARNT[side]}",
        "with 95 % intervals over reviews",
        "whose marks",
        "kappa",
        (*bars, mutual),
        tuple(persons),
    )


def notes(
    sizes: Mapping[str, Any], validation: bool, people: str, learn_from: str, stars: str
) -> tuple[str, ...]:
    found = [
        "WGA shares an n-gram out among the filters that answer to it, and divides each text's map "
        "by its maximum, negative scores set to 0; a word belongs to a label if it leads all "
        "others. MILP looks at the words of highest TF-IDF, summed over "
        "texts (the maximum, which prefers rare words, would fit the paper's 2K texts better), "
        "without tokens that hold no letter, and of equally good sets takes the smaller.",
        f"The CNN is {sizes['cnn']}. How long its embeddings are at the start (norm) decides how "
        "far methods agree with WGA, and the paper does not say; the length of even draws within "
        "0.05, which was common, fits its figures better than ten or thirty times that. It was "
        "chosen on the first training.",
        "Truths are learnt from "
        + ("training and validation texts." if validation else "the training texts alone."),
        "Words behind the length that the CNN reads count neither for nor against its methods; the "
        "HAN reads and is judged on all of them. It is a model of its own, so what its attention "
        "lacks may be due to either.",
        f"Models are trained {sizes['seeds']} times on the same texts, and WGA and Hybrid learnt "
        "anew from each. A claim is confirmed only if it is in every training; the rest (other "
        "ways to call words important, confidence, people) is of the first. Intervals over texts "
        f"come from {sizes['draws']:,} draws of texts, tests of kappas from "
        f"{sizes['test_draws']:,}, corrected for all of one reading together.",
    ]
    if people:
        found.append(
            "For people, model and truths are learnt anew, "
            + (
                f"from {learn_from}, and compared on all reviews that people marked."
                if learn_from
                else "from 60 % of the reviews that people marked, and compared on another 20 %: "
                "the same kind of texts, and none that was learnt from."
            )
        )
    if stars:
        found.append(
            f"By stars: model and truths are learnt once more with {stars} as labels, and the sets "
            "of those that belong to one label are joined, as in the paper. A word has to lead all "
            "others then, those of like praise too, or (leading one label) any other, which can "
            "put it on both sides. That model is tested on reviews that people did not mark"
            + (", which its truths are not learnt from." if validation else ".")
        )
    return tuple(found)
