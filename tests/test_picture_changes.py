"""Marks in pictures: where they act, what they do there, and what is known of it."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image as Pictures

import veracity
from veracity.changes import PictureMark, changed, changes
from veracity.changes._hsv import to_hsv, to_rgb
from veracity.changes.centre_brightness import CentreBrightness
from veracity.changes.peripheral_blur import PeripheralBlur
from veracity.changes.reassign import Reassign
from veracity.changes.striped_hue import StripedHue
from veracity.changes.striped_noise import StripedNoise
from veracity.changes.watermark import Watermark
from veracity.core.changes import MANIPULATION, ORIGINAL_LABEL, PLANTED, UNTOUCHED
from veracity.core.errors import DataError, PluginError
from veracity.core.examples import Dataset, Example
from veracity.core.images import Image
from veracity.data.loading import load_data
from veracity.metrics.attribution_mass import attribution_share
from veracity.recipes.papers._planted_images_draws import (
    MANIPULATIONS,
    correlation_draws,
    region_draws,
    visibility_draws,
)
from veracity.results.guarantees import cue_only_accuracy, reliance

MARKS = [n for n in changes.names() if issubclass(changes.get(n), PictureMark)]
SQUARES = (64, 96, 128, 224)


def mark(spec: str) -> Any:
    return changes.make(spec)


def share(change: PictureMark, *shape: int) -> float:
    """%ER."""
    height, width = shape if len(shape) == 2 else shape * 2
    return float(change.bounds((height, width)).mean())


def picture(*shape: int, seed: int = 0) -> Image:
    height, width = shape if len(shape) == 2 else shape * 2
    colours = np.random.default_rng(seed).integers(0, 256, (height, width, 3), dtype=np.uint8)
    return Image(colours)


def pictures(n: int, *shape: int, labels: tuple[str, ...] = ("no", "yes")) -> Dataset[Image]:
    made = (Example(f"p{i}", picture(*shape, seed=i), i % len(labels)) for i in range(n))
    return Dataset("pictures", labels, tuple(made))


def planted(example: Example[Image]) -> Any:
    """Its region. → (height, width)"""
    (mask,) = example.truths[PLANTED]
    return mask.reshape(example.input.shape)


def is_marked(example: Example[Image]) -> bool:
    return example.facts[MANIPULATION] != UNTOUCHED


# ---- worked examples ------------------------------------------------------------------------


def test_ex_6_4_brightness() -> None:
    change = CentreBrightness(radius=60, delta=-0.3)
    at = np.array([0, change.reach / 2, change.reach])
    assert change.gain(at) == pytest.approx([-0.3, -0.15, 0], abs=1e-12)
    # an odd side has a pixel in the very middle: 255 · 0.7 is 178.5, of which 178 is kept
    white = np.full((225, 225, 3), 255, dtype=np.uint8)
    assert change.put(white, np.random.default_rng(0))[112, 112].tolist() == [178, 178, 178]


def test_ex_6_5_hue() -> None:
    change = StripedHue(top=80, bottom=130, delta=0.15)
    real = change.shift(np.array([112, 118.25, 124.5, 99.5]), 224)
    assert real == pytest.approx([0, 0.075, 0.15, -0.15], abs=1e-9)
    whole = change.shift(np.array([79.0, 80, 100, 130, 131]), 224)
    assert whole == pytest.approx([0, 0.089054, -0.149409, 0.089054, 0], abs=1e-6)
    red = np.zeros((224, 224, 3), dtype=np.uint8)
    red[..., 0] = 255
    made = to_hsv(change.put(red, np.random.default_rng(0)))
    assert made[80, 5, 0] == pytest.approx(0.089054, abs=1 / 255)
    assert made[100, 5, 0] == pytest.approx(1 - 0.149409, abs=1 / 255)  # wrapped
    assert made[112, 5].tolist() == [0, 1, 1]


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ("peripheral_blur(radius=80)", 0.599789),
        ("peripheral_blur(radius=100)", 0.373864),
        ("peripheral_blur(radius=130)", 0.070093),
        ("centre_brightness(radius=60)", 0.223214),
        ("striped_hue(top=80, bottom=130)", 0.227679),
        ("striped_noise(top=80, bottom=130)", 51 / 224),
        ("watermark(top=150, bottom=200, left=30, right=194)", 0.163425),
    ],
)
def test_ex_6_6_share_of_the_picture(spec: str, expected: float) -> None:
    assert share(mark(spec), 224) == pytest.approx(expected, abs=1e-6)


def test_ex_6_15_absence_is_evidence() -> None:
    data = pictures(6, 10)
    first = StripedNoise(top=0, bottom=0, p=1, labels=("yes",))
    last = StripedNoise(top=202, bottom=202, p=1, labels=("no",))
    for e, before in zip(changed(data, [first, last]), data, strict=True):
        assert np.flatnonzero(planted(e).all(axis=1)).tolist() == [0, 9]
        assert planted(e).mean() == pytest.approx(0.2)
        touched = (e.input.pixels != before.input.pixels).any(axis=(1, 2))
        assert np.flatnonzero(touched).tolist() == ([0] if e.label else [9])
        assert e.facts[MANIPULATION] == ("0,none" if e.label else "none,0")
        # where the mark is not, there it is missed
        on_row_0 = np.repeat(np.arange(10) == 0, 10).astype(np.float64)
        assert attribution_share(on_row_0, e.truths[PLANTED][0]) == 1
    for e in changed(data, [first]):
        assert np.flatnonzero(planted(e).all(axis=1)).tolist() == [0]
        assert planted(e).mean() == pytest.approx(0.1)


def test_ex_6_16_another_size() -> None:
    assert share(PeripheralBlur(radius=80, sigma=10), 128) == pytest.approx(0.598816, abs=1e-6)
    assert share(CentreBrightness(radius=60), 128) == pytest.approx(0.222656, abs=1e-6)
    hue = StripedHue(top=80, bottom=130, delta=0.15)
    assert share(hue, 128) == pytest.approx(0.234375, abs=1e-6)
    assert np.flatnonzero(hue.bounds((128, 128))[:, 0])[[0, -1]].tolist() == [45, 74]
    shift = hue.shift(np.array([45.0, 64, 71]), 128)
    assert shift == pytest.approx([0.102760, 0, 0.149560], abs=1e-6)
    inside = Watermark(top=150, bottom=200, left=30, right=194).bounds((128, 128))
    assert inside.mean() == pytest.approx(0.164612, abs=1e-6)
    assert np.flatnonzero(inside.any(axis=1))[[0, -1]].tolist() == [85, 113]
    assert np.flatnonzero(inside.any(axis=0))[[0, -1]].tolist() == [17, 109]


def test_ex_6_16_blur_and_writing_shrink(monkeypatch: pytest.MonkeyPatch) -> None:
    import scipy.ndimage

    from veracity.changes import watermark
    from veracity.changes._picture_mark import scaled

    assert scaled(80, 128) == pytest.approx(45.714, abs=1e-3)
    assert scaled(watermark.ASIDE, 128) == pytest.approx(22.857, abs=1e-3)
    assert scaled(watermark.ABOVE, 128) == pytest.approx(5.714, abs=1e-3)
    pixels, rng = picture(128).pixels, np.random.default_rng(0)
    asked: list[float] = []
    blur, font = scipy.ndimage.gaussian_filter, watermark._font

    def blurred(values: Any, sigma: tuple[float, ...], **more: Any) -> Any:
        asked.append(sigma[0])
        return blur(values, sigma, **more)

    def written(file: str, size: float) -> Any:
        asked.append(size)
        return font(file, size)

    monkeypatch.setattr(scipy.ndimage, "gaussian_filter", blurred)
    monkeypatch.setattr(watermark, "_font", written)
    PeripheralBlur(sigma=10).put(pixels, rng)
    for size in (7, 9, 11, 13, 15):
        Watermark(size=size).put(pixels, rng)
    assert asked == pytest.approx([5.714, 4, 5.143, 6.286, 7.429, 8.571], abs=1e-3)


# ---- slow copies ----------------------------------------------------------------------------


def test_colours_are_those_of_the_standard_library() -> None:
    import colorsys

    pixels = picture(9).pixels
    pixels[0, 0], pixels[0, 1], pixels[0, 2] = 0, 255, 77
    expected = [[colorsys.rgb_to_hsv(*(c / 255 for c in p)) for p in row] for row in pixels]
    hsv = to_hsv(pixels)
    assert hsv == pytest.approx(np.array(expected), abs=1e-12)
    assert np.array_equal(to_rgb(hsv), pixels), "there and back, nothing is lost by truncation"
    hsv[..., 0] += 0.37
    turned = [[colorsys.hsv_to_rgb(*p) for p in row] for row in hsv]
    assert np.array_equal(to_rgb(hsv), (np.array(turned) * 255 + 1e-9).astype(np.uint8))


def test_bounds_are_the_inequalities() -> None:
    blurred = PeripheralBlur(radius=90).bounds((96, 96))
    bright = CentreBrightness(radius=90).bounds((96, 96))
    ends = np.linspace(-1, 1, 96)
    for y in range(0, 96, 5):
        for x in range(96):
            away = (x - 48) ** 2 + (y - 48) ** 2
            assert blurred[y, x] == (away > (90 * 96 / 224) ** 2)
            assert bright[y, x] == ((ends[x] ** 2 + ends[y] ** 2) ** 0.5 <= 90 / 112)


# ---- all six --------------------------------------------------------------------------------


@settings(max_examples=8, deadline=None)
@given(st.integers(32, 80), st.integers(32, 80), st.integers(0, 10**6))
@pytest.mark.parametrize("name", MARKS)
def test_nothing_changes_outside_the_region(name: str, height: int, width: int, seed: int) -> None:
    before = pictures(2, height, width)
    sure = "p=0.5" if name == "striped_noise" else "share=1"
    for spec in (f"{name}({sure})", f"{name}({sure}, region=exact)"):
        after = changed(before, spec, seed=seed)
        for old, e in zip(before, after, strict=True):
            touched = (old.input.pixels != e.input.pixels).any(axis=2)
            assert touched.any() == is_marked(e) == (e.label == 1)
            assert not (touched & ~planted(e)).any()
            if "exact" in spec and e.label:
                assert np.array_equal(touched, planted(e))
        if "exact" not in spec:
            regions = [planted(e) for e in after]
            assert np.array_equal(*regions) and not regions[0].all()


@pytest.mark.parametrize("name", MARKS)
def test_the_share_is_the_same_at_any_size(name: str) -> None:
    whole = share(mark(name), 224)
    for side in SQUARES:
        # each limit may move by one row or column
        assert share(mark(name), side) == pytest.approx(whole, abs=2 / side), side
    if name != "stamp":  # which keeps its proportions
        for shape in ((96, 160), (200, 120)):
            assert share(mark(name), *shape) == pytest.approx(whole, abs=2 / min(shape)), shape


class RegionReader:
    """Answers by the colours of a region, and by nothing else."""

    labels = ("no", "yes")

    def __init__(self, region: Any) -> None:
        self.region = region  # (height, width)

    def probabilities(self, inputs: Any) -> Any:
        light = np.array([one.pixels[self.region].mean() for one in inputs]) / 255
        return np.stack([1 - light, light], axis=1)


@pytest.mark.parametrize("kind", MANIPULATIONS)
def test_an_oracle_has_all_in_the_region_and_a_random_map_its_share(
    kind: type[PictureMark],
) -> None:
    """For marked and unmarked pictures alike: the region is that of both."""
    after = changed(pictures(40, 64), [Reassign(), kind()], seed=0)
    region = planted(after.examples[0])
    tiles = np.arange(64)[:, None] // 32 * 2 + np.arange(64) // 32
    masses: list[float] = []
    for e in after:
        # quarters, each cut in two by the edge of the region: what is hidden is in it or not
        own = Image.with_segments(e.input.pixels, 2 * tiles + planted(e))
        if len(masses) < 4:
            (exact,) = veracity.explain(RegionReader(region), own, "shap(form=exact)", target="yes")
            assert attribution_share(exact.scores, region.ravel()) == pytest.approx(1)
        (random,) = veracity.explain(RegionReader(region), e.input, "random_scores")
        masses.append(attribution_share(random.scores, region.ravel()))
    assert np.mean(masses) == pytest.approx(region.mean(), abs=0.02)


@pytest.mark.parametrize("name", MARKS)
def test_the_same_seed_gives_the_same_pictures(name: str) -> None:
    data = pictures(6, 48)
    once, again = (changed(data, name, seed=3) for _ in range(2))
    assert once.fingerprint() == again.fingerprint()
    other = changed(data, name, seed=4)
    draws = name in ("striped_noise", "watermark")
    assert (once.fingerprint() != other.fingerprint()) == draws
    if draws:  # once per example, not once for all
        same = replace(data, examples=tuple(replace(e, input=data.examples[1].input) for e in data))
        made = [e.input.key for e in changed(same, name) if is_marked(e)]
        assert len(set(made)) == len(made)


@pytest.mark.parametrize("name", MARKS)
def test_labels_are_drawn_before_and_not_after(name: str) -> None:
    data = changed(pictures(40, 24), f"reassign, {name}", seed=1)
    assert all(is_marked(e) == (e.label == 1) for e in data)
    assert Counter(e.facts[ORIGINAL_LABEL] for e in data) == {"no": 20, "yes": 20}
    assert sum(e.facts[ORIGINAL_LABEL] == data.labels[e.label] for e in data) < 35
    known = reliance(data, [True] * 40)
    assert known is not None and (known.bound, known.ceiling) == (0.5, 1.0)
    with pytest.raises(DataError, match="put reassign first"):
        changed(data, "reassign")


def test_strength_share_and_table_say_how_sure_a_mark_is() -> None:
    data = pictures(400, 6)
    told = {
        spec: [np.mean([is_marked(e) for e in changed(data, spec) if e.label == y]) for y in (0, 1)]
        for spec in (
            "striped_noise(p=1, strength=0.8)",
            "striped_noise(p=1, share=0.5)",
            "striped_noise(p=1, table=((0.3,), (0.6,)))",
        )
    }
    for rates, expected in zip(told.values(), ((0.2, 0.8), (0, 0.5), (0.3, 0.6)), strict=True):
        assert rates == pytest.approx(expected, abs=0.1)


def test_labels_can_be_chosen_and_share_a_mark() -> None:
    data = pictures(9, 16, labels=("a", "b", "c"))
    assert [is_marked(e) for e in changed(data, "striped_hue")] == [False, False, True] * 3
    some = changed(data, "striped_hue(labels=('a', 'b'))")
    assert [is_marked(e) for e in some] == [True, True, False] * 3
    assert cue_only_accuracy(some) == pytest.approx(2 / 3), (
        "a and b look alike to one who knows the mark"
    )
    assert {e.truths[PLANTED][0].sum() for e in some} == {planted(some.examples[0]).sum()}


def test_one_mask_serves_all_pictures_of_a_size() -> None:
    after = changed(pictures(4, 24), "watermark")
    assert len({id(e.truths[PLANTED][0].base) for e in after}) == 1


def test_a_picture_that_cannot_show_a_mark_is_untouched() -> None:
    data = pictures(30, 16)
    grey = np.full((16, 16, 3), 99, dtype=np.uint8)
    data = replace(data, examples=tuple(replace(e, input=Image(grey)) for e in data))
    with pytest.warns(UserWarning, match="shows in no picture of pictures"):
        after = changed(data, "striped_hue")
    assert not any(map(is_marked, after))
    assert all(planted(e).any() for e in after)
    with pytest.warns(UserWarning, match="shows in no picture"):
        assert not changed(data, "striped_hue(region=exact)").truth_kinds


def test_segments_of_an_owner_stay() -> None:
    halves = np.repeat(np.arange(2), 72).reshape(12, 12)
    own = Image.with_segments(picture(12).pixels, halves)
    data = Dataset("own", ("no", "yes"), (Example("1", own, 1),))
    (after,) = changed(data, "peripheral_blur")
    assert is_marked(after) and np.array_equal(after.input.segments, own.segments)


@pytest.mark.parametrize(
    ("by", "error", "says"),
    [
        ("peripheral_blur(sigma=0)", PluginError, "sigma above 0"),
        ("peripheral_blur(radius=160)", DataError, "no place for it in a picture of 24 × 24"),
        ("centre_brightness(delta=0)", PluginError, "other than 0"),
        ("striped_hue(top=130, bottom=80)", PluginError, "between 0 and 224 in this order"),
        ("striped_noise(bottom=300)", PluginError, "between 0 and 224"),
        ("striped_noise(p=2)", PluginError, "at most 1"),
        ("watermark(left=60, right=100)", PluginError, "80 columns and 20 rows"),
        ("watermark(font='nowhere.ttf')", DataError, "font in nowhere.ttf"),
        ("stamp(file='nowhere.png')", DataError, "no such file"),
        ("stamp(opacity=0)", PluginError, "opacity above 0"),
        ("stamp(table=((0.1, 0.2), (0.3, 0.4)))", PluginError, "one probability for each mark"),
        ("stamp(table=((0.1,),))", DataError, "expected 2 marks or rows"),
        ("stamp(labels=('yess',))", DataError, "did you mean 'yes'"),
        ("stamp(labels=('no', 'yes'))", DataError, "every label tells nothing"),
        ("stamp(marks=('a', 'b'))", PluginError, "no setting 'marks'"),
        ("insert", DataError, "not image"),
    ],
)
def test_faults_are_told(by: str, error: type[Exception], says: str) -> None:
    with pytest.raises(error, match=says):
        changed(pictures(4, 24), by)


def test_texts_are_no_pictures() -> None:
    with pytest.raises(DataError, match="takes inputs of the kind image, not text"):
        changed(load_data("made_reviews(n=4)"), "watermark")


# ---- a watermark and a stamp ----------------------------------------------------------------


def test_a_watermark_is_black_and_white_and_stays_in_its_box() -> None:
    grey = Image(np.full((224, 224, 3), 120, dtype=np.uint8))
    data = Dataset("grey", ("no", "yes"), tuple(Example(str(i), grey, 1) for i in range(12)))
    sides = set()
    for e in changed(data, "watermark(region=exact)"):
        rows, columns = np.nonzero(planted(e))
        assert rows.min() >= 150 and rows.max() < 200 and columns.min() >= 30
        values = e.input.pixels[..., 0]
        black, white = (np.nonzero(values == v)[1].mean() for v in (0, 255))
        sides.add(black < white)
    assert sides == {True, False}


def test_a_font_of_ones_own(tmp_path: Path) -> None:
    from PIL import ImageFont

    own: Any = ImageFont.load_default(10)
    file = tmp_path / "own.ttf"
    file.write_bytes(own.font_bytes)
    data = pictures(4, 64)
    mine, usual = changed(data, [Watermark(font=str(file))]), changed(data, "watermark")
    assert [is_marked(e) for e in mine] == [is_marked(e) for e in usual]


def test_a_logo_lies_where_it_is_put(tmp_path: Path) -> None:
    logo = np.zeros((20, 40, 4), dtype=np.uint8)
    logo[:, 20:] = (255, 0, 0, 255)  # its left half is transparent
    file = tmp_path / "logo.png"
    Pictures.fromarray(logo).save(file)
    spec = f"stamp(file={str(file)!r}, top=10, left=100, size=40)"
    black = Image(np.zeros((224, 224, 3), dtype=np.uint8))
    data = Dataset("black", ("no", "yes"), (Example("1", black, 1),))
    (after,) = changed(data, spec)
    rows, columns = np.nonzero(planted(after))
    assert (rows.min(), rows.max(), columns.min(), columns.max()) == (10, 29, 100, 139)
    assert not after.input.pixels[10:30, 100:118].any()
    assert after.input.pixels[20, 130].tolist() == [255, 0, 0]
    (faint,) = changed(data, spec.replace("size=40", "size=40, opacity=0.2"))
    assert faint.input.pixels[20, 130].tolist() == [51, 0, 0]
    (exact,) = changed(data, spec.replace("size=40", "size=40, region=exact"))
    assert planted(exact).sum() < planted(after).sum() / 1.8


@pytest.mark.parametrize("fault", ["text", "cut", "huge", "folder"])
def test_what_is_no_logo_is_told(fault: str, tmp_path: Path) -> None:
    file = tmp_path / "logo.png"
    if fault == "folder":
        file.mkdir()
    elif fault == "text":
        file.write_text("no picture")
    else:
        side = 5000 if fault == "huge" else 40
        Pictures.fromarray(picture(4, side).pixels).save(file)
        if fault == "cut":
            file.write_bytes(file.read_bytes()[:200])
    says = "at most 4096 pixels" if fault == "huge" else "expected a picture such as a PNG"
    with pytest.raises(DataError, match=says):
        changed(pictures(2, 24), f"stamp(file={str(file)!r})")


# ---- what the paper drew --------------------------------------------------------------------

PAIRS = (("a", "b"), ("c", "d"), ("e", "f"), ("g", "h"))


def test_draws_are_as_many_as_the_paper_says() -> None:
    assert [type(d.mark) for d in region_draws(PAIRS, n=1)] == list(MANIPULATIONS)
    assert Counter(type(d.mark) for d in region_draws(PAIRS)) == dict.fromkeys(MANIPULATIONS, 20)
    assert len(list(visibility_draws(PAIRS))) == 100
    assert len(list(correlation_draws(PAIRS))) == 120
    assert list(region_draws(PAIRS, seed=1)) == list(region_draws(PAIRS, seed=1))
    visible, published = (next(region_draws(PAIRS, level=level)).mark for level in (5, None))
    assert isinstance(visible, PeripheralBlur)
    assert visible.sigma == 10.0
    assert replace(visible, sigma=2.0) == published, "in the same place"
    few = list(region_draws(PAIRS, n=2))
    assert few == [d for d in region_draws(PAIRS) if d.group < 2], "fewer are the first of many"


def test_draws_lie_within_their_limits() -> None:
    for draw in region_draws(PAIRS, n=40, seed=2):
        made: Any = draw.mark
        if isinstance(made, PeripheralBlur):
            assert 80 <= made.radius <= 130 and made.sigma == 2
        elif isinstance(made, CentreBrightness):
            assert 40 <= made.radius <= 112 and made.delta == -0.3
        else:
            least = 40 if isinstance(made, Watermark) else 20
            assert least <= made.bottom - made.top and 0 <= made.top <= made.bottom <= 224
            if isinstance(made, Watermark):
                assert 100 <= made.right - made.left <= 200 and made.size == 13
        assert draw.pair in PAIRS and draw.r == 0.5
        assert 0 < share(draw.mark, 64) < 1.01


def test_only_the_level_differs_within_a_group() -> None:
    draws = list(visibility_draws(PAIRS))
    for (kind, group), some in groupby(draws, key=lambda d: (type(d.mark), d.group)):
        line = list(some)
        assert [d.level for d in line] == [0, 1, 2, 3, 4]
        assert {d.pair for d in line} == {PAIRS[group]}
        assert len({d.mark.bounds((64, 64)).tobytes() for d in line}) == 1
        assert len({d.mark for d in line}) == 5, kind


def test_unlike_pairs_share_no_label_and_are_kept_over_r() -> None:
    draws = list(correlation_draws(PAIRS, seed=5))
    home = {label: pair for pair in PAIRS for label in pair}
    for kind in MANIPULATIONS:
        mine = [d for d in draws if type(d.mark) is kind]
        assert {d.mark for d in mine} == {kind()}, "the usual settings"
        by_r = {r: [d.pair for d in mine if d.r == r] for r in {d.r for d in mine}}
        assert len(by_r) == 6 and len({tuple(pairs) for pairs in by_r.values()}) == 1
        alike = {d.pair for d in mine if d.confusable}
        unlike = {d.pair for d in mine if not d.confusable}
        assert len(alike) == len(unlike) == 2 and alike <= set(PAIRS)
        assert all(home[a] != home[b] for a, b in unlike)
        assert len({label for pair in unlike for label in pair}) == 4
