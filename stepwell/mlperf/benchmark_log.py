"""What a benchmark log says, before it is lines: settings, steps, evaluations, and where it began and stopped.

`deriving` makes it out of a ledger's events; `lines` makes lines of it. Each thing knows the event that shows it.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

Value = str | int | float | bool | None
"""Of a setting."""


class NotLoggable(ValueError):
    """A run of which no benchmark log can be made; the message says what is missing, and what to do."""


class Place(NamedTuple):
    """An event, and when it was appended."""

    stream: str
    """Its stream."""
    seq: int
    """Its place there."""
    time_ms: int
    """The database's time, in whole milliseconds since the epoch, rounded down."""


@dataclass(frozen=True)
class Setting:
    """One key that is logged once."""

    key: str
    """As the rules name it."""
    value: Value
    """In JSON."""
    said_by: str
    """Field of the event, or key of the submission file."""
    place: Place | None
    """The event; None for what the submitter declares."""


@dataclass(frozen=True)
class Stats:
    """Numbers that are logged for the reader, and checked by nobody."""

    numbers: Mapping[str, float]
    """By name; names that end in `_s` or `time` are seconds."""
    said_by: str
    """Fields of the event."""
    place: Place
    """The event."""


@dataclass(frozen=True)
class Step:
    """A weight version that training made."""

    version: int
    """From 1."""
    trained: Place
    """Its weight update."""
    stats: tuple[Stats, ...] = ()
    """What is known of the step."""


@dataclass(frozen=True)
class Evaluation:
    """A validation of one version on the set that decides."""

    version: int
    """From 0."""
    opened: Place
    """When it began."""
    recorded: Place
    """When the run learned its result."""
    pass_k: float
    """Share of tasks that any of k samples passes: the benchmark's accuracy."""
    stats: tuple[Stats, ...] = ()
    """What else is known of it."""


class Status(StrEnum):
    """How a run ended, as the rules name it."""

    SUCCESS = "success"
    """The target was passed."""
    ABORTED = "aborted"
    """It was not."""


@dataclass(frozen=True)
class Stop:
    """Where the clock stops."""

    status: Status
    """How."""
    version: int
    """The version that passed, or the last one."""
    place: Place
    """The event whose time is the stop time."""


@dataclass(frozen=True)
class BenchmarkLog:
    """All that a log says."""

    run: str
    """Name of the run."""
    created: Place
    """Where initialisation begins."""
    began: Place
    """Where it ends and the clock starts: the first event that touches the data."""
    settings: tuple[Setting, ...]
    """In the order of the log."""
    samples_per_step: int
    """Rollouts that a step trains."""
    steps: tuple[Step, ...]
    """Up to the version that stopped the run, in order."""
    evaluations: tuple[Evaluation, ...]
    """Up to that version, in order of version."""
    stop: Stop
    """Where it stopped."""
    is_offline: bool
    """Whether versions are evaluated after training, so that the clock stops at a weight update."""

    @property
    def minutes(self) -> float:
        """The score: from start to stop."""
        return (self.stop.place.time_ms - self.began.time_ms) / 60_000

    @property
    def samples(self) -> int:
        """Samples to the version that stopped it."""
        return self.stop.version * self.samples_per_step
