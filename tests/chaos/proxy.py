"""Forwards TCP connections: what listens on one host's loopback is reached from another.

python tests/chaos/proxy.py LISTEN_ADDRESS PORT...      each port on that address to the same port of 127.0.0.1
"""

import asyncio
import sys
from functools import partial

CHUNK_BYTES = 1 << 16


async def main(address: str, ports: list[int]) -> None:
    """Forwards until it is killed."""
    for port in ports:
        await asyncio.start_server(partial(_forward, port), address, port)
    print("forwarding", flush=True)
    await asyncio.Event().wait()


async def _forward(port: int, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        to_reader, to_writer = await asyncio.open_connection("127.0.0.1", port)
    except OSError:
        writer.close()  # as a port that nobody listens on, nearly: it closes at once
        return
    await asyncio.gather(_pump(reader, to_writer), _pump(to_reader, writer))


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        while data := await reader.read(CHUNK_BYTES):
            writer.write(data)
            await writer.drain()
    except OSError:
        pass  # either side is gone: so the other is closed
    finally:
        writer.close()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], [int(port) for port in sys.argv[2:]]))
