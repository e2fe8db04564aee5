"""One event of a trace."""

from collections.abc import Iterable
from datetime import datetime
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, JsonValue, ValidationError

TraceFormat = Literal["claude", "codex", "gemini", "opencode", "lines"]
"""What a program prints; `lines` is plain text, or events of this schema as JSON lines."""

TraceKind = Literal[
    "start", "message", "thinking", "tool_call", "tool_result", "usage", "limit", "error", "end", "note", "raw"
]
"""`start`: the program began to work on a prompt; `end`: it is done with it; `limit`: it met a limit of its provider or
its own; `note`: something else that it says, as it says it; `raw`: a line that is not in its format."""

LimitKind = Literal["rate", "credit", "tokens", "turns", "overload", "login"]
"""`rate`: too much at once, and waiting helps; `credit`: money or an allowance is used up; `tokens`: a context or an
answer is too long; `turns`: the program's own number of turns; `overload`: the provider cannot serve anybody; `login`:
the key is not accepted."""

Count = Annotated[int, Field(ge=0)]


class TraceEvent(BaseModel):
    """Something that an agent said, did or met."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    kind: TraceKind
    line: Count = 0
    """Of the trace, from 1: where it stands as it was said."""
    time: datetime | None = None
    """When; None if neither the program nor the line says."""
    text: str = ""
    """What was said, what a tool gave back, what went wrong."""
    role: Literal["agent", "user"] | None = None
    """Who said a message."""
    tool: str | None = None
    """Name of the tool that was called."""
    call: str | None = None
    """Ties a result to its call."""
    arguments: dict[str, JsonValue] | None = None
    """Of a call."""
    failed: bool | None = None
    """Of a tool's result or of an end: whether it failed."""
    model: str | None = None
    """As the provider calls it."""
    tokens_in: Count | None = None
    """Read by the model since the usage before, those out of a cache included. Usages add up to the whole."""
    tokens_cached: Count | None = None
    """Of these, those read out of a cache."""
    tokens_out: Count | None = None
    """Written by the model, its thinking included, likewise."""
    cost_usd: Annotated[float, Field(ge=0, allow_inf_nan=False)] | None = None
    """As the program reckons it, likewise."""
    limit: LimitKind | None = None
    """Of a limit, and of an error or an end that one caused."""


def dump_events(events: Iterable[TraceEvent]) -> bytes:
    """JSON lines, fields that say nothing left out."""
    return b"".join(event.model_dump_json(exclude_none=True).encode() + b"\n" for event in events)


def load_events(data: bytes) -> tuple[TraceEvent, ...]:
    """What `dump_events` wrote.

    Raises:
        ValueError: a line is no event.
    """
    found: list[TraceEvent] = []
    for number, line in enumerate(data.splitlines(), 1):
        try:
            found.append(TraceEvent.model_validate_json(line))
        except ValidationError as error:
            said = error.errors(include_url=False)[0]
            raise ValueError(f"line {number} is no event of a trace: {said['loc']}: {said['msg']}") from error
    return tuple(found)
