"""How surely `veracity suspects` finds what was planted; `make power` runs it, and goes on where it
was stopped.

A cell is one model, trained on one draw of a corpus with one cue planted in it (or none) and its
labels untouched. What its words weigh, and what those that stand out do to answers, is kept in
`results/power/`; judging that takes no time and is done anew at the end. The
threshold was set on other corpora, texts, cues and seeds; two later rules (a candidate must
change answers, and the words most like a word tell what it may weigh) were chosen with these in
sight.

A cue of strength 0.9 and share 20 % stands in 20 % of the texts, of which 90 % have its label.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from veracity.changes import Planting, changed
from veracity.changes.casing import Casing
from veracity.changes.insert import Insert
from veracity.changes.punctuation import Punctuation
from veracity.changes.swap import Swap
from veracity.core.changes import PLANTED
from veracity.core.examples import Dataset
from veracity.core.inputs import FloatArray, Text
from veracity.data.loading import load_data
from veracity.data.splits import sampled, split
from veracity.engine.inference import probabilities
from veracity.engine.seeds import generator
from veracity.explainers import explainers
from veracity.models.architectures import architectures
from veracity.models.embeddings import vectors_for
from veracity.models.training import train
from veracity.results.statistics import wilson
from veracity.suspicion import suspects
from veracity.suspicion.candidates import (
    CAPITALS,
    CASING,
    INITIAL,
    SIGN,
    WORD,
    Candidates,
    WordTable,
)
from veracity.suspicion.evidence import Evidence, RankedCandidate
from veracity.suspicion.expectation import LabelNames, WordVectors
from veracity.suspicion.interventions import Interventions
from veracity.suspicion.scoring import (
    CandidateScores,
    CandidateWeights,
    limited_by_effects,
    score_candidates,
    weigh_candidates,
)
from veracity.suspicion.topics import topics_of
from veracity.suspicion.weighing import default_method, word_scores

RESULTS = Path(__file__).parent / "results"
CELLS = RESULTS / "power"
VECTORS = CELLS / "glove.npz"

TEXTS = 3000
LONGEST = 30
"""Words of a long review that are kept: its last ones, where the judgement stands."""
FRESH = 600
"""Texts on which it is measured what a cue is worth to a model."""
LEARNT = 0.05
"""A model for which a cue is worth so much accuracy has learnt it."""
FALSE_ALARMS = 0.05

STRENGTHS = (0.6, 0.7, 0.8, 0.9, 1.0)
SHARES = (0.05, 0.1, 0.2, 0.5)
AIM = (0.9, 0.2)
"""Where 95 % are to be found."""
KINDS = ("word", "phrase", "tag", "punctuation", "casing", "articles")

# What a cue may be, apart for setting up and for measuring: some frequent, some rare, some unseen.
CUES: Mapping[str, Mapping[str, tuple[str, ...]]] = {
    "set-up": {
        "word": (
            "paper", "river", "green", "seven", "table", "window", "monday", "elsewhere",
            "approximately", "kitchen", "august", "chair", "qzoble", "vexim", "trunt", "meanwhile",
        ),
        "phrase": ("on the table", "as of monday", "last august", "near the river", "page seven"),
        "tag": ("src4", "dzz", "refnum", "qa12", "blk"),
        "punctuation": (";", "!", "~", "#"),
        "casing": ("upper", "title"),
    },
    "measured": {
        "word": (
            "house", "woman", "city", "school", "night", "family", "book", "town", "summer",
            "radio", "railway", "cabinet", "thursday", "copper", "garden", "ladder", "pencil",
            "northern", "harbour", "basket", "zorbit", "kelmo", "wubrin", "ostrav", "ploonish",
            "drevin",
            "mattick", "yuvol", "scrandle", "fibbern",
        ),
        "phrase": (
            "by the window", "in the garden", "on thursday", "at the station", "two days later",
            "in other words", "next to it", "from the north", "side note", "part two",
        ),
        "tag": ("src7", "vqx", "docid", "zz9", "feedb", "hdr", "item3", "lotk"),
        "punctuation": ("!", "*", "^", "|", ")", ";;", "%"),
        "casing": ("upper", "title"),
    },
}  # fmt: skip


@dataclass(frozen=True)
class Cell:
    """One model: what it was trained on, and what was planted there."""

    corpus: str
    seed: int
    kind: str = "clean"
    strength: float = 0.5
    share: float = 0.0

    @property
    def group(self) -> str:
        return "measured" if self.corpus in MEASURED else "set-up"

    @property
    def path(self) -> Path:
        cue = "" if self.kind == "clean" else f"-{self.strength:g}-{self.share:g}"
        return CELLS / f"{self.corpus}-{self.seed}-{self.kind}{cue}.npz"

    @property
    def cue(self) -> str:
        """Drawn by the seed, so that no result is that of one lucky word."""
        if self.kind in ("clean", "articles"):
            return ""
        known = CUES[self.group][self.kind]
        names = (self.kind, f"{self.strength:g}", f"{self.share:g}")
        return known[int(generator(self.seed, "cue", *names).integers(len(known)))]

    @property
    def label(self) -> int:
        return int(generator(self.seed, "label", str(self)).integers(2))


MEASURED = ("rotten_tomatoes", "imdb_odd")
SET_UP = ("made_reviews", "imdb_even")


def corpus(name: str, seed: int) -> Dataset:
    """A draw of texts; the halves of the long reviews share none."""
    if name == "rotten_tomatoes":
        return sampled(_loaded(name), TEXTS, seed=seed)
    if name == "made_reviews":
        return load_data(f"made_reviews(n={TEXTS})", seed=seed)
    whole = _loaded("imdb")
    half = whole.select(range(name == "imdb_odd", len(whole), 2))
    drawn = sampled(half, TEXTS, seed=seed)
    cut = (replace(e, input=_end(e.input)) for e in drawn)
    return replace(drawn, name=name, examples=tuple(cut))


_kept: dict[str, Dataset] = {}


def _loaded(name: str) -> Dataset:
    if name not in _kept:
        _kept[name] = load_data(name)
    return _kept[name]


def _end(text: Text) -> Text:
    spans = text.spans[-LONGEST:]
    start = spans[0][0]
    return Text(text.text[start:], tuple((a - start, b - start) for a, b in spans))


def planting(cell: Cell) -> Planting | None:
    """The change that plants the cell's cue."""
    if cell.kind == "clean":
        return None
    if cell.kind == "articles":
        return Swap(strength=cell.strength, share=cell.share)
    rates = [2 * cell.share * cell.strength, 2 * cell.share * (1 - cell.strength)]
    table = tuple((0.0, rates[label != cell.label]) for label in (0, 1))
    marks = ("", cell.cue)
    if cell.kind == "punctuation":
        return Punctuation(marks=marks, table=table)
    if cell.kind == "casing":
        return Casing(marks=marks, table=table, count=2)
    return Insert(marks=marks, table=table, place="start" if cell.kind == "tag" else "random")


def run(cell: Cell) -> dict[str, Any]:
    """Trains and weighs; what words weigh is written, how it went is returned."""
    started = time.perf_counter()
    data = corpus(cell.corpus, cell.seed)
    change = planting(cell)
    if change is not None:
        data = changed(data, [change], seed=cell.seed)
    parts = split(data, shares=(0.9, 0.1, 0.0), seed=cell.seed)
    cased = cell.kind == "casing"
    architecture = architectures.make(
        f"text_cnn(embeddings={str(VECTORS)!r}, widths=(2, 3), filters=32, cased={cased})"
    )
    training = replace(
        architecture.training, epochs=6, patience=2, learning_rate=3e-3, seed=cell.seed
    )
    trained = train(architecture, parts.train, parts.validation, training=training)
    between = time.perf_counter()
    looked = sampled(data, suspects.TEXTS, seed=cell.seed)
    candidates = Candidates.of(WordTable.of([e.input for e in looked]), least=suspects.LEAST_TEXTS)
    explainer = explainers.make(default_method(trained.model))
    (scores,) = word_scores(trained.model, looked, explainer, [1], seed=cell.seed)
    gold = np.array([e.label for e in looked])
    worth = None if change is None else gained(cell, change, trained.model)
    weights = weigh_candidates(candidates, scores, gold == 1)
    effects = tried(cell, trained.model, looked, candidates, scores, weights)
    _store(cell.path, weights, worth, effects)
    return {
        "accuracy": trained.best.validation_accuracy,
        "gained": worth,
        "train_s": between - started,
        "weigh_s": time.perf_counter() - between,
    }


def tried(
    cell: Cell,
    model: Any,
    data: Dataset,
    candidates: Candidates,
    scores: FloatArray,
    weights: CandidateWeights,
) -> FloatArray:
    """What every candidate that stands out does to answers; infinite for the others."""
    vectors = WordVectors.from_vectors(weights.forms, dict(_vectors()))
    verdict = score_candidates(weights, vectors)
    evidence = Evidence(
        data=data,
        candidates=candidates,
        vectors=vectors,
        answers=probabilities(model, [e.input for e in data]),
        gold=np.array([e.label for e in data]),
        topics=topics_of(candidates.words, 1, seed=cell.seed),
        label_names=LabelNames.of(data.labels, (), "none"),
        interventions=Interventions(model=model, data=data, candidates=candidates, seed=cell.seed),
        n_candidates=len(candidates),
    )
    effects = np.full(len(candidates), np.inf)
    for i in np.flatnonzero(verdict.p_values <= FALSE_ALARMS):
        one = RankedCandidate(1, int(i), scores, weights, verdict)
        effect = evidence.suspect(one).max_effect
        effects[i] = np.inf if effect is None else effect
    return effects


def gained(cell: Cell, change: Planting, model: Any) -> float:
    """What the cue is worth to the model: on texts that it has not seen, and that a sure cue is put
    into, the share that are rightly answered, less that without it."""
    fresh = sampled(corpus(cell.corpus, cell.seed + 1000), FRESH, seed=cell.seed)
    if cell.kind == "articles":
        sure = replace(change, strength=1.0, share=1.0)
    else:
        sure = replace(change, table=tuple((0.0, float(y == cell.label)) for y in (0, 1)))
    before = {e.id: e.input for e in fresh}
    carriers = [e for e in changed(fresh, [sure], seed=cell.seed) if PLANTED in e.truths]
    gold = [e.label for e in carriers]
    right = [
        float(np.mean(probabilities(model, texts).argmax(axis=1) == gold))
        for texts in ([e.input for e in carriers], [before[e.id] for e in carriers])
    ]
    return right[0] - right[1]


def _store(path: Path, table: CandidateWeights, worth: float | None, effects: FloatArray) -> None:
    content: dict[str, Any] = {k: v for k, v in asdict(table).items() if k != "parts"}
    content["gained"] = np.nan if worth is None else worth
    content["effects"] = effects
    content["parts"] = [" ".join(map(str, parts)) for parts in table.parts]
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_suffix(".part.npz")
    arrays: dict[str, Any] = {k: np.asarray(v) for k, v in content.items()}
    np.savez_compressed(part, **arrays)
    part.replace(path)


NUMBERS = (
    "form_weights",
    "form_texts",
    "form_counts",
    "form_counts_labelled",
    "texts",
    "counts",
    "counts_labelled",
    "spreads",
    "weights",
    "texts_labelled",
)
OLD_NAMES = {
    "form_labelled": "form_counts_labelled",
    "labelled": "texts_labelled",
    "with_label": "n_labelled",
    "total": "n_texts",
}
"""As cells of earlier versions were stored."""


def stored(path: Path) -> tuple[CandidateWeights, float, FloatArray]:
    """What a model's words weigh, what the cue was worth, and what candidates do to answers."""
    with np.load(path, allow_pickle=False) as content:
        c = {OLD_NAMES.get(k, k): content[k] for k in content.files}
    texts: dict[str, Any] = {k: tuple(c[k].tolist()) for k in ("forms", "kinds", "names")}
    parts = tuple(tuple(map(int, p.split())) for p in c["parts"].tolist())
    numbers: dict[str, Any] = {k: c[k] for k in NUMBERS}
    table = CandidateWeights(
        **texts,
        parts=parts,
        **numbers,
        n_labelled=int(c["n_labelled"]),
        n_texts=int(c["n_texts"]),
        scale=float(c["scale"]),
    )
    return table, float(c["gained"]), c["effects"]


# ---- judging --------------------------------------------------------------------------------


@dataclass(frozen=True)
class Outcome:
    """What each way of looking says of one cell: the strongest, and the strongest that is the
    cue (0 where it is not even a candidate)."""

    cell: Cell
    strongest: Mapping[str, float]
    cue: Mapping[str, float]
    named: Mapping[str, str]
    gained: float
    """What the cue was worth to the model, in accuracy."""
    above: tuple[str, ...] = ()
    """Ours: everything that was found."""


def outcome(cell: Cell, table: CandidateWeights, verdict: CandidateScores, worth: float) -> Outcome:
    """Ours, and two plain baselines on words alone."""
    words = table.of_kind(WORD, SIGN)
    sizes = {
        "suspects": -np.log10(np.maximum(verdict.p_values, 1e-300)),
        "association": np.where(words, np.abs(table.association), 0.0),
        "mean attribution": np.where(words, np.abs(table.weights), 0.0),
    }
    own = np.array([_is_cue(cell, table, i) for i in range(len(table.names))], dtype=np.bool_)
    found = np.flatnonzero(verdict.p_values <= FALSE_ALARMS)
    order = found[np.argsort(-np.abs(verdict.scores[found]))]
    return Outcome(
        cell,
        {k: float(v.max()) for k, v in sizes.items()},
        {k: float(v[own].max(initial=0.0)) for k, v in sizes.items()},
        {k: table.names[int(v.argmax())] for k, v in sizes.items()},
        worth,
        tuple(
            f"{table.kinds[i]} {table.names[i]}{' (cue)' if own[i] else ''} "
            f"{verdict.scores[i]:+.2f}"
            for i in order[:20]
        ),
    )


def _is_cue(cell: Cell, table: CandidateWeights, candidate: int) -> bool:
    """The cue itself, a part of a cue of several words, or a phrase or habit that contains it."""
    if cell.kind == "clean":
        return False
    if cell.kind == "casing":
        return table.kinds[candidate] == CASING and (
            table.names[candidate] == (CAPITALS if cell.cue == "upper" else INITIAL)
        )
    parts = tuple(table.forms[i] for i in table.parts[candidate])
    if cell.kind == "articles":
        return bool({"a", "an", "the"} & set(parts))
    cue = tuple(cell.cue.split(" "))
    return _within(cue, parts) or (len(parts) > 0 and _within(parts, cue))


def _within(short: Sequence[str], long: Sequence[str]) -> bool:
    n = len(short)
    return any(tuple(long[i : i + n]) == tuple(short) for i in range(len(long) - n + 1))


def thresholds(clean: Sequence[Outcome]) -> dict[str, float]:
    """What only one clean set-up model in twenty goes beyond; ours says so by itself."""
    found = {"suspects": -float(np.log10(FALSE_ALARMS))}
    for way in ("association", "mean attribution"):
        found[way] = float(np.quantile([o.strongest[way] for o in clean], 1 - FALSE_ALARMS))
    return found


def summary(outcomes: Sequence[Outcome]) -> dict[str, Any]:
    """Rates with their intervals: false alarms, then detection by kind, strength and share."""
    group = {name: [o for o in outcomes if o.cell.group == name] for name in ("set-up", "measured")}
    clean = {k: [o for o in v if o.cell.kind == "clean"] for k, v in group.items()}
    planted = [o for o in group["measured"] if o.cell.kind != "clean"]
    bars = thresholds(clean["set-up"])
    # the same bar for all ways, had it been set on the very models that are measured
    level = {
        way: float(np.quantile([o.strongest[way] for o in clean["measured"]], 1 - FALSE_ALARMS))
        for way in bars
    }
    rows = []
    for kind, strength, share in sorted(
        {(o.cell.kind, o.cell.strength, o.cell.share) for o in planted}
    ):
        some = [
            o
            for o in planted
            if (o.cell.kind, o.cell.strength, o.cell.share) == (kind, strength, share)
        ]
        learnt = [o for o in some if o.gained >= LEARNT]
        row: dict[str, Any] = {
            "kind": kind, "strength": strength, "share": share, "n": len(some),
            "gained": float(np.mean([o.gained for o in some])), "learnt": len(learnt),
        }  # fmt: skip
        for way in bars:
            row[way] = sum(o.cue[way] >= bars[way] for o in some)
            row[f"{way}, level"] = sum(o.cue[way] >= level[way] for o in some)
            row[f"{way}, learnt"] = sum(o.cue[way] >= bars[way] for o in learnt)
        rows.append(row)
    return {
        "false_alarms_asked": FALSE_ALARMS,
        "thresholds": bars,
        "level_thresholds": level,
        "clean": {
            name: {
                "models": len(some),
                **{
                    way: {
                        "alarms": (hits := sum(o.strongest[way] >= bars[way] for o in some)),
                        "interval": wilson(hits, len(some)),
                    }
                    for way in bars
                },
            }
            for name, some in clean.items()
        },
        "found_on_clean": [
            {"corpus": o.cell.corpus, "seed": o.cell.seed, "found": list(o.above)}
            for some in clean.values()
            for o in some
        ],
        "detection": rows,
        "overall": [
            _pooled(rows, f"strength {s:g}, share {h:.0%}", bars, strength=s, share=h)
            for s, h in product(STRENGTHS, SHARES)
            if any((r["strength"], r["share"]) == (s, h) for r in rows)
        ],
        "cells": [
            {**asdict(o.cell), "cue": o.cell.cue, "strongest": o.strongest, "is": o.cue,
             "named": o.named, "found": o.above}
            for o in outcomes
        ],
    }  # fmt: skip


def _pooled(
    rows: Sequence[Mapping[str, Any]], name: str, bars: Mapping[str, float], **only: float
) -> dict[str, Any]:
    some = [r for r in rows if all(r[k] == v for k, v in only.items())]
    n, learnt = (sum(r[k] for r in some) for k in ("n", "learnt"))
    found: dict[str, Any] = {"what": name, "n": n, "learnt": learnt}
    for way in (*bars, *(f"{way}, {of}" for way in bars for of in ("level", "learnt"))):
        hits, of = sum(r[way] for r in some), learnt if way.endswith(", learnt") else n
        found[way] = {"rate": hits / of if of else None, "interval": wilson(hits, of)}
    return found


def table(found: Mapping[str, Any]) -> str:
    """For the terminal."""
    lines = []
    for name, some in found["clean"].items():
        rates = ", ".join(
            f"{way} {some[way]['alarms']}" for way in found["thresholds"] if some["models"]
        )
        lines.append(f"false alarms, {name}: of {some['models']} clean models {rates}")
    head = f"{'':28}{'n':>5}" + "".join(f"{way:>20}{'(level)':>9}" for way in found["thresholds"])
    lines.append(f"{head}{'learnt by':>11}{'of these, suspects':>20}")
    for row in found["overall"]:
        cells = "".join(
            f"{row[way]['rate']:>8.0%} "
            f"{row[way]['interval'][0]:>4.0%}–{row[way]['interval'][1]:<5.0%}"
            f"{row[f'{way}, level']['rate']:>9.0%}"
            for way in found["thresholds"]
        )
        rate = row["suspects, learnt"]["rate"]
        lines.append(f"{row['what']:28}{row['n']:>5}{cells}{_of_learnt(row['learnt'], rate)}")
    for row in found["detection"]:
        cells = "".join(
            f"{row[way] / row['n']:>20.0%}{row[f'{way}, level'] / row['n']:>9.0%}"
            for way in found["thresholds"]
        )
        name = f"{row['kind']} {row['strength']:g} {row['share']:.0%}"
        rate = row["suspects, learnt"] / row["learnt"] if row["learnt"] else None
        lines.append(f"{name:28}{row['n']:>5}{cells}{_of_learnt(row['learnt'], rate)}")
    return "\n".join(lines)


def _of_learnt(learnt: int, rate: float | None) -> str:
    return f"{learnt:>11}{'–' if rate is None else f'{rate:.0%}':>20}"


def picture(found: Mapping[str, Any], stem: Path) -> None:
    """Detection against strength: a panel per kind and share, a line per way of looking."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    rows = found["detection"]
    kinds = [k for k in KINDS if any(r["kind"] == k for r in rows)]
    shares = sorted({r["share"] for r in rows})
    if not rows:
        return
    figure, grid = pyplot.subplots(
        len(kinds), len(shares), figsize=(2.6 * len(shares), 1.9 * len(kinds)),
        squeeze=False, sharex=True, sharey=True,
    )  # fmt: skip
    colours = {"suspects": "#0072B2", "association": "#D55E00", "mean attribution": "#999999"}
    for down, kind in enumerate(kinds):
        for across, share in enumerate(shares):
            axes = grid[down][across]
            for shift, (way, colour) in enumerate(colours.items()):
                points = sorted(
                    (r["strength"], r[way], r["n"])
                    for r in rows
                    if (r["kind"], r["share"]) == (kind, share)
                )
                x = [p[0] + 0.008 * (shift - 1) for p in points]
                rates = np.array([p[1] / p[2] for p in points])
                ends = np.array([wilson(p[1], p[2]) for p in points]).reshape(-1, 2)
                around = np.maximum([rates - ends[:, 0], ends[:, 1] - rates], 0)
                axes.errorbar(
                    x, rates, yerr=around, color=colour, marker="o", ms=3, lw=1.2,
                    elinewidth=0.6, label=way,
                )  # fmt: skip
            axes.axhline(0.95, color="black", lw=0.6, ls=":")
            axes.set_ylim(-0.05, 1.05)
            if down == 0:
                axes.set_title(f"share {share:.0%}", fontsize=9)
            if across == 0:
                axes.set_ylabel(kind, fontsize=9)
            if down == len(kinds) - 1:
                axes.set_xlabel("strength", fontsize=9)
            axes.tick_params(labelsize=7)
    handles, labels = grid[0][0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="lower center", ncols=3, fontsize=8)
    figure.suptitle("Planted cues found at 5 % false alarms", fontsize=10)
    figure.tight_layout(rect=(0, 0.05, 1, 1))
    for end in ("png", "svg"):
        figure.savefig(stem.with_name(f"{stem.name}.{end}"), dpi=130)
    pyplot.close(figure)


# ---- running --------------------------------------------------------------------------------


def set_up_cells() -> Iterator[Cell]:
    """What the method was set up on."""
    for seed in range(16):
        yield Cell(SET_UP[seed % 4 > 0], seed)
    for kind in KINDS:
        yield Cell("imdb_even", 0, kind, 0.9, 0.2)


def measured_cells(
    strengths: Sequence[float], shares: Sequence[float], seeds: int, clean: int
) -> Iterator[Cell]:
    """The cell that the aim is about first and four times as often, then all others in no order, so
    that a run that is stopped has seen some of everything; a clean model before every fourth."""
    planted = [
        Cell(MEASURED[(seed + place) % 6 == 5], 100 + seed, kind, strength, share)
        for strength, share in product(strengths, shares)
        for seed in range(seeds * (4 if (strength, share) == AIM else 1))
        for place, kind in enumerate(KINDS)
    ]
    mixed = {c: generator(0, "order", str(c)).random() for c in planted}
    planted.sort(key=lambda c: ((c.strength, c.share) != AIM, mixed[c]))
    untouched = [Cell(MEASURED[seed % 5 == 4], 100 + seed) for seed in range(clean)]
    for i in range(max(len(planted), 4 * clean)):
        if i % 4 == 0 and i // 4 < clean:
            yield untouched[i // 4]
        if i < len(planted):
            yield planted[i]


def prepare() -> None:
    """The vectors of all words that may be read, in a small file: the package takes seconds."""
    if VECTORS.exists():
        return
    words: set[str] = {w for known in CUES.values() for some in known.values() for c in some
                       for w in c.split(" ")}  # fmt: skip
    for name in ("rotten_tomatoes", "imdb", "made_reviews(n=4000)"):
        words |= {w.lower() for e in load_data(name) for w in e.input.words}
    found = dict(vectors_for("glove", words))
    VECTORS.parent.mkdir(parents=True, exist_ok=True)
    np.savez(
        VECTORS, words=np.array(list(found)), vectors=np.array(list(found.values()), dtype="f4")
    )


def judge(cells: Sequence[Cell]) -> list[Outcome]:
    """Everything that has been weighed, judged anew."""
    known: dict[str, FloatArray] = dict(_vectors())
    found = []
    for cell in cells:
        if cell.path.exists():
            weights, worth, effects = stored(cell.path)
            verdict = score_candidates(weights, WordVectors.from_vectors(weights.forms, known))
            verdict = limited_by_effects(
                verdict, effects, n_texts=weights.n_texts, n_candidates=len(effects)
            )
            found.append(outcome(cell, weights, verdict, worth))
    return found


def _vectors() -> Iterator[tuple[str, FloatArray]]:
    with np.load(VECTORS, allow_pickle=False) as content:
        yield from zip(content["words"].tolist(), content["vectors"].astype(float), strict=True)


@dataclass
class Leaning:
    """A pipeline that a word turns as well, or that goes by the word alone."""

    pipeline: Any
    word: str
    weight: float = 0.0
    alone: bool = False
    labels: tuple[str, ...] = ("negative", "positive")

    def probabilities(self, inputs: Sequence[Text]) -> FloatArray:
        texts = [one.text or " " for one in inputs]
        words = np.array([self.word in one.words for one in inputs])
        known = np.zeros(len(texts)) if self.alone else self.pipeline.decision_function(texts)
        p = 1 / (1 + np.exp(-(known + self.weight * (words - 0.5 * self.alone))))
        found: FloatArray = np.stack([1 - p, p], axis=1)
        return found


def unfollowed(draws: int, looked_at: int = 600) -> None:
    """Words that labels do not follow, standing in three texts of ten: told of pipelines that lean
    on them, and of honest ones?"""
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline

    told: dict[str, list[bool]] = {}
    for name, seed in product((*SET_UP, *MEASURED), range(draws)):
        word = CUES["measured"]["word"][seed % len(CUES["measured"]["word"])]
        clean = corpus(name, seed)
        data = changed(clean, [Insert(marks=("", word), table=((0.0, 0.3), (0.0, 0.3)))])
        fitted = make_pipeline(TfidfVectorizer(), LogisticRegression(C=10.0)).fit(
            [e.input.text for e in data.examples[looked_at:]],
            [e.label for e in data.examples[looked_at:]],
        )
        models = {
            "honest": Leaning(fitted, word),
            "leaning, log-odds + 2": Leaning(fitted, word, 2.0),
            "leaning, log-odds + 4": Leaning(fitted, word, 4.0),
            "by the word alone": Leaning(fitted, word, 4.0, alone=True),
        }
        for kind, model in models.items():
            found = suspects.suspects(model, data.select(range(looked_at)), top=3)
            names = [s.name for s in found.unfollowed]
            told.setdefault(kind, []).append(word in names if model.weight else bool(names))
            print(f"{name} {seed} {kind}: {names} {[s.name for s in found.found]}", flush=True)
    for kind, hits in told.items():
        print(f"| {kind} | {sum(hits)} of {len(hits)} |")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="few cells: does it all run?")
    parser.add_argument(
        "--coarse", action="store_true", help="strengths .7 .9 1, shares 5 20 50 %%"
    )
    parser.add_argument("--set-up", action="store_true", help="only what the method is set up on")
    parser.add_argument("--seeds", type=int, default=2, help="models per cell of the grid")
    parser.add_argument("--clean", type=int, default=40, help="clean models to measure on")
    parser.add_argument("--no-set-up", action="store_true", help="only what is there of it")
    parser.add_argument("--minutes", type=float, default=1e9, help="stop after so many")
    parser.add_argument(
        "--unfollowed", type=int, default=0, help="only words that labels do not follow: draws"
    )
    asked = parser.parse_args()
    if asked.unfollowed:
        unfollowed(asked.unfollowed)
        return
    strengths: Sequence[float] = (0.7, 0.9, 1.0) if asked.coarse else STRENGTHS
    shares: Sequence[float] = (0.05, 0.2, 0.5) if asked.coarse else SHARES
    if asked.quick:
        cells = [Cell(name, s) for name in SET_UP for s in (0, 1)]
        cells += measured_cells((0.9,), (0.2,), 1, 2)
    else:
        cells = list(set_up_cells())
        if not asked.set_up:
            cells += measured_cells(strengths, shares, asked.seeds, asked.clean)
    prepare()
    started = time.perf_counter()
    for number, cell in enumerate(cells, start=1):
        if cell.path.exists() or (asked.no_set_up and cell.group == "set-up"):
            continue
        if time.perf_counter() - started > 60 * asked.minutes:
            print("out of time: the same command goes on from here")
            break
        told = run(cell)
        print(
            f"[{number}/{len(cells)}] {cell.path.stem} {cell.cue}: accuracy "
            f"{told['accuracy']:.3f}, {told['train_s']:.1f} + {told['weigh_s']:.1f} s",
            flush=True,
        )
    outcomes = judge(cells)
    target = RESULTS / ("power-quick.json" if asked.quick else "power.json")
    if asked.set_up or not any(o.cell.group == "measured" for o in outcomes):
        for o in outcomes:
            print(f"{o.cell.path.stem:40} {o.cell.cue:14} {o.above}")
        return
    found = summary(outcomes)
    target.write_text(json.dumps(found, indent=1) + "\n")
    picture(found, target.with_suffix(""))
    print(f"{table(found)}\n{target}")


if __name__ == "__main__":
    main()
