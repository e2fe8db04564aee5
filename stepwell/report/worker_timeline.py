"""Which worker had which rollout under way when: a fold of rollouts' streams into a lane a worker.

An attempt begins when it is opened, and ends with the rollout, with its failure, or with its last recorded turn before
another attempt took the rollout up. Grading comes after a rollout's end and is not part of it.
"""

from collections.abc import Collection
from dataclasses import dataclass, field

from stepwell.events import AttemptOpened, RolloutEnded, RolloutFailed, TurnRecorded
from stepwell.events.base import Event
from stepwell.report.rollouts import Recovery


@dataclass
class Lane:
    """One worker's rollouts."""

    worker: str
    """Host and process."""
    spans: list[tuple[float, float]] = field(default_factory=lambda: list[tuple[float, float]]())
    """From and to of each attempt, in seconds since the epoch."""
    failed_s: list[float] = field(default_factory=lambda: list[float]())
    """When rollouts of it failed."""
    lost_s: list[float] = field(default_factory=lambda: list[float]())
    """When rollouts that another attempt had to take up were last heard of."""

    def under_way(self, began_s: float, wall_s: float, bins: int) -> list[float]:
        """Mean number of rollouts under way in each of equal stretches of `[began_s, began_s + wall_s]`."""
        width_s = wall_s / bins
        seconds = [0.0] * bins
        for start_s, end_s in self.spans:
            first = max(0, int((start_s - began_s) / width_s))
            for number in range(first, min(bins, int((end_s - began_s) / width_s) + 1)):
                low_s = began_s + number * width_s
                seconds[number] += max(0.0, min(end_s, low_s + width_s) - max(start_s, low_s))
        return [each / width_s for each in seconds]


@dataclass(slots=True)
class _Attempt:
    """One that is under way."""

    worker: str
    began_s: float
    last_s: float


class WorkerTimeline:
    """Takes up the events of rollouts."""

    def __init__(self) -> None:
        self._lanes: dict[str, Lane] = {}
        self._open: dict[str, _Attempt] = {}
        self._cut: dict[tuple[str, float], tuple[str, float]] = {}
        self._over: set[str] = set()

    def see(self, stream: str, event: Event, time_s: float) -> None:
        """Takes up an event; other types change nothing."""
        match event:
            case AttemptOpened():
                self._attempt(stream, event, time_s)
            case TurnRecorded() if stream in self._open:
                self._open[stream].last_s = time_s
            case RolloutEnded() | RolloutFailed():
                attempt = self._open.pop(stream, None)
                self._over.add(stream)
                if attempt is not None:
                    lane = self._lanes[attempt.worker]
                    lane.spans.append((attempt.began_s, time_s))
                    if isinstance(event, RolloutFailed):
                        lane.failed_s.append(time_s)
            case _:
                pass

    def lane(self, worker: str) -> Lane:
        """A worker's lane as far as its attempts are over, without what was lost; a new one of an unknown worker."""
        return self._lanes.setdefault(worker, Lane(worker))

    def lanes(self, now_s: float, recoveries: Collection[Recovery]) -> list[Lane]:
        """A lane a worker, in the order in which they began.

        Args:
            now_s: Where attempts end that are under way.
            recoveries: What was lost; other attempts after the first follow a pause.
        """
        lanes = {
            name: Lane(name, list(lane.spans), list(lane.failed_s), list(lane.lost_s))
            for name, lane in self._lanes.items()
        }
        for attempt in self._open.values():
            lanes[attempt.worker].spans.append((attempt.began_s, max(now_s, attempt.began_s)))
        for recovery in recoveries:
            cut = self._cut.get((recovery.stream, recovery.time_s))
            if cut is not None:
                lanes[cut[0]].lost_s.append(cut[1])
        return list(lanes.values())

    def _attempt(self, stream: str, event: AttemptOpened, time_s: float) -> None:
        if stream in self._over:
            return  # taken up to be graded
        before = self._open.get(stream)
        if before is not None:
            self._lanes[before.worker].spans.append((before.began_s, before.last_s))
            self._cut[stream, time_s] = before.worker, before.last_s
        self.lane(event.worker)
        self._open[stream] = _Attempt(event.worker, time_s, time_s)
