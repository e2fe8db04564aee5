"""`stepwell audit regrade`: recorded patches graded again, and the steps whose advantages would be others."""

import argparse
import asyncio
import json
import secrets
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cli.arguments import Subparsers, add_run, positive
from cli.step_range import chosen, step_range

if TYPE_CHECKING:
    from stepwell.audit.advantage_changes import StepChange
    from stepwell.audit.regrading import Regraded
    from workers.services.addresses import Addresses

SHOWN = 20
"""Other verdicts that are named; `--json` gives all."""


@dataclass(frozen=True)
class Regrading:
    """What was graded again."""

    run: str
    """Name of the run."""
    graders: tuple[str, ...]
    """Digests of the graders that the recorded verdicts are of."""
    grader: str
    """Digest of today's."""
    work: int
    """Trees that the steps have verdicts on."""
    rollouts: int
    """Rollouts that arrived at them."""
    seed: int | None
    """By which a sample was drawn; None where all was graded."""
    regraded: "list[Regraded]"
    """What was graded again, in order."""
    steps: "list[StepChange]"
    """Steps that would have been trained otherwise."""

    @property
    def agrees(self) -> bool:
        """Whether each was graded, to the same verdict."""
        return not any(each.differs or each.score is None for each in self.regraded)

    def as_json(self) -> dict[str, Any]:
        """For programs."""
        return {
            "run": self.run,
            "agrees": self.agrees,
            "recorded_graders": list(self.graders),
            "grader": self.grader,
            "verdicts": self.work,
            "rollouts": self.rollouts,
            "seed": self.seed,
            "regraded": [each.as_json() for each in self.regraded],
            "steps": [step.as_json() for step in self.steps],
        }


def add_parser(actions: Subparsers) -> None:
    """Adds the action."""
    parser = actions.add_parser(
        "regrade",
        help="grade recorded patches again, and say what would have been trained otherwise",
        description="Runs the hidden tests of recorded work again in sandboxes of this machine; each tree is graded "
        "once, and no verdict is reused. Says which verdicts differ, and in which steps advantages change. What is "
        "recorded stands: a verdict of another grader is kept under its own key. Exit 0 if every verdict is the same, "
        "1 if not, or if some could not be graded, 2 if there is no such run or step.",
    )
    add_run(parser)
    parser.add_argument("--grader", choices=("current",), default="current", help="which grader: the one installed")
    parser.add_argument(
        "--step", type=step_range, metavar="N", help="this step, or a range as 3..7 (default: every admitted step)"
    )
    parser.add_argument("--sample", type=positive, metavar="K", help="this many verdicts at random (default: all)")
    parser.add_argument("--seed", type=int, metavar="S", help="draw the sample that was drawn by this seed before")
    parser.add_argument("--json", action="store_true", help="print one JSON object, with every verdict")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Grades again; 0 if every verdict is the same."""
    from cli.services_to_read import services_to_read  # imported here: they take a second, which `--help` should not

    with services_to_read() as addresses:
        found = asyncio.run(_regrade(addresses, args.name, args.step, args.sample, args.seed))
    print(json.dumps(found.as_json()) if args.json else "\n".join(lines(found)))
    return 0 if found.agrees else 1


def lines(found: Regrading) -> list[str]:
    """What is printed: what was graded, the verdicts that differ, the steps that it reaches."""
    from cli.audit_counterfactual import change_summary, change_table

    drawn = "" if found.seed is None else f", drawn with --seed {found.seed}"
    said = [f"{len(found.regraded):,} of {found.work:,} verdicts on {found.rollouts:,} rollouts graded again{drawn}"]
    others = [grader for grader in found.graders if grader != found.grader]
    if others:
        said.append(f"by another grader ({found.grader[:12]}) than the run's ({', '.join(g[:12] for g in others)})")
    wrong = [each for each in found.regraded if each.differs or each.score is None]
    if not wrong:
        return [*said, "every verdict is the same"]
    said += [f"        {each.words()}" for each in wrong[:SHOWN]]
    if len(wrong) > SHOWN:
        said.append(f"        and {len(wrong) - SHOWN:,} more; --json names all")
    unequal = [each for each in found.regraded if each.differs]
    if any(each.is_same_grader for each in unequal):
        said.append("the grader is the run's own: where it says something else now, its verdict is not determined")
    if unequal and found.steps:
        said += ["", *change_table(found.steps), *change_summary(found.steps)]
    elif unequal:
        said.append("no advantage would be another")
    return said


async def _regrade(
    addresses: "Addresses", name: str, asked: range | None, sample: int | None, seed: int | None
) -> Regrading:
    """Reads, draws, grades, compares.

    Raises:
        NoSuchRun, NoSuchStep: there is none of this name, or number.
    """
    import os
    import socket
    import tempfile

    from activities.regrading import Regrader
    from activities.stores import Stores
    from cli.progress_bar import progress_bar
    from cli.run_steps import open_steps
    from db.blobs import BlobStore
    from db.database import Database
    from db.ledger import Ledger
    from db.objects import ObjectStore
    from stepwell.audit.regrading import Regraded, Work, blast_radius, drawn, graded_work
    from stepwell.events import VerdictReached
    from stepwell.events.streams import verdict_stream
    from stepwell.sandbox.bubblewrap import BubblewrapFactory
    from stepwell.tasks.grading.verdict import grader_digest

    async with open_steps(addresses, name) as opened:
        recipe = opened.recipe
        steps = [await opened.read(step) for step in chosen(opened.admitted, asked, "admitted")]
    work = graded_work(steps)
    seed = secrets.randbits(32) if seed is None else seed
    picked = drawn(work, sample, seed)
    database, objects = Database(addresses.appender), ObjectStore(addresses.bucket)
    with tempfile.TemporaryDirectory(prefix="stepwell-regrade-") as scratch:
        factory = BubblewrapFactory(Path(scratch))
        try:
            blobs = BlobStore(database, objects)
            ledger = Ledger(database, blobs)
            regrader = Regrader(Stores(ledger, blobs, actor=f"sandbox:{socket.gethostname()}/{os.getpid()}"), factory)
            slots = asyncio.Semaphore(len(os.sched_getaffinity(0)))
            with progress_bar("grading again", len(picked)) as advance:

                async def one(each: Work) -> Regraded:
                    async with slots:
                        regraded = await regrader.regrade(each)
                    advance()
                    return regraded

                async with asyncio.TaskGroup() as group:
                    running = [group.create_task(one(each)) for each in picked]
            named = await ledger.read_many(verdict_stream(each.key) for each in picked)
        finally:
            await factory.close()
            await objects.close()
            await database.close()
    graders = {each.event.grader for read in named.values() for each in read if isinstance(each.event, VerdictReached)}
    regraded = [task.result() for task in running]
    return Regrading(
        run=name,
        graders=tuple(sorted(graders)),
        grader=grader_digest(),
        work=len(work),
        rollouts=sum(len(each.streams) for each in work),
        seed=seed if len(picked) < len(work) else None,
        regraded=regraded,
        steps=blast_radius(steps, recipe, regraded),
    )
