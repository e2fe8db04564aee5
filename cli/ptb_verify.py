"""`stepwell ptb verify`: checks a run set of trials, finished or not, from its ledger and its blobs alone."""

import argparse
import asyncio
import json
from dataclasses import asdict, replace
from typing import TYPE_CHECKING

from cli.arguments import Subparsers
from cli.rule_lines import outcome_lines, rule_lines

if TYPE_CHECKING:
    from stepwell.audit.record import RunRecord
    from stepwell.ptb.trials.audited import RunSetRecord
    from stepwell.ptb.trials.verification import RunSetVerification
    from workers.services.addresses import Addresses


def add_parser(actions: Subparsers) -> None:
    """Adds the action."""
    parser = actions.add_parser(
        "verify",
        help="check everything that must hold of a run set",
        description="Checks chains and blobs, and that phases, starts, prompts, budgets, checks, votes, passes and "
        "records are what the recipe and the events before them make them; of a run set that is not finished, what "
        "stands. Names the first event that breaks a rule. Exit 0 if every rule holds, 1 if not, 2 if there is no such "
        "run set.",
    )
    parser.add_argument("run_set", metavar="RUN-SET", help="name of the run set")
    parser.add_argument(
        "--files",
        action="store_true",
        help="hash the models and benchmark files that the recipe names on this machine too, and compare",
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object, with every finding")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Verifies; 0 if every rule holds."""
    from cli.services_to_read import services_to_read  # imported here: the stores take a while

    with services_to_read() as addresses:
        verification = asyncio.run(_verify(addresses, args.run_set, with_files=args.files))
    if args.json:
        print(json.dumps({**asdict(verification), "holds": verification.holds}))
    else:
        print("\n".join(lines(verification)))
    return 0 if verification.holds else 1


def lines(verification: "RunSetVerification") -> list[str]:
    """What is printed: what there is, a line a rule, then the outcome."""
    state = "finished" if verification.finished else "not finished: what stands is verified"
    said = [
        f"run set {verification.run_set} ({state}), {verification.trials:,} trials, {verification.scored:,} with a "
        f"record, {verification.streams:,} streams, {verification.events:,} events",
        f"its own stream ends with {verification.head or 'nothing that verifies'}",
        "",
        *rule_lines(verification.results),
        "",
    ]
    if not verification.regime_known:
        said += ["the regime that it began with is not here: its passes are held against the basis of its scores", ""]
    return said + outcome_lines(verification.results)


async def _verify(addresses: "Addresses", name: str, *, with_files: bool) -> "RunSetVerification":
    """Raises NoSuchRunSet: there is none of this name."""
    from activities.trial_streams import NoSuchRunSet
    from db.blobs import BlobStore
    from db.database import Database
    from db.ledger import Ledger
    from db.objects import ObjectStore
    from db.run_set_record import read_run_set
    from stepwell.nearest_names import did_you_mean
    from stepwell.ptb.trials.verification import verify_run_set

    database, objects = Database(addresses.auditor), ObjectStore(addresses.bucket)
    try:
        stored = await read_run_set(database, BlobStore(database, objects), name)
        if stored is None:
            known = [each.removeprefix("run-set/") for each in await Ledger(database).streams("run-set/")]
            hint = did_you_mean(name, known)
            raise NoSuchRunSet(f"the ledger has no run set {name!r}" + (f"; {hint}" if hint else ""))
    finally:
        await objects.close()
        await database.close()
    return verify_run_set(await asyncio.to_thread(_with_this_machine, stored, hashes=with_files))


def _with_this_machine(stored: "RunRecord", *, hashes: bool) -> "RunSetRecord":
    """The record, with the regime if it is here, and with the digests of what the recipe names here if that is asked.

    Raises:
        RecipeError: the digests are asked, and what the recipe names is not here.
    """
    from stepwell.ptb.trials import regime_of
    from stepwell.ptb.trials.audited import RunSetRecord
    from stepwell.ptb.trials.files import digests_of
    from stepwell.recipe.loading import RecipeError

    record = RunSetRecord(stored)
    if record.recipe is None:
        return record  # a rule says so
    try:
        regime = regime_of(record.recipe)
    except RecipeError:
        regime = None  # its file was elsewhere, or is gone: what is printed says so
    return replace(record, regime_here=regime, digests_here=digests_of(record.recipe) if hashes else None)
