"""Recorded calls in OpenAI's form: one object, or the events of a stream."""

import hashlib
import json
from collections.abc import Iterator
from typing import Any

from stepwell.agent.chat import ChatRenderer
from stepwell.agent.gateway.conversation import ChatRequest
from stepwell.agent.gateway.record import RecordedCall

STREAM_END = b"data: [DONE]\n\n"
_PIECE_CHARS = 200


def completion(call: RecordedCall, request: ChatRequest, renderer: ChatRenderer, model: str) -> dict[str, Any]:
    """The answer as one object."""
    choice: dict[str, Any] = {
        "index": 0,
        "message": {"role": "assistant", "content": _content(call), "refusal": None},
        "finish_reason": _finish_reason(call),
        "logprobs": _logprobs(call, renderer) if request.logprobs else None,
    }
    if call.reply.said.calls:
        choice["message"]["tool_calls"] = _tool_calls(call)
    answer = {**_head(call, model, "chat.completion"), "choices": [choice], "usage": _usage(call)}
    if request.token_ids:
        answer["prompt_token_ids"] = list(call.prompt_ids)
        choice["token_ids"] = list(call.token_ids)
    return answer


def events(call: RecordedCall, request: ChatRequest, renderer: ChatRenderer, model: str) -> Iterator[bytes]:
    """The answer as server-sent events, the closing one included."""
    head = _head(call, model, "chat.completion.chunk")

    def chunk(delta: dict[str, Any], **more: Any) -> dict[str, Any]:
        return {**head, "choices": [{"index": 0, "delta": delta, "finish_reason": None, "logprobs": None, **more}]}

    first = chunk({"role": "assistant", "content": ""})
    if request.token_ids:
        first["prompt_token_ids"] = list(call.prompt_ids)
    yield _event(first)
    text = _content(call) or ""
    for at in range(0, len(text), _PIECE_CHARS):
        yield _event(chunk({"content": text[at : at + _PIECE_CHARS]}))
    for place, tool_call in enumerate(_tool_calls(call)):
        yield _event(chunk({"tool_calls": [{"index": place, **tool_call}]}))
    more: dict[str, Any] = {"finish_reason": _finish_reason(call)}
    if request.logprobs:
        more["logprobs"] = _logprobs(call, renderer)
    if request.token_ids:
        more["token_ids"] = list(call.token_ids)
    yield _event(chunk({}, **more))
    if request.stream_usage:
        yield _event({**head, "choices": [], "usage": _usage(call)})
    yield STREAM_END


def _head(call: RecordedCall, model: str, kind: str) -> dict[str, Any]:
    """The same for each retry; `created` is no time, which a record's replay would not know."""
    digest = hashlib.sha256(f"{call.index}/{call.prompt_ids}/{call.position}".encode()).hexdigest()
    return {
        "id": f"chatcmpl-{digest[:24]}",
        "object": kind,
        "created": 0,
        "model": model,
        "system_fingerprint": f"version-{call.sampled.generation.version}",
    }


def _content(call: RecordedCall) -> str | None:
    said = call.reply.said
    return said.text if said.text or not said.calls else None


def _finish_reason(call: RecordedCall) -> str:
    if call.reply.said.calls:
        return "tool_calls"
    return call.sampled.generation.finish_reason


def _tool_calls(call: RecordedCall) -> list[dict[str, Any]]:
    return [
        {"id": identity, "type": "function", "function": {"name": tool.name, "arguments": json.dumps(tool.arguments)}}
        for identity, tool in zip(call.reply.call_ids, call.reply.said.calls, strict=True)
    ]


def _usage(call: RecordedCall) -> dict[str, int]:
    prompt, generated = len(call.prompt_ids), len(call.token_ids)
    return {"prompt_tokens": prompt, "completion_tokens": generated, "total_tokens": prompt + generated}


def _logprobs(call: RecordedCall, renderer: ChatRenderer) -> dict[str, Any]:
    content: list[dict[str, Any]] = []
    for token_id, logprob in zip(call.token_ids, call.sampled.generation.logprobs, strict=True):
        text = renderer.token_text(token_id)
        content.append({"token": text, "logprob": logprob, "bytes": list(text.encode()), "top_logprobs": []})
    return {"content": content, "refusal": None}


def _event(body: dict[str, Any]) -> bytes:
    return b"data: " + json.dumps(body).encode() + b"\n\n"
