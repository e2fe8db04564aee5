"""A set of several packages: order, splits, and that training and validation never overlap."""

import random

import pytest

from stepwell.tasks.forge import ForgeCounts, forge
from stepwell.tasks.packages import ForgedPackage, PackageYield
from stepwell.tasks.packages.candidates import Candidate, in_turns
from stepwell.tasks.packages.mutations import Mutation
from stepwell.tasks.packages.package_set import assembled
from stepwell.tasks.packages.source_text import Edit
from stepwell.tasks.task import Split, Task

TEMPLATE = forge(0, ForgeCounts(train=1, validation=0, confirm=0, heldout_family=0)).train[0]


def task(package: str, number: int, split: Split, difficulty: int = 1) -> Task:
    """A task of a package."""
    changes = {"id": f"{package}/{number}", "family": package, "split": split, "difficulty": difficulty}
    return TEMPLATE.model_copy(update=changes)


def forged(package: str, train: int, validation: int, heldout: int) -> ForgedPackage:
    """What a package gave, its training tasks ever harder."""
    return ForgedPackage(
        train=tuple(task(package, number, "train", 1 + number) for number in range(train)),
        validation=tuple(task(package, number, "validation") for number in range(validation)),
        heldout=tuple(task(package, number, "heldout_family") for number in range(heldout)),
        made=PackageYield(package=package, asked=9, tests={}, kept={}, tried=0, rejected={}, seconds=0.0),
    )


def test_packages_take_turns_and_training_gets_no_easier() -> None:
    made = assembled([forged("a", 3, 2, 0), forged("b", 1, 3, 0), forged("c", 0, 0, 2)])
    assert [one.id for one in made.train] == ["a/0", "b/0", "a/1", "a/2"]
    assert [one.difficulty for one in made.train] == sorted(one.difficulty for one in made.train)
    assert [one.id for one in made.validation] == ["a/0", "b/0", "a/1", "b/1", "b/2"]
    assert [one.id for one in made.heldout_family] == ["c/0", "c/1"]
    assert not {one.family for one in made.heldout_family} & {one.family for one in (*made.train, *made.validation)}


def test_the_digest_is_that_of_all_tasks_in_order() -> None:
    one, other = forged("a", 2, 1, 0), forged("b", 2, 1, 0)
    assert assembled([one, other]).digest == assembled([one, other]).digest
    assert assembled([one, other]).digest != assembled([other, one]).digest


def candidate(kind: str, number: int) -> Candidate:
    """A candidate of a kind."""
    edit = Edit(number, number + 1, "x")
    return Candidate("p", "p.py", Mutation(kind, "f", edit, line=1, traced=range(1, 2), function_lines=3))


@pytest.mark.parametrize("seed", range(3))
def test_kinds_take_turns_in_an_order_that_the_seed_alone_decides(seed: int) -> None:
    found = [candidate(kind, number) for kind, count in (("b", 5), ("a", 2)) for number in range(count)]
    order = list(in_turns(found, random.Random(seed)))
    assert [one.mutation.kind for one in order] == ["a", "b", "a", "b", "b", "b", "b"]
    assert sorted(order, key=found.index) == found
    assert order == list(in_turns(found, random.Random(seed)))
