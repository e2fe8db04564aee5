"""The editor of the CodeAct tools: view, create, str_replace, insert and undo_edit on files of the work tree."""

import json
from collections import deque
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import cast

from stepwell.sandbox.protocol import WORK, Sandbox

CONTEXT_LINES = 4
"""Lines shown around an edit."""


MAX_UNDO = 10
"""Edits of one file that can be taken back."""


@dataclass
class Edits:
    """What files held before their edits, for one episode; rebuilt when its actions are run again."""

    before: dict[str, deque[str]] = field(default_factory=dict[str, "deque[str]"])

    def keep(self, path: str, text: str) -> None:
        """Remembers what a file held before an edit."""
        self.before.setdefault(path, deque(maxlen=MAX_UNDO)).append(text)


class _Mistake(Exception):
    """What the agent did wrong, as it is told."""


@dataclass(frozen=True)
class _Place:
    """What a call names."""

    path: str
    """From the root of the tree; `.` for the root itself."""
    shown: PurePosixPath
    """As the agent knows it."""


async def edit(arguments: dict[str, str], sandbox: Sandbox, edits: Edits, work: str = WORK) -> str:
    """Carries out one call of str_replace_editor; gives what the agent is told.

    Args:
        arguments: Of the call.
        sandbox: Holds the tree.
        edits: Of the episode.
        work: Root of the tree, an absolute path.

    Raises:
        SandboxError: the sandbox failed.
    """
    try:
        place = _inside(arguments["path"], PurePosixPath(work))
        match arguments["command"]:
            case "view":
                return await _view(place, arguments, sandbox)
            case "create":
                return await _create(place, arguments, sandbox)
            case "str_replace":
                return await _replace(place, arguments, sandbox, edits)
            case "insert":
                return await _insert(place, arguments, sandbox, edits)
            case "undo_edit":
                return await _undo(place, sandbox, edits)
            case other:
                raise _Mistake(f"unknown command {other!r}; there are view, create, str_replace, insert, undo_edit")
    except _Mistake as mistake:
        return f"Error: {mistake}."


def _inside(given: str, root: PurePosixPath) -> _Place:
    path = PurePosixPath(given)
    relative = path.relative_to(root) if path.is_relative_to(root) else path
    if relative.is_absolute() or ".." in relative.parts or "\0" in given:
        raise _Mistake(f"{given!r} is not in {root}")
    return _Place(str(relative), root / relative)


async def _view(place: _Place, arguments: dict[str, str], sandbox: Sandbox) -> str:
    try:
        content = await sandbox.read_file(place.path)
    except FileNotFoundError:
        return await _view_folder(place, sandbox)
    lines = content.decode(errors="replace").split("\n")
    first, last = 1, len(lines)
    if "view_range" in arguments:
        first, last = _range(arguments["view_range"], len(lines))
    return f"Here is {place.shown}:\n" + _numbered(lines, first, last)


async def _view_folder(place: _Place, sandbox: Sandbox) -> str:
    command = ["find", str(place.shown), "-maxdepth", "2", "-not", "-path", "*/.*", "-not", "-name", "__pycache__"]
    result = await sandbox.exec([*command, "-printf", "%p%y\\n"], timeout_s=20)
    if result.returncode != 0 or not result.output:
        raise _Mistake(f"there is no file or folder {place.shown}")
    kinds = dict(sorted((line[:-1], line[-1]) for line in result.output.decode(errors="replace").splitlines()))
    names = [name + "/" if kind == "d" else name for name, kind in kinds.items() if name != str(place.shown)]
    return f"Files and folders in {place.shown}, two levels deep:\n" + "\n".join(names)


async def _create(place: _Place, arguments: dict[str, str], sandbox: Sandbox) -> str:
    text = _argument(arguments, "file_text")
    try:
        await sandbox.read_file(place.path)
    except FileNotFoundError:
        await _write(place, text, sandbox)
        return f"File created: {place.shown}"
    raise _Mistake(f"{place.shown} exists; use str_replace or insert to change it")


async def _replace(place: _Place, arguments: dict[str, str], sandbox: Sandbox, edits: Edits) -> str:
    old, new = _argument(arguments, "old_str"), arguments.get("new_str", "")
    if not old:
        raise _Mistake("old_str is empty")
    if old == new:
        raise _Mistake("old_str and new_str are the same")
    text = await _read(place, sandbox)
    count = text.count(old)
    if count == 0:
        raise _Mistake(f"old_str does not occur in {place.shown}; copy it exactly, with its white space")
    if count > 1:
        lines = [text.count("\n", 0, at) + 1 for at in _positions(text, old)]
        raise _Mistake(f"old_str occurs {count} times, in lines {lines}; give more lines so that it occurs once")
    at = text.index(old)
    changed = text[:at] + new + text[at + len(old) :]
    await _write(place, changed, sandbox)
    edits.keep(place.path, text)
    first = text.count("\n", 0, at) + 1
    return _edited(place, changed, first, first + new.count("\n"))


async def _insert(place: _Place, arguments: dict[str, str], sandbox: Sandbox, edits: Edits) -> str:
    new = _argument(arguments, "new_str")
    text = await _read(place, sandbox)
    lines = text.split("\n")
    try:
        after = int(_argument(arguments, "insert_line"))
    except ValueError:
        raise _Mistake(f"insert_line must be a whole number, not {arguments['insert_line']!r}") from None
    if not 0 <= after <= len(lines):
        raise _Mistake(f"insert_line must be from 0 to {len(lines)}, not {after}")
    added = new.removesuffix("\n").split("\n")
    changed = "\n".join([*lines[:after], *added, *lines[after:]])
    await _write(place, changed, sandbox)
    edits.keep(place.path, text)
    return _edited(place, changed, after + 1, after + len(added))


async def _undo(place: _Place, sandbox: Sandbox, edits: Edits) -> str:
    """The file as it was before its last str_replace or insert, whatever else changed it since."""
    kept = edits.before.get(place.path)
    if not kept:
        raise _Mistake(f"there is no edit of {place.shown} to undo")
    await _write(place, kept[-1], sandbox)
    text = kept.pop()
    return f"The last edit of {place.shown} was undone. It now reads:\n" + _numbered(
        lines := text.split("\n"), 1, len(lines)
    )


async def _read(place: _Place, sandbox: Sandbox) -> str:
    try:
        return (await sandbox.read_file(place.path)).decode()
    except FileNotFoundError:
        raise _Mistake(f"there is no file {place.shown}") from None
    except UnicodeDecodeError:
        raise _Mistake(f"{place.shown} is no text file") from None


async def _write(place: _Place, text: str, sandbox: Sandbox) -> None:
    try:
        await sandbox.write_file(place.path, text.encode())
    except ValueError as error:
        raise _Mistake(str(error)) from error


def _argument(arguments: dict[str, str], name: str) -> str:
    if name not in arguments:
        raise _Mistake(f"{arguments['command']} needs the argument {name!r}")
    return arguments[name]


def _range(text: str, count: int) -> tuple[int, int]:
    """First and last line, from a JSON list of two whole numbers; -1 is the last line."""
    wanted = _Mistake(f"view_range must be two line numbers between 1 and {count}, first not above last, not {text}")
    try:
        value = json.loads(text)
    except ValueError:
        raise wanted from None
    if not isinstance(value, list) or len(cast(list[object], value)) != 2:
        raise wanted
    first, last = cast(list[object], value)
    if not isinstance(first, int) or not isinstance(last, int):
        raise wanted
    last = count if last == -1 else min(last, count)
    if not 1 <= first <= last:
        raise wanted
    return first, last


def _positions(text: str, part: str) -> list[int]:
    found: list[int] = []
    at = text.find(part)
    while at >= 0:
        found.append(at)
        at = text.find(part, at + len(part))
    return found


def _edited(place: _Place, text: str, first: int, last: int) -> str:
    lines = text.split("\n")
    shown = _numbered(lines, max(1, first - CONTEXT_LINES), min(len(lines), last + CONTEXT_LINES))
    return f"{place.shown} was changed. Around the change it now reads:\n{shown}"


def _numbered(lines: list[str], first: int, last: int) -> str:
    return "\n".join(f"{number:6d}\t{lines[number - 1]}" for number in range(first, last + 1))
