"""The services that a verb only reads from."""

from collections.abc import Generator
from contextlib import contextmanager

from db.migrate import check
from workers.services.addresses import Addresses, resolve
from workers.services.lifecycle import held


@contextmanager
def services_to_read() -> Generator[Addresses]:
    """The services there are, for the block; those that are down are up as long as it.

    Raises:
        ServiceError: there never were any, or they do not start; says what to do.
        OldDatabase, NewerDatabase, DatabaseUnavailable: the database cannot be used.
    """
    resolve()  # says what to do where there never were any services, instead of starting empty ones
    with held() as addresses:
        check(addresses.auditor)
        yield addresses
