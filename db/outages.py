"""Waiting for a store that is away.

A worker whose store does not answer waits in place: what it holds (a sandbox, a trainer's state, a generation) is worth
more than a quick failure, and everybody's outage is no failure of the rollout that happened to notice it. The log has
one line when a store goes and one when it is back; heartbeats carry the cause meanwhile.
"""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from typing import TypeVar

from db.errors import BlobStoreUnavailable, DatabaseRefused, DatabaseUnavailable, DiskFull

T = TypeVar("T")

FIRST_PAUSE_S = 0.1
LONGEST_PAUSE_S = 2.0
"""Between two tries: what waits goes on this soon after the store is back."""

_log = logging.getLogger(__name__)
_away: dict[str, tuple[float, str]] = {}
"""By store, what this process waits for: since when, and why."""


async def patiently(store: str, wait_s: float, call: Callable[[], Awaitable[T]]) -> T:
    """The answer of a call that may be made again, waiting at most `wait_s` seconds while the store is away or full.

    Args:
        store: Its name, for people.
        wait_s: 0 makes one try, `math.inf` waits for good.
        call: One try.

    Raises:
        DatabaseUnavailable, BlobStoreUnavailable, DiskFull: the last try's, when the time is up.
        DatabaseRefused: waiting would not help.
    """
    began = time.monotonic()
    pause_s = FIRST_PAUSE_S
    while True:
        try:
            answer = await call()
        except DatabaseRefused:
            raise
        except (DatabaseUnavailable, BlobStoreUnavailable, DiskFull) as error:
            if time.monotonic() - began + pause_s > wait_s:
                raise
            if store not in _away:
                _away[store] = (time.monotonic(), str(error))
                _log.warning("waiting for %s: %s", store, error)
        else:
            if store in _away:
                since, _ = _away.pop(store)
                _log.warning("%s is back after %.1f s", store, time.monotonic() - since)
            return answer
        await asyncio.sleep(pause_s)
        pause_s = min(LONGEST_PAUSE_S, 2 * pause_s)


def waiting_for() -> list[str]:
    """Why this process waits, a line a store; empty when it does not."""
    return [f"waiting for {store}: {cause}" for store, (_, cause) in _away.items()]
