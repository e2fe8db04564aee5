"""`stepwell mlperf import LOG`: a published log of the reference as events of ours, and the log that they give."""

import argparse
import json
from pathlib import Path

from cli.arguments import Subparsers


def add_parser(actions: Subparsers) -> None:
    """Adds the action."""
    parser = actions.add_parser(
        "import",
        help="make a published log of the reference anew, by our own writer",
        description="Turns a published log of the benchmark's reference into events, derives a log of them, and says "
        "which keys were added, changed or left out. With --today it also gets what today's checker asks for instead "
        "of what was true: 251 validation tasks. Nothing is appended to a ledger. Exit 2 if it is no such log.",
    )
    parser.add_argument("log", type=Path, metavar="LOG", help="a log of the reference")
    parser.add_argument("--run", dest="run_name", default="reference", metavar="NAME", help="name for the run")
    parser.add_argument("--today", action="store_true", help="with the validation tasks that today's checker wants")
    parser.add_argument("--out", type=Path, required=True, metavar="FILE", help="where the log goes")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Makes it; 0 if it stands."""
    from cli.mlperf_files import read_text, write_text  # imported here: they take a second, which `--help` should not
    from stepwell.mlperf.deriving import derive
    from stepwell.mlperf.key_changes import key_changes
    from stepwell.mlperf.lines import lines_of, mllog_text
    from stepwell.mlperf.reference_logs import TODAY_EVAL_SAMPLES, import_log

    published = read_text(args.log)
    imported = import_log(published, args.run_name, eval_samples=TODAY_EVAL_SAMPLES if args.today else None)
    log = derive(imported.facts, imported.submission)
    lines = lines_of(log)
    text = mllog_text(lines)
    write_text(args.out, text)
    changes = key_changes(published, text)
    events = len(imported.facts.events)
    if args.json:
        shown = [{"key": each.key, "was": each.was, "now": each.now} for each in changes]
        print(json.dumps({"events": events, "lines": len(lines), "samples": log.samples, "changes": shown}))
        return 0
    print(f"{args.out}: {events} events, {len(lines)} lines, {log.samples:,} samples, {log.minutes:.2f} minutes")
    print("\n".join(map(str, changes)))
    return 0
