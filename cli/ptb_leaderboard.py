"""`stepwell ptb leaderboard`: ranks agents by what their trials scored."""

import argparse
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from cli.arguments import Subparsers

if TYPE_CHECKING:
    from stepwell.ptb.leaderboard import Board


def add_parser(actions: Subparsers) -> None:
    """Adds the action."""
    parser = actions.add_parser(
        "leaderboard",
        help="rank agents by what their trials scored, with all that the ranking stands on",
        description="Reads files of results (JSON lines; docs/posttrainbench.md) and prints a table for each "
        "comparability key: results of different keys are never in one. Exit status 1 if the page cannot be written, 2 "
        "if a file holds no results or a base model's score is missing.",
    )
    parser.add_argument("results", nargs="+", type=Path, metavar="RESULTS", help="file of results")
    parser.add_argument("--cells", action="store_true", help="list each cell too: raw score, flags, imputed score")
    parser.add_argument(
        "--published-baselines",
        action="store_true",
        help="take base models' scores that are missing from the published table, and say so",
    )
    parser.add_argument("--html", type=Path, metavar="PAGE", help="also write one self-contained page with plots")
    parser.add_argument("--json", action="store_true", help="print a JSON list of the tables, with every cell")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Prints the leaderboards; 2 if there can be none."""
    from cli.ptb_tables import print_board  # imported here: rich and pydantic's models take a while
    from stepwell.ptb.leaderboard import BrokenResults, NoBaseScore, make_boards, read_results

    try:
        boards = make_boards(read_results(args.results), published=args.published_baselines)
    except (BrokenResults, NoBaseScore) as error:
        print(f"stepwell ptb leaderboard: {error}", file=sys.stderr)
        return 2
    if args.html is not None:
        _write_page(boards, args.html)
    if args.json:
        print(json.dumps([board.model_dump(mode="json") for board in boards], indent=1))
        return 0
    if not boards:
        print("no agent has results in these files")
    elif len(boards) > 1:
        print(f"{len(boards)} comparability keys: their scores must not be compared with each other\n")
    for board in boards:
        print_board(board, cells=args.cells)
    if args.html is not None:
        print(f"Page: {args.html}")
    return 0


def _write_page(boards: "list[Board]", path: Path) -> None:
    """Raises CannotWrite."""
    from cli.whole_file import write_whole
    from stepwell.ptb.leaderboard.page import render_leaderboard

    write_whole(path, render_leaderboard(boards), "--html")
