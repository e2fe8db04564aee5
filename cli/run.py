"""`stepwell run RECIPE`: starts a run, or goes on with the unfinished one of the same recipe, and shows it."""

import argparse
import asyncio
import math
import signal
import sys
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING

from cli.arguments import Subparsers

if TYPE_CHECKING:
    from temporalio.client import WorkflowHandle

    from activities.stores import Stores
    from cli.asking import Asked
    from cli.live import LiveView
    from cli.reading import Follower
    from stepwell.events.run_finished import RunEnd
    from stepwell.recipe.recipe import Recipe
    from workers.runs import KnownRun
    from workers.services.addresses import Addresses
    from workflows.training_run import TrainingRun

REFRESH_S = 0.5
"""Between two looks at the ledger."""
SETTLE_TRIES = 20
"""Looks for the last event of a run whose workflow has ended."""


def add_parser(subparsers: Subparsers) -> None:
    """Adds the verb."""
    parser = subparsers.add_parser(
        "run",
        help="train: start a run, or go on with it",
        description="Starts what is missing (services, workers, workflow), shows the run, and stops what it started at "
        "the end. The same command again goes on with an unfinished run. Ctrl-C stops cleanly; nothing is lost. Exit 0 "
        "if the run ended well, 1 if it failed or was left, 2 for a recipe that cannot be run.",
    )
    parser.add_argument("recipe", metavar="RECIPE", type=Path, help="TOML file, for example recipes/micro.toml")
    parser.add_argument(
        "--set", action="append", default=[], metavar="KEY=VALUE", help="changes the recipe: --set run.max_steps=2"
    )
    parser.add_argument("--name", metavar="RUN", help="name of the run (default: the recipe's name and a number)")
    parser.add_argument(
        "--no-workers",
        action="store_true",
        help="start no worker: those of a cluster, by `stepwell worker KIND`, serve the run",
    )
    parser.add_argument(
        "--dry-run",
        action="store_true",
        help="print the resolved recipe and leave; with a section [cluster], its plan too, as comments",
    )
    parser.add_argument("--json", action="store_true", help="with --dry-run: print recipe and plan in JSON")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Runs the recipe to its end."""
    # Imported here: torch and transformers, which check a recipe's models, take seconds.
    from stepwell.recipe.loading import RecipeError, load_recipe

    recipe = load_recipe(args.recipe, args.set)
    if args.dry_run:
        from cli.dry_run import dry_run

        print(dry_run(recipe, as_json=args.json), end="")
        return 0
    if args.json:
        raise RecipeError("--json goes with --dry-run: a run that begins is shown, not printed")
    from db.migrate import bring_up
    from workers.preflight import preflight, refuse_unexecutable
    from workers.services.lifecycle import held

    refuse_unexecutable(recipe)
    if not args.no_workers:
        asyncio.run(preflight(recipe))
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # both signals stop the run in the same, clean way
    with held() as addresses:
        bring_up(addresses.migrator, addresses.appender)
        return asyncio.run(_run(addresses, recipe, args.name, with_workers=not args.no_workers))


async def _run(addresses: "Addresses", recipe: "Recipe", name: str | None, *, with_workers: bool) -> int:
    from workers.runs import find_or_create

    async def find(stores: "Stores") -> "tuple[KnownRun, Recipe]":
        return await find_or_create(stores, recipe, name), recipe

    return await see_through(addresses, find, with_workers=with_workers)


async def see_through(
    addresses: "Addresses", find: "Callable[[Stores], Awaitable[tuple[KnownRun, Recipe]]]", *, with_workers: bool
) -> int:
    """Runs what `find` finds or makes to its end, shows it, and stops what it started; the exit code.

    Args:
        addresses: Of the services.
        find: The run and its recipe.
        with_workers: Whether to start workers here; else those of a cluster serve the run.
    """
    from rich.console import Console

    from cli.asking import Asked
    from cli.live import make_view, summary
    from cli.live.page_file import default_page, write_page
    from cli.reading import Follower, open_reader, workflow_page
    from cli.supervise import supervised
    from stepwell.events.run_finished import RunEnd
    from workers.runs import start
    from workers.runtime import runtime
    from workers.services.watch import quieten_client, watched

    quieten_client()
    async with runtime("control", addresses) as opened, open_reader(addresses, wait_s=math.inf) as reader:
        known, recipe = await find(opened.stores)
        follower = Follower(reader, known.name)
        view = make_view(Console(), ui_url=workflow_page(addresses, known.name))
        try:
            async with watched(addresses, view.message):
                if known.end is None:
                    workers = supervised(known.name, recipe, view.message) if with_workers else nullcontext()
                    async with _cancelled_as_left(known.name), workers:
                        handle = await start(opened.client, known.name, recipe)
                        await _follow(follower, view, Asked(reader, addresses, known.name), handle)
                await _see_the_end(follower)
                view.update(follower.picture, None)
                page = default_page(known.name)
                await write_page(reader, follower.picture, page)
        finally:
            view.close()
        print(summary(follower.picture, page))
        finished = follower.picture.finished
        return 0 if finished is not None and finished.end is not RunEnd.FAILED else 1


async def _see_the_end(follower: "Follower") -> None:
    """Reads up to the run's last event; one just appended shows when every older transaction is over."""
    for _ in range(SETTLE_TRIES):
        await follower.refresh()
        if follower.picture.finished is not None:
            return
        await asyncio.sleep(REFRESH_S)


async def _result(handle: "WorkflowHandle[TrainingRun, RunEnd]") -> "RunEnd":
    """How the workflow ended, asked for through servers that are away for a while."""
    from temporalio.service import RPCError, RPCStatusCode

    while True:
        try:
            return await handle.result()
        except RPCError as error:
            if error.status in (
                RPCStatusCode.NOT_FOUND,
                RPCStatusCode.INVALID_ARGUMENT,
                RPCStatusCode.PERMISSION_DENIED,
            ):
                raise
        await asyncio.sleep(REFRESH_S)


@asynccontextmanager
async def _cancelled_as_left(name: str) -> AsyncGenerator[None]:
    """Says on the way out that a run that was left goes on with the next command."""
    try:
        yield
    except asyncio.CancelledError:
        print(f"\nrun {name} is left where it is; the same command goes on with it", file=sys.stderr)
        raise


async def _follow(
    follower: "Follower", view: "LiveView", asked: "Asked", handle: "WorkflowHandle[TrainingRun, RunEnd]"
) -> None:
    """Shows the run until its workflow has ended."""
    asking = asyncio.create_task(asked.keep_asking())
    ended = asyncio.create_task(_result(handle))
    try:
        while True:
            over = ended.done()
            await follower.refresh()
            view.update(follower.picture, asked.word.progress, asked.word.silence)
            if over:
                if (failure := ended.exception()) is not None:
                    view.message(f"the run's workflow failed: {failure.__cause__ or failure}")
                return
            await asyncio.wait([ended], timeout=REFRESH_S)
    finally:
        asking.cancel()
        ended.cancel()
        await asyncio.wait([asking, ended])
