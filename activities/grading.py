"""grade_rollout: the verdict on a tree, once, for all rollouts that arrived at it; and rollouts that failed."""

import time
from collections.abc import Mapping

from temporalio import activity
from temporalio.exceptions import ApplicationError

from activities.folds import fold_rollout
from activities.stores import Stores, dump_json
from activities.task_images import TaskImages
from db.errors import Fenced
from db.recorded import Recorded
from stepwell.agent.turn import parse_changed_files
from stepwell.contracts.rollout import (
    FailRolloutsRequest,
    FailureKind,
    GradeOutcome,
    GradeRequest,
    RolloutFailure,
)
from stepwell.contracts.run import RunRef
from stepwell.events import RolloutFailed, RolloutGraded, VerdictReached
from stepwell.events.streams import verdict_stream
from stepwell.sandbox.protocol import Sandbox, SandboxFactory
from stepwell.tasks.graders import grader_of
from stepwell.tasks.grading.grade import grade
from stepwell.tasks.grading.verdict import Failure, Score
from stepwell.tasks.r2e.grade import grade_in_image, grading_limits
from stepwell.tasks.r2e.secrets import R2ESecrets
from stepwell.tasks.task import Task


class GradingActivities:
    """Grades trees in this worker's sandboxes."""

    def __init__(self, stores: Stores, sandboxes: SandboxFactory, images: TaskImages | None = None) -> None:
        """Args:
        images: Shared with who else uses them in this process.
        """
        self._stores = stores
        self._sandboxes = sandboxes
        self._images = images or TaskImages()

    @activity.defn(name="grade_rollout")
    async def grade_rollout(self, request: GradeRequest) -> GradeOutcome:
        """Grades in a fresh sandbox unless the tree has a verdict, then records it in each waiting rollout.

        Raises:
            ApplicationError: the sandbox failed (retried), or the task cannot be graded (not retried).
        """
        recorded = await self._stores.ledger.read(verdict_stream(request.verdict_key))
        reused = bool(recorded)
        if not recorded:
            recorded = await self._grade(request)
        verdict = recorded[0].event
        assert isinstance(verdict, VerdictReached)
        graded = RolloutGraded(
            verdict_key=request.verdict_key,
            score=verdict.score,
            timed_out=verdict.timed_out,
            verdict_head=recorded[0].envelope.hash,
            reused=reused,
        )
        for stream in request.streams:
            await self._record(stream, graded)
        return GradeOutcome(verdict_key=request.verdict_key, score=verdict.score)

    @activity.defn(name="fail_rollouts")
    async def fail_rollouts(self, request: FailRolloutsRequest) -> RunRef:
        """Closes the streams of rollouts whose budget is used up; an attempt that comes back late is fenced, one that
        came to its score meanwhile keeps it."""
        for failure in request.failures:
            while not await self._fail(failure):
                pass  # an attempt was still writing: look again
        return RunRef(run=request.run)

    async def _fail(self, failure: RolloutFailure) -> bool:
        """Whether the rollout has an end now; False if its stream went on between the look and the append."""
        fold = fold_rollout(await self._stores.ledger.read(failure.stream))
        if fold.graded is not None or fold.failed is not None:
            return True
        failed = RolloutFailed(failure=failure.kind.value, cause=failure.cause)
        try:
            await self._stores.ledger.append(
                failure.stream, [failed], expected_seq=fold.next_seq, actor=self._stores.actor
            )
        except Fenced:
            return False
        return True

    async def _record(self, stream: str, graded: RolloutGraded) -> None:
        """Appends the verdict to a rollout, unless the rollout was closed without one meanwhile."""
        fold = fold_rollout(await self._stores.ledger.read(stream))
        if fold.failed is None and fold.graded is None:
            await self._stores.ledger.append(stream, [graded], expected_seq=fold.next_seq, actor=self._stores.actor)

    async def _grade(self, request: GradeRequest) -> list[Recorded]:
        task = await self._stores.task(request.task)
        fold = fold_rollout(await self._stores.ledger.read(request.streams[0]))
        assert fold.ended is not None
        changed = parse_changed_files(await self._stores.blobs.get(fold.ended.changed))
        began = time.monotonic()
        if task.image is None:
            verdict = await grade(task, changed, self._sandboxes)
        else:
            verdict = await self._grade_in_image(request.run, task, changed)
        if isinstance(verdict, Failure):
            raise ApplicationError(
                f"task {task.id}: {verdict.cause}", type=verdict.kind, non_retryable=verdict.kind == FailureKind.DATA
            )
        inline: list[bytes] = []
        reached = VerdictReached(
            task=request.task,
            tree=fold.ended.tree,
            grader=grader_of(task),
            score=verdict.value,
            timed_out=verdict.timed_out,
            report=await self._stores.stage(dump_json(verdict.model_dump(mode="json")), inline),
            duration_s=time.monotonic() - began,
        )
        stream = verdict_stream(request.verdict_key)
        await self._stores.ledger.append(stream, [reached], expected_seq=0, actor=self._stores.actor, blobs=inline)
        return await self._stores.ledger.read(stream)

    async def _grade_in_image(self, run: str, task: Task, changed: Mapping[str, bytes | None]) -> Score | Failure:
        """Grades in a sandbox of the task's image as it is: with all that was hidden from the agent."""
        if task.secrets is None:
            return Failure(kind="data", cause="it has an image, and no secrets that say what its tests are")
        secrets = R2ESecrets.model_validate_json(await self._stores.blobs.get(task.secrets))
        facts = await self._stores.run_facts(run)
        image = await self._images.find(facts.recipe, task)

        files = {path: text.encode() for path, text in task.files.items()}

        async def create() -> Sandbox:
            return await self._sandboxes.create(files, grading_limits(task.timeout_s), str(image), work=task.work)

        return await grade_in_image(secrets, changed, create, work=task.work, timeout_s=task.timeout_s)
