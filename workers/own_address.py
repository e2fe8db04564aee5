"""The address by which other machines reach this one."""

import socket


def own_address(service: str) -> str:
    """Own address on the way to a service: whoever uses the same service reaches it there.

    Args:
        service: `host:port` of the service; on this machine, it is the loopback's.

    Raises:
        OSError: its name is not known, or there is no way to it.
    """
    host, _, port = service.rpartition(":")
    family, kind, protocol, _, address = socket.getaddrinfo(host.strip("[]"), int(port), type=socket.SOCK_DGRAM)[0]
    with socket.socket(family, kind, protocol) as way:
        way.connect(address)  # of a datagram socket: sends nothing
        return str(way.getsockname()[0])
