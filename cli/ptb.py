"""`stepwell ptb`: PostTrainBench."""

from cli import ptb_contamination, ptb_identity, ptb_leaderboard, ptb_review
from cli.arguments import Subparsers


def add_parser(subparsers: Subparsers) -> None:
    """Adds the verb."""
    parser = subparsers.add_parser("ptb", help="score and rank agents that post-train a model on their own")
    actions = parser.add_subparsers(dest="ptb_action", required=True, metavar="ACTION")
    for action in (ptb_leaderboard, ptb_review, ptb_contamination, ptb_identity):
        action.add_parser(actions)
