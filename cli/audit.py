"""`stepwell audit verify`: checks a run, finished or not, from its ledger and its blobs alone."""

import argparse
import asyncio
import difflib
import json
import sys
from dataclasses import asdict

from db.blobs import BlobStore
from db.database import Database
from db.errors import BlobStoreUnavailable, DatabaseUnavailable, NewerDatabase, OldDatabase
from db.ledger import Ledger
from db.migrate import check
from db.objects import ObjectStore
from db.run_record import read_run
from stepwell.audit.finding import RuleResult
from stepwell.audit.verification import Verification, verify
from workers.services.addresses import Addresses, resolve
from workers.services.errors import ServiceError
from workers.services.lifecycle import held

SHOWN = 5
"""Findings of a rule that are printed; `--json` gives all."""


class UnknownRun(LookupError):
    """The ledger has no run of this name."""


def add_parser(
    subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]",  # pyright: ignore[reportPrivateUsage]  # no public name
) -> None:
    """Adds the verb."""
    parser = subparsers.add_parser("audit", help="check a run from its ledger")
    actions = parser.add_subparsers(dest="audit_action", required=True)
    action = actions.add_parser(
        "verify",
        help="check everything that must hold of a run",
        description="Checks chains, commitments, blobs, fates and what follows from them; of a run that is not "
        "finished, what stands. Exit 0 if every rule holds, 1 if not, 2 if there is no such run.",
    )
    action.add_argument("name", metavar="RUN", help="name of the run")
    action.add_argument("--json", action="store_true", help="print one JSON object, with every finding")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Verifies; 0 if every rule holds."""
    try:
        resolve()  # says what to do where there never were any services, instead of starting empty ones
        with held() as addresses:
            check(addresses.auditor)
            verification = asyncio.run(_verify(addresses, args.name))
    except UnknownRun as error:
        print(f"stepwell audit verify: {error}", file=sys.stderr)
        return 2
    except (ServiceError, OldDatabase, NewerDatabase, DatabaseUnavailable, BlobStoreUnavailable) as error:
        print(f"stepwell audit verify: {error}", file=sys.stderr)
        return 1
    if args.json:
        print(json.dumps({**asdict(verification), "holds": verification.holds}))
    else:
        print("\n".join(lines(verification)))
    return 0 if verification.holds else 1


def lines(verification: Verification) -> list[str]:
    """What is printed: a line a rule, under each that fails its first findings, then the outcome."""
    state = f"ended: {verification.finished}" if verification.finished else "not finished: what stands is verified"
    said = [
        f"run {verification.run} ({state}), {verification.streams:,} streams, {verification.events:,} events",
        "",
    ]
    for result in verification.results:
        said.append(f"{'failed' if result.findings else 'ok':<7} {result.rule:<13} {_count(result)}")
        said += [f"        {finding}" for finding in result.findings[:SHOWN]]
        if len(result.findings) > SHOWN:
            said.append(f"        and {len(result.findings) - SHOWN:,} more; --json names all")
    failed = [result for result in verification.results if result.findings]
    said.append("")
    if not failed:
        said.append("every rule holds")
    else:
        first = failed[0]
        said.append(
            f"{len(failed)} of {len(verification.results)} rules fail. Look first at {first.findings[0].stream}:"
        )
        said.append(f"it breaks `{first.rule}` ({first.holds})")
    return said


def _count(result: RuleResult) -> str:
    failed = f", {len(result.findings):,} do not hold" if result.findings else ""
    return f"{result.checked:,} {result.unit}{failed}"


async def _verify(addresses: Addresses, name: str) -> Verification:
    """Reads and verifies a run.

    Raises:
        UnknownRun: there is none of this name.
    """
    database, objects = Database(addresses.auditor), ObjectStore(addresses.bucket)
    try:
        record = await read_run(database, BlobStore(database, objects), name)
        if record is None:
            raise UnknownRun(await _unknown(Ledger(database), name))
        return verify(record)
    finally:
        await objects.close()
        await database.close()


async def _unknown(ledger: Ledger, name: str) -> str:
    known = [stream.removeprefix("run/") for stream in await ledger.streams("run/")]
    if not known:
        return f"no run {name!r}: the ledger has no runs; `stepwell run RECIPE` makes one"
    nearest = difflib.get_close_matches(name, known, n=1)
    hint = f"did you mean {nearest[0]!r}?" if nearest else f"there are {', '.join(sorted(known)[-10:])}"
    return f"no run {name!r}: {hint}"
