"""Programs of ours that run inside any image: the process inside, the Python that runs it, and `bwrap`.

An image has a C library and a Python of its own, older or newer than ours or none, and neither is trusted. So the base
interpreter of this environment goes in with all that it loads for the imports of `guest_init`, down to the loader that
starts it. Started through that loader with a library path on its command line, it needs no variable of the environment,
and so leaks none into commands.
"""

import os
import py_compile
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from stepwell.sandbox import guest_init
from stepwell.sandbox.protocol import SandboxError

MOUNTED_AT = "/opt/stepwell"
"""Where the bundle is inside."""

_PROBE = """
import _ctypes, encodings.utf_8, errno, hashlib, os, resource, select, stat, sys, time
print(sys.base_prefix)
for name in sys.argv[1:]:
    __import__(name)
for module in list(sys.modules.values()):
    if getattr(module, "__file__", None):
        print(module.__file__)
"""


@dataclass(frozen=True)
class GuestBundle:
    """A folder that is mounted read-only at `MOUNTED_AT`, and how its programs are started there."""

    folder: Path
    python: tuple[str, ...]
    """An interpreter that sees nothing but its bundled modules; a program and its arguments follow."""
    guest: tuple[str, ...]
    """The process inside; its arguments follow."""
    bwrap: tuple[str, ...]
    """`bwrap`; its arguments follow."""


def write_guest_bundle(folder: Path, bwrap: Path, imports: Sequence[str] = ()) -> GuestBundle:
    """Copies what is needed into `folder`, which must not exist.

    Args:
        folder: Receives about 30 MB.
        bwrap: The program of this machine.
        imports: Names of modules that other programs import in there, beside those of `guest_init`.

    Raises:
        SandboxError: the interpreter or `bwrap` does not run here, or is not linked against glibc.
        OSError: the disk failed.
    """
    python = Path(sys.base_prefix) / "bin" / f"python{sys.version_info.major}.{sys.version_info.minor}"
    prefix, *files = _output([str(python), "-I", "-S", "-c", _PROBE, *imports]).splitlines()
    modules = {Path(file) for file in files} | {Path(os.__file__)}
    libraries = _linked(_output([str(python)], {"LD_TRACE_LOADED_OBJECTS": "1"}))
    loader = next((library for library in libraries if library.name.startswith("ld-")), None)
    if loader is None:
        raise SandboxError(f"{python} is started by no loader of glibc: use a Python that is linked against it")
    for linked in (bwrap, *(module for module in modules if module.suffix == ".so")):
        libraries |= _linked(_output([str(loader), "--list", str(linked)]))
    for module in modules:
        _copy_module(module, folder / "python" / module.relative_to(prefix))
    (folder / "python" / "bin").mkdir()
    shutil.copy2(python, folder / "python" / "bin")
    (folder / "lib").mkdir()
    for library in libraries:
        shutil.copy2(library, folder / "lib")
    shutil.copy2(bwrap, folder / "bwrap")
    _compile(Path(guest_init.__file__), folder / "guest_init.pyc")
    started = (f"{MOUNTED_AT}/lib/{loader.name}", "--inhibit-cache", "--library-path", f"{MOUNTED_AT}/lib")
    interpreter = (*started, f"{MOUNTED_AT}/python/bin/{python.name}", "-X", "utf8", "-I", "-S")
    guest = (*interpreter, f"{MOUNTED_AT}/guest_init.pyc")
    return GuestBundle(folder, interpreter, guest, (*started, f"{MOUNTED_AT}/bwrap"))


def _copy_module(module: Path, target: Path) -> None:
    """A module, compiled beside its source if it has one, so that no start has to."""
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy2(module, target)
    if module.suffix == ".py":
        name = f"{module.stem}.{sys.implementation.cache_tag}.pyc"
        _compile(module, target.parent / "__pycache__" / name)


def _compile(source: Path, target: Path) -> None:
    py_compile.compile(
        str(source), str(target), doraise=True, invalidation_mode=py_compile.PycInvalidationMode.UNCHECKED_HASH
    )


def _linked(said: str) -> set[Path]:
    """The libraries of a program by the word of its loader, under the names that it asks for."""
    words = [word for line in said.splitlines() for word in line.split() if word.startswith("/")]
    return {Path(word) for word in words}


def _output(command: Sequence[str], environment: dict[str, str] | None = None) -> str:
    try:
        done = subprocess.run(
            command, env=environment, capture_output=True, text=True, check=True, timeout=60, stdin=subprocess.DEVNULL
        )
    except (OSError, subprocess.SubprocessError) as error:
        raise SandboxError(f"{command[0]} does not run here ({error}), and every sandbox needs it") from error
    return done.stdout
