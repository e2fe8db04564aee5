"""What a gold patch changes, the lines that an issue names, and the edit that an expert makes of them."""

from typing import cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stepwell.policy.gold_expert import NotDemonstrable, repair_calls
from stepwell.tasks.gold_change import gold_change
from stepwell.tasks.place import place_in, with_place
from stepwell.tasks.task import Task

LINE = st.text("ab (=\t", max_size=5)
LINES = st.lists(LINE, max_size=6)
PARTS = st.tuples(LINES, LINES, LINES, LINES)
"""Lines before a change, lines with the defect, lines without it, lines after it."""


def task_of(wrong: str, right: str, issue: str = "It is broken.") -> Task:
    return Task(
        id=f"t/{wrong}",
        family="f",
        split="train",
        difficulty=1,
        issue=issue,
        files={"p/a.py": wrong, "b.py": "b = 1\n"},
        hidden={},
        gold={"p/a.py": right},
        grader="calls",
        expected=(),
    )


def texts_of(parts: tuple[list[str], list[str], list[str], list[str]]) -> tuple[str, str]:
    before, wrong, right, after = parts
    return "\n".join([*before, *wrong, *after]), "\n".join([*before, *right, *after])


@given(parts=PARTS)
def test_a_change_is_the_smallest_span_that_makes_the_gold_patch(parts) -> None:
    wrong, right = texts_of(parts)
    if wrong == right:
        return
    change = gold_change(task_of(wrong, right))
    assert (change.path, change.wrong, change.right) == (
        "p/a.py",
        tuple(wrong.split("\n")),
        tuple(right.split("\n")),
    )
    made = (*change.wrong[: change.first], *change.right[change.first : change.right_end])
    assert (*made, *change.wrong[change.wrong_end :]) == change.right
    inner = change.wrong[change.first : change.wrong_end], change.right[change.first : change.right_end]
    if all(inner):
        assert inner[0][0] != inner[1][0]
        assert inner[0][-1] != inner[1][-1]


@given(parts=PARTS, lines=st.integers(1, 9))
def test_the_lines_that_an_issue_names_hold_the_change(parts, lines: int) -> None:
    wrong, right = texts_of(parts)
    if wrong == right:
        return
    placed = with_place(task_of(wrong, right), lines)
    place, change = place_in(placed.issue), gold_change(placed)
    assert placed.issue.startswith("It is broken.\n\n")
    assert place.path == "/work/p/a.py"
    assert 1 <= place.first <= place.last <= len(change.wrong)
    changed = range(change.first, change.wrong_end)
    assert all(place.first - 1 <= line < place.last for line in changed)
    assert place.last - place.first + 1 <= max(lines, len(changed), 1)


@given(parts=PARTS, lines=st.integers(1, 9))
def test_the_expert_replaces_what_occurs_once_and_makes_the_gold_patch(parts, lines: int) -> None:
    wrong, right = texts_of(parts)
    if wrong == right:
        return
    task = with_place(task_of(wrong, right), lines)
    try:
        view, edit, finish = repair_calls(task)
    except NotDemonstrable:
        return
    place = place_in(task.issue)
    assert view.arguments["view_range"] == [place.first, place.last]
    assert finish.name == "finish"
    old, new = cast(str, edit.arguments["old_str"]), cast(str, edit.arguments["new_str"])
    assert wrong.count(old) == 1
    assert wrong.replace(old, new) == right
    assert old in "\n".join(wrong.split("\n")[place.first - 1 : place.last])


def test_the_defect_stands_anywhere_in_the_lines_that_are_named() -> None:
    filler = [f"x{number} = {number}" for number in range(40)]
    offsets: set[int] = set()
    for at in range(10, 30):
        wrong = [*filler[:at], "y = a - b", *filler[at:]]
        placed = with_place(task_of("\n".join(wrong), "\n".join([*filler[:at], "y = a + b", *filler[at:]])), 5)
        place = place_in(placed.issue)
        assert place.last - place.first == 4
        offsets.add(at + 1 - place.first)
    assert offsets == set(range(5))


def test_the_edit_is_the_line_without_its_margins_where_that_tells_it_apart() -> None:
    wrong = "def f(a):\n    return a - 1\n\ndef g(a):\n    return a\n"
    task = with_place(task_of(wrong, wrong.replace("-", "+")), 3)
    _, edit, _ = repair_calls(task)
    assert (edit.arguments["old_str"], edit.arguments["new_str"]) == ("return a - 1", "return a + 1")
    assert edit.arguments["path"] == "/work/p/a.py"


def test_a_line_that_occurs_again_is_replaced_with_its_neighbours() -> None:
    wrong = "def f(a):\n    return a - 1\n\ndef g(a):\n    return a - 1\n"
    right = wrong.replace("a - 1\n\n", "a + 1\n\n")
    _, edit, _ = repair_calls(with_place(task_of(wrong, right), 5))
    assert edit.arguments["old_str"] == "def f(a):\n    return a - 1"


@pytest.mark.parametrize(
    ("wrong", "right", "issue", "said"),
    [
        ("a\n", "b\n", "It is broken.", "names no lines"),
        ("a\n<|x\n", "a\n<|y\n", "The cause is in /work/p/a.py, lines 1 to 2.", "control token"),
        ("a\nc\na\nc\n", "b\nc\na\nc\n", "The cause is in /work/p/a.py, lines 1 to 1.", "occurs again"),
    ],
)
def test_what_cannot_be_demonstrated_says_why(wrong: str, right: str, issue: str, said: str) -> None:
    with pytest.raises(NotDemonstrable, match=said):
        repair_calls(task_of(wrong, right, issue))


@pytest.mark.parametrize("gold", [{}, {"p/a.py": "x"}, {"p/a.py": "y", "b.py": "y"}, {"new.py": "x"}])
def test_a_patch_that_is_not_one_span_of_one_file_is_refused(gold: dict[str, str]) -> None:
    task = task_of("x", "y").model_copy(update={"gold": gold})
    with pytest.raises(ValueError, match="one is wanted"):
        gold_change(task)
