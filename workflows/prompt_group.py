"""PromptGroup: all rollouts of one prompt (or of a few prompts of a validation), graded, closed with a fate."""

import asyncio
from datetime import timedelta

from temporalio import workflow
from temporalio.exceptions import ActivityError, ApplicationError

from stepwell.contracts.rollout import (
    CloseGroupsRequest,
    FailRolloutsRequest,
    FailureKind,
    GradeRequest,
    GroupInput,
    GroupsClosed,
    OpenGroupsRequest,
    RolloutFailure,
    RolloutOutcome,
    RolloutRequest,
)
from stepwell.contracts.run import PromptRef
from stepwell.events.streams import rollout_stream
from workflows.contracts import CLOSE_GROUPS, FAIL_ROLLOUTS, GRADE_ROLLOUT, OPEN_GROUPS, RUN_ROLLOUT


@workflow.defn
class PromptGroup:
    """Samples, grades and closes prompts.

    A rollout that fails for good is recorded as failed and has no vote; it does not fail its group. Each distinct tree
    of a prompt is graded once, for all rollouts that arrived at it.
    """

    @workflow.run
    async def run(self, group: GroupInput) -> GroupsClosed:
        """Returns the fates, after telling `group.notify` as well."""
        opened = await OPEN_GROUPS(
            OpenGroupsRequest(
                run=group.run,
                scope=group.scope,
                version=group.version,
                prompts=group.prompts,
                samples=group.samples,
            )
        )
        of_prompts = await asyncio.gather(*(self._prompt(group, prompt) for prompt in opened.open))
        failures = tuple(failure for of_prompt in of_prompts for failure in of_prompt)
        if failures:
            await FAIL_ROLLOUTS(FailRolloutsRequest(run=group.run, failures=failures))
        closed = await CLOSE_GROUPS(
            CloseGroupsRequest(
                run=group.run,
                scope=group.scope,
                purpose=group.purpose,
                prompts=group.prompts,
                samples=group.samples,
            )
        )
        if group.notify is not None:
            await self._notify(group.notify, closed)
        return closed

    async def _prompt(self, group: GroupInput, prompt: PromptRef) -> list[RolloutFailure]:
        """All rollouts of a prompt and the verdicts on them."""
        results = await asyncio.gather(*(self._rollout(group, prompt, sample) for sample in range(group.samples)))
        failures = [result for result in results if isinstance(result, RolloutFailure)]
        ungraded: dict[str, list[str]] = {}
        for result in results:
            if isinstance(result, RolloutOutcome) and result.score is None:
                ungraded.setdefault(result.verdict_key, []).append(result.stream)
        graded = await asyncio.gather(*(self._grade(group, prompt, key, streams) for key, streams in ungraded.items()))
        return failures + [failure for of_key in graded for failure in of_key]

    async def _rollout(self, group: GroupInput, prompt: PromptRef, sample: int) -> RolloutOutcome | RolloutFailure:
        try:
            return await RUN_ROLLOUT(
                RolloutRequest(
                    run=group.run,
                    scope=group.scope,
                    purpose=group.purpose,
                    prompt=prompt.prompt,
                    sample=sample,
                    task=prompt.task,
                    version=group.version,
                ),
                attempt=timedelta(seconds=group.rollout_timeout_s),
                attempts=group.rollout_attempts,
            )
        except ActivityError as error:
            stream = rollout_stream(group.run, group.scope, prompt.prompt, sample)
            return RolloutFailure(stream=stream, kind=_kind(error), cause=_cause(error))

    async def _grade(self, group: GroupInput, prompt: PromptRef, key: str, streams: list[str]) -> list[RolloutFailure]:
        try:
            await GRADE_ROLLOUT(
                GradeRequest(run=group.run, task=prompt.task, verdict_key=key, streams=tuple(streams)),
                attempts=group.rollout_attempts,
            )
        except ActivityError as error:
            return [RolloutFailure(stream=name, kind=_kind(error), cause=_cause(error)) for name in streams]
        return []

    async def _notify(self, listener: str, closed: GroupsClosed) -> None:
        """The listener may be gone; it finds the fates in the ledger when it comes back."""
        try:
            await workflow.get_external_workflow_handle(listener).signal("groups_closed", closed)
        except ApplicationError as error:
            workflow.logger.warning("nobody listens for %s: %s", closed.scope, error)


def _kind(error: ActivityError) -> FailureKind:
    cause = error.cause
    if isinstance(cause, ApplicationError) and cause.type == FailureKind.DATA.value:
        return FailureKind.DATA
    return FailureKind.INFRA


def _cause(error: ActivityError) -> str:
    return str(error.cause or error)[:500]
