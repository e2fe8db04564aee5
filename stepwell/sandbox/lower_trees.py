"""Fresh work trees on disk, one for all sandboxes that start from the same files."""

import hashlib
import os
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from stepwell.sandbox.folders import remove_tree
from stepwell.sandbox.tree import check_relative_path

IDLE_TREES = 64
"""How many trees that no sandbox uses are kept."""
EPOCH_S = 1_577_836_800
"""Time of every file and folder of a fresh tree (2020-01-01), so that listings are the same each time."""


def write_tree(folder: Path, files: Mapping[str, bytes]) -> None:
    """Writes files with mode 0644 into folders with mode 0755, all with the same times. `folder` must not exist.

    Raises:
        ValueError: a path leads out of the tree, or a file is also a folder.
        OSError: the disk failed.
    """
    root = str(folder)
    os.mkdir(root, 0o755)
    folders = {root}
    for path, content in files.items():
        parts = check_relative_path(path).parts
        parent = root
        try:
            for part in parts[:-1]:
                parent = f"{parent}/{part}"
                if parent not in folders:
                    os.mkdir(parent, 0o755)
                    folders.add(parent)
            target = f"{parent}/{parts[-1]}"
            descriptor = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o644)
        except (FileExistsError, NotADirectoryError) as error:
            raise ValueError(f"{path!r} is both a file and a folder of the tree") from error
        with open(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            os.fchmod(descriptor, 0o644)  # Whatever this process's mask is.
            os.utime(descriptor, (EPOCH_S, EPOCH_S))
    for inner in sorted(folders, reverse=True):
        os.chmod(inner, 0o755)
        os.utime(inner, (EPOCH_S, EPOCH_S))


@dataclass
class _Tree:
    folder: Path
    users: int = 0


class LowerTrees:
    """Trees by digest, counted by use; those out of use longest are removed. Not safe for threads."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir()
        self._folder = folder
        self._trees: OrderedDict[str, _Tree] = OrderedDict()

    def borrow(self, files: Mapping[str, bytes]) -> str:
        """Makes sure that the tree exists and counts a user of it; gives its key. Raises what `write_tree` raises."""
        key = key_of_files(files)
        tree = self._trees.get(key)
        if tree is None:
            tree = _Tree(self._folder / key)
            try:
                write_tree(tree.folder, files)
            except BaseException:
                remove_tree(tree.folder)
                raise
            self._trees[key] = tree
        tree.users += 1
        self._trees.move_to_end(key)
        return key

    def folder_of(self, key: str) -> Path:
        """Where a borrowed tree lies."""
        return self._trees[key].folder

    def give_back(self, key: str) -> None:
        """One user less."""
        self._trees[key].users -= 1
        idle = [key for key, tree in self._trees.items() if tree.users == 0]
        for old in idle[: max(0, len(idle) - IDLE_TREES)]:
            remove_tree(self._trees.pop(old).folder)


def digests_of_files(files: Mapping[str, bytes]) -> dict[bytes, bytes]:
    """What a sandbox lists of a fresh tree: path of each file to the SHA-256 of its content."""
    return {path.encode(): hashlib.sha256(content).digest() for path, content in files.items()}


def key_of_files(files: Mapping[str, bytes]) -> str:
    """Digest of all files; unlike a tree's digest it leaves no name out."""
    digest = hashlib.sha256()
    for path, content in sorted(files.items()):
        for part in (path.encode(), content):
            digest.update(len(part).to_bytes(8, "big"))
            digest.update(part)
    return digest.hexdigest()
