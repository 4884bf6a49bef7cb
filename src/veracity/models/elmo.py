"""A bidirectional language model that reads words by their letters (Peters et al. 2018;
definitions 1.9). Weights are laid out as in the published files."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from ..core.schema import check_schema

LETTERS = 262
"""What a word is spelt with: nothing, the 256 bytes, and five marks."""

BEGIN_TEXT, END_TEXT, BEGIN_WORD, END_WORD, NO_LETTER = range(257, 262)

LARGEST = 100_000
"""A bound on every number of an options file, far above any published one."""


@dataclass(frozen=True, kw_only=True)
class ElmoOptions:
    """The sizes of a model, as its options file names them."""

    letter_size: int
    filters: tuple[tuple[int, int], ...]
    """Letters that the filters of a width see, and how many filters there are."""
    highways: int
    word_letters: int
    """Letters of a word that are read, two marks included."""
    activation: str
    size: int
    """How long the state of one direction is."""
    memory: int
    """Cells of one direction."""
    layers: int
    memory_clip: float | None
    state_clip: float | None

    @classmethod
    def of(cls, content: Any) -> ElmoOptions:
        """From the JSON of an options file; what does not fit is a ValueError."""
        letters: dict[str, Any] = {"embedding": {"dim": int}, "filters": [[int]], "n_highway": int}
        letters |= {"activation": str, "max_characters_per_token": int, "n_characters?": int}
        lstm: dict[str, Any] = {
            "dim": int,
            "projection_dim": int,
            "n_layers": int,
            "use_skip_connections": bool,
        }
        lstm |= {"cell_clip?": float | int | None, "proj_clip?": float | int | None}
        check_schema(content, {"char_cnn": letters, "lstm": lstm})
        cnn, lstm = content["char_cnn"], content["lstm"]
        if cnn.get("n_characters", LETTERS) not in (LETTERS - 1, LETTERS):
            raise ValueError(
                f"expected char_cnn.n_characters to be {LETTERS - 1} or {LETTERS}, the bytes and "
                f"marks that words are spelt with; got {cnn['n_characters']}"
            )
        if not lstm["use_skip_connections"]:
            raise ValueError("expected lstm.use_skip_connections to be true; others are not known")
        if cnn["activation"] not in ("relu", "tanh"):
            raise ValueError(
                f"expected char_cnn.activation to be relu or tanh, got {cnn['activation']!r:.40}"
            )
        if not cnn["filters"] or any(len(pair) != 2 for pair in cnn["filters"]):
            raise ValueError("expected char_cnn.filters to be pairs of a width and a number")
        found = cls(
            letter_size=cnn["embedding"]["dim"],
            filters=tuple((width, count) for width, count in cnn["filters"]),
            highways=cnn["n_highway"],
            word_letters=cnn["max_characters_per_token"],
            activation=cnn["activation"],
            size=lstm["projection_dim"],
            memory=lstm["dim"],
            layers=lstm["n_layers"],
            memory_clip=lstm.get("cell_clip") or None,
            state_clip=lstm.get("proj_clip") or None,
        )
        found.check()
        return found

    def check(self) -> None:
        """Sizes of which a model can be made."""
        counts = [self.letter_size, self.size, self.memory, self.layers, self.word_letters]
        counts += [number for pair in self.filters for number in pair]
        if not 1 <= min(counts) <= max(*counts, self.highways) <= LARGEST or self.highways < 0:
            raise ValueError(f"expected sizes from 1 to {LARGEST:,}, got {self.to_json()}"[:200])
        if self.word_letters < max(3, *(width for width, _ in self.filters)):
            raise ValueError(
                f"expected words of 3 letters or more, and no filters wider; got "
                f"{self.word_letters} letters and widths of {[w for w, _ in self.filters]}"
            )
        if min(self.memory_clip or 1, self.state_clip or 1) <= 0:
            raise ValueError("expected cell_clip and proj_clip to be above 0")

    def to_json(self) -> dict[str, Any]:
        """As an options file has it."""
        return {
            "lstm": {
                "use_skip_connections": True,
                "projection_dim": self.size,
                "cell_clip": self.memory_clip,
                "proj_clip": self.state_clip,
                "dim": self.memory,
                "n_layers": self.layers,
            },
            "char_cnn": {
                "activation": self.activation,
                "filters": [list(pair) for pair in self.filters],
                "n_highway": self.highways,
                "embedding": {"dim": self.letter_size},
                "n_characters": LETTERS,
                "max_characters_per_token": self.word_letters,
            },
        }

    @property
    def word_size(self) -> int:
        """How many filters there are."""
        return sum(count for _, count in self.filters)

    def datasets(self) -> Iterator[tuple[str, str, tuple[int, ...]]]:
        """Every dataset of a weight file: its path, the parameter that holds it, its shape."""
        many = self.word_size
        yield "char_embed", "words.letters", (LETTERS - 1, self.letter_size)
        for i, (width, count) in enumerate(self.filters):
            yield f"CNN/W_cnn_{i}", f"words.filters.{i}", (1, width, self.letter_size, count)
            yield f"CNN/b_cnn_{i}", f"words.filter_bias.{i}", (count,)
        for i in range(self.highways):
            for part in ("transform", "carry"):
                yield f"CNN_high_{i}/W_{part}", f"words.{part}.{i}", (many, many)
                yield f"CNN_high_{i}/b_{part}", f"words.{part}_bias.{i}", (many,)
        yield "CNN_proj/W_proj", "words.projection", (many, self.size)
        yield "CNN_proj/b_proj", "words.projection_bias", (self.size,)
        for way, name in enumerate(("forward", "backward")):
            for layer in range(self.layers):
                cell = f"RNN_{way}/RNN/MultiRNNCell/Cell{layer}/LSTMCell"
                own = f"{name}_layers.{layer}"
                yield f"{cell}/W_0", f"{own}.weight", (2 * self.size, 4 * self.memory)
                yield f"{cell}/B", f"{own}.bias", (4 * self.memory,)
                yield f"{cell}/W_P_0", f"{own}.projection", (self.memory, self.size)


def spelling(word: str, length: int) -> list[int]:
    """A word as the numbers of its letters, marked where it begins and ends."""
    letters = [byte + 1 for byte in word.encode("utf-8", "ignore")[: length - 2]]
    return _filled([BEGIN_WORD, *letters, END_WORD], length)


def _filled(letters: list[int], length: int) -> list[int]:
    return letters + [NO_LETTER] * (length - len(letters))


class LetterReader(nn.Module):
    """Letters → convolutions, their maxima → highways → a vector for each word."""

    def __init__(self, options: ElmoOptions) -> None:
        super().__init__()
        self.options = options
        shapes = {own: shape for _, own, shape in options.datasets()}

        def list_of(name: str, count: int) -> nn.ParameterList:
            return nn.ParameterList(_drawn(shapes[f"words.{name}.{i}"]) for i in range(count))

        self.letters = _drawn(shapes["words.letters"], 1.0)
        self.filters = list_of("filters", len(options.filters))
        self.filter_bias = list_of("filter_bias", len(options.filters))
        self.transform = list_of("transform", options.highways)
        self.transform_bias = list_of("transform_bias", options.highways)
        self.carry = list_of("carry", options.highways)
        self.carry_bias = list_of("carry_bias", options.highways)
        self.projection = _drawn(shapes["words.projection"])
        self.projection_bias = _drawn(shapes["words.projection_bias"])

    def forward(self, letters: Tensor) -> Tensor:
        """(words, letters) → (words, size)"""
        table = nn.functional.pad(self.letters, (0, 0, 1, 0))  # nothing is spelt with zeros
        columns = nn.functional.embedding(letters, table).transpose(1, 2)
        active = torch.relu if self.options.activation == "relu" else torch.tanh
        found = torch.cat(
            [
                # (1, width, letter size, filters) in the file
                active(nn.functional.conv1d(columns, weight[0].permute(2, 1, 0), bias).amax(dim=2))
                for weight, bias in zip(self.filters, self.filter_bias, strict=True)
            ],
            dim=1,
        )
        for i in range(self.options.highways):
            share = torch.sigmoid(found @ self.carry[i] + self.carry_bias[i])
            new = torch.relu(found @ self.transform[i] + self.transform_bias[i])
            found = share * new + (1 - share) * found
        return found @ self.projection + self.projection_bias


class ProjectedLstm(nn.Module):
    """An LSTM whose state is projected to a smaller one; gates stand in the order input, candidate,
    forget, output, and 1 is added to the forget gate."""

    def __init__(self, options: ElmoOptions) -> None:
        super().__init__()
        self.options = options
        self.weight = _drawn((2 * options.size, 4 * options.memory))
        self.bias = _drawn((4 * options.memory,))
        self.projection = _drawn((options.memory, options.size))

    def forward(self, values: Tensor) -> Tensor:
        """From left to right. (texts, words, size) → (texts, words, size)"""
        from_input, from_state = self.weight.chunk(2)
        inputs = values @ from_input + self.bias
        state = values.new_zeros(len(values), self.options.size)
        memory = values.new_zeros(len(values), self.options.memory)
        states = []
        for gates in inputs.unbind(dim=1):
            take, new, keep, give = (gates + state @ from_state).chunk(4, dim=1)
            memory = torch.sigmoid(keep + 1) * memory + torch.sigmoid(take) * torch.tanh(new)
            memory = _clipped(memory, self.options.memory_clip)
            state = (torch.sigmoid(give) * torch.tanh(memory)) @ self.projection
            state = _clipped(state, self.options.state_clip)
            states.append(state)
        return torch.stack(states, dim=1)


class BidirectionalLm(nn.Module):
    """Two stacks of layers over words, one from the left and one from the right; each layer but the
    first adds what it was given to what it gives."""

    def __init__(self, options: ElmoOptions) -> None:
        super().__init__()
        self.options = options
        self.words = LetterReader(options)
        layers = range(options.layers)
        self.forward_layers = nn.ModuleList(ProjectedLstm(options) for _ in layers)
        self.backward_layers = nn.ModuleList(ProjectedLstm(options) for _ in layers)

    def forward(self, texts: Sequence[Sequence[str]]) -> tuple[list[Tensor], Tensor]:
        """What each layer says of every word and of the marks around a text, both directions beside
        each other; the first layer is that of the words alone, twice.

        → (texts, marks and words, 2 size) per layer, how many of these each text has (texts,)
        """
        values, lengths = self.embedded(texts)
        turned = _turned(lengths, values.shape[1])[:, :, None].expand(-1, -1, values.shape[2])
        layers = [torch.cat([values, values], dim=2)]
        left, right = values, values.gather(1, turned)
        for number, (forward, backward) in enumerate(
            zip(self.forward_layers, self.backward_layers, strict=True)
        ):
            left = forward(left) + (left if number else 0)
            right = backward(right) + (right if number else 0)
            layers.append(torch.cat([left, right.gather(1, turned)], dim=2))
        return layers, lengths

    def embedded(self, texts: Sequence[Sequence[str]]) -> tuple[Tensor, Tensor]:
        """The vectors of words without their context, marks around each text, zeros behind."""
        device = self.words.projection.device
        places: dict[str, int] = {}
        rows = [torch.tensor([places.setdefault(w, len(places)) for w in text]) for text in texts]
        vectors = self.words(self._letters(places).to(device))  # each different word once
        begin, end, nothing = len(places), len(places) + 1, len(places) + 2
        rows = [nn.functional.pad(row, (1, 0), value=begin) for row in rows]
        rows = [nn.functional.pad(row, (0, 1), value=end) for row in rows]
        which = nn.utils.rnn.pad_sequence(rows, batch_first=True, padding_value=nothing)
        table = nn.functional.pad(vectors, (0, 0, 0, 1))
        lengths = torch.tensor([len(row) for row in rows], device=device)
        return nn.functional.embedding(which.long().to(device), table), lengths

    def _letters(self, words: Mapping[str, int]) -> Tensor:
        """The spelling of words and of the two marks of a text. What is only filling behind the
        widest filter changes no maximum and is left out."""
        longest = self.options.word_letters
        spelt = [spelling(word, longest) for word in words]
        marks = (BEGIN_TEXT, END_TEXT)
        spelt += [_filled([BEGIN_WORD, mark, END_WORD], longest) for mark in marks]
        letters = torch.tensor(spelt)
        widest = max(width for width, _ in self.options.filters)
        used = int((letters != NO_LETTER).sum(dim=1).max()) + widest
        return letters[:, :used]


class ScalarMix(nn.Module):
    """γ Σ_l softmax(w)_l h_l over layers; the mean of them as it begins."""

    def __init__(self, layers: int) -> None:
        super().__init__()
        self.weights = nn.Parameter(torch.zeros(layers))
        self.gamma = nn.Parameter(torch.ones(()))

    def forward(self, layers: Sequence[Tensor]) -> Tensor:
        shares = torch.softmax(self.weights, dim=0)
        return self.gamma * torch.einsum("l,lbnd->bnd", shares, torch.stack(list(layers)))


def _turned(lengths: Tensor, width: int) -> Tensor:
    """Places from the last to the first of each row; what is behind the last stays. The way back is
    the same. → (texts, width)"""
    place = torch.arange(width, device=lengths.device)
    back = lengths[:, None] - 1 - place
    return torch.where(back >= 0, back, place)


def _clipped(values: Tensor, most: float | None) -> Tensor:
    return values if most is None else values.clamp(-most, most)


def _drawn(shape: tuple[int, ...], scale: float | None = None) -> nn.Parameter:
    """Weights to begin with: the deviation is 1 / √(inputs), biases are zero."""
    if len(shape) == 1:
        return nn.Parameter(torch.zeros(shape))
    inputs = 1
    for n in shape[:-1]:
        inputs *= n
    return nn.Parameter(torch.randn(shape) * (scale or inputs**-0.5))
