"""What an agent's folders take on disk."""

import os
from pathlib import Path

from stepwell.ptb.supervisor.disk import DiskWatch, disk_bytes

MIB = 1 << 20


def test_what_lies_in_a_folder_is_added_up_each_file_once_and_no_link_followed(tmp_path: Path) -> None:
    elsewhere, folder = tmp_path / "elsewhere", tmp_path / "folder"
    for place in (elsewhere, folder / "deep"):
        place.mkdir(parents=True)
    (elsewhere / "big").write_bytes(bytes(8 * MIB))
    before = disk_bytes(folder)
    (folder / "deep" / "file").write_bytes(os.urandom(MIB))
    os.link(folder / "deep" / "file", folder / "again")
    os.symlink(elsewhere, folder / "link")
    os.symlink(elsewhere / "big", folder / "other")
    assert MIB <= disk_bytes(folder) - before < 2 * MIB


def test_a_file_that_only_seems_large_takes_little(tmp_path: Path) -> None:
    with (tmp_path / "sparse").open("wb") as file:
        file.truncate(64 * MIB)
    assert disk_bytes(tmp_path) < MIB


async def test_a_watch_tells_what_the_last_look_found(tmp_path: Path) -> None:
    watch = DiskWatch([tmp_path / "a", tmp_path / "b"])
    for name in ("a", "b", "c"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "file").write_bytes(os.urandom(MIB))
    watch.look(1.0)
    await watch.close()
    assert 2 * MIB <= watch.used_bytes < 3 * MIB
