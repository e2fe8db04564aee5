"""Leases of worker processes, and the weight version that an engine's lease speaks for."""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None


def upgrade() -> None:
    name = sa.Text(collation="C")
    moment = sa.DateTime(timezone=True)
    op.create_table(
        "worker_leases",
        sa.Column("worker_id", name, nullable=False),
        sa.Column("token", sa.Text, nullable=False),
        sa.Column("kind", sa.Text, nullable=False),
        sa.Column("run", name),
        sa.Column("queue", sa.Text, nullable=False),
        sa.Column("host", sa.Text, nullable=False),
        sa.Column("pid", sa.Integer, nullable=False),
        sa.Column("registered_at", moment, nullable=False),
        sa.Column("expires_at", moment, nullable=False),
        sa.PrimaryKeyConstraint("worker_id", name="worker_leases_pk"),
    )
    op.create_index("worker_leases_live", "worker_leases", ["expires_at"])
    op.add_column("engine_leases", sa.Column("version", sa.Integer))


def downgrade() -> None:
    op.drop_column("engine_leases", "version")
    op.drop_table("worker_leases")
