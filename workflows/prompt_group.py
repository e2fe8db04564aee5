"""PromptGroup: all rollouts of one prompt (or of a few prompts of a validation), graded, closed with a fate."""

import asyncio
from datetime import timedelta

from temporalio import workflow
from temporalio.exceptions import ActivityError, ApplicationError

from stepwell.contracts.operators import OperatorNote
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
from stepwell.contracts.run import Dispatch, PromptRef
from stepwell.events.streams import rollout_stream
from workflows.contracts import CLOSE_GROUPS, FAIL_ROLLOUTS, GRADE_ROLLOUT, OPEN_GROUPS, RUN_ROLLOUT


@workflow.defn
class PromptGroup:
    """Samples, grades and closes prompts.

    A rollout that fails for good is recorded as failed and has no vote; it does not fail its group. Each distinct tree
    of a prompt is graded once, for all rollouts that arrived at it. A rollout that a pause held is asked for again when
    the pause is over. The group's timer is durable: what has not ended by then has failed, and the group closes.
    """

    @workflow.init
    def __init__(self, group: GroupInput) -> None:
        self._group = group
        self._skipped = group.skipped
        self._resumed = 0
        self._held: set[str] = set()
        self._in_hand: dict[str, PromptRef] = {}
        """Streams of rollouts without a verdict or a failure."""
        self._failures: list[RolloutFailure] = []

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
        await self._all_rollouts(opened)
        if self._failures:
            await FAIL_ROLLOUTS(FailRolloutsRequest(run=group.run, failures=tuple(self._failures)))
        closed = await CLOSE_GROUPS(
            CloseGroupsRequest(
                run=group.run,
                scope=group.scope,
                purpose=group.purpose,
                prompts=group.prompts,
                samples=group.samples,
                skipped=self._skipped,
            )
        )
        if group.notify is not None:
            await self._notify(group.notify, closed)
        return closed

    @workflow.signal
    def resume(self) -> None:
        """A pause is over."""
        self._resumed += 1

    @workflow.signal
    def skip(self, note: OperatorNote) -> None:
        """An operator takes the prompts out."""
        self._skipped = self._skipped or note.reason

    async def _all_rollouts(self, opened: Dispatch) -> None:
        """Plays and grades every rollout until all have ended, the group is skipped, or its time is over."""
        for prompt in opened.open:
            for sample in range(self._group.samples):
                self._in_hand[self._stream(prompt, sample)] = prompt
        if self._skipped:
            self._give_up(FailureKind.OPERATOR, f"the prompt was skipped: {self._skipped}")
            return
        work = [asyncio.create_task(self._prompt(prompt)) for prompt in opened.open]
        while not all(task.done() for task in work) and not self._skipped:
            seen, limit_s = self._resumed, self._group.timeout_s
            try:
                await workflow.wait_condition(
                    lambda seen=seen: all(task.done() for task in work) or bool(self._skipped) or self._resumed > seen,
                    timeout=timedelta(seconds=limit_s) if limit_s else None,
                )
            except TimeoutError:
                if self._held:  # a pause counts for nothing: the time begins anew with its end
                    await workflow.wait_condition(lambda seen=seen: self._resumed > seen or bool(self._skipped))
                    continue
                self._give_up(FailureKind.INFRA, f"not ended within failures.group_timeout_s = {limit_s:g} s")
                break
        if self._skipped:
            self._give_up(FailureKind.OPERATOR, f"the prompt was skipped: {self._skipped}")
        for task in work:
            if not task.done():
                task.cancel()
        for task in await asyncio.gather(*work, return_exceptions=True):
            if isinstance(task, Exception):
                raise task

    def _give_up(self, kind: FailureKind, cause: str) -> None:
        self._failures += [RolloutFailure(stream=stream, kind=kind, cause=cause) for stream in self._in_hand]
        self._in_hand.clear()

    def _failed(self, stream: str, error: ActivityError) -> None:
        if self._in_hand.pop(stream, None) is not None:
            self._failures.append(RolloutFailure(stream=stream, kind=_kind(error), cause=_cause(error)))

    async def _prompt(self, prompt: PromptRef) -> None:
        """All rollouts of a prompt and the verdicts on them."""
        results = await asyncio.gather(*(self._rollout(prompt, sample) for sample in range(self._group.samples)))
        ungraded: dict[str, list[str]] = {}
        for result in results:
            if result is not None and result.score is None:
                ungraded.setdefault(result.verdict_key, []).append(result.stream)
            elif result is not None:
                self._in_hand.pop(result.stream, None)
        await asyncio.gather(*(self._grade(prompt, key, streams) for key, streams in ungraded.items()))

    async def _rollout(self, prompt: PromptRef, sample: int) -> RolloutOutcome | None:
        """How the rollout ended; None if it failed for good."""
        group = self._group
        request = RolloutRequest(
            run=group.run,
            scope=group.scope,
            purpose=group.purpose,
            prompt=prompt.prompt,
            sample=sample,
            task=prompt.task,
            version=group.version,
        )
        try:
            while True:
                seen = self._resumed
                outcome = await RUN_ROLLOUT(
                    request,
                    attempt=timedelta(seconds=group.rollout_timeout_s),
                )
                if not outcome.held:
                    return outcome
                self._held.add(outcome.stream)
                await workflow.wait_condition(lambda seen=seen: self._resumed > seen)
                self._held.discard(outcome.stream)
        except ActivityError as error:
            self._failed(self._stream(prompt, sample), error)
            return None

    async def _grade(self, prompt: PromptRef, key: str, streams: list[str]) -> None:
        longer = None if prompt.grading_s is None else timedelta(seconds=prompt.grading_s)
        try:
            await GRADE_ROLLOUT(
                GradeRequest(run=self._group.run, task=prompt.task, verdict_key=key, streams=tuple(streams)),
                attempt=longer,
                attempts=self._group.rollout_attempts,
            )
        except ActivityError as error:
            for stream in streams:
                self._failed(stream, error)
        else:
            for stream in streams:
                self._in_hand.pop(stream, None)

    async def _notify(self, listener: str, closed: GroupsClosed) -> None:
        """The listener may be gone; it finds the fates in the ledger when it comes back."""
        try:
            await workflow.get_external_workflow_handle(listener).signal("groups_closed", closed)
        except ApplicationError as error:
            workflow.logger.warning("nobody listens for %s: %s", closed.scope, error)

    def _stream(self, prompt: PromptRef, sample: int) -> str:
        return rollout_stream(self._group.run, self._group.scope, prompt.prompt, sample)


def _kind(error: ActivityError) -> FailureKind:
    cause = error.cause
    if isinstance(cause, ApplicationError) and cause.type == FailureKind.DATA.value:
        return FailureKind.DATA
    return FailureKind.INFRA


def _cause(error: ActivityError) -> str:
    return str(error.cause or error)[:500]
