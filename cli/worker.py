"""`stepwell worker KIND`: one worker process, for a cluster; `stepwell run` starts its own."""

import argparse
import asyncio
import os
import traceback

from workers.lifetime import OrphanError, die_with_parent, leave
from workers.services.addresses import resolve

KINDS = ("control", "trainer", "engine", "sandbox")


def add_parser(
    subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]",  # pyright: ignore[reportPrivateUsage]  # no public name
) -> None:
    """Adds the verb."""
    parser = subparsers.add_parser("worker", help="run one worker process until it is told to stop")
    parser.add_argument("kind", choices=KINDS, help="what it serves")
    parser.add_argument("--run", dest="run_name", help="run that an engine serves")
    parser.add_argument("--host", default="127.0.0.1", help="address that an engine listens on (default %(default)s)")
    parser.add_argument("--concurrency", type=int, default=64, help="rollouts at once in a sandbox worker")
    parser.add_argument("--parent", type=int, help="die when this process does, which must be the parent")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Serves until SIGTERM or SIGINT; does not return."""
    if arguments.kind == "engine" and not arguments.run_name:
        print("stepwell worker engine: --run NAME is needed: an engine serves one run")
        return 2
    try:
        if arguments.parent is not None and arguments.parent != os.getpid():
            die_with_parent(arguments.parent)
        asyncio.run(_serve(arguments))
        status = 0
    except OrphanError:
        status = 1
    except Exception:
        traceback.print_exc()
        status = 1
    return leave(status)


async def _serve(arguments: argparse.Namespace) -> None:
    addresses = resolve()
    # Each kind imports what it needs, and no more: a sandbox worker needs no torch.
    if arguments.kind == "control":
        from workers.control import run_control

        await run_control(addresses)
    elif arguments.kind == "trainer":
        from workers.trainer import run_trainer

        await run_trainer(addresses)
    elif arguments.kind == "engine":
        from workers.engine import run_engine

        await run_engine(addresses, run=arguments.run_name, host=arguments.host)
    else:
        from workers.sandbox import run_sandbox

        await run_sandbox(addresses, concurrency=arguments.concurrency)
