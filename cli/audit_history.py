"""`stepwell audit history`: replays the Temporal histories of a run against today's workflows."""

import argparse
import asyncio
import json
import logging
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from cli.arguments import Subparsers, add_run

if TYPE_CHECKING:
    from workers.history_replay import HistoryReplay
    from workers.services.addresses import Addresses

SHOWN = 5
"""Histories that fail, of those that are printed; `--json` gives all."""


@dataclass(frozen=True, slots=True)
class Replayed:
    """What the histories of a run say."""

    run: str
    """Its name."""
    histories: "list[HistoryReplay]"
    """Those that are archived."""
    missing: str
    """What is not archived though the run has ended, in words; empty where nothing is."""

    @property
    def holds(self) -> bool:
        """Whether every history is there, and can be replayed."""
        return not self.missing and not any(each.failure for each in self.histories)


def add_parser(actions: Subparsers) -> None:
    """Adds the action."""
    action = actions.add_parser(
        "history",
        help="replay the workflows of a run",
        description="The history of each workflow goes into the store when it closes. They are replayed against the "
        "workflows of this version: each must decide as it did. Exit 0 if all do, 1 if one does not or if the run has "
        "ended and its own workflow is not archived, 2 if there is no such run.",
    )
    add_run(action)
    action.add_argument("--json", action="store_true", help="print one JSON object, with every history")
    action.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Replays; 0 if every history can be."""
    from cli.services_to_read import services_to_read  # imported here: they take a second, which `--help` should not
    from workers.services.watch import quieten_client

    quieten_client()
    logging.getLogger("temporalio").setLevel(logging.CRITICAL)  # a history that does not replay is told below
    with services_to_read() as addresses:
        replayed = asyncio.run(_replay(addresses, args.name))
    print(json.dumps(as_json(replayed)) if args.json else "\n".join(lines(replayed)))
    return 0 if replayed.holds else 1


def lines(replayed: Replayed) -> list[str]:
    """What is printed: a line a kind of workflow, under each those that fail, then the outcome."""
    counts = Counter(each.archived.kind for each in replayed.histories)
    failed = [each for each in replayed.histories if each.failure]
    said: list[str] = []
    for kind, count in sorted(counts.items()):
        of_kind = [each for each in failed if each.archived.kind == kind]
        outcome = f"{len(of_kind)} of {count:,} fail" if of_kind else f"{count:,} replay"
        said.append(f"{'failed' if of_kind else 'ok':<7} {kind:<13} {outcome}")
        said += [f"        {each.archived.workflow} ({each.archived.execution}): {each.failure}" for each in of_kind][
            :SHOWN
        ]
        if len(of_kind) > SHOWN:
            said.append(f"        and {len(of_kind) - SHOWN:,} more; --json names all")
    if replayed.missing:
        said.append(f"missing {replayed.missing}")
    events = sum(each.archived.events for each in replayed.histories)
    outcome = f"{len(replayed.histories):,} histories of {events:,} events"
    if failed:
        outcome += f", {len(failed)} do not replay: today's workflows would decide otherwise than those that ran"
    elif replayed.histories:
        outcome += ", all replay"
    return [*said, "", f"run {replayed.run}: {outcome}"]


def as_json(replayed: Replayed) -> dict[str, Any]:
    """For programs."""
    return {
        "run": replayed.run,
        "holds": replayed.holds,
        "missing": replayed.missing,
        "histories": [
            {**each.archived.body(), "failure": each.failure, "replays": not each.failure}
            for each in replayed.histories
        ],
    }


async def _replay(addresses: "Addresses", name: str) -> Replayed:
    from cli.progress_bar import progress_bar
    from cli.reading import open_reader
    from stepwell.events import HistoryArchived, RunFinished
    from stepwell.events.streams import history_stream, run_stream
    from workers.history_replay import is_whole, replay_histories

    found: list[HistoryReplay] = []
    async with open_reader(addresses) as reader:
        await reader.require(name)
        recorded = await reader.stream(history_stream(name))
        last = await reader.last_event(run_stream(name))
        archived = [each.event for each in recorded if isinstance(each.event, HistoryArchived)]
        with progress_bar("replaying histories", len(archived)) as advance:
            async for each in replay_histories(reader.blobs, archived):
                found.append(each)
                advance()
    missing = ""
    if last is not None and isinstance(last.event, RunFinished) and not is_whole(name, archived):
        missing = (
            "the run has ended, and the history of its own workflow is not in the store: a control worker archives it "
            "while Temporal still has it (`stepwell worker control`)"
        )
    return Replayed(name, found, missing)
