"""What a run has used, counted up, and which of its limits that reaches."""

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass

from stepwell.contracts.run import Usage
from stepwell.events import TurnRecorded, UsageRecorded, VerdictReached
from stepwell.events.base import Event


class UsageCount:
    """A sum that begins where the last record of it ended.

    Args:
        last: newest `UsageRecorded` of the run, None at its start.
    """

    def __init__(self, last: UsageRecorded | None) -> None:
        self._hours = last.hours if last else 0.0
        self._gpu_hours = last.gpu_hours if last else 0.0
        self._tokens = last.generated_tokens if last else 0
        self._minutes = last.sandbox_minutes if last else 0.0

    def pass_time(self, seconds: float, accelerators: int) -> None:
        """Time went by in which so many accelerators were there."""
        self._hours += seconds / 3600
        self._gpu_hours += accelerators * seconds / 3600

    def see(self, events: Iterable[Event]) -> None:
        """Turns and verdicts were recorded."""
        for event in events:
            if isinstance(event, TurnRecorded):
                self._tokens += event.generated_tokens
                self._minutes += (event.generate_s + event.tool_s) / 60
            elif isinstance(event, VerdictReached):
                self._minutes += event.duration_s / 60

    @property
    def usage(self) -> Usage:
        """Up to now."""
        return Usage(
            hours=self._hours,
            gpu_hours=self._gpu_hours,
            generated_tokens=self._tokens,
            sandbox_minutes=self._minutes,
        )


@dataclass(frozen=True, slots=True)
class Reached:
    """A limit that was reached."""

    limit: str
    """Its name."""
    cause: str
    """The figures, in words."""


@dataclass(frozen=True, slots=True)
class _Measure:
    """How one of the limits is measured and told."""

    of: Callable[[Usage], float]
    reached: str
    """Sentence, with a place for the amount and one for the limit."""
    unit: str


MEASURES: Mapping[str, _Measure] = {
    "hours": _Measure(lambda usage: usage.hours, "ran for {} hours; the limit is {}", "hours"),
    "gpu_hours": _Measure(lambda usage: usage.gpu_hours, "used {} GPU-hours; the limit is {}", "GPU-hours"),
    "generated_tokens": _Measure(
        lambda usage: usage.generated_tokens, "generated {} tokens; the limit is {}", "tokens"
    ),
    "sandbox_minutes": _Measure(
        lambda usage: usage.sandbox_minutes, "held sandboxes for {} minutes; the limit is {}", "sandbox-minutes"
    ),
}
"""The limits that are held by usage, by name; the limit of steps is the workflow's own."""


def reached(usage: Usage, limits: Mapping[str, float | None], held: Collection[str]) -> Reached | None:
    """The first limit that usage reaches and that does not hold the run already."""
    for name, measure in MEASURES.items():
        limit, amount = limits.get(name), measure.of(usage)
        if limit is not None and amount >= limit and name not in held:
            return Reached(name, measure.reached.format(amount_words(amount), amount_words(limit)))
    return None


def usage_words(usage: Usage, limits: Mapping[str, float | None]) -> str:
    """`0.52 of 4 hours, 1.04 GPU-hours, 12,000 of 100,000 tokens, 3.1 sandbox-minutes`."""
    parts: list[str] = []
    for name, measure in MEASURES.items():
        limit = limits.get(name)
        bound = "" if limit is None else f" of {amount_words(limit)}"
        parts.append(f"{amount_words(measure.of(usage))}{bound} {measure.unit}")
    return ", ".join(parts)


def amount_words(amount: float) -> str:
    """Whole numbers whole, large ones with commas, small ones to three digits."""
    if amount == int(amount):
        return f"{int(amount):,}"
    return f"{amount:,.1f}" if amount >= 100 else f"{amount:.3g}"
