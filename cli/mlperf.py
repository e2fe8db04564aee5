"""`stepwell mlperf`: a run as a result of MLPerf Training's LLM post-training benchmark."""

import argparse

from cli import mlperf_certify, mlperf_check, mlperf_import, mlperf_log, mlperf_package


def add_parser(
    subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]",  # pyright: ignore[reportPrivateUsage]  # no public name
) -> None:
    """Adds the verb."""
    parser = subparsers.add_parser("mlperf", help="make a benchmark result of runs")
    actions = parser.add_subparsers(dest="mlperf_action", required=True, metavar="ACTION")
    for action in (
        mlperf_log,
        mlperf_check,
        mlperf_package,
        mlperf_import,
        mlperf_certify,
    ):
        action.add_parser(actions)
