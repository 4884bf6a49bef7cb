"""The results as a table, and as pictures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

REACHED, MISSED, NO_BAR = "#0072B2", "#D55E00", "#999999"


def reached(row: Mapping[str, Any]) -> bool | None:
    """Whether the bar was reached; None where there is none, or no number."""
    if row.get("bar") is None or row.get("ratio") is None:
        return None
    return bool(row["ratio"] <= row["bar"] if row.get("at_most") else row["ratio"] >= row["bar"])


def table(rows: Sequence[Mapping[str, Any]]) -> str:
    """All rows under each other, for the terminal."""
    head = ("case", "peer", "ours", "peer's", "ratio", "bar", "difference")
    lines = [head, *(_cells(row) for row in rows)]
    widths = [max(len(line[i]) for line in lines) for i in range(len(head))]
    return "\n".join(
        "  ".join(
            cell.ljust(width) if i < 2 else cell.rjust(width)
            for i, (cell, width) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line in lines
    )


def line(row: Mapping[str, Any]) -> str:
    """One row, for the progress of a run."""
    case, peer, ours, theirs, ratio, bar, difference = _cells(row)
    numbers = f"ours {ours}, {peer or 'no peer'} {theirs}, ratio {ratio} {bar}, apart {difference}"
    return f"{case}: {numbers}. {row.get('note', '')}"


def _cells(row: Mapping[str, Any]) -> tuple[str, ...]:
    mark = {True: "reached", False: "MISSED", None: ""}[reached(row)]
    bar = "" if row.get("bar") is None else f"{'≤' if row.get('at_most') else '≥'} {row['bar']:g}"
    return (
        row["case"],
        row["peer"],
        _number(row["ours_s"], " s"),
        _number(row["peer_s"], " s"),
        _number(row["ratio"], ""),
        f"{bar} {mark}".strip(),
        _number(row["max_difference"], ""),
    )


def _number(value: float | None, unit: str) -> str:
    return "–" if value is None else f"{value:.3g}{unit}"


def ratios(rows: Sequence[Mapping[str, Any]], stem: Path) -> None:
    """How many times faster, and how little less: an axis each, with the bars to reach."""
    shown = [r for r in rows if r["peer"] and r["ratio"]]
    groups = {
        "times faster than the peer (black: the bar to reach)": [
            r for r in shown if not r.get("at_most")
        ],
        "share of the peer's questions (black: the bar to stay below)": [
            r for r in shown if r.get("at_most") and r["max_difference"] is None
        ],
        "largest difference from the peer (black: the bar to stay below)": [
            r for r in shown if r.get("at_most") and r["max_difference"] is not None
        ],
    }
    filled = {about: members for about, members in groups.items() if members}
    if not filled:
        return
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    heights = [1 + len(members) for members in filled.values()]
    figure, grid = pyplot.subplots(
        len(filled),
        1,
        figsize=(10, 1 + 0.3 * sum(heights)),
        height_ratios=heights,
        squeeze=False,
    )
    for axes, (about, members) in zip(grid.ravel(), filled.items(), strict=True):
        _bars(axes, members, about)
    figure.tight_layout()
    _write(figure, stem)


def _bars(axes: Any, rows: Sequence[Mapping[str, Any]], about: str) -> None:
    least = min(min(r["ratio"], r["bar"] or r["ratio"], 1) for r in rows) / 2
    start = least if rows[0].get("at_most") else 1
    for place, row in enumerate(reversed(rows)):
        colour = {True: REACHED, False: MISSED, None: NO_BAR}[reached(row)]
        axes.barh(place, row["ratio"] - start, left=start, color=colour, height=0.62)
        axes.annotate(f" {row['ratio']:.3g}", (row["ratio"], place), va="center", fontsize=8)
        if row.get("bar") is not None:
            axes.plot([row["bar"]] * 2, [place - 0.4, place + 0.4], color="black", lw=2)
    names = [f"{r['case'].removeprefix('agreement: ')} – {r['peer']}" for r in reversed(rows)]
    axes.set_yticks(range(len(rows)), names, fontsize=8)
    axes.set_xscale("log")
    axes.set_xlim(left=least)
    axes.margins(x=0.12)
    axes.set_xlabel(about, fontsize=9)


def curves(lines: Mapping[str, Sequence[tuple[float, float]]], x: str, y: str, stem: Path) -> None:
    """Lines of measured points on two log axes."""
    figure, axes = _figure(7, 5)
    for name, points in lines.items():
        if points:
            axes.plot(*zip(*points, strict=True), marker="o", ms=4, label=name)
    axes.set(xscale="log", yscale="log", xlabel=x, ylabel=y)
    axes.grid(alpha=0.3)
    axes.legend(fontsize=8)
    _save(figure, stem)


def panels(
    rows: Sequence[Mapping[str, Any]], sweeps: Sequence[str], values: Sequence[str], stem: Path
) -> None:
    """One panel per thing that grows and per thing it costs; a line per method and model."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, grid = pyplot.subplots(
        len(values), len(sweeps), figsize=(3.6 * len(sweeps), 3.2 * len(values)), squeeze=False
    )
    names = sorted({(r["method"], r["model"]) for r in rows})
    for across, sweep in enumerate(sweeps):
        for down, value in enumerate(values):
            axes = grid[down][across]
            for place, (method, model) in enumerate(names):
                points = sorted(
                    (r["size"], r[value])
                    for r in rows
                    if (r["sweep"], r["method"], r["model"]) == (sweep, method, model)
                )
                if points:
                    axes.plot(
                        *zip(*points, strict=True),
                        marker="o",
                        ms=3,
                        color=pyplot.get_cmap("tab20")(place % 20),
                        ls="-" if model == "text_cnn" else "--",
                        label=f"{method}, {model}",
                    )
            axes.set(xscale="log", yscale="log", xlabel=sweep, ylabel=value.replace("_", " "))
            sizes = sorted({r["size"] for r in rows if r["sweep"] == sweep})
            axes.set_xticks(sizes, [f"{size:,}" for size in sizes], fontsize=8)
            axes.set_xticks([], minor=True)
            if value.endswith("_mb"):
                # one scale for all, so that noise does not look like growth
                axes.set_ylim(100, 4096)
                axes.axhline(2048, color="black", lw=0.8, ls=":")
            axes.grid(alpha=0.3)
    handles: dict[str, Any] = {}
    for axes in grid.ravel():
        for handle, label in zip(*axes.get_legend_handles_labels(), strict=True):
            handles.setdefault(label, handle)
    figure.legend(handles.values(), handles.keys(), loc="lower center", ncols=4, fontsize=8)
    figure.tight_layout(rect=(0, 0.12, 1, 1))
    _write(figure, stem)


def _figure(width: float, height: float) -> tuple[Any, Any]:
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    return pyplot.subplots(figsize=(width, height))


def _save(figure: Any, stem: Path) -> None:
    figure.tight_layout()
    _write(figure, stem)


def _write(figure: Any, stem: Path) -> None:
    from matplotlib import pyplot

    stem.parent.mkdir(exist_ok=True)
    for kind in ("png", "svg"):
        figure.savefig(stem.with_name(f"{stem.name}.{kind}"), dpi=130)
    pyplot.close(figure)
