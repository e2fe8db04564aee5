"""`stepwell audit verify`: checks a run, finished or not, from its ledger and its blobs alone."""

import argparse
import asyncio
import json
from dataclasses import asdict
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from stepwell.audit.fate_ledger import FateLedger
    from stepwell.audit.finding import RuleResult
    from stepwell.audit.verification import Verification
    from workers.services.addresses import Addresses

SHOWN = 5
"""Findings of a rule, and causes of fates, that are printed; `--json` gives all."""


def add_parser(
    actions: "argparse._SubParsersAction[argparse.ArgumentParser]",  # pyright: ignore[reportPrivateUsage]  # no public name
) -> None:
    """Adds the action."""
    action = actions.add_parser(
        "verify",
        help="check everything that must hold of a run",
        description="Checks chains, commitments, blobs, fates, what operators did and what follows from them; of a run "
        "that is not finished, what stands. Then says what became of every prompt, and whether what was trained is as "
        "long as what was generated. Exit 0 if every rule holds, 1 if not, 2 if there is no such run.",
    )
    action.add_argument("name", metavar="RUN", help="name of the run")
    action.add_argument("--json", action="store_true", help="print one JSON object, with every finding")
    action.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Verifies; 0 if every rule holds."""
    from db.migrate import check  # imported here: they take a second, which `--help` should not
    from workers.services.addresses import resolve
    from workers.services.lifecycle import held

    resolve()  # says what to do where there never were any services, instead of starting empty ones
    with held() as addresses:
        check(addresses.auditor)
        verification = asyncio.run(_verify(addresses, args.name))
    if args.json:
        said = {**asdict(verification), "ledger": verification.ledger.as_json()}
        said |= {"taint": verification.taint.as_json(), "holds": verification.holds}
        print(json.dumps(said))
    else:
        print("\n".join(lines(verification)))
    return 0 if verification.holds else 1


def lines(verification: "Verification") -> list[str]:
    """What is printed: a line a rule, under each that fails its first findings, then the fates, then the outcome."""
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
    said += ["", *_fates(verification.ledger), ""]
    if verification.taint.marks:
        said += [verification.taint.words(), ""]
    failed = [result for result in verification.results if result.findings]
    if not failed:
        said.append("every rule holds")
    else:
        first = failed[0]
        said.append(
            f"{len(failed)} of {len(verification.results)} rules fail. Look first at {first.findings[0].stream}:"
        )
        said.append(f"it breaks `{first.rule}` ({first.holds})")
    return said


def _fates(ledger: "FateLedger") -> list[str]:
    """Prompts dispatched as the sum of their fates, why some were not trained, and the lengths."""
    said: list[str] = []
    for name, fates in (("training", ledger.training), ("validation", ledger.validation)):
        said.append(f"prompts of {name}: {fates.words()}")
        said += [f"        {cause}" for cause in fates.causes[:SHOWN]]
        if len(fates.causes) > SHOWN:
            said.append(f"        and {len(fates.causes) - SHOWN:,} more; --json names all")
    return said + [compared.words() for compared in ledger.lengths]


def _count(result: "RuleResult") -> str:
    failed = f", {len(result.findings):,} do not hold" if result.findings else ""
    return f"{result.checked:,} {result.unit}{failed}"


async def _verify(addresses: "Addresses", name: str) -> "Verification":
    """Reads and verifies a run.

    Raises:
        NoSuchRun: there is none of this name.
    """
    from cli.reading import open_reader
    from db.blobs import BlobStore
    from db.database import Database
    from db.objects import ObjectStore
    from db.run_record import read_run
    from stepwell.audit.verification import verify

    async with open_reader(addresses) as reader:
        await reader.require(name)
    database, objects = Database(addresses.auditor), ObjectStore(addresses.bucket)
    try:
        record = await read_run(database, BlobStore(database, objects), name)
        assert record is not None, f"run {name} has events, and no record"
        return verify(record)
    finally:
        await objects.close()
        await database.close()
