"""`stepwell pause | resume | drain | stop | skip | limit | approve | reject | set RUN …`: an operator's word.

Each is an Update of the run's workflow, which accepts it, or refuses it with a reason and without a trace. What was
accepted is an event with who, why and when.
"""

import argparse
import asyncio
import json
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from cli.arguments import Subparsers

if TYPE_CHECKING:
    from temporalio.client import Client

    from stepwell.contracts.operators import OperatorNote
    from stepwell.contracts.run import Progress
    from workers.services.addresses import Addresses

ANSWER_S = 30.0
"""Longest wait for the run's workflow."""


@dataclass(frozen=True)
class Verb:
    """One thing that operators can ask."""

    action: str
    """Its name, that of the Update too."""
    explanation: str
    """What it does."""
    add_arguments: "Callable[[argparse.ArgumentParser], object]" = lambda parser: None
    """Adds what it takes beside run and reason."""
    needs_reason: bool = True
    """Whether a reason must be given."""


VERBS = (
    Verb(
        "pause",
        "hold the run: at once (no new turn begins), or at the end of the step",
        lambda parser: parser.add_argument(
            "--at", choices=("now", "step"), default="now", help="when it takes effect (default: now)"
        ),
    ),
    Verb("resume", "end a pause or a drain", needs_reason=False),
    Verb("drain", "begin no new rollout; those that run go on to their end, what was admitted is trained"),
    Verb(
        "stop",
        "end the run: at once (open prompts are skipped), after the step, or after a validation of what it made",
        lambda parser: parser.add_argument(
            "--at", choices=("now", "step", "validation"), default="step", help="when it takes effect (default: step)"
        ),
    ),
    Verb(
        "skip",
        "take a prompt out of its step, which is under way or still to come",
        lambda parser: (
            parser.add_argument("step", metavar="STEP", help="training step, from 0"),
            parser.add_argument("prompt", metavar="PROMPT", help="index of the prompt in the step, from 0"),
        ),
    ),
    Verb(
        "limit",
        "move a limit, or take it away with `none`; a run that it held goes on",
        lambda parser: parser.add_argument(
            "assignment",
            metavar="NAME=VALUE",
            help="steps, hours, gpu_hours, generated_tokens or sandbox_minutes, and the new bound",
        ),
    ),
    Verb(
        "approve",
        "open a gate that the run waits at",
        lambda parser: parser.add_argument("gate", metavar="GATE", help="as `stepwell watch` names it"),
    ),
    Verb(
        "reject",
        "keep a gate shut: the run stops",
        lambda parser: parser.add_argument("gate", metavar="GATE", help="as `stepwell watch` names it"),
    ),
    Verb(
        "set",
        "change a key of the recipe from the next step on",
        lambda parser: parser.add_argument(
            "assignment", metavar="KEY=VALUE", help="for example optimiser.learning_rate=1e-4"
        ),
    ),
)


class NoAnswer(Exception):
    """The run's workflow said nothing in time."""


class Refused(Exception):
    """The run's workflow refused; the message is its reason."""


class NotUnderWay(Exception):
    """The run exists, and no workflow works on it."""


def add_parser(subparsers: Subparsers) -> None:
    """Adds each verb."""
    for verb in VERBS:
        parser = subparsers.add_parser(
            verb.action,
            help=verb.explanation,
            description=f"{verb.explanation[0].upper()}{verb.explanation[1:]}. Exit 0 if the run accepted it, 1 if it "
            "refused or did not answer, 2 if it cannot be asked.",
        )
        parser.add_argument("run_name", metavar="RUN", help="name of the run")
        verb.add_arguments(parser)
        parser.add_argument("--reason", required=verb.needs_reason, default="", help="why; kept in the ledger")
        parser.add_argument("--json", action="store_true", help="print the run's state as one JSON object")
        parser.set_defaults(run=run, action=verb.action)


def run(arguments: argparse.Namespace) -> int:
    """Sends the Update; 0 if it was accepted."""
    from cli.operator_notes import BadArgument, note_of  # imported here: they take a second, which `--help` should not
    from workers.services.addresses import resolve

    name, action = arguments.run_name, arguments.action
    try:
        note = note_of(action, arguments)
    except BadArgument as error:
        print(f"stepwell {action}: {error}", file=sys.stderr)
        return 2
    try:
        progress = asyncio.run(_ask(resolve(), name, action, note))
    except Refused as error:
        print(f"stepwell: {action} was refused: {error}", file=sys.stderr)
        return 1
    except NotUnderWay as error:
        print(f"stepwell: {error}", file=sys.stderr)
        return 2
    except NoAnswer as error:
        print(f"stepwell: {error}", file=sys.stderr)
        return 1
    if arguments.json:
        print(json.dumps(progress.model_dump(mode="json")))
    else:
        print(f"{name}: {progress.state}" + (f"; waits for {progress.waiting_for}" if progress.waiting_for else ""))
    return 0


async def _ask(addresses: "Addresses", name: str, action: str, note: "OperatorNote") -> "Progress":
    """What the run does after it accepted.

    Raises:
        Refused: it did not.
        NotUnderWay: there is no workflow to ask.
        NoSuchRun: there is no run of this name.
        NoAnswer: Temporal, or the workflow, did not answer.
    """
    import getpass
    import socket

    from temporalio.client import WorkflowUpdateFailedError, WorkflowUpdateRPCTimeoutOrCancelledError
    from temporalio.service import RPCError, RPCStatusCode

    from workers.runtime import connect

    try:
        client = await connect(addresses, identity=f"{getpass.getuser()}@{socket.gethostname()}")
    except RuntimeError as error:
        raise NoAnswer(f"{error}. Nothing was sent; `stepwell status` says what runs") from error
    sent = _Sent()
    try:
        async with asyncio.timeout(ANSWER_S):
            return await sent.send(client, name, action, note)
    except WorkflowUpdateFailedError as error:
        raise Refused(" ".join(str(getattr(error.cause, "message", error.cause)).split())) from error
    except (TimeoutError, WorkflowUpdateRPCTimeoutOrCancelledError) as error:
        raise NoAnswer(await _silence(addresses, name, action, accepted=sent.accepted)) from error
    except RPCError as error:
        if error.status != RPCStatusCode.NOT_FOUND:
            raise NoAnswer(f"Temporal did not take it: {error.message}; `stepwell status` says what runs") from error
        await _require(addresses, name)
        raise NotUnderWay(
            f"run {name} is not under way: it has ended, or nobody goes on with it. `stepwell report {name}` shows how "
            f"it stands; `stepwell run` with its recipe goes on with one that has not ended"
        ) from error


class _Sent:
    """An Update on its way."""

    def __init__(self) -> None:
        self.accepted = False
        """Whether the workflow took it on."""

    async def send(self, client: "Client", name: str, action: str, note: "OperatorNote") -> "Progress":
        """Sends it and waits for its result."""
        from temporalio.client import WorkflowUpdateStage

        from stepwell.contracts.run import Progress
        from workflows.ids import run_id

        handle = await client.get_workflow_handle(run_id(name)).start_update(
            action, note, wait_for_stage=WorkflowUpdateStage.ACCEPTED, result_type=Progress
        )
        self.accepted = True
        return await handle.result()


async def _silence(addresses: "Addresses", name: str, action: str, *, accepted: bool) -> str:
    """Why nobody answered, and what becomes of the request."""
    from cli.asking import ask_once
    from cli.reading import open_reader

    if accepted:
        return (
            f"{action} was accepted, but is not in force after {ANSWER_S:.0f} s: the run's workflow could not record "
            f"it yet and goes on trying; `stepwell watch {name}` shows when it is"
        )
    async with open_reader(addresses) as reader:
        await reader.require(name)
        why = (await ask_once(reader, addresses, name)).silence or "it is busy: it answers again now"
    return (
        f"run {name} did not answer within {ANSWER_S:.0f} s: {why}. The request may still be accepted when somebody "
        f"works on the run again; `stepwell report {name}` lists what was"
    )


async def _require(addresses: "Addresses", name: str) -> None:
    """Checks that the ledger has the run.

    Raises:
        NoSuchRun: it has not; names the nearest.
    """
    from cli.reading import open_reader

    async with open_reader(addresses) as reader:
        await reader.require(name)
