"""Validation: pass@k of one pinned weight version on one set of tasks."""

import asyncio

from temporalio import workflow

from stepwell.contracts.rollout import GroupInput
from stepwell.contracts.run import ValidationInput, ValidationScore
from workflows.contracts import CLOSE_VALIDATION, OPEN_VALIDATION
from workflows.ids import group_id
from workflows.prompt_group import PromptGroup

SHARD = 16
"""Tasks a child workflow: 16 tasks of 4 samples keep a history under 700 events."""


@workflow.defn
class Validation:
    """Opens the validation, samples its tasks in shards, closes it with its scores.

    The engines hold the version while it runs; every rollout asks for it by number and is refused by any other.
    """

    @workflow.run
    async def run(self, validation: ValidationInput) -> ValidationScore:
        """Returns the score that was recorded."""
        request, plan = validation.request, validation.plan
        dispatch = await OPEN_VALIDATION(request)
        shards = [dispatch.open[start : start + SHARD] for start in range(0, len(dispatch.open), SHARD)]
        await asyncio.gather(
            *(
                workflow.execute_child_workflow(
                    PromptGroup.run,
                    GroupInput(
                        run=request.run,
                        scope=dispatch.scope,
                        purpose="validation",
                        version=request.version,
                        prompts=shard,
                        samples=plan.validation_samples,
                        rollout_timeout_s=plan.rollout_timeout_s,
                        rollout_attempts=plan.rollout_attempts,
                        notify=None,
                    ),
                    id=group_id(request.run, dispatch.scope, shard[0].prompt),
                )
                for shard in shards
            )
        )
        return await CLOSE_VALIDATION(request)
