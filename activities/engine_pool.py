"""A sandbox worker's view of the engines: finds live ones, asks them, waits for one that is coming back."""

import asyncio
import time
from dataclasses import dataclass, field

from db.engines import EngineAddress, Engines
from stepwell.agent.episode import Sampled
from stepwell.policy.engine_http.client import EngineClient
from stepwell.policy.protocol import EngineError, GenerateRequest, WrongVersion

LOOK_S = 1.0
"""How long a list of engines is believed."""
PATIENCE_S = 120.0
"""How long a turn waits for an engine with its version, in seconds; then the attempt fails as `infra`."""
PAUSE_S = 0.25
"""Between two tries."""


@dataclass
class EnginePool:
    """Clients of every engine that rollouts of this process talk to."""

    engines: Engines
    _clients: dict[str, EngineClient] = field(default_factory=dict[str, EngineClient])
    _listed: dict[str, tuple[float, list[EngineAddress]]] = field(
        default_factory=dict[str, tuple[float, list[EngineAddress]]]
    )

    async def generate(self, run: str, affinity: int, request: GenerateRequest) -> Sampled:
        """Asks one of the run's engines; a rollout stays with one as long as it lives, by `affinity`.

        Raises:
            EngineError: no engine answered with this version within the patience.
        """
        began = time.monotonic()
        reason = "no engine is alive"
        while True:
            live = await self._live(run)
            asked = time.monotonic()
            if live:
                engine = live[affinity % len(live)]
                try:
                    generation = await self._client(engine).generate(request)
                    return Sampled(generation, engine.engine_id, time.monotonic() - asked)
                except (EngineError, WrongVersion) as error:
                    reason = str(error)
                    self._listed.pop(run, None)
            if time.monotonic() - began > PATIENCE_S:
                raise EngineError(f"no engine gave version {request.version} within {PATIENCE_S:.0f} s: {reason}")
            await asyncio.sleep(PAUSE_S)

    async def close(self) -> None:
        """Closes all connections."""
        for client in self._clients.values():
            await client.close()
        self._clients.clear()

    async def _live(self, run: str) -> list[EngineAddress]:
        now = time.monotonic()
        at, live = self._listed.get(run, (0.0, []))
        if not live or now - at > LOOK_S:
            live = sorted(await self.engines.live(run), key=lambda engine: engine.engine_id)
            self._listed[run] = (now, live)
        return live

    def _client(self, engine: EngineAddress) -> EngineClient:
        if engine.engine_id not in self._clients:
            self._clients[engine.engine_id] = EngineClient(engine.url, engine.secret)
        return self._clients[engine.engine_id]
