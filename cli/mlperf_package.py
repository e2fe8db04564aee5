"""`stepwell mlperf package RUN…`: a submission's folder out of runs, checked by the official package checker."""

import argparse
import json
from pathlib import Path

from cli.arguments import Subparsers


def add_parser(actions: Subparsers) -> None:
    """Adds the action."""
    parser = actions.add_parser(
        "package",
        help="lay out a submission's folder",
        description="Derives the log of each run, writes them with the system's description and the resolved recipes "
        "into OUT/<submitter>, and runs the official package checker on it. Exit 0 if it is content, 1 if not (the "
        "folder stays, to be looked at), 2 if nothing was written.",
    )
    parser.add_argument("names", metavar="RUN", nargs="+", help="runs, in the order of their numbers: three")
    parser.add_argument(
        "--submission", type=Path, required=True, metavar="TOML", help="what the submitter declares, with [system]"
    )
    parser.add_argument("--out", type=Path, required=True, metavar="FOLDER", help="gets a folder of the submitter")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Writes and checks; 0 if the package will do."""
    from cli.mlperf_check import show  # imported here: they take a second, which `--help` should not
    from cli.mlperf_facts import facts_of
    from cli.mlperf_files import UnusableFile
    from stepwell.mlperf.deriving import derive
    from stepwell.mlperf.official_checks import check_package
    from stepwell.mlperf.packaging import Result, write_package
    from stepwell.mlperf.submission import load_submission, load_system

    submission = load_submission(args.submission)
    system = load_system(args.submission, submission)
    results = [Result(facts, derive(facts, submission)) for facts in facts_of(args.names)]
    try:
        folder = write_package(args.out, results, system)
    except OSError as error:
        raise UnusableFile(f"{args.out} cannot be written: {error.strerror}; name another with --out") from None
    verdicts = check_package(folder)
    if args.json:
        shown = [verdict.as_json() for verdict in verdicts]
        passed = all(verdict.passed for verdict in verdicts)
        minutes = {result.log.run: result.log.minutes for result in results}
        print(json.dumps({"folder": str(folder), "passed": passed, "verdicts": shown, "minutes": minutes}))
        return 0 if passed else 1
    for number, result in enumerate(results):
        log = result.log
        print(
            f"result_{number}.txt  {log.run}: {log.stop.status.value}, {log.samples:,} samples, {log.minutes:.2f} min"
        )
    print(folder)
    return show(verdicts, is_json=False)
