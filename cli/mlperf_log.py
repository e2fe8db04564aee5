"""`stepwell mlperf log RUN`: a run's benchmark log, derived from its ledger; or where another log departs from it."""

import argparse
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cli.arguments import Subparsers

if TYPE_CHECKING:
    from stepwell.mlperf.benchmark_log import BenchmarkLog
    from stepwell.mlperf.comparing import Difference


def add_parser(actions: Subparsers) -> None:
    """Adds the action."""
    parser = actions.add_parser(
        "log",
        help="derive a run's benchmark log from its ledger",
        description="Prints the run's log as MLCommons' own package writes it; each line names the event that it comes "
        "from. With --check the log in a file is compared instead: exit 1 if a line differs. Exit 2 if there is no "
        "such run, or the ledger and the submission file do not say what a log must.",
    )
    parser.add_argument("name", metavar="RUN", help="name of the run")
    parser.add_argument("--submission", type=Path, required=True, metavar="TOML", help="what the submitter declares")
    where = parser.add_mutually_exclusive_group()
    where.add_argument("--out", type=Path, metavar="FILE", help="write the log there")
    where.add_argument("--check", type=Path, metavar="FILE", help="compare this log, and name the first other line")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Writes or compares the log; 0 if it stands, or says the same."""
    from cli.mlperf_facts import facts_of  # imported here: they take a second, which `--help` should not
    from cli.mlperf_files import read_text, write_text
    from stepwell.mlperf.comparing import first_difference
    from stepwell.mlperf.deriving import derive
    from stepwell.mlperf.lines import lines_of, mllog_text
    from stepwell.mlperf.submission import load_submission

    submission = load_submission(args.submission)
    given = None if args.check is None else read_text(args.check)
    log = derive(facts_of([args.name])[0], submission)
    lines = lines_of(log)
    if given is not None:
        difference = first_difference(given, lines)
        said = json.dumps(_compared(log, difference)) if args.json else _said(str(args.check), len(lines), difference)
        print(said)
        return 0 if difference is None else 1
    text = mllog_text(lines)
    if args.out is not None:
        write_text(args.out, text)
    if args.json:
        print(
            json.dumps({**_summary(log), "lines": [json.loads(line.partition(" ")[2]) for line in text.splitlines()]})
        )
    elif args.out is None:
        print(text, end="")
    else:
        print(
            f"{args.out}: {len(lines)} lines; {log.stop.status.value} at version {log.stop.version}, {log.samples:,} "
            f"samples, {log.minutes:.2f} minutes"
        )
    return 0


def _summary(log: "BenchmarkLog") -> dict[str, Any]:
    return {
        "run": log.run,
        "status": log.stop.status.value,
        "version": log.stop.version,
        "samples": log.samples,
        "minutes": log.minutes,
        "is_offline": log.is_offline,
    }


def _compared(log: "BenchmarkLog", difference: "Difference | None") -> dict[str, Any]:
    return {**_summary(log), "difference": None if difference is None else difference._asdict()}


def _said(path: str, lines: int, difference: "Difference | None") -> str:
    if difference is None:
        return f"{path}: its {lines} lines are those of the ledger"
    parts = f" in {', '.join(difference.parts)}" if difference.parts else ""
    return "\n".join(
        [
            f"{path}:{difference.number}: differs{parts}; the line comes from {difference.source}",
            f"  the log:    {difference.given or '(no such line)'}",
            f"  the ledger: {difference.derived or '(no such line)'}",
        ]
    )
