"""Changes that no tree can be made of are told before a sandbox fails by them."""

import pytest

from stepwell.tasks.grading.unfit import FILES_LIMIT, unfit


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("/".join(["d" * 200] * 30), "6029 bytes"),
        ("d/" + "n" * 256, "a name of more than 255 bytes"),
        ("../outside", "none inside the work tree"),
        ("/etc/passwd", "none inside the work tree"),
        ("a//b", "none inside the work tree"),
        ("a\udcffb", "none inside the work tree"),
    ],
)
def test_a_path_that_cannot_be_laid_out_is_named(path: str, said: str) -> None:
    reason = unfit({"fine.py": b"", path: b""})
    assert reason is not None
    assert said in reason


def test_too_many_files_are_counted() -> None:
    assert unfit({f"many/{number}": b"" for number in range(FILES_LIMIT)}) is None
    assert unfit({f"many/{number}": b"" for number in range(FILES_LIMIT + 1)}) is not None


def test_usual_changes_are_fit() -> None:
    assert unfit({"a.py": b"x", "deep/er/b.py": None, "ünï.txt": b""}) is None
