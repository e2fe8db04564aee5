"""Tasks from packages: forged in real sandboxes, from an archive and from the package index."""

import asyncio
import shutil
import tarfile
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest

from stepwell.recipe.loading import load_recipe
from stepwell.sandbox.bubblewrap import BubblewrapFactory
from stepwell.sandbox.protocol import SandboxError
from stepwell.tasks.audit import audit_tasks
from stepwell.tasks.packages import (
    PACKAGES,
    ForgedPackage,
    PackageTree,
    PackageUnavailable,
    SetPlan,
    Share,
    archive_tree,
    forge_package,
    forge_set,
    recording,
    source_tree,
)
from stepwell.tasks.packages.baseline import baseline_of
from stepwell.tasks.packages.layout import NoTests
from stepwell.tasks.packages.package_set import assembled
from stepwell.tasks.packages.recording import Recording, Unfinished, record
from stepwell.tasks.task import Task
from tests.stack.small_package import MODULE, TESTS, write_archive
from workers.task_sets import make_task_sets

RECIPES = Path(__file__).resolve().parents[2] / "recipes"
pytestmark = pytest.mark.timeout(1800)
"""Dozens of sandboxes a test: on a machine that is busy with other things they take minutes."""
SHARE = Share(train=3, validation=2)


@pytest.fixture(scope="module")
async def factory(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[BubblewrapFactory]:
    made = BubblewrapFactory(tmp_path_factory.mktemp("sandboxes"))
    yield made
    await made.close()


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> PackageTree:
    return archive_tree(write_archive(tmp_path_factory.mktemp("archive")))


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("home") / "packages"


@pytest.fixture(scope="module")
async def forged(factory: BubblewrapFactory, tree: PackageTree, cache: Path) -> ForgedPackage:
    return await forge_package(tree, 3, SHARE, factory, cache, at_once=2)


def origin_lines(task: Task) -> tuple[list[str], list[str]]:
    """Lines of the broken file and of the right one."""
    assert task.origin is not None
    path = task.origin.path
    return task.files[path].splitlines(), task.gold[path].splitlines()


def test_it_gives_what_was_asked_for_and_says_what_came_of_the_rest(forged: ForgedPackage) -> None:
    assert (len(forged.train), len(forged.validation), len(forged.heldout)) == (3, 2, 0)
    assert [task.split for task in forged.tasks] == ["train"] * 3 + ["validation"] * 2
    assert [task.difficulty for task in forged.train] == sorted(task.difficulty for task in forged.train)
    assert sum(forged.made.kept.values()) == 5
    assert forged.made.asked == 5
    assert forged.made.tried == 5 + sum(forged.made.rejected.values())
    assert forged.made.tests == {"count": 9, "ask the time, chance or another process": 1, "do not pass each time": 1}


def test_a_task_shows_one_defect_and_none_of_its_hidden_tests(forged: ForgedPackage) -> None:
    for task in forged.tasks:
        wrong, right = origin_lines(task)
        assert task.origin is not None
        assert sum(one != other for one, other in zip(wrong, right, strict=True)) == 1
        assert wrong[task.origin.line - 1] != right[task.origin.line - 1]
        assert task.files.keys() == {"LICENSE", "wallet.py"}
        assert task.hidden == {"tests/test_wallet.py": TESTS}
        assert task.gold == {"wallet.py": MODULE}
        assert task.protected == ("tests",)


def test_an_issue_tells_symptoms_and_neither_place_nor_test(forged: ForgedPackage) -> None:
    tests = {line.strip() for line in TESTS.splitlines() if "assert" in line or "def " in line}
    for task in forged.tasks:
        assert task.origin is not None
        wrong, right = origin_lines(task)
        place = task.origin.line - 1
        assert "`wallet`" in task.issue
        assert "raises" in task.issue or "returns" in task.issue or "yields" in task.issue
        for told in (wrong[place].strip(), right[place].strip(), "test_", "wallet.py", task.origin.kind, *tests):
            assert told not in task.issue, task.issue


def test_what_a_task_comes_from_is_on_record(forged: ForgedPackage, tree: PackageTree) -> None:
    for task in forged.tasks:
        origin = task.origin
        assert origin is not None
        assert (origin.package, origin.version, origin.licence) == ("wallet", "1.2", "MIT")
        assert origin.sha256 == tree.source.sha256
        assert origin.package_lines == MODULE.count("\n")
        assert origin.package_files == 1
        assert 1 <= origin.failing_tests <= origin.covering_tests
        assert origin.function_lines > 1


def test_tests_that_do_not_pass_each_time_or_ask_for_the_time_are_never_expected(forged: ForgedPackage) -> None:
    for task in forged.tasks:
        assert "tests/test_wallet.py::test_needs_what_is_not_there" not in task.expected
        assert "tests/test_wallet.py::test_takes_no_time" not in task.expected
        assert task.origin is not None
        assert len(task.expected) >= task.origin.failing_tests


def test_training_and_validation_share_no_function(forged: ForgedPackage) -> None:
    functions = [{task.origin.function for task in tasks if task.origin} for tasks in (forged.train, forged.validation)]
    assert all(functions)
    assert not functions[0] & functions[1]


async def test_the_same_seed_gives_the_same_tasks_however_many_are_tried_at_once(
    factory: BubblewrapFactory, tree: PackageTree, forged: ForgedPackage, tmp_path: Path
) -> None:
    again = await forge_package(tree, 3, SHARE, factory, tmp_path, at_once=1)
    assert assembled([again]).digest == assembled([forged]).digest
    assert again.tasks == forged.tasks
    assert again.made.model_copy(update={"seconds": 0.0}) == forged.made.model_copy(update={"seconds": 0.0})


async def test_the_cache_answers_without_a_sandbox(tree: PackageTree, forged: ForgedPackage, cache: Path) -> None:
    nowhere = BubblewrapFactory(Path("/proc/nowhere"))
    assert await forge_package(tree, 3, SHARE, nowhere, cache) == forged


async def test_an_endless_defect_ends_after_the_same_number_of_lines(
    factory: BubblewrapFactory, tree: PackageTree
) -> None:
    endless = MODULE.replace("amount -= coin", "pass")
    files = {**tree.files, "wallet.py": endless}
    run = await record(files, ["wallet.py"], ["tests"], factory, budget=20_000, cpu_s=600)
    assert run == Unfinished("it ran more than 20000 lines")


async def test_a_recording_has_the_lines_and_the_calls_of_each_test(
    factory: BubblewrapFactory, tree: PackageTree
) -> None:
    run = await record(tree.files, ["wallet.py"], ["tests"], factory, budget=100_000, cpu_s=600)
    assert isinstance(run, Recording)
    spelled = run.tests["tests/test_wallet.py::test_spell"]
    assert spelled.passed
    first = MODULE[: MODULE.index("    sign =")].count("\n") + 1
    assert {first, first + 1} <= spelled.lines["wallet.py"]
    assert [call.arguments for call in spelled.calls] == [
        ("3",),
        ("3", "'EUR'", "plus=True"),
        ("-3", "''", "plus=True"),
    ]
    listed = run.tests["tests/test_wallet.py::test_runs"].calls[0]
    assert (listed.result, listed.yields) == ("list", ("('a', 2)", "('b', 1)"))
    failed = run.tests["tests/test_wallet.py::test_negative"].calls[0]
    assert (failed.error, failed.returned) == ("ValueError: nobody owes change", False)
    assert run.tests["tests/test_wallet.py::test_needs_what_is_not_there"].failed
    assert run.tests["tests/test_wallet.py::test_takes_no_time"].asked == "time.monotonic"
    assert spelled.asked is None
    assert 0 < spelled.spent < 20


@pytest.mark.parametrize(
    ("instead", "cause"),
    [
        ("sum(iter(int, 1))", "it used more than 5 s of processor"),
        ("lock = __import__('threading').Lock(); lock.acquire(); lock.acquire()", "it waits for what never comes"),
    ],
)
async def test_what_runs_no_line_ends_by_what_it_uses_and_not_by_a_clock(
    instead: str, cause: str, factory: BubblewrapFactory, tree: PackageTree, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recording, "LOOKS", 20)
    files = {**tree.files, "wallet.py": MODULE.replace("amount -= coin", instead)}
    run = await record(files, ["wallet.py"], ["tests"], factory, budget=100_000, cpu_s=5)
    assert run == Unfinished(cause)


async def test_a_machine_that_has_no_time_is_no_word_about_what_is_recorded(
    factory: BubblewrapFactory, tree: PackageTree, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recording, "WALL_CLOCK_S", 0.05)
    with pytest.raises(SandboxError, match="the machine is too busy"):
        await record(tree.files, ["wallet.py"], ["tests"], factory, budget=100_000, cpu_s=600)


async def test_a_package_none_of_whose_tests_count_says_why(factory: BubblewrapFactory, tree: PackageTree) -> None:
    clocks = "import time\n\ndef test_a():\n    assert time.time() > 0\n\ndef test_b():\n    assert False\n"
    files = {**tree.files, "tests/test_wallet.py": clocks}
    with pytest.raises(SandboxError, match=r"no test of wallet counts.*1 ask the time.*1 do not pass"):
        await baseline_of(replace(tree, files=files), factory)


@pytest.fixture(scope="module")
async def real(factory: BubblewrapFactory, cache: Path) -> ForgedPackage:
    cache.mkdir(exist_ok=True)
    tree = await asyncio.to_thread(source_tree, PACKAGES["h11"], cache)
    return await forge_package(tree, 0, Share(train=1, validation=1), factory, cache)


async def test_tasks_of_a_real_package_are_good_on_audit(factory: BubblewrapFactory, real: ForgedPackage) -> None:
    report = await audit_tasks(real.tasks, factory, repetitions=1)
    assert len(report.kept) == 2, [task.dropped for task in report.dropped]
    assert {task.origin.licence for task in real.tasks if task.origin} == {"MIT"}


async def test_a_recipe_gets_its_tasks_from_packages(
    real: ForgedPackage, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STEPWELL_HOME", str(cache.parent))
    settings = ['tasks={source="package", packages=["h11"], train=1}', 'policy={kind="smollm2"}', "run.max_steps=1"]
    settings += ["validation.tasks=1", "validation.heldout_tasks=0"]
    sets = await make_task_sets(load_recipe(RECIPES / "smollm2.toml", settings))
    assert sets.train == (*real.train, *real.train)
    assert sets.main == real.validation
    assert (sets.reserve, sets.confirm, sets.heldout) == ((), (), ())


@pytest.mark.long
@pytest.mark.parametrize("name", sorted(PACKAGES))
async def test_every_pinned_package_gives_good_tasks(name: str, factory: BubblewrapFactory, cache: Path) -> None:
    tree = source_tree(PACKAGES[name], cache)
    forged = await forge_package(tree, 1, Share(train=3, validation=1), factory, cache)
    report = await audit_tasks(forged.tasks, factory)
    assert len(report.kept) == 4, [task.dropped for task in report.dropped]


@pytest.mark.long
async def test_a_set_is_the_same_in_another_order_and_with_more_at_once_than_there_are_cores(
    factory: BubblewrapFactory, cache: Path, tmp_path: Path
) -> None:
    for name in ("inflection", "webcolors", "xmltodict"):
        source_tree(PACKAGES[name], cache)
    plan = SetPlan(packages=("inflection", "webcolors"), held_out=("xmltodict",), train=4, validation=2, heldout=3)
    turned = plan.model_copy(update={"packages": plan.packages[::-1]})
    found: list[list[str]] = []
    for one, at_once in ((plan, 1), (turned, 6)):
        folder = tmp_path / str(at_once)
        shutil.copytree(cache, folder, ignore=lambda _, names: [name for name in names if "." not in name])
        made = await forge_set(one, factory, folder, at_once=at_once)
        found.append(sorted(task.digest for task in made.tasks.every()))
    assert len(found[0]) == 15
    assert found[0] == found[1]


def test_a_package_that_cannot_be_had_says_where_to_put_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path / "nowhere"))
    (tmp_path / PACKAGES["toolz"].archive).write_bytes(b"not what was pinned")
    with pytest.raises(PackageUnavailable, match="put the archive with SHA-256"):
        source_tree(PACKAGES["toolz"], tmp_path)


def test_a_file_that_is_no_source_distribution_says_so(tmp_path: Path) -> None:
    file = tmp_path / "a.tar.gz"
    file.write_bytes(b"no archive")
    with pytest.raises(PackageUnavailable, match="is no source distribution"):
        archive_tree(file)


def test_an_archive_without_metadata_says_how_to_get_one(tmp_path: Path) -> None:
    file = tmp_path / "bare-1.tar.gz"
    with tarfile.open(file, "w:gz"):
        pass
    with pytest.raises(NoTests, match="PKG-INFO"):
        archive_tree(file)


async def test_a_package_is_held_out_as_a_whole_or_not_at_all(
    factory: BubblewrapFactory, tree: PackageTree, tmp_path: Path
) -> None:
    with pytest.raises(ValueError, match="held out as a whole or not at all"):
        await forge_package(tree, 0, Share(train=1, heldout=1), factory, tmp_path)
