"""What holds a run up and what it has used, told from what operators asked and what the watcher saw."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from stepwell.contracts.operators import OperatorFold
from stepwell.contracts.run import Usage
from stepwell.events import HoldRaised, OperatorActed
from stepwell.events.base import Event
from stepwell.health.fold import Health
from stepwell.operators.fold import NOTES, applied, with_hold


@dataclass(frozen=True, slots=True)
class PauseInForce:
    """A pause, and whose it is."""

    how: str
    """`now`, `drain` or `step`."""
    who: str
    """Who asked for it."""
    why: str
    """The reason given."""
    since_s: float
    """When, in seconds since the epoch."""


class Standing:
    """Takes up the events of `operator/<run>` and `health/<run>`, each stream in its order."""

    def __init__(self) -> None:
        self.acts: list[tuple[float, OperatorActed]] = []
        """What operators asked, with when, in seconds since the epoch."""
        self.raised: list[tuple[float, HoldRaised]] = []
        """What the run asked operators, with when."""
        self.operators = OperatorFold()
        """What is in force of it."""
        self.health = Health()
        """Stalls and usage."""

    @property
    def pause(self) -> PauseInForce | None:
        """The operator's pause that is in force; a limit that was reached is a hold."""
        if self.operators.pause is None:
            return None
        time_s, act = next(each for each in reversed(self.acts) if each[1].action in ("pause", "drain"))
        return PauseInForce(self.operators.pause, act.who, act.reason, time_s)

    @property
    def usage(self) -> Usage | None:
        """As last recorded, at most about a minute ago."""
        last = self.health.usage
        if last is None:
            return None
        return Usage(
            hours=last.hours,
            gpu_hours=last.gpu_hours,
            generated_tokens=last.generated_tokens,
            sandbox_minutes=last.sandbox_minutes,
        )

    def limits(self, recipe: Mapping[str, Any]) -> dict[str, float | None]:
        """The limits in force: the recipe's, and those that operators moved."""
        return {**recipe.get("limits", {}), **self.operators.limits}

    def see(self, event: Event, time_s: float) -> None:
        """Takes up an event; other types change nothing."""
        match event:
            case OperatorActed():
                self.acts.append((time_s, event))
                note = NOTES[event.action](reason=event.reason, **event.arguments)
                self.operators = applied(self.operators, event.action, note)
            case HoldRaised():
                self.raised.append((time_s, event))
                self.operators = with_hold(self.operators, event.hold, event.cause)
            case _:
                self.health.see(event, time_s)


def act_words(act: OperatorActed) -> str:
    """What was asked, in words: `pause (now)`, `limit hours = 4`, `skip prompt 3 of step 7`."""
    given = act.arguments
    match act.action:
        case "pause" | "stop":
            return f"{act.action} ({given.get('at')})"
        case "skip":
            return f"skip prompt {given.get('prompt')} of step {given.get('step')}"
        case "limit":
            return f"limit {given.get('limit')} = {_value(given.get('value'))}"
        case "approve" | "reject":
            return f"{act.action} {given.get('gate')}"
        case "set":
            return f"set {given.get('key')} = {_value(given.get('value'))}"
        case _:
            return act.action


def _value(value: object) -> str:
    if value is None:
        return "none"
    return f"{value:,.12g}" if isinstance(value, int | float) else str(value)
