"""`stepwell audit`: checks a run from its ledger, and takes it apart."""

import argparse

from cli import (
    audit_counterfactual,
    audit_explain,
    audit_history,
    audit_quarantine,
    audit_regrade,
    audit_replay,
    audit_retrain,
    audit_verify,
)


def add_parser(
    subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]",  # pyright: ignore[reportPrivateUsage]  # no public name
) -> None:
    """Adds the verb."""
    parser = subparsers.add_parser("audit", help="check a run from its ledger")
    actions = parser.add_subparsers(dest="audit_action", required=True, metavar="ACTION")
    for action in (
        audit_verify,
        audit_replay,
        audit_retrain,
        audit_history,
        audit_explain,
        audit_counterfactual,
        audit_regrade,
        audit_quarantine,
    ):
        action.add_parser(actions)
