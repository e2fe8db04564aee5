"""Each format is read into the one schema: what was said, called, used and met; nothing is lost."""

import json
from datetime import UTC, datetime
from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stepwell.ptb.scaffolds import scaffold
from stepwell.ptb.traces import (
    BrokenTrace,
    Trace,
    TraceEvent,
    TraceFormat,
    TraceLine,
    TraceReader,
    dump_events,
    load_events,
    plain_lines,
    read_lines,
    read_trace,
    stamped,
)
from tests import ptb_traces as traces

RULES = {
    scaffold(name).trace.format: scaffold(name).trace.limits
    for name in ("claude_code", "codex_cli", "gemini_cli", "opencode", "shell")
}
CONVERSATIONS: dict[Any, bytes] = {
    "claude": traces.CLAUDE,
    "codex": traces.CODEX,
    "gemini": traces.GEMINI,
    "opencode": traces.OPENCODE,
    "lines": traces.PLAIN,
}
FORMATS: tuple[TraceFormat, ...] = get_args(TraceFormat)


def read(format: TraceFormat, *lines: Any) -> Trace:
    return read_trace(plain_lines(traces.told(*lines)), format, RULES[format])


def kinds(trace: Trace) -> list[str]:
    return [event.kind for event in trace.events]


WANTED = {
    "claude": "start thinking usage message tool_call tool_result limit message usage note usage end",
    "codex": "start note thinking tool_call tool_result tool_call tool_result error note message usage end",
    "gemini": "start message message tool_call tool_result error message usage end",
    "opencode": "start thinking tool_call tool_result usage message usage end",
    "lines": "start message usage tool_call end",
}


@pytest.mark.parametrize("format", FORMATS)
def test_a_conversation_is_read_in_its_order(format: TraceFormat) -> None:
    trace = read_trace(plain_lines(CONVERSATIONS[format]), format, RULES[format])
    assert kinds(trace) == WANTED[format].split()
    assert trace.summary.raw == 0
    assert trace.summary.ended == "done"
    assert [event.line for event in trace.events] == sorted(event.line for event in trace.events)


@pytest.mark.parametrize(
    ("format", "reads", "cached", "writes", "cost"),
    [
        # The result's own sums: 10 + 100 + 1800 and 57, not what the messages said before they were whole.
        ("claude", 2008, 1800, 57, 0.0125),
        ("codex", 1000, 600, 50, None),
        ("gemini", 1000, 600, 100, None),
        ("opencode", 2000, 1200, 100, pytest.approx(0.03)),
        ("lines", 900, None, 40, 0.5),
    ],
)
def test_use_is_counted_with_caches_and_thinking_in_it(
    format: TraceFormat, reads: int, cached: int | None, writes: int, cost: Any
) -> None:
    summary = read_trace(plain_lines(CONVERSATIONS[format]), format).summary
    assert (summary.tokens_in, summary.tokens_cached, summary.tokens_out) == (reads, cached, writes)
    assert summary.cost_usd == cost
    assert summary.tokens == reads + writes


@pytest.mark.parametrize(
    ("format", "tool", "arguments", "said", "failed"),
    [
        ("claude", "Bash", {"command": "ls"}, "evaluate.py", False),
        ("codex", "command_execution", {"command": "ls"}, "evaluate.py\n", False),
        ("gemini", "run_shell_command", {"command": "ls"}, "no such folder", True),
        ("opencode", "bash", {"command": "ls"}, "evaluate.py", False),
    ],
)
def test_a_call_is_tied_to_its_result(
    format: TraceFormat, tool: str, arguments: dict[str, str], said: str, failed: bool
) -> None:
    events = read_trace(plain_lines(CONVERSATIONS[format]), format).events
    call = next(event for event in events if event.kind == "tool_call")
    result = next(event for event in events if event.kind == "tool_result" and event.call == call.call)
    assert (call.tool, call.arguments) == (tool, arguments)
    assert (result.text, result.failed) == (said, failed)


def test_a_failed_change_of_files_is_a_call_and_its_failure() -> None:
    change = [event for event in read_trace(plain_lines(traces.CODEX), "codex").events if event.call == "item_2"]
    assert [(event.kind, event.failed) for event in change] == [("tool_call", None), ("tool_result", True)]
    assert change[0].arguments == {"changes": [{"path": "train.py", "kind": "add"}]}


def test_an_answer_in_pieces_is_one_message_with_the_time_of_the_first() -> None:
    answers = [event for event in read_trace(plain_lines(traces.GEMINI), "gemini").events if event.role == "agent"]
    assert [event.text for event in answers] == ["I look.", "Done."]
    assert answers[0].time == datetime(2026, 11, 30, 8, 0, 1, tzinfo=UTC)


def test_a_prompt_that_was_cut_off_keeps_what_its_messages_used() -> None:
    """Killed at the end of its time, Claude Code says no result: what it used is what its messages said."""
    lines = traces.CLAUDE.splitlines(keepends=True)[:-1]
    summary = read_trace(plain_lines(lines), "claude").summary
    assert (summary.tokens_in, summary.tokens_out, summary.ended) == (2008, 4, "cut off")


def test_a_thread_that_goes_on_tells_all_of_its_use_again() -> None:
    def turn(thread: str, reads: int) -> list[Any]:
        usage = {"input_tokens": reads, "cached_input_tokens": 0, "output_tokens": 10}
        return [{"type": "thread.started", "thread_id": thread}, {"type": "turn.completed", "usage": usage}]

    assert read("codex", *turn("a", 1000), *turn("a", 1500)).summary.tokens_in == 1500
    assert read("codex", *turn("a", 1000), *turn("b", 1500)).summary.tokens_in == 2500
    assert read("codex", *turn("a", 1000), *turn("a", 400)).summary.tokens_in == 1400


def test_each_prompt_of_claude_code_tells_its_own_use() -> None:
    once = traces.CLAUDE.decode().splitlines()
    summary = read("claude", *once, *once).summary
    assert (summary.prompts, summary.tokens_in, summary.cost_usd) == (2, 2 * 2008, 0.025)


@given(st.sampled_from(FORMATS), st.lists(st.text(max_size=60), max_size=12))
def test_no_line_is_lost_and_none_breaks_a_reader(format: TraceFormat, texts: list[str]) -> None:
    data = "\n".join(text.replace("\n", " ") for text in texts).encode("utf-8", "replace")
    lines = list(plain_lines(data))
    trace = read_trace(lines, format, RULES[format])
    assert trace.summary.raw <= len(lines)
    assert {event.line for event in trace.events} <= {line.number for line in lines}
    if format != "gemini":
        assert {event.line for event in trace.events} == {line.number for line in lines}


JSON = st.recursive(
    st.none() | st.booleans() | st.floats(allow_nan=False) | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=6,
)


@given(st.sampled_from(FORMATS), st.data())
def test_a_field_of_another_shape_breaks_no_reader(format: TraceFormat, data: st.DataObject) -> None:
    lines: list[Any] = []
    for line in CONVERSATIONS[format].splitlines():
        value = json.loads(line) if line.startswith(b"{") else {}
        if value:
            value[data.draw(st.sampled_from(sorted(value)))] = data.draw(JSON)
        lines.append(value)
    trace = read(format, *lines)
    assert load_events(dump_events(trace.events)) == trace.events


def test_a_line_that_is_in_no_format_stays_as_it_is() -> None:
    trace = read("codex", '{"type": "thread.star', "npm warn deprecated", {"no": "type"})
    assert kinds(trace) == ["raw", "raw", "raw"]
    assert trace.events[1].text == "npm warn deprecated"
    assert trace.summary.raw == 3


def test_a_kind_of_line_that_is_new_is_a_note_with_all_of_it() -> None:
    for format in ("claude", "codex", "gemini", "opencode"):
        trace = read(format, {"type": "brand_new", "field": 7})
        assert kinds(trace) == ["note"]
        assert json.loads(trace.events[0].text)["field"] == 7


def test_stamped_lines_give_back_time_stream_and_text() -> None:
    time = datetime(2026, 11, 30, 8, 32, 41, 123456, tzinfo=UTC)
    data = stamped(time, "out", b'{"a": "b\xe2\x80\xa8c"}') + stamped(time, "err", b"\xff") + stamped(time, "note", b"")
    assert list(read_lines(data)) == [
        TraceLine(1, time, "out", '{"a": "b\u2028c"}'),
        TraceLine(2, time, "err", "\ufffd"),
        TraceLine(3, time, "note", ""),
    ]
    with pytest.raises(BrokenTrace, match=r"line 2 .* begins with 'no stamp'"):
        list(read_lines(stamped(time, "out", b"x") + b"no stamp\n"))


def test_the_attendants_clock_is_preferred_and_standard_error_is_a_note() -> None:
    time = datetime(2027, 1, 1, tzinfo=UTC)
    first = traces.GEMINI.splitlines()[0]
    trace = read_trace(read_lines(stamped(time, "out", first) + stamped(time, "err", b"warming up")), "gemini")
    assert [(event.kind, event.time) for event in trace.events] == [("start", time), ("note", time)]


def test_a_reader_tells_while_a_trace_grows_what_it_tells_of_the_whole() -> None:
    reader = TraceReader("opencode", RULES["opencode"])
    found: list[TraceEvent] = []
    for line in plain_lines(traces.OPENCODE):
        found += reader.read(line)
    assert (*found, *reader.close()) == read_trace(plain_lines(traces.OPENCODE), "opencode", RULES["opencode"]).events


def test_events_that_are_none_are_refused_with_their_line() -> None:
    with pytest.raises(ValueError, match=r"line 2 is no event of a trace: .*'kind'"):
        load_events(b'{"kind": "end"}\n{"kind": "cheer"}\n')
