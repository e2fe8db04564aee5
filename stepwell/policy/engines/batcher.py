"""Continuous batching: requests join and leave between the steps of one model.

`ContinuousBatcher.step` first computes the contexts of waiting requests as far as rows are free (padded batches of
similar length), then decodes one token of every running one. It is plain synchronous code; the engine gives it a
thread.

Shape suffixes: N rows, Q new positions, V vocabulary.
"""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
import torch
from transformers import PreTrainedModel

from stepwell.policy.engines.sampling import draw, uniform
from stepwell.policy.engines.slot_attention import SlotCache, SlotStep, visible_mask
from stepwell.policy.engines.slots import Slots
from stepwell.policy.protocol import GenerateRequest

_PAD_QUERY = 8  # contexts of one batch are padded to multiples of this
_PAD_READ = 32  # and what is read of the cache to multiples of this
_PREFILL_TOKENS = 8192  # most tokens, with padding, of one forward pass over contexts: bounds its memory
_WORTH_WAITING = 24  # a context waits a round if another of the same round computes this many tokens of it
_HOLES = 8  # idle rows among the busy ones, in parts of the busy (an eighth), that are not yet worth moving rows


@dataclass(eq=False)
class Sequence:
    """A request on its way."""

    request: GenerateRequest
    abandoned: Callable[[], bool]
    """Whether nobody waits for it any more; asked between steps."""
    context: np.ndarray = field(init=False)
    row: int = -1
    token_ids: list[int] = field(default_factory=list[int])
    logprobs: list[float] = field(default_factory=list[float])
    finish_reason: Literal["stop", "length"] | None = None

    def __post_init__(self) -> None:
        self.context = np.asarray(self.request.token_ids, dtype=np.int32)

    def take(self, token: int, logprob: float) -> None:
        """Adds a drawn token, and sees whether it is the last."""
        self.token_ids.append(token)
        self.logprobs.append(logprob)
        if token in self.request.stop_token_ids:
            self.finish_reason = "stop"
        elif len(self.token_ids) >= self.request.max_tokens:
            self.finish_reason = "length"


class ContinuousBatcher:
    """Runs sequences on one model. Not thread-safe: everything but the constructor belongs to one thread."""

    def __init__(self, model: PreTrainedModel, slots: Slots, max_batch: int) -> None:
        self._model = model
        self._slots = slots
        self._cache = SlotCache(slots)
        self._max_batch = max_batch
        self._waiting: deque[Sequence] = deque()
        self._running: list[Sequence] = []
        self._device = slots.storage_L2SHTD.device

    @property
    def idle(self) -> bool:
        """True if no sequence waits or runs."""
        return not self._waiting and not self._running

    def add(self, sequence: Sequence) -> None:
        """Puts a sequence at the end of the line."""
        self._waiting.append(sequence)

    def reset(self) -> None:
        """Drops every sequence, finished or not, and every prefix."""
        self._running.clear()
        self._waiting.clear()
        self._slots.reset()

    def step(self) -> list[Sequence]:
        """Computes waiting contexts, decodes one token of each running sequence, and returns those that ended.

        Raises:
            FloatingPointError: the model's logits are not finite.
        """
        self._drop_abandoned()
        while admitted := self._admit():
            for batch in _batches(admitted, self._slots):
                self._prefill(batch)
        finished = self._leave()
        if self._running:
            self._decode()
            finished += self._leave()
        return finished

    def _drop_abandoned(self) -> None:
        for sequence in [s for s in self._running if s.abandoned()]:
            self._slots.release(sequence.row)
            self._running.remove(sequence)

    def _admit(self) -> list[Sequence]:
        """Gives rows to waiting sequences, first come first served, but lets one wait a round that shares much of its
        context with one of this round."""
        admitted: list[Sequence] = []
        later: list[Sequence] = []
        while self._waiting and len(self._running) + len(admitted) < self._max_batch:
            sequence = self._waiting.popleft()
            if sequence.abandoned():
                continue
            if admitted and self._shares_work(sequence, admitted):
                later.append(sequence)
                continue
            claim = self._slots.claim(sequence.context)
            if claim is None:
                later.append(sequence)
                break
            sequence.row = claim.row
            admitted.append(sequence)
        self._waiting.extendleft(reversed(later))
        return admitted

    def _shares_work(self, sequence: Sequence, admitted: list[Sequence]) -> bool:
        held = self._slots.longest_held(sequence.context)
        enough = held + _WORTH_WAITING
        if len(sequence.context) <= enough:
            return False
        head = sequence.context[:enough]
        return any(np.array_equal(head, other.context[:enough]) for other in admitted)

    def _prefill(self, batch: list[Sequence]) -> None:
        """Computes what the rows do not hold of their contexts, padded on the left, and draws the first tokens."""
        starts = [int(self._slots.lengths_S[s.row]) for s in batch]
        width = _round_up(max(len(s.context) - start for s, start in zip(batch, starts, strict=True)), _PAD_QUERY)
        ids_NQ = np.zeros((len(batch), width), dtype=np.int64)
        positions_NQ = np.zeros((len(batch), width), dtype=np.int64)
        write_NQ = np.full((len(batch), width), self._slots.scratch_position, dtype=np.int64)
        for i, (sequence, start) in enumerate(zip(batch, starts, strict=True)):
            new = len(sequence.context) - start
            ids_NQ[i, width - new :] = sequence.context[start:]
            positions_NQ[i, width - new :] = write_NQ[i, width - new :] = np.arange(start, start + new)
        rows = np.asarray([s.row for s in batch], dtype=np.int64)
        longest = max(len(s.context) for s in batch)
        logits_NV = self._forward(ids_NQ, positions_NQ, write_NQ, rows, longest, in_front=False)
        for sequence, start in zip(batch, starts, strict=True):
            self._slots.append(sequence.row, sequence.context[start:])
        self._draw(logits_NV, batch)
        self._running += batch

    def _decode(self) -> None:
        """One token of every running sequence, over the contiguous rows in front; idle rows among them compute along
        and write where nothing is read."""
        span = max(s.row for s in self._running) + 1
        if span - len(self._running) > len(self._running) // _HOLES:
            moved = self._slots.compact()
            for sequence in self._running:
                sequence.row = moved.get(sequence.row, sequence.row)
            span = len(self._running)
        self._running.sort(key=lambda s: s.row)
        rows = np.asarray([s.row for s in self._running], dtype=np.int64)
        tokens = np.asarray([s.token_ids[-1] for s in self._running], dtype=np.int64)
        ids_NQ = np.zeros((span, 1), dtype=np.int64)
        positions_NQ = np.zeros((span, 1), dtype=np.int64)
        write_NQ = np.full((span, 1), self._slots.scratch_position, dtype=np.int64)
        ids_NQ[rows, 0] = tokens
        positions_NQ[rows, 0] = write_NQ[rows, 0] = self._slots.lengths_S[rows]
        longest = int(positions_NQ.max()) + 1
        logits_NV = self._forward(ids_NQ, positions_NQ, write_NQ, np.arange(span), longest, in_front=True)
        self._slots.append_one_each(rows, tokens)
        if span > len(rows):
            logits_NV = logits_NV[torch.from_numpy(rows).to(self._device)]
        self._draw(logits_NV, self._running)

    def _forward(
        self,
        ids_NQ: np.ndarray,
        positions_NQ: np.ndarray,
        write_NQ: np.ndarray,
        rows_N: np.ndarray,
        longest: int,
        *,
        in_front: bool,
    ) -> torch.Tensor:
        """Logits (N, V) at the last position of each row."""
        read = min(_round_up(longest, _PAD_READ), self._slots.shape.max_context)
        positions = torch.from_numpy(positions_NQ).to(self._device)
        self._cache.step = SlotStep(
            rows_N=torch.from_numpy(rows_N).to(self._device),
            positions_NQ=torch.from_numpy(write_NQ).to(self._device),
            read=read,
            in_front=in_front,
        )
        with torch.inference_mode():
            output = self._model(
                input_ids=torch.from_numpy(ids_NQ).to(self._device),
                attention_mask=visible_mask(positions, read, self._slots.storage_L2SHTD.dtype),
                position_ids=positions,
                past_key_values=self._cache,
                use_cache=True,
                logits_to_keep=1,
            )
        return output.logits[:, -1]

    def _draw(self, logits_NV: torch.Tensor, sequences: list[Sequence]) -> None:
        requests = [s.request for s in sequences]
        with torch.inference_mode():
            drawn = draw(
                logits_NV,
                [r.temperature for r in requests],
                [r.top_p for r in requests],
                [uniform(s.request.seed, len(s.token_ids)) for s in sequences],
            )
        for sequence, token, logprob in zip(sequences, drawn.token_ids, drawn.logprobs, strict=True):
            sequence.take(token, logprob)

    def _leave(self) -> list[Sequence]:
        finished = [s for s in self._running if s.finish_reason is not None]
        if finished:
            for sequence in finished:
                self._slots.release(sequence.row)
            self._running = [s for s in self._running if s.finish_reason is None]
        return finished


def _batches(sequences: list[Sequence], slots: Slots) -> list[list[Sequence]]:
    """Sequences of similar work together, each batch within the token budget (or one sequence alone)."""
    by_work = sorted(sequences, key=lambda s: len(s.context) - int(slots.lengths_S[s.row]))
    batches: list[list[Sequence]] = [[]]
    for sequence in by_work:
        width = _round_up(len(sequence.context) - int(slots.lengths_S[sequence.row]), _PAD_QUERY)
        if batches[-1] and width * (len(batches[-1]) + 1) > _PREFILL_TOKENS:
            batches.append([])
        batches[-1].append(sequence)
    return batches


def _round_up(number: int, multiple: int) -> int:
    return -(-number // multiple) * multiple
