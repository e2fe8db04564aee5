"""`stepwell audit verify`: checks a run, finished or not, from its ledger and its blobs alone."""

import argparse
import json
from dataclasses import asdict
from typing import TYPE_CHECKING

from cli.arguments import Subparsers, add_run
from cli.rule_lines import outcome_lines, rule_lines

if TYPE_CHECKING:
    from cli.audit_stores import AuditStores
    from stepwell.audit.fate_ledger import FateLedger
    from stepwell.audit.signed import Anchor
    from stepwell.audit.verification import Verification

SHOWN = 5
"""Causes of fates that are printed; `--json` gives all."""


def add_parser(actions: Subparsers) -> None:
    """Adds the action."""
    action = actions.add_parser(
        "verify",
        help="check everything that must hold of a run",
        description="Checks chains, commitments, blobs, fates, what operators did and what follows from them; of a run "
        "that is not finished, what stands. Then says what became of every prompt, and whether what was trained is as "
        "long as what was generated. Exit 0 if every rule holds, 1 if not, 2 if there is no such run.",
    )
    add_run(action)
    action.add_argument(
        "--anchor",
        action="append",
        default=[],
        metavar="LINE",
        help="what `stepwell audit anchor` printed once, and was kept elsewhere: it must still stand",
    )
    action.add_argument("--json", action="store_true", help="print one JSON object, with every finding")
    action.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Verifies; 0 if every rule holds."""
    from cli.audit_stores import on_run  # imported here: it takes a second, which `--help` should not
    from stepwell.audit.signed import Anchor

    anchors = [Anchor.parse(line) for line in args.anchor]
    verification = on_run(args.name, lambda stores: _verify(stores, args.name, anchors))
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
    said += rule_lines(verification.results)
    said += ["", *_fates(verification.ledger), verification.signed.words(), ""]
    if verification.taint.marks:
        said += [verification.taint.words(), ""]
    return said + outcome_lines(verification.results)


def _fates(ledger: "FateLedger") -> list[str]:
    """Prompts dispatched as the sum of their fates, why some were not trained, and the lengths."""
    said: list[str] = []
    for name, fates in (("training", ledger.training), ("validation", ledger.validation)):
        said.append(f"prompts of {name}: {fates.words()}")
        said += [f"        {cause}" for cause in fates.causes[:SHOWN]]
        if len(fates.causes) > SHOWN:
            said.append(f"        and {len(fates.causes) - SHOWN:,} more; --json names all")
    return said + [compared.words() for compared in ledger.lengths]


async def _verify(stores: "AuditStores", name: str, anchors: "list[Anchor]") -> "Verification":
    from db.run_record import read_run
    from stepwell.audit.verification import verify

    record = await read_run(stores.database, stores.blobs, name)
    assert record is not None, f"run {name} has events, and no record"
    return verify(record, anchors)
