"""An image's files in Apptainer sandboxes: what is hidden, and that no change escapes the digest of the work tree."""

import hashlib
import sys
from collections.abc import AsyncIterator, Mapping
from pathlib import Path

import pytest

from stepwell.sandbox.apptainer import ApptainerFactory
from stepwell.sandbox.bubblewrap import BubblewrapFactory
from stepwell.sandbox.protocol import Sandbox, SandboxLimits
from tests.stack.sandbox_kinds import shell

WORK = "/repository"


@pytest.fixture(scope="module")
async def factory(
    tmp_path_factory: pytest.TempPathFactory, small_root: Path, apptainer_program: Path
) -> AsyncIterator[ApptainerFactory]:
    made = ApptainerFactory(tmp_path_factory.mktemp("sandboxes"), str(small_root))
    yield made
    await made.close()


async def output_of(sandbox: Sandbox, script: str) -> bytes:
    """Whatever a script says, however it ends."""
    return (await sandbox.exec(["bash", "-c", script], timeout_s=60)).output


async def test_paths_inside_and_outside_of_the_work_tree_are_hidden(
    factory: ApptainerFactory, small_root: Path
) -> None:
    folder, link = "/opt/python/lib", "/opt/bin/python"
    hidden = ["/repository/pkg", "/repository/in_image.txt", "/usr/bin/yes", "/usr/bin/tee", folder, link, "/no/such"]
    boxes = [await factory.create({}, SandboxLimits(), work=WORK, hidden=hidden)]
    look = f"ls -A pkg {folder}; cat in_image.txt /usr/bin/yes /usr/bin/tee /opt/bin/python; ls -d /no 2>&1"
    assert await output_of(boxes[0], look) == (
        b"/opt/python/lib:\n\npkg:\nls: cannot access '/no': No such file or directory\n"
    )
    takes = "rm -rf pkg in_image.txt; mv pkg other; touch pkg/x; echo x > in_image.txt; echo done > own.txt; ls -A pkg"
    await output_of(boxes[0], takes)
    assert await boxes[0].changed_files() == {"own.txt": b"done\n"}
    assert await output_of(boxes[0], "cat in_image.txt; ls -A . pkg") == b".:\nin_image.txt\nown.txt\npkg\n\npkg:\n"
    boxes += [await factory.create({}, SandboxLimits(), work=WORK, hidden=hidden)]
    await boxes[0].exec(["rm", "own.txt"], timeout_s=20)
    assert await boxes[0].tree_digest() == await boxes[1].tree_digest()
    for box in boxes:
        await box.destroy()
    assert (small_root / "repository" / "pkg" / "of_image.py").is_file()


@pytest.mark.parametrize("path", ["r2e_tests", "/", "/repository", "/repository/"])
async def test_the_work_tree_itself_is_not_hidden(factory: ApptainerFactory, path: str) -> None:
    with pytest.raises(ValueError, match="cannot be hidden"):
        await factory.create({}, SandboxLimits(), work=WORK, hidden=[path])


async def test_without_an_image_nothing_can_be_hidden(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="there is no image"):
        await BubblewrapFactory(tmp_path).create({}, SandboxLimits(), hidden=["/etc"])


# --- digests of a tree that is mostly the image's

LIBRARY = f"/opt/python/lib/python{sys.version_info.major}.{sys.version_info.minor}"
CHANGES: Mapping[str, str] = {
    "another content of the same size and time": "time=$(stat -c %y ftplib.py); "
    "sed -i 's/FTP/PTF/' ftplib.py; touch -d \"$time\" ftplib.py",
    "a write through a mapping": """/opt/bin/python3 - <<'END'
import mmap, os
times = os.stat("imaplib.py")
with open("imaplib.py", "r+b") as file, mmap.mmap(file.fileno(), 0) as memory:
    memory[10:12] = b"##"
os.utime("imaplib.py", ns=(times.st_atime_ns, times.st_mtime_ns))
END""",
    "the same again": """/opt/bin/python3 - <<'END'
import mmap
with open("imaplib.py", "r+b") as file, mmap.mmap(file.fileno(), 0) as memory:
    memory[20:22] = b"##"
END""",
    "another file in its place": "cp -p poplib.py other; echo '# by a move' >> other; mv other poplib.py",
    "a folder in its place": "rm smtplib.py; mkdir smtplib.py; touch smtplib.py/x",
    "removed": "rm mailbox.py",
    "put back with another content": "echo x > mailbox.py",
    "another mode": "chmod 600 mailcap.py",
    "a second name for it, and a write by that": "ln telnetlib.py twice; echo '# by its other name' >> twice",
    "a folder copied in the place of its own": "cp -r wsgiref new; echo x > new/util.py; rm -r wsgiref; mv new wsgiref",
    "a link in the place of a folder": "mv dbm dbm.moved; ln -s dbm.moved dbm",
}
"""Each of other files of the image than those before it, but where it says so."""


async def test_every_change_of_a_file_of_the_image_changes_the_digest(factory: ApptainerFactory) -> None:
    sandbox = await factory.create({}, SandboxLimits(), work=LIBRARY)
    seen = [await sandbox.tree_digest()]
    for change, script in CHANGES.items():
        await shell(sandbox, script)
        seen.append(await sandbox.tree_digest())
        assert len(set(seen)) == len(seen), change
        assert await sandbox.tree_digest() == seen[-1], change
    listed = await sandbox.content_digests()
    for path, digest in listed.items():
        assert hashlib.sha256(await sandbox.read_file(path.decode())).digest() == digest, path
    await sandbox.destroy()


async def test_the_digest_of_a_settled_tree_does_not_depend_on_what_was_read_before(factory: ApptainerFactory) -> None:
    one, other = [await factory.create({}, SandboxLimits(), work=LIBRARY) for _ in range(2)]
    await one.settle()
    for sandbox in (one, other):
        await shell(sandbox, "sed -i 's/FTP/PTF/' ftplib.py; rm -r wsgiref; mkdir own; touch own/x.py")
    assert await one.tree_digest() == await other.tree_digest()
    changed = await one.changed_files()
    assert changed == await other.changed_files()
    assert {path for path, content in changed.items() if content is not None} == {"ftplib.py", "own/x.py"}
    assert "wsgiref/util.py" in changed
    for sandbox in (one, other):
        await sandbox.destroy()
