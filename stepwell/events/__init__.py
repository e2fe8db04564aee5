"""Typed events: one a file, a tagged union of all, and the way back from stored bytes."""

from typing import Annotated, Any, get_args

from pydantic import Field

from stepwell.events.agent_ended import AgentEnded
from stepwell.events.agent_restarted import AgentRestarted
from stepwell.events.agent_started import AgentStarted
from stepwell.events.attempt_opened import AttemptOpened
from stepwell.events.base import Event
from stepwell.events.check_reached import CheckReached
from stepwell.events.checkpoint_saved import CheckpointSaved
from stepwell.events.engine_started import EngineStarted
from stepwell.events.environment_tested import EnvironmentTested
from stepwell.events.group_closed import GroupClosed
from stepwell.events.group_opened import GroupOpened
from stepwell.events.head_signed import HeadSigned
from stepwell.events.history_archived import HistoryArchived
from stepwell.events.hold_raised import HoldRaised
from stepwell.events.judgement_reached import JudgementReached
from stepwell.events.key_declared import KeyDeclared
from stepwell.events.operator_acted import OperatorActed
from stepwell.events.pass_scored import PassScored
from stepwell.events.payload_deleted import PayloadDeleted
from stepwell.events.prompt_replaced import PromptReplaced
from stepwell.events.rollout_cleared import RolloutCleared
from stepwell.events.rollout_ended import RolloutEnded
from stepwell.events.rollout_failed import RolloutFailed
from stepwell.events.rollout_graded import RolloutGraded
from stepwell.events.rollout_restarted import RolloutRestarted
from stepwell.events.rollout_tainted import RolloutTainted
from stepwell.events.rows_recorded import RowsRecorded
from stepwell.events.run_created import RunCreated
from stepwell.events.run_finished import RunFinished
from stepwell.events.run_forked import RunForked
from stepwell.events.run_set_created import RunSetCreated
from stepwell.events.run_set_finished import RunSetFinished
from stepwell.events.stall_began import StallBegan
from stepwell.events.stall_ended import StallEnded
from stepwell.events.step_admitted import StepAdmitted
from stepwell.events.step_completed import StepCompleted
from stepwell.events.step_dispatched import StepDispatched
from stepwell.events.step_trained import StepTrained
from stepwell.events.submission_evaluated import SubmissionEvaluated
from stepwell.events.submission_taken import SubmissionTaken
from stepwell.events.trial_abandoned import TrialAbandoned
from stepwell.events.trial_created import TrialCreated
from stepwell.events.trial_overridden import TrialOverridden
from stepwell.events.trial_prepared import TrialPrepared
from stepwell.events.trial_scored import TrialScored
from stepwell.events.turn_recorded import TurnRecorded
from stepwell.events.usage_recorded import UsageRecorded
from stepwell.events.validation_closed import ValidationClosed
from stepwell.events.validation_opened import ValidationOpened
from stepwell.events.validation_recorded import ValidationRecorded
from stepwell.events.verdict_reached import VerdictReached
from stepwell.events.version_attested import VersionAttested
from stepwell.events.version_created import VersionCreated

AnyEvent = Annotated[
    AgentEnded
    | AgentRestarted
    | AgentStarted
    | AttemptOpened
    | CheckReached
    | CheckpointSaved
    | EngineStarted
    | EnvironmentTested
    | GroupClosed
    | GroupOpened
    | HeadSigned
    | HistoryArchived
    | HoldRaised
    | JudgementReached
    | KeyDeclared
    | OperatorActed
    | PassScored
    | PayloadDeleted
    | PromptReplaced
    | RolloutCleared
    | RolloutEnded
    | RolloutFailed
    | RolloutGraded
    | RolloutRestarted
    | RolloutTainted
    | RowsRecorded
    | RunCreated
    | RunFinished
    | RunForked
    | RunSetCreated
    | RunSetFinished
    | StallBegan
    | StallEnded
    | StepAdmitted
    | StepCompleted
    | StepDispatched
    | StepTrained
    | SubmissionEvaluated
    | SubmissionTaken
    | TrialAbandoned
    | TrialCreated
    | TrialOverridden
    | TrialPrepared
    | TrialScored
    | TurnRecorded
    | UsageRecorded
    | ValidationClosed
    | ValidationOpened
    | ValidationRecorded
    | VerdictReached
    | VersionAttested
    | VersionCreated,
    Field(discriminator="type"),
]


class UnknownEvent(ValueError):
    """A stored type or schema that this version of Stepwell does not know."""


def parse(type: str, schema: int, body: dict[str, Any]) -> Event:
    """The event that a stored body is.

    Raises:
        UnknownEvent: an unknown type, or a schema newer than this version's.
        pydantic.ValidationError: the body does not fit its type.
    """
    known = EVENT_TYPES.get(type)
    if known is None:
        raise UnknownEvent(f"event type {type!r} is unknown: it was written by a newer Stepwell; upgrade to read it")
    if schema > known.SCHEMA:
        raise UnknownEvent(
            f"event {type} has schema {schema}, this Stepwell reads up to {known.SCHEMA}; upgrade to read it"
        )
    for older in range(schema, known.SCHEMA):
        body = known.UPCASTS[older](body)
    return known.model_validate(body)


EVENT_TYPES: dict[str, type[Event]] = {event.__name__: event for event in get_args(get_args(AnyEvent)[0])}
"""Every event type by its tag."""
