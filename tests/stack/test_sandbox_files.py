"""What every kind of sandbox must do: what is to be seen inside, and the files of the work tree."""

import asyncio
import sys
from pathlib import Path

import pytest

from stepwell.sandbox.protocol import Sandbox, SandboxFactory, SandboxLimits
from stepwell.sandbox.tree import digest_of_files
from tests.stack.sandbox_kinds import FILES, shell

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


async def test_the_environment_is_clean(sandbox_factory: SandboxFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STEPWELL_SECRET", "x")
    sandbox = await sandbox_factory.create({}, SandboxLimits())
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
