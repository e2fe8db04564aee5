"""An engine with a gate before it: counts what passes, and closes for a load or a drain."""

import asyncio
import time
from pathlib import Path

from stepwell.policy.engine_http.wire import EngineHealth
from stepwell.policy.protocol import Engine, EngineError, GenerateRequest, Generation


class Draining(EngineError):
    """The engine takes no new request for now."""


class EngineService:
    """Owns the gate and the counters of one engine; the engine itself stays its creator's to close."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self._version: int | None = None
        self._in_flight = 0
        self._tokens_generated = 0
        self._busy_before_s = 0.0
        self._busy_since: float | None = None
        self._closed_by = 0
        self._empty = asyncio.Event()
        self._empty.set()
        self._loading = asyncio.Lock()

    async def generate(self, request: GenerateRequest) -> Generation:
        """The engine's `generate`, counted.

        Raises:
            Draining: the gate is closed; and whatever the engine raises.
        """
        if self._closed_by:
            raise Draining("the engine takes no new request: it is draining or loading weights")
        self._enter()
        try:
            generation = await self.engine.generate(request)
        finally:
            self._leave()
        self._tokens_generated += len(generation.token_ids)
        return generation

    async def load(self, version: int, folder: Path) -> None:
        """Closes the gate, waits for the requests in flight, loads, and opens the gate again.

        Raises:
            EngineError: the folder does not fit (the former version is served on), or the engine died.
        """
        async with self._loading:
            self.close_gate()
            try:
                await self.wait_empty()
                await self.engine.load(version, folder)
                self._version = version
            finally:
                self.open_gate()

    def close_gate(self) -> None:
        """New requests are refused until `open_gate` was called as often."""
        self._closed_by += 1

    def open_gate(self) -> None:
        """Takes one `close_gate` back.

        Raises:
            RuntimeError: the gate is open.
        """
        if not self._closed_by:
            raise RuntimeError("the gate is open already")
        self._closed_by -= 1

    async def wait_empty(self) -> None:
        """Waits until no request is in flight."""
        await self._empty.wait()

    def health(self) -> EngineHealth:
        """How the engine stands now."""
        busy_s = self._busy_before_s
        if self._busy_since is not None:
            busy_s += time.monotonic() - self._busy_since
        return EngineHealth(
            version=self._version,
            in_flight=self._in_flight,
            tokens_generated=self._tokens_generated,
            busy_s=busy_s,
            draining=self._closed_by > 0,
        )

    def _enter(self) -> None:
        if not self._in_flight:
            self._busy_since = time.monotonic()
            self._empty.clear()
        self._in_flight += 1

    def _leave(self) -> None:
        self._in_flight -= 1
        if not self._in_flight:
            if self._busy_since is not None:
                self._busy_before_s += time.monotonic() - self._busy_since
            self._busy_since = None
            self._empty.set()
