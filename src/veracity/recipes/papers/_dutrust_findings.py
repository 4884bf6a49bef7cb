"""The tables, figures and claims of the experiments on trustworthiness."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from ...core.inputs import BoolArray, FloatArray
from ...core.plugins import parse_spec
from ...metrics.erasure import Erasure
from ...results.findings import Cell, Claim, Figure, Points, Table, Verdict
from ...results.statistics import (
    grouped_interval,
    holm,
    percentiles,
    resampled_sums,
    share_interval,
    sign_flip_test,
    wilson,
)

Found = dict[str, Any]
Trained = Mapping[tuple[str, str], Found]
"""By course and model."""
Tried = Mapping[tuple[str, str], Found]
"""By trial and model."""

NAMES = {
    "lstm": "LSTM",
    "encoder": "encoder",
    "knowing": "encoder, sentiment first",
}
PAPERS = {"lstm": "LSTM", "encoder": "ERNIE-base", "large": "ERNIE-large", "knowing": "SKEP"}
IG, ATT, LIME = "integrated_gradients", "attention", "lime"
BY_SIZE = "new_p_by_size"
"""New_P of words ranked by the absolute value of their scores, as in profile `paper`."""
SHARES = {BY_SIZE, *(name for name, quantity in Erasure.quantities.items() if quantity.share)}
SURE = 0.05
DRAWS = 2000


# ---- cells ----------------------------------------------------------------------------------


def values(step: Found, method: str, quantity: str) -> FloatArray:
    """A figure per example, NaN where there is none. (examples,)"""
    row = step["methods"].get(method, {}).get(quantity)
    found = [np.nan] * len(step["examples"]) if row is None else row
    return np.array([np.nan if v is None else v for v in found], dtype=np.float64)


def sides(step: Found) -> dict[str, BoolArray]:
    """Which examples are originals, twins, and all of them."""
    twin = np.array(step["twins"], dtype=np.bool_)
    return {"originals": ~twin, "twins": twin, "all": np.ones(len(twin), dtype=np.bool_)}


def mean_cell(
    step: Found, method: str, quantity: str, side: str = "all", published: float | None = None
) -> Cell | None:
    """A mean over texts with its interval, pairs drawn whole; None where nothing is defined."""
    row = values(step, method, quantity)
    some = sides(step)[side] & ~np.isnan(row)
    if not some.any():
        return None
    groups = [name for name, taken in zip(step["partners"], some, strict=True) if taken]
    interval = share_interval if quantity in SHARES else grouped_interval
    low, high = interval(row[some], groups)
    return Cell(float(row[some].mean()), None, low, high, int(some.sum()), published)


def micro_cell(
    step: Found, method: str, side: str = "all", published: float | None = None
) -> Cell | None:
    """F1 of counts pooled over texts, with its interval."""
    counts = np.stack([values(step, method, q) for q in ("hits", "chosen", "known")], axis=1)
    some = sides(step)[side] & ~np.isnan(counts).any(axis=1)
    if not some.any():
        return None
    groups = np.unique(np.array(step["partners"])[some], return_inverse=True)[1]
    pooled = np.zeros((int(groups.max()) + 1, 3))
    np.add.at(pooled, groups, counts[some])
    drawn = resampled_sums(pooled, draws=DRAWS)
    ((low, high),) = percentiles(_f1(drawn)[:, None])
    value = float(_f1(pooled.sum(axis=0, keepdims=True))[0])
    return Cell(value, None, float(low), float(high), int(some.sum()), published)


def _f1(sums: FloatArray) -> FloatArray:
    hits, chosen, known = sums.T
    with np.errstate(invalid="ignore"):
        found: FloatArray = 2 * hits / (chosen + known)
    return found


def _rate(share: Mapping[str, Any], published: float | None = None) -> Cell | None:
    if not share["total"]:
        return None
    value = share["correct"] / share["total"]
    return Cell(value, None, share["low"], share["high"], share["total"], published)


def _percent(number: float) -> float:
    return number / 100


def _printed(number: float | None) -> float | None:
    return None if number is None else _percent(number)


# ---- tables ---------------------------------------------------------------------------------


def accuracy_table(
    trained: Trained, tried: Tried, course_of: Mapping[str, str], published: Any
) -> Table:
    rows: list[tuple[str, tuple[Cell | str | None, ...]]] = []
    for (trial, model), step in tried.items():
        test = trained[course_of[trial], model]
        own = Cell(test["accuracy"], None, *wilson(test["right"], test["texts"]), n=test["texts"])
        found = step.get("robustness")
        if found:
            cells = (
                *(_rate(found[side]) for side in ("originals", "twins", "all")),
                f"{found['lost']} lost, {found['gained']} gained of {step['pairs']}",
                f"{found['p']:.2g}",
            )
        elif "accuracy" in step:
            right = step["accuracy"] * step["texts"]
            low, high = wilson(right, step["texts"])
            every = Cell(step["accuracy"], None, low, high, step["texts"])
            cells = (None, None, every, "no twins", "")
        else:
            cells = (None, None, None, "no labels", "")
        rows.append((f"{trial}, {NAMES[model]}", (own, *cells)))
    for model, figures in published["accuracy"].items():
        rows.append(
            (
                f"paper, {PAPERS[model]}",
                (*(Cell(_percent(f)) for f in figures), "1,502 pairs", ""),
            )
        )
    return Table(
        "Robustness",
        "Accuracy on the test part of what a model was trained on, then on originals, on their "
        "adversarial twins and on all; below each a 95 % interval. Lost are pairs of which only "
        "the original is right; p is of a paired test of twins against originals.",
        ("texts, model", "own test", "originals", "twins", "all", "pairs", "p"),
        tuple(rows),
        "%",
    )


KINDS = (
    (
        "by_attack",
        "types",
        "Robustness by what was done to the text",
        "Accuracy on twins of each type. The paper's types were written by people; ours are those "
        "that patterns make, or that the data name.",
    ),
    (
        "by_sentiment",
        "sentiments",
        "Robustness by sentiment",
        "Accuracy on texts whose sentiment is single, multiple or obscure, where the data say so.",
    ),
)


def type_tables(tried: Tried, published: Any) -> Iterator[Table]:
    for part, printed, title, about in KINDS:
        rows: list[tuple[str, dict[str, Cell | None]]] = []
        for (trial, model), step in tried.items():
            beside = published[printed].get(model, {})
            cells = {
                share["name"]: _rate(share, _printed(beside.get(share["name"])))
                for share in step.get("robustness", {}).get(part, ())
                if share["name"] != "untyped" and share["total"]
            }
            if cells:
                rows.append((f"{trial}, {NAMES[model]}", cells))
        if rows:
            for model, figures in published[printed].items():
                cells = {name: Cell(_percent(figure)) for name, figure in figures.items()}
                rows.append((f"paper, {PAPERS[model]}", cells))
            names = tuple(dict.fromkeys(name for _, cells in reversed(rows) for name in cells))
            yield Table(
                title,
                about,
                ("texts, model", *names),
                tuple((row, tuple(cells.get(name) for name in names)) for row, cells in rows),
                "%",
            )


def method_tables(tried: Tried, published: Any) -> Iterator[Table]:
    for trial in dict.fromkeys(t for t, _ in tried):
        rows = []
        plausible = paired = False
        for (name, model), step in tried.items():
            if name != trial:
                continue
            for method in step["methods"]:
                printed = published.get(model, {}).get(parse_spec(method)[0])
                cells = _method_cells(step, method, printed)
                paired |= cells[0] is not None
                plausible |= cells[5] is not None
                rows.append((f"{NAMES[model]}, {method}", cells))
        kept = [0] * paired + [1, 2] * paired + [3, 4] + [5, 6] * plausible + [7, 8]
        columns = (
            "MAP",
            "New_P by size, originals",
            "New_P by size, twins",
            "New_P by size",
            "New_P by sign",
            "Macro-F1",
            "Micro-F1",
            "compactness",
            "sufficiency",
        )
        yield Table(
            f"Explanations of {trial}",
            "How far a twin's words are ranked as its original's (MAP), how often the top words "
            "alone keep the answer and the rest loses it (New_P, by the size of scores as in "
            "profile paper, and by their sign as recommended), how well the top words match "
            "the best of the sets that people marked (F1), and the fall of the answer without "
            "them and with them alone, averaged over five shares. Below each figure a 95 % "
            "interval and the paper's, which is of other texts.",
            ("model, method", *(columns[i] for i in kept)),
            tuple((name, tuple(cells[i] for i in kept)) for name, cells in rows),
        )


def _method_cells(
    step: Found, method: str, printed: Sequence[float] | None
) -> tuple[Cell | None, ...]:
    def paper(place: int) -> float | None:
        return _printed(None if printed is None else printed[place])

    return (
        mean_cell(step, method, "map", published=paper(0)),
        *(
            mean_cell(step, method, BY_SIZE, side, paper(1 + i))
            for i, side in enumerate(("originals", "twins", "all"))
        ),
        mean_cell(step, method, "new_p", published=paper(3)),
        mean_cell(step, method, "f1", published=paper(6)),
        micro_cell(step, method, published=paper(9)),
        mean_cell(step, method, "aopc_compactness"),
        mean_cell(step, method, "aopc_sufficiency"),
    )


def augmentation_table(found: Found, published: Mapping[str, Sequence[float]]) -> Table:
    kinds = ("originals", "pattern-made", "hand-made")
    rows: list[tuple[str, tuple[Cell | str | None, ...]]] = []
    for gain in found["gains"]:
        place = kinds.index(gain["name"])
        cells = [
            Cell(
                gain[kind]["accuracy"],
                None,
                gain[kind]["low"],
                gain[kind]["high"],
                gain["texts"],
                _percent(published[kind][place]),
            )
            for kind in ("plain", "augmented")
        ]
        printed = _percent(published["augmented"][place] - published["plain"][place])
        change = Cell(gain["difference"], None, gain["low"], gain["high"], None, printed)
        rows.append((gain["name"], (*cells, change, f"{gain['p']:.2g}")))
    return Table(
        "Training on pattern-made twins",
        f"{found['architecture']}, trained on {found['train_texts']:,} texts and on these and "
        f"{found['added_texts']:,} pattern-made twins; both on originals, on twins that patterns "
        "made of these, and on twins that people wrote. The paper's figures are SKEP's.",
        ("texts", "as ever", "with twins", "difference", "p"),
        tuple(rows),
        "%",
    )


# ---- figures --------------------------------------------------------------------------------

SHOWN = (
    ("map", "MAP", "how far a twin's words are ranked as its original's"),
    (BY_SIZE, "New_P by size", "how often the top words alone keep the answer, the rest loses it"),
    ("new_p", "New_P by sign", "how often the top words alone keep the answer, the rest loses it"),
    ("f1", "Macro-F1", "how well the top words match those that people marked"),
)


def method_figures(tried: Tried) -> Iterator[Figure]:
    """The methods beside each other, a plot for each trial and quantity that it has."""
    for trial in dict.fromkeys(t for t, _ in tried):
        steps = {m: s for (t, m), s in tried.items() if t == trial}
        methods = list(dict.fromkeys(m for s in steps.values() for m in s["methods"]))
        for quantity, name, about in SHOWN:
            series = []
            for place, (model, step) in enumerate(steps.items()):
                cells = {
                    i: cell
                    for i, method in enumerate(methods)
                    if method in step["methods"]
                    and (cell := mean_cell(step, method, quantity)) is not None
                }
                beside = 0.22 * (place - (len(steps) - 1) / 2)
                if cells:
                    series.append(_dots(NAMES[model], cells, beside))
            if series:
                names = tuple(parse_spec(m)[0] for m in methods)
                yield Figure(f"{trial}: {name}", f"{about}.", "method", name, tuple(series), names)


def _dots(name: str, cells: Mapping[int, Cell], beside: float) -> Points:
    return Points(
        name,
        tuple(i + beside for i in cells),
        tuple(cell.value for cell in cells.values()),
        low=tuple(cell.value if cell.low is None else cell.low for cell in cells.values()),
        high=tuple(cell.value if cell.high is None else cell.high for cell in cells.values()),
    )


# ---- claims ---------------------------------------------------------------------------------


def claims(tried: Tried, augmented: Found | None, own: Trained | None = None) -> Iterator[Claim]:
    """What the paper says; `own` tells by trial and model how it did on its own test set, where the
    trial's originals are no part of that."""
    for trial in dict.fromkeys(t for t, _ in tried):
        steps = {m: s for (t, m), s in tried.items() if t == trial}
        typed = {m: s for m, s in steps.items() if "robustness" in s}
        if typed:
            yield from _robustness_claims(trial, typed)
            yield from _own_claims(trial, typed, own or {})
            yield from _type_claims(trial, typed)
        yield from _model_claims(trial, steps)
        yield from _method_claims(trial, steps)
    if augmented:
        yield from _augmentation_claims(augmented)


def _robustness_claims(trial: str, steps: Mapping[str, Found]) -> Iterator[Claim]:
    found = {m: s["robustness"] for m, s in steps.items()}
    corrected = holm([r["p"] for r in found.values()])
    # over pairs, as they are tested: texts without a twin would tell of other texts
    falls = {
        m: (r["lost"] - r["gained"]) / (r["both"] + r["lost"] + r["gained"] + r["neither"])
        for m, r in found.items()
    }
    yield Claim(
        "Every model is worse on twins than on originals.",
        _verdict([*falls.values()], corrected),
        "; ".join(
            f"{NAMES[m]} {fall:+.1%} (p {p:.2g})"
            for (m, fall), p in zip(falls.items(), corrected, strict=True)
        )
        + ", originals less twins over pairs, corrected for the number of models.",
        trial,
    )
    if {"lstm", "encoder"} <= set(found):
        rights = [steps[m]["right"] for m in ("lstm", "encoder")]
        pairs = steps["lstm"]["robustness_pairs"]
        apart = _falls_apart(pairs, *rights)
        p = sign_flip_test(apart, [original for original, _ in pairs])
        yield Claim(
            "The LSTM falls further on twins than the encoder.",
            _verdict([float(np.mean(apart))], [p]),
            f"{falls['lstm']:+.1%} against {falls['encoder']:+.1%} (p {p:.2g}).",
            trial,
        )


def _own_claims(trial: str, steps: Mapping[str, Found], own: Trained) -> Iterator[Claim]:
    """The paper's models lose 25 to 28 points on the way from their test set to its originals."""
    known = {m: s["robustness"]["originals"] for m, s in steps.items() if (trial, m) in own}
    if not known:
        return
    from scipy.stats import fisher_exact

    falls, p_values = [], []
    for model, share in known.items():
        test = own[trial, model]
        table = [[n, total - n] for n, total in (_counts(test), _counts(share))]
        p_values.append(float(fisher_exact(table).pvalue))
        falls.append(test["right"] / test["texts"] - _accuracy(share))
    corrected = holm(p_values)
    yield Claim(
        "Every model is worse on originals than on its own test set.",
        _verdict(falls, corrected),
        "; ".join(
            f"{NAMES[m]} {fall:+.1%} (p {p:.2g})"
            for m, fall, p in zip(known, falls, corrected, strict=True)
        )
        + ", own test set less originals (Fisher), corrected for the number of models; the paper "
        "says 25 to 28 points.",
        trial,
    )


def _counts(share: Mapping[str, Any]) -> tuple[int, int]:
    if "total" in share:
        return share["correct"], share["total"]
    return share["right"], share["texts"]


HELPED = ("lf", "negative")
"""Types of twins on which pretraining helps most, as the paper says."""


def _type_claims(trial: str, steps: Mapping[str, Found]) -> Iterator[Claim]:
    if not {"lstm", "encoder"} <= set(steps):
        return
    types = steps["lstm"].get("adv_types", {})
    families = dict(reversed(pair) for pair in steps["lstm"]["robustness_pairs"])
    gains: dict[str, tuple[list[int], list[int]]] = {}
    for twin, kind in types.items():
        if twin in families:
            gain = steps["encoder"]["right"][twin] - steps["lstm"]["right"][twin]
            gains.setdefault(families[twin], ([], []))[kind in HELPED].append(gain)
    both = [(np.mean(most), np.mean(other)) for other, most in gains.values() if most and other]
    if not both:
        return
    apart = np.array([most - other for most, other in both])
    p = sign_flip_test(apart)
    yield Claim(
        f"Pretraining helps more on twins of the types {' and '.join(HELPED)} than on others.",
        _verdict([float(apart.mean())], [p]),
        f"encoder less LSTM {np.mean([m for m, _ in both]):+.1%} on these and "
        f"{np.mean([o for _, o in both]):+.1%} on others, over {len(both):,} originals that have "
        f"both (p {p:.2g}).",
        trial,
    )


def _falls_apart(
    pairs: Sequence[tuple[str, str]], one: Mapping[str, bool], other: Mapping[str, bool]
) -> FloatArray:
    """Per pair, how much further the first model falls than the second. (pairs,)"""
    falls = [(one[o] - one[t]) - (other[o] - other[t]) for o, t in pairs]
    return np.array(falls, dtype=np.float64)


def _accuracy(share: Mapping[str, Any]) -> float:
    return float(share["correct"] / share["total"]) if share["total"] else float("nan")


MODELS = (
    ("map", "By MAP", "more consistent", "lstm", "encoder", (IG, ATT, LIME)),
    ("map", "By MAP", "more consistent", "knowing", "encoder", (LIME,)),
    ("map", "By MAP", "more consistent", "encoder", "knowing", (IG, ATT)),
    ("f1", "By F1 with people", "more plausible", "encoder", "lstm", (LIME,)),
    ("f1", "By F1 with people", "more plausible", "lstm", "encoder", (IG, ATT)),
    ("f1", "By F1 with people", "more plausible", "knowing", "encoder", (IG, ATT)),
)
"""Whose explanations the paper finds better than whose, by which quantity and with which methods.
What sentiment first adds to an encoder is SKEP against ERNIE-large there."""


def _model_claims(trial: str, steps: Mapping[str, Found]) -> Iterator[Claim]:
    for quantity, by, said, better, worse, methods in MODELS:
        if not {better, worse} <= set(steps):
            continue
        names = {parse_spec(m)[0]: m for m in steps[better]["methods"]}
        rows = {
            k: values(steps[better], names[k], quantity) - values(steps[worse], names[k], quantity)
            for k in methods
            if k in names
        }
        rows = {k: row for k, row in rows.items() if not np.isnan(row).all()}
        if rows:
            yield _compared(
                f"{by} the {NAMES[better]}'s explanations are {said} than the {NAMES[worse]}'s, "
                f"with {', '.join(methods)}.",
                trial,
                list(rows.items()),
                steps[better]["partners"],
            )


ORDERS = (
    ("map", "MAP", ("encoder", "knowing"), (ATT, LIME, IG)),
    (BY_SIZE, "New_P (by size)", ("encoder", "knowing"), (LIME, IG, ATT)),
    (BY_SIZE, "New_P (by size)", ("lstm",), (IG, LIME, ATT)),
    ("new_p", "New_P (by sign)", ("encoder", "knowing"), (LIME, IG, ATT)),
    ("new_p", "New_P (by sign)", ("lstm",), (IG, LIME, ATT)),
    ("f1", "F1 with people", ("encoder", "knowing"), (LIME, IG, ATT)),
    ("f1", "F1 with people", ("lstm",), (IG, LIME, ATT)),
)
"""In which order the paper finds the three methods, by quantity and model."""


def _method_claims(trial: str, steps: Mapping[str, Found]) -> Iterator[Claim]:
    for quantity, said, models, order in ORDERS:
        for model in models:
            if model not in steps:
                continue
            names = {parse_spec(m)[0]: m for m in steps[model]["methods"]}
            rows = {k: values(steps[model], names[k], quantity) for k in order if k in names}
            if len(rows) < 3 or any(np.isnan(row).all() for row in rows.values()):
                continue
            yield _compared(
                f"By {said} the order of methods is {' > '.join(order)}, with "
                f"{'encoders' if 'encoder' in models else 'the LSTM'}.",
                f"{trial}, {NAMES[model]}",
                [(f"{a} less {b}", rows[a] - rows[b]) for a, b in pairwise(order)],
                steps[model]["partners"],
            )


def _compared(
    statement: str,
    where: str,
    differences: Sequence[tuple[str, FloatArray]],
    partners: Sequence[str],
) -> Claim:
    """Differences that should all be positive; texts of one pair count as one."""
    means = [float(np.nanmean(row)) for _, row in differences]
    p_values = [sign_flip_test(row, partners) for _, row in differences]
    corrected = holm(p_values)
    return Claim(
        statement,
        _verdict(means, corrected),
        "; ".join(
            f"{name} {mean:+.3f} (p {p:.2g})"
            for (name, _), mean, p in zip(differences, means, corrected, strict=True)
        )
        + ".",
        where,
    )


def _verdict(differences: Sequence[float], p_values: Sequence[float] | FloatArray) -> Verdict:
    """Confirmed if all are surely positive, not if one is surely negative, else open."""
    signs = [(d > 0, p < SURE) for d, p in zip(differences, p_values, strict=True)]
    if any(sure and not up for up, sure in signs):
        return "not confirmed"
    return "confirmed" if all(sure for _, sure in signs) else "open"


def _augmentation_claims(found: Found) -> Iterator[Claim]:
    gains = {g["name"]: g for g in found["gains"]}
    said = {
        "pattern-made": ("helps on pattern-made twins", 1),
        "originals": ("hurts on originals", -1),
        "hand-made": ("hurts on twins that people wrote", -1),
    }
    kept = [(name, *told) for name, told in said.items() if name in gains]
    corrected = holm([gains[name]["p"] for name, _, _ in kept])
    for (name, told, sign), p in zip(kept, corrected, strict=True):
        gain = gains[name]
        yield Claim(
            f"Training on pattern-made twins {told}.",
            _verdict([sign * gain["difference"]], [float(p)]),
            f"{gain['difference']:+.1%} ({gain['low']:+.1%} to {gain['high']:+.1%}; p {p:.2g}, "
            f"corrected for {len(kept)} looks).",
        )
