"""The kinds of sandbox that the suite is run with. One more joins it by a line in `FACTORIES`."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from stepwell.sandbox.apptainer import ApptainerFactory
from stepwell.sandbox.bubblewrap import BubblewrapFactory
from stepwell.sandbox.protocol import ExecEnd, Sandbox, SandboxFactory

FILES = {"main.py": b"print('hello')\n", "pkg/data.txt": b"one\n"}


def bubblewrap(root: Path, request: pytest.FixtureRequest) -> SandboxFactory:
    """Sandboxes in this machine's own system."""
    return BubblewrapFactory(root)


def apptainer(root: Path, request: pytest.FixtureRequest) -> SandboxFactory:
    """Sandboxes in the tests' image."""
    return ApptainerFactory(root, str(request.getfixturevalue("small_sif")))


FACTORIES: dict[str, Callable[[Path, pytest.FixtureRequest], SandboxFactory]] = {
    "bubblewrap": bubblewrap,
    "apptainer": apptainer,
}


@asynccontextmanager
async def factory_of(request: pytest.FixtureRequest, root: Path) -> AsyncIterator[SandboxFactory]:
    """A factory of the kind that the fixture is called with, which leaves nothing under its root."""
    made = FACTORIES[request.param](root, request)
    yield made
    await made.close()
    assert list(root.iterdir()) == []


async def shell(sandbox: Sandbox, script: str, timeout_s: float = 20.0) -> str:
    """Output of a script that must end by itself with status 0."""
    result = await sandbox.exec(["bash", "-c", script], timeout_s=timeout_s)
    assert (result.end, result.returncode) == (ExecEnd.EXITED, 0), result
    return result.output.decode()
