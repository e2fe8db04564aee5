"""`stepwell ptb override`: a person decides otherwise than a trial's checks or judges."""

import argparse
import asyncio
import getpass
import os
import socket
import sys
from typing import TYPE_CHECKING

from cli.arguments import Subparsers

if TYPE_CHECKING:
    from stepwell.ptb.trials.fold import TrialFold
    from workers.services.addresses import Addresses

ABOUT = ("identity", "contamination", "distillation", "lookup", "evaluation_edits", "derived_data")


def add_parser(actions: Subparsers) -> None:
    """Adds the action."""
    parser = actions.add_parser(
        "override",
        help="decide otherwise than a trial's checks or judges, with a reason",
        description="Appends a decision beside what was found, which stands. It holds for exactly that: for other "
        "votes or another report it does not. Exit status 2 if there is nothing to decide on.",
    )
    parser.add_argument("run_set", metavar="RUN-SET", help="name of the run set")
    parser.add_argument("cell", metavar="TRIAL", help="name of the trial in it, as `ptb status` lists it")
    parser.add_argument("--about", required=True, choices=ABOUT, help="the check or charge")
    parser.add_argument("--violation", required=True, choices=("yes", "no"), help="what holds from now on")
    parser.add_argument("--reason", required=True, help="why, in words that a reader of the result can check")
    parser.add_argument("--by", default="", metavar="WHO", help="who decides (default: user and host)")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Appends the decision; 2 if it cannot be one."""
    from cli.services_to_read import services_to_read  # imported here: the stores take a while

    if len(args.reason.strip()) < LEAST_REASON:
        print(
            f"stepwell ptb override: --reason {args.reason!r}: wanted {LEAST_REASON} characters or more, that a reader "
            "of the result can check",
            file=sys.stderr,
        )
        return 2
    with services_to_read() as addresses:
        return asyncio.run(_override(addresses, args))


LEAST_REASON = 10
"""Characters."""


async def _override(addresses: "Addresses", args: argparse.Namespace) -> int:
    from activities.trial_streams import NoSuchRunSet
    from db.database import Database
    from db.ledger import Ledger
    from stepwell.events import TrialOverridden
    from stepwell.events.streams import override_stream, trial_stream
    from stepwell.ptb.trials.fold import NoTrial, fold_trial

    database = Database(addresses.appender, pool_size=1)
    try:
        ledger = Ledger(database)
        recorded = await ledger.read(trial_stream(args.run_set, args.cell))
        try:
            of = _found(fold_trial([each.event for each in recorded]), args.about)
        except NoTrial as error:
            raise NoSuchRunSet(f"run set {args.run_set!r} has no trial {args.cell!r} that has begun") from error
        if of is None:
            print(f"stepwell ptb override: {args.cell} has no verdict on {args.about} yet", file=sys.stderr)
            return 2
        stream = override_stream(args.run_set, args.cell)
        number = len(await ledger.read(stream))
        event = TrialOverridden(
            number=number,
            of=of,
            about=args.about,
            violation=args.violation == "yes",
            reason=args.reason.strip(),
            by=args.by.strip() or f"{getpass.getuser()}@{socket.gethostname()}",
        )
        actor = f"operator:{socket.gethostname()}/{os.getpid()}"
        await ledger.append(stream, [event], expected_seq=number, actor=actor)
    finally:
        await database.close()
    print(f"{args.cell}: {args.about} is {'a' if event.violation else 'no'} violation from now on, by {event.by}")
    return 0


def _found(fold: "TrialFold", about: str) -> str | None:
    """Digest of what a decision would be for."""
    reports = {each.check: each.report for each in fold.checks}
    votes = {each.charge: each.judged for each in fold.judgements}
    return {**reports, **votes}.get(about)
