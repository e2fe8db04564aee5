"""Limits that an agent's program met are told apart, and why it stopped follows from them."""

from typing import Any

import pytest

from stepwell.ptb.scaffolds import Stop, scaffold, stop_of
from stepwell.ptb.traces import LimitKind, Trace, TraceLine, plain_lines, read_trace
from tests import ptb_traces as traces


def read(name: str, *lines: Any) -> Trace:
    declared = scaffold(name).trace
    return read_trace(plain_lines(traces.told(*lines)), declared.format, declared.limits)


def claude_failed(text: str, **more: Any) -> list[Any]:
    return [traces.CLAUDE_START, traces.claude_result(is_error=True, result=text, **more)]


def codex_failed(text: str) -> list[Any]:
    started = {"type": "thread.started", "thread_id": "a"}
    return [started, {"type": "error", "message": text}, {"type": "turn.failed", "error": {"message": text}}]


def gemini_failed(kind: str, text: str) -> list[Any]:
    return [
        {"type": "init", "model": "g"},
        {"type": "result", "status": "error", "error": {"type": kind, "message": text}},
    ]


def opencode_failed(name: str, text: str, status: int | None = None) -> list[Any]:
    data = {"message": text} | ({} if status is None else {"statusCode": status})
    return [{"type": "error", "timestamp": 1, "sessionID": "s", "error": {"name": name, "data": data}}]


MET: list[tuple[str, list[Any], LimitKind | None]] = [
    ("claude_code", claude_failed("Credit balance is too low"), "credit"),
    ("claude_code", claude_failed("You've hit your session limit · resets 2pm"), "credit"),
    ("claude_code", claude_failed("API Error: 529 overloaded_error"), "overload"),
    ("claude_code", claude_failed("Invalid API key · Please run /login"), "login"),
    ("claude_code", claude_failed("Prompt is too long"), "tokens"),
    ("claude_code", claude_failed("", subtype="error_max_turns"), "turns"),
    ("claude_code", claude_failed("", subtype="error_max_budget_usd"), "credit"),
    ("claude_code", claude_failed("API Error", api_error_status=429), "rate"),
    ("claude_code", claude_failed("the tool crashed"), None),
    ("codex_cli", codex_failed("You've hit your usage limit. Visit the settings to purchase more credits"), "credit"),
    ("codex_cli", codex_failed("Quota exceeded. Check your plan and billing details."), "credit"),
    ("codex_cli", codex_failed("exceeded retry limit, last status: 429 Too Many Requests"), "rate"),
    ("codex_cli", codex_failed("stream disconnected before completion: Rate limit reached for organization"), "rate"),
    ("codex_cli", codex_failed("Codex ran out of room in the model's context window."), "tokens"),
    ("codex_cli", codex_failed("unexpected status 401 Unauthorized"), "login"),
    ("codex_cli", codex_failed("unexpected end of file"), None),
    ("gemini_cli", gemini_failed("Error", "You exceeded your current quota, please check your plan"), "credit"),
    ("gemini_cli", gemini_failed("Error", "Resource has been exhausted (e.g. check quota)."), "rate"),
    ("gemini_cli", gemini_failed("FatalTurnLimitedError", "Reached max session turns for this session."), "turns"),
    ("gemini_cli", gemini_failed("Error", "The model is overloaded. Please try again later."), "overload"),
    ("gemini_cli", gemini_failed("Error", "API key not valid. Please pass a valid API key."), "login"),
    ("gemini_cli", gemini_failed("FatalToolExecutionError", "no such tool"), None),
    ("opencode", opencode_failed("APIError", "Rate limit exceeded. Please try again later.", 429), "rate"),
    ("opencode", opencode_failed("APIError", "Insufficient balance", 429), "credit"),
    ("opencode", opencode_failed("APIError", "no", 402), "credit"),
    ("opencode", opencode_failed("ProviderAuthError", "no key"), "login"),
    ("opencode", opencode_failed("ContextOverflowError", "too long"), "tokens"),
    ("opencode", opencode_failed("UnknownError", "unexpected"), None),
]


@pytest.mark.parametrize(("name", "lines", "limit"), MET, ids=lambda each: str(each)[:40])
def test_the_limit_that_ended_a_prompt_is_named(name: str, lines: list[Any], limit: LimitKind | None) -> None:
    summary = read(name, *lines).summary
    assert (summary.ended, summary.ended_by) == ("failed", limit)
    # Told twice, by an error and by the end, and met once.
    assert summary.limits == ({} if limit is None else {limit: 1})


def test_what_an_agent_reads_and_writes_is_no_limit() -> None:
    said = "429 rate limit exceeded: insufficient credit balance"
    call = {**traces.CLAUDE_CALL, "input": {"command": f"grep '{said}' log"}}
    result = {"type": "tool_result", "tool_use_id": "t1", "content": said, "is_error": True}
    trace = read(
        "claude_code",
        traces.CLAUDE_START,
        traces.claude_message("msg_1", {"type": "text", "text": said}, call),
        {"type": "user", "message": {"role": "user", "content": [result]}},
        traces.claude_result(result=said),
    )
    assert trace.summary.limits == {}
    assert trace.summary.ended_by is None


def test_a_limit_after_which_work_went_on_is_counted_and_ended_nothing() -> None:
    summary = read_trace(plain_lines(traces.CLAUDE), "claude", scaffold("claude_code").trace.limits).summary
    assert summary.limits == {"overload": 1}
    assert (summary.ended, summary.ended_by) == ("done", None)


def test_an_allowance_that_was_refused_is_a_limit_and_a_warning_none() -> None:
    def event(status: str) -> dict[str, Any]:
        return {"type": "rate_limit_event", "rate_limit_info": {"status": status, "rateLimitType": "five_hour"}}

    assert read("claude_code", event("allowed_warning")).summary.limits == {}
    assert read("claude_code", event("rejected")).summary.limits == {"credit": 1}


def test_a_limit_on_standard_error_is_seen() -> None:
    declared = scaffold("gemini_cli").trace
    line = TraceLine(1, None, "err", "Attempt 3 failed with status 429. Retrying with backoff...")
    assert read_trace([line], declared.format, declared.limits).summary.limits == {"rate": 1}


DONE = {
    "claude_code": traces.CLAUDE,
    "codex_cli": traces.CODEX,
    "gemini_cli": traces.GEMINI,
    "opencode": traces.OPENCODE,
}


@pytest.mark.parametrize("name", DONE)
def test_a_program_that_is_done_stopped_by_itself(name: str) -> None:
    declared = scaffold(name)
    done = read_trace(plain_lines(DONE[name]), declared.trace.format, declared.trace.limits).summary
    assert stop_of(declared, 0, done) == Stop("itself", None, "it was done")
    assert stop_of(declared, 1, done).kind == "crash"
    assert stop_of(declared, -11, done).why == "was ended by a signal"


def test_a_trace_without_an_end_is_a_crash_whatever_the_status_says() -> None:
    declared = scaffold("codex_cli")
    cut = read("codex_cli", *traces.CODEX.decode().splitlines()[:-1]).summary
    assert stop_of(declared, 0, cut).kind == "crash"
    # A script says nothing of its end.
    assert stop_of(scaffold("shell"), 0, read("shell", "epoch 1").summary).kind == "itself"


def test_a_limit_is_told_from_a_crash_and_only_some_pass_by_waiting() -> None:
    declared = scaffold("codex_cli")
    limited = stop_of(declared, 1, read("codex_cli", *codex_failed("last status: 429")).summary)
    broke = stop_of(declared, 1, read("codex_cli", *codex_failed("You've hit your usage limit.")).summary)
    assert (limited.kind, limited.limit, limited.may_go_on) == ("limit", "rate", True)
    assert (broke.kind, broke.limit, broke.may_go_on) == ("limit", "credit", False)


def test_an_exit_status_that_is_declared_is_understood() -> None:
    turns = stop_of(scaffold("gemini_cli"), 53, read("gemini_cli", {"type": "init", "model": "g"}).summary)
    assert (turns.kind, turns.limit, turns.may_go_on) == ("limit", "turns", True)
