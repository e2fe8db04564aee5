"""`stepwell audit anchor`: the key and the newest signed head of a run in one line, to be kept elsewhere."""

import argparse
import json
from dataclasses import asdict
from typing import TYPE_CHECKING

from cli.arguments import Subparsers, add_run

if TYPE_CHECKING:
    from cli.audit_stores import AuditStores
    from stepwell.audit.signed import Anchor


def add_parser(actions: Subparsers) -> None:
    """Adds the action."""
    action = actions.add_parser(
        "anchor",
        help="print the run's key and newest signed head, to be kept elsewhere",
        description="One line. Keep it where those who have the ledger cannot write: `audit verify --anchor` and the "
        "verifier of an export then tell whether what stood at this moment still does. Of a run that is not signed, it "
        "names the head of the run's stream.",
    )
    add_run(action)
    action.add_argument("--json", action="store_true", help="print one JSON object")
    action.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Prints the anchor."""
    from cli.audit_stores import on_run  # imported here: it takes a second, which `--help` should not

    anchor = on_run(args.name, lambda stores: _anchor(stores, args.name))
    print(json.dumps({**asdict(anchor), "line": anchor.line()}) if args.json else anchor.line())
    return 0


async def _anchor(stores: "AuditStores", name: str) -> "Anchor":
    from stepwell.audit.signed import Anchor
    from stepwell.events import KeyDeclared
    from stepwell.events.streams import run_stream, seal_stream

    stream, recorded = seal_stream(name), await stores.reader.stream(seal_stream(name))
    if not recorded:
        stream, recorded = run_stream(name), await stores.reader.stream(run_stream(name))
    first, head = recorded[0].event, recorded[-1].head
    return Anchor(first.public_key if isinstance(first, KeyDeclared) else "", stream, head.seq, head.hash)
