"""A dry run in words: the answer, and what else a reader must know."""

from __future__ import annotations

from collections.abc import Sequence

from ..core.inputs import Nouns
from ..results.statistics import defined_mean, percent
from ..results.verdicts import listed
from .dryrun_findings import CueResult, DryRunFindings, MethodProfile
from .dryrun_record import DryRun, Key, Trial

MOST_NAMED = 3
SIGNS = {"exposes": "✓", "unclear": "?", "hides": "✗"}


def sentences(dry: DryRun, found: DryRunFindings) -> str:
    """All of it, a line each."""
    return "\n".join([headline(dry, found), *remarks(dry, found)])


COUNTS = ("no", "one", "two", "three", "four", "five")


def any_few(dry: DryRun) -> str:
    """What chance looks at: any three words."""
    nouns, top = dry.nouns, dry.top
    return (
        f"any {COUNTS[top] if top < len(COUNTS) else top} {nouns.unit if top == 1 else nouns.units}"
    )


def glance(dry: DryRun, of: str = "") -> str:
    """What a reader looks at, of a method: its three strongest words have a planted one."""
    nouns, top = dry.nouns, dry.top
    if top == 1:
        return f"{of or 'the'} strongest {nouns.unit} is a planted one"
    count = COUNTS[top] if top < len(COUNTS) else top
    return f"a planted {nouns.unit} is among {of or 'the'} {count} strongest {nouns.units}"


def headline(dry: DryRun, found: DryRunFindings) -> str:
    """The answer to "would this method have shown me that my model cheats?"."""
    n = len(found.cells)
    if not n:
        return (
            "Nothing can be said yet: no trial has been scored."
            if dry.missing or not dry.trials
            else "Nothing can be said: the model learnt none of the cues so well that it must have "
            "used them."
        )
    cues = "the one planted cue" if n == 1 else f"all {n} planted cues"
    best = max(len(p.exposes) for p in found.methods) if found.methods else 0
    leaders = [p.method for p in found.methods if len(p.exposes) == best]
    if not best:
        return f"No method would have shown you {cues if n == 1 else f'any of {n} planted cues'}."
    if best == n:
        return f"{listed(leaders)} would have shown you {cues}."
    verb = "came closest" if len(leaders) == 1 else "come closest"
    return f"No method would have shown you {cues}; {listed(leaders)} {verb} with {best} of {n}."


def remarks(dry: DryRun, found: DryRunFindings) -> list[str]:
    """What else a reader must know, most important first."""
    lines = []
    hiding = sorted((p for p in found.methods if p.hides), key=lambda p: -len(p.hides))
    n = len(found.cells)
    lines += [
        f"{p.method} hid {len(p.hides)} of {n}: {named(dry, p.hides)}." for p in hiding[:MOST_NAMED]
    ]
    if len(hiding) > MOST_NAMED:
        rest = [f"{p.method} ({len(p.hides)} of {n})" for p in hiding[MOST_NAMED:]]
        lines.append(f"Cues were hidden also by {listed(rest)}.")
    nobody = [c.key for c in found.cells if all(c.key not in p.exposes for p in found.methods)]
    if nobody:
        lines.append(f"No method exposed {named(dry, nobody)}.")
    lines += _about_alarms(dry, found)
    if n and not hiding:
        lines.append("No method hid any of them for sure.")
    lines += _about_sides(dry, [c for c in found.cells if c.one_sided])
    if any(p.decoys is not None for p in found.methods):
        tempted = [p for p in found.methods if p.decoys and p.decoys.above]
        lines.append(_about_decoys(tempted, dry.nouns))
    lines += _about_unscored(dry, [t for _, trials in found.left_out for t in trials])
    if found.seeds == 1:
        lines.append(
            f"One seed only: intervals speak of other {dry.nouns.many}, not of other trainings. "
            "Give --seeds 3 for that."
        )
    if dry.missing:
        lines.append(
            f"{dry.missing} of {len(dry.config['trials'])} trials are still missing: the same "
            "command goes on with them."
        )
    return lines


def _about_alarms(dry: DryRun, found: DryRunFindings) -> list[str]:
    """How often the first methods show what a model never saw, and who shows it as often."""
    if not found.cells:
        return []
    lines = []
    nouns = dry.nouns
    most = max((len(p.exposes) for p in found.methods), default=0)
    leaders = [p for p in found.methods if p.clean == p.clean and len(p.exposes) == most]
    for p in leaders[:MOST_NAMED]:
        lines.append(
            f"{p.method}: shown in {percent(p.mean)} of {nouns.many}; on models that never saw the "
            f"cue, in {percent(p.clean)}."
        )
    for p in found.methods:
        alarms = [
            (c.key, s)
            for c in found.cells
            if (s := c.sights.get(p.method)) is not None and s.false_alarm and s.beats_chance
        ]
        if alarms:
            rates = [
                percent(defined_mean([getattr(s, name) for _, s in alarms]))
                for name in ("share", "clean")
            ]
            lines.append(
                f"{p.method} points to {named(dry, [key for key, _ in alarms])} whether it was "
                f"learnt ({rates[0]}) or not ({rates[1]}): that exposes nothing."
            )
    if dry.lacks_clean:
        lines.append(
            "How often methods show a cue that a model never saw is not known of every cue: the "
            "same command without --no-clean finds it out, and keeps what is done."
        )
    return lines


def _about_decoys(tempted: Sequence[MethodProfile], nouns: Nouns) -> str:
    if not tempted:
        return f"No method gave decoys more weight than their share of the {nouns.units}."
    excess = sorted(
        ((p.decoys.mean - p.decoys.expected, p.method, p.decoys) for p in tempted if p.decoys),
        reverse=True,
        key=lambda one: one[0],
    )
    parts = [
        f"{method} ({percent(share.mean)} of its weight on {percent(share.expected)} of "
        f"the {nouns.units})"
        for _, method, share in excess[:MOST_NAMED]
    ]
    if len(excess) > MOST_NAMED:
        parts.append(f"{len(excess) - MOST_NAMED} more")
    alike = f"{nouns.units} that look alike and tell nothing"
    return f"Led astray by decoys, {alike}: {listed(parts)}."


def _about_sides(dry: DryRun, cells: Sequence[CueResult]) -> list[str]:
    """Of every cue that was learnt from one side, one sentence."""
    lines = []
    for cue in dict.fromkeys(c.cue for c in cells):
        mine = [c for c in cells if c.cue == cue]
        marks = dry.config["cues"][cue].get("marks", ())
        shares = sorted(mine[0].by_mark.items(), key=lambda one: -one[1])
        many, first = dry.nouns.many, "it" if -1 in mine[0].by_mark else "the first"
        parts = [f"{percent(share)} of {many} {with_mark(mark, marks)}" for mark, share in shares]
        lines.append(
            f"Learnt from one side: {named(dry, [c.key for c in mine])}. Methods show it in "
            f"{listed(parts)}: the model seems to know {first} and to go by its absence, and "
            "what is absent has no colour."
        )
    return lines


def with_mark(mark: int, marks: Sequence[str]) -> str:
    """Which mark inputs have: that of a label, the only one there is, or none."""
    if mark < 0:
        return "without it"
    if len(marks) == 1:
        return "with it"
    return f"with “{marks[mark] if mark < len(marks) else mark}”"


def _about_unscored(dry: DryRun, trials: Sequence[Trial]) -> list[str]:
    """One sentence for each cue and reason."""
    groups: dict[tuple[str, str], list[Trial]] = {}
    for trial in trials:
        groups.setdefault((trial.cue, trial.status), []).append(trial)
    lines = []
    for members in groups.values():
        keys = list(dict.fromkeys(t.key for t in members))
        all_of = [t for t in dry.trials if t.key in keys]
        some = "" if len(members) == len(all_of) else f" in {len(members)} of {len(all_of)} trials"
        lowest = min(members, key=lambda t: t.accuracy)
        more = f" (the lowest of {len(members)} trainings)" if len(members) > 1 else ""
        lines.append(f"Not scored{some}: {named(dry, keys)}; {lowest.why}{more}.")
    return lines


def _percent(share: float) -> str:
    return f"{100 * share:.3g} %"


def named(dry: DryRun, keys: Sequence[Key]) -> str:
    """Cues with their strengths: articles (100 %, 90 %), a phrase (90 %)."""
    by_cue: dict[str, list[float]] = {}
    for cue, strength in keys:
        by_cue.setdefault(cue, []).append(strength)
    return ", ".join(
        f"{dry.title(cue)} ({', '.join(map(_percent, strengths))})"
        for cue, strengths in by_cue.items()
    )
