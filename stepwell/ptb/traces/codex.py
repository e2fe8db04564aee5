"""Codex CLI: `codex exec --json`.

`thread.started`, then for a prompt `turn.started`, items that start and complete, `turn.completed` or `turn.failed`.
The usage of a completed turn is the whole thread's so far, prompts before it included; a turn that fails or is cut
off has none.
"""

from collections.abc import Sequence

from pydantic import JsonValue

from stepwell.ptb.traces.event import TraceEvent
from stepwell.ptb.traces.limits import LimitRule, limit_of
from stepwell.ptb.traces.objects import JsonObject, as_arguments, as_text, object_of, part, parts, string, whole

_TOOLS = ("command_execution", "file_change", "mcp_tool_call", "collab_tool_call", "web_search")
"""Items that are calls."""
_RESULTS = ("aggregated_output", "result", "error", "status", "exit_code", "id", "type", "item_type")
"""Fields of an item that are no arguments."""


class CodexReader:
    """Reads line by line."""

    def __init__(self, rules: Sequence[LimitRule]) -> None:
        self._rules = rules
        self._thread = ""
        self._used: dict[str, tuple[int, int, int]] = {}
        self._called: set[str] = set()

    def read(self, text: str) -> list[TraceEvent] | None:
        """The events of a line; None if it is none of this format."""
        line = object_of(text)
        if line is None:
            return None
        match string(line, "type"):
            case "thread.started":
                self._thread = string(line, "thread_id")
                # Items are numbered anew by each process.
                self._called.clear()
                return [TraceEvent(kind="start", text=self._thread)]
            case "turn.completed":
                return [self._usage(part(line, "usage")), TraceEvent(kind="end", failed=False)]
            case "turn.failed":
                said = string(part(line, "error"), "message")
                return [TraceEvent(kind="end", failed=True, text=said, limit=limit_of(said, self._rules))]
            case "error":
                return [self._error(string(line, "message"))]
            case "item.started":
                return self._started(part(line, "item"))
            case "item.completed":
                return self._completed(part(line, "item"), text)
            case "":
                return None
            case _:
                return [TraceEvent(kind="note", text=text)]

    def close(self) -> list[TraceEvent]:
        """What was kept back."""
        return []

    def _error(self, said: str) -> TraceEvent:
        limit = limit_of(said, self._rules)
        return TraceEvent(kind="limit" if limit else "error", text=said, limit=limit)

    def _started(self, item: JsonObject) -> list[TraceEvent]:
        if _type(item) not in _TOOLS:
            return []
        self._called.add(string(item, "id"))
        return [_call(item)]

    def _completed(self, item: JsonObject, text: str) -> list[TraceEvent]:
        match _type(item):
            case "agent_message" | "assistant_message":
                return [TraceEvent(kind="message", role="agent", text=string(item, "text"))]
            case "reasoning":
                return [TraceEvent(kind="thinking", text=string(item, "text"))]
            case "error":
                return [self._error(string(item, "message"))]
            case kind if kind in _TOOLS:
                called = string(item, "id") in self._called
                return [_result(item)] if called else [_call(item), _result(item)]
            case _:
                return [TraceEvent(kind="note", text=text)]

    def _usage(self, usage: JsonObject) -> TraceEvent:
        now = tuple(whole(usage, name) or 0 for name in ("input_tokens", "cached_input_tokens", "output_tokens"))
        whole_thread = (now[0], now[1], now[2])
        before = self._used.get(self._thread, (0, 0, 0))
        # A thread whose count fell was counted anew.
        if any(new < old for new, old in zip(whole_thread, before, strict=True)):
            before = (0, 0, 0)
        self._used[self._thread] = whole_thread
        reads, cached, writes = (new - old for new, old in zip(whole_thread, before, strict=True))
        return TraceEvent(kind="usage", tokens_in=reads, tokens_cached=cached, tokens_out=writes)


def _type(item: JsonObject) -> str:
    """Older versions call it `item_type`."""
    return string(item, "type", "item_type")


def _call(item: JsonObject) -> TraceEvent:
    kind = _type(item)
    arguments: dict[str, JsonValue] = {name: value for name, value in item.items() if name not in _RESULTS}
    tool = kind
    if kind == "mcp_tool_call":
        tool = f"{string(item, 'server')}.{string(item, 'tool')}"
        arguments = as_arguments(item.get("arguments"))
    return TraceEvent(kind="tool_call", tool=tool, call=string(item, "id") or None, arguments=arguments)


def _result(item: JsonObject) -> TraceEvent:
    said = string(item, "aggregated_output")
    if error := string(part(item, "error"), "message"):
        said = f"{said}\n{error}".strip()
    elif content := parts(part(item, "result"), "content"):
        said = as_text([dict(each) for each in content])
    failed = string(item, "status") in ("failed", "declined") or (whole(item, "exit_code") or 0) != 0
    return TraceEvent(kind="tool_result", call=string(item, "id") or None, text=said, failed=failed)
