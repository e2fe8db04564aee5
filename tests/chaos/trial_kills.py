"""A small trial whose worker is killed again and again, and what is compared with an undisturbed one."""

import asyncio
import json
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

import psutil

from db.recorded import Recorded
from stepwell.events import TrialScored
from stepwell.events.base import Event, facts_digest
from tests.chaos.kill_points import LOOK_S, Held, KillPoints, kill_points
from tests.chaos.outcome import at_s
from tests.stack.small_trials import SmallTrials

Moment = Literal["before", "after"]
"""Of the commit: the append is rolled back, or stands and its writer never learns so."""
HUNG_S = 900.0
"""A trial that was struck and neither ends nor comes to the next kill point within this hangs."""
GONE_S = 240.0


@dataclass(frozen=True)
class Kill:
    """The trial worker killed at an append."""

    phase: str
    """What the trial is doing; for an `AttemptOpened` found out when it comes."""
    type: str
    """Of the append's first event."""
    ordinal: int
    """How many events of the type the trial has before it."""
    moment: Moment
    of: Literal["trial", "run-set"] = "trial"
    """Kind of the stream."""

    def __str__(self) -> str:
        return f"{self.phase}: {self.moment} {self.type}"


PHASES = {
    "preparing": ("TrialCreated", 1),
    "self-test": ("TrialPrepared", 1),
    "agent": ("EnvironmentTested", 1),
    "submission": ("AgentEnded", 1),
    "identity": ("SubmissionTaken", 1),
    "contamination": ("CheckReached", 1),
    "judging": ("CheckReached", 2),
    "evaluation": ("JudgementReached", 1),
}
"""Those that begin with an `AttemptOpened`, each with what the trial has by then: a type of event, and how many."""
ATTEMPTS = 5 * len(PHASES)
"""Where attempts are held: each phase has two here, and a slow machine may need more."""
RECORDED: tuple[tuple[str, str, int], ...] = (
    ("beginning", "TrialCreated", 0),
    ("preparing", "TrialPrepared", 0),
    ("self-test", "EnvironmentTested", 0),
    ("agent", "AgentStarted", 0),
    ("agent", "AgentEnded", 0),
    ("submission", "SubmissionTaken", 0),
    ("identity", "CheckReached", 0),
    ("contamination", "CheckReached", 1),
    ("judging", "JudgementReached", 0),
    ("evaluation", "PassScored", 0),
    ("closing", "TrialScored", 0),
)
"""Every append of a trial but its attempts, by its first event."""


def at_every_record(moment: Moment) -> list[Kill]:
    """A kill at each append of a trial, and at the one that finishes its run set."""
    kills = [Kill(phase, type, ordinal, moment) for phase, type, ordinal in RECORDED]
    return [*kills, Kill("closing", "RunSetFinished", 0, moment, of="run-set")]


def at_every_attempt() -> list[Kill]:
    """A kill when each phase has just begun: the first attempt at it, and none after that."""
    return [Kill("", "AttemptOpened", ordinal, "after") for ordinal in range(ATTEMPTS)]


@dataclass(frozen=True)
class Came:
    """What came of a trial, however it was disturbed."""

    types: tuple[str, ...]
    """Of its events in order, attempts left out."""
    facts: str
    """Digest of its facts."""
    record: str
    """Of the leaderboard, as JSON."""


@dataclass(frozen=True)
class Played:
    """One run set of one trial, to its end."""

    came: Came
    struck: tuple[tuple[Kill, float], ...]
    """Kills that were done, with the time of each in seconds since the epoch."""
    events: tuple[Recorded, ...]


async def play(trials: SmallTrials, recipe: Path, name: str, superuser: str, kills: Sequence[Kill] = ()) -> Played:
    """Plays a run set of one trial.

    Args:
        trials: Where.
        recipe: With one agent.
        name: Of the run set, new.
        superuser: The ledger's database, see `KillPoints.open`.
        kills: At most one for each append; of those at attempts, one for each phase is done.

    Raises:
        AssertionError: it hangs, or leaves the trial without a record.
    """
    streams = {"trial": f"trial/{name}/%", "run-set": f"run-set/{name}"}
    struck: list[tuple[Kill, float]] = []
    async with kill_points(superuser, [(streams[kill.of], kill.type, kill.ordinal) for kill in kills]) as points:
        trials.start(name, recipe)
        assert trials.process is not None
        deadline = time.monotonic() + HUNG_S
        while (status := trials.process.poll()) is None:
            assert time.monotonic() < deadline, f"after {len(struck)} of {len(kills)} kills: {trials.output}"
            held = await points.held()
            if held is not None:
                kill = await _named(kills[held.point], trials)
                if kill.type == "AttemptOpened" and kill.phase in {done.phase for done, _ in struck}:
                    await points.commit(held)
                else:
                    struck.append((kill, await _kill(trials, points, held, kill.moment)))
                deadline = time.monotonic() + HUNG_S
            await asyncio.sleep(LOOK_S)
    assert status == 0, trials.output
    events = tuple(await trials.events())
    return Played(_came(events, name), tuple(struck), events)


async def _named(kill: Kill, trials: SmallTrials) -> Kill:
    """With the phase that an attempt is at."""
    if kill.type != "AttemptOpened":
        return kill
    types = Counter(each.event.type for each in await trials.events())
    begun = [phase for phase, (type, count) in PHASES.items() if types[type] >= count]
    return replace(kill, phase=begun[-1])


async def _kill(trials: SmallTrials, points: KillPoints, held: Held, moment: Moment) -> float:
    """Kills the writer, and lets its transaction end as the moment says. Returns when that was."""
    worker = psutil.Process(held.writer)
    assert held.kind == "trial"
    assert worker == trials.worker("trial")
    worker.kill()
    at = time.time()
    await asyncio.to_thread(worker.wait, GONE_S)
    await (points.roll_back(held) if moment == "before" else points.commit(held))
    return at


def _came(events: Sequence[Recorded], run_set: str) -> Came:
    bodies = [_without_name(each.event, run_set) for each in sorted(events, key=lambda each: each.seq)]
    last = bodies[-1]
    assert isinstance(last, TrialScored), [each.type for each in bodies]
    return Came(
        types=tuple(each.type for each in bodies if each.type != "AttemptOpened"),
        facts=facts_digest(bodies),
        record=json.dumps(last.record, sort_keys=True),
    )


def _without_name(event: Event, run_set: str) -> Event:
    """A record names its run set, which has another name in each play."""
    if not isinstance(event, TrialScored):
        return event
    names = {name: event.record[name].removeprefix(f"{run_set}/") for name in ("run_set", "trial")}
    return event.model_copy(update={"record": event.record | names})


def next_event_s(played: Played, at: float) -> float | None:
    """Seconds from a moment to the next event of the trial; None after the last."""
    return min((at_s(each) - at for each in played.events if at_s(each) > at), default=None)
