"""Writes the reference pages from the code: `make docs`. What is listed, with which settings, which
commands there are and what a run holds is nowhere typed in."""

from __future__ import annotations

import dataclasses
import importlib
import inspect
import json
import re
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

REFERENCE = Path(__file__).parent / "reference"
DEFINITIONS = "../explanation/definitions.md"

MADE = "*Made from the code by `make docs`.*"


def pages() -> dict[str, str]:
    """Every generated page, by its name in `docs/reference`."""
    made = {f"{kind}.md": page for kind, page in plugin_pages()}
    made |= {"commands.md": commands_page(), "run-folder.md": run_page(), "rules.md": rule_page()}
    made |= {"json.md": json_page()}
    return {name: linked(page) for name, page in sorted(made.items())}


def main() -> None:
    """Writes all pages; a page that is as it was stays untouched."""
    for name, page in pages().items():
        path = REFERENCE / name
        if not path.exists() or path.read_text("utf-8") != page:
            path.write_text(page, "utf-8")
            print(f"wrote {path}")


# ---- plug-ins ---------------------------------------------------------------------------------

INTRODUCTIONS = {
    "explainers": (
        "Explanation methods",
        "`veracity list explainers`. A method is named with its settings in brackets, "
        "`lime(samples=5000)`; which methods a model allows hangs on its abilities, named as "
        "*needs*.",
    ),
    "metrics": (
        "Metrics",
        "`veracity list metrics`. Quantities have a better side where methods are compared by "
        "them; the headline speaks in the verdict, which reads “To *purpose*, use …”. An audit "
        "runs all that the data allow; `--metrics` chooses.",
    ),
    "models": (
        "Models that can be trained",
        "`veracity list models`; `veracity train 'text_cnn(filters=50)' DATA --out FOLDER`. Models "
        "of your own need no training here: [your own model](../how-to/own-model.md).",
    ),
    "word_vectors": (
        "Vectors of words in their context",
        "`veracity list word_vectors`; `veracity train 'lstm(embeddings=bert(longest=64))' DATA "
        "--out FOLDER`. What to choose: [word vectors](../how-to/word-vectors.md).",
    ),
    "changes": (
        "Changes of data",
        "`veracity list changes`; planted cues for `veracity plant --by`, adversarial patterns for "
        "`veracity data attack --by` and `veracity robustness --by`.",
    ),
    "truths": (
        "Sources of truth",
        "`veracity list truths`; how they are learnt, looked at and used: "
        "[words held to decide](../how-to/truths.md).",
    ),
    "recipes": (
        "Recipes",
        "`veracity list recipes`; `veracity run RECIPE --scale smoke|laptop|paper`. What was seen: "
        "[planted articles](../results/planted_text.md), "
        "[planted marks](../results/planted_images.md), [IDC](../results/idc.md), "
        "[DuTrust](../results/dutrust.md), [PERCY](../results/percy.md).",
    ),
    "datasets": (
        "Corpora",
        "`veracity list datasets`; a name stands wherever data are expected.",
    ),
    "formats": (
        "Layouts of other people's files",
        "`veracity list formats`. A file is recognised by its columns; `--layout NAME` names one. "
        "What becomes of their rows: [pairs](../how-to/pairs.md#other-peoples-files). Our own: "
        "[records](records.md).",
    ),
}


def plugin_pages() -> Iterator[tuple[str, str]]:
    """One page per kind that `veracity list` knows."""
    for kind, registry in registries().items():
        title, introduction = INTRODUCTIONS[kind]
        parts = [f"# {title}", MADE, filled(introduction)]
        parts += [plugin_section(registry.get(name)) for name in registry.names()]
        yield kind, "\n\n".join(parts) + "\n"


def rule_page() -> str:
    """The rules that go by a name: tables of TOML, not classes."""
    from veracity.core.plugins import field_docstrings
    from veracity.rules import USUAL, Rule, known_rules

    about = field_docstrings(Rule)
    fields = [
        (f"`{f.name}`", f"`{json.dumps(f.default)}`", about[f.name])
        for f in dataclasses.fields(Rule)
        if f.name != "name"
    ]
    parts = [
        "# Rules",
        MADE,
        "Which clause of a text ought to decide ([how to](../how-to/rules.md)). Looked for unless "
        f"rules are named: {', '.join(f'`{name}`' for name in USUAL)}.",
        "A rule is a table of TOML, its name in brackets:",
        table(("field", "unless told", "what it is"), fields),
    ]
    for rule in known_rules().values():
        sign = f"Pattern: `{rule.pattern}`" if rule.pattern else ""
        words = ", ".join(f"`{word}`" for word in rule.keywords)
        sign = sign or f"Keywords: {words}; the clause {rule.dominant} them decides."
        language = f" Texts of the language `{rule.language}` only." if rule.language else ""
        parts += [f"## {rule.name}", f"{rule.about}", sign + language]
    return "\n\n".join(parts) + "\n"


def registries() -> dict[str, Any]:
    """All that plug-ins are kept in, by the word that `veracity list` takes."""
    from veracity.cli.listing import KINDS

    places = {kind: place.split(":") for kind, (place, _) in KINDS.items()}
    return {
        kind: getattr(importlib.import_module(f"veracity.{module}"), name)
        for kind, (module, name) in places.items()
    }


def plugin_section(cls: Any) -> str:
    """A heading, what it is, what it needs, its quantities, settings and profiles."""
    parts = [f"## {cls.plugin_name()}"]
    module = inspect.getdoc(inspect.getmodule(cls)) or ""
    parts += [f"*{filled(module)}*", documented(cls)]
    parts += [line for line in facts(cls) if line]
    quantities = getattr(cls, "quantities", {})
    if isinstance(quantities, Mapping) and quantities:
        rows = [
            (
                f"`{name}`",
                q.of_kind("text").about + (" **(headline)**" if q.headline else ""),
                q.better or "",
            )
            for name, q in quantities.items()
        ]
        parts.append(table(("quantity", "what it says", "better"), rows))
    settings = list(setting_rows(cls))
    if settings:
        parts.append(table(("setting", "kind", "default", "what it does"), settings))
    for profile, values in cls.profiles.items():
        changed = ", ".join(f"`{name}={value}`" for name, value in values.items())
        parts.append(f"`profile={profile}`: {changed}")
    return "\n\n".join(parts)


def facts(cls: Any) -> Iterator[str]:
    """What a kind of plug-in says of itself beside its settings."""
    from veracity.core.classifiers import ability_name
    from veracity.core.explainers import Explainer
    from veracity.core.metrics import Metric
    from veracity.data.format import Format
    from veracity.models.architecture import Architecture

    if issubclass(cls, Explainer):
        said = [f"needs {ability_name(cls.needs)}"]
        said += ["learns from training data (`--train DATA`)"] if _default(cls).learns else []
        said += ["draws at random"] if cls.draws else []
        said += ["the baseline that others must beat"] if cls.baseline else []
        said += ["a ceiling, no method: run beside the others"] if cls.ceiling else []
        yield "; ".join(said).capitalize() + "."
    elif issubclass(cls, Metric):
        speaks = "the model, not of methods" if cls.of_model else _default(cls).quality
        named = "" if cls.usual else " Takes long: run only where it is named."
        yield f"To {cls.purpose_of('text')}. Speaks of {speaks}.{named}"
    elif issubclass(cls, Architecture):
        unlike = _unlike(cls.training)
        yield f"Trained as told by default: {unlike}." if unlike else ""
    elif issubclass(cls, Format):
        yield "Known by the columns " + ", ".join(f"`{name}`" for name in sorted(cls.fields)) + "."


def _default(cls: Any) -> Any:
    return cls()


def _unlike(training: Any) -> str:
    shown = {f.name: getattr(training, f.name) for f in dataclasses.fields(training)}
    return ", ".join(f"{name} {value}" for name, value in shown.items() if value is not None)


def setting_rows(cls: Any) -> Iterator[tuple[str, str, str, str]]:
    """What a spec string may set, as `veracity list NAME` tells it."""
    from veracity.core.plugins import settings_of

    for setting in settings_of(cls):
        default = f"`{_plain(setting.default)}`" if setting.optional else ""
        yield f"`{setting.name}`", setting.kind, default, filled(setting.description)


def _plain(value: Any) -> str:
    return str(value) if isinstance(value, str) and value else repr(value)


# ---- commands ---------------------------------------------------------------------------------


def commands_page() -> str:
    """Every verb with what it takes."""
    from typer.main import get_command

    from veracity.cli.main import app

    parts = ["# Commands", MADE, "`--debug` on any command shows where an error arose."]
    parts += list(command_sections(get_command(app), "veracity"))
    return "\n\n".join(parts) + "\n"


def command_sections(command: Any, path: str) -> Iterator[str]:
    """The verbs of a group, each with its arguments and options."""
    for name, verb in command.commands.items():
        if hasattr(verb, "commands"):
            yield from command_sections(verb, f"{path} {name}")
            continue
        rows = [
            (
                " ".join(f"`{word}`" for word in (*p.opts, *p.secondary_opts))
                if p.param_type_name == "option"
                else f"`{p.name.upper()}`",
                filled(p.help or ""),
            )
            for p in verb.params
            if not getattr(p, "hidden", False)
        ]
        parts = [f"## {path} {name}", filled(verb.help or "")]
        yield "\n\n".join([*parts, *([table(("", "what it is"), rows)] if rows else [])])


# ---- a run ------------------------------------------------------------------------------------

RUN = """# The run folder

{made}

An audit writes one folder, part by part, each part whole or not at all. A killed run resumes and
computes nothing twice; a finished one rebuilds its report without torch; DuckDB or pandas reads it
as it is:

```sql
SELECT explainer, name, avg(value) FROM 'run/scores/**/*.parquet' GROUP BY ALL;
```

{files}

Records (`run.json`, and those of models, dry runs, suspects, recipes and truths) hold a checksum,
`veracity_sha256`, so that one that was damaged, or changed by mistake, is refused; take it out of a
record that you change on purpose. Records of earlier versions have none.

In Python: `run = veracity.results.run.Run.open(folder)`, then `run.scores()`, `run.examples()` and
what else it offers; `veracity compare` and `veracity report` on the command line.

{tables}
"""

FILES = {
    "run.json": "what was asked (data, models, methods, metrics, settings, seed, hashes) and how "
    "it was made (versions, date, command); its format is {format}, older ones are read",
    "examples.parquet": "the texts or pictures, labels, facts, truth masks and twins: all that "
    "a report needs",
    "predictions/MODEL/": "what each model answers",
    "attributions/MODEL/METHOD/": "every explanation, a file per batch",
    "scores/MODEL/METHOD/METRIC/": "one line per example and quantity",
    "second_draw/": "the same of methods that sample, drawn once more on part of the texts",
    "summaries.json": "figures over all texts that are no means: pooled counts, areas",
    "standings.json": "which method leads where, kept until a score changes",
    "run.lock": "says that the folder is ours and of which kind, and keeps two writers apart",
    "report.html": "the report; `pairs.html` beside it where there are twins",
}

EXAMPLE, MODEL = "the id of the example", "the name of the model"

COLUMNS: dict[str, dict[str, str]] = {
    "examples": {
        "example": EXAMPLE,
        "text": "as it was written",
        "starts": "where each word starts, in characters",
        "ends": "where each word ends",
        "picture": "in the size in which it was explained, as a PNG file",
        "segmentation": "how it is cut, such as `grid`; `own` where its owner did",
        "segments": "the number of each pixel's segment, row by row: 16-bit numbers, by zlib",
        "label": "the number of the given label",
        "facts": "what else is known, as JSON",
        "truths": "kinds of truth, how many features (words, or pixels), and their masks, eight "
        "features a byte",
        "partner": "of a twin, its original",
    },
    "predictions": {"example": EXAMPLE, "probabilities": "one per label"},
    "attributions": {
        "model": MODEL,
        "explainer": "the spec string of the method",
        "example": EXAMPLE,
        "target": "the number of the explained label",
        "scores": "one per word, or pixel, signed; positive supports the target",
        "level": "what the method's own fragments are: `word` or `ngram`",
        "fragments": "pieces of evidence in the method's own order, if it has any",
        "base_value": "where what is shared out starts",
        "output_value": "what the scores share out",
        "notes": "what the method says of itself (questions, errors), as JSON",
        "seconds": "what the batch took, shared out evenly over its examples",
        "questions": "how often the model was asked about the batch, shared out in the same way",
    },
    "scores": {
        "dataset": "the name of the data",
        "model": MODEL,
        "explainer": "the spec string of the method; empty for tests of the model",
        "metric": "the spec string of the metric",
        "example": EXAMPLE,
        "name": "the quantity",
        "value": "its value; NaN where it is not defined",
    },
}
"""What the columns of each table hold, in their order; some are of one kind of input only."""


def run_page() -> str:
    """What is in the files of a run, read off two that are made on the spot."""
    kinds = {"texts": _texts(), "pictures": _pictures()}
    with tempfile.TemporaryDirectory() as place:
        for kind, (model, data) in kinds.items():
            _audited(model, data, Path(place) / kind)
        version = json.loads((Path(place) / "texts/run.json").read_text("utf-8"))["format"]
        tables = [_run_table(what, [Path(place) / kind for kind in kinds]) for what in COLUMNS]
    files = [(f"`{name}`", about.format(format=version)) for name, about in FILES.items()]
    return RUN.format(
        made=MADE, files=table(("file", "what it holds"), files), tables="\n\n".join(tables)
    )


def _run_table(what: str, runs: Sequence[Path]) -> str:
    """The columns of one table, those of one kind of input named as such."""
    by_kind = {run.name: _schema(run, what) for run in runs}
    types = {name: kind for schema in by_kind.values() for name, kind in schema.items()}
    if set(types) != set(COLUMNS[what]):
        raise ValueError(f"{what}: expected {list(COLUMNS[what])}, a run has {list(types)}")
    rows = []
    for name, about in COLUMNS[what].items():
        having = [kind for kind, schema in by_kind.items() if name in schema]
        only = f"of {having[0]}: " if len(having) < len(by_kind) else ""
        rows.append((f"`{name}`", f"`{types[name]}`", only + about))
    return f"## {what}\n\n" + table(("column", "type", "what it is"), rows)


def _schema(run: Path, what: str) -> dict[str, str]:
    import pyarrow.parquet as pq

    first = next(iter(sorted(run.glob(f"{what}*/**/*.parquet"))), run / f"{what}.parquet")
    return {field.name: str(field.type) for field in pq.read_schema(first)}


def _audited(model: Any, rows: Sequence[Mapping[str, Any]], folder: Path) -> None:
    import veracity

    loaded = veracity.load_model(model, labels=["negative", "positive"])
    data = veracity.load_data(rows)
    veracity.audit(loaded, data, ["occlusion"], metrics=["erasure"], out=folder)


def _texts() -> tuple[Any, list[dict[str, Any]]]:
    return _predict, [
        {"text": "a good film", "label": "positive"},
        {"text": "a dull film", "label": "negative"},
    ]


def _pictures() -> tuple[Any, list[dict[str, Any]]]:
    import numpy as np

    def light(pictures: Sequence[Any]) -> list[list[float]]:
        means = [float(picture.mean()) / 255 for picture in pictures]
        return [[1 - mean, mean] for mean in means]

    plain = {
        label: np.full((8, 8, 3), value, np.uint8)
        for label, value in (("positive", 200), ("negative", 20))
    }
    return light, [{"picture": picture, "label": label} for label, picture in plain.items()]


def _predict(texts: Sequence[str]) -> list[list[float]]:
    return [[0.2, 0.8] if "good" in text else [0.7, 0.3] for text in texts]


# ---- JSON -------------------------------------------------------------------------------------

JSON = """# JSON of suspects and of models

{made}

What is not defined or not known is `null`, in Python None or nan. Some keys are older than the
names of their fields in Python, which stand beside them.

## suspects.json

`veracity suspects` writes it, with its `format` and [a checksum](run-folder.md); `--json` prints
the same, and {printed}.

{suspects}

### found, others, unfollowed

Each is a list of these:

{suspect}

### put_in, taken_out

{effect}

### examples

A list of these:

{example}

### surface_trials

A list of these:

{trial}

## health

What is known of a model before its explanations are judged: `veracity audit --json` holds one for
each model in `health`, `veracity rules audit --json` those of texts without a structure in
`elsewhere`, by model.

{health}
"""

PRINTED = ("alarms", "can_clear", "limits")


def json_page() -> str:
    """The keys of what programs read, as their records say."""
    from veracity.results.health import KEYS, Health
    from veracity.suspicion.record import (
        ON_DISK,
        Effect,
        SurfaceTrial,
        Suspect,
        SuspectExample,
        Suspects,
    )

    printed = {name: f"`{name}` ({_line(getattr(Suspects, name))})" for name in PRINTED}
    return JSON.format(
        made=MADE,
        printed=", ".join(["`report` (the page)", *printed.values()]),
        suspects=_keys(Suspects, ON_DISK),
        suspect=_keys(Suspect, ON_DISK),
        effect=_keys(Effect, ON_DISK),
        example=_keys(SuspectExample, ON_DISK),
        trial=_keys(SurfaceTrial, ON_DISK),
        health=_keys(Health, KEYS, "summary", "fault", "caution"),
    )


def _line(member: Any) -> str:
    said = filled(inspect.getdoc(member) or "").removesuffix(".")
    return said[:1].lower() + said[1:]


def _keys(record: Any, keys: Mapping[str, str], *properties: str) -> str:
    """What a record is written as: its fields, and what it tells beyond them."""
    from veracity.core.plugins import field_docstrings

    about = field_docstrings(record)
    rows = []
    for field in dataclasses.fields(record):
        key = keys.get(field.name, field.name)
        rows.append((f"`{key}`", "" if key == field.name else f"`{field.name}`", about[field.name]))
    rows += [(f"`{p}`", "", filled(inspect.getdoc(getattr(record, p)) or "")) for p in properties]
    return table(("key", "in Python", "what it is"), rows)


# ---- Markdown ---------------------------------------------------------------------------------


def documented(cls: type) -> str:
    """The docstring of a class, its lines put together."""
    return "\n\n".join(filled(part) for part in (inspect.getdoc(cls) or "").split("\n\n"))


def filled(text: str) -> str:
    """One line of what was broken into several."""
    return re.sub(r"\s+", " ", text).strip()


def table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A Markdown table; what would end a cell is written otherwise."""
    lines = [heads, ["---"] * len(heads), *rows]
    return "\n".join(
        f"| {' | '.join(c.replace('|', chr(92) + '|') for c in row)} |" for row in lines
    )


def linked(page: str) -> str:
    """Citations as links to the definitions."""
    anchors = headings((REFERENCE / DEFINITIONS).read_text("utf-8"))

    def link(found: re.Match[str]) -> str:
        first, *others = re.findall(r"[0-9A-D][0-9.]*[0-9]", found[1])
        return "definitions " + ", ".join(
            f"[{number}]({DEFINITIONS}#{anchors[number]})" for number in (first, *others)
        )

    return re.sub(
        r"(?:SPEC|definitions) ([0-9A-D][0-9.]*[0-9](?:(?:,| to) [0-9][0-9.]*[0-9])*)", link, page
    )


def headings(document: str) -> dict[str, str]:
    """The anchors of numbered headings, by their number."""
    found = {}
    for title in re.findall(r"^#+ (.*)$", document, flags=re.MULTILINE):
        number = title.split()[0].rstrip(".")
        found[number] = anchor(title)
    return found


def anchor(title: str) -> str:
    """The anchor that Markdown gives a heading."""
    plain = re.sub(r"[`*]", "", title).lower()
    return re.sub(r"[^\w\- ]", "", plain).strip().replace(" ", "-")


if __name__ == "__main__":
    main()
