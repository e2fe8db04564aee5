"""`stepwell ptb`: PostTrainBench."""

from cli import (
    ptb_contamination,
    ptb_files,
    ptb_identity,
    ptb_leaderboard,
    ptb_override,
    ptb_policy,
    ptb_review,
    ptb_run,
    ptb_score,
    ptb_status,
    ptb_verify,
)
from cli.arguments import Subparsers

ACTIONS = (
    ptb_run,
    ptb_status,
    ptb_override,
    ptb_verify,
    ptb_score,
    ptb_leaderboard,
    ptb_review,
    ptb_files,
    ptb_policy,
    ptb_contamination,
    ptb_identity,
)


def add_parser(subparsers: Subparsers) -> None:
    """Adds the verb."""
    parser = subparsers.add_parser("ptb", help="score and rank agents that post-train a model on their own")
    actions = parser.add_subparsers(dest="ptb_action", required=True, metavar="ACTION")
    for action in ACTIONS:
        action.add_parser(actions)
