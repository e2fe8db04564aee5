"""The process inside looks at the work tree: what it has read of the lower layers it does not read again."""

from pathlib import Path

import pytest

from stepwell.sandbox.guest_init import Box, Tree
from stepwell.sandbox.tree import digest_of_files


class Layers:
    """A merged tree and its upper layer, as folders that a test fills by hand."""

    def __init__(self, folder: Path) -> None:
        self.work, self.upper = folder / "work", folder / "upper"
        for path in (self.work / "pkg", self.upper):
            path.mkdir(parents=True)
        (self.work / "a.py").write_bytes(b"one")
        (self.work / "pkg" / "b.py").write_bytes(b"two")

    def tree(self, written: Path | None = None) -> Tree:
        """What looks at it."""
        return Tree(Box(str(self.work), str(written or self.upper), "1", "1", "1000000"))

    def write(self, path: str, content: bytes) -> None:
        """As an overlay does: the file is in the upper layer, and seen in the merged tree."""
        for layer in (self.upper, self.work):
            (layer / path).parent.mkdir(parents=True, exist_ok=True)
            (layer / path).write_bytes(content)


@pytest.fixture
def layers(tmp_path: Path) -> Layers:
    return Layers(tmp_path)


def seen(tree: Tree) -> str:
    """The tree's digest as it is found."""
    said, digest = tree.digest()
    assert said == b"ok"
    return digest.hex()


def test_the_digest_is_the_one_that_is_computed_outside(layers: Layers) -> None:
    (layers.work / "pkg.txt").write_bytes(b"before pkg/b.py by its bytes, after it in the walk")
    found = digest_of_files({path: (layers.work / path).read_bytes() for path in ("a.py", "pkg/b.py", "pkg.txt")})
    assert seen(layers.tree()) == found


def test_what_is_not_in_the_upper_layer_is_read_once(layers: Layers) -> None:
    tree = layers.tree()
    fresh = seen(tree)
    (layers.work / "pkg" / "b.py").write_bytes(b"as no overlay would let it be")
    assert seen(tree) == fresh
    assert seen(layers.tree()) != fresh


def test_what_is_in_the_upper_layer_is_read_each_time(layers: Layers) -> None:
    tree = layers.tree()
    seen(tree)
    for content in (b"six", b"ten", b"two"):
        layers.write("pkg/b.py", content)
        assert seen(tree) == digest_of_files({"a.py": b"one", "pkg/b.py": content})


def test_what_was_read_of_the_upper_layer_is_not_taken_for_the_lower_ones(layers: Layers) -> None:
    tree = layers.tree()
    layers.write("a.py", b"own")
    seen(tree)
    (layers.upper / "a.py").unlink()
    (layers.work / "a.py").write_bytes(b"one")
    assert seen(tree) == digest_of_files({"a.py": b"one", "pkg/b.py": b"two"})


def test_without_an_upper_layer_to_look_into_everything_is_read_each_time(layers: Layers) -> None:
    for written in (layers.work, layers.work / "missing"):
        tree = layers.tree(written)
        seen(tree)
        (layers.work / "a.py").write_bytes(b"six")
        assert seen(tree) == digest_of_files({"a.py": b"six", "pkg/b.py": b"two"})
        (layers.work / "a.py").write_bytes(b"one")


def test_an_upper_layer_that_cannot_be_told_as_a_whole_tells_nothing(layers: Layers) -> None:
    deep = "/".join("d" * 100)
    layers.write(f"{deep}/deep.py", b"x")
    tree = layers.tree()
    seen(tree)
    assert tree.written() is None
    (layers.work / "a.py").write_bytes(b"six")
    first = seen(tree)
    (layers.work / "a.py").write_bytes(b"ten")
    assert seen(tree) != first


def test_what_changed_is_told_from_what_was_settled(layers: Layers) -> None:
    tree = layers.tree()
    assert tree.changes() == [b"refused"]
    (layers.work / "a.py").unlink()
    assert tree.settle() == [b"ok"]
    assert tree.changes() == [b"ok"]
    layers.write("pkg/b.py", b"six")
    layers.write("new.py", b"x")
    assert tree.changes() == [b"ok", b"new.py", b"pkg/b.py"]
    layers.write("pkg/b.py", b"two")
    (layers.work / "new.py").unlink()
    assert tree.changes() == [b"ok"]
    (layers.work / "pkg" / "b.py").unlink()
    (layers.work / "pkg" / "b.py").mkdir()
    assert tree.changes() == [b"ok", b"pkg/b.py"]
