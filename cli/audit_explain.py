"""`stepwell audit explain`: all that a thing of a run came from, and all that came of it."""

import argparse
import asyncio
import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from cli.arguments import Subparsers, add_run, positive

if TYPE_CHECKING:
    from db.run_source import SourceReader
    from stepwell.audit.provenance.graph import Graph
    from stepwell.audit.provenance.reference import Ref
    from stepwell.audit.provenance.tree import Explanation
    from workers.services.addresses import Addresses


def add_parser(actions: Subparsers) -> None:
    """Adds the action."""
    parser = actions.add_parser(
        "explain",
        help="say what a thing of a run came from, and what came of it",
        description="Prints two trees: what a thing came from, and what came of it; each line names the event that "
        "shows it. Of several things of a kind the first few are shown and one is opened; any name in the tree "
        "can be asked for in turn. Exit 0 if it is explained, 1 if the ledger cannot be read, 2 if there is no such "
        "run, or no such thing in it.",
        epilog="WHAT is one of: pass@K (the last validation; the default) · version/12 · batch/12 · step/12 · "
        "metric/12/reward_mean · validation/24/main · group/3/1 · rollout/3/1/0 · rollout/3/1/0/turn/2 · "
        "rollout/3/1/0/turn/2/token/5 · patch/3/1/0 · patch/SHA256 · test/3/1/0/ID · verdict/KEY · engine/ID · "
        "task/SHA256 · operator/SEQ · blob/SHA256 · event/STREAM/SEQ · run · end. Rollouts of a validation: "
        "rollout/v24-main/1/0. Of a SHA256 or KEY, 12 digits are enough.",
    )
    add_run(parser)
    parser.add_argument("what", metavar="WHAT", nargs="?", default="pass@k", help="what to explain (see below)")
    parser.add_argument("--depth", type=positive, metavar="N", help="steps away from it at most (7; with --json all)")
    parser.add_argument("--all", action="store_true", help="show every thing of a kind, and open each")
    parser.add_argument("--json", action="store_true", help="print the graph as one JSON object")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Explains; 0 if there is such a thing."""
    from cli.provenance_lines import print_explanation  # imported here: they take a second, which `--help` should not
    from cli.services_to_read import services_to_read
    from stepwell.audit.provenance.reference import parse

    wanted = parse(args.what)
    with services_to_read() as addresses:
        if args.json:
            graph = asyncio.run(_graph(addresses, args.name, wanted, args.depth))
            print(json.dumps({"run": args.name, **graph.as_json()}))
        else:
            print_explanation(asyncio.run(_tree(addresses, args.name, wanted, args.depth, is_whole=args.all)))
    return 0


async def _graph(addresses: "Addresses", name: str, wanted: "Ref", depth: int | None) -> "Graph":
    """All that a thing is connected with. Raises as `_source`, and NoSuchThing: the run has it not."""
    from stepwell.audit.provenance.graph import graph_of
    from stepwell.audit.provenance.named import resolve

    async with _source(addresses, name) as source:
        ref = await source.answer(lambda read: resolve(read, wanted))
        if depth is None:
            await source.whole()
        return await source.answer(lambda read: graph_of(read, ref, depth))


async def _tree(
    addresses: "Addresses", name: str, wanted: "Ref", depth: int | None, *, is_whole: bool
) -> "Explanation":
    """As much of it as fits a screen. Raises as `_graph`."""
    from stepwell.audit.provenance.named import resolve
    from stepwell.audit.provenance.tree import DEPTH, FAN, explain

    fan = None if is_whole else FAN
    async with _source(addresses, name) as source:
        return await source.answer(lambda read: explain(read, resolve(read, wanted), depth=depth or DEPTH, fan=fan))


@asynccontextmanager
async def _source(addresses: "Addresses", name: str) -> "AsyncGenerator[SourceReader]":
    """A run to ask.

    Raises:
        NoSuchRun: there is none of this name.
    """
    from cli.reading import open_reader

    async with open_reader(addresses) as reader:
        await reader.require(name)
        yield await reader.source(name)
