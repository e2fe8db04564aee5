"""`stepwell mlperf`: results for MLPerf Training's LLM post-training benchmark."""

from cli import mlperf_certify, mlperf_check, mlperf_import, mlperf_log, mlperf_package, mlperf_study
from cli.arguments import Subparsers


def add_parser(subparsers: Subparsers) -> None:
    """Adds the verb."""
    parser = subparsers.add_parser("mlperf", help="make a benchmark result of runs")
    actions = parser.add_subparsers(dest="mlperf_action", required=True, metavar="ACTION")
    for action in (mlperf_log, mlperf_check, mlperf_certify, mlperf_package, mlperf_study, mlperf_import):
        action.add_parser(actions)
