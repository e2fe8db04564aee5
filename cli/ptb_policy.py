"""`stepwell ptb policy`: a submitted model as a folder that a run can train further."""

import argparse
import json
import sys
from pathlib import Path

from cli.arguments import Subparsers


def add_parser(actions: Subparsers) -> None:
    """Adds the action."""
    parser = actions.add_parser(
        "policy",
        help="write a submitted model as a policy that a recipe can name",
        description="Copies what an evaluation reads of the submission, and nothing else; an adapter is put into its "
        "base. Prints the digest of the weights, which the run's version 0 records as its origin. Exit status 2 if the "
        "submission cannot be evaluated, so can be no policy, or the folder exists.",
    )
    parser.add_argument("model", type=Path, metavar="MODEL", help="folder that was submitted")
    parser.add_argument("--base", type=Path, metavar="FOLDER", help="the base model, for an adapter")
    parser.add_argument("--out", type=Path, required=True, metavar="FOLDER", help="new folder")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Writes the folder; 2 if there can be none."""
    from stepwell.ptb.evaluation.small_files import Refused  # imported here: torch takes seconds
    from stepwell.ptb.evaluation.whole_model import UnusableBase, write_policy

    try:
        digest = write_policy(args.model, args.base, args.out)
    except (Refused, UnusableBase, FileExistsError) as error:
        print(f"stepwell ptb policy: {error}", file=sys.stderr)
        return 2
    if args.json:
        print(json.dumps({"folder": str(args.out), "weights": digest}))
    else:
        print(f'weights {digest}; in a recipe: policy = {{ kind = "folder", path = "{args.out}" }}')
    return 0
