"""Defects in operators, constants, conditions and subscripts."""

import ast
from collections.abc import Iterator, Mapping

from stepwell.tasks.packages.mutation_kinds.kind import Kind
from stepwell.tasks.packages.source_text import Edit, SourceText

FLIPPED = {
    "==": "!=",
    "!=": "==",
    "<": ">",
    ">": "<",
    "<=": ">=",
    ">=": "<=",
    "in": "not in",
    "not in": "in",
    "is": "is not",
    "is not": "is",
}
MOVED = {"<": "<=", "<=": "<", ">": ">=", ">=": ">"}
ARITHMETIC = {
    "+": "-",
    "-": "+",
    "*": "//",
    "/": "*",
    "//": "*",
    "%": "//",
    "**": "*",
    "<<": ">>",
    ">>": "<<",
    "&": "|",
    "|": "&",
    "^": "|",
}
BOOLEAN = {"and": "or", "or": "and"}
_BINDING = ast.Name | ast.Call | ast.Attribute


def swapped_operator(text: SourceText, left: ast.expr, right: ast.expr, table: Mapping[str, str]) -> Iterator[Edit]:
    """The operator between two operands replaced by what the table says."""
    tokens = [token for token in text.between(text.end(left), text.start(right)) if token.text not in "()"]
    if not tokens:
        return
    operator = " ".join(token.text for token in tokens)
    if operator in table:
        yield Edit(tokens[0].start, tokens[-1].end, table[operator])


def without_first_token(text: SourceText, node: ast.UnaryOp) -> Edit:
    """A prefix operator taken away, with the blanks after it; brackets around the operand stay."""
    operator = next(iter(text.between(text.start(node), text.end(node))))
    after = text.data[operator.end : text.end(node)]
    return Edit(operator.start, text.end(node) - len(after.lstrip(b" ")), "")


def comparison_flipped(node: ast.AST, text: SourceText) -> Iterator[Edit]:
    """`a == b` becomes `a != b`, `a in b` becomes `a not in b`."""
    if isinstance(node, ast.Compare) and len(node.ops) == 1:
        yield from swapped_operator(text, node.left, node.comparators[0], FLIPPED)


def boundary_moved(node: ast.AST, text: SourceText) -> Iterator[Edit]:
    """`a < b` becomes `a <= b`; each of a chain by itself."""
    if isinstance(node, ast.Compare):
        operands = [node.left, *node.comparators]
        for left, right in zip(operands, node.comparators, strict=False):
            yield from swapped_operator(text, left, right, MOVED)


def arithmetic_swapped(node: ast.AST, text: SourceText) -> Iterator[Edit]:
    """`a + b` becomes `a - b`; `a += b` becomes `a -= b`."""
    if isinstance(node, ast.BinOp):
        if isinstance(node.op, ast.Mod) and isinstance(node.left, ast.Constant) and isinstance(node.left.value, str):
            return  # Formatting: anything else is a TypeError that nobody would write.
        yield from swapped_operator(text, node.left, node.right, ARITHMETIC)
    if isinstance(node, ast.AugAssign):
        table = {f"{operator}=": f"{other}=" for operator, other in ARITHMETIC.items()}
        yield from swapped_operator(text, node.target, node.value, table)


def operands_swapped(node: ast.AST, text: SourceText) -> Iterator[Edit]:
    """`a - b` becomes `b - a`."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Sub | ast.Div | ast.FloorDiv | ast.Mod | ast.Pow):
        left, right = node.left, node.right
        gap = text.data[text.end(left) : text.start(right)].decode()
        plain = text.start(node) == text.start(left) and text.end(node) == text.end(right) and not set(gap) & set("()")
        binds = isinstance(left, _BINDING) and isinstance(right, ast.Constant | ast.Subscript | _BINDING)
        if plain and binds:
            yield text.replace(node, text.text(right) + gap + text.text(left))


def boolean_swapped(node: ast.AST, text: SourceText) -> Iterator[Edit]:
    """`a and b` becomes `a or b`; each operator of a chain by itself."""
    if isinstance(node, ast.BoolOp):
        for left, right in zip(node.values, node.values[1:], strict=False):
            yield from swapped_operator(text, left, right, BOOLEAN)


def condition_negated(node: ast.AST, text: SourceText) -> Iterator[Edit]:
    """`not a` becomes `a`; a condition `a` becomes `not (a)`."""
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        yield without_first_token(text, node)
    elif isinstance(node, ast.If | ast.While | ast.IfExp):
        test = node.test
        if isinstance(test, ast.Name | ast.Attribute | ast.Call | ast.Subscript):
            yield text.replace(test, f"not {text.text(test)}")


def constant_changed(node: ast.AST, text: SourceText) -> Iterator[Edit]:
    """A number is one more or less, a truth value the other one, an empty text a space and a space nothing."""
    if not isinstance(node, ast.Constant):
        return
    match node.value:
        case bool(value):
            yield text.replace(node, str(not value))
        case int(value):
            yield text.replace(node, str(value + 1))
            if value > 0:
                yield text.replace(node, str(value - 1))
        case float(value):
            yield text.replace(node, repr(value + 1.0))
        case "":
            yield text.replace(node, "' '")
        case " ":
            yield text.replace(node, "''")
        case _:
            return


def sign_lost(node: ast.AST, text: SourceText) -> Iterator[Edit]:
    """`-a` becomes `a`."""
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        yield without_first_token(text, node)


def branches_swapped(node: ast.AST, text: SourceText) -> Iterator[Edit]:
    """`a if c else b` becomes `b if c else a`."""
    if isinstance(node, ast.IfExp):
        middle = text.data[text.end(node.body) : text.start(node.orelse)].decode()
        yield Edit(text.start(node.body), text.end(node.orelse), text.text(node.orelse) + middle + text.text(node.body))


def slice_shifted(node: ast.AST, text: SourceText) -> Iterator[Edit]:
    """A bound of a slice is one more, or left out."""
    if not isinstance(node, ast.Slice):
        return
    for bound in (node.lower, node.upper):
        if bound is None:
            continue
        if isinstance(bound, ast.Constant) and isinstance(bound.value, int):
            yield text.replace(bound, str(bound.value + 1))
        elif isinstance(bound, ast.Name | ast.Attribute | ast.Call | ast.BinOp):
            yield text.replace(bound, f"{text.text(bound)} + 1")
        yield text.replace(bound, "")


def index_moved(node: ast.AST, text: SourceText) -> Iterator[Edit]:
    """The first element for the last, the last for the first, the next for one in between."""
    if isinstance(node, ast.Subscript):
        written = text.text(node.slice)
        if written in ("0", "1", "-1", "-2"):
            yield text.replace(node.slice, {"0": "-1", "1": "0", "-1": "0", "-2": "-1"}[written])


EXPRESSION_KINDS = tuple(
    Kind(rule.__name__, rule)
    for rule in (
        comparison_flipped,
        boundary_moved,
        arithmetic_swapped,
        operands_swapped,
        boolean_swapped,
        condition_negated,
        constant_changed,
        sign_lost,
        branches_swapped,
        slice_shifted,
        index_moved,
    )
)
