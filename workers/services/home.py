"""The folder of the embedded services: where things lie in it, and its locks."""

import fcntl
import os
import shutil
import tempfile
import time
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from workers.services.errors import ServiceError

LEAST_FREE_BYTES = 256 << 20
"""Below this the servers may not even write their first files: PostgreSQL wants 60 MiB, a log segment takes 16 MiB."""


@dataclass(frozen=True)
class Home:
    """Paths under `$STEPWELL_HOME`."""

    root: Path

    @classmethod
    def of(cls, root: Path | None = None, environment: Mapping[str, str] = os.environ) -> "Home":
        """The given folder, else `$STEPWELL_HOME`, else `.stepwell` in the current folder."""
        return cls((root or Path(environment.get("STEPWELL_HOME") or ".stepwell")).absolute())

    @property
    def services(self) -> Path:
        """Folder of settings, state and locks."""
        return self.root / "services"

    @property
    def settings(self) -> Path:
        """Ports and passwords, mode 0600."""
        return self.services / "settings.json"

    @property
    def plan(self) -> Path:
        """What the supervisor is to run."""
        return self.services / "plan.json"

    @property
    def state(self) -> Path:
        """What the supervisor runs."""
        return self.services / "state.json"

    @property
    def owners(self) -> Path:
        """A file for each process that wants the services for its own life."""
        return self.services / "owners"

    @property
    def daemon(self) -> Path:
        """While it exists the services run without an owner."""
        return self.services / "daemon"

    @property
    def lock(self) -> Path:
        """Held by whoever starts or stops the services."""
        return self.services / "up.lock"

    @property
    def supervisor_lock(self) -> Path:
        """Held by the supervisor for its life."""
        return self.services / "supervisor.lock"

    @property
    def logs(self) -> Path:
        """Logs of the supervisor and the servers."""
        return self.root / "logs"

    def data(self, service: str) -> Path:
        """Data folder of one service."""
        return self.root / service

    def create(self) -> None:
        """Makes the folders.

        Raises:
            ServiceError: they cannot be made or written to, or the disk is all but full.
        """
        try:
            for folder in (self.services, self.owners):
                folder.mkdir(parents=True, exist_ok=True)
            self.logs.mkdir(mode=0o700, exist_ok=True)
            tempfile.TemporaryFile(dir=self.services).close()
        except OSError as error:
            raise ServiceError(
                f"cannot write to the home {self.root}: {error.strerror}: {error.filename}. "
                "Set STEPWELL_HOME to a folder that you may write to."
            ) from error
        free_bytes = shutil.disk_usage(self.root).free
        if free_bytes < LEAST_FREE_BYTES:
            raise ServiceError(
                f"the disk is full: {free_bytes >> 20} MiB are free at {self.root}, and the services want "
                f"{LEAST_FREE_BYTES >> 20} MiB. Free some space, or set STEPWELL_HOME to a folder on another disk."
            )


@contextmanager
def locked(path: Path, timeout_s: float) -> Generator[None]:
    """Holds the lock file for the block, waiting for whoever has it; the file is gone afterwards.

    Raises:
        ServiceError: it was not free within `timeout_s`.
    """
    deadline = time.monotonic() + timeout_s
    while (descriptor := try_lock(path)) is None:
        if time.monotonic() > deadline:
            raise ServiceError(
                f"another process has been starting or stopping these services for {timeout_s:.0f} s "
                f"(lock {path}). Wait for it, or end it, and try again."
            )
        time.sleep(0.05)
    try:
        yield
    finally:
        path.unlink(missing_ok=True)
        os.close(descriptor)


def try_lock(path: Path) -> int | None:
    """Descriptor that holds the lock until it is closed; None if another holds it."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        # The holder before us removes the file: a lock on a removed file would keep out nobody.
        if path.stat().st_ino == os.fstat(descriptor).st_ino:
            return descriptor
    except (BlockingIOError, FileNotFoundError):
        os.close(descriptor)
        return None
    os.close(descriptor)
    return None


def is_locked(path: Path) -> bool:
    """Whether some process holds the lock."""
    if not path.exists():
        return False
    descriptor = try_lock(path)
    if descriptor is None:
        return True
    os.close(descriptor)
    return False
