"""What the supervisor is to run, and what it runs: two JSON files, the only words between it and the commands.

Standard library only: the supervisor lives as long as the servers and should stay small.
"""

import json
import os
import signal
import sys
import tempfile
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Literal

from workers.services.processes import ProcessId

LAUNCHER = Path(__file__).with_name("launcher.py")


@dataclass(frozen=True)
class Identity:
    """Unprivileged user that a server runs as when we are root."""

    mode: Literal["namespace", "setuid"]
    uid: int
    gid: int


@dataclass(frozen=True)
class Launch:
    """How to run one server."""

    name: str
    argv: list[str]
    """The program's full path and its arguments; no secrets, since any user may list processes."""
    folder: str
    """Current folder of the server."""
    log: str
    """File that its output goes to."""
    environment: dict[str, str] = field(default_factory=dict[str, str])
    """Its whole environment."""
    identity: Identity | None = None
    stop_signal: int = signal.SIGTERM
    """Asks it to end in good order."""
    death_signal: int = signal.SIGKILL
    """What it gets when the supervisor dies."""
    grace_s: float = 10.0
    """Time from the stop signal to SIGKILL."""
    leftovers: list[str] = field(default_factory=list[str])
    """Files outside the home that a killed server leaves behind."""


@dataclass(frozen=True)
class ServiceState:
    """One server under the supervisor."""

    process: ProcessId | None
    """None between its death and the next start."""
    starts: int
    last_exit: int | None
    """Return code of the last one that died, minus the signal's number if one killed it."""


@dataclass(frozen=True)
class SupervisorState:
    """A supervisor and its servers, by name."""

    supervisor: ProcessId
    services: dict[str, ServiceState]


def launcher_argv(argv: list[str], *, death_signal: int, identity: Identity | None) -> list[str]:
    """Command that runs `argv` tied to the life of the calling thread."""
    spec = {
        "parent": os.getpid(),
        "death_signal": death_signal,
        "identity": asdict(identity) if identity else None,
        "argv": argv,
    }
    return [sys.executable, "-I", "-S", str(LAUNCHER), json.dumps(spec)]


def write_private(path: Path, text: str) -> None:
    """Writes a file that only its owner may read, all or nothing."""
    with tempfile.NamedTemporaryFile("w", dir=path.parent, prefix=f".{path.name}.", delete=False) as draft:
        try:
            draft.write(text)
            draft.close()
            os.replace(draft.name, path)
        except BaseException:
            Path(draft.name).unlink(missing_ok=True)
            raise


def write_plan(path: Path, launches: dict[str, Launch]) -> None:
    """Records what the supervisor is to run, by name."""
    write_private(path, json.dumps({name: asdict(launch) for name, launch in launches.items()}, indent=1))


def read_plan(path: Path) -> dict[str, Launch]:
    """What the supervisor is to run, by name; nothing without the file."""
    if not path.exists():
        return {}
    plan: dict[str, Launch] = {}
    for name, entry in json.loads(path.read_text()).items():
        identity = Identity(**entry.pop("identity")) if entry["identity"] else entry.pop("identity")
        plan[name] = Launch(**entry, identity=identity)
    return plan


def write_state(path: Path, state: SupervisorState) -> None:
    """Records what runs."""
    write_private(path, json.dumps(asdict(state), indent=1))


def read_state(path: Path) -> SupervisorState | None:
    """What runs, or ran when the supervisor last wrote; None without the file."""
    try:
        entry = json.loads(path.read_text())
    except FileNotFoundError:
        return None
    services = {
        name: ServiceState(
            process=ProcessId(**service["process"]) if service["process"] else None,
            starts=service["starts"],
            last_exit=service["last_exit"],
        )
        for name, service in entry["services"].items()
    }
    return SupervisorState(ProcessId(**entry["supervisor"]), services)
