"""Covering rows by columns at the least cost, where of rival columns only one may be taken.

A mixed-integer programme that solvers prove slowly. What is dropped, split and searched here is
exact or honest: every answer comes with a bound below which no answer can lie.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..core.errors import MissingExtra
from ..core.inputs import BoolArray, FloatArray, IntArray
from ..engine.executors import cores

SMALL = 400
"""Programmes of no more columns go to the solver as they are."""

SEARCH, FIRST = 0.8, 0.15
"""The share of the time in which better answers are searched before the rest is proven: in one
piece, and in pieces, whose answers are searched on from."""

STALE = 80
"""So many searches without a gain, and there is little left to find."""

QUICK, SLOW, LONGEST = 0.15, 0.3, 1.0
"""Seconds of one search: below the first it widens, above the second it narrows."""

SLOWEST = 0.1
"""Prices that move more slowly than this have settled."""

ROUNDING = 1e-6
"""Costs nearer than this are one cost: solvers promise no more."""


@dataclass(frozen=True)
class Cover:
    """Columns with costs, the columns that cover each row, and groups of rivals."""

    costs: FloatArray  # (columns,)
    rows: tuple[frozenset[int], ...]
    rivals: tuple[frozenset[int], ...] = ()

    def fits(self, chosen: BoolArray) -> bool:
        """Whether every row is covered and no two rivals are taken."""
        taken = set(np.flatnonzero(chosen).tolist())
        return all(row & taken for row in self.rows) and all(
            len(group & taken) <= 1 for group in self.rivals
        )

    def with_slack(self, penalty: float) -> Cover:
        """The same with a column of its own for each row, which stands for leaving it bare."""
        n = len(self.costs)
        return replace(
            self,
            costs=np.concatenate([self.costs, np.full(len(self.rows), penalty)]),
            rows=tuple(row | {n + i} for i, row in enumerate(self.rows)),
        )

    def part(self, columns: IntArray) -> Cover:
        """The rows and rivals of these columns alone, which are numbered anew."""
        place = {int(column): i for i, column in enumerate(columns)}
        return Cover(
            self.costs[columns],
            _renumbered(self.rows, place),
            tuple(group for group in _renumbered(self.rivals, place) if len(group) > 1),
        )


def _renumbered(
    sets: Sequence[frozenset[int]], place: dict[int, int]
) -> tuple[frozenset[int], ...]:
    kept = (frozenset(place[c] for c in old if c in place) for old in sets)
    return tuple(new for new in kept if new)


@dataclass(frozen=True)
class CoverSolution:
    """What to take, what no answer can be cheaper than, and which rows had to be left bare."""

    chosen: BoolArray  # (columns,)
    cost: float
    bound: float
    proven: bool
    bare: tuple[int, ...] = ()

    @property
    def slack(self) -> bool:
        """Whether rows were left bare, since not all can be covered or no way was found in time."""
        return bool(self.bare)

    @property
    def gap(self) -> float:
        """How much cheaper the best answer might be, as a share of this one's cost."""
        return max(0.0, self.cost - self.bound) / self.cost if self.cost > ROUNDING else 0.0


Solver = Callable[[Cover, float], tuple[BoolArray | None, float, str]]
"""(cover, seconds) → what to take if anything was found, a bound, and how it ended."""


def solve_cover(
    cover: Cover, *, seconds: float, penalty: float, rng: np.random.Generator, solver: Solver
) -> CoverSolution:
    """The cheapest answer found in time; rows are left bare only where not all can be covered."""
    end = time.perf_counter() + seconds
    chosen = np.zeros(len(cover.costs), dtype=np.bool_)
    # a row that no column covers belongs to no part
    hopeless = penalty * sum(not row for row in cover.rows)
    cost = bound = hopeless
    proven = True
    parts = components(cover)
    for i, columns in enumerate(parts):
        left = max(0.01, end - time.perf_counter()) * len(columns) / sum(map(len, parts[i:]))
        found = _solved(cover.part(columns), left, penalty, rng, solver)
        chosen[columns] = found.chosen[: len(columns)]
        cost, bound = cost + found.cost, bound + found.bound
        proven = proven and found.proven
    taken = set(np.flatnonzero(chosen).tolist())
    bare = tuple(i for i, row in enumerate(cover.rows) if not row & taken)
    return CoverSolution(chosen, cost, bound, proven, bare)


def _solved(
    part: Cover, seconds: float, penalty: float, rng: np.random.Generator, solver: Solver
) -> CoverSolution:
    """One part without slack, or with it where it has no answer or none is found in time."""
    end = time.perf_counter() + seconds
    kept = dominant(part)
    lean = replace(part, rows=tuple(part.rows[r] for r in minimal_rows(part.rows))).part(kept)
    groups = components(lean)
    chosen = np.zeros(len(part.costs), dtype=np.bool_)
    cost, bound, proven = 0.0, 0.0, True
    for i, columns in enumerate(groups):
        left = max(0.01, end - time.perf_counter()) * len(columns) / sum(map(len, groups[i:]))
        found = _searched(lean.part(columns), left, rng, solver)
        if found is None:
            break
        chosen[kept[columns]] = found.chosen
        cost, bound, proven = cost + found.cost, bound + found.bound, proven and found.proven
    else:
        return CoverSolution(chosen, cost, bound, proven)
    # a bare row says nothing of the rows that hold it, so here all rows count
    answer = _searched(part.with_slack(penalty), max(1.0, end - time.perf_counter()), rng, solver)
    assert answer is not None, "all rows may be left bare"
    return answer


def _searched(
    part: Cover, seconds: float, rng: np.random.Generator, solver: Solver
) -> CoverSolution | None:
    """None if there is no answer, or none was found."""
    end = time.perf_counter() + seconds
    free = np.ones(len(part.costs), dtype=np.bool_)
    best, bound = None, -np.inf
    if len(free) > SMALL:
        relaxed = _relaxed(part, seconds / 2)
        if relaxed is None:
            return None
        bound = relaxed.bound
        divides = bool(part.rivals) and len(components(replace(part, rivals=()))) > 1
        first = FIRST if divides else SEARCH
        best = _found(part, relaxed, end - (1 - first) * seconds, rng)
        if best is not None:
            # a column whose reduced cost exceeds what can still be gained is in no better answer
            gain = float(part.costs @ best) - bound
            free = (relaxed.reduced <= gain + ROUNDING) | best
            if divides and gain > ROUNDING:
                best, bound = _divided(part, np.flatnonzero(free), best, relaxed, end, rng, solver)
    left = end - time.perf_counter()
    if best is not None and (left < 1 or part.costs @ best - bound < ROUNDING):
        proven = bool(part.costs @ best - bound < ROUNDING)
        return _answer(part, best, bound, proven)
    columns = np.flatnonzero(free)
    exact, below, ended = solver(part.part(columns), max(0.01, left))
    if exact is None and best is None and ended != "infeasible":
        best = _greedy(part, part.costs)  # no time for more
    if exact is None and best is None:
        return None
    if exact is not None:
        candidate = np.zeros(len(free), dtype=np.bool_)
        candidate[columns[exact]] = True
        if part.fits(candidate) and (
            best is None or part.costs @ candidate < part.costs @ best - ROUNDING
        ):
            best = candidate
    assert best is not None
    return _answer(part, best, max(0.0, bound, below), ended == "optimal")


def _answer(part: Cover, chosen: BoolArray, bound: float, proven: bool) -> CoverSolution:
    cost = float(part.costs @ chosen)
    return CoverSolution(chosen, cost, cost if proven else min(bound, cost), proven)


# ---- less to solve ----------------------------------------------------------------------------


def dominant(cover: Cover) -> IntArray:
    """The columns worth having: one that covers no more than another, which costs no more and has
    no rival, is never needed."""
    members: dict[int, set[int]] = {}
    for r in minimal_rows(cover.rows):
        for column in cover.rows[r]:
            members.setdefault(column, set()).add(r)
    rivalled = {c for group in cover.rivals for c in group}
    alive = set(members)
    for column in sorted(alive, key=lambda c: (len(members[c]), -cover.costs[c], -c)):
        shortest = min((cover.rows[r] for r in members[column]), key=len)
        if any(
            other in alive
            and other != column
            and other not in rivalled
            and cover.costs[other] <= cover.costs[column]
            and members[column] <= members[other]
            for other in shortest
        ):
            alive.discard(column)
    return np.array(sorted(alive), dtype=np.int64)


def minimal_rows(rows: Sequence[frozenset[int]]) -> list[int]:
    """Rows that hold no other row: whatever covers the smaller covers the larger."""
    holding: dict[int, list[int]] = {}
    kept: list[int] = []
    for r in sorted(range(len(rows)), key=lambda r: (len(rows[r]), r)):
        if rows[r] and not any(
            rows[smaller] <= rows[r] for c in rows[r] for smaller in holding.get(c, ())
        ):
            kept.append(r)
            # a row is filed under one of its columns: any row that holds it has that one too
            rarest = min(rows[r], key=lambda c: len(holding.get(c, ())))
            holding.setdefault(rarest, []).append(r)
    return sorted(kept)


def components(cover: Cover) -> list[IntArray]:
    """Columns that no row and no rivalry binds to others, the smallest groups first."""
    parent = {c: c for row in cover.rows for c in row}

    def root(c: int) -> int:
        while parent[c] != c:
            parent[c] = c = parent[parent[c]]
        return c

    for group in (*cover.rows, *cover.rivals):
        members = [c for c in group if c in parent]
        for c in members[1:]:
            parent[root(c)] = root(members[0])
    groups: dict[int, list[int]] = {}
    for c in parent:
        groups.setdefault(root(c), []).append(c)
    found = [np.array(sorted(group), dtype=np.int64) for group in groups.values()]
    return sorted(found, key=lambda group: (len(group), int(group[0])))


# ---- bounds and searches ----------------------------------------------------------------------


def _matrix(sets: Sequence[frozenset[int]], n: int) -> Any:
    """A sparse row per set. → (sets, n)"""
    from scipy.sparse import csr_array

    lengths = [len(members) for members in sets]
    columns = [c for members in sets for c in sorted(members)]
    ends = np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)])
    return csr_array((np.ones(len(columns)), columns, ends), shape=(len(sets), n))


@dataclass(frozen=True)
class _Relaxed:
    """What the linear programme says: no answer costs less, what a column costs beyond what it is
    worth, and what it is worth to take none of some rivals."""

    bound: float
    reduced: FloatArray  # (columns,)
    prices: FloatArray  # (rivals,)


def _relaxed(part: Cover, seconds: float) -> _Relaxed | None:
    """None if even the linear programme has no answer."""
    from scipy.optimize import linprog
    from scipy.sparse import vstack

    n = len(part.costs)
    rows, rivals = _matrix(part.rows, n), _matrix(part.rivals, n)
    ends = np.concatenate([-np.ones(len(part.rows)), np.ones(len(part.rivals))])
    found = linprog(
        part.costs,
        A_ub=vstack([-rows, rivals]),
        b_ub=ends,
        bounds=(0, None),
        options={"time_limit": seconds},
    )
    if found.status == 2:
        return None
    if found.status != 0:
        # no time: a row costs no less than its cheapest column's cost, shared by that one's rows
        shared = part.costs / np.maximum(rows.sum(axis=0), 1)
        cheapest = float(sum(shared[list(row)].min() for row in part.rows))
        return _Relaxed(cheapest, np.zeros(n), np.zeros(len(part.rivals)))
    prices = np.maximum(0.0, -np.asarray(found.ineqlin.marginals)[len(part.rows) :])
    return _Relaxed(float(found.fun), np.asarray(found.lower.marginals), prices)


def _divided(
    part: Cover,
    columns: IntArray,
    best: BoolArray,
    relaxed: _Relaxed,
    end: float,
    rng: np.random.Generator,
    solver: Solver,
) -> tuple[BoolArray, float]:
    """A better answer among these columns, if there is one, and a higher bound, by pieces that only
    rivals bind, such as the labels.

    Each is solved by itself, which takes far less than all at once, while rivals pay a price for
    being taken (Lagrange): what all cost, less the prices, no answer can be cheaper than. Then each
    is solved beside what the best answer takes of the others, and prices rise where rivals were
    taken and fall where none was.
    """
    n, bound, prices, pace = len(part.costs), relaxed.bound, relaxed.prices, 1.0
    rows, rivals = _matrix(part.rows, n), _matrix(part.rivals, n)
    pieces = [columns[p] for p in components(replace(part.part(columns), rivals=()))]
    while True:
        began = time.perf_counter()
        priced = Cover(part.costs + rivals.T @ prices, part.rows)
        taken, below, solved = _apart(priced, pieces, SEARCH * (end - began), solver)
        took = time.perf_counter() - began
        below -= float(prices.sum())
        pace = pace if below > bound + ROUNDING else pace / 2
        bound = max(bound, below)
        best = _cheaper(part, best, taken if part.fits(taken) else None)
        for piece in pieces if solved else ():
            own = np.zeros(n, dtype=np.bool_)
            own[piece] = True
            seconds = min(2 * took, end - time.perf_counter())
            found = _refilled(part, best, best & own, rows, rivals, own, max(0.01, seconds))
            best = _cheaper(part, best, found)
        best = _improved(part, best, bound, relaxed.reduced, min(end, began + 3 * took), rng)
        cost = float(part.costs @ best)
        uses = rivals @ taken - 1  # 1 where rivals are taken twice, -1 where none is
        wrong = np.where((uses < 0) & (prices <= 0), 0.0, uses)
        late = not solved or end - time.perf_counter() < took
        if cost - bound < ROUNDING or pace < SLOWEST or late or not wrong.any():
            return _improved(part, best, bound, relaxed.reduced, end, rng), bound
        prices = np.maximum(0.0, prices + pace * (cost - below) / (wrong @ wrong) * wrong)


def _cheaper(part: Cover, best: BoolArray, found: BoolArray | None) -> BoolArray:
    return best if found is None or part.costs @ found > part.costs @ best - ROUNDING else found


def _apart(
    cover: Cover, pieces: Sequence[IntArray], seconds: float, solver: Solver
) -> tuple[BoolArray, float, bool]:
    """What is taken if pieces do not mind each other, what it costs at the least, and whether all
    had an answer in time; at the same time where the solver lets go of the interpreter."""
    threads = min(cores(), len(pieces)) if solver is highs else 1
    limit = max(0.01, seconds * threads / len(pieces))
    with ThreadPoolExecutor(threads) as pool:
        found = list(pool.map(lambda piece: solver(cover.part(piece), limit), pieces))
    taken = np.zeros(len(cover.costs), dtype=np.bool_)
    for piece, (chosen, _, _) in zip(pieces, found, strict=True):
        if chosen is not None:
            taken[piece[chosen]] = True
    solved = all(chosen is not None for chosen, _, _ in found)
    # no piece costs less than nothing, whatever a solver that had no time says
    return taken, float(sum(max(0.0, low) for _, low, _ in found)), solved


def _found(
    part: Cover, relaxed: _Relaxed, end: float, rng: np.random.Generator
) -> BoolArray | None:
    """The best answer that a search comes by; None if it leaves a row bare."""
    bound, reduced = relaxed.bound, relaxed.reduced
    prices = np.maximum(reduced, 0.0) + 0.05 * part.costs
    start = _greedy(part, prices)
    if start is not None:
        return _improved(part, start, bound, reduced, end, rng)
    # rivals were taken that some row needs: begin with bare rows, dear enough to be done away with
    dear = 1.0 + float(part.costs.sum())
    beside = np.full(len(part.rows), dear)
    loose, prices = part.with_slack(dear), np.concatenate([prices, beside])
    start = _greedy(loose, prices)
    assert start is not None, "all rows may be left bare"
    found = _improved(loose, start, bound, np.concatenate([reduced, beside]), end, rng)
    n = len(part.costs)
    return None if found[n:].any() else found[:n]


def _greedy(part: Cover, prices: FloatArray) -> BoolArray | None:
    """Columns by the rows they newly cover for their price, less those found superfluous."""
    n = len(prices)
    members: list[list[int]] = [[] for _ in range(n)]
    for r, row in enumerate(part.rows):
        for c in row:
            members[c].append(r)
    against: dict[int, set[int]] = {}
    for group in part.rivals:
        for c in group:
            against.setdefault(c, set()).update(group)
    gains = np.array([len(rows) for rows in members], dtype=np.float64)
    times = np.zeros(len(part.rows), dtype=np.int64)
    chosen, barred = np.zeros(n, dtype=np.bool_), np.zeros(n, dtype=np.bool_)
    worth = prices + 1e-3  # what is free is taken by what it covers
    while (times == 0).any():
        rates = np.where(barred, 0.0, gains / worth)
        column = int(rates.argmax())
        if rates[column] <= 0:
            return None
        chosen[column] = barred[column] = True
        barred[list(against.get(column, ()))] = True
        for r in members[column]:
            if times[r] == 0:
                gains[list(part.rows[r])] -= 1
            times[r] += 1
    for column in sorted(np.flatnonzero(chosen).tolist(), key=lambda c: -part.costs[c]):
        if (times[members[column]] > 1).all():
            chosen[column] = False
            times[members[column]] -= 1
    return chosen


def _improved(
    part: Cover,
    start: BoolArray,
    bound: float,
    reduced: FloatArray,
    end: float,
    rng: np.random.Generator,
) -> BoolArray:
    """Takes some columns out again and again, and solves what is then bare to the end.

    Columns are taken out at random, and around one of them, the dearer the likelier.
    """
    n = len(start)
    rows, rivals = _matrix(part.rows, n), _matrix(part.rivals, n)
    promising = (reduced <= np.quantile(reduced, 0.9)) | start
    best, shares, stale, turn = start.copy(), [0.1, 0.1], 0, 0
    while time.perf_counter() < end and stale < STALE:
        cost = float(part.costs @ best)
        if cost - bound < ROUNDING:
            break
        taken, kind = np.flatnonzero(best), turn % 2
        count = max(1, min(len(taken), int(shares[kind] * len(taken))))
        if kind:
            out = rng.permutation(taken)[:count]
        else:
            weights = part.costs[taken] + ROUNDING
            centre = rng.choice(taken, p=weights / weights.sum())
            near = rows @ (np.arange(n) == centre)
            for _ in range(2):
                near = rows @ ((rows.T @ near) / (part.costs + 1))
            pull = (rows.T @ near)[taken] * rng.random(len(taken))
            out = taken[np.argsort(-pull, kind="stable")[:count]]
        free = np.zeros(n, dtype=np.bool_)
        free[out] = True
        started = time.perf_counter()
        found = _refilled(part, best, free, rows, rivals, promising)
        took = time.perf_counter() - started
        shares[kind] *= 1.1 if took < QUICK else 0.9 if took > SLOW else 1.0
        best = _cheaper(part, best, found)
        stale, turn = 0 if part.costs @ best < cost else stale + 1, turn + 1
    return best


def _refilled(
    part: Cover,
    best: BoolArray,
    free: BoolArray,
    rows: Any,
    rivals: Any,
    promising: BoolArray,
    seconds: float = LONGEST,
) -> BoolArray | None:
    """The cheapest promising columns for the rows that are bare where these need not stay."""
    bare = np.flatnonzero(rows @ (best & ~free) < 1)
    open_to = free.copy()
    open_to[rows[bare].indices] = True
    open_to &= promising | best
    columns = np.flatnonzero(open_to)
    kept = best & ~open_to
    if not len(columns):
        return kept
    within = rivals[:, columns]
    bound = np.flatnonzero(within.sum(axis=1) > 0)
    room = 1.0 - (rivals @ kept)[bound]
    exact, _, _ = _by_highs(
        part.costs[columns], rows[bare][:, columns], within[bound], room, seconds
    )
    if exact is None:
        return None
    found = kept.copy()
    found[columns[exact]] = True
    return found


# ---- solvers ----------------------------------------------------------------------------------


def highs(cover: Cover, seconds: float) -> tuple[BoolArray | None, float, str]:
    """The solver that comes with SciPy."""
    n = len(cover.costs)
    room = np.ones(len(cover.rivals))
    return _by_highs(cover.costs, _matrix(cover.rows, n), _matrix(cover.rivals, n), room, seconds)


def _by_highs(
    costs: FloatArray, rows: Any, rivals: Any, room: FloatArray, seconds: float
) -> tuple[BoolArray | None, float, str]:
    from scipy.optimize import Bounds, LinearConstraint, milp

    limits = [LinearConstraint(rows, 1, np.inf)] if rows.shape[0] else []
    if rivals.shape[0]:
        limits.append(LinearConstraint(rivals, -np.inf, room))
    found = milp(
        costs,
        constraints=limits,
        bounds=Bounds(0, 1),
        integrality=np.ones(len(costs)),
        options={"time_limit": seconds, "mip_rel_gap": 0.0},
    )
    ended = {0: "optimal", 2: "infeasible"}.get(found.status, "time limit")
    bound = -np.inf if found.mip_dual_bound is None else float(found.mip_dual_bound)
    return None if found.x is None else np.asarray(found.x > 0.5), bound, ended


def scip(cover: Cover, seconds: float) -> tuple[BoolArray | None, float, str]:
    """The solver that the paper used, where its package is installed."""
    try:
        from pyscipopt import Model, quicksum
    except ImportError:
        raise MissingExtra("pyscipopt", "scip", "solver=scip") from None
    model = Model()
    model.hideOutput()
    model.setParam("limits/time", seconds)
    columns = [model.addVar(vtype="B", obj=float(cost)) for cost in cover.costs]
    for row in cover.rows:
        model.addCons(quicksum(columns[c] for c in sorted(row)) >= 1)
    for group in cover.rivals:
        model.addCons(quicksum(columns[c] for c in sorted(group)) <= 1)
    model.optimize()
    ended = model.getStatus()
    if ended == "infeasible" or not model.getNSols():
        return None, -np.inf, ended
    chosen = np.array([model.getVal(column) > 0.5 for column in columns])
    return chosen, float(model.getDualbound()), "optimal" if ended == "optimal" else "time limit"
