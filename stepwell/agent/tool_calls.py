"""Tool calls in a policy's text, in the two forms that models are trained on.

`JsonCalls` is that of Hermes, Qwen2.5 and Qwen3, `XmlCalls` that of Qwen3-Coder and Qwen3.5: how tools are told, how
calls are written and how they are found again. The texts are those of the models' published chat templates, to the
letter: a model knows them only so.
"""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, cast

Tool = Mapping[str, Any]
"""A function in OpenAI's form: `{"type": "function", "function": {"name": …, "description": …, "parameters": …}}`."""

_OPENING = re.compile(r"<tool_call>\s*")


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is no JSON")


# Small models put plain line breaks into strings.
_DECODER = json.JSONDecoder(strict=False, parse_constant=_refuse_constant)


class MalformedCall(ValueError):
    """The text opens a call and holds none; says what is wrong, to the policy."""


@dataclass(frozen=True)
class ToolCall:
    """One call."""

    name: str
    arguments: dict[str, Any]


@dataclass(frozen=True)
class Parsed:
    """What a turn's text says."""

    text: str
    """Before the first call, without white space around it."""
    calls: tuple[ToolCall, ...]
    """In order."""


class CallFormat(Protocol):
    """One form of calls."""

    def describe(self, tools: Sequence[Tool], system: str) -> str:
        """The system text of a conversation with tools; `system` may be empty."""
        ...

    def write(self, said: "Parsed") -> str:
        """A turn's text, as the policy would have written it."""
        ...

    def parse(self, text: str, tools: Sequence[Tool]) -> Parsed:
        """The calls in a turn's text; `tools` tells which arguments are no strings.

        Raises:
            MalformedCall: a call was opened and cannot be understood.
        """
        ...


@dataclass(frozen=True)
class JsonCalls:
    """A JSON object of name and arguments within `<tool_call></tool_call>`."""

    def describe(self, tools: Sequence[Tool], system: str) -> str:
        """System text first, then the tools."""
        head = f"{system}\n\n" if system else ""
        return (
            f"{head}# Tools\n\nYou may call one or more functions to assist with the user query.\n\n"
            f"You are provided with function signatures within <tools></tools> XML tags:\n{_listing(tools)}\n\n"
            "For each function call, return a json object with function name and arguments within "
            '<tool_call></tool_call> XML tags:\n<tool_call>\n{"name": <function-name>, "arguments": '
            "<args-json-object>}\n</tool_call>"
        )

    def write(self, said: Parsed) -> str:
        """See the protocol."""
        calls = [
            f'<tool_call>\n{{"name": {json.dumps(call.name)}, "arguments": '
            f"{json.dumps(call.arguments, ensure_ascii=False)}}}\n</tool_call>"
            for call in said.calls
        ]
        return "\n".join(([said.text] if said.text else []) + calls)

    def parse(self, text: str, tools: Sequence[Tool]) -> Parsed:
        """See the protocol. A missing closing tag is forgiven."""
        calls: list[ToolCall] = []
        opening = first = _OPENING.search(text)
        while opening is not None:
            try:
                found, end = _DECODER.raw_decode(text, opening.end())
            except (ValueError, RecursionError) as error:
                raise MalformedCall(f"the call is no JSON object: {error}") from error
            calls.append(_call_of(_storable(found)))
            opening = _OPENING.search(text, end)
        return Parsed((text if first is None else text[: first.start()]).strip(), tuple(calls))


@dataclass(frozen=True)
class XmlCalls:
    """`<function=NAME>` with a `<parameter=NAME>` for each argument, within `<tool_call></tool_call>`."""

    def describe(self, tools: Sequence[Tool], system: str) -> str:
        """The tools first, then the system text."""
        tail = f"\n\n{system}" if system else ""
        return (
            f"# Tools\n\nYou have access to the following functions:\n\n{_listing(tools)}\n\n"
            "If you choose to call a function ONLY reply in the following format with NO suffix:\n\n"
            "<tool_call>\n<function=example_function_name>\n<parameter=example_parameter_1>\nvalue_1\n</parameter>\n"
            "<parameter=example_parameter_2>\nThis is the value for the second parameter\nthat can span\n"
            "multiple lines\n</parameter>\n</function>\n</tool_call>\n\n<IMPORTANT>\nReminder:\n"
            "- Function calls MUST follow the specified format: an inner <function=...></function> block must be "
            "nested within <tool_call></tool_call> XML tags\n- Required parameters MUST be specified\n"
            "- You may provide optional reasoning for your function call in natural language BEFORE the function "
            "call, but NOT after\n- If there is no function call available, answer the question like normal with "
            f"your current knowledge and do not tell the user about function calls\n</IMPORTANT>{tail}"
        )

    def write(self, said: Parsed) -> str:
        """See the protocol."""
        calls = "\n".join(_xml(call) for call in said.calls)
        return "\n\n".join(part for part in (said.text, calls) if part)

    def parse(self, text: str, tools: Sequence[Tool]) -> Parsed:
        """See the protocol."""
        calls: list[ToolCall] = []
        opening = first = _OPENING.search(text)
        while opening is not None:
            function = _FUNCTION.match(text, opening.end())
            if function is None:
                raise MalformedCall("the call holds no <function=NAME>…</function>")
            name, inside = function[1].strip(), function[2]
            if _PARAMETER.sub("", inside).strip():
                raise MalformedCall(f"between the parameters of {name} is something else than <parameter=NAME>")
            schema = _properties(tools, name)
            given = [(key.strip(), value) for key, value in _PARAMETER.findall(inside)]
            calls.append(ToolCall(name, {key: _value(value, schema.get(key, {})) for key, value in given}))
            opening = _OPENING.search(text, function.end())
        return Parsed((text if first is None else text[: first.start()]).strip(), tuple(calls))


def parse_json(text: str) -> Any:
    """JSON without the numbers and the lone surrogates that no stored JSON can hold.

    Raises:
        ValueError: it is none.
    """
    try:
        return _storable(_DECODER.decode(text))
    except RecursionError as error:
        raise ValueError("it is nested too deeply") from error


JSON_CALLS = JsonCalls()
XML_CALLS = XmlCalls()

_FUNCTION = re.compile(r"<function=([^>\n]+)>(.*?)</function>", re.DOTALL)
_PARAMETER = re.compile(r"<parameter=([^>\n]+)>(.*?)</parameter>", re.DOTALL)


def _listing(tools: Sequence[Tool]) -> str:
    return "\n".join(("<tools>", *(json.dumps(tool, ensure_ascii=False) for tool in tools), "</tools>"))


def _xml(call: ToolCall) -> str:
    parameters = "".join(
        f"<parameter={name}>\n{value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)}\n"
        "</parameter>\n"
        for name, value in call.arguments.items()
    )
    return f"<tool_call>\n<function={call.name}>\n{parameters}</function>\n</tool_call>"


def _call_of(found: object) -> ToolCall:
    if not isinstance(found, dict):
        raise MalformedCall("the call is no JSON object")
    named = cast(dict[str, Any], found)
    name, arguments = named.get("name"), named.get("arguments", {})
    if not isinstance(name, str):
        raise MalformedCall(f"there is no function {name!r}: a name is a string")
    if not isinstance(arguments, dict):
        raise MalformedCall("arguments must be a JSON object")
    return ToolCall(name, cast(dict[str, Any], arguments))


def _properties(tools: Sequence[Tool], name: str) -> dict[str, Any]:
    for tool in tools:
        if tool["function"]["name"] == name:
            return tool["function"].get("parameters", {}).get("properties", {})
    return {}


def _value(text: str, schema: Mapping[str, Any]) -> Any:
    """A parameter's value: JSON where the tool wants no string; text that is none stays text."""
    text = text.removeprefix("\n").removesuffix("\n")
    if schema.get("type", "string") == "string":
        return text
    try:
        return parse_json(text)
    except ValueError:
        return text


def _storable(value: Any) -> Any:
    """Lone surrogates, which no file and no command can hold, become question marks."""
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode()
    if isinstance(value, dict):
        return {_storable(key): _storable(inner) for key, inner in cast(dict[str, Any], value).items()}
    if isinstance(value, list):
        return [_storable(inner) for inner in cast(list[Any], value)]
    return value
