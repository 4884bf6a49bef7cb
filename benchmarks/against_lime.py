"""The lime package: the same text CNN, the same words, the same number of samples.

What it asks by default: 5,000 samples; each hides a uniform number (1 to n) of the distinct words
(bow=True: all places of a word at once, deleted) or of the positions (bow=False: replaced by
mask_string); cosine distance times 100, kernel √exp(−d²/25²), ridge with alpha 1. With more than
six features asked for it fits twice, first to choose them; asked for all, both fits see them all.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

import setting
from setting import Row
from veracity.core.inputs import MASK_WORD, FloatArray, Text
from veracity.explainers.lime import local_fit

BLANKS = r"\s+"
CHECKED = 10
"""On so many sentences a second seed is drawn and the fit is compared on lime's own samples."""


class Lime:
    """The package, given a classifier function that reads its strings without detours."""

    def __init__(self, model: Any, bow: bool, samples: int) -> None:
        self.model = model
        self.bow = bow
        self.samples = samples

    def answer(self, texts: Sequence[str]) -> FloatArray:
        """Its strings are split and asked together; plain batches of numbers were no faster."""
        found: FloatArray = self.model.probabilities([Text.of_words(t.split()) for t in texts])
        return found

    def explainer(self, seed: int) -> Any:
        from lime.lime_text import LimeTextExplainer

        return LimeTextExplainer(
            bow=self.bow,
            split_expression=BLANKS,
            mask_string=None if self.bow else MASK_WORD,
            random_state=seed,
        )

    def scores(self, text: Text, target: int, seed: int) -> FloatArray:
        """One score per word, from its list of features and weights."""
        found = self.explainer(seed).explain_instance(
            text.text,
            self.answer,
            labels=(target,),
            num_features=text.n_features,
            num_samples=self.samples,
        )
        indexed = found.domain_mapper.indexed_string
        scores = np.zeros(text.n_features)
        for feature, weight in found.local_exp[target]:
            if self.bow:
                word = indexed.word(feature)
                scores[[i for i, w in enumerate(text.words) if w == word]] = weight
            else:
                scores[feature] = weight
        return scores

    def fit_difference(self, text: Text, target: int) -> float:
        """Our regression against theirs, on the samples and answers that they drew."""
        from lime.lime_text import IndexedString

        peer = self.explainer(seed=0)
        indexed = IndexedString(
            text.text, bow=self.bow, split_expression=BLANKS, mask_string=MASK_WORD
        )
        data, answers, distances = peer._LimeTextExplainer__data_labels_distances(
            indexed, self.answer, self.samples
        )
        found = peer.base.explain_instance_with_data(
            data, answers, distances, target, indexed.num_words()
        )[1]
        theirs = np.zeros(indexed.num_words())
        for feature, weight in found:
            theirs[feature] = weight
        ours = local_fit(data.astype(bool), answers[:, target]).coefficients
        return float(np.abs(ours - theirs).max())


def _case(quick: bool, bow: bool, bar: float) -> list[dict[str, Any]]:
    model = setting.model("text_cnn")
    texts = setting.sentences(3 if quick else 100)
    samples = 500 if quick else 5000
    targets = setting.predicted(model, texts)
    peer = Lime(model, bow, samples)
    spec = setting.LIME.format(samples=samples, bow=bow)
    pairs = list(zip(texts, targets, strict=True))
    setting.explain(model, texts[:1], targets[:1], spec)
    peer.scores(*pairs[0], seed=9)
    ours_s, ours = setting.timed(lambda: setting.explain(model, texts, targets, spec))
    peer_s, theirs = setting.timed(lambda: [peer.scores(*pair, seed=0) for pair in pairs])
    some = pairs[:CHECKED]
    again = setting.explain(model, texts[:CHECKED], targets[:CHECKED], spec, seed=1)
    own = [a.scores for a in ours]
    n = len(some)
    return [
        Row(
            f"LIME {samples} samples, text CNN, {'words deleted' if bow else 'positions masked'}",
            "lime",
            ours_s,
            peer_s,
            max(peer.fit_difference(*pair) for pair in some),
            bar=bar,
            note="max_difference: the two fits on lime's own samples",
            more={
                "sentences": len(texts),
                "between_libraries": setting.mean_difference(own, theirs),
                "ours_seed_to_seed": setting.mean_difference(own[:n], [a.scores for a in again]),
                "peer_seed_to_seed": setting.mean_difference(
                    theirs[:n], [peer.scores(*pair, seed=1) for pair in some]
                ),
            },
        ).written()
    ]


def masked(quick: bool) -> list[dict[str, Any]]:
    return _case(quick, bow=False, bar=40)


def deleted(quick: bool) -> list[dict[str, Any]]:
    return _case(quick, bow=True, bar=15)


CASES = {"LIME, positions masked": masked, "LIME, words deleted": deleted}
