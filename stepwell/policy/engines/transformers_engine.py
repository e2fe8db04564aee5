"""The engine `transformers`: any Hugging Face causal model with full attention, in this process, batched continuously.

All arithmetic runs in one thread of its own, so the event loop stays responsive. Requests and commands pass to it
through an inbox; results come back by the loop's `call_soon_threadsafe`.
"""

import asyncio
import threading
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import torch

from stepwell.policy.engines.batcher import ContinuousBatcher, Sequence
from stepwell.policy.engines.config import EngineConfig
from stepwell.policy.engines.live_model import cache_shape, open_model, replace_weights
from stepwell.policy.engines.model_folder import check_same_model, read_config, read_weights
from stepwell.policy.engines.request_check import check_request, check_token_ids
from stepwell.policy.engines.slot_attention import ATTENTION, visible_mask
from stepwell.policy.engines.slots import Slots
from stepwell.policy.protocol import EngineError, GenerateRequest, Generation, WrongVersion

T = TypeVar("T")

_DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16}


@dataclass(frozen=True)
class _Command:
    """Something else than a generation for the thread to do; it resolves its own future."""

    run: Callable[[], None]


class TransformersEngine:
    """See `stepwell.policy.protocol.Engine`. Serves no version until the first `load`."""

    def __init__(self, config: EngineConfig, folder: Path) -> None:
        """Opens the model of `folder` (its architecture; `load` brings the weights to serve) and starts the thread.

        Blocks for seconds: call `open` from an event loop.

        Raises:
            EngineError: the folder holds no model that this engine can run.
        """
        self._config = config
        self._folder = folder
        self._device = torch.device(config.device)
        self._model = open_model(folder, _DTYPES[config.dtype], self._device, ATTENTION)
        self._model_config = read_config(folder)
        text_config: Any = self._model.config.get_text_config()
        self._vocab_size = int(text_config.vocab_size)
        positions = int(text_config.max_position_embeddings)
        if config.max_context > positions:
            raise EngineError(f"max_context is {config.max_context}, the model of {folder} has {positions} positions")
        idle_rows = config.max_batch if config.idle_rows is None else config.idle_rows
        shape = cache_shape(self._model, config.max_batch + idle_rows, config.max_context)
        slots = Slots(shape, _DTYPES[config.dtype], self._device, reuse_prefixes=config.reuse_prefixes is not False)
        self._batcher = ContinuousBatcher(self._model, slots, config.max_batch)
        self._version: int | None = None
        self._inbox: deque[_Command | tuple[Sequence, asyncio.Future[Generation]]] = deque()
        self._wake = threading.Condition()
        self._closing = False
        self._futures: dict[Sequence, asyncio.Future[Generation]] = {}
        self._thread = threading.Thread(target=self._run, name="transformers-engine", daemon=True)
        self._thread.start()

    @classmethod
    async def open(cls, config: EngineConfig, folder: Path) -> "TransformersEngine":
        """The constructor, off the event loop."""
        return await asyncio.to_thread(cls, config, folder)

    async def load(self, version: int, folder: Path) -> None:
        """See the protocol."""
        await self._command(lambda: self._load(version, folder))

    async def generate(self, request: GenerateRequest) -> Generation:
        """See the protocol."""
        check_request(request, self._vocab_size, self._config.max_context)
        if request.version != self._version:
            raise WrongVersion(f"version {request.version} was asked for, the engine serves {self._version}")
        future: asyncio.Future[Generation] = asyncio.get_running_loop().create_future()
        self._send((Sequence(request, abandoned=future.cancelled), future))
        return await future

    async def score(self, token_ids: tuple[int, ...]) -> tuple[float, ...]:
        """See the protocol."""
        check_token_ids(token_ids, self._vocab_size)
        if len(token_ids) > self._config.max_context:
            raise ValueError(f"{len(token_ids)} tokens are too long, max_context is {self._config.max_context}")
        return await self._command(lambda: self._score(token_ids))

    async def check(self) -> None:
        """See the protocol. Asks the thread itself, which answers between two steps."""
        if not self._thread.is_alive():
            raise EngineError("the engine's thread has ended")
        await self._command(lambda: None)

    async def close(self) -> None:
        """See the protocol. Twice is once."""
        with self._wake:
            self._closing = True
            self._wake.notify()
        await asyncio.to_thread(self._thread.join)

    async def _command(self, function: Callable[[], T]) -> T:
        """Runs `function` in the thread, between two steps."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[T] = loop.create_future()

        def run() -> None:
            try:
                result = function()
            except Exception as error:
                loop.call_soon_threadsafe(_fail, [future], error)
            else:
                loop.call_soon_threadsafe(_resolve, [(future, result)])

        self._send(_Command(run))
        return await future

    def _send(self, item: "_Command | tuple[Sequence, asyncio.Future[Generation]]") -> None:
        with self._wake:
            if self._closing:
                raise EngineError("the engine is closed")
            self._inbox.append(item)
            self._wake.notify()

    # What follows runs in the thread.

    def _run(self) -> None:
        torch.set_num_threads(self._config.threads)
        while self._take_inbox():
            if self._batcher.idle:
                continue
            try:
                finished = self._batcher.step()
            except Exception as error:
                self._fail_all(f"a step failed: {type(error).__name__}: {error}")
                self._batcher.reset()
            else:
                self._deliver(finished)
        self._fail_all("the engine was closed")

    def _take_inbox(self) -> bool:
        """Takes what has come in; waits while there is nothing to do. False once the engine closes."""
        with self._wake:
            while not self._inbox and self._batcher.idle and not self._closing:
                self._wake.wait()
            items = list(self._inbox)
            self._inbox.clear()
            closing = self._closing
        for item in items:
            if isinstance(item, _Command):
                item.run()
            else:
                sequence, future = item
                self._futures[sequence] = future
                self._batcher.add(sequence)
        return not closing

    def _deliver(self, finished: list[Sequence]) -> None:
        by_loop: dict[asyncio.AbstractEventLoop, list[tuple[asyncio.Future[Generation], Generation]]] = {}
        for sequence in finished:
            future = self._futures.pop(sequence)
            by_loop.setdefault(future.get_loop(), []).append((future, self._generation(sequence)))
        for loop, results in by_loop.items():
            loop.call_soon_threadsafe(_resolve, results)
        for sequence in [s for s, future in self._futures.items() if future.cancelled()]:
            del self._futures[sequence]

    def _generation(self, sequence: Sequence) -> Generation:
        if sequence.finish_reason is None:
            raise RuntimeError("a sequence was delivered before its end")
        return Generation(
            token_ids=tuple(sequence.token_ids),
            logprobs=tuple(sequence.logprobs),
            finish_reason=sequence.finish_reason,
            version=sequence.request.version,
        )

    def _fail_all(self, reason: str) -> None:
        for future in self._futures.values():
            future.get_loop().call_soon_threadsafe(_fail, [future], EngineError(reason))
        self._futures.clear()

    def _load(self, version: int, folder: Path) -> None:
        if not self._batcher.idle:
            raise EngineError(f"version {version} cannot be loaded while requests are being generated: drain first")
        check_same_model(self._model_config, folder)
        weights = read_weights(folder)
        replace_weights(self._model, weights)
        self._batcher.reset()
        self._version = version

    def _score(self, token_ids: tuple[int, ...]) -> tuple[float, ...]:
        ids = torch.tensor([token_ids], device=self._device)
        positions = torch.arange(len(token_ids), device=self._device)[None]
        with torch.inference_mode():
            logits = self._model(
                input_ids=ids,
                attention_mask=visible_mask(positions, len(token_ids), self._model.dtype),
                position_ids=positions,
                use_cache=False,
            ).logits[0, :-1]
            logprobs = torch.log_softmax(logits.float(), dim=-1).gather(1, ids[0, 1:, None])[:, 0]
        return tuple(logprobs.tolist())


def _resolve(results: list[tuple[asyncio.Future[T], T]]) -> None:
    for future, result in results:
        if not future.done():
            future.set_result(result)


def _fail(futures: list[asyncio.Future[T]], error: Exception) -> None:
    for future in futures:
        if not future.done():
            future.set_exception(error)
