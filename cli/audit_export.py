"""`stepwell audit export`: a run in files, with a program that checks them without Stepwell."""

import argparse
import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from cli.arguments import Subparsers, add_run

if TYPE_CHECKING:
    from cli.audit_stores import AuditStores
    from db.run_export import Exported

SHOWN = 5
"""Missing blobs that are printed; `--json` gives all."""


def add_parser(actions: Subparsers) -> None:
    """Adds the action."""
    action = actions.add_parser(
        "export",
        help="write the run to files that can be checked without Stepwell",
        description="Writes every event and blob of a run, as they stand at one moment, and verify.py, which checks "
        "them with Python 3.11 alone. Exit 0 if everything was there, 1 if the store lacks blobs that the run names, 2 "
        "for what cannot be written.",
    )
    add_run(action)
    action.add_argument("--out", required=True, type=Path, metavar="PATH", help="a new folder, or a file NAME.tar")
    action.add_argument(
        "--without",
        action="append",
        default=[],
        metavar="DIGEST",
        help="leave a blob out, for privacy: its digest stays committed to, and the verifier says that it is not there",
    )
    action.add_argument("--json", action="store_true", help="print one JSON object")
    action.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Exports."""
    from cli.audit_stores import on_run  # imported here: it takes a second, which `--help` should not

    exported = on_run(args.name, lambda stores: _export(stores, args.name, args.out, args.without))
    if args.json:
        print(json.dumps({**asdict(exported), "out": str(args.out)}))
    else:
        print("\n".join(lines(exported, args.out)))
    return 1 if exported.missing else 0


def lines(exported: "Exported", out: Path) -> list[str]:
    """What is printed."""
    said = [
        f"{out}: {exported.streams:,} streams, {exported.events:,} events, {exported.blobs:,} blobs",
        *(f"left out: blob {digest}" for digest in exported.withheld),
        *(f"not there: {why}" for why in list(exported.missing.values())[:SHOWN]),
    ]
    if len(exported.missing) > SHOWN:
        said.append(f"and {len(exported.missing) - SHOWN:,} more; --json names all")
    place = out.with_suffix("") if out.suffix == ".tar" else out
    unpack = f"tar xf {out}, then " if out.suffix == ".tar" else ""
    return [*said, f"check it with: {unpack}python3 {place}/verify.py {place} --anchor 'LINE of stepwell audit anchor'"]


async def _export(stores: "AuditStores", name: str, out: Path, without: list[str]) -> "Exported":
    from db.run_export import export_run
    from stepwell.audit.bundle import BundleWriter

    with BundleWriter(out) as writer:
        exported = await export_run(stores.database, stores.blobs, name, writer, without=set(without))
    assert exported is not None, f"run {name} has events, and nothing to export"
    return exported
