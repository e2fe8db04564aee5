"""What the policy is told of the CodeAct tools, and what it may call."""

from typing import get_args

import pytest

from stepwell.agent.codeact import CodeActTools
from stepwell.agent.codeact_tools import REQUIRED, FunctionName, examples_in
from stepwell.agent.tool_calls import JSON_CALLS, XML_CALLS, CallFormat, Parsed, ToolCall


def test_there_is_an_example_of_every_function_and_each_is_a_good_call() -> None:
    told = examples_in("/work")
    assert tuple(told) == tuple(REQUIRED) == get_args(FunctionName)
    for name, examples in told.items():
        for arguments in examples:
            text = JSON_CALLS.write(Parsed("", (ToolCall(name, arguments),)))
            assert CodeActTools().parse(text).tool == name
            assert text in CodeActTools(prompt="examples").system_prompt()


@pytest.mark.parametrize("calls", [JSON_CALLS, XML_CALLS])
def test_examples_tell_less_than_schemas(calls: CallFormat) -> None:
    long, short = (CodeActTools(calls, prompt=prompt).system_prompt() for prompt in ("schemas", "examples"))
    assert len(short) < len(long) / 3


@pytest.mark.parametrize("prompt", ["schemas", "examples"])
def test_a_function_that_is_not_offered_is_neither_told_nor_understood(prompt) -> None:
    tools = CodeActTools(functions=("str_replace_editor", "finish"), prompt=prompt)
    told = tools.system_prompt()
    assert "str_replace_editor" in told
    assert "execute_bash" not in told
    refused = tools.parse('<tool_call>{"name": "execute_bash", "arguments": {"command": "ls"}}</tool_call>')
    assert refused.tool == "invalid"
    assert refused.arguments["reason"] == "there is no function 'execute_bash'; there are str_replace_editor, finish"
