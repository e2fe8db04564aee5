"""What every kind of sandbox must do. A kind joins the suite by a factory in `FACTORIES`."""

import asyncio
import os
import sys
import time
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from stepwell.sandbox.apptainer import ApptainerFactory
from stepwell.sandbox.bubblewrap import BubblewrapFactory
from stepwell.sandbox.protocol import ExecEnd, Sandbox, SandboxError, SandboxFactory, SandboxLimits
from stepwell.sandbox.tree import digest_of_files


def bubblewrap(root: Path, request: pytest.FixtureRequest) -> SandboxFactory:
    return BubblewrapFactory(root)


def apptainer(root: Path, request: pytest.FixtureRequest) -> SandboxFactory:
    return ApptainerFactory(root, str(request.getfixturevalue("small_sif")))


FACTORIES: dict[str, Callable[[Path, pytest.FixtureRequest], SandboxFactory]] = {
    "bubblewrap": bubblewrap,
    "apptainer": apptainer,
}
FILES = {"main.py": b"print('hello')\n", "pkg/data.txt": b"one\n"}


@pytest.fixture(params=FACTORIES)
async def factory(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[SandboxFactory]:
    made = FACTORIES[request.param](tmp_path / "sandboxes", request)
    yield made
    await made.close()
    assert list((tmp_path / "sandboxes").iterdir()) == []


@pytest.fixture
async def sandbox(factory: SandboxFactory) -> Sandbox:
    return await factory.create(FILES, SandboxLimits())


async def shell(sandbox: Sandbox, script: str, timeout_s: float = 20.0) -> str:
    """Output of a script that must end by itself with status 0."""
    result = await sandbox.exec(["bash", "-c", script], timeout_s=timeout_s)
    assert (result.end, result.returncode) == (ExecEnd.EXITED, 0), result
    return result.output.decode()


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


async def test_many_processes_cannot_have_more_memory_together(factory: SandboxFactory) -> None:
    sandbox = await factory.create({}, SandboxLimits(memory_bytes=128 << 20))
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


async def test_many_files_cannot_fill_the_disk(factory: SandboxFactory) -> None:
    sandbox = await factory.create({}, SandboxLimits(file_bytes=4 << 20))
    script = "i=0; while :; do head -c 4M /dev/zero > f$i; i=$((i+1)); sleep 0.02; done"
    result = await sandbox.exec(["bash", "-c", script], timeout_s=30)
    assert b"bytes in the work tree" in result.output


async def test_temporary_and_shared_memory_folders_are_bounded(sandbox: Sandbox) -> None:
    script = (
        "for d in /tmp /dev/shm; do for i in 1 2 3; do head -c 60M /dev/zero > $d/f$i; done; done 2>&1; du -sm /tmp"
    )
    output = await shell(sandbox, script + "; rm -f /tmp/f? /dev/shm/f?")
    assert "No space left" in output


async def test_after_its_wall_clock_a_sandbox_is_gone(factory: SandboxFactory) -> None:
    sandbox = await factory.create({}, SandboxLimits(wall_clock_s=0.5))
    with pytest.raises(SandboxError, match=r"gone: .*wall clock"):
        await sandbox.exec(["sleep", "60"], timeout_s=60)
    await sandbox.destroy()


# --- isolation


async def test_there_is_no_network(sandbox: Sandbox) -> None:
    script = "import socket; socket.create_connection(('1.1.1.1', 53), 5)"
    result = await sandbox.exec(["python3", "-c", script], timeout_s=20)
    assert b"unreachable" in result.output
    assert await shell(sandbox, "ls /sys/class/net 2>/dev/null; tail -n +3 /proc/net/dev | cut -d: -f1") == "    lo\n"


async def test_host_folders_cannot_be_seen(sandbox: Sandbox) -> None:
    here = Path(__file__).resolve()
    folders = ("/etc/shadow", "/etc/ssh", "/var/lib", "/run", "/sys")
    for path in (Path.home(), here, *map(Path, folders)):
        assert await shell(sandbox, f"ls -A '{path}' 2>/dev/null || true") == "", path
    assert await shell(sandbox, "cut -d: -f1 /etc/passwd") == "root\nagent\n"


async def test_packages_beside_the_interpreter_cannot_be_seen_but_pytest_can(sandbox: Sandbox) -> None:
    assert (await shell(sandbox, "python3 -m pytest --version")).startswith("pytest ")
    script = (
        "import importlib.util as u; print([n for n in ('pytest', 'pip', 'torch', 'temporalio') if u.find_spec(n)])"
    )
    assert (await sandbox.exec(["python3", "-c", script], timeout_s=20)).output == b"['pytest']\n"


async def test_the_system_is_read_only(sandbox: Sandbox) -> None:
    for folder in ("/", "/usr", "/etc", "/dev", "/opt", "/usr/lib"):
        assert (await sandbox.exec(["touch", f"{folder}/x"], timeout_s=5)).returncode != 0, folder


async def test_the_environment_is_clean(factory: SandboxFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STEPWELL_SECRET", "x")
    sandbox = await factory.create({}, SandboxLimits())
    output = (await sandbox.exec(["env"], timeout_s=5)).output.decode()
    environment = dict(line.split("=", 1) for line in output.splitlines())
    environment.pop("LD_LIBRARY_PATH", None)
    assert environment == {
        "PATH": "/opt/bin:/usr/local/bin:/usr/bin:/bin",
        "HOME": "/tmp/home",
        "PWD": "/work",
        "LANG": "C.UTF-8",
        "TZ": "UTC",
        "PYTHONHASHSEED": "0",
        "PYTHONDONTWRITEBYTECODE": "1",
    }


async def test_only_our_process_is_there_and_killing_all_hurts_nobody_outside(sandbox: Sandbox) -> None:
    outside = await asyncio.create_subprocess_exec(sys.executable, "-c", "import time; time.sleep(60)")
    await shell(sandbox, "test $(pgrep -c sleep) = 0 && test $(ls -d /proc/[0-9]* | wc -l) -lt 6")
    for command in ("kill -9 -1", "kill -9 1", "pkill -9 -f python", "pkill -9 -f squashfuse", "pkill -9 -f ."):
        await sandbox.exec(["bash", "-c", command], timeout_s=10)
    assert outside.returncode is None
    assert await shell(sandbox, "echo alive") == "alive\n"
    outside.kill()
    await outside.wait()


async def test_a_command_has_no_privileges_and_cannot_make_namespaces(sandbox: Sandbox) -> None:
    status = await shell(sandbox, "grep -E 'CapEff|CapBnd|NoNewPrivs' /proc/self/status | cut -f2")
    assert status.split() == ["0000000000000000", "0000000000000000", "1"]
    assert (await sandbox.exec(["unshare", "--user", "true"], timeout_s=5)).returncode != 0


async def test_the_process_inside_cannot_be_opened_by_commands(sandbox: Sandbox) -> None:
    for name in ("mem", "fd/0", "environ"):
        assert (await sandbox.exec(["head", "-c1", f"/proc/1/{name}"], timeout_s=5)).returncode != 0, name


# --- files


async def test_files_are_read_and_written(sandbox: Sandbox) -> None:
    await sandbox.write_file("new/deep/file.bin", bytes(range(256)))
    await sandbox.write_file("main.py", b"")
    assert await sandbox.read_file("new/deep/file.bin") == bytes(range(256))
    assert await shell(sandbox, "stat -c '%s %a' main.py; stat -c %a new") == "0 644\n755\n"


@pytest.mark.parametrize(
    "path", ["missing", "pkg", "/etc/passwd", "../etc/passwd", "pkg/../main.py", "pipe", "main.py/x"]
)
async def test_what_is_no_regular_file_inside_cannot_be_read(sandbox: Sandbox, path: str) -> None:
    await shell(sandbox, "mkfifo pipe")
    with pytest.raises(FileNotFoundError):
        await sandbox.read_file(path)


@pytest.mark.parametrize("path", ["file", "folder/passwd", "folder/x", "inner/data.txt"])
async def test_links_are_not_followed(sandbox: Sandbox, path: str) -> None:
    await shell(sandbox, "ln -s /etc/passwd file; ln -s /etc folder; ln -s pkg inner")
    with pytest.raises(FileNotFoundError):
        await sandbox.read_file(path)
    with pytest.raises(ValueError, match="cannot be written"):
        await sandbox.write_file(path, b"x")
    assert await shell(sandbox, "cat pkg/data.txt") == "one\n"


@pytest.mark.parametrize("path", ["/tmp/x", "../x", "a/../../x", "", ".", "pkg", "main.py/x", "a\0b"])
async def test_a_path_that_cannot_be_written_is_refused(sandbox: Sandbox, path: str) -> None:
    with pytest.raises(ValueError, match=r"path inside the work tree|cannot be written"):
        await sandbox.write_file(path, b"x")


async def test_a_fresh_tree_has_the_digest_of_its_files(sandbox: Sandbox) -> None:
    assert await sandbox.tree_digest() == digest_of_files(FILES)


@pytest.mark.parametrize(
    "script",
    [
        "touch -d 2001-01-01 main.py",
        "mkdir -p .git pkg/__pycache__ .pytest_cache; echo x | tee .git/HEAD pkg/__pycache__/a.pyc .pytest_cache/x",
        "cp main.py x; mv x main.py",
    ],
)
async def test_the_digest_leaves_out_what_is_no_work(sandbox: Sandbox, script: str) -> None:
    await shell(sandbox, script)
    assert await sandbox.tree_digest() == digest_of_files(FILES)
    assert await sandbox.changed_files() == {}


@pytest.mark.parametrize(
    "script",
    [
        "mv main.py other.py",
        "chmod 755 main.py",
        "chmod 700 pkg",
        "echo x >> main.py",
        "rm main.py",
        "mkdir empty",
        "ln -s main.py link",
        "mkfifo pipe",
    ],
)
async def test_the_digest_sees_every_change(sandbox: Sandbox, script: str) -> None:
    await shell(sandbox, script)
    changed = await sandbox.tree_digest()
    assert changed != digest_of_files(FILES)
    assert await sandbox.tree_digest() == changed


async def test_the_digest_sees_the_target_of_a_link(sandbox: Sandbox) -> None:
    await shell(sandbox, "ln -s one link")
    one = await sandbox.tree_digest()
    await shell(sandbox, "ln -sfn two link")
    assert await sandbox.tree_digest() != one


async def test_changed_files_are_those_that_differ(sandbox: Sandbox) -> None:
    await shell(
        sandbox, "echo x > new; rm pkg/data.txt; ln -s main.py link; mkfifo pipe; mkdir empty; chmod 755 main.py"
    )
    assert await sandbox.changed_files() == {"new": b"x\n", "pkg/data.txt": None}


async def test_a_file_turned_into_a_link_is_gone(sandbox: Sandbox) -> None:
    await shell(sandbox, "ln -sf /etc/passwd main.py")
    assert await sandbox.changed_files() == {"main.py": None}


async def test_hostile_trees_are_listed_and_removed(sandbox: Sandbox) -> None:
    await shell(
        sandbox,
        "python3 -c \"import os\nfor _ in range(1100): os.mkdir('dddd'); os.chdir('dddd')\";"
        "mkdir -p shut/inner; echo x > shut/inner/f; chmod 000 shut; touch $'bad\\xff';"
        "echo x > hidden; chmod 000 hidden",
        timeout_s=60,
    )
    assert await sandbox.tree_digest() == await sandbox.tree_digest()
    assert set(await sandbox.changed_files()) == set()
    await sandbox.destroy()


# --- life


async def test_one_sandbox_does_not_see_the_work_of_another(factory: SandboxFactory) -> None:
    one, other = [await factory.create(FILES, SandboxLimits()) for _ in range(2)]
    await shell(one, "echo changed > main.py; touch new")
    assert await other.tree_digest() == digest_of_files(FILES)
    await one.destroy()
    assert await (await factory.create(FILES, SandboxLimits())).tree_digest() == digest_of_files(FILES)


@pytest.mark.parametrize("files", [{"../x": b""}, {"/x": b""}, {"a": b"", "a/b": b""}])
async def test_files_that_make_no_tree_are_refused(factory: SandboxFactory, files: dict[str, bytes]) -> None:
    with pytest.raises(ValueError, match=r"path inside the work tree|both a file and a folder"):
        await factory.create(files, SandboxLimits())


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


async def test_many_are_open_at_once(factory: SandboxFactory) -> None:
    await open_at_once(factory, 32)


@pytest.mark.long
async def test_two_hundred_and_fifty_six_are_open_at_once(factory: SandboxFactory) -> None:
    await open_at_once(factory, 256)


async def open_at_once(factory: SandboxFactory, count: int) -> None:
    """Opens sandboxes, uses all, and closes all; no descriptor is left."""
    before = len(os.listdir("/proc/self/fd"))
    sandboxes = await asyncio.gather(*(factory.create(FILES, SandboxLimits()) for _ in range(count)))
    results = await asyncio.gather(*(box.exec(["cat", "main.py"], timeout_s=60) for box in sandboxes))
    assert {result.output for result in results} == {FILES["main.py"]}
    await asyncio.gather(*(box.destroy() for box in sandboxes))
    assert len(os.listdir("/proc/self/fd")) == before
