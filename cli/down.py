"""`stepwell down`: stops the embedded services."""

import argparse
import sys

from cli.arguments import Subparsers


def add_parser(subparsers: Subparsers) -> None:
    """Adds the verb."""
    parser = subparsers.add_parser(
        "down",
        help="stop the embedded services; their data stays",
        description="Stops the embedded services of the home, whoever uses them. Their data stays.",
    )
    parser.add_argument(
        "--purge", action="store_true", help="remove their data, passwords and logs too: the ledger of every run"
    )
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Stops them and says which ran."""
    from workers.services.errors import ServiceError  # imported here, as in `up`
    from workers.services.lifecycle import down, purge

    try:
        stopped = purge() if args.purge else down()
    except ServiceError as error:
        print(f"stepwell down: {error}", file=sys.stderr)
        return 1
    print(f"stopped: {', '.join(stopped)}" if stopped else "nothing ran")
    return 0
