"""What a fork may change, and how its curriculum goes on."""

import pytest

from stepwell.recipe.forking import changed_keys
from stepwell.tasks.manifest import TaskEntry
from workers.forks import longer


def entries(names: str) -> tuple[TaskEntry, ...]:
    return tuple(TaskEntry(id=name, blob=name * 64) for name in names)


@pytest.mark.parametrize(
    ("train", "made", "needed", "wanted"),
    [
        ("abc", "abc", 2, "abc"),
        ("abc", "cdae", 5, "abcde"),
        ("ab", "ab", 5, "ababa"),
        ("ab", "bc", 7, "abcbcbc"),
    ],
)
def test_a_longer_curriculum_begins_as_the_parents_did(train: str, made: str, needed: int, wanted: str) -> None:
    assert longer(entries(train), entries(made), needed) == entries(wanted)


def test_keys_that_differ_are_named_at_any_depth() -> None:
    before = {"run": {"seed": 1, "max_steps": 3}, "agent": {"tools": "compact"}}
    after = {"run": {"seed": 2, "max_steps": 9}, "agent": {"tools": "compact"}}
    assert changed_keys(before, after, ["run.seed", "agent", "sampling"]) == ["run.seed"]
