"""Each kind of defect, on a function that shows it."""

from dataclasses import dataclass

import pytest

from stepwell.tasks.packages.mutation_kinds import KINDS
from stepwell.tasks.packages.mutations import mutations_of
from stepwell.tasks.packages.source_text import spliced


@dataclass(frozen=True)
class Shown:
    """A function `f`, a defect of one kind, and a call that tells them apart."""

    body: str
    """The right function."""
    wrong: str
    """The function with the defect."""
    call: str


def function(body: str, parameters: str = "a, b") -> str:
    """Source of `f`."""
    return f"def f({parameters}):\n    {body}\n"


def shown(right: str, wrong: str, call: str) -> Shown:
    """A defect in the body."""
    return Shown(function(right), function(wrong), call)


CASES = {
    "comparison_flipped": [
        shown("return a == b", "return a != b", "f(1, 1)"),
        shown("return a not in b", "return a in b", "f(1, [1])"),
        shown("return a is None", "return a is not None", "f(None, 0)"),
        shown("return a < b", "return a > b", "f(1, 2)"),
    ],
    "boundary_moved": [
        shown("return a < b", "return a <= b", "f(1, 1)"),
        shown("return 0 <= a < b", "return 0 < a < b", "f(0, 1)"),
    ],
    "arithmetic_swapped": [
        shown("return a + b", "return a - b", "f(2, 2)"),
        shown("a <<= b; return a", "a >>= b; return a", "f(4, 1)"),
    ],
    "operands_swapped": [shown("return a - b", "return b - a", "f(3, 1)")],
    "boolean_swapped": [shown("return a and b or 3", "return a or b or 3", "f(1, 2)")],
    "condition_negated": [
        shown("return not a", "return a", "f(True, 0)"),
        shown("return 1 if a else 2", "return 1 if not a else 2", "f(True, 0)"),
    ],
    "constant_changed": [
        shown("return a + 7", "return a + 8", "f(1, 0)"),
        shown("return a or True", "return a or False", "f(0, 0)"),
        shown("return ' '.join(a)", "return ''.join(a)", "f('xy', 0)"),
    ],
    "sign_lost": [shown("return -a", "return a", "f(1, 0)")],
    "branches_swapped": [shown("return a if a > b else b", "return b if a > b else a", "f(1, 2)")],
    "slice_shifted": [
        shown("return a[1:]", "return a[2:]", "f('xyz', 0)"),
        shown("return a[1:b]", "return a[1:b + 1]", "f('xyz', 2)"),
        shown("return a[1:]", "return a[:]", "f('xyz', 0)"),
    ],
    "index_moved": [shown("return a[0]", "return a[-1]", "f('xy', 0)")],
    "method_swapped": [
        shown("return min(a, b)", "return max(a, b)", "f(1, 2)"),
        shown("return any(a)", "return all(a)", "f([0, 1], 0)"),
        shown("return a.startswith(b)", "return a.endswith(b)", "f('xy', 'x')"),
    ],
    "text_method_dropped": [shown("return a.strip() + b", "return a + b", "f(' x', '')")],
    "arguments_swapped": [shown("return pow(a, b)", "return pow(b, a)", "f(2, 3)")],
    "keyword_dropped": [shown("return sorted(a, key=b)", "return sorted(a)", "f([1, 2], lambda x: -x)")],
    "fallback_changed": [
        shown("return a.get(b, 3)", "return a.get(b)", "f({}, 0)"),
        shown("return a.get(b)", "return a[b]", "f({}, 0)"),
        shown("return a.pop(b, 3)", "return a.pop(b)", "f({}, 0)"),
    ],
    "return_changed": [
        shown("return a + b", "return None", "f(1, 2)"),
        shown("return a, b", "return b, a", "f(1, 2)"),
    ],
    "exception_changed": [
        shown("raise ValueError(a)", "raise TypeError(a)", "f(1, 2)"),
        Shown(
            "def f(a, b):\n    try:\n        return a[b]\n    except KeyError:\n        return 0\n",
            "def f(a, b):\n    try:\n        return a[b]\n    except IndexError:\n        return 0\n",
            "f({}, 1)",
        ),
    ],
    "raise_removed": [shown("raise ValueError(a)", "pass", "f(1, 2)")],
    "default_changed": [
        Shown(function("return a, b", "a, b=1"), function("return a, b", "a, b=2"), "f(0)"),
        Shown(function("return a, b", "a, *, b=True"), function("return a, b", "a, *, b=False"), "f(0)"),
    ],
    "guard_removed": [
        Shown(
            "def f(a, b):\n    if a:\n        return b\n    return 0\n",
            "def f(a, b):\n    if False:\n        return b\n    return 0\n",
            "f(1, 2)",
        )
    ],
    "loop_exit_changed": [
        Shown(
            "def f(a, b):\n    for c in a:\n        if c == b:\n            break\n    return c\n",
            "def f(a, b):\n    for c in a:\n        if c == b:\n            continue\n    return c\n",
            "f([1, 2], 1)",
        )
    ],
    "statement_removed": [
        shown("a.append(b); return a", "pass; return a", "f([], 1)"),
        shown("a[b] = 1; return a", "pass; return a", "f({}, 1)"),
    ],
    "targets_swapped": [shown("a, b = b, a; return a", "b, a = b, a; return a", "f(1, 2)")],
}


def result(source: str, call: str) -> object:
    """What a call gives, or the type of what it raises."""
    names: dict[str, object] = {}
    exec(source, names)
    try:
        return eval(call, names)
    except Exception as error:
        return type(error)


@pytest.mark.parametrize(
    ("kind", "case"),
    [(kind, case) for kind, cases in CASES.items() for case in cases],
    ids=lambda value: str(value)[:60],
)
def test_a_kind_makes_the_defect_and_a_call_shows_it(kind: str, case: Shown) -> None:
    made = {spliced(case.body, one.edit): one.kind for one in mutations_of(case.body)}
    assert made.get(case.wrong) == kind
    assert result(case.body, case.call) != result(case.wrong, case.call)


def test_every_kind_is_shown() -> None:
    assert CASES.keys() == {kind.name for kind in KINDS}


@pytest.mark.parametrize(
    "body",
    [
        "return '%s' % a",  # formatting
        "return f(*a, b)",
        "return a if a else a, f'{a + b}'",
    ],
)
def test_what_a_kind_must_not_touch(body: str) -> None:
    kinds = {one.kind for one in mutations_of(function(body))}
    assert not kinds & {"arithmetic_swapped", "arguments_swapped"}
