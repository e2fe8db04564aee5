"""`stepwell audit replay`: computes batches again from recorded facts, and compares them to the byte."""

import argparse
import json
from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from cli.arguments import Subparsers, add_run
from cli.step_range import chosen, step_range

if TYPE_CHECKING:
    from cli.step_replayer import TimedReplay
    from stepwell.audit.replaying.replay import StepReplay
    from workers.services.addresses import Addresses

SHOWN = 3
"""Differences of a step that are printed; `--json` gives all."""


def add_parser(actions: Subparsers) -> None:
    """Adds the action."""
    action = actions.add_parser(
        "replay",
        help="compute the batches of a run again",
        description="From recorded facts alone, without a model: the rows of tokens, the groups' fates and scores, "
        "admission, masks, advantages, packing and the batch manifest of each step, compared to the byte with what was "
        "recorded. Names the first field, group and rollout that differ. Exit 0 if every step is equal, 1 if not, 2 if "
        "there is no such run or step.",
    )
    add_run(action)
    action.add_argument(
        "--step", type=step_range, metavar="N", help="this step, or a range as 3..7 (default: every admitted step)"
    )
    action.add_argument("--json", action="store_true", help="print one JSON object, with every difference")
    action.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Replays; 0 if every step is equal."""
    from cli.reading import require_run  # imported here: they take a second, which `--help` should not
    from cli.services_to_read import services_to_read

    with services_to_read() as addresses:
        require_run(addresses, args.name)
        replays = _replay(addresses, args.name, args.step)
    is_equal = all(each.replay.is_equal for each in replays)
    if args.json:
        print(json.dumps({"run": args.name, "equal": is_equal, "steps": [as_json(each) for each in replays]}))
    else:
        print("\n".join(lines(args.name, replays)))
    return 0 if is_equal else 1


def lines(name: str, replays: "Sequence[TimedReplay]") -> list[str]:
    """What is printed: a line a step, under each that differs its first differences, then the outcome."""
    said: list[str] = []
    for each in replays:
        found = each.replay
        outcome = "equal " if found.is_equal else "differs"
        said.append(f"step {found.step:>4}  {outcome:<7}  {_words(found)}  {each.seconds:.2f} s")
        said += [f"        {difference}" for difference in found.differences[:SHOWN]]
        if len(found.differences) > SHOWN:
            said.append(f"        and {len(found.differences) - SHOWN:,} more; --json names all")
    differing = [each.replay for each in replays if not each.replay.is_equal]
    if not replays:
        return [f"run {name} has no admitted step yet: there is nothing to replay"]
    if not differing:
        return [*said, "", f"run {name}: {len(replays)} steps, every batch equal to the byte"]
    first = differing[0].differences[0]
    return [*said, "", f"run {name}: {len(differing)} of {len(replays)} steps differ. Look first at {first}"]


def as_json(timed: "TimedReplay") -> dict[str, Any]:
    """For programs."""
    found = timed.replay
    return {
        "step": found.step,
        "version": found.version,
        "equal": found.is_equal,
        "fates": {fate.value: count for fate, count in found.fates.items()},
        "rollouts": found.rollouts,
        "masked": found.masked,
        "micro_batches": found.micro_batches,
        "seconds": timed.seconds,
        "differences": [asdict(difference) for difference in found.differences],
    }


def _words(found: "StepReplay") -> str:
    fates = ", ".join(f"{count} {fate.value}" for fate, count in sorted(found.fates.items())) or "not admissible"
    return (
        f"{fates}; {found.rollouts:,} rollouts by version {found.version}, {found.masked} masked, "
        f"{found.micro_batches} micro-batches"
    )


def _replay(addresses: "Addresses", name: str, asked: range | None) -> "list[TimedReplay]":
    """The replays, by step; a single one in this process."""
    from cli.progress_bar import progress_bar
    from cli.step_replayer import replay_in_processes, step_replayer

    with step_replayer(addresses, name) as replayer:
        steps = chosen(replayer.admitted, asked, "admitted")
        if len(steps) == 1:
            return [replayer.replay(steps[0])]
    found: list[TimedReplay] = []
    with progress_bar("replaying steps", len(steps)) as advance:
        for each in replay_in_processes(addresses, name, steps):
            found.append(each)
            advance()
    return sorted(found, key=lambda each: each.replay.step)
