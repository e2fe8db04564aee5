"""`stepwell watch RUN`: the live view of a run that goes on somewhere, until it has ended."""

import argparse
import asyncio
import json
import sys

from cli.arguments import Subparsers, add_run


def add_parser(subparsers: Subparsers) -> None:
    """Adds the verb."""
    parser = subparsers.add_parser(
        "watch",
        help="follow a run until it ends",
        description="Shows a run live. Ctrl-C leaves it; the run goes on. Exit 0, or 1 if the run failed, 2 if there "
        "is no such run.",
    )
    add_run(parser)
    parser.add_argument("--json", action="store_true", help="print one JSON object that says how it stands, and leave")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Follows the run; 1 if it failed."""
    from rich.console import Console  # imported here: they take a second, which `--help` should not

    from cli.live import summary
    from cli.live.following import follow, look_and_ask
    from cli.live.waits import waits
    from cli.services_to_read import services_to_read
    from stepwell.events.run_finished import RunEnd
    from stepwell.report.snapshot import snapshot

    try:
        with services_to_read() as addresses:
            if args.json:
                seen = asyncio.run(look_and_ask(addresses, args.name))
                picture, word = seen.picture, seen.word
                said = None if word.progress is None else word.progress.model_dump(mode="json")
                waiting = [wait.line for wait in waits(picture, word.progress, word.silence)]
                print(json.dumps({**snapshot(picture), "progress": said, "waits": waiting}))
                return 0
            picture = asyncio.run(follow(addresses, args.name, Console()))
    except KeyboardInterrupt:
        print(f"left; `stepwell watch {args.name}` shows it again", file=sys.stderr)
        return 0
    print(summary(picture))
    return 1 if picture.finished is not None and picture.finished.end is RunEnd.FAILED else 0
