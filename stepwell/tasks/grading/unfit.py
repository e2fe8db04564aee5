"""Changes that no tree can be made of, which would otherwise look like a failing sandbox. Pure."""

from collections.abc import Mapping

from stepwell.sandbox.tree import check_relative_path

FILES_LIMIT = 20_000
"""Most files that an agent may leave."""
PATH_BYTES_LIMIT = 1_024
"""Longest path. One over the system's own limit cannot be laid out by its name."""
NAME_BYTES_LIMIT = 255


def unfit(changed: Mapping[str, bytes | None]) -> str | None:
    """Why a tree with these changes is not graded, or None if it can be made.

    Args:
        changed: Path to content, None for what was removed.
    """
    if len(changed) > FILES_LIMIT:
        return f"{len(changed)} files were changed; at most {FILES_LIMIT} are graded"
    for path in sorted(changed):
        size = len(path.encode("utf-8", "surrogateescape"))
        if size > PATH_BYTES_LIMIT:
            return f"a path of {size} bytes was left, {path[:40]!r} and so on; at most {PATH_BYTES_LIMIT} are graded"
        try:
            parts = check_relative_path(path).parts
            path.encode()
        except (ValueError, UnicodeEncodeError) as error:
            return f"a path was left that is none inside the work tree: {error}"
        if any(len(part.encode()) > NAME_BYTES_LIMIT for part in parts):
            return f"a name of more than {NAME_BYTES_LIMIT} bytes was left in {path[:40]!r}"
    return None
