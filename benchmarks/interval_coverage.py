"""How often intervals of means and shares hold the truth, by distribution and number of texts.

`python benchmarks/interval_coverage.py` draws scores whose mean is known, many samples as columns
of one table, and prints the share of intervals that hold it: of percentiles of a bootstrap, which
were used before, and of ours. `--leads` runs whole comparisons in which no method is better.
"""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Callable, Sequence

import numpy as np
from scipy.stats import binom

from veracity.core.inputs import FloatArray
from veracity.results.standings import compare_all
from veracity.results.statistics import (
    group_sums,
    mean_intervals,
    percentiles,
    resampled_sums,
    share_interval,
    wilson,
)

SIZES = (5, 10, 20, 50, 200)
Draw = Callable[[np.random.Generator, tuple[int, int]], FloatArray]


def drops(rng: np.random.Generator, shape: tuple[int, int]) -> FloatArray:
    """Like the fall of a probability: three of five texts do not move at all."""
    return np.where(rng.random(shape) < 0.6, 0.0, rng.beta(0.5, 2, shape))


SCORES: dict[str, tuple[Draw, float]] = {
    "normal": (lambda rng, shape: rng.normal(size=shape), 0.0),
    "uniform": (lambda rng, shape: rng.random(shape), 0.5),
    "Laplace": (lambda rng, shape: rng.laplace(size=shape), 0.0),
    "t, 3 degrees": (lambda rng, shape: rng.standard_t(3, size=shape), 0.0),
    "exponential": (lambda rng, shape: rng.exponential(size=shape), 1.0),
    "lognormal": (lambda rng, shape: rng.lognormal(size=shape), math.exp(0.5)),
    "beta(0.3, 3)": (lambda rng, shape: rng.beta(0.3, 3, shape), 0.3 / 3.3),
    "drops, 60 % are 0": (drops, 0.4 * 0.2),
    "difference of two drops": (lambda rng, shape: drops(rng, shape) - drops(rng, shape), 0.0),
}
FAMILIES = {
    "5 pairs": [2] * 5,
    "10 pairs": [2] * 10,
    "10 families of 1 to 6": [1, 1, 1, 2, 2, 2, 3, 3, 4, 6],
    "20 families of 1 to 8": [1] * 8 + [2] * 5 + [3] * 4 + [5, 6, 8],
    "5 clusters of 20": [20] * 5,
    "9 single texts, a family of 20": [1] * 9 + [20],
}
ALIKE = (0.0, 0.5, 1.0)
"""Correlation within families."""


def before(values: FloatArray, groups: Sequence[str] | None = None) -> FloatArray:
    """Percentiles of the means of groups drawn whole."""
    defined = (~np.isnan(values)).astype(np.float64)
    both = np.hstack([group_sums(values, groups), group_sums(defined, groups)])
    drawn = resampled_sums(both, draws=2000)
    return percentiles(drawn[:, : values.shape[1]] / drawn[:, values.shape[1] :])


def covered(ends: FloatArray, mean: float) -> float:
    return float(np.mean((ends[:, 0] <= mean) & (mean <= ends[:, 1])))


def told(name: str, pairs: Sequence[tuple[float, float]]) -> None:
    cells = " | ".join(f"{old:.3f} → {new:.3f}" for old, new in pairs)
    print(f"| {name} | {cells} |", flush=True)


def head(name: str, columns: Sequence[object]) -> None:
    print(f"\n| {name} | {' | '.join(str(c) for c in columns)} |")
    print("| --- " * (len(columns) + 1) + "|")


def means(samples: int) -> None:
    head("texts", SIZES)
    for name, (draw, mean) in SCORES.items():
        row = []
        for n in SIZES:
            values = draw(np.random.default_rng(n), (n, samples))
            row.append((covered(before(values), mean), covered(mean_intervals(values), mean)))
        told(name, row)


def named(sizes: Sequence[int]) -> list[str]:
    return [str(i) for i, size in enumerate(sizes) for _ in range(size)]


def families(samples: int) -> None:
    head("normal scores, correlation", ALIKE)
    for name, sizes in FAMILIES.items():
        groups, row = named(sizes), []
        of = np.array(groups, dtype=int)
        for alike in ALIKE:
            rng = np.random.default_rng(1)
            common, own = (rng.normal(size=(k, samples)) for k in (len(sizes), len(groups)))
            values = math.sqrt(alike) * common[of] + math.sqrt(1 - alike) * own
            row.append(
                (covered(before(values, groups), 0), covered(mean_intervals(values, groups), 0))
            )
        told(name, row)


def shares() -> None:
    """Exact: the probability of each number of hits is known."""
    rates = np.linspace(0.01, 0.99, 197)
    head("shares, rates from .01 to .99", SIZES)
    found = []
    for n in SIZES:
        ends = np.array([wilson(hits, n) for hits in range(n + 1)])
        held = (ends[:, :1] <= rates) & (rates <= ends[:, 1:])
        found.append((binom.pmf(np.arange(n + 1)[:, None], n, rates) * held).sum(axis=0))
    some = (rates > 0.099) & (rates < 0.901)
    for name, figures in (
        ("mean over rates", [c.mean() for c in found]),
        ("worst rate", [c.min() for c in found]),
        ("worst rate from .1 to .9", [c[some].min() for c in found]),
    ):
        print(f"| {name} | {' | '.join(f'{v:.3f}' for v in figures)} |")
    head("shares in families, correlation", ALIKE)
    for name, sizes in FAMILIES.items():
        groups, row = named(sizes), []
        of = np.array(groups, dtype=int)
        for alike in ALIKE:
            rng, held_at = np.random.default_rng(3), []
            for rate in (0.02, 0.05, 0.1, 0.2, 0.35, 0.5):
                common = (rng.random((400, len(sizes))) < rate)[:, of]
                own = rng.random(common.shape) < rate
                follows = rng.random(common.shape) < math.sqrt(alike)
                hits = np.where(follows, common, own).astype(np.float64)
                ends = np.array([share_interval(h, groups) for h in hits])
                held_at.append(covered(ends, rate))
            row.append(f"{np.mean(held_at):.3f} (worst {min(held_at):.3f})")
        print(f"| {name} | {' | '.join(row)} |", flush=True)


def cost() -> None:
    head("seconds for 15 methods, 20 quantities", (200, 2000))
    figures = []
    for n in (200, 2000):
        values, spent = np.random.default_rng(0).random((n, 15)), []
        for way in (before, mean_intervals):
            start = time.perf_counter()
            for _ in range(20):
                way(values)
            spent.append(time.perf_counter() - start)
        figures.append(f"{spent[0]:.2f} → {spent[1]:.3f}")
    print(f"| all intervals | {' | '.join(figures)} |")


def leads(audits: int, methods: int = 6, quantities: int = 4) -> None:
    """Whole tables in which all methods are equally good: how often is any two told apart, how
    often does one lead every other, how often is one said to beat chance?"""
    kinds: dict[str, Callable[[np.random.Generator, int], FloatArray]] = {
        "independent, normal": lambda rng, n: rng.normal(size=(n, methods)),
        "correlated .95, normal": lambda rng, n: (
            math.sqrt(0.95) * rng.normal(size=(n, 1))
            + math.sqrt(0.05) * rng.normal(size=(n, methods))
        ),
        "lognormal": lambda rng, n: rng.lognormal(size=(n, methods)),
        "drops, 60 % are 0": lambda rng, n: drops(rng, (n, methods)),
        "hits, 5 % are 1": lambda rng, n: (rng.random((n, methods)) < 0.05).astype(float),
        "equal but on one text of ten": lambda rng, n: (
            rng.normal(size=(n, 1))
            + np.where(rng.random((n, 1)) < 0.1, rng.normal(size=(n, methods)), 0.0)
        ),
    }
    sizes = (12, 20, 60)  # of fewer than 12 nothing can be told in 60 comparisons
    head(f"{audits:,} tables of {methods} methods, {quantities} quantities", sizes)
    names = [f"method {i}" for i in range(methods - 1)] + ["random"]
    for kind, draw in kinds.items():
        row = []
        for n in sizes:
            rng, told_apart, led, above = np.random.default_rng(n), 0, 0, 0
            for _ in range(audits):
                tables = {str(q): draw(rng, n) for q in range(quantities)}
                found = compare_all(tables, names, chance=["random"])
                told_apart += any(len({e.group for e in s.entries}) > 1 for s in found)
                led += any(not any(e.tied_with_best for e in s.entries) for s in found)
                above += any(e.better_than_chance is True for s in found for e in s.entries)
            row.append(" ".join(f"{count / audits:.3f}" for count in (told_apart, led, above)))
        print(f"| {kind} | {' | '.join(row)} |", flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--samples", type=int, default=4000)
    parser.add_argument("--leads", type=int, default=0, metavar="TABLES")
    asked = parser.parse_args()
    if asked.leads:
        leads(asked.leads)
    else:
        means(asked.samples)
        families(asked.samples)
        shares()
        cost()
