"""Traces of each format, made by hand: a short conversation with every kind of line."""

import json
from typing import Any

USAGE = {"input_tokens": 4, "cache_creation_input_tokens": 100, "cache_read_input_tokens": 900, "output_tokens": 2}


def told(*lines: Any) -> bytes:
    """JSON lines; a text is a line as it is."""
    return b"".join((line if isinstance(line, str) else json.dumps(line)).encode() + b"\n" for line in lines)


def claude_message(identity: str, *blocks: dict[str, Any], **more: Any) -> dict[str, Any]:
    """A line of Claude Code with blocks of one answer."""
    message = {"model": "claude-x-1", "id": identity, "role": "assistant", "content": list(blocks), "usage": USAGE}
    return {"type": "assistant", "message": message, "session_id": "s", **more}


def claude_result(**more: Any) -> dict[str, Any]:
    """A line of Claude Code that ends a prompt."""
    usage = {**USAGE, "input_tokens": 10, "cache_read_input_tokens": 1800, "output_tokens": 57}
    whole = {"is_error": False, "result": "All done.", "num_turns": 2, "total_cost_usd": 0.0125, "usage": usage}
    return {"type": "result", "subtype": "success", **whole, **more}


CLAUDE_START = {"type": "system", "subtype": "init", "session_id": "s", "model": "claude-x-1", "tools": ["Bash"]}
CLAUDE_CALL = {"type": "tool_use", "id": "t1", "name": "Bash", "input": {"command": "ls"}}
CLAUDE = told(
    CLAUDE_START,
    claude_message("msg_1", {"type": "thinking", "thinking": "Look first.", "signature": "x"}),
    claude_message("msg_1", {"type": "text", "text": "I look."}),
    claude_message("msg_1", CLAUDE_CALL),
    {
        "type": "user",
        "message": {
            "role": "user",
            "content": [
                {"type": "tool_result", "tool_use_id": "t1", "content": [{"type": "text", "text": "evaluate.py"}]},
            ],
        },
    },
    {"type": "system", "subtype": "api_retry", "attempt": 1, "error_status": 529, "error": "overloaded"},
    claude_message("msg_2", {"type": "text", "text": "All done."}),
    {"type": "rate_limit_event", "rate_limit_info": {"status": "allowed_warning"}},
    claude_result(),
)

CODEX = told(
    {"type": "thread.started", "thread_id": "th-1"},
    {"type": "turn.started"},
    {"type": "item.completed", "item": {"id": "item_0", "type": "reasoning", "text": "Look first."}},
    {
        "type": "item.started",
        "item": {"id": "item_1", "type": "command_execution", "command": "ls", "status": "in_progress"},
    },
    {
        "type": "item.completed",
        "item": {
            "id": "item_1",
            "type": "command_execution",
            "command": "ls",
            "aggregated_output": "evaluate.py\n",
            "exit_code": 0,
            "status": "completed",
        },
    },
    {
        "type": "item.completed",
        "item": {
            "id": "item_2",
            "type": "file_change",
            "changes": [{"path": "train.py", "kind": "add"}],
            "status": "failed",
        },
    },
    {"type": "error", "message": "Reconnecting... 1/5"},
    {"type": "item.completed", "item": {"id": "item_3", "type": "todo_list", "items": []}},
    {"type": "item.completed", "item": {"id": "item_4", "type": "agent_message", "text": "All done."}},
    {"type": "turn.completed", "usage": {"input_tokens": 1000, "cached_input_tokens": 600, "output_tokens": 50}},
)

GEMINI_STATS = {
    "total_tokens": 1100,
    "input_tokens": 1000,
    "output_tokens": 40,
    "cached": 600,
    "input": 400,
    "duration_ms": 5,
    "tool_calls": 1,
}
GEMINI = told(
    {"type": "init", "timestamp": "2026-11-30T08:00:00.000Z", "session_id": "s", "model": "gemini-x"},
    {"type": "message", "timestamp": "2026-11-30T08:00:00.000Z", "role": "user", "content": "Train."},
    {"type": "message", "timestamp": "2026-11-30T08:00:01.000Z", "role": "assistant", "content": "I ", "delta": True},
    {
        "type": "message",
        "timestamp": "2026-11-30T08:00:02.000Z",
        "role": "assistant",
        "content": "look.",
        "delta": True,
    },
    {
        "type": "tool_use",
        "timestamp": "2026-11-30T08:00:03.000Z",
        "tool_name": "run_shell_command",
        "tool_id": "c1",
        "parameters": {"command": "ls"},
    },
    {
        "type": "tool_result",
        "timestamp": "2026-11-30T08:00:04.000Z",
        "tool_id": "c1",
        "status": "error",
        "error": {"type": "failed", "message": "no such folder"},
    },
    {"type": "error", "timestamp": "2026-11-30T08:00:05.000Z", "severity": "warning", "message": "Loop detected"},
    {
        "type": "message",
        "timestamp": "2026-11-30T08:00:06.000Z",
        "role": "assistant",
        "content": "Done.",
        "delta": True,
    },
    {"type": "result", "timestamp": "2026-11-30T08:00:07.000Z", "status": "success", "stats": GEMINI_STATS},
)


def opencode(kind: str, seconds: int, **part: Any) -> dict[str, Any]:
    """A line of OpenCode."""
    return {"type": kind, "timestamp": 1_800_000_000_000 + 1000 * seconds, "sessionID": "ses_1", "part": part}


OPENCODE_TOKENS = {"total": 1050, "input": 350, "output": 30, "reasoning": 20, "cache": {"read": 600, "write": 50}}
OPENCODE = told(
    opencode("step_start", 0, type="step-start"),
    opencode("reasoning", 1, text="Look first."),
    opencode(
        "tool_use",
        2,
        tool="bash",
        callID="c1",
        state={"status": "completed", "input": {"command": "ls"}, "output": "evaluate.py"},
    ),
    opencode("step_finish", 3, reason="tool-calls", cost=0.01, tokens=OPENCODE_TOKENS),
    opencode("step_start", 4, type="step-start"),
    opencode("text", 5, text="All done."),
    opencode("step_finish", 6, reason="stop", cost=0.02, tokens=OPENCODE_TOKENS),
)

PLAIN = told(
    {"kind": "start", "model": "scripted"},
    "epoch 1",
    {"kind": "usage", "tokens_in": 900, "tokens_out": 40, "cost_usd": 0.5},
    {"kind": "tool_call", "tool": "train", "arguments": {"rows": 12}},
    {"kind": "end", "failed": False},
)
