"""What the hidden tests must give, by full test ids. Pure.

The dataset names a test by its node id without the file, parts joined by dots, cut at " - "; so two files' tests of
one name are one there. Here a test is `<folder>/<file>::<Class>::<test>[<parameter>]`: the file is found by looking for
the name in the sources of the test files. Where several have it, or none does, the test is *ambiguous*: its id names
all the files that may have it, and what these files' tests of the name give is merged before it is compared.

Merging is what the dataset's makers did by the order of pytest's summary, whose last line of a name won: failures stand
after errors, and these after passes. Skipped and expected failures are not in the summary's words, and do not count.
"""

import ast
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal

from stepwell.tasks.r2e.rows import ExpectedStatus

TESTS_FOLDER = "r2e_tests"
"""Where the tests lie in the work tree while they run."""
UNITTEST_RUNNERS = ("tornado_unittest_runner.py", "unittest_custom_runner.py")
"""Files that the image's builder put beside tests that pytest does not run: for tornado, and some of Pillow."""

Status = Literal["passed", "failed", "error", "skipped", "xfailed", "xpassed"]
"""As pytest names them; `error` is a failure of set-up, tear-down or collection."""
Kind = Literal["pytest", "unittest"]
COUNTED: Mapping[str, Status] = {"PASSED": "passed", "ERROR": "error", "FAILED": "failed"}
"""The dataset's words, the one that wins last."""
_RANK = {status: rank for rank, status in enumerate(COUNTED.values())}
_FOREIGN = {"_FailedTest": "unittest.loader", "_ErrorHolder": "unittest.suite"}
"""Names that unittest itself gives to what could not be loaded, and the modules that they are in."""


@dataclass(frozen=True)
class Ambiguous:
    """A test whose file cannot be told."""

    key: str
    """The dataset's name."""
    files: tuple[str, ...]
    """Which may have it."""


@dataclass(frozen=True)
class ExpectedTests:
    """What a row's tests must give."""

    kind: Kind
    """What runs them."""
    expected: dict[str, Status]
    """By test id."""
    ambiguous: dict[str, Ambiguous]
    """Of the ids, those of tests whose file cannot be told."""

    def found(self, reported: Mapping[str, Status]) -> dict[str, Status]:
        """What a run gave, by the ids of `expected`, so that the two can be compared.

        Args:
            reported: By node id, as the runner gives them. Statuses that do not count are left out.
        """
        joint = {(one.key, file): test for test, one in self.ambiguous.items() for file in one.files}
        merged: dict[str, Status] = {}
        for node, status in reported.items():
            if status not in _RANK:
                continue
            test = id_of_node(node)
            file, key = _parted(test)
            test = joint.get((key, file), test)
            merged[test] = max(status, merged.get(test, status), key=lambda one: _RANK[one])
        return merged


def expected_tests(tests: Mapping[str, str], expected: Mapping[str, ExpectedStatus]) -> ExpectedTests:
    """Full ids for a row's expected statuses.

    Args:
        tests: Test files by name, with their sources.
        expected: By the dataset's name of a test.
    """
    kind: Kind = "unittest" if any(runner in tests for runner in UNITTEST_RUNNERS) else "pytest"
    files = [f"{TESTS_FOLDER}/{name}" for name in tests if _is_test_file(name)]
    sources = {f"{TESTS_FOLDER}/{name}": _Source(code) for name, code in tests.items() if _is_test_file(name)}
    statuses: dict[str, Status] = {}
    ambiguous: dict[str, Ambiguous] = {}
    for name, word in expected.items():
        key, status = name.partition(" - ")[0], COUNTED[word]
        places = _places(key, sources, kind) or tuple(files)
        if len(places) == 1:
            test = _joined(places[0], key)
        else:
            test = _joined("|".join(places), key)
            ambiguous[test] = Ambiguous(key, places)
        statuses[test] = max(status, statuses.get(test, status), key=lambda one: _RANK[one])
    return ExpectedTests(kind, statuses, ambiguous)


def id_of_node(node: str) -> str:
    """Id of a test from its node id: the node id itself, but for parameters with `::` or ` - ` in them."""
    file, _, rest = node.partition("::")
    return _joined(file, rest.replace("::", ".").partition(" - ")[0])


def _places(key: str, sources: Mapping[str, "_Source"], kind: Kind) -> tuple[str, ...]:
    """Files that have a test of this name, or else the first class of it."""
    names = key.partition("[")[0]
    first = names.partition(".")[0]
    if kind == "unittest" and first in _FOREIGN:
        return (_FOREIGN[first],)
    exact = tuple(file for file, source in sources.items() if names in source.names)
    return exact or tuple(file for file, source in sources.items() if first in source.names)


def _joined(file: str, key: str) -> str:
    """Id of a test from its file and the dataset's name of it; a name that is empty is the file's own."""
    names, bracket, parameter = key.partition("[")
    return "::".join([file, *filter(None, [names.replace(".", "::")])]) + bracket + parameter


def _parted(test: str) -> tuple[str, str]:
    file, _, rest = test.partition("::")
    names, bracket, parameter = rest.partition("[")
    return file, names.replace("::", ".") + bracket + parameter


def _is_test_file(name: str) -> bool:
    return name.endswith(".py") and name != "conftest.py" and name not in UNITTEST_RUNNERS


class _Source:
    """Names that a test file has: functions, classes, and `Class.method` with what classes of the file inherit."""

    def __init__(self, code: str) -> None:
        self.names: set[str] = set()
        self._members: dict[str, set[str]] = {}
        self._bases: dict[str, list[str]] = {}
        try:
            tree = ast.parse(code)
        except (SyntaxError, ValueError, RecursionError):  # Old Python: its tests are placed by there being one file.
            return
        self._collect(tree.body, "")
        for owner in self._members:
            for name in self._inherited(owner, frozenset()):
                self.names.add(f"{owner}.{name}")

    def _collect(self, body: Iterable[ast.stmt], owner: str) -> None:
        for node in body:
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                self._add(owner, node.name)
            elif isinstance(node, ast.ClassDef):
                self._add(owner, node.name)
                name = f"{owner}.{node.name}" if owner else node.name
                self._members.setdefault(name, set())
                self._bases[name] = [ast.unparse(base) for base in node.bases]
                self._collect(node.body, name)
            elif isinstance(node, ast.Assign):
                for target in node.targets:
                    if isinstance(target, ast.Name):
                        self._add(owner, target.id)
            elif isinstance(node, ast.If | ast.Try | ast.With | ast.For):
                for inner in ast.iter_child_nodes(node):
                    if isinstance(inner, ast.stmt):
                        self._collect([inner], owner)
                    elif isinstance(inner, ast.ExceptHandler):
                        self._collect(inner.body, owner)

    def _add(self, owner: str, name: str) -> None:
        self.names.add(f"{owner}.{name}" if owner else name)
        if owner:
            self._members[owner].add(name)

    def _inherited(self, owner: str, seen: frozenset[str]) -> set[str]:
        if owner in seen:
            return set()
        found = set(self._members.get(owner, ()))
        for base in self._bases.get(owner, ()):
            found |= self._inherited(base, seen | {owner})
        return found
