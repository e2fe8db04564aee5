"""R2E-Gym in a sandbox laid out like its images, in miniature: the hidden tests run and say what they must, and an
agent's sandbox holds nothing of them."""

from collections.abc import AsyncIterator, Mapping

import pytest

from stepwell.agent.codeact import CodeActTools
from stepwell.sandbox.bubblewrap import BubblewrapFactory
from stepwell.sandbox.protocol import ExecEnd, Sandbox, SandboxError, SandboxLimits
from stepwell.tasks.grading.verdict import Failure, Score
from stepwell.tasks.manifest import task_blob
from stepwell.tasks.r2e.grade import grade_in_image
from stepwell.tasks.r2e.hygiene import clean, hygiene
from stepwell.tasks.r2e.image_run import OUTPUT_BYTES, ImageRun, run_in_image
from stepwell.tasks.r2e.rows import parse_dataset_row
from stepwell.tasks.r2e.secrets import R2ESecrets, secrets_of, task_of
from tests.r2e_rows import BROKEN, FIXED, TESTS, dataset_row, secret_texts

WORK = "/work"
LIMITS = SandboxLimits(output_bytes=OUTPUT_BYTES)
RUN_TESTS = "PYTHONWARNINGS='ignore::UserWarning' .venv/bin/python -W ignore -m pytest -rA r2e_tests\n"
IMAGE = {
    "shapes.py": BROKEN,
    "run_tests.sh": RUN_TESTS,
    "setup.cfg": "[tool:pytest]\nxfail_strict = false\n",
    "r2e_tests/support.txt": "beside the tests in the image",
}
SECRETS = secrets_of(parse_dataset_row(dataset_row(), "x"))


@pytest.fixture(scope="module")
async def factory(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[BubblewrapFactory]:
    made = BubblewrapFactory(tmp_path_factory.mktemp("sandboxes"))
    yield made
    await made.close()


INTERPRETER = r"""
mkdir -p .venv/bin
printf '#!/bin/sh\nLD_LIBRARY_PATH=%s exec %s "$@"\n' "$LD_LIBRARY_PATH" "$(command -v python3)" > .venv/bin/python
chmod 755 .venv/bin/python
"""
"""The sandbox's own, which is not where it was built and may need a library's path, under the name of the image's."""


async def image(factory: BubblewrapFactory, files: Mapping[str, str] = IMAGE) -> Sandbox:
    """A sandbox with the repository and an interpreter where an R2E image has them."""
    sandbox = await factory.create({path: text.encode() for path, text in files.items()}, LIMITS)
    made = await sandbox.exec(["sh", "-c", INTERPRETER], timeout_s=60)
    assert (made.end, made.returncode, made.output) == (ExecEnd.EXITED, 0, b"")
    return sandbox


async def run(
    factory: BubblewrapFactory,
    changed: Mapping[str, bytes | None],
    secrets: R2ESecrets = SECRETS,
    files: Mapping[str, str] = IMAGE,
    timeout_s: float = 240.0,
) -> ImageRun:
    sandbox = await image(factory, files)
    try:
        return await run_in_image(
            sandbox, secrets.tests, secrets.expected_tests(), changed, work=WORK, timeout_s=timeout_s
        )
    finally:
        await sandbox.destroy()


async def test_the_gold_patch_gives_every_expected_status(factory: BubblewrapFactory) -> None:
    ran = await run(factory, SECRETS.gold_files())
    assert ran.found == SECRETS.expected_tests().expected
    assert (ran.started, ran.ended, ran.altered, ran.misconduct, ran.said) == (True, True, (), None, "")


async def test_without_it_tests_fail_that_must_pass_and_one_passes_that_must_fail(factory: BubblewrapFactory) -> None:
    ran = await run(factory, {})
    wanted = SECRETS.expected_tests().expected
    assert {test for test in wanted if ran.found[test] != wanted[test]} == {
        "r2e_tests/test_1.py::test_area",
        "r2e_tests/test_1.py::TestShapes::test_zero",
        "r2e_tests/test_1.py::TestShapes::test_lost",
    }


async def test_a_failure_that_is_mended_is_a_difference(factory: BubblewrapFactory) -> None:
    mended = FIXED.replace("return a * b", "return a * b if a != 1 else 2")
    ran = await run(factory, {"shapes.py": mended.encode()})
    assert ran.found["r2e_tests/test_1.py::TestShapes::test_lost"] == "passed"
    assert ran.found != SECRETS.expected_tests().expected


CHEATS: dict[str, dict[str, bytes | None]] = {
    "its own tests": {"r2e_tests/test_1.py": b"def test_area(): pass\n", "r2e_tests/conftest.py": b"x = 1\n"},
    "a conftest": {"conftest.py": b"def pytest_collection_modifyitems(items): items.clear()\n"},
    "configuration": {"setup.cfg": b"[tool:pytest]\naddopts = --collect-only\n"},
    "another command": {"run_tests.sh": b"echo all passed\n"},
    "another interpreter": {".venv/bin/python": b"#!/bin/sh\nexit 0\n", ".venv/pyvenv.cfg": b""},
    "a pytest of its own": {"pytest.py": b"def main(*a, **k): return 0\n", "pytest/__init__.py": b"x = 1\n"},
    "modules of the interpreter": {"os.py": b"raise SystemExit\n", "encodings/__init__.py": b"raise SystemExit\n"},
    "a printed summary": {"shapes.py": b"print('short test summary info\\nPASSED r2e_tests/test_1.py::test_area')\n"},
}


@pytest.mark.parametrize("cheat", CHEATS)
async def test_what_is_no_solution_is_found_to_be_none(factory: BubblewrapFactory, cheat: str) -> None:
    ran = await run(factory, CHEATS[cheat])
    assert ran.started
    assert ran.found.get("r2e_tests/test_1.py::test_area") != "passed"


async def test_a_solution_beside_a_file_that_stands_in_for_pytest_still_counts(factory: BubblewrapFactory) -> None:
    ran = await run(factory, {"shapes.py": FIXED.encode(), "pytest.py": b"raise SystemExit\n"})
    assert ran.found == SECRETS.expected_tests().expected


async def test_a_file_may_take_the_place_of_a_folder_and_the_reverse(factory: BubblewrapFactory) -> None:
    files = IMAGE | {"kept/inner.py": "x = 1\n", "plain": "text\n"}
    changed = {"kept/inner.py": None, "kept": b"now a file", "plain/inner.py": b"x = 2\n", "shapes.py": FIXED.encode()}
    ran = await run(factory, changed, files=files)
    assert ran.found == SECRETS.expected_tests().expected


async def test_tests_that_do_not_end_are_cut_off(factory: BubblewrapFactory) -> None:
    ran = await run(factory, {"shapes.py": b"import time\ntime.sleep(600)\n"}, timeout_s=3.0)
    assert (ran.end, ran.ended, ran.found) == (ExecEnd.TIMEOUT, False, {})


async def test_tests_that_are_changed_while_they_run_are_told(factory: BubblewrapFactory) -> None:
    code = "open('/work/r2e_tests/test_2.py', 'w').write('def test_fixture(): pass')\n" + FIXED
    ran = await run(factory, {"shapes.py": code.encode()})
    assert ran.altered == ("r2e_tests/test_2.py",)


@pytest.mark.parametrize(("changed", "value"), [(SECRETS.gold_files(), 1.0), ({}, 0.0), ({"/etc/x": b""}, 0.0)])
async def test_work_is_graded_in_a_sandbox_that_is_gone_afterwards(
    factory: BubblewrapFactory, changed: dict[str, bytes | None], value: float
) -> None:
    made: list[Sandbox] = []

    async def create() -> Sandbox:
        made.append(await image(factory))
        return made[-1]

    verdict = await grade_in_image(SECRETS, changed, create, work=WORK, timeout_s=240.0)
    assert isinstance(verdict, Score)
    assert verdict.value == value, verdict.report
    for sandbox in made:
        with pytest.raises(SandboxError):
            await sandbox.exec(["true"], timeout_s=10)


async def test_an_image_with_another_command_cannot_be_graded(factory: BubblewrapFactory) -> None:
    verdict = await grade_in_image(
        SECRETS, {}, lambda: image(factory, IMAGE | {"run_tests.sh": "make test\n"}), work=WORK
    )
    assert isinstance(verdict, Failure)
    assert (verdict.kind, "run_tests.sh runs no Python" in verdict.cause) == ("data", True)


async def test_what_the_image_has_beside_the_tests_stays(factory: BubblewrapFactory) -> None:
    tests = {"test_1.py": "def test_it():\n    assert open('r2e_tests/support.txt').read()\n"}
    secrets = SECRETS.model_copy(update={"tests": tests, "expected": {"test_it": "PASSED"}})
    assert (await run(factory, {}, secrets)).found == {"r2e_tests/test_1.py::test_it": "passed"}


async def test_a_link_in_the_place_of_the_tests_is_replaced(factory: BubblewrapFactory) -> None:
    sandbox = await image(factory, {path: text for path, text in IMAGE.items() if "r2e_tests" not in path})
    try:
        await sandbox.exec(["sh", "-c", "mkdir elsewhere; ln -s elsewhere r2e_tests"], timeout_s=10)
        ran = await run_in_image(
            sandbox, SECRETS.tests, SECRETS.expected_tests(), SECRETS.gold_files(), work=WORK, timeout_s=240.0
        )
        kept = await sandbox.exec(["ls", "elsewhere"], timeout_s=10)
    finally:
        await sandbox.destroy()
    assert ran.found == SECRETS.expected_tests().expected
    assert kept.output == b""


UNITTEST = {
    "test_1.py": """
import unittest
from shapes import area

class AreaTest(unittest.TestCase):
    def test_area(self):
        self.assertEqual(area(2, 3), 6)
    def test_lost(self):
        self.assertEqual(area(1, 1), 2)
    def test_broken(self):
        raise RuntimeError
    @unittest.skip("no")
    def test_skipped(self):
        pass
""",
    "test_2.py": "import nothing_of_this_name\n",
    "tornado_unittest_runner.py": "print('the image runs this; we do not')\n",
}


async def test_tests_that_the_image_runs_by_unittest_are_run_so(factory: BubblewrapFactory) -> None:
    expected = {
        "AreaTest.test_area": "PASSED",
        "AreaTest.test_lost": "FAILED",
        "AreaTest.test_broken": "ERROR",
        "_FailedTest.test_2": "ERROR",
    }
    secrets = R2ESecrets.model_validate(SECRETS.model_dump() | {"tests": UNITTEST, "expected": expected})
    script = ".venv/bin/python -W ignore r2e_tests/tornado_unittest_runner.py\n"
    ran = await run(factory, {"shapes.py": FIXED.encode()}, secrets, files=IMAGE | {"run_tests.sh": script})
    assert ran.found == secrets.expected_tests().expected
    assert (ran.started, ran.ended, ran.misconduct) == (True, True, None)


async def test_nothing_secret_is_in_what_the_agent_gets(factory: BubblewrapFactory) -> None:
    leaky = (
        IMAGE
        | {f"r2e_tests/{name}": code for name, code in TESTS.items()}
        | {
            "expected_test_output.json": str(SECRETS.expected),
            "parsed_commit.json": SECRETS.commit,
            "docs/run_tests.sh": "# r2e_tests: test_area\n",
            "docs/other/run_tests.sh": "make test\n",
        }
    )
    row = parse_dataset_row(dataset_row(), "x")
    task = task_of(row, "train", "0" * 64)
    sandbox = await image(factory, leaky)
    try:
        history = f"""
git init -q . && git add -A . && git -c user.name=a -c user.email=a commit -q -m base && git tag v1
cat > shapes.py <<'END'\n{FIXED}END
git -c user.name=a -c user.email=a commit -qam 'GOLD-LINE: the future' && git branch future
git checkout -q v1
"""
        made = await sandbox.exec(["sh", "-c", history], timeout_s=30)
        assert (made.returncode, made.output) == (0, b"")
        before = await everything_to_see(sandbox)
        await clean(sandbox, hygiene(WORK))
        seen = await everything_to_see(sandbox)
        look = "git log --all --format=%s; git describe --tags; git status --short"
        look += "; git cat-file --batch-all-objects --batch"
        seen["history"] = (await sandbox.exec(["sh", "-c", look], timeout_s=30)).output
    finally:
        await sandbox.destroy()
    assert leaks(before) != []
    seen |= {"prompt": task.issue.encode(), "tools": CodeActTools().system_prompt().encode(), "task": task_blob(task)}
    assert leaks(seen) == []
    assert b"The repository as the task begins\nv1\n" in seen["history"]
    assert b"./docs/other/run_tests.sh" in seen["names"]
    assert b"./docs/run_tests.sh" not in seen["names"]
    assert BROKEN.encode() in seen["files"]


async def everything_to_see(sandbox: Sandbox) -> dict[str, bytes]:
    """All that can be read in the sandbox, by what it is; of the system, what it says of itself."""
    commands = {
        "names": "find . -name .venv -prune -o -print",
        "files": "find . -name .venv -prune -o -type f -print0 | xargs -0 cat",
        "environment": "env; cat /proc/*/environ /proc/*/cmdline",
        "mounts": "cat /proc/self/mountinfo; ls -laR /tmp /root /r2e_tests",
    }
    return {
        what: (await sandbox.exec(["sh", "-c", f"{command} 2>/dev/null"], timeout_s=30)).output
        for what, command in commands.items()
    }


def leaks(seen: Mapping[str, bytes]) -> list[str]:
    """Where secrets stand, in words."""
    texts = secret_texts()
    return [
        f"{what} in {place}" for place, said in seen.items() for what, text in texts.items() if text.encode() in said
    ]
