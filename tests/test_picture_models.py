"""Models of pictures: trained here, from transformers, from other people."""

from __future__ import annotations

import base64
import io
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import veracity
from veracity.core.classifiers import Attentive, Convolutional, Differentiable, Maskable
from veracity.core.errors import DataError, ModelError
from veracity.core.examples import Dataset, Example
from veracity.core.images import Image
from veracity.core.inputs import Hiding
from veracity.engine.inference import masked_probabilities
from veracity.models.architecture import Training
from veracity.models.architectures import architectures
from veracity.models.architectures.picture_cnn import halved
from veracity.models.loading import load_model, save_model
from veracity.models.pictures import NeuralPicture
from veracity.models.training import Epoch, times_slowed, train

LABELS = ("red", "green")


def squares(n: int, side: int = 16, seed: int = 0) -> Dataset[Image]:
    """A red or a green square somewhere in noise, and its place as truth."""
    rng = np.random.default_rng(seed)
    examples = []
    for i in range(n):
        pixels = rng.integers(0, 120, (side, side, 3), dtype=np.uint8)
        row, column = rng.integers(0, side // 2, 2)
        there = np.zeros((side, side), dtype=bool)
        there[row : row + side // 2, column : column + side // 2] = True
        pixels[there] = (220, 20, 90) if i % 2 == 0 else (20, 220, 90)
        examples.append(Example(str(i), Image(pixels), i % 2, {"rationale": (there.ravel(),)}))
    return Dataset("squares", LABELS, tuple(examples))


@pytest.fixture(scope="module")
def small() -> Any:
    data = squares(96)
    architecture = architectures.make("picture_cnn(widths=(8, 16))")
    training = Training(epochs=8, batch_size=16, learning_rate=1e-2, stop_at=0.97)
    parts = data.select(range(64)), data.select(range(64, 96))
    return train(architecture, *parts, training=training)


def test_a_small_network_learns_and_is_read_back(small: Any, tmp_path: Path) -> None:
    assert small.best.validation_accuracy >= 0.9
    model = small.model
    save_model(model, model.architecture, tmp_path, record={})
    again: Any = load_model(tmp_path)
    inputs = [e.input for e in squares(4)]
    assert np.array_equal(again.probabilities(inputs), model.probabilities(inputs))
    assert again.identity() == model.identity()
    for ability in (Maskable, Differentiable, Convolutional):
        assert isinstance(again, ability)


def test_hidden_pictures_are_answered_as_if_read_one_by_one(small: Any) -> None:
    one = squares(1).examples[0].input
    shown = np.random.default_rng(0).random((20, one.n_units)) < 0.5
    for how in Image.hidings:
        (fast,) = masked_probabilities(small.model, [one], [shown], how)
        slow = small.model.probabilities([one.keep(row, how) for row in shown])
        assert np.allclose(fast, slow, atol=1e-6)


def test_halved_maps_are_those_of_max_pooling() -> None:
    for height, width in np.ndindex(5, 5):
        maps = torch.randn(2, 3, height + 1, width + 1).relu()
        maps[0, 0, 0, 0] = torch.nan
        expected = torch.nn.functional.max_pool2d(maps, 2, ceil_mode=True)
        for followed in (False, True):
            found = halved(maps.requires_grad_(followed)).detach()
            torch.testing.assert_close(found, expected, rtol=0, atol=0, equal_nan=True)


def test_maps_lead_to_the_same_logits(small: Any) -> None:
    inputs = [e.input for e in squares(3)]
    embedded = small.model.embed(inputs)
    maps = small.model.feature_maps(embedded)
    assert torch.allclose(small.model.logits_of_maps(maps), small.model.logits(embedded), atol=1e-5)


GRADIENTS = (
    *("gradient", "input_x_gradient", "smooth_grad(samples=4)"),
    *("integrated_gradients(steps=8)", "grad_cam", "lrp", "deep_lift"),
)


@pytest.mark.filterwarnings("ignore:integrated_gradients")
@pytest.mark.parametrize("method", GRADIENTS)
def test_methods_look_at_the_square_whatever_the_batch(small: Any, method: str) -> None:
    data = squares(6)
    inputs = [e.input for e in data]
    together = veracity.explain(small.model, inputs, method)
    alone = [veracity.explain(small.model, one, method)[0] for one in inputs]
    for a, b in zip(together, alone, strict=True):
        assert np.allclose(a.scores, b.scores, atol=1e-5 * max(1, np.abs(a.scores).max()))
    shares = [
        np.abs(a.scores)[e.truths["rationale"][0]].sum() / np.abs(a.scores).sum()
        for a, e in zip(together, data, strict=True)
    ]
    # the squares are a quarter of the pictures; plain gradients hardly know them
    assert np.mean(shares) > (0.2 if "grad(" in method or method == "gradient" else 0.3)


def test_deep_lift_adds_up_through_normalisation_and_pooling(small: Any) -> None:
    (found,) = veracity.explain(small.model, squares(1).examples[0].input, "deep_lift")
    assert found.notes["gap"] < 1e-5


def test_a_fall_is_due_to_the_winner_where_the_reference_is_alike() -> None:
    """Definitions 3.7: all credit to the position that wins in the actual input."""

    class Highest(torch.nn.Module):
        def forward(self, values: torch.Tensor) -> torch.Tensor:
            best = torch.nn.functional.max_pool2d(values, 2).sum(dim=(1, 2, 3))
            return torch.stack([torch.zeros_like(best), best], dim=1)

    model = NeuralPicture(Highest(), LABELS, (2, 2), mean=(1.0,) * 3, deviation=(1.0,) * 3)
    pixels = np.array([[51, 204], [102, 153]], dtype=np.uint8)[..., None].repeat(3, axis=2)
    (found,) = veracity.explain(model, Image(pixels), "deep_lift", target=1)
    assert found.scores == pytest.approx([0, -0.6, 0, 0], abs=1e-6)


@pytest.mark.parametrize("width", [16, 64])
def test_resnet34_is_that_of_transformers(width: int) -> None:
    transformers = pytest.importorskip("transformers")
    config = transformers.ResNetConfig(
        depths=[3, 4, 6, 3],
        hidden_sizes=[width, 2 * width, 4 * width, 8 * width],
        layer_type="basic",
        embedding_size=width,
        num_labels=2,
    )
    peer = transformers.ResNetForImageClassification(config).eval()
    shape = (64, 64)
    network: Any = architectures.make(f"resnet34(width={width}, shape={shape})")
    ours = network._model(LABELS, 0).eval()
    theirs, own = list(peer.state_dict().values()), ours.network.state_dict()
    # short cuts stand first in a block there and last here
    by_shape = _matched(peer, ours.network)
    ours.network.load_state_dict(by_shape)
    assert len(theirs) == len(own)
    values = torch.randn(2, 3, *shape, generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        assert torch.allclose(ours(values), peer(values).logits, atol=1e-4)


def _matched(peer: Any, network: Any) -> dict[str, torch.Tensor]:
    """The peer's weights under our names, block by block."""
    found: dict[str, torch.Tensor] = {}

    def put(ours: str, module: Any) -> None:
        found.update({f"{ours}.{k}": v for k, v in module.state_dict().items()})

    put("stem.0", peer.resnet.embedder.embedder.convolution)
    put("stem.1", peer.resnet.embedder.embedder.normalization)
    for i, stage in enumerate(peer.resnet.encoder.stages):
        for j, block in enumerate(stage.layers):
            here = f"stages.{i}.{j}"
            for k, layer in enumerate(block.layer):
                put(f"{here}.layers.{3 * k}", layer.convolution)
                put(f"{here}.layers.{3 * k + 1}", layer.normalization)
            if hasattr(block.shortcut, "convolution"):
                put(f"{here}.short_cut.0", block.shortcut.convolution)
                put(f"{here}.short_cut.1", block.shortcut.normalization)
    put("head", peer.classifier[1])
    assert found.keys() == network.state_dict().keys()
    return found


def tiny(kind: str) -> Any:
    """An untrained image classifier of each family, small."""
    transformers = pytest.importorskip("transformers")
    configs = {
        "resnet": lambda: transformers.ResNetConfig(
            depths=[1, 1], hidden_sizes=[8, 16], embedding_size=8, layer_type="basic"
        ),
        "convnext": lambda: transformers.ConvNextConfig(
            depths=[1, 1], hidden_sizes=[8, 16], num_stages=2
        ),
        "vit": lambda: transformers.ViTConfig(
            hidden_size=16,
            num_hidden_layers=2,
            num_attention_heads=2,
            intermediate_size=32,
            image_size=32,
            patch_size=8,
        ),
        "swin": lambda: transformers.SwinConfig(
            image_size=32,
            patch_size=4,
            embed_dim=8,
            depths=[1, 1],
            num_heads=[2, 2],
            window_size=4,
        ),
    }
    config = configs[kind]()
    config.id2label, config.label2id = dict(enumerate(LABELS)), {n: i for i, n in enumerate(LABELS)}
    torch.manual_seed(0)
    return transformers.AutoModelForImageClassification.from_config(config).eval()


@pytest.mark.filterwarnings("ignore:integrated_gradients")
@pytest.mark.parametrize("kind", ["resnet", "convnext", "vit"])
def test_transformers_folders_are_read_as_what_they_can_do(kind: str, tmp_path: Path) -> None:
    peer = tiny(kind)
    peer.save_pretrained(tmp_path)
    prepared_by("ViT", tmp_path, image_mean=[0.5] * 3, image_std=[0.25] * 3)
    model: Any = load_model(tmp_path)
    assert model.labels == LABELS and model.shape == (32, 32)
    inputs = [e.input for e in squares(3, side=32)]
    pixels = np.stack([one.pixels for one in inputs]) / 255
    values = torch.tensor((pixels - 0.5) / 0.25, dtype=torch.float32).permute(0, 3, 1, 2)
    with torch.no_grad():
        expected = torch.softmax(peer(pixel_values=values).logits.double(), dim=-1).numpy()
    assert np.allclose(model.probabilities(inputs), expected, atol=1e-6)
    methods = ["gradient", "integrated_gradients(steps=4)", "occlusion"]
    methods += ["attention"] if kind == "vit" else ["grad_cam"]
    for method in methods:
        (found,) = veracity.explain(model, inputs[0], method)
        assert np.abs(found.scores).sum() > 0 or method == "grad_cam"
    assert isinstance(model, Attentive) == (kind == "vit")
    if kind != "vit":
        embedded = model.embed(inputs)
        again = model.logits_of_maps(model.feature_maps(embedded))
        assert torch.allclose(again, model.logits(embedded), atol=1e-5)


def prepared_by(family: str, folder: Path, **settings: Any) -> Any:
    """One of the library's processors, saved beside a model and read back; it squashes unless
    told."""
    transformers = pytest.importorskip("transformers")
    settings = {"size": {"height": 32, "width": 32}, **settings}
    getattr(transformers, f"{family}ImageProcessor")(**settings).save_pretrained(folder)
    return transformers.AutoImageProcessor.from_pretrained(str(folder), backend="pil")


def test_labels_that_do_not_exclude_each_other_are_asked_about_one_by_one(tmp_path: Path) -> None:
    """A softmax over them would be nobody's answer."""
    peer = tiny("vit")
    prepared_by("ViT", tmp_path)
    peer.config.problem_type = "multi_label_classification"
    peer.save_pretrained(tmp_path)
    with pytest.raises(ModelError, match="labels do not exclude each other"):
        load_model(tmp_path)
    model: Any = load_model(f"{tmp_path}:green")
    assert model.labels == ("not green", "green")
    one = squares(1, side=32).examples[0].input
    with torch.no_grad():
        values = model.normalised(one.pixels).permute(2, 0, 1)[None]
        green = torch.sigmoid(peer(pixel_values=values).logits[0, 1]).item()
    assert model.probabilities([one])[0] == pytest.approx([1 - green, green], abs=1e-6)
    assert isinstance(model, Attentive) and np.isfinite(model.attention([one])[0]).all()


def test_heads_that_measure_are_refused_for_pictures_as_for_texts(tmp_path: Path) -> None:
    peer = tiny("vit")
    prepared_by("ViT", tmp_path)
    peer.config.problem_type = "regression"
    peer.save_pretrained(tmp_path)
    with pytest.raises(ModelError, match="answers 2 numbers"):
        load_model(tmp_path)


def test_attention_of_patches_is_shared_by_their_pixels(tmp_path: Path) -> None:
    tiny("vit").save_pretrained(tmp_path)
    prepared_by("ViT", tmp_path)
    model: Any = load_model(tmp_path)
    one = squares(1, side=32).examples[0].input
    for way in ("last", "rollout"):
        (weights,) = model.attention([one], way)
        assert weights.shape == (32 * 32,) and 0 < weights.sum() <= 1 + 1e-9
        assert len(np.unique(weights.round(12))) <= 16


def test_attention_in_windows_is_not_that_of_patches(tmp_path: Path) -> None:
    tiny("swin").save_pretrained(tmp_path)
    prepared_by("ViT", tmp_path)
    model = load_model(tmp_path)
    assert not isinstance(model, Attentive)
    one = squares(1, side=32).examples[0].input
    with pytest.raises(ModelError, match="needs a model with attention"):
        veracity.explain(model, one, "attention")
    assert np.abs(veracity.explain(model, one, "gradient")[0].scores).sum() > 0


def test_a_function_that_fails_on_pictures_is_told_of_sizes() -> None:
    def fixed(pictures: list[Any]) -> Any:
        if pictures[0].shape != (48, 48, 3):
            raise ValueError(pictures[0].shape)
        return np.full((len(pictures), 2), 0.5)

    model = load_model(fixed, labels=LABELS)
    inputs = [e.input for e in squares(2)]
    with pytest.raises(ModelError, match=r"on 1 picture: \(16, 16, 3\)\. If .* --size 64"):
        model.probabilities(inputs[:1])
    with pytest.raises(ModelError, match="on 2 pictures: "):
        model.probabilities(inputs)


def test_a_function_of_arrays_is_a_model(tmp_path: Path) -> None:
    (tmp_path / "redness.py").write_text(
        "import numpy as np\n"
        "def classify(pictures):\n"
        "    red = np.array([p[..., 0].mean() for p in pictures]) / 255\n"
        "    return np.stack([red, 1 - red], axis=1)\n"
    )
    model = load_model(f"{tmp_path / 'redness.py'}:classify")
    data = squares(12)
    with pytest.warns(UserWarning, match="does not name its labels"):
        done = veracity.audit(
            model, data, "occlusion, random_scores", "erasure", out=tmp_path / "run", extras=False
        )
    assert done.run.labels == LABELS


def test_pictures_go_over_the_wire_as_png(tmp_path: Path) -> None:
    from PIL import Image as Pictures

    one = squares(1).examples[0].input
    read = np.asarray(Pictures.open(io.BytesIO(base64.b64decode(one.wire))))
    assert (read == one.pixels).all()


def test_pictures_of_several_sizes_are_refused_by_training() -> None:
    mixed = Dataset("m", LABELS, (*squares(4).examples, *squares(4, side=20).examples))
    with pytest.raises(DataError, match=r"expected pictures of one size, got 2"):
        architectures.make("picture_cnn").start(mixed, seed=0)


def test_steps_become_shorter_after_epochs_without_a_gain() -> None:
    def slowed(*accuracies: float, after: int | None = 2) -> int:
        rows = [Epoch(i, 0.0, 0.0, value, 0.0) for i, value in enumerate(accuracies)]
        return times_slowed(rows, after)

    assert slowed(0.5, 0.6, 0.6, 0.6) == 1
    assert slowed(0.5, 0.6, 0.6, 0.7, 0.7) == 0
    assert slowed(0.5, *[0.4] * 4) == 2
    assert slowed(0.5, *[0.4] * 9, after=None) == 0


def test_a_damaged_folder_is_told(small: Any, tmp_path: Path) -> None:
    model = small.model
    save_model(model, model.architecture, tmp_path, record={})
    (tmp_path / "model.safetensors").write_bytes(b"no weights")
    with pytest.raises(ModelError, match="is damaged"):
        load_model(tmp_path)


def test_hiding_that_a_model_is_not_told_of_is_an_error(small: Any) -> None:
    one = squares(1).examples[0].input
    with pytest.raises(ValueError, match="expected pictures to be hidden by black"):
        small.model.masked_probabilities([one], [np.zeros((1, one.n_units), bool)], Hiding.PAD)
