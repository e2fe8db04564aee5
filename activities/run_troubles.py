"""Looks for what keeps a run from getting on: workers that are away, activities that fail, waiting without end."""

import logging
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from temporalio.client import Client, WorkflowQueryFailedError
from temporalio.service import RPCError

from activities.pending import describe, of_children, task_failure
from db.engines import Engines
from db.ledger import Ledger
from db.workers import WorkerLeases
from stepwell.contracts.run import Progress
from stepwell.events.streams import operator_stream
from stepwell.health.stalls import (
    AT_WORK_AGAIN_S,
    IDLE_S,
    KINDS,
    WAITING_S,
    LastSeen,
    Pending,
    Present,
    Trouble,
    absence,
    allowance_s,
    broken_workflow,
    idleness,
    repeated_failure,
    trouble_of_groups,
    troubles_of,
    unready_engines,
    works,
)
from stepwell.operators.fold import fold_operators

WATCHER = "watch_run"
"""The activity that looks: its own waiting is none."""
_FAILED_LATELY_S = 60.0

_log = logging.getLogger(__name__)


@dataclass
class Memory:
    """What this process knows of a run from the looks before; times are monotonic."""

    looked_at: float
    heard_at: float
    """When the run last got on."""
    missing_since: dict[str, float] = field(default_factory=dict[str, float])
    """By kind of worker."""
    failures: dict[str, "Failure"] = field(default_factory=lambda: dict[str, Failure]())
    """Failures of the run's own activities a short while ago, by attempt; the newest last."""
    idle_since: float | None = None
    """Since when nothing was at work; None: something was."""


@dataclass(frozen=True)
class Failure:
    """An attempt failed."""

    activity: str
    message: str
    at: float
    """Monotonic."""


@dataclass(frozen=True)
class RunTroubles:
    """Looks at one run.

    Args:
        leases: of all workers.
        engines: those that take traffic.
        ledger: of the run.
        client: asks Temporal.
        run: its name.
        workflow: id of its workflow.
        lease_s: a worker's lease ends so long after its last sign of life.
        memory: of this run.
    """

    leases: WorkerLeases
    engines: Engines
    ledger: Ledger
    client: Client
    run: str
    workflow: str
    lease_s: float
    memory: Memory

    async def absences(self, alive: Mapping[str, Present], standing: Sequence[str]) -> list[Trouble]:
        """Kinds of workers that have been missing for longer than they may.

        Args:
            alive: live workers by kind.
            standing: kinds that are known to be missing.
        """
        missing, now, found = self.memory.missing_since, time.monotonic(), list[Trouble]()
        for kind in KINDS:
            if kind in alive:
                missing.pop(kind, None)
                continue
            missing_s = now - missing.setdefault(kind, now)
            last = await self._last_seen(kind)
            if kind in standing or missing_s >= allowance_s(last):
                found.append(absence(kind, self.run, last, missing_s))
        return found

    async def of_work(self, alive: Mapping[str, Present]) -> list[Trouble] | None:
        """What the run's workflow and its open groups wait for in vain; None if Temporal does not say."""
        try:
            return await self._of_work(alive)
        except RPCError as error:
            _log.warning("Temporal does not say what run %s waits for: %s", self.run, error)
            return None

    async def _of_work(self, alive: Mapping[str, Present]) -> list[Trouble]:
        described = await describe(self.client, self.workflow)
        if described is None:
            return []
        if described.task_attempt > 1:
            broken = broken_workflow(described.task_attempt, await task_failure(self.client, self.workflow))
            if broken is not None:
                return [broken]
        own = [pending for pending in described.activities if pending.activity != WATCHER]
        self._remember(own)
        found = troubles_of(own, alive)
        quiet_s = time.monotonic() - self.memory.heard_at
        if found or quiet_s < WAITING_S:
            self.memory.idle_since = None
            return found
        groups = await of_children(self.client, described.children)
        of_groups = trouble_of_groups(groups, alive)
        if of_groups is not None:
            self.memory.idle_since = None
            return [of_groups]
        return await self._of_idleness([*own, *groups], alive, quiet_s)

    async def _of_idleness(
        self, pending: Sequence[Pending], alive: Mapping[str, Present], quiet_s: float
    ) -> list[Trouble]:
        """A run that nothing works on, though every worker is there and no operator holds it."""
        memory, now = self.memory, time.monotonic()
        failing = [failure for failure in memory.failures.values() if self._fails_often(failure.activity)]
        at_work = works(pending, {failure.activity for failure in failing})
        if at_work or not all(kind in alive for kind in KINDS) or await self._is_held():
            memory.idle_since = None
            return []
        memory.idle_since = now if memory.idle_since is None else memory.idle_since
        if now - memory.idle_since < AT_WORK_AGAIN_S or quiet_s < IDLE_S:
            return []
        if failing:
            return [repeated_failure(failing[-1].activity, failing[-1].message, quiet_s)]
        if not await self.engines.live(self.run):
            return [unready_engines(alive["engine"], quiet_s)]
        return [idleness(quiet_s, await self._waiting_for())]

    def _remember(self, own: Sequence[Pending]) -> None:
        failures, now = self.memory.failures, time.monotonic()
        for pending in own:
            if pending.failure:
                failures.setdefault(pending.key, Failure(pending.activity, pending.failure, now - pending.failed_s))
        for key in [key for key, failure in failures.items() if now - failure.at > _FAILED_LATELY_S]:
            del failures[key]

    def _fails_often(self, activity: str) -> bool:
        return sum(failure.activity == activity for failure in self.memory.failures.values()) > 1

    async def _is_held(self) -> bool:
        """Whether it waits for an operator, or is stopping."""
        recorded = await self.ledger.read(operator_stream(self.run))
        fold = fold_operators([each.event for each in recorded])
        return fold.depth is not None or bool(fold.holds)

    async def _waiting_for(self) -> str:
        try:
            handle = self.client.get_workflow_handle(self.workflow)
            progress = await handle.query("progress", result_type=Progress)
        except WorkflowQueryFailedError as error:
            return f"what it does not say ({error})"
        return progress.waiting_for

    async def _last_seen(self, kind: str) -> LastSeen | None:
        last = await self.leases.last(kind, self.run)
        if last is None:
            return None
        return LastSeen(f"{last.worker.host}/{last.worker.pid}", max(0.0, last.ended_s) + self.lease_s)
