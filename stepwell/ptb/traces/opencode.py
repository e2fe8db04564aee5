"""OpenCode: `opencode run --format json`.

Each model call is a step: `step_start`, its texts, its tools once they are done, `step_finish` with its usage and cost.
A step that ends for another reason than tool calls ends the prompt.
"""

from collections.abc import Sequence
from datetime import UTC, datetime

from stepwell.ptb.traces.event import TraceEvent
from stepwell.ptb.traces.limits import LimitRule, limit_of, limit_of_status
from stepwell.ptb.traces.objects import JsonObject, as_arguments, money, object_of, part, string, whole


class OpenCodeReader:
    """Reads line by line."""

    def __init__(self, rules: Sequence[LimitRule]) -> None:
        self._rules = rules
        self._fresh = True

    def read(self, text: str) -> list[TraceEvent] | None:
        """The events of a line; None if it is none of this format."""
        line = object_of(text)
        if line is None:
            return None
        found = self._of(string(line, "type"), line, text)
        if found is None:
            return None
        milliseconds = whole(line, "timestamp")
        time = None if milliseconds is None else datetime.fromtimestamp(min(milliseconds, 10**14) / 1000, UTC)
        return [each.model_copy(update={"time": time}) for each in found]

    def close(self) -> list[TraceEvent]:
        """What was kept back."""
        return []

    def _of(self, kind: str, line: JsonObject, text: str) -> list[TraceEvent] | None:
        its = part(line, "part")
        match kind:
            case "step_start":
                fresh, self._fresh = self._fresh, False
                return [TraceEvent(kind="start", text=string(line, "sessionID"))] if fresh else []
            case "text":
                return [TraceEvent(kind="message", role="agent", text=string(its, "text"))]
            case "reasoning":
                return [TraceEvent(kind="thinking", text=string(its, "text"))]
            case "tool_use":
                return _tool(its)
            case "step_finish":
                return self._finish(its)
            case "error":
                return self._error(part(line, "error"))
            case "":
                return None
            case _:
                return [TraceEvent(kind="note", text=text)]

    def _finish(self, its: JsonObject) -> list[TraceEvent]:
        tokens = part(its, "tokens")
        cache = part(tokens, "cache")
        cached = whole(cache, "read") or 0
        reads = (whole(tokens, "input") or 0) + cached + (whole(cache, "write") or 0)
        usage = TraceEvent(
            kind="usage",
            tokens_in=reads,
            tokens_cached=cached,
            tokens_out=(whole(tokens, "output") or 0) + (whole(tokens, "reasoning") or 0),
            cost_usd=money(its, "cost"),
        )
        reason = string(its, "reason")
        if reason == "tool-calls":
            return [usage]
        self._fresh = True
        cut = reason == "length"
        return [
            usage,
            TraceEvent(kind="end", text=reason, failed=reason != "stop", limit="tokens" if cut else None),
        ]

    def _error(self, error: JsonObject) -> list[TraceEvent]:
        data = part(error, "data")
        said = ": ".join(each for each in (string(error, "name"), string(data, "message")) if each)
        # What the provider said is surer than the status: an empty account, too, is refused by 429.
        limit = limit_of(said, self._rules) or limit_of_status(whole(data, "statusCode"))
        self._fresh = True
        return [
            TraceEvent(kind="limit" if limit else "error", text=said, limit=limit),
            TraceEvent(kind="end", text=said, failed=True, limit=limit),
        ]


def _tool(its: JsonObject) -> list[TraceEvent]:
    state = part(its, "state")
    call = string(its, "callID") or None
    failed = string(state, "status") == "error"
    return [
        TraceEvent(kind="tool_call", tool=string(its, "tool"), call=call, arguments=as_arguments(state.get("input"))),
        TraceEvent(kind="tool_result", call=call, text=string(state, "output", "error"), failed=failed),
    ]
