"""The wire between a sandbox's client and the process inside: frames of byte strings over a socket.

A frame is a count of fields (4 bytes, big endian), then each field as its length (4 bytes) and its bytes. Bytes travel
as they are, and the process inside needs no parser that it would have to import.
"""

import asyncio
import contextlib
import socket
from collections.abc import Sequence

FRAME_LIMIT_BYTES = 256 << 20
"""Most bytes of one answer; more is a fault of the process inside, which is not trusted."""
FIELDS_LIMIT = 1 << 21


class ChannelClosed(Exception):
    """The other end is gone."""


class ChannelCorrupt(Exception):
    """The other end sent what is no frame."""


def encode_frame(fields: Sequence[bytes]) -> bytes:
    """The bytes of one frame."""
    parts = [len(fields).to_bytes(4, "big")]
    for field in fields:
        parts.append(len(field).to_bytes(4, "big"))
        parts.append(field)
    return b"".join(parts)


class FrameChannel:
    """Frames over a non-blocking socket that this object owns. One exchange at a time."""

    def __init__(self, connection: socket.socket) -> None:
        connection.setblocking(False)
        self._connection = connection
        self._buffer = bytearray()

    async def send(self, fields: Sequence[bytes]) -> None:
        """Sends one frame.

        Raises:
            ChannelClosed: the other end is gone.
        """
        try:
            await asyncio.get_running_loop().sock_sendall(self._connection, encode_frame(fields))
        except (BrokenPipeError, ConnectionResetError) as error:
            raise ChannelClosed from error

    async def receive(self) -> list[bytes]:
        """Receives one frame.

        Raises:
            ChannelClosed: the other end is gone.
            ChannelCorrupt: what came is no frame.
        """
        count = int.from_bytes(await self._take(4), "big")
        if count > FIELDS_LIMIT:
            raise ChannelCorrupt(f"a frame of {count} fields; at most {FIELDS_LIMIT} are allowed")
        fields: list[bytes] = []
        total = 0
        for _ in range(count):
            size = int.from_bytes(await self._take(4), "big")
            total += size
            if total > FRAME_LIMIT_BYTES:
                raise ChannelCorrupt(f"a frame of over {FRAME_LIMIT_BYTES} bytes")
            fields.append(await self._take(size))
        return fields

    def hang_up(self) -> None:
        """Ends the conversation: both ends see it as closed. Safe while an exchange is under way; idempotent."""
        with contextlib.suppress(OSError):  # Already closed, by the other end or by `close`.
            self._connection.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        """Frees the socket. Idempotent; not while an exchange is under way."""
        self._connection.close()

    async def _take(self, size: int) -> bytes:
        buffer = self._buffer
        while len(buffer) < size:
            try:
                chunk = await asyncio.get_running_loop().sock_recv(self._connection, 1 << 18)
            except ConnectionResetError as error:
                raise ChannelClosed from error
            if not chunk:
                raise ChannelClosed
            buffer += chunk
        taken = bytes(buffer[:size])
        del buffer[:size]
        return taken
