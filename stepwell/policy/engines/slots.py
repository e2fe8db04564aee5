"""The key-value cache: rows of fixed length, each with the tokens whose keys and values it holds.

A row is busy while a request decodes in it, else idle; an idle row keeps what it holds as a prefix cache, until it is
the least recently used one and a request needs a row. A request takes the longest prefix of its context that any row
holds: in place where an idle row holds nothing else (the next turn of a rollout extends the former one), copied
otherwise (the prompt that a group shares).

Busy rows are moved to the front now and then, so that a decode step reads one contiguous view. On a CPU the storage is
memory that the system gives out as it is written, so that a context much longer than any rollout costs nothing.

Shape suffixes: L layers, S rows, H key-value heads, T positions, D head size; a 2 is keys and values.
"""

import math
import mmap
from dataclasses import dataclass

import numpy as np
import torch

_EMPTY = -1  # in `_tokens_ST`, beyond what a row holds
_MAP_NORESERVE = 0x4000  # of Linux on x86-64 and arm64: more may be mapped than there is; `mmap` does not name it


@dataclass(frozen=True)
class CacheShape:
    """Sizes of a cache."""

    layers: int
    rows: int
    kv_heads: int
    max_context: int
    head_dim: int


@dataclass(frozen=True)
class Claim:
    """A row for a request."""

    row: int
    held: int
    """Tokens of the request's context that the row already holds."""


class Slots:
    """Rows of key-value cache and what they hold. Not thread-safe."""

    def __init__(
        self, shape: CacheShape, dtype: torch.dtype, device: torch.device, *, reuse_prefixes: bool = True
    ) -> None:
        self.shape = shape
        self._reuse_prefixes = reuse_prefixes
        # One position more than a context: where padding and idle rows write, and nothing is read.
        size = (shape.layers, 2, shape.rows, shape.kv_heads, shape.max_context + 1, shape.head_dim)
        on_cpu = device.type == "cpu"
        self.storage_L2SHTD = _lazy_zeros(size, dtype) if on_cpu else torch.zeros(size, dtype=dtype, device=device)
        self._longest = 0
        self._tokens_ST = np.full((shape.rows, shape.max_context), _EMPTY, dtype=np.int32)
        self.lengths_S = np.zeros(shape.rows, dtype=np.int64)
        self._last_used_S = np.zeros(shape.rows, dtype=np.int64)
        self._busy_S = np.zeros(shape.rows, dtype=np.bool_)
        self._clock = 0

    @property
    def scratch_position(self) -> int:
        """The position that is written and never read."""
        return self.shape.max_context

    def reset(self) -> None:
        """Makes every row idle and empty, and overwrites what was stored, which may not be finite."""
        self.storage_L2SHTD[..., : self._longest + 1, :].zero_()  # a step may have failed after it wrote
        self.storage_L2SHTD[..., self.scratch_position, :].zero_()
        self._longest = 0
        self._tokens_ST.fill(_EMPTY)
        self._busy_S.fill(False)
        self.lengths_S.fill(0)
        self._last_used_S.fill(0)

    def longest_held(self, context: np.ndarray) -> int:
        """How many tokens of `context` (int32, all but its last counted) some row holds as a prefix."""
        return int(self._held_S(context).max())

    def claim(self, context: np.ndarray) -> Claim | None:
        """Makes a row busy for `context` (int32), with the longest prefix of it that any row holds; None if every row
        is busy. The last token never counts as held, since its logits are wanted."""
        if self._busy_S.all():
            return None
        held_S = self._held_S(context)
        source = int(held_S.argmax())
        held = int(held_S[source])
        if not self._busy_S[source] and held == self.lengths_S[source]:
            row = source
        else:
            idle = np.flatnonzero(~self._busy_S)
            row = int(idle[self._last_used_S[idle].argmin()])
            if held and row != source:
                self.storage_L2SHTD[:, :, row, :, :held] = self.storage_L2SHTD[:, :, source, :, :held]
        self._tokens_ST[row, :held] = context[:held]
        self._tokens_ST[row, held:] = _EMPTY
        self.lengths_S[row] = held
        self._longest = max(self._longest, len(context))
        self._busy_S[row] = True
        self._touch(row)
        return Claim(row=row, held=held)

    def append(self, row: int, tokens: np.ndarray) -> None:
        """Notes that the keys and values of `tokens` (int32) now stand behind what `row` held."""
        start = int(self.lengths_S[row])
        self._tokens_ST[row, start : start + len(tokens)] = tokens
        self.lengths_S[row] = start + len(tokens)
        self._longest = max(self._longest, start + len(tokens))

    def append_one_each(self, rows: np.ndarray, tokens: np.ndarray) -> None:
        """The same for one token in each of several rows."""
        self._tokens_ST[rows, self.lengths_S[rows]] = tokens
        self.lengths_S[rows] += 1
        self._longest = max(self._longest, int(self.lengths_S[rows].max(initial=0)))

    def release(self, row: int) -> None:
        """Makes `row` idle; what it holds stays as a prefix."""
        self._busy_S[row] = False
        self._touch(row)

    def compact(self) -> dict[int, int]:
        """Moves busy rows to the front, and says which moved: old row to new row."""
        busy = int(self._busy_S.sum())
        holes = np.flatnonzero(~self._busy_S[:busy])
        strays = busy + np.flatnonzero(self._busy_S[busy:])
        if not len(holes):
            return {}
        longest = int(max(self.lengths_S[holes].max(), self.lengths_S[strays].max()))
        to, back = np.concatenate([holes, strays]), np.concatenate([strays, holes])
        device = self.storage_L2SHTD.device
        swapped = self.storage_L2SHTD[:, :, torch.from_numpy(back).to(device), :, :longest]
        self.storage_L2SHTD[:, :, torch.from_numpy(to).to(device), :, :longest] = swapped
        for array in (self._tokens_ST, self.lengths_S, self._last_used_S, self._busy_S):
            array[to] = array[back]
        return dict(zip(strays.tolist(), holes.tolist(), strict=True))

    def _held_S(self, context: np.ndarray) -> np.ndarray:
        """For each row, how many tokens of `context` but its last it holds as a prefix."""
        wanted = context[:-1]
        if not (len(wanted) and self._reuse_prefixes):
            return np.zeros(self.shape.rows, dtype=np.int64)
        equal_ST = self._tokens_ST[:, : len(wanted)] == wanted
        return np.where(equal_ST.all(axis=1), len(wanted), equal_ST.argmin(axis=1))

    def _touch(self, row: int) -> None:
        self._clock += 1
        self._last_used_S[row] = self._clock


def _lazy_zeros(size: tuple[int, ...], dtype: torch.dtype) -> torch.Tensor:
    """Zeros on the CPU whose memory is taken up page by page as they are written, which torch's own take up at once."""
    flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | _MAP_NORESERVE
    memory = mmap.mmap(-1, math.prod(size) * dtype.itemsize, flags=flags)
    memory.madvise(mmap.MADV_NOHUGEPAGE)  # rows are far apart: a huge page each would fill what is meant to stay empty
    return torch.frombuffer(memory, dtype=dtype).reshape(size)
