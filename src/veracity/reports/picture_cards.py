"""The pictures a report shows: which, and as cards that need no script."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, zip_longest

from ..core.examples import UNLABELLED
from ..results.run import Run
from .pictures import (
    CARD,
    Overlay,
    ShownPicture,
    is_marked,
    known_regions,
    map_side,
    overlay,
    shown_picture,
)
from .sentences import (
    SHOWN,
    Explained,
    ExplainedInput,
    Payload,
    SentenceStore,
    choose,
    methods_in_order,
)

Overlays = Mapping[tuple[str, str], tuple[Overlay, ...]]
"""By model and example, what the methods say, in their order."""


@dataclass(frozen=True, kw_only=True)
class PictureCard:
    """One picture with one model's answer and every method's map."""

    number: int
    group: str
    """The model, or what else cards are grouped by; empty where there is one alone."""
    grouped_by: str
    id: str
    picture: int
    """Its number among the pictures of the page."""
    overlays: tuple[Overlay, ...]
    answer: str
    probability: float
    gold: str
    """Empty where nobody labelled it."""
    agreement: float
    marked: bool | None
    """Whether it carries what was planted; None where nothing was."""

    @property
    def right(self) -> bool:
        return self.answer == self.gold


@dataclass(frozen=True, kw_only=True)
class PicturePayload(Payload):
    """The pictures chosen for a page, each held once, and a card for each and each model."""

    pictures: tuple[ShownPicture, ...]
    cards: tuple[PictureCard, ...]

    def picture_of(self, place: int) -> int:
        """The number of the picture on a card."""
        return self.cards[place].picture


def picture_payload(run: Run, found: Sequence[Explained], *, room: int) -> PicturePayload:
    """As many of the chosen pictures as fit in `room` bytes."""
    each = max(1, SHOWN // max(1, len(found)))
    chosen = [choose(f.sentences, each, seed=run.config.seed) for f in found]
    maps = picture_overlays(run, chosen) if room else {}
    kept = PictureStore(run.models, methods_in_order(run), run.labels, room)
    places: dict[tuple[str, str], int] = {}
    # one of each model after the other, so that room is shared fairly
    for one in filter(None, chain.from_iterable(zip_longest(*chosen))):
        key = one.model, one.example.id
        place = kept.add_picture(one, run.models.index(one.model), one.example.id, maps.get(key))
        if place is not None:
            places[key] = place
    return PicturePayload(
        json=kept.json, places=places, pictures=tuple(kept.pictures), cards=tuple(kept.cards)
    )


def picture_overlays(run: Run, chosen: Sequence[Sequence[ExplainedInput]]) -> Overlays:
    """Of the chosen pictures, read one method after the other: all maps of a run may be larger than
    memory."""
    side = map_side(sum(len(s.scores) for sentences in chosen for s in sentences))
    found: dict[tuple[str, str], list[Overlay]] = {}
    for sentences in chosen:
        regions = {s.example.id: known_regions(s.example) for s in sentences}
        for method in methods_in_order(run) if sentences else ():
            stored = run.attributions(sentences[0].model, method)
            signed = run.config.explainers[method].signed
            for s in sentences:
                name = s.example.id
                if (one := stored.get(name)) is not None:
                    label = run.labels[one.target]
                    made = overlay(one, regions[name], label, side=side, signed=signed)
                    found.setdefault((s.model, name), []).append(made)
    return {key: tuple(made) for key, made in found.items()}


class PictureStore(SentenceStore):
    """Pictures and cards as a page holds them, while there is room; a picture that returns is kept
    once."""

    def __init__(
        self,
        groups: Sequence[str],
        methods: Sequence[str],
        labels: Sequence[str],
        room: int,
        grouped_by: str = "model",
    ) -> None:
        super().__init__(groups, methods, labels, room, grouped_by)
        self.pictures: list[ShownPicture] = []
        self.cards: list[PictureCard] = []

    def add_picture(
        self, sentence: ExplainedInput, group: int, picture_id: str, maps: Sequence[Overlay] | None
    ) -> int | None:
        """Where the card stands on the page; None if there was no room for it."""
        known = self.known.get(picture_id)
        picture = self.pictures[known] if known is not None else None
        cost = sum(one.size for one in maps or ()) + 2 * CARD
        if maps is None or cost > self.room:
            return None
        if picture is None:
            picture = shown_picture(sentence.example)
            cost += picture.size
        if cost > self.room:
            return None
        place = self.add(sentence, group, picture_id)
        if place is None:
            return None
        self.room -= cost
        if known is None:
            self.pictures.append(picture)
        p = sentence.probabilities
        answer = None if p is None or any(map(math.isnan, p)) else int(p.argmax())
        self.cards.append(
            PictureCard(
                number=place,
                group=self.groups[group] if len(self.groups) > 1 else "",
                grouped_by=self.grouped_by,
                id=sentence.example.id[:200],
                picture=self.known[picture_id],
                overlays=tuple(maps),
                answer="–" if answer is None else self.labels[answer],
                probability=math.nan if p is None or answer is None else float(p[answer]),
                gold="" if UNLABELLED in self.labels else self.labels[sentence.example.label],
                agreement=sentence.agreement,
                marked=is_marked(sentence.example),
            )
        )
        return place
