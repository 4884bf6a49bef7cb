"""Convolution over words with many subsets of them hidden, without convolving each anew.

A filter adds up one partial product per word and slot. Those are computed once; after that a
masking costs look-ups, additions and maxima, never a matrix product.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from ..core.inputs import BoolArray, IntArray

SYMBOLS_AT_ONCE = 400_000
"""How many words of all maskings together are laid out at a time."""

ROWS_AT_ONCE = 1024
"""How many maskings are looked up at a time: their maxima stay in the processor's cache."""

TABLE_LIMIT = 25_000_000
"""How many numbers the look-up tables of one text may hold."""


@dataclass(frozen=True)
class Filters:
    """The filters of one width, and how many rows of zeros stand before and after a text."""

    weight: Tensor  # (filters, size, width)
    bias: Tensor  # (filters,)
    before: int = 0
    after: int = 0

    @property
    def width(self) -> int:
        return int(self.weight.shape[2])

    def rows(self, words: int) -> int:
        """How many windows a text of so many words has."""
        return words + self.before + self.after - self.width + 1


@dataclass(frozen=True)
class Windows:
    """All filters of a network; texts are cut to `most` words and padded with zeros to `least`."""

    filters: Sequence[Filters]
    least: int
    most: int | None = None

    def pooled(self, words: Tensor, blank: Tensor, shown: BoolArray, *, delete: bool) -> Tensor:
        """Each filter's maximum over its windows, before the nonlinearity, for every masking.

        words (n, size), blank (size,), shown (masks, n) → (masks, filters of all widths). Hidden
        words turn into the blank, or the others close up.
        """
        if not delete and self.most is not None:
            words, shown = words[: self.most], shown[:, : self.most]
        partial = [self._partial(f, words, blank) for f in self.filters]
        if not delete and len(shown) > 2 ** max(f.width for f in self.filters):
            return self._by_tables(partial, shown)
        step = max(1, SYMBOLS_AT_ONCE // max(1, words.shape[0]))
        parts = [
            self._by_distinct_windows(partial, shown[i : i + step], delete)
            for i in range(0, len(shown), step)
        ]
        return torch.cat(parts)

    @staticmethod
    def _partial(filters: Filters, words: Tensor, blank: Tensor) -> Tensor:
        """Products of every slot with every word, the blank and padding. → (slots, n + 2, filters)

        The bias belongs to the first slot, which every window has.
        """
        zero = torch.zeros_like(blank)
        symbols = torch.cat([words, blank[None], zero[None]])
        products = torch.einsum("nd,fdw->wnf", symbols, filters.weight)
        products[0] += filters.bias
        return products.contiguous()

    # ---- hidden words stay where they are: tables over blocks of neighbouring windows ---------

    def _by_tables(self, partial: Sequence[Tensor], shown: BoolArray) -> Tensor:
        """A window has few states and so have a few windows together: list them all once."""
        masks, n = shown.shape
        before = max(f.before for f in self.filters)
        longest = max(f.width for f in self.filters)
        together = self._windows_per_block(n, masks)
        tables = self._tables(partial, n, together)  # (blocks, states, filters)
        blocks, bits = len(tables), together + longest - 1
        # what lies outside of the text is padding in either state
        around = np.zeros((masks, (blocks - 1) * together + bits), dtype=np.float32)
        around[:, before : before + n] = shown[:, : around.shape[1] - before]
        weights = np.zeros((around.shape[1], blocks), dtype=np.float32)
        for block in range(blocks):
            weights[block * together : block * together + bits, block] = 2.0 ** np.arange(bits)
        device = tables.device
        places = torch.from_numpy((around @ weights).astype(np.int64).T.copy()).to(device)
        found = tables.new_empty((masks, tables.shape[2]))
        for i in range(0, masks, ROWS_AT_ONCE):
            rows = found[i : i + ROWS_AT_ONCE]
            torch.index_select(tables[0], 0, places[0, i : i + ROWS_AT_ONCE], out=rows)
            for table, place in zip(tables[1:], places[1:], strict=True):
                other = table.index_select(0, place[i : i + ROWS_AT_ONCE])
                torch.maximum(rows, other, out=rows)
        return found

    def _windows_per_block(self, n: int, masks: int) -> int:
        """How many windows share a table: more make fewer look-ups and larger tables."""
        longest = max(f.width for f in self.filters)
        rows = max(f.rows(max(n, self.least)) for f in self.filters)
        total = sum(int(f.weight.shape[0]) for f in self.filters)
        options = [1] + [
            t for t in (2, 4, 8) if -(-rows // t) * 2 ** (t + longest - 1) * total < TABLE_LIMIT
        ]
        return min(options, key=lambda t: 2.0 ** (t + longest - 1) / t + masks / t)

    def _tables(self, partial: Sequence[Tensor], n: int, together: int) -> Tensor:
        """For every block of windows and every state of its words, each filter's maximum."""
        length = max(n, self.least)
        before = max(f.before for f in self.filters)
        longest = max(f.width for f in self.filters)
        rows = max(f.rows(length) + before - f.before for f in self.filters)
        blocks = -(-rows // together)
        total = sum(p.shape[2] for p in partial)
        found = partial[0].new_empty((blocks, 2 ** (together + longest - 1), total))
        done = 0
        for filters, products in zip(self.filters, partial, strict=True):
            table = self._window_states(filters, products, n, before, blocks * together)
            size = 1  # windows that a row of the table stands for so far
            while size < together:
                table = _joined(table, filters.width, size)
                size *= 2
            spread = found.view(blocks, -1, table.shape[1], total)
            spread[..., done : done + table.shape[2]] = table[:, None]
            done += table.shape[2]
        return found

    def _window_states(
        self, filters: Filters, products: Tensor, n: int, before: int, starts: int
    ) -> Tensor:
        """Every window in each of its states; the first word is the lowest bit.

        → (starts, 2^width, filters), from the leftmost place where any width may start
        """
        blank, zero = n, n + 1
        places = torch.arange(starts, device=products.device) - before
        table = products.new_zeros((starts, 1, products.shape[2]))
        for j in range(filters.width):
            word = places + j
            inside = (word >= 0) & (word < n)
            shown = products[j, torch.where(inside, word, zero)]
            hidden = products[j, torch.where(inside, blank, zero)]
            table = torch.cat([table + hidden[:, None], table + shown[:, None]], dim=1)
        last = filters.rows(max(n, self.least)) - filters.before
        table[(places < -filters.before) | (places >= last)] = -torch.inf
        return table

    # ---- hidden words are deleted, or maskings are few: each different window once ------------

    def _by_distinct_windows(
        self, partial: Sequence[Tensor], shown: BoolArray, delete: bool
    ) -> Tensor:
        masks, n = shown.shape
        symbols, lengths = self._laid_out(shown, delete)
        order = np.argsort(-lengths, kind="stable")  # windows of a column are a run of rows
        symbols, lengths = symbols[order], lengths[order]
        device = partial[0].device
        pooled = []
        for filters, products in zip(self.filters, partial, strict=True):
            rows = np.maximum(lengths, self.least) + filters.rows(0)
            window, table = self._distinct(filters, products, symbols, rows, n)
            best = table.new_full((masks, table.shape[1]), -torch.inf)
            counts = np.searchsorted(-rows, -np.arange(int(rows.max())), side="left")
            places = torch.from_numpy(np.ascontiguousarray(window.T)).to(device)
            for column, count in enumerate(counts.tolist()):
                for i in range(0, count, ROWS_AT_ONCE):
                    j = min(count, i + ROWS_AT_ONCE)
                    here = best[i:j]
                    other = table.index_select(0, places[column, i:j])
                    torch.maximum(here, other, out=here)
            pooled.append(best)
        back = torch.from_numpy(np.argsort(order)).to(device)
        return torch.cat(pooled, dim=1)[back]

    def _laid_out(self, shown: BoolArray, delete: bool) -> tuple[IntArray, IntArray]:
        """What each masking reads, as numbers: words, n the blank, n + 1 padding all around."""
        masks, n = shown.shape
        blank, zero = n, n + 1
        before = max(f.before for f in self.filters)
        after = max(f.after for f in self.filters)
        if delete:
            lengths = shown.sum(axis=1)
            # a stable sort of "is hidden" moves the shown words to the front, in their order
            words = np.argsort(~shown, axis=1, kind="stable")
            words[np.arange(n) >= lengths[:, None]] = zero
        else:
            lengths = np.full(masks, n)
            words = np.where(shown, np.arange(n), blank)
        if self.most is not None:
            words, lengths = words[:, : self.most], np.minimum(lengths, self.most)
        width = max(words.shape[1], self.least)
        symbols = np.full((masks, before + width + after), zero, dtype=np.int64)
        symbols[:, before : before + words.shape[1]] = words
        return symbols, lengths

    def _distinct(
        self, filters: Filters, products: Tensor, symbols: IntArray, rows: IntArray, n: int
    ) -> tuple[IntArray, Tensor]:
        """Which of the different windows stands at each place, and the sum of each of them."""
        skip = max(f.before for f in self.filters) - filters.before
        seen = symbols[:, skip:]
        columns = int(rows.max())
        row, column = np.nonzero(np.arange(columns) < rows[:, None])
        codes = seen[row, column]
        for j in range(1, filters.width):
            if codes.max(initial=0) > 2_000_000:
                codes = _renumbered(codes)
            codes = codes * (n + 2) + seen[row, column + j]
        codes = _renumbered(codes)
        window = np.zeros((len(seen), columns), dtype=np.int64)
        window[row, column] = codes
        place = np.empty(int(codes.max(initial=0)) + 1, dtype=np.int64)
        place[codes] = np.arange(len(codes))
        row, column = row[place], column[place]
        table = products.new_zeros((len(place), products.shape[2]))
        for j in range(filters.width):
            table += products[j].index_select(
                0, torch.from_numpy(seen[row, column + j]).to(products.device)
            )
        return window, table


def _renumbered(codes: IntArray) -> IntArray:
    """The same codes counted from 0 without gaps."""
    top = int(codes.max(initial=0)) + 1
    if top <= max(100_000, 64 * codes.size):  # else sorting a few is quicker than to list them all
        used = np.zeros(top, dtype=np.bool_)
        used[codes] = True
        there = np.flatnonzero(used)
        number = np.empty(top, dtype=np.int64)
        number[there] = np.arange(len(there))
        return number[codes]
    return np.unique(codes, return_inverse=True)[1].reshape(codes.shape)


def _joined(table: Tensor, width: int, size: int) -> Tensor:
    """Neighbours of `size` windows each become one of twice as many: the maximum of both, for
    every state of their words, of which they share all but `size`."""
    starts, _, filters = table.shape
    own, shared = 2**size, 2 ** (width - 1)
    pairs = table.view(starts // 2, 2, -1, filters)
    left = pairs[:, 0].reshape(-1, 1, shared, own, filters)
    right = pairs[:, 1].reshape(-1, own, shared, 1, filters)
    return torch.maximum(left, right).view(starts // 2, -1, filters)
