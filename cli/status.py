"""`stepwell status`: what runs where."""

import argparse
import asyncio
import json
import sys
from dataclasses import asdict
from typing import TYPE_CHECKING

from cli.arguments import Subparsers

if TYPE_CHECKING:
    from cli.runs_under_way import RunUnderWay
    from db.workers import LiveWorker
    from workers.services.report import Report


def add_parser(subparsers: Subparsers) -> None:
    """Adds the verb."""
    parser = subparsers.add_parser(
        "status",
        help="say which services and workers run where",
        description="Says of each service where it is, its version, process and size, which workers are alive, and "
        "which runs are under way, with what they wait for. Exit 0 if all services run, else 1.",
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Prints the report; 1 if a service does not run."""
    from workers.services.errors import ServiceError  # imported here, as in `up`
    from workers.services.report import status

    try:
        report = status()
    except ServiceError as error:
        print(f"stepwell status: {error}", file=sys.stderr)
        return 1
    readable = _is_readable(report)
    workers = _live_workers() if readable else []
    runs = _runs_under_way() if readable else []
    if args.json:
        listed = [worker._asdict() | {"registered_at": worker.registered_at.isoformat()} for worker in workers]
        more = {"workers": listed, "runs": [asdict(each) for each in runs]}
        print(json.dumps(report.model_dump(mode="json") | more, indent=2))
    else:
        _print_table(report)
        _print_workers(workers)
        _print_runs(runs)
    return 0 if all(service.state == "running" for service in report.services) else 1


def _is_readable(report: "Report") -> bool:
    """Whether the database runs, and had a run."""
    from db.errors import OldDatabase
    from db.migrate import check
    from workers.services.addresses import resolve
    from workers.services.settings import ServiceName

    if any(each.service is ServiceName.POSTGRES and each.state != "running" for each in report.services):
        return False
    try:
        check(resolve().auditor)
    except OldDatabase:
        return False
    return True


def _live_workers() -> "list[LiveWorker]":
    """Workers whose lease holds."""
    from db.database import Database
    from db.workers import WorkerLeases
    from workers.services.addresses import resolve

    url = resolve().auditor

    async def look() -> "list[LiveWorker]":
        database = Database(url, pool_size=1)
        try:
            return await WorkerLeases(database).live()
        finally:
            await database.close()

    return asyncio.run(look())


def _runs_under_way() -> "list[RunUnderWay]":
    """Runs that are not over, with what they wait for."""
    from cli.runs_under_way import runs_under_way
    from workers.services.addresses import resolve

    return asyncio.run(runs_under_way(resolve()))


def _print_table(report: "Report") -> None:
    from rich.console import Console
    from rich.filesize import decimal
    from rich.table import Table

    table = Table(box=None, pad_edge=False, header_style="bold")
    for heading in ("service", "state", "pid", "version", "size", "address"):
        is_address = heading == "address"
        table.add_column(
            heading,
            justify="right" if heading in ("pid", "size") else "left",
            no_wrap=not is_address,
            overflow="fold" if is_address else "ellipsis",
        )
    for service in report.services:
        table.add_row(
            service.service,
            service.state if service.kind == "embedded" else f"{service.state}, external",
            str(service.pid or ""),
            service.version or "",
            decimal(service.size_bytes) if service.size_bytes is not None else "",
            service.address,
        )
        if service.ui:
            table.add_row("  web pages", "", "", "", "", service.ui)
    console = Console(highlight=False)
    console.print(table)
    for service in report.services:
        if service.problem:
            console.print(f"{service.service}: {service.problem}", markup=False)
        if service.deaths:
            console.print(f"{service.service} died {service.deaths} times and was started again")
    if report.supervisor_pid is None:
        console.print(f"home {report.home}", markup=False)
    else:
        until = "until `stepwell down`" if report.stays else f"as long as process {report.owner_pids} lives"
        console.print(f"home {report.home}, supervisor {report.supervisor_pid}, runs {until}", markup=False)


def _print_workers(workers: "list[LiveWorker]") -> None:
    from rich.console import Console
    from rich.table import Table

    console = Console(highlight=False)
    if not workers:
        console.print("no worker is alive")
        return
    table = Table(box=None, pad_edge=False, header_style="bold")
    for heading in ("worker", "host", "pid", "run", "queue", "alive since"):
        table.add_column(heading, justify="right" if heading == "pid" else "left", no_wrap=True)
    for worker in workers:
        since = worker.registered_at.astimezone().strftime("%Y-%m-%d %H:%M:%S")
        table.add_row(worker.kind, worker.host, str(worker.pid), worker.run or "any", worker.queue, since)
    console.print(table)


def _print_runs(runs: "list[RunUnderWay]") -> None:
    from rich.console import Console

    console = Console(highlight=False)
    for each in runs:
        console.print(f"run {each.run}: {each.state}", markup=False)
        for line in each.waits:
            console.print(f"  {line}", markup=False, soft_wrap=True)
