"""The logging proxy between real sockets: what it passes on, holds back and writes down."""

import asyncio
import json
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import pytest

from stepwell.ptb.network.passage import LoggedRequest
from stepwell.ptb.network.policy import HostRule, NetworkPolicy
from stepwell.ptb.network.proxy import LoggingProxy
from tests.unit.test_ptb_network_request import client_hello

LOCAL = {"engine.example": ["127.0.0.1"], "rebound.example": ["127.0.0.1"], "meta.example": ["169.254.169.254"]}


@dataclass
class Stage:
    """A host that says what it was sent, behind a proxy."""

    proxy_port: int
    host_port: int
    logged: asyncio.Queue[LoggedRequest] = field(default_factory=asyncio.Queue[LoggedRequest])
    heard: bytearray = field(default_factory=bytearray)

    async def ask(self, sent: bytes) -> bytes:
        """Everything that comes back for what is sent to the proxy."""
        reader, writer = await asyncio.open_connection("127.0.0.1", self.proxy_port)
        writer.write(sent)
        writer.write_eof()
        answer = await reader.read()
        writer.close()
        return answer


@asynccontextmanager
async def stage(policy: NetworkPolicy, host_port: int = 0) -> AsyncIterator[Stage]:
    """Both servers, while the block runs; `engine.example` is this machine."""

    async def lookup(host: str, _: int) -> list[str]:
        if host not in LOCAL:
            raise OSError("no such name")
        return LOCAL[host]

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while chunk := await reader.read(1 << 16):
            made.heard.extend(chunk)
            if chunk.endswith((b"\r\n\r\n", b"BODY")):
                writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello")
                break
            writer.write(b"<" + chunk + b">")
        writer.close()

    host = await asyncio.start_server(answer, "127.0.0.1", host_port)
    listening = socket.create_server(("127.0.0.1", 0))
    made = Stage(listening.getsockname()[1], host.sockets[0].getsockname()[1])
    proxy = LoggingProxy(policy_at(policy, made.host_port), made.logged.put_nowait, lookup)
    await proxy.serve(listening)
    try:
        yield made
    finally:
        await proxy.close()
        host.close()


def policy_at(policy: NetworkPolicy, port: int) -> NetworkPolicy:
    """The policy with the port that the host happened to get in each rule that allows."""
    return policy.model_copy(
        update={"allow": tuple(rule.model_copy(update={"ports": (port,)}) for rule in policy.allow)}
    )


ENGINE = HostRule(host="engine.example", reason="local engine", private=True)
ALLOWING = NetworkPolicy(mode="allow", allow=(ENGINE,))
DENYING = NetworkPolicy(
    mode="deny",
    deny=(HostRule(host="*.leaks.example", reason="has the answers"),),
    allow=(ENGINE, HostRule(host="rebound.example", reason="other port"), HostRule(host="meta.example", reason="port")),
)


async def test_a_plain_request_reaches_an_allowed_host_and_is_logged_with_its_bytes() -> None:
    async with stage(ALLOWING) as made:
        answer = await made.ask(f"GET http://engine.example:{made.host_port}/v1 HTTP/1.1\r\n\r\n".encode())
        logged = await made.logged.get()
    assert answer.endswith(b"hello")
    assert made.heard.startswith(b"GET /v1 HTTP/1.1\r\nHost: engine.example:")
    assert (logged.method, logged.host, logged.port, logged.verdict) == (
        "GET",
        "engine.example",
        made.host_port,
        "allowed",
    )
    assert (logged.reason, logged.address) == ("local engine", "127.0.0.1")
    assert (logged.sent_bytes, logged.received_bytes) == (len(made.heard), len(answer))
    assert logged.duration_s >= 0.0


async def test_a_body_is_passed_on_and_nothing_after_it() -> None:
    async with stage(ALLOWING) as made:
        target = f"http://engine.example:{made.host_port}/"
        hidden = f"GET {target}hidden HTTP/1.1\r\n\r\n"
        await made.ask(f"POST {target} HTTP/1.1\r\nContent-Length: 4\r\n\r\nBODY{hidden}".encode())
    assert made.heard.endswith(b"\r\n\r\nBODY")


async def test_a_tunnel_passes_bytes_both_ways() -> None:
    async with stage(ALLOWING) as made:
        answer = await made.ask(f"CONNECT engine.example:{made.host_port} HTTP/1.1\r\n\r\nping".encode())
        logged = await made.logged.get()
    assert answer == b"HTTP/1.1 200 Connection established\r\n\r\n<ping>"
    assert (logged.method, logged.verdict, logged.sent_bytes, logged.received_bytes) == ("CONNECT", "allowed", 4, 6)


async def test_a_tunnel_whose_tls_asks_for_its_own_host_passes() -> None:
    hello = client_hello("engine.example")
    async with stage(ALLOWING) as made:
        await made.ask(f"CONNECT engine.example:{made.host_port} HTTP/1.1\r\n\r\n".encode() + hello)
    assert made.heard == hello


async def test_a_tunnel_whose_tls_asks_for_another_host_is_cut_before_a_byte_of_it_passes() -> None:
    async with stage(ALLOWING) as made:
        start = f"CONNECT engine.example:{made.host_port} HTTP/1.1\r\n\r\n".encode()
        answer = await made.ask(start + client_hello("denied.example"))
        logged = await made.logged.get()
    assert answer == b"HTTP/1.1 200 Connection established\r\n\r\n"
    assert made.heard == b""
    assert (logged.verdict, logged.sent_bytes) == ("refused", 0)
    assert "denied.example" in logged.reason


@pytest.mark.parametrize(
    ("policy", "target", "why"),
    [
        (ALLOWING, "other.example:443", "in no rule"),
        (ALLOWING, "engine.example:1", "port 1"),
        (DENYING, "www.leaks.example:443", "has the answers"),
        (DENYING, "93.184.216.34:443", "by its name"),
        (DENYING, "127.0.0.1:80", "by its name"),
        (DENYING, "rebound.example:{port}", "not public"),
        (DENYING, "meta.example:{port}", "not public"),
    ],
)
async def test_what_the_policy_holds_back_is_answered_and_logged_with_the_reason(
    policy: NetworkPolicy, target: str, why: str
) -> None:
    async with stage(policy) as made:
        asked = target.replace("{port}", str(made.host_port))
        answer = await made.ask(f"CONNECT {asked} HTTP/1.1\r\n\r\nping".encode())
        logged = await made.logged.get()
    assert answer.startswith(b"HTTP/1.1 403 Forbidden\r\n")
    assert why.encode() in answer
    assert made.heard == b""
    assert (logged.verdict, logged.address, logged.sent_bytes) == ("refused", None, 0)
    assert why in logged.reason


async def test_a_host_that_is_not_reached_is_logged_as_failed() -> None:
    async with stage(NetworkPolicy(mode="allow", allow=(HostRule(host="unknown.example", reason="wanted"),))) as made:
        answer = await made.ask(f"CONNECT unknown.example:{made.host_port} HTTP/1.1\r\n\r\n".encode())
        logged = await made.logged.get()
    assert answer.startswith(b"HTTP/1.1 502 Bad Gateway\r\n")
    assert (logged.verdict, logged.host) == ("failed", "unknown.example")


@pytest.mark.parametrize("sent", [b"hello\r\n\r\n", b"GET / HTTP/1.1\r\nHost: engine.example\r\n\r\n", b"GET http"])
async def test_what_is_no_request_is_refused_and_logged(sent: bytes) -> None:
    async with stage(ALLOWING) as made:
        answer = await made.ask(sent)
        logged = await made.logged.get()
    assert answer.startswith(b"HTTP/1.1 400 Bad Request\r\n")
    assert logged.verdict == "refused"


async def test_a_head_without_end_is_refused_when_it_is_too_long() -> None:
    async with stage(ALLOWING) as made:
        answer = await made.ask(b"GET http://engine.example/ HTTP/1.1\r\nA: " + b"x" * (1 << 17))
    assert answer.startswith(b"HTTP/1.1 400 Bad Request\r\n")


async def test_a_connection_without_a_request_is_not_logged() -> None:
    async with stage(ALLOWING) as made:
        assert await made.ask(b"") == b""
    assert made.logged.empty()


async def test_what_is_under_way_when_the_proxy_closes_is_logged() -> None:
    async with stage(ALLOWING) as made:
        reader, writer = await asyncio.open_connection("127.0.0.1", made.proxy_port)
        writer.write(f"CONNECT engine.example:{made.host_port} HTTP/1.1\r\n\r\nping".encode())
        await reader.readuntil(b"<ping>")
    writer.close()
    logged = await made.logged.get()
    assert (logged.verdict, logged.sent_bytes) == ("allowed", 4)


def test_a_logged_request_is_a_line_of_json() -> None:
    logged = LoggedRequest("2026-01-01T00:00:00.000+00:00", "GET", "a.example", 80, "allowed", "r", None, 1, 2, 0.5)
    assert json.loads(json.dumps(vars(logged)))["host"] == "a.example"
