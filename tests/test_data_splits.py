"""Splits keep proportions and let nothing leak."""

import pytest

from veracity.core.errors import DataError
from veracity.core.examples import Dataset, Example
from veracity.data.loading import load_data
from veracity.data.splits import Splits, leaks, sampled, split
from veracity.data.words import read_text


def dataset(*rows: tuple[str, int, str | None, str]) -> Dataset:
    """Rows of text, label, partner, split; ids are their places."""
    examples = (
        Example(str(i), read_text(text), label, {}, partner, {"split": part} if part else {})
        for i, (text, label, partner, part) in enumerate(rows)
    )
    return Dataset("d", ("no", "yes", "so"), tuple(examples))


def ids(splits: Splits) -> list[set[str]]:
    return [{e.id for e in part} for part in (splits.train, splits.validation, splits.test)]


def test_proportions_hold_for_every_label() -> None:
    rows = [(f"text {i}", 0 if i < 300 else 1 if i < 360 else 2, None, "") for i in range(400)]
    parts = split(dataset(*rows))
    assert parts.train.balance == {"no": 240, "yes": 48, "so": 32}
    assert parts.test.balance == {"no": 30, "yes": 6, "so": 4}
    assert [len(part) for part in ids(parts)] == [320, 40, 40]
    uneven = split(dataset(*rows), shares=(0.5, 0.0, 0.5))
    assert [len(part) for part in ids(uneven)] == [200, 0, 200]


def test_the_seed_decides() -> None:
    data = load_data("made_reviews(n=200)")
    assert ids(split(data, seed=3)) == ids(split(data, seed=3))
    assert ids(split(data, seed=3)) != ids(split(data, seed=4))


def test_same_texts_and_twins_stay_together() -> None:
    rows: list[tuple[str, int, str | None, str]] = []
    for i in range(60):
        place = len(rows)
        rows += [
            (f"Text {i}", i % 2, None, ""),
            (f"text  {i}", 1 - i % 2, None, ""),
            (f"twin {i}", i % 2, str(place), ""),
        ]
    for seed in range(5):
        parts = split(dataset(*rows), seed=seed)
        assert leaks(parts) == []
        for part in ids(parts):
            assert part
            assert {int(i) // 3 * 3 + k for i in part for k in range(3)} == set(map(int, part))


def test_twins_whose_original_is_elsewhere_stay_together() -> None:
    rows = [(f"text {i}", 0, "gone" if i < 10 else None, "") for i in range(40)]
    parts = ids(split(dataset(*rows), shares=(0.4, 0.3, 0.3)))
    assert sum(bool(part & set(map(str, range(10)))) for part in parts) == 1


def test_no_part_is_empty_where_it_need_not_be() -> None:
    for n in range(3, 12):
        rows = [(f"text {i}", i % 3, None, "") for i in range(n)]
        assert all(ids(split(dataset(*rows)))), n
    assert sum(map(len, ids(split(dataset(("alone", 0, None, "")))))) == 1


def test_given_parts_are_kept_and_missing_ones_carved_out_of_train() -> None:
    rows = [(f"text {i}", i % 2, None, "Train" if i < 90 else "test") for i in range(100)]
    train, validation, test = ids(split(dataset(*rows)))
    assert test == set(map(str, range(90, 100)))
    assert len(validation) == 10
    assert train | validation == set(map(str, range(90)))
    three = [(f"text {i}", 0, None, ("train", "dev", "test")[i % 3]) for i in range(9)]
    assert ids(split(dataset(*three)))[1] == {"1", "4", "7"}
    only_test = [(f"text {i}", 0, None, "test") for i in range(10)]
    assert [len(part) for part in ids(split(dataset(*only_test)))] == [8, 1, 1]


def test_leaks_between_given_parts_are_told() -> None:
    rows = [("Same", 0, None, "train"), ("other", 0, None, "val"), ("same ", 0, None, "test")]
    assert leaks(split(dataset(*rows))) == ["Same"]


def test_mistaken_requests_are_refused() -> None:
    rows = [("a", 0, None, "train"), ("b", 0, None, "holdout")]
    with pytest.raises(DataError, match="'holdout'"):
        split(dataset(*rows))
    with pytest.raises(DataError, match="add up to 1"):
        split(dataset(*rows), shares=(0.8, 0.1, 0.2))


@pytest.mark.parametrize("limit", [1, 2, 3, 7, 10, 31])
def test_a_sample_never_parts_twins(limit: int) -> None:
    originals = [Example(f"o{i}", read_text(f"text {i}"), i % 2) for i in range(10)]
    twins = [
        Example(f"t{i}{c}", read_text(f"twin {i} {c}"), i % 2, partner=f"o{i}")
        for i in range(10)
        for c in "ab"[: 1 + i % 2]
    ]
    alone = [Example(f"x{i}", read_text(f"alone {i}"), i % 2) for i in range(12)]
    data = Dataset("d", ("0", "1"), (*twins, *originals, *alone))
    for seed in range(5):
        found = sampled(data, limit, seed=seed)
        ids = {e.id for e in found}
        for original, twin in data.pairs:
            assert (original.id in ids) == (twin.id in ids)
        # texts without a twin fill up what pairs leave
        assert len(found) == limit or (limit < 3 and len(found) <= 3)
        assert [e.id for e in found] == [e.id for e in data if e.id in ids]
        assert sampled(data, limit, seed=seed) == found
    assert (
        limit > 30 or len({tuple(e.id for e in sampled(data, limit, seed=s)) for s in range(9)}) > 1
    )


def test_a_sample_of_pairs_has_the_labels_in_proportion() -> None:
    rows: list[tuple[str, bool, str | None]]
    rows = [(f"o{i}", i % 4 == 0, None) for i in range(80)]
    rows += [(f"t{i}", i % 4 == 0, f"o{i}") for i in range(80)]
    data = Dataset(
        "d",
        ("0", "1"),
        tuple(Example(i, read_text(f"text {i}"), int(y), partner=p) for i, y, p in rows),
    )
    found = sampled(data, 40)
    assert len(found) == 40 and len(found.pairs) == 20
    assert found.balance == {"0": 30, "1": 10}


COLOURS = ("red", "blue", "green")


@pytest.mark.parametrize("numbered", [False, True])
@pytest.mark.parametrize("twins", [0, 20])
def test_the_same_texts_are_drawn_in_any_order_of_labels(numbered: bool, twins: int) -> None:
    def row(name: str, i: int, **more: str) -> dict[str, object]:
        label = i % 3 if numbered else COLOURS[i % 3]
        return {"id": name, "text": f"text {name}", "label": label, **more}

    rows = [row(f"o{i}", i) for i in range(60)]
    rows += [row(f"t{i}", i, partner=f"o{i}", sample_type="adv") for i in range(twins)]

    def drawn(labels: tuple[str, ...] | None) -> list[str]:
        return [e.id for e in sampled(load_data(rows, labels=labels), 20, seed=3)]

    assert drawn(COLOURS) == drawn(COLOURS[::-1]) == drawn(None) and len(drawn(None)) == 20


def test_a_draw_in_the_usual_order_is_what_it_was() -> None:
    """Runs of older versions must find their texts again."""
    rows = [{"text": f"text {i}", "label": COLOURS[i % 3]} for i in range(60)]
    ids = [e.id for e in sampled(load_data(rows), 6, seed=3)]
    assert ids == ["10", "27", "35", "36", "47", "58"]
