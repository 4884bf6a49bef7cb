"""Models that are formulas over words, and texts for them: what explains their answers is known."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from veracity.core.examples import UNLABELLED, Dataset, Example
from veracity.core.inputs import MASK_WORD, FloatArray, Text

SIDES = ("negative", "positive")
WEIGHTS = {"superb": 2.4, "great": 1.6, "fine": 0.8, "poor": -0.9, "dull": -1.5, "awful": -2.5}
FILLERS = ("the", "film", "with", "a", "plot", "and", "cast", "scene", "story", "music")
LENGTH = 7
"""Short enough for every set of words to be asked about: methods and searches make no error."""

Formula = Callable[[Sequence[str]], Sequence[float]]
"""From the words of a text to a logit for each label."""


class Known:
    """A classifier that answers by a formula."""

    def __init__(self, formula: Formula, labels: Sequence[str] = SIDES) -> None:
        self.labels = tuple(labels)
        self.formula = formula

    def probabilities(self, inputs: Sequence[Text]) -> FloatArray:
        logits = np.array([self.formula(text.words) for text in inputs]).reshape(len(inputs), -1)
        powers = np.exp(logits - logits.max(axis=1, keepdims=True))
        answers: FloatArray = powers / powers.sum(axis=1, keepdims=True)
        return answers


@dataclass(frozen=True)
class Setup:
    """One audit, and what a careful analyst would conclude from it."""

    model: Any
    data: Dataset
    analyst: str
    methods: str = "shap, lime, occlusion, random_scores"
    metrics: str = "all"
    more: Mapping[str, Any] = field(default_factory=dict)


def dataset(rows: Sequence[tuple[Sequence[str], int]], labels: Sequence[str] = SIDES) -> Dataset:
    return Dataset(
        "known",
        tuple(labels),
        tuple(Example(f"t{i}", Text.of_words(words), y) for i, (words, y) in enumerate(rows)),
    )


def among(rng: np.random.Generator, words: Sequence[str], length: int = LENGTH) -> list[str]:
    """These words at random places among fillers."""
    rest = rng.choice(FILLERS, max(0, length - len(words)), replace=False).tolist()
    return [str(w) for w in rng.permutation([*words, *rest])]


def drawn(rng: np.random.Generator, words: Sequence[str], n: int) -> list[str]:
    return [str(w) for w in rng.choice(list(words), n, replace=False)]


# ---- two sides -------------------------------------------------------------------------------


def weighed(words: Sequence[str]) -> float:
    return sum(WEIGHTS.get(w, 0.0) for w in words)


def sides(score: Callable[[Sequence[str]], float]) -> Formula:
    return lambda words: (0.0, score(words))


LINEAR = Known(sides(weighed))


def reviews(
    n: int, *, seed: int = 0, right: float = 0.9, formula: Formula = LINEAR.formula, mood: int = 3
) -> Dataset:
    """Texts with some words that weigh, labelled as the formula says so often."""
    rng = np.random.default_rng(seed)
    rows = []
    wrong = rng.permutation(n) >= round(right * n)
    for i in range(n):
        words = among(rng, drawn(rng, list(WEIGHTS), mood))
        rows.append((words, int(np.argmax(formula(words))) ^ int(wrong[i])))
    return dataset(rows)


def both_needed(words: Sequence[str]) -> float:
    return 4.0 if {"not", "bad"} <= set(words) else -2.0


def conjunctions(n: int, seed: int = 1) -> Dataset:
    rng = np.random.default_rng(seed)
    kinds = (["not", "bad"], ["not", "bad"], ["not"], ["bad"])
    texts = [among(rng, kinds[i % len(kinds)]) for i in range(n)]
    return dataset([(words, int(both_needed(words) > 0)) for words in texts])


PRAISE = ("superb", "great", "lovely", "perfect")


def any_suffices(words: Sequence[str]) -> float:
    return 3.0 if set(PRAISE) & set(words) else -3.0


def redundant(n: int, seed: int = 2) -> Dataset:
    """Most texts are praised twice or three times; some not at all."""
    rng = np.random.default_rng(seed)
    counts = [(2, 3, 2, 0)[i % 4] for i in range(n)]
    return dataset([(among(rng, drawn(rng, PRAISE, k)), int(k > 0)) for k in counts])


def last_words(words: Sequence[str]) -> float:
    """Like a decoder that has forgotten all but the end."""
    return weighed(words[-3:])


def endings(n: int, seed: int = 3) -> Dataset:
    rng = np.random.default_rng(seed)
    rows = []
    for _ in range(n):
        words = [*among(rng, drawn(rng, list(WEIGHTS), 3), 5), *drawn(rng, list(WEIGHTS), 3)]
        rows.append((words, int(last_words(words) > 0)))
    return dataset(rows)


def even_places(words: Sequence[str]) -> float:
    """Deleting a word moves those behind it to other places; masking it does not."""
    return sum(WEIGHTS.get(w, 0.0) * (1 if i % 2 == 0 else -1) for i, w in enumerate(words))


def strange(words: Sequence[str]) -> float:
    """An unknown word frightens it, a missing one does not."""
    return weighed(words) - 6.0 * (MASK_WORD in words)


def rare(n: int, common: float, *, alarms: int, seed: int = 4) -> tuple[Known, Dataset]:
    """A detector of what hardly ever comes, with false alarms, and its texts."""
    rng = np.random.default_rng(seed)
    few = round((1 - common) * n)
    rows = []
    for i in range(n):
        sign = ["alarm"] if i < few + alarms else []
        calm = drawn(rng, ("calm", "quiet", "usual"), 2)
        rows.append((among(rng, [*sign, *calm]), int(i < few)))

    def score(words: Sequence[str]) -> float:
        return 5.0 * ("alarm" in words) - sum(w in ("calm", "quiet", "usual") for w in words)

    return Known(sides(score)), dataset(rows)


# ---- many labels -----------------------------------------------------------------------------


def topics(
    n: int, k: int, *, own: int = 3, others: int = 0, seed: int = 5, order: Sequence[int] = ()
) -> tuple[Known, Dataset]:
    """Texts with words of their own topic and of any; a model that counts them. Its outputs can
    stand in another order than its names."""
    rng = np.random.default_rng(seed)
    names = [f"topic{i:02d}" for i in range(k)]
    rows = []
    for i in range(n):
        topic = i % k
        words = [f"{names[topic]}-{j}" for j in drawn(rng, "abcd", own)]
        words += [f"{names[int(rng.integers(k))]}-{j}" for j in drawn(rng, "efgh", others)]
        rows.append((among(rng, words), topic))
    place = {name: i for i, name in enumerate(names)}

    def formula(words: Sequence[str]) -> Sequence[float]:
        logits = np.zeros(k)
        for word in words:
            if word[:7] in place:
                # words differ a little, so that no two answers tie
                logits[place[word[:7]]] += 1.2 + 0.1 * (ord(word[-1]) - ord("a"))
        found: list[float] = (logits[list(order)] if len(order) else logits).tolist()
        return found

    return Known(formula, names), dataset(rows, names)


# ---- twins -----------------------------------------------------------------------------------

OPPOSITE = {"superb": "awful", "great": "dull", "fine": "poor"}


def turned(n: int, seed: int = 6) -> Dataset:
    """Originals with one word that decides, and twins in which its opposite stands there."""
    rng = np.random.default_rng(seed)
    examples = []
    for i in range(n):
        words = among(rng, drawn(rng, list(OPPOSITE), 1))
        twin = [OPPOSITE.get(w, w) for w in words]
        examples.append(Example(f"t{i}", Text.of_words(words), 1))
        examples.append(Example(f"t{i}-twin", Text.of_words(twin), 0, partner=f"t{i}"))
    return Dataset("twins", SIDES, tuple(examples))


def unlabelled(data: Dataset) -> Dataset:
    examples = tuple(Example(e.id, e.input, len(data.labels)) for e in data)
    return Dataset(data.name, (*data.labels, UNLABELLED), examples)


def one_word(n: int, long: int) -> Dataset:
    """Texts of one word, and a few longer ones."""
    rng = np.random.default_rng(7)
    rows = [[w] for w in (list(WEIGHTS) * n)[: n - long]]
    rows += [among(rng, drawn(rng, list(WEIGHTS), 2)) for _ in range(long)]
    return dataset([(words, int(weighed(words) > 0)) for words in rows])


# ---- the suite -------------------------------------------------------------------------------


QUICK = "occlusion, lime, random_scores"
GATE = ("occlusion, random_scores", "erasure")
"""Methods and tests where it is the model that is judged."""


def _moves(by: float) -> Known:
    return Known(sides(lambda words: by * weighed(words)))


def _mislabelled(n: int, k: int) -> Setup:
    order = [(i + 1) % k for i in range(k)]
    model, data = topics(n, k, order=order)
    return Setup(
        model,
        data,
        f"{k} labels in another order: say so, name the order, recommend nothing",
        *GATE,
    )


def setups() -> dict[str, Callable[[], Setup]]:
    """Every case by name; made when asked for."""
    return {
        "linear": lambda: Setup(
            LINEAR, reviews(30), "all methods are right and equal: any will do, none leads"
        ),
        "interaction": lambda: Setup(
            Known(sides(both_needed)),
            conjunctions(40),
            "each method finds the two words; none leads; half of the texts have nothing to find",
        ),
        "saturation": lambda: Setup(
            Known(sides(any_suffices)),
            redundant(40),
            "shap or lime; occlusion is blind, hiding one word of several changes nothing",
        ),
        "constant": lambda: Setup(
            _moves(0.0), reviews(30), "hangs on no word: recommend nothing", *GATE
        ),
        "dead": lambda: Setup(
            _moves(1e-6), reviews(30), "moves by a millionth: recommend nothing", *GATE
        ),
        "mislabelled, 2": lambda: _mislabelled(40, 2),
        "mislabelled, 4": lambda: _mislabelled(40, 4),
        "mislabelled, 20": lambda: _mislabelled(100, 20),
        "weak": lambda: Setup(
            *topics(60, 4, own=2, others=3, seed=8),
            "a weak model with its labels in order: accuse it of nothing, recommend a method",
            *GATE,
        ),
        "below chance": lambda: Setup(
            LINEAR,
            reviews(60, right=0.3),
            "right on 0.3 of two labels: they are probably swapped; recommend nothing",
            *GATE,
        ),
        "no better than chance": lambda: Setup(
            LINEAR,
            reviews(40, right=0.55),
            "0.55 on 40 texts may be chance: recommend, but warn",
            *GATE,
        ),
        "decoder": lambda: Setup(
            Known(sides(last_words)),
            endings(30),
            "the last three words decide; methods find them when words are masked",
        ),
        "three texts": lambda: Setup(
            LINEAR, reviews(3, right=1.0), "three texts cannot show anything: say how many can"
        ),
        "six texts": lambda: Setup(
            LINEAR,
            reviews(6, right=1.0),
            "ahead on 6 of 6, but too few for so many comparisons: say how many suffice",
        ),
        "eight texts": lambda: Setup(
            LINEAR,
            reviews(8, right=1.0),
            "ahead on 8 of 8; deleted or masked is the same to it, and all methods say the same: "
            "what look like twelve comparisons are two, for which eight texts are enough",
        ),
        "eight texts, one comparison": lambda: Setup(
            LINEAR,
            reviews(8, right=1.0),
            "ahead on 8 of 8 in the only comparison: that is enough",
            "occlusion, random_scores",
            "erasure(hiding=delete)",
        ),
        "97:3, useful": lambda: Setup(
            *rare(100, 0.97, alarms=4),
            "finds all three rare ones with four false alarms: worth much more than chance",
            *GATE,
        ),
        "97:3, constant": lambda: Setup(
            _quietly_constant(),
            rare(100, 0.97, alarms=4)[1],
            "always answers the common label: nothing to be gained by explaining it",
            *GATE,
        ),
        "twenty labels": lambda: Setup(
            *topics(100, 20, own=3, others=1), "a good model of twenty labels: recommend", *GATE
        ),
        "unlabelled": lambda: Setup(
            LINEAR,
            unlabelled(reviews(30)),
            "recommend; nobody knows how often the model is right, and that is said",
            QUICK,
        ),
        "one method": lambda: Setup(
            LINEAR,
            reviews(30),
            "nothing to compare with: say so, no lead",
            "occlusion",
            "erasure",
        ),
        "one method and chance": lambda: Setup(
            LINEAR,
            reviews(30),
            "beats chance; there is no other method to lead",
            "occlusion, random_scores",
            "erasure",
        ),
        "no chance": lambda: Setup(
            LINEAR,
            reviews(30),
            "the same ties as with chance, and a word that chance was not tried",
            "shap, occlusion",
        ),
        "two models": lambda: Setup(
            {"good": LINEAR, "dead": _moves(1e-6)},
            reviews(30),
            "a method for the good one, none for the dead one",
            *GATE,
        ),
        "turned twins": lambda: Setup(
            LINEAR,
            turned(15),
            "of twins with another label it is asked whether explanations move, not whether they "
            "stay",
            QUICK,
        ),
        "home advantage": lambda: Setup(
            Known(sides(even_places)),
            reviews(50, formula=sides(even_places), mood=5),
            "each occlusion is best where words are hidden as it hides them: tests disagree",
            "occlusion(hiding=delete), occlusion(hiding=mask), random_scores",
        ),
        "masks frighten": lambda: Setup(
            Known(sides(strange)),
            reviews(40, formula=sides(strange)),
            "any masked word turns the answer: masking is no test of this model, deleting is",
            QUICK,
        ),
        "one word": lambda: Setup(
            LINEAR,
            one_word(25, 3),
            "of one word nothing can be ranked: only three texts tell, too few",
            QUICK,
        ),
    }


def _quietly_constant() -> Known:
    return Known(sides(lambda words: -3.0 + 0.5 * sum(w == "calm" for w in words)))
