"""The weights by which a model averages its words (definitions 3.12)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, cast

from ..core.attributions import Attribution
from ..core.classifiers import Attentive, Classifier
from ..core.explainers import Explainer
from ..core.inputs import FloatArray, Input, Text
from ..engine.call_counter import add_calls
from ._batch import Inputs, Rngs, Targets


@dataclass(frozen=True)
class Attention(Explainer):
    """The model's own attention; unsigned and the same for every label.

    `layers=rollout` follows it through all layers of a transformer; `product` multiplies a word's
    weight by that of its sentence, in models that weigh both; `renormalise` makes the weights of a
    text's words sum to 1.
    """

    takes: ClassVar[tuple[str, ...]] = (Text.kind, "image")
    needs: ClassVar[type] = Attentive
    suited: ClassVar[Mapping[str, Mapping[str, Any]]] = {"image": {"layers": "rollout"}}

    layers: Literal["last", "rollout"] = "last"
    """Attention of the last layer, or followed through all layers of a transformer."""
    product: bool = False
    """Whether a word's weight is multiplied by that of its sentence, where models weigh both."""
    renormalise: bool = False
    """Whether the weights of a text's words are made to sum to 1."""

    @property
    def signed(self) -> bool:
        return False

    def __post_init__(self) -> None:
        if self.layers == "rollout" and self.product:
            raise ValueError(
                "expected layers=rollout, for transformers, or product=True, for models that weigh "
                "sentences; got both"
            )

    @property
    def _way(self) -> str | None:
        """What the model is asked for by name; None is what it does when nothing is said."""
        return "product" if self.product else "rollout" if self.layers == "rollout" else None

    def missing(self, model: Classifier) -> str | None:
        lacking = super().missing(model)
        if lacking or self._way is None:
            return lacking
        ways = cast(Attentive, model).attention_ways
        return None if self._way in ways else f"attention by {self._way}, not by {', '.join(ways)}"

    def explain(
        self, model: Classifier, inputs: Inputs, targets: Targets, rngs: Rngs
    ) -> list[Attribution[Input]]:
        weights = cast(Attentive, model).attention(inputs, self._way)
        add_calls(len(inputs))
        return [
            Attribution(text, target, self._scaled(scores))
            for text, target, scores in zip(inputs, targets, weights, strict=True)
        ]

    def _scaled(self, scores: FloatArray) -> FloatArray:
        total = scores.sum()
        return scores / total if self.renormalise and total > 0 else scores
