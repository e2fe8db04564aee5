"""Which worker processes are alive: leased rows, renewed while the process's event loop turns.

Like the engines' rows these are operational, no facts. A process that died, hangs or was stopped does not renew: it is
no longer listed when its lease runs out, by the database's clock.
"""

import secrets
from collections.abc import Iterable
from datetime import datetime
from typing import NamedTuple

from sqlalchemy import text

from db.database import Database
from db.errors import LeaseLost

_REGISTER = text(
    "INSERT INTO worker_leases (worker_id, token, kind, run, queue, host, pid, registered_at, expires_at) VALUES "
    "(:worker_id, :token, :kind, :run, :queue, :host, :pid, clock_timestamp(), "
    "clock_timestamp() + make_interval(secs => :ttl_s)) "
    "ON CONFLICT (worker_id) DO UPDATE SET token = excluded.token, kind = excluded.kind, run = excluded.run, "
    "queue = excluded.queue, host = excluded.host, pid = excluded.pid, registered_at = excluded.registered_at, "
    "expires_at = excluded.expires_at"
)
_RENEW = text(
    "UPDATE worker_leases SET expires_at = clock_timestamp() + make_interval(secs => :ttl_s) "
    "WHERE worker_id = :worker_id AND token = :token AND expires_at > clock_timestamp() RETURNING worker_id"
)
_RELEASE = text(
    "UPDATE worker_leases SET expires_at = clock_timestamp() "
    "WHERE worker_id = :worker_id AND token = :token AND expires_at > clock_timestamp()"
)
_LIVE = text(
    "SELECT kind, worker_id, host, pid, run, queue, registered_at FROM worker_leases "
    "WHERE expires_at > clock_timestamp() AND expires_at <= clock_timestamp() + interval '1 minute' "
    "AND (CAST(:kinds AS text[]) IS NULL OR kind = ANY(CAST(:kinds AS text[]))) "
    "AND (CAST(:run AS text) IS NULL OR run IS NULL OR run = CAST(:run AS text)) "
    "ORDER BY kind, registered_at, worker_id"
)
"""No lease is a minute long: one that seems so was taken before the database's clock was set back."""
_LAST = text(
    "SELECT kind, worker_id, host, pid, run, queue, registered_at, "
    "CAST(extract(epoch FROM clock_timestamp() - expires_at) AS float8) AS ended_s FROM worker_leases "
    "WHERE kind = :kind AND (run IS NULL OR run = :run) ORDER BY expires_at DESC LIMIT 1"
)


class WorkerAddress(NamedTuple):
    """A worker process, as it registers."""

    worker_id: str
    """Id, unique a process: `<kind>-<8 hex digits>`."""
    kind: str
    """`control`, `trainer`, `engine`, `sandbox` or `trial`."""
    run: str | None
    """The only run that it serves; None: any."""
    queue: str
    """Task queue that it polls."""
    host: str
    """Name of its machine."""
    pid: int
    """Process there."""


class LiveWorker(NamedTuple):
    """A worker whose lease holds."""

    kind: str
    worker_id: str
    host: str
    pid: int
    run: str | None
    queue: str
    registered_at: datetime
    """When it appeared, by the database's clock."""


class LastWorker(NamedTuple):
    """The worker of a kind whose lease ran out last."""

    worker: LiveWorker
    """Who it was."""
    ended_s: float
    """Seconds since its lease ended; negative while it holds."""


class WorkerLease(NamedTuple):
    """What the holder of a registration shows to renew it."""

    worker_id: str
    token: str


class WorkerLeases:
    """Register of all worker processes.

    Args:
        database: Connections.
    """

    def __init__(self, database: Database) -> None:
        self._database = database

    async def register(self, worker: WorkerAddress, *, ttl_s: float) -> WorkerLease:
        """Appear as live for `ttl_s` seconds. An older registration of the same id loses its lease.

        Raises:
            DatabaseUnavailable: no connection.
        """
        token = secrets.token_hex(16)
        await self._database.rows(_REGISTER, {**worker._asdict(), "token": token, "ttl_s": ttl_s})
        return WorkerLease(worker.worker_id, token)

    async def renew(self, lease: WorkerLease, *, ttl_s: float) -> None:
        """Stay live for another `ttl_s` seconds.

        Raises:
            LeaseLost: it ran out, or another process registered under the same id: register again.
            DatabaseUnavailable: no connection.
        """
        if not await self._database.rows(_RENEW, {**lease._asdict(), "ttl_s": ttl_s}):
            raise LeaseLost(
                f"the lease of worker {lease.worker_id} ran out, or another process registered under its id: "
                "it counted as dead for a while; register again"
            )

    async def release(self, lease: WorkerLease) -> None:
        """Be live no longer; nothing happens to a lease that is lost."""
        await self._database.rows(_RELEASE, lease._asdict())

    async def live(self, kinds: Iterable[str] | None = None, *, run: str | None = None) -> list[LiveWorker]:
        """Workers whose lease holds, by kind, oldest first.

        Args:
            kinds: only these; None: all.
            run: only those that can work on this run: its own, and those that serve any; None: all.

        Raises:
            DatabaseUnavailable: no connection.
        """
        values = {"kinds": None if kinds is None else list(kinds), "run": run}
        return [LiveWorker(*row) for row in await self._database.rows(_LIVE, values)]

    async def last(self, kind: str, run: str) -> LastWorker | None:
        """The worker of a kind, among those that can work on a run, that was live last; None if there never was one.

        Raises:
            DatabaseUnavailable: no connection.
        """
        rows = await self._database.rows(_LAST, {"kind": kind, "run": run})
        if not rows:
            return None
        *worker, ended_s = rows[0]
        return LastWorker(LiveWorker(*worker), ended_s)
