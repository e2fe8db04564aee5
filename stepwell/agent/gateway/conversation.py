"""What a harness asks: the messages and tools of a chat completion, in a form that can be compared."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, cast

from pydantic import BaseModel, ConfigDict, Field, JsonValue, TypeAdapter, ValidationError

from stepwell.agent.gateway.refusals import bad_request
from stepwell.agent.tool_calls import Parsed, Tool, ToolCall, parse_json
from stepwell.events.canonical import canonical_json

Role = Literal["system", "user", "assistant", "tool"]


@dataclass(frozen=True)
class Message:
    """One message, as far as it reaches the policy."""

    role: Role
    said: Parsed
    """Its text; of an assistant, the calls too."""
    call_ids: tuple[str, ...] = ()
    """Of an assistant: the ids of its calls."""

    def same_as(self, other: "Message") -> bool:
        """Whether both say the same, white space around the text apart. Two assistants' turns with the same call ids
        and calls are the same, whatever a harness made of the text: ids are given once."""
        if self.role != other.role or not self._same_calls(other):
            return False
        if self.call_ids and self.call_ids == other.call_ids:
            return True
        return self.said.text.strip() == other.said.text.strip()

    def _same_calls(self, other: "Message") -> bool:
        ours, theirs = self.said.calls, other.said.calls
        return len(ours) == len(theirs) and all(
            one.name == two.name and canonical_json(one.arguments) == canonical_json(two.arguments)
            for one, two in zip(ours, theirs, strict=True)
        )


@dataclass(frozen=True)
class ChatRequest:
    """One call of `/v1/chat/completions`."""

    messages: tuple[Message, ...]
    tools: tuple[Tool, ...]
    position: int
    """The client's `seed`, else 0: another seed asks for another sample at the same prompt, the same one is a retry."""
    stream: bool
    stream_usage: bool
    """Whether a stream ends with the token counts."""
    logprobs: bool
    """Whether the answer shows the log-probabilities."""
    token_ids: bool
    """Whether the answer shows the token ids (vLLM's `return_token_ids`)."""
    asked: dict[str, JsonValue]
    """What else was asked for: recorded, and not done."""


class _Open(BaseModel):
    model_config = ConfigDict(extra="allow", frozen=True)


class _Function(_Open):
    name: str
    arguments: str | dict[str, Any] = "{}"


class _Call(_Open):
    id: str = ""
    function: _Function


class _Part(_Open):
    type: str
    text: str | None = None


class _Message(_Open):
    role: str
    content: str | list[_Part] | None = None
    tool_calls: list[_Call] | None = None


class _ToolFunction(_Open):
    name: str


class _Tool(_Open):
    type: Literal["function"]
    function: _ToolFunction


class _Body(_Open):
    model: str = ""
    messages: list[_Message] = Field(min_length=1)
    tools: list[_Tool] | None = None
    seed: int | None = None
    n: int | None = None
    stream: bool | None = None
    stream_options: dict[str, Any] | None = None
    logprobs: bool | None = None
    top_logprobs: int | None = None
    return_token_ids: bool | None = None


_ROLES: Mapping[str, Role] = {
    "system": "system",
    "developer": "system",
    "user": "user",
    "assistant": "assistant",
    "tool": "tool",
}
_DEFAULT_ANYWAY = {"tool_choice": "auto", "response_format": {"type": "text"}, "parallel_tool_calls": True}
"""What a client may say that changes nothing."""
_ASKED: TypeAdapter[dict[str, JsonValue]] = TypeAdapter(dict[str, JsonValue])


def parse_request(body: bytes) -> ChatRequest:
    """The request in a body.

    Raises:
        Refused: it is malformed, or asks for what cannot be done.
    """
    try:
        raw = _Body.model_validate_json(body)
    except ValidationError as error:
        first = error.errors()[0]
        raise bad_request(f"{'.'.join(map(str, first['loc'])) or 'the body'}: {first['msg']}") from error
    if raw.n not in (None, 1):
        raise bad_request(f"n is {raw.n}: one answer is sampled a call; ask again with another seed for another")
    if raw.top_logprobs:
        raise bad_request("top_logprobs: only the sampled token's log-probability is known; leave it out")
    extra = raw.model_extra or {}
    asked = {key: value for key, value in extra.items() if value is not None and value != _DEFAULT_ANYWAY.get(key)}
    return ChatRequest(
        messages=tuple(_message(message) for message in raw.messages),
        tools=tuple(tool.model_dump(mode="json") for tool in raw.tools or ()),
        position=raw.seed or 0,
        stream=bool(raw.stream),
        stream_usage=bool((raw.stream_options or {}).get("include_usage")),
        logprobs=bool(raw.logprobs),
        token_ids=bool(raw.return_token_ids),
        asked=_ASKED.validate_python(asked),
    )


def _message(raw: _Message) -> Message:
    if raw.role not in _ROLES:
        raise bad_request(f"there is no role {raw.role!r}; there are {', '.join(_ROLES)}")
    calls = raw.tool_calls or []
    return Message(
        role=_ROLES[raw.role],
        said=Parsed(_text(raw.content), tuple(_tool_call(call.function) for call in calls)),
        call_ids=tuple(call.id for call in calls),
    )


def _text(content: str | list[_Part] | None) -> str:
    if content is None or isinstance(content, str):
        return content or ""
    for part in content:
        if part.text is None:
            raise bad_request(f"a message has a part of type {part.type!r}; the policy reads text alone")
    return "".join(part.text or "" for part in content)


def _tool_call(function: _Function) -> ToolCall:
    arguments: Any = function.arguments
    if isinstance(arguments, str):
        try:
            arguments = parse_json(arguments or "{}")
        except ValueError as error:
            raise bad_request(f"the arguments of the call of {function.name} are no JSON: {error}") from error
    if not isinstance(arguments, dict):
        raise bad_request(f"the arguments of the call of {function.name} are no JSON object")
    return ToolCall(function.name, cast(dict[str, Any], arguments))
