"""The writer of every event killed, right before it is recorded and right after: the run ends as an undisturbed one.

Same weights, same facts, every rule of the audit holds, no recorded turn lost or generated again, no step applied
twice, nothing left behind; by itself, but for a killed `stepwell run`, which is started again.
"""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass

import pytest
import pytest_asyncio

from stepwell.events import (
    EVENT_TYPES,
    AgentEnded,
    AgentRestarted,
    AgentStarted,
    CheckReached,
    EnvironmentTested,
    HoldRaised,
    JudgementReached,
    OperatorActed,
    PassScored,
    PayloadDeleted,
    PromptReplaced,
    RolloutCleared,
    RolloutFailed,
    RolloutRestarted,
    RolloutTainted,
    RowsRecorded,
    RunForked,
    RunSetCreated,
    RunSetFinished,
    StallBegan,
    StallEnded,
    StepAdmitted,
    StepTrained,
    SubmissionEvaluated,
    SubmissionTaken,
    TrialAbandoned,
    TrialCreated,
    TrialOverridden,
    TrialPrepared,
    TrialScored,
)
from tests.chaos.arena import Arena, Played, Strike
from tests.chaos.faults import (
    Append,
    Fault,
    apart,
    appends_of,
    bystanders,
    each_type_once,
    every_fault,
    spread,
    stalls,
)
from tests.chaos.outcome import RunFacts, cost_of, failed_rollouts, repeated_steps, run_facts, turns_of
from tests.chaos.recipe import RUN
from tests.chaos.table import SAME, ChaosTable, Row

pytestmark = pytest.mark.timeout(900)

ARENAS = 3
"""Runs at once: a disturbed run mostly waits for a deadline, so this is more than two cores."""
COST_S = {"control": 15.0, "trainer": 25.0, "sandbox": 20.0, "engine": 15.0, "command": 20.0}
"""About what the death of a process costs a run, to spread the faults."""
TOGETHER = 3
"""Faults that one run of the long form takes. Where such a run ends otherwise, each of them is played alone."""
OF_TRIALS = {
    AgentEnded,
    AgentRestarted,
    AgentStarted,
    CheckReached,
    EnvironmentTested,
    JudgementReached,
    PassScored,
    RunSetCreated,
    RunSetFinished,
    SubmissionEvaluated,
    SubmissionTaken,
    TrialAbandoned,
    TrialCreated,
    TrialOverridden,
    TrialPrepared,
    TrialScored,
}
"""Types of events of benchmark trials, which no run has."""
NOT_IN_THE_RUN = {
    OperatorActed,
    HoldRaised,
    PayloadDeleted,
    PromptReplaced,
    RolloutCleared,
    RolloutFailed,
    RolloutRestarted,
    RolloutTainted,
    RowsRecorded,
    RunForked,
    StallBegan,
    StallEnded,
}
"""Types of events that a run of our own harness, in which nothing fails, stalls, is asked for or is forked, has not."""

Plan = list[Fault]


@dataclass(frozen=True)
class Undisturbed:
    """What the run does when nobody strikes."""

    played: Played
    facts: RunFacts
    appends: list[Append]


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def arenas(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[list[Arena]]:
    """Arenas whose services die with this module."""
    root = tmp_path_factory.mktemp("arenas")
    async with AsyncExitStack() as stack:
        opening = [stack.enter_async_context(Arena.opened(root / str(number))) for number in range(ARENAS)]
        yield list(await asyncio.gather(*opening))


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def undisturbed(arenas: list[Arena]) -> Undisturbed:
    """The run that all others are compared with."""
    played = await arenas[0].play()
    assert played.exit_status == 0, f"{played.output}\n{arenas[0].logs()}"
    return Undisturbed(played, run_facts(played.events, RUN), appends_of(played.rows, RUN))


def test_undisturbed_run_has_every_kind_of_event_and_moves_the_weights(undisturbed: Undisturbed) -> None:
    events = [each.event for each in undisturbed.played.events]
    missing = set(EVENT_TYPES.values()) - {type(event) for event in events} - NOT_IN_THE_RUN - OF_TRIALS
    assert not missing
    assert undisturbed.played.findings == []
    assert all(0 < event.reward_mean < 1 for event in events if isinstance(event, StepAdmitted))
    weights = [event.digests.exported for event in events if isinstance(event, StepTrained)]
    assert len(set(weights)) == len(weights) == 2


@pytest.mark.timeout(1800)
async def test_each_kind_of_event_survives_its_writer(
    arenas: list[Arena], undisturbed: Undisturbed, chaos_table: ChaosTable
) -> None:
    faults = each_type_once(undisturbed.appends)
    assert {fault.victim for fault in faults} == {"command", "control", "trainer", "engine", "sandbox"}
    rows = await play_all(arenas, spread(faults, ARENAS, COST_S), undisturbed, "Several kills in one run")
    chaos_table.add(*rows)
    assert len(rows) == len(faults)
    assert wrong(rows) == []


def kills(appends: list[Append]) -> list[Plan]:
    """Every fault, several in one run: each has a moment and a row of its own, and they share the outcome."""
    return list(apart(every_fault(appends), TOGETHER))


def stops(appends: list[Append]) -> list[Plan]:
    """Each fault in a run of its own."""
    return [[fault] for fault in stalls(appends)]


def others(appends: list[Append]) -> list[Plan]:
    """Each fault in a run of its own."""
    return [[fault] for fault in bystanders(appends)]


@pytest.mark.long
@pytest.mark.timeout(7200)
@pytest.mark.parametrize(
    ("chapter", "plans"),
    [
        ("Every event: its writer killed right before and right after", kills),
        ("A worker stopped in the middle of its work", stops),
        ("A process killed while another one records", others),
    ],
    ids=["kills", "stops", "others"],
)
async def test_run_ends_as_undisturbed(
    chapter: str,
    plans: Callable[[list[Append]], list[Plan]],
    arenas: list[Arena],
    undisturbed: Undisturbed,
    chaos_table: ChaosTable,
) -> None:
    planned = plans(undisturbed.appends)
    rows = await play_all(arenas, planned, undisturbed, chapter)
    chaos_table.add(*rows)
    assert len(rows) >= sum(len(plan) for plan in planned)
    assert wrong(rows) == []


def wrong(rows: Sequence[Row]) -> list[str]:
    """Rows that break what the suite promises."""
    return [
        f"{row.fault} ({row.process}, {row.signal}): {row.outcome}"
        for row in rows
        if row.outcome != SAME or row.hung or row.turns_lost or row.turns_repeated or row.steps_repeated
    ]


async def play_all(arenas: list[Arena], plans: Sequence[Plan], undisturbed: Undisturbed, chapter: str) -> list[Row]:
    """Plays every plan, several at once; a row for each fault.

    The faults of a plan that ends otherwise than undisturbed are played again, each alone, so that the culprit has a
    name; the rows of the plan stand too.
    """
    rows: list[Row] = []
    waiting = deque(plans)
    playing = 0

    async def play_on(arena: Arena) -> None:
        nonlocal playing
        while waiting or playing:
            if not waiting:
                await asyncio.sleep(1.0)  # what is being played may bring more
                continue
            plan = waiting.popleft()
            playing += 1
            played = await arena.play(plan)
            playing -= 1
            of_plan = rows_of(plan, played, undisturbed, chapter)
            rows.extend(of_plan)
            if wrong(of_plan):
                print(f"\n=== {[str(fault) for fault in plan]}\n{played.output}\n{arena.logs()}")
                waiting.extend([fault] for fault in plan if len(plan) > 1)

    async with asyncio.TaskGroup() as tasks:
        for arena in arenas:
            tasks.create_task(play_on(arena))
    in_order = {str(fault): place for place, fault in enumerate(every_fault(undisturbed.appends))}
    return sorted(rows, key=lambda row: in_order[row.fault])


def rows_of(plan: Plan, played: Played, undisturbed: Undisturbed, chapter: str) -> list[Row]:
    """What a play says of each of its faults."""
    differences = differences_of(played, undisturbed)
    struck = {strike.fault: strike for strike in played.strikes}
    return [row_of(fault, struck.get(fault), played, differences, chapter) for fault in plan]


def row_of(fault: Fault, strike: Strike | None, played: Played, differences: list[str], chapter: str) -> Row:
    """What a play says of one of its faults."""
    if strike is None:
        differences = ["the event never came", *differences]
        return Row(chapter, str(fault), fault.victim, fault.signal, "; ".join(differences))
    committed = fault.moment == "after" or fault.process != "writer"
    cost = cost_of(fault, strike.at_s, committed, played.events, RUN)
    turns = turns_of(played.events)
    return Row(
        chapter=chapter,
        fault=str(fault),
        process=fault.victim,
        signal=fault.signal,
        outcome="; ".join(differences) or SAME,
        detection_s=strike.detected_s,
        recovery_s=cost.recovery_s,
        resumed_s=cost.resumed_s,
        turns_lost=turns.lost,
        turns_repeated=turns.repeated,
        steps_repeated=repeated_steps(played.events),
        work_lost_s=cost.work_lost_s,
        hung=played.exit_status is None,
    )


def differences_of(played: Played, undisturbed: Undisturbed) -> list[str]:
    """What a disturbed run did otherwise than the undisturbed one; empty if nothing."""
    found: list[str] = []
    if played.exit_status != 0:
        found.append("hung" if played.exit_status is None else f"exit status {played.exit_status}")
    facts = run_facts(played.events, RUN)
    if facts.weights != undisturbed.facts.weights:
        found.append("other weights")
    if facts.facts != undisturbed.facts.facts:
        found.append(f"other facts at {', '.join(facts.differs_from(undisturbed.facts)[:5])}")
    found += [f"audit: {finding}" for finding in played.findings[:3]]
    found += [f"no score: {stream}" for stream in failed_rollouts(played.events)]
    found += [f"left behind: {left}" for left in played.leftovers]
    return found
