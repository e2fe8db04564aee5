"""A sandbox worker's view of the engines: finds live ones, asks them, waits for one that is coming back.

An engine whose lease ran out is dead, hung or cut off: what it was asked is given up at once and asked elsewhere.
"""

import asyncio
import time
from dataclasses import dataclass, field

from db.engines import EngineAddress, Engines
from stepwell.agent.episode import Sampled
from stepwell.policy.engine_http.client import EngineClient
from stepwell.policy.protocol import EngineError, GenerateRequest, Generation, WrongVersion

LOOK_S = 1.0
"""How long a list of engines is believed, and how soon an engine that left it is given up."""
PATIENCE_S = 120.0
"""How long a turn waits for an engine with its version, in seconds; then the attempt fails as `infra`."""
AWAY_S = 30.0
"""How long it waits while none is alive: one that is started again takes less, and others have work for the sandbox."""
PAUSE_S = 0.25
"""Between two tries."""


@dataclass
class _Asked:
    """An engine and what it is being asked."""

    client: EngineClient
    gone: "asyncio.Future[None]"
    """Done once its lease has run out."""
    in_flight: int = 0


@dataclass
class EnginePool:
    """Clients of every engine that rollouts of this process talk to."""

    engines: Engines
    _asked: dict[tuple[str, str], _Asked] = field(default_factory=dict[tuple[str, str], _Asked])
    """By run and engine."""
    _listed: dict[str, tuple[float, list[EngineAddress]]] = field(
        default_factory=dict[str, tuple[float, list[EngineAddress]]]
    )
    _watches: dict[str, "asyncio.Task[None]"] = field(default_factory=dict[str, "asyncio.Task[None]"])
    """By run, while something is in flight."""

    async def any_alive(self, run: str) -> bool:
        """Whether the run has an engine."""
        return bool(await self._live(run))

    async def generate(self, run: str, affinity: int, request: GenerateRequest) -> Sampled:
        """Asks one of the run's engines; a rollout stays with one as long as it lives, by `affinity`, and asks the
        next when that one fails.

        Raises:
            EngineError: no engine answered with this version within the patience, or none is alive.
        """
        began = alive_at = time.monotonic()
        reason, failures = "no engine is alive", 0
        while True:
            choice = _in_order(await self._live(run), request.version)
            if choice:
                alive_at = time.monotonic()
                engine = choice[(affinity + failures) % len(choice)]
                asked_at = time.monotonic()
                try:
                    generation = await self._ask(engine, request)
                    return Sampled(generation, engine.engine_id, time.monotonic() - asked_at)
                except (EngineError, WrongVersion) as error:
                    reason, failures = str(error), failures + 1
                    self._listed.pop(run, None)
            if time.monotonic() - alive_at > AWAY_S:
                raise EngineError(f"no engine of {run} has been alive for {AWAY_S:.0f} s")
            if time.monotonic() - began > PATIENCE_S:
                raise EngineError(f"no engine gave version {request.version} within {PATIENCE_S:.0f} s: {reason}")
            await asyncio.sleep(PAUSE_S)

    async def close(self) -> None:
        """Closes all connections."""
        for watch in self._watches.values():
            watch.cancel()
        for asked in self._asked.values():
            await asked.client.close()
        self._watches.clear()
        self._asked.clear()

    async def _ask(self, engine: EngineAddress, request: GenerateRequest) -> Generation:
        """The engine's answer, waited for only while it is alive.

        Raises:
            EngineError: its lease ran out, or it failed.
            WrongVersion: it serves another version.
        """
        key = (engine.run, engine.engine_id)
        if key not in self._asked:
            gone = asyncio.get_running_loop().create_future()
            self._asked[key] = _Asked(EngineClient(engine.url, engine.secret), gone)
        asked = self._asked[key]
        if engine.run not in self._watches:
            self._watches[engine.run] = asyncio.create_task(self._watch(engine.run))
        answer = asyncio.create_task(asked.client.generate(request))
        asked.in_flight += 1
        try:
            await asyncio.wait((answer, asked.gone), return_when=asyncio.FIRST_COMPLETED)
            if not answer.done():
                raise EngineError(f"the lease of engine {engine.engine_id} ran out: it is dead, hangs or is cut off")
            return answer.result()
        finally:
            answer.cancel()
            asked.in_flight -= 1

    async def _watch(self, run: str) -> None:
        """Gives up the engines that are no longer alive, while any is being asked."""
        try:
            while any(asked.in_flight for (of, _), asked in self._asked.items() if of == run):
                await asyncio.sleep(LOOK_S)
                alive = {engine.engine_id for engine in await self._look(run)}
                for key in [key for key in self._asked if key[0] == run and key[1] not in alive]:
                    asked = self._asked.pop(key)
                    asked.gone.set_result(None)
                    await asked.client.close()
        finally:
            del self._watches[run]

    async def _live(self, run: str) -> list[EngineAddress]:
        at, live = self._listed.get(run, (0.0, []))
        if not live or time.monotonic() - at > LOOK_S:
            return await self._look(run)
        return live

    async def _look(self, run: str) -> list[EngineAddress]:
        live = sorted(await self.engines.live(run), key=lambda engine: engine.engine_id)
        self._listed[run] = (time.monotonic(), live)
        return live


def _in_order(live: list[EngineAddress], version: int) -> list[EngineAddress]:
    """The engines that say that they serve the version; if none says so, all: one may have loaded it just now."""
    return [engine for engine in live if engine.version == version] or live
