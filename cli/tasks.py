"""`stepwell tasks`: makes task sets, and proves that they can be trusted."""

from cli import tasks_audit, tasks_forge, tasks_r2e
from cli.arguments import Subparsers


def add_parser(subparsers: Subparsers) -> None:
    """Adds the verb."""
    parser = subparsers.add_parser("tasks", help="make task sets, and audit them")
    actions = parser.add_subparsers(dest="tasks_action", required=True, metavar="ACTION")
    for action in (tasks_forge, tasks_audit, tasks_r2e):
        action.add_parser(actions)
