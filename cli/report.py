"""`stepwell report RUN`: the run's page, or its figures as JSON, from the ledger alone."""

import argparse
import asyncio
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from cli.arguments import Subparsers, add_run

if TYPE_CHECKING:
    from stepwell.report.picture import RunPicture
    from stepwell.report.verified import Verified
    from workers.services.addresses import Addresses

VERIFIED_UP_TO = 200_000
"""Events of a finished run that is verified unasked: some ten seconds."""


def add_parser(subparsers: Subparsers) -> None:
    """Adds the verb."""
    parser = subparsers.add_parser(
        "report",
        help="write a run's page",
        description="Writes one self-contained HTML page with the run's curves, and prints its summary. Exit 0 if it "
        "is written, whatever it says; 1 if it cannot be, 2 if there is no such run.",
    )
    add_run(parser)
    parser.add_argument("--output", type=Path, metavar="PATH", help="file to write (default: reports/RUN.html at home)")
    parser.add_argument("--json", action="store_true", help="print one JSON object; write the page only with --output")
    parser.add_argument(
        "--verify",
        action=argparse.BooleanOptionalAction,
        help="verify the run, and write the outcome into the page (default: for the page of a finished run of up to "
        f"{VERIFIED_UP_TO:,} events)",
    )
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Writes the page; 0 if it stands."""
    from cli.live import summary  # imported here: they take a second, which `--help` should not
    from cli.live.page_file import default_page
    from cli.services_to_read import services_to_read
    from cli.whole_file import CannotWrite
    from stepwell.report.snapshot import snapshot

    page: Path | None = args.output or (None if args.json else default_page(args.name))
    try:
        with services_to_read() as addresses:
            picture, verified = asyncio.run(_look(addresses, args.name, page, args.verify))
    except CannotWrite as error:
        print(f"stepwell: {error}", file=sys.stderr)
        return 1
    if args.json:
        print(json.dumps({**snapshot(picture), "verified": None if verified is None else verified.as_json()}))
    else:
        print(summary(picture, page))
        if verified is not None:
            print(f"Verified: {verified.words()}")
    return 0


def is_verified_unasked(picture: "RunPicture") -> bool:
    """Whether the page of a run is written with an audit of it: one that is over, and small enough."""
    return picture.finished is not None and picture.events <= VERIFIED_UP_TO


async def _look(
    addresses: "Addresses", name: str, page: Path | None, wanted: bool | None
) -> "tuple[RunPicture, Verified | None]":
    """How a run stands, and whether it verifies if that was wanted; its page is written if a place is given.

    Raises:
        NoSuchRun: there is none of this name.
        CannotWrite: the page cannot be written there.
    """
    from cli.live.page_file import write_page
    from cli.reading import Follower, open_reader
    from cli.verified import verify_run

    async with open_reader(addresses) as reader:
        await reader.require(name)
        follower = Follower(reader, name)
        await follower.refresh()
        picture = follower.picture
        if wanted is None:
            wanted = page is not None and is_verified_unasked(picture)
        verified = await verify_run(addresses, name) if wanted else None
        if page is not None:
            await write_page(reader, picture, page, verified)
        return picture, verified
