"""Grading in real sandboxes: honest work gets 1, other work 0 with a reason, and failures are no scores."""

from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Literal

import pytest

from stepwell.sandbox.bubblewrap import BubblewrapFactory
from stepwell.sandbox.protocol import Sandbox, SandboxError, SandboxLimits
from stepwell.tasks.grading.grade import grade
from stepwell.tasks.grading.verdict import Failure, Score
from stepwell.tasks.task import Task

Grader = Literal["calls", "pytest"]
HIDDEN = """
from shapes import area, sides

def test_area():
    for arguments, wanted in [((2, 3), 6), ((0, 5), 0)]:
        assert area(*arguments) == wanted

def test_sides():
    assert [4, 4] == sides(16)
"""
BROKEN = "def area(a, b):\n    return a + b\n\ndef sides(n):\n    return [n // 4, n // 4]\n"
FIXED = BROKEN.replace("a + b", "a * b")


def task(grader: Grader = "calls", **fields: object) -> Task:
    values = {
        "id": "shapes",
        "family": "shapes",
        "split": "train",
        "difficulty": 1,
        "issue": "area is wrong",
        "files": {"shapes.py": BROKEN, "tests/test_visible.py": "def test_x():\n    pass\n"},
        "hidden": {"tests/test_hidden.py": HIDDEN},
        "gold": {"shapes.py": FIXED},
        "grader": grader,
        "protected": ("tests",),
        "expected": ("tests/test_hidden.py::test_area", "tests/test_hidden.py::test_sides"),
        "timeout_s": 20.0,
    }
    return Task.model_validate(values | fields)


@pytest.fixture(scope="module")
async def factory(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[BubblewrapFactory]:
    made = BubblewrapFactory(tmp_path_factory.mktemp("sandboxes"))
    yield made
    await made.close()


async def score(factory: BubblewrapFactory, of: Task, changed: Mapping[str, bytes | None]) -> Score:
    verdict = await grade(of, changed, factory, seed=7)
    assert isinstance(verdict, Score), verdict
    return verdict


both_graders = pytest.mark.parametrize("grader", ["calls", "pytest"])


@both_graders
async def test_the_gold_patch_passes(factory: BubblewrapFactory, grader: Grader) -> None:
    verdict = await score(factory, task(grader), {"shapes.py": FIXED.encode()})
    assert (verdict.value, verdict.failed) == (1.0, ())


@both_graders
async def test_doing_nothing_fails_and_says_which_test(factory: BubblewrapFactory, grader: Grader) -> None:
    verdict = await score(factory, task(grader), {})
    assert verdict.value == 0.0
    assert verdict.passed == ("tests/test_hidden.py::test_sides",)
    assert "test_area: tests/test_hidden.py:6: AssertionError" in verdict.report


async def test_an_object_that_equals_everything_is_caught_by_a_canary(factory: BubblewrapFactory) -> None:
    cheat = (
        b"class E(int):\n    def __eq__(self, o): return True\n    __hash__ = int.__hash__\n"
        b"def area(*a): return E()\ndef sides(n): return [E(), E()]\n"
    )
    verdict = await score(factory, task(), {"shapes.py": cheat})
    assert verdict.failed == ()
    assert "canaries" in verdict.report


@both_graders
@pytest.mark.parametrize(
    "ending",
    [
        "import threading, time\nthreading.Thread(target=time.sleep, args=(600,)).start()\n",
        "import atexit, time\natexit.register(time.sleep, 600)\n",
        "import subprocess\nsubprocess.Popen(['sleep', '600'])\n",
    ],
)
async def test_what_lingers_does_not_hold_honest_work(factory: BubblewrapFactory, grader: Grader, ending: str) -> None:
    assert (await score(factory, task(grader), {"shapes.py": (ending + FIXED).encode()})).value == 1.0


@both_graders
async def test_a_hang_is_a_score_of_zero(factory: BubblewrapFactory, grader: Grader) -> None:
    verdict = await score(factory, task(grader, timeout_s=3.0), {"shapes.py": b"while True: pass\n"})
    assert (verdict.value, verdict.report) == (0.0, "the tests did not end within 3 s")


@both_graders
async def test_a_pytest_ini_of_the_task_does_not_matter_and_its_conftest_does(
    factory: BubblewrapFactory, grader: Grader
) -> None:
    files = {"shapes.py": BROKEN, "pytest.ini": "[pytest]\naddopts = --no-such-option\n"}
    assert (await score(factory, task(grader, files=files), {"shapes.py": FIXED.encode()})).value == 1.0


async def test_pytest_tests_of_all_kinds_are_graded(factory: BubblewrapFactory) -> None:
    hidden = """
import unittest
import pytest
from shapes import area

class TestPlain:
    @pytest.mark.parametrize(("a", "b"), [(1, 2), (3, 4)])
    def test_area(self, a, b, tmp_path):
        assert area(a, b) == a * b

class Case(unittest.TestCase):
    def test_case(self):
        self.assertEqual(area(1, 7), 7)

@pytest.mark.skip
def test_skipped():
    pass
"""
    ids = ["TestPlain::test_area[1-2]", "TestPlain::test_area[3-4]", "Case::test_case"]
    tests = {"hidden": {"tests/test_h.py": hidden}, "expected": tuple(f"tests/test_h.py::{name}" for name in ids)}
    of = task("pytest", **tests)
    assert (await score(factory, of, {"shapes.py": FIXED.encode()})).value == 1.0
    assert (await score(factory, of, {})).passed == ()
    skipped = task("pytest", hidden=tests["hidden"], expected=("tests/test_h.py::test_skipped",))
    assert (await score(factory, skipped, {"shapes.py": FIXED.encode()})).value == 0.0


@pytest.mark.parametrize(
    "fields",
    [
        {"hidden": {"tests/test_hidden.py": "def ("}},
        {"expected": ("tests/test_hidden.py::test_other",)},
        {"expected": ("tests/other.py::test_area",)},
        {"expected": ()},
    ],
)
async def test_a_broken_task_is_a_failure_of_the_data(factory: BubblewrapFactory, fields: dict[str, object]) -> None:
    verdict = await grade(task(**fields), {}, factory)
    assert isinstance(verdict, Failure)
    assert verdict.kind == "data"


class DyingFactory:
    """Makes real sandboxes that are destroyed before they are used."""

    def __init__(self, real: BubblewrapFactory) -> None:
        self._real = real

    async def create(self, files: Mapping[str, bytes], limits: SandboxLimits) -> Sandbox:
        sandbox = await self._real.create(files, limits)
        await sandbox.destroy()
        return sandbox

    async def close(self) -> None:
        await self._real.close()


async def test_a_sandbox_that_dies_is_a_failure_of_the_infrastructure(factory: BubblewrapFactory) -> None:
    verdict = await grade(task(), {}, DyingFactory(factory))
    assert isinstance(verdict, Failure)
    assert (verdict.kind, "destroyed" in verdict.cause) == ("infra", True)


async def test_a_sandbox_without_pytest_is_a_failure_of_the_infrastructure(tmp_path: Path) -> None:
    bare = BubblewrapFactory(tmp_path, libraries=())
    verdict = await grade(task("pytest"), {}, bare)
    await bare.close()
    assert isinstance(verdict, Failure)
    assert "ModuleNotFoundError" in verdict.cause


async def test_a_verdict_does_not_depend_on_the_seed(factory: BubblewrapFactory) -> None:
    verdicts = [await grade(task(), {"shapes.py": FIXED.encode()}, factory, seed=seed) for seed in range(5)]
    assert len({verdict.model_dump_json() for verdict in verdicts}) == 1


def test_the_error_of_a_sandbox_is_no_value_error() -> None:
    assert not issubclass(SandboxError, ValueError | OSError)
