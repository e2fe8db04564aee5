"""The read-only system that a bubblewrap sandbox sees, as arguments of `bwrap`.

Inside are /usr, a minimal /etc, the base interpreter of this environment at a fixed place, and of site-packages only
what tests need. Neither the host's home, nor this project, nor the packages installed beside it can be seen.
"""

import importlib.util
import json
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from stepwell.sandbox.protocol import SandboxError

TEST_LIBRARIES = ("pytest", "_pytest", "py", "pluggy", "iniconfig", "packaging", "pygments")
"""Import names of what stands in the sandbox's site-packages: pytest and what it imports."""

PYTHON_ROOT = "/opt/python"
"""Where an interpreter that is not of /usr is mounted: a fixed path, so that output does not name the host's."""
USER_ID = 1000
TMP_BYTES = 64 << 20
SHARED_MEMORY_BYTES = 16 << 20

_PROBE = """
import json, site, sysconfig
print(json.dumps([site.getsitepackages(), bool(sysconfig.get_config_var("Py_ENABLE_SHARED"))]))
"""
HOSTS = "127.0.0.1 localhost sandbox\n"
_ETC_FILES = {
    "passwd": f"root:x:0:0:root:/:/bin/sh\nagent:x:{USER_ID}:{USER_ID}:agent:/tmp/home:/bin/bash\n",
    "group": f"root:x:0:\nagent:x:{USER_ID}:\n",
    "nsswitch.conf": "passwd: files\ngroup: files\nhosts: files\n",
    "hosts": HOSTS,
}


@dataclass(frozen=True)
class System:
    """What `bwrap` is told about the system, once for all sandboxes of a factory."""

    mounts: tuple[str, ...]
    environment: tuple[tuple[str, str], ...]
    python: str
    """Path of the interpreter inside."""


def describe_system(folder: Path, libraries: Sequence[str] = TEST_LIBRARIES) -> System:
    """Composes the system; `folder` (private, of the caller) receives the minimal /etc.

    Raises:
        SandboxError: an interpreter or a library is not where it should be.
    """
    base = Path(sys.base_prefix)
    name = f"python{sys.version_info.major}.{sys.version_info.minor}"
    sites, shared = _probe_interpreter(base / "bin" / name)
    mounts = ["--ro-bind", "/usr", "/usr"]
    for root in ("bin", "sbin", "lib", "lib32", "lib64", "libx32"):
        path = Path("/") / root
        if path.is_symlink():
            mounts += ["--symlink", str(path.readlink()).lstrip("/"), str(path)]
        elif path.is_dir():
            mounts += ["--ro-bind", str(path), str(path)]
    mounts += ["--ro-bind", str(_minimal_etc(folder / "etc")), "/etc"]
    if base.is_relative_to("/usr"):
        inside = base
    else:
        inside = Path(PYTHON_ROOT)
        mounts += ["--ro-bind", str(base), str(inside)]
    sites = [str(inside / Path(site).relative_to(base)) if Path(site).is_relative_to(base) else site for site in sites]
    mounts += _site_packages(sites, libraries)
    python = str(inside / "bin" / name)
    for link in ("python", "python3", name):
        mounts += ["--symlink", python, f"/opt/bin/{link}"]
    mounts += ["--proc", "/proc", "--dev", "/dev", "--size", str(TMP_BYTES), "--tmpfs", "/tmp"]
    mounts += ["--size", str(SHARED_MEMORY_BYTES), "--tmpfs", "/dev/shm"]
    environment = {
        "PATH": "/opt/bin:/usr/local/bin:/usr/bin:/bin",
        "HOME": "/tmp/home",
        "LANG": "C.UTF-8",
        "TZ": "UTC",
        "PYTHONHASHSEED": "0",
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    if shared and inside != base:
        environment["LD_LIBRARY_PATH"] = str(inside / "lib")
    return System(tuple(mounts), tuple(environment.items()), python)


def _probe_interpreter(python: Path) -> tuple[list[str], bool]:
    """Folders of site-packages that exist, and whether the interpreter needs its own shared library."""
    try:
        done = subprocess.run([python, "-I", "-c", _PROBE], capture_output=True, text=True, check=True, timeout=30)
    except (OSError, subprocess.SubprocessError) as error:
        raise SandboxError(
            f"the base interpreter {python} does not run ({error}): make the virtual environment from one that does"
        ) from error
    sites, shared = json.loads(done.stdout)
    return [str(site) for site in sites if Path(site).is_dir()], bool(shared)


def _site_packages(sites: Sequence[str], libraries: Sequence[str]) -> list[str]:
    """Hides what is installed beside the base interpreter, and shows the libraries in the first folder instead."""
    if not sites:
        raise SandboxError("the base interpreter has no folder for site-packages: use another Python")
    mounts: list[str] = []
    for site in sites:
        mounts += ["--tmpfs", site]
    for library in libraries:
        spec = importlib.util.find_spec(library)
        if spec is None or spec.origin is None:
            raise SandboxError(
                f"the package {library!r} is not installed here, and tests in sandboxes need it: install it"
            )
        origin = Path(spec.origin)
        source = origin.parent if origin.name == "__init__.py" else origin
        mounts += ["--ro-bind", str(source), f"{sites[0]}/{source.name}"]
    for site in sites:
        mounts += ["--remount-ro", site]
    return mounts


def _minimal_etc(etc: Path) -> Path:
    """Names of the sandbox's own user, the linker's cache, and Debian's alternatives; nothing else of the host."""
    etc.mkdir(parents=True)
    for name, text in _ETC_FILES.items():
        (etc / name).write_text(text)
    cache = Path("/etc/ld.so.cache")
    if cache.is_file():
        shutil.copyfile(cache, etc / cache.name)
    alternatives = Path("/etc/alternatives")
    if alternatives.is_dir():
        shutil.copytree(alternatives, etc / alternatives.name, symlinks=True)
    return etc
