"""The worker's side of a supervisor: starts one, takes one up again, renews its lease, asks, stops it.

attended = start(order, folder, secrets)        # or take_up(folder), by any later worker
while (end := attended.end()) is None:
    attended.renew()
    …
"""

from collections.abc import Mapping
from pathlib import Path

from stepwell.ptb.supervisor.order import AgentOrder
from stepwell.ptb.supervisor.records import AgentEnd, AgentStatus


class AgentHostDied(Exception):
    """The supervisor is gone, or ended the agent, for reasons that are not the agent's: infrastructure. The trial is to
    start again from its start, with a new folder. Says what was found."""


class AgentNotStarted(Exception):
    """The agent was never started: says what was found, what was wanted and what to do."""


class Attended:
    """An agent under a supervisor, which is a process of its own and outlives this one."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def renew(self) -> None:
        """Renews the lease. A frozen agent goes on.

        Raises:
            AgentHostDied: the supervisor is gone without an end of the agent.
        """
        raise NotImplementedError

    def status(self) -> AgentStatus:
        """The agent as it was when the supervisor last wrote, about a second ago."""
        raise NotImplementedError

    def end(self) -> AgentEnd | None:
        """How the agent ended; None while it has not.

        Raises:
            AgentHostDied: it has no end of its own, and will have none.
        """
        raise NotImplementedError

    def stop(self, reason: str) -> None:
        """Asks the supervisor to end the agent (SIGTERM, then SIGKILL after the grace time): `end` tells when it has.
        Nothing if it has ended."""
        raise NotImplementedError


def start(order: AgentOrder, folder: Path, secrets: Mapping[str, str]) -> Attended:
    """Starts a supervisor, which starts the agent; returns when the agent's clock has begun.

    Args:
        order: What is to run.
        folder: The supervisor's own, which must not exist or be empty; only this user may read it.
        secrets: A value for each name of `order.secrets`; travels through a pipe.

    Raises:
        AgentNotStarted: the folder is taken, something that the order names is not there, or there is no sandbox.
    """
    raise NotImplementedError


def take_up(folder: Path) -> Attended:
    """The agent of a folder, ended or not, started by whichever process.

    Raises:
        AgentHostDied: the supervisor is gone without an end of the agent, or none was ever there.
    """
    raise NotImplementedError


def end_all(root: Path, reason: str, timeout_s: float = 60.0) -> list[Path]:
    """Stops every agent whose folder is directly under `root`, and waits until the supervisors are gone; one that does
    not go in time is killed, and everything inside with it. Gives the folders of those that ran."""
    raise NotImplementedError
