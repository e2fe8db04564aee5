"""A small image for tests: a root of the programs of this machine that they call, and a SIF of it."""

import importlib.util
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from stepwell.sandbox.images import build_from_definition
from stepwell.sandbox.system import TEST_LIBRARIES

PROGRAMS = (
    *("bash", "cat", "cp", "chmod", "chown", "cut", "du", "echo", "env", "grep", "head", "id", "ln", "ls", "mkdir"),
    *(
        "find",
        "git",
        "mkfifo",
        "mktemp",
        "mv",
        "pgrep",
        "pkill",
        "rm",
        "sed",
        "seq",
        "sleep",
        "sort",
        "stat",
        "tail",
        "tee",
        "test",
        "timeout",
        "touch",
    ),
    *("true", "truncate", "unshare", "wc", "yes"),
)
LEFT_OUT = ("site-packages", "dist-packages", "test", "tests", "idlelib", "ensurepip", "tkinter", "config-*", "*.a")
"""Of the standard library."""
WORK_FILES = {"in_image.txt": b"of the image\n", "pkg/of_image.py": b"x = 1\n"}
"""What the image has in /repository."""
NO_COMPRESSION = ("--mksquashfs-args=-noI -noD -noF -noX -quiet",)
_PYTHON = f"python{sys.version_info.major}.{sys.version_info.minor}"
_DEFINITION = """\
Bootstrap: localimage
From: {root}

%environment
    export PATH=/opt/bin:/usr/local/bin:/usr/bin:/bin
    export LANG=C.UTF-8

%labels
    maker stepwell-tests
"""


def make_root(root: Path) -> None:
    """An unpacked root with bash, the usual programs, and a Python that has pytest."""
    for folder in ("etc", "opt/bin", "tmp", "proc", "dev"):
        (root / folder).mkdir(parents=True)
    (root / "etc" / "passwd").write_text("root:x:0:0:root:/root:/bin/sh\n")
    (root / "etc" / "group").write_text("root:x:0:\n")
    add_programs(root, PROGRAMS)
    (root / "usr" / "bin" / "sh").symlink_to("bash")
    _add_libraries(root, _add_python(root))
    for path, content in WORK_FILES.items():
        file = root / "repository" / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content)


def add_programs(root: Path, names: Sequence[str]) -> None:
    """Gives a root programs of this machine, with what they are linked against."""
    for folder in ("usr/bin", "usr/lib"):
        (root / folder).mkdir(parents=True)
    for link, target in (("bin", "usr/bin"), ("lib", "usr/lib"), ("lib64", "usr/lib")):
        (root / link).symlink_to(target)
    programs = [_found(name) for name in names]
    for name, program in zip(names, programs, strict=True):
        shutil.copy2(program, root / "usr" / "bin" / name)
    _add_libraries(root, programs)


def make_sif(root: Path, image: Path) -> None:
    """A SIF of the root, with an environment and a label."""
    build_from_definition(_DEFINITION.format(root=root), image, NO_COMPRESSION)


def _add_python(root: Path) -> list[Path]:
    """Gives what is to be linked."""
    base = Path(sys.base_prefix)
    library = root / "opt" / "python" / "lib" / _PYTHON
    shutil.copytree(base / "lib" / _PYTHON, library, ignore=shutil.ignore_patterns(*LEFT_OUT), symlinks=True)
    (root / "opt" / "python" / "bin").mkdir()
    shutil.copy2(base / "bin" / _PYTHON, root / "opt" / "python" / "bin")
    for link in ("python", "python3", _PYTHON):
        (root / "opt" / "bin" / link).symlink_to(f"/opt/python/bin/{_PYTHON}")
    site = library / "site-packages"
    site.mkdir()
    for name in TEST_LIBRARIES:
        spec = importlib.util.find_spec(name)
        assert spec is not None
        assert spec.origin is not None
        origin = Path(spec.origin)
        if origin.name == "__init__.py":
            shutil.copytree(origin.parent, site / origin.parent.name)
        else:
            shutil.copy2(origin, site)
    return [base / "bin" / _PYTHON, *(base / "lib" / _PYTHON / "lib-dynload").glob("*.so")]


def _found(name: str) -> Path:
    program = shutil.which(name)
    assert program is not None, name
    return Path(program).resolve()


def _add_libraries(root: Path, files: Sequence[Path]) -> None:
    for library in _libraries_of(files):
        shutil.copy2(library, root / "usr" / "lib" / library.name)


def _libraries_of(files: Sequence[Path]) -> set[Path]:
    said = subprocess.run(["ldd", *files], capture_output=True, text=True, check=False).stdout
    return {
        Path(word) for line in said.splitlines() for word in line.split() if word.startswith("/") and ":" not in word
    }
