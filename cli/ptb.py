"""`stepwell ptb`: PostTrainBench."""

import argparse

from cli import ptb_leaderboard


def add_parser(
    subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]",  # pyright: ignore[reportPrivateUsage]  # no public name
) -> None:
    """Adds the verb."""
    parser = subparsers.add_parser("ptb", help="score and rank agents that post-train a model on their own")
    actions = parser.add_subparsers(dest="ptb_action", required=True, metavar="ACTION")
    for action in (ptb_leaderboard,):
        action.add_parser(actions)
