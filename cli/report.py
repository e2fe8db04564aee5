"""`stepwell report RUN`: the run's page, or its figures as JSON, from the ledger alone."""

import argparse
import asyncio
import json
import sys
from pathlib import Path


def add_parser(
    subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]",  # pyright: ignore[reportPrivateUsage]  # no public name
) -> None:
    """Adds the verb."""
    parser = subparsers.add_parser(
        "report",
        help="write a run's page",
        description="Writes one self-contained HTML page with the run's curves, and prints its summary. Exit 0 if it "
        "is written, 1 if it cannot be, 2 if there is no such run.",
    )
    parser.add_argument("name", metavar="RUN", help="name of the run")
    parser.add_argument("--output", type=Path, metavar="PATH", help="file to write (default: reports/RUN.html at home)")
    parser.add_argument("--json", action="store_true", help="print one JSON object; write the page only with --output")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Writes the page; 0 if it stands."""
    from cli.live import summary  # imported here: they take a second, which `--help` should not
    from cli.live.following import look
    from cli.live.page_file import CannotWrite, default_page
    from db.migrate import check
    from stepwell.report.snapshot import snapshot
    from workers.services.addresses import resolve
    from workers.services.lifecycle import held

    page: Path | None = args.output or (None if args.json else default_page(args.name))
    resolve()  # says what to do where there never were any services, instead of starting empty ones
    try:
        with held() as addresses:
            check(addresses.auditor)
            picture = asyncio.run(look(addresses, args.name, page))
    except CannotWrite as error:
        print(f"stepwell: {error}", file=sys.stderr)
        return 1
    print(json.dumps(snapshot(picture)) if args.json else summary(picture, page))
    return 0
