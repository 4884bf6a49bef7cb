"""The tables, claims and figures of the planted-text experiments."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from ...core.changes import DECOY, PLANTED
from ...results.findings import Cell, Claim, Figure, Points, ShownText, Table, Word
from ...results.statistics import sign_flip_test

NAMES = {"article": "Article", "cn": "CN", "nc": "NC"}
KINDS = {"rationale_cr": "continuous relaxation", "rationale_rl": "reinforcement"}
NEAR = 0.05
"""So near to the optimum is as good as there (SPEC 9.5)."""

ASTRAY = 0.03
"""A model whose selection rate on test texts is further from its target was not trained to it."""

ENOUGH = 3
"""Fewer runs say nothing about what recurs."""

LIKE_THE_PAPER = 2.0
"""A mean within so many of the paper's standard deviations of the paper's is like it."""


class Model(NamedTuple):
    """Which model a step is about."""

    dataset: str
    kind: str
    """attention, methods (all others on the former), or one of `KINDS`."""
    value: float
    """The number of the run, or the share of words to read."""
    vectors: str = ""
    """Which word vectors one with attention reads."""
    norm: float | None = None
    """How long these were made on average; None leaves them as they are."""


Found = dict[str, Any]
Attention = Mapping[str, Mapping[float, Found]]
"""By dataset and run."""
Rationales = Mapping[tuple[str, str], Mapping[float, Found]]
"""By dataset and model, then by target rate."""


def _mass(step: Found, kind: str, quantity: str = "mass", method: str = "attention") -> float:
    summaries = step["methods"].get(method, {}) if "methods" in step else step["attention"]
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


def _mean(values: list[float]) -> float:
    """Of what is known; NaN, and no warning, of nothing."""
    known = [v for v in values if not np.isnan(v)]
    return float(np.mean(known)) if known else float("nan")


def _scored(steps: Mapping[float, Found]) -> str:
    return f"{sum(bool(s['forced']) for s in steps.values())} of {len(steps)}"


def attention_table(attention: Attention, vectors: str, published: Any) -> Table:
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
                            _mean(_masses(steps, kind, "pooled_share")),
                            published=printed[f"{kind}_share"],
                        ),
                        _scored(steps),
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
                    Cell(_mean(_rest(steps, "pooled_share", decoys))),
                    _scored(steps),
                ),
            )
        )
    runs = max(len(steps) for steps in attention.values())
    lost = sum(not s["forced"] for steps in attention.values() for s in steps.values())
    norm = np.mean([s["norm_read"] for steps in attention.values() for s in steps.values()])
    return Table(
        f"Attention over {vectors}",
        f"Attr%: the share of attention that falls on each kind of word, mean ± standard deviation "
        f"over {runs} runs, below it a 95 % interval of the mean and the paper's figure; then by "
        "the label of the review; and the share of words, which is what a random map would give. "
        f"Mean norm of the vectors read: {norm:.2g}."
        + (f" Runs that do not reach the accuracy are not scored: {lost}." if lost else ""),
        ("words", "Attr%", "label a", "label the", "share of words", "runs scored"),
        tuple(rows),
        "%",
    )


def method_table(methods: Attention) -> Table:
    names = list(
        dict.fromkeys(m for steps in methods.values() for s in steps.values() for m in s["methods"])
    )
    columns = [(d, k) for d in methods for k in (PLANTED, DECOY) if d != "article" or k == PLANTED]

    def cells(method: str, quantity: str = "mass") -> tuple[Cell, ...]:
        return tuple(
            _shares([_mass(s, kind, quantity, method) for s in methods[d].values()])
            for d, kind in columns
        )

    rows = sorted(
        ((method, cells(method)) for method in names),
        key=lambda row: -np.nan_to_num(row[1][0].value),
    )
    share = cells(names[0], "share") if names else ()
    said = {PLANTED: " planted", DECOY: " decoys"}
    return Table(
        "Every other method on the models with vectors learnt from the reviews",
        "Attr% on a sample of the test reviews. Planted articles should have all of it, decoys "
        "(articles that follow no label) none.",
        ("method", *(NAMES[d] + (said[k] if d != "article" else "") for d, k in columns)),
        (*rows, ("share of words", share)),
        "%",
    )


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


def accuracy_table(found: Mapping[Model, Found]) -> Table:
    rows = tuple(
        (
            said(which),
            (
                Cell(step["norm_read"]),
                Cell(step["accuracy"]),
                Cell(step["bound"]),
                Cell(step["ceiling"]),
                Cell(step["luck"]),
                "yes" if step["forced"] else "no: not scored",
                str(step["epochs"]),
                f"{step['seconds']:.0f} s",
            ),
        )
        for which, step in found.items()
    )
    return Table(
        "Every model",
        "The mean norm of the word vectors read; test accuracy; what a model that misses the "
        "articles can reach, and one that reads nothing else; how likely so high an accuracy is by "
        "luck without them.",
        (
            "run",
            "norm",
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


def said(which: Model) -> str:
    norm = "as they are" if which.norm is None else f"norm {which.norm:g}"
    vectors = f", {which.vectors} vectors, {norm}" if which.vectors else ""
    return f"{NAMES[which.dataset]}, {which.kind.replace('_', ' ')} {which.value:g}{vectors}"


def attention_claims(attention: Attention, vectors: str) -> Iterator[Claim]:
    """What the paper says of attention, judged for one kind of word vectors."""
    steps = attention.get("article", {})
    article = _shares(_masses(steps, PLANTED))
    if article.low is not None and article.high is not None and (article.n or 0) >= ENOUGH:
        share = _mean(_masses(steps, PLANTED, "pooled_share"))
        barely = article.high <= 2 * share
        clearly = article.low > 2 * share
        yield Claim(
            "On Article, articles get barely more attention than their share of words.",
            "confirmed" if barely else "not confirmed" if clearly else "open",
            f"Attr% {article.value:.1%} (95 % interval {article.low:.1%} to {article.high:.1%}) at "
            f"a share of {share:.1%}; barely more is taken as at most twice the share.",
            vectors,
        )
    cn = _shares(_masses(attention.get("cn", {}), PLANTED))
    if cn.spread is not None and (cn.n or 0) >= ENOUGH:
        yield Claim(
            "On CN, how much attention correlating articles get differs so much between runs that "
            "its standard deviation is above its mean.",
            "confirmed" if cn.spread > cn.value else "not confirmed",
            f"{cn.value:.1%} ± {cn.spread:.1%} over {cn.n} runs.",
            vectors,
        )
    over = {
        name: [
            mass - share
            for mass, share in zip(
                _masses(attention.get(name, {}), DECOY),
                _masses(attention.get(name, {}), DECOY, "pooled_share"),
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
            vectors,
        )


@dataclass(frozen=True)
class Norms:
    """Attention on the articles of Article against the length of the word vectors (SPEC D.1)."""

    series: Mapping[tuple[str, float | None], Mapping[float, Found]]
    """By kind of vectors and the norm they were given, then by run."""
    published: Any

    @classmethod
    def of(cls, found: Mapping[Model, Found], published: Any) -> Norms:
        series: dict[tuple[str, float | None], dict[float, Found]] = defaultdict(dict)
        for which, step in found.items():
            if which.dataset == "article" and which.kind == "attention":
                series[which.vectors, which.norm][which.value] = step
        shortest = sorted(series.items(), key=lambda kept: (kept[0][0], _norm(kept[1])))
        return cls(dict(shortest), published)

    @property
    def sentence(self) -> str:
        """With which vectors the paper's figure comes out, and whether their scale decides it."""
        paper, spread = self.published["planted"]
        alike: list[str] = []
        unlike: list[str] = []
        scale_decides = False
        for vectors in self._kinds:
            cells = {
                _norm(steps): _shares(_masses(steps, PLANTED))
                for (kind, _), steps in self.series.items()
                if kind == vectors and any(s["forced"] for s in steps.values())
            }
            like = {n for n, c in cells.items() if abs(c.value - paper) <= LIKE_THE_PAPER * spread}
            for said, norms in ((alike, like), (unlike, cells.keys() - like)):
                if norms:
                    shown = ", ".join(f"{n:.2g} ({cells[n].value:.1%})" for n in sorted(norms))
                    said.append(f"{vectors} vectors of norm {shown}")
            # the same vectors, and nothing but their length differs
            above = {n for n in cells.keys() - like if cells[n].value > paper}
            scale_decides |= bool(like and above) and max(like) < min(above)
        told = [
            f"{said} with {' and with '.join(which)}"
            for said, which in (
                ("reproduces", alike),
                ("does not" if alike else "does not reproduce", unlike),
            )
            if which
        ]
        if not told:
            return ""
        decides = (
            " So it comes out with short vectors, and the paper's conclusion depends on the scale "
            "of the embeddings."
        )
        return (
            f" The paper's figure for attention on Article ({paper:.1%}, give or take "
            f"{LIKE_THE_PAPER * spread:.1%}: two standard deviations) {', and '.join(told)}."
            + (decides if scale_decides else "")
        )

    @property
    def _kinds(self) -> list[str]:
        return list(dict.fromkeys(vectors for vectors, _ in self.series))

    def table(self) -> Table:
        rows = tuple(
            (
                _vectors_said(*key),
                (
                    f"{np.mean([s['norm'] for s in steps.values()]):.2f}",
                    f"{_norm(steps):.2f}",
                    _shares(
                        _masses(steps, PLANTED),
                        published=self.published["planted"][0],
                        published_spread=self.published["planted"][1],
                    ),
                    _scored(steps),
                    f"{np.mean([s['epochs'] for s in steps.values()]):.1f}",
                ),
            )
            for key, steps in self.series.items()
        )
        return Table(
            "Attention on Article by the norm of the word vectors",
            "Attr% of articles, mean ± standard deviation over runs. The mean norm over known "
            "words, and over words as often as they are read.",
            ("vectors", "norm of words", "norm as read", "Attr%", "runs scored", "mean epochs"),
            rows,
            "%",
        )

    def figures(self) -> Iterator[Figure]:
        if len(self.series) < 2:
            return
        lengths = [_norm(steps) for steps in self.series.values()]
        ends = (min(lengths), max(lengths))
        share = _mean(
            [v for s in self.series.values() for v in _masses(s, PLANTED, "pooled_share")]
        )
        points: list[Points] = []
        for vectors in self._kinds:
            own = [steps for (v, _), steps in self.series.items() if v == vectors]
            runs = [(s["norm_read"], _mass(s, PLANTED)) for steps in own for s in steps.values()]
            points += [
                Points(f"{vectors}, each run", *_columns(runs)),
                Points(
                    f"{vectors}, mean",
                    *_columns([(_norm(s), _mean(_masses(s, PLANTED))) for s in own]),
                    line=True,
                ),
            ]
        paper = self.published["planted"][0]
        yield Figure(
            "Article: attention against the norm of the word vectors",
            "on planted articles; vectors learnt from the reviews (corpus) and those of GloVe, as "
            "they are and made shorter or longer",
            "mean norm of the vectors of the words read",
            "Attr%",
            (
                *points,
                Points(f"paper, {paper:.1%}", ends, (paper, paper), line=True, dashed=True),
                Points("share of words", ends, (share, share), line=True, dashed=True),
            ),
        )


def _columns(pairs: list[tuple[float, float]]) -> tuple[tuple[float, ...], tuple[float, ...]]:
    return tuple(x for x, _ in pairs), tuple(y for _, y in pairs)


def _norm(steps: Mapping[float, Found]) -> float:
    return float(np.mean([s["norm_read"] for s in steps.values()]))


def _vectors_said(vectors: str, norm: float | None) -> str:
    return f"{vectors}, as they are" if norm is None else f"{vectors}, norm {norm:g}"


def rationale_claims(rationales: Rationales) -> Iterator[Claim]:
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


def along_figure(attention: Attention, vectors: str) -> Iterator[Figure]:
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
                f"on planted articles, {vectors}, at weights kept whenever validation accuracy had "
                "risen",
                "test accuracy",
                "Attr%",
                tuple(lines[:8]),
            )


def shown_texts(attention: Attention, vectors: str) -> Iterator[ShownText]:
    for name, steps in attention.items():
        first = next(iter(steps.values()))
        yield ShownText(
            f"{NAMES[name]}, {vectors}, first run: attention",
            tuple(Word(*w) for w in first["text"]),
        )


def shown_rationales(rationales: Rationales) -> Iterator[ShownText]:
    for (name, kind), by_rate in rationales.items():
        rate, step = next(iter(by_rate.items()))
        yield ShownText(
            f"{NAMES[name]}, {KINDS[kind]} at {rate:g}: words read",
            tuple(Word(*w) for w in step["text"]),
        )
