"""Pictures reach a transformers model as the library's own processor would bring them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import veracity
from test_picture_models import LABELS, prepared_by, squares, tiny
from veracity.auditing.sizes import fit_sizes
from veracity.core.errors import ModelError
from veracity.core.examples import Dataset, Example
from veracity.core.images import Image
from veracity.data.pictures import PictureReader, Size
from veracity.models.loading import load_model

EDGE = {"shortest_edge": 32}
FAMILIES: dict[str, tuple[str, dict[str, Any]]] = {
    "ResNet": ("ConvNext", {"size": EDGE, "crop_pct": 1.0}),
    "ConvNeXt": ("ConvNext", {"size": EDGE, "crop_pct": 0.875, "image_mean": [0.4, 0.5, 0.6]}),
    "ViT": ("ViT", {"rescale_factor": 1 / 127.5, "image_mean": [1.0] * 3, "image_std": [1.0] * 3}),
    "ViT, as it is": ("ViT", {"do_rescale": False, "do_normalize": False}),
    "ViT, not normalised": ("ViT", {"do_normalize": False}),
    "MobileViT": ("MobileViT", {"size": {"shortest_edge": 36}, "crop_size": 32}),
    "EfficientNet": ("EfficientNet", {"include_top": True}),
    "EfficientNet, offset": (
        "EfficientNet",
        {"rescale_factor": 1 / 127.5, "rescale_offset": True, "include_top": False},
    ),
    "CLIP": ("CLIP", {"size": EDGE, "crop_size": 32}),
    "DeiT": ("DeiT", {"size": {"height": 36, "width": 36}, "crop_size": 32}),
}


def folder_of(family: str, folder: Path) -> tuple[Any, Any]:
    """A ViT with the processor of another family, and that processor."""
    tiny("vit").save_pretrained(folder)
    kind, settings = FAMILIES[family]
    return load_model_of(folder, kind, **settings)


def load_model_of(folder: Path, kind: str, **settings: Any) -> tuple[Any, Any]:
    processor = prepared_by(kind, folder, **settings)
    return load_model(folder), processor


def read_by(model: Any, picture: Image) -> np.ndarray:
    """What the inner model is given. → (3, height, width)"""
    found: list[torch.Tensor] = []
    network = model.network
    handle = network.model.register_forward_pre_hook(
        lambda _, __, given: found.append(given["pixel_values"]), with_kwargs=True
    )
    try:
        model.probabilities([picture])
    finally:
        handle.remove()
    return found[0][0].numpy()


def photo(height: int, width: int) -> Any:
    """Something smooth, as photographs are."""
    from PIL import Image as Pictures

    few = np.random.default_rng(1).integers(0, 256, (5, 7, 3), dtype=np.uint8)
    return Pictures.fromarray(few).resize((width, height), 3)


@pytest.mark.parametrize("family", FAMILIES)
def test_values_of_pixels_are_those_of_the_processor(family: str, tmp_path: Path) -> None:
    model, processor = folder_of(family, tmp_path)
    assert model.shape == (32, 32)
    one = squares(1, side=32).examples[0].input
    settings: dict[str, Any] = {"input_data_format": "channels_last", "return_tensors": "np"}
    if model.framing.share < 1:  # of pictures in the model's size it would see the middle only
        settings |= {"do_resize": False, "do_center_crop": False}
    expected = processor([one.pixels], **settings)["pixel_values"][0]
    assert np.allclose(read_by(model, one), expected, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("shape", [(32, 80), (80, 32), (200, 150), (20, 16)])
@pytest.mark.parametrize("family", FAMILIES)
def test_larger_pictures_are_framed_as_by_the_processor(
    family: str, shape: tuple[int, int], tmp_path: Path
) -> None:
    model, processor = folder_of(family, tmp_path)
    picture = photo(*shape)
    (one, _) = PictureReader(size=model.framing).picture(picture)
    found, expected = read_by(model, one), processor([picture], return_tensors="np")
    gap = np.abs(found - expected["pixel_values"][0]) / np.ptp(found)
    # where a whole number of pixels is cut off, the middle may lie half a pixel away
    assert gap.mean() < (1e-6 if model.framing.squashed and model.framing.share == 1 else 0.03)


def test_framings_are_found(tmp_path: Path) -> None:
    found = {}
    for family in FAMILIES:
        model, _ = folder_of(family, tmp_path / family)
        found[family] = model.framing.squashed, model.framing.share
    assert found["ResNet"] == found["CLIP"] == (False, 1)
    assert found["ConvNeXt"] == found["MobileViT"] == (False, 32 / 36)
    assert found["ViT"] == found["EfficientNet"] == (True, 1)
    assert found["DeiT"] == (True, 32 / 36)


def test_usual_numbers_are_found_as_they_were_written(tmp_path: Path) -> None:
    mean, std = [0.485, 0.456, 0.406], [0.229, 0.224, 0.225]
    tiny("vit").save_pretrained(tmp_path)
    model, _ = load_model_of(tmp_path, "ViT", image_mean=mean, image_std=std)
    assert model.mean.tolist() == torch.tensor(mean).tolist()
    assert model.deviation.tolist() == torch.tensor(std).tolist()
    assert (tmp_path / "preprocessor_config.json").exists()


def test_the_order_of_channels_decides_and_is_followed_back(tmp_path: Path) -> None:
    peer = tiny("resnet")
    models = {}
    for flipped in (False, True):
        folder = tmp_path / str(flipped)
        peer.save_pretrained(folder)
        settings = {"size": EDGE, "crop_size": 32, "do_flip_channel_order": flipped}
        models[flipped], _ = load_model_of(folder, "MobileViT", **settings)
    one = squares(1, side=32).examples[0].input
    turned = Image(one.pixels[..., ::-1])
    a, b = models[True], models[False]
    assert np.allclose(a.probabilities([one]), b.probabilities([turned]), atol=1e-6)
    assert a.identity() != b.identity()
    for method in ("gradient", "lrp", "deep_lift", "grad_cam"):
        (here,) = veracity.explain(a, one, method, target=0)
        (there,) = veracity.explain(b, turned, method, target=0)
        assert np.allclose(here.scores, there.scores, atol=1e-6)


def test_a_picture_of_other_proportions_is_squashed_and_it_is_told(tmp_path: Path) -> None:
    model, processor = folder_of("ViT", tmp_path)
    picture = photo(32, 80)
    mask = np.zeros((32, 80), dtype=np.bool_)
    mask[:, :8] = True  # beyond the middle
    example = Example("a", Image(np.asarray(picture)), 0, {"rationale": (mask.ravel(),)})
    with pytest.warns(UserWarning, match="proportions are not kept, as its preparation has it"):
        data = fit_sizes(Dataset("wide", LABELS, (example,)), {"vit": model})
    expected = processor([picture], return_tensors="np")["pixel_values"][0]
    assert np.allclose(read_by(model, data.examples[0].input), expected, atol=1e-5)
    (marked,) = data.examples[0].truths["rationale"]
    assert marked.reshape(32, 32).all(axis=0).sum() == 3  # a tenth of 32


def test_pictures_that_have_the_size_are_read_whole_and_it_is_told(tmp_path: Path) -> None:
    model, _ = folder_of("ConvNeXt", tmp_path)
    with pytest.warns(UserWarning, match="see only 89% of either side"):
        data = fit_sizes(squares(2, side=32), {"one": model})
    assert data.examples[0].input == squares(2, side=32).examples[0].input


def test_models_that_frame_pictures_in_different_ways_are_asked_apart(tmp_path: Path) -> None:
    models = {name: folder_of(name, tmp_path / name)[0] for name in ("ViT", "ResNet")}
    with pytest.raises(ModelError, match=r"different ways \(ViT: .* --size 32x32"):
        fit_sizes(squares(2, side=40), models)
    assert len(fit_sizes(squares(2, side=32), models)) == 2


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"size": {"height": 10**9, "width": 32}}, "expected size to be a size of pictures"),
        ({"image_processor_type": "ConvNextImageProcessor", "crop_pct": 1e-9}, "crop_pct"),
        ({"image_mean": [0.5]}, "to say how pictures are prepared"),
        ({"image_std": "wide"}, "to say how pictures are prepared"),
        ({"image_processor_type": "Nobodys"}, "to say how pictures are prepared"),
        ({"do_resize": False, "size": None, "no": 1}, None),
        ([], "to be dict"),
    ],
)
def test_what_cannot_be_honoured_is_refused(
    settings: Any, message: str | None, tmp_path: Path
) -> None:
    tiny("vit").save_pretrained(tmp_path)
    whole = {"image_processor_type": "ViTImageProcessor", "size": {"height": 32, "width": 32}}
    given = {**whole, **settings} if isinstance(settings, dict) else settings
    (tmp_path / "preprocessor_config.json").write_text(json.dumps(given))
    if message is None:  # nothing is resized: config.json names the size
        with pytest.warns(UserWarning, match="framed in a way that is not known"):
            assert load_model(tmp_path).shape == (32, 32)  # type: ignore[attr-defined]
        return
    with pytest.raises(ModelError, match=message):
        load_model(tmp_path)


def test_steps_that_are_no_rescaling_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tiny("vit").save_pretrained(tmp_path)
    processor = prepared_by("ViT", tmp_path)
    content = json.loads((tmp_path / "preprocessor_config.json").read_text())
    content["do_grayscale"] = True
    (tmp_path / "preprocessor_config.json").write_text(json.dumps(content))

    def grey(self: Any, image: Any, *args: Any) -> Any:
        return np.repeat(image.mean(axis=0, keepdims=True), 3, axis=0)

    monkeypatch.setattr(type(processor), "normalize", grey)
    with pytest.raises(ModelError, match=r"values differ by .*\(do_grayscale set\).*file\.py:fun"):
        load_model(tmp_path)


def test_a_folder_that_does_not_say_how_pictures_are_prepared_is_refused(tmp_path: Path) -> None:
    tiny("vit").save_pretrained(tmp_path)
    with pytest.raises(ModelError, match="it is not there, and a guess would change its answers"):
        load_model(tmp_path)


def test_a_size_keeps_all_or_less_of_a_picture() -> None:
    assert Size(4, 4).middle(8, 16) == (0, 4, 8, 12)
    assert Size(4, 4, squashed=True).middle(8, 16) == (0, 0, 8, 16)
    assert Size(4, 4, share=0.5).middle(8, 16) == (2, 6, 6, 10)
