"""The network of one agent: a proxy between its sandbox and the world, and the log of what it asked for."""

import socket
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

from stepwell.ptb.network.passage import LoggedRequest
from stepwell.ptb.network.policy import NetworkPolicy
from stepwell.ptb.network.proxy import LoggingProxy
from stepwell.ptb.supervisor.trace import JsonLines


class AgentNetwork:
    """Serves a sandbox.

    Args:
        policy: Which hosts it may reach.
        log: File that each request goes to.
        on_failure: Called if a request cannot be logged: then none may go on.
    """

    def __init__(self, policy: NetworkPolicy, log: Path, on_failure: Callable[[OSError], None]) -> None:
        self._lines = JsonLines(log)
        self._on_failure = on_failure
        self._proxy = LoggingProxy(policy, self._write)

    async def serve(self, listening: socket.socket | None) -> None:
        """Begins to serve a socket that listens inside; None: there is no network."""
        if listening is not None:
            await self._proxy.serve(listening)

    async def close(self) -> None:
        """Cuts what is under way, and frees the log."""
        await self._proxy.close()
        self._lines.close()

    def _write(self, request: LoggedRequest) -> None:
        try:
            self._lines.write(asdict(request))
        except OSError as error:
            self._on_failure(error)
