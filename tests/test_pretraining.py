"""Sentiment knowledge before labels: what is hidden, what is asked, and that it is learnt."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import veracity
from commands import run_command
from conftest import small_encoder, words
from veracity.core.errors import DataError, ModelError, RunError
from veracity.core.examples import Dataset, Example
from veracity.core.inputs import Alignment
from veracity.data.lexicon import emotions, listed, mined_lexicon
from veracity.data.records import write_records
from veracity.models.encoders import Encoder
from veracity.models.pretraining import Pass, Pretraining
from veracity.models.sentiment_knowledge import (
    NOTHING,
    Finder,
    Known,
    Masked,
    Masking,
    SentimentKnowledge,
    masked,
    nearby,
)

LEXICON = {"good": 1, "lovely": 1, "bad": -1, "awful": -1, "not bad": 1, "干净": 1, "脏": -1}
MASK, FIRST = 4, 100
"""The number of the mask, and of the first word of a made text."""


def known(text: str, least: int = 1, reach: int = 3) -> Known:
    """A text whose every word is a piece, between two special ones."""
    read = words(text)
    offsets = [(0, 0), *read.spans, (0, 0)]
    ids = np.array([2, *range(FIRST, FIRST + read.n_features), 3])
    masking = Masking(least=least, reach=reach)
    finder = Finder.of([read], LEXICON, masking)
    return finder.known(read, ids, Alignment.by_offsets(offsets, read.spans))


def hide(one: Known, seed: int = 0, **settings: Any) -> Masked:
    vocabulary = np.arange(5, 400)
    rng = np.random.default_rng(seed)
    return masked(one, Masking(**settings), mask=MASK, vocabulary=vocabulary, rng=rng)


def test_a_lexicon_is_found_in_words_and_phrases() -> None:
    text = words("Good food, not bad at all, BAD view")
    found = [(e.first, e.behind, e.polarity) for e in emotions(text, LEXICON)]
    assert found == [(0, 1, 1), (3, 5, 1), (8, 9, -1)]
    # a segmenter may split what the list keeps whole
    assert [e.polarity for e in emotions(words("房间很干净"), {"很干净": 1})] == [1]


@pytest.mark.parametrize(
    ("text", "about"),
    [
        ("the room was very good", ["room"]),  # function words count as distance, never as aspects
        ("good rooms and staff", ["rooms", "staff"]),
        ("the staff , good", []),  # a sign ends the clause
        ("room of the hotel in rain was good", ["rain"]),  # three words away at most
        ("lovely good", []),  # emotional words are not what others are about
        ("staff good room", ["staff", "room"]),  # as near: the one before
        ("房间非常干净", ["房间"]),
    ],
)
def test_what_an_emotional_word_is_about(text: str, about: list[str]) -> None:
    read = words(text)
    found = emotions(read, LEXICON)
    taken = {p for e in found for p in range(e.first, e.behind)}
    assert [read.words[p] for p in nearby(read, found[-1], taken, 3)] == about


def test_pairs_are_hidden_whole_and_at_most_two() -> None:
    one = known("good room , bad staff , lovely view , awful food and so on for a while")
    assert [a is not None for a in one.aspects] == [True] * 4
    for seed in range(5):
        found = hide(one, seed)
        gone = np.flatnonzero((found.ids == MASK) & (found.words == NOTHING))
        assert len(gone) == 4 == len(found.pairs)  # two pairs of two words
        assert set(found.pairs) == set(one.ids[gone])
        # of pairs the polarity is asked at the emotional word, its own word only of the whole text
        asked = np.flatnonzero(found.polarity != NOTHING)
        paired = [i for i in asked if found.words[i] == NOTHING]
        praised = {1: 1, 4: 0, 7: 1, 10: 0}
        assert len(paired) == 2
        assert all(found.polarity[i] == praised[int(i)] for i in asked)
    none = hide(one, pairs=0)
    assert not len(none.pairs)
    assert len(np.flatnonzero(none.words != NOTHING)) == 1  # a tenth of 18 pieces


def test_emotional_words_go_first_and_the_share_is_kept() -> None:
    one = known("good lovely bad awful " + "and it was so " * 9)  # 40 words, no aspects
    for seed in range(5):
        found = hide(one, seed)
        asked = np.flatnonzero(found.words != NOTHING)
        assert len(asked) == 4 and set(asked) == {1, 2, 3, 4}
        assert (found.ids[asked] == MASK).all()
        assert found.polarity[1:5].tolist() == [1, 1, 0, 0]
        assert np.array_equal(found.words[asked], one.ids[asked])
        half = hide(one, seed, share=0.05)
        assert (half.words != NOTHING).sum() == 2
        assert set(np.flatnonzero(half.words != NOTHING)) < {1, 2, 3, 4}
    assert len({tuple(hide(one, s, share=0.05).ids) for s in range(20)}) > 3


def test_ordinary_pieces_fill_the_share_as_in_bert() -> None:
    one = known("and it was so " * 100 + "good")
    masks = others = same = 0
    for seed in range(30):
        found = hide(one, seed)
        asked = np.flatnonzero(found.words != NOTHING)
        assert len(asked) == 40  # a tenth of 401 pieces
        assert 401 in asked  # the emotional one before all others
        assert found.ids[0] == 2 and found.ids[-1] == 3  # special ones never
        ordinary = asked[asked != 401]
        masks += int((found.ids[ordinary] == MASK).sum())
        same += int((found.ids[ordinary] == one.ids[ordinary]).sum())
        others += len(ordinary)
        assert (found.polarity[ordinary] == NOTHING).all()
    assert masks / others == pytest.approx(0.8, abs=0.05)
    assert same / others == pytest.approx(0.1, abs=0.03)
    short = hide(known("it was so"))
    assert (short.words != NOTHING).sum() == 1


def test_words_of_several_pieces_are_hidden_together() -> None:
    text = words("房间 干净 " + "的 " * 30)
    offsets = [(0, 0), *((i, i + 1) for i, c in enumerate(text.text) if c != " "), (0, 0)]
    ids = np.array([2, *range(FIRST, FIRST + len(offsets) - 2), 3])
    finder = Finder.of([text], LEXICON, Masking(least=1))
    one = finder.known(text, ids, Alignment.by_offsets(offsets, text.spans))
    assert [at.tolist() for at in one.emotional] == [[3, 4]]
    found = hide(one)
    assert (found.ids[1:5] == MASK).all() and found.polarity[3:5].tolist() == [1, 1]
    assert set(found.pairs) == {FIRST, FIRST + 1, FIRST + 2, FIRST + 3}
    # without the pair, two pieces do not fit where one may be hidden
    tight = hide(replace(one, aspects=(None,)), share=0.04)
    assert (tight.polarity == NOTHING).all() and (tight.words != NOTHING).sum() == 1


def test_aspects_are_words_seen_often_enough() -> None:
    texts = [words("the room was good")] * 3 + [words("the moon was good")]
    assert Finder.of(texts, LEXICON, Masking(least=3)).aspects == {"room"}


def test_losses_are_the_formulas(encoder_folder: Path) -> None:
    encoder, _, _ = Encoder(encoder_folder).read("")
    with torch.random.fork_rng():
        torch.manual_seed(1)
        model = SentimentKnowledge(encoder, 0).double().eval()
    n = NOTHING
    batch = [
        Masked(
            *(np.array(x) for x in ([2, 4, 9, 4, 3], [n, 7, 9, n, n], [n, 1, n, 0, n], [8, 11]))
        ),
        Masked(*(np.array(x) for x in ([2, 4, 3], [n, 6, n], [n, n, n], []))),
        Masked(*(np.array(x) for x in ([2, 4, 5, 3], [n] * 4, [n, 0, n, n], [5]))),
    ]
    found = model.losses(batch)
    weights = {k: v.detach().numpy() for k, v in model.state_dict().items()}
    table = encoder.get_input_embeddings().weight.detach().numpy()

    def pieces(head: str, x: Any) -> Any:
        z = x @ weights[f"{head}.turn.0.weight"].T + weights[f"{head}.turn.0.bias"]
        z = torch.nn.functional.gelu(torch.from_numpy(z)).numpy()
        z = (z - z.mean()) / np.sqrt(z.var() + 1e-5)
        z = z * weights[f"{head}.turn.2.weight"] + weights[f"{head}.turn.2.bias"]
        return z @ table.T + weights[f"{head}.bias"]

    def log_softmax(z: Any) -> Any:
        return z - np.log(np.exp(z - z.max()).sum()) - z.max()

    said = []
    for m in batch:  # each alone: padding must not matter
        with torch.no_grad():
            said.append(model(torch.from_numpy(m.ids)[None])[0].numpy())
    words_, polarity, pairs = [], [], []
    for m, x in zip(batch, said, strict=True):
        for i in range(len(m.ids)):
            if m.words[i] != n:
                words_.append(-log_softmax(pieces("words", x[i]))[m.words[i]])
            if m.polarity[i] != n:
                z = x[i] @ weights["polarity.weight"].T + weights["polarity.bias"]
                polarity.append(-log_softmax(z)[m.polarity[i]])
        if len(m.pairs):
            p = 1 / (1 + np.exp(-pieces("pairs", x[0])))
            y = np.isin(np.arange(len(p)), m.pairs)
            pairs.append(-(y * np.log(p) + (1 - y) * np.log(1 - p)).sum() / y.sum())
    assert found.counts == (3, 3, 2)
    for seen, wanted in zip(
        (found.words, found.polarity, found.pairs), (words_, polarity, pairs), strict=True
    ):
        assert float(seen.detach()) == pytest.approx(np.mean(wanted), rel=1e-6)
    assert float(found.total.detach()) == pytest.approx(
        np.mean(words_) + np.mean(polarity) + np.mean(pairs), rel=1e-6
    )
    unasked = np.full(3, n)
    nothing = Masked(np.array([2, 5, 3]), unasked, unasked, np.zeros(0, int))
    empty = model.losses([nothing])
    assert float(empty.total.detach()) == 0.0
    empty.total.backward()  # type: ignore[no-untyped-call]


def test_words_are_mined_by_what_they_stand_beside() -> None:
    texts = [words(t) for t in ["a good sunny room", "lovely sunny place", "a bad leaky room"] * 10]
    found = mined_lexicon(texts, LEXICON)
    assert found["sunny"] == 1 and found["leaky"] == -1
    assert "a" not in found and "room" not in found
    assert found.items() >= LEXICON.items()
    # room: 10 texts with praise of 20, 10 with blame of 10
    with pytest.raises(DataError, match="seed words that praise"):
        mined_lexicon([words("a good room")], LEXICON)


# ---- learning -------------------------------------------------------------------------------

CHEERFUL, SOUR = ("smiled", "danced"), ("cried", "frowned")
VOCABULARY = listed(
    "we all and then it had room staff food good lovely bad awful smiled danced cried frowned"
)
QUICK = Pretraining(
    epochs=4, batch_size=16, learning_rate=5e-3, masking=Masking(share=0.2, least=2)
)


@pytest.fixture(scope="module")
def stays() -> Dataset:
    """What people did tells what they thought."""
    rng = np.random.default_rng(0)
    examples = []
    for i in range(240):
        good = i % 2
        did = rng.choice(CHEERFUL if good else SOUR)
        said = rng.choice(["good", "lovely"] if good else ["bad", "awful"])
        text = f"we all {did} and then we {did} , it had {said} {rng.choice(['room', 'staff'])}"
        examples.append(Example(str(i), words(text), good))
    return Dataset("stays", ("negative", "positive"), tuple(examples))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return small_encoder(tmp_path_factory.mktemp("ernie"), "Ernie", VOCABULARY)


@pytest.fixture(scope="module")
def pretrained(folder: Path, stays: Dataset, tmp_path_factory: pytest.TempPathFactory) -> Any:
    out = tmp_path_factory.mktemp("pretrained") / "encoder"
    told = veracity.pretrain(folder, stays, lexicon=LEXICON, out=out, pretraining=QUICK)
    return told, out


def test_polarity_of_held_out_words_is_learnt(pretrained: Any) -> None:
    told, _ = pretrained
    first, best = told.history[0], told.best
    assert best.polarity < 0.5 * np.log(2)
    assert best.polarity_accuracy > 0.9
    assert best.words < first.words and best.pairs < first.pairs
    assert best.held_out == min(p.held_out for p in told.history)


def test_the_same_seed_gives_the_same_weights(folder: Path, stays: Dataset, tmp_path: Path) -> None:
    few = stays.select(range(60))
    before = torch.random.get_rng_state()

    def weights(out: Path | None = None, **changes: Any) -> dict[str, torch.Tensor]:
        settings = replace(QUICK, epochs=2, **changes)
        model = veracity.pretrain(
            folder, few, lexicon=LEXICON, out=out, pretraining=settings
        ).model  # fmt: skip
        return {k: v.clone() for k, v in model.state_dict().items()}

    one = weights()
    assert torch.equal(before, torch.random.get_rng_state())
    # stopped after the first pass and given again, it is as if never stopped
    seen: list[Pass] = []

    def stop(progress: Any) -> None:
        if isinstance(progress.result, Pass):
            seen.append(progress.result)
            raise KeyboardInterrupt

    out = tmp_path / "out"
    settings = replace(QUICK, epochs=2)
    with pytest.raises(KeyboardInterrupt):
        veracity.pretrain(
            folder, few, lexicon=LEXICON, out=out, pretraining=settings, watch=stop
        )  # fmt: skip
    with pytest.raises(ModelError, match="checkpoint of another training"):
        veracity.pretrain(
            folder, few, lexicon={"good": 1, "bad": -1}, out=out, pretraining=settings
        )
    resumed = weights(out)
    assert [p.number for p in seen] == [0] and not (out / "checkpoint").exists()
    assert all(torch.equal(one[k], resumed[k]) for k in one)
    other = weights(seed=1)
    assert any(not torch.equal(one[k], other[k]) for k in one)


def test_the_folder_loads_anywhere(
    pretrained: Any, folder: Path, stays: Dataset, tmp_path: Path
) -> None:
    from transformers import AutoModel, AutoTokenizer

    told, out = pretrained
    theirs = AutoModel.from_pretrained(out)
    AutoTokenizer.from_pretrained(out)
    ours = told.model.encoder.state_dict()
    assert all(torch.equal(v, ours[k]) for k, v in theirs.state_dict().items())
    assert not any("polarity" in k for k in theirs.state_dict())
    assert json.loads((out / "pretraining.json").read_text())["best"] == told.best.number
    write_records(stays.select(range(80)), tmp_path / "stays.jsonl")
    said = run_command(
        "train", f"transformer(encoder='{out}')", "stays.jsonl", "--epochs", "1", "--out", "m",
        cwd=tmp_path,
    )  # fmt: skip
    assert said.returncode == 0, said.stderr
    (one,) = veracity.explain(veracity.load_model(tmp_path / "m"), "we smiled", "lime(samples=50)")
    assert len(one.scores) == 2


def test_the_command_and_its_errors(
    folder: Path, encoder_folder: Path, stays: Dataset, tmp_path: Path
) -> None:
    write_records(stays.select(range(40)), tmp_path / "stays.jsonl")
    (tmp_path / "words.tsv").write_text("".join(f"{w}\t{s}\n" for w, s in LEXICON.items()))
    (tmp_path / "han.tsv").write_text("干净\t1\n脏\t-1\n", "utf-8")
    (tmp_path / "praise.tsv").write_text("good\t1\n")

    def run(*arguments: str) -> Any:
        return run_command(
            "pretrain", str(folder), "stays.jsonl", "--epochs", "1", *arguments, cwd=tmp_path
        )  # fmt: skip

    done = run("--lexicon", "words.tsv", "--out", "e", "--json")
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert told["words"] == len(LEXICON) and told["aspects"] == 2
    again = run("--lexicon", "words.tsv", "--out", "e")
    assert again.returncode == 2 and "already" in again.stderr
    for lexicon, says in (
        ("han.tsv", "lexicon is Chinese, the texts are not"),
        ("praise.tsv", "only words that praise"),
        ("none.tsv", "expected a word list"),
    ):
        failed = run("--lexicon", lexicon, "--out", "f")
        assert failed.returncode == 2 and says in failed.stderr, failed.stderr
        assert not (tmp_path / "f").exists()
    han = Dataset(
        "han",
        ("n", "p"),
        tuple(
            Example(str(i), words("宾馆很干净" if i % 2 else "宾馆脏"), i % 2) for i in range(20)
        ),
    )
    with pytest.raises(ModelError, match=r"pieces of the texts are unknown.*chinese"):
        veracity.pretrain(encoder_folder, han, lexicon=LEXICON)
    with pytest.raises(DataError, match="got 0 and 0"):
        veracity.pretrain(folder, han.select([]), lexicon=LEXICON)
    (tmp_path / "taken").mkdir()
    (tmp_path / "taken" / "letter.txt").write_text("dear")
    with pytest.raises(RunError, match="holds other files"):
        veracity.pretrain(folder, stays, lexicon=LEXICON, out=tmp_path / "taken")
    with pytest.raises(ValueError, match="share between 0 and 1"):
        Masking(share=1.5)
