"""Texts of programs and notebooks: the source as it stands, and each string that the source only builds."""

import ast
from collections.abc import Iterator, Mapping
from typing import cast

LEAST_CHARACTERS = 24
"""A built string from this length on is a text of its own."""


def program_texts(source: str) -> Iterator[str]:
    """The source, then the strings in it that do not stand there as one: joined, concatenated, with escapes."""
    yield source
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return  # not this Python: the source has been given
    for text in dict.fromkeys(_strings(tree)):
        if len(text) >= LEAST_CHARACTERS and text not in source:
            yield text


def _strings(node: ast.AST) -> Iterator[str]:
    built = _built(node)
    if built is not None:
        yield built
        return
    for child in ast.iter_child_nodes(node):
        yield from _strings(child)


def _built(node: ast.AST) -> str | None:
    """The string that an expression is, None if it is none that can be told without running it."""
    if isinstance(node, ast.Constant):
        if isinstance(node.value, bytes):
            return node.value.decode("utf-8", "replace")
        return node.value if isinstance(node.value, str) else None
    if isinstance(node, ast.JoinedStr):
        return "".join(_built(part) or " " for part in node.values)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        left, right = _built(node.left), _built(node.right)
        return None if left is None or right is None else left + right
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "join":
        return _joined(node)
    return None


def _joined(call: ast.Call) -> str | None:
    """`"glue".join([…])` of strings."""
    glue = _built(cast(ast.Attribute, call.func).value)
    if glue is None or len(call.args) != 1 or not isinstance(call.args[0], ast.List | ast.Tuple):
        return None
    parts = [_built(each) for each in call.args[0].elts]
    return None if None in parts else glue.join(part for part in parts if part is not None)


def notebook_texts(value: object) -> Iterator[str]:
    """The cells of a notebook, each with what it printed."""
    cells = cast("Mapping[str, object]", value).get("cells") if isinstance(value, Mapping) else None
    for cell in cast("list[object]", cells) if isinstance(cells, list) else []:
        if not isinstance(cell, Mapping):
            continue
        cell = cast("Mapping[str, object]", cell)
        source = _lines(cell.get("source"))
        if source.strip():
            yield from program_texts(source) if cell.get("cell_type") == "code" else [source]
        printed = " ".join(_printed(cell.get("outputs")))
        if printed.strip():
            yield printed


def _printed(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for key, below in cast("Mapping[str, object]", value).items():
            if not key.startswith("image/"):
                yield from _printed(below)
    elif isinstance(value, list):
        yield from (part for each in cast("list[object]", value) for part in _printed(each))


def _lines(value: object) -> str:
    """A cell's source, which is a string or a list of lines that keep their ends."""
    if isinstance(value, list):
        return "".join(line for line in cast("list[object]", value) if isinstance(line, str))
    return value if isinstance(value, str) else ""
