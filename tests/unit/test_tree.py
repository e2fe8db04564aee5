"""The digest of a work tree: what it depends on, and what not."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stepwell.sandbox.tree import (
    TreeEntry,
    check_relative_path,
    digest_of_entries,
    digest_of_files,
    entries_of_files,
)

names = st.text("abc", min_size=1, max_size=2)
trees = st.dictionaries(
    st.lists(names, min_size=1, max_size=3).map(lambda parts: "/".join([*parts[:-1], parts[-1] + ".txt"])),
    st.binary(max_size=8),
    max_size=5,
)


@given(trees)
def test_order_of_files_does_not_matter(files: dict[str, bytes]) -> None:
    assert digest_of_files(files) == digest_of_files(dict(reversed(list(files.items()))))


@given(trees, trees)
def test_different_trees_have_different_digests(one: dict[str, bytes], other: dict[str, bytes]) -> None:
    assert (digest_of_files(one) == digest_of_files(other)) == (one == other)


@pytest.mark.parametrize("ignored", ["__pycache__/a.pyc", "pkg/__pycache__/a.pyc", ".git/HEAD", ".pytest_cache/x"])
def test_caches_and_git_do_not_count(ignored: str) -> None:
    files = {"pkg/a.py": b"x"}
    assert digest_of_files({**files, ignored: b"y"}) == digest_of_files(files)


def test_each_field_of_an_entry_counts() -> None:
    entry = TreeEntry(b"a", "link", 0o777, b"target")
    variants = [
        entry,
        TreeEntry(b"b", "link", 0o777, b"target"),
        TreeEntry(b"a", "file", 0o777, b"target"),
        TreeEntry(b"a", "link", 0o755, b"target"),
        TreeEntry(b"a", "link", 0o777, b"other"),
    ]
    assert len({digest_of_entries([variant]) for variant in variants}) == len(variants)


def test_folders_above_a_file_are_entries() -> None:
    assert {entry.path: entry.kind for entry in entries_of_files({"a/b/c": b""})} == {
        b"a": "folder",
        b"a/b": "folder",
        b"a/b/c": "file",
    }


@pytest.mark.parametrize("path", ["", ".", "/etc/passwd", "../x", "a/../../x", "a//b", "a/", "./a", "a\0b"])
def test_a_path_out_of_the_tree_is_refused(path: str) -> None:
    with pytest.raises(ValueError, match="no path inside the work tree"):
        check_relative_path(path)
