"""`stepwell audit redact`: deletes payloads of a run for good, and records it; what commits to them stays."""

import argparse
import getpass
import os
import socket
from typing import TYPE_CHECKING

from cli.arguments import Subparsers, add_run

if TYPE_CHECKING:
    from cli.audit_stores import AuditStores
    from workers.services.addresses import Addresses


class NotRedacted(ValueError):
    """A blob that may not be deleted; says why."""


def add_parser(actions: Subparsers) -> None:
    """Adds the action."""
    action = actions.add_parser(
        "redact",
        help="delete payloads for good, with a reason; the events that name them stay",
        description="Deletes the bytes of blobs that a finished run names, as for privacy: turns, changed files, test "
        "reports. Their digests stay in the events, the deletion is an event of its own, and the audit says that the "
        "bytes are gone. A step whose payloads are gone cannot be trained again. Needs the role that owns the tables.",
    )
    add_run(action)
    action.add_argument("blobs", metavar="DIGEST", nargs="+", help="digests of the blobs")
    action.add_argument("--reason", required=True, help="why; it is kept in the ledger")
    action.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Deletes them."""
    from cli.audit_stores import on_run_at  # imported here: it takes a second, which `--help` should not

    if not args.reason.strip():
        raise NotRedacted("a reason is needed: it is kept in the ledger in place of the bytes")
    on_run_at(args.name, lambda addresses, stores: _redact(addresses, stores, args.name, args.blobs, args.reason))
    return 0


async def _redact(addresses: "Addresses", stores: "AuditStores", name: str, digests: list[str], reason: str) -> None:
    from db.database import Database
    from db.deletion import delete_payload
    from db.ledger import Ledger
    from db.named_blobs import blobs_named_by
    from db.objects import ObjectStore

    named = await blobs_named_by(stores.database, name)
    if not named.is_finished:
        raise NotRedacted(f"run {name} is not finished: it may still read what it recorded; stop it first")
    for digest in digests:
        if digest not in named.blobs:
            raise NotRedacted(f"no event of run {name} names the blob {digest!r}")
        if digest in named.documents | named.folders:
            raise NotRedacted(f"blob {digest} says what belongs together: nothing could be checked without it")
    who, actor = f"{getpass.getuser()}@{socket.gethostname()}", f"control:{socket.gethostname()}/{os.getpid()}"
    appender, owner = Database(addresses.appender), Database(addresses.migrator)
    objects = ObjectStore(addresses.bucket)
    try:
        for digest in digests:
            deleted = await delete_payload(
                Ledger(appender), owner, objects, digest, reason=reason, who=who, actor=actor
            )
            print(f"deleted blob {digest}: {deleted.size_bytes:,} bytes")
    finally:
        await objects.close()
        await owner.close()
        await appender.close()
