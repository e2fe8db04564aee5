"""Whose fault an end is: no work can make its own grading fail as infrastructure, and no failing host costs a score."""

from collections.abc import AsyncIterator, Callable, Mapping

import pytest

from stepwell.sandbox.bubblewrap import BubblewrapFactory
from stepwell.sandbox.protocol import ExecResult, Sandbox, SandboxError, SandboxLimits
from stepwell.tasks.grading import bench
from stepwell.tasks.grading.bench import DEATHS
from stepwell.tasks.grading.grade import grade
from stepwell.tasks.grading.verdict import Failure, Score
from stepwell.tasks.task import Task

BROKEN = "def area(a, b):\n    return a + b\n"
FIXED = "def area(a, b):\n    return a * b\n"
TASK = Task(
    id="area",
    family="area",
    split="train",
    difficulty=1,
    issue="area is wrong",
    files={"shapes.py": BROKEN},
    hidden={"tests/test_h.py": "from shapes import area\n\ndef test_area():\n    assert area(3, 4) == 12\n"},
    gold={"shapes.py": FIXED},
    grader="calls",
    protected=("tests",),
    expected=("tests/test_h.py::test_area",),
    timeout_s=120.0,
)
MARK = b"# deadly\n"
HONEST = {"shapes.py": FIXED.encode()}
DEADLY = {"shapes.py": FIXED.encode() + MARK}


class DyingFactory:
    """Makes real sandboxes, and destroys some of them when their first command begins.

    Args:
        real: Makes them.
        dies: Whether the sandbox of these files dies; the number of those made before, from 0.
    """

    def __init__(self, real: BubblewrapFactory, dies: Callable[[Mapping[str, bytes], int], bool]) -> None:
        self._real = real
        self._dies = dies
        self.made = 0

    async def create(self, files: Mapping[str, bytes], limits: SandboxLimits) -> Sandbox:
        sandbox = await self._real.create(files, limits)
        if self._dies(files, self.made):
            await sandbox.destroy()
        self.made += 1
        return sandbox

    async def close(self) -> None:
        await self._real.close()


class NoFactory:
    """Has no room for sandboxes."""

    async def create(self, files: Mapping[str, bytes], limits: SandboxLimits) -> Sandbox:
        raise SandboxError(f"no sandbox for {len(files)} files within {limits}: no space; free some")

    async def close(self) -> None:
        return


@pytest.fixture(scope="module")
async def factory(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[BubblewrapFactory]:
    made = BubblewrapFactory(tmp_path_factory.mktemp("sandboxes"))
    yield made
    await made.close()


def is_deadly(files: Mapping[str, bytes], _: int) -> bool:
    return files["shapes.py"].endswith(MARK)


async def test_work_that_ends_its_sandbox_each_time_gets_0(factory: BubblewrapFactory) -> None:
    dying = DyingFactory(factory, is_deadly)
    verdict = await grade(TASK, DEADLY, dying)
    assert isinstance(verdict, Score)
    assert verdict.value == 0.0
    assert verdict.report.startswith(f"the tested code ended its sandbox, {DEATHS} times of {DEATHS}: ")
    assert dying.made == DEATHS + 1  # One more, with the reference solution, which lived.


async def test_a_sandbox_that_dies_once_costs_no_score(factory: BubblewrapFactory) -> None:
    verdict = await grade(TASK, HONEST, DyingFactory(factory, lambda _, made: made == 0))
    assert isinstance(verdict, Score)
    assert verdict.value == 1.0


async def test_work_that_takes_long_each_time_gets_0_before_anybody_gives_up(
    factory: BubblewrapFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bench, "ALL_RUNS", 0.0)
    verdict = await grade(TASK, HONEST, factory)
    assert isinstance(verdict, Score)
    assert (verdict.value, verdict.report) == (0.0, "the runs of its tests took more than 0 s together")


async def test_where_the_reference_solution_dies_too_it_is_the_infrastructure(factory: BubblewrapFactory) -> None:
    verdict = await grade(TASK, HONEST, DyingFactory(factory, lambda _, made: True))
    assert isinstance(verdict, Failure)
    assert verdict.kind == "infra"


async def test_a_sandbox_that_cannot_be_made_is_the_infrastructure() -> None:
    verdict = await grade(TASK, HONEST, NoFactory())
    assert isinstance(verdict, Failure)
    assert (verdict.kind, "no space" in verdict.cause) == ("infra", True)


@pytest.mark.parametrize("path", ["/".join(["d" * 200] * 30), "../outside.py"])
async def test_a_tree_that_cannot_be_made_is_the_work_and_not_the_infrastructure(path: str) -> None:
    verdict = await grade(TASK, {**HONEST, path: b""}, NoFactory())
    assert isinstance(verdict, Score)
    assert verdict.value == 0.0


async def run_python(factory: BubblewrapFactory, source: str) -> ExecResult:
    sandbox = await factory.create({"try.py": source.encode()}, SandboxLimits())
    try:
        await sandbox.exec(["python3", "try.py"], timeout_s=60.0)
        return await sandbox.exec(["echo", "alive"], timeout_s=60.0)
    finally:
        await sandbox.destroy()


async def test_no_signal_from_inside_ends_the_first_process(factory: BubblewrapFactory) -> None:
    kill_all = "import os\nfor number in range(1, 65):\n    os.kill(1, number)\n"
    result = await run_python(factory, kill_all)
    assert result.output == b"alive\n"


async def test_a_canary_and_a_twin_convict_only_where_the_reference_solution_fails_them(
    factory: BubblewrapFactory,
) -> None:
    hidden = (
        "from shapes import area\n\n"
        "def test_area():\n    assert area(3, 4) == 12\n\n"
        "def test_loose():\n    if area(3, 4) != 12:\n        assert area(3, 4) == 12\n\n"
        "def test_caught():\n    try:\n        assert area(1, 1) == 1\n    except AssertionError:\n        pass\n"
    )
    expected = tuple(f"tests/test_h.py::{name}" for name in ("test_area", "test_loose", "test_caught"))
    task = TASK.model_copy(update={"hidden": {"tests/test_h.py": hidden}, "expected": expected})
    for seed in range(6):
        verdict = await grade(task, HONEST, factory, seed=seed)
        assert isinstance(verdict, Score)
        assert verdict.value == 1.0, verdict.report
    nothing = await grade(task, {}, factory)
    assert isinstance(nothing, Score)
    assert nothing.value == 0.0
