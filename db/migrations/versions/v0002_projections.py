"""Tables for reading."""

from typing import Any

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import JSONB

from db.models import Xid8

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None

MOMENT = sa.DateTime(timezone=True)
TABLES = ("rollouts", "prompts", "validations", "steps", "runs", "projector_position")


def _key(name: str, kind: Any) -> sa.Column[Any]:
    return sa.Column(name, kind, nullable=False)


def _name(column: str) -> sa.Column[Any]:
    return _key(column, sa.Text(collation="C"))


def _count(column: str, kind: Any = sa.BigInteger) -> sa.Column[Any]:
    return sa.Column(column, kind, server_default=sa.text("0"), nullable=False)


def upgrade() -> None:
    op.create_table(
        "projector_position",
        _name("name"),
        _key("xid", Xid8()),
        _key("position", sa.BigInteger),
        sa.PrimaryKeyConstraint("name", name="projector_position_pk"),
    )
    op.execute("INSERT INTO projector_position (name, xid, position) VALUES ('projections', '0', 0)")
    op.create_table(
        "runs",
        _name("run"),
        sa.Column("recipe_name", sa.Text),
        sa.Column("recipe_digest", sa.Text),
        sa.Column("state", sa.Text),
        sa.Column("operator", sa.Text),
        sa.Column("cause", sa.Text),
        sa.Column("dispatched_steps", sa.Integer),
        sa.Column("completed_steps", sa.Integer),
        sa.Column("version", sa.Integer),
        sa.Column("created_at", MOMENT),
        sa.Column("finished_at", MOMENT),
        sa.PrimaryKeyConstraint("run", name="runs_pk"),
    )
    op.create_table(
        "steps",
        _name("run"),
        _key("step", sa.Integer),
        sa.Column("generated_by", sa.Integer),
        sa.Column("prompts", sa.Integer),
        sa.Column("rollouts", sa.Integer),
        sa.Column("masked", sa.Integer),
        sa.Column("reward_mean", sa.Double),
        sa.Column("version", sa.Integer),
        sa.Column("metrics", JSONB),
        sa.Column("loss", sa.Double),
        sa.Column("grad_norm", sa.Double),
        sa.Column("mismatch_mean", sa.Double),
        sa.Column("mismatch_max", sa.Double),
        sa.Column("train_s", sa.Double),
        sa.Column("dispatched_at", MOMENT),
        sa.Column("admitted_at", MOMENT),
        sa.Column("trained_at", MOMENT),
        sa.Column("completed_at", MOMENT),
        sa.PrimaryKeyConstraint("run", "step", name="steps_pk"),
    )
    op.create_table(
        "validations",
        _name("run"),
        _key("version", sa.Integer),
        _name("dataset"),
        sa.Column("tasks", sa.Integer),
        sa.Column("samples", sa.Integer),
        sa.Column("pass_1", sa.Double),
        sa.Column("pass_k", sa.Double),
        sa.Column("k", sa.Integer),
        sa.Column("opened_at", MOMENT),
        sa.Column("closed_at", MOMENT),
        sa.Column("recorded_at", MOMENT),
        sa.PrimaryKeyConstraint("run", "version", "dataset", name="validations_pk"),
    )
    op.create_table(
        "prompts",
        _name("run"),
        _name("scope"),
        _key("prompt", sa.Integer),
        sa.Column("task", sa.Text),
        sa.Column("task_id", sa.Text),
        sa.Column("version", sa.Integer),
        sa.Column("samples", sa.Integer),
        sa.Column("fate", sa.Text),
        sa.Column("cause", sa.Text),
        sa.Column("opened_at", MOMENT),
        sa.Column("closed_at", MOMENT),
        sa.PrimaryKeyConstraint("run", "scope", "prompt", name="prompts_pk"),
    )
    op.create_table(
        "rollouts",
        _name("run"),
        _name("scope"),
        _key("prompt", sa.Integer),
        _key("sample", sa.Integer),
        _count("attempts", sa.Integer),
        _count("restarts", sa.Integer),
        _count("recorded_turns", sa.Integer),
        _count("recorded_tokens"),
        _count("generate_us"),
        _count("tool_us"),
        sa.Column("end_reason", sa.Text),
        sa.Column("turns", sa.Integer),
        sa.Column("generated_tokens", sa.Integer),
        sa.Column("total_tokens", sa.Integer),
        sa.Column("score", sa.Double),
        sa.Column("failure", sa.Text),
        sa.Column("cause", sa.Text),
        sa.Column("opened_at", MOMENT),
        sa.Column("ended_at", MOMENT),
        sa.Column("graded_at", MOMENT),
        sa.PrimaryKeyConstraint("run", "scope", "prompt", "sample", name="rollouts_pk"),
    )


def downgrade() -> None:
    for table in TABLES:
        op.drop_table(table)
