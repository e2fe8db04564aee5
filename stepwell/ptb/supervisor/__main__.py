"""The supervisor of one agent, as a program.

    python -P -m stepwell.ptb.supervisor FOLDER < SECRETS

FOLDER holds `order.json`; SECRETS is a JSON object of names and values. It becomes a process of its own, which nobody
is the parent of, and returns once the agent's clock runs: 0, or 1 and on standard output why no agent was started.
"""

import asyncio
import contextlib
import json
import os
import sys
from pathlib import Path
from typing import IO

from stepwell.ptb.supervisor.host_folder import HostFolder, read_model, write_first, write_lasting
from stepwell.ptb.supervisor.host_process import HostProcess, host_process
from stepwell.ptb.supervisor.image_sandbox import image_sandbox
from stepwell.ptb.supervisor.inside import start_inside
from stepwell.ptb.supervisor.order import AgentOrder
from stepwell.ptb.supervisor.records import AgentStatus, HostLost
from stepwell.ptb.supervisor.sandbox import agent_environment, bubblewrap_sandbox, lay_out
from stepwell.ptb.supervisor.supervision import Supervision
from stepwell.ptb.supervisor.trace import utc_now
from stepwell.sandbox.cgroups import GroupLimits
from stepwell.sandbox.folders import remove_tree
from stepwell.sandbox.protocol import SandboxError

STARTED = b"started"


class Taken(Exception):
    """The folder is another's: nothing in it may be touched."""


async def supervise(folder: HostFolder, secrets: dict[str, str], told: IO[bytes]) -> None:
    """Starts the agent and holds it to its end.

    Args:
        folder: With an order.
        secrets: Values by name.
        told: Pipe that `STARTED` is written to when the agent's clock runs, and closed.

    Raises:
        Taken: the folder has a supervisor, or was given up.
        SandboxError: there is no sandbox.
        OSError: the disk is full, or failed.
        ValueError: the order is none.
    """
    order = read_model(folder.order, AgentOrder)
    own = host_process(os.getpid())
    if order is None or own is None:
        raise ValueError(f"there is no order in {folder.root}, or no /proc")
    folder.lease.touch()
    write_first(folder.state, _starting(order, own).model_dump_json(indent=1))  # before the claim, which tells of it
    if not write_first(folder.host, own.model_dump_json()):
        raise Taken(f"{folder.root} was given up before this supervisor began, or has one: use a new folder")
    lay_out(folder, order)
    limits = GroupLimits(order.limits.memory_bytes, order.limits.processes)
    network = order.network.mode != "none"
    if order.image is None:
        sandbox = bubblewrap_sandbox(order, folder)
    else:
        sandbox = image_sandbox(order, folder, Path(order.image))
    inside = await start_inside(sandbox, limits, folder.log, network=network)
    environment = agent_environment(order, sandbox.system, secrets)
    supervision = Supervision(order, folder, environment, inside, own)

    def ready() -> None:
        told.write(STARTED)
        told.close()

    try:
        await supervision.run(ready)
    finally:
        for path in (folder.tmp, folder.system):
            _remove(path)
    supervision.conclude()


def _remove(path: Path) -> None:
    try:
        remove_tree(path)
    except OSError as error:  # it takes space, and changes nothing about how the agent ended
        sys.stderr.write(f"{path} stays: {error}\n")


def _starting(order: AgentOrder, own: HostProcess) -> AgentStatus:
    return AgentStatus(
        supervisor=own,
        phase="starting",
        started=utc_now(),
        worked_s=0.0,
        remaining_s=order.budget.time_s,
        tokens=0,
        money=0.0,
        prompts=0,
        last_output=None,
        freezes=0,
        bounded_by="nothing",
        writes=0,
    )


def _live(folder: HostFolder, secrets: dict[str, str], told: IO[bytes]) -> int:
    """The process of its own."""
    os.setsid()
    log = os.open(folder.log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    null = os.open(os.devnull, os.O_RDWR)
    for descriptor, source in ((0, null), (1, log), (2, log)):
        os.dup2(source, descriptor)
    try:
        asyncio.run(supervise(folder, secrets, told))
    except (Taken, SandboxError, OSError, ValueError) as error:
        sys.stderr.write(f"{error}\n")
        if not told.closed:
            with contextlib.suppress(BrokenPipeError):  # nobody is there to hear it any more
                told.write(str(error).encode())
                told.close()
        if isinstance(error, Taken):
            return 1
        write_lasting(folder.lost, HostLost(reason=str(error), when=utc_now(), worked_s=0.0).model_dump_json())
        return 1
    return 0


def main() -> int:
    folder = HostFolder(Path(sys.argv[1]).absolute())
    secrets = json.load(sys.stdin)
    hearing, told = os.pipe()
    if os.fork() == 0:
        os.close(hearing)
        with open(told, "wb", buffering=0) as pipe:
            os._exit(_live(folder, secrets, pipe))
    os.close(told)
    with open(hearing, "rb") as pipe:
        said = pipe.read()
    if said == STARTED:
        return 0
    sys.stdout.write(said.decode(errors="replace") or f"the supervisor ended before it began: see {folder.log}")
    return 1


if __name__ == "__main__":
    sys.exit(main())
