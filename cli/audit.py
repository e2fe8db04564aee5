"""`stepwell audit`: checks a run from its ledger, and takes it apart."""

from cli import (
    audit_anchor,
    audit_counterfactual,
    audit_explain,
    audit_export,
    audit_fork,
    audit_history,
    audit_quarantine,
    audit_redact,
    audit_regrade,
    audit_replay,
    audit_retrain,
    audit_verify,
)
from cli.arguments import Subparsers


def add_parser(subparsers: Subparsers) -> None:
    """Adds the verb."""
    parser = subparsers.add_parser("audit", help="check a run from its ledger")
    actions = parser.add_subparsers(dest="audit_action", required=True, metavar="ACTION")
    for action in (
        audit_verify,
        audit_replay,
        audit_retrain,
        audit_history,
        audit_explain,
        audit_fork,
        audit_counterfactual,
        audit_regrade,
        audit_quarantine,
        audit_export,
        audit_anchor,
        audit_redact,
    ):
        action.add_parser(actions)
