"""The name that a TLS client asks for (RFC 6066, server_name in a ClientHello), read without taking part.

A tunnel to a host that is allowed must not serve to reach another one behind the same address, as the servers of
content networks would allow: so the name inside must be that of the tunnel.
"""

HANDSHAKE = 0x16
_CLIENT_HELLO = 1
_SERVER_NAME = 0
_HOST_NAME = 0
RECORD_LIMIT_BYTES = 16 << 10
"""What one record may hold (RFC 8446). A ClientHello that is spread over more is not read."""


class NoClientHello(Exception):
    """The bytes begin as TLS and go on as something else."""


def record_bytes(head: bytes) -> int:
    """Length of the record after its five first bytes."""
    return int.from_bytes(head[3:5], "big")


def server_name(record: bytes) -> str | None:
    """The name asked for in a ClientHello, None if it asks for none.

    Args:
        record: The content of a TLS record, without its five first bytes.

    Raises:
        NoClientHello: it is no whole ClientHello.
    """
    hello = _Reader(record)
    if hello.number(1) != _CLIENT_HELLO:
        raise NoClientHello("the first message is no ClientHello")
    hello = _Reader(hello.take(hello.number(3)))
    hello.take(2 + 32)  # version, random
    hello.take(hello.number(1))  # session
    hello.take(hello.number(2))  # cipher suites
    hello.take(hello.number(1))  # compressions
    if hello.is_empty():
        return None
    extensions = _Reader(hello.take(hello.number(2)))
    while not extensions.is_empty():
        kind = extensions.number(2)
        extension = _Reader(extensions.take(extensions.number(2)))
        if kind == _SERVER_NAME:
            names = _Reader(extension.take(extension.number(2)))
            while not names.is_empty():
                name_kind = names.number(1)
                name = names.take(names.number(2))
                if name_kind == _HOST_NAME:
                    return name.decode("latin-1")
    return None


class _Reader:
    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    def take(self, size: int) -> bytes:
        taken = self._data[self._at : self._at + size]
        if len(taken) < size:
            raise NoClientHello(f"a field of {size} bytes has only {len(taken)}")
        self._at += size
        return taken

    def number(self, size: int) -> int:
        return int.from_bytes(self.take(size), "big")

    def is_empty(self) -> bool:
        return self._at >= len(self._data)
