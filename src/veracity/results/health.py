"""Whether a model is fit to be explained at all: right oftener than chance, and moved by words."""

from __future__ import annotations

import math
import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from ..core.examples import UNLABELLED, written_labels
from ..core.inputs import FloatArray, IntArray, Nouns, Text, input_kind
from .columns import HIDDEN_HOW
from .run import Run
from .separability import SELDOM, length_auc
from .statistics import LEVEL, mcnemar, percent, share_interval

INSENSITIVE = 0.01
"""Answers that move by less than this on average when everything is hidden hang on nothing, unless
they are right surely oftener than chance: some models are never far from even."""

ROUNDING = 1e-6
"""Below this they are the last digits of a sum."""

FAR_BETTER = 0.1
"""And so far must it surely go from chance to being always right."""

ORDER_LEVEL = 0.005
"""So unlikely by chance must it be that labels fit better in another order."""

BY_LENGTH = 0.97
"""From this area under the curve on, how long a text is tells its answer."""

SHUFFLES = 1999

REPEAT_NOISE = 1e-3
"""Answers to one text that differ by more are the model's own noise, no rounding."""

NEARLY_ALL = 0.95
"""From this share of the texts on, one answer leaves the others unseen."""

UNTRAINED = 1e-4
"""Answers that move by less when everything is hidden are most likely those of random weights."""

HARDLY_BETTER = 0.25
"""A model that is surely not so far on the way from chance to being always right, and not shown to
be on it at all, is at chance."""

FEWEST_RIGHT = 2
"""So many of the other answers must be right before they show anything: one may be an oddity."""

LEAST_FOUND = 0.025
"""And such a share of the texts that ought to be answered otherwise must be."""

FAR_BELOW = 0.5
"""A model surely right on less than this share of what always answering one label would be right
on is not fit to be explained."""

RARE_LABEL = 0.2
"""Labels of fewer texts may carry a model that tells nothing of the others."""


KEYS = {
    "chance_accuracy": "dealt",
    "p_vs_chance": "p_dealt",
    "can_beat_chance": "tellable",
    "others_expected": "others_due",
    "label_order": "order",
    "label_order_accuracy": "order_accuracy",
    "repeat_difference": "restless",
}
"""Fields whose keys in JSON are older than their names."""


@dataclass(frozen=True, kw_only=True)
class Health:
    """What is known of a model before any of its explanations is judged."""

    model: str
    """The name of the model."""
    texts: int
    """On so many texts, or pictures, it was looked at."""
    kind: str = Text.kind
    """What the inputs are."""
    accuracy: float | None = None
    """How often it is right; None where nobody labelled the texts."""
    low: float | None = None
    """The lower end of the 95 % interval of that."""
    high: float | None = None
    """The upper end."""
    majority: float | None = None
    """How often always answering the commonest label would be right."""
    majority_label: str = ""
    """That label."""
    chance_accuracy: float | None = None
    """How often the same answers would be right, dealt out to the texts at random."""
    p_vs_chance: float | None = None
    """How likely it would be right so often if its answers were dealt out at random."""
    can_beat_chance: bool = True
    """Whether answers that are all right would have shown more than chance."""
    n_labels: int = 2
    """How many labels it tells apart."""
    usual_label: str = ""
    """What it answers to all texts, or to nearly all; else empty."""
    usual_texts: int = 0
    """To how many it does."""
    others_right: int = 0
    """How many of the other texts it answers rightly."""
    others_expected: int = 0
    """Texts that ought to get another answer than the usual one."""
    only_label: str = ""
    """The one label, of few texts, without which it is hardly right oftener than chance."""
    only_label_recall: float = 0.0
    """How many of its texts are answered rightly."""
    rest_accuracy: float = 0.0
    """How often it is right on all others."""
    label_order: tuple[str, ...] = ()
    """The labels in an order under which the same answers are far oftener right; else empty."""
    label_order_accuracy: float | None = None
    """How often they are right in that order."""
    blank_label: str = ""
    """What it answers with every word deleted."""
    blank_probability: float | None = None
    """The probability that it gives that label."""
    blank_changed: float | None = None
    """The share of texts that it answers otherwise than a text with every word hidden."""
    repeat_difference: float = 0.0
    """By how much its answers to the same text differ, asked twice."""
    rare: tuple[tuple[str, int], ...] = ()
    """Labels that it answers so seldom that nothing is learnt of such answers, and how often."""
    unread_texts: int = 0
    """So many texts it does not read to their end."""
    unread_words: int = 0
    """So many of their words stand beyond what it reads."""
    moved: float | None = None
    """How far answers move on average when every word is hidden; None in older runs."""
    length_auc: float = 0.5
    """How well the length of a text tells its answer, for the answer that it tells best."""
    by_words: bool = False
    """Whether hiding marked words changes answers that hiding as many others leaves as they are."""

    @property
    def nouns(self) -> Nouns:
        return input_kind(self.kind).nouns

    def to_dict(self) -> dict[str, Any]:
        """With what it says."""
        said = {name: getattr(self, name) for name in ("summary", "fault", "caution")}
        return {KEYS.get(name, name): value for name, value in asdict(self).items()} | said

    @property
    def _many(self) -> str:
        """So many inputs, as one says it."""
        return self.nouns.counted(self.texts)

    @property
    def _blanked(self) -> str:
        """How everything was hidden, where it was asked what it answers then."""
        return HIDDEN_HOW[input_kind(self.kind).hidings[0].value]

    @property
    def is_insensitive(self) -> bool:
        """Whether its answers hardly move, and nothing shows that this little means anything."""
        if self.moved is None or self.moved >= INSENSITIVE:
            return False
        return self.moved < ROUNDING or not self._beats_chance

    @property
    def one_sided(self) -> bool:
        """Whether these texts, by their one answer, hide what another would hang on; no text
        helps a model that moves by rounding errors only."""
        if not self.usual_label or (self.moved is not None and self.moved < ROUNDING):
            return False
        return self.is_insensitive or self._at_chance or (self.can_beat_chance and self._unproven)

    @property
    def wants_texts(self) -> bool:
        """Whether other texts are the first thing to try: of an untrained model they are not."""
        return self.one_sided and not self._seems_untrained

    @property
    def _seems_untrained(self) -> bool:
        return self.moved is not None and self.moved < UNTRAINED

    @property
    def _at_chance(self) -> bool:
        if self.accuracy is None or self.chance_accuracy is None or not self.can_beat_chance:
            return False
        hardly = self.chance_accuracy + HARDLY_BETTER * (1 - self.chance_accuracy)
        surely = self._unproven and self.high is not None and self.high < hardly
        return self.accuracy <= self.chance_accuracy or surely

    @property
    def _below_majority(self) -> bool:
        return self.high is not None and self.high < (self.majority or 0.0)

    @property
    def _far_below_majority(self) -> bool:
        return self.high is not None and self.high < FAR_BELOW * (self.majority or 0.0)

    @property
    def _beats_chance(self) -> bool:
        """Whether it is shown to be right oftener than its answers would be, dealt out at random;
        beside an answer to nearly all texts by several of the others."""
        enough = max(FEWEST_RIGHT, LEAST_FOUND * self.others_expected)
        several = not self.usual_label or self.others_right >= enough
        return several and self.p_vs_chance is not None and self.p_vs_chance <= LEVEL

    @property
    def _unproven(self) -> bool:
        """Whether labelled texts fail to show that."""
        return self.p_vs_chance is not None and not self._beats_chance

    @property
    def summary(self) -> str:
        """The figures, in a sentence or two."""
        if self.accuracy is None:
            said = [f"Nobody labelled the {self._many}: how often it is right is not known."]
        else:
            said = [
                f"It is right on {self.accuracy:.3f} of {self._many} (95 % interval "
                f"{self.low:.3f} to {self.high:.3f}); always answering {self.majority_label} would "
                f"be right on {self.majority:.3f}."
            ]
        if self.moved is not None:
            said.append(
                f"With every {self.nouns.unit} {self._blanked} it answers {self.blank_label} "
                f"({self.blank_probability:.2f}); hiding every {self.nouns.unit} moves its answers "
                f"by {_small(self.moved)} on average (1 is as far as can be)."
            )
        if self.blank_changed is not None:
            said.append(
                f"{percent(self.blank_changed)} of the {self.nouns.many} get another answer "
                f"than a {self.nouns.one} with every {self.nouns.unit} {self._blanked}."
            )
        if self.unread_texts:
            said.append(
                f"It does not read {self.unread_texts:,} of the {self.nouns.many} to their end: "
                f"{self.unread_words:,} {self.nouns.units} beyond its limit decide nothing and "
                "score zero."
            )
        return " ".join(said)

    @property
    def diagnosis(self) -> str:
        """What is wrong with the model, so that no explanation of it can be recommended."""
        if self.label_order:
            return (
                f"the model's labels seem to be in another order (as they are, it is right on "
                f"{self.accuracy:.3f} of the {self.nouns.many}; in the other order, on "
                f"{self.label_order_accuracy:.3f})"
            )
        if self.one_sided:
            others = self.texts - self.usual_texts
            if not others:
                return (
                    f"it answers {self.usual_label} to each of the {self._many}, so nothing "
                    "shows what makes it answer otherwise"
                )
            rest = f"the other {others} do" if others > 1 else "the one other does"
            return (
                f"it answers {self.usual_label} to {self.usual_texts} of the {self._many}, "
                f"and {rest} not show what makes it answer otherwise"
            )
        if self.is_insensitive:
            return (
                f"hiding every {self.nouns.unit} moves its answers by {_small(self.moved or 0.0)} "
                f"on average, and nothing shows that they hang on {self.nouns.units}"
            )
        if self._far_below_majority:
            return (
                f"it is right on {self.accuracy:.3f} of {self._many}, far seldomer than always "
                f"answering {self.majority_label} would be ({self.majority:.3f})"
            )
        if not self._at_chance:
            return ""
        oftener = "no" if (self.accuracy or 0.0) <= (self.chance_accuracy or 0.0) else "hardly"
        return (
            f"it is right on {self.accuracy:.3f} of {self._many}, {oftener} oftener than its "
            f"answers would be if they were dealt out at random ({self.chance_accuracy:.3f})"
        )

    @property
    def fault(self) -> str:
        """What is wrong and what to do; empty where nothing is."""
        if self.label_order:
            return (
                f"{self.diagnosis}. If that is so, say --labels "
                f"{shlex.quote(written_labels(self.label_order))} (labels=… in "
                "Python) and give the command again"
            )
        trained = f"that it is trained and that it gets the {self.nouns.many} as it was trained on"
        if self.one_sided and self._seems_untrained:
            return (
                f"{self.diagnosis}, and hiding every {self.nouns.unit} moves its answers by "
                f"{_small(self.moved or 0.0)} on average. Check {trained} them; if it is, bring "
                f"{self.nouns.many} that it answers otherwise"
            )
        if self.one_sided:
            return (
                f"{self.diagnosis}. Bring {self.nouns.many} that it answers otherwise"
                f"{', or move its threshold so that it does' if self.n_labels == 2 else ''}; if it "
                f"never does, check {trained} them"
            )
        if self.is_insensitive:
            return f"{self.diagnosis}. Check {trained} them"
        if self.diagnosis:
            return (
                f"{self.diagnosis}. Check the model, its labels and how {self.nouns.many} are "
                "prepared for it, before explaining it"
            )
        return ""

    @property
    def unsteady(self) -> bool:
        """Whether it answers otherwise when it is asked again."""
        return self.repeat_difference > REPEAT_NOISE

    @property
    def cautions(self) -> tuple[str, ...]:
        """What a reader must know beside any recommendation; what voids most comes first."""
        if self.fault:
            return ()
        found = []
        if self.unsteady:
            found.append(
                f"asked twice about the same {self.nouns.many}, the model answers otherwise (by up "
                f"to {self.repeat_difference:.2g}): what methods find may be its own "
                "noise. Make it answer the same each time"
            )
        if self.caution:
            found.append(self.caution)
        elif self._below_majority:
            found.append(
                f"it is right less often than always answering {self.majority_label} would be "
                f"({self.accuracy:.3f} against {self.majority:.3f}): many of the answers that are "
                "explained are wrong"
            )
        if self.only_label and not self.caution:
            found.append(
                f"it is right on {percent(self.only_label_recall)} of the {self.nouns.many} that "
                f"are {self.only_label}; on all others ({self.rest_accuracy:.3f}) it is not shown "
                "to be right oftener than chance. What is found may hold of that answer alone"
            )
        if self.length_auc >= BY_LENGTH and not self.by_words:
            found.append(goes_by_length(self.length_auc, self.nouns))
        if self.moved is not None and self.moved < INSENSITIVE:
            found.append(
                f"hiding every {self.nouns.unit} moves its answers by {_small(self.moved)} only: "
                "read the order of scores, not their size"
            )
        return tuple(found)

    @property
    def rare_cautions(self) -> tuple[str, ...]:
        """Of which answers hardly anything is learnt."""
        return tuple(
            f"only {count} of the {self.texts} {self.nouns.many} "
            f"{'is' if count == 1 else 'are'} answered {label}: this audit says hardly "
            "anything of explanations of that answer. Bring more "
            f"such {self.nouns.many}"
            for label, count in ([] if self.fault else self.rare)
        )

    @property
    def caution(self) -> str:
        """What keeps a reader from trusting the model; empty where nothing does."""
        if self.fault or not self._unproven:
            return ""
        if not self.can_beat_chance:
            return (
                f"{self._many}, {percent(self.majority or 0.0)} of them {self.majority_label}, "
                "cannot show whether the model is right oftener than chance: bring more labelled "
                f"{self.nouns.many}"
            )
        return (
            f"{self._many} do not show that the model is right oftener than its answers "
            f"would be if dealt out at random ({self.chance_accuracy:.3f}): bring more "
            f"labelled {self.nouns.many}, or mend it"
        )


def health(run: Run, model: str) -> Health:
    """Read from a run's predictions and its tests of the model."""
    labels = [x for x in run.labels if x != UNLABELLED]
    answers = run.predictions(model)
    gold_of = run.gold()
    ids = [name for name in answers if name in gold_of]
    gold = np.array([gold_of[name] for name in ids], dtype=np.int64)
    said = np.array([int(np.argmax(answers[name])) for name in ids], dtype=np.int64)
    blank = run.summaries().get(model, {}).get("", {}).get("blank", {})
    if None in [blank.get(name) for name in ("moved", "probability", "changed")]:
        blank = {}
    blanks = run.columns("blank", model).get("label")
    unread = run.config.models[model].unread
    found = Health(
        model=model,
        texts=len(ids),
        kind=run.config.dataset.kind,
        moved=blank.get("moved"),
        blank_probability=blank.get("probability"),
        blank_changed=blank.get("changed"),
        repeat_difference=_repeat_difference(run, model, list(gold_of), answers),
        length_auc=length_auc(_lengths(run), dict(zip(ids, said.tolist(), strict=True))),
        rare=_rare(said, labels),
        unread_texts=int(unread.get("texts", 0)),
        unread_words=int(unread.get("words", 0)),
        blank_label="" if blanks is None else labels[_commonest(blanks.of("").values())],
    )
    if not len(ids):
        return found
    if UNLABELLED in run.labels:
        return _with_usual(found, said, labels)
    family = run.families()
    return judged(found, gold, said, labels, [family.get(name, name) for name in ids])


def judged(
    found: Health,
    gold: IntArray,
    said: IntArray,
    labels: Sequence[str],
    families: Sequence[str] | None = None,
) -> Health:
    """With what answers to labelled texts tell."""
    right = (gold == said).astype(np.float64)
    low, high = share_interval(right, families)
    counts = np.bincount(gold, minlength=len(labels))
    chance_accuracy, p = accuracy_by_chance(gold, said)
    order, order_accuracy = other_order(gold, said, len(labels), high)
    only, recall, rest = only_label(gold, said, len(labels))
    return replace(
        _with_usual(found, said, labels),
        others_right=int(right[said != np.bincount(said).argmax()].sum()),
        others_expected=int((gold != np.bincount(said).argmax()).sum()),
        accuracy=float(right.mean()),
        low=low,
        high=high,
        majority=float(counts.max() / counts.sum()),
        majority_label=labels[int(counts.argmax())],
        chance_accuracy=chance_accuracy,
        p_vs_chance=p,
        can_beat_chance=chance_of_all_right(counts) <= LEVEL,
        only_label="" if only is None else labels[only],
        only_label_recall=recall,
        rest_accuracy=rest,
        label_order=tuple(labels[i] for i in order),
        label_order_accuracy=order_accuracy,
    )


def _with_usual(found: Health, said: IntArray, labels: Sequence[str]) -> Health:
    """With the answer that nearly all texts get, if one is."""
    counts = np.bincount(said)
    if counts.max() < NEARLY_ALL * len(said):
        return found
    usual = int(counts.argmax())
    return replace(
        found,
        n_labels=len(labels),
        usual_label=labels[usual],
        usual_texts=int(counts[usual]),
    )


def _lengths(run: Run) -> dict[str, tuple[int, int]]:
    """Each text's words and characters."""
    return {name: (one.n_features, len(str(one))) for name, one in run.inputs.items()}


def _commonest(labels: Iterable[float]) -> int:
    return int(np.bincount(np.array(list(labels), dtype=np.int64)).argmax())


def _repeat_difference(
    run: Run, model: str, ids: Sequence[str], answers: Mapping[str, FloatArray]
) -> float:
    """The largest difference between two answers to one text: a few were asked at the start."""
    before = run.config.models[model].answers
    step = max(1, len(ids) // len(before)) if before else 1
    again = [answers.get(name) for name in ids[::step][: len(before)]]
    return max(
        (
            float(np.abs(np.asarray(one) - other).max())
            for one, other in zip(before, again, strict=False)
            if other is not None and len(one) == len(other)
        ),
        default=0.0,
    )


def goes_by_length(auc: float, nouns: Nouns = Text.nouns) -> str:
    """What to make of answers that length tells."""
    return (
        f"how {nouns.long} a {nouns.one} is tells its answer almost surely (area under the curve "
        f"{auc:.2f}): it may go by {nouns.length}, and {nouns.units} that are marked may only "
        f"stand for theirs. Try {nouns.many} of one {nouns.length}"
    )


def _rare(said: IntArray, labels: Sequence[str]) -> tuple[tuple[str, int], ...]:
    """Labels answered to fewer than a few texts, where the others are answered to many."""
    if len(said) < SELDOM * 4 * len(labels):
        return ()
    counts = np.bincount(said, minlength=len(labels))
    return tuple((name, int(n)) for name, n in zip(labels, counts, strict=True) if 0 < n < SELDOM)


def accuracy_by_chance(gold: IntArray, said: IntArray) -> tuple[float, float]:
    """The accuracy that the same answers reach on average when they are dealt out at random, and
    how likely they then reach what was seen."""
    n = len(gold)
    wide = int(max(gold.max(), said.max())) + 1
    shares = np.bincount(gold, minlength=wide) / n, np.bincount(said, minlength=wide) / n
    hits = int((gold == said).sum())
    rng = np.random.default_rng(0)
    reached = sum(int((rng.permutation(gold) == said).sum()) >= hits for _ in range(SHUFFLES))
    return float(shares[0] @ shares[1]), (reached + 1) / (SHUFFLES + 1)


def only_label(gold: IntArray, said: IntArray, n_labels: int) -> tuple[int | None, float, float]:
    """The label of few texts without which a model is hardly right oftener than chance, if there is
    one, how many of its texts are answered rightly, and how many of the others."""
    right = gold == said
    counts = np.bincount(gold, minlength=n_labels)
    recalls = np.bincount(gold, weights=right, minlength=n_labels) / np.maximum(counts, 1)
    few = np.flatnonzero((counts >= SELDOM) & (counts < RARE_LABEL * len(gold)))
    if not len(few):
        return None, 0.0, 0.0
    chosen = int(few[recalls[few].argmax()])
    rest = gold != chosen
    if len(np.unique(gold[rest])) < 2:
        return None, 0.0, 0.0
    chance, p = accuracy_by_chance(gold[rest], said[rest])
    _, high = share_interval(right[rest].astype(np.float64))
    if p <= LEVEL or high >= chance + HARDLY_BETTER * (1 - chance):
        return None, 0.0, 0.0
    return chosen, float(recalls[chosen]), float(right[rest].mean())


def chance_of_all_right(counts: IntArray) -> float:
    """How likely answers in these numbers are all right when they are dealt out at random: no
    evidence can be stronger. (labels,)"""
    orders = math.lgamma(counts.sum() + 1) - sum(math.lgamma(c + 1) for c in counts.tolist())
    return math.exp(-orders)


def other_order(
    gold: IntArray, said: IntArray, n_labels: int, highest: float
) -> tuple[list[int], float | None]:
    """For each output the label that it seems to mean, if that fits far better: an order learnt
    from half of the texts must be right on the other half surely oftener than the order given."""
    from scipy.optimize import linear_sum_assignment

    def fitted(part: IntArray) -> IntArray:
        table = np.zeros((n_labels, n_labels))
        np.add.at(table, (said[part], gold[part]), 1)
        table += 1e-6 * np.eye(n_labels)  # labels never answered stay where they are
        _, columns = linear_sum_assignment(-table)
        return np.asarray(columns, dtype=np.int64)

    places = np.random.default_rng(0).permutation(len(gold))
    halves = np.array_split(places, 2)
    right = np.concatenate(
        [
            (fitted(learnt)[said[judged]] == gold[judged]).astype(np.float64)
            for learnt, judged in (halves, halves[::-1])
        ]
    )
    low, _ = share_interval(right)
    best = fitted(places)
    by_chance = (
        float(np.bincount(best[said], minlength=n_labels) @ np.bincount(gold, minlength=n_labels))
        / len(gold) ** 2
    )
    if low <= max(highest, by_chance + FAR_BETTER * (1 - by_chance)) or np.array_equal(
        best, np.arange(n_labels)
    ):
        return [], None
    given = said[np.concatenate(halves[::-1])] == gold[np.concatenate(halves[::-1])]
    if mcnemar(int((given > right).sum()), int((given < right).sum())) > ORDER_LEVEL:
        return [], None
    return best.tolist(), float((best[said] == gold).mean())


def _small(value: float) -> str:
    return f"{value:.3f}" if value >= 0.0005 else f"{value:.1g}"
