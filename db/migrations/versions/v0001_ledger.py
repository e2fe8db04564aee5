"""The ledger, the blobs and the engines' leases."""

import sqlalchemy as sa
from alembic import op

from db.models import Xid8

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

APPEND_EVENTS = r"""
CREATE FUNCTION append_events(
    p_stream text, p_expected bigint,
    p_keys text[], p_types text[], p_heads bytea[], p_middles bytea[], p_tails bytea[],
    p_digests text[], p_blobs bytea[], p_retention text
) RETURNS TABLE (at text, head text)
LANGUAGE plpgsql
AS $$
-- Appends drafted events at p_expected, p_expected + 1, … with the blobs that they name, all or nothing.
-- Returns the time and the last hash; no row when there is no event before p_expected. A place or a key that is
-- taken raises unique_violation. The event before is read first: so a later event of a stream always has a later
-- transaction id, which is what readers order by.
DECLARE
    previous text := repeat('0', 64);
    exact_bytes bytea;
BEGIN
    IF p_expected > 0 THEN
        SELECT e.hash INTO previous FROM events e WHERE e.stream = p_stream AND e.seq = p_expected - 1;
        IF NOT FOUND THEN
            RETURN;
        END IF;
    END IF;
    IF cardinality(p_digests) > 0 THEN
        PERFORM put_blobs(p_digests, p_blobs, p_retention);
    END IF;
    at := to_char(clock_timestamp() AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"');
    FOR i IN 1 .. cardinality(p_keys) LOOP
        exact_bytes := p_heads[i] || convert_to(previous, 'UTF8') || p_middles[i] || convert_to(at, 'UTF8')
            || p_tails[i];
        previous := encode(
            sha256('stepwell/event\000'::bytea || int8send(octet_length(exact_bytes)) || exact_bytes), 'hex');
        INSERT INTO events (stream, seq, key, type, hash, exact)
        VALUES (p_stream, p_expected + i - 1, p_keys[i], p_types[i], previous, exact_bytes);
    END LOOP;
    head := previous;
    RETURN NEXT;
END
$$
"""

PUT_BLOBS = r"""
CREATE FUNCTION put_blobs(p_digests text[], p_blobs bytea[], p_retention text) RETURNS void
LANGUAGE sql
AS $$
    INSERT INTO blobs (digest, size_bytes, place, data)
    SELECT b.digest, octet_length(b.data), 'postgres', b.data FROM unnest(p_digests, p_blobs) AS b (digest, data)
    ORDER BY b.digest
    ON CONFLICT (digest) DO NOTHING;
    INSERT INTO blob_retentions (digest, retention)
    SELECT d.digest, p_retention FROM unnest(p_digests) AS d (digest) ORDER BY d.digest
    ON CONFLICT DO NOTHING;
$$
"""

REFUSE_CHANGE = r"""
CREATE FUNCTION refuse_change() RETURNS trigger
LANGUAGE plpgsql
AS $$
BEGIN
    RAISE EXCEPTION 'facts are appended, never changed: % of table % is refused', TG_OP, TG_TABLE_NAME
        USING ERRCODE = 'insufficient_privilege';
END
$$
"""


def upgrade() -> None:
    name = sa.Text(collation="C")
    moment = sa.DateTime(timezone=True)
    op.create_table(
        "events",
        sa.Column("position", sa.BigInteger, sa.Identity(always=True), primary_key=True),
        sa.Column("xid", Xid8(), server_default=sa.text("pg_current_xact_id()"), nullable=False),
        sa.Column("stream", name, nullable=False),
        sa.Column("seq", sa.BigInteger, nullable=False),
        sa.Column("key", name, nullable=False),
        sa.Column("type", sa.Text, nullable=False),
        sa.Column("hash", sa.Text, nullable=False),
        sa.Column("exact", sa.LargeBinary, nullable=False),
        sa.PrimaryKeyConstraint("position", name="events_pk"),
        sa.CheckConstraint("seq >= 0", name="events_seq_from_0"),
    )
    op.create_index("events_stream_seq", "events", ["stream", "seq"], unique=True)
    op.create_index("events_stream_key", "events", ["stream", "key"], unique=True)
    op.create_index("events_order", "events", ["xid", "position"])
    op.create_table(
        "blobs",
        sa.Column("digest", name, nullable=False),
        sa.Column("size_bytes", sa.BigInteger, nullable=False),
        sa.Column("place", sa.Text, nullable=False),
        sa.Column("data", sa.LargeBinary),
        sa.Column("stored_at", moment, server_default=sa.text("clock_timestamp()"), nullable=False),
        sa.PrimaryKeyConstraint("digest", name="blobs_pk"),
        sa.CheckConstraint("place IN ('postgres', 's3')", name="blobs_place_known"),
        sa.CheckConstraint("(place = 'postgres') = (data IS NOT NULL)", name="blobs_data_where_it_is"),
        sa.CheckConstraint("data IS NULL OR octet_length(data) = size_bytes", name="blobs_size_of_data"),
    )
    op.create_index("blobs_stored_at", "blobs", ["stored_at"])
    op.create_table(
        "blob_retentions",
        sa.Column("digest", name, nullable=False),
        sa.Column("retention", sa.Text, nullable=False),
        sa.PrimaryKeyConstraint("digest", "retention", name="blob_retentions_pk"),
    )
    op.create_table(
        "engine_leases",
        sa.Column("engine_id", name, nullable=False),
        sa.Column("token", sa.Text, nullable=False),
        sa.Column("run", name, nullable=False),
        sa.Column("url", sa.Text, nullable=False),
        sa.Column("secret", sa.Text, nullable=False),
        sa.Column("queue", sa.Text, nullable=False),
        sa.Column("registered_at", moment, nullable=False),
        sa.Column("expires_at", moment, nullable=False),
        sa.PrimaryKeyConstraint("engine_id", name="engine_leases_pk"),
    )
    op.create_index("engine_leases_run", "engine_leases", ["run", "expires_at"])
    op.execute(PUT_BLOBS)
    op.execute(APPEND_EVENTS)
    op.execute(REFUSE_CHANGE)
    op.execute(
        "CREATE TRIGGER events_stand BEFORE UPDATE OR DELETE OR TRUNCATE ON events "
        "FOR EACH STATEMENT EXECUTE FUNCTION refuse_change()"
    )
    op.execute("CREATE TRIGGER blobs_stand BEFORE UPDATE ON blobs FOR EACH STATEMENT EXECUTE FUNCTION refuse_change()")


def downgrade() -> None:
    raise RuntimeError("the ledger is not dropped by a migration: drop the database if you mean it")
