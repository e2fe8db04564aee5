"""`stepwell mlperf`: a run as a result of MLPerf Training's LLM post-training benchmark."""

import argparse

from cli import mlperf_study


def add_parser(
    subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]",  # pyright: ignore[reportPrivateUsage]  # no public name
) -> None:
    """Adds the verb."""
    parser = subparsers.add_parser("mlperf", help="make a benchmark result of runs")
    actions = parser.add_subparsers(dest="mlperf_action", required=True, metavar="ACTION")
    for action in (mlperf_study,):
        action.add_parser(actions)
