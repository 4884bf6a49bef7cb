"""Pictures go the way of texts: pixels are scored, segments are hidden."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import veracity
from veracity.core.attributions import Attribution
from veracity.core.classifiers import PlaneLayout
from veracity.core.errors import DataError, ModelError, PluginError
from veracity.core.examples import Dataset, Example
from veracity.core.images import Image
from veracity.core.inputs import FloatArray, Hiding, input_kind
from veracity.core.metrics import Case
from veracity.explainers import explainers
from veracity.explainers.grad_cam import class_activation
from veracity.explainers.lime import kernel_weights, ridge
from veracity.metrics import metrics
from veracity.models.pictures import NeuralPicture
from veracity.results.run import Run


def picture(seed: int = 0, shape: tuple[int, int] = (16, 24)) -> Image:
    return Image(np.random.default_rng(seed).integers(0, 256, (*shape, 3), dtype=np.uint8))


class Corner:
    """Answers by how bright the first tile of a picture is."""

    labels = ("dark", "light")

    def probabilities(self, inputs: Sequence[Image]) -> FloatArray:
        rows = [one.pixels[: one.shape[0] // 8, : one.shape[1] // 8] for one in inputs]
        light = np.array([row.mean() for row in rows]) / 255
        return np.stack([1 - light, light], axis=1)


# ---- the input --------------------------------------------------------------------------------


def test_a_picture_has_pixels_and_segments() -> None:
    one = picture()
    assert (one.n_features, one.n_units) == (16 * 24, 64)
    assert one.on_units(one.on_features(np.arange(64.0))).tolist() == list(range(64))
    assert len(set(map(hash, (one, picture(), picture(1))))) == 2
    assert one == picture() != picture(1)
    assert one != Image(one.pixels, "grid(across=4)")
    assert input_kind("image").from_row(one.to_row()) == one


def test_a_picture_that_its_owner_cut_is_stored_with_its_segments() -> None:
    halves = np.repeat([[7, 3]], 16, axis=0).repeat(12, axis=1)
    one = Image.with_segments(picture().pixels, halves)
    again = Image.from_row(one.to_row())
    assert again == one and again.n_units == 2
    assert again.units().tolist() == one.units().tolist()
    with pytest.raises(DataError, match="label map of the picture's size"):
        Image.with_segments(one.pixels, halves[:3])


@pytest.mark.parametrize("shape", [(1, 1), (1, 5), (3, 3), (50, 20)])
def test_pictures_of_any_size_are_cut_without_a_gap(shape: tuple[int, int]) -> None:
    one = picture(shape=shape)
    assert set(one.units().tolist()) == set(range(one.n_units))


def test_quickshift_and_slic_cut_along_colours() -> None:
    pytest.importorskip("skimage")
    pixels = np.zeros((32, 32, 3), dtype=np.uint8)
    pixels[:, 16:] = 200
    for how in ("quickshift", "slic(n=8)"):
        one = Image(pixels, how)
        left, right = one.units().reshape(32, 32)[:, :15], one.units().reshape(32, 32)[:, 17:]
        assert not set(left.ravel().tolist()) & set(right.ravel().tolist())
    with pytest.raises(PluginError, match="did you mean"):
        Image(pixels, "quickshit").units()


def test_what_is_hidden_is_replaced_and_nothing_else() -> None:
    one = picture()
    shown = np.arange(64) % 2 == 0
    visible = one.on_features(shown).reshape(one.shape)
    for how in Image.hidings:
        kept = one.keep(shown, how).pixels
        assert (kept[visible] == one.pixels[visible]).all()
        assert (kept[~visible] != one.pixels[~visible]).any()
        assert (one.hidden(np.array([shown, ~shown]), how)[0] == kept).all()
        assert one.keep(np.ones(64, dtype=bool), how) is one
        assert one.keep(np.zeros(64, dtype=bool), how).pixels.shape == one.pixels.shape
    assert (one.keep(shown, Hiding.BLACK).pixels[~visible] == 0).all()
    assert len(np.unique(one.keep(shown, Hiding.MEAN).pixels[~visible], axis=0)) == 1


def test_guessed_pixels_are_near_their_neighbours() -> None:
    ramp = np.tile(np.arange(0, 128, 4, dtype=np.uint8)[:, None, None], (1, 32, 3))
    one = Image(ramp)
    shown = np.ones(64, dtype=bool)
    shown[27] = False
    guessed = one.keep(shown, Hiding.LINEAR).pixels.astype(int)
    assert np.abs(guessed - ramp).max() < 16


def test_what_is_no_picture_is_told() -> None:
    fractions: Any = np.zeros((2, 2, 3))
    with pytest.raises(DataError, match="8-bit numbers"):
        Image(fractions)
    with pytest.raises(DataError, match="one pixel at least"):
        Image(np.zeros((0, 2, 3), dtype=np.uint8))


# ---- worked examples --------------------------------------------------------------------------


def test_ex_3_17_grad_cam_in_two_dimensions() -> None:
    maps = np.array([[[1, 0], [0, 0]], [[0, 0], [0, 1]]], dtype=float).reshape(2, 4).T
    cells = class_activation(maps, np.array([1.0, -1.0]))
    assert cells.tolist() == [1, 0, 0, 0]
    resized = PlaneLayout((2, 2), (4, 4)).on_features(cells, 16).reshape(4, 4)
    line = np.array([1, 0.75, 0.25, 0])
    assert np.allclose(resized, np.outer(line, line))
    assert resized.sum() == pytest.approx(4)
    assert resized[:2, :2].sum() / resized.sum() == pytest.approx(0.765625)


def test_ex_3_18_lime_of_two_segments() -> None:
    z = np.array([[1, 1], [1, 0], [0, 1], [0, 0]], dtype=bool)
    weights = kernel_weights(z)
    assert np.allclose(weights, [1, 0.503440, 0.503440, 0.000335], atol=1e-6)
    y = np.array([0.9, 0.8, 0.3, 0.3])
    found, intercept = ridge(z.astype(float), y, weights, 1.0)
    assert np.allclose([*found, intercept], [0.153971, -0.013459, 0.619083], atol=1e-6)
    exact, start = ridge(z.astype(float), y, weights, 0.0)
    assert np.allclose([*exact, start], [0.599900, 0.099900, 0.200167], atol=1e-6)


class _Linear(torch.nn.Module):
    """2 x1 - 3 x2 of the only pixel, as the second of two logits."""

    def forward(self, values: torch.Tensor) -> torch.Tensor:
        logit = values.mean(dim=(2, 3)) @ torch.tensor([2.0, -3.0, 0.0])
        return torch.stack([torch.zeros_like(logit), logit], dim=1)


def linear(shape: tuple[int, int] = (1, 1)) -> NeuralPicture:
    return NeuralPicture(_Linear(), ("no", "yes"), shape, mean=(0, 0, 0), deviation=(1, 1, 1))


def pixel(*channels: int) -> Image:
    return Image(np.array([[channels]], dtype=np.uint8))


def test_ex_3_19_expected_gradients() -> None:
    background = Dataset(
        "b", ("no", "yes"), (Example("a", pixel(0, 0, 0), 0), Example("b", pixel(255, 0, 0), 0))
    )
    method = explainers.make("shap(form=expected_gradients, samples=4000)")
    signed = method.fitted(linear(), background)
    rngs = [np.random.default_rng(0)]
    (found,) = signed.explain(linear(), [pixel(255, 255, 0)], [1], rngs)
    assert found.scores[0] == pytest.approx(1 - 3, abs=0.05)
    by_size = method.for_kind("image").fitted(linear(), background)
    (found,) = by_size.explain(linear(), [pixel(255, 255, 0)], [1], [np.random.default_rng(0)])
    assert found.scores[0] == pytest.approx(4, abs=0.05)


def test_ex_3_7_gradients_of_a_pixel() -> None:
    for method, expected in (
        ("gradient", 5),
        ("input_x_gradient", 5),
        ("input_x_gradient(absolute=False)", -1),
    ):
        (found,) = veracity.explain(linear(), pixel(255, 255, 0), method, target="yes")
        assert found.scores[0] == pytest.approx(expected, abs=1e-5)


# ---- methods, metrics, audits -----------------------------------------------------------------

BLACK_BOX = ("occlusion", "lime", "shap", "shap(form=permutation)", "search")


@pytest.mark.parametrize("method", BLACK_BOX)
def test_methods_that_ask_find_the_segment_that_decides(method: str) -> None:
    (found,) = veracity.explain(Corner(), picture(), method, target="light")
    assert found.method.endswith(")") and "black" in found.method
    assert int(found.unit_scores.argmax()) == 0
    assert found.scores.shape == (picture().n_features,)
    (again,) = veracity.explain(Corner(), [picture()], method, target="light")
    assert again.scores.tolist() == found.scores.tolist()


def test_a_way_of_hiding_that_pictures_do_not_know_is_told() -> None:
    with pytest.raises(DataError, match="hides by pad, which images cannot be"):
        veracity.explain(Corner(), picture(), "occlusion(hiding=pad)")
    (found,) = veracity.explain(Corner(), picture(), "occlusion(hiding=blur)")
    assert found.method == "occlusion(hiding=blur)"


def test_an_oracle_of_a_region_has_all_of_its_attribution_there() -> None:
    """Exact Shapley values over segments put all on what is read, a random map its share."""
    one = Image(picture(3).pixels, "grid(across=3)")
    region = np.zeros(one.shape, dtype=bool)
    region[: one.shape[0] // 8, : one.shape[1] // 8] = True
    cell = one.units() == 0
    (exact,) = veracity.explain(Corner(), one, "shap(form=exact)", target="light")
    mass = metrics.make("attribution_mass(truth=planted)")
    example = Example("a", one, 1, {"planted": (cell,)})
    case = Case(example, Corner(), np.array([0.2, 0.8]), exact)
    assert mass.score([case])[0]["mass"] == pytest.approx(1)


def test_pictures_are_audited_and_read_back(tmp_path: Path) -> None:
    data = pictures(16)
    done = veracity.audit(Corner(), data, "occlusion, random_scores", out=tmp_path, extras=False)
    run = Run.open(tmp_path)
    assert set(run.config.metrics) >= {"erasure(hiding=black)", "erasure(hiding=mean)"}
    stored = {a.input for a in run.attributions("Corner", "occlusion(hiding=black)").values()}
    assert stored == {e.input for e in data}
    again = veracity.audit(Corner(), data, "occlusion, random_scores", out=tmp_path, extras=False)
    assert again.computed == 0 and done.computed > 0


def pictures(n: int) -> Dataset[Image]:
    examples = []
    for i in range(n):
        pixels = picture(i, (16, 16)).pixels // 4
        pixels[:2, :2] = 255 * (i % 2)
        examples.append(Example(str(i), Image(pixels), i % 2))
    return Dataset("corners", Corner.labels, tuple(examples))


def test_a_model_says_what_size_it_reads() -> None:
    with pytest.raises(ModelError, match=r"expected pictures of 1×1 pixels.*got 24×16"):
        linear().probabilities([picture()])


def test_scores_are_one_per_pixel() -> None:
    with pytest.raises(ValueError, match="expected one score per"):
        Attribution(picture(), 0, np.zeros(64))
