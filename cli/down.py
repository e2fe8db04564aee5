"""`stepwell down`: stops the embedded services, and ends the agents of trials."""

import argparse
import sys

from cli.arguments import Subparsers


def add_parser(subparsers: Subparsers) -> None:
    """Adds the verb."""
    parser = subparsers.add_parser(
        "down",
        help="stop the embedded services, and the agents of trials; their data stays",
        description="Stops the embedded services of the home, whoever uses them, and ends the agents of its trials, "
        "which nothing else ends before their time: their trials start again from their start. Data stays.",
    )
    parser.add_argument(
        "--purge", action="store_true", help="remove their data, passwords and logs too: the ledger of every run"
    )
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Stops them and says which ran."""
    # Imported here, as in `up`.
    from workers.services.errors import ServiceError
    from workers.services.lifecycle import down, purge
    from workers.trial_agents import end_agents

    failures: list[Exception] = []
    stopped: list[str] = []
    try:  # the services first: without them no worker starts a trial again whose agent was ended
        stopped += purge() if args.purge else down()
    except ServiceError as error:
        failures.append(error)
    try:
        stopped += [f"the agent in {folder}" for folder in end_agents("`stepwell down`")]
    except OSError as error:
        failures.append(error)
    if stopped or not failures:
        print(f"stopped: {', '.join(stopped)}" if stopped else "nothing ran")
    for failure in failures:
        print(f"stepwell down: {failure}", file=sys.stderr)
    return 1 if failures else 0
