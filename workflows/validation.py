"""Validation: pass@k of one pinned weight version on one set of tasks."""

import asyncio

from temporalio import workflow
from temporalio.exceptions import ApplicationError

from stepwell.contracts.operators import OperatorNote
from stepwell.contracts.rollout import GroupInput
from stepwell.contracts.run import PromptRef, ValidationInput, ValidationScore
from workflows.contracts import CLOSE_VALIDATION, OPEN_VALIDATION
from workflows.ids import group_id
from workflows.prompt_group import PromptGroup

SHARD = 16
"""Tasks a child workflow: 16 tasks of 4 samples keep a history under 700 events."""
UNTIL_IT_SUCCEEDS = 0
"""Attempts at a rollout: a validation without one of its rollouts would be worth nothing."""


@workflow.defn
class Validation:
    """Opens the validation, samples its tasks in shards, closes it with its scores.

    The engines hold the version while it runs; every rollout asks for it by number and is refused by any other.
    Infrastructure that fails is waited for: it gives no score, and takes none away.
    """

    @workflow.init
    def __init__(self, validation: ValidationInput) -> None:
        self._validation = validation
        self._shards: list[str] = []
        self._stopped = ""

    @workflow.run
    async def run(self, validation: ValidationInput) -> ValidationScore | None:
        """Returns the score that was recorded; None if an operator's stop came before it."""
        dispatch = await OPEN_VALIDATION(validation.request)
        shards = [dispatch.open[start : start + SHARD] for start in range(0, len(dispatch.open), SHARD)]
        await asyncio.gather(*(self._run_shard(dispatch.scope, shard) for shard in shards))
        if self._stopped:
            return None
        return await CLOSE_VALIDATION(validation.request)

    @workflow.signal
    async def resume(self) -> None:
        """A pause is over: every shard is told."""
        await asyncio.gather(*(self._tell(shard, "resume", []) for shard in self._shards))

    @workflow.signal
    async def skip(self, note: OperatorNote) -> None:
        """An operator stops the run at once: nothing is scored."""
        self._stopped = note.reason
        await asyncio.gather(*(self._tell(shard, "skip", [note]) for shard in self._shards))

    async def _run_shard(self, scope: str, shard: tuple[PromptRef, ...]) -> None:
        request, plan = self._validation.request, self._validation.plan
        name = group_id(request.run, scope, shard[0].prompt)
        self._shards.append(name)
        await workflow.execute_child_workflow(
            PromptGroup.run,
            GroupInput(
                run=request.run,
                scope=scope,
                purpose="validation",
                version=request.version,
                prompts=shard,
                samples=plan.validation_samples,
                rollout_timeout_s=plan.rollout_timeout_s,
                rollout_attempts=UNTIL_IT_SUCCEEDS,
                timeout_s=0.0,
                skipped=self._stopped,
                notify=None,
            ),
            id=name,
        )

    async def _tell(self, shard: str, signal: str, arguments: list[OperatorNote]) -> None:
        """A shard that is over needs no word."""
        try:
            await workflow.get_external_workflow_handle(shard).signal(signal, args=arguments)
        except ApplicationError as error:
            workflow.logger.info("%s is over: %s", shard, error)
