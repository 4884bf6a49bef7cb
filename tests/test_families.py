"""Transformers as people have them: decoders, encoders of several families, odd tokenisers."""

from __future__ import annotations

import functools
import json
import logging
import pickle
import re
import shutil
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import veracity
from conftest import words
from veracity.core.classifiers import Differentiable, abilities
from veracity.core.errors import ModelError
from veracity.core.examples import Dataset, Example
from veracity.core.inputs import Hiding, Text
from veracity.explainers import explainers
from veracity.models.encoders import silent
from veracity.models.loading import load_model
from veracity.models.transformers_attention import showing_attention

SENTENCES = ("the film was great !", "dull", "a plot so dull , and but a won !")
TEXTS = [words(sentence) for sentence in SENTENCES]

pytestmark = [
    # on toy models the answer hardly moves between the ends of the path
    pytest.mark.filterwarnings("ignore:integrated_gradients"),
    pytest.mark.filterwarnings("ignore:deep_lift"),
]

QUICK = {
    "lime": "lime(samples=20)",
    "shap": "shap(samples=20)",
    "smooth_grad": "smooth_grad(samples=2)",
    "integrated_gradients": "integrated_gradients(steps=3)",
}
SHAPE = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4}
FAMILIES: dict[str, dict[str, Any]] = {
    "Bert": {"intermediate_size": 48, "max_position_embeddings": 40},
    "Roberta": {"intermediate_size": 48, "max_position_embeddings": 40},
    "GPT2": {"n_positions": 40},
    "T5": {"num_hidden_layers": 1, "d_kv": 8, "d_ff": 48, "decoder_start_token_id": 0},
    "FNet": {"intermediate_size": 48, "max_position_embeddings": 40, "type_vocab_size": 2},
    "Canine": {
        "intermediate_size": 48, "max_position_embeddings": 64, "num_hash_buckets": 64,
        "local_transformer_stride": 8, "bos_token_id": None, "eos_token_id": None,
    },
}  # fmt: skip
ASKED = {"probabilities"}
FOLLOWED = {*ASKED, "fast masking", "gradients"}
ABLE = {
    "Bert": {*FOLLOWED, "attention"},
    "Roberta": {*FOLLOWED, "attention"},
    "GPT2": {*FOLLOWED, "attention"},
    "T5": FOLLOWED,
    "FNet": FOLLOWED,
    "Canine": ASKED,
}
CLOSE = {family: 1e-6 if family == "Canine" else 1e-9 for family in FAMILIES}


def tokenizer_of(family: str) -> Any:
    """Pieces of bytes, between the marks that the family has."""
    import transformers
    from tokenizers import Tokenizer, models, pre_tokenizers, processors, trainers

    raw = Tokenizer(models.BPE())
    raw.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    trainer = trainers.BpeTrainer(
        vocab_size=300,
        special_tokens=["<s>", "<pad>", "</s>", "<unk>", "<mask>"],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    raw.train_from_iterator(list(SENTENCES) * 4, trainer)
    ends = {"T5": "$A </s>", "GPT2": "$A"}
    raw.post_processor = processors.TemplateProcessing(
        single=ends.get(family, "<s> $A </s>"), special_tokens=[("<s>", 0), ("</s>", 2)]
    )
    named = {"pad_token": "<pad>", "eos_token": "</s>", "bos_token": "<s>", "unk_token": "<unk>"}
    if family not in ends:
        named |= {"mask_token": "<mask>", "cls_token": "<s>", "sep_token": "</s>"}
    return transformers.PreTrainedTokenizerFast(tokenizer_object=raw, **named)  # type: ignore[no-untyped-call]


def folder_of(family: str, folder: Path, **settings: Any) -> Path:
    """A small classifier with random weights, written as its library writes it."""
    import transformers

    config = getattr(transformers, f"{family}Config")(
        **{
            **SHAPE,
            "vocab_size": 300,
            "pad_token_id": 1,
            "eos_token_id": 2,
            "bos_token_id": 0,
            "id2label": {0: "negative", 1: "positive"},
            "label2id": {"negative": 0, "positive": 1},
            **FAMILIES[family],
            **settings,
        }
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(11)
        model = getattr(transformers, f"{family}ForSequenceClassification")(config)
        for weight in model.parameters():  # large, so that answers differ from text to text
            if weight.dim() > 1:
                weight.data.normal_(0, 0.25)
    with silent():
        model.save_pretrained(folder)
    if family == "Canine":  # to make its tokeniser of a million letters takes seconds
        said = {"tokenizer_class": "CanineTokenizer", "model_max_length": 64}
        (folder / "tokenizer_config.json").write_text(json.dumps(said))
    else:
        tokenizer_of(family).save_pretrained(folder)
    return folder


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> Any:
    return functools.cache(lambda family: folder_of(family, tmp_path_factory.mktemp(family)))


@pytest.fixture(scope="module")
def loaded(folders: Any) -> Any:
    """Each family's model, as a user loads it; in double precision, to compare what is computed,
    unless the library then has no numbers for it."""

    @functools.cache
    def load(family: str) -> Any:
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            model: Any = load_model(folders(family))
        said = [str(w.message) for w in told if "occlusion, lime and shap, work" in str(w.message)]
        assert bool(said) == ("gradients" not in ABLE[family]), said
        return model if family == "Canine" else model.double()

    return load


def plain(model: Any, text: Text) -> Any:
    """What the library itself answers to one text."""
    found = model.tokenizer(text.text, return_tensors="pt")
    with torch.no_grad():
        return torch.softmax(model.model(**found).logits, dim=-1)[0].numpy()


@pytest.mark.parametrize("family", FAMILIES)
def test_answers_are_those_of_the_library(family: str, loaded: Any) -> None:
    model = loaded(family)
    assert set(abilities(model)) == ABLE[family]
    expected = np.array([plain(model, text) for text in TEXTS])
    assert np.ptp(expected[:, 1]) > 0.01
    assert model.probabilities(TEXTS) == pytest.approx(expected, abs=CLOSE[family])
    assert model.probabilities(TEXTS[::-1])[::-1] == pytest.approx(expected, abs=CLOSE[family])


@pytest.mark.parametrize("family", FAMILIES)
def test_every_method_on_offer_explains_that_answer(family: str, loaded: Any) -> None:
    """One text at a time or all at once, in any order."""
    model = loaded(family)
    expected = [float(plain(model, text).max()) for text in TEXTS]
    for name in explainers.names():
        method = explainers.make(QUICK.get(name, name))
        if method.missing(model) or method.learns:
            continue
        together = veracity.explain(model, TEXTS, method)
        reverse = veracity.explain(model, TEXTS[::-1], method)[::-1]
        alone = veracity.explain(model, TEXTS[0], method)
        for one, other, answer in zip(together, reverse, expected, strict=True):
            assert one.scores == pytest.approx(other.scores, rel=1e-6, abs=CLOSE[family]), name
            if name == "integrated_gradients":
                assert one.output_value == pytest.approx(answer, abs=1e-9)
        close = pytest.approx(together[0].scores, rel=1e-6, abs=CLOSE[family])
        assert alone[0].scores == close, name


@pytest.mark.parametrize("family", [f for f in FAMILIES if "gradients" in ABLE[f]])
def test_rules_follow_single_precision_too(family: str, folders: Any, loaded: Any) -> None:
    """As folders are loaded; the rules themselves are followed in doubles."""
    model: Any = load_model(folders(family))
    assert next(model.parameters()).dtype == torch.float32
    for method in ("lrp", "deep_lift"):
        one, other = (veracity.explain(m, TEXTS, method) for m in (model, loaded(family)))
        for a, b in zip(one, other, strict=True):
            assert a.scores == pytest.approx(b.scores, rel=1e-2, abs=1e-3), method


@pytest.mark.parametrize("family", [f for f in FAMILIES if "gradients" in ABLE[f]])
def test_gradients_are_slopes_of_the_answer(family: str, loaded: Any) -> None:
    """Of the library's answer, by the rows of its table, wherever it looks them up."""
    model = loaded(family)
    text = words("dull plot")
    (found,) = veracity.explain(model, text, "input_x_gradient", target=1)
    ids, alignment = model._pieces(text)
    table = model.model.get_input_embeddings().weight
    logit = model.model(torch.from_numpy(ids)[None]).logits[0, 1]
    (slope,) = torch.autograd.grad(logit, table)
    by_row = (slope * table).sum(dim=1).detach().numpy()
    for word in range(2):
        rows, others = (
            set(ids[alignment.piece[alignment.word == w]].tolist()) for w in (word, 1 - word)
        )
        assert not rows & others
        assert found.scores[word] == pytest.approx(by_row[list(rows)].sum(), rel=1e-5)


@pytest.mark.parametrize("how", list(Hiding))
def test_hidden_words_of_a_decoder_are_not_read(how: Hiding, loaded: Any) -> None:
    """It has no special pieces: with every word hidden, one unknown piece is read."""
    model = loaded("GPT2")
    shown = np.array([[False] * 5, [True] * 5, [False, True, True, True, False]])
    (found,) = model.masked_probabilities(TEXTS[:1], [shown], how)
    assert np.isfinite(found).all()
    assert found[1] == pytest.approx(plain(model, TEXTS[0]), abs=1e-9)
    if how == Hiding.MASK:
        kept = [TEXTS[0].keep(mask, how) for mask in shown]
        assert found == pytest.approx(model.probabilities(kept), abs=1e-9)
    else:
        unknown = model.probabilities([Text("", ())])[0]
        assert found[0] == pytest.approx(unknown, abs=1e-9)


def test_attention_of_a_decoder_is_that_of_its_last_piece(loaded: Any) -> None:
    """The first piece looks at nothing but itself; the last is what is classified."""
    model = loaded("GPT2")
    with torch.no_grad(), showing_attention(model.model):
        ids = torch.from_numpy(model._ids(TEXTS[2]))[None]
        layers = model.model(ids, output_attentions=True).attentions
    _, alignment = model._pieces(TEXTS[2])
    for way, row in (
        ("last layer", layers[-1][0].mean(0)[-1]),
        ("rollout", (_half(layers[1]) @ _half(layers[0]))[-1]),
    ):
        found = model.attention(TEXTS, way)[2]
        assert found == pytest.approx(alignment.to_features(row.numpy()), abs=1e-9)


def _half(layer: torch.Tensor) -> torch.Tensor:
    mean = layer[0].mean(0)
    return (mean + torch.eye(len(mean), dtype=mean.dtype)) / 2


def test_a_decoder_without_padding_reads_one_text_at_a_time(folders: Any, tmp_path: Path) -> None:
    folder = tmp_path / "m"
    shutil.copytree(folders("GPT2"), folder)
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**config, "pad_token_id": None}))
    model: Any = load_model(folder)
    assert model.batching == "single"
    with_padding: Any = load_model(folders("GPT2"))
    assert with_padding.batching == "padded"
    expected = with_padding.probabilities(TEXTS)
    assert model.probabilities(TEXTS) == pytest.approx(expected, abs=1e-6)
    one, other = (veracity.explain(m, TEXTS, "gradient") for m in (model, with_padding))
    for a, b in zip(one, other, strict=True):
        assert a.scores == pytest.approx(b.scores, rel=1e-4)
    sent = pickle.loads(pickle.dumps(model))  # as a worker gets it
    assert sent.batching == "single"
    assert sent.probabilities(TEXTS) == pytest.approx(expected, abs=1e-6)


def test_an_answer_that_is_not_the_models_is_not_explained(loaded: Any) -> None:
    """As decoders gave, when embeddings stood in for pieces and padding went unseen."""
    model = loaded("GPT2")

    class Padded:
        labels = model.labels
        probabilities = staticmethod(model.probabilities)
        embed = staticmethod(model.embed)

        def logits(self, embedded: Any) -> torch.Tensor:
            found: torch.Tensor = model.model(
                inputs_embeds=embedded.values, attention_mask=embedded.present.long()
            ).logits
            return found

    silently = logging.getLogger("transformers")
    level = silently.level
    silently.setLevel(logging.ERROR)
    for method in explainers.names():
        if explainers.get(method).needs is not Differentiable:
            continue
        assert veracity.explain(Padded(), TEXTS[0], QUICK.get(method, method))  # no padding: right
        with pytest.raises(ModelError, match=r"explain another answer.*occlusion, lime, shap"):
            veracity.explain(Padded(), TEXTS, QUICK.get(method, method))
    silently.setLevel(level)


def test_texts_beyond_the_limit_are_told(folders: Any, loaded: Any, tmp_path: Path) -> None:
    """RoBERTa numbers positions from behind its padding: two fewer than its configuration says."""
    long = words("great " * 50)
    assert loaded("Roberta").longest == 38
    assert loaded("Roberta").features_read([long, TEXTS[0]])[1] == TEXTS[0].n_features
    for family in ("Roberta", "GPT2", "Canine"):
        model = loaded(family)
        (read,) = model.features_read([long])
        known = words("great " * read)
        assert len(model._ids(known)) <= model.longest < len(model._ids(words("great " * 50))) + 1
        assert model.features_read([known]) == [read]
        whole, found = veracity.explain(model, [TEXTS[0], long], "occlusion")
        assert "unread" not in whole.notes and found.notes["unread"] == 50 - read
        assert not found.scores[read:].any()
    data = Dataset("d", model.labels, (Example("0", long, 0), Example("1", TEXTS[0], 1)))
    (said,) = veracity.audit(
        model, data, "occlusion", "erasure", out=tmp_path / "run"
    ).conclusions.models
    assert f"1 of the texts to their end: {50 - read} words" in said.health.summary


def test_labels_that_do_not_exclude_each_other_are_asked_one_by_one(tmp_path: Path) -> None:
    folder = folder_of("Bert", tmp_path / "m", problem_type="multi_label_classification")
    with pytest.raises(ModelError, match=r"one at a time.*FOLDER:negative"):
        load_model(folder)
    with pytest.raises(ModelError, match="positive"):
        load_model(f"{folder}:postive")
    model: Any = load_model(f"{folder}:positive")
    assert model.labels == ("not positive", "positive")
    found = model.tokenizer(TEXTS[0].text, return_tensors="pt")
    with torch.no_grad():
        logit = model.model(**found).logits[0, 1].double()
    expected = float(torch.sigmoid(logit))
    assert model.probabilities(TEXTS)[0, 1] == pytest.approx(expected, abs=1e-6)
    for method in ("gradient", "attention", "lrp"):
        assert veracity.explain(model, TEXTS, method)[0].scores.any()
    assert pickle.loads(pickle.dumps(model)).labels == model.labels


def test_a_single_number_is_told_the_way_forward(tmp_path: Path) -> None:
    one = {"id2label": {0: "stars"}, "label2id": {"stars": 0}}
    folder = folder_of("Bert", tmp_path / "m", problem_type="regression", **one)
    with pytest.raises(ModelError, match=r"1 number \(regression\).*FOLDER:stars.*file.py"):
        load_model(folder)
    assert load_model(folder, label="stars").labels == ("not stars", "stars")


def test_the_advice_for_pickled_weights_keeps_head_and_tokeniser(
    folders: Any, tmp_path: Path
) -> None:
    """It is run as it stands."""
    import transformers

    folder = tmp_path / "old"
    model = transformers.AutoModelForSequenceClassification.from_pretrained(folders("Bert"))
    shutil.copytree(folders("Bert"), folder)
    (folder / "model.safetensors").unlink()
    torch.save(model.state_dict(), folder / "pytorch_model.bin")
    with pytest.raises(ModelError, match="can run code") as told:
        load_model(folder)
    (lines,) = re.findall(r'python -c "(.*)"', str(told.value))
    exec(lines)
    expected = load_model(folders("Bert")).probabilities(TEXTS)
    found = load_model(tmp_path / "old-safetensors").probabilities(TEXTS)
    assert found == pytest.approx(expected, abs=1e-6)


def test_pipelines_of_other_tasks_are_told(loaded: Any) -> None:
    from transformers import pipeline

    model = loaded("GPT2")
    pipe: Any = pipeline("text-classification", model=model.model, tokenizer=model.tokenizer)
    own = load_model(pipe)
    assert own.probabilities(TEXTS) == pytest.approx(model.probabilities(TEXTS), abs=1e-6)
    pipe.task = "zero-shot-classification"
    with pytest.raises(ModelError, match="got one for zero-shot-classification"):
        load_model(pipe)
