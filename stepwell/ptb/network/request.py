"""The head of a request to the proxy, as HTTP/1.1 has it (RFC 9112): CONNECT, or a request with a whole address."""

from dataclasses import dataclass
from urllib.parse import urlsplit

from stepwell.ptb.network.policy import canonical_host

HEAD_LIMIT_BYTES = 64 << 10
_NOT_PASSED_ON = frozenset(
    {"connection", "proxy-connection", "proxy-authorization", "proxy-authenticate", "keep-alive", "te", "upgrade"}
)
"""Of this connection alone. Each request has a connection of its own, which its answer closes."""


class BadRequest(Exception):
    """What came is no request that a proxy can serve."""


@dataclass(frozen=True)
class Request:
    """What is asked of the proxy."""

    method: str
    host: str
    """As `canonical_host` gives it."""
    port: int
    head: bytes
    """What goes to the host before the body; nothing for CONNECT."""
    body_bytes: int
    """Length of the body that follows; of CONNECT 0, since nothing of its tunnel is a body."""

    @property
    def is_tunnel(self) -> bool:
        """Whether bytes go both ways unread, as for HTTPS."""
        return self.method == "CONNECT"


def read_request(head: bytes) -> Request:
    """Takes a head apart, its last empty line with it.

    Raises:
        BadRequest: it is none, or leads to no host.
    """
    lines = head.decode("latin-1").split("\r\n")
    if any(character < " " and character != "\t" for line in lines for character in line):
        raise BadRequest("a control character in the head: a host may read more lines there than this proxy does")
    parts = lines[0].split(" ")
    if len(parts) != 3 or not parts[2].startswith("HTTP/1."):
        raise BadRequest(f"the request line {lines[0][:200]!r}: wanted METHOD TARGET HTTP/1.1")
    method, target, _ = parts
    if method == "CONNECT":
        host, port = _authority(target)
        return Request(method, host, port, b"", 0)
    try:
        address = urlsplit(target)
    except ValueError as error:
        raise BadRequest(f"the target {target[:200]!r}: {error}") from error
    if address.scheme != "http" or not address.hostname:
        raise BadRequest(f"the target {target[:200]!r}: wanted http:// and a host, or CONNECT for anything else")
    host, port = _host_and_port(address.hostname, address.netloc, 80)
    fields = [_field(line) for line in lines[1:] if line]
    path = address.path or "/"
    if address.query:
        path += f"?{address.query}"
    named = f"[{host}]" if ":" in host else host
    passed = [f"{name}: {value}" for name, value in fields if name.lower() not in {*_NOT_PASSED_ON, "host"}]
    own = [f"Host: {named}" if port == 80 else f"Host: {named}:{port}", "Connection: close"]
    out = "\r\n".join([f"{method} {path} HTTP/1.1", *own, *passed, "", ""])
    return Request(method, host, port, out.encode("latin-1"), _body_bytes(fields))


def _field(line: str) -> tuple[str, str]:
    name, colon, value = line.partition(":")
    if not colon or not name or name != name.strip():
        raise BadRequest(f"the header line {line[:200]!r}: wanted NAME: VALUE")
    return name, value.strip()


def _body_bytes(fields: list[tuple[str, str]]) -> int:
    """Told by one length, and nothing else: where ends are open to doubt, a second request can hide in a first."""
    if any(name.lower() == "transfer-encoding" for name, _ in fields):
        raise BadRequest("a body in chunks: wanted Content-Length, or HTTPS")
    lengths = {value for name, value in fields if name.lower() == "content-length"}
    if len(lengths) > 1 or not all(value.isascii() and value.isdigit() for value in lengths):
        raise BadRequest(f"Content-Length {sorted(lengths)}: wanted one number")
    return int(lengths.pop()) if lengths else 0


def _authority(target: str) -> tuple[str, int]:
    host, colon, port = target.rpartition(":")
    if not colon or not port.isascii() or not port.isdigit():
        raise BadRequest(f"the target {target[:200]!r} of CONNECT: wanted HOST:PORT")
    return _host_and_port(host, target, int(port))


def _host_and_port(host: str, netloc: str, default_port: int) -> tuple[str, int]:
    try:
        port = urlsplit(f"//{netloc}").port
        return canonical_host(host), default_port if port is None else port
    except ValueError as error:
        raise BadRequest(str(error)) from error
