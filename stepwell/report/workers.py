"""What each worker did last, told from the events that it appended."""

from dataclasses import dataclass

from stepwell.events import (
    AttemptOpened,
    EngineStarted,
    GroupClosed,
    RolloutEnded,
    RolloutGraded,
    StallBegan,
    StallEnded,
    StepAdmitted,
    StepCompleted,
    StepDispatched,
    StepTrained,
    TurnRecorded,
    UsageRecorded,
    ValidationClosed,
    ValidationOpened,
    VerdictReached,
    VersionAttested,
    VersionCreated,
)
from stepwell.events.base import Event


@dataclass(frozen=True, slots=True)
class WorkerPicture:
    """One worker, by the last event that tells of it; put in words only when it is looked at."""

    actor: str
    """`<kind>:<id>`."""
    time_s: float
    """When it did it, in seconds since the epoch."""
    stream: str
    """Where it is recorded."""
    event: Event
    """What is recorded."""
    generated: bool
    """Whether it is the engine of a turn that another worker recorded."""

    @property
    def last(self) -> str:
        """What it did last, in words."""
        return f"generated for {place_of(self.stream)}" if self.generated else _words(self.stream, self.event)


class Workers:
    """Every worker that was heard of."""

    def __init__(self) -> None:
        self._by_actor: dict[str, WorkerPicture] = {}

    def see(self, actor: str, stream: str, event: Event, time_s: float) -> None:
        """Takes up an event; a turn tells of the engine that generated it too."""
        self._heard(WorkerPicture(actor, time_s, stream, event, generated=False))
        if isinstance(event, TurnRecorded):
            self._heard(WorkerPicture(f"engine:{event.engine}", time_s, stream, event, generated=True))

    def newest(self, limit: int) -> list[WorkerPicture]:
        """Those heard of last, at most `limit`, by kind and name."""
        latest = sorted(self._by_actor.values(), key=lambda worker: worker.time_s, reverse=True)[:limit]
        return sorted(latest, key=lambda worker: worker.actor)

    def _heard(self, heard: WorkerPicture) -> None:
        known = self._by_actor.get(heard.actor)
        if known is None or known.time_s <= heard.time_s:
            self._by_actor[heard.actor] = heard


def place_of(stream: str) -> str:
    """A rollout's or a group's place in words: `step 7 · prompt 2 · sample 1`."""
    parts = stream.split("/")
    if parts[0] not in ("rollout", "prompt", "validation") or len(parts) < 3:
        return stream
    scope = parts[2]
    where = f"step {scope}" if scope.isdigit() else scope.replace("-", " · ", 1).replace("v", "version ", 1)
    return " · ".join([where, *(f"{name} {part}" for name, part in zip(("prompt", "sample"), parts[3:], strict=False))])


def _words(stream: str, event: Event) -> str:
    match event:
        case StepDispatched():
            return f"dispatched step {event.step}"
        case StepAdmitted():
            return f"fixed the batch of step {event.step}"
        case StepCompleted():
            return f"completed step {event.step}"
        case StepTrained():
            return f"trained step {event.step} in {event.duration_s:.1f} s"
        case VersionCreated():
            return f"made version 0 in {event.duration_s:.0f} s"
        case VersionAttested():
            return f"loaded version {event.version} in {event.load_s:.1f} s"
        case EngineStarted():
            return f"started ({event.backend})"
        case ValidationOpened() | ValidationClosed():
            verb = "opened" if isinstance(event, ValidationOpened) else "closed"
            return f"{verb} the validation of {place_of(stream)}"
        case GroupClosed():
            return f"closed {place_of(stream)}: {event.fate}"
        case AttemptOpened():
            return f"took up {place_of(stream)}"
        case TurnRecorded():
            return f"turn {event.turn} of {place_of(stream)}"
        case RolloutEnded():
            return f"ended {place_of(stream)}: {event.reason}"
        case RolloutGraded():
            return f"graded {place_of(stream)}: {event.score:g}"
        case VerdictReached():
            return f"ran hidden tests in {event.duration_s:.1f} s"
        case StallBegan() | StallEnded():
            return "noticed a stall" if isinstance(event, StallBegan) else "saw a stall end"
        case UsageRecorded():
            return "counted what was used"
        case _:
            return event.type
