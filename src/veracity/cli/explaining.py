"""The verb that colours words."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..core.errors import DataError
from ..core.files import plain
from .options import Limit, ModelSource, Seed, Split, Train, TrainLayout
from .reading import FileOptions, ModelOptions, check_new, training_data, typed_texts
from .reading_pictures import are_pictures, typed_pictures
from .showing import Answer, ProgressBars, stderr

if TYPE_CHECKING:
    from ..core.classifiers import Classifier
    from ..core.examples import Dataset
    from ..core.inputs import FloatArray

KEPT_AT_A_TIME = 100
"""So many explanations are written together; a kill costs no more."""

PICTURE = ".png"
"""What ends so is written as a picture, anything else as JSON lines."""


def explain(
    model: ModelSource,
    file: FileOptions,
    service: ModelOptions,
    texts: Annotated[
        list[str] | None,
        typer.Argument(help="Texts; - reads lines. Or pictures: files, folders or .zip of them."),
    ] = None,
    method: Annotated[str, typer.Option(help="Such as lime or 'lime(samples=5000)'.")] = "lime",
    data: Annotated[str, typer.Option(help="Explain a corpus or a file instead.")] = "",
    target: Annotated[str, typer.Option(help="predicted, or a label's name or number.")] = (
        "predicted"
    ),
    out: Annotated[
        Path | None,
        typer.Option(
            help="Write JSON lines to this file; of pictures, if it ends in .png, a picture."
        ),
    ] = None,
    html: Annotated[Path | None, typer.Option("--html", help="Write a page to this file.")] = None,
    top: Annotated[
        int, typer.Option(min=0, help="So many words, or segments, are listed with their scores.")
    ] = 5,
    seed: Seed = 0,
    split: Split = "",
    limit: Limit = None,
    train: Train = "",
    train_layout: TrainLayout = "auto",
) -> Answer:
    """Colour the words of texts, or pictures, by how they speak for a label."""
    from ..auditing.explaining import check_ability, wanted_target
    from ..auditing.labels import introduce
    from ..auditing.sizes import fit_sizes
    from ..auditing.training_sets import fit_explainer
    from ..core.classifiers import Traits
    from ..data.splits import sampled
    from ..explainers import explainers
    from ..models.loading import model_name
    from ..reports.explanations import (
        Explanation,
        print_explanations,
        write_explanations,
        write_overlays,
    )

    if bool(texts) == bool(data):
        raise DataError("expected texts or --data, and not both. Try: veracity explain MODEL TEXT")
    if out is not None and html is not None:
        raise DataError("expected --out or --html, not both: they are written by separate commands")
    painted = out is not None and out.suffix.lower() == PICTURE
    if out is not None:
        check_new(out, records=not painted)
    if html is not None:
        from ..reports.pages import check_page

        check_page(html)
    explainer = explainers.make(method)
    loaded = service.model(model, file.labels)
    given: Dataset[Any]
    if data:
        given = file.part(data, split, limit, seed)
    elif are_pictures(texts or [], Traits(loaded).reads):
        given = sampled(typed_pictures(texts or [], file.size, file.segments), limit, seed=seed)
    else:
        given = sampled(typed_texts(texts or [], file.language, file.max_words), limit, seed=seed)
    introduce(loaded, [e.input for e in given])
    if painted and given.kind != "image":
        raise DataError(f"{out}: {PICTURE} is for maps over pictures; of texts, choose .jsonl")
    inputs = [(e.id, e.input) for e in fit_sizes(given, {model_name(model): loaded})]
    explainer = explainer.for_kind(given.kind)
    check_ability(explainer, loaded, given.kind)
    learnt_from = training_data(train, replace(file, layout=train_layout), seed)
    explainer = fit_explainer(explainer, loaded, learnt_from, seed=seed)
    wanted = wanted_target(target, loaded.labels)
    explaining = _Explaining(loaded, explainer, inputs, wanted, seed)
    if out is not None and not painted:
        explaining.write(out)
        return Answer(
            json={"method": explainer.spec, "attributions": len(inputs), "out": str(out)},
            lines=[out],
        )
    found = dict(explaining.found())
    in_order = [(name, *found[i]) for i, (name, _) in enumerate(inputs)]
    unread = [one.notes["unread"] for _, one, _ in in_order if one.notes.get("unread")]
    if unread:
        stderr().print(
            f"veracity: the model does not read {len(unread):,} of {len(in_order):,} texts to "
            f"their end: {sum(unread):,.0f} words beyond its limit decide nothing and score zero",
            markup=False,
        )
    explained = [Explanation(*one, loaded.labels, explainer.signed) for one in in_order]
    content = {
        "method": explainer.spec,
        "attributions": [_attribution_json(*one, loaded.labels) for one in in_order],
    }
    if out is not None:  # a picture
        write_overlays(explained, out)
        return Answer(
            json={**content, "out": str(out)},
            show=lambda console: print_explanations(console, explained, top=top),
            written=[("Picture", out)],
        )
    if html is None:
        return Answer(
            json=content,
            notes=["--out NAME.png writes the map over the picture"]
            if given.kind == "image"
            else [],
            show=lambda console: print_explanations(console, explained, top=top),
        )
    write_explanations(explained, html, model=model_name(model))
    return Answer(json={**content, "page": str(html)}, lines=[html])


@dataclass(frozen=True)
class _Explaining:
    """Inputs by their names, and what explains a model's answers to them."""

    model: Classifier
    explainer: Any
    inputs: list[tuple[str, Any]]
    target: str | int
    seed: int

    def found(self, done: Collection[int] = ()) -> Iterator[tuple[int, tuple[Any, FloatArray]]]:
        """The place of every input not done yet, its explanation and the model's answer, in batches
        of like length."""
        from ..auditing.explaining import explain as run_explain
        from ..core.progress import Progress
        from ..engine.batches import by_length, mixed
        from ..engine.inference import probabilities

        left = [i for i in range(len(self.inputs)) if i not in done]
        batches = list(by_length([self.inputs[i][1].n_features for i in left], budget=1000))
        count = len(self.inputs) - len(left)
        with ProgressBars() as bars:
            for batch in (batches[i] for i in mixed(len(batches))):
                places = [left[i] for i in batch]
                texts = [self.inputs[i][1] for i in places]
                made = run_explain(
                    self.model, texts, self.explainer, target=self.target, seed=self.seed
                )
                answers = probabilities(self.model, texts)
                yield from zip(places, zip(made, answers, strict=True), strict=True)
                count += len(batch)
                if len(self.inputs) > 1:
                    bars.watch("explain", Progress(count, len(self.inputs), self.explainer.spec))

    def write(self, out: Path) -> None:
        """Explanations as JSON lines; what was written before a kill is not asked again."""
        import hashlib

        from ..auditing.request import known_answers
        from .resumable_lines import ResumableLines

        content = [(name, *_content(one)) for name, one in self.inputs]
        texts = hashlib.sha256(repr(content).encode())
        asked = {
            "method": self.explainer.spec,
            "answers": known_answers(self.model, [text for _, text in self.inputs]),
            "inputs": texts.hexdigest(),
            "target": self.target,
            "seed": self.seed,
        }
        lines = ResumableLines(out, asked)
        lines.open()
        rows: list[tuple[int, Any]] = []
        for place, one in self.found(lines.done):
            rows.append((place, _attribution_json(self.inputs[place][0], *one, self.model.labels)))
            if len(rows) >= KEPT_AT_A_TIME:
                lines.add(rows)
                rows = []
        lines.add(rows)
        lines.finish()


def _content(one: Any) -> tuple[Any, ...]:
    return (one.text, one.spans) if one.kind == "text" else (one.key,)


def _attribution_json(
    name: str, a: Any, probabilities: FloatArray, labels: tuple[str, ...]
) -> dict[str, Any]:
    if a.input.kind == "text":
        shown = {
            "text": a.input.text,
            "words": list(a.input.words),
            "spans": [list(span) for span in a.input.spans],
        }
    else:
        height, width = a.input.shape
        segments = {"segmentation": a.input.segmentation, "segments": a.input.n_units}
        shown = {"width": width, "height": height, **segments}
    return plain(  # type: ignore[no-any-return]
        {
            "id": name,
            **shown,
            "answer": labels[int(probabilities.argmax())],
            "probabilities": dict(zip(labels, probabilities.tolist(), strict=True)),
            "target": labels[a.target],
            "scores": [float(s) for s in a.unit_scores],
            "base_value": a.base_value,
            "output_value": a.output_value,
            "notes": {k: float(v) for k, v in a.notes.items()},
        }
    )
