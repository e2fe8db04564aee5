"""Audits tasks in sandboxes, as many at once as there are cores."""

import asyncio
import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from time import perf_counter

from stepwell.sandbox.protocol import SandboxFactory
from stepwell.tasks.audit.judge import why_dropped
from stepwell.tasks.audit.machine import this_machine
from stepwell.tasks.audit.report import AuditedTask, AuditReport, Observation
from stepwell.tasks.grading.verdict import Failure, Outcome, grader_digest
from stepwell.tasks.patient_grading import grade_patiently
from stepwell.tasks.task import Task

FIRST_SEED = 1000
"""Orders and canaries of an audit are none that the forge has seen."""


async def audit_tasks(
    tasks: Iterable[Task],
    factory: SandboxFactory,
    *,
    repetitions: int = 3,
    at_once: int = 0,
    told: Callable[[AuditedTask], None] | None = None,
) -> AuditReport:
    """Grades the gold patch and doing nothing, each several times, under different orders and canaries.

    Args:
        tasks: The set.
        factory: Makes the sandboxes; with pytest in their site-packages for tasks that need it.
        repetitions: Times, at least 1.
        at_once: Tasks at once, by default one a core; the report does not depend on it.
        told: Is told of each task when it is done, in no order.

    Raises:
        ValueError: no repetition is asked for.
    """
    if repetitions < 1:
        raise ValueError(f"{repetitions} repetitions are asked for; a task is graded once at least")
    slots = asyncio.Semaphore(at_once or len(os.sched_getaffinity(0)))

    async def one(task: Task) -> AuditedTask:
        async with slots:
            audited = await _audited(task, factory, repetitions)
        if told is not None:
            told(audited)
        return audited

    async with asyncio.TaskGroup() as group:
        running = [group.create_task(one(task)) for task in tasks]
    return AuditReport(
        machine=this_machine(),
        grader=grader_digest(),
        repetitions=repetitions,
        tasks=tuple(audited.result() for audited in running),
    )


@dataclass(frozen=True)
class _Timed:
    observation: Observation
    seconds: float


async def _audited(task: Task, factory: SandboxFactory, repetitions: int) -> AuditedTask:
    patch: dict[str, bytes | None] = {path: text.encode() for path, text in task.gold.items()}
    gold: list[_Timed] = []
    nothing: list[_Timed] = []
    for repetition in range(repetitions):
        gold.append(await _observed(task, patch, factory, FIRST_SEED + repetition))
        nothing.append(await _observed(task, {}, factory, FIRST_SEED + repetition))
        if gold[-1].observation.timed_out or nothing[-1].observation.timed_out:
            break  # It was given many times what it should need, and is no good whatever comes next.
    seen_gold, seen_nothing = (tuple(timed.observation for timed in one) for one in (gold, nothing))
    return AuditedTask(
        id=task.id,
        task=task.digest,
        gold=seen_gold,
        nothing=seen_nothing,
        gold_s=tuple(timed.seconds for timed in gold),
        nothing_s=tuple(timed.seconds for timed in nothing),
        dropped=why_dropped(seen_gold, seen_nothing, is_slow=min(timed.seconds for timed in gold) > task.timeout_s),
    )


async def _observed(task: Task, changed: Mapping[str, bytes | None], factory: SandboxFactory, seed: int) -> _Timed:
    started = perf_counter()
    verdict = await grade_patiently(task, changed, factory, seed=seed)
    seconds = round(perf_counter() - started, 3)
    if isinstance(verdict, Failure):
        return _Timed(Observation(value=None, failure=f"{verdict.kind}: {verdict.cause}"), seconds)
    not_passed: dict[str, Outcome] = {test: verdict.outcomes[test] for test in sorted(verdict.failed)}
    return _Timed(Observation(value=verdict.value, not_passed=not_passed, timed_out=verdict.timed_out), seconds)
