"""Tasks from a real package, downloaded from the package index and forged in real sandboxes."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from stepwell.sandbox.bubblewrap import BubblewrapFactory
from stepwell.tasks.grading.grade import grade
from stepwell.tasks.grading.verdict import Score
from stepwell.tasks.packages import PACKAGES, PackageUnavailable, forge_package
from stepwell.tasks.packages.sources import source_files
from stepwell.tasks.task import Task


@pytest.fixture(scope="module")
async def factory(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[BubblewrapFactory]:
    made = BubblewrapFactory(tmp_path_factory.mktemp("sandboxes"))
    yield made
    await made.close()


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("packages")


@pytest.fixture(scope="module")
async def tasks(factory: BubblewrapFactory, cache: Path) -> list[Task]:
    return await forge_package("toolz", 3, 3, factory, held_out=1, cache_folder=cache)


async def test_gold_passes_and_doing_nothing_fails(factory: BubblewrapFactory, tasks: list[Task]) -> None:
    for task in tasks:
        gold = await grade(task, {path: text.encode() for path, text in task.gold.items()}, factory, seed=99)
        nothing = await grade(task, {}, factory, seed=99)
        assert isinstance(gold, Score)
        assert isinstance(nothing, Score)
        assert (gold.value, nothing.value) == (1.0, 0.0), task.id


def test_a_task_shows_one_defect_and_none_of_its_hidden_tests(tasks: list[Task]) -> None:
    for task in tasks:
        ((path, gold),) = task.gold.items()
        lines = zip(gold.splitlines(), task.files[path].splitlines(), strict=True)
        assert sum(right != wrong for right, wrong in lines) == 1
        assert not task.hidden.keys() & task.files.keys()
        assert "LICENSE.txt" in task.files
        assert "does not do what" in task.issue


def test_training_comes_first_in_order_of_difficulty_and_shares_no_function(tasks: list[Task]) -> None:
    assert [task.split for task in tasks] == ["train", "train", "validation"]
    assert [task.difficulty for task in tasks[:2]] == sorted(task.difficulty for task in tasks[:2])
    functions = [task.id.split("/")[1] for task in tasks]
    assert functions[2] not in functions[:2]


async def test_the_same_seed_gives_the_same_tasks_and_the_cache_answers_at_once(
    factory: BubblewrapFactory, cache: Path, tasks: list[Task], monkeypatch: pytest.MonkeyPatch
) -> None:
    await factory.close()  # Nothing can be forged without it being made anew.
    assert await forge_package("toolz", 3, 3, factory, held_out=1, cache_folder=cache) == tasks
    for kept in cache.glob("*.json"):
        kept.unlink()
    monkeypatch.setenv("PIP_NO_INDEX", "1")  # The archive is there.
    assert await forge_package("toolz", 3, 3, factory, held_out=1, cache_folder=cache) == tasks


def test_a_package_that_cannot_be_had_says_where_to_put_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    (tmp_path / PACKAGES["toolz"].archive).write_bytes(b"not what was pinned")
    with pytest.raises(PackageUnavailable, match="put the archive with SHA-256"):
        source_files(PACKAGES["toolz"], tmp_path)


async def test_an_unknown_package_names_those_there_are(factory: BubblewrapFactory) -> None:
    with pytest.raises(KeyError, match="toolz"):
        await forge_package("tools", 0, 1, factory)
