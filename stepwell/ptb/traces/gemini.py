"""Gemini CLI: `--output-format stream-json`.

`init`, then messages (an answer comes in pieces, joined here), calls and results of tools, errors, and a `result` with
the usage of the whole prompt; there is no usage before it. The program counts what a model wrote without its thinking,
which is in the total only.
"""

from collections.abc import Sequence
from datetime import datetime

from stepwell.ptb.traces.event import TraceEvent
from stepwell.ptb.traces.limits import LimitRule, limit_of
from stepwell.ptb.traces.objects import JsonObject, as_arguments, object_of, part, string, whole


class GeminiReader:
    """Reads line by line."""

    def __init__(self, rules: Sequence[LimitRule]) -> None:
        self._rules = rules
        self._pieces: list[str] = []
        self._since: datetime | None = None

    def read(self, text: str) -> list[TraceEvent] | None:
        """The events of a line; None if it is none of this format."""
        line = object_of(text)
        if line is None:
            return None
        kind, time = string(line, "type"), _time(line)
        if kind == "message" and string(line, "role") == "assistant" and line.get("delta") is True:
            self._since = self._since or time
            self._pieces.append(string(line, "content"))
            return []
        found = self._of(kind, line, text)
        if found is None:
            return None
        return self.close() + [each.model_copy(update={"time": time}) for each in found]

    def close(self) -> list[TraceEvent]:
        """The answer that was coming in pieces."""
        if not self._pieces:
            return []
        message = TraceEvent(kind="message", role="agent", text="".join(self._pieces), time=self._since)
        self._pieces, self._since = [], None
        return [message]

    def _of(self, kind: str, line: JsonObject, text: str) -> list[TraceEvent] | None:
        match kind:
            case "init":
                return [TraceEvent(kind="start", text=string(line, "session_id"), model=string(line, "model") or None)]
            case "message":
                role = "agent" if string(line, "role") == "assistant" else "user"
                return [TraceEvent(kind="message", role=role, text=string(line, "content"))]
            case "tool_use":
                return [
                    TraceEvent(
                        kind="tool_call",
                        tool=string(line, "tool_name"),
                        call=string(line, "tool_id") or None,
                        arguments=as_arguments(line.get("parameters")),
                    )
                ]
            case "tool_result":
                failed = string(line, "status") == "error"
                said = string(line, "output") or string(part(line, "error"), "message")
                return [TraceEvent(kind="tool_result", call=string(line, "tool_id") or None, text=said, failed=failed)]
            case "error":
                said = string(line, "message")
                limit = limit_of(said, self._rules)
                return [TraceEvent(kind="limit" if limit else "error", text=said, limit=limit)]
            case "result":
                return self._result(line)
            case "":
                return None
            case _:
                return [TraceEvent(kind="note", text=text)]

    def _result(self, line: JsonObject) -> list[TraceEvent]:
        failed = string(line, "status") != "success"
        error = part(line, "error")
        said = ": ".join(each for each in (string(error, "type"), string(error, "message")) if each)
        found: list[TraceEvent] = []
        if stats := part(line, "stats"):
            reads = whole(stats, "input_tokens") or 0
            writes = max(whole(stats, "output_tokens") or 0, (whole(stats, "total_tokens") or 0) - reads)
            found.append(
                TraceEvent(kind="usage", tokens_in=reads, tokens_cached=whole(stats, "cached") or 0, tokens_out=writes)
            )
        limit = limit_of(said, self._rules) if failed else None
        return [*found, TraceEvent(kind="end", failed=failed, text=said, limit=limit)]


def _time(line: JsonObject) -> datetime | None:
    try:
        time = datetime.fromisoformat(string(line, "timestamp"))
    except ValueError:
        return None
    return time if time.tzinfo else None
