"""The `stepwell` command: collects the verbs and turns known errors into one message and an exit code.

Exit codes: 0 done, 1 failed, 2 usage.
"""

import argparse
import sys
import traceback
from collections.abc import Sequence
from typing import NoReturn

from cli import audit, down, mlperf, operate, ptb, rebuild, report, run, status, tasks, up, watch, worker
from workers.lifetime import leave

VERBS = (run, watch, report, operate, audit, tasks, mlperf, ptb, up, down, status, rebuild, worker)


def build_parser() -> argparse.ArgumentParser:
    """The whole command line."""
    parser = argparse.ArgumentParser(
        prog="stepwell",
        description="Post-trains language models by reinforcement learning on software tasks, and loses no step.",
    )
    subparsers = parser.add_subparsers(required=True, metavar="VERB")
    for verb in VERBS:
        verb.add_parser(subparsers)
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs one verb; its exit code."""
    parsed = build_parser().parse_args(arguments)
    try:
        code: int = parsed.run(parsed)
    except KeyboardInterrupt:
        code = 1
    except Exception as error:
        code = _known(error)
        print(f"stepwell: {error}", file=sys.stderr)
    return code


def command() -> NoReturn:
    """Entry point of the command."""
    try:
        status = main()
    except Exception:
        traceback.print_exc()
        status = 1
    leave(status)


def _known(error: Exception) -> int:
    """Exit code of an error whose message says all; any other is a defect of ours and is raised."""
    from cli.errors import KNOWN_ERRORS, USAGE_ERRORS  # what they come from takes a second to import

    if isinstance(error, USAGE_ERRORS):
        return 2
    if isinstance(error, KNOWN_ERRORS):
        return 1
    raise error


if __name__ == "__main__":
    command()
