"""Rights of the database roles, granted again at each migration to those roles that exist.

With one role for everything, as on a hosted database, nothing is granted and the triggers still stand.
"""

from sqlalchemy import Connection, text

from db.models import Base, EngineLease, WorkerLease
from db.projections.tables import PROJECTIONS, ProjectorPosition

APPENDER = "stepwell_appender"
"""Workers: they insert and read; they renew leases, which are no facts."""
PROJECTOR = "stepwell_projector"
"""Keeps the tables for reading."""
AUDITOR = "stepwell_auditor"
"""Reads all."""

_PROJECTED = ", ".join(row.__tablename__ for row in (*PROJECTIONS, ProjectorPosition))

_LEASES: tuple[type[Base], ...] = (EngineLease, WorkerLease)
_PLAIN = ", ".join(sorted(set(Base.metadata.tables) - {row.__tablename__ for row in _LEASES}))


def _open(row: type[Base]) -> str:
    """Columns of a table of leases that open nothing."""
    return ", ".join(column.name for column in row.__table__.columns if column.name not in ("secret", "token"))


_READ_ALL = (
    f"SELECT ON {_PLAIN}, alembic_version",
    *(f"SELECT ({_open(row)}) ON {row.__tablename__}" for row in _LEASES),
)
"""All but what opens an engine or holds a lease."""

GRANTS: dict[str, tuple[str, ...]] = {
    APPENDER: (
        "SELECT ON ALL TABLES IN SCHEMA public",
        "INSERT ON events, blobs, blob_retentions",
        "INSERT, UPDATE ON engine_leases, worker_leases",
    ),
    PROJECTOR: (*_READ_ALL, f"INSERT, UPDATE, DELETE, TRUNCATE ON {_PROJECTED}"),
    AUDITOR: _READ_ALL,
}
"""What each role may do."""


def grant(connection: Connection) -> None:
    """Give each role that exists its rights, and no others."""
    existing = set(connection.scalars(text("SELECT rolname FROM pg_roles WHERE rolname LIKE 'stepwell\\_%'")))
    for role, rights in GRANTS.items():
        if role in existing:
            connection.execute(text(f"REVOKE ALL ON ALL TABLES IN SCHEMA public FROM {role}"))
            for right in rights:
                connection.execute(text(f"GRANT {right} TO {role}"))
