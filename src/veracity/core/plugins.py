"""`lime(samples=500)` ↔ object. A folder is a registry; the text is the identity."""

from __future__ import annotations

import ast
import dataclasses
import difflib
import functools
import importlib
import inspect
import itertools
import math
import os
import pkgutil
import re
import reprlib
import sys
import textwrap
import traceback
import types
import typing
import unicodedata
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from enum import StrEnum
from importlib.metadata import entry_points
from keyword import iskeyword
from pathlib import Path
from typing import Any, ClassVar, Generic, TypeVar, cast

from .errors import PluginError, VeracityError
from .foreign import describe_failure, is_interrupt, is_own_file

PLUGIN_FOLDERS = "VERACITY_PLUGINS"
"""Folders of other people's plug-ins, each with subfolders such as `explainers` and `metrics`."""

Profiles = Mapping[str, Mapping[str, Any]]
PROFILES = ("recommended", "paper", "released")
"""Sets of settings (definitions 0.8): the defaults, what the papers print, what their code does."""


class Plugin:
    """A dataclass whose fields are its settings and whose printed form is its identity."""

    profiles: ClassVar[Profiles] = {}
    """The settings in which a profile differs from the defaults, where it does."""

    largest: ClassVar[Mapping[str, int]] = {}
    """The largest numbers that settings take, where these lie below `LARGEST`."""

    _told: frozenset[str] = frozenset()
    """Settings that print even where they are the defaults."""

    @classmethod
    def plugin_name(cls) -> str:
        """The class name in snake case, which is also the name of its file; without its kind, which
        tells the recipe `DutrustRecipe` from the format `Dutrust`."""
        kind = next((c.__name__ for c in cls.__mro__ if Plugin in c.__bases__), "")
        name = cls.__name__.removesuffix(kind) or cls.__name__
        return re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", name).lower()

    @property
    def spec(self) -> str:
        """The shortest text that makes this object again."""
        return format_spec(self.plugin_name(), settings(self, defaults=False))


T = TypeVar("T", bound=Plugin)
_UNIONS = (typing.Union, types.UnionType)


def settings(plugin: Plugin, *, defaults: bool = True) -> dict[str, Any]:
    """A plug-in's settings, not what it learnt; if asked, only those that its text must name."""
    return {
        f.name: getattr(plugin, f.name)
        for f in _settable(type(plugin))
        if defaults or getattr(plugin, f.name) != f.default or f.name in plugin._told
    }


def _settable(cls: type) -> list[dataclasses.Field[Any]]:
    """The fields of a class that are settings; those that hold what it learnt are not."""
    fields = dataclasses.fields(cls) if dataclasses.is_dataclass(cls) else ()
    return [f for f in fields if f.init]


def format_spec(name: str, values: dict[str, Any]) -> str:
    """`name(key=value, …)`; words stand bare, unless they would be read as something else."""
    if not values:
        return name
    shown = (
        f"{k}={v if isinstance(v, str) and _is_bare(v) else repr(v)}" for k, v in values.items()
    )
    return f"{name}({', '.join(shown)})"


def _is_bare(word: str) -> bool:
    # compared as Python would read it, which writes some letters in another way
    plain = word.isidentifier() and unicodedata.normalize("NFKC", word) == word
    return (plain and not iskeyword(word) and word not in _JSON_WORDS) or _is_nested(word)


def _is_nested(text: str) -> bool:
    """Whether a setting is a plug-in with settings, spelt as it prints."""
    try:
        return text.endswith(")") and format_spec(*parse_spec(text)) == text
    except PluginError:
        return False


_JSON_WORDS = {"true": True, "false": False, "null": None}


def parse_spec(spec: str) -> tuple[str, dict[str, Any]]:
    """The name and settings that a text such as `lime(samples=500)` spells."""
    complaint = PluginError(
        f"cannot read {spec!r}: expected a name, or a name with settings "
        "such as lime(samples=500, kernel=paper)"
    )
    try:
        tree = ast.parse(spec.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise complaint from None
    if isinstance(tree, ast.Name):
        return tree.id, {}
    if not (isinstance(tree, ast.Call) and isinstance(tree.func, ast.Name) and not tree.args):
        raise complaint
    values: dict[str, Any] = {}
    for keyword in tree.keywords:
        if keyword.arg is None:
            raise complaint
        if isinstance(keyword.value, ast.Name):
            word = keyword.value.id
            values[keyword.arg] = _JSON_WORDS.get(word, word)
            continue
        if isinstance(keyword.value, ast.Call):  # a plug-in that this one is built on
            values[keyword.arg] = format_spec(*parse_spec(ast.unparse(keyword.value)))
            continue
        try:
            values[keyword.arg] = ast.literal_eval(keyword.value)
        except (ValueError, TypeError):
            raise complaint from None
    return tree.func.id, values


def split_specs(specs: str | Sequence[str]) -> list[str]:
    """`"lime(samples=5), occlusion"` → its parts; commas inside brackets do not separate."""
    parts: list[str] = []
    for text in [specs] if isinstance(specs, str) else specs:
        depth, start = 0, 0
        for i, c in enumerate(text):
            depth += (c in "([{") - (c in ")]}")
            if c == "," and depth == 0:
                parts.append(text[start:i])
                start = i + 1
        parts.append(text[start:])
    return [part.strip() for part in parts if part.strip()]


def nearest(name: str, known: Iterable[str]) -> str:
    """A hint for a misspelt name."""
    options = sorted(known)
    close = difflib.get_close_matches(name, options, n=1, cutoff=0.5)
    return f"did you mean {close[0]!r}?" if close else f"known: {', '.join(options) or 'none'}"


@dataclass(frozen=True)
class Registry(Generic[T]):
    """The plug-ins of one kind: the modules of a package, plug-in folders and entry points."""

    kind: str
    package: str
    base: Any

    def names(self) -> list[str]:
        """All names, found without importing any plug-in."""
        folder = importlib.import_module(self.package)
        own = {m.name for m in pkgutil.iter_modules(folder.__path__) if not m.name.startswith("_")}
        return sorted(own | {e.name for e in _registered(self.package)})

    def get(self, name: str) -> type[T]:
        """The class behind a name."""
        if name not in self.names():
            raise PluginError(f"no {self.kind} is called {name!r}: {nearest(name, self.names())}")
        for entry in _registered(self.package):
            if entry.name == name:
                with blamed(name, entry.value):
                    found: type[T] = entry.load()
                _foreign_files[_file_of(found)] = name
                return found
        with blamed(name, self._file(name)):
            module = importlib.import_module(f"{self.package}.{name}")
        classes: list[Any] = [
            c
            for c in vars(module).values()
            if inspect.isclass(c) and issubclass(c, self.base) and c.__module__ == module.__name__
        ]
        classes = [c for c in classes if c.plugin_name() == name]
        if len(classes) != 1:
            raise PluginError(
                f"expected the file {name}.py to hold one {self.base.__name__} whose class name "
                f"in snake case is {name!r}; found {len(classes)}"
            )
        only: type[T] = classes[0]
        if not is_own_file(module.__file__ or ""):
            _foreign_files[str(module.__file__)] = name
        return only

    def make(self, spec: str | T, profile: str = "recommended") -> T:
        """The object a text spells; an object is passed through.

        `lime(profile=paper)` takes the settings of a profile, save those that are given; `profile`
        is that of texts which name none.
        """
        if not isinstance(spec, str):
            if isinstance(spec, self.base):
                return cast(T, spec)
            raise PluginError(f"expected a name or an {self.base.__name__}, got {spec!r}")
        name, values = parse_spec(spec)
        cls = self.get(name)
        # a plug-in of somebody else may have a setting of that name
        own = any(f.name == "profile" for f in _settable(cls))
        named = profile if own else values.pop("profile", profile)
        values = _in_profile(cls, named) | values
        check_settings(cls, values)
        _check_complete(cls, name, values)
        try:
            with blamed(name, _file_of(cls), passed=ValueError):
                hints = _hints(cls)
                return cls(**{k: _as_hinted(v, hints[k]) for k, v in values.items()})
        except ValueError as error:
            raise PluginError(f"{spec}: {error}") from None

    def _file(self, name: str) -> str:
        """Where a module of this name would be read from."""
        folders = importlib.import_module(self.package).__path__
        found = (Path(folder) / f"{name}.py" for folder in folders)
        return str(next((path for path in found if path.exists()), name))


@functools.cache
def _registered(group: str) -> Any:
    """Looked up once: to search all installed packages takes longer than most questions."""
    return entry_points(group=group)


def _check_complete(cls: type[Plugin], name: str, values: Mapping[str, Any]) -> None:
    missing = dataclasses.MISSING
    required = [f.name for f in _settable(cls) if f.default is f.default_factory is missing]
    if lacking := [setting for setting in required if setting not in values]:
        said = ", ".join(f"{setting}=…" for setting in required)
        raise PluginError(f"{name} has to be told {' and '.join(lacking)}: {name}({said})")


def _in_profile(cls: type[Plugin], profile: Any) -> dict[str, Any]:
    if profile not in PROFILES:
        raise PluginError(f"no profile is called {profile!r}: {nearest(str(profile), PROFILES)}")
    return dict(cls.profiles.get(profile, {}))


def _as_hinted(value: Any, hint: Any) -> Any:
    """A list as a tuple, and 30 as 30.0 where a float is meant: one number, one identity."""
    options = typing.get_args(hint) if typing.get_origin(hint) in _UNIONS else (hint,)
    if type(value) is int and float in options and int not in options:
        return float(value)
    return tuple(value) if isinstance(value, list) else value


@dataclass(frozen=True, kw_only=True)
class Setting:
    """What can be said of one setting before anything is made of it."""

    name: str
    kind: str
    default: Any
    optional: bool
    largest: int | None
    """The largest number that it takes, where numbers are meant."""
    description: str


COMMON_SETTINGS = {
    "by": "Whether words are ordered by signed scores or by their size.",
    "cased": "Whether Great and great are two words.",
    "hiding": "How words are hidden: deleted, or padding or a mask in their place.",
    "output": "The number that is explained: the label's probability, its logit or its log odds.",
    "ratio": "The share of words that count as the top ones.",
    "seed": "Makes every random choice repeatable.",
    "truth": "The kind of marks that are held true, such as rationale, planted or pseudo.",
}
"""Settings that mean the same wherever they stand and nothing else is said under them."""


def settings_of(cls: type[Plugin]) -> list[Setting]:
    """The settings of a plug-in's class, each with the line that stands under it in the source."""
    hints = _hints(cls)
    lines: dict[str, str] = {}
    for base in reversed(cls.__mro__):
        lines |= field_docstrings(base)
    return [
        Setting(
            name=f.name,
            kind=_readable(hints[f.name]),
            default=None if f.default is dataclasses.MISSING else f.default,
            optional=f.default is not dataclasses.MISSING,
            largest=_largest(cls, f.name) if {int, float} & _kinds(hints[f.name]) else None,
            description=lines.get(f.name) or COMMON_SETTINGS.get(f.name, ""),
        )
        for f in _settable(cls)
    ]


@functools.cache
def field_docstrings(cls: type) -> dict[str, str]:
    """The strings that stand under the fields of a class."""
    try:
        (tree,) = ast.parse(textwrap.dedent(inspect.getsource(cls))).body
    except (OSError, TypeError, ValueError, SyntaxError):  # made without a file
        return {}
    found = {}
    for field, line in itertools.pairwise(getattr(tree, "body", ())):
        if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name):
            match line:
                case ast.Expr(value=ast.Constant(value=str(text))):
                    found[field.target.id] = " ".join(text.split())
    return found


def _kinds(hint: Any) -> set[Any]:
    """The plain types that a setting may have, alone or in a list."""
    arguments = typing.get_args(hint)
    inner = typing.get_origin(hint) in (*_UNIONS, tuple)
    return set().union(*map(_kinds, arguments)) if inner else {hint}


def _largest(cls: type, setting: str) -> int:
    if setting == "seed":
        return LARGEST_SEED
    most: int = getattr(cls, "largest", {}).get(setting, LARGEST)
    return most


_read_once = functools.cache(typing.get_type_hints)


def _hints(cls: type) -> dict[str, Any]:
    """The types of a class's settings: plug-ins are made often, and to read these takes longest."""
    return _read_once(cls)


def check_settings(cls: type, values: dict[str, Any]) -> None:
    """Settings of the right names and kinds, or a sentence that says which is wrong."""
    known = {f.name for f in _settable(cls)}
    hints = _hints(cls)
    name = cls.plugin_name() if issubclass(cls, Plugin) else cls.__name__
    for key, value in values.items():
        if key not in known:
            raise PluginError(f"{name} has no setting {key!r}: {nearest(key, known)}")
        if not fits(value, hints[key]):
            raise PluginError(
                f"{name}: expected {key} to be {_readable(hints[key])}, got {reprlib.repr(value)}"
            )
        most = _largest(cls, key)
        least = 0 if key == "seed" else -most
        for number in numbers_in(value):
            if 0 < abs(number) < SMALLEST or not least <= number <= most:
                raise PluginError(
                    f"{name}: expected {key} to lie between {least:,} and {most:,}"
                    f"{f', and no nearer to 0 than {SMALLEST:g}' if number else ''}, "
                    f"got {reprlib.repr(number)}"
                )


LARGEST = 1_000_000
"""No setting needs a larger number, and no smaller one fills a machine by itself."""

LARGEST_SEED = 2**32 - 1
SMALLEST = 1e-12
"""Nor one nearer to nothing: squares and quotients of it would leave the range of numbers."""


def numbers_in(value: Any) -> Iterator[float]:
    """The numbers of a setting, which may be a list."""
    if isinstance(value, tuple | list):
        for each in value:
            yield from numbers_in(each)
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield value


def fits(value: Any, hint: Any) -> bool:
    """Whether a literal value is of the annotated kind."""
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if hint is Any:
        return True
    if origin in _UNIONS:
        return any(fits(value, option) for option in arguments)
    if origin is typing.Literal:
        return value in arguments
    if origin is tuple:
        return isinstance(value, tuple | list) and all(fits(v, arguments[0]) for v in value)
    if hint is float:
        if isinstance(value, bool) or not isinstance(value, int | float):
            return False
        return isinstance(value, int) or math.isfinite(value)  # of 10**400 nobody can tell
    if hint is int:
        return isinstance(value, int) and not isinstance(value, bool)
    if inspect.isclass(hint) and issubclass(hint, StrEnum):
        return value in list(hint)
    return isinstance(value, hint)


def _readable(hint: Any) -> str:
    if typing.get_origin(hint) in _UNIONS:
        return " or ".join(_readable(option) for option in typing.get_args(hint))
    if hint is types.NoneType:
        return "None"
    if typing.get_origin(hint) is typing.Literal:
        return " or ".join(map(str, typing.get_args(hint)))
    if inspect.isclass(hint) and issubclass(hint, StrEnum):
        return " or ".join(hint)
    return hint.__name__ if inspect.isclass(hint) and not typing.get_args(hint) else str(hint)


def blamed_on(plugin: Plugin) -> AbstractContextManager[None]:
    """For the time that a plug-in does its work: see `blamed`."""
    return blamed(plugin.spec, _file_of(type(plugin)))


def _file_of(cls: type) -> str:
    return getattr(sys.modules.get(cls.__module__), "__file__", None) or ""


@contextmanager
def blamed(name: str, file: str, *, passed: type[Exception] = VeracityError) -> Iterator[None]:
    """What somebody else's plug-in raises is told under its name; what ours raise is our bug, and
    what is a sentence to the user already is left as it is."""
    try:
        yield
    except (VeracityError, MemoryError, passed):
        raise
    except BaseException as error:
        if is_own_file(file) or is_interrupt(error):
            raise
        raise PluginError(
            f"the plug-in {name}{_place(error, file)} {describe_failure(error)}. Mend it there, or "
            "leave it out; --debug shows how it came to that"
        ) from error


_foreign_files: dict[str, str] = {}
"""The files of other people's plug-ins that were loaded, and their names."""


@contextmanager
def blame() -> Iterator[None]:
    """Around a whole command: what went through the file of somebody's plug-in is told under its
    name, wherever that was asked."""
    try:
        yield
    except BaseException as error:
        files = {frame.filename for frame in traceback.extract_tb(error.__traceback__)}
        for file in files & _foreign_files.keys():
            with blamed(_foreign_files[file], file):
                raise
        raise


def _place(error: BaseException, file: str) -> str:
    """The file and the last line of it that the error went through."""
    if isinstance(error, SyntaxError) and error.filename:
        return f" ({error.filename}, line {error.lineno})"
    frames = traceback.extract_tb(error.__traceback__)
    lines = [f.lineno for f in frames if f.filename == file]
    return f" ({file}, line {lines[-1]})" if lines else f" ({file})" if file else ""


def plugin_path(own: Iterable[str], kind: str) -> list[str]:
    """A plug-in package's own folder and the folders that users added for this kind."""
    added = os.environ.get(PLUGIN_FOLDERS, "")
    _check_folders(added)
    folders = (Path(folder).absolute() for folder in added.split(os.pathsep) if folder)
    return [*own, *(str(folder / kind) for folder in folders)]


KINDS = (
    "explainers",
    "metrics",
    "changes",
    "corpora",
    "formats",
    "architectures",
    "word_vectors",
    "truths",
    "recipes",
    "rules",
)
"""What a folder of plug-ins may hold, each kind in a subfolder of its own."""


@functools.cache
def _check_folders(added: str) -> None:
    """Told once: a misspelt folder would only show as a method that nobody knows."""
    for folder in filter(None, added.split(os.pathsep)):
        if any((Path(folder) / kind).is_dir() for kind in KINDS):
            continue
        seen = f"is not there: expected a folder with subfolders such as {', '.join(KINDS[:2])}"
        if Path(folder).is_dir():
            seen = f"holds no plug-ins: expected one of the subfolders {', '.join(KINDS)}"
        warnings.warn(f"{PLUGIN_FOLDERS} names {folder}, which {seen}", stacklevel=2)


@functools.cache
def description(cls: type) -> str:
    """The description that lists show, the first paragraph in one line: no sentence is cut."""
    return " ".join((inspect.getdoc(cls) or "").split("\n\n", 1)[0].split())
