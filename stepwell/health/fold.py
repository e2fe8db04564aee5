"""The fold of `health/<run>`: which stalls there are and were, and what the run has used."""

from dataclasses import dataclass, replace

from stepwell.contracts.run import Stall
from stepwell.events import StallBegan, StallEnded, UsageRecorded
from stepwell.events.base import Event


@dataclass(frozen=True, slots=True)
class RecordedStall:
    """A stall, as the ledger has it."""

    number: int
    """Stalls of the run before it."""
    what: str
    """`trainer`, `engine`, `sandbox`, or an activity's name."""
    cause: str
    """In words."""
    began_s: float
    """When it was recorded, in seconds since the epoch."""
    ended_s: float | None = None
    """When it was over; None: it lasts."""

    @property
    def stall(self) -> Stall:
        """As the run's workflow is told."""
        return Stall(what=self.what, cause=self.cause)


class Health:
    """Takes up the events of one run's health stream, in order; events of other types change nothing."""

    def __init__(self) -> None:
        self.stalls: list[RecordedStall] = []
        self.usage: UsageRecorded | None = None
        self.usage_s: float | None = None
        """When the newest usage was recorded, in seconds since the epoch."""

    @property
    def standing(self) -> list[RecordedStall]:
        """Stalls that last, oldest first."""
        return [stall for stall in self.stalls if stall.ended_s is None]

    def see(self, event: Event, time_s: float) -> None:
        """Takes up an event that was recorded at a time."""
        match event:
            case StallBegan():
                self.stalls.append(RecordedStall(event.number, event.what, event.cause, time_s))
            case StallEnded():
                self.stalls = [
                    replace(stall, ended_s=time_s) if stall.number == event.number else stall for stall in self.stalls
                ]
            case UsageRecorded():
                self.usage, self.usage_s = event, time_s
            case _:
                pass
