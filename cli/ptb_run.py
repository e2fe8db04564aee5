"""`stepwell ptb run RECIPE`: starts a run set, or goes on with the unfinished one of the same recipe, and shows it."""

import argparse
import asyncio
import fcntl
import math
import signal
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING

from cli.arguments import Subparsers

if TYPE_CHECKING:
    from temporalio.client import WorkflowHandle

    from cli.ptb_progress import RunSetView
    from cli.ptb_reading import RunSetReader
    from stepwell.contracts.trial import RunSetEnd
    from stepwell.ptb.trials import RunSetRecipe
    from workers.services.addresses import Addresses
    from workflows.run_set import RunSet

REFRESH_S = 1.0
"""Between two looks at the ledger."""


def add_parser(actions: Subparsers) -> None:
    """Adds the action."""
    parser = actions.add_parser(
        "run",
        help="run the trials of a run set, or go on with them",
        description="Starts what is missing (services, workers, workflows), shows the trials, and stops what it "
        "started at the end. The same command again goes on with an unfinished run set; trials that infrastructure "
        "kept from a result are taken up again. Ctrl-C stops cleanly: agents are frozen when their lease lapses, and "
        "`stepwell down` ends them. Exit 0 if every trial has its record, 1 if not, 2 for a recipe that cannot be run.",
    )
    parser.add_argument("recipe", metavar="RECIPE", type=Path, help="TOML file (docs/trials.md)")
    parser.add_argument(
        "--set", action="append", default=[], metavar="KEY=VALUE", help="changes the recipe: --set repetitions=2"
    )
    parser.add_argument("--name", metavar="RUN-SET", help="name of the run set (default: the recipe's and a number)")
    parser.add_argument(
        "--no-workers", action="store_true", help="start no worker: those of a cluster serve the run set"
    )
    parser.add_argument("--dry-run", action="store_true", help="print the resolved recipe and its trials, and leave")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Runs the trials to their end."""
    from stepwell.ptb.trials import load_run_set  # imported here: the checks that a recipe names take a while
    from stepwell.ptb.trials.files import check_files

    recipe = load_run_set(args.recipe, args.set)
    check_files(recipe)
    if args.dry_run:
        print(recipe.model_dump_json(indent=1))
        for cell in recipe.cells():
            print(f"# {cell.name}")
        return 0
    from db.migrate import bring_up
    from workers.services.lifecycle import held

    signal.signal(signal.SIGTERM, signal.default_int_handler)  # both signals stop in the same, clean way
    with held() as addresses:
        bring_up(addresses.migrator, addresses.appender)
        return asyncio.run(_run(addresses, recipe, args.name, with_workers=not args.no_workers))


async def _run(addresses: "Addresses", recipe: "RunSetRecipe", name: str | None, *, with_workers: bool) -> int:
    from rich.console import Console

    from cli.ptb_progress import RunSetView, summary
    from cli.ptb_reading import run_set_reader
    from workers.run_sets import find_or_create, start
    from workers.runtime import runtime
    from workers.services.watch import quieten_client

    quieten_client()
    async with runtime("trial", addresses) as opened, run_set_reader(addresses, wait_s=math.inf) as reader:
        known = await find_or_create(opened.stores, recipe, name)
        view = RunSetView(Console())
        view.message(f"run set {known.name}: {len(known.cells)} trials")
        try:
            if not known.finished:
                workers = _supervised(known.name, recipe, view.message) if with_workers else nullcontext()
                async with workers:
                    handle = await start(opened.client, known.name, recipe)
                    await _follow(reader, known.name, view, handle)
            picture = await reader.picture(known.name)
            view.update(picture)
        except asyncio.CancelledError:
            view.message(f"run set {known.name} is left where it is; the same command goes on with it")
            raise
        finally:
            view.close()
    print(f"{known.name}: {summary(picture)}")
    return 0 if picture.finished else 1


async def _follow(
    reader: "RunSetReader", name: str, view: "RunSetView", handle: "WorkflowHandle[RunSet, RunSetEnd]"
) -> None:
    """Shows the run set until its workflow has ended."""
    ended = asyncio.create_task(_result(handle))
    try:
        while not ended.done():
            view.update(await reader.picture(name))
            await asyncio.wait([ended], timeout=REFRESH_S)
        if (failure := ended.exception()) is not None:
            view.message(f"the run set's workflow failed: {failure.__cause__ or failure}")
    finally:
        ended.cancel()
        await asyncio.wait([ended])


async def _result(handle: "WorkflowHandle[RunSet, RunSetEnd]") -> "RunSetEnd":
    """How the workflow ended, asked for through servers that are away for a while."""
    from temporalio.service import RPCError, RPCStatusCode

    while True:
        try:
            return await handle.result()
        except RPCError as error:
            if error.status is RPCStatusCode.NOT_FOUND:
                raise
        await asyncio.sleep(REFRESH_S)


@asynccontextmanager
async def _supervised(name: str, recipe: "RunSetRecipe", tell: Callable[[str], None]) -> AsyncGenerator[None]:
    """Keeps a control and a trial worker alive for the block; left to another process of this machine if there is one.

    Raises:
        WorkerFailed: a worker dies again and again; the block is cancelled.
    """
    from workers.launch import WorkerSet, WorkerSpec
    from workers.services.home import Home

    folder = Home.of(None).root / "run-sets" / name
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "lock").open("a") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            tell(f"another process on this machine runs the workers of {name}; this one only shows it")
            yield
            return
        workers = WorkerSet(folder / "logs", tell)
        concurrency = str(max(4, 2 * recipe.concurrency))
        workers.start(
            [
                WorkerSpec("control", ("control", "--take-over")),
                WorkerSpec("trial", ("trial", "--concurrency", concurrency)),
            ]
        )
        try:
            async with asyncio.TaskGroup() as tasks:
                watching = tasks.create_task(workers.watch())
                yield
                watching.cancel()
        except* Exception as errors:
            raise errors.exceptions[0] from None
        finally:
            await workers.stop()
