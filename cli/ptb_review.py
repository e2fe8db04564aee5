"""`stepwell ptb review`: puts results, and what is known of their trials, to the review rubric."""

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from cli.arguments import Subparsers

if TYPE_CHECKING:
    from stepwell.ptb.review import ReviewRecord
    from stepwell.ptb.review.sample import Sample


def add_parser(actions: Subparsers) -> None:
    """Adds the action."""
    parser = actions.add_parser(
        "review",
        help="put results to the review rubric, check by check, with evidence",
        description="Reads files of results, and of what is known beside them (JSON lines; "
        "docs/posttrainbench-review.md). What is not known never passes. Exit status 0 if the verdict is Verified, 1 "
        "if it is Flawed or there is not enough information, 2 if the files hold no record.",
    )
    parser.add_argument("files", nargs="+", type=Path, metavar="FILE", help="results, records, or what people found")
    parser.add_argument(
        "--sample", type=Path, metavar="FILE", help="write the scored answers that people are to look at still"
    )
    parser.add_argument(
        "--our-scorers",
        action="store_true",
        help="put the scorers of this Stepwell to the known cases (S1), of benchmarks that they scored",
    )
    parser.add_argument("--all", action="store_true", help="print all evidence, and every place that it is said of")
    parser.add_argument("--json", action="store_true", help="print one JSON object, with all evidence")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Prints the review: 0 if it is Verified, 1 if not, 2 if there is nothing to review."""
    from cli.ptb_review_text import print_review  # imported here: rich and pydantic's models take a while
    from stepwell.ptb.review import BrokenRecord, Verdict, read_record, review

    try:
        record = read_record(args.files)
        if args.sample is not None:
            _write_sample(record, args.sample)
    except (BrokenRecord, OSError) as error:
        print(f"stepwell ptb review: {error}", file=sys.stderr)
        return 2
    if args.our_scorers:
        from cli.ptb_own_scorers import with_our_scorers

        record = with_our_scorers(record)
    found = review(record)
    if args.json:
        print(found.model_dump_json(indent=1))
    else:
        print_review(found, everything=args.all)
    return 0 if found.verdict is Verdict.VERIFIED else 1


def _write_sample(record: "ReviewRecord", path: Path) -> None:
    """Writes what people are to look at, as lines that they complete. A file that is there is left alone: it may hold
    what they found.

    Raises:
        FileExistsError: there is one.
        OSError: it cannot be written.
    """
    from stepwell.ptb.review.record import trials_of
    from stepwell.ptb.review.sample import draw

    sample = draw(record, trials_of(record))
    try:
        with path.open("x", encoding="utf-8") as file:
            file.writelines(_questions(sample))
    except FileExistsError as error:
        raise FileExistsError(f"{path} is there, and may hold what people found: name another file") from error


def _questions(sample: "Sample") -> list[str]:
    from stepwell.ptb.review.asked import asked_line

    return [asked_line(unit) for unit in sample.missing]
