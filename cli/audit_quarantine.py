"""`stepwell audit quarantine`: marks rollouts that are not to be trusted, and says what is tainted by them."""

import argparse
import asyncio
import json
import sys
from typing import TYPE_CHECKING, NamedTuple

from cli.arguments import Subparsers, add_run

if TYPE_CHECKING:
    from stepwell.audit.provenance.reference import Ref
    from stepwell.audit.taint import Taint
    from workers.services.addresses import Addresses

TRIES = 10
"""Two operators collide now and then."""


class Quarantined(NamedTuple):
    """What stands."""

    taint: "Taint"
    """What is tainted."""
    appended: int
    """Events that were appended now."""


def add_parser(actions: Subparsers) -> None:
    """Adds the action."""
    parser = actions.add_parser(
        "quarantine",
        help="mark rollouts as tainted, with every version that was trained on them",
        description="Records who does not trust which rollouts, and why. Every version that was trained on one, and "
        "each after it, is tainted from then on; `explain`, `verify` and `report` say so. Names the last clean version "
        "to fork from. Without --rollout it says what is tainted. What was marked is not marked again. Exit 0 if it "
        "stands, 1 if it cannot be recorded, 2 if there is no such run or rollout.",
    )
    add_run(parser)
    parser.add_argument(
        "--rollout",
        action="append",
        default=[],
        metavar="STEP/PROMPT/SAMPLE",
        help="which, as 3/1/0, or v24-main/1/0 of a validation; may be given more than once",
    )
    parser.add_argument("--reason", default="", help="why; kept in the ledger")
    parser.add_argument("--clear", action="store_true", help="take the mark back")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Marks, and tells."""
    from cli.services_to_read import services_to_read  # imported here: they take a second, which `--help` should not

    wrong = _wrong(args)
    if wrong:
        print(f"stepwell audit quarantine: {wrong}", file=sys.stderr)
        return 2
    with services_to_read() as addresses:
        found = asyncio.run(_quarantine(addresses, args))
    if args.json:
        print(json.dumps({"run": args.name, "appended": found.appended, **found.taint.as_json()}))
    else:
        print("\n".join(lines(found.taint, found.appended, asked=bool(args.rollout))))
    return 0


def lines(taint: "Taint", appended: int, *, asked: bool) -> list[str]:
    """What is printed: what was recorded, the marks, what follows."""
    said = [f"{appended} recorded" if appended else "nothing to record: it stands so already"] if asked else []
    said += [
        f"{mark.rollout} ({taint.parts[mark.rollout].value}): {mark.reason}, by {mark.who}" for mark in taint.marks
    ]
    return [*said, taint.words() or "nothing is marked as tainted"]


def _wrong(args: argparse.Namespace) -> str | None:
    """What is wrong with the arguments."""
    if args.rollout and not args.reason.strip():
        return "--reason is needed: why is the rollout not to be trusted, or again to be"
    if not args.rollout and (args.reason or args.clear):
        return "--reason and --clear do nothing without --rollout STEP/PROMPT/SAMPLE"
    return None


def _rollout(text: str) -> "Ref":
    from stepwell.audit.provenance.reference import NoSuchThing, parse

    ref = parse(f"rollout/{text.removeprefix('rollout/')}")
    if ref.kind != "rollout":
        raise NoSuchThing(f"--rollout {text}: a whole rollout is marked, as {'/'.join(ref.parts[:3])}")
    return ref


async def _quarantine(addresses: "Addresses", args: argparse.Namespace) -> Quarantined:
    """Marks, or clears, and says what is tainted then.

    Raises:
        NoSuchRun: there is none of this name.
        NoSuchThing: it has no such rollout.
        Fenced: others were always faster.
    """
    import getpass
    import socket

    from cli.reading import open_reader
    from db.blobs import BlobStore
    from db.database import Database
    from db.errors import Fenced
    from db.ledger import Ledger
    from db.objects import ObjectStore
    from db.run_source import SourceReader
    from stepwell.audit.provenance.graph import node_of
    from stepwell.audit.provenance.places import stream_of, taint
    from stepwell.audit.provenance.reference import NoSuchThing
    from stepwell.audit.taint import clearing, marking
    from stepwell.events.streams import quarantine_stream

    run: str = args.name
    wanted = [_rollout(text) for text in args.rollout]
    async with open_reader(addresses) as reader:
        await reader.require(run)
    # The auditor's role cannot append, and shall not: an operator does, who has the workers' role.
    database, objects = Database(addresses.appender if wanted else addresses.auditor), ObjectStore(addresses.bucket)
    try:
        source = SourceReader(Ledger(database), BlobStore(database, objects), run)
        await source.open()
        for ref in wanted:
            if not (await source.answer(lambda read, ref=ref: node_of(read, ref))).events:
                raise NoSuchThing(f"{ref} is not begun: there is nothing to mark")
        who, ledger, stream = f"{getpass.getuser()}@{socket.gethostname()}", Ledger(database), quarantine_stream(run)
        rollouts, appended = [stream_of(source.source, ref) for ref in wanted], 0
        for attempt in range(TRIES if wanted else 0):
            standing = [(each.seq, each.event) for each in await ledger.read(stream)]
            events = (clearing if args.clear else marking)(standing, rollouts, who, args.reason.strip())
            if not events:
                break
            try:
                await ledger.append(stream, events, expected_seq=len(standing), actor=f"operator:{who}")
            except Fenced:
                if attempt == TRIES - 1:
                    raise
                continue
            appended = len(events)
            break
        await source.open()
        return Quarantined(await source.answer(taint), appended)
    finally:
        await objects.close()
        await database.close()
