"""Pipelines of scikit-learn, alive or pickled."""

from __future__ import annotations

import io
import pickle
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from ...core.errors import MissingExtra, ModelError
from ...core.foreign import guarded
from ...core.inputs import BoolArray, FloatArray, Hiding, Text
from .callables import checked_labels, checked_probabilities

SUFFIXES = (".pkl", ".pickle", ".joblib")
ADDRESS = "_stop_words_id"
PLAIN_PATTERNS = (r"(?u)\b\w\w+\b", r"(?u)\b\w+\b")
ADVICE = " (expected a pipeline that begins with a vectorizer, such as TfidfVectorizer)"
JOINED = 0x2E80
"""Scripts from here on are written without spaces: words may join when one between them goes."""


class SklearnClassifier:
    """A fitted pipeline that reads strings and gives probabilities, as a classifier."""

    reads: ClassVar[str] = Text.kind

    def __init__(self, pipeline: Any, labels: Sequence[str] | None = None) -> None:
        self.pipeline = pipeline
        self.name = f"the model {_steps(pipeline)}"
        if not hasattr(pipeline, "predict_proba"):
            raise ModelError(
                f"{self.name} has no predict_proba: expected a fitted pipeline such as "
                "make_pipeline(TfidfVectorizer(), LogisticRegression()); wrap LinearSVC or "
                "RidgeClassifier in CalibratedClassifierCV, give SGDClassifier loss='log_loss'"
            )
        classes = getattr(pipeline, "classes_", None)
        if labels is None and classes is None:
            raise ModelError(f"{self.name} has no classes_: expected one that has been fitted")
        self.labels = checked_labels(classes if labels is None else labels, source=self.name)
        if classes is not None and len(self.labels) != len(classes):
            raise ModelError(
                f"{self.name} has {len(classes)} classes ({', '.join(map(str, classes))}): "
                f"expected as many labels in that order, got {', '.join(self.labels)}"
            )

    def probabilities(self, inputs: Sequence[Text]) -> FloatArray:  # (inputs, labels)
        """The pipeline's answers, checked."""
        if not inputs:
            return np.zeros((0, len(self.labels)))
        texts = [each.text for each in inputs]
        return self._answer(lambda: self.pipeline.predict_proba(texts), len(inputs))

    def _answer(self, ask: Callable[[], Any], rows: int) -> FloatArray:
        with guarded(self.name, " on a list of strings", advice=ADVICE):
            return checked_probabilities(ask(), source=self.name, rows=rows, width=len(self.labels))

    def identity(self) -> str:
        """The hash of all that was learnt, whichever file it came from."""
        joblib = _joblib()
        if _has_trees(self.pipeline):
            # they hold bytes that nobody wrote, others at each load: their answers identify them
            return f"sklearn {_steps(self.pipeline)}"
        try:
            # A fresh pipeline shares objects that a loaded one holds twice: hash the loaded form.
            buffer = io.BytesIO()
            _WithoutAddresses(buffer).dump(self.pipeline)
            copy = pickle.loads(buffer.getvalue())
            return f"sklearn {joblib.hash(copy, hash_name='sha1')}"
        except Exception:  # holds something that cannot be pickled: its answers must identify it
            return f"sklearn {_steps(self.pipeline)}"


class CountingClassifier(SklearnClassifier):
    """A pipeline that only counts words: what hiding does to the counts is known without reading.

    For a linear model this is its closed form: one product of masks and counts, one with weights.
    """

    def masked_probabilities(
        self, inputs: Sequence[Text], shown: Sequence[BoolArray], how: Hiding
    ) -> list[FloatArray]:
        """Counts of the shown words, added up; texts whose words do not add up are read anew."""
        found = []
        for text, masks in zip(inputs, shown, strict=True):
            counts = self._counts(text, masks, how)
            if counts is None:
                hidden = [text.keep(mask, how).readable() for mask in masks]
                found.append(self.probabilities(hidden))
            else:
                weighed, steps = self._weighed(counts), self.pipeline.steps
                rest = self.pipeline[1:] if len(steps) > 2 else steps[1][1]
                found.append(self._answer(partial(rest.predict_proba, weighed), len(masks)))
        return found

    def _counts(self, text: Text, masks: BoolArray, how: Hiding) -> Any:
        """(masks, vocabulary) sparse; nothing if a token spans words or could when others go."""
        from scipy.sparse import csr_array

        vectorizer = _first_step(self.pipeline)
        analyse = vectorizer.build_analyzer()
        tokens = [analyse(word) for word in text.words]
        if not tokens or any(ord(c) >= JOINED for c in text.text):
            return None
        if [t for each in tokens for t in each] != analyse(text.text):
            return None
        known = vectorizer.vocabulary_
        links = [(i, known[t]) for i, each in enumerate(tokens) for t in each if t in known]
        rows, columns = zip(*links, strict=True) if links else ((), ())
        shape = (text.n_features, len(known))
        per_word = csr_array((np.ones(len(links)), (rows, columns)), shape=shape)
        counts = csr_array(masks.astype(np.float64)) @ per_word
        # trees take no wider indices
        counts.indices = counts.indices.astype(np.int32)
        counts.indptr = counts.indptr.astype(np.int32)
        return counts

    def _weighed(self, counts: Any) -> Any:
        """What the vectorizer makes of counts."""
        from sklearn.preprocessing import normalize

        vectorizer = _first_step(self.pipeline)
        counts.eliminate_zeros()
        if vectorizer.binary:
            counts.data[:] = 1.0
        if not hasattr(vectorizer, "use_idf"):
            return counts
        if vectorizer.sublinear_tf:
            counts.data = np.log(counts.data) + 1
        if vectorizer.use_idf:
            counts.data *= vectorizer.idf_[counts.indices]
        return normalize(counts, norm=vectorizer.norm) if vectorizer.norm else counts


def sklearn_classifier(pipeline: Any, labels: Sequence[str] | None = None) -> SklearnClassifier:
    """The adapter with the short cut, where the pipeline allows it."""
    return (CountingClassifier if _counts_words(pipeline) else SklearnClassifier)(pipeline, labels)


def _counts_words(pipeline: Any) -> bool:
    """Whether it begins with a plain count of single words, alone or weighed by rarity."""
    first = _first_step(pipeline)
    return (
        type(first).__name__ in ("CountVectorizer", "TfidfVectorizer")
        and hasattr(first, "vocabulary_")
        and first.analyzer == "word"
        and tuple(first.ngram_range) == (1, 1)
        and first.tokenizer is None
        and first.preprocessor is None
        and first.token_pattern in PLAIN_PATTERNS
    )


def _first_step(pipeline: Any) -> Any:
    steps = getattr(pipeline, "steps", None)
    return steps[0][1] if steps and len(steps) > 1 else None


class _WithoutAddresses(pickle.Pickler):
    """Leaves out where scikit-learn's vectorizers keep their stop words in memory."""

    def reducer_override(self, thing: Any) -> Any:
        if ADDRESS not in getattr(thing, "__dict__", {}):
            return NotImplemented
        make, arguments, state, *rest = thing.__reduce_ex__(4)
        return make, arguments, {k: v for k, v in state.items() if k != ADDRESS}, *rest


def load_pickled(
    path: str | Path, *, allow_unpickle: bool, labels: Sequence[str] | None = None
) -> SklearnClassifier:
    """The pipeline in a pickle, for a user who trusts the file."""
    file = Path(path)
    if file.suffix not in SUFFIXES:
        raise ModelError(f"expected a file that ends in {', '.join(SUFFIXES)}, got {file}")
    if not file.is_file():
        raise ModelError(f"there is no file {file}")
    if not allow_unpickle:
        raise ModelError(
            f"{file} is a pickle, and reading a pickle runs code from it: if you trust where it "
            "comes from, permit it with --allow-unpickle (allow_unpickle=True in Python)"
        )
    joblib = _joblib()
    wrote = "; expected what pickle.dump or joblib.dump wrote with the versions installed here"
    try:
        with guarded(f"{file} cannot be unpickled: it", advice=wrote):
            try:
                pipeline = joblib.load(file)  # reads plain pickles too
            except ModuleNotFoundError as error:
                raise ModelError(
                    f"{file} needs the package {error.name!r}, which is not installed"
                ) from error
            return sklearn_classifier(pipeline, labels)
    except ModelError as error:
        if isinstance(error.__cause__, Warning):
            raise error.__cause__ from None  # a caller who turned warnings into errors wants them
        raise


def _joblib() -> Any:
    try:
        import joblib
        import sklearn  # noqa: F401  a pipeline without it is a puzzle of missing modules
    except ModuleNotFoundError as error:
        raise MissingExtra("scikit-learn", "sklearn", "a scikit-learn model") from error
    return joblib


def _steps(pipeline: Any) -> str:
    """`TfidfVectorizer + LinearSVC`: more telling than `Pipeline`, shorter than its repr."""
    steps = getattr(pipeline, "steps", None) or [("", pipeline)]
    return " + ".join(type(step).__name__ for _, step in steps)


def _has_trees(pipeline: Any) -> bool:
    steps = getattr(pipeline, "steps", None) or [("", pipeline)]
    return any(hasattr(step, a) for _, step in steps for a in ("tree_", "estimators_"))
