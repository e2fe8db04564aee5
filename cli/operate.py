"""`stepwell pause | resume | stop RUN --reason …`: an operator's word, accepted or refused by the run's workflow."""

import argparse
import asyncio
import getpass
import json
import socket
import sys

from temporalio.client import WorkflowUpdateFailedError
from temporalio.service import RPCError, RPCStatusCode

from stepwell.contracts.operators import OperatorNote
from stepwell.contracts.run import Progress
from workers.runtime import connect
from workers.services.addresses import resolve
from workflows.ids import run_id

ACTIONS = {
    "pause": "begin no new step, validation or training until `resume`; what is under way is finished",
    "resume": "end a pause",
    "stop": "end the run at the next step's boundary",
}


def add_parser(
    subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]",  # pyright: ignore[reportPrivateUsage]  # no public name
) -> None:
    """Adds a verb for each action."""
    for action, explanation in ACTIONS.items():
        parser = subparsers.add_parser(action, help=explanation, description=explanation)
        parser.add_argument("run_name", metavar="RUN", help="name of the run")
        parser.add_argument("--reason", required=action != "resume", default="", help="why; kept in the ledger")
        parser.add_argument("--json", action="store_true", help="print the run's state as JSON")
        parser.set_defaults(run=run, action=action)


def run(arguments: argparse.Namespace) -> int:
    """Sends the Update; 0 if it was accepted."""
    try:
        progress = asyncio.run(_send(arguments.run_name, arguments.action, arguments.reason))
    except WorkflowUpdateFailedError as error:
        print(f"stepwell: {arguments.action} was refused: {error.cause}", file=sys.stderr)
        return 1
    except RPCError as error:
        if error.status != RPCStatusCode.NOT_FOUND:
            raise
        name = arguments.run_name
        print(
            f"stepwell: no run {name!r} is under way; `stepwell report {name}` shows one that has ended",
            file=sys.stderr,
        )
        return 2
    if arguments.json:
        print(json.dumps(progress.model_dump(mode="json")))
    else:
        print(f"{arguments.run_name}: {progress.state}; waits for {progress.waiting_for}")
    return 0


async def _send(run_name: str, action: str, reason: str) -> Progress:
    client = await connect(resolve(), identity=f"{getpass.getuser()}@{socket.gethostname()}")
    handle = client.get_workflow_handle(run_id(run_name))
    return await handle.execute_update(action, OperatorNote(reason=reason), result_type=Progress)
