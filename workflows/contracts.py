"""Every activity that a workflow can wait for: name, queue, deadlines, heartbeat, retries, types.

Workflows call these declarations; workers check their implementations against them when they start. Whoever wants to
know what a run can be waiting for reads this file.
"""

from dataclasses import dataclass
from datetime import timedelta
from typing import Generic, TypeVar

from temporalio import workflow
from temporalio.common import RetryPolicy

from stepwell.contracts.engine import Attestation, EngineList, LoadRequest
from stepwell.contracts.operators import HoldRequest, OperatorRequest
from stepwell.contracts.rollout import (
    CloseGroupsRequest,
    FailRolloutsRequest,
    FailureKind,
    GradeOutcome,
    GradeRequest,
    GroupsClosed,
    OpenGroupsRequest,
    RolloutOutcome,
    RolloutRequest,
)
from stepwell.contracts.run import (
    GRADING_S,
    Admission,
    CompleteRequest,
    Dispatch,
    DispatchRequest,
    FinishRequest,
    OpenValidationRequest,
    Replacements,
    RunFold,
    RunRef,
    StepRef,
    ValidationScore,
    VersionRef,
    WatchReport,
    WatchRequest,
)
from stepwell.contracts.trial import (
    AbandonRequest,
    CheckRequest,
    Host,
    RestartRequest,
    RunSetRef,
    RunSetStanding,
    TrialRef,
    TrialStanding,
)

CONTROL_QUEUE = "control"
SANDBOX_QUEUE = "sandbox"
TRAINER_QUEUE = "trainer"
TRIAL_QUEUE = "trial"

QUEUE_DEADLINE = timedelta(days=2)
"""Longest that an activity may wait for workers and retries together: no state is without a durable deadline."""

NOT_RETRYABLE = [
    FailureKind.DATA.value,
    "NonFinite",
    "DigestMismatch",
    "MismatchTooLarge",
    "MissingLogprob",
    "Inadmissible",
    "UnfinishedValidation",
    "RecipeError",
    "WrongDemonstration",
    "UnsupportedModel",
    "AgentHostDied",
    "PromptContradicts",
]
"""Failures that would only repeat."""

InputT = TypeVar("InputT")
OutputT = TypeVar("OutputT")


@dataclass(frozen=True)
class ActivitySpec(Generic[InputT, OutputT]):
    """Declaration of one activity."""

    name: str
    queue: str | None
    """Task queue; None: a queue per worker, named by the caller."""
    input_type: type[InputT]
    output_type: type[OutputT]
    attempt: timedelta
    """Deadline of one attempt (start to close)."""
    heartbeat: timedelta | None = None
    """Silence after which a worker counts as dead; the worker beats three times as often."""
    attempts: int = 0
    """Most attempts; 0: until the queue deadline."""
    pickup: timedelta | None = None
    """Longest wait for a worker to take it up; for queues of a single worker, which may be gone."""

    async def __call__(
        self,
        request: InputT,
        *,
        queue: str | None = None,
        attempt: timedelta | None = None,
        attempts: int | None = None,
        pickup: timedelta | None = None,
        deadline: timedelta = QUEUE_DEADLINE,
        summary: str | None = None,
    ) -> OutputT:
        """Schedules the activity from a workflow and waits for it.

        Args:
            request: its input.
            queue: the worker's own queue, where the declaration names none.
            attempt: another deadline of one attempt.
            attempts: another budget of attempts.
            pickup: another longest wait for a worker.
            deadline: another deadline of workers and retries together.
            summary: a line for the Temporal UI.

        Raises:
            temporalio.exceptions.ActivityError: it failed for good.
        """
        return await workflow.execute_activity(
            self.name,
            request,
            task_queue=queue or self.queue,
            result_type=self.output_type,
            start_to_close_timeout=attempt or self.attempt,
            heartbeat_timeout=self.heartbeat,
            schedule_to_close_timeout=deadline,
            schedule_to_start_timeout=pickup or self.pickup,
            retry_policy=RetryPolicy(
                initial_interval=timedelta(milliseconds=500),
                backoff_coefficient=2.0,
                maximum_interval=timedelta(seconds=15),
                maximum_attempts=self.attempts if attempts is None else attempts,
                non_retryable_error_types=NOT_RETRYABLE,
            ),
            summary=summary,
        )


LEDGER_ATTEMPT = timedelta(seconds=60)
"""Enough for any fold or append here; a hung connection is given up after it."""
LEDGER_BEAT = timedelta(seconds=10)
"""Detection time of a dead control worker: its activities take milliseconds, and whole steps wait for them."""
BEAT = timedelta(seconds=10)
"""Detection time of a dead sandbox worker, and of the watcher."""
TRAINER_BEAT = timedelta(seconds=20)
"""The same of a trainer, which is alone with its work: loading a large model may keep its event loop for seconds."""
ENGINE_BEAT = timedelta(seconds=10)
"""The same of an engine that loads: as long as its lease."""

FOLD_RUN = ActivitySpec("fold_run", CONTROL_QUEUE, RunRef, RunFold, LEDGER_ATTEMPT, LEDGER_BEAT)
DISPATCH_STEP = ActivitySpec("dispatch_step", CONTROL_QUEUE, DispatchRequest, Dispatch, LEDGER_ATTEMPT, LEDGER_BEAT)
ADMIT_STEP = ActivitySpec("admit_step", CONTROL_QUEUE, StepRef, Admission, LEDGER_ATTEMPT, LEDGER_BEAT)
COMPLETE_STEP = ActivitySpec("complete_step", CONTROL_QUEUE, CompleteRequest, VersionRef, LEDGER_ATTEMPT, LEDGER_BEAT)
OPEN_VALIDATION = ActivitySpec(
    "open_validation", CONTROL_QUEUE, OpenValidationRequest, Dispatch, LEDGER_ATTEMPT, LEDGER_BEAT
)
CLOSE_VALIDATION = ActivitySpec(
    "close_validation", CONTROL_QUEUE, OpenValidationRequest, ValidationScore, LEDGER_ATTEMPT, LEDGER_BEAT
)
OPEN_GROUPS = ActivitySpec("open_groups", CONTROL_QUEUE, OpenGroupsRequest, Dispatch, LEDGER_ATTEMPT, LEDGER_BEAT)
CLOSE_GROUPS = ActivitySpec(
    "close_groups", CONTROL_QUEUE, CloseGroupsRequest, GroupsClosed, LEDGER_ATTEMPT, LEDGER_BEAT
)
LIST_ENGINES = ActivitySpec("list_engines", CONTROL_QUEUE, RunRef, EngineList, LEDGER_ATTEMPT, LEDGER_BEAT)
RECORD_OPERATOR = ActivitySpec("record_operator", CONTROL_QUEUE, OperatorRequest, RunRef, LEDGER_ATTEMPT, LEDGER_BEAT)
RAISE_HOLD = ActivitySpec("raise_hold", CONTROL_QUEUE, HoldRequest, RunRef, LEDGER_ATTEMPT, LEDGER_BEAT)
REPLACE_PROMPTS = ActivitySpec("replace_prompts", CONTROL_QUEUE, StepRef, Replacements, LEDGER_ATTEMPT, LEDGER_BEAT)
WATCH_RUN = ActivitySpec("watch_run", CONTROL_QUEUE, WatchRequest, WatchReport, timedelta(hours=2), BEAT)
FINISH_RUN = ActivitySpec("finish_run", CONTROL_QUEUE, FinishRequest, RunRef, LEDGER_ATTEMPT, LEDGER_BEAT)

RUN_ROLLOUT = ActivitySpec("run_rollout", SANDBOX_QUEUE, RolloutRequest, RolloutOutcome, timedelta(minutes=30), BEAT)
"""Its budget is counted from the ledger: a try that only finds that there is no engine costs nothing."""
GRADE_ROLLOUT = ActivitySpec(
    "grade_rollout",
    SANDBOX_QUEUE,
    GradeRequest,
    GradeOutcome,
    timedelta(seconds=GRADING_S),  # or longer, as the task's own deadline asks
    BEAT,
    attempts=5,
)

FAIL_ROLLOUTS = ActivitySpec("fail_rollouts", SANDBOX_QUEUE, FailRolloutsRequest, RunRef, LEDGER_ATTEMPT, LEDGER_BEAT)

CREATE_POLICY = ActivitySpec("create_policy", TRAINER_QUEUE, RunRef, VersionRef, timedelta(hours=2), TRAINER_BEAT)
TRAIN_STEP = ActivitySpec("train_step", TRAINER_QUEUE, StepRef, VersionRef, timedelta(hours=2), TRAINER_BEAT)

LOAD_WEIGHTS = ActivitySpec(
    "load_weights",
    None,
    LoadRequest,
    Attestation,
    timedelta(minutes=10),
    ENGINE_BEAT,
    attempts=1,  # the engine itself tries again, once another has attested; else the run looks for engines again
    pickup=ENGINE_BEAT,
)

TRIAL_BEAT = timedelta(seconds=10)
"""Detection time of a dead trial worker."""
HOST_ATTEMPT = timedelta(hours=4)
"""Enough to hash, read and judge what an agent leaves."""
FOLD_RUN_SET = ActivitySpec("fold_run_set", TRIAL_QUEUE, RunSetRef, RunSetStanding, LEDGER_ATTEMPT, TRIAL_BEAT)
FINISH_RUN_SET = ActivitySpec("finish_run_set", TRIAL_QUEUE, RunSetRef, RunSetRef, LEDGER_ATTEMPT, TRIAL_BEAT)
FOLD_TRIAL = ActivitySpec("fold_trial", TRIAL_QUEUE, TrialRef, TrialStanding, LEDGER_ATTEMPT, TRIAL_BEAT)
RESTART_TRIAL = ActivitySpec("restart_trial", TRIAL_QUEUE, RestartRequest, TrialStanding, LEDGER_ATTEMPT, TRIAL_BEAT)
ABANDON_TRIAL = ActivitySpec("abandon_trial", TRIAL_QUEUE, AbandonRequest, TrialRef, LEDGER_ATTEMPT, TRIAL_BEAT)
PREPARE_TRIAL = ActivitySpec("prepare_trial", TRIAL_QUEUE, TrialRef, Host, HOST_ATTEMPT, TRIAL_BEAT)
SCORE_SUBMISSION = ActivitySpec("score_submission", TRIAL_QUEUE, TrialRef, TrialRef, HOST_ATTEMPT, TRIAL_BEAT)
CLOSE_TRIAL = ActivitySpec("close_trial", TRIAL_QUEUE, TrialRef, TrialRef, LEDGER_ATTEMPT, TRIAL_BEAT)
TEST_ENVIRONMENT = ActivitySpec("test_environment", None, TrialRef, TrialRef, timedelta(minutes=30), TRIAL_BEAT)
RUN_AGENT = ActivitySpec("run_agent", None, TrialRef, TrialRef, HOST_ATTEMPT, TRIAL_BEAT)
"""Its attempts are without number: each takes the agent up where the last one left it, or finds its host lost."""
TAKE_SUBMISSION = ActivitySpec("take_submission", None, TrialRef, TrialRef, HOST_ATTEMPT, TRIAL_BEAT)
CHECK_SUBMISSION = ActivitySpec("check_submission", None, CheckRequest, TrialRef, HOST_ATTEMPT, TRIAL_BEAT)
JUDGE_TRIAL = ActivitySpec("judge_trial", None, TrialRef, TrialRef, HOST_ATTEMPT, TRIAL_BEAT)

ALL_ACTIVITIES = (
    FOLD_RUN,
    DISPATCH_STEP,
    ADMIT_STEP,
    COMPLETE_STEP,
    OPEN_VALIDATION,
    CLOSE_VALIDATION,
    OPEN_GROUPS,
    CLOSE_GROUPS,
    LIST_ENGINES,
    RECORD_OPERATOR,
    RAISE_HOLD,
    REPLACE_PROMPTS,
    WATCH_RUN,
    FINISH_RUN,
    RUN_ROLLOUT,
    GRADE_ROLLOUT,
    FAIL_ROLLOUTS,
    CREATE_POLICY,
    TRAIN_STEP,
    LOAD_WEIGHTS,
    FOLD_RUN_SET,
    FINISH_RUN_SET,
    FOLD_TRIAL,
    RESTART_TRIAL,
    ABANDON_TRIAL,
    PREPARE_TRIAL,
    SCORE_SUBMISSION,
    CLOSE_TRIAL,
    TEST_ENVIRONMENT,
    RUN_AGENT,
    TAKE_SUBMISSION,
    CHECK_SUBMISSION,
    JUDGE_TRIAL,
)
"""All of the above."""
