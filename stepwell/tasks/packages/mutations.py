"""Every defect that the functions of a module can get. Pure."""

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from stepwell.tasks.packages.mutation_kinds import KINDS
from stepwell.tasks.packages.source_text import Edit, SourceText

_Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True)
class Mutation:
    """One defect in one module."""

    kind: str
    """Name of its kind."""
    function: str
    """Qualified name within the module."""
    edit: Edit
    line: int
    """Line, from 1, in which the change begins."""
    traced: range
    """Lines one of which runs before the defect can show."""
    function_lines: int
    """Length of the function in lines."""


def mutations_of(source: str) -> list[Mutation]:
    """Defects in order of place, kind and edit; no edit twice.

    Left alone are documentation, decorators, annotations, f-strings, and what is outside of functions.

    Raises:
        SyntaxError: the module does not parse.
    """
    if "\r" in source.replace("\r\n", "") or source.startswith("\ufeff"):
        return []  # The parser counts lines and columns of such a source in its own way.
    text = SourceText(source)
    found: dict[Edit, Mutation] = {}
    for name, function in _functions(text.tree, ""):
        length = (function.end_lineno or function.lineno) - function.lineno + 1
        for node, traced in _nodes(function):
            for kind in KINDS:
                for edit in filter(text.can_take, kind.rule(node, text)):
                    mutation = Mutation(kind.name, name, edit, text.line_of(edit.start), traced, length)
                    found.setdefault(edit, mutation)
    return sorted(found.values(), key=lambda one: (one.edit.start, one.edit.end, one.kind, one.edit.text))


def _functions(node: ast.AST, prefix: str) -> Iterator[tuple[str, _Function]]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, _Function):
            yield prefix + child.name, child
            yield from _functions(child, f"{prefix}{child.name}.<locals>.")
        elif isinstance(child, ast.ClassDef):
            yield from _functions(child, f"{prefix}{child.name}.")
        elif isinstance(child, ast.stmt):
            yield from _functions(child, prefix)


def _nodes(function: _Function) -> Iterator[tuple[ast.AST, range]]:
    """Nodes of a function but not of those inside it, with the lines to trace."""
    yield function, _header(function.body[0], function.end_lineno)
    for statement in function.body:
        yield from _below(statement, range(0))


def _below(node: ast.AST, traced: range) -> Iterator[tuple[ast.AST, range]]:
    if isinstance(node, ast.JoinedStr | ast.ClassDef | _Function):
        return
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
        return
    if isinstance(node, ast.stmt | ast.ExceptHandler):
        traced = _header(node, node.end_lineno)
    yield node, traced
    annotation = node.annotation if isinstance(node, ast.AnnAssign) else None
    for child in ast.iter_child_nodes(node):
        if child is not annotation:
            yield from _below(child, traced)


def _header(node: ast.stmt | ast.ExceptHandler, end: int | None) -> range:
    """Lines of a statement, without those of the statements inside it."""
    body = getattr(node, "body", None)
    last = max(node.lineno, body[0].lineno - 1) if body else node.end_lineno or node.lineno
    return range(node.lineno, min(last, end or last) + 1)
