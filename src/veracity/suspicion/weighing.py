"""What every word of every text weighs in a model."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..auditing.explaining import attributions
from ..core.classifiers import Classifier, LinearFirstLayer, Traits
from ..core.errors import BudgetSpent
from ..core.examples import Dataset
from ..core.explainers import Explainer
from ..core.inputs import MASK_WORD, FloatArray, Text
from ..core.progress import Progress, Watcher
from ..engine.batches import by_length, mixed
from ..engine.inference import probabilities, value
from .candidates import WordTable

REDUNDANT_SHARE = 0.3
"""Where words hidden one by one do less than this share of what hiding all does, each seems to
weigh little though together they decide: several words tell the same."""

REDUNDANT_METHOD = "shap(samples=100, output=log_odds)"
"""What then shows them: it hides words together."""

MOVED, MIN_MOVED = 0.5, 10
"""Texts whose log-odds hiding all words moves so far can show that, and so many are needed."""


class PartlyScored(BudgetSpent):
    """A budget that ended before all texts were scored."""

    def __init__(self, spent: BudgetSpent, scored: Sequence[int]) -> None:
        super().__init__(str(spent))
        self.scored = tuple(scored)
        """The places of the texts that were."""


def default_method(model: Classifier) -> str:
    """Gradients where answers are near linear in what is read, else hiding one word at a time."""
    if isinstance(model, LinearFirstLayer):
        return "input_x_gradient"
    return "occlusion(output=log_odds, by=types)"


def word_scores(
    model: Classifier,
    data: Dataset,
    explainer: Explainer,
    labels: Sequence[int],
    *,
    seed: int,
    watch: Watcher = lambda _: None,
) -> FloatArray:
    """The scores of all words of all texts towards each of these labels. → (labels, words)"""
    lengths = np.array([e.input.n_features for e in data], dtype=np.int64)
    starts = np.cumsum(lengths) - lengths
    scores = np.zeros((len(labels), int(lengths.sum())))
    batches = list(by_length(lengths.tolist()))
    if Traits(model).budget is not None:  # what is done when it is spent is kept
        batches = [batch[i : i + 5] for batch in batches for i in range(0, len(batch), 5)]
    # a logit means something only beside those of the other labels
    relative = getattr(explainer, "output", "") == "logit"
    every = range(len(model.labels)) if relative else labels
    done: list[int] = []
    for batch in (batches[i] for i in mixed(len(batches))):
        some = [data.examples[i] for i in batch]
        inputs, ids = [e.input for e in some], [e.id for e in some]
        rows: dict[int, list[FloatArray]] = {}
        for label in every:
            try:
                made = attributions(explainer, model, inputs, [label] * len(some), ids, seed)
            except BudgetSpent as spent:
                if not done:
                    raise
                raise PartlyScored(spent, done) from spent
            rows[label] = [a.scores for a in made]
        for place, i in enumerate(batch):
            span = slice(starts[i], starts[i] + lengths[i])
            for row, label in enumerate(labels):
                scores[row, span] = rows[label][place]
                if relative:
                    rest = [rows[other][place] for other in every if other != label]
                    scores[row, span] -= np.mean(rest, axis=0)
        done += batch
        watch(Progress(len(done), len(data), explainer.spec))
    return scores


def explained_share(
    model: Classifier,
    words: WordTable,
    scores: FloatArray,
    labels: Sequence[int],
    answers: FloatArray,
) -> tuple[float | None, float]:
    """What of the effect of all words the words' own scores add up to, in the median text of those
    that hang on words; None where too few do. And the share of texts whose answer hiding all words
    leaves as it is, nearly as sure. scores (labels, words)"""
    try:
        blank = probabilities(model, [Text.of_words([MASK_WORD])])
    except BudgetSpent:  # the rest has been answered
        return None, 0.0
    shares: list[float] = []
    unmoved = 0
    same = answers.argmax(axis=1) == blank.argmax(axis=1)
    for label, row in zip(labels, scores, strict=True):
        own = len(labels) == 1 or answers.argmax(axis=1) == label
        whole = value(answers, label, "log_odds") - value(blank, label, "log_odds")
        sums = np.bincount(words.text, weights=row, minlength=len(answers))
        moved = own & (np.abs(whole) > MOVED)
        shares += (sums[moved] / whole[moved]).tolist()
        unmoved += int((own & same & ~moved).sum())
    found = float(np.median(shares)) if len(shares) >= MIN_MOVED else None
    return found, unmoved / max(1, len(answers))
