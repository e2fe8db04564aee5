"""`stepwell mlperf certify RUN`: whether a run can prove, from its events alone, that it is complete."""

import argparse
import json
from pathlib import Path
from typing import TYPE_CHECKING

from cli.arguments import Subparsers

if TYPE_CHECKING:
    from cli.audit_stores import AuditStores
    from stepwell.mlperf.certificate.certify import Certificate
    from stepwell.mlperf.certificate.rules.log import GivenLog


def add_parser(actions: Subparsers) -> None:
    """Adds the action."""
    parser = actions.add_parser(
        "certify",
        help="prove from its events that a run is complete",
        description="Checks that every counted rollout came to an end of its own, that every eligible sequence was "
        "trained, in the curriculum's order, none lost and none twice, on versions within their bounds, that every "
        "required evaluation took place on one pinned version, and when the run stopped. With --log, that a log says "
        "so too. Exit 0 if the certificate is granted, 1 if not, 2 if there is no such run.",
    )
    parser.add_argument("name", metavar="RUN", help="name of the run")
    parser.add_argument("--log", type=Path, metavar="FILE", help="a benchmark log that must be what the ledger gives")
    parser.add_argument("--submission", type=Path, metavar="TOML", help="what the submitter declared in that log")
    parser.add_argument("--out", type=Path, metavar="FILE", help="write the certificate there, as JSON")
    parser.add_argument("--json", action="store_true", help="print the certificate as one JSON object")
    parser.set_defaults(run=run, usage=parser)


def run(args: argparse.Namespace) -> int:
    """Prints the certificate; 0 if it is granted."""
    from cli.audit_stores import on_run  # imported here: they take a second, which `--help` should not
    from cli.mlperf_files import write_text
    from stepwell.mlperf.certificate.document import document, lines

    if (args.log is None) != (args.submission is None):
        args.usage.error("--log and --submission are given together, or neither")
    given = None if args.log is None else _given(args.name, args.log, args.submission)
    certificate = on_run(args.name, lambda stores: _certify(stores, args.name, given))
    text = json.dumps(document(certificate), indent=2)
    if args.out is not None:
        write_text(args.out, f"{text}\n")
    print(text if args.json else "\n".join(lines(certificate)))
    return 0 if certificate.granted else 1


def _given(name: str, log: Path, submission: Path) -> "GivenLog":
    """The log, with what is derived of the ledger."""
    from cli.mlperf_facts import facts_of
    from cli.mlperf_files import read_text
    from stepwell.mlperf.certificate.rules.log import GivenLog
    from stepwell.mlperf.deriving import derive
    from stepwell.mlperf.lines import lines_of, mllog_text
    from stepwell.mlperf.submission import load_submission

    found = read_text(log).splitlines()
    derived = mllog_text(lines_of(derive(facts_of([name])[0], load_submission(submission))))
    return GivenLog(str(log), found, derived.splitlines())


async def _certify(stores: "AuditStores", name: str, given: "GivenLog | None") -> "Certificate":
    from db.run_record import read_run
    from stepwell.mlperf.certificate.certify import certify

    record = await read_run(stores.database, stores.blobs, name)
    assert record is not None, f"run {name} has events, and no record"
    return certify(record, given)
