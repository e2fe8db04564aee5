"""What each event changes in the tables for reading. Pure: no event looks at a row, so none depends on what was read.

An event sets columns that no other event beside it sets, or adds whole numbers; so rows depend on the order within a
stream alone, and are the same however the ledger is cut into portions.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from functools import lru_cache
from types import MappingProxyType

from db.models import Base
from db.projections.tables import PromptRow, RolloutRow, RunRow, StepRow, ValidationRow
from db.recorded import Recorded
from stepwell.events.attempt_opened import AttemptOpened
from stepwell.events.group_closed import GroupClosed
from stepwell.events.group_opened import GroupOpened
from stepwell.events.operator_acted import OperatorActed
from stepwell.events.rollout_ended import RolloutEnded
from stepwell.events.rollout_failed import RolloutFailed
from stepwell.events.rollout_graded import RolloutGraded
from stepwell.events.rollout_restarted import RolloutRestarted
from stepwell.events.run_created import RunCreated
from stepwell.events.run_finished import RunFinished
from stepwell.events.step_admitted import StepAdmitted
from stepwell.events.step_completed import StepCompleted
from stepwell.events.step_dispatched import StepDispatched
from stepwell.events.step_trained import StepTrained
from stepwell.events.streams import parse_rollout_stream
from stepwell.events.turn_recorded import TurnRecorded
from stepwell.events.validation_opened import ValidationOpened
from stepwell.events.validation_recorded import ValidationRecorded
from stepwell.events.version_created import VersionCreated


@dataclass(frozen=True)
class Change:
    """One row, found or made by its key: columns to set, columns to add to."""

    table: type[Base]
    key: Mapping[str, str | int]
    set: Mapping[str, object] = field(default_factory=dict[str, object])
    add: Mapping[str, int] = field(default_factory=dict[str, int])


def changes(recorded: Recorded) -> list[Change]:
    """What an event changes, in any of the tables; nothing for most operational events."""
    kind = recorded.stream.partition("/")[0]
    if kind in ("run", "operator", "weights"):
        return _of_run(recorded)
    if kind == "prompt":
        return _of_prompt(recorded)
    if kind == "validation":
        return _of_validation(recorded)
    if kind == "rollout":
        return _of_rollout(recorded)
    return []


def _time(recorded: Recorded) -> datetime:
    return datetime.fromisoformat(recorded.envelope.time)


def _of_run(recorded: Recorded) -> list[Change]:
    run = recorded.stream.split("/")[1]
    at = _time(recorded)

    def this_run(**columns: object) -> Change:
        return Change(RunRow, {"run": run}, columns)

    def step(number: int, **columns: object) -> Change:
        return Change(StepRow, {"run": run, "step": number}, columns)

    match recorded.event:
        case RunCreated() as event:
            return [
                this_run(
                    recipe_name=event.recipe.get("name"),
                    recipe_digest=event.recipe_digest,
                    state="running",
                    created_at=at,
                )
            ]
        case OperatorActed() as event:
            return [this_run(operator=event.action)]
        case RunFinished() as event:
            return [this_run(state=event.end.value, cause=event.cause, finished_at=at)]
        case VersionCreated() as event:
            return [this_run(version=event.version)]
        case StepDispatched() as event:
            return [
                this_run(dispatched_steps=event.step + 1),
                step(event.step, generated_by=event.version, prompts=len(event.tasks), dispatched_at=at),
            ]
        case StepAdmitted() as event:
            return [
                step(
                    event.step,
                    rollouts=event.rollouts,
                    masked=event.masked,
                    reward_mean=event.reward_mean,
                    admitted_at=at,
                )
            ]
        case StepTrained() as event:
            figures = {name: event.metrics.get(name) for name in ("loss", "grad_norm", "mismatch_mean", "mismatch_max")}
            return [
                this_run(version=event.version),
                step(
                    event.step,
                    version=event.version,
                    metrics=event.metrics,
                    **figures,
                    train_s=event.duration_s,
                    trained_at=at,
                ),
            ]
        case StepCompleted() as event:
            return [this_run(completed_steps=event.step + 1), step(event.step, completed_at=at)]
        case ValidationRecorded() as event:
            key: dict[str, str | int] = {"run": run, "version": event.version, "dataset": event.dataset}
            columns = {"pass_1": event.pass_1, "pass_k": event.pass_k, "k": event.k, "recorded_at": at}
            return [Change(ValidationRow, key, columns)]
        case _:
            return []


def _of_prompt(recorded: Recorded) -> list[Change]:
    _, run, scope, prompt = recorded.stream.split("/")
    at = _time(recorded)
    key: dict[str, str | int] = {"run": run, "scope": scope, "prompt": int(prompt)}
    match recorded.event:
        case GroupOpened() as event:
            columns = event.model_dump(include={"task", "task_id", "version", "samples"})
            return [Change(PromptRow, key, {**columns, "opened_at": at})]
        case GroupClosed() as event:
            return [Change(PromptRow, key, {"fate": event.fate.value, "cause": event.cause, "closed_at": at})]
        case _:
            return []


def _of_validation(recorded: Recorded) -> list[Change]:
    match recorded.event:
        case ValidationOpened() as event:
            run = recorded.stream.split("/")[1]
            key: dict[str, str | int] = {"run": run, "version": event.version, "dataset": event.dataset}
            columns = {"tasks": len(event.tasks), "samples": event.samples, "opened_at": _time(recorded)}
            return [Change(ValidationRow, key, columns)]
        case _:
            return []


@lru_cache(maxsize=256)
def _rollout_key(stream: str) -> Mapping[str, str | int]:
    """Key of a rollout's row; events come stream by stream, or a few streams at once."""
    return MappingProxyType({**parse_rollout_stream(stream)._asdict()})


def _of_rollout(recorded: Recorded) -> list[Change]:
    key = _rollout_key(recorded.stream)

    def this(*, add: Mapping[str, int] | None = None, **columns: object) -> list[Change]:
        return [Change(RolloutRow, key, columns, add or {})]

    match recorded.event:
        case AttemptOpened():
            return this(add={"attempts": 1}, opened_at=_time(recorded))
        case RolloutRestarted():
            return this(add={"restarts": 1})
        case TurnRecorded() as event:
            return this(
                add={
                    "recorded_turns": 1,
                    "recorded_tokens": event.generated_tokens,
                    "generate_us": round(event.generate_s * 1e6),
                    "tool_us": round(event.tool_s * 1e6),
                }
            )
        case RolloutEnded() as event:
            return this(
                end_reason=event.reason.value,
                turns=event.turns,
                generated_tokens=event.generated_tokens,
                total_tokens=event.total_tokens,
                ended_at=_time(recorded),
            )
        case RolloutGraded() as event:
            return this(score=event.score, graded_at=_time(recorded))
        case RolloutFailed() as event:
            return this(failure=event.failure, cause=event.cause)
        case _:
            return []
