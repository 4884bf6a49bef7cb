"""ELMo against its formulas written out, and its files as they are published."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
import torch

from commands import run_command
from veracity.core.errors import ModelError
from veracity.core.examples import Dataset, Example
from veracity.core.inputs import FloatArray
from veracity.data.loading import load_data
from veracity.data.splits import Splits
from veracity.data.words import read_text
from veracity.models.elmo import BidirectionalLm, ElmoOptions, ScalarMix, spelling
from veracity.models.elmo_files import read_elmo, write_elmo
from veracity.models.elmo_pretraining import (
    ElmoPretraining,
    WordGuesser,
    pretrain_elmo,
    unigram_perplexity,
)
from veracity.models.vocabulary import Vocabulary

OPTIONS: dict[str, Any] = {
    "lstm": {
        "use_skip_connections": True,
        "projection_dim": 5,
        "cell_clip": 0.4,
        "proj_clip": 0.3,
        "dim": 7,
        "n_layers": 2,
    },
    "char_cnn": {
        "activation": "relu",
        "filters": [[1, 3], [2, 4], [4, 2]],
        "n_highway": 2,
        "embedding": {"dim": 6},
        "n_characters": 262,
        "max_characters_per_token": 12,
    },
}
"""Small sizes, none of which is another; clips that are met."""

TEXTS = [
    ["the", "film", "was", "extraordinarily", "dull"],
    ["great"],
    ["naïve", "好电影", "", "but", "fun", ",", "fun"],
]


def published(folder: Path, options: Any = OPTIONS, scale: float = 0.7) -> Path:
    """Files in the published form, their numbers drawn."""
    rng = np.random.default_rng(5)
    cnn, lstm = options["char_cnn"], options["lstm"]
    many = sum(count for _, count in cnn["filters"])
    folder.mkdir(exist_ok=True)
    (folder / "elmo_small_options.json").write_text(json.dumps(options))

    def drawn(*shape: int) -> Any:
        return (scale * rng.normal(size=shape)).astype(np.float32)

    with h5py.File(folder / "elmo_small_weights.hdf5", "w") as file:
        file["char_embed"] = drawn(261, cnn["embedding"]["dim"])
        for i, (width, count) in enumerate(cnn["filters"]):
            file[f"CNN/W_cnn_{i}"] = drawn(1, width, cnn["embedding"]["dim"], count)
            file[f"CNN/b_cnn_{i}"] = drawn(count)
        for i in range(cnn["n_highway"]):
            for part in ("transform", "carry"):
                file[f"CNN_high_{i}/W_{part}"] = drawn(many, many)
                file[f"CNN_high_{i}/b_{part}"] = drawn(many)
        file["CNN_proj/W_proj"] = drawn(many, lstm["projection_dim"])
        file["CNN_proj/b_proj"] = drawn(lstm["projection_dim"])
        for way in range(2):
            for layer in range(lstm["n_layers"]):
                cell = file.create_group(f"RNN_{way}/RNN/MultiRNNCell/Cell{layer}/LSTMCell")
                cell["W_0"] = drawn(2 * lstm["projection_dim"], 4 * lstm["dim"])
                cell["B"] = drawn(4 * lstm["dim"])
                cell["W_P_0"] = drawn(lstm["dim"], lstm["projection_dim"])
    return folder


class Literal:
    """The formulas of definitions 1.9, one word and one number after the other, from the files."""

    def __init__(self, folder: Path, options: Any = OPTIONS) -> None:
        self.options = options
        with h5py.File(folder / "elmo_small_weights.hdf5") as file:
            self.weights: dict[str, FloatArray] = {}
            file.visititems(self._keep)

    def _keep(self, name: str, item: Any) -> None:
        if isinstance(item, h5py.Dataset):
            self.weights[name] = item[...].astype(np.float64)

    def letters(self, word: str | None, mark: int = 0) -> list[int]:
        """Bytes between marks of a word's begin and end, filled up; rows of the file's table."""
        most = self.options["char_cnn"]["max_characters_per_token"]
        inside = [mark] if word is None else list(word.encode("utf-8"))[: most - 2]
        spelt = [258, *inside, 259]
        return spelt + [260] * (most - len(spelt))

    def word(self, letters: list[int]) -> FloatArray:
        w, cnn = self.weights, self.options["char_cnn"]
        table = w["char_embed"][letters]
        found = []
        for i, (width, count) in enumerate(cnn["filters"]):
            for f in range(count):
                kernel = w[f"CNN/W_cnn_{i}"][0, :, :, f]
                matches = [
                    float((table[j : j + width] * kernel).sum() + w[f"CNN/b_cnn_{i}"][f])
                    for j in range(len(table) - width + 1)
                ]
                best = max(matches)
                found.append(max(0.0, best) if cnn["activation"] == "relu" else np.tanh(best))
        x = np.array(found)
        for i in range(cnn["n_highway"]):
            high = f"CNN_high_{i}"
            carry = 1 / (1 + np.exp(-(x @ w[f"{high}/W_carry"] + w[f"{high}/b_carry"])))
            new = np.maximum(0, x @ w[f"{high}/W_transform"] + w[f"{high}/b_transform"])
            x = carry * new + (1 - carry) * x
        projected: FloatArray = x @ w["CNN_proj/W_proj"] + w["CNN_proj/b_proj"]
        return projected

    def run(self, way: int, layer: int, rows: list[FloatArray]) -> list[FloatArray]:
        lstm, cell = self.options["lstm"], f"RNN_{way}/RNN/MultiRNNCell/Cell{layer}/LSTMCell"
        weight, bias = self.weights[f"{cell}/W_0"], self.weights[f"{cell}/B"]
        h, c = np.zeros(lstm["projection_dim"]), np.zeros(lstm["dim"])
        found = []
        for x in rows:
            i, j, f, o = np.split(np.concatenate([x, h]) @ weight + bias, 4)
            c = c / (1 + np.exp(-(f + 1))) + np.tanh(j) / (1 + np.exp(-i))
            c = np.clip(c, -lstm["cell_clip"], lstm["cell_clip"])
            h = (np.tanh(c) / (1 + np.exp(-o))) @ self.weights[f"{cell}/W_P_0"]
            h = np.clip(h, -lstm["proj_clip"], lstm["proj_clip"])
            found.append(h + (x if layer else 0))
        return found

    def layers(self, words: list[str]) -> list[FloatArray]:
        rows = [self.word(self.letters(None, 256))]
        rows += [self.word(self.letters(word)) for word in words]
        rows += [self.word(self.letters(None, 257))]
        left, right = rows, rows[::-1]
        found = [np.hstack([rows, rows])]
        for layer in range(self.options["lstm"]["n_layers"]):
            left, right = self.run(0, layer, left), self.run(1, layer, right)
            found.append(np.hstack([left, right[::-1]]))
        return found


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return published(tmp_path_factory.mktemp("elmo"))


def test_every_layer_is_that_of_the_formulas(folder: Path) -> None:
    """And of no text does it matter which others are read with it."""
    literal, model = Literal(folder), read_elmo(folder).double()
    with torch.no_grad():
        together, lengths = model(TEXTS)
    assert lengths.tolist() == [7, 3, 9]
    met = 0
    for row, words in enumerate(TEXTS):
        expected = literal.layers(words)
        assert len(expected) == len(together) == 3
        for layer, found in zip(expected, together, strict=True):
            np.testing.assert_allclose(found[row, : len(layer)].numpy(), layer, atol=1e-6)
        met += int((np.abs(expected[1]) == 0.3).sum())
    assert met > 5  # the clips are part of what was compared


def test_tanh_and_files_without_highways_or_clips_are_read(tmp_path: Path) -> None:
    options = json.loads(json.dumps(OPTIONS))
    options["char_cnn"] |= {"n_highway": 0, "n_characters": 261}
    options["lstm"] |= {"cell_clip": 100, "proj_clip": 100}
    literal = Literal(published(tmp_path / "clipped", options), json.loads(json.dumps(options)))
    del options["lstm"]["cell_clip"], options["lstm"]["proj_clip"]
    with torch.no_grad():
        (_, first, second), _ = read_elmo(published(tmp_path / "free", options)).double()(TEXTS)
    for layer, found in zip(literal.layers(TEXTS[0])[1:], (first, second), strict=True):
        np.testing.assert_allclose(found[0, :7].numpy(), layer, atol=1e-6)
    options["char_cnn"]["activation"] = "tanh"
    with torch.no_grad():
        (words, *_), _ = read_elmo(published(tmp_path / "tanh", options)).double()(TEXTS)
    expected = Literal(tmp_path / "tanh", options).word(literal.letters("dull"))
    np.testing.assert_allclose(words[0, 5, :5].numpy(), expected, atol=1e-6)


def test_written_and_read_again_it_is_the_same(folder: Path, tmp_path: Path) -> None:
    model = read_elmo(folder)
    write_elmo(model, tmp_path)
    again = read_elmo(tmp_path)
    assert again.options == model.options
    for name, weight in model.state_dict().items():
        assert torch.equal(weight, again.state_dict()[name]), name


def test_words_are_spelt_with_bytes() -> None:
    """As the published models were trained: 1 is added, since 0 is no letter at all."""
    assert spelling("ab", 6) == [259, 98, 99, 260, 261, 261]
    assert spelling("naïve", 5) == [259, 111, 98, 0xC3 + 1, 260]
    assert spelling("", 4) == [259, 260, 261, 261]


def test_layers_are_mixed_by_shares() -> None:
    mix = ScalarMix(3)
    layers = [torch.full((1, 1, 2), x) for x in (1.0, 2.0, 6.0)]
    assert torch.allclose(mix(layers), torch.full((1, 1, 2), 3.0))
    with torch.no_grad():
        mix.weights.copy_(torch.tensor([0.0, float(np.log(3)), -100.0]))
        mix.gamma.fill_(2.0)
    assert torch.allclose(mix(layers), torch.full((1, 1, 2), 2 * (1 + 3 * 2) / 4))


def broken(folder: Path, tmp_path: Path, change: Any) -> Path:
    """A copy whose weights were changed."""
    copy = tmp_path / "broken"
    copy.mkdir()
    for file in folder.iterdir():
        (copy / file.name).write_bytes(file.read_bytes())
    with h5py.File(copy / "elmo_small_weights.hdf5", "a") as file:
        change(file)
    return copy


def reshaped(file: Any) -> None:
    del file["CNN/W_cnn_1"]
    file["CNN/W_cnn_1"] = np.zeros((1, 2, 6, 5), dtype=np.float32)


def emptied(file: Any) -> None:
    del file["RNN_1/RNN/MultiRNNCell/Cell1/LSTMCell/W_P_0"]


def linked(file: Any) -> None:
    del file["char_embed"]
    file["char_embed"] = h5py.ExternalLink("other.hdf5", "char_embed")


def whole(file: Any) -> None:
    del file["char_embed"]
    file["char_embed"] = np.zeros((261, 6), dtype=np.int64)


def infinite(file: Any) -> None:
    file["CNN_proj/b_proj"][2] = np.inf


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (
            reshaped,
            r"CNN/W_cnn_1 has numbers of the shape \(1, 2, 6, 4\), by the file float32 of",
        ),
        (emptied, "to hold the dataset RNN_1/RNN/MultiRNNCell/Cell1/LSTMCell/W_P_0"),
        (linked, "to hold the dataset char_embed"),
        (whole, "by the file int64"),
        (infinite, "CNN_proj/b_proj holds NaN or infinity"),
    ],
)
def test_weights_that_do_not_fit_are_one_sentence(
    folder: Path, tmp_path: Path, change: Any, said: str
) -> None:
    with pytest.raises(ModelError, match=said):
        read_elmo(broken(folder, tmp_path, change))


def test_files_that_claim_to_be_huge_are_not_made(tmp_path: Path) -> None:
    """A dataset that was never written takes no room in its file."""
    options = json.loads(json.dumps(OPTIONS))
    options["lstm"] |= {"dim": 20_000, "projection_dim": 20_000}
    folder = published(tmp_path / "elmo")
    (folder / "elmo_small_options.json").write_text(json.dumps(options))
    with h5py.File(folder / "elmo_small_weights.hdf5", "w") as file:
        for path, _, shape in ElmoOptions.of(options).datasets():
            file.create_dataset(path, shape, dtype="float32", chunks=True)
    with pytest.raises(Exception, match=r"far larger than the file|bytes of weights"):
        read_elmo(folder)


@pytest.mark.parametrize(
    ("part", "change", "said"),
    [
        ("lstm", {"use_skip_connections": False}, "use_skip_connections to be true"),
        ("lstm", {"dim": 0}, "sizes from 1 to"),
        ("lstm", {"dim": "many"}, "lstm.dim to be int"),
        ("lstm", {"dim": 10**9}, "sizes from 1 to"),
        ("lstm", {"cell_clip": -3}, "cell_clip and proj_clip to be above 0"),
        ("char_cnn", {"filters": [[1, 3, 4]]}, "pairs of a width and a number"),
        ("char_cnn", {"filters": []}, "pairs of a width and a number"),
        ("char_cnn", {"filters": [[13, 2]]}, "no filters wider"),
        ("char_cnn", {"activation": "gelu"}, "relu or tanh, got 'gelu'"),
        ("char_cnn", {"n_characters": 100}, "261 or 262"),
    ],
)
def test_options_that_do_not_fit_are_one_sentence(
    tmp_path: Path, part: str, change: Any, said: str
) -> None:
    folder = published(tmp_path / "elmo")
    options = OPTIONS | {part: OPTIONS[part] | change}
    (folder / "elmo_small_options.json").write_text(json.dumps(options))
    with pytest.raises(ModelError, match=said):
        read_elmo(folder)


def test_folders_without_the_two_files_are_one_sentence(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=r"'.*nowhere' is not there. Make one"):
        read_elmo(tmp_path / "nowhere")
    with pytest.raises(ModelError, match=r"ends in options\.json, found none"):
        read_elmo(tmp_path)
    copy = tmp_path / "copy"
    published(copy)
    (copy / "elmo_small_weights.hdf5").write_bytes(b"no HDF5")
    with pytest.raises(ModelError, match="published form of ELMo"):
        read_elmo(copy)
    (copy / "other_options.json").write_text("{}")
    with pytest.raises(ModelError, match=r"found elmo_small_options\.json, other_options\.json"):
        read_elmo(copy)


def test_a_word_is_read_by_its_letters() -> None:
    """Two words that differ in a letter have vectors of their own, seen before or not."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        model = BidirectionalLm(ElmoOptions.of(OPTIONS))
    with torch.no_grad():
        (words, *_), _ = model([["dull", "dulls", "dull"]])
    assert torch.equal(words[0, 1], words[0, 3])
    assert not torch.allclose(words[0, 1], words[0, 2])


# ---- pretraining --------------------------------------------------------------------------------

SIZES = ElmoPretraining(size=16, memory=24, vocabulary=300, learning_rate=0.01, batch_size=16)


@pytest.fixture(scope="module")
def texts() -> Dataset:
    return load_data("made_reviews(n=240)")


def test_guesses_are_those_of_the_words_beside() -> None:
    """The sums of both directions, one guess after the other."""
    words = Vocabulary.learnt(TEXTS, cased=True)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        model = WordGuesser(ElmoOptions.of(OPTIONS), words).eval()
    with torch.no_grad():
        sums, count = model(TEXTS)
        layers, _ = model.model(TEXTS)
        expected = [0.0, 0.0]
        for row, text in enumerate(TEXTS):
            ids = [0, *words.ids(text), 0]
            left, right = layers[-1][row].chunk(2, dim=1)
            for place in range(len(ids) - 1):
                expected[0] -= model.guess(left[place]).log_softmax(0)[ids[place + 1]].item()
                expected[1] -= model.guess(right[place + 1]).log_softmax(0)[ids[place]].item()
    assert int(count) == sum(len(text) + 1 for text in TEXTS)
    np.testing.assert_allclose(sums.numpy(), expected, rtol=1e-5)


def test_no_guess_sees_what_it_is_to_guess(texts: Dataset) -> None:
    """Another last word changes nothing that was guessed from the left before it."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        model = BidirectionalLm(ElmoOptions.of(OPTIONS))
    with torch.no_grad():
        (*_, one), _ = model([["the", "film", "was", "dull"]])
        (*_, other), _ = model([["the", "film", "was", "superb"]])
    assert torch.equal(one[0, :4, :5], other[0, :4, :5])
    assert not torch.allclose(one[0, 4, :5], other[0, 4, :5])
    assert torch.equal(one[0, 5:, 5:], other[0, 5:, 5:])
    assert not torch.allclose(one[0, 1:5, 5:], other[0, 1:5, 5:])


def test_frequencies_guess_by_themselves(texts: Dataset) -> None:
    def of(*words: str) -> Dataset:
        return Dataset("t", ("a", "b"), tuple(Example(w, read_text(w), 0) for w in words))

    words = Vocabulary(("good", "bad"), cased=True)
    parts = Splits(of("good", "good bad", "good so"), of("bad"), of("bad"))
    # good 3, bad 1, so is unknown 1, the mark 3, and one more of each: of 12
    expected = (2 / 12 * 4 / 12) ** -0.5
    assert unigram_perplexity(words, parts, 100) == pytest.approx(expected)


def test_what_is_pretrained_guesses_better_and_is_read_as_published(
    texts: Dataset, tmp_path: Path
) -> None:
    found = pretrain_elmo(texts, out=tmp_path, pretraining=SIZES)
    first, *_, last = (one.perplexity for one in found.history)
    assert last < first
    assert found.best.perplexity == last
    assert last < found.record["unigram_perplexity"]
    assert not (tmp_path / "checkpoint").exists()
    read = read_elmo(tmp_path)
    with torch.no_grad():
        for one, other in zip(read(TEXTS)[0], found.model(TEXTS)[0], strict=True):
            assert torch.equal(one, other)


def test_a_pretraining_that_was_stopped_goes_on_as_if_it_had_not(
    texts: Dataset, tmp_path: Path
) -> None:
    class Stopped(Exception):
        pass

    def stop(progress: Any) -> None:
        if progress.epoch == 1:
            raise Stopped

    with pytest.raises(Stopped):
        pretrain_elmo(texts, out=tmp_path, pretraining=SIZES, watch=stop)
    assert (tmp_path / "checkpoint" / "state.json").exists()
    resumed = pretrain_elmo(texts, out=tmp_path, pretraining=SIZES)
    whole = pretrain_elmo(texts, pretraining=SIZES)
    assert [p.loss for p in resumed.history] == [p.loss for p in whole.history]
    assert [p.perplexity for p in resumed.history] == [p.perplexity for p in whole.history]
    for name, weight in whole.model.state_dict().items():
        assert torch.equal(weight, resumed.model.state_dict()[name]), name


def test_elmo_is_pretrained_and_used_by_commands(tmp_path: Path) -> None:
    def said(*arguments: str) -> str:
        return run_command(*arguments, cwd=tmp_path).stderr

    spec, data = "elmo(size=8, memory=8, vocabulary=100)", "made_reviews(n=120)"
    told = said("pretrain", spec, data, "--out", "elmo", "--epochs", "1")
    assert "Held-out perplexity" in told
    assert "by word frequency alone" in told
    model = "lstm(embeddings=elmo(encoder='elmo'), hidden=8, tuned=False)"
    assert "validation" in said("train", model, data, "--out", "model", "--epochs", "1")
    for encoder, wrong in (
        (("elmo", "--out", "elmo"), "holds a pretrained encoder already"),
        (("elmo(sise=8)", "--out", "new"), "no setting 'sise'"),
        (("elmo(size=0)", "--out", "new"), "size to be 1 or more"),
        (("elmo", "--mine", "--out", "new"), "learns from texts alone"),
    ):
        assert wrong in said("pretrain", encoder[0], data, *encoder[1:])
