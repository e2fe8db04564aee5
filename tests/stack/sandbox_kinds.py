"""The kinds of sandbox that the suite is run with: each test once with each. One more is a line in `FACTORIES`."""

from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from stepwell.sandbox.apptainer import ApptainerFactory
from stepwell.sandbox.bubblewrap import BubblewrapFactory
from stepwell.sandbox.protocol import ExecEnd, Sandbox, SandboxFactory, SandboxLimits

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


@pytest.fixture(scope="module", params=FACTORIES)
async def sandbox_factory(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[SandboxFactory]:
    """A factory of each kind, which leaves nothing under its root."""
    root = tmp_path_factory.mktemp("sandboxes")
    made = FACTORIES[request.param](root, request)
    yield made
    await made.close()
    assert list(root.iterdir()) == []


@pytest.fixture
async def sandbox(sandbox_factory: SandboxFactory) -> AsyncIterator[Sandbox]:
    """A sandbox of each kind around `FILES`."""
    made = await sandbox_factory.create(FILES, SandboxLimits())
    yield made
    await made.destroy()


async def shell(sandbox: Sandbox, script: str, timeout_s: float = 20.0) -> str:
    """Output of a script that must end by itself with status 0."""
    result = await sandbox.exec(["bash", "-c", script], timeout_s=timeout_s)
    assert (result.end, result.returncode) == (ExecEnd.EXITED, 0), result
    return result.output.decode()
