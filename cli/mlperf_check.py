"""`stepwell mlperf check LOG…`: what MLCommons' own checkers say of logs."""

import argparse
import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from cli.arguments import Subparsers

if TYPE_CHECKING:
    from stepwell.mlperf.official_checks import Verdict


def add_parser(actions: Subparsers) -> None:
    """Adds the action."""
    parser = actions.add_parser(
        "check",
        help="run the official checkers on logs",
        description="Runs the official compliance checker on each log; with --rcp, once all comply, that of reference "
        "convergence points on all of them, which the closed division asks for. Exit 0 if every checker is content, 1 "
        "if one is not, 2 if there is no such log.",
    )
    parser.add_argument("logs", type=Path, nargs="+", metavar="LOG", help="a log, or a folder with result_N.txt")
    parser.add_argument("--rcp", action="store_true", help="compare samples to target with the reference's")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Checks; 0 if all is well."""
    from stepwell.mlperf.official_checks import check_compliance, check_convergence  # it takes a second to import

    logs = _logs(args.logs)
    verdicts = [check_compliance(log) for log in logs]
    skipped = bool(args.rcp) and not all(verdict.passed for verdict in verdicts)
    if args.rcp and not skipped:
        verdicts.append(check_convergence(logs))
    return show(verdicts, is_json=args.json, note="rcp: not run, since a log does not comply" if skipped else "")


def show(verdicts: Sequence["Verdict"], *, is_json: bool, note: str = "") -> int:
    """Prints what checkers said; the exit code."""
    passed = all(verdict.passed for verdict in verdicts)
    if is_json:
        shown = [verdict.as_json() for verdict in verdicts]
        print(json.dumps({"passed": passed, "verdicts": shown, "note": note}))
        return 0 if passed else 1
    for verdict in verdicts:
        print(f"{'pass' if verdict.passed else 'FAIL'}  {verdict.checker:<10}  {verdict.subject}")
        for message in verdict.messages:
            print("\n".join(f"      {line}" for line in message.splitlines()))
    if note:
        print(note)
    return 0 if passed else 1


def _logs(paths: Sequence[Path]) -> list[Path]:
    """The logs that are meant. Raises NoSuchLog: a folder has none, or a file is not there."""
    from stepwell.mlperf.official_checks import NoSuchLog, result_files

    logs: list[Path] = []
    for path in paths:
        found = result_files(path) if path.is_dir() else [path]
        if not found:
            raise NoSuchLog(f"{path} has no result_0.txt, result_1.txt …: name the logs, or the folder that holds them")
        logs += found
    return logs
