"""Traces: what agents' programs print, each in its own format, read into one schema."""

from stepwell.ptb.traces.event import LimitKind, TraceEvent, TraceFormat, TraceKind, dump_events, load_events
from stepwell.ptb.traces.limits import BrokenRule, LimitRule
from stepwell.ptb.traces.lines import BrokenTrace, Stream, TraceLine, plain_lines, read_lines, stamped
from stepwell.ptb.traces.reader import Trace, TraceReader, read_trace
from stepwell.ptb.traces.summary import TraceSummary, summarise

__all__ = [
    "BrokenRule",
    "BrokenTrace",
    "LimitKind",
    "LimitRule",
    "Stream",
    "Trace",
    "TraceEvent",
    "TraceFormat",
    "TraceKind",
    "TraceLine",
    "TraceReader",
    "TraceSummary",
    "dump_events",
    "load_events",
    "plain_lines",
    "read_lines",
    "read_trace",
    "stamped",
    "summarise",
]
