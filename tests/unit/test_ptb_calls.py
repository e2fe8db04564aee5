"""Exact equality of function calls."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stepwell.ptb.benchmarks import BrokenRows, benchmark
from stepwell.ptb.item import CallGold
from stepwell.ptb.scorers.calls import equal_values, score_call
from tests.ptb_rows import bfcl_row, write_lines

GOLD = CallGold(
    "f",
    (("n", 20), ("p", 0.6), ("at", (45.76, 4.85)), ("on", True), ("name", "5"), ("grid", [[1, 2], [3, 4]])),
    frozenset({"n", "grid"}),
)
RIGHT = {"n": 20, "p": 0.6, "at": [45.76, 4.85], "on": True, "name": "5", "grid": [[1, 2], [3, 4]]}


def block(name: str, arguments: object) -> str:
    """A call as a model writes it."""
    return f"<tool_call>\n{json.dumps({'name': name, 'arguments': arguments})}\n</tool_call>"


def test_the_gold_call_is_right_with_a_list_for_its_tuple() -> None:
    assert score_call(block("f", RIGHT), GOLD).value == 1.0


def test_the_order_of_arguments_does_not_matter_and_words_around_the_call_neither() -> None:
    turned = dict(reversed(RIGHT.items()))
    assert score_call(f"I call it.\n{block('f', turned)}\nDone.", GOLD).value == 1.0


@pytest.mark.parametrize(
    ("changed", "right"),
    [
        ({"n": 20.0}, False),  # the schema says integer
        ({"n": "20"}, False),
        ({"n": True}, False),
        ({"p": 0.6000001}, False),
        ({"p": 0.60}, True),
        ({"at": [4.85, 45.76]}, False),
        ({"at": [45.76]}, False),
        ({"at": {"0": 45.76}}, False),
        ({"on": 1}, False),
        ({"on": "true"}, False),
        ({"name": 5}, False),
        ({"name": "5 "}, False),
        ({"grid": [[1, 2], [3, 4.0]]}, False),
        ({"grid": [1, 2, 3, 4]}, False),
        ({"more": None}, False),
    ],
)
def test_one_other_value_is_another_call(changed: dict[str, object], right: bool) -> None:
    scored = score_call(block("f", RIGHT | changed), GOLD)
    assert scored.value == float(right), scored.why


@pytest.mark.parametrize(
    "answer",
    [
        "",
        "f(n=20)",
        block("g", RIGHT),
        block("f", {}),
        block("f", {key: value for key, value in RIGHT.items() if key != "on"}),
        block("f", RIGHT) + block("f", RIGHT),
        block("f", RIGHT) + "<tool_call>",
        block("f", RIGHT).removesuffix("</tool_call>"),
        block("f", json.dumps(RIGHT)),
        block("f", list(RIGHT.values())),
        '<tool_call>{"name": "f", "name": "f", "arguments": {}}</tool_call>',
        '<tool_call>{"name": "f", "arguments": {"n": NaN}}</tool_call>',
        "<tool_call>" + "[" * 100_000 + "</tool_call>",
    ],
)
def test_what_is_not_exactly_the_one_call_is_wrong(answer: str) -> None:
    assert score_call(answer, GOLD).value == 0.0


def test_an_integer_is_right_for_a_float_of_its_value() -> None:
    gold = CallGold("f", (("x", 5.0),), frozenset())
    assert score_call(block("f", {"x": 5}), gold).value == 1.0
    assert score_call(block("f", {"x": 5.5}), gold).value == 0.0


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@given(JSON, JSON)
def test_equality_of_values_is_reflexive_and_symmetric(one: object, other: object) -> None:
    assert equal_values(one, one, integers=True)
    assert equal_values(one, other) == equal_values(other, one)


@pytest.mark.parametrize(
    ("truth", "found"),
    [
        ("f(x=__import__('os').getcwd())", "cannot be read"),
        ("f(1)", "cannot be read"),
        ("f(**{'x': 1})", "cannot be read"),
        ("f.g(x=1)", "cannot be read"),
        ("f(x=", "cannot be read"),
    ],
)
def test_a_right_call_is_read_and_never_run(tmp_path: Path, truth: str, found: str) -> None:
    row = bfcl_row(truth, {"x": {"type": "integer"}})
    with pytest.raises(BrokenRows, match=found):
        benchmark("bfcl").load({"test": write_lines(tmp_path / "bfcl.jsonl", [row])}, 0, whole=False)


def test_integers_inside_lists_are_known_as_such_and_negative_numbers_are_read(tmp_path: Path) -> None:
    schema = {"xs": {"type": "array", "items": {"type": "integer"}}, "y": {"type": "float"}}
    row = bfcl_row("f(xs=[-1, 2], y=-8)", schema)
    (item,) = benchmark("bfcl").load({"test": write_lines(tmp_path / "bfcl.jsonl", [row])}, 0, whole=False)
    assert item.gold == CallGold("f", (("xs", [-1, 2]), ("y", -8)), frozenset({"xs"}))
    assert score_call(block("f", {"xs": [-1, 2], "y": -8.0}), item.gold).value == 1.0
    assert score_call(block("f", {"xs": [-1, 2.0], "y": -8}), item.gold).value == 0.0
    assert json.loads(item.tools[0])["function"]["parameters"]["type"] == "object"
