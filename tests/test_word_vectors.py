"""Vectors of words that hang on the words around: encoders under text networks."""

from __future__ import annotations

import pickle
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from test_elmo import published
from veracity import explainers as methods
from veracity.auditing.explaining import attributions
from veracity.core.classifiers import Differentiable, Maskable, Truncating
from veracity.core.errors import ModelError, PluginError
from veracity.core.inputs import MASK_WORD, FloatArray, Hiding, Text
from veracity.core.plugins import parse_spec
from veracity.data.splits import Splits
from veracity.data.words import read_text
from veracity.engine.inference import masked_probabilities, probabilities
from veracity.models.architectures import architectures
from veracity.models.contextual import ContextualText
from veracity.models.loading import load_model, save_model
from veracity.models.phrase_pretraining import new_sentibert
from veracity.models.training import train
from veracity.models.word_vectors import word_vectors
from veracity.testing import check_architecture, check_classifier, check_explainer, check_plugin

NETWORKS = {
    "text_cnn": "filters=6, widths=(1, 2)",
    "lstm": "hidden=6",
    "attention_lstm": "hidden=5, attention=4",
}
SOURCES = ("bert", "elmo", "sentibert")
TEXTS = [
    "the film was great , but the plot was dull",
    "dull",
    "",
    "a won the er plot ! (great)",
    "好电影 great",
]


@pytest.fixture(scope="session")
def elmo_folder(once: Any) -> Path:
    found: Path = once.path("elmo", published)
    return found


@pytest.fixture(scope="session")
def sentibert_folder(encoder_folder: Path, once: Any) -> Path:
    def make(folder: Path) -> None:
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(0)
            new_sentibert(str(encoder_folder), 5, longest=64).save(folder)

    found: Path = once.path("sentibert", make)
    return found


@pytest.fixture(scope="session")
def sources(encoder_folder: Path, elmo_folder: Path, sentibert_folder: Path) -> dict[str, str]:
    return {
        "sentibert": f"sentibert(encoder={str(sentibert_folder)!r}, trees=balanced)",
        "bert": f"bert(encoder={str(encoder_folder)!r})",
        "elmo": f"elmo(encoder={str(elmo_folder)!r})",
    }


def model_of(source: str, network: str = "text_cnn", more: str = "", seed: int = 0) -> Any:
    """An untrained network over a source's vectors."""
    spec = f"{network}(embeddings={source}, {NETWORKS[network]}{more})"
    from veracity.testing import small_data

    return architectures.make(spec).start(small_data(), seed=seed).eval()


@pytest.mark.parametrize(
    ("network", "name", "tuned"),
    [
        ("text_cnn", "bert", True),
        ("lstm", "elmo", True),
        ("attention_lstm", "bert", False),
        ("text_cnn", "sentibert", False),
        ("lstm", "sentibert", True),
    ],
)
def test_they_keep_the_promises_of_architectures(
    network: str, name: str, tuned: bool, sources: dict[str, str]
) -> None:
    spec = f"{network}(embeddings={sources[name]}, {NETWORKS[network]}, tuned={tuned})"
    check_architecture(architectures.make(spec))


@pytest.mark.parametrize("name", word_vectors.names())
def test_sources_are_what_their_files_say(name: str, sources: dict[str, str]) -> None:
    if name in sources:
        check_plugin(word_vectors.make(sources[name]))
    assert word_vectors.get(name).plugin_name() == name


def last_layer(folder: Path, text: str) -> tuple[FloatArray, list[int | None]]:
    """The encoder asked as transformers documents it; which word each piece belongs to."""
    import transformers

    tokenizer: Any = transformers.AutoTokenizer.from_pretrained(folder)
    model: Any = transformers.AutoModel.from_pretrained(folder).eval()
    read = tokenizer(text.split(" "), is_split_into_words=True, return_tensors="pt")
    with torch.no_grad():
        found = model(**read).last_hidden_state[0].double().numpy()
    return found, read.word_ids(0)


def test_a_words_vector_is_the_mean_of_its_pieces(encoder_folder: Path) -> None:
    text = "the wonderer was greating dull"
    pieces, words = last_layer(encoder_folder, text)
    assert words.count(1) > 2  # a word of several pieces
    model = model_of(f"bert(encoder={str(encoder_folder)!r})")
    with torch.no_grad():
        (values,) = model.embed([Text.of_words(text.split(" "))]).values.double().numpy()
    for word in range(5):
        own = pieces[[i for i, w in enumerate(words) if w == word]]
        np.testing.assert_allclose(values[word], own.mean(axis=0), atol=1e-5)


def test_a_word_has_another_vector_in_another_text(sources: dict[str, str]) -> None:
    for source in sources.values():
        model = model_of(source)
        a, b = (read_text(t) for t in ("the film was dull", "the film was great"))
        with torch.no_grad():
            one, other = model.embed([a, b]).values
        assert not torch.allclose(one[0], other[0], atol=1e-4)


@pytest.mark.parametrize("name", SOURCES)
@pytest.mark.parametrize("network", NETWORKS)
def test_answers_hang_on_neither_company_nor_order(
    name: str, network: str, sources: dict[str, str]
) -> None:
    model = model_of(sources[name], network)
    texts = [read_text(t) for t in (*TEXTS, "great " * 50)]
    together = model.probabilities(texts)
    backwards = model.probabilities(texts[::-1])[::-1]
    alone = np.concatenate([model.probabilities([t]) for t in texts])
    assert np.abs(together - alone).max() < 1e-6
    assert np.abs(together - backwards).max() < 1e-6
    assert np.ptp(together[:, 0]) > 1e-3
    check_classifier(model)


def test_only_tables_have_short_cuts_for_masking(sources: dict[str, str]) -> None:
    """A hidden word changes the vectors of all others: nothing can be reused."""
    assert not isinstance(model_of(sources["bert"]), Maskable)
    assert isinstance(model_of("random"), Maskable)


@pytest.mark.parametrize("name", SOURCES)
def test_hidden_words_are_hidden_from_the_encoder(name: str, sources: dict[str, str]) -> None:
    model = model_of(sources[name])
    text = read_text("the film was dull")
    shown = np.array([[True, True, True, False], [False] * 4, [True] * 4])
    by = {
        how: masked_probabilities(model, [text], [shown], how)[0]
        for how in (Hiding.DELETE, Hiding.PAD, Hiding.MASK)
    }
    (shorter, whole, unknown, masked) = (
        model.probabilities([t])[0]
        for t in (
            read_text("the film was"),
            text,
            Text.of_words([MASK_WORD]),
            Text.of_words(["the", "film", "was", MASK_WORD]),
        )
    )
    for answers in by.values():
        np.testing.assert_allclose(answers[2], whole, atol=1e-6)
    np.testing.assert_allclose(by[Hiding.DELETE][0], shorter, atol=1e-6)
    np.testing.assert_allclose(by[Hiding.DELETE][1], unknown, atol=1e-6)
    np.testing.assert_allclose(by[Hiding.MASK][0], masked, atol=1e-6)
    # padded away: the encoder reads the text without it, and a zero stands in its place
    padded = text.keep(shown[0], Hiding.PAD)
    with torch.no_grad():
        gone, without = model.embed([padded]), model.embed([read_text("the film was")])
    assert gone.values.shape[1] == 4
    assert torch.allclose(gone.values[0, :3], without.values[0], atol=1e-6)
    assert not gone.values[0, 3].any()
    assert gone.present.all()


def test_a_masked_word_is_the_encoders_own_mask(encoder_folder: Path) -> None:
    model = model_of(f"bert(encoder={str(encoder_folder)!r})")
    pieces, _ = last_layer(encoder_folder, "the [MASK] dull")
    with torch.no_grad():
        (values,) = model.embed([Text.of_words(["the", MASK_WORD, "dull"])]).values.double()
    np.testing.assert_allclose(values.numpy(), pieces[1:-1], atol=1e-5)


def test_words_behind_the_limit_decide_nothing(encoder_folder: Path) -> None:
    source = f"bert(encoder={str(encoder_folder)!r}, longest=6)"
    for network in NETWORKS:
        model = model_of(source, network)
        assert isinstance(model, Truncating)
        long, cut = read_text("the film was great dull dull"), read_text("the film was great")
        assert model.features_read([long, cut, read_text("")]) == [4, 4, 0]
        (a, b) = model.probabilities([long, cut])
        np.testing.assert_allclose(a, b, atol=1e-6)
        method = methods.explainers.make("integrated_gradients")
        (one,) = attributions(method, model, [long], [1], ["long"], 0)
        assert (one.scores[4:] == 0).all()
        assert one.scores[:4].any()
    shorter = model_of(source, "text_cnn", ", length=3")
    assert shorter.features_read([long]) == [3]


GRADIENTS = [
    name
    for name in methods.explainers.names()
    if Differentiable in methods.explainers.get(name).needs.__mro__ and name != "decision_tree"
]


@pytest.mark.parametrize("method", GRADIENTS)
def test_gradients_explain_what_the_model_answers(method: str, sources: dict[str, str]) -> None:
    """Every method of gradients keeps its promises; a convolution has all that they ask for."""
    explainer = methods.explainers.make(method)
    check_explainer(explainer, model_of(sources["bert"]), [read_text(t) for t in TEXTS])


@pytest.mark.parametrize("network", ["lstm", "attention_lstm"])
def test_gradients_go_through_recurrent_networks(network: str, sources: dict[str, str]) -> None:
    explainer = methods.explainers.make("integrated_gradients(steps=8)")
    check_explainer(explainer, model_of(sources["elmo"], network), [read_text(t) for t in TEXTS])


def trained(spec: str, made: Splits, out: Path | None = None, epochs: int = 3) -> Any:
    architecture = architectures.make(spec)
    training = replace(architecture.usual_training, epochs=epochs, batch_size=16)
    part = made.train.select(range(60))
    return train(architecture, part, part, training=training, checkpoint=out)


@pytest.mark.parametrize("tuned", [True, False])
@pytest.mark.parametrize("name", SOURCES)
def test_only_what_is_tuned_moves_and_models_are_saved_whole(
    name: str, tuned: bool, sources: dict[str, str], made: Splits, tmp_path: Path
) -> None:
    spec = f"text_cnn(embeddings={sources[name]}, {NETWORKS['text_cnn']}, tuned={tuned})"
    before = architectures.make(spec).start(made.train, seed=0).encoder.state_dict()
    model: ContextualText = trained(spec, made).model
    moved = {k for k, v in model.encoder.state_dict().items() if not torch.equal(v, before[k])}
    assert bool(moved) is tuned
    save_model(model, model.architecture, tmp_path / "model", record={})
    here = tmp_path / "elsewhere"
    (tmp_path / "model").rename(here)
    loaded: Any = load_model(here)
    texts = [read_text(t) for t in TEXTS]
    assert np.array_equal(loaded.probabilities(texts), model.probabilities(texts))
    assert loaded.identity() == model.identity()
    assert [p.requires_grad for p in loaded.encoder.parameters()] == [tuned] * len(before)
    sent = pickle.loads(pickle.dumps(model))
    assert np.array_equal(sent.probabilities(texts), model.probabilities(texts))


@pytest.mark.parametrize(("name", "tuned"), [("bert", False), ("elmo", True), ("sentibert", True)])
def test_a_training_that_was_stopped_goes_on_as_if_it_had_not(
    name: str, tuned: bool, sources: dict[str, str], made: Splits, tmp_path: Path
) -> None:
    spec = f"lstm(embeddings={sources[name]}, hidden=6, tuned={tuned})"
    trained(spec, made, tmp_path, epochs=1)
    resumed, whole = trained(spec, made, tmp_path), trained(spec, made)
    assert [e.loss for e in resumed.history] == [e.loss for e in whole.history]
    assert resumed.model.identity() == whole.model.identity()


def test_each_fold_starts_from_the_encoder_as_it_came(
    sources: dict[str, str], made: Splits
) -> None:
    """Tuned on one fold, and begun anew for the next: nothing carries over (definitions 1.9)."""
    architecture = architectures.make(f"lstm(embeddings={sources['bert']}, hidden=6)")
    folds = [made.train.select(range(i, 120, 2)) for i in (0, 1)]
    before = [architecture.start(fold, seed=0).identity() for fold in folds]
    training = replace(architecture.usual_training, epochs=1)
    tuned = [train(architecture, f, f, training=training).model.identity() for f in folds]
    after = [architecture.start(fold, seed=0).identity() for fold in folds]
    assert len({*before, *after}) == 1
    assert len({*before, *tuned}) == 3


def test_a_model_needs_the_folder_of_its_encoder_no_longer(
    encoder_folder: Path, tmp_path: Path
) -> None:
    import shutil

    shutil.copytree(encoder_folder, tmp_path / "encoder")
    model = model_of(f"bert(encoder={str(tmp_path / 'encoder')!r})")
    save_model(model, model.architecture, tmp_path / "model", record={})
    shutil.rmtree(tmp_path / "encoder")
    texts = [read_text(t) for t in TEXTS]
    loaded = load_model(tmp_path / "model")
    assert np.array_equal(probabilities(loaded, texts), probabilities(model, texts))


@pytest.mark.parametrize("name", SOURCES)
def test_a_damaged_model_is_one_sentence(
    name: str, sources: dict[str, str], tmp_path: Path
) -> None:
    model = model_of(sources[name])
    files = {"bert": "config.json", "elmo": "options.json", "sentibert": "config.json"}
    for number, broken in enumerate(("{}", "[]", None)):
        folder = tmp_path / str(number)
        save_model(model, model.architecture, folder, record={})
        file = folder / "encoder" / files[name]
        file.unlink() if broken is None else file.write_text(broken)
        with pytest.raises(ModelError, match=r"damaged|not complete|expected"):
            load_model(folder)
    folder = tmp_path / "huge"
    save_model(model, model.architecture, folder, record={})
    file = folder / "encoder" / files[name]
    wide = ('"hidden_size": 32', "3200")
    key, other = {"bert": wide, "sentibert": wide, "elmo": ('"dim": 7', "7000")}[name]
    assert key in file.read_text()
    file.write_text(file.read_text().replace(key, key.split(":")[0] + f": {other}"))
    with pytest.raises(ModelError, match=r"damaged"):
        load_model(folder)


# ---- settings -----------------------------------------------------------------------------------


def test_sources_are_named_in_brackets_and_print_so() -> None:
    spec = "text_cnn(embeddings=bert(longest=64), tuned=False)"
    made = architectures.make(spec)
    assert made.spec == spec
    quoted = architectures.make("text_cnn(embeddings='bert(longest=64)', tuned=False)")
    assert quoted == made
    spaced = "text_cnn( embeddings = bert( encoder = 'a b/c', longest=64 ) )"
    assert architectures.make(spaced).spec == (
        "text_cnn(embeddings=bert(encoder='a b/c', longest=64))"
    )
    assert parse_spec("a(b=c(d=e(f=1)))") == ("a", {"b": "c(d=e(f=1))"})


def test_steps_are_small_where_an_encoder_is_tuned(sources: dict[str, str]) -> None:
    def step(spec: str) -> float:
        return architectures.make(spec).usual_training.learning_rate

    assert step("lstm(embeddings=bert)") == 5e-5
    assert step(f"lstm(embeddings={sources['elmo']})") == 1e-4
    assert step("lstm(embeddings=bert, tuned=False)") == step("lstm") == 1e-3


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        ("text_cnn(embeddings=brt(longest=3))", "called 'brt': did you mean 'bert'"),
        ("text_cnn(embeddings=bert(longst=3))", "bert has no setting 'longst'"),
        ("text_cnn(embeddings=bert(longest=2))", "longest to be 3 pieces or more"),
        ("text_cnn(embeddings=bert(3))", "cannot read"),
        ("text_cnn(embeddings=elmo)", r"elmo has to be told encoder: elmo\(encoder=…\)"),
        ("text_cnn(embeddings=bert, norm=1.0)", "norm and cased are for tables"),
        ("text_cnn(embeddings=bert, cased=True)", "norm and cased are for tables"),
        ("hierarchical_attention(embeddings=bert)", "needs words, not only their vectors"),
        ("rationale_cr(embeddings=bert)", "needs words, not only their vectors"),
    ],
)
def test_what_cannot_be_is_one_sentence(spec: str, said: str) -> None:
    with pytest.raises(PluginError, match=said):
        architectures.make(spec)


def test_folders_that_hold_no_encoder_are_one_sentence(
    made: Splits, tmp_path: Path, elmo_folder: Path
) -> None:
    for source, said in (
        (f"bert(encoder={str(tmp_path / 'nowhere')!r})", "is not there"),
        (f"bert(encoder={str(elmo_folder)!r})", "transformer with safetensors weights"),
        (f"elmo(encoder={str(tmp_path / 'nowhere')!r})", "is not there"),
    ):
        with pytest.raises(ModelError, match=said):
            architectures.make(f"lstm(embeddings={source})").start(made.train, seed=0)


def test_other_kinds_of_model_are_refused(tmp_path: Path) -> None:
    """An encoder-decoder has no vector for each piece of what it reads alone."""
    from conftest import small_encoder

    folder = small_encoder(tmp_path / "t5", "Bert")
    import transformers

    config = transformers.T5Config(
        vocab_size=200, d_model=16, d_kv=8, d_ff=16, num_layers=1, num_heads=2
    )
    transformers.T5Model(config).save_pretrained(folder)
    with pytest.raises(ModelError, match="encoder such as BERT"):
        word_vectors.make(f"bert(encoder={str(folder)!r})").open()
