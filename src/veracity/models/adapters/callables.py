"""Any Python function as a model, and the checks that every adapter makes on answers."""

from __future__ import annotations

import hashlib
import importlib
import importlib.util
import inspect
import reprlib
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from ...core.classifiers import Classifier
from ...core.counts import counted
from ...core.errors import ModelError
from ...core.foreign import error_message, guarded
from ...core.inputs import FloatArray, Input, Text
from ...core.plugins import nearest

PROBE = "a short text"
"""What a model is asked when only the shape of its answer matters."""

FINGERPRINT = (PROBE, "good", "bad", "not as good as I had hoped", "这部电影很好看")
"""What a function is asked to tell whether it is still the same model."""

ONE_SIZE = (
    ". If it reads pictures of one size only, have them resized: --size 64 (load_data(…, size=64))"
)
"""What may help where a function fails on pictures: they come as large as they are."""

SUM_TOLERANCE = 1e-3
RANGE_TOLERANCE = 1e-6


class CallableClassifier:
    """A function from a list of strings, or of pictures as arrays, to probabilities, as a
    classifier."""

    def __init__(
        self,
        function: Callable[[list[str]], Any],
        labels: Sequence[str] | None = None,
        *,
        spec: str = "",
    ) -> None:
        if not callable(function):
            raise ModelError(
                f"expected a function of a list of strings, got {reprlib.repr(function)}"
            )
        self.function = function
        self.spec = spec
        self.probes: tuple[Any, ...] = FINGERPRINT
        self.name = spec or _qualified_name(function)
        with guarded(f"the model {self.name}", " when asked for its labels"):
            given = getattr(function, "labels", None) if labels is None else labels
            self._labels = None if given is None else checked_labels(given, source=self.name)

    @property
    def labels(self) -> tuple[str, ...]:
        """Numbers, for a function that names no labels: one call tells how many."""
        if self._labels is None:
            self._labels = numbered_labels(self._answer(list(self.probes[:1]), width=None).shape[1])
        return self._labels

    @labels.setter
    def labels(self, labels: Sequence[str]) -> None:
        self._labels = checked_labels(labels, source=self.name)

    def probabilities(self, inputs: Sequence[Input]) -> FloatArray:  # (inputs, labels)
        """The function's answers, checked."""
        return self._answer([each.raw for each in inputs], width=len(self.labels))

    def probe_with(self, inputs: Sequence[Input]) -> None:
        """What the function is asked when only the shape of its answer, or whether it is still the
        same, matters: texts unless it is for something else."""
        if inputs and inputs[0].kind != Text.kind:
            self.probes = tuple(one.raw for one in inputs[: len(FINGERPRINT)])

    def identity(self) -> str:
        """Source and a few answers: a function may read weights that its source does not show."""
        digest = hashlib.sha256(_source(self.function))
        digest.update(self._answer(list(self.probes), width=None).round(4).tobytes())
        module, _, name = self.spec.rpartition(":")
        where = f"{Path(module).name}:{name}" if self.spec else self.name
        return f"callable {where} {digest.hexdigest()}"

    def _answer(self, texts: list[Any], *, width: int | None) -> FloatArray:
        if not texts:
            return np.zeros((0, width or 0))
        count, source = len(texts), f"the model {self.name}"
        kind, advice = ("text", "") if isinstance(texts[0], str) else ("picture", ONE_SIZE)
        with guarded(source, f" on {counted(count, kind)}", advice=advice):
            values = as_numbers(self.function(texts), source=source)
        if values.ndim == 2 and values.shape[1] == 1:
            values = values[:, 0]
        if values.ndim == 1:
            values = np.stack([1 - values, values], axis=1)
        return checked_probabilities(values, source=source, rows=count, width=width)

    def __getstate__(self) -> dict[str, Any]:
        # A function loaded from a file has no module that another process could import.
        return {**self.__dict__, "function": None} if self.spec else self.__dict__

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        if self.spec:
            self.function = resolved(self.spec)


def load_callable(spec: str, labels: Sequence[str] | None = None) -> Classifier:
    """The model that `package.module:function` or `path/to/file.py:function` names: a function of
    texts or pictures, or one without parameters that gives the model."""
    module, colon, name = spec.rpartition(":")
    if not (module and colon and name):
        raise ModelError(
            f"cannot read {spec!r}: expected package.module:function or path/to/file.py:function"
        )
    if module.endswith(".py"):
        try:
            spec = f"{Path(module).resolve()}:{name}"  # a worker may stand in another folder
        except (OSError, ValueError) as error:
            raise ModelError(f"expected a path before the colon of {spec!r}: {error}") from None
    found = resolved(spec)
    if is_picture_network(found):
        from .torch_modules import picture_network

        return picture_network(found, labels, spec=spec)
    if is_classifier(found):
        return found  # type: ignore[no-any-return]
    return CallableClassifier(found, labels, spec=spec)


def resolved(spec: str) -> Any:
    """What a spec names; what a function gives that takes nothing."""
    found = _resolve(spec)
    if is_classifier(found) or not _takes_nothing(found):
        return found
    with guarded(f"the function {spec}", " when asked for the model"):
        return found()


def _takes_nothing(function: Callable[..., Any]) -> bool:
    try:
        return not inspect.signature(function).parameters
    except (TypeError, ValueError):  # written in C
        return False


def is_classifier(source: Any) -> bool:
    """Whether this is a model as ours are; not isinstance, which would ask for its labels, and a
    function may not know what of."""
    return hasattr(type(source), "probabilities") and bool(
        inspect.getattr_static(source, "labels", None)
    )


def is_picture_network(source: object) -> bool:
    """Whether this is a PyTorch network that says which size of pictures it reads."""
    # without an import: nobody holds a network before torch is there
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(source, torch.nn.Module) and hasattr(source, "size")


def _resolve(spec: str) -> Any:
    where, _, path = spec.rpartition(":")
    found: Any = _import_file(Path(where)) if where.endswith(".py") else _import_module(where)
    with guarded(f"looking {path} up in {where}"):
        for name in path.split("."):
            if not hasattr(found, name):
                names = (n for n in dir(found) if not n.startswith("_"))
                known = (n for n in names if callable(getattr(found, n)))
                raise ModelError(f"{where} has no function {path!r}: {nearest(name, known)}")
            found = getattr(found, name)
    if not (callable(found) or is_classifier(found)):
        raise ModelError(
            f"expected {spec} to be a function of a list of strings, got {reprlib.repr(found)}"
        )
    return found


def _import_module(name: str) -> ModuleType:
    _add_to_path(Path.cwd())
    with guarded(f"importing {name}"):
        try:
            return importlib.import_module(name)
        except ModuleNotFoundError as error:
            if error.name is None or not f"{name}.".startswith(f"{error.name}."):
                raise
            raise ModelError(
                f"no module is called {error.name!r}: install it, run from the folder that holds "
                "it, or give the path of the file, such as path/to/file.py:function"
            ) from error


def _import_file(path: Path) -> ModuleType:
    if not path.is_file():
        beside = (p.name for p in path.parent.glob("*.py"))
        raise ModelError(f"there is no file {path}: {nearest(path.name, beside)}")
    _add_to_path(path.parent)
    name = f"_veracity_{path.stem}_{hashlib.sha256(str(path).encode()).hexdigest()[:12]}"
    loading = importlib.util.spec_from_file_location(name, path)
    assert loading is not None and loading.loader is not None, "the name ends in .py"
    module = importlib.util.module_from_spec(loading)
    sys.modules[name] = module  # dataclasses and pickle look a class's module up by name
    with guarded(f"importing {path}"):
        try:
            loading.loader.exec_module(module)
        except BaseException:
            del sys.modules[name]
            raise
    return module


def _add_to_path(folder: Path) -> None:
    # For good, not for the import alone: functions import their neighbours when first called.
    # At the end, so that nothing installed is shadowed.
    if str(folder) not in sys.path:
        sys.path.append(str(folder))


def _qualified_name(function: object) -> str:
    named = function if hasattr(function, "__qualname__") else type(function)
    return f"{getattr(named, '__module__', '')}:{getattr(named, '__qualname__', '')}"


def _source(function: Any) -> bytes:
    """The file a function was written in; nothing where there is none, as in a notebook."""
    written = inspect.unwrap(function)
    try:
        file = inspect.getsourcefile(written if hasattr(written, "__code__") else type(written))
        return Path(file).read_bytes() if file else b""
    except (TypeError, OSError):
        return b""


def numbered_labels(count: int) -> tuple[str, ...]:
    """Labels for a model that names none."""
    return tuple(map(str, range(count)))


def checked_labels(labels: object, *, source: str) -> tuple[str, ...]:
    """Two or more distinct names, or a sentence that says what is wrong."""
    readable = isinstance(labels, Iterable) and not isinstance(labels, str | bytes)
    names = tuple(map(str, labels)) if readable else ()  # type: ignore[call-overload]
    if len(names) < 2 or len(set(names)) < len(names):
        raise ModelError(
            f"{source}: expected the names of two or more different labels, "
            f"got {reprlib.repr(labels)}"
        )
    return names


def as_numbers(answer: object, *, source: str) -> FloatArray:
    """An answer as an array; numpy alone would read texts and None as numbers too."""
    try:
        values = np.asarray(answer)
    except Exception as error:  # ragged lists, tensors that need gradients: every library its own
        raise ModelError(
            f"{source}: expected a table of numbers, got {reprlib.repr(answer)}, "
            f"which cannot be read as one: {error_message(error)}"
        ) from error
    if values.dtype.kind not in "fiu":
        raise ModelError(
            f"{source}: expected a table of numbers, one row per input, got "
            f"{reprlib.repr(answer)}. Return a list of lists of floats or a numeric numpy array"
        )
    return values.astype(np.float64)


def checked_probabilities(
    answer: object, *, source: str, rows: int, width: int | None = None
) -> FloatArray:  # (rows, width)
    """An answer as a table of probabilities, or a sentence that says what is wrong with it."""
    values = as_numbers(answer, source=source)
    if values.ndim != 2 or len(values) != rows or values.shape[1] != (width or values.shape[1]):
        raise ModelError(
            f"{source}: expected one row per input and one column per label, "
            f"{rows} × {width or 'labels'}, got the shape {' × '.join(map(str, values.shape))}"
        )
    if values.shape[1] < 2:
        raise ModelError(f"{source}: expected two or more labels, got {values.shape[1]}")
    outside = (values < -RANGE_TOLERANCE) | (values > 1 + RANGE_TOLERANCE)
    for complaint, wrong in (
        ("holds a value that is not finite", ~np.isfinite(values).all(axis=1)),
        ("holds a value outside 0 … 1", outside.any(axis=1)),
        ("does not sum to 1", np.abs(values.sum(axis=1) - 1) > SUM_TOLERANCE),
    ):
        if wrong.any():
            row = int(wrong.argmax())
            raise ModelError(
                f"{source}: expected probabilities, but row {row} {complaint}: "
                f"{reprlib.repr(values[row].tolist())}"
            )
    return values.clip(0.0, 1.0)
