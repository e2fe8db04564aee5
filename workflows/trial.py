"""Trial: an agent post-trains a base model alone, and what it leaves is checked, judged and scored."""

from datetime import timedelta

from temporalio import workflow
from temporalio.exceptions import ActivityError, ApplicationError, TimeoutError, TimeoutType

from stepwell.contracts.trial import (
    AbandonRequest,
    CheckRequest,
    RestartRequest,
    TrialInput,
    TrialOver,
    TrialRef,
    TrialStanding,
)
from workflows import contracts as activity
from workflows.ids import trial_host_queue

AGENT_SLACK = timedelta(days=2)
"""Beside its budget: an agent is frozen, and its clock stands, while no worker is there for it."""
EVIDENCE = timedelta(days=1)
"""How long a host is waited for on which an agent has ended: what it left does not go away by waiting."""
MAX_CAUSE = 500
"""Characters of a cause that an event keeps."""


@workflow.defn
class Trial:
    """Takes a trial through its phases. Each is answered from the ledger if it was recorded.

    What lies on the agent's host is done by that host's workers. If the host is lost, the trial starts again from its
    start, within a budget; nothing that an agent does is ever a reason for that. What fails for good otherwise leaves
    the trial without a result, and never with a score.
    """

    @workflow.init
    def __init__(self, trial: TrialInput) -> None:
        self._trial = trial
        self._ref = TrialRef(run_set=trial.run_set, cell=trial.cell)

    @workflow.run
    async def run(self, trial: TrialInput) -> TrialOver:
        """Returns whether it has its record, after telling `trial.notify` as well."""
        scored = True
        try:
            standing = await activity.FOLD_TRIAL(self._ref)
            if not standing.scored:
                await self._through(standing)
        except ActivityError as error:
            scored = False
            await activity.ABANDON_TRIAL(
                AbandonRequest(run_set=trial.run_set, cell=trial.cell, cause=_cause(error)[:MAX_CAUSE])
            )
        over = TrialOver(cell=trial.cell, scored=scored)
        if trial.notify is not None:
            await self._notify(trial.notify, over)
        return over

    async def _through(self, standing: TrialStanding) -> None:
        attempts = self._trial.plan.attempts
        while standing.role == "agent":
            try:
                await self._on_host(standing.host)
                break
            except ActivityError as error:
                if not _is_host_lost(error) or not standing.restarts_left:
                    raise
                standing = await activity.RESTART_TRIAL(
                    RestartRequest(
                        run_set=self._ref.run_set,
                        cell=self._ref.cell,
                        epoch=standing.epoch + 1,
                        host=standing.host,
                        cause=_cause(error)[:MAX_CAUSE],
                    )
                )
        await activity.SCORE_SUBMISSION(
            self._ref, attempts=attempts, attempt=timedelta(seconds=self._trial.plan.evaluation_s)
        )
        await activity.CLOSE_TRIAL(self._ref)

    async def _on_host(self, host: str) -> None:
        """All that needs the agent's files: on one host from its preparation to its judges."""
        plan = self._trial.plan
        if not host:
            prepared = await activity.PREPARE_TRIAL(self._ref, attempts=plan.attempts)
            host = prepared.host
        here = trial_host_queue(host)
        lost_after = timedelta(seconds=plan.lost_after_s)
        await activity.TEST_ENVIRONMENT(self._ref, queue=here, pickup=lost_after, attempts=plan.attempts)
        works = timedelta(hours=plan.hours)
        await activity.RUN_AGENT(
            self._ref, queue=here, pickup=lost_after, attempt=works + AGENT_SLACK, deadline=works + 2 * AGENT_SLACK
        )
        await activity.TAKE_SUBMISSION(self._ref, queue=here, pickup=EVIDENCE, attempts=plan.attempts)
        for check in ("identity", "contamination"):
            request = CheckRequest(run_set=self._ref.run_set, cell=self._ref.cell, check=check)
            await activity.CHECK_SUBMISSION(request, queue=here, pickup=EVIDENCE, attempts=plan.attempts)
        await activity.JUDGE_TRIAL(self._ref, queue=here, pickup=EVIDENCE, attempts=plan.attempts)

    async def _notify(self, listener: str, over: TrialOver) -> None:
        """Whoever is gone reads the ledger when it is back."""
        try:
            await workflow.get_external_workflow_handle(listener).signal("trial_over", over)
        except ApplicationError as error:
            workflow.logger.info("nobody listens at %s: %s", listener, error)


def _is_host_lost(error: ActivityError) -> bool:
    cause = error.cause
    if isinstance(cause, TimeoutError):
        return cause.type == TimeoutType.SCHEDULE_TO_START
    return isinstance(cause, ApplicationError) and cause.type == "AgentHostDied"


def _cause(error: ActivityError) -> str:
    return f"{error.activity_type}: {error.cause or error}"
