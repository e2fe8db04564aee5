"""Which engines answer where: leased rows, renewed while the engine lives.

These rows are operational, no facts: they are updated in place, and the appender's role may update this table alone.
What an engine did stands in its stream `engine/<run>/<id>`.
"""

import secrets
from typing import NamedTuple

from sqlalchemy import text

from db.database import Database
from db.errors import LeaseLost

_REGISTER = text(
    "INSERT INTO engine_leases (engine_id, token, run, url, secret, queue, version, registered_at, expires_at) VALUES "
    "(:engine_id, :token, :run, :url, :secret, :queue, :version, clock_timestamp(), "
    "clock_timestamp() + make_interval(secs => :ttl_s)) "
    "ON CONFLICT (engine_id) DO UPDATE SET token = excluded.token, run = excluded.run, url = excluded.url, "
    "secret = excluded.secret, queue = excluded.queue, version = excluded.version, "
    "registered_at = excluded.registered_at, expires_at = excluded.expires_at"
)
_RENEW = text(
    "UPDATE engine_leases SET expires_at = clock_timestamp() + make_interval(secs => :ttl_s), version = :version "
    "WHERE engine_id = :engine_id AND token = :token AND expires_at > clock_timestamp() RETURNING engine_id"
)
_RELEASE = text(
    "UPDATE engine_leases SET expires_at = clock_timestamp() "
    "WHERE engine_id = :engine_id AND token = :token AND expires_at > clock_timestamp()"
)
_LIVE = text(
    "SELECT engine_id, run, url, secret, queue, version FROM engine_leases "
    "WHERE run = :run AND expires_at > clock_timestamp() AND expires_at <= clock_timestamp() + interval '1 minute' "
    "ORDER BY registered_at, engine_id"
)
"""No lease is longer: one that seems so was taken before the database's clock was set back; renewing mends it."""


class EngineAddress(NamedTuple):
    """A live engine."""

    engine_id: str
    """Id, unique a process."""
    run: str
    """Run that it serves."""
    url: str
    """Where it answers."""
    secret: str
    """Bearer token that it answers to."""
    queue: str
    """Its task queue, `engine-<id>`."""
    version: int | None = None
    """Weight version that it said it serves when it last renewed; it may load another by now."""


class Lease(NamedTuple):
    """What the holder of a registration shows to renew it."""

    engine_id: str
    token: str


class Engines:
    """Register of the engines of all runs.

    Args:
        database: Connections.
    """

    def __init__(self, database: Database) -> None:
        self._database = database

    async def register(
        self, engine_id: str, run: str, url: str, queue: str, *, secret: str, ttl_s: float, version: int | None = None
    ) -> Lease:
        """Appear as live for `ttl_s` seconds, serving `version`. An older registration of the same id loses its lease.

        Raises:
            DatabaseUnavailable: no connection.
        """
        token = secrets.token_hex(16)
        values: dict[str, object] = {"engine_id": engine_id, "token": token, "run": run, "url": url, "secret": secret}
        values |= {"queue": queue, "ttl_s": ttl_s, "version": version}
        await self._database.rows(_REGISTER, values)
        return Lease(engine_id, token)

    async def renew(self, lease: Lease, *, ttl_s: float, version: int | None = None) -> None:
        """Stay live for another `ttl_s` seconds, serving `version`.

        Raises:
            LeaseLost: it ran out, or another process registered under the same id: register again.
            DatabaseUnavailable: no connection.
        """
        if not await self._database.rows(_RENEW, {**lease._asdict(), "ttl_s": ttl_s, "version": version}):
            raise LeaseLost(
                f"the lease of engine {lease.engine_id} ran out, or another process registered under its id: "
                "take no traffic, and register again"
            )

    async def release(self, lease: Lease) -> None:
        """Be live no longer; nothing happens to a lease that is lost."""
        await self._database.rows(_RELEASE, lease._asdict())

    async def live(self, run: str) -> list[EngineAddress]:
        """The run's engines whose lease holds, oldest first."""
        return [EngineAddress(*row) for row in await self._database.rows(_LIVE, {"run": run})]
