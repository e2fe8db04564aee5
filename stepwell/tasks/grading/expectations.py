"""What a test function expects, and what it could expect instead with the same looks. Pure."""

import ast
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate

LITERAL, TURNED, TURNED_EQUALITY = range(3)
"""How much a changed expectation tells: another constant tells nothing, a question turned round little, `!=` more."""

_TURNED_OPERATORS: dict[type[ast.cmpop], tuple[str, str]] = {
    ast.Eq: ("==", "!="),
    ast.NotEq: ("!=", "=="),
    ast.Lt: ("<", ">="),
    ast.GtE: (">=", "<"),
    ast.Gt: (">", "<="),
    ast.LtE: ("<=", ">"),
    ast.In: ("in", "not in"),
    ast.NotIn: ("not in", "in"),
    ast.Is: ("is", "is not"),
    ast.IsNot: ("is not", "is"),
}
_EQUALITY_METHODS = frozenset(
    {"assertEqual", "assertEquals", "assertListEqual", "assertTupleEqual", "assertDictEqual", "assertSetEqual"}
    | {"assertMultiLineEqual", "assertSequenceEqual", "assertCountEqual"}
)
_METHOD_PAIRS = (
    ("assertTrue", "assertFalse"),
    ("assertIn", "assertNotIn"),
    ("assertIs", "assertIsNot"),
    ("assertIsNone", "assertIsNotNone"),
    ("assertIsInstance", "assertNotIsInstance"),
    ("assertGreater", "assertLessEqual"),
    ("assertLess", "assertGreaterEqual"),
)
_TURNED_METHODS = dict([*_METHOD_PAIRS, *((second, first) for first, second in _METHOD_PAIRS)])
_EXCEPTIONS = ("ValueError", "TypeError", "KeyError", "IndexError", "AttributeError")
_RAISES = frozenset({"raises", "assertRaises"})
_LETTERS = "aeiou", "bcdfgklmnprst"


@dataclass(frozen=True)
class Expectation:
    """A stretch of a file that says what is expected, and what could stand there instead."""

    start: int
    """First byte in the UTF-8 of the file."""
    end: int
    tells: int
    """`LITERAL`, `TURNED` or `TURNED_EQUALITY`."""
    others: tuple[str, ...]
    """Texts of which each expects what the original does not."""


def expectations_of(source: str, function: ast.FunctionDef) -> list[Expectation]:
    """Expectations in the body of a function of `source`, those of inner functions left out.

    Whether a line is reached cannot be told from the text: a changed expectation convicts only where the reference
    solution fails it.
    """
    text = _Text(source)
    named = _named_once(function)
    found: list[Expectation] = []
    for node in _own_nodes(function):
        if isinstance(node, ast.Assert):
            found += _of_assertion(text, node.test, named)
        elif isinstance(node, ast.Call):
            found += _of_call(text, node)
    return found


class _Text:
    """A source by bytes."""

    def __init__(self, source: str) -> None:
        self.data = source.encode()
        lines = self.data.split(b"\n")
        self._starts = list(accumulate((len(line) + 1 for line in lines), initial=0))

    def span(self, node: ast.expr) -> tuple[int, int]:
        assert node.end_lineno is not None
        assert node.end_col_offset is not None
        start = self._starts[node.lineno - 1] + node.col_offset
        return start, self._starts[node.end_lineno - 1] + node.end_col_offset

    def of(self, node: ast.expr) -> str | None:
        """Text of an expression on one line; None for others, and where line ends are not counted as Python does."""
        start, end = self.span(node)
        text = self.data[start:end].decode(errors="replace")
        try:
            same = ast.dump(ast.parse(text, mode="eval").body) == ast.dump(node)
        except SyntaxError:
            return None
        return text if same and "\n" not in text else None


def _of_assertion(text: _Text, test: ast.expr, named: Mapping[str, Sequence[ast.expr]]) -> list[Expectation]:
    if isinstance(test, ast.Compare) and len(test.ops) == 1:
        left, right = test.left, test.comparators[0]
        literals: list[Expectation] = []
        if isinstance(test.ops[0], ast.Eq):
            pairs = [(one, other) for one in _values(left, named) for other in _values(right, named)]
            literals = list(dict.fromkeys(found for pair in pairs for found in _literals(text, *pair)))
        return literals or _turned_operator(text, left, test.ops[0], right)
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        inner, whole = text.of(test.operand), text.of(test)
        return [Expectation(*text.span(test), TURNED, (inner,))] if inner and whole else []
    if isinstance(test, ast.Call | ast.Name | ast.Attribute):
        inner = text.of(test)
        return [Expectation(*text.span(test), TURNED, (f"not {inner}",))] if inner else []
    return []


def _values(side: ast.expr, named: Mapping[str, Sequence[ast.expr]]) -> Sequence[ast.expr]:
    """What stands on one side: the side, or what its name stands for."""
    return named.get(side.id, [side]) if isinstance(side, ast.Name) else [side]


def _named_once(function: ast.FunctionDef) -> dict[str, Sequence[ast.expr]]:
    """Names that are read in one place, to what they are given: by an assignment, or by a loop over rows of a table."""
    reads: Counter[str] = Counter()
    given: dict[str, list[ast.expr]] = {}
    for node in _own_nodes(function):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
            reads[node.id] += 1
        elif isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
            given.setdefault(node.targets[0].id, []).append(node.value)
        elif isinstance(node, ast.For) and isinstance(node.iter, ast.List | ast.Tuple):
            for row in node.iter.elts:
                for name, value in _pairs(node.target, row):
                    given.setdefault(name, []).append(value)
    return {name: values for name, values in given.items() if reads[name] == 1}


def _pairs(target: ast.expr, row: ast.expr) -> Iterator[tuple[str, ast.expr]]:
    if isinstance(target, ast.Tuple) and isinstance(row, ast.Tuple) and len(target.elts) == len(row.elts):
        for name, value in zip(target.elts, row.elts, strict=True):
            if isinstance(name, ast.Name):
                yield name.id, value


def _of_call(text: _Text, call: ast.Call) -> list[Expectation]:
    name = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
    if name in _RAISES and call.args and isinstance(call.args[0], ast.Name):
        return _other_exceptions(text, call.args[0])
    if not isinstance(call.func, ast.Attribute) or not isinstance(call.func.value, ast.Name):
        return []
    if name in _EQUALITY_METHODS and len(call.args) >= 2:
        return _literals(text, call.args[0], call.args[1])
    if name in _TURNED_METHODS and call.args:
        end = text.span(call.func)[1]
        return [Expectation(end - len(name), end, TURNED, (_TURNED_METHODS[name],))]
    return []


def _literals(text: _Text, left: ast.expr, right: ast.expr) -> list[Expectation]:
    """The constants of the one side that is made of constants alone."""
    sides = [side for side in (_inside_approx(left), _inside_approx(right)) if _is_literal(side)]
    if len(sides) != 1:
        return []
    found: list[Expectation] = []
    for constant in _constants(sides[0]):
        written = text.of(constant)
        others = tuple(_other_constants(written, constant.value)) if written else ()
        if others:
            found.append(Expectation(*text.span(constant), LITERAL, others))
    return found


def _inside_approx(side: ast.expr) -> ast.expr:
    if isinstance(side, ast.Call) and len(side.args) == 1 and not side.keywords:
        name = side.func.attr if isinstance(side.func, ast.Attribute) else getattr(side.func, "id", "")
        if name == "approx":
            return side.args[0]
    return side


def _is_literal(side: ast.expr) -> bool:
    try:
        ast.literal_eval(side)
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        return False
    return True


def _constants(side: ast.expr) -> Iterator[ast.Constant]:
    """What a literal consists of, but for what a dict or a set, where two could become one, holds."""
    if isinstance(side, ast.Constant):
        yield side
    elif isinstance(side, ast.List | ast.Tuple):
        for element in side.elts:
            yield from _constants(element)
    elif isinstance(side, ast.Dict):
        for value in side.values:
            yield from _constants(value)
    elif isinstance(side, ast.Set) and len(side.elts) == 1:
        yield from _constants(side.elts[0])
    elif isinstance(side, ast.UnaryOp) and isinstance(side.op, ast.USub) and _constant_of(side.operand) != 0:
        yield from _constants(side.operand)


def _constant_of(node: ast.expr) -> object:
    return node.value if isinstance(node, ast.Constant) else None


def _other_constants(written: str, value: object) -> Iterator[str]:
    """Texts of other values of the same type and form."""
    if isinstance(value, bool):
        yield str(not value)
    elif isinstance(value, int) and written == str(value):
        yield from (str(value + step) for step in (-2, -1, 1, 2) if value + step >= 0)
    elif isinstance(value, float) and re.fullmatch(r"\d+\.\d+", written):
        whole, _, rest = written.partition(".")
        yield from (f"{int(whole) + step}.{rest}" for step in (1, 2))
    elif isinstance(value, str):
        yield from _other_strings(written, value)


def _other_strings(written: str, value: str) -> Iterator[str]:
    """One letter or digit is another of its kind; an empty string has one letter."""
    quoted = re.fullmatch(r"(?s)([uU]?)(['\"])(.*)\2", written)
    if quoted is None or written.startswith(quoted[2] * 3):
        return
    prefix, quote, inner = quoted[1], quoted[2], quoted[3]
    candidates = list(_one_other(inner)) if inner else list("axz")
    for candidate in candidates:
        other = f"{prefix}{quote}{candidate}{quote}"
        if ast.literal_eval(other) != value:
            yield other


def _one_other(inner: str) -> Iterator[str]:
    if "\\" in inner:
        return
    for place, character in enumerate(inner):
        if character in "0123456789":
            yield f"{inner[:place]}{(int(character) + 3) % 10}{inner[place + 1 :]}"
        for letters in _LETTERS:
            if character.lower() in letters:
                other = letters[(letters.index(character.lower()) + 1) % len(letters)]
                yield inner[:place] + (other.upper() if character.isupper() else other) + inner[place + 1 :]


def _turned_operator(text: _Text, left: ast.expr, operator: ast.cmpop, right: ast.expr) -> list[Expectation]:
    is_written, becomes = _TURNED_OPERATORS[type(operator)]
    start, end = text.span(left)[1], text.span(right)[0]
    between = text.data[start:end].decode(errors="replace")
    place = between.find(is_written)
    if re.sub(r"[\s()]+", " ", between).strip() != is_written or place < 0:
        return []
    tells = TURNED_EQUALITY if isinstance(operator, ast.Eq) else TURNED
    start += len(between[:place].encode())
    return [Expectation(start, start + len(is_written), tells, (becomes,))]


def _other_exceptions(text: _Text, name: ast.Name) -> list[Expectation]:
    return [Expectation(*text.span(name), TURNED, tuple(other for other in _EXCEPTIONS if other != name.id))]


def _own_nodes(function: ast.FunctionDef) -> Iterator[ast.AST]:
    """Nodes of the body, but for what inner functions and classes hold."""
    stack: list[ast.AST] = list(reversed(function.body))
    while stack:
        node = stack.pop()
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda | ast.ClassDef):
            continue
        yield node
        stack.extend(reversed(list(ast.iter_child_nodes(node))))
