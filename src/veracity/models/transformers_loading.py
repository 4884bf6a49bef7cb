"""Transformers from a folder or a pipeline, as the class whose abilities they really have."""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch

from ..core.errors import ModelError
from ..core.inputs import Text
from ..engine.gradients import evaluating, path_gradients
from .encoders import Encoder, first_line
from .transformers_heads import label_asked
from .transformers_text import (
    AttentiveTransformer,
    Batching,
    DifferentiableTransformer,
    MaskableTransformer,
    TransformerText,
)

ALIKE = 1e-4
"""Logits that differ by less than this are the same answer in another order of sums."""

HEAD = "ForSequenceClassification"

PROBES = tuple(Text.of_words(words.split()) for words in ("a", "the film was so", "one two the"))
"""What a model's abilities are tried on: texts of different lengths."""


def wrapped(model: Any, tokenizer: Any, label: str | None = None) -> TransformerText:
    """The class whose abilities this model really has, found by trying them on a few words."""
    asked = TransformerText(model, tokenizer, label=label_asked(model.config, label))
    batching = _batching(asked)
    failures = []
    for kind in (AttentiveTransformer, DifferentiableTransformer, MaskableTransformer):
        candidate = kind(model, tokenizer, label=asked.label, batching=batching)
        try:
            with evaluating(candidate):
                _try(candidate)
        except Exception as error:  # whatever a stranger's model raises, it cannot do this
            failures.append(first_line(error))
            continue
        if not isinstance(candidate, DifferentiableTransformer):
            _warn_of(model, f"cannot be followed by gradients ({failures[-1]})")
        return candidate
    _warn_of(model, f"cannot be followed piece by piece ({failures[-1]})")
    return TransformerText(model, tokenizer, label=asked.label, batching=batching)


def _warn_of(model: Any, lack: str) -> None:
    warnings.warn(
        f"{type(model).__name__} {lack}: methods that need gradients or attention are left out; "
        "those that only ask the model, such as occlusion, lime and shap, work",
        stacklevel=4,
    )


def _batching(model: TransformerText) -> Batching:
    """Whether texts can be read together: some models take padding for a part of the text, and
    decoders without a padding token refuse."""
    rows = [model._ids(text) for text in PROBES]
    with torch.inference_mode(), evaluating(model):
        alone = [model.row_logits([row]) for row in rows]
        for batching, chosen in (("padded", [0, 1, 2]), ("same_length", [1, 1])):
            model.batching = "padded"
            with contextlib.suppress(ModelError):
                together = model.row_logits([rows[i] for i in chosen])
                expected = torch.cat([alone[i] for i in chosen])
                wide = ALIKE * max(1.0, float(expected.abs().max()))
                limit = max(wide, 8 * torch.finfo(together.dtype).eps)
                if float((together - expected).abs().max()) <= limit:
                    return batching  # type: ignore[return-value]
    return "single"


def _try(model: MaskableTransformer) -> None:
    """Does what the class promises, or raises."""
    text = PROBES[1]
    if "offset_mapping" not in model.tokenizer(text.text, return_offsets_mapping=True):
        raise ModelError("its tokeniser does not tell where its pieces stand in the text")
    _, alignment = model._pieces(text)
    if len(np.unique(alignment.word)) < text.n_features:
        raise ModelError("by its tokeniser some words have no pieces")
    if isinstance(model, DifferentiableTransformer):
        path_gradients(model, PROBES, [0] * len(PROBES))
    if isinstance(model, AttentiveTransformer):
        model.attention(PROBES)


def load_transformer(
    folder: Path, labels: Sequence[str] | None = None, label: str | None = None
) -> TransformerText:
    """A sequence classifier from a local folder; remote code is never run."""
    encoder = Encoder(folder)
    advice = ": veracity train 'transformer(encoder=FOLDER)' DATA --out NEW"
    model, tokenizer = encoder.read_trained(HEAD, labels, advice=advice)
    with encoder.blamed():
        return wrapped(model, tokenizer, label)


def new_transformer(encoder: Encoder, labels: Sequence[str], seed: int) -> TransformerText:
    """An encoder with a new classification head."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model, tokenizer, _ = encoder.read(HEAD, labels)
        return wrapped(model, tokenizer)
