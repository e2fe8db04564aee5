"""`stepwell tasks forge`: makes tasks out of packages with their own tests, or out of templates."""

import argparse
import asyncio
import json
import sys
from collections import Counter
from pathlib import Path

from cli.arguments import Subparsers
from cli.tasks_files import check_out, write_whole
from cli.tasks_sandboxes import sandboxes
from stepwell.tasks.forge import ForgeCounts, TaskSet, forge
from stepwell.tasks.packages import (
    ForgedSet,
    PackageTree,
    PackageYield,
    Progress,
    SetPlan,
    Share,
    archive_tree,
    forge_set,
    forge_trees,
    is_permissive,
)
from stepwell.tasks.set_file import SET_STARTS, write_set
from workers.services.home import Home

_COUNTS = ("train", "validation", "confirm", "heldout")
SHOWN_EVERY = 10
"""Tasks between two lines of progress that no terminal shows."""


class UnusableOption(ValueError):
    """An option that would do nothing, or a value that is not allowed."""


def add_parser(actions: Subparsers) -> None:
    """Adds the action."""
    plan = SetPlan.model_fields
    parser = actions.add_parser(
        "forge",
        help="make a task set out of packages with their own tests",
        description="Puts a defect into a function that a package's tests run, and keeps it if they fail with it and "
        "pass without it. The same arguments give the same tasks. Packages that are done are kept in "
        "$STEPWELL_HOME/packages: whoever is interrupted goes on there.",
    )
    parser.add_argument(
        "archives",
        nargs="*",
        type=Path,
        metavar="ARCHIVE",
        help="source distributions (.tar.gz) with their own tests; without any, pinned packages of the package index",
    )
    parser.add_argument("--packages", help=f"pinned packages to train on ({','.join(plan['packages'].default)})")
    parser.add_argument(
        "--held-out", help=f"pinned packages that training never sees ({','.join(plan['held_out'].default)})"
    )
    parser.add_argument(
        "--any-licence",
        action="store_true",
        help="take archives whose licence is not known to be permissive: tasks hold their source",
    )
    parser.add_argument("--templates", action="store_true", help="tasks from templates instead: small, and many")
    parser.add_argument("--seed", type=int, default=0, help="which of the possible defects are taken (0)")
    for name in _COUNTS:
        parser.add_argument(f"--{name}", type=int, metavar="N", help=_count_help(name))
    parser.add_argument(
        "--out",
        type=Path,
        required=True,
        help="file to write; `stepwell tasks audit` reads it. A task set that is there is replaced, nothing else is",
    )
    parser.add_argument("--json", action="store_true", help="say what was made as JSON")
    parser.set_defaults(run=run)


def _count_help(name: str) -> str:
    template = "heldout_family" if name == "heldout" else name
    field = ForgeCounts.model_fields[template]
    if name not in SetPlan.model_fields:
        return f"with --templates: {field.description} ({field.default})"
    ours = SetPlan.model_fields[name]
    return f"{ours.description} ({ours.default}) With --templates: {field.description} ({field.default})"


def run(args: argparse.Namespace) -> int:
    """Forges what the arguments ask for."""
    try:
        check_out("--out", args.out, starts=SET_STARTS)
        forged = _from_templates(args) if args.templates else asyncio.run(_from_packages(args))
    except ValueError as error:
        print(f"stepwell tasks forge: {_said(error)}", file=sys.stderr)
        return 2
    tasks = forged.tasks
    count = sum(1 for _ in tasks.every())
    if not count:
        print(f"stepwell tasks forge: no task came of it, and {args.out} was not written", file=sys.stderr)
        return 1
    try:
        write_whole(args.out, lambda file: write_set(tasks.every(), file))
    except OSError as error:
        print(f"cannot write {args.out}: {error.strerror}; make room, or name another file", file=sys.stderr)
        return 1
    if args.json:
        print(json.dumps(_summary(args.out, forged)))
    else:
        print(f"{count} tasks in {args.out}, digest {tasks.digest}", file=sys.stderr)
    return 0


def _said(error: ValueError) -> str:
    """The error in a line; of pydantic's the key and what is wrong with it."""
    from pydantic import ValidationError

    if not isinstance(error, ValidationError):
        return str(error)
    first = error.errors()[0]
    key = "--" + str(first["loc"][0]).replace("_family", "").replace("_", "-") if first["loc"] else "the arguments"
    return f"{key} {first['input']}: {first['msg']}"


def _given(args: argparse.Namespace, names: tuple[str, ...]) -> dict[str, int]:
    return {name: getattr(args, name) for name in names if getattr(args, name) is not None}


def _refuse(args: argparse.Namespace, names: tuple[str, ...], because: str) -> None:
    for name in names:
        if getattr(args, name):
            raise UnusableOption(f"--{name.replace('_', '-')} would do nothing {because}: leave it out")


def _from_templates(args: argparse.Namespace) -> ForgedSet:
    if args.archives:
        raise UnusableOption("templates need no archive: leave out --templates or the archives")
    _refuse(args, ("packages", "held_out", "any_licence"), "with --templates")
    given = _given(args, _COUNTS)
    counts = {"heldout_family" if name == "heldout" else name: count for name, count in given.items()}
    return ForgedSet(forge(args.seed, ForgeCounts.model_validate(counts)), ())


async def _from_packages(args: argparse.Namespace) -> ForgedSet:
    _refuse(args, ("confirm",), "without --templates")
    named = {key: tuple(getattr(args, key).split(",")) for key in ("packages", "held_out") if getattr(args, key)}
    if args.packages and not args.held_out:
        named["held_out"] = ()
    if args.held_out and not args.packages:
        named["packages"] = ()
    plan = SetPlan.model_validate({"seed": args.seed, **named, **_given(args, ("train", "validation", "heldout"))})
    if not (plan.train or plan.validation or (plan.heldout and not args.archives)):
        raise UnusableOption("no task is asked for: give a count above 0")
    folder = Home.of(None).root / "packages"
    async with sandboxes() as factory:
        if not args.archives:
            _refuse(args, ("any_licence",), "without archives")
            plan.shares()
            return await forge_set(plan, factory, folder, told=_tell, shown=_show)
        _refuse(args, ("packages", "held_out", "heldout"), "with archives")
        trees = [await asyncio.to_thread(archive_tree, archive) for archive in args.archives]
        _check_trees(trees, any_licence=args.any_licence)
        share = Share(train=plan.train, validation=plan.validation)
        wanted = [(tree, share) for tree in trees]
        return await forge_trees(wanted, plan.seed, factory, folder, told=_tell, shown=_show)


def _check_trees(trees: list[PackageTree], *, any_licence: bool) -> None:
    names = [tree.source.name for tree in trees]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise UnusableOption(f"{twice} is in two of the archives: name one")
    for source in (tree.source for tree in trees):
        if not any_licence and not is_permissive(source.licence):
            raise UnusableOption(
                f"the licence of {source.name} {source.version} is {source.licence!r} by its metadata, which is not "
                "known to be permissive, and tasks hold its source: say --any-licence if you may do so"
            )


def _show(progress: Progress) -> None:
    """On a terminal a line that is written anew; elsewhere one now and then."""
    said = f"{progress.package}: {progress.tasks} of {progress.asked} tasks, {progress.tried} defects tried"
    if sys.stderr.isatty():
        print(f"\r{said}\x1b[K", end="", file=sys.stderr, flush=True)
    elif progress.is_task and progress.tasks % SHOWN_EVERY == 0:
        print(said, file=sys.stderr, flush=True)


def _tell(made: PackageYield) -> None:
    kept = sum(made.kept.values())
    fewer = "" if kept == made.asked else f", {made.asked} were asked for"
    tests = ", ".join(f"{count} {what}" for what, count in made.tests.items())
    start = "\r\x1b[K" if sys.stderr.isatty() else ""
    print(
        f"{start}{made.package}: {kept} tasks{fewer}; {made.tried} defects tried in {made.seconds:.0f} s; of its tests "
        f"{tests}",
        file=sys.stderr,
        flush=True,
    )


def _summary(out: Path, forged: ForgedSet) -> dict[str, object]:
    tasks: TaskSet = forged.tasks
    return {
        "file": str(out),
        "digest": tasks.digest,
        "tasks": sum(1 for _ in tasks.every()),
        "splits": Counter(task.split for task in tasks.every()),
        "difficulties": Counter(task.difficulty for task in tasks.every()),
        "kinds": Counter(task.origin.kind for task in tasks.every() if task.origin is not None),
        "licences": {task.origin.package: task.origin.licence for task in tasks.every() if task.origin is not None},
        "packages": [made.model_dump() for made in forged.made],
    }
