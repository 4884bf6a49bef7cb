"""What an explanation method is."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Self

import numpy as np

from .attributions import Attribution
from .classifiers import Classifier, ability_name
from .examples import Dataset
from .inputs import TakesInputs
from .plugins import Plugin


class Explainer(Plugin, TakesInputs, ABC):
    """A method that attributes a model's answer to the features of its input."""

    needs: ClassVar[type] = Classifier
    """The ability without which the method is not defined."""

    baseline: ClassVar[bool] = False
    """True for methods that look at nothing: what every other must beat."""

    ceiling: ClassVar[bool] = False
    """True for searches for the answer itself: they show what a test lets anybody reach, on part of
    the texts, and compete with no method."""

    draws: ClassVar[bool] = False
    """True for methods that another set of random numbers would lead elsewhere."""

    quick: ClassVar[Mapping[str, Any]] = {}
    """Settings that cost a fraction and rank the first features much the same, if there are any."""

    question_settings: ClassVar[tuple[str, ...]] = ()
    """The settings that say how much is asked of the model; the first is the number of questions
    to a text. Methods with such settings are given the same number unless they name one."""

    @property
    def stream(self) -> str:
        """Names the random numbers that the method draws. Methods that name the same put the same
        questions, which are asked once where answers are remembered."""
        return self.spec

    @property
    def signed(self) -> bool:
        """Whether scores tell for and against; False for methods that give sizes only."""
        return True

    @property
    def learns(self) -> bool:
        """True for methods that explain only after `fitted` has shown them training data."""
        return False

    @property
    def ready(self) -> bool:
        """Whether the method can explain as it is; those that learn override this."""
        return not self.learns

    @abstractmethod
    def explain(
        self,
        model: Classifier,
        inputs: Sequence[Any],
        targets: Sequence[int],
        rngs: Sequence[np.random.Generator],
    ) -> list[Attribution[Any]]:
        """One attribution per input; every input has at least one feature."""

    def n_questions(self, n_units: int) -> int | None:
        """How many questions a text of so many words costs at most; None where nobody knows."""
        return None

    def with_questions(self, questions: int) -> Self:
        """This method at so many questions a text; itself where that is not for it to choose."""
        if not self.question_settings:
            return self
        return self.altered(**{self.question_settings[0]: questions})

    def missing(self, model: Classifier) -> str | None:
        """What the method needs and this model lacks; methods with options may need more."""
        return None if isinstance(model, self.needs) else ability_name(self.needs)

    def fitted(self, model: Classifier, train: Dataset[Any]) -> Self:
        """This method with what it learnt of the model; methods that learn override this.

        What is learnt is no setting: keep it in a field with `init=False`.
        """
        return self
