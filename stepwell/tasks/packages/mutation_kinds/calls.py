"""Defects in calls: what is called, with which arguments, in which order."""

import ast
from collections.abc import Iterator

from stepwell.tasks.packages.mutation_kinds.kind import Kind
from stepwell.tasks.packages.source_text import Edit, SourceText

_PAIRS = (
    *(("min", "max"), ("any", "all"), ("startswith", "endswith"), ("lstrip", "rstrip"), ("lower", "upper")),
    *(("find", "rfind"), ("index", "rindex"), ("split", "rsplit"), ("partition", "rpartition"), ("floor", "ceil")),
    *(("append", "extend"), ("union", "intersection"), ("issubset", "issuperset"), ("ljust", "rjust")),
    *(("isdigit", "isalpha"), ("keys", "values"), ("match", "search"), ("removeprefix", "removesuffix")),
    *(("appendleft", "append"), ("popleft", "pop"), ("map", "filter"), ("isupper", "islower"), ("add", "discard")),
)
_ONE_WAY = {
    "sorted": "list",
    "strip": "lstrip",
    "reversed": "list",
    "set": "list",
    "sum": "max",
    "fullmatch": "match",
    "update": "setdefault",
    "title": "capitalize",
}
SWAPPED = _ONE_WAY | {b: a for a, b in reversed(_PAIRS)} | dict(_PAIRS)
"""Name of a function or method to the one that is easily mistaken for it."""
DROPPED = ("strip", "lstrip", "rstrip", "lower", "upper", "title", "capitalize", "swapcase", "casefold")
"""Methods of text without which a program still runs."""


def method_swapped(node: ast.AST, text: SourceText) -> Iterator[Edit]:
    """`min(a)` becomes `max(a)`; `a.startswith(b)` becomes `a.endswith(b)`."""
    if not isinstance(node, ast.Call):
        return
    called = node.func
    if isinstance(called, ast.Name) and called.id in SWAPPED:
        yield text.replace(called, SWAPPED[called.id])
    elif isinstance(called, ast.Attribute) and called.attr in SWAPPED:
        end = text.end(called)
        yield Edit(end - len(called.attr.encode()), end, SWAPPED[called.attr])


def text_method_dropped(node: ast.AST, text: SourceText) -> Iterator[Edit]:
    """`a.strip()` becomes `a`."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in DROPPED:
        yield Edit(text.end(node.func.value), text.end(node), "")


def arguments_swapped(node: ast.AST, text: SourceText) -> Iterator[Edit]:
    """`f(a, b)` becomes `f(b, a)`; neighbours only."""
    if not isinstance(node, ast.Call):
        return
    for first, second in zip(node.args, node.args[1:], strict=False):
        if isinstance(first, ast.Starred | ast.GeneratorExp) or isinstance(second, ast.Starred):
            continue
        gap = text.data[text.end(first) : text.start(second)].decode()
        if gap.strip() == "," and text.text(first) != text.text(second):
            yield Edit(text.start(first), text.end(second), text.text(second) + gap + text.text(first))


def keyword_dropped(node: ast.AST, text: SourceText) -> Iterator[Edit]:
    """`f(a, key=b)` becomes `f(a)`."""
    if not isinstance(node, ast.Call):
        return
    for keyword in node.keywords:
        if keyword.arg is None or keyword.end_lineno != node.end_lineno:
            continue
        before = [token for token in text.between(text.start(node), text.start(keyword.value)) if token.text == ","]
        if before and text.data[before[-1].end : text.start(keyword.value)].decode().strip() == f"{keyword.arg}=":
            yield Edit(before[-1].start, text.end(keyword.value), "")


def fallback_changed(node: ast.AST, text: SourceText) -> Iterator[Edit]:
    """`d.get(k, x)` and `d.pop(k, x)` lose their fallback; `d.get(k)` becomes `d[k]`."""
    match node:
        case ast.Call(func=ast.Attribute(value=owner, attr="get"), args=[key], keywords=[]):
            yield text.replace(node, f"{text.text(owner)}[{text.text(key)}]")
        case ast.Call(func=ast.Attribute(attr="get" | "pop"), args=[key, fallback], keywords=[]):
            yield Edit(text.end(key), text.end(fallback), "")
        case ast.Call(func=ast.Name(id="getattr"), args=[_, name, fallback], keywords=[]):
            yield Edit(text.end(name), text.end(fallback), "")
        case _:
            return


CALL_KINDS = tuple(
    Kind(rule.__name__, rule)
    for rule in (method_swapped, text_method_dropped, arguments_swapped, keyword_dropped, fallback_changed)
)
