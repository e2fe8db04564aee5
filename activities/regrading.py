"""Grades recorded work again, in real sandboxes. What is recorded stands: another grader's verdict has another key."""

import time

from activities.stores import Stores, dump_json
from db.errors import BlobMissing, Fenced
from stepwell.agent.turn import parse_changed_files
from stepwell.audit.regrading import Regraded, Work
from stepwell.events import VerdictReached
from stepwell.events.streams import verdict_stream
from stepwell.sandbox.protocol import SandboxFactory
from stepwell.tasks.grading.verdict import Failure, Score, grader_digest, verdict_key
from stepwell.tasks.patient_grading import grade_patiently


class Regrader:
    """Grades with today's grader, whether it is the one that graded first or not.

    Args:
        stores: Read; a verdict under a key that none stands under is appended.
        sandboxes: Makes the sandboxes.
    """

    def __init__(self, stores: Stores, sandboxes: SandboxFactory) -> None:
        self._stores = stores
        self._sandboxes = sandboxes

    async def regrade(self, work: Work) -> Regraded:
        """Grades it again, from its recorded patch; nothing that was graded before is reused.

        Raises:
            BlobMissing, BlobCorrupt: task or patch is not stored as it was.
            DatabaseUnavailable, BlobStoreUnavailable: no answer.
        """
        task = await self._stores.task(work.task)
        if task.image is not None:
            return _ungraded(work, "its task has an image, in which it is not graded from here")
        changed = parse_changed_files(await self._stores.blobs.get(work.changed))
        began = time.monotonic()
        verdict = await grade_patiently(task, changed, self._sandboxes, seed=None)
        if isinstance(verdict, Failure):
            return _ungraded(work, f"{verdict.kind}: {verdict.cause}")
        recorded = await self._recorded(work.key)
        is_same = recorded is not None and recorded.grader == grader_digest()
        if not is_same:
            await self._store(work, verdict, time.monotonic() - began)
        return Regraded(
            work=work,
            score=verdict.value,
            timed_out=verdict.timed_out,
            report=verdict.report,
            is_same_grader=is_same,
            tests=await self._other_outcomes(recorded, verdict),
        )

    async def _recorded(self, key: str) -> VerdictReached | None:
        events = [each.event for each in await self._stores.ledger.read(verdict_stream(key))]
        return next((event for event in events if isinstance(event, VerdictReached)), None)

    async def _store(self, work: Work, verdict: Score, duration_s: float) -> None:
        """Appends the verdict of another grader, unless somebody has: a tree has one verdict a grader."""
        inline: list[bytes] = []
        reached = VerdictReached(
            task=work.task,
            tree=work.tree,
            grader=grader_digest(),
            score=verdict.value,
            timed_out=verdict.timed_out,
            report=await self._stores.stage(dump_json(verdict.model_dump(mode="json")), inline),
            duration_s=duration_s,
        )
        stream = verdict_stream(verdict_key(work.task, work.tree, grader_digest()))
        try:
            await self._stores.ledger.append(stream, [reached], expected_seq=0, actor=self._stores.actor, blobs=inline)
        except Fenced:
            return  # one stands there, of the same tree and grader; what differs from the run's is told either way

    async def _other_outcomes(self, recorded: VerdictReached | None, now: Score) -> dict[str, tuple[str, str]]:
        """Tests that ended otherwise; none where the recorded report has been let go."""
        if recorded is None:
            return {}
        try:
            before = Score.model_validate_json(await self._stores.blobs.get(recorded.report))
        except BlobMissing:
            return {}
        return {
            test: (before.outcomes.get(test, "not run"), outcome)
            for test, outcome in now.outcomes.items()
            if before.outcomes.get(test) != outcome
        }


def _ungraded(work: Work, why: str) -> Regraded:
    return Regraded(work, None, timed_out=False, report=why, is_same_grader=False, tests={})
