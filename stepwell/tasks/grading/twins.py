"""Twins of hidden tests: the same file, names and lines, with another expectation in some of the tests. Pure.

A twin is run like the original, in a sandbox of its own. Honest code fails each test whose expectation was changed and
passes all others. Code that answers for the tests (by their frames, by the runner's memory, by whatever it compares
equal) sees in either run a file that could be the original, and says the same of both, unless it knows which
expectations are right; who knows that has solved the task.

The text of an expectation is replaced in place, so that nothing else of the file tells one from the other.
"""

import ast
import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from stepwell.tasks.grading.expectations import Expectation, expectations_of

BITS = 4
"""Least number of functions in all twins of a grading together; with fewer in one twin, there are more twins."""


@dataclass(frozen=True)
class Unit:
    """One test function whose expectations can be changed."""

    path: str
    name: str
    """`function` or `Class::method`."""
    tests: tuple[str, ...]
    """Ids of its expected tests: several where it is parametrised."""
    expectations: tuple[Expectation, ...]
    """Of the kind that tells least, at least one."""


@dataclass(frozen=True)
class Twin:
    """Hidden test files with other expectations in some functions."""

    files: dict[str, str]
    changed: tuple[Unit, ...]
    """Each of these fails honest code in at least one of its tests."""

    def touches(self, test: str) -> bool:
        """Whether an expected test runs a changed function, or may do so: a class that inherits it has it too."""
        path, _, rest = test.partition("::")
        method = rest.partition("[")[0].split("::")[-1]
        return any(unit.path == path and unit.name.split("::")[-1] == method for unit in self.changed)


def units_of(hidden: Mapping[str, str], expected: Iterable[str]) -> tuple[Unit, ...]:
    """The functions behind the expected tests that have an expectation to change, in order of path and place.

    Raises:
        SyntaxError: a hidden file does not parse.
    """
    by_path: dict[str, dict[str, list[str]]] = {}
    for test in expected:
        path, _, rest = test.partition("::")
        by_path.setdefault(path, {}).setdefault(rest.partition("[")[0], []).append(test)
    units: list[Unit] = []
    for path, names in sorted(by_path.items()):
        for name, function in _functions(ast.parse(hidden[path]), ""):
            found = expectations_of(hidden[path], function) if name in names else []
            if found:
                least = min(one.tells for one in found)
                kept = tuple(one for one in found if one.tells == least)
                units.append(Unit(path, name, tuple(names[name]), kept))
    return tuple(units)


def draw_rounds(units: Sequence[Unit], chance: random.Random) -> list[tuple[Unit, ...]]:
    """Which functions each twin changes: some of some twin, otherwise anything, even nothing.

    Together the twins hold at least `BITS` functions, so that whoever guesses what was changed, but knows which run is
    of the original, is right at most once in `2 ** BITS - 1` times.
    """
    if not units:
        return []
    count = -(-BITS // len(units))
    bits = chance.randrange(1, 1 << count * len(units))
    flags = [bool(bits >> place & 1) for place in range(count * len(units))]
    return [
        tuple(unit for unit, changed in zip(units, flags[start : start + len(units)], strict=True) if changed)
        for start in range(0, len(flags), len(units))
    ]


def twin_of(hidden: Mapping[str, str], changed: Sequence[Unit], chance: random.Random) -> Twin:
    """The twin in which each of some functions has one expectation changed."""
    edits: dict[str, list[tuple[int, int, str]]] = {}
    for unit in changed:
        one = chance.choice(unit.expectations)
        edits.setdefault(unit.path, []).append((one.start, one.end, chance.choice(one.others)))
    files = dict(hidden)
    for path, of_path in edits.items():
        data = files[path].encode()
        for start, end, text in sorted(of_path, reverse=True):
            data = data[:start] + text.encode() + data[end:]
        files[path] = data.decode()
    return Twin(files, tuple(changed))


def _functions(owner: ast.Module | ast.ClassDef, prefix: str) -> list[tuple[str, ast.FunctionDef]]:
    """Functions by name, through classes; of those that share a name the last, which is the one that runs."""
    found: dict[str, ast.FunctionDef] = {}
    for node in owner.body:
        if isinstance(node, ast.FunctionDef):
            found.pop(prefix + node.name, None)
            found[prefix + node.name] = node
        elif isinstance(node, ast.ClassDef):
            found |= dict(_functions(node, f"{prefix}{node.name}::"))
    return list(found.items())
