"""Maskings of a picture per second, beside plain forward passes and other libraries; and what grows
with pictures and samples.

The network is a ResNet-34 throughout: trained at 64 pixels, untrained at 224, since time does not
depend on what it learnt. A library is given what is best for it: the fastest batches, segments that
are made already.
"""

from __future__ import annotations

import json
import resource
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch

import against_shap
import setting
from picture_agreement import Plane, answers, by_pixel, hidden, normalised
from setting import Row
from veracity.core.examples import Dataset, Example
from veracity.core.images import Image
from veracity.core.inputs import FloatArray
from veracity.data.loading import load_data
from veracity.models.architectures import architectures

BATCHES = {64: (16, 32, 64, 128), 224: (2, 4, 8, 16)}
"""Of each side, how many pictures are tried together, to find the fastest."""
SEGMENTS = "grid(across=5)"
SIZES = {64: (8, 200), 224: (2, 120)}
"""Of each side: pictures, and maskings of each."""
BAR = 0.85
STEPS = 50
IN_PROPORTION = 1.2
"""Time may grow by so much more than what is asked."""
MOST_MEMORY = 3072
MANY = 500
METHODS = (
    "gradient",
    "smooth_grad(samples=2)",
    "integrated_gradients(steps=2)",
    "grad_cam",
    "lrp",
    "lime(samples=8)",
    "occlusion",
    "shap(form=expected_gradients, samples=4)",
)


def _model(side: int) -> Any:
    """A ResNet-34 for pictures of this side."""
    if side == 64:
        return setting.model("resnet34").eval()
    made = load_data(f"made_shapes(n=2, side={side})")
    return architectures.make("resnet34").start(made, seed=0).eval()


def _pictures(side: int, count: int, segments: str = SEGMENTS) -> list[Image]:
    return setting.pictures(count, f"made_shapes(n=600, side={side})", segments=segments)


def _fastest_batch(model: Any, side: int, quick: bool) -> int:
    """How many pictures together go through the network fastest."""
    rates = {}
    for size in BATCHES[side]:
        values = torch.zeros((size, 3, side, side))
        _forward(model, values, 1)
        seconds, _ = setting.timed(partial(_forward, model, values, 1), 1 if quick else 3)
        rates[size] = size / seconds
    return max(rates, key=lambda size: rates[size])


def _forward(model: Any, values: torch.Tensor, times: int) -> None:
    with torch.inference_mode():
        for _ in range(times):
            model(values)


def _in_turn(works: Sequence[Callable[[], Any]], repeats: int) -> list[float]:
    """The least time of each, taken in turn, so that whatever else runs hits all alike."""
    times: list[list[float]] = [[] for _ in works]
    for _ in range(repeats):
        for own, work in zip(times, works, strict=True):
            own.append(setting.timed(work)[0])
    return [min(own) for own in times]


# ---- beside forward passes ----------------------------------------------------------------------


def of_forward(quick: bool) -> list[dict[str, Any]]:
    """LIME and Kernel SHAP as a whole, as a share of the rate of the passes alone."""
    rows = []
    for side in (64,) if quick else SIZES:
        count, samples = (1, 120) if quick else SIZES[side]
        model, pictures = _model(side), _pictures(side, count)
        targets = setting.predicted(model, pictures)
        batch = _fastest_batch(model, side, quick)
        values = torch.cat([Plane(model, pictures[0]).here] * batch)
        times = count * samples // batch
        for method in ("lime", "shap"):
            spec = f"{method}(samples={samples})"
            found = setting.explain(model, pictures, targets, spec)
            asked = sum(a.notes["questions"] for a in found)
            ours_s, plain_s = _in_turn(
                [
                    partial(setting.explain, model, pictures, targets, spec),
                    partial(_forward, model, values, times),
                ],
                1 if quick else 3,
            )
            ours, plain = asked / ours_s, times * batch / plain_s
            rows.append(
                Row(
                    f"{spec}, resnet34, {side} px",
                    "forward passes alone",
                    ours_s,
                    asked / plain,
                    value=ours / plain,
                    bar=BAR,
                    note=f"{ours:,.0f} against {plain:,.0f} pictures/s in batches of {batch}",
                    more={"pictures": count, "asked": asked},
                ).written()
            )
    return rows


# ---- beside other libraries ---------------------------------------------------------------------


def _lime(model: Any, one: Image, target: int, samples: int, batch: int) -> None:
    from lime.lime_image import LimeImageExplainer

    LimeImageExplainer(random_state=0).explain_instance(
        one.pixels,
        partial(answers, model, at_once=batch),
        labels=(target,),
        top_labels=None,
        hide_color=0,
        num_samples=samples,
        batch_size=batch,
        segmentation_fn=lambda _: one.segments.reshape(one.shape),
    )


def _kernel_shap(model: Any, one: Image, target: int, samples: int, batch: int) -> None:
    def values(rows: FloatArray) -> FloatArray:
        return answers(model, hidden(one, rows > 0.5), at_once=batch)[:, target]

    against_shap.kernel(values, one.n_units, samples, 0)


def _captum(method: str, model: Any, one: Image, target: int, samples: int, batch: int) -> None:
    import captum.attr

    plane = Plane(model, one)
    with torch.no_grad():
        getattr(captum.attr, method)(plane.chances).attribute(
            plane.here,
            baselines=normalised(model, np.zeros_like(one.pixels[None])),
            target=target,
            feature_mask=torch.from_numpy(one.segments.reshape(1, 1, *one.shape)),
            n_samples=samples,
            perturbations_per_eval=batch,
        )


def _integrated(model: Any, one: Image, target: int, batch: int) -> FloatArray:
    from captum.attr import IntegratedGradients

    plane = Plane(model, one)
    found = IntegratedGradients(plane.chances).attribute(
        plane.here, target=target, n_steps=STEPS, internal_batch_size=batch
    )
    shares: FloatArray = by_pixel(found).sum(axis=1)
    return shares


PEERS: tuple[tuple[str, str, Callable[..., None]], ...] = (
    ("lime", "lime", _lime),
    ("lime", "captum", partial(_captum, "Lime")),
    ("shap", "shap", _kernel_shap),
    ("shap", "captum", partial(_captum, "KernelShap")),
)


def beside_others(quick: bool) -> list[dict[str, Any]]:
    """The same number of maskings of the same segments."""
    warnings.simplefilter("ignore")
    rows = []
    for side in (64,) if quick else SIZES:
        count, samples = (1, 120) if quick else SIZES[side]
        model, pictures = _model(side), _pictures(side, count)
        targets = setting.predicted(model, pictures)
        batch = _fastest_batch(model, side, quick)
        for method, peer, attribute in PEERS:
            spec = f"{method}(samples={samples})"

            def theirs(attribute: Callable[..., None] = attribute) -> None:
                for one, target in zip(pictures, targets, strict=True):  # noqa: B023
                    attribute(model, one, target, samples, batch)  # noqa: B023

            ours = partial(setting.explain, model, pictures, targets, spec)
            ours_s, peer_s = _in_turn([ours, theirs], 1 if quick else 2)
            case = f"{spec}, resnet34, {side} px"
            more = {"pictures": count}
            rows.append(Row(case, peer, ours_s, peer_s, bar=1, more=more).written())
        rows.append(_integrated_row(model, pictures, targets, side, batch))
    return rows


def _integrated_row(
    model: Any, pictures: list[Image], targets: list[int], side: int, batch: int
) -> dict[str, Any]:
    spec = setting.INTEGRATED.format(steps=STEPS)
    ours_s, ours = setting.timed(lambda: setting.explain(model, pictures, targets, spec))
    peer_s, theirs = setting.timed(
        lambda: [
            _integrated(model, one, target, batch)
            for one, target in zip(pictures, targets, strict=True)
        ]
    )
    return Row(
        f"integrated gradients, {STEPS} steps, resnet34, {side} px",
        "captum",
        ours_s,
        peer_s,
        setting.largest([a.scores for a in ours], theirs),
        bar=1,
        more={"pictures": len(pictures)},
    ).written()


# ---- growth -------------------------------------------------------------------------------------


def in_proportion(quick: bool) -> list[dict[str, Any]]:
    """Four times the pictures, or the samples, take four times as long."""
    model = _model(64)
    few, many = (1, 4) if quick else (4, 16)
    pictures = _pictures(64, many)
    targets = setting.predicted(model, pictures)
    rows = []
    for method in ("lime", "shap"):
        for sweep in ("pictures", "samples"):
            sizes = ((few, 120), (many, 120)) if sweep == "pictures" else ((few, 120), (few, 480))
            works = [
                partial(
                    setting.explain,
                    model,
                    pictures[:n],
                    targets[:n],
                    f"{method}(samples={samples})",
                )
                for n, samples in sizes
            ]
            works[0]()
            least, most = _in_turn(works, 1 if quick else 3)
            rows.append(
                Row(
                    f"{method}, resnet34, 64 px: four times the {sweep}",
                    "",
                    most,
                    value=most / least / 4,
                    bar=IN_PROPORTION,
                    at_most=True,
                    note=f"ratio: of time over {sweep}; {least:.2f} s and {most:.2f} s",
                ).written()
            )
    return rows


# ---- memory -------------------------------------------------------------------------------------


def measure(pictures: int) -> dict[str, float]:
    """The body of a process: an audit of so many pictures of 224 pixels by eight methods."""
    import veracity

    setting.all_cores()
    warnings.simplefilter("ignore")
    made = load_data(f"made_shapes(n={pictures}, side=224)")
    data = Dataset(
        made.name,
        made.labels,
        tuple(
            Example(e.id, Image(e.input.pixels, "grid(across=2)"), e.label, e.truths) for e in made
        ),
    )
    model = _model(224)
    started = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        veracity.audit(
            model,
            data,
            list(METHODS),
            "attribution_mass",
            out=Path(folder) / "run",
            train=data,
            extras=False,
        )
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return {
        "pictures": pictures,
        "seconds": time.perf_counter() - started,
        "peak_memory_mb": round(peak),
    }


def memory(quick: bool) -> list[dict[str, Any]]:
    """Whether many pictures fit, going by how memory grows from few to some."""
    sizes = (2, 4) if quick else (50, 200)
    few, some = (setting.in_own_process(__file__, n) for n in sizes)
    each = (some["peak_memory_mb"] - few["peak_memory_mb"]) / (sizes[1] - sizes[0])
    expected = some["peak_memory_mb"] + max(0.0, each) * (MANY - sizes[1])
    return [
        Row(
            f"peak memory of {MANY} pictures of 224 px × {len(METHODS)} methods, resnet34",
            "",
            some["seconds"],
            value=expected / MOST_MEMORY,
            bar=1,
            at_most=True,
            note=(
                f"ratio: to {MOST_MEMORY} MB; {few['peak_memory_mb']} MB for {sizes[0]} pictures, "
                f"{some['peak_memory_mb']} MB for {sizes[1]}, so {expected:.0f} MB for {MANY}"
            ),
            more={"few": few, "some": some},
        ).written()
    ]


CASES = {
    "pictures: share of forward passes": of_forward,
    "pictures: beside other libraries": beside_others,
    "pictures: growth": in_proportion,
    "pictures: memory": memory,
}

if __name__ == "__main__":
    print(json.dumps(measure(json.loads(sys.argv[1]))))
