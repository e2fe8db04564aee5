"""An index over the n-grams of a benchmark, and where they occur in a stream of rows.

Numbers are not told apart here, so that a changed number hides nothing; whether they agree is looked at afterwards.
An n-gram weighs ln((parts + 1) / parts that have it), and one that many parts have is left out: it tells nothing, and
finding it everywhere is what would take the time.
"""

import math
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stepwell.ptb.contamination.items import Part
from stepwell.ptb.contamination.words import without_numbers

GRAM = 5
"""Words of an n-gram."""
WORTH_A_LOOK = 0.25
"""Least share of a part's weight that must occur in a row before the place is looked at closely."""
COMMON_SHARE, COMMON_LEAST = 0.004, 8
"""An n-gram in more parts than this share of all, and than the least, is common. A part keeps its `KEPT` rarest."""
KEPT = 4
_BASE = np.uint64(0x9E3779B97F4A7C15)
_MIX = np.uint64(0xD6E8FEB86659FD93)

_Ints = NDArray[np.int64]
_Keys = NDArray[np.uint64]


@dataclass(frozen=True)
class Candidate:
    """A stretch of a row in which much of a part occurs."""

    row: int
    """Number in the batch."""
    part: int
    """Number in the index."""
    start: int
    """First word of the stretch in the row."""
    end: int
    """After its last word."""


class NgramIndex:
    """Finds parts of a benchmark in rows.

    Args:
        parts: What is looked for.
    """

    def __init__(self, parts: Sequence[Part]) -> None:
        self.parts = tuple(parts)
        self._vocabulary: dict[str, int] = {}
        grams_of = [self._grams(part) for part in self.parts]
        having = Counter(key for grams in grams_of for key in grams)
        common = max(COMMON_LEAST, COMMON_SHARE * len(self.parts))
        of_gram: defaultdict[int, list[int]] = defaultdict(list)
        for number, grams in enumerate(grams_of):
            rarest = sorted(grams, key=lambda key: (having[key], key))
            for rank, key in enumerate(rarest):
                if rank < KEPT or having[key] <= common:
                    of_gram[key].append(number)
        keys = sorted(of_gram)
        self._keys: _Keys = np.array(keys, dtype=np.uint64)
        self._weights = np.array([math.log((len(self.parts) + 1) / having[key]) for key in keys])
        self._counts: _Ints = np.array([len(of_gram[key]) for key in keys], dtype=np.int64)
        self._ends: _Ints = np.cumsum(self._counts)
        self._parts_flat: _Ints = np.array([part for key in keys for part in of_gram[key]], dtype=np.int64)
        self._totals = np.zeros(len(self.parts))
        np.add.at(self._totals, self._parts_flat, np.repeat(self._weights, self._counts))

    def _grams(self, part: Part) -> set[int]:
        words = without_numbers(part.words)
        ids = [self._vocabulary.setdefault(word, len(self._vocabulary) + 1) for word in words]
        return set(_keys_of(np.array(ids, dtype=np.int64)).tolist())

    def candidates(self, rows: Sequence[Sequence[str]]) -> list[Candidate]:
        """Stretches of rows that are worth a close look, by row and part.

        Args:
            rows: Words of each, numbers as they are.
        """
        starts, ids = self._ids(rows)
        keys = _keys_of(ids)
        if not len(keys) or not len(self._keys):
            return []
        grams = np.minimum(np.searchsorted(self._keys, keys), len(self._keys) - 1)
        positions = np.nonzero(self._keys[grams] == keys)[0]
        grams = grams[positions]
        counts = self._counts[grams]
        if not counts.sum():
            return []
        # Each occurrence of an n-gram once for each part that has it.
        first = np.repeat(self._ends[grams] - counts, counts)
        part = self._parts_flat[first + np.arange(len(first)) - np.repeat(np.cumsum(counts) - counts, counts)]
        gram, position = np.repeat(grams, counts), np.repeat(positions, counts)
        row = np.searchsorted(starts, position, side="right") - 1
        pair = row * len(self.parts) + part
        pairs, of_pair = np.unique(pair, return_inverse=True)
        weight = np.bincount(of_pair, self._weights[gram])
        promising = np.nonzero(weight >= WORTH_A_LOOK * self._totals[pairs % len(self.parts)])[0]
        order = np.argsort(of_pair, kind="stable")
        bounds = np.searchsorted(of_pair[order], np.stack([promising, promising + 1]))
        found: list[Candidate] = []
        for number, begin, end in zip(promising.tolist(), *bounds.tolist(), strict=True):
            here = order[begin:end]
            its_row, its_part = divmod(int(pairs[number]), len(self.parts))
            places = list(zip((position[here] - starts[its_row]).tolist(), gram[here].tolist(), strict=True))
            stretch = self._best_stretch(places, its_part)
            if stretch is not None:
                found.append(Candidate(its_row, its_part, stretch.start, stretch.end))
        return found

    def _ids(self, rows: Sequence[Sequence[str]]) -> tuple[_Ints, _Ints]:
        """Where each row begins, and the number of each word, 0 where no part has it."""
        get = self._vocabulary.get
        starts: list[int] = []
        ids: list[int] = []
        for words in rows:
            starts.append(len(ids))
            ids += [get(word, 0) for word in without_numbers(words)]
            ids += [0] * GRAM  # no n-gram reaches into the next row
        return np.array(starts, dtype=np.int64), np.array(ids, dtype=np.int64)

    def _best_stretch(self, places: list[tuple[int, int]], part: int) -> "_Stretch | None":
        """The stretch, little longer than the part, with most of its weight in it, if that is worth a look."""
        longest = len(self.parts[part].words) * 3 // 2 + 2 * GRAM
        inside: defaultdict[int, int] = defaultdict(int)
        weight = best_weight = 0.0
        first, best = 0, (0, 0)
        for position, gram in places:
            if not inside[gram]:
                weight += float(self._weights[gram])
            inside[gram] += 1
            while position - places[first][0] > longest:
                left = places[first][1]
                inside[left] -= 1
                if not inside[left]:
                    weight -= float(self._weights[left])
                first += 1
            if weight > best_weight + 1e-9:
                best_weight, best = weight, (places[first][0], position + GRAM)
        return _Stretch(*best) if best_weight >= WORTH_A_LOOK * self._totals[part] else None


@dataclass(frozen=True)
class _Stretch:
    start: int
    end: int


def _keys_of(ids: _Ints) -> _Keys:
    """A key of each n-gram; one with a word that no part has (0) gets the key 0, which no part has either."""
    if len(ids) < GRAM:
        return np.zeros(0, dtype=np.uint64)
    windows: NDArray[Any] = np.lib.stride_tricks.sliding_window_view(ids.astype(np.uint64), GRAM)
    keys = np.zeros(len(windows), dtype=np.uint64)
    for column in range(GRAM):
        keys = (keys ^ (windows[:, column] * _BASE)) * _MIX
        keys ^= keys >> np.uint64(29)
    keys[(windows == 0).any(axis=1)] = 0
    return keys
