"""What a sandbox has to know of an image before it starts in it: environment, users, work folder, what is to be hidden.

Found out once an image, by running our own Python in it: nothing of the image's is trusted to answer, nor needed.
"""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Literal

from stepwell.sandbox.system import HOSTS, USER_ID

WorkFolder = Literal["missing", "empty", "full"]
HiddenKind = Literal["folder", "file"]

PROBE = """
import os, sys
def content(path):
    try:
        with open(path, "rb") as file:
            return file.read()
    except OSError:
        return b""
work = sys.argv[1]
try:
    folder = b"full" if os.listdir(work) else b"empty"
except FileNotFoundError:
    folder = b"missing"
def hidden(path):
    path = os.path.realpath(os.fsencode(path))
    kind = b"folder" if os.path.isdir(path) else b"file" if os.path.exists(path) else b""
    return [kind, path]
environment = [b"%s=%s" % setting for setting in os.environb.items()]
found = [field for path in sys.argv[2:] for field in hidden(path)]
os.write(1, b"\\0".join([folder, content("/etc/passwd"), content("/etc/group"), *found, *environment]))
"""
"""A program for Python; its arguments are the work folder, and the paths that are to be hidden."""

_OF_APPTAINER = ("APPTAINER_", "SINGULARITY_")
_NOT_THE_IMAGES = {"PS1", "PROMPT_COMMAND", "HOME", "PWD", "OLDPWD", "SHLVL", "TERM", "USER_PATH", "_"}
_INJECTED_LIBRARIES = "/.singularity.d/libs"
_FIXED = {"HOME": "/tmp/home", "TZ": "UTC", "PYTHONHASHSEED": "0", "PYTHONDONTWRITEBYTECODE": "1"}
"""The same in each kind of sandbox: what a command prints may not depend on the machine or the hour."""


@dataclass(frozen=True)
class ImageInside:
    """An image as it is from inside, with one work folder."""

    work: WorkFolder
    environment: Mapping[str, str]
    """Of commands."""
    passwd: str
    group: str
    hidden: Mapping[str, HiddenKind] = field(default_factory=dict[str, HiddenKind])
    """Of the paths that are to be hidden those that there are, free of links, each once."""

    def write_etc(self, folder: Path) -> None:
        """Writes the files that take the place of the image's own in /etc.

        Raises:
            OSError: the disk failed.
        """
        folder.mkdir()
        for name, text in (("passwd", self.passwd), ("group", self.group), ("hosts", HOSTS)):
            (folder / name).write_bytes(os.fsencode(text))


def parse_probe(output: bytes, *, hidden: int = 0) -> ImageInside:
    """What `PROBE` found.

    Args:
        output: What it printed.
        hidden: How many paths it was given to look for.

    Raises:
        ValueError: it printed something else.
    """
    folder, *rest = os.fsdecode(output).split("\0")
    if folder not in ("missing", "empty", "full") or len(rest) < 2 + 2 * hidden:
        raise ValueError(f"the probe of an image said {output[:200]!r}")
    passwd, group, *rest = rest
    looked_for, settings = rest[: 2 * hidden], rest[2 * hidden :]
    kinds = dict(zip(looked_for[1::2], looked_for[::2], strict=True))
    environment = image_environment(dict(setting.split("=", 1) for setting in settings))
    passwd = with_user(passwd, f"agent:x:{USER_ID}:{USER_ID}:agent:{environment['HOME']}:/bin/sh")
    return ImageInside(folder, environment, passwd, with_user(group, f"agent:x:{USER_ID}:"), _outermost(kinds))


def _outermost(kinds: Mapping[str, str]) -> dict[str, HiddenKind]:
    """Of the paths those that there are, without what lies in another of them."""
    found: dict[str, HiddenKind] = {path: kind for path, kind in kinds.items() if kind in ("folder", "file")}
    return {
        path: kind
        for path, kind in found.items()
        if not any(str(parent) in found for parent in PurePosixPath(path).parents)
    }


def image_environment(started_with: Mapping[str, str]) -> dict[str, str]:
    """The environment of commands: what the image sets, without what Apptainer adds, with what is fixed."""
    environment = {
        name: value
        for name, value in started_with.items()
        if name not in _NOT_THE_IMAGES and not name.startswith(_OF_APPTAINER)
    }
    libraries = environment.pop("LD_LIBRARY_PATH", "").split(":")
    libraries = [folder for folder in libraries if folder not in ("", _INJECTED_LIBRARIES)]
    if libraries:
        environment["LD_LIBRARY_PATH"] = ":".join(libraries)
    if environment.get("LANG", "C") == "C":  # Apptainer's own, where the image has none
        environment["LANG"] = "C.UTF-8"
    return environment | _FIXED


def with_user(table: str, line: str) -> str:
    """A table of users or groups that has the sandbox's own: by `line`, unless its number is taken already."""
    taken = {parts[2] for parts in (entry.split(":") for entry in table.splitlines()) if len(parts) > 2}
    if str(USER_ID) in taken:
        return table
    end = "" if table.endswith("\n") or not table else "\n"
    return f"{table}{end}{line}\n"
