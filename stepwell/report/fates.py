"""What became of the prompts."""

from dataclasses import dataclass, field

from stepwell.events import GroupClosed
from stepwell.events.group_closed import Fate


@dataclass
class FateCount:
    """Prompts that were dispatched, and their fates."""

    dispatched: int = 0
    """Prompts handed to groups, replacements among them."""
    replaced: int = 0
    """Of them, those that stand in for a failed one."""
    by_fate: dict[Fate, int] = field(default_factory=lambda: dict[Fate, int]())
    """Groups that closed, by fate."""
    causes: list[str] = field(default_factory=lambda: list[str]())
    """Why, for the fates that are not the good ones."""

    @property
    def closed(self) -> int:
        """Sum of the fates."""
        return sum(self.by_fate.values())

    @property
    def open(self) -> int:
        """Dispatched and without a fate yet."""
        return self.dispatched - self.closed

    def close(self, event: GroupClosed, place: str) -> None:
        """A group closed."""
        self.by_fate[event.fate] = self.by_fate.get(event.fate, 0) + 1
        if event.fate not in (Fate.TRAINED, Fate.VALIDATED):
            self.causes.append(f"{place}: {event.fate}: {event.cause or 'no cause is recorded'}")

    def words(self) -> str:
        """`34 dispatched (2 in place of failed ones) = 1 quarantined + 1 skipped + 32 trained`."""
        told = " + ".join(f"{count:,} {fate}" for fate, count in sorted(self.by_fate.items())) or "0"
        line = f"{self.dispatched:,} dispatched"
        line += f" ({self.replaced:,} in place of failed ones)" if self.replaced else ""
        return f"{line} = {told}" + (f" + {self.open:,} open" if self.open else "")
