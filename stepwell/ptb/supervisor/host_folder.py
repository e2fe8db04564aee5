"""The folder of one supervisor: where each file lies, and how they are written so that a reader sees all or nothing."""

import os
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from pydantic import BaseModel, ValidationError

ModelT = TypeVar("ModelT", bound=BaseModel)


@dataclass(frozen=True)
class HostFolder:
    """Paths in it; none of them is seen inside but `inside`, `home` and `tmp`."""

    root: Path

    @property
    def order(self) -> Path:
        """What is to run; an `AgentOrder`."""
        return self.root / "order.json"

    @property
    def host(self) -> Path:
        """The supervisor, a `HostProcess`; written once, by it or by who declares first that there will be none."""
        return self.root / "host.json"

    @property
    def state(self) -> Path:
        """An `AgentStatus`."""
        return self.root / "state.json"

    @property
    def end(self) -> Path:
        """An `AgentEnd`."""
        return self.root / "end.json"

    @property
    def lost(self) -> Path:
        """A `HostLost`: there is no end of the agent's own, and will be none."""
        return self.root / "lost.json"

    @property
    def lease(self) -> Path:
        """Its time of change is moved by each renewal."""
        return self.root / "lease"

    @property
    def stop(self) -> Path:
        """Once it is there the agent is ended; holds the reason."""
        return self.root / "stop"

    @property
    def trace(self) -> Path:
        """What the agent wrote, see `trace_record`."""
        return self.root / "trace.jsonl"

    @property
    def usage(self) -> Path:
        """What was read of its use."""
        return self.root / "usage.jsonl"

    @property
    def network(self) -> Path:
        """Its requests to the network."""
        return self.root / "network.jsonl"

    @property
    def log(self) -> Path:
        """What the supervisor and the sandbox's program say."""
        return self.root / "supervisor.log"

    @property
    def system(self) -> Path:
        """What the sandbox's system is made of."""
        return self.root / "system"

    @property
    def inside(self) -> Path:
        """Ours inside, read-only: `timer`, the clock, the first process."""
        return self.root / "inside"

    @property
    def remaining(self) -> Path:
        """Whole seconds of working time that remain, for `timer`."""
        return self.inside / "clock" / "remaining_s"

    @property
    def home(self) -> Path:
        """The agent's home, unless the order names another; stays when it has ended."""
        return self.root / "home"

    @property
    def tmp(self) -> Path:
        """The agent's /tmp; removed when it has ended."""
        return self.root / "tmp"


def write_whole(path: Path, text: str) -> None:
    """Writes a file, all or nothing, that a crash of the machine may undo.

    Raises:
        OSError: the disk is full, or failed.
    """
    _put(path, _draft(path, text))


def write_lasting(path: Path, text: str) -> None:
    """Writes a file, all or nothing, that stays whatever happens to the machine.

    Raises:
        OSError: the disk is full, or failed.
    """
    draft = _draft(path, text)
    with draft.open("rb") as file:
        os.fsync(file.fileno())
    _put(path, draft)
    folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def write_first(path: Path, text: str) -> bool:
    """Writes a file, all or nothing, unless it is there already; whether it was this call that wrote it.

    Raises:
        OSError: the disk is full, or failed.
    """
    draft = _draft(path, text)
    try:
        os.link(draft, path)
    except FileExistsError:
        return False
    finally:
        draft.unlink(missing_ok=True)
    return True


def read_model(path: Path, kind: type[ModelT]) -> ModelT | None:
    """What a file holds; None without it.

    Raises:
        ValueError: it holds something else.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return None
    try:
        return kind.model_validate_json(text)
    except ValidationError as error:
        raise ValueError(f"{path} holds no {kind.__name__}: {error}") from error


def _draft(path: Path, text: str) -> Path:
    descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    with open(descriptor, "w", encoding="utf-8") as file:
        file.write(text)
    os.chmod(name, 0o644)  # the folder keeps others out; what lies in `inside` is read by the agent, another user there
    return Path(name)


def _put(path: Path, draft: Path) -> None:
    try:
        os.replace(draft, path)
    except OSError:
        draft.unlink(missing_ok=True)
        raise
