"""`stepwell worker KIND`: one worker process, for a cluster; `stepwell run` starts its own."""

import argparse
import asyncio
import faulthandler
import os
import sys
import traceback
from collections.abc import Awaitable, Callable
from functools import partial

from cli.arguments import Subparsers
from workers.beats import beat
from workers.lifetime import OrphanError, die_with_parent, leave, on_stop_signals
from workers.services.addresses import Addresses, resolve
from workers.watchdog import Watchdog

KINDS = ("control", "trainer", "engine", "sandbox", "trial")


def add_parser(subparsers: Subparsers) -> None:
    """Adds the verb."""
    parser = subparsers.add_parser("worker", help="run one worker process until it is told to stop")
    parser.add_argument("kind", choices=KINDS, help="what it serves")
    parser.add_argument("--run", dest="run_name", help="run that an engine serves")
    parser.add_argument(
        "--host",
        help="address that an engine listens on and is found by (default: this machine's own on the way to Temporal)",
    )
    parser.add_argument(
        "--take-over", action="store_true", help="a control worker decides, though a newer build took over from its own"
    )
    parser.add_argument("--concurrency", type=int, default=64, help="rollouts, or trials, at once in a worker")
    parser.add_argument("--parent", type=int, help="die when this process does, which must be the parent")
    parser.add_argument("--beats", type=int, metavar="FD", help="pipe into which the event loop beats once a second")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Serves until SIGTERM or SIGINT; does not return."""
    if arguments.kind == "engine" and not arguments.run_name:
        print("stepwell worker engine: --run NAME is needed: an engine serves one run")
        return 2
    faulthandler.enable()  # a worker that hangs is asked by SIGABRT to tell where
    try:
        if arguments.parent is not None and arguments.parent != os.getpid():
            die_with_parent(arguments.parent)
        serve = _worker(arguments)  # imports for seconds: before the loop turns, not in it
        asyncio.run(_serve(serve, arguments.beats))
        status = 0
    except asyncio.CancelledError:
        status = 0  # told to stop before it served
    except OrphanError:
        status = 1
    except Exception as error:
        from cli.errors import KNOWN_ERRORS  # what they come from takes a second to import

        if isinstance(error, KNOWN_ERRORS):
            print(f"stepwell worker {arguments.kind}: {error}", file=sys.stderr)
        else:
            traceback.print_exc()
        status = 1
    return leave(status)


async def _serve(serve: Callable[[Addresses], Awaitable[None]], beats: int | None) -> None:
    serving = asyncio.current_task()
    assert serving is not None
    on_stop_signals(serving.cancel)  # until it serves, when it stops by itself
    watchdog = Watchdog()
    beating = asyncio.create_task(beat(beats, watchdog))
    watchdog.start()
    try:
        await serve(resolve())
    finally:
        beating.cancel()


def _worker(arguments: argparse.Namespace) -> Callable[[Addresses], Awaitable[None]]:
    """What serves. Each kind imports what it needs, and no more: a sandbox worker needs no torch."""
    if arguments.kind == "control":
        from workers.control import run_control

        return partial(run_control, take_over_again=arguments.take_over)
    if arguments.kind == "trainer":
        from workers.trainer import run_trainer

        return run_trainer
    if arguments.kind == "engine":
        from workers.engine import run_engine

        return partial(run_engine, run=arguments.run_name, host=arguments.host)
    if arguments.kind == "trial":
        from workers.trial import run_trials

        return partial(run_trials, concurrency=arguments.concurrency)
    from workers.sandbox import run_sandbox

    return partial(run_sandbox, concurrency=arguments.concurrency)
