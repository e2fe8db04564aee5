"""Defects in what a function gives, raises, assumes and leaves out."""

import ast
from collections.abc import Iterator

from stepwell.tasks.packages.mutation_kinds.kind import Kind
from stepwell.tasks.packages.source_text import Edit, SourceText

EXCEPTIONS = {
    "ValueError": "TypeError",
    "TypeError": "ValueError",
    "KeyError": "IndexError",
    "IndexError": "KeyError",
    "AttributeError": "KeyError",
    "LookupError": "ValueError",
    "StopIteration": "IndexError",
    "RuntimeError": "ValueError",
    "NotImplementedError": "ValueError",
    "Exception": "KeyError",
    "OSError": "ValueError",
    "UnicodeDecodeError": "UnicodeEncodeError",
    "ImportError": "AttributeError",
}
"""An exception to one that is easily mistaken for it."""


def return_changed(node: ast.AST, text: SourceText) -> Iterator[Edit]:
    """`return a` becomes `return None`, `return a, b` becomes `return b, a`."""
    if isinstance(node, ast.Return) and node.value is not None:
        value = node.value
        if isinstance(value, ast.Tuple) and len(value.elts) == 2:
            first, second = value.elts
            gap = text.data[text.end(first) : text.start(second)].decode()
            if gap.strip() == ",":
                yield Edit(text.start(first), text.end(second), text.text(second) + gap + text.text(first))
        if not isinstance(value, ast.Constant):
            yield Edit(text.start(node), text.end(node), "return None")


def exception_changed(node: ast.AST, text: SourceText) -> Iterator[Edit]:
    """Another exception is raised or caught."""
    raised: list[ast.expr | None] = []
    if isinstance(node, ast.Raise):
        raised = [node.exc.func if isinstance(node.exc, ast.Call) else node.exc]
    elif isinstance(node, ast.ExceptHandler):
        raised = [*node.type.elts] if isinstance(node.type, ast.Tuple) else [node.type]
    for exception in raised:
        if isinstance(exception, ast.Name) and exception.id in EXCEPTIONS:
            yield text.replace(exception, EXCEPTIONS[exception.id])


def raise_removed(node: ast.AST, text: SourceText) -> Iterator[Edit]:
    """`raise a` becomes `pass`."""
    if isinstance(node, ast.Raise) and node.exc is not None:
        yield text.replace(node, "pass")


def default_changed(node: ast.AST, text: SourceText) -> Iterator[Edit]:
    """A parameter has another default."""
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        for default in (*node.args.defaults, *node.args.kw_defaults):
            match default:
                case ast.Constant(value=bool(value)):
                    yield text.replace(default, str(not value))
                case ast.Constant(value=int(value)):
                    yield text.replace(default, str(value + 1))
                case ast.Constant(value=str(value)) if value:
                    yield text.replace(default, "''")
                case ast.Constant(value=""):
                    yield text.replace(default, "' '")
                case _:
                    continue


def guard_removed(node: ast.AST, text: SourceText) -> Iterator[Edit]:
    """A condition under which a function or a round of a loop ends early never holds."""
    match node:
        case ast.If(test=test, body=[ast.Return() | ast.Raise() | ast.Continue()], orelse=[]):
            yield text.replace(test, "False")
        case _:
            return


def loop_exit_changed(node: ast.AST, text: SourceText) -> Iterator[Edit]:
    """`break` becomes `continue` and the reverse."""
    if isinstance(node, ast.Break):
        yield text.replace(node, "continue")
    elif isinstance(node, ast.Continue):
        yield text.replace(node, "break")


def statement_removed(node: ast.AST, text: SourceText) -> Iterator[Edit]:
    """A call for its effect, an update in place or the setting of an attribute or element becomes `pass`."""
    match node:
        case ast.Expr(value=ast.Call()) | ast.AugAssign() | ast.Delete():
            yield text.replace(node, "pass")
        case ast.Assign(targets=[ast.Subscript()]):
            yield text.replace(node, "pass")
        case _:
            return


def targets_swapped(node: ast.AST, text: SourceText) -> Iterator[Edit]:
    """`a, b = c` becomes `b, a = c`."""
    match node:
        case ast.Assign(targets=[ast.Tuple(elts=[ast.Name() as first, ast.Name() as second])]):
            gap = text.data[text.end(first) : text.start(second)].decode()
            if gap.strip() == ",":
                yield Edit(text.start(first), text.end(second), second.id + gap + first.id)
        case _:
            return


STATEMENT_KINDS = tuple(
    Kind(rule.__name__, rule)
    for rule in (
        return_changed,
        exception_changed,
        raise_removed,
        default_changed,
        guard_removed,
        loop_exit_changed,
        statement_removed,
        targets_swapped,
    )
)
