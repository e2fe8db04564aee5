"""`stepwell up`: starts the embedded services, which run until `stepwell down`."""

import argparse
import sys

from cli.arguments import Subparsers


def add_parser(subparsers: Subparsers) -> None:
    """Adds the verb."""
    parser = subparsers.add_parser(
        "up",
        help="start the embedded services: Temporal, PostgreSQL, S3",
        description="Starts the embedded services and returns when they can be used; they run until `stepwell down`. "
        "A service whose address is given by environment (STEPWELL_TEMPORAL_ADDRESS, STEPWELL_DATABASE_URL, "
        "STEPWELL_S3_ENDPOINT) is used and not started. The home is $STEPWELL_HOME, .stepwell by default.",
    )
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Starts them and prints where they are."""
    del args
    # Imported here: the clients of three servers take a second, which other verbs should not pay.
    from workers.services.errors import ServiceError
    from workers.services.external import shown_address
    from workers.services.lifecycle import up
    from workers.services.settings import ServiceName

    try:
        addresses = up()
    except ServiceError as error:
        print(f"stepwell up: {error}", file=sys.stderr)
        return 1
    for service in ServiceName:
        print(f"{service:<10} {shown_address(addresses, service)}")
    if addresses.temporal_ui:
        print(f"{'web pages':<10} {addresses.temporal_ui}")
    return 0
