"""What an agent gets of an R2E image, in real sandboxes: all that it needs, and nothing that tells the answer."""

from collections.abc import AsyncIterator, Mapping
from pathlib import Path

import pytest

from stepwell.sandbox.apptainer import ApptainerFactory
from stepwell.sandbox.protocol import Sandbox, SandboxError, SandboxLimits
from stepwell.tasks.grading.verdict import Score
from stepwell.tasks.r2e.grade import grade_in_image, grading_limits, sandbox_for_agent
from stepwell.tasks.r2e.image_run import WORK
from stepwell.tasks.r2e.rows import parse_dataset_row
from stepwell.tasks.r2e.secrets import secrets_of
from tests.r2e_image import WORK_FILES, secret_needles
from tests.r2e_rows import BROKEN, dataset_row
from tests.stack.sandbox_kinds import shell

LIMITS = SandboxLimits(output_bytes=4 << 20)
SECRETS = secrets_of(parse_dataset_row(dataset_row(), "x"))
SOLVE = "sed -i 's/a + b/a * b/' shapes.py"
LOOKS: Mapping[str, str] = {
    "the hidden tests": "cat /r2e_tests/* /root/r2e_tests/* r2e_tests/*",
    "every file of the system": "grep -raD skip --exclude-dir=proc --exclude-dir=sys -e HIDDEN-LINE -e GOLD-LINE "
    "-e SECRET-OUTPUT -e 'rA r2e_tests' -e TestShapes /",
    "what runs the tests": "find / -name run_tests.sh -not -path '/proc/*' -exec cat {} +; cat /root/run_tests.sh",
    "what the builder wrote": "find /testbed -name '*.json' -exec cat {} +; cat expected_test_output.json",
    "what pytest remembers": "find / -path '*/v/cache/lastfailed' -not -path '/proc/*' -exec cat {} +",
    "the benchmark's row": "cat /root/dataset/data.jsonl; find /root -type f -exec cat {} +",
    "later commits": "git log -p --all",
    "the reflog": "git reflog -p --all; cat .git/logs/HEAD",
    "the stash": "git stash show -p; git show refs/stash",
    "every object": "git cat-file --batch-all-objects --batch",
    "unreachable objects": "git fsck --lost-found --no-reflogs; cat .git/lost-found/*/* | git cat-file --batch; "
    "git cat-file --batch-all-objects --batch --buffer",
    "the environment and the mounts": "env; cat /proc/*/environ /proc/*/cmdline /proc/self/mountinfo; ls -laR /root",
}
"""Commands of an agent that looks for the answer. Each finds something in a sandbox of the image as it is, but the
last."""
ESCAPES: Mapping[str, str] = {
    "unmounting": """python3 - <<'END'
import ctypes
libc = ctypes.CDLL(None, use_errno=True)
for path in (b"/r2e_tests", b"/root/r2e_tests", b"/root/dataset", b"/run_tests.sh", b"/testbed"):
    print(libc.umount2(path, 2), libc.umount2(path, 0))
END
cat /r2e_tests/* /root/r2e_tests/* /root/dataset/* /run_tests.sh r2e_tests/*""",
    "namespaces of its own": "unshare -Urm cat /r2e_tests/test_1.py; "
    "unshare -Urmp --fork cat /root/r2e_tests/test_1.py",
    "other processes' roots": "cat /proc/*/root/r2e_tests/* /proc/*/root/root/dataset/*; ls -l /proc/1/fd /proc/1/cwd; "
    "cat /proc/1/maps",
    "the upper layer": "ls -laR /dev/written; find /dev/written -type f -exec cat {} +; rm -rf /dev/written/*; "
    "cat r2e_tests/* run_tests.sh",
    "undoing the removal": """rm -rf r2e_tests; mkdir r2e_tests; python3 - <<'END'
import os
for name in os.listxattr("r2e_tests"):
    print(name)
for name in ("user.overlay.opaque", "trusted.overlay.opaque", "user.overlay.redirect"):
    for value in (b"n", b"/root/r2e_tests"):
        try:
            os.setxattr("r2e_tests", name, value)
        except OSError as error:
            print(error)
END
ls -la r2e_tests; cat r2e_tests/* run_tests.sh; rm -r r2e_tests; cat r2e_tests/*""",
    "moving what hides": "mv /r2e_tests /tmp; rm -r /r2e_tests /root/r2e_tests; ln -sf /x /run_tests.sh; "
    "mv /root /tmp/root; cat /r2e_tests/* /root/r2e_tests/* /run_tests.sh",
    "a link and a mount of the folder above": "ln -s / /tmp/top; cat /tmp/top/r2e_tests/* /tmp/top/root/r2e_tests/*; "
    "cat /proc/self/root/r2e_tests/* /proc/self/cwd/../r2e_tests/*",
    "devices": "cat /dev/fuse /dev/loop* /dev/vd* /dev/sd*; ls /dev; find / -name '*.sif' -not -path '/proc/*'",
}
"""Commands of an agent that tries to get behind what hides the answer."""


@pytest.fixture(scope="module")
async def factory(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[ApptainerFactory]:
    made = ApptainerFactory(tmp_path_factory.mktemp("sandboxes"))
    yield made
    await made.close()


@pytest.fixture(scope="module")
async def agents(factory: ApptainerFactory, r2e_sif: Path) -> AsyncIterator[Sandbox]:
    """A sandbox as an agent gets it."""
    sandbox = await sandbox_for_agent(factory, LIMITS, r2e_sif, work=WORK)
    yield sandbox
    await sandbox.destroy()


@pytest.fixture(scope="module")
async def attacked(factory: ApptainerFactory, r2e_sif: Path) -> AsyncIterator[Sandbox]:
    """Another one, whose agent does what it can."""
    sandbox = await sandbox_for_agent(factory, LIMITS, r2e_sif, work=WORK)
    yield sandbox
    await sandbox.destroy()


@pytest.fixture(scope="module")
async def graders(factory: ApptainerFactory, r2e_sif: Path) -> AsyncIterator[Sandbox]:
    """A sandbox as a grader gets it."""
    sandbox = await factory.create({}, grading_limits(60.0), str(r2e_sif), work=WORK)
    yield sandbox
    await sandbox.destroy()


def leaks(output: bytes) -> list[bytes]:
    """Pieces of the answer that stand in an output."""
    return [needle for needle in secret_needles() if needle in output]


async def output_of(sandbox: Sandbox, script: str) -> bytes:
    """Whatever a script says, however it ends."""
    return (await sandbox.exec(["bash", "-c", script], timeout_s=60)).output


@pytest.mark.parametrize("look", LOOKS)
async def test_who_looks_for_the_answer_finds_nothing(agents: Sandbox, graders: Sandbox, look: str) -> None:
    if look != list(LOOKS)[-1]:
        assert leaks(await output_of(graders, LOOKS[look])) != [], "the image has something to find"
    assert leaks(await output_of(agents, LOOKS[look])) == []


@pytest.mark.parametrize("escape", ESCAPES)
async def test_nobody_gets_behind_what_hides_the_answer(factory: ApptainerFactory, r2e_sif: Path, escape: str) -> None:
    sandbox = await sandbox_for_agent(factory, LIMITS, r2e_sif, work=WORK)
    try:
        assert leaks(await output_of(sandbox, ESCAPES[escape])) == []
        assert await output_of(sandbox, "cat /run_tests.sh; ls -A /r2e_tests /root/r2e_tests /root/dataset") == (
            b"/r2e_tests:\n\n/root/dataset:\n\n/root/r2e_tests:\n"
        )
    finally:
        await sandbox.destroy()


async def test_the_agent_finds_the_repository_and_an_environment_that_runs(agents: Sandbox) -> None:
    found = await shell(agents, "find . -path ./.git -prune -o -path ./.venv -prune -o -type f -print | sort")
    assert found.split() == sorted(f"./{path}" for path in WORK_FILES)
    assert await shell(agents, "git log --all --format=%s; git describe --tags; git status --short") == (
        "The repository as the task begins\nv1.2\n"
    )
    assert await shell(agents, ".venv/bin/python -c 'import pytest, shapes; print(shapes.area(2, 3))'") == "5\n"


async def test_what_was_hidden_and_removed_is_no_change_and_what_was_changed_is_graded(
    factory: ApptainerFactory, r2e_sif: Path, agents: Sandbox
) -> None:
    sandbox = await sandbox_for_agent(factory, LIMITS, r2e_sif, work=WORK)
    fresh, head = await sandbox.tree_digest(), await shell(sandbox, "git rev-parse HEAD")
    assert (fresh, head) == (await agents.tree_digest(), await shell(agents, "git rev-parse HEAD")), "made again"
    assert await sandbox.changed_files() == {}
    await shell(sandbox, f"{SOLVE}; rm docs/notes.txt; git -c user.name=a -c user.email=a commit -qam mine")
    changed = await sandbox.changed_files()
    assert changed == {"shapes.py": BROKEN.replace("+", "*").encode(), "docs/notes.txt": None}
    assert await sandbox.tree_digest() != fresh
    await shell(sandbox, "git checkout -q HEAD~1 -- . && git reset -q --hard HEAD~1")
    assert (await sandbox.changed_files(), await sandbox.tree_digest()) == ({}, fresh)
    await sandbox.destroy()

    async def create() -> Sandbox:
        return await factory.create({}, grading_limits(240.0), str(r2e_sif), work=WORK)

    verdict = await grade_in_image(SECRETS, changed, create, work=WORK, timeout_s=240.0)
    assert isinstance(verdict, Score), verdict
    assert verdict.value == 1.0, verdict.report
    assert len(verdict.outcomes) == len(SECRETS.expected)


async def test_a_sandbox_that_cannot_be_cleaned_is_not_given_to_an_agent(
    factory: ApptainerFactory, r2e_sif: Path
) -> None:
    with pytest.raises(SandboxError, match="could not be cleaned"):
        await sandbox_for_agent(factory, SandboxLimits(file_bytes=1), r2e_sif, work=WORK)  # git can write nothing
