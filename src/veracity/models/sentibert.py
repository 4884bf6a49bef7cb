"""SentiBERT (Yin et al. 2020): an encoder, phrases over trees, and what their labels are; read from
and written to folders laid out as the published one is (definitions 1.10)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from pickle import UnpicklingError
from typing import Any

import torch
from safetensors.torch import save_file
from torch import Tensor, nn

from ..core.errors import MissingExtra, ModelError
from ..core.files import check_file, read_json
from ..core.inputs import Alignment, Text
from ..core.limits import WEIGHTS
from ..core.schema import check_schema
from ..data.trees import Tree
from .encoders import Encoder, check_counts, silent
from .phrase_composition import PhraseComposition, PhraseHead, Places
from .weights import Shapes, load_weights, shapes_in, weights_of
from .word_vectors.bert import BertEncoder

PUBLISHED = {
    "phrases.encoder.model.": "bert.",
    "phrases.composition.": "bert.",
    "head.": "cls.phrase_predictions.",
}
"""By the beginnings of our names of weights, those of the published files."""

HEAD = PUBLISHED["head."]
PICKLED = (".bin", ".pt", ".pth")
OLD_NAMES = ((r"\.gamma$", ".weight"), (r"\.beta$", ".bias"))


@dataclass(frozen=True)
class ComposedTexts:
    """Texts as pieces and phrases."""

    pieces: Tensor  # (texts, pieces, size)
    phrases: Tensor  # (texts, phrases, size)
    alignments: tuple[Alignment, ...]


class PhraseEncoder(nn.Module):
    """An encoder, and phrases composed of its last layer."""

    def __init__(self, encoder: BertEncoder) -> None:
        super().__init__()
        self.encoder = encoder
        self.composition = PhraseComposition(encoder.size, epsilon=_epsilon(encoder))

    def forward(self, texts: Sequence[Text], trees: Sequence[Tree]) -> ComposedTexts:
        pieces, alignments = self.encoder.layer(texts)
        places = Places.of(trees, alignments, pieces.shape[1]).to(pieces.device)
        return ComposedTexts(pieces, self.composition(pieces, places), tuple(alignments))


class SentiBert(nn.Module):
    """Phrases, and a label for each."""

    def __init__(self, phrases: PhraseEncoder, labels: int) -> None:
        super().__init__()
        from transformers.activations import ACT2FN

        self.phrases = phrases
        activation = ACT2FN[getattr(phrases.encoder.model.config, "hidden_act", "gelu")]
        size = phrases.encoder.size
        self.head = PhraseHead(size, labels, activation, epsilon=_epsilon(phrases.encoder))

    def forward(self, texts: Sequence[Text], trees: Sequence[Tree]) -> Tensor:
        """→ (texts, phrases, labels)"""
        found: Tensor = self.head(self.phrases(texts, trees).phrases)
        return found

    def save(self, folder: Path) -> None:
        """Weights under their published names, the configuration, and the tokeniser."""
        folder.mkdir(parents=True, exist_ok=True)
        encoder = self.phrases.encoder
        with silent():
            encoder.model.config.save_pretrained(folder)
            encoder.reader.tokenizer.save_pretrained(folder)
        named = {_published(name): weight for name, weight in weights_of(self).items()}
        save_file(named, folder / "model.safetensors")


def _epsilon(encoder: BertEncoder) -> float:
    return float(getattr(encoder.model.config, "layer_norm_eps", 1e-12))


def _published(name: str) -> str:
    begins = next(ours for ours in PUBLISHED if name.startswith(ours))
    return PUBLISHED[begins] + name.removeprefix(begins)


# ---- from a folder ----------------------------------------------------------------------------


def read_sentibert(folder: Path, *, longest: int, pickled: bool = False) -> SentiBert:
    """The network that a folder holds: weights under their published names, in safetensors or, if
    that is asked for, as pickled tensors, of which nothing but tensors is read; a configuration
    (`config.json`, or such as `sstphrase.json`) and the vocabulary of its tokeniser. Without
    weights for labels of phrases, those are random: what is composed does not need them."""
    weights = _weights_file(folder, pickled)
    is_pickled = weights.suffix in PICKLED
    held: Mapping[str, Tensor] = _unpickled(weights) if is_pickled else {}
    try:
        shapes: Shapes = {k: tuple(v.shape) for k, v in held.items()} or shapes_in(weights)
        found = {_current(name): shape for name, shape in shapes.items()}
        labels = found.get(f"{HEAD}decoder.weight", (5,))[0]
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(0)  # what stays random is the same each time
            with torch.device("meta"):
                lacking = set(_lacking(_new(folder, found, labels, longest), found))
            made = _new(folder, found, labels, longest)
        named = {_current(k): v for k, v in (held or load_weights(weights)).items()}
    except (OSError, ValueError) as error:
        raise ModelError(
            f"expected {folder} to hold a SentiBERT network: {error}. Copy the folder anew, or "
            "make one: veracity pretrain sentibert TREES --out DIR"
        ) from None
    mine = {name: _published(name) for name in made.state_dict()}
    made.load_state_dict(
        {own: named[name].float() for own, name in mine.items() if name not in lacking},
        strict=False,
    )
    return made.eval()


def _weights_file(folder: Path, pickled: bool) -> Path:
    if not folder.is_dir():
        what = "a file" if folder.exists() else "not there"
        raise ModelError(
            f"expected the folder of a SentiBERT network; {str(folder)!r} is {what}. Make one: "
            "veracity pretrain sentibert TREES --out DIR"
        )
    for endings in ((".safetensors",), PICKLED):
        found = sorted(p for p in folder.iterdir() if p.suffix in endings)
        if len(found) > 1:
            raise ModelError(
                f"expected one file of weights in {folder}, got {found[0].name} and "
                f"{found[1].name}. Leave the one to be read"
            )
        if found and (pickled or endings != PICKLED):
            return found[0]
        if found:
            raise ModelError(
                f"expected safetensors weights in {folder}, got {found[0].name}, which others have "
                "pickled. If you trust it, say pickled=true: tensors are read of it and nothing "
                "else"
            )
    raise ModelError(f"expected weights in {folder} (model.safetensors), found none")


def _unpickled(path: Path) -> dict[str, Tensor]:
    """Tensors and nothing else: the reader refuses whatever would run code."""
    try:
        WEIGHTS.check(check_file(path), path)
        found = torch.load(path, weights_only=True, map_location="cpu")
    except (OSError, EOFError, RuntimeError, ValueError, KeyError, UnpicklingError) as error:
        raise ModelError(
            f"expected {path} to hold pickled tensors by name and nothing else: "
            f"{str(error).splitlines()[0]:.100}"
        ) from None
    if not isinstance(found, dict) or not all(isinstance(v, Tensor) for v in found.values()):
        raise ModelError(f"expected {path} to hold tensors by name, got {type(found).__name__}")
    return {str(name): tensor for name, tensor in found.items()}


def _new(folder: Path, found: Shapes, labels: int, longest: int) -> SentiBert:
    """The network that a folder's configuration describes, before weights are put in; BERT itself
    need not say that it is one."""
    try:
        import transformers
    except ImportError:
        raise MissingExtra("transformers", "transformers", f"the network {folder}") from None
    content = _configuration(folder)
    check_counts(content, found)
    with Encoder(folder).blamed(), silent():
        kind = content.pop("model_type", "bert")
        config = transformers.AutoConfig.for_model(kind, **content)
        library: Any = transformers.AutoModel
        model = library.from_config(config, dtype=torch.float32)
        tokenizer: Any = transformers.AutoTokenizer.from_pretrained(
            str(folder), config=config, local_files_only=True, trust_remote_code=False
        )
    if len(tokenizer.get_vocab()) <= len(tokenizer.all_special_tokens):
        raise ValueError("its tokeniser has no words: expected vocab.txt or tokenizer.json in it")
    return SentiBert(PhraseEncoder(BertEncoder(model, tokenizer, longest)), labels)


def _configuration(folder: Path) -> dict[str, Any]:
    """What config.json says, or else the one file that says how large an encoder is."""
    files = [folder / "config.json"]
    if not files[0].exists():
        files = sorted(folder.glob("*.json"))
    for file in files:
        content = read_json(file)
        if isinstance(content, dict) and "hidden_size" in content:
            check_schema(content, {"hidden_size": int})
            return content
    raise ValueError("there is no configuration in it: expected config.json with a hidden_size")


def _lacking(made: SentiBert, found: Shapes) -> Iterator[str]:
    """Published names of weights that may be left at random; others must be there, as they are
    needed."""
    without_head = not any(name.startswith(HEAD) for name in found)
    for own, weight in made.state_dict().items():
        name, shape = _published(own), tuple(weight.shape)
        if found.get(name) == shape:
            continue
        unused = "pooler" in name.split(".") or (without_head and name.startswith(HEAD))
        if name in found or not unused:
            seen = f"the shape {found[name]}" if name in found else "no weights"
            raise ValueError(f"expected {name} to have the shape {shape}, got {seen}")
        yield name


def _current(name: str) -> str:
    """What older files call otherwise."""
    for old, new in OLD_NAMES:
        name = re.sub(old, new, name)
    return name
