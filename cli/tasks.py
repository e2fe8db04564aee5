"""`stepwell tasks`: makes task sets."""

import argparse
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import TextIO

from pydantic import ValidationError

from cli import tasks_r2e
from stepwell.tasks.forge import ForgeCounts, forge
from stepwell.tasks.task import Task


def add_parser(
    subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]",  # pyright: ignore[reportPrivateUsage]  # no public name
) -> None:
    """Adds the verb."""
    parser = subparsers.add_parser("tasks", help="make task sets")
    actions = parser.add_subparsers(dest="tasks_action", required=True)
    forged = actions.add_parser("forge", help="forge a task set from templates, one JSON object a line")
    forged.add_argument("--seed", type=int, default=1, help="the same seed and counts give the same set (default 1)")
    for name, field in ForgeCounts.model_fields.items():
        forged.add_argument(
            f"--{name.replace('_', '-')}",
            type=int,
            default=field.default,
            help=f"{field.description} ({field.default})",
        )
    forged.add_argument("--out", type=Path, help="file to write (default: standard output)")
    forged.set_defaults(run=run)
    tasks_r2e.add_parser(actions)


def run(args: argparse.Namespace) -> int:
    """Forges the set that the arguments ask for."""
    try:
        counts = ForgeCounts(**{name: getattr(args, name) for name in ForgeCounts.model_fields})
    except ValidationError as error:
        first = error.errors()[0]
        print(f"--{str(first['loc'][0]).replace('_', '-')} {first['input']}: {first['msg']}", file=sys.stderr)
        return 2
    task_set = forge(args.seed, counts)
    if args.out is None:
        _write(task_set.every(), sys.stdout)
        return 0
    try:
        with args.out.open("w", encoding="utf-8") as file:
            _write(task_set.every(), file)
    except OSError as error:
        print(f"cannot write {args.out}: {error.strerror}; name a file in a folder that exists", file=sys.stderr)
        return 1
    print(f"{sum(1 for _ in task_set.every())} tasks in {args.out}, digest {task_set.digest}", file=sys.stderr)
    return 0


def _write(tasks: Iterable[Task], file: TextIO) -> None:
    for task in tasks:
        file.write(task.model_dump_json() + "\n")
