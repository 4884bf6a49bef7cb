"""The tables, claims and figures of the planted-text experiments."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from ...core.changes import DECOY, PLANTED
from ...results.findings import Cell, Claim, Figure, Points, Shown, Table, Word
from ...results.statistics import sign_flip_test

NAMES = {"article": "Article", "cn": "CN", "nc": "NC"}
KINDS = {"rationale_cr": "continuous relaxation", "rationale_rl": "reinforcement"}
NEAR = 0.05
"""So near to the optimum is as good as there (SPEC 9.5)."""

ASTRAY = 0.03
"""A model whose selection rate on test texts is further from its target was not trained to it."""

ENOUGH = 3
"""Fewer runs say nothing about what recurs."""

Found = dict[str, Any]
Attention = Mapping[str, Mapping[float, Found]]
"""By dataset and run."""
Rationales = Mapping[tuple[str, str], Mapping[float, Found]]
"""By dataset and model, then by target rate."""


def _mass(step: Found, kind: str, quantity: str = "mass", method: str = "attention") -> float:
    summaries = step["attention"] if method == "attention" else step["methods"].get(method, {})
    value = summaries.get(f"attribution_mass(truth={kind})", {}).get(quantity)
    return float("nan") if value is None else float(value)


def _masses(steps: Mapping[float, Found], kind: str, quantity: str = "mass") -> list[float]:
    return [_mass(s, kind, quantity) for s in steps.values()]


def _rest(steps: Mapping[float, Found], quantity: str, decoys: bool) -> list[float]:
    taken = zip(
        _masses(steps, PLANTED, quantity),
        _masses(steps, DECOY, quantity) if decoys else [0.0] * len(steps),
        strict=True,
    )
    return [1 - a - b for a, b in taken]


def _shares(values: list[float], **published: float | None) -> Cell:
    return Cell.of(values, within=(0.0, 1.0), **published)


def attention_table(attention: Attention, published: Any) -> Table:
    rows = []
    for name, steps in attention.items():
        decoys = name != "article"
        kinds = [("correlating articles" if decoys else "articles", PLANTED)]
        kinds += [("other articles", DECOY)] if decoys else []
        printed = published[name]
        for words, kind in kinds:
            mean, spread = (*printed[kind], None)[:2]
            rows.append(
                (
                    f"{NAMES[name]}: {words}",
                    (
                        _shares(_masses(steps, kind), published=mean, published_spread=spread),
                        _shares(_masses(steps, kind, "mass_of_0")),
                        _shares(_masses(steps, kind, "mass_of_1")),
                        Cell(
                            float(np.nanmean(_masses(steps, kind, "pooled_share"))),
                            published=printed[f"{kind}_share"],
                        ),
                    ),
                )
            )
        mean, spread = printed["other"]
        rows.append(
            (
                f"{NAMES[name]}: other words",
                (
                    _shares(_rest(steps, "mass", decoys), published=mean, published_spread=spread),
                    _shares(_rest(steps, "mass_of_0", decoys)),
                    _shares(_rest(steps, "mass_of_1", decoys)),
                    Cell(float(np.nanmean(_rest(steps, "pooled_share", decoys)))),
                ),
            )
        )
    runs = max(len(steps) for steps in attention.values())
    return Table(
        "Attention",
        f"Attr%: the share of attention that falls on each kind of word, mean ± standard deviation "
        f"over {runs} runs, below it a 95 % interval of the mean and the paper's figure; then by "
        "the label of the review; and the share of words, which is what a random map would give.",
        ("words", "Attr%", "label a", "label the", "share of words"),
        tuple(rows),
        "%",
    )


def method_table(attention: Attention) -> Table:
    names = list(
        dict.fromkeys(
            m for steps in attention.values() for s in steps.values() for m in s["methods"]
        )
    )
    columns = [("article", PLANTED), ("cn", PLANTED), ("cn", DECOY), ("nc", PLANTED), ("nc", DECOY)]

    def cells(method: str, quantity: str = "mass") -> tuple[Cell, ...]:
        return tuple(
            _shares([_method_mass(s, kind, method, quantity) for s in attention[d].values()])
            for d, kind in columns
        )

    rows = sorted(
        ((method, cells(method)) for method in names),
        key=lambda row: -np.nan_to_num(row[1][0].value),
    )
    share = cells(names[0], "share") if names else ()
    return Table(
        "Every other method on the same models",
        "Attr% on a sample of the test reviews. Planted articles should have all of it, decoys "
        "(articles that follow no label) none.",
        ("method", "Article", "CN planted", "CN decoys", "NC planted", "NC decoys"),
        (*rows, ("share of words", share)),
        "%",
    )


def _method_mass(step: Found, kind: str, method: str, quantity: str = "mass") -> float:
    value = step["methods"].get(method, {}).get(f"attribution_mass(truth={kind})", {}).get(quantity)
    return float("nan") if value is None else float(value)


def rationale_table(rationales: Rationales) -> Table:
    rows = []
    for (name, kind), steps in rationales.items():
        for rate, step in steps.items():
            s = step["selection"]
            rows.append(
                (
                    f"{NAMES[name]}, {KINDS[kind]}, {rate:g}",
                    (
                        Cell(step["accuracy"], marked=not step["forced"]),
                        Cell(s["pooled_rate"]),
                        Cell(s["pooled_precision"]),
                        Cell(s.get("best_precision_dataset", np.nan)),
                        Cell(s.get("best_precision_text", np.nan)),
                        Cell(s["pooled_recall"]),
                        Cell(s.get("best_recall_dataset", np.nan)),
                        Cell(s["hit"]),
                        Cell(s["pooled_marked"]),
                        Cell(s["pooled_misleading"]),
                        f"{step['epochs']}",
                    ),
                )
            )
    return Table(
        "Rationales",
        "What models that must choose their words chose on the test reviews, in all, beside the "
        "best that is possible at the same rate with the budget over the whole set and review by "
        "review. Bold accuracy: too low to force the use of articles.",
        (
            "dataset, model, target rate",
            "accuracy",
            "rate",
            "precision",
            "best (set)",
            "best (review)",
            "recall",
            "best (set)",
            "hit rate",
            "articles",
            "decoys",
            "epochs",
        ),
        tuple(rows),
    )


def accuracy_table(found: Mapping[tuple[str, str, float], Found]) -> Table:
    rows = tuple(
        (
            f"{NAMES[name]}, {kind.replace('_', ' ')} {which:g}",
            (
                Cell(step["accuracy"]),
                Cell(step["bound"]),
                Cell(step["ceiling"]),
                Cell(step["luck"]),
                "yes" if step["forced"] else "no: not scored",
                str(step["epochs"]),
                f"{step['seconds']:.0f} s",
            ),
        )
        for (name, kind, which), step in found.items()
    )
    return Table(
        "Every model",
        "Test accuracy; what a model that misses the articles can reach, and one that reads "
        "nothing else; how likely so high an accuracy is by luck without them.",
        (
            "run",
            "accuracy",
            "without articles",
            "articles alone",
            "luck",
            "must use articles",
            "epochs",
            "training",
        ),
        rows,
    )


def claims(
    attention: Attention,
    rationales: Rationales,
) -> Iterator[Claim]:
    article = _shares(_masses(attention["article"], PLANTED))
    shares = _masses(attention["article"], PLANTED, "pooled_share")
    if article.low is not None and article.high is not None and (article.n or 0) >= ENOUGH:
        share = float(np.nanmean(shares))
        barely = article.high <= 2 * share
        clearly = article.low > 2 * share
        yield Claim(
            "On Article, articles get barely more attention than their share of words.",
            "confirmed" if barely else "not confirmed" if clearly else "open",
            f"Attr% {article.value:.1%} (95 % interval {article.low:.1%} to {article.high:.1%}) at "
            f"a share of {share:.1%}; barely more is taken as at most twice the share.",
        )
    cn = _shares(_masses(attention["cn"], PLANTED))
    if cn.spread is not None and (cn.n or 0) >= ENOUGH:
        yield Claim(
            "On CN, how much attention correlating articles get differs so much between runs that "
            "its standard deviation is above its mean.",
            "confirmed" if cn.spread > cn.value else "not confirmed",
            f"{cn.value:.1%} ± {cn.spread:.1%} over {cn.n} runs.",
        )
    over = {
        name: [
            mass - share
            for mass, share in zip(
                _masses(attention[name], DECOY),
                _masses(attention[name], DECOY, "pooled_share"),
                strict=True,
            )
            if not np.isnan(mass)
        ]
        for name in ("cn", "nc")
    }
    if min(map(len, over.values())) >= ENOUGH:
        more = {name: np.mean(np.array(v) > 0) for name, v in over.items()}
        yield Claim(
            "Articles that tell nothing often get more attention than their share, most on NC.",
            "confirmed"
            if min(more.values()) >= 0.5 and np.mean(over["nc"]) > np.mean(over["cn"])
            else "not confirmed",
            "; ".join(
                f"{NAMES[n]}: above their share in {more[n]:.0%} of runs, by "
                f"{np.mean(over[n]):+.1%} on average"
                for n in over
            )
            + ".",
        )
    yield from _rationale_claims(rationales)


def _rationale_claims(rationales: Rationales) -> Iterator[Claim]:
    for kind, said in KINDS.items():
        steps = rationales.get(("article", kind), {})
        if steps:
            yield _near_best_claim(kind, said, steps)
    levels = [
        {level: _gap(s["selection"], level) for level in ("dataset", "text")}
        for steps in rationales.values()
        for rate, s in steps.items()
        if _counts(rate, s)
    ]
    if len(levels) >= ENOUGH:
        further = np.array([gap["dataset"] - gap["text"] for gap in levels])
        p = sign_flip_test(further)
        yield Claim(
            "Models lie on the optimum of a budget over the whole set rather than per review.",
            "open" if p >= 0.05 else "confirmed" if further.mean() < 0 else "not confirmed",
            f"{np.mean(further < 0):.0%} of {len(levels)} models are nearer to the former; mean "
            f"distance in precision and recall {np.mean([g['dataset'] for g in levels]):.3f} "
            f"against {np.mean([g['text'] for g in levels]):.3f} (p {p:.2g}, paired sign flips).",
        )
    apart = [
        s["selection"]
        for (name, _), steps in rationales.items()
        if name != "article"
        for rate, s in steps.items()
        if _counts(rate, s)
    ]
    if len(apart) >= ENOUGH:
        marked = [s["pooled_marked"] for s in apart]
        yield Claim(
            "On CN and NC almost only articles are selected.",
            "confirmed" if np.mean(marked) >= 0.9 else "not confirmed",
            f"{np.mean(marked):.0%} of the selected words are articles (from {min(marked):.0%} to "
            f"{max(marked):.0%} of {len(marked)} models).",
        )
    pairs = [
        (rl["selection"]["pooled_misleading"], cr["selection"]["pooled_misleading"])
        for name in ("cn", "nc")
        for rate, rl in rationales.get((name, "rationale_rl"), {}).items()
        for cr in [rationales.get((name, "rationale_cr"), {}).get(rate)]
        if cr is not None and _counts(rate, rl) and _counts(rate, cr)
    ]
    if pairs:
        more = sum(a > b for a, b in pairs)
        yield Claim(
            "Reinforcement selects more articles that tell nothing than continuous relaxation.",
            "open"
            if len(pairs) < ENOUGH or 0 < more < len(pairs)
            else ("confirmed" if more else "not confirmed"),
            f"{np.mean([a for a, _ in pairs]):.0%} of its words against "
            f"{np.mean([b for _, b in pairs]):.0%}; more at {more} of {len(pairs)} datasets and "
            "rates.",
        )


def _near_best_claim(kind: str, said: str, steps: Mapping[float, Found]) -> Claim:
    """All rates but the lowest must be near, where the paper excepts it; models that came to
    another rate, or need not use articles, are not."""
    near = {rate: _counts(rate, s) and _gap(s["selection"]) <= NEAR for rate, s in steps.items()}
    excepted = kind == "rationale_cr"
    needed = sorted(near)[1:] if excepted else sorted(near)
    off = [f"{rate:g}" for rate, ok in near.items() if not ok]
    astray = [f"{rate:g}" for rate, s in steps.items() if not _counts(rate, s)]
    return Claim(
        f"On Article, {said} selects nearly as well as possible"
        + (", except at the lowest rate." if excepted else "."),
        "open"
        if len(steps) < ENOUGH
        else ("confirmed" if all(near[r] for r in needed) else "not confirmed"),
        f"precision and recall within {NEAR} of the best over the whole set at "
        f"{sum(near.values())} of {len(near)} rates"
        + (f", not at {', '.join(off)}" if off else "")
        + (f" (of these, {', '.join(astray)} missed the rate or the accuracy)" if astray else "")
        + ".",
    )


def _counts(rate: float, step: Found) -> bool:
    """A model that must use articles, and reads as many words as it was to read."""
    reached = step["selection"].get("pooled_rate")
    return bool(step["forced"]) and reached is not None and abs(reached - rate) <= ASTRAY


def _gap(selection: Mapping[str, float], level: str = "dataset") -> float:
    """How far precision and recall are from the best, the larger of the two."""
    gaps = [
        abs(float(selection[f"pooled_{q}"]) - float(selection[f"best_{q}_{level}"]))
        for q in ("precision", "recall")
        if selection.get(f"pooled_{q}") is not None
        and selection.get(f"best_{q}_{level}") is not None
    ]
    return max(gaps) if len(gaps) == 2 else float("inf")


def rationale_figures(
    rationales: Rationales,
) -> Iterator[Figure]:
    for name in NAMES:
        kinds = {kind: steps for (n, kind), steps in rationales.items() if n == name}
        for quantity in ("precision", "recall") if name == "article" else ("precision",):
            dots = [
                Points(
                    KINDS[kind],
                    tuple(s["selection"]["pooled_rate"] for s in steps.values()),
                    tuple(s["selection"][f"pooled_{quantity}"] or np.nan for s in steps.values()),
                )
                for kind, steps in kinds.items()
            ]
            if not dots:
                continue
            every = sorted(
                (s["selection"] for steps in kinds.values() for s in steps.values()),
                key=lambda s: s["pooled_rate"],
            )
            curves = [
                Points(
                    said,
                    tuple(s["pooled_rate"] for s in every),
                    tuple(s.get(f"best_{quantity}_{level}", np.nan) for s in every),
                    line=True,
                    dashed=level == "text",
                )
                for level, said in (
                    ("dataset", "best, budget over the set"),
                    ("text", "best, budget per review"),
                )
            ]
            yield Figure(
                f"{NAMES[name]}: {quantity}",
                "of the selected words against planted articles",
                "share of words selected",
                quantity,
                (*dots, *curves),
            )


def along_figure(attention: Attention) -> Iterator[Figure]:
    for name, steps in attention.items():
        lines = [
            Points(
                f"run {int(i)}",
                tuple(accuracy for accuracy, _ in s["along"]),
                tuple(mass for _, mass in s["along"]),
                line=True,
            )
            for i, s in steps.items()
            if len(s["along"]) > 1
        ]
        if lines:
            yield Figure(
                f"{NAMES[name]}: attention along training",
                "on planted articles, at weights kept whenever validation accuracy had risen",
                "test accuracy",
                "Attr%",
                tuple(lines[:8]),
            )


def shown_texts(
    attention: Attention,
    rationales: Rationales,
) -> Iterator[Shown]:
    for name, steps in attention.items():
        first = next(iter(steps.values()))
        yield Shown(f"{NAMES[name]}, first run: attention", tuple(Word(*w) for w in first["text"]))
    for (name, kind), by_rate in rationales.items():
        rate, step = next(iter(by_rate.items()))
        yield Shown(
            f"{NAMES[name]}, {KINDS[kind]} at {rate:g}: words read",
            tuple(Word(*w) for w in step["text"]),
        )
