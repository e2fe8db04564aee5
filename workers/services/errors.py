"""What goes wrong with a service."""


class ServiceError(Exception):
    """A service cannot be started, reached or stopped. The message says what was found and what to do."""


class PortTakenError(ServiceError):
    """Another process took a port between our look and the server's bind; other ports may work."""


class NotReadyError(Exception):
    """A service does not answer yet; asking again later may help."""
