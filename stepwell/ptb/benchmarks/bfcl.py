"""BFCL exec_simple: one function on offer, and one call of it that is right."""

import ast
import json
from collections.abc import Mapping
from pathlib import Path

from stepwell.ptb.benchmarks.rows import Row, read_rows
from stepwell.ptb.item import CallGold, Item, Message

_TYPES = {"dict": "object", "float": "number", "tuple": "array"}
"""The publisher's names of types, in those of JSON Schema."""


def load_bfcl(files: Mapping[str, Path], seed: int) -> list[Item]:
    """`test`: rows of `id`, `question`, `function` and `ground_truth`, as the Berkeley Function Calling Leaderboard
    publishes them (its questions and its possible answers joined by id)."""
    del seed
    return [_item(row) for row in read_rows(files["test"])]


def _item(row: Row) -> Item:
    functions, calls, turns = row.rows("function"), row.texts("ground_truth"), row.list_of_rows("question")
    if len(functions) != 1 or len(calls) != 1 or len(turns) != 1:
        raise row.wrong(f"{len(functions)} functions, {len(calls)} calls and {len(turns)} turns, wanted one of each")
    function = functions[0]
    name, arguments = _call(row, calls[0])
    if name != function.text("name"):
        raise row.wrong(f"the right call is of {name!r}, and {function.text('name')!r} is on offer")
    properties = function.row("parameters").value("properties")
    gold = CallGold(name, arguments, _integers(properties))
    messages = tuple(Message(turn.role(), turn.text("content")) for turn in turns[0])
    return Item(row.text("id"), messages, gold, (_tool(function),))


def _call(row: Row, source: str) -> tuple[str, tuple[tuple[str, object], ...]]:
    """Name and arguments of a call in Python's syntax, of constants only; nothing of it is run."""
    try:
        call = ast.parse(source.strip(), mode="eval").body
        if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Name) or call.args:
            raise ValueError("it is no call of a name with named arguments only")
        arguments: list[tuple[str, object]] = []
        for keyword in call.keywords:
            if keyword.arg is None:
                raise ValueError("it spreads a dictionary")
            arguments.append((keyword.arg, ast.literal_eval(keyword.value)))
    except (SyntaxError, ValueError) as error:
        raise row.wrong(f"the right call {source!r} cannot be read: {error}") from error
    return call.func.id, tuple(arguments)


def _integers(properties: object) -> frozenset[str]:
    """Arguments declared as integers, or as lists of them."""
    if not isinstance(properties, dict):
        return frozenset()
    return frozenset(str(name) for name, schema in properties.items() if _innermost(schema) == "integer")


def _innermost(schema: object) -> object:
    while isinstance(schema, dict) and "items" in schema:
        schema = schema["items"]  # pyright: ignore[reportUnknownVariableType]  # whatever JSON holds
    return schema.get("type") if isinstance(schema, dict) else None


def _tool(function: Row) -> str:
    named = {
        "name": function.text("name"),
        "description": function.text("description"),
        "parameters": _schema(function.value("parameters")),
    }
    return json.dumps({"type": "function", "function": named}, ensure_ascii=False)


def _schema(value: object) -> object:
    if isinstance(value, list):
        return [_schema(one) for one in value]
    if not isinstance(value, dict):
        return value
    changed = {str(key): _schema(inner) for key, inner in value.items()}
    kind = changed.get("type")
    return {**changed, "type": _TYPES.get(kind, kind)} if isinstance(kind, str) else changed
