"""A logging proxy that holds a network policy: the only way out of an agent's sandbox.

It speaks HTTP/1.1: CONNECT for HTTPS, whose bytes it does not read beyond the name in the first message, and plain
requests, each with a connection of its own. Names are resolved here alone, once a request, and the connection goes to
an address that was looked at: so a name that changes its address between look and use gains nothing.
"""

import asyncio
import contextlib
import socket
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from stepwell.ptb.network.client_hello import HANDSHAKE, NoClientHello, record_bytes, server_name
from stepwell.ptb.network.passage import LoggedRequest, Passage
from stepwell.ptb.network.policy import NetworkPolicy, address_of, canonical_host, is_public
from stepwell.ptb.network.request import HEAD_LIMIT_BYTES, BadRequest, Request, read_request

HEAD_TIMEOUT_S = 60.0
"""For a client to send the head of its request."""
CONNECT_TIMEOUT_S = 30.0
"""For each address of a host."""
LINGER_S = 5.0
"""For a client that was refused to stop sending."""
CHUNK_BYTES = 256 << 10

Resolve = Callable[[str, int], Awaitable[list[str]]]
"""Gives the addresses of a name; OSError if there are none."""


class Refused(Exception):
    """The policy holds the request back."""


class Unreachable(Exception):
    """The host was not reached."""


@dataclass(frozen=True)
class _Unserved:
    """What a client is told of a request that was not passed on."""

    status: str
    reason: str


async def resolve(host: str, port: int) -> list[str]:
    """The addresses of a name by this machine's resolver.

    Raises:
        OSError: there are none.
    """
    found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(entry[4][0]) for entry in found))


class LoggingProxy:
    """Serves the clients of one listening socket.

    Args:
        policy: What it holds.
        log: Called with each request that has ended, refused ones too.
        resolve: How names become addresses.
    """

    def __init__(self, policy: NetworkPolicy, log: Callable[[LoggedRequest], None], resolve: Resolve = resolve) -> None:
        self._policy = policy
        self._log = log
        self._resolve = resolve
        self._server: asyncio.Server | None = None
        self._serving: set[asyncio.Task[None]] = set()

    async def serve(self, listening: socket.socket) -> None:
        """Begins to accept from a socket, which may be of another network namespace; returns at once."""
        self._server = await asyncio.start_server(self._accept, sock=listening, limit=HEAD_LIMIT_BYTES)

    async def close(self) -> None:
        """Cuts what is under way, which is logged as it stands. Idempotent."""
        if self._server is not None:
            self._server.close()
        for task in self._serving:
            task.cancel()
        await asyncio.gather(*self._serving, return_exceptions=True)

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._serving.add(task)
        try:
            unserved = await self._serve_one(reader, writer)
            if unserved is not None:
                await _answer(reader, writer, unserved)
        finally:
            self._serving.discard(task)
            writer.close()

    async def _serve_one(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> _Unserved | None:
        """Serves a request and logs it; gives what the client is still to be told, if nothing was passed on."""
        passage = Passage()
        status = ""
        try:
            await self._pass(passage, reader, writer)
        except (Refused, BadRequest) as error:
            passage.verdict, passage.reason = "refused", str(error)
            status = "403 Forbidden" if isinstance(error, Refused) else "400 Bad Request"
        except Unreachable as error:
            passage.verdict, passage.reason = "failed", str(error)
            status = "502 Bad Gateway"
        except OSError as error:  # one of both ends broke off; what went through until then is in the log
            passage.reason = passage.reason or str(error)
        finally:
            if passage.method or passage.reason:
                self._log(passage.logged())
        if not status or passage.is_open:
            return None
        return _Unserved(status, f"{passage.verdict} by this trial's network: {passage.reason}")

    async def _pass(self, passage: Passage, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            async with asyncio.timeout(HEAD_TIMEOUT_S):
                head = await reader.readuntil(b"\r\n\r\n")
        except asyncio.IncompleteReadError as error:
            if not error.partial:
                return
            raise BadRequest("the request ended within its head") from error
        except (asyncio.LimitOverrunError, TimeoutError) as error:
            raise BadRequest(f"no whole head within {HEAD_TIMEOUT_S:.0f} s and {HEAD_LIMIT_BYTES} bytes") from error
        request = read_request(head)
        passage.method, passage.host, passage.port = request.method, request.host, request.port
        verdict = self._policy.judge(request.host, request.port)
        if not verdict.allowed:
            raise Refused(verdict.reason)
        passage.reason = verdict.reason
        first = b""
        out_reader, out_writer = await self._connect(request, passage, private=verdict.private)
        try:
            if request.is_tunnel:
                writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
                passage.is_open = True
                first = await _checked_hello(reader, request.host)
            passage.verdict = "allowed"
            await _exchange(request, first, passage, (reader, writer), (out_reader, out_writer))
        finally:
            out_writer.close()

    async def _connect(
        self, request: Request, passage: Passage, *, private: bool
    ) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """A connection to an address of the host that the policy lets it have."""
        try:
            addresses = await self._resolve(request.host, request.port)
        except OSError as error:
            raise Unreachable(f"{request.host} has no address: {error}") from error
        allowed = [address for address in addresses if private or _is_public_text(address)]
        if not allowed:
            raise Refused(
                f"at {', '.join(addresses)}, which is not public: a rule with `private` would have to name it"
            )
        failures: list[str] = []
        for address in allowed:
            try:
                async with asyncio.timeout(CONNECT_TIMEOUT_S):
                    reader, writer = await asyncio.open_connection(address, request.port)
            except (OSError, TimeoutError) as error:
                failures.append(f"{address}: {error or 'no answer in time'}")
                continue
            if not private and writer.get_extra_info("sockname")[0] == writer.get_extra_info("peername")[0]:
                writer.close()
                raise Refused(f"at {address}, which is this machine: a rule with `private` would have to name it")
            passage.address = address
            return reader, writer
        raise Unreachable("; ".join(failures))


async def _checked_hello(reader: asyncio.StreamReader, host: str) -> bytes:
    """The first bytes of a tunnel, whose name is the tunnel's host if they are TLS and ask for one.

    Raises:
        Refused: they ask for another.
    """
    first = await reader.read(1)
    if not first or first[0] != HANDSHAKE:
        return first
    try:
        async with asyncio.timeout(HEAD_TIMEOUT_S):
            first += await reader.readexactly(4)
            record = await reader.readexactly(record_bytes(first))
        name = server_name(record)
    except (asyncio.IncompleteReadError, NoClientHello, TimeoutError) as error:
        raise Refused(f"the tunnel begins as TLS, without a whole ClientHello: {error}") from error
    if name is not None and canonical_host(name) != host:
        raise Refused(f"within the tunnel {name} is asked for: ask for that host")
    return first + record


async def _exchange(
    request: Request,
    first: bytes,
    passage: Passage,
    client: tuple[asyncio.StreamReader, asyncio.StreamWriter],
    host: tuple[asyncio.StreamReader, asyncio.StreamWriter],
) -> None:
    """Passes bytes both ways until both have ended, or one broke off."""

    def sent(count: int) -> None:
        passage.sent_bytes += count

    def received(count: int) -> None:
        passage.received_bytes += count

    host[1].write(request.head + first)
    sent(len(request.head) + len(first))
    body_bytes = None if request.is_tunnel else request.body_bytes
    try:
        async with asyncio.TaskGroup() as both:
            both.create_task(_pump(client[0], host[1], sent, body_bytes))
            both.create_task(_pump(host[0], client[1], received, None))
    except* OSError as broken:
        passage.reason += f"; broke off: {broken.exceptions[0]}"


async def _pump(
    source: asyncio.StreamReader, target: asyncio.StreamWriter, count: Callable[[int], None], limit: int | None
) -> None:
    """Passes bytes on until the source ends, or `limit` of them; then the target hears an end."""
    left = limit
    while left is None or left > 0:
        chunk = await source.read(CHUNK_BYTES if left is None else min(CHUNK_BYTES, left))
        if not chunk:
            break
        target.write(chunk)
        await target.drain()
        count(len(chunk))
        left = None if left is None else left - len(chunk)
    if limit is None and target.can_write_eof():
        with contextlib.suppress(OSError):  # it hung up first
            target.write_eof()


async def _answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, unserved: _Unserved) -> None:
    """Says why nothing was passed on, and hears the client out for a while: a connection that is closed while it still
    sends is reset, and then it may not read the answer."""
    body = f"{unserved.reason}\n".encode()
    head = f"HTTP/1.1 {unserved.status}\r\nContent-Type: text/plain; charset=utf-8\r\n"
    writer.write(f"{head}Content-Length: {len(body)}\r\nConnection: close\r\n\r\n".encode() + body)
    with contextlib.suppress(OSError, TimeoutError):  # it hung up first, or does not stop
        writer.write_eof()
        async with asyncio.timeout(LINGER_S):
            while await reader.read(CHUNK_BYTES):
                pass


def _is_public_text(address: str) -> bool:
    found = address_of(address.partition("%")[0])
    return found is not None and is_public(found)
