"""Faults as data: at which event of a run, before or after it, which process gets which signal.

Which events there are is read from the ledger of an undisturbed run. Events that one append wrote stand or fall
together, so they share two faults: right before that append is committed, and right after.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

Moment = Literal["before", "after"]
"""`before`: the append is rolled back; `after`: it is committed, and its writer never learns so."""

Process = Literal["writer", "command", "control", "trainer", "engine", "sandbox"]
"""Who gets the signal: the process that appends the event, or `stepwell run` itself, or a worker."""

Signal = Literal["SIGKILL", "SIGSTOP"]
"""SIGKILL: the process is gone; SIGSTOP: it stalls, and comes back when others have done its work."""


IN_EVERY_RUN = {"health": ("UsageRecorded", 0), "history": ("HistoryArchived", 0)}
"""Places of streams whose events depend on timing, each with the only event there that every run has."""


DIGEST = 64
"""Length of a digest, which is shown by its beginning."""


@dataclass(frozen=True)
class EventName:
    """An event by its place, which is the same in every run of a recipe."""

    place: str
    """Its stream without the run's name; without the random id of an engine."""
    type: str
    """Its type."""
    ordinal: int
    """How many events of that type there are before it at that place."""

    def __str__(self) -> str:
        number = f" {self.ordinal}" if self.ordinal else ""
        place = "/".join(part[:12] if len(part) == DIGEST else part for part in self.place.split("/"))
        return f"{place} {self.type}{number}"


@dataclass(frozen=True)
class Append:
    """The events of one transaction."""

    events: tuple[EventName, ...]
    """In order; at least one."""
    writer: str
    """Kind of process that appended them: `command` or a kind of worker."""

    def __str__(self) -> str:
        first, rest = self.events[0], self.events[1:]
        return ", ".join([str(first), *(event.type for event in rest)])


@dataclass(frozen=True)
class Fault:
    """One fault."""

    append: Append
    """The append that it hits; its first event is where the writer is held."""
    moment: Moment
    """On which side of the commit."""
    process: Process = "writer"
    """Who gets the signal."""
    signal: Signal = "SIGKILL"
    """Which one."""

    @property
    def victim(self) -> str:
        """Kind of the process that gets the signal."""
        return self.append.writer if self.process == "writer" else self.process

    def __str__(self) -> str:
        return f"{self.moment} {self.append}"


@dataclass(frozen=True)
class LedgerRow:
    """What names an event, as it lies in the table `events`."""

    stream: str
    type: str
    xid: int
    """Transaction that appended it."""
    writer: str
    """Kind of process."""


def place_of(stream: str, run: str) -> str:
    """A stream's name without what differs between runs of one recipe."""
    kind, _, rest = stream.partition("/")
    if kind == "engine":
        return "engine"
    return kind if rest == run else f"{kind}/{rest.removeprefix(f'{run}/')}"


def stream_pattern(place: str, run: str) -> str:
    """The streams at a place, as a pattern of SQL's LIKE."""
    kind, _, rest = place.partition("/")
    if kind == "engine":
        return f"engine/{run}/%"
    if kind == "verdict":
        return place
    return f"{kind}/{run}/{rest}" if rest else f"{kind}/{run}"


def appends_of(rows: Iterable[LedgerRow], run: str) -> list[Append]:
    """The appends of a run, in the order of its ledger, but for those that a run has or has not, by its timing."""
    seen: dict[tuple[str, str], int] = {}
    found: dict[tuple[str, int], Append] = {}
    for row in rows:
        place = place_of(row.stream, run)
        ordinal = seen.get((place, row.type), 0)
        seen[place, row.type] = ordinal + 1
        if IN_EVERY_RUN.get(place, (row.type, ordinal)) != (row.type, ordinal):
            continue
        event = EventName(place, row.type, ordinal)
        before = found.get((row.stream, row.xid))
        events = (event,) if before is None else (*before.events, event)
        found[row.stream, row.xid] = Append(events, row.writer)
    return list(found.values())


def every_fault(appends: Iterable[Append]) -> list[Fault]:
    """The writer of each append killed, right before and right after it."""
    moments: tuple[Moment, ...] = ("before", "after")
    return [Fault(append, moment) for append in appends for moment in moments]


def each_type_once(appends: Sequence[Append]) -> list[Fault]:
    """One fault for each type of event, before and after in turn; types that share an append share its fault. A turn
    is hit after it is recorded: the next attempt then takes the rollout up there."""
    covered: set[str] = set()
    faults: list[Fault] = []
    for append in appends:
        new = {event.type for event in append.events} - covered
        if not new:
            continue
        covered |= new
        after = "TurnRecorded" in new or len(faults) % 2
        faults.append(Fault(append, "after" if after else "before"))
    return faults


def of_type(appends: Iterable[Append], type: str, *, place: str = "", nth: int = 0) -> Append:
    """The nth append with an event of a type, at a place that begins so.

    Raises:
        LookupError: the run has none.
    """
    fitting = [each for each in appends if any(e.type == type and e.place.startswith(place) for e in each.events)]
    if len(fitting) <= nth:
        raise LookupError(
            f"the run has {len(fitting)} appends of {type} at {place or 'any place'}, wanted number {nth}"
        )
    return fitting[nth]


def stalls(appends: Sequence[Append]) -> list[Fault]:
    """SIGSTOP of each kind of worker in the middle of its work, on both sides of an append."""
    moments: tuple[Moment, ...] = ("before", "after")
    hit = {
        "control": of_type(appends, "GroupClosed", place="prompt/0/"),
        "trainer": of_type(appends, "StepTrained"),
        "sandbox": of_type(appends, "TurnRecorded", place="rollout/0/", nth=1),
        "engine": of_type(appends, "VersionAttested", nth=1),
    }
    return [Fault(append, moment, signal="SIGSTOP") for append in hit.values() for moment in moments]


def bystanders(appends: Sequence[Append]) -> list[Fault]:
    """SIGKILL of a process other than the writer, while another one's work is being recorded."""
    turn = of_type(appends, "TurnRecorded", place="rollout/1/")
    return [
        Fault(turn, "after", process="engine"),
        Fault(turn, "after", process="trainer"),
        Fault(turn, "after", process="control"),
        Fault(turn, "after", process="command"),
        Fault(of_type(appends, "StepTrained"), "before", process="sandbox"),
        Fault(of_type(appends, "VersionAttested", nth=1), "before", process="control"),
    ]


def spread(faults: Sequence[Fault], runs: int, cost_s: dict[str, float]) -> list[list[Fault]]:
    """Faults for a number of runs, so that each takes about as long.

    Args:
        faults: to be spread.
        runs: how many.
        cost_s: about what the death of each kind of process costs.
    """
    sums = [0.0] * runs
    plans: list[list[Fault]] = [[] for _ in range(runs)]
    for fault in sorted(faults, key=lambda fault: -cost_s[fault.victim]):
        least = min(range(runs), key=lambda index: sums[index])
        plans[least].append(fault)
        sums[least] += cost_s[fault.victim]
    return plans


def apart(faults: Sequence[Fault], together: int) -> list[list[Fault]]:
    """Faults for several runs, so many in each, far apart in the ledger: one is over when the next one comes."""
    runs = -(-len(faults) // together)
    return [list(faults[start::runs]) for start in range(runs)]
