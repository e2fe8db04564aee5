"""Steps on the command line."""

import argparse

import pytest

from cli.step_range import NoSuchStep, chosen, step_range


@pytest.mark.parametrize(("text", "steps"), [("0", [0]), ("3", [3]), ("3..5", [3, 4, 5]), ("7..7", [7])])
def test_a_step_or_a_range_with_both_its_ends(text: str, steps: list[int]) -> None:
    assert list(step_range(text)) == steps


@pytest.mark.parametrize("text", ["", "a", "-1", "5..3", "3..", "..3", "1.5", "3..5..7"])
def test_anything_else_is_refused_with_what_is_meant(text: str) -> None:
    with pytest.raises(argparse.ArgumentTypeError, match=r"write 3, or 3\.\.7"):
        step_range(text)


def test_all_steps_are_meant_where_none_is_named() -> None:
    assert chosen([0, 1, 2], None, "admitted") == [0, 1, 2]


def test_of_a_range_those_that_there_are() -> None:
    assert chosen([0, 1, 2], range(1, 9), "admitted") == [1, 2]


@pytest.mark.parametrize(
    ("known", "asked", "said"),
    [
        ([0, 1, 2], range(7, 8), "step 7 is not admitted in this run: steps 0 to 2 are"),
        ([], range(3), "step 0..2 is not admitted in this run: no step is"),
    ],
)
def test_steps_that_are_not_there_are_refused(known: list[int], asked: range, said: str) -> None:
    with pytest.raises(NoSuchStep) as refused:
        chosen(known, asked, "admitted")
    assert str(refused.value) == said
