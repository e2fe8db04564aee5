"""What a trace comes to."""

from collections import Counter
from collections.abc import Sequence
from datetime import datetime
from typing import Literal, get_args

from pydantic import BaseModel, ConfigDict

from stepwell.ptb.traces.event import LimitKind, TraceEvent

KINDS: tuple[LimitKind, ...] = get_args(LimitKind)


class TraceSummary(BaseModel):
    """Counts over a trace."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    events: dict[str, int]
    """By kind."""
    raw: int
    """Lines that could not be read; they stand in the trace as they are."""
    prompts: int
    """How often the program began to work on a prompt."""
    tools: dict[str, int]
    """Calls by tool."""
    models: tuple[str, ...]
    """That answered, as the trace names them, in the order of their first words."""
    tokens_in: int | None
    """Read by models, caches included; None if the trace tells no usage."""
    tokens_cached: int | None
    """Of these, out of caches."""
    tokens_out: int | None
    """Written by models."""
    cost_usd: float | None
    """As the program reckons it; None if it does not."""
    limits: dict[LimitKind, int]
    """Times that a limit was met, by kind, those after which work went on included."""
    errors: int
    """Others."""
    ended: Literal["done", "failed", "cut off"]
    """How the last prompt ended: `cut off` if the trace does not say that it did."""
    ended_by: LimitKind | None
    """The limit that ended it, if one did."""
    first: datetime | None
    """Time of the first event that has one."""
    last: datetime | None
    """Of the last."""

    @property
    def tokens(self) -> int | None:
        """Read and written, in all."""
        if self.tokens_in is None and self.tokens_out is None:
            return None
        return (self.tokens_in or 0) + (self.tokens_out or 0)


def summarise(events: Sequence[TraceEvent]) -> TraceSummary:
    """Counts the events of a trace, which are in its order."""
    kinds = Counter(event.kind for event in events)
    usages = [event for event in events if event.kind == "usage"]
    costs = [event.cost_usd for event in usages if event.cost_usd is not None]
    # A limit that ended a prompt is often told twice: as an error, and by the end.
    met: list[LimitKind] = [event.limit for event in events if event.limit is not None and event.kind != "end"]
    told = Counter(met)
    for event in events:
        if event.kind == "end" and event.limit is not None and not told[event.limit]:
            told[event.limit] += 1
    times = [event.time for event in events if event.time is not None]
    ended, ended_by = _end(events)
    return TraceSummary(
        events=dict(sorted(kinds.items())),
        raw=kinds["raw"],
        prompts=kinds["start"],
        tools=dict(sorted(Counter(event.tool or "" for event in events if event.kind == "tool_call").items())),
        models=tuple(dict.fromkeys(event.model for event in events if event.model)),
        tokens_in=_sum([event.tokens_in for event in usages]),
        tokens_cached=_sum([event.tokens_cached for event in usages]),
        tokens_out=_sum([event.tokens_out for event in usages]),
        cost_usd=sum(costs) if costs else None,
        limits={kind: told[kind] for kind in KINDS if told[kind]},
        errors=kinds["error"],
        ended=ended,
        ended_by=ended_by,
        first=times[0] if times else None,
        last=times[-1] if times else None,
    )


def _end(events: Sequence[TraceEvent]) -> tuple[Literal["done", "failed", "cut off"], LimitKind | None]:
    for event in reversed(events):
        if event.kind == "end":
            return ("failed" if event.failed else "done"), event.limit
        if event.kind in ("start", "message", "thinking", "tool_call", "tool_result"):
            break
    return "cut off", None


def _sum(counts: Sequence[int | None]) -> int | None:
    told = [count for count in counts if count is not None]
    return sum(told) if told else None
