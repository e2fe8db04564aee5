"""What counts as a stall, decided from what a look at a run finds: pure functions, with the thresholds beside them.

A worker's lease runs out 10 s after its last sign of life, looks are some seconds apart, and a kind that was there may
be missing for `GONE_S` before it is called a stall: a worker that is restarted at once is none, and one that is not is
told about half a minute after its death.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from stepwell.health.fold import RecordedStall

KINDS = ("trainer", "engine", "sandbox")
"""Kinds of workers without which a run cannot go on; without the fourth, control, nobody looks."""
GONE_S = 10.0
"""How long a kind may be missing whose last worker was there a while ago."""
AWAITED_S = 45.0
"""How long a kind may be missing that was never there, or not lately: at its start a run waits for workers."""
LATELY_S = 120.0
"""A worker gone for longer than this is not expected back at once."""
ATTEMPTS = 3
"""An activity that is at this attempt after a failure fails again and again."""
WORKING_S = 60.0
"""An attempt that has been under way for so long is work, whatever the attempts before it did."""
WAITING_S = 30.0
"""How long an activity may wait for a free worker, and how long open groups may record nothing, before they are looked
at."""
IDLE_S = 45.0
"""How long a run that is not held may record nothing, with nothing at work, before that is called a stall."""
SHORT_S = 10.0
"""An attempt that has just begun is no proof of work: it may be the next of many that fail at once."""
AT_WORK_AGAIN_S = 15.0
"""How long nothing must be at work: longer than an attempt takes to prove itself that follows one whose worker died."""
SAME_S = 60.0
"""A stall whose cause changes is told anew, at most this often."""
CAUSE_CHARACTERS = 400


@dataclass(frozen=True, slots=True)
class LastSeen:
    """The worker of a kind that was there last."""

    worker: str
    """`<host>/<pid>`."""
    gone_s: float
    """Seconds since its last sign of life, at most."""


@dataclass(frozen=True, slots=True)
class Present:
    """Live workers of a kind."""

    count: int
    """At least 1."""
    for_s: float
    """Seconds for which one of them has been there."""


@dataclass(frozen=True, slots=True)
class Pending:
    """An activity that has not ended, as the Temporal server describes it."""

    key: str
    """Which one: the workflow's id of it, and the attempt."""
    activity: str
    """Its name."""
    queue: str
    """Task queue; empty if the server does not say."""
    working: bool
    """Whether an attempt is under way; else it waits for a worker, or for its next try."""
    attempt: int
    """From 1."""
    since_s: float
    """Seconds for which the attempt is under way, or for which it has waited since it was first scheduled."""
    failure: str
    """Why the attempt before failed; empty at the first."""
    failed_s: float
    """Seconds since that failure."""


@dataclass(frozen=True, slots=True)
class Trouble:
    """What a look finds wrong."""

    what: str
    """`trainer`, `engine`, `sandbox`, or an activity's name."""
    cause: str
    """In words, with what to do."""
    since_s: float
    """Seconds since it began, as far as it is known."""


@dataclass(frozen=True, slots=True)
class Changes:
    """What is to be recorded after a look."""

    ended: tuple[RecordedStall, ...]
    begun: tuple[Trouble, ...]


def allowance_s(last: LastSeen | None) -> float:
    """How long a kind may be missing."""
    return GONE_S if last is not None and last.gone_s < LATELY_S else AWAITED_S


def absence(kind: str, run: str, last: LastSeen | None, missing_s: float) -> Trouble:
    """A kind of worker is not there."""
    command = f"stepwell worker {kind}" + (f" --run {run}" if kind == "engine" else "")
    seen = "none has been seen" if last is None else f"the last one, {last.worker}, was seen {last.gone_s:.0f} s ago"
    gone_s = missing_s if last is None else last.gone_s
    return Trouble(kind, f"no {kind} worker is alive ({seen}); start one: {command}", gone_s)


def troubles_of(pending: Sequence[Pending], alive: Mapping[str, Present]) -> list[Trouble]:
    """Activities that fail again and again, or wait for a worker though there is one.

    Args:
        pending: the run's own.
        alive: live workers by kind; an activity whose kind is not there is not named beside that.
    """
    found = [_failing(name, several) for name, several in _by_name(_fail_again_and_again(pending)).items()]
    told = {trouble.what for trouble in found}
    waiting = [each for each in pending if _waits(each, alive) and each.activity not in told]
    return found + [_waiting(name, several, alive) for name, several in _by_name(waiting).items()]


def trouble_of_groups(pending: Sequence[Pending], alive: Mapping[str, Present]) -> Trouble | None:
    """Why open groups have recorded nothing for a while; None if somebody works on them.

    Args:
        pending: activities of all open groups that were looked at.
        alive: live workers by kind.
    """
    failing = _fail_again_and_again(pending)
    if failing:
        by_name = _by_name(failing)
        name = max(by_name, key=lambda name: len(by_name[name]))
        return _failing(name, by_name[name], of=len(pending))
    if any(each.working for each in pending):
        return None
    waiting = [each for each in pending if _waits(each, alive)]
    if not waiting:
        return None
    oldest = max(waiting, key=lambda each: each.since_s)
    return _waiting(oldest.activity, [each for each in waiting if each.activity == oldest.activity], alive)


def works(pending: Sequence[Pending], failed_lately: Collection[str]) -> bool:
    """Whether an attempt is under way that may well succeed.

    Args:
        pending: the run's activities, and those of its open groups.
        failed_lately: names of activities that failed several times a short while ago.
    """
    return any(
        each.working and each.since_s >= (WORKING_S if _is_late(each) or each.activity in failed_lately else SHORT_S)
        for each in pending
    )


def repeated_failure(activity: str, failure: str, idle_s: float) -> Trouble:
    """An activity fails, is given up, and is asked for anew, while nothing else is at work."""
    cause = f"{activity} is asked for again and again, and fails: {failure}"
    return Trouble(activity, cause[:CAUSE_CHARACTERS], idle_s)


def idleness(idle_s: float, waiting_for: str) -> Trouble:
    """A run that is not held records nothing, and nothing is at work.

    Args:
        idle_s: seconds since it recorded anything.
        waiting_for: what its workflow says that it waits for.
    """
    cause = f"nothing was recorded for {idle_s:.0f} s and nothing is at work; it waits for {waiting_for}"
    return Trouble("workflow", cause[:CAUSE_CHARACTERS], idle_s)


def unready_engines(alive: Present, idle_s: float) -> Trouble:
    """Engine workers are there, and none of them takes traffic."""
    cause = (
        f"{alive.count} engine worker{'s are' if alive.count > 1 else ' is'} alive, none has proven a version for "
        f"{idle_s:.0f} s: a large model takes minutes to load; if it takes longer, the worker's log says why"
    )
    return Trouble("engine", cause, idle_s)


def broken_workflow(attempt: int, failure: str) -> Trouble | None:
    """The workflow's own task fails again and again: a defect, or a build that does not fit its history."""
    if attempt < ATTEMPTS:
        return None
    return Trouble("workflow", f"its task failed {attempt - 1} times, last with: {failure}"[:CAUSE_CHARACTERS], 0.0)


def changes(standing: Sequence[RecordedStall], found: Sequence[Trouble], now_s: float) -> Changes:
    """What has to be recorded, given the stalls that last by the ledger.

    Args:
        standing: of those that this look could judge.
        found: troubles, each `what` at most once.
        now_s: in seconds since the epoch.
    """
    by_what = {trouble.what: trouble for trouble in found}
    ended = tuple(stall for stall in standing if _is_over(stall, by_what.get(stall.what), now_s))
    lasting = {stall.what for stall in standing} - {stall.what for stall in ended}
    return Changes(ended, tuple(trouble for trouble in found if trouble.what not in lasting))


def _is_over(stall: RecordedStall, trouble: Trouble | None, now_s: float) -> bool:
    if trouble is None:
        return True
    return now_s - stall.began_s >= SAME_S and _gist(stall.cause) != _gist(trouble.cause)


def _gist(cause: str) -> str:
    """A cause without what counts or names one of many: every word with a digit."""
    return re.sub(r"\S*\d\S*", "", cause)


def _by_name(pending: Sequence[Pending]) -> dict[str, list[Pending]]:
    by_name: dict[str, list[Pending]] = defaultdict(list)
    for each in pending:
        by_name[each.activity].append(each)
    return dict(by_name)


def _fail_again_and_again(pending: Sequence[Pending]) -> list[Pending]:
    return [each for each in pending if _is_late(each) and not (each.working and each.since_s >= WORKING_S)]


def _is_late(pending: Pending) -> bool:
    return bool(pending.failure) and pending.attempt >= ATTEMPTS


def _failing(name: str, failing: Sequence[Pending], *, of: int | None = None) -> Trouble:
    (failure, _), *_ = Counter(each.failure for each in failing).most_common(1)
    failed = max(each.attempt for each in failing) - 1
    many = f", {len(failing)} at once" if len(failing) > 1 else ""
    many += f" of {of} open" if of is not None and of > len(failing) else ""
    cause = f"{name} failed {failed} times{many}, last with: {failure}"
    return Trouble(name, cause[:CAUSE_CHARACTERS], min(each.failed_s for each in failing))


def _waits(pending: Pending, alive: Mapping[str, Present]) -> bool:
    """Whether it waits for a worker that could take it up; where there is none, that is the stall."""
    kind = _kind(pending.queue)
    there_s = alive[kind].for_s if kind in alive else 0.0 if kind in KINDS else pending.since_s
    return not pending.working and pending.attempt == 1 and min(pending.since_s, there_s) >= WAITING_S


def _waiting(name: str, waiting: Sequence[Pending], alive: Mapping[str, Present]) -> Trouble:
    oldest_s, kind = max(each.since_s for each in waiting), _kind(waiting[0].queue)
    many = f"{len(waiting)} × {name} have" if len(waiting) > 1 else f"{name} has"
    there = f"{alive[kind].count} alive, busy or stuck" if kind in alive else "none has room"
    cause = f"{many} waited {oldest_s:.0f} s for a {kind or 'free'} worker to take it up ({there})"
    return Trouble(name, cause, oldest_s)


def _kind(queue: str) -> str:
    """Kind of the workers that serve a queue."""
    return queue.partition("-")[0]
