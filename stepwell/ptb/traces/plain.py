"""Any program: each line that it prints is something that it says, and a line that is an event of the one schema is it.

So a scripted agent can tell of its calls and usage: `{"kind": "usage", "tokens_in": 900, "tokens_out": 40}`.
"""

from collections.abc import Sequence

from pydantic import ValidationError

from stepwell.ptb.traces.event import TraceEvent
from stepwell.ptb.traces.limits import LimitRule
from stepwell.ptb.traces.objects import object_of


class PlainReader:
    """Reads line by line."""

    def __init__(self, rules: Sequence[LimitRule]) -> None:
        del rules  # What a program means by a line, only its author knows.

    def read(self, text: str) -> list[TraceEvent] | None:
        """The events of a line."""
        line = object_of(text)
        if line is not None and isinstance(line.get("kind"), str):
            try:
                return [TraceEvent.model_validate_json(text)]
            except ValidationError:
                return None
        return [TraceEvent(kind="message", role="agent", text=text)]

    def close(self) -> list[TraceEvent]:
        """What was kept back."""
        return []
