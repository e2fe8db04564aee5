"""What every kind of sandbox must do: commands, their limits, and a sandbox's life."""

import asyncio
import os
import time
from contextlib import suppress

import pytest

from stepwell.sandbox.protocol import ExecEnd, Sandbox, SandboxError, SandboxFactory, SandboxLimits
from stepwell.sandbox.tree import digest_of_files
from tests.stack.sandbox_kinds import FILES, shell

# --- commands


async def test_a_command_gets_its_input_and_gives_its_output_and_status(sandbox: Sandbox) -> None:
    result = await sandbox.exec(["bash", "-c", "cat; echo err >&2; exit 3"], timeout_s=10, stdin=b"x" * 100_000)
    assert (result.end, result.returncode) == (ExecEnd.EXITED, 3)
    assert result.output.endswith(b"err\n")
    assert result.duration_s > 0


async def test_files_stay_from_one_command_to_the_next(sandbox: Sandbox) -> None:
    await shell(sandbox, "echo two >> pkg/data.txt")
    assert await shell(sandbox, "pwd; cat pkg/data.txt") == "/work\none\ntwo\n"


async def test_a_missing_program_is_a_result(sandbox: Sandbox) -> None:
    assert (await sandbox.exec(["no-such-program"], timeout_s=5)).returncode == 127


async def test_a_signal_is_the_negative_status(sandbox: Sandbox) -> None:
    assert (await sandbox.exec(["bash", "-c", "kill -SEGV $$"], timeout_s=5)).returncode == -11


async def test_a_background_process_that_holds_the_pipe_does_not_hold_the_command(sandbox: Sandbox) -> None:
    started = time.monotonic()
    assert await shell(sandbox, "sleep 1000 & echo done") == "done\n"
    assert time.monotonic() - started < 10
    assert await shell(sandbox, "pgrep sleep || echo none") == "none\n"


@pytest.mark.parametrize(
    "script",
    ["trap '' TERM INT HUP; sleep 1000", "sleep 1000 & wait", "while :; do :; done", "kill -STOP $$"],
)
async def test_a_command_ends_at_its_deadline_whatever_it_does(sandbox: Sandbox, script: str) -> None:
    started = time.monotonic()
    result = await sandbox.exec(["bash", "-c", script], timeout_s=0.5)
    assert (result.end, result.returncode) == (ExecEnd.TIMEOUT, -9)
    assert time.monotonic() - started < 10
    assert await shell(sandbox, "echo alive") == "alive\n"


async def test_output_is_cut_to_head_and_tail(sandbox: Sandbox) -> None:
    result = await sandbox.exec(["bash", "-c", "echo FIRST; head -c 1000000 /dev/zero; echo LAST"], timeout_s=20)
    assert result.output.startswith(b"FIRST\n")
    assert result.output.endswith(b"LAST\n")
    assert b"bytes left out" in result.output
    assert len(result.output) < SandboxLimits().output_bytes + 100


async def test_ten_gigabytes_of_output_are_stopped(sandbox: Sandbox) -> None:
    result = await sandbox.exec(["head", "-c", "10000000000", "/dev/zero"], timeout_s=60)
    assert result.end is ExecEnd.OUTPUT_LIMIT
    assert len(result.output) < SandboxLimits().output_bytes + 100


async def test_an_endless_writer_to_a_closed_pipe_gets_sigpipe_as_usual(sandbox: Sandbox) -> None:
    assert await shell(sandbox, "yes | head -n 1") == "y\n"


# --- limits


async def test_a_fork_bomb_is_stopped_and_the_sandbox_lives(sandbox: Sandbox) -> None:
    result = await sandbox.exec(["bash", "-c", "bomb() { bomb | bomb & }; bomb; sleep 30"], timeout_s=30)
    assert result.end is ExecEnd.EXITED
    assert result.duration_s < 20
    assert await shell(sandbox, "echo alive") == "alive\n"


async def test_one_process_cannot_have_more_memory_than_the_limit(sandbox: Sandbox) -> None:
    result = await sandbox.exec(["python3", "-c", "bytearray(2 << 30)"], timeout_s=30)
    assert result.returncode == 1
    assert b"MemoryError" in result.output


async def test_many_processes_cannot_have_more_memory_together(sandbox_factory: SandboxFactory) -> None:
    sandbox = await sandbox_factory.create({}, SandboxLimits(memory_bytes=128 << 20))
    hog = "import time; x = b'1' * (90 << 20); time.sleep(20)"
    result = await sandbox.exec(["bash", "-c", f'for i in 1 2 3 4 5; do python3 -c "{hog}" & done; wait'], timeout_s=30)
    assert result.returncode == -9
    assert b"killed: more than" in result.output


async def test_a_full_disk_is_told_to_the_command_and_the_sandbox_lives(sandbox: Sandbox) -> None:
    result = await sandbox.exec(["bash", "-c", "cat /dev/zero > big; echo more > small"], timeout_s=30)
    assert result.end is ExecEnd.EXITED
    assert b"File size limit exceeded" in result.output
    assert await shell(sandbox, "rm big; echo alive") == "alive\n"


@pytest.mark.parametrize("command", ["head -c 200M /dev/zero > big", "truncate -s 1T big"])
async def test_a_file_stays_under_the_limit(sandbox: Sandbox, command: str) -> None:
    result = await sandbox.exec(["bash", "-c", command], timeout_s=30)
    assert result.returncode != 0
    assert int(await shell(sandbox, "stat -c %s big")) <= SandboxLimits().file_bytes


async def test_many_files_cannot_fill_the_disk(sandbox_factory: SandboxFactory) -> None:
    sandbox = await sandbox_factory.create({}, SandboxLimits(file_bytes=4 << 20))
    script = "i=0; while :; do head -c 4M /dev/zero > f$i; i=$((i+1)); sleep 0.02; done"
    result = await sandbox.exec(["bash", "-c", script], timeout_s=30)
    assert b"bytes in the work tree" in result.output


async def test_temporary_and_shared_memory_folders_are_bounded(sandbox: Sandbox) -> None:
    script = (
        "for d in /tmp /dev/shm; do for i in 1 2 3; do head -c 60M /dev/zero > $d/f$i; done; done 2>&1; du -sm /tmp"
    )
    output = await shell(sandbox, script + "; rm -f /tmp/f? /dev/shm/f?")
    assert "No space left" in output


async def test_after_its_wall_clock_a_sandbox_is_gone(sandbox_factory: SandboxFactory) -> None:
    sandbox = await sandbox_factory.create({}, SandboxLimits(wall_clock_s=0.5))
    with pytest.raises(SandboxError, match=r"gone: .*wall clock"):
        await sandbox.exec(["sleep", "60"], timeout_s=60)
    await sandbox.destroy()


# --- life


async def test_one_sandbox_does_not_see_the_work_of_another(sandbox_factory: SandboxFactory) -> None:
    one, other = [await sandbox_factory.create(FILES, SandboxLimits()) for _ in range(2)]
    await shell(one, "echo changed > main.py; touch new")
    assert await other.tree_digest() == digest_of_files(FILES)
    await one.destroy()
    assert await (await sandbox_factory.create(FILES, SandboxLimits())).tree_digest() == digest_of_files(FILES)


@pytest.mark.parametrize("files", [{"../x": b""}, {"/x": b""}, {"a": b"", "a/b": b""}])
async def test_files_that_make_no_tree_are_refused(sandbox_factory: SandboxFactory, files: dict[str, bytes]) -> None:
    with pytest.raises(ValueError, match=r"path inside the work tree|both a file and a folder"):
        await sandbox_factory.create(files, SandboxLimits())


async def test_destroy_is_idempotent_and_ends_what_runs(sandbox: Sandbox) -> None:
    running = asyncio.create_task(sandbox.exec(["sleep", "60"], timeout_s=60))
    await asyncio.sleep(0.1)
    await asyncio.gather(sandbox.destroy(), sandbox.destroy())
    await sandbox.destroy()
    with pytest.raises(SandboxError, match="gone"):
        await running
    with pytest.raises(SandboxError, match="destroyed"):
        await sandbox.read_file("main.py")


async def test_a_cancelled_request_ends_the_sandbox(sandbox: Sandbox) -> None:
    running = asyncio.create_task(sandbox.exec(["sleep", "60"], timeout_s=60))
    await asyncio.sleep(0.1)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    with pytest.raises(SandboxError, match="CancelledError"):
        await sandbox.exec(["true"], timeout_s=5)


async def test_many_are_open_at_once(sandbox_factory: SandboxFactory) -> None:
    await open_at_once(sandbox_factory, 32)


@pytest.mark.long
async def test_two_hundred_and_fifty_six_are_open_at_once(sandbox_factory: SandboxFactory) -> None:
    await open_at_once(sandbox_factory, 256)


async def open_at_once(sandbox_factory: SandboxFactory, count: int) -> None:
    """Opens sandboxes, uses all, and closes all; no descriptor is left."""
    before = open_descriptors()
    sandboxes = await asyncio.gather(*(sandbox_factory.create(FILES, SandboxLimits()) for _ in range(count)))
    results = await asyncio.gather(*(box.exec(["cat", "main.py"], timeout_s=60) for box in sandboxes))
    assert {result.output for result in results} == {FILES["main.py"]}
    await asyncio.gather(*(box.destroy() for box in sandboxes))
    assert open_descriptors() <= before  # what an earlier test had left may be closed meanwhile


def open_descriptors() -> set[tuple[str, str]]:
    """Number and target of each of this process."""
    found: set[tuple[str, str]] = set()
    for number in os.listdir("/proc/self/fd"):
        with suppress(FileNotFoundError):  # the one that the folder is listed by
            found.add((number, os.readlink(f"/proc/self/fd/{number}")))
    return found
