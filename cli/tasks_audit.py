"""`stepwell tasks audit`: proves that the tasks of a set can be trusted, and compares what two machines found."""

import argparse
import asyncio
import json
import sys
from collections.abc import Iterable
from pathlib import Path
from statistics import median

from cli.arguments import Subparsers
from cli.tasks_files import UnusableFile, check_out, write_whole
from cli.tasks_sandboxes import sandboxes
from stepwell.tasks.audit import AuditedTask, AuditReport, Comparison, audit_tasks, compare
from stepwell.tasks.audit.report import REPORT_STARTS, BrokenReport, read_report
from stepwell.tasks.set_file import SET_STARTS, BrokenSetFile, read_set, write_set
from stepwell.tasks.task import Task


def add_parser(actions: Subparsers) -> None:
    """Adds the action."""
    parser = actions.add_parser(
        "audit",
        help="prove that the gold patch of each task passes, that doing nothing fails, and that both do each time",
        description="Exit status 0 if every task is good, or both machines agree on every task, else 1.",
    )
    parser.add_argument("set", nargs="?", type=Path, metavar="SET", help="file that `stepwell tasks forge` wrote")
    parser.add_argument(
        "--compare", nargs=2, type=Path, metavar=("A", "B"), help="compare the reports of two machines instead"
    )
    parser.add_argument("--repetitions", type=int, help="gradings of the gold patch, and of doing nothing (3)")
    parser.add_argument("--out", type=Path, help="file to write the report to, for --compare")
    parser.add_argument("--keep", type=Path, help="file to write the set to, without the tasks that are dropped")
    parser.add_argument("--json", action="store_true", help="say what was found as JSON")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Audits a set, or compares two audits."""
    wrong = _wrong(args)
    if wrong:
        print(f"stepwell tasks audit: {wrong}", file=sys.stderr)
        return 2
    try:
        check_out("--out", args.out, starts=REPORT_STARTS)
        check_out("--keep", args.keep, starts=SET_STARTS)
        return _compare(args) if args.compare else _audit(args)
    except (BrokenSetFile, BrokenReport, UnusableFile) as error:
        print(f"stepwell tasks audit: {error}", file=sys.stderr)
        return 2
    except ValueError as error:
        print(f"stepwell tasks audit: {error}", file=sys.stderr)
        return 1
    except OSError as error:
        print(f"cannot write {error.filename}: {error.strerror}; make room, or name another file", file=sys.stderr)
        return 1


def _wrong(args: argparse.Namespace) -> str | None:
    """What is wrong with the arguments."""
    if args.compare is None and args.set is None:
        return "name a set, or two reports with --compare A B"
    if args.compare is not None and (args.out is not None or args.repetitions is not None):
        return "--out and --repetitions would do nothing with --compare: leave them out"
    if args.compare is not None and (args.set is None) != (args.keep is None):
        return "with --compare, a set is read only to be written without what differs: name both SET and --keep"
    if args.repetitions is not None and args.repetitions < 1:
        return f"--repetitions {args.repetitions}: a task is graded once at least"
    return None


def _audit(args: argparse.Namespace) -> int:
    tasks = read_set(args.set)
    report = asyncio.run(_audited(tasks, 3 if args.repetitions is None else args.repetitions))
    if args.out is not None:
        text = report.model_dump_json(indent=1) + "\n"
        write_whole(args.out, lambda file: file.write(text))
    if args.keep is not None:
        _keep(args.keep, tasks, {task.task for task in report.kept})
    if args.json:
        print(json.dumps(_summary(report)))
    else:
        _print_report(report)
    return 1 if report.dropped else 0


async def _audited(tasks: list[Task], repetitions: int) -> AuditReport:
    done = 0

    def tell(audited: AuditedTask) -> None:
        nonlocal done
        done += 1
        if audited.dropped is not None or done % 50 == 0 or done == len(tasks):
            print(f"{done} of {len(tasks)}: {audited.id}: {audited.dropped or 'good'}", file=sys.stderr)

    async with sandboxes() as factory:
        return await audit_tasks(tasks, factory, repetitions=repetitions, told=tell)


def _compare(args: argparse.Namespace) -> int:
    first, second = (read_report(path) for path in args.compare)
    comparison = compare(first, second)
    if args.keep is not None:
        _keep(args.keep, read_set(args.set), set(comparison.kept))
    if args.json:
        print(comparison.model_dump_json())
    else:
        _print_comparison(comparison, first, second)
    return 1 if comparison.dropped else 0


def _keep(file: Path, tasks: Iterable[Task], digests: set[str]) -> None:
    kept = [task for task in tasks if task.digest in digests]
    write_whole(file, lambda opened: write_set(kept, opened))


def _summary(report: AuditReport) -> dict[str, object]:
    return {
        "machine": report.machine.model_dump(),
        "grader": report.grader,
        "repetitions": report.repetitions,
        "set": report.set_digest,
        "digest": report.digest,
        "kept": len(report.kept),
        "dropped": {task.id: task.dropped for task in report.dropped},
        "seconds": _seconds(report),
    }


def _seconds(report: AuditReport) -> dict[str, float]:
    """Of one grading, over all gradings."""
    every = [seconds for task in report.tasks for seconds in (*task.gold_s, *task.nothing_s)]
    return {"median": round(median(every), 3), "longest": max(every)} if every else {}


def _print_report(report: AuditReport) -> None:
    for task in report.dropped:
        print(f"dropped {task.id}: {task.dropped}")
    seconds = _seconds(report)
    print(f"{len(report.kept)} of {len(report.tasks)} tasks are good, each {report.repetitions} times")
    if seconds:
        print(f"a grading takes {seconds['median']} s (median), {seconds['longest']} s at most")
    print(f"set    {report.set_digest}")
    print(f"digest {report.digest}")


def _print_comparison(comparison: Comparison, first: AuditReport, second: AuditReport) -> None:
    for dropped in comparison.dropped:
        print(f"dropped {dropped.id}: {dropped.reason}")
    total = len(comparison.kept) + len(comparison.dropped)
    machines = " and ".join(report.machine.architecture for report in (first, second))
    print(f"{machines} agree on {len(comparison.kept)} of {total} tasks")
    print(f"digests {first.digest} and {second.digest}")
