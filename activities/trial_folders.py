"""Where a trial's files lie on its agent's host, and what that host is called."""

import socket
import uuid
from dataclasses import dataclass
from pathlib import Path

from stepwell.ptb.supervisor import AgentHostDied


@dataclass(frozen=True)
class TrialFolder:
    """Files of one start of one trial."""

    root: Path

    @property
    def tree(self) -> Path:
        """All that the agent can write: looked through by the checks."""
        return self.root / "tree"

    @property
    def work(self) -> Path:
        """Its work folder."""
        return self.tree / "task"

    @property
    def home(self) -> Path:
        """Its home."""
        return self.tree / "home"

    @property
    def tools(self) -> Path:
        """What it can read and not write: the benchmark's evaluation and data."""
        return self.root / "tools"

    @property
    def test(self) -> Path:
        """Of the supervisor of the test before the clock."""
        return self.root / "test"

    @property
    def supervisor(self) -> Path:
        """Of the agent's supervisor."""
        return self.root / "supervisor"

    @property
    def trace(self) -> Path:
        """What the agent said and did, each line with its time, redacted; there once it has ended."""
        return self.root / "trace.txt"

    @property
    def traffic(self) -> Path:
        """What it asked of the network, redacted; likewise."""
        return self.root / "traffic.jsonl"

    @property
    def is_prepared(self) -> Path:
        """A file that is there once all the others are."""
        return self.root / "prepared"


@dataclass(frozen=True)
class TrialFolders:
    """Those of this host.

    Args:
        root: Folder that all trial workers of the host share, and that outlives them.
    """

    root: Path

    @property
    def host(self) -> str:
        """What the host's task queue is named after: drawn once, and kept beside the trials' files, so that whoever has
        the files serves the queue."""
        file = self.root / "host"
        try:
            return file.read_text()
        except FileNotFoundError:
            self.root.mkdir(parents=True, exist_ok=True)
            drawn = file.with_name(f"host-{uuid.uuid4().hex}")
            drawn.write_text(f"{socket.gethostname()}-{uuid.uuid4().hex[:8]}")
            try:
                file.hardlink_to(drawn)  # of two that draw at once, one stands
            except FileExistsError:
                return file.read_text()
            finally:
                drawn.unlink()
            return file.read_text()

    def of(self, run_set: str, cell: str, epoch: int) -> TrialFolder:
        """The files of a start, whether they are there or not."""
        return TrialFolder(self.root / run_set / cell / str(epoch))

    def prepared(self, run_set: str, cell: str, epoch: int) -> TrialFolder:
        """The files of a start.

        Raises:
            AgentHostDied: they are gone, or were never here.
        """
        folder = self.of(run_set, cell, epoch)
        if not folder.is_prepared.is_file():
            raise AgentHostDied(f"{folder.root} is not there or not whole: the agent's files were lost")
        return folder
