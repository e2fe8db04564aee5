"""Free loopback ports that stay free.

They are taken below 32768, where Linux's range for outgoing connections begins: a port in that range may be some
client's when the server comes back to it. SeaweedFS puts the gRPC of each of its ports 10,000 higher, so those of all
services are taken where that is below the range too.
"""

import random
import socket
from collections.abc import Collection

GRPC_OFFSET = 10_000
CANDIDATES = range(20_000, 22_700)


def is_free(port: int) -> bool:
    """Whether a server could listen on this port of the loopback now."""
    with socket.socket() as probe:
        # A server's own closed connections linger for a minute; as it does itself, look past them.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
            probe.listen(1)
        except OSError:
            return False
    return True


def is_pair_free(port: int) -> bool:
    """Whether both a port and the one 10,000 above are free."""
    return is_free(port) and is_free(port + GRPC_OFFSET)


def choose_port(taken: Collection[int]) -> int:
    """A random port that is free, with the one 10,000 above, and not among `taken`.

    Raises:
        OSError: there is none.
    """
    for port in random.sample(CANDIDATES, len(CANDIDATES)):
        if port not in taken and is_pair_free(port):
            return port
    raise OSError(f"no free port between {CANDIDATES.start} and {CANDIDATES.stop}")
