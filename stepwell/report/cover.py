"""When something was under way: unions of time intervals, and where the wall clock of a run went.

An event is appended when what it tells of has ended, so an activity of `d` seconds that is recorded at `t` covers
`[t - d, t]`. What no activity covers is overhead.
"""

from bisect import bisect_left, bisect_right
from dataclasses import dataclass, field
from enum import StrEnum
from operator import sub


class Activity(StrEnum):
    """What a run's wall clock is spent on."""

    GENERATION = "generation"
    """An engine generates."""
    TOOLS = "tools"
    """An action runs in a sandbox."""
    GRADING = "grading"
    """Hidden tests run."""
    TRAINING = "training"
    """The trainer takes a step."""
    LOADING = "loading"
    """An engine loads a version and attests it."""


class Cover:
    """A union of intervals, kept as disjoint ones in order. Adding at the end, the usual case, is cheap."""

    def __init__(self) -> None:
        self._starts: list[float] = []
        self._ends: list[float] = []

    def add(self, start_s: float, end_s: float) -> None:
        """Covers `[start_s, end_s]`; nothing if it is empty."""
        if end_s <= start_s:
            return
        first = bisect_left(self._ends, start_s)
        after = bisect_right(self._starts, end_s)
        if first < after:
            start_s = min(start_s, self._starts[first])
            end_s = max(end_s, self._ends[after - 1])
        self._starts[first:after] = [start_s]
        self._ends[first:after] = [end_s]

    def within(self, low_s: float, high_s: float) -> list[tuple[float, float]]:
        """The covered intervals, cut to `[low_s, high_s]`, in order."""
        cut = ((max(start, low_s), min(end, high_s)) for start, end in zip(self._starts, self._ends, strict=True))
        return [(start, end) for start, end in cut if end > start]

    def seconds(self, low_s: float, high_s: float) -> float:
        """Seconds covered within `[low_s, high_s]`."""
        first, after = bisect_left(self._ends, low_s), bisect_right(self._starts, high_s)
        whole = sum(map(sub, self._ends[first:after], self._starts[first:after]))
        if first < after:  # only the outer two can reach over the edges
            whole -= max(0.0, low_s - self._starts[first]) + max(0.0, self._ends[after - 1] - high_s)
        return max(0.0, whole)


@dataclass(frozen=True)
class TimeSplit:
    """Where the wall clock of the reinforcement part went. Activities overlap, so their sum may exceed the wall."""

    wall_s: float
    """From the first dispatched step or opened validation to the run's end, or to its newest event."""
    busy_s: float
    """Seconds in which at least one activity was under way."""
    by_activity_s: dict[Activity, float]
    """Seconds in which each was."""
    longest_idle_s: float
    """Longest stretch in which none was: a pause, a stop and start, a stall."""

    @property
    def overhead_s(self) -> float:
        """Seconds in which nothing was under way."""
        return max(0.0, self.wall_s - self.busy_s)

    @property
    def overhead(self) -> float:
        """Share of the wall clock, 0 to 1; 0 of no time."""
        return self.overhead_s / self.wall_s if self.wall_s > 0 else 0.0


@dataclass
class Activities:
    """Covers of all activities."""

    covers: dict[Activity, Cover] = field(default_factory=lambda: {activity: Cover() for activity in Activity})
    """One an activity."""
    anything: Cover = field(default_factory=Cover)
    """Their union."""

    def ended(self, activity: Activity, end_s: float, duration_s: float) -> None:
        """An activity of a duration ended at a time."""
        self.covers[activity].add(end_s - duration_s, end_s)
        self.anything.add(end_s - duration_s, end_s)

    def split(self, low_s: float, high_s: float) -> TimeSplit:
        """Where the time between two moments went."""
        busy = self.anything.within(low_s, high_s)
        edges = [low_s, *(edge for interval in busy for edge in interval), high_s]
        gaps = [end - start for start, end in zip(edges[::2], edges[1::2], strict=True)]
        return TimeSplit(
            wall_s=max(0.0, high_s - low_s),
            busy_s=sum(end - start for start, end in busy),
            by_activity_s={activity: cover.seconds(low_s, high_s) for activity, cover in self.covers.items()},
            longest_idle_s=max([0.0, *gaps]),
        )
