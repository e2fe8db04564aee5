"""Which expectations of a test can be others, and which twins there are."""

import ast
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stepwell.tasks.grading.expectations import LITERAL, TURNED, TURNED_EQUALITY, Expectation, expectations_of
from stepwell.tasks.grading.twins import BITS, Unit, draw_rounds, twin_of, units_of


def expectations(body: str) -> list[tuple[str, tuple[str, ...], int]]:
    """Text, other texts and kind of each expectation of a function with this body."""
    source = f"# é\ndef test():\n    {body}\n"
    function = ast.parse(source).body[0]
    assert isinstance(function, ast.FunctionDef)
    data = source.encode()
    return [(data[one.start : one.end].decode(), one.others, one.tells) for one in expectations_of(source, function)]


@pytest.mark.parametrize(
    ("body", "found"),
    [
        ("assert f(1) == 5", [("5", ("3", "4", "6", "7"), LITERAL)]),
        ("assert 5 == f(1)", [("5", ("3", "4", "6", "7"), LITERAL)]),
        ("assert f('é') == -1", [("1", ("0", "2", "3"), LITERAL)]),
        ("assert f(1) == True", [("True", ("False",), LITERAL)]),
        ("assert f(1) == 0.5", [("0.5", ("1.5", "2.5"), LITERAL)]),
        ("assert f(1) == approx(2.5)", [("2.5", ("3.5", "4.5"), LITERAL)]),
        ("assert f(1) == 'q1'", [("'q1'", ("'q4'",), LITERAL)]),
        ("assert f(1) == ''", [("''", ("'a'", "'x'", "'z'"), LITERAL)]),
        ("assert f(1) == [True, (False,)]", [("True", ("False",), LITERAL), ("False", ("True",), LITERAL)]),
        ("assert f(1) == {1: True}", [("True", ("False",), LITERAL)]),
        ("self.assertEqual(f(1), False)", [("False", ("True",), LITERAL)]),
        ("assert f(1)", [("f(1)", ("not f(1)",), TURNED)]),
        ("assert not f(1)", [("not f(1)", ("f(1)",), TURNED)]),
        ("assert f(1) is None", [("is", ("is not",), TURNED)]),
        ("assert f(1) not in x", [("not in", ("in",), TURNED)]),
        ("assert f(1) < 3", [("<", (">=",), TURNED)]),
        ("assert f(1) == g(1)", [("==", ("!=",), TURNED_EQUALITY)]),
        ("for x, y in [(1, True), (2, False)]: assert f(x) == y", [("True", ("False",), 0), ("False", ("True",), 0)]),
        ("y = True; assert f(1) == y", [("True", ("False",), LITERAL)]),
        ("y = True; assert f(y) == y", [("==", ("!=",), TURNED_EQUALITY)]),
        ("self.assertTrue(f(1))", [("assertTrue", ("assertFalse",), TURNED)]),
    ],
)
def test_what_is_expected_and_what_could_be(body: str, found: list[tuple[str, tuple[str, ...], int]]) -> None:
    assert expectations(body) == found


def test_another_exception_is_expected_that_is_no_kin_of_the_first() -> None:
    ((text, others, tells),) = expectations("with pytest.raises(KeyError): f(1)")
    assert (text, tells) == ("KeyError", TURNED)
    assert set(others) == {"ValueError", "TypeError", "IndexError", "AttributeError"}


@pytest.mark.parametrize(
    "body",
    [
        "f(1)",
        "assert f(1) == 5 == g(1)",
        "assert 1 == 1",
        "def inner():\n        assert f(1) == 5",
        "assert f(1) == 0x10",
        "x = 5",
        "with pytest.raises(MyError): f(1)",
        "x = 5; assert g(x) == f(1)",
    ],
)
def test_what_has_no_other_constant_is_given_none(body: str) -> None:
    assert [one for one in expectations(body) if one[2] == LITERAL] == []


VALUES = st.recursive(
    st.integers(-9, 99) | st.booleans() | st.text("abz019 ", max_size=4),
    lambda inner: (
        st.lists(inner, max_size=3) | st.tuples(inner, inner) | st.dictionaries(st.integers(), inner, max_size=2)
    ),
    max_leaves=6,
)


@given(VALUES)
def test_every_other_literal_is_another_value_of_the_same_form(value: object) -> None:
    source = f"def test():\n    assert f() == {value!r}\n"
    function = ast.parse(source).body[0]
    assert isinstance(function, ast.FunctionDef)
    for one in expectations_of(source, function):
        if one.tells != LITERAL:
            continue
        for other in one.others:
            changed = source[: one.start] + other + source[one.end :]
            found = ast.literal_eval(changed.split("== ", 1)[1])
            assert found != value
            assert type(found) is type(value)


SOURCE = """
class TestA:
    def test_b(self):
        assert f(1) == 5
    def test_b(self):
        assert f(2) == 6

def test_c(x):
    assert f(3) == 7
    assert f(x)

def test_d():
    f()
"""
EXPECTED = ("t.py::test_c[1]", "t.py::TestA::test_b", "t.py::test_c[2]", "t.py::test_d")


def test_units_are_functions_by_place_with_their_parametrised_tests() -> None:
    units = units_of({"t.py": SOURCE}, EXPECTED)
    assert [(unit.name, unit.tests) for unit in units] == [
        ("TestA::test_b", ("t.py::TestA::test_b",)),
        ("test_c", ("t.py::test_c[1]", "t.py::test_c[2]")),
    ]
    assert [len(unit.expectations) for unit in units] == [1, 1]  # The constant; what tells more is left.
    assert SOURCE[units[0].expectations[0].start] == "6"  # The one of two functions of a name that runs.


@given(st.integers(0, 1 << 32))
def test_a_twin_has_the_same_lines_and_names_and_other_constants(seed: int) -> None:
    units = units_of({"t.py": SOURCE}, EXPECTED)
    twin = twin_of({"t.py": SOURCE}, units, random.Random(seed))
    text = twin.files["t.py"]
    before, after = SOURCE.split("\n"), text.split("\n")
    assert len(before) == len(after)
    assert [place for place, line in enumerate(before) if line != after[place]] == [5, 8]
    assert [test for test in EXPECTED if twin.touches(test)] == list(EXPECTED[:3])


def test_a_class_that_inherits_a_changed_function_is_touched_too() -> None:
    units = units_of({"t.py": SOURCE}, EXPECTED)
    twin = twin_of({"t.py": SOURCE}, units[:1], random.Random(0))
    assert twin.touches("t.py::TestHeir::test_b[1]")
    assert not twin.touches("t.py::test_c[1]")
    assert not twin.touches("u.py::TestHeir::test_b")


def unit(number: int) -> Unit:
    return Unit("t.py", f"test_{number}", (f"t.py::test_{number}",), (Expectation(0, 1, LITERAL, ("x",)),))


@given(st.integers(1, 9), st.integers(0, 1 << 32))
def test_there_are_enough_twins_that_guessing_what_was_changed_does_not_pay(count: int, seed: int) -> None:
    units = [unit(number) for number in range(count)]
    rounds = draw_rounds(units, random.Random(seed))
    assert len(rounds) * count >= BITS
    assert (len(rounds) - 1) * count < BITS
    assert any(rounds)
    assert all(set(one) <= set(units) for one in rounds)


def test_every_choice_of_functions_is_drawn_alike() -> None:
    units = [unit(number) for number in range(4)]
    chance = random.Random(3)
    drawn = [draw_rounds(units, chance)[0] for _ in range(3000)]
    counts = {one: drawn.count(one) for one in drawn}
    assert len(counts) == 15
    assert min(counts.values()) > 100


def test_without_expectations_there_is_no_twin() -> None:
    assert units_of({"t.py": SOURCE}, ("t.py::test_d",)) == ()
    assert draw_rounds((), random.Random(0)) == []
