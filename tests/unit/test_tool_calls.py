"""Tool calls in text: both forms are written as the models' templates write them, and read back."""

import json
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stepwell.agent.tool_calls import (
    JSON_CALLS,
    XML_CALLS,
    CallFormat,
    MalformedCall,
    Parsed,
    ToolCall,
    parse_json,
)

TOOL = {
    "type": "function",
    "function": {
        "name": "edit",
        "parameters": {
            "type": "object",
            "properties": {"path": {"type": "string"}, "line": {"type": "integer"}, "range": {"type": "array"}},
        },
    },
}
CALL = ToolCall("edit", {"path": "a b.py", "line": 3, "range": [1, 2]})

_texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=40).filter(lambda text: "<" not in text)
_calls = st.builds(
    ToolCall,
    st.just("edit"),
    st.fixed_dictionaries({}, optional={"path": _texts, "line": st.integers(), "range": st.lists(st.integers())}),
)


def test_json_is_written_as_qwen3_writes_it() -> None:
    assert JSON_CALLS.write(Parsed("So.", (CALL,))) == (
        'So.\n<tool_call>\n{"name": "edit", "arguments": {"path": "a b.py", "line": 3, "range": [1, 2]}}\n</tool_call>'
    )


def test_xml_is_written_as_qwen3_5_writes_it() -> None:
    assert XML_CALLS.write(Parsed("So.", (CALL,))) == (
        "So.\n\n<tool_call>\n<function=edit>\n<parameter=path>\na b.py\n</parameter>\n<parameter=line>\n3\n"
        "</parameter>\n<parameter=range>\n[1, 2]\n</parameter>\n</function>\n</tool_call>"
    )


def test_tools_are_told_where_the_templates_tell_them() -> None:
    listed = f"<tools>\n{json.dumps(TOOL)}\n</tools>"
    told = JSON_CALLS.describe([TOOL], "Be brief.")
    assert told.startswith("Be brief.\n\n# Tools\n\nYou may call one or more functions")
    assert listed in told
    assert told.endswith('{"name": <function-name>, "arguments": <args-json-object>}\n</tool_call>')
    told = XML_CALLS.describe([TOOL], "Be brief.")
    assert told.startswith(f"# Tools\n\nYou have access to the following functions:\n\n{listed}\n\nIf you choose")
    assert told.endswith("</IMPORTANT>\n\nBe brief.")
    assert JSON_CALLS.describe([TOOL], "").startswith("# Tools")
    assert XML_CALLS.describe([TOOL], "").endswith("</IMPORTANT>")


@pytest.mark.parametrize("form", [JSON_CALLS, XML_CALLS], ids=["json", "xml"])
@given(text=_texts, calls=st.lists(_calls, max_size=3))
def test_what_is_written_is_read_back(form: CallFormat, text: str, calls: list[ToolCall]) -> None:
    assert form.parse(form.write(Parsed(text, tuple(calls))), [TOOL]) == Parsed(text.strip(), tuple(calls))


@pytest.mark.parametrize("form", [JSON_CALLS, XML_CALLS], ids=["json", "xml"])
@given(text=st.text(max_size=200) | st.text('<tol_ca>{}[]="funcprme/\\n 1', max_size=200))
def test_any_text_is_understood_or_refused(form: CallFormat, text: str) -> None:
    with suppress(MalformedCall):
        assert len(form.parse(text, [TOOL]).text) <= len(text)


@pytest.mark.parametrize(
    ("form", "text", "said"),
    [
        (JSON_CALLS, "<tool_call>ls</tool_call>", "no JSON object"),
        (JSON_CALLS, '<tool_call>{"name": "edit", "arguments": {"line": NaN}}', "NaN is no JSON"),
        (JSON_CALLS, '<tool_call>{"name": 3}', "a name is a string"),
        (XML_CALLS, '<tool_call>{"name": "edit"}</tool_call>', "no <function=NAME>"),
        (XML_CALLS, "<tool_call><function=edit><parameter=path>a", "no <function=NAME>"),
        (XML_CALLS, "<tool_call><function=edit>path a</function></tool_call>", "something else than <parameter"),
    ],
)
def test_a_malformed_call_says_what_is_wrong(form: CallFormat, text: str, said: str) -> None:
    with pytest.raises(MalformedCall, match=said):
        form.parse(text, [TOOL])


def test_xml_values_have_the_type_that_the_tool_wants() -> None:
    text = "<tool_call><function=edit><parameter=path>3</parameter><parameter=line>x</parameter></function>"
    assert XML_CALLS.parse(text, [TOOL]).calls == (ToolCall("edit", {"path": "3", "line": "x"}),), (
        "what is no JSON stays"
    )
    other = XML_CALLS.parse("<tool_call><function=unknown><parameter=a>[1]</parameter></function>", [TOOL])
    assert other.calls == (ToolCall("unknown", {"a": "[1]"}),)


def test_no_json_that_cannot_be_stored_comes_through() -> None:
    assert parse_json('{"\\ud800": ["\\udfff"]}') == {"?": ["?"]}
    for text in ("[" * 100_000, "Infinity", "{"):
        with pytest.raises(ValueError, match=r"."):
            parse_json(text)
