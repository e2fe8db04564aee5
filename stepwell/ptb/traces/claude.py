"""Claude Code: `--output-format stream-json --verbose`.

A line is a `system`, an `assistant` or `user` message of the Messages API, a `rate_limit_event`, or the `result` that
ends a prompt. An API message with several blocks comes as several lines with one id and one usage, whose output is
counted before the answer is whole: what the `result` says beyond the sum is added there.
"""

from collections.abc import Sequence

from stepwell.ptb.traces.event import LimitKind, TraceEvent
from stepwell.ptb.traces.limits import LimitRule, limit_of, limit_of_status
from stepwell.ptb.traces.objects import (
    JsonObject,
    as_arguments,
    as_text,
    money,
    object_of,
    part,
    parts,
    string,
    whole,
)

_ERRORS: dict[str, LimitKind] = {
    "rate_limit": "rate",
    "billing_error": "credit",
    "authentication_failed": "login",
    "server_error": "overload",
    "overloaded": "overload",
    "max_output_tokens": "tokens",
}
"""Categories of errors that the program names."""
_SUBTYPES: dict[str, LimitKind] = {"error_max_turns": "turns", "error_max_budget_usd": "credit"}
"""Ends by the program's own limits."""


class ClaudeReader:
    """Reads line by line."""

    def __init__(self, rules: Sequence[LimitRule]) -> None:
        self._rules = rules
        self._counted: set[str] = set()
        self._input = self._cached = self._output = 0

    def read(self, text: str) -> list[TraceEvent] | None:
        """The events of a line; None if it is none of this format."""
        line = object_of(text)
        if line is None:
            return None
        match string(line, "type"):
            case "system":
                return self._system(line, text)
            case "assistant":
                return self._assistant(line)
            case "user":
                return _user(line)
            case "rate_limit_event":
                return [_rate(line, text)]
            case "result":
                return self._result(line)
            case "":
                return None
            case _:
                return [TraceEvent(kind="note", text=text)]

    def close(self) -> list[TraceEvent]:
        """What was kept back."""
        return []

    def _system(self, line: JsonObject, text: str) -> list[TraceEvent]:
        match string(line, "subtype"):
            case "init":
                self._counted.clear()
                self._input = self._cached = self._output = 0
                return [
                    TraceEvent(kind="start", text=string(line, "session_id"), model=string(line, "model") or None),
                ]
            case "api_retry":
                category = string(line, "error")
                limit = _ERRORS.get(category) or limit_of_status(whole(line, "error_status"))
                said = f"{category or 'error'} ({whole(line, 'error_status') or 'no answer'}), tried again"
                return [TraceEvent(kind="limit" if limit else "error", text=said, limit=limit)]
            case _:
                return [TraceEvent(kind="note", text=text)]

    def _assistant(self, line: JsonObject) -> list[TraceEvent]:
        message = part(line, "message")
        model = string(message, "model") or None
        error = string(line, "error")
        found: list[TraceEvent] = []
        for block in parts(message, "content"):
            match string(block, "type"):
                case "text" if error:
                    said = string(block, "text")
                    limit = _ERRORS.get(error) or limit_of(said, self._rules)
                    found.append(TraceEvent(kind="limit" if limit else "error", text=said, limit=limit))
                case "text":
                    found.append(TraceEvent(kind="message", role="agent", text=string(block, "text"), model=model))
                case "thinking" | "redacted_thinking":
                    found.append(TraceEvent(kind="thinking", text=string(block, "thinking"), model=model))
                case "tool_use" | "server_tool_use":
                    found.append(
                        TraceEvent(
                            kind="tool_call",
                            tool=string(block, "name"),
                            call=string(block, "id") or None,
                            arguments=as_arguments(block.get("input")),
                            model=model,
                        )
                    )
                case _:
                    found.append(TraceEvent(kind="note", text=as_text(dict(block))))
        identity = string(message, "id")
        usage = part(message, "usage")
        if usage and identity not in self._counted:
            self._counted.add(identity)
            found.append(self._usage(*_tokens(usage), model=model))
        return found

    def _result(self, line: JsonObject) -> list[TraceEvent]:
        subtype = string(line, "subtype")
        failed = line.get("is_error") is True or subtype != "success"
        said = string(line, "result") or as_text(line.get("errors")) or subtype
        limit = _SUBTYPES.get(subtype)
        if failed and limit is None:
            limit = limit_of_status(whole(line, "api_error_status")) or limit_of(said, self._rules)
        found: list[TraceEvent] = []
        cost, usage = money(line, "total_cost_usd"), part(line, "usage")
        if usage or cost is not None:
            reads, cached, writes = _tokens(usage)
            left = (max(0, reads - self._input), max(0, cached - self._cached), max(0, writes - self._output))
            found.append(self._usage(*left, cost=cost))
        self._input = self._cached = self._output = 0
        return [*found, TraceEvent(kind="end", text=said, failed=failed, limit=limit)]

    def _usage(
        self, reads: int, cached: int, writes: int, *, model: str | None = None, cost: float | None = None
    ) -> TraceEvent:
        self._input, self._cached, self._output = self._input + reads, self._cached + cached, self._output + writes
        return TraceEvent(
            kind="usage", tokens_in=reads, tokens_cached=cached, tokens_out=writes, model=model, cost_usd=cost
        )


def _tokens(usage: JsonObject) -> tuple[int, int, int]:
    """Read in all, read out of a cache, written: the program's `input_tokens` are those beside the cache."""
    cached = whole(usage, "cache_read_input_tokens") or 0
    made = whole(usage, "cache_creation_input_tokens") or 0
    return (whole(usage, "input_tokens") or 0) + made + cached, cached, whole(usage, "output_tokens") or 0


def _user(line: JsonObject) -> list[TraceEvent]:
    message = part(line, "message")
    content = message.get("content")
    if isinstance(content, str):
        return [TraceEvent(kind="message", role="user", text=content)]
    found: list[TraceEvent] = []
    for block in parts(message, "content"):
        if string(block, "type") == "tool_result":
            found.append(
                TraceEvent(
                    kind="tool_result",
                    call=string(block, "tool_use_id") or None,
                    text=as_text(block.get("content")),
                    failed=block.get("is_error") is True,
                )
            )
        else:
            found.append(TraceEvent(kind="message", role="user", text=as_text([dict(block)])))
    return found


def _rate(line: JsonObject, text: str) -> TraceEvent:
    """An allowance of a subscription; only what was refused is a limit that was met."""
    refused = string(part(line, "rate_limit_info"), "status") == "rejected"
    return TraceEvent(kind="limit", text=text, limit="credit") if refused else TraceEvent(kind="note", text=text)
