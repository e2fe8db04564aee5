"""The rollouts' side of the wire."""

import socket
from types import TracebackType
from typing import Self, TypeVar

import aiohttp
from pydantic import TypeAdapter, ValidationError

from stepwell.policy.engine_http.wire import (
    GENERATE_PATH,
    GENERATION,
    HEALTH,
    HEALTH_PATH,
    REFUSAL,
    REQUEST,
    EngineHealth,
)
from stepwell.policy.protocol import EngineError, GenerateRequest, Generation, WrongVersion

T = TypeVar("T")


_LIVENESS = {
    socket.TCP_KEEPIDLE: 5,
    socket.TCP_KEEPINTVL: 3,
    socket.TCP_KEEPCNT: 3,
    socket.TCP_USER_TIMEOUT: 15_000,
}
"""A generation may take minutes without a byte: the network says within 15 s whether the engine's machine is there."""


def _watched_socket(
    address: aiohttp.AddrInfoType,  # pyright: ignore[reportUnknownParameterType]  # its last part is of many forms
) -> socket.socket:
    family, kind, protocol, *_ = address
    watched = socket.socket(family, kind, protocol)
    watched.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for option, value in _LIVENESS.items():
        watched.setsockopt(socket.IPPROTO_TCP, option, value)
    return watched


class EngineClient:
    """One engine, asked over HTTP; safe for any number of concurrent calls in one event loop."""

    def __init__(self, url: str, token: str, *, timeout_s: float = 600.0, connections: int = 512) -> None:
        """Nothing is connected yet; call in the event loop that will use it.

        Args:
            url: `http://host:port`.
            token: the engine's bearer token.
            timeout_s: of a generation, from the call to the last byte, time in the engine's queue included.
            connections: most at once; further calls wait for one.
        """
        self._url = url.rstrip("/")
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=connections, keepalive_timeout=60.0, socket_factory=_watched_socket),
            timeout=aiohttp.ClientTimeout(total=timeout_s, sock_connect=10.0),
            headers={"Authorization": f"Bearer {token}", "Content-Type": "application/json"},
        )

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def generate(self, request: GenerateRequest) -> Generation:
        """Samples one continuation.

        Raises:
            WrongVersion: the engine serves another version.
            ValueError: the request does not fit the model.
            EngineError: the engine failed, is draining, or cannot be reached.
        """
        return await self._ask("POST", GENERATE_PATH, GENERATION, REQUEST.dump_json(request))

    async def health(self) -> EngineHealth:
        """How the engine stands.

        Raises:
            EngineError: it cannot be reached.
        """
        return await self._ask("GET", HEALTH_PATH, HEALTH)

    async def close(self) -> None:
        """Closes the connections."""
        await self._session.close()

    async def _ask(self, method: str, path: str, answer: TypeAdapter[T], body: bytes | None = None) -> T:
        try:
            async with self._session.request(method, self._url + path, data=body) as response:
                status, content = response.status, await response.read()
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            reason = str(error) or type(error).__name__
            raise EngineError(f"the engine at {self._url} cannot be reached: {reason}") from error
        try:
            if status == 200:
                return answer.validate_json(content, strict=True)
            reason = REFUSAL.validate_json(content).error
        except ValidationError as error:
            raise EngineError(f"the engine at {self._url} answered {status} with something else: {error}") from error
        if status == 409:
            raise WrongVersion(reason)
        if status == 400:
            raise ValueError(reason)
        raise EngineError(f"the engine at {self._url} answered {status}: {reason}")
