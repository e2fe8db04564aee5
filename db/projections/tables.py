"""Tables for reading, built from events and from nothing else: they may be dropped and rebuilt at any time.

Columns other than keys are empty until the event that fills them: streams are followed side by side, so the training of
a step may be seen before its dispatch.
"""

from datetime import datetime
from typing import Any

from sqlalchemy import BigInteger, DateTime, Double, Integer, Text, text
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.orm import Mapped, mapped_column

from db.models import Base, Name, Xid8

_Time = DateTime(timezone=True)


class ProjectorPosition(Base):
    """How far the projections have come in the ledger: one row."""

    __tablename__ = "projector_position"

    name: Mapped[str] = mapped_column(Name, primary_key=True)
    """Always `projections`."""
    xid: Mapped[str] = mapped_column(Xid8())
    """Transaction of the last event applied."""
    position: Mapped[int] = mapped_column(BigInteger)
    """Its position."""


class RunRow(Base):
    """A run at a glance."""

    __tablename__ = "runs"

    run: Mapped[str] = mapped_column(Name, primary_key=True)
    recipe_name: Mapped[str | None] = mapped_column(Text)
    recipe_digest: Mapped[str | None] = mapped_column(Text)
    state: Mapped[str | None] = mapped_column(Text)
    """`running`, or why it ended: target, max_steps, stopped, failed."""
    operator: Mapped[str | None] = mapped_column(Text)
    """What an operator asked for last: pause, resume, stop."""
    cause: Mapped[str | None] = mapped_column(Text)
    dispatched_steps: Mapped[int | None] = mapped_column(Integer)
    """Steps whose prompts were handed out."""
    completed_steps: Mapped[int | None] = mapped_column(Integer)
    """Steps whose version exists."""
    version: Mapped[int | None] = mapped_column(Integer)
    """Newest weight version."""
    created_at: Mapped[datetime | None] = mapped_column(_Time)
    finished_at: Mapped[datetime | None] = mapped_column(_Time)


class StepRow(Base):
    """A training step of a run."""

    __tablename__ = "steps"

    run: Mapped[str] = mapped_column(Name, primary_key=True)
    step: Mapped[int] = mapped_column(Integer, primary_key=True)
    generated_by: Mapped[int | None] = mapped_column(Integer)
    """Version that generated its rollouts."""
    prompts: Mapped[int | None] = mapped_column(Integer)
    rollouts: Mapped[int | None] = mapped_column(Integer)
    masked: Mapped[int | None] = mapped_column(Integer)
    reward_mean: Mapped[float | None] = mapped_column(Double)
    version: Mapped[int | None] = mapped_column(Integer)
    """Version that it made."""
    metrics: Mapped[dict[str, Any] | None] = mapped_column(JSONB)
    """The trainer's figures, by name."""
    loss: Mapped[float | None] = mapped_column(Double)
    grad_norm: Mapped[float | None] = mapped_column(Double)
    """Before clipping."""
    mismatch_mean: Mapped[float | None] = mapped_column(Double)
    """Mean |log-probability by the trainer - by the engine|, in nats."""
    mismatch_max: Mapped[float | None] = mapped_column(Double)
    """The largest of them."""
    train_s: Mapped[float | None] = mapped_column(Double)
    dispatched_at: Mapped[datetime | None] = mapped_column(_Time)
    admitted_at: Mapped[datetime | None] = mapped_column(_Time)
    trained_at: Mapped[datetime | None] = mapped_column(_Time)
    completed_at: Mapped[datetime | None] = mapped_column(_Time)


class ValidationRow(Base):
    """A validation of a weight version on one set."""

    __tablename__ = "validations"

    run: Mapped[str] = mapped_column(Name, primary_key=True)
    version: Mapped[int] = mapped_column(Integer, primary_key=True)
    dataset: Mapped[str] = mapped_column(Name, primary_key=True)
    tasks: Mapped[int | None] = mapped_column(Integer)
    samples: Mapped[int | None] = mapped_column(Integer)
    """Rollouts a task."""
    pass_1: Mapped[float | None] = mapped_column(Double)
    pass_k: Mapped[float | None] = mapped_column(Double)
    k: Mapped[int | None] = mapped_column(Integer)
    opened_at: Mapped[datetime | None] = mapped_column(_Time)
    closed_at: Mapped[datetime | None] = mapped_column(_Time)
    recorded_at: Mapped[datetime | None] = mapped_column(_Time)


class PromptRow(Base):
    """A prompt group, of a step or of a validation."""

    __tablename__ = "prompts"

    run: Mapped[str] = mapped_column(Name, primary_key=True)
    scope: Mapped[str] = mapped_column(Name, primary_key=True)
    prompt: Mapped[int] = mapped_column(Integer, primary_key=True)
    task: Mapped[str | None] = mapped_column(Text)
    """Digest of the task."""
    task_id: Mapped[str | None] = mapped_column(Text)
    version: Mapped[int | None] = mapped_column(Integer)
    """Version that generates it."""
    samples: Mapped[int | None] = mapped_column(Integer)
    fate: Mapped[str | None] = mapped_column(Text)
    cause: Mapped[str | None] = mapped_column(Text)
    opened_at: Mapped[datetime | None] = mapped_column(_Time)
    closed_at: Mapped[datetime | None] = mapped_column(_Time)


class RolloutRow(Base):
    """A rollout. Its task stands with its prompt."""

    __tablename__ = "rollouts"

    run: Mapped[str] = mapped_column(Name, primary_key=True)
    scope: Mapped[str] = mapped_column(Name, primary_key=True)
    prompt: Mapped[int] = mapped_column(Integer, primary_key=True)
    sample: Mapped[int] = mapped_column(Integer, primary_key=True)
    attempts: Mapped[int] = mapped_column(Integer, server_default=text("0"))
    restarts: Mapped[int] = mapped_column(Integer, server_default=text("0"))
    """How often it started over because its tree could not be rebuilt."""
    recorded_turns: Mapped[int] = mapped_column(Integer, server_default=text("0"))
    """Turns recorded, of all epochs."""
    recorded_tokens: Mapped[int] = mapped_column(BigInteger, server_default=text("0"))
    """Tokens generated in them."""
    generate_us: Mapped[int] = mapped_column(BigInteger, server_default=text("0"))
    """Time spent generating them. Whole microseconds, so that a sum is the same in whatever portions it is taken."""
    tool_us: Mapped[int] = mapped_column(BigInteger, server_default=text("0"))
    """Time spent in tools."""
    end_reason: Mapped[str | None] = mapped_column(Text)
    turns: Mapped[int | None] = mapped_column(Integer)
    """Turns that count."""
    generated_tokens: Mapped[int | None] = mapped_column(Integer)
    """Tokens generated in them."""
    total_tokens: Mapped[int | None] = mapped_column(Integer)
    """Length of the whole sequence."""
    score: Mapped[float | None] = mapped_column(Double)
    failure: Mapped[str | None] = mapped_column(Text)
    """`infra` or `data` where it has no score."""
    cause: Mapped[str | None] = mapped_column(Text)
    opened_at: Mapped[datetime | None] = mapped_column(_Time)
    """When the newest attempt began."""
    ended_at: Mapped[datetime | None] = mapped_column(_Time)
    graded_at: Mapped[datetime | None] = mapped_column(_Time)


PROJECTIONS: tuple[type[Base], ...] = (RunRow, StepRow, ValidationRow, PromptRow, RolloutRow)
"""All tables that a rebuild empties and fills."""
