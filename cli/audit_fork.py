"""`stepwell audit fork`: a new run that goes on from a version of another one, and trains on at once."""

import argparse
import asyncio
import signal
import sys
from typing import TYPE_CHECKING

from cli.arguments import Subparsers
from cli.run import see_through

if TYPE_CHECKING:
    from activities.stores import Stores
    from stepwell.recipe.recipe import Recipe
    from workers.runs import KnownRun


def add_parser(actions: Subparsers) -> None:
    """Adds the action."""
    action = actions.add_parser(
        "fork",
        help="go on from a version of a run as a run of its own",
        description="Makes a run that begins with version STEP of RUN: what made that version is shared by reference, "
        "nothing is copied or trained again. Its recipe is RUN's, with what operators had set by then and what --set "
        "changes. Rollouts that RUN made and the fork would make just so (same version, task, tokens and seeds) are "
        "taken over. RUN itself is not touched, and may still be running. Then trains and shows the fork, as "
        "`stepwell run` does; the same command again goes on with a fork that is not finished.",
    )
    action.add_argument("name", metavar="RUN", help="name of the run to go on from")
    action.add_argument("--at", type=_version, required=True, metavar="STEP", help="weight version to begin with")
    action.add_argument(
        "--set", action="append", default=[], metavar="KEY=VALUE", help="changes the recipe: --set rl.estimator=grpo"
    )
    action.add_argument("--name", dest="fork", metavar="FORK", help="name of the fork (default: the recipe's next)")
    action.add_argument(
        "--no-workers",
        action="store_true",
        help="start no worker: those of a cluster, by `stepwell worker KIND`, serve the fork",
    )
    action.set_defaults(run=run)


def _version(text: str) -> int:
    version = int(text)
    if version < 0:
        raise argparse.ArgumentTypeError(f"{version} is no weight version: they are numbered from 0")
    return version


def run(args: argparse.Namespace) -> int:
    """Makes the fork, or finds it, and runs it to its end."""
    from db.migrate import bring_up  # imported here: they take a second, which `--help` should not
    from workers.forks import find_or_fork
    from workers.preflight import preflight
    from workers.services.addresses import resolve
    from workers.services.lifecycle import held

    async def find(stores: "Stores") -> "tuple[KnownRun, Recipe]":
        known, recipe = await find_or_fork(stores, args.name, args.at, args.set, args.fork)
        if not args.no_workers:
            await preflight(recipe)
        print(f"run {known.name} goes on from version {args.at} of {args.name}", file=sys.stderr)
        return known, recipe

    resolve()  # says what to do where there never were any services, instead of starting empty ones
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    with held() as addresses:
        bring_up(addresses.migrator, addresses.appender)
        return asyncio.run(see_through(addresses, find, with_workers=not args.no_workers))
