"""SentiBERT: learnt from a treebank, kept and published as files, and under a classifier."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

from commands import run_command
from conftest import SHARED, small_encoder
from test_trees import needs_sst
from veracity.core.errors import DataError, ModelError, PluginError, RunError
from veracity.core.examples import Dataset
from veracity.data.loading import load_data
from veracity.data.splits import split
from veracity.data.trees import balanced, read_tree, right_branching
from veracity.data.words import read_text
from veracity.explainers import explainers
from veracity.models.architectures import architectures
from veracity.models.contextual import ContextualText
from veracity.models.loading import load_model, save_model
from veracity.models.phrase_pretraining import (
    RECORD,
    Treebank,
    levels,
    new_sentibert,
    other_trees,
    pretrain_sentibert,
)
from veracity.models.pretraining import EncoderTraining
from veracity.models.sentibert import SentiBert, read_sentibert
from veracity.models.training import train
from veracity.models.word_vectors import word_vectors
from veracity.testing import check_classifier, check_explainer

METHODS = (
    "lime(samples=40)",
    "shap(samples=40)",
    "integrated_gradients",
    "input_x_gradient",
    "lrp",
    "deep_lift",
    "grad_cam_text",
)
"""Some of each family: what hides words, what follows gradients, filters and relevance."""

QUICK = EncoderTraining(epochs=12, learning_rate=1e-3, batch_size=16, longest=32)
TEXTS = [read_text(x) for x in ("the film is not bad", "good", "a lovely plot , dull acting")]


NOUNS, VERBS, DEGREES = ("film", "plot", "end"), ("is", "was"), ("so", "very", "quite", "a bit")
FEELINGS = {"good": 2, "great": 2, "fine": 2, "bad": 0, "dull": 0}


def made_trees() -> list[str]:
    """All sentences of a little language, with a label for every phrase: `not` turns what
    follows."""
    lines = []
    for noun, verb, degree, (word, label) in product(NOUNS, VERBS, DEGREES, FEELINGS.items()):
        parts = " ".join(f"(1 {part})" for part in degree.split())
        phrase = f"({label} {parts} ({label} {word}))"
        for turned in (False, True):
            here = 2 - label if turned else label
            inside = f"({here} (1 not) {phrase})" if turned else phrase
            lines.append(f"({here} (1 (1 the) (1 {noun})) ({here} (1 {verb}) {inside}))")
    return lines


@pytest.fixture(scope="module")
def encoder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("encoder") / "small"
    small_encoder(folder, more=(*FEELINGS, *" ".join(DEGREES).split(), *NOUNS, *VERBS, "not"))
    return folder


@pytest.fixture(scope="module")
def bank(tmp_path_factory: pytest.TempPathFactory) -> Dataset:
    file = tmp_path_factory.mktemp("bank") / "little.txt"
    file.write_text("\n".join(made_trees()))
    return load_data(file)


def published(model: SentiBert, folder: Path, *, pickled: bool = False, head: bool = True) -> Path:
    """What the authors' own code writes: all weights of their pre-training model by name, also
    those that it never uses, a configuration that does not say of what, and a vocabulary."""
    folder.mkdir()
    model.save(folder / "ours")
    weights = load_file(folder / "ours" / "model.safetensors")
    size = model.phrases.encoder.size
    for name in ("bahdanau_attention", "bahdanau_attention_3"):
        for part in ("linear_encoder", "linear_decoder"):
            weights[f"bert.{name}.{part}.weight"] = torch.randn(size, size)
            weights[f"bert.{name}.{part}.bias"] = torch.randn(size)
    weights["bert.pooler_phrase.dense.weight"] = torch.randn(size, size)
    weights["cls.seq_relationship.weight"] = torch.randn(2, size)
    weights["cls.predictions.bias"] = torch.randn(7)
    if not head:
        weights = {k: v for k, v in weights.items() if not k.startswith("cls.")}
    old = {k.replace("LayerNorm.weight", "LayerNorm.gamma"): v for k, v in weights.items()}
    if pickled:
        torch.save(old, folder / "sstphrase.bin")
    else:
        save_file(old, folder / "sstphrase.safetensors")
    config = json.loads((folder / "ours" / "config.json").read_text())
    kept = ["vocab_size", "hidden_size", "num_hidden_layers", "num_attention_heads"]
    kept += ["intermediate_size", "hidden_act", "max_position_embeddings", "type_vocab_size"]
    (folder / "sstphrase.json").write_text(json.dumps({k: config[k] for k in kept}))
    vocabulary = model.phrases.encoder.reader.tokenizer.get_vocab()
    lines = [f"[unused{i}]" for i in range(max(vocabulary.values()) + 1)]
    for piece, number in vocabulary.items():
        lines[number] = piece
    (folder / "vocab.txt").write_text("\n".join(lines))
    for file in (folder / "ours").iterdir():
        file.unlink()
    (folder / "ours").rmdir()
    return folder


def answers(model: SentiBert) -> list[torch.Tensor]:
    trees = [balanced(TEXTS[0].words), balanced(TEXTS[1].words), right_branching(TEXTS[2].words)]
    with torch.inference_mode():
        found = model(TEXTS, trees)
    return [row[: len(tree.phrases)] for row, tree in zip(found, trees, strict=True)]


def same(one: SentiBert, other: SentiBert) -> bool:
    pairs = zip(answers(one), answers(other), strict=True)
    return all(torch.equal(a, b) for a, b in pairs)


# ---- files ------------------------------------------------------------------------------------


@pytest.mark.parametrize("pickled", [False, True])
def test_the_published_layout_is_read(tmp_path: Path, encoder: Path, pickled: bool) -> None:
    model = new_sentibert(str(encoder), 5, longest=32).eval()
    folder = published(model, tmp_path / "released", pickled=pickled)
    again = read_sentibert(folder, longest=32, pickled=pickled)
    assert same(model, again)
    # and what is written here is laid out so
    again.save(tmp_path / "ours")
    assert same(read_sentibert(tmp_path / "ours", longest=32), model)


def test_pickled_weights_are_read_only_if_asked_and_only_as_tensors(
    tmp_path: Path, encoder: Path
) -> None:
    model = new_sentibert(str(encoder), 5, longest=32)
    folder = published(model, tmp_path / "released", pickled=True)
    with pytest.raises(ModelError, match="If you trust it, say pickled=true"):
        read_sentibert(folder, longest=32)

    class Harmful:
        def __reduce__(self) -> tuple[Any, ...]:
            return (Path(tmp_path / "harm").touch, ())

    torch.save({"bert.trans.weight": Harmful()}, folder / "sstphrase.bin")
    with pytest.raises(ModelError, match="to hold pickled tensors by name and nothing else"):
        read_sentibert(folder, longest=32, pickled=True)
    assert not (tmp_path / "harm").exists()
    torch.save([1, 2], folder / "sstphrase.bin")
    with pytest.raises(ModelError, match="to hold tensors by name, got list"):
        read_sentibert(folder, longest=32, pickled=True)


def test_phrases_need_no_weights_for_labels(tmp_path: Path, encoder: Path) -> None:
    model = new_sentibert(str(encoder), 5, longest=32).eval()
    again = read_sentibert(published(model, tmp_path / "released", head=False), longest=32)
    trees = [balanced(text.words) for text in TEXTS]
    with torch.inference_mode():
        one, other = model.phrases(TEXTS, trees), again.phrases(TEXTS, trees)
    assert torch.equal(one.phrases, other.phrases)


def test_what_is_wrong_with_a_folder_is_one_sentence(tmp_path: Path, encoder: Path) -> None:
    def folder(name: str) -> Path:
        return published(new_sentibert(str(encoder), 5, longest=32), tmp_path / name)

    def refused(where: Path) -> str:
        with pytest.raises(ModelError) as caught:
            read_sentibert(where, longest=32)
        assert len(str(caught.value)) < 400
        return str(caught.value)

    assert "is not there" in refused(tmp_path / "none")
    assert "found none" in refused(tmp_path)
    lacking = folder("lacking")
    weights = load_file(lacking / "sstphrase.safetensors")
    file = lacking / "sstphrase.safetensors"
    save_file({k: v for k, v in weights.items() if "trans_2" not in k}, file)
    assert "bert.trans_2.weight to have the shape" in refused(lacking)
    save_file(weights | {"bert.trans.weight": torch.zeros(3, 3)}, file)
    assert "got the shape (3, 3)" in refused(lacking)
    file.write_bytes(b"broken")
    assert "to hold a SentiBERT network" in refused(lacking)
    unsaid = folder("unsaid")
    (unsaid / "sstphrase.json").unlink()
    assert "there is no configuration" in refused(unsaid)
    endless = folder("endless")
    content = json.loads((endless / "sstphrase.json").read_text()) | {"num_hidden_layers": 10**9}
    (endless / "sstphrase.json").write_text(json.dumps(content))
    assert "num_hidden_layers" in refused(endless)
    two = folder("two")
    save_file(weights, two / "other.safetensors")
    assert "expected one file of weights" in refused(two)


# ---- pretraining ------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def learnt(
    bank: Dataset, encoder: Path, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Path, dict[str, Any]]:
    out = tmp_path_factory.mktemp("learnt") / "network"
    done = pretrain_sentibert(str(encoder), bank, out=out, against="right", training=QUICK)
    return out, dict(done.record)


def test_labels_of_phrases_are_learnt(learnt: tuple[Path, dict[str, Any]]) -> None:
    out, record = learnt
    assert json.loads((out / RECORD).read_text())["test"] == record["test"]
    phrases, roots = record["test"]["phrases"], record["test"]["roots"]
    assert phrases["accuracy"] > phrases["majority"] + 0.2
    assert roots["accuracy"] > roots["majority"] + 0.2
    losses = [epoch["loss"] for epoch in record["history"]]
    assert losses[-1] < losses[0] / 2
    other = record["other_trees"]
    assert 0 < other["bracket_f1"] < 1
    assert other["roots"]["nodes"] == roots["nodes"]
    assert other["roots"]["own_trees"] == roots["accuracy"]
    assert not (out / "checkpoint").exists()


def test_a_level_counts_its_own_nodes(bank: Dataset, learnt: tuple[Path, dict[str, Any]]) -> None:
    out, record = learnt
    model, known = read_sentibert(out, longest=32), Treebank.of(bank, seed=0)
    found = levels(model, known, known.parts.test)
    assert found["roots"].nodes == len(known.parts.test)
    assert found["phrases"].nodes == sum(
        n.parts is not None and n.label is not None
        for e in known.parts.test
        for n in read_tree(e.facts["tree"]).nodes
    )
    assert found["phrases"].accuracy == record["test"]["phrases"]["accuracy"]
    # a text's own trees are as far from themselves as nothing
    assert other_trees(model, known, known.parts.test, "right") == record["other_trees"]


def test_the_same_seed_learns_the_same_and_goes_on(
    bank: Dataset, encoder: Path, tmp_path: Path
) -> None:
    few = bank.select(range(80))
    settings = EncoderTraining(epochs=2, learning_rate=1e-3, longest=32, seed=3)
    whole = pretrain_sentibert(str(encoder), few, training=settings)

    def stop(progress: Any) -> None:
        if getattr(progress, "epoch", 0) == 1:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        pretrain_sentibert(str(encoder), few, out=tmp_path / "out", training=settings, watch=stop)
    again = pretrain_sentibert(str(encoder), few, out=tmp_path / "out", training=settings)
    assert same(whole.model, again.model)
    assert [e.loss for e in again.history] == [e.loss for e in whole.history]
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "letter.txt").write_text("dear")
    with pytest.raises(RunError, match="it holds other files"):
        pretrain_sentibert(str(encoder), few, out=tmp_path / "mine")


def test_texts_without_trees_teach_nothing(encoder: Path, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"expected every text of .* to have a tree with labels"):
        pretrain_sentibert(str(encoder), load_data("made_reviews(n=20)"))
    file = tmp_path / "plain.jsonl"
    file.write_text('{"tree": "(S (NP good) (VP film))", "label": "1"}\n' * 5)
    with pytest.raises(DataError, match="at least two labels"):
        pretrain_sentibert(str(encoder), load_data(file))


@needs_sst
def test_the_treebank_itself_can_be_learnt_from(encoder: Path) -> None:
    data = load_data(SHARED / "sst" / "sst5.trees.dev.txt.gz", limit=60)
    done = pretrain_sentibert(str(encoder), data, training=EncoderTraining(epochs=1, longest=32))
    assert done.record["labels"] == 5
    assert 0 <= done.record["test"]["phrases"]["accuracy"] <= 1


# ---- the command ------------------------------------------------------------------------------


def test_the_command_learns_and_reports_each_level(
    bank: Dataset, encoder: Path, tmp_path: Path
) -> None:
    (tmp_path / "little.txt").write_text("\n".join(e.facts["tree"] for e in bank))

    def run(*arguments: str) -> Any:
        return run_command("pretrain", *arguments, cwd=tmp_path)

    asked = (f"sentibert(encoder='{encoder}')", "little.txt", "--epochs", "2", "--limit", "100")
    done = run(*asked, "--out", "n", "--against", "balanced")
    assert done.returncode == 0, done.stderr
    for said in ("phrases: ", "roots: ", "the most frequent one would be", "bracket F1"):
        assert said in done.stderr
    assert json.loads((tmp_path / "n" / RECORD).read_text())["best"] in (0, 1)
    for arguments, why in (
        ((*asked, "--out", "n"), "holds a pretrained network already"),
        ((*asked, "--mine", "--out", "m"), "--lexicon and --mine are for encoders"),
        ((str(encoder), "little.txt", "--against", "spacy", "--out", "m"), "--against is for"),
        ((*asked[:2], "--out", "m", "--learning-rate", "0"), "expected a learning rate above 0"),
    ):
        refused = run(*arguments)
        assert refused.returncode == 2 and why in refused.stderr, refused.stderr


# ---- under a classifier -----------------------------------------------------------------------


@pytest.fixture(scope="module")
def reviews() -> Dataset:
    return load_data("made_reviews(n=120)")


@pytest.mark.parametrize("tuned", [False, True])
@pytest.mark.parametrize("base", ["text_cnn(widths=(2, 3), filters=8", "lstm(hidden=8"])
def test_a_classifier_reads_its_vectors(
    base: str, tuned: bool, learnt: tuple[Path, dict[str, Any]], reviews: Dataset, tmp_path: Path
) -> None:
    out, _ = learnt
    source = f"sentibert(encoder='{out}', trees=balanced, longest=32)"
    spec = f"{base}, embeddings={source}, tuned={str(tuned).lower()})"
    parts = split(reviews)
    architecture: Any = architectures.make(spec)
    training = replace(architecture.training, epochs=1, batch_size=16)
    model = train(architecture, parts.train, parts.validation, training=training).model
    before = read_sentibert(out, longest=32).phrases.state_dict()
    after = model.encoder.phrases.state_dict()
    moved = [k for k in after if not torch.equal(before[k], after[k]) and "pooler" not in k]
    assert bool(moved) == tuned
    assert not tuned or any("composition" in k for k in moved)
    texts = [e.input for e in parts.test]
    whole = model.probabilities(texts)
    alone = np.concatenate([model.probabilities([text]) for text in texts[::-1]])[::-1]
    np.testing.assert_allclose(whole, alone, atol=1e-6)
    other = replace(architecture, embeddings=source.replace("balanced", "right"))
    assert ContextualText(other, model.labels, model.encoder, model.network).identity() != (
        model.identity()
    )
    save_model(model, architecture, tmp_path / "kept", record={})
    np.testing.assert_array_equal(load_model(str(tmp_path / "kept")).probabilities(texts), whole)


@pytest.fixture(scope="module")
def classifier(learnt: tuple[Path, dict[str, Any]], reviews: Dataset) -> Any:
    source = f"sentibert(encoder='{learnt[0]}', trees=right, longest=64)"
    architecture = architectures.make(f"text_cnn(filters=8, embeddings={source}, tuned=false)")
    training = replace(architecture.training, epochs=3, batch_size=16, learning_rate=5e-3)
    parts = split(reviews)
    return train(architecture, parts.train, parts.validation, training=training).model


def test_the_classifier_keeps_its_promises(classifier: Any) -> None:
    check_classifier(classifier)


@pytest.mark.filterwarnings("ignore:integrated_gradients")  # its answer hardly moves on the path
@pytest.mark.filterwarnings("ignore:deep_lift")
@pytest.mark.parametrize("method", METHODS)
def test_methods_keep_their_promises_on_it(method: str, classifier: Any, reviews: Dataset) -> None:
    texts = [e.input for e in reviews.examples[:4]]
    check_explainer(explainers.make(method), classifier, texts)


def test_phrases_stand_beside_words(learnt: tuple[Path, dict[str, Any]]) -> None:
    """By hand: the mean of a word's pieces, then the smallest phrase around it."""
    out, _ = learnt
    both, words, phrases = (
        word_vectors.make(
            f"sentibert(encoder='{out}', trees=right, parts={parts}, longest=32)"
        ).open()
        for parts in ("both", "words", "phrases")
    )
    assert (both.size, words.size, phrases.size) == (64, 32, 32)
    network = read_sentibert(out, longest=32).phrases
    text = TEXTS[0]
    tree = right_branching(text.words)
    with torch.inference_mode():
        found = both([text])[0]
        composed = network([text], [tree])
    (alignment,) = composed.alignments
    for word in range(text.n_features):
        own = composed.pieces[0, alignment.piece[alignment.word == word]].mean(dim=0)
        torch.testing.assert_close(found[word, :32], own, atol=1e-6, rtol=0)
        # right-branching: each phrase begins with its word; the last two share one
        row = min(word, text.n_features - 2)
        torch.testing.assert_close(found[word, 32:], composed.phrases[0, row], atol=1e-6, rtol=0)
    with torch.inference_mode():
        assert torch.equal(words([text])[0], found[:, :32])
        assert torch.equal(phrases([text])[0], found[:, 32:])


def test_words_behind_the_limit_have_no_vector(learnt: tuple[Path, dict[str, Any]]) -> None:
    out, _ = learnt
    source = word_vectors.make(f"sentibert(encoder='{out}', trees=right, longest=8)").open()
    text = read_text("the film is not so good and the end is bad")
    read = source.words_read(text)
    assert 3 <= read < text.n_features
    with torch.inference_mode():
        found = source([text, TEXTS[0]])
    assert found[0, :read].abs().sum(dim=1).min() > 0
    assert found[0, read:].abs().sum() == 0


def test_settings_that_cannot_be_are_told(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="sentibert needs the folder of a network"):
        word_vectors.make("sentibert").open()
    with pytest.raises(PluginError, match="longest to be 3 pieces or more"):
        word_vectors.make("sentibert(longest=1)")
    with pytest.raises(PluginError, match="expected a source of trees"):
        word_vectors.make("sentibert(trees=())")
