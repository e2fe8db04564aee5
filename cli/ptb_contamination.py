"""`stepwell ptb contamination`: looks for a benchmark's rows in what an agent left."""

import argparse
import json
import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from cli.arguments import Subparsers

if TYPE_CHECKING:
    from stepwell.ptb.contamination import Report

SHOWN = 20
"""Leaks and reasons that the text names; `--json` has them all."""


def add_parser(actions: Subparsers) -> None:
    """Adds the action."""
    parser = actions.add_parser(
        "contamination",
        help="look for a benchmark's rows in what an agent trained on",
        description="Reads every string of every file: JSON, JSON lines, parquet, Arrow, CSV, YAML, programs, "
        "notebooks, text, packed or not. Exit status 0 if no more rows than allowed are in them, 1 if more are or "
        "nothing could be scanned, 2 if the request is wrong. docs/contamination.md says what is found, and what is "
        "not.",
    )
    parser.add_argument("folder", type=Path, metavar="FOLDER", help="the agent's files; a file is one too")
    parser.add_argument(
        "--benchmark",
        type=Path,
        nargs="+",
        required=True,
        metavar="FILE",
        help="the benchmark's rows: .jsonl, .jsonl.gz or .json",
    )
    parser.add_argument(
        "--paraphrases", action="store_true", help="also compare by meaning (pip install 'stepwell[ptb]')"
    )
    parser.add_argument(
        "--most", type=int, metavar="N", help="with --paraphrases: texts compared at most (10000, about 20 a second)"
    )
    parser.add_argument(
        "--exclude",
        action="append",
        default=[],
        metavar="PATTERN",
        help="paths that are passed over and counted, such as the benchmark's own copy; may be given again",
    )
    parser.add_argument("--tokenizer", type=Path, metavar="FILE", help="tokenizer.json that token ids are read with")
    parser.add_argument("--allowed", type=int, metavar="N", help="rows that are tolerated as accidents (3)")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Checks a folder: 1 if it does not pass, 2 if the request cannot be carried out."""
    from stepwell.ptb.contamination import UnreadableBenchmark
    from stepwell.ptb.contamination.embedding import NoEmbedder

    try:
        report = _checked(args)
    except (UnreadableBenchmark, NoEmbedder, FileNotFoundError, ValueError) as error:
        print(f"stepwell ptb contamination: {error}", file=sys.stderr)
        return 2
    if args.json:
        print(json.dumps(_as_json(report), indent=1))
    else:
        _print(report)
    return 0 if report.passed else 1


def _checked(args: argparse.Namespace) -> "Report":
    from stepwell.ptb.contamination import ALLOWED_LEAKS, Check, check_folder, load_benchmark

    for name, value in (("--most", args.most), ("--allowed", args.allowed)):
        if value is not None and value < 0:
            raise ValueError(f"{name} is {value}: give 0 or more")
    if args.most is not None and not args.paraphrases:
        raise ValueError("--most would do nothing without --paraphrases: leave it out")
    benchmark = load_benchmark(args.benchmark)
    check = Check(
        exclude=tuple(args.exclude),
        allowed=ALLOWED_LEAKS if args.allowed is None else args.allowed,
        decode=None if args.tokenizer is None else _decoder(args.tokenizer),
    )
    if not args.paraphrases:
        return check_folder(args.folder, benchmark, check)
    from stepwell.ptb.contamination.embedding import SentenceEmbedder, minilm_folder
    from stepwell.ptb.contamination.paraphrases import MOST_TEXTS, ParaphraseSearch

    most = MOST_TEXTS if args.most is None else args.most
    search = ParaphraseSearch(benchmark, SentenceEmbedder(minilm_folder()), most)
    return check_folder(args.folder, benchmark, check, search)


def _decoder(path: Path):
    from stepwell.ptb.contamination.leaves import token_decoder

    return token_decoder(path)


def _as_json(report: "Report") -> dict[str, object]:
    return {**asdict(report), "verdict": report.verdict, "passed": report.passed, "not_scanned": report.reasons()}


def _print(report: "Report") -> None:
    print(
        f"{report.verdict}: {len(report.leaks)} rows hold rows of the benchmark, {report.allowed} are allowed; "
        f"{report.scanned_rows} rows in {report.scanned_files} files scanned, {report.scanned_words} words"
    )
    for leak in report.leaks[:SHOWN]:
        print(
            f"  {leak.path}, row {leak.row}: {leak.part} of {leak.item}, {leak.kind}, {leak.score:.2f}: {leak.excerpt}"
        )
    if len(report.leaks) > SHOWN:
        print(f"  and {len(report.leaks) - SHOWN} more: --json has them all")
    for reason, count in report.reasons().items():
        print(f"  not scanned: {count} × {reason}")
    if report.unindexed:
        print(f"  not looked for: {len(report.unindexed)} of {report.items} rows of the benchmark, too short to tell")
    if report.embedded or report.not_embedded:
        print(f"  compared by meaning: {report.embedded} texts, {report.not_embedded} beyond the bound")
