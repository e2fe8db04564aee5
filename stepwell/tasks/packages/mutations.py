"""Defects: small changes of one expression of a function, each of a kind that people make. Pure."""

import ast
import copy
from collections.abc import Iterator
from dataclasses import dataclass

_COMPARISONS: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
}
_OPERATORS: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.FloorDiv,
    ast.FloorDiv: ast.Mult,
    ast.Div: ast.Mult,
    ast.Mod: ast.FloorDiv,
}


_RELATED = {"min": "max", "max": "min", "any": "all", "all": "any", "sorted": "list", "map": "filter", "filter": "map"}


@dataclass(frozen=True)
class Mutation:
    """One defect in one module."""

    kind: str
    function: str
    """Qualified name within the module."""
    line: int
    before: str
    """The expression as it was."""
    after: str
    """The expression with the defect."""
    source: str
    """The whole module with the defect."""
    function_lines: int
    """Length of the function in lines."""


def mutations_of(source: str) -> list[Mutation]:
    """Every defect that a module can get, in order of place and kind. Only expressions on one line are changed, so that
    the rest of the module stays as it was, to the byte.

    Raises:
        SyntaxError: the module does not parse.
    """
    found: list[Mutation] = []
    for name, function in _functions(ast.parse(source), ""):
        length = (function.end_lineno or function.lineno) - function.lineno + 1
        for node in _own_nodes(function):
            for kind, changed in _changes(node):
                mutated = _replace(source, node, changed)
                if mutated is None:
                    continue
                before = ast.get_source_segment(source, node) or ""
                found.append(Mutation(kind, name, node.lineno, before, ast.unparse(changed), mutated, length))
    return found


def _functions(node: ast.AST, prefix: str) -> Iterator[tuple[str, ast.FunctionDef]]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.FunctionDef):
            yield prefix + child.name, child
        elif isinstance(child, ast.ClassDef):
            yield from _functions(child, f"{prefix}{child.name}.")


def _own_nodes(function: ast.FunctionDef) -> list[ast.expr]:
    """Expressions in the body, in order of place; not decorators, defaults, annotations, or what only documents."""
    nodes: list[ast.expr] = []
    for statement in function.body:
        if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant):
            continue
        nodes += [node for node in ast.walk(statement) if isinstance(node, ast.expr)]
    return sorted(nodes, key=lambda node: (node.lineno, node.col_offset, -(node.end_col_offset or 0)))


def _changes(node: ast.expr) -> Iterator[tuple[str, ast.expr]]:
    """Kinds and changed forms of one expression."""
    match node:
        case ast.Compare(ops=[operator]) if type(operator) in _COMPARISONS:
            changed = copy.deepcopy(node)
            changed.ops = [_COMPARISONS[type(operator)]()]
            yield "comparison", changed
        case ast.BinOp(op=operator) if type(operator) in _OPERATORS:
            changed = copy.deepcopy(node)
            changed.op = _OPERATORS[type(operator)]()
            yield "operator", changed
            if not isinstance(operator, ast.Add | ast.Mult):
                yield "operands", ast.BinOp(node.right, node.op, node.left)
        case ast.BoolOp(op=operator):
            changed = copy.deepcopy(node)
            changed.op = ast.Or() if isinstance(operator, ast.And) else ast.And()
            yield "and_or", changed
        case ast.UnaryOp(op=ast.Not()):
            yield "lost_not", node.operand
        case ast.UnaryOp(op=ast.USub()):
            yield "lost_minus", node.operand
        case ast.Constant(value=bool(value)):
            yield "truth", ast.Constant(not value)
        case ast.Constant(value=int(value)):
            yield "off_by_one", ast.Constant(value + 1)
            if value > 0:
                yield "off_by_one", ast.Constant(value - 1)
        case ast.IfExp():
            yield "branches", ast.IfExp(node.test, node.orelse, node.body)
        case ast.Call(func=ast.Name(id=name)) if name in _RELATED:
            yield "related_call", ast.Call(ast.Name(_RELATED[name], ast.Load()), node.args, node.keywords)
        case ast.Call(args=[first, second, *others]) if not isinstance(first, ast.Starred | ast.Lambda):
            if not isinstance(second, ast.Starred):
                yield "arguments", ast.Call(node.func, [second, first, *others], node.keywords)
        case ast.Subscript(value=value, slice=ast.Slice(lower=lower, upper=upper, step=None)):
            if (lower is None) != (upper is None):
                yield "slice", ast.Subscript(value, ast.Slice(upper, lower, None), ast.Load())
        case _:
            return


def _replace(source: str, node: ast.expr, changed: ast.expr) -> str | None:
    """The module with `changed` in place of `node`; None if that cannot be done on one line, or changes nothing."""
    segment = ast.get_source_segment(source, node)
    if segment is None or node.lineno != node.end_lineno or node.end_col_offset is None:
        return None
    try:
        same = ast.dump(ast.parse(f"({segment})", mode="eval").body) == ast.dump(node)
    except SyntaxError:
        return None
    if not same:  # Inside an f-string, where places are not those of the source.
        return None
    lines = source.splitlines(keepends=True)
    line = lines[node.lineno - 1].encode()
    text = ast.unparse(changed).encode()
    lines[node.lineno - 1] = (line[: node.col_offset] + text + line[node.end_col_offset :]).decode()
    mutated = "".join(lines)
    try:
        return None if ast.dump(ast.parse(mutated)) == ast.dump(ast.parse(source)) else mutated
    except SyntaxError:
        return None
