"""What a rollout changed, as a diff."""

import pytest

from stepwell.report.patch import LINES, FilePatch, file_patches

BEFORE = {"a.py": "one\ntwo\n", "gone.py": "x\n"}


@pytest.mark.parametrize(
    ("path", "after", "expected"),
    [
        ("a.py", b"one\n2\n", FilePatch("a.py", "changed", ("@@ -1,2 +1,2 @@", " one", "-two", "+2"))),
        ("gone.py", None, FilePatch("gone.py", "removed", ("@@ -1 +0,0 @@", "-x"))),
        ("new.py", b"x\n", FilePatch("new.py", "added", ("@@ -0,0 +1 @@", "+x"))),
        ("a.py", b"\xff\xfe", FilePatch("a.py", "no text, 2 bytes")),
        ("b.py", None, FilePatch("b.py", "removed; it was in the task's image")),
    ],
)
def test_each_file_has_its_diff(path: str, after: bytes | None, expected: FilePatch) -> None:
    assert file_patches(BEFORE, {path: after}, in_image=False) == [expected]


def test_of_a_file_of_the_image_only_the_end_is_told() -> None:
    (patch,) = file_patches(BEFORE, {"b.py": b"y\n"}, in_image=True)
    assert patch == FilePatch("b.py", "as it was left; what it was before is in the task's image", ("y",))


def test_a_long_diff_says_what_it_leaves_out() -> None:
    (patch,) = file_patches({}, {"b.py": b"y\n" * (LINES + 5)}, in_image=False)
    assert (len(patch.lines), patch.omitted) == (LINES, 6)
