"""`stepwell rebuild`: empties the tables for reading and fills them again from the ledger."""

import argparse
import asyncio
import json
import sys
import time

from cli.arguments import Subparsers
from db.database import Database
from db.errors import DatabaseUnavailable, DiskFull, NewerDatabase, OldDatabase
from db.migrate import check
from db.projections.projector import Projector
from stepwell.events import UnknownEvent
from workers.services.addresses import resolve
from workers.services.errors import ServiceError


def add_parser(subparsers: Subparsers) -> None:
    """Adds the verb."""
    parser = subparsers.add_parser("rebuild", help="empty the tables for reading and fill them from the ledger")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Rebuilds; 1 if the database cannot be used."""
    began = time.monotonic()
    try:
        url = resolve().projector
        check(url)
        events = asyncio.run(_rebuild(url))
    except (ServiceError, OldDatabase, NewerDatabase, DatabaseUnavailable, DiskFull, UnknownEvent) as error:
        print(error, file=sys.stderr)
        return 1
    duration_s = time.monotonic() - began
    if args.json:
        print(json.dumps({"events": events, "duration_s": round(duration_s, 3)}))
    else:
        print(f"{events} events applied in {duration_s:.1f} s")
    return 0


async def _rebuild(url: str) -> int:
    database = Database(url, pool_size=2)
    try:
        return await Projector(database).rebuild()
    finally:
        await database.close()
