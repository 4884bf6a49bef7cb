"""Files of every kind we read, whole: what damage starts from."""

from __future__ import annotations

import csv
import functools
import gzip
import json
from pathlib import Path
from typing import Any

import numpy as np

from veracity.data.splits import Splits


def reviews(path: Path) -> Path:
    """A table of twenty labelled texts, some of them awkward."""
    if path.exists():
        return path
    from veracity.data.loading import load_data

    texts = [
        (e.input.text, ("negative", "positive")[e.label]) for e in load_data("made_reviews(n=16)")
    ]
    texts += [("“quoted”, with commas", "positive"), ("a line\nand another", "negative")]
    texts += [("这部电影很好看", "positive"), ("=1+1 is dull", "negative")]
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(("text", "label"))
        writer.writerows(texts)
    return path


def data_files(folder: Path) -> None:
    """The same reviews as every kind of table, and pairs and marks as JSON lines."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    from veracity.data.loading import load_data, write_data
    from veracity.data.records import write_records

    folder.mkdir()
    table = reviews(folder / "reviews.csv")
    with table.open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    lines = "".join(json.dumps(row) + "\n" for row in rows)
    (folder / "reviews.jsonl").write_text(lines, "utf-8")
    (folder / "reviews.json").write_text(json.dumps(rows), "utf-8")
    tabs = "\n".join("\t".join(v.replace("\n", " ") for v in row.values()) for row in rows)
    (folder / "reviews.tsv").write_text(f"text\tlabel\n{tabs}\n", "utf-8")
    (folder / "wide.csv").write_bytes(table.read_bytes().decode().encode("utf-16"))
    (folder / "reviews.csv.gz").write_bytes(gzip.compress(table.read_bytes()))
    (folder / "reviews.jsonl.gz").write_bytes(gzip.compress(lines.encode()))
    pq.write_table(pa.Table.from_pylist(rows), folder / "reviews.parquet")
    made = load_data("made_reviews(n=12)")
    write_records(made, folder / "records.jsonl")
    for layout in ("dutrust", "eraser"):
        write_data(made, folder / f"{layout}.jsonl", layout=layout, lossy=True)
    import datasets

    datasets.disable_progress_bars()
    datasets.Dataset.from_list(rows).save_to_disk(str(folder / "dataset"))


def vectors(folder: Path) -> None:
    """Word vectors in each format."""
    folder.mkdir()
    words = ["the", "film", "dull", "great", "好", "a"]
    table = np.random.default_rng(0).normal(size=(len(words), 4))
    lines = [
        f"{w} {' '.join(f'{x:.4f}' for x in row)}\n" for w, row in zip(words, table, strict=True)
    ]
    text = "".join([f"{len(words)} 4\n", *lines])
    (folder / "vectors.txt").write_text(text, "utf-8")
    (folder / "vectors.txt.gz").write_bytes(gzip.compress(text.encode()))
    np.savez(folder / "vectors.npz", words=np.array(words), vectors=table)
    binary = b"".join(
        w.encode() + b" " + row.astype("<f4").tobytes() + b"\n"
        for w, row in zip(words, table, strict=True)
    )
    (folder / "vectors.bin").write_bytes(f"{len(words)} 4\n".encode() + binary)


def trained(folder: Path, spec: str) -> None:
    """A model folder of ours, a training's checkpoint beside it."""
    from dataclasses import replace

    from veracity.models.loading import save_model
    from veracity.models.training import train

    architecture, parts = training(spec)
    asked = replace(architecture.training, epochs=2, batch_size=16)
    found = train(
        architecture,
        parts.train,
        parts.validation,
        training=asked,
        checkpoint=folder / "checkpoint",
    )
    save_model(found.model, architecture, folder / "model", record={"best": 0})


@functools.cache
def training(spec: str) -> tuple[Any, Splits]:
    from veracity.data.loading import load_data
    from veracity.data.splits import split
    from veracity.models.architectures import architectures

    return architectures.make(spec), split(load_data("made_reviews(n=40)"))


def encoder(folder: Path) -> Path:
    """A transformers classifier of one tiny layer, with a tokenizer."""
    import torch
    import transformers
    from tokenizers import Tokenizer
    from tokenizers.models import WordPiece
    from tokenizers.pre_tokenizers import BertPreTokenizer

    if (folder / "config.json").exists():
        return folder
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    letters = [chr(c) for c in range(97, 123)]
    words = [*special, "the", "film", *letters, ".", *("##" + c for c in letters)]
    raw = Tokenizer(WordPiece({w: i for i, w in enumerate(words)}, unk_token="[UNK]"))
    raw.pre_tokenizer = BertPreTokenizer()
    names = ("pad", "unk", "cls", "sep", "mask")
    tokenizer = transformers.PreTrainedTokenizerFast(  # type: ignore[no-untyped-call]
        tokenizer_object=raw,
        model_max_length=32,
        **{f"{name}_token": token for name, token in zip(names, special, strict=True)},
    )
    config = transformers.BertConfig(
        vocab_size=len(words),
        hidden_size=8,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=8,
        max_position_embeddings=32,
        id2label={0: "negative", 1: "positive"},
        label2id={"negative": 0, "positive": 1},
    )
    torch.manual_seed(0)
    transformers.utils.logging.disable_progress_bar()  # type: ignore[no-untyped-call]
    model = transformers.BertForSequenceClassification(config)  # type: ignore[no-untyped-call]
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder
