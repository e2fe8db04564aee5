"""Tables: the ledger, the blobs, the leases. The projections' tables are in `db/projections/tables.py`."""

from datetime import datetime
from typing import Any

from sqlalchemy import (
    BigInteger,
    CheckConstraint,
    DateTime,
    Identity,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    Text,
    text,
)
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column
from sqlalchemy.types import UserDefinedType


class Xid8(UserDefinedType[str]):
    """Postgres' 64-bit transaction id."""

    cache_ok = True

    def get_col_spec(self, **_: Any) -> str:
        return "xid8"


Name = Text(collation="C")
"""Text that sorts by code point wherever the database stands, and whose plain index serves prefixes."""


class Base(DeclarativeBase):
    """All tables."""

    metadata = MetaData(
        naming_convention={
            "pk": "%(table_name)s_pk",
            "uq": "%(table_name)s_%(column_0_N_name)s",
            "ix": "%(table_name)s_%(column_0_N_name)s_index",
            "ck": "%(table_name)s_%(constraint_name)s",
        }
    )


class EventRow(Base):
    """One event. Inserted by `append_events`, never updated or deleted: a trigger refuses it even to the owner."""

    __tablename__ = "events"
    __table_args__ = (
        CheckConstraint("seq >= 0", name="seq_from_0"),
        Index("events_stream_seq", "stream", "seq", unique=True),
        Index("events_stream_key", "stream", "key", unique=True),
        Index("events_order", "xid", "position"),
    )

    position: Mapped[int] = mapped_column(BigInteger, Identity(always=True), primary_key=True)
    """Order of insertion, with gaps; among concurrent transactions not the order of commits (see `db/feed.py`)."""
    xid: Mapped[str] = mapped_column(Xid8(), server_default=text("pg_current_xact_id()"))
    """The transaction that appended it."""
    stream: Mapped[str] = mapped_column(Name)
    """Name of the stream."""
    seq: Mapped[int] = mapped_column(BigInteger)
    """Place in it, from 0."""
    key: Mapped[str] = mapped_column(Name)
    """Domain key, unique in the stream."""
    type: Mapped[str] = mapped_column(Text)
    """Tag of the event's type."""
    hash: Mapped[str] = mapped_column(Text)
    """Hash over `exact`, in hex."""
    exact: Mapped[bytes] = mapped_column(LargeBinary)
    """The canonical bytes that were hashed. Stream, seq, key and type above are copies out of them."""


class BlobRow(Base):
    """One blob that is stored, here or in S3."""

    __tablename__ = "blobs"
    __table_args__ = (
        CheckConstraint("place IN ('postgres', 's3')", name="place_known"),
        CheckConstraint("(place = 'postgres') = (data IS NOT NULL)", name="data_where_it_is"),
        CheckConstraint("data IS NULL OR octet_length(data) = size_bytes", name="size_of_data"),
        Index("blobs_stored_at", "stored_at"),
    )

    digest: Mapped[str] = mapped_column(Name, primary_key=True)
    """Plain SHA-256 of the bytes, in hex."""
    size_bytes: Mapped[int] = mapped_column(BigInteger)
    """Size of the bytes."""
    place: Mapped[str] = mapped_column(Text)
    """`postgres` or `s3`."""
    data: Mapped[bytes | None] = mapped_column(LargeBinary)
    """The bytes, where they lie here."""
    stored_at: Mapped[datetime] = mapped_column(DateTime(timezone=True), server_default=text("clock_timestamp()"))
    """When they were stored first."""


class BlobRetention(Base):
    """How long a blob is kept: the longest of the classes that it was put under. Rows are added, never changed."""

    __tablename__ = "blob_retentions"

    digest: Mapped[str] = mapped_column(Name, primary_key=True)
    """Which blob."""
    retention: Mapped[str] = mapped_column(Text, primary_key=True)
    """Class, as `run`."""


class EngineLease(Base):
    """Where an engine answers, for as long as it says so: an operational row that is updated, no fact."""

    __tablename__ = "engine_leases"
    __table_args__ = (Index("engine_leases_run", "run", "expires_at"),)

    engine_id: Mapped[str] = mapped_column(Name, primary_key=True)
    """Id of the engine."""
    token: Mapped[str] = mapped_column(Text)
    """Drawn at registration: only its holder renews."""
    run: Mapped[str] = mapped_column(Name)
    """Run that it serves."""
    url: Mapped[str] = mapped_column(Text)
    """Where it answers."""
    secret: Mapped[str] = mapped_column(Text)
    """Bearer token that it answers to; whoever may read this table may ask it."""
    queue: Mapped[str] = mapped_column(Text)
    """Its task queue."""
    registered_at: Mapped[datetime] = mapped_column(DateTime(timezone=True))
    """When."""
    expires_at: Mapped[datetime] = mapped_column(DateTime(timezone=True))
    """Until when it counts as alive."""
    version: Mapped[int | None] = mapped_column(Integer)
    """Weight version that it has attested and serves, as of the last renewal."""


class WorkerLease(Base):
    """A worker process, for as long as its event loop says so: an operational row that is updated, no fact."""

    __tablename__ = "worker_leases"
    __table_args__ = (Index("worker_leases_live", "expires_at"),)

    worker_id: Mapped[str] = mapped_column(Name, primary_key=True)
    """Id of the process."""
    token: Mapped[str] = mapped_column(Text)
    """Drawn at registration: only its holder renews."""
    kind: Mapped[str] = mapped_column(Text)
    """`control`, `trainer`, `engine` or `sandbox`."""
    run: Mapped[str | None] = mapped_column(Name)
    """The only run that it serves; null: any."""
    queue: Mapped[str] = mapped_column(Text)
    """Task queue that it polls."""
    host: Mapped[str] = mapped_column(Text)
    """Name of its machine."""
    pid: Mapped[int] = mapped_column(Integer)
    """Process there."""
    registered_at: Mapped[datetime] = mapped_column(DateTime(timezone=True))
    """When it appeared."""
    expires_at: Mapped[datetime] = mapped_column(DateTime(timezone=True))
    """Until when it counts as alive."""
