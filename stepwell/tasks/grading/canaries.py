"""Tests that must fail, made from the hidden tests themselves.

For every assertion of equality in an expected test there is a copy of the test in which one side is replaced by a value
that nothing honest equals. Honest code fails all of them. An object that equals everything, a bent `assert`, or a
runner that calls everything passed makes some of them pass, and gives itself away. Names are functions of the seed,
which the tested code is not given.
"""

import ast
import copy
import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

CANARIES_LIMIT = 128
"""Most canaries of one file; the first assertion of every test comes before the second of any."""
_EQUALITY_METHODS = frozenset(
    {"assertEqual", "assertListEqual", "assertTupleEqual", "assertDictEqual", "assertSetEqual"}
)

_WRONG = """
class {name}_class:
    pass

def {name}(value):
    if type(value) in (list, tuple, set, frozenset):
        return type(value)([{name}(inner) for inner in value] or [{name}_class()])
    if type(value) is dict:
        return {{key: {name}(inner) for key, inner in value.items()}} or {{{name}_class(): 0}}
    return {name}_class()
"""
_FIXED = """
def {name}():
    assert {claim}
"""
_FIXED_CLAIMS = ("1 == 2", "not object()", "[1] == [2]")


class BrokenTests(ValueError):
    """A hidden test file that is no Python, or does not hold an expected test."""


@dataclass(frozen=True)
class TestFiles:
    """Hidden test files with canaries among their tests."""

    __test__ = False  # Its name looks like a test class to pytest.

    files: dict[str, str]
    canaries: dict[str, str]
    """Id of each test that must fail, to the expected test that it was made from; empty for those of no test."""


def with_canaries(hidden: Mapping[str, str], expected: Iterable[str], seed: int) -> TestFiles:
    """Puts canaries into the hidden test files.

    Args:
        hidden: Path to source.
        expected: Ids of the tests that must pass: `file::function` or `file::Class::method`, perhaps with
            `[parameter]`.
        seed: Names of the canaries depend on it.

    Raises:
        BrokenTests: a file does not parse, or an id names no file.
    """
    by_file: dict[str, list[str]] = {}
    for test in expected:
        path = test.partition("::")[0]
        if path not in hidden:
            raise BrokenTests(f"the expected test {test!r} is in none of the hidden files {sorted(hidden)}")
        by_file.setdefault(path, []).append(test)
    files = dict(hidden)
    canaries: dict[str, str] = {}
    for path, tests in by_file.items():
        try:
            module = ast.parse(hidden[path])
        except (SyntaxError, ValueError) as error:
            raise BrokenTests(f"the hidden file {path!r} does not parse: {error}") from error
        made = _FileCanaries(hidden[path], module, path, seed)
        made.add(tests)
        files[path] = made.source()
        canaries |= made.canaries
    return TestFiles(files, canaries)


def functions_of(source: str) -> set[str]:
    """Names of the plain functions of a module.

    Raises:
        SyntaxError: it does not parse.
    """
    return {node.name for node in ast.parse(source).body if isinstance(node, ast.FunctionDef)}


class _FileCanaries:
    """Canaries of one file."""

    def __init__(self, source: str, module: ast.Module, path: str, seed: int) -> None:
        self._module = module
        self._path = path
        self._seed = seed
        self._count = 0
        self._wrong = f"w{self._random('wrong')}"
        self._parts = [source, _WRONG.format(name=self._wrong)]
        self.canaries: dict[str, str] = {}
        for claim in _FIXED_CLAIMS:
            name = self._name()
            self._parts.append(_FIXED.format(name=name, claim=claim))
            self.canaries[f"{path}::{name}"] = ""

    def add(self, tests: Iterable[str]) -> None:
        """Adds the canaries of expected tests; none for one whose function is not in the file itself.

        The tests of a parametrised function share a copy of it for each of its assertions: with a copy for each test
        pytest would make as many items as their number squared.
        """
        by_function: dict[str, list[str]] = {}
        for test in tests:
            by_function.setdefault(test.partition("[")[0], []).append(test)
        found = {name: original for name in by_function if (original := self._function(name)) is not None}
        places = [
            (position, name, test)
            for name, original in found.items()
            for position in range(len(_sides(original)))
            for test in by_function[name]
        ]
        copies: dict[tuple[str, int], str] = {}
        for position, name, test in sorted(places, key=lambda place: place[0])[:CANARIES_LIMIT]:
            if (name, position) not in copies:
                copies[name, position] = self._copy(found[name], name, position)
            self.canaries[copies[name, position] + test[len(name) :]] = test

    def _copy(self, original: ast.FunctionDef, name: str, position: int) -> str:
        """Adds a copy of a function with one side of an assertion replaced; its id, without parameters."""
        canary = copy.deepcopy(original)
        canary.name = self._name()
        side = _sides(canary)[position]
        side.replace(ast.Call(ast.Name(self._wrong, ast.Load()), [side.expression], []))
        self._parts.append(ast.unparse(ast.fix_missing_locations(canary)))
        classes = name.split("::")[1:-1]
        if classes:
            self._parts.append(f"{'.'.join(classes)}.{canary.name} = {canary.name}\ndel {canary.name}")
        return "::".join([self._path, *classes, canary.name])

    def _function(self, name: str) -> ast.FunctionDef | None:
        """The function of a test id without parameters, through its classes."""
        owner: ast.Module | ast.ClassDef = self._module
        *classes, function = name.split("::")[1:]
        for outer in classes:
            inner = [node for node in owner.body if isinstance(node, ast.ClassDef) and node.name == outer]
            if not inner:
                return None
            owner = inner[-1]
        found = [node for node in owner.body if isinstance(node, ast.FunctionDef) and node.name == function]
        return found[-1] if found else None

    def source(self) -> str:
        """The file as it was, so that its lines keep their numbers, and the canaries after it."""
        return "\n".join(self._parts) + "\n"

    def _name(self) -> str:
        self._count += 1
        return f"test_{self._random(str(self._count))}"

    def _random(self, purpose: str) -> str:
        return hashlib.sha256(f"canary/{self._seed}/{self._path}/{purpose}".encode()).hexdigest()[:12]


@dataclass(frozen=True)
class _Side:
    """One side of an equality that is asserted."""

    expression: ast.expr
    siblings: list[ast.expr] | None
    """The list that holds the expression, or None if it is the left of `compare`."""
    index: int
    compare: ast.Compare | None

    def replace(self, by: ast.expr) -> None:
        if self.siblings is not None:
            self.siblings[self.index] = by
        elif self.compare is not None:
            self.compare.left = by


def _sides(function: ast.FunctionDef) -> list[_Side]:
    """The sides that a canary replaces, in a fixed order: the one opposite a call, where tested code stands."""
    sides: list[_Side] = []
    for node in ast.walk(function):
        if isinstance(node, ast.Assert) and isinstance(node.test, ast.Compare):
            compare = node.test
            if len(compare.ops) == 1 and isinstance(compare.ops[0], ast.Eq):
                left = _Side(compare.left, None, 0, compare)
                right = _Side(compare.comparators[0], compare.comparators, 0, None)
                sides += _opposite(left, right)
        elif isinstance(node, ast.Call) and _is_equality_method(node.func) and len(node.args) >= 2:
            first, second = (_Side(node.args[index], node.args, index, None) for index in (0, 1))
            sides += _opposite(first, second)
    return sides


def _is_equality_method(function: ast.expr) -> bool:
    return isinstance(function, ast.Attribute) and function.attr in _EQUALITY_METHODS


def _opposite(one: _Side, other: _Side) -> list[_Side]:
    one_calls, other_calls = (_calls(side.expression) for side in (one, other))
    if one_calls and not other_calls:
        return [other]
    if other_calls and not one_calls:
        return [one]
    return [one, other]


def _calls(expression: ast.expr) -> bool:
    return any(isinstance(node, ast.Call) for node in ast.walk(expression))
