"""Transformer sequence classifiers: anything a local folder or a pipeline holds."""

from __future__ import annotations

import contextlib
import hashlib
import inspect
import json
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, ClassVar, Literal, cast

import numpy as np
import torch
from torch import Tensor, nn

from ..core.classifiers import Embedded, attention_way
from ..core.counts import counted
from ..core.errors import ModelError
from ..core.inputs import MASK_WORD, Alignment, BoolArray, FloatArray, Hiding, IntArray, Text
from ..engine.batches import FEATURES_AT_ONCE, by_length
from ..engine.cache import caching
from ..engine.gradients import check_answers, evaluating
from .adapters.callables import FINGERPRINT
from .architecture import sigmoid_logits
from .encoders import first_line, silent
from .moving import MovedEmbedding
from .rows import ABSENT, EmbeddedRows, RowClassifier
from .transformers_attention import rollout, showing_attention
from .transformers_heads import asked_names
from .transformers_pieces import PieceReader, mask_piece, most_pieces, words_read

Batching = Literal["padded", "same_length", "single"]
"""Which texts a model may read together without one changing the answer to another."""


class TransformerText(RowClassifier):
    """A sequence classifier and its tokeniser, asked about whole texts.

    With `label`, one label of several that do not exclude each other is asked about: yes or no.
    """

    at_once: ClassVar[int] = 2048
    """More leave the processor's cache."""

    def __init__(
        self, model: Any, tokenizer: Any, *, label: int | None = None, batching: Batching = "padded"
    ) -> None:
        super().__init__()
        self.model = model
        self.tokenizer = tokenizer
        self.label = label
        self.batching = batching
        self.labels = asked_names(model.config, label)
        self.longest = most_pieces(model, tokenizer)
        # what draws several letters together into one state cannot read fewer
        self.fewest = getattr(model.config, "downsampling_rate", 1)
        # a decoder finds the end of a text by the padding that its own configuration names
        pads = (model.config.get_text_config().pad_token_id, tokenizer.pad_token_id, 0)
        self.pad = next(i for i in pads if i is not None)
        self.mask = mask_piece(tokenizer, self.pad)

    # ---- Classifier, Cutting ----------------------------------------------------------------

    def features_read(self, inputs: Sequence[Text]) -> list[int]:
        """How many words of each text come before the limit."""
        return [self._read(text) for text in inputs]

    def _read(self, text: Text) -> int:
        def fits(count: int) -> bool:
            part = text.text[: text.spans[count - 1][1]] if count else MASK_WORD
            found = self.tokenizer(part, truncation=True, max_length=self.longest + 1)
            return len(found["input_ids"]) <= self.longest

        if fits(text.n_features):
            return text.n_features
        return bisect_left(range(text.n_features), True, key=lambda n: not fits(n + 1))

    def _ids(self, text: Text) -> IntArray:
        """Numbers of the pieces, special ones included."""
        mask = self.tokenizer.mask_token or self.tokenizer.unk_token or MASK_WORD
        spelt = (text.text or MASK_WORD).replace(MASK_WORD, mask)
        found = self.tokenizer(spelt, truncation=True, max_length=self.longest)
        return np.array(found["input_ids"], dtype=np.int64)

    def row_logits(self, rows: Sequence[IntArray]) -> Tensor:
        return self._logits(*self._padded(rows), [len(row) for row in rows])

    def _logits(
        self, ids: Tensor, present: Tensor, lengths: Sequence[int], values: Tensor | None = None
    ) -> Tensor:
        """The answers to rows of pieces, read together as far as that changes none of them."""
        if self.batching == "padded":
            return self._read_together(ids, present, values)
        groups: dict[int, list[int]] = {}
        for row, length in enumerate(lengths):
            groups.setdefault(row if self.batching == "single" else length, []).append(row)
        parts = []
        for rows in groups.values():
            cut = (rows, slice(max(self.fewest, lengths[rows[0]])))
            parts.append(
                self._read_together(ids[cut], present[cut], None if values is None else values[cut])
            )
        order = np.argsort([row for rows in groups.values() for row in rows])
        return torch.cat(parts)[torch.from_numpy(order).to(self.device)]

    def _read_together(self, ids: Tensor, present: Tensor, values: Tensor | None) -> Tensor:
        with contextlib.nullcontext() if values is None else looked_up(self.model, ids, values):
            return self._asked(self._output(ids, present).logits)

    def _asked(self, logits: Tensor) -> Tensor:
        """The logits of the labels, or of no and yes where one of them is asked about."""
        return logits if self.label is None else sigmoid_logits(logits[:, self.label, None])

    def _output(self, ids: Tensor, present: Tensor, **more: Any) -> Any:
        known = inspect.signature(self.model.forward).parameters
        given = {"attention_mask": present.long(), "use_cache": False}
        try:
            return self.model(ids, **{k: v for k, v in given.items() if k in known}, **more)
        except (RuntimeError, ValueError, TypeError, IndexError, NotImplementedError) as error:
            raise ModelError(
                f"{type(self.model).__name__} raised {type(error).__name__} on "
                f"{counted(len(ids), 'text')} of up to {ids.shape[1]} pieces: {first_line(error)}"
            ) from error

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
        weights = model.state_dict()
        settings = {"label": self.label, "batching": self.batching}
        return _rebuilt, (type(self), type(model), model.config, weights, self.tokenizer, settings)

    def identity(self) -> str:
        """A hash of all that decides an answer."""
        config = self.model.config.to_dict()
        config.pop("_name_or_path", None)  # where it lay is not what it is
        digest = hashlib.sha256(json.dumps(config, default=str, sort_keys=True).encode())
        digest.update(f"{self.label} {type(self.tokenizer).__name__}".encode())
        backend = getattr(self.tokenizer, "backend_tokenizer", None)
        pieces = [self.tokenizer(text)["input_ids"] for text in FINGERPRINT]
        digest.update((backend.to_str() if backend else str(pieces)).encode())
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


class MaskableTransformer(TransformerText):
    """A transformer whose tokeniser tells where its pieces stand: words are hidden by pieces."""

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
        place = int(np.argmin(special)) if not special.all() else min(1, len(ids))
        if how == Hiding.PAD:
            rows = np.where(visible, ids, ABSENT)
            # where no special piece is left to read, one unknown is (definitions 0.7)
            rows[~visible.any(axis=1), place] = self.mask
            return list(rows)
        if how == Hiding.MASK:
            first = np.zeros(len(ids), dtype=np.bool_)
            _, starts = np.unique(alignment.word, return_index=True)
            first[alignment.piece[starts]] = True
            replaced = np.where(visible, ids, self.mask)
            return [row[v | first] for row, v in zip(replaced, visible, strict=True)]
        return [
            ids[v] if v[~special].any() else np.insert(ids[v], place, self.mask) for v in visible
        ]

    def _ids(self, text: Text) -> IntArray:
        return self._pieces(text)[0]

    def _read(self, text: Text) -> int:
        return words_read(text, *self._pieces(text), self.longest)

    def _pieces(self, text: Text) -> tuple[IntArray, Alignment]:
        """Numbers of the pieces, special ones included, and which words they belong to."""
        ids, alignment = PieceReader(self.tokenizer, self.longest, self.mask).pieces(text)
        table = self.model.get_input_embeddings() if self.moved_text is not None else None
        if isinstance(table, MovedEmbedding) and text == self.moved_text:
            ids[np.unique(alignment.piece)] = table.own().cpu().numpy()
        return ids, alignment


class DifferentiableTransformer(MaskableTransformer):
    """A transformer that can be given embeddings in place of those it looks up."""

    def embed(self, inputs: Sequence[Text]) -> EmbeddedRows:
        """The input embeddings of the pieces, before positions are added."""
        rows, alignments = zip(*(self._pieces(text) for text in inputs), strict=True)
        ids, present = self._padded(rows)
        feature = np.zeros(ids.shape, dtype=np.bool_)
        for i, alignment in enumerate(alignments):
            feature[i, alignment.piece] = True
        return EmbeddedRows(
            self.model.get_input_embeddings()(ids),
            present,
            torch.from_numpy(feature).to(self.device),
            tuple(alignments),
            ids,
        )

    @contextlib.contextmanager
    def shifted(self, text: Text, by: FloatArray) -> Iterator[None]:
        """Within it, the pieces of this text's words stand elsewhere by so much. (pieces, size)"""
        ids, alignment = self._pieces(text)
        own = torch.from_numpy(ids[np.unique(alignment.piece)]).to(self.device)
        before = self.model.get_input_embeddings()
        self.model.set_input_embeddings(MovedEmbedding(before, own, torch.from_numpy(by)))
        self.moved_text = text
        try:
            with caching():  # what is known of the text holds no longer
                yield
        finally:
            self.model.set_input_embeddings(before)
            self.moved_text = None

    def logits(self, embedded: Embedded) -> Tensor:
        """The model reads the pieces themselves and looks up what it is given: positions, padding
        and the end of a text are found as in any question."""
        given = cast(EmbeddedRows, embedded)
        lengths = given.present.sum(dim=1).tolist()
        return self._logits(given.ids, given.present, lengths, given.values)


class AttentiveTransformer(DifferentiableTransformer):
    """A transformer that shows its attention."""

    attention_ways: ClassVar[tuple[str, ...]] = ("last layer", "rollout")

    def attention(self, inputs: Sequence[Text], way: str | None = None) -> list[FloatArray]:
        """Row of the piece that is classified, mean over heads; special pieces dropped, pieces of a
        word summed, not renormalised (definitions 3.12)."""
        chosen = attention_way(self, way)
        found: list[FloatArray] = [np.zeros(0)] * len(inputs)
        pieces = [self._pieces(text) for text in inputs]
        budget = FEATURES_AT_ONCE if self.batching == "padded" else 1
        with torch.inference_mode(), evaluating(self), showing_attention(self.model):
            for batch in by_length([len(ids) for ids, _ in pieces], budget):
                ids, present = self._padded([pieces[i][0] for i in batch])
                answer = self._output(ids, present, output_attentions=True)
                # some families hide other pieces than they do without showing their weights
                check_answers(self, [inputs[i] for i in batch], self._asked(answer.logits))
                layers = [layer.double().mean(dim=1) for layer in answer.attentions]
                places = classified(layers[-1], present)
                each = torch.arange(len(ids), device=self.device)
                last = chosen == "last layer"
                rows = layers[-1][each, places] if last else rollout(layers, places)
                for i, row in zip(batch, rows.cpu().numpy(), strict=True):
                    found[i] = pieces[i][1].to_features(row)
        return found


def classified(layer: Tensor, present: Tensor) -> Tensor:
    """The place whose state is classified: the first, or the last where each piece looks back only.
    layer (batch, pieces, pieces) → (batch,)"""
    looks_back = not layer[:, 0, 1:].any()
    last = present.sum(dim=1) - 1
    return last if looks_back else torch.zeros_like(last)


@contextlib.contextmanager
def looked_up(model: Any, ids: Tensor, values: Tensor) -> Iterator[None]:
    """Within it, a model that looks these pieces up finds other embeddings.

    Not `inputs_embeds`: a decoder finds the end of a text by the numbers of its pieces, others
    number positions or find the end mark by them, and would answer something else.
    """

    def given(part: nn.Module, args: tuple[Any, ...], found: Tensor) -> Tensor:
        (looked,) = args
        if torch.equal(looked, ids):
            return values
        if looked.shape == ids.shape and torch.equal(looked[:, 1:], ids[:, :-1]):
            # a decoder reads the text behind a mark of its own
            return torch.cat([found[:, :1].to(values), values[:, :-1]], dim=1)
        if torch.equal(looked.T, ids):
            return values.transpose(0, 1)
        raise ModelError("the model looks up other pieces than those of the text")

    table = model.get_input_embeddings()
    parts = [
        part
        for part in model.modules()
        if part is table
        or (type(part) is type(table) and getattr(part, "weight", None) is table.weight)
    ]
    hooks = [part.register_forward_hook(given) for part in parts]
    try:
        yield
    finally:
        for hook in hooks:
            hook.remove()


def _rebuilt(
    kind: type[TransformerText],
    cls: Any,
    config: Any,
    weights: dict[str, Tensor],
    tokenizer: Any,
    settings: dict[str, Any],
) -> TransformerText:
    with torch.random.fork_rng(devices=[]):
        model = cls(config)
    model.to(next(iter(weights.values())).dtype).load_state_dict(weights)
    return kind(model.eval(), tokenizer, **settings)
