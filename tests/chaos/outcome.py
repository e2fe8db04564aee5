"""What a run did and what a fault cost it, from its ledger: pure functions of recorded events."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import groupby

from db.recorded import Recorded
from stepwell.events import (
    AttemptOpened,
    RolloutEnded,
    RolloutFailed,
    RolloutRestarted,
    StepAdmitted,
    StepCompleted,
    StepTrained,
    TurnRecorded,
)
from stepwell.events.base import facts_digest
from stepwell.events.canonical import digest_of_json
from tests.chaos.faults import Fault, place_of, stream_pattern


@dataclass(frozen=True)
class RunFacts:
    """What a run did, however it was disturbed."""

    weights: str
    """Digest of the last version's exported weights."""
    facts: str
    """Digest over the facts digest of each stream, by its place."""
    by_place: Mapping[str, str]
    """The facts digest of each stream that has facts."""

    def differs_from(self, other: "RunFacts") -> list[str]:
        """Places whose facts differ."""
        places = sorted({*self.by_place, *other.by_place})
        return [place for place in places if self.by_place.get(place) != other.by_place.get(place)]


@dataclass(frozen=True)
class Turns:
    """What became of the recorded turns of a run."""

    recorded: int
    """Turns recorded, started-over epochs included."""
    lost: int
    """Recorded turns that were void in the end, or that a later attempt did not find."""
    repeated: int
    """Recorded turns that were generated again."""


@dataclass(frozen=True)
class Cost:
    """What a fault cost, in seconds; None where there is nothing to measure."""

    recovery_s: float | None
    """From the signal to the next recorded event of the run."""
    resumed_s: float | None
    """From the signal to the next event in the stream that was hit: the append that was rolled back, made again, or the
    one after it."""
    work_lost_s: float
    """Work that the process had under way and that was in no event yet, summed over what it did at once."""


def run_facts(events: Iterable[Recorded], run: str) -> RunFacts:
    """The facts of a run.

    Args:
        events: of all its streams.
        run: its name, which is taken out of the streams' names.
    """
    ordered = sorted(events, key=lambda each: (each.stream, each.seq))
    by_place: dict[str, str] = {}
    weights = ""
    for stream, of_stream in groupby(ordered, key=lambda each: each.stream):
        bodies = [each.event for each in of_stream]
        if any(body.KIND == "fact" for body in bodies):
            by_place[place_of(stream, run)] = facts_digest(bodies)
        for body in bodies:
            if isinstance(body, StepCompleted):
                weights = body.weights_digest
    return RunFacts(weights, digest_of_json(sorted([place, digest] for place, digest in by_place.items())), by_place)


def turns_of(events: Iterable[Recorded]) -> Turns:
    """What became of the recorded turns."""
    recorded = lost = repeated = 0
    ordered = sorted(events, key=lambda each: (each.stream, each.seq))
    for _, of_stream in groupby(ordered, key=lambda each: each.stream):
        standing: set[int] = set()
        ever: set[int] = set()
        for body in (each.event for each in of_stream):
            if isinstance(body, AttemptOpened):
                lost += max(0, len(standing) - body.resumed_at)
            elif isinstance(body, RolloutRestarted):
                lost += len(standing)
                standing.clear()
            elif isinstance(body, TurnRecorded):
                recorded += 1
                repeated += body.turn in ever
                standing.add(body.turn)
                ever.add(body.turn)
            elif isinstance(body, RolloutEnded):
                lost += max(0, len(standing) - body.turns)
    return Turns(recorded, lost, repeated)


def repeated_steps(events: Iterable[Recorded]) -> int:
    """Optimiser steps recorded more than once."""
    steps = [each.event.step for each in events if isinstance(each.event, StepTrained)]
    return len(steps) - len(set(steps))


def at_s(recorded: Recorded) -> float:
    """When an event was recorded, in seconds since the epoch by the database's clock."""
    return datetime.fromisoformat(recorded.envelope.time).timestamp()


def cost_of(fault: Fault, signalled_s: float, committed: bool, events: Sequence[Recorded], run: str) -> Cost:
    """What a fault cost.

    Args:
        fault: which.
        signalled_s: when its signal was sent, in seconds since the epoch.
        committed: whether the append that it hit was let through: it does not count as recovery.
        events: of all streams of the run, at its end.
        run: its name.
    """
    hit = fault.append.events[0]
    pattern = stream_pattern(hit.place, run).rstrip("%")
    let_through = {(event.place, event.type, event.ordinal) for event in fault.append.events} if committed else set()
    seen: dict[tuple[str, str], int] = {}
    after: list[Recorded] = []
    before: list[Recorded] = []
    for each in sorted(events, key=lambda each: (each.stream, each.seq)):
        ordinal = seen.get((each.stream, each.event.type), 0)
        seen[each.stream, each.event.type] = ordinal + 1
        is_hit = (place_of(each.stream, run), each.event.type, ordinal) in let_through
        (before if is_hit or at_s(each) <= signalled_s else after).append(each)
    times = sorted(at_s(each) - signalled_s for each in after)
    of_stream = sorted(at_s(each) - signalled_s for each in after if each.stream.startswith(pattern))
    return Cost(
        recovery_s=times[0] if times else None,
        resumed_s=of_stream[0] if of_stream else None,
        work_lost_s=work_lost_s(fault.victim, signalled_s, before),
    )


def work_lost_s(victim: str, signalled_s: float, before: Sequence[Recorded]) -> float:
    """Work under way in a process that was in no event yet.

    A sandbox worker, or the engine that it waits for, loses what each unfinished rollout did since its last event; the
    trainer what it did since the batch was fixed or its last own event. The control worker has nothing of its own
    under way. With the command all workers die.
    """
    lost = 0.0
    if victim in ("sandbox", "engine", "command"):
        last: dict[str, Recorded] = {}
        for each in before:
            if each.stream.startswith("rollout/"):
                last[each.stream] = max(last.get(each.stream, each), each, key=lambda each: each.seq)
        ongoing = [each for each in last.values() if isinstance(each.event, AttemptOpened | TurnRecorded)]
        lost += sum(signalled_s - at_s(each) for each in ongoing)
    if victim in ("trainer", "command"):
        admitted = {each.event.step: at_s(each) for each in before if isinstance(each.event, StepAdmitted)}
        own = [at_s(each) for each in before if each.stream.startswith("weights/")]
        trained = {each.event.step for each in before if isinstance(each.event, StepTrained)}
        waiting = [at for step, at in admitted.items() if step not in trained]
        if waiting:
            lost += signalled_s - max([min(waiting), *own])
    return lost


def failed_rollouts(events: Iterable[Recorded]) -> list[str]:
    """Rollouts that ended without a score."""
    return [each.stream for each in events if isinstance(each.event, RolloutFailed)]
