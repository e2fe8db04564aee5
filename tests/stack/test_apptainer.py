"""What is of Apptainer sandboxes alone: images with their own files, environment and C library; what a kill leaves."""

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from stepwell.sandbox.apptainer import ApptainerFactory
from stepwell.sandbox.by_image import SandboxesByImage
from stepwell.sandbox.folders import sweep
from stepwell.sandbox.images import digest_of, find_apptainer, verify_digest
from stepwell.sandbox.protocol import Sandbox, SandboxError, SandboxLimits
from tests.small_image import WORK_FILES
from tests.stack.test_sandbox_life import descendants, gone

WORKER = """
import asyncio, sys
from pathlib import Path
from stepwell.sandbox.apptainer import ApptainerFactory
from stepwell.sandbox.protocol import SandboxLimits

async def main():
    factory = ApptainerFactory(Path(sys.argv[1]), sys.argv[2])
    boxes = [await factory.create({"a": b"x"}, SandboxLimits()) for _ in range(2)]
    script = "trap '' TERM HUP; echo y > a; sleep 600 & wait"
    running = [asyncio.create_task(box.exec(["bash", "-c", script], timeout_s=600)) for box in boxes]
    print(*(box.pid for box in boxes), flush=True)
    await asyncio.gather(*running)

asyncio.run(main())
"""
REPOSITORY = "/repository"


@pytest.fixture
async def factory(tmp_path: Path, small_sif: Path) -> AsyncIterator[ApptainerFactory]:
    made = ApptainerFactory(tmp_path / "sandboxes", str(small_sif))
    yield made
    await made.close()


async def output_of(sandbox: Sandbox, *command: str) -> str:
    """Output of a command that must end well."""
    result = await sandbox.exec(command, timeout_s=30)
    assert result.returncode == 0, result
    return result.output.decode()


def mounts() -> str:
    """The mounts of this process's namespace."""
    return Path("/proc/self/mountinfo").read_text()


def name_of(pid: int) -> str:
    """What a process is called; empty once it has ended."""
    try:
        return Path(f"/proc/{pid}/comm").read_text().strip()
    except (FileNotFoundError, ProcessLookupError):
        return ""


def with_both_asleep(boxes: set[int]) -> set[int]:
    """All processes of two sandboxes, once both have come to their `sleep`."""
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline:
        everything = set.union(*(descendants(box) for box in boxes)) | boxes
        if [name_of(pid) for pid in everything].count("sleep") == 2:
            return everything
        time.sleep(0.05)
    raise AssertionError("the commands did not start")


# --- the end of a worker


@pytest.mark.parametrize("killed", ["worker", "first of the sandbox"])
def test_a_kill_leaves_no_process_and_no_mount_and_the_sweep_its_folders(
    tmp_path: Path, small_sif: Path, killed: str
) -> None:
    root = tmp_path / "sandboxes"
    before = mounts()
    worker = subprocess.Popen(
        [sys.executable, "-c", WORKER, str(root), str(small_sif)], stdout=subprocess.PIPE, text=True, process_group=0
    )
    try:
        assert worker.stdout is not None
        boxes = {int(pid) for pid in worker.stdout.readline().split()}
        everything = with_both_asleep(boxes)
        assert [name_of(pid) for pid in everything].count("squashfuse_ll") == 2
        for pid in boxes if killed == "first of the sandbox" else [worker.pid]:
            os.kill(pid, signal.SIGKILL)
    finally:
        worker.kill()
        worker.communicate()
    assert gone(everything)
    assert mounts() == before
    assert len(sweep(root)) == 1
    assert list(root.iterdir()) == []


async def test_nothing_is_left_when_a_sandbox_is_destroyed(factory: ApptainerFactory, tmp_path: Path) -> None:
    sandbox = await factory.create({}, SandboxLimits())
    everything = descendants(sandbox.pid) | {sandbox.pid}
    before = mounts()
    assert len(list((tmp_path / "sandboxes").glob("*/*/over"))) == 1
    await sandbox.destroy()
    assert gone(everything)
    assert mounts() == before
    assert list((tmp_path / "sandboxes").glob("*/*/over")) == []


# --- the image's files


async def test_the_work_tree_is_that_of_the_image_with_the_files_laid_over(factory: ApptainerFactory) -> None:
    files = {"pkg/of_image.py": b"x = 2\n", "new/file.txt": b"new\n"}
    sandbox = await factory.create(files, SandboxLimits(), work=REPOSITORY)
    assert await output_of(sandbox, "bash", "-c", "pwd; cat in_image.txt pkg/of_image.py new/file.txt") == (
        "/repository\nof the image\nx = 2\nnew\n"
    )
    assert await sandbox.read_file("in_image.txt") == WORK_FILES["in_image.txt"]
    assert await sandbox.changed_files() == {}


async def test_changes_are_told_from_what_the_image_and_the_files_had(factory: ApptainerFactory) -> None:
    sandbox = await factory.create({"laid.txt": b"laid\n"}, SandboxLimits(), work=REPOSITORY)
    fresh = await sandbox.tree_digest()
    await output_of(sandbox, "bash", "-c", "rm in_image.txt; echo x = 3 > pkg/of_image.py; touch pkg; echo z > z")
    changed = {"in_image.txt": None, "pkg/of_image.py": b"x = 3\n", "z": b"z\n"}
    assert await sandbox.changed_files() == changed
    assert await sandbox.tree_digest() != fresh
    other = await factory.create({"laid.txt": b"laid\n"}, SandboxLimits(), work=REPOSITORY)
    assert await other.tree_digest() == fresh


async def test_an_image_does_not_change(factory: ApptainerFactory, small_sif: Path) -> None:
    before = digest_of(small_sif)
    sandbox = await factory.create({}, SandboxLimits(), work=REPOSITORY)
    await output_of(sandbox, "bash", "-c", "rm -rf in_image.txt pkg")
    await sandbox.destroy()
    verify_digest(small_sif, before)


async def test_only_what_was_written_counts_as_use_of_the_disk(factory: ApptainerFactory) -> None:
    sandbox = await factory.create({}, SandboxLimits(file_bytes=1 << 20), work="/opt/python")
    assert int((await output_of(sandbox, "du", "-sk", "/opt/python")).split()[0]) > 8 << 10
    assert await output_of(sandbox, "bash", "-c", "sleep 1; echo done") == "done\n"


async def test_an_unpacked_root_is_an_image_too(factory: ApptainerFactory, small_root: Path) -> None:
    sandbox = await factory.create({}, SandboxLimits(), str(small_root), work=REPOSITORY)
    await output_of(sandbox, "bash", "-c", "echo changed > in_image.txt; rm -r pkg")
    assert (small_root / "repository" / "in_image.txt").read_bytes() == WORK_FILES["in_image.txt"]
    assert await sandbox.changed_files() == {"in_image.txt": b"changed\n", "pkg/of_image.py": None}


async def test_a_task_that_names_an_image_gets_it_and_another_the_system_of_the_machine(
    tmp_path: Path, small_sif: Path
) -> None:
    factory = SandboxesByImage(tmp_path)
    script = "test -e /.singularity.d && echo image || echo machine; pwd"
    without = await factory.create({}, SandboxLimits(), work=REPOSITORY)
    within = await factory.create({}, SandboxLimits(), str(small_sif), work=REPOSITORY)
    assert await output_of(without, "bash", "-c", script) == "machine\n/repository\n"
    assert await output_of(within, "bash", "-c", script) == "image\n/repository\n"
    await factory.close()
    assert list(tmp_path.glob("*")) == []


# --- the image's programs


async def test_an_image_without_c_library_python_or_shell_will_do(factory: ApptainerFactory, tmp_path: Path) -> None:
    root = tmp_path / "root"
    (root / "bin").mkdir(parents=True)
    shutil.copy2("/sbin/ldconfig", root / "bin")  # it is linked statically
    sandbox = await factory.create({"a.txt": b"a\n"}, SandboxLimits(), str(root))
    await sandbox.write_file("b.txt", b"b\n")
    assert await sandbox.changed_files() == {"b.txt": b"b\n"}
    assert (await output_of(sandbox, "ldconfig", "--version")).startswith("ldconfig (")
    assert (await sandbox.exec(["python3", "-c", "1"], timeout_s=10)).returncode == 127


async def test_an_image_with_another_c_library_will_do(
    factory: ApptainerFactory, small_root: Path, tmp_path: Path
) -> None:
    other = find_apptainer().resolve().parents[1] / "lib" / "glibc"
    if not other.is_dir():
        pytest.skip("no second glibc on this machine: scripts/install-apptainer brings one where the own is older")
    root = tmp_path / "root"
    shutil.copytree(small_root, root, symlinks=True)
    for library in other.iterdir():
        shutil.copy2(library, root / "usr" / "lib")
    sandbox = await factory.create({}, SandboxLimits(), str(root))
    version = "import platform; print(platform.libc_ver('/usr/lib/libc.so.6')[1])"
    inside = await output_of(sandbox, "/opt/bin/python3", "-c", version)
    assert inside != await output_of(await factory.create({}, SandboxLimits()), "python3", "-c", version)


async def test_no_variable_of_ours_or_of_apptainer_comes_to_a_command(
    factory: ApptainerFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("PYTHONPATH", "PYTHONHOME", "LD_LIBRARY_PATH", "LD_PRELOAD", "APPTAINERENV_X", "SINGULARITYENV_X"):
        monkeypatch.setenv(name, "/nowhere")
    sandbox = await factory.create({}, SandboxLimits())
    script = "import os, sys; print(sorted(os.environ), sys.path[1:], sys.executable)"
    names, found = (await output_of(sandbox, "python3", "-c", script)).split("] [", 1)
    assert "LD_" not in names
    assert "PYTHONPATH" not in names
    assert "APPTAINER" not in names
    assert "SINGULARITY" not in names
    assert "/nowhere" not in found
    assert "/opt/stepwell" not in found


async def test_no_descriptor_of_the_worker_is_open_inside(factory: ApptainerFactory) -> None:
    sandbox = await factory.create({}, SandboxLimits())
    assert await output_of(sandbox, "bash", "-c", "ls /proc/$$/fd") == "0\n1\n2\n3\n", "3 is its own of the folder"


async def test_the_user_has_a_name_and_the_machine_an_address(factory: ApptainerFactory) -> None:
    sandbox = await factory.create({}, SandboxLimits())
    script = "import os, pwd, socket; print(pwd.getpwuid(os.getuid()).pw_name, socket.gethostbyname('localhost'))"
    assert await output_of(sandbox, "python3", "-c", script) == "agent 127.0.0.1\n"


# --- failures


@pytest.mark.parametrize(("image", "said"), [("missing.sif", "no image .*missing.sif"), ("text.sif", "by hand")])
async def test_an_image_that_is_none_is_told(tmp_path: Path, factory: ApptainerFactory, image: str, said: str) -> None:
    (tmp_path / "text.sif").write_text("no image")
    with pytest.raises(SandboxError, match=said):
        await factory.create({}, SandboxLimits(), str(tmp_path / image))


async def test_without_an_image_there_is_no_sandbox(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="needs an image"):
        await ApptainerFactory(tmp_path).create({}, SandboxLimits())
