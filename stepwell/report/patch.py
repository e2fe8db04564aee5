"""What a rollout changed, as a person reads it: a unified diff of each file."""

import difflib
from collections.abc import Mapping
from dataclasses import dataclass

LINES = 400
"""Most lines shown of one file."""
FILES = 40
"""Most files shown."""


@dataclass(frozen=True)
class FilePatch:
    """One file."""

    path: str
    """Relative to the work tree."""
    what: str
    """`changed`, `added`, `removed`, or why there is no diff."""
    lines: tuple[str, ...] = ()
    """Of the diff, without its two lines of names; at most `LINES`."""
    omitted: int = 0
    """Lines after those."""


def file_patches(before: Mapping[str, str], changed: Mapping[str, bytes | None], *, in_image: bool) -> list[FilePatch]:
    """A patch a file, in order of paths.

    Args:
        before: The task's files, as it stores them.
        changed: Files at the end that differ from the task's; None for a removed one.
        in_image: Whether the task has files beside those, in its image: of such a file only the end is known.
    """
    return [_file(path, before.get(path), changed[path], in_image) for path in sorted(changed)]


def _file(path: str, before: str | None, after: bytes | None, in_image: bool) -> FilePatch:
    if before is None and after is None:
        return FilePatch(path, "removed; it was in the task's image")
    text = _text(after)
    if text is None:
        return FilePatch(path, f"no text, {len(after or b''):,} bytes")
    if before is None and in_image:
        return _cut(path, "as it was left; what it was before is in the task's image", text.splitlines())
    what = "added" if before is None else "removed" if after is None else "changed"
    diff = list(difflib.unified_diff((before or "").splitlines(), text.splitlines(), lineterm=""))[2:]
    return _cut(path, what, diff)


def _text(data: bytes | None) -> str | None:
    """As text; empty of a removed file, None of one that is no text."""
    try:
        return "" if data is None else data.decode()
    except UnicodeDecodeError:
        return None


def _cut(path: str, what: str, lines: list[str]) -> FilePatch:
    return FilePatch(path, what, tuple(lines[:LINES]), max(0, len(lines) - LINES))
