"""`stepwell ptb status` and `stepwell ptb results`: run sets out of the ledger."""

import argparse
import asyncio
import json

from cli.arguments import Subparsers


def add_parser(actions: Subparsers) -> None:
    """Adds both actions."""
    status = actions.add_parser(
        "status",
        help="say where the trials of a run set stand",
        description="Without a name: all run sets with the counts of their trials. With one: each of its trials, what "
        "it does or came to.",
    )
    status.add_argument("run_set", nargs="?", metavar="RUN-SET", help="name of the run set")
    status.add_argument("--json", action="store_true", help="print JSON")
    status.set_defaults(run=run_status)
    results = actions.add_parser(
        "results",
        help="print the results of a run set, for `ptb leaderboard` and `ptb review`",
        description="Prints JSON lines: the basis, and a record of each trial that has one, with what persons decided "
        "otherwise. All of it follows from the ledger.",
    )
    results.add_argument("run_set", metavar="RUN-SET", help="name of the run set")
    results.add_argument(
        "--known", action="store_true", help="print what else is known of each trial too, for `ptb review`"
    )
    results.set_defaults(run=run_results)


def run_status(args: argparse.Namespace) -> int:
    """Prints where they stand."""
    from cli.ptb_progress import as_json, line_of, summary  # imported here: rich and the stores take a while
    from cli.ptb_reading import RunSetPicture, run_set_reader
    from cli.services_to_read import services_to_read
    from workers.services.addresses import Addresses

    async def pictures(addresses: Addresses) -> list[RunSetPicture]:
        async with run_set_reader(addresses) as reader:
            names = [args.run_set] if args.run_set else await reader.names()
            return [await reader.picture(name) for name in names]

    with services_to_read() as addresses:
        found = asyncio.run(pictures(addresses))
    if args.json:
        print(json.dumps([as_json(picture) for picture in found], indent=1))
        return 0
    for picture in found:
        print(f"{picture.name}: {summary(picture)}{'; finished' if picture.finished else ''}")
        for trial in picture.trials if args.run_set else ():
            print(f"  {line_of(trial) or f'{trial.cell}: waiting'}")
    if not found:
        print("there are no run sets")
    return 0


def run_results(args: argparse.Namespace) -> int:
    """Prints the results."""
    from cli.ptb_reading import run_set_reader  # imported here, as above
    from cli.services_to_read import services_to_read
    from workers.services.addresses import Addresses

    async def lines(addresses: Addresses) -> list[str]:
        async with run_set_reader(addresses) as reader:
            picture = await reader.picture(args.run_set)
            return [*picture.results(), *(await reader.review_lines(picture) if args.known else [])]

    with services_to_read() as addresses:
        print("\n".join(asyncio.run(lines(addresses))))
    return 0
