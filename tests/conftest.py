"""Real models, small enough to train in seconds, shared by the whole suite."""

from __future__ import annotations

import gc
import os
import pickle
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from filelock import FileLock
from hypothesis import settings

from veracity.core.examples import Dataset
from veracity.core.inputs import FloatArray, Text
from veracity.data.loading import load_data
from veracity.data.splits import Splits, sampled, split
from veracity.data.words import read_text

os.environ["HF_HUB_OFFLINE"] = "1"
os.environ.setdefault("OMP_NUM_THREADS", "1")  # threads of OpenMP do not survive a fork
# peers that tests compare with would compile for seconds what runs for milliseconds
os.environ.setdefault("NUMBA_DISABLE_JIT", "1")

# on a busy machine the first call of a network takes longer than is allowed by default
settings.register_profile("suite", deadline=None)
settings.load_profile("suite")

SHARED = Path(__file__).resolve().parents[2] / "shared" / "data"


@pytest.fixture(autouse=True, scope="session")
def quick_disk() -> Iterator[None]:
    """Nothing written here need outlive a power cut, and thousands of syncs take minutes."""
    sync = os.fsync
    os.fsync = lambda fd: None
    yield
    os.fsync = sync


def pytest_collection_finish() -> None:
    """What was imported stays: looking through it for garbage again and again takes a tenth of the
    time, and unshares the memory of forked commands."""
    gc.collect()
    gc.freeze()


class Once:
    """What one process of a session makes and all of them read: a file or folder under a name,
    written by whoever comes first."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def path(self, name: str, make: Callable[[Path], object]) -> Path:
        place = self.folder / name
        with FileLock(self.folder / f"{name}.lock"):
            if not place.exists():
                part = self.folder / f"{name}.part"
                make(part)
                part.rename(place)
        return place

    def object(self, name: str, make: Callable[[], Any]) -> Any:
        """The same each time, a copy for each process."""
        file = self.path(name, lambda part: part.write_bytes(pickle.dumps(make())))
        return pickle.loads(file.read_bytes())


@pytest.fixture(scope="session")
def once(tmp_path_factory: pytest.TempPathFactory) -> Once:
    base = tmp_path_factory.getbasetemp()
    # each process of xdist has a folder of its own inside that of the session
    folder = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "made-once"
    folder.mkdir(exist_ok=True)
    return Once(folder)


@pytest.fixture(scope="session")
def made() -> Splits:
    """Made reviews, split."""
    return split(load_data("made_reviews(n=2000)"))


def _trained(spec: str, parts: Splits, epochs: int = 8) -> Any:
    from veracity.models.architectures import architectures
    from veracity.models.training import train

    architecture = architectures.make(spec)
    training = replace(architecture.training, epochs=epochs, batch_size=32, learning_rate=3e-3)
    return train(architecture, parts.train, parts.validation, training=training).model


@pytest.fixture(scope="session")
def cnn(made: Splits, once: Once) -> Any:
    spec = "text_cnn(size=32, filters=32, dropout=0.3)"
    return once.object("cnn", lambda: _trained(spec, made))


@pytest.fixture(scope="session")
def lstm(made: Splits, once: Once) -> Any:
    spec = "lstm(size=32, hidden=32, dropout=0.1)"
    return once.object("lstm", lambda: _trained(spec, made))


@pytest.fixture(scope="session")
def attention_lstm(made: Splits, once: Once) -> Any:
    spec = "attention_lstm(size=32, hidden=24, attention=24)"
    return once.object("attention_lstm", lambda: _trained(spec, made))


@pytest.fixture(scope="session")
def hierarchical(made: Splits, once: Once) -> Any:
    spec = "hierarchical_attention(size=32, hidden=16, attention=16, dropout=0.2)"
    return once.object("hierarchical", lambda: _trained(spec, made, epochs=3))


@pytest.fixture(scope="session")
def rationale_rl(made: Splits, once: Once) -> Any:
    spec = "rationale_rl(size=32, hidden=16, memory=6, rate=0.6, baseline=others)"
    return once.object("rationale_rl", lambda: _trained(spec, made, epochs=2))


@pytest.fixture(scope="session")
def rationale_cr(made: Splits, once: Once) -> Any:
    spec = "rationale_cr(size=32, hidden=16, memory=6, rate=0.3)"
    return once.object("rationale_cr", lambda: _trained(spec, made, epochs=2))


def small_encoder(folder: Path, family: str = "Bert", more: Sequence[str] = ()) -> Path:
    """A two-layer encoder with random weights and a word-piece vocabulary of its own."""
    import torch
    import transformers
    from tokenizers import Tokenizer
    from tokenizers.models import WordPiece
    from tokenizers.normalizers import BertNormalizer
    from tokenizers.pre_tokenizers import BertPreTokenizer
    from tokenizers.processors import TemplateProcessing

    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    letters = [chr(c) for c in range(97, 123)]
    pieces = ["the", "film", "great", "dull", "plot", "but", "was", "a", "ing", "er", "won"]
    marks = [*".,!?'<>/()", "好", "电", "影"]
    words = special + pieces + letters + marks + ["##" + p for p in letters + pieces]
    words += [w for w in more if w not in words]
    vocabulary = {w: i for i, w in enumerate(words)}
    raw = Tokenizer(WordPiece(vocabulary, unk_token="[UNK]"))
    raw.normalizer = BertNormalizer(lowercase=True)
    raw.pre_tokenizer = BertPreTokenizer()
    raw.post_processor = TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    tokenizer = transformers.PreTrainedTokenizerFast(  # type: ignore[no-untyped-call]
        tokenizer_object=raw,
        pad_token="[PAD]",
        unk_token="[UNK]",
        cls_token="[CLS]",
        sep_token="[SEP]",
        mask_token="[MASK]",
        model_max_length=64,
    )
    config = getattr(transformers, f"{family}Config")(
        vocab_size=len(words),
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=4,
        intermediate_size=64,
        max_position_embeddings=64,
        initializer_range=0.1,
        id2label={0: "negative", 1: "positive"},
        label2id={"negative": 0, "positive": 1},
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(7)
        model = getattr(transformers, f"{family}ForSequenceClassification")(config)
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


@pytest.fixture(scope="session")
def encoder_folder(once: Once) -> Path:
    return once.path("encoder", small_encoder)


@pytest.fixture(scope="session")
def transformer(encoder_folder: Path, made: Splits, once: Once) -> Any:
    """In double precision: tests compare what is computed, not the order of float32 sums."""
    spec = f"transformer(encoder={str(encoder_folder)!r})"
    return once.object("transformer", lambda: _trained(spec, made, epochs=2).double())


@pytest.fixture(scope="session")
def minilm_folder(once: Once) -> Path:
    """The packaged encoder, fine-tuned a little on real reviews, saved as a folder."""
    from veracity.models.architectures import architectures
    from veracity.models.loading import save_model
    from veracity.models.training import train

    def make(folder: Path) -> None:
        parts = split(sampled(load_data("rotten_tomatoes"), 100))
        architecture = architectures.make("transformer")
        training = replace(architecture.training, epochs=1)
        model = train(architecture, parts.train, parts.validation, training=training).model
        save_model(model, architecture, folder, record={})

    return once.path("minilm", make)


@pytest.fixture(scope="session")
def reviews() -> Dataset:
    """Real sentences."""
    return sampled(load_data("rotten_tomatoes"), 60)


@pytest.fixture(scope="session")
def again(once: Once) -> Any:
    """A small dry run of a model that sees words but not capitals, as often as it is called."""
    from veracity.experiments.dryrun import dryrun
    from veracity.models.architecture import Training

    folder = once.folder / "dry-run"

    def run(keep: float = 0.5, sentences: int = 12) -> Any:
        with FileLock(once.folder / "dry-run.lock"):
            return made(keep, sentences)

    def made(keep: float, sentences: int) -> Any:
        return dryrun(
            "text_cnn(size=16, filters=16, widths=(1, 2), embeddings=random, cased=False)",
            "made_reviews(n=800, structure=0.0)",  # words alone tell, which so small a model learns
            cues="word, capitals",
            strengths=[1.0],
            keep=keep,
            methods="occlusion, gradient, random_scores",
            seeds=2,
            sentences=sentences,
            training=Training(epochs=6, batch_size=16, learning_rate=0.01, patience=1),
            out=folder,
        )

    return run


@pytest.fixture(scope="session")
def rehearsal(again: Any) -> Any:
    """The finished dry run."""
    return again()


class WordWeights:
    """A linear bag of words whose every weight is known; answers in probabilities."""

    labels = ("negative", "positive")

    def __init__(self, weights: dict[str, float], bias: float = 0.0) -> None:
        self.weights = weights
        self.bias = bias
        self.texts_read = 0

    def probabilities(self, inputs: Any) -> FloatArray:
        self.texts_read += len(inputs)
        z = np.array(
            [self.bias + sum(self.weights.get(w, 0.0) for w in set(t.words)) for t in inputs]
        )
        p = 1 / (1 + np.exp(-z))
        return np.stack([1 - p, p], axis=1)


@pytest.fixture
def bag() -> WordWeights:
    return WordWeights({"great": 2.0, "dull": -1.5, "fine": 0.5}, bias=0.1)


def words(text: str) -> Text:
    return read_text(text)
