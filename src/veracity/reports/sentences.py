"""The sentences a report shows: which, and as data that a page can hold."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, zip_longest
from typing import Any

import numpy as np
from markupsafe import Markup

from ..core.attributions import Fragment, Kind
from ..core.changes import DECOY, PLANTED
from ..core.examples import Example
from ..core.inputs import FloatArray, Text
from ..results.run import Run
from .agreement import AGREE, DISAGREE, Agreement, agreement
from .showing import language

SHOWN = 200
"""So many sentences at most, shared out among the models."""

NGRAMS = 3
"""So many n-grams of each kind are shown of a method that gives its own."""

_PIECE = 2000  # characters of one word or gap: no real one is longer
_LARGEST = 0.2  # no sentence takes more than this share of the room


@dataclass(frozen=True, kw_only=True)
class ExplainedInput:
    """One text, or another input, with one model's answer and every method's scores of its words,
    or of its other units."""

    model: str
    example: Example
    probabilities: FloatArray | None
    target: int
    agreement: float
    scores: Mapping[str, FloatArray]
    ngrams: Mapping[str, tuple[Fragment, ...]]  # of the methods that give their own


@dataclass(frozen=True)
class Explained:
    """All that the methods said about one model's answers."""

    model: str
    sentences: tuple[ExplainedInput, ...]
    agreement: Agreement


@dataclass(frozen=True, kw_only=True)
class Payload:
    """The sentences chosen for a page, ready to be put in it."""

    json: Markup
    places: Mapping[tuple[str, str], int]  # (model, example) → number on the page


def methods_in_order(run: Run) -> list[str]:
    """As they were asked for, but what looks at nothing comes last."""
    return sorted(run.explainers, key=lambda m: m in run.config.baselines)


def explained(run: Run) -> list[Explained]:
    """Every model's explained sentences, read from the run."""
    examples = run.examples()
    return [_of_model(run, model, examples) for model in run.models]


def _of_model(run: Run, model: str, examples: Sequence[Example]) -> Explained:
    scores: dict[str, dict[str, FloatArray]] = {}
    ngrams: dict[str, dict[str, tuple[Fragment, ...]]] = {}
    targets: dict[str, int] = {}
    for method in methods_in_order(run):
        # one method at a time: of pictures, all scores of a run may be larger than memory
        for name, one in run.attributions(model, method).items():
            scores.setdefault(method, {})[name] = one.unit_scores
            targets.setdefault(name, one.target)
            if one.level == "ngram" and one.fragments is not None:
                ngrams.setdefault(name, {})[method] = one.fragments
    agreed = agreement(scores, run.config.baselines)
    answers = run.predictions(model)
    sentences = tuple(
        ExplainedInput(
            model=model,
            example=example,
            probabilities=answers.get(example.id),
            target=targets[example.id],
            agreement=agreed.by_example[example.id],
            scores={m: rows[example.id] for m, rows in scores.items() if example.id in rows},
            ngrams=ngrams.get(example.id, {}),
        )
        for example in examples
        if example.id in agreed.by_example
    )
    return Explained(model, sentences, agreed)


def least_agreed(sentences: Sequence[ExplainedInput]) -> list[ExplainedInput]:
    """Sentences on which methods disagree most first; those without a number last."""
    return sorted(sentences, key=lambda s: math.inf if math.isnan(s.agreement) else s.agreement)


def choose(sentences: Sequence[ExplainedInput], most: int, *, seed: int) -> list[ExplainedInput]:
    """Half where methods disagree most, half by lot, so that a reader sees both."""
    ordered = least_agreed(sentences)
    if len(ordered) <= most:
        return ordered
    first, rest = ordered[: (most + 1) // 2], ordered[(most + 1) // 2 :]
    drawn = np.random.default_rng(seed).choice(len(rest), size=most - len(first), replace=False)
    return first + [rest[i] for i in drawn]


def payload(run: Run, found: Sequence[Explained], *, room: int) -> Payload:
    """As many of the chosen sentences as fit in `room` bytes."""
    each = max(1, SHOWN // max(1, len(found)))
    chosen = [choose(f.sentences, each, seed=run.config.seed) for f in found]
    kept = SentenceStore(run.models, methods_in_order(run), run.labels, room)
    places: dict[tuple[str, str], int] = {}
    # one of each model after the other, so that room is shared fairly
    for sentence in filter(None, chain.from_iterable(zip_longest(*chosen))):
        place = kept.add(sentence, run.models.index(sentence.model), sentence.example.id)
        if place is not None:
            places[sentence.model, sentence.example.id] = place
    return Payload(json=kept.json, places=places)


@dataclass
class SentenceStore:
    """Sentences as a page holds them, while there is room; a text that returns is kept once."""

    groups: Sequence[str]
    methods: Sequence[str]
    labels: Sequence[str]
    room: int
    grouped_by: str = "model"
    texts: list[dict[str, Any]] = field(default_factory=list)
    items: list[dict[str, Any]] = field(default_factory=list)
    known: dict[str, int] = field(default_factory=dict)

    def add(self, sentence: ExplainedInput, group: int, text_id: str) -> int | None:
        """Where the sentence stands on the page; None if there was no room for it."""
        known = self.known.get(text_id)
        text = _text(sentence, int(self.room * _LARGEST)) if known is None else self.texts[known]
        place = len(self.texts) if known is None else known
        item = _item(self.methods, sentence, group, place, len(text["pieces"]))
        cost = _size(item) + (_size(text) if known is None else 0)
        if cost > self.room:
            return None
        self.room -= cost
        if known is None:
            self.known[text_id] = place
            self.texts.append(text)
        self.items.append(item)
        return len(self.items) - 1

    @property
    def json(self) -> Markup:
        return embedded(
            {
                "models": list(self.groups),
                "grouped_by": self.grouped_by,
                "methods": list(self.methods),
                "labels": list(self.labels),
                "agree": AGREE,
                "disagree": DISAGREE,
                "texts": self.texts,
                "items": self.items,
            }
        )


def _text(sentence: ExplainedInput, room: int) -> dict[str, Any]:
    text = sentence.example.input
    if not isinstance(text, Text):  # told by its name alone; what it looks like stands elsewhere
        found = {"lang": "", "pieces": [], "words": text.n_units, "marks": {}}
        return {"id": sentence.example.id[:200], **found}
    per_word = 8 * len(sentence.scores) + 10  # bytes of a word's scores, about
    kept, size = 0, 0
    pieces = _pieces(text)
    while kept < text.n_features and size < room:
        size += per_word + 2 * (len(pieces[2 * kept]) + len(pieces[2 * kept + 1]))
        kept += 1
    whole = kept == text.n_features
    return {
        "id": sentence.example.id[:200],
        "lang": language(text.text),
        "pieces": pieces if whole else pieces[: 2 * kept],
        "words": text.n_features,
        "marks": {
            kind: np.flatnonzero(np.logical_or.reduce(masks)).tolist()
            for kind, masks in sentence.example.truths.items()
            if kind in (PLANTED, DECOY)
        },
    }


def _pieces(text: Text) -> list[str]:
    """Gap, word, gap, word, …, gap: joined they are the text."""
    parts = [part for pair in zip(text.gaps, text.words, strict=False) for part in pair]
    return [p if len(p) <= _PIECE else p[:_PIECE] + "…" for p in (*parts, text.gaps[-1])]


def _item(
    methods: Sequence[str], sentence: ExplainedInput, group: int, text: int, pieces: int
) -> dict[str, Any]:
    p = sentence.probabilities
    numbers = {method: i for i, method in enumerate(methods)}
    answer = None if p is None or np.isnan(p).any() else int(np.argmax(p))
    return {
        "model": group,
        "text": text,
        "gold": sentence.example.label,
        "said": answer,
        "p": None if p is None or answer is None else round(float(p[answer]), 4),
        "target": sentence.target,
        "agreement": _short(sentence.agreement),
        "scores": {
            numbers[method]: [_short(v) for v in scores[: pieces // 2].tolist()]
            for method, scores in sentence.scores.items()
        },
        "ngrams": {
            numbers[method]: {
                "evidence": _ngrams(fragments, "evidence", pieces // 2),
                "counter": _ngrams(fragments, "counter", pieces // 2),
            }
            for method, fragments in sentence.ngrams.items()
        },
    }


def _ngrams(fragments: Sequence[Fragment], kind: Kind, kept: int) -> list[dict[str, Any]]:
    """A method's first n-grams of one kind; without words where the page does not hold them."""
    return [
        {
            "words": list(f.positions) if max(f.positions, default=0) < kept else [],
            "score": _short(f.score),
        }
        for f in [f for f in fragments if f.kind == kind][:NGRAMS]
    ]


def _short(value: float) -> float | None:
    return float(f"{value:.3g}") if math.isfinite(value) else None


def _size(content: Any) -> int:
    return len(embedded(content).encode())


def embedded(content: Any) -> Markup:
    """JSON that may stand inside a script element: nothing in it can end the element."""
    text = json.dumps(content, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return Markup(text)
