"""Transformer sequence classifiers: anything a local folder or a pipeline holds."""

from __future__ import annotations

import contextlib
import hashlib
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor, nn

from ..core.classifiers import Embedded, attention_way
from ..core.errors import ModelError
from ..core.inputs import MASK_WORD, Alignment, BoolArray, FloatArray, Hiding, IntArray, Text
from ..engine.batches import by_length
from ..engine.gradients import evaluating
from ..engine.memory import recalled, remembering
from .encoders import Encoder, silent
from .moving import MovedEmbedding

PIECES_AT_ONCE = 2048
"""How many padded pieces are read at a time: more leave the processor's cache."""

LONGEST = 512
"""Pieces beyond this are not read; their words score zero."""

HEAD = "ForSequenceClassification"


class TransformerText(nn.Module):
    """A sequence classifier and its tokeniser; words are hidden piece by piece."""

    def __init__(self, model: Any, tokenizer: Any) -> None:
        super().__init__()
        self.model = model
        self.tokenizer = tokenizer
        names = model.config.id2label
        self.moved_text: Text | None = None
        self.labels = tuple(str(names[i]) for i in range(model.config.num_labels))
        limits = (
            getattr(model.config, "max_position_embeddings", None),
            tokenizer.model_max_length,
        )
        self.longest = min(LONGEST, *(n for n in limits if n))
        self.pad = tokenizer.pad_token_id or 0
        masks = (tokenizer.mask_token_id, tokenizer.unk_token_id)
        self.mask = next((i for i in masks if i is not None), self.pad)

    @property
    def device(self) -> torch.device:
        found: torch.device = next(self.model.parameters()).device
        return found

    # ---- Classifier, Maskable ---------------------------------------------------------------

    def probabilities(self, inputs: Sequence[Text]) -> FloatArray:
        """Answers in batches of like length."""
        return self._answers([self._pieces(text)[0] for text in inputs])

    def masked_probabilities(
        self, inputs: Sequence[Text], shown: Sequence[BoolArray], how: Hiding
    ) -> list[FloatArray]:
        """Hides a word by its pieces; no text is tokenised again."""
        rows: list[IntArray] = []
        for text, masks in zip(inputs, shown, strict=True):
            ids, alignment = self._pieces(text)
            rows += self._hidden_rows(ids, alignment, masks, how)
        answers = self._answers(rows)
        return np.split(answers, np.cumsum([len(masks) for masks in shown])[:-1])

    def _hidden_rows(
        self, ids: IntArray, alignment: Alignment, masks: BoolArray, how: Hiding
    ) -> list[IntArray]:
        owned = np.zeros((alignment.n_words, len(ids)))
        owned[alignment.word, alignment.piece] = 1.0
        special = ~owned.any(axis=0)
        visible = (masks @ owned > 0) | special  # (masks, pieces): a piece shows with any owner
        if how == Hiding.PAD:
            return list(np.where(visible, ids, self.pad))
        place = int(np.argmin(special)) if not special.all() else 1
        if how == Hiding.MASK:
            first = np.zeros(len(ids), dtype=np.bool_)
            _, starts = np.unique(alignment.word, return_index=True)
            first[alignment.piece[starts]] = True
            replaced = np.where(visible, ids, self.mask)
            return [row[v | first] for row, v in zip(replaced, visible, strict=True)]
        return [
            ids[v] if v[~special].any() else np.insert(ids[v], place, self.mask) for v in visible
        ]

    def _pieces(self, text: Text) -> tuple[IntArray, Alignment]:
        """Numbers of the pieces, special ones included, and which words they belong to."""
        found = self.tokenizer(
            text.text or MASK_WORD,
            truncation=True,
            max_length=self.longest,
            return_offsets_mapping=True,
            return_special_tokens_mask=True,
        )
        ids = np.array(found["input_ids"], dtype=np.int64)
        special = np.array(found["special_tokens_mask"], dtype=np.bool_)
        offsets = [
            (0, 0) if s else (int(a), int(b))
            for (a, b), s in zip(found["offset_mapping"], special, strict=True)
        ]
        if MASK_WORD in text.text or not text.text:
            hidden = [(text.text or MASK_WORD)[a:b].strip() == MASK_WORD for a, b in offsets]
            ids[hidden] = self.mask
        alignment = Alignment.by_offsets(offsets, text.spans)
        table = self.model.get_input_embeddings()
        if isinstance(table, MovedEmbedding) and text == self.moved_text:
            ids[np.unique(alignment.piece)] = table.own().numpy()
        return ids, alignment

    def _answers(self, given: Sequence[IntArray]) -> FloatArray:
        def ask(places: list[int]) -> FloatArray:
            rows = [given[i] for i in places]
            found = np.zeros((len(rows), len(self.labels)))
            with torch.inference_mode(), evaluating(self):
                for batch in by_length([len(row) for row in rows], PIECES_AT_ONCE):
                    ids = self._padded([rows[i] for i in batch])
                    present = (ids != self.pad).long()
                    logits = self.model(input_ids=ids, attention_mask=present).logits
                    found[batch] = torch.softmax(logits.double(), dim=-1).cpu().numpy()
            return found

        return recalled(self, [row.tobytes() for row in given], ask, len(self.labels))

    def _padded(self, rows: Sequence[IntArray]) -> Tensor:
        ids = np.full((len(rows), max(len(row) for row in rows)), self.pad, dtype=np.int64)
        for i, row in enumerate(rows):
            ids[i, : len(row)] = row
        return torch.from_numpy(ids).to(self.device)

    # ---- on disk ----------------------------------------------------------------------------

    def save(self, folder: Path) -> None:
        """The folder that `transformers` itself writes, so that it loads anywhere."""
        with silent():
            self.model.save_pretrained(folder, safe_serialization=True)
            self.tokenizer.save_pretrained(folder)

    def __reduce__(self) -> tuple[Any, ...]:
        """Travels as configuration and weights: the library registers what a class can show when
        it is built, so a copy that was only unpickled would have lost its attention."""
        model = self.model
        return _rebuilt, (type(self), type(model), model.config, model.state_dict(), self.tokenizer)

    def identity(self) -> str:
        """A hash of all that decides an answer."""
        config = self.model.config.to_dict()
        config.pop("_name_or_path", None)  # where it lay is not what it is
        digest = hashlib.sha256(json.dumps(config, default=str, sort_keys=True).encode())
        digest.update(self.tokenizer.backend_tokenizer.to_str().encode())
        for name, weight in sorted(self.model.state_dict().items()):
            digest.update(name.encode() + weight.detach().cpu().float().numpy().tobytes())
        return digest.hexdigest()

    @property
    def about(self) -> str:
        count = sum(p.numel() for p in self.parameters())
        config = self.model.config
        return (
            f"{type(self.model).__name__}, {count:,} parameters, "
            f"{getattr(config, 'num_hidden_layers', '?')} layers, up to {self.longest} pieces"
        )


class DifferentiableTransformer(TransformerText):
    """A transformer that accepts embeddings in place of pieces."""

    def embed(self, inputs: Sequence[Text]) -> Embedded:
        """The input embeddings of the pieces, before positions are added."""
        rows, alignments = zip(*(self._pieces(text) for text in inputs), strict=True)
        ids = self._padded(rows)
        feature = np.zeros(ids.shape, dtype=np.bool_)
        for i, alignment in enumerate(alignments):
            feature[i, alignment.piece] = True
        return Embedded(
            self.model.get_input_embeddings()(ids),
            ids != self.pad,
            torch.from_numpy(feature).to(self.device),
            tuple(alignments),
        )

    @contextlib.contextmanager
    def moved(self, text: Text, by: FloatArray) -> Iterator[None]:
        """Within it, the pieces of this text's words stand elsewhere by so much. (pieces, size)"""
        ids, alignment = self._pieces(text)
        own = torch.from_numpy(ids[np.unique(alignment.piece)]).to(self.device)
        before = self.model.get_input_embeddings()
        self.model.set_input_embeddings(MovedEmbedding(before, own, torch.from_numpy(by)))
        self.moved_text = text
        try:
            with remembering():  # what is known of the text holds no longer
                yield
        finally:
            self.model.set_input_embeddings(before)
            self.moved_text = None

    def logits(self, embedded: Embedded) -> Tensor:
        logits: Tensor = self.model(
            inputs_embeds=embedded.values, attention_mask=embedded.present.long()
        ).logits
        return logits


class AttentiveTransformer(DifferentiableTransformer):
    """A transformer that shows its attention."""

    attention_ways: ClassVar[tuple[str, ...]] = ("last layer", "rollout")

    def attention(self, inputs: Sequence[Text], way: str | None = None) -> list[FloatArray]:
        """Row of the first piece, mean over heads; special pieces dropped, pieces of a word summed,
        not renormalised (SPEC 3.12)."""
        chosen = attention_way(self, way)
        found: list[FloatArray] = [np.zeros(0)] * len(inputs)
        pieces = [self._pieces(text) for text in inputs]
        with torch.inference_mode(), evaluating(self), showing_attention(self.model):
            for batch in by_length([len(ids) for ids, _ in pieces]):
                ids = self._padded([pieces[i][0] for i in batch])
                answer = self.model(
                    input_ids=ids,
                    attention_mask=(ids != self.pad).long(),
                    output_attentions=True,
                )
                layers = [layer.double().mean(dim=1) for layer in answer.attentions]
                rows = layers[-1][:, 0] if chosen == "last layer" else rollout(layers)
                for i, row in zip(batch, rows.cpu().numpy(), strict=True):
                    found[i] = pieces[i][1].to_words(row)
        return found


def rollout(layers: Sequence[Tensor]) -> Tensor:
    """How much of each piece reaches the first through all layers, if each layer takes half from
    the piece itself and half by attention (Abnar & Zuidema). layers (batch, pieces, pieces) →
    (batch, pieces)"""
    row = torch.zeros_like(layers[0][:, :1])
    row[:, 0, 0] = 1.0
    for layer in reversed(layers):  # only the first row of the product is wanted: from the left
        row = (row @ layer + row) / 2
    return row.squeeze(1)


@contextlib.contextmanager
def showing_attention(model: Any) -> Iterator[None]:
    """The implementation that returns its weights, for as long as they are read.

    To record them the library hangs hooks on the model and leaves them there, after which it can
    no longer be sent to a worker: they are taken off again.
    """
    mark = "_output_capturing_hooks_installed"
    before = model.config._attn_implementation
    hooks = [(p, dict(p._forward_hooks), mark in p.__dict__) for p in model.modules()]
    try:
        model.set_attn_implementation("eager")
        yield
    finally:
        model.set_attn_implementation(before)
        for part, found, was_marked in hooks:
            part._forward_hooks.clear()
            part._forward_hooks.update(found)
            if not was_marked:
                part.__dict__.pop(mark, None)


def _rebuilt(
    kind: type[TransformerText], cls: Any, config: Any, weights: dict[str, Tensor], tokenizer: Any
) -> TransformerText:
    with torch.random.fork_rng(devices=[]):
        model = cls(config)
    model.to(next(iter(weights.values())).dtype).load_state_dict(weights)
    return kind(model.eval(), tokenizer)


def wrapped(model: Any, tokenizer: Any) -> TransformerText:
    """The class whose abilities this model really has, found by trying them on a word."""
    if not getattr(tokenizer, "is_fast", False):
        raise ModelError(
            "expected a fast tokeniser, which knows where its pieces stand in the text; "
            f"got {type(tokenizer).__name__}. Save the model with a tokenizer.json"
        )
    if model.config.num_labels < 2:
        raise ModelError(
            f"expected a classifier with at least two labels, got {model.config.num_labels}"
        )
    if model.config.problem_type == "multi_label_classification":
        raise ModelError("expected labels that exclude each other; this model is multi-label")
    probe = [Text.of_words(["word"])]
    for kind in (AttentiveTransformer, DifferentiableTransformer):
        try:
            candidate = kind(model, tokenizer)
            with torch.no_grad(), evaluating(candidate):
                candidate.logits(candidate.embed(probe))
                if isinstance(candidate, AttentiveTransformer):
                    candidate.attention(probe)
        except Exception:  # whatever a stranger's model raises, it cannot do this
            continue
        return candidate
    return TransformerText(model, tokenizer)


def load_transformer(folder: Path, labels: Sequence[str] | None = None) -> TransformerText:
    """A sequence classifier from a local folder; remote code is never run."""
    model, tokenizer, missing = Encoder(folder).read(HEAD, labels)
    if missing:
        raise ModelError(
            f"{folder} holds an encoder without a trained classification head "
            f"({', '.join(missing[:2])} are missing): its answers would be "
            "random. Train it first: veracity train 'transformer(encoder=FOLDER)' DATA --out NEW"
        )
    return wrapped(model, tokenizer)


def new_transformer(encoder: Encoder, labels: Sequence[str], seed: int) -> TransformerText:
    """An encoder with a new classification head."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model, tokenizer, _ = encoder.read(HEAD, labels)
        return wrapped(model, tokenizer)
