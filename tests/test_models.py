"""Networks, training, saving, embeddings."""

from __future__ import annotations

import dataclasses
import json
import struct
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from conftest import SHARED, words
from veracity.core.classifiers import abilities
from veracity.core.errors import DataError, ModelError, PluginError
from veracity.core.examples import Dataset, Example
from veracity.core.files import sole_writer
from veracity.core.inputs import Hiding, Text
from veracity.data.splits import Splits
from veracity.engine.inference import masked_probabilities, probabilities
from veracity.models.architecture import Training
from veracity.models.architectures import architectures
from veracity.models.architectures.attention_lstm import AttentionLstm, AttentionNetwork
from veracity.models.architectures.text_cnn import ConvolutionNetwork, TextCnn
from veracity.models.embeddings import vectors_for
from veracity.models.loading import MODEL, load_model, save_model
from veracity.models.training import Adam, train

BUILT_IN = (
    "cnn", "lstm", "attention_lstm", "hierarchical", "transformer", "rationale_rl", "rationale_cr",
)  # fmt: skip


def classifier_is_proposed_for_rules(name: str) -> bool:
    """definitions 1.1: `{C|L}[D][F]{W|G|E|B|sB}`; distilled, tree-based, or tuned contextual."""
    rest = name[1:]
    distilled = rest.startswith("D")
    rest = rest.removeprefix("D")
    tuned = rest.startswith("F")
    embedding = rest.removeprefix("F")
    return distilled or embedding == "sB" or (tuned and embedding in ("E", "B"))


def test_ex_1_1_classifier_names() -> None:
    expected = {"CW": False, "CB": False, "CFB": True, "CsB": True, "CDG": True, "LFG": False}
    assert {n: classifier_is_proposed_for_rules(n) for n in expected} == expected
    names = [
        f"{base}{d}{f}{e}"
        for base in "CL"
        for d in ("", "D")
        for f in ("", "F")
        for e in ("W", "G", "E", "B", "sB")
    ]
    assert len(names) == 40
    assert sum(map(classifier_is_proposed_for_rules, names)) == 28


def test_ex_1_2_cnn_forward() -> None:
    settings = TextCnn(widths=(2,), filters=1, sigmoid=True)
    network = ConvolutionNetwork(settings, size=1, n_labels=2).eval()
    with torch.no_grad():
        convolution: Any = network.convolutions[0]
        convolution.weight.fill_(1.0)
        convolution.bias.zero_()
        network.head.weight.fill_(0.5)
        network.head.bias.fill_(-1.0)
        values = torch.tensor([[[1.0], [2.0], [-1.0]]])
        present = torch.ones(1, 3, dtype=torch.bool)
        assert convolution(values.transpose(1, 2)).flatten().tolist() == [3.0, 1.0]
        (found,) = network.feature_maps(values, present)
        assert found.values.max().item() == 3.0
        p = torch.softmax(network(values, present), dim=-1)
    assert p[0, 1].item() == pytest.approx(0.62246, abs=1e-5)


def test_ex_1_3_attention_weights() -> None:
    network = AttentionNetwork(AttentionLstm(hidden=2, attention=1), size=3, n_labels=2)
    with torch.no_grad():
        network.keys.weight.zero_()
        network.keys.weight[0, 0] = 1.0
        network.keys.bias.zero_()
        network.query.weight.fill_(1.0)
        # the keys pass through tanh: choose states whose scores are 0 and ln 3 after scaling
        scale = 2.0
        network.query.weight.fill_(scale)
        states = torch.zeros(1, 3, 4)
        states[0, 1, 0] = np.arctanh(np.log(3) / scale)
        states[0, 2, 0] = 5.0
        present = torch.tensor([[True, True, False]])
        weights = network.weights(states, present)
    assert weights[0].tolist() == pytest.approx([0.25, 0.75, 0.0], abs=1e-6)


@pytest.mark.parametrize("name", BUILT_IN)
def test_padding_and_order_do_not_matter(name: str, request: Any) -> None:
    model = request.getfixturevalue(name)
    texts = [words(t) for t in ("great", "the film was great but dull", "a " * 40, "好", "x y")]
    together = model.probabilities(texts)
    alone = np.vstack([model.probabilities([t]) for t in texts])
    reverse = model.probabilities(texts[::-1])[::-1]
    assert together == pytest.approx(alone, abs=1e-6)
    assert together == pytest.approx(reverse, abs=1e-6)


@pytest.mark.parametrize("how", Text.hidings)
@pytest.mark.parametrize("name", BUILT_IN)
def test_masking_equals_reading_each_masked_text(name: str, how: Hiding, request: Any) -> None:
    model = request.getfixturevalue(name)
    rng = np.random.default_rng(0)
    sentences = ("the film was great . but dull !", "dull", "wonderful plotting here")
    texts = [words(t) for t in sentences]
    shown = [rng.random((9, t.n_features)) < 0.5 for t in texts]
    shown[0][0] = False
    fast = model.masked_probabilities(texts, shown, how)

    class Plain:
        labels = model.labels
        probabilities = staticmethod(model.probabilities)

    slow = masked_probabilities(Plain(), texts, shown, how)
    if name == "transformer" and how == Hiding.PAD:
        # a string cannot say "padding here": reading deletes where pieces leave a gap in place
        return
    for text, masks, f, s in zip(texts, shown, fast, slow, strict=True):
        for mask, one, other in zip(masks, f, s, strict=True):
            if how == Hiding.PAD and not mask.any():
                continue  # all padding: spelt out, this is an empty text, read as one unknown word
            assert one == pytest.approx(other, abs=1e-6), (text.text, mask)


@pytest.mark.parametrize("name", BUILT_IN)
def test_embeddings_lead_to_the_same_answers(name: str, request: Any) -> None:
    model = request.getfixturevalue(name)
    texts = [words("the film was great"), words("dull"), Text("", ())]
    with torch.no_grad():
        logits = model.logits(model.embed(texts))
    expected = model.probabilities(texts)
    assert torch.softmax(logits.double(), dim=-1).numpy() == pytest.approx(expected, abs=1e-6)


def test_abilities_are_found_out(cnn: Any, attention_lstm: Any, transformer: Any, bag: Any) -> None:
    seen_by_all = ("probabilities", "fast masking", "gradients")
    assert abilities(cnn) == (*seen_by_all, "convolutional filters")
    assert abilities(attention_lstm)[-1] == abilities(transformer)[-1] == "attention"
    assert abilities(bag) == ("probabilities",)


@pytest.mark.parametrize("name", ["cnn", "lstm", "attention_lstm", "hierarchical"])
def test_models_learn_made_reviews(name: str, made: Splits, request: Any) -> None:
    model = request.getfixturevalue(name)
    answers = probabilities(model, [e.input for e in made.test])
    accuracy = np.mean(answers.argmax(axis=1) == [e.label for e in made.test])
    assert accuracy > 0.95  # definitions 9.6 (1)


@pytest.mark.parametrize("name", ["cnn", "attention_lstm", "hierarchical"])
def test_saved_models_load_equal(name: str, tmp_path: Path, request: Any) -> None:
    model = request.getfixturevalue(name)
    save_model(model, model.architecture, tmp_path / "m", record={"note": 1})
    loaded: Any = load_model(tmp_path / "m")
    texts = [words("a great film"), words("dull")]
    assert np.array_equal(model.probabilities(texts), loaded.probabilities(texts))
    assert loaded.identity() == model.identity()
    assert {p.suffix for p in (tmp_path / "m").iterdir()} == {".json", ".safetensors"}


def test_a_fine_tuned_folder_is_also_a_transformers_folder(minilm_folder: Path) -> None:
    from transformers import pipeline

    ours: Any = load_model(minilm_folder)
    theirs: Any = pipeline("text-classification", model=str(minilm_folder), top_k=None)
    text = "a wonderful film"
    scores = {row["label"]: row["score"] for row in theirs([text])[0]}
    expected = [scores[label] for label in ours.labels]
    assert ours.probabilities([words(text)])[0] == pytest.approx(expected, abs=1e-5)
    from_pipeline: Any = load_model(theirs)
    assert from_pipeline.probabilities([words(text)])[0] == pytest.approx(expected, abs=1e-5)


def test_weights_that_a_killed_command_left_are_not_written_again(tmp_path: Path, cnn: Any) -> None:
    folder = tmp_path / "m"
    with sole_writer(folder, MODEL):
        save_model(cnn, cnn.architecture, folder, record={})
    (folder / "veracity.json").unlink()  # killed before the record was there
    weights = folder / "model.safetensors"
    before = weights.stat().st_mtime_ns
    save_model(cnn, cnn.architecture, folder, record={})
    assert weights.stat().st_mtime_ns == before and [*folder.glob("*.part")] == []
    weights.write_bytes(b"cut")
    save_model(cnn, cnn.architecture, folder, record={})
    again: Any = load_model(folder)
    assert again.identity() == cnn.identity()


def test_a_folder_whose_architectures_are_no_list_is_told(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text('{"architectures": 5}')
    with pytest.raises(ModelError, match="expected"):
        load_model(tmp_path)


def test_broken_model_folders_are_told(tmp_path: Path, cnn: Any, encoder_folder: Path) -> None:
    for source, says in [
        (tmp_path / "nowhere", "not there"),
        (tmp_path, "has neither"),
    ]:
        with pytest.raises(ModelError, match=says):
            load_model(source)
    folder = tmp_path / "m"
    save_model(cnn, cnn.architecture, folder, record={})
    (folder / "model.safetensors").write_bytes(b"nonsense")
    with pytest.raises(ModelError, match="damaged"):
        load_model(folder)
    (folder / "veracity.json").write_text("{")
    with pytest.raises(ModelError, match="damaged"):
        load_model(folder)
    bare = tmp_path / "bare"
    bare.mkdir()
    (bare / "config.json").write_text((encoder_folder / "config.json").read_text())
    with pytest.raises(ModelError, match="safetensors"):
        load_model(bare)


def _weights(model: Any) -> dict[str, np.ndarray[Any, Any]]:
    return {k: v.numpy() for k, v in model.state_dict().items()}


def test_training_repeats_and_resumes_exactly(made: Splits, tmp_path: Path) -> None:
    architecture = architectures.make("text_cnn(size=8, filters=4)")
    small = dataclasses.replace(made, train=made.train.select(range(100)))
    settings = Training(epochs=4, batch_size=16, patience=9, seed=3)

    def run(epochs: int, checkpoint: Path | None) -> Any:
        asked = dataclasses.replace(settings, epochs=epochs)
        return train(
            architecture, small.train, small.validation, training=asked, checkpoint=checkpoint
        )

    whole = run(4, None)
    again = run(4, None)
    run(2, tmp_path / "c")
    seen: list[int] = []

    def watch(progress: Any) -> None:
        if progress.result is not None:
            seen.append(progress.epoch)

    resumed = train(
        architecture,
        small.train,
        small.validation,
        training=settings,
        checkpoint=tmp_path / "c",
        watch=watch,
    )
    assert seen == [2, 3]  # the first two epochs were not trained again
    for other in (again, resumed):
        assert [e.loss for e in other.history] == [e.loss for e in whole.history]
        for name, weight in _weights(whole.model).items():
            assert np.array_equal(weight, _weights(other.model)[name]), name
    with pytest.raises(ModelError, match="another training"):
        train(
            architecture,
            small.train,
            small.validation,
            training=dataclasses.replace(settings, seed=4),
            checkpoint=tmp_path / "c",
        )


def test_a_damaged_checkpoint_starts_over(made: Splits, tmp_path: Path) -> None:
    architecture = architectures.make("text_cnn(size=8, filters=4)")
    small = made.train.select(range(60))

    def run() -> Any:
        training = Training(epochs=2, batch_size=16)
        return train(
            architecture, small, made.validation, training=training, checkpoint=tmp_path / "c"
        )

    first = run()
    for name in ("state.json", "weights-2.safetensors", "optimiser-2.safetensors"):
        path = tmp_path / "c" / name
        path.write_bytes(path.read_bytes()[:20])
        with pytest.warns(UserWarning, match="starts over"):
            again = run()
        assert [e.loss for e in again.history] == [e.loss for e in first.history]


@pytest.mark.parametrize("decay", [0.0, 0.01])
def test_adam_is_that_of_torch(decay: float) -> None:
    torch.manual_seed(0)
    ours = [torch.nn.Parameter(torch.randn(shape)) for shape in ((4, 3), (5,), (2, 2))]
    theirs = [torch.nn.Parameter(p.detach().clone()) for p in ours]
    adam = Adam(ours, lr=0.01, weight_decay=decay)
    peer = torch.optim.Adam(theirs, lr=0.01, weight_decay=decay)
    for number in range(6):
        if number == 3:  # resumed
            kept = adam.state_dict()
            adam = Adam(ours, lr=0.01, weight_decay=decay)
            adam.load_state_dict(kept)
        for a, b in zip(ours, theirs, strict=True):
            a.grad = torch.randn_like(a) if number or a is not ours[1] else None
            b.grad = a.grad
        adam.step()
        peer.step()
        assert all(torch.equal(a, b) for a, b in zip(ours, theirs, strict=True))
    adam.zero_grad(set_to_none=True)
    assert all(p.grad is None for p in ours)


def test_training_imports_no_compiler() -> None:
    """Which takes as long as torch itself."""
    code = (
        "import sys; from veracity.models.training import *; p = nn.Parameter(torch.ones(2)); "
        "a = Adam([p], lr=1.0); p.sum().backward(); a.step(); a.zero_grad(set_to_none=True); "
        "a.load_state_dict(a.state_dict()); sys.exit('torch._dynamo' in sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_training_keeps_the_best_epoch_and_stops(made: Splits) -> None:
    architecture = architectures.make("text_cnn(size=16, filters=8)")
    trained = train(
        architecture, made.train, made.validation, training=Training(epochs=40, patience=2)
    )
    accuracies = [e.validation_accuracy for e in trained.history]
    assert trained.best.validation_accuracy == max(accuracies)
    assert len(trained.history) == trained.best.number + 1 + 3 < 40
    found = probabilities(trained.model, [e.input for e in made.validation]).argmax(axis=1)
    right = np.mean(found == [e.label for e in made.validation])
    assert right == pytest.approx(max(accuracies))


def test_training_needs_every_label(made: Splits) -> None:
    one = made.train.select([i for i, e in enumerate(made.train) if e.label == 1])
    with pytest.raises(DataError, match="at least two labels"):
        train(architectures.make("text_cnn"), one, made.validation)


def test_embeddings_from_every_source(tmp_path: Path) -> None:
    vectors = {"great": [1.0, 2.0], "dull": [-1.0, 0.5], "film": [0.0, 3.0]}
    lines = "".join(f"{w} {v[0]} {v[1]}\n" for w, v in vectors.items())
    (tmp_path / "v.txt").write_text(lines)
    (tmp_path / "v.vec").write_text(f"3 2\n{lines}")
    np.savez(
        tmp_path / "v.npz", words=np.array(list(vectors)), vectors=np.array(list(vectors.values()))
    )
    with (tmp_path / "v.bin").open("wb") as file:
        file.write(b"3 2\n")
        for word, vector in vectors.items():
            file.write(word.encode() + b" " + struct.pack("<2f", *vector) + b"\n")
    for name in ("v.txt", "v.vec", "v.npz", "v.bin"):
        found = dict(vectors_for(str(tmp_path / name), {"great", "film", "other"}))
        assert {w: v.tolist() for w, v in found.items()} == {
            "great": vectors["great"],
            "film": vectors["film"],
        }, name


@pytest.mark.parametrize(
    ("name", "content", "says"),
    [
        ("v.txt", b"great 1 2\ndull 1\n", "line 2: expected 2 finite numbers"),
        ("v.txt", b"great 1 x\n", "expected a word and numbers"),
        ("v.bin", b"not counts\n", "two counts"),
        ("v.bin", b"3 2\ngreat " + struct.pack("<2f", 1, 2), "ends early"),
        ("v.npz", b"nonsense", "expected"),
    ],
)
def test_broken_embeddings_are_told(tmp_path: Path, name: str, content: bytes, says: str) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(ModelError, match=says):
        dict(vectors_for(str(tmp_path / name), {"great", "dull"}))


def test_embeddings_with_objects_are_not_unpickled(tmp_path: Path) -> None:
    np.savez(tmp_path / "v.npz", words=np.array(["a", None], dtype=object), vectors=np.eye(2))
    with pytest.raises(ModelError, match="expected"):
        dict(vectors_for(str(tmp_path / "v.npz"), {"a"}))


def test_packaged_glove_is_found() -> None:
    found = dict(vectors_for("glove", {"film", "nosuchwordhere"}))
    assert list(found) == ["film"]
    assert found["film"].shape == (50,)


def test_shared_vectors_are_readable() -> None:
    path = SHARED / "vectors" / "glove6B_100d_subset_f16.npz"
    if not path.exists():
        pytest.skip("the shared data is not here")
    found = dict(vectors_for(str(path), {"film"}))
    assert found["film"].shape == (100,)


def test_frozen_embeddings_stay(made: Splits) -> None:
    architecture = architectures.make("text_cnn(embeddings=glove, tuned=False, filters=4)")
    started: Any = architecture.start(made.train, seed=0)
    before = started.embedding.weight.clone()
    trained = train(
        architecture, made.train.select(range(60)), made.validation, training=Training(epochs=1)
    ).model
    common = [w for w in trained.vocabulary.words if w in started.vocabulary.words][:20]
    for word in common:
        a = before[started.vocabulary.row(word)]
        assert torch.equal(
            a, trained.embedding.weight[trained.vocabulary.row(word)]
        ) or word not in dict(vectors_for("glove", {word}))


def test_records_are_plain_json(cnn: Any, tmp_path: Path) -> None:
    save_model(cnn, cnn.architecture, tmp_path, record={"data": {"name": "made"}})
    record = json.loads((tmp_path / "veracity.json").read_text())
    assert record["labels"] == ["negative", "positive"]
    assert record["architecture"] == cnn.architecture.spec


# ---- convolutions ------------------------------------------------------------------------------


def literal_rows(network: ConvolutionNetwork, settings: TextCnn, values: torch.Tensor) -> Any:
    """Every window of every width of one text, word by word; (rows, filters) per width."""
    words_seen = values[: settings.length] if settings.length else values
    size = values.shape[1]
    found = []
    for width, convolution in zip(settings.widths, network.convolutions, strict=True):
        weight: Any = convolution.weight
        bias: Any = convolution.bias
        length: Any = settings.length or 0
        if settings.padding == "same":
            rows, before = max(len(words_seen), length, 1), (width - 1) // 2
        else:
            rows, before = max(len(words_seen), max(settings.widths), length) - width + 1, 0
        lines = []
        for row in range(rows):
            total = bias.clone()
            for offset in range(width):
                place = row - before + offset
                inside = 0 <= place < len(words_seen)
                word = words_seen[place] if inside else torch.zeros(size)
                total = total + weight[:, :, offset] @ word
            lines.append(torch.relu(total))
        found.append(torch.stack(lines))
    return found


CONVOLUTIONS = [
    TextCnn(widths=(3, 4, 5), filters=4),
    TextCnn(widths=(2, 3), filters=3, hidden=6, length=4),
    TextCnn(widths=(1, 5), filters=2, length=3),
    TextCnn(widths=(2, 3, 4, 5), filters=3, padding="same"),
    TextCnn(widths=(4, 2), filters=3, padding="same", length=6, sigmoid=True),
    TextCnn(widths=(7,), filters=3, padding="same", length=2, hidden=4),
]


@pytest.mark.parametrize("settings", CONVOLUTIONS, ids=lambda s: s.spec)
def test_convolutions_are_their_definition_whatever_the_padding(settings: TextCnn) -> None:
    torch.manual_seed(3)
    network = ConvolutionNetwork(settings, size=5, n_labels=2).eval()
    lengths = [1, 2, 3, 5, 9, 4]
    values = torch.randn(len(lengths), 12, 5)  # what stands behind a text is not zero
    present = torch.arange(12) < torch.tensor(lengths).unsqueeze(1)
    with torch.no_grad():
        together = network(values, present)
        for i, n in enumerate(lengths):
            rows = literal_rows(network, settings, values[i, :n])
            pooled = torch.cat([r.max(dim=0).values for r in rows])
            hidden = torch.relu(network.dense(pooled)) if network.dense else pooled
            logits = network.head(hidden)
            if settings.sigmoid:
                logits = torch.cat([-logits / 2, logits / 2])
            assert together[i].numpy() == pytest.approx(logits.numpy(), abs=1e-5)
            for found, expected in zip(network.feature_maps(values, present), rows, strict=True):
                assert found.present[i].sum() == len(expected)
                own, rest = found.values[i, : len(expected)], found.values[i, len(expected) :]
                assert own.numpy() == pytest.approx(expected.numpy(), abs=1e-5)
                assert not rest.any()


@pytest.mark.parametrize("settings", CONVOLUTIONS, ids=lambda s: s.spec)
def test_feature_maps_lead_to_the_same_logits(settings: TextCnn, made: Splits) -> None:
    model: Any = dataclasses.replace(settings, size=6).start(made.train, seed=0).eval()
    texts = [e.input for e in made.test.examples[:9]] + [words("great"), Text("", ())]
    with torch.no_grad():
        embedded = model.embed(texts)
        maps = model.feature_maps(embedded)
        assert torch.equal(model.logits_of_maps(maps), model.logits(embedded))
    assert [m.layout.width for m in maps] == list(settings.widths)
    assert all(
        m.layout.cell_per_feature == (settings.padding == "same" or m.layout.width == 1)
        for m in maps
    )
    seen = [min(t.n_features, model.architecture.length or t.n_features) for t in texts]
    assert embedded.feature.sum(dim=1).tolist() == seen


def test_words_behind_the_length_play_no_part() -> None:
    made = Dataset(
        "d", ("a", "b"), tuple(Example(str(i), words(t), i % 2) for i, t in enumerate(("x y", "z")))
    )
    model: Any = TextCnn(size=4, filters=2, length=3).start(made, seed=0)
    one, other = model.probabilities([words("x y z y x"), words("x y z")])
    assert np.array_equal(one, other)
    assert not np.array_equal(one, model.probabilities([words("x y x")])[0])


def test_the_mean_length_becomes_a_number_and_stays_one(made: Splits, tmp_path: Path) -> None:
    asked = architectures.make("idc_cnn(size=8, filters=2)")
    model: Any = asked.start(made.train, seed=0)
    mean = np.mean([e.input.n_features for e in made.train])
    assert model.architecture.length == round(mean)
    save_model(model, asked, tmp_path / "m", record={})
    loaded: Any = load_model(tmp_path / "m")
    assert loaded.architecture == model.architecture
    assert loaded.identity() == model.identity()
    with pytest.raises(ValueError, match="once a model is trained"):
        ConvolutionNetwork(TextCnn(length="mean"), 4, 2)


def test_the_papers_convolutions_are_as_they_say() -> None:
    hge: Any = architectures.make("hge_cnn")
    assert (hge.widths, hge.filters, hge.hidden, hge.length) == ((2, 3, 4), 50, 150, 150)
    assert (hge.embeddings, hge.tuned, hge.padding) == ("glove", False, "valid")
    assert (hge.training.batch_size, hge.training.patience, hge.training.epochs) == (2048, 3, 100)
    idc: Any = architectures.make("idc_cnn")
    assert (idc.widths, idc.filters, idc.padding, idc.size) == ((3, 4, 5), 50, "same", 128)
    assert (idc.embeddings, idc.tuned, idc.dropout) == ("random", True, 0.5)
    assert (idc.training.batch_size, idc.training.epochs) == (32, 10)


@pytest.mark.parametrize(
    ("spec", "says"),
    [
        ("text_cnn(length=0)", "a length of 1 to"),
        ("text_cnn(length=median)", "length to be int or mean or None"),
        ("text_cnn(hidden=-1)", "0 hidden units"),
        ("text_cnn(widths=())", "at least one word"),
        ("text_cnn(padding=full)", "padding to be valid or same"),
    ],
)
def test_impossible_convolutions_are_told(spec: str, says: str) -> None:
    with pytest.raises(PluginError, match=says):
        architectures.make(spec)
