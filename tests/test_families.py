"""Transformers as people have them: decoders, encoders of several families, odd tokenisers."""

from __future__ import annotations

import functools
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import veracity
from conftest import words
from veracity.core.inputs import Text
from veracity.explainers import explainers
from veracity.models import load_model

SENTENCES = ("the film was great !", "dull", "a plot so dull , and but a won !", "great ! !")
TEXTS = [words(sentence) for sentence in SENTENCES]

pytestmark = [
    # on toy models the answer hardly moves between the ends of the path
    pytest.mark.filterwarnings("ignore:integrated_gradients"),
    pytest.mark.filterwarnings("ignore:deep_lift"),
]

QUICK = {
    "lime": "lime(samples=30)",
    "shap": "shap(samples=30)",
    "smooth_grad": "smooth_grad(samples=4)",
    "integrated_gradients": "integrated_gradients(steps=5)",
}
SHAPE = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4}
FAMILIES: dict[str, dict[str, Any]] = {
    "Bert": {"intermediate_size": 48, "max_position_embeddings": 40},
    "Roberta": {"intermediate_size": 48, "max_position_embeddings": 40},
    "GPT2": {"n_positions": 40},
    "T5": {"d_kv": 8, "d_ff": 48, "decoder_start_token_id": 0},
    "Bart": {
        "d_model": 32, "encoder_layers": 1, "decoder_layers": 1, "encoder_attention_heads": 4,
        "decoder_attention_heads": 4, "encoder_ffn_dim": 48, "decoder_ffn_dim": 48,
        "max_position_embeddings": 40, "init_std": 0.2,
    },
    "Llama": {"intermediate_size": 48, "max_position_embeddings": 40},
    "FNet": {"intermediate_size": 48, "max_position_embeddings": 40, "type_vocab_size": 2},
    "Canine": {
        "intermediate_size": 48, "max_position_embeddings": 64, "num_hash_buckets": 64,
        "local_transformer_stride": 8,
    },
}  # fmt: skip
BLACK_BOX = ("Canine",)
FOLLOWED = tuple(f for f in FAMILIES if f not in BLACK_BOX)


def tokenizer_of(family: str) -> Any:
    """Pieces as the family has them: word pieces, pieces of bytes, or one for each letter."""
    import transformers
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors, trainers

    if family == "Canine":
        return transformers.CanineTokenizer(model_max_length=64)  # type: ignore[no-untyped-call]
    special = ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]
    raw = Tokenizer(models.BPE(unk_token=None))
    raw.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    raw.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=300,
        special_tokens=special,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    raw.train_from_iterator(list(SENTENCES) * 4, trainer)
    ends = {"T5": "$A </s>", "GPT2": "$A", "Llama": "<s> $A"}
    raw.post_processor = processors.TemplateProcessing(
        single=ends.get(family, "<s> $A </s>"), special_tokens=[("<s>", 0), ("</s>", 2)]
    )
    named = {"pad_token": "<pad>", "eos_token": "</s>", "bos_token": "<s>", "unk_token": "<unk>"}
    if family not in ("GPT2", "Llama", "T5"):
        named |= {"mask_token": "<mask>", "cls_token": "<s>", "sep_token": "</s>"}
    return transformers.PreTrainedTokenizerFast(tokenizer_object=raw, **named)  # type: ignore[no-untyped-call]


def folder_of(family: str, folder: Path, **settings: Any) -> Path:
    """A small classifier with random weights, written as its library writes it."""
    import transformers

    tokenizer = tokenizer_of(family)
    config = getattr(transformers, f"{family}Config")(
        **{
            **(SHAPE if family not in ("Bart",) else {}),
            "vocab_size": 300,
            "initializer_range": 0.2,
            "pad_token_id": tokenizer.pad_token_id,
            "eos_token_id": tokenizer.eos_token_id,
            "bos_token_id": tokenizer.bos_token_id,
            "id2label": {0: "negative", 1: "positive"},
            "label2id": {"negative": 0, "positive": 1},
            **FAMILIES[family],
            **settings,
        }
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(11)
        model = getattr(transformers, f"{family}ForSequenceClassification")(config)
        for weight in model.parameters():  # so that answers differ from text to text
            if weight.dim() > 1:
                weight.data.normal_(0, 0.25)
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> Any:
    return functools.cache(lambda family: folder_of(family, tmp_path_factory.mktemp(family)))


@pytest.fixture(scope="module")
def loaded(folders: Any) -> Any:
    """Each family's model, as a user loads it; in double precision, to compare what is computed."""

    @functools.cache
    def load(family: str) -> Any:
        with warnings.catch_warnings():
            if family in BLACK_BOX:
                warnings.simplefilter("ignore")
            return load_model(folders(family)).double()  # type: ignore[attr-defined]

    return load


def plain(model: Any, text: Text) -> Any:
    """What the library itself answers to one text."""
    found = model.tokenizer(text.text, return_tensors="pt")
    with torch.no_grad():
        return torch.softmax(model.model(**found).logits, dim=-1)[0].numpy()


@pytest.mark.parametrize("family", FAMILIES)
def test_answers_are_those_of_the_library(family: str, loaded: Any) -> None:
    model = loaded(family)
    expected = np.array([plain(model, text) for text in TEXTS])
    assert np.ptp(expected[:, 1]) > 0.01
    assert model.probabilities(TEXTS) == pytest.approx(expected, abs=1e-9)
    assert model.probabilities(TEXTS[::-1])[::-1] == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("family", FAMILIES)
def test_every_method_on_offer_explains_that_answer(family: str, loaded: Any) -> None:
    """One text at a time or all at once, in any order."""
    model = loaded(family)
    expected = [float(plain(model, text).max()) for text in TEXTS]
    offered = [n for n in explainers.names() if isinstance(model, explainers.get(n).needs)]
    assert len(offered) == (6 if family in BLACK_BOX else 0) or family not in BLACK_BOX
    for name in offered:
        if explainers.get(name)().learns:
            continue
        spec = QUICK.get(name, name)
        together = veracity.explain(model, TEXTS, spec)
        alone = [veracity.explain(model, text, spec)[0] for text in TEXTS[::-1]][::-1]
        for one, other, answer in zip(together, alone, expected, strict=True):
            assert one.scores == pytest.approx(other.scores, rel=1e-6, abs=1e-9), spec
            if name == "integrated_gradients":
                assert one.output_value == pytest.approx(answer, abs=1e-9)
