"""`stepwell audit retrain`: trains recorded steps again, and compares the weights that come out."""

import argparse
import asyncio
import json
import random
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cli.arguments import Subparsers, add_run, positive
from cli.step_range import chosen, step_range

if TYPE_CHECKING:
    from activities.retraining import Apart, Retrained
    from activities.stores import Stores
    from workers.services.addresses import Addresses

PARTS = ("master", "exported", "optimiser")
"""What of a version has a digest."""


def add_parser(actions: Subparsers) -> None:
    """Adds the action."""
    action = actions.add_parser(
        "retrain",
        help="train steps of a run again",
        description="From the checkpoint before it and the recorded batches, with the trainer of the run's recipe: "
        "the digests of what comes out are compared with those recorded. In the recorded numeric environment every bit "
        "must be the same; in another the distance to the recorded weights is held against a tolerance. Reads alone. "
        "Exit 0 if every step comes out, 1 if not, 2 if there is no such run or step.",
    )
    add_run(action)
    action.add_argument(
        "--step", type=step_range, metavar="N", help="this step, or a range as 3..7 (default: every trained step)"
    )
    action.add_argument("--sample", type=positive, metavar="K", help="only K of the steps, drawn at random")
    action.add_argument("--seed", type=int, metavar="S", help="of the draw (default: 0)")
    action.add_argument("--json", action="store_true", help="print one JSON object")
    action.set_defaults(run=run, usage=action)


def run(args: argparse.Namespace) -> int:
    """Trains again; 0 if every step comes out."""
    from cli.reading import require_run  # imported here: they take a second, which `--help` should not
    from cli.services_to_read import services_to_read

    if args.seed is not None and args.sample is None:
        args.usage.error("--seed does nothing without --sample")
    with services_to_read() as addresses:
        require_run(addresses, args.name)
        found = asyncio.run(_retrain(addresses, args.name, args.step, args.sample, args.seed or 0))
    is_good = all(each.outcome.is_good for each in found)
    if args.json:
        print(json.dumps({"run": args.name, "holds": is_good, "steps": [as_json(each) for each in found]}))
    else:
        print("\n".join(lines(args.name, found)))
    return 0 if is_good else 1


def lines(name: str, found: "Sequence[Retrained]") -> list[str]:
    """What is printed: a line a step, under each that is not equal what differs, then the outcome."""
    from activities.retraining import Outcome

    if not found:
        return [f"run {name} has no trained step yet: there is nothing to train again"]
    said: list[str] = []
    for each in found:
        said.append(
            f"step {each.step:>4}  {each.outcome.value:<10}  version {each.step + 1} {each.computed.exported[:16]}, "
            f"from version {each.loaded}  {each.seconds:.2f} s"
        )
        said += [f"        {line}" for line in _what_differs(each)]
    bad = [each for each in found if not each.outcome.is_good]
    elsewhere = [each for each in found if each.outcome is Outcome.WITHIN]
    if bad:
        outcome = f"{len(bad)} of {len(found)} steps do not come out. Look first at step {bad[0].step}"
    elif elsewhere:
        outcome = f"{len(found)} steps come out, {len(elsewhere)} of them with other bits, within the tolerance"
    else:
        outcome = f"{len(found)} steps, every weight version equal to the bit"
    return [*said, "", f"run {name}: {outcome}"]


def as_json(each: "Retrained") -> dict[str, Any]:
    """For programs."""
    apart = each.apart
    return {
        "step": each.step,
        "version": each.step + 1,
        "outcome": each.outcome.value,
        "loaded": each.loaded,
        "exact": each.exact,
        "recorded": each.recorded.model_dump(),
        "computed": each.computed.model_dump(),
        "environment": list(each.environment),
        "apart": None if apart is None else {name: part.model_dump() for name, part in asdict(apart).items()},
        "seconds": each.seconds,
    }


def _what_differs(each: "Retrained") -> list[str]:
    from activities.retraining import Outcome

    if each.outcome is Outcome.EQUAL:
        return []
    said: list[str] = []
    for part in PARTS:
        ours, theirs = getattr(each.computed, part), getattr(each.recorded, part)
        if ours != theirs:
            said.append(f"{part} {ours} computed, {theirs} recorded")
    if each.exact < each.step:
        said.append(f"it starts from a version {each.step} that is not the recorded one; version {each.exact} was")
    if each.environment:
        said.append(f"bits may differ here: {'; '.join(each.environment)}")
    else:
        said.append("the numeric environment is the recorded one, so the code, a batch or the record changed")
    said.append(_distance(each.apart))
    return said


def _distance(apart: "Apart | None") -> str:
    if apart is None:
        return "the recorded weights are not stored, so the distance is not known"
    return (
        f"distance to the recorded weights: largest {apart.distance.max:.3g}, mean {apart.distance.mean:.3g}; "
        f"tolerance in another environment: {apart.tolerance.max:.3g} and {apart.tolerance.mean:.3g}"
    )


async def _retrain(
    addresses: "Addresses", name: str, asked: range | None, sample: int | None, seed: int
) -> "list[Retrained]":
    from transformers.utils import logging as transformers_logging

    from activities.retraining import Retraining
    from activities.weights_record import WeightsRecord
    from cli.progress_bar import progress_bar

    transformers_logging.disable_progress_bar()
    async with _auditor(addresses) as stores, _scratch() as cache:
        weights = await WeightsRecord.read(stores, name)
        steps = chosen(weights.steps(), asked, "trained")
        if sample is not None:
            steps = sorted(random.Random(seed).sample(steps, min(sample, len(steps))))
        retraining = Retraining(stores, weights, cache)
        found: list[Retrained] = []
        try:
            with progress_bar("training steps again", len(steps)) as advance:
                for step in steps:
                    found.append(await retraining.retrain(step))
                    advance()
        finally:
            await retraining.close()
        return found


@asynccontextmanager
async def _auditor(addresses: "Addresses") -> "AsyncGenerator[Stores]":
    """The stores with a role that can change nothing."""
    from activities.stores import Stores
    from db.blobs import BlobStore
    from db.database import Database
    from db.ledger import Ledger
    from db.objects import ObjectStore

    database, objects = Database(addresses.auditor, pool_size=2), ObjectStore(addresses.bucket)
    try:
        yield Stores(Ledger(database), BlobStore(database, objects), actor="auditor:retrain")
    finally:
        await objects.close()
        await database.close()


@asynccontextmanager
async def _scratch() -> AsyncGenerator[Path]:
    """A folder for weights, gone at the end; what audits that were killed have left goes first."""
    from stepwell.sandbox.folders import make_owned_folder, remove_tree, sweep
    from workers.services.home import Home

    caches = Home.of(None).root / "cache" / "audit"
    await asyncio.to_thread(sweep, caches)
    folder = make_owned_folder(caches)
    try:
        yield folder
    finally:
        await asyncio.to_thread(remove_tree, folder)
