"""Reads a trace of any format into events, line by line, while it grows or when it is whole."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

from stepwell.ptb.traces.claude import ClaudeReader
from stepwell.ptb.traces.codex import CodexReader
from stepwell.ptb.traces.event import TraceEvent, TraceFormat
from stepwell.ptb.traces.gemini import GeminiReader
from stepwell.ptb.traces.limits import LimitRule, limit_of
from stepwell.ptb.traces.lines import TraceLine
from stepwell.ptb.traces.opencode import OpenCodeReader
from stepwell.ptb.traces.plain import PlainReader
from stepwell.ptb.traces.summary import TraceSummary, summarise


class _Reader(Protocol):
    def __init__(self, rules: Sequence[LimitRule]) -> None: ...

    def read(self, text: str) -> list[TraceEvent] | None: ...

    def close(self) -> list[TraceEvent]: ...


_READERS: dict[TraceFormat, type[_Reader]] = {
    "claude": ClaudeReader,
    "codex": CodexReader,
    "gemini": GeminiReader,
    "opencode": OpenCodeReader,
    "lines": PlainReader,
}


class TraceReader:
    """Reads what an agent's program prints as it comes.

    Args:
        format: What it prints.
        rules: What its limits look like.
    """

    def __init__(self, format: TraceFormat, rules: Sequence[LimitRule] = ()) -> None:
        self._reader = _READERS[format](rules)
        self._rules = rules
        self._last: TraceLine | None = None

    def read(self, line: TraceLine) -> list[TraceEvent]:
        """The events of the next line. A line that cannot be read is an event of kind `raw`; none is lost."""
        self._last = line
        if line.stream == "note":
            return [_placed(TraceEvent(kind="note", text=line.text), line)]
        if line.stream == "err":
            limit = limit_of(line.text, self._rules)
            return [_placed(TraceEvent(kind="limit" if limit else "note", text=line.text, limit=limit), line)]
        found = self._reader.read(line.text)
        if found is None:
            limit = limit_of(line.text, self._rules)
            found = [TraceEvent(kind="raw", text=line.text)]
            if limit:
                found.append(TraceEvent(kind="limit", text=line.text, limit=limit))
        return [_placed(event, line) for event in found]

    def close(self) -> list[TraceEvent]:
        """What was still kept back when the trace ended."""
        last = self._last
        return [] if last is None else [_placed(event, last) for event in self._reader.close()]


@dataclass(frozen=True)
class Trace:
    """A trace that was read."""

    events: tuple[TraceEvent, ...]
    summary: TraceSummary


def read_trace(lines: Iterable[TraceLine], format: TraceFormat, rules: Sequence[LimitRule] = ()) -> Trace:
    """Reads a whole trace.

    Args:
        lines: Of `read_lines` or `plain_lines`.
        format: What the program prints.
        rules: What its limits look like.

    Raises:
        BrokenTrace: as `read_lines`.
    """
    reader = TraceReader(format, rules)
    events: list[TraceEvent] = []
    for line in lines:
        events += reader.read(line)
    events += reader.close()
    return Trace(tuple(events), summarise(events))


def _placed(event: TraceEvent, line: TraceLine) -> TraceEvent:
    """The line's own time is that of whoever kept it, by one clock: it is preferred to what a program says."""
    return event.model_copy(update={"line": line.number, "time": line.time or event.time})
