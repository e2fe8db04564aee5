"""`stepwell status`: what runs where."""

import argparse
import asyncio
import json
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from db.workers import LiveWorker
    from workers.services.report import Report


def add_parser(
    subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]",  # pyright: ignore[reportPrivateUsage]  # no public name
) -> None:
    """Adds the verb."""
    parser = subparsers.add_parser(
        "status",
        help="say which services and workers run where",
        description="Says of each service where it is, its version, process and size, and which workers are alive. "
        "Exit 0 if all services run, else 1.",
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
    workers = _live_workers(report)
    if args.json:
        listed = [worker._asdict() | {"registered_at": worker.registered_at.isoformat()} for worker in workers]
        print(json.dumps(report.model_dump(mode="json") | {"workers": listed}, indent=2))
    else:
        _print_table(report)
        _print_workers(workers)
    return 0 if all(service.state == "running" for service in report.services) else 1


def _live_workers(report: "Report") -> "list[LiveWorker]":
    """Workers whose lease holds; none while the database does not run, or before it had a run."""
    from db.database import Database
    from db.errors import OldDatabase
    from db.migrate import check
    from db.workers import WorkerLeases
    from workers.services.addresses import resolve
    from workers.services.settings import ServiceName

    if any(each.service is ServiceName.POSTGRES and each.state != "running" for each in report.services):
        return []
    url = resolve().auditor

    async def look() -> "list[LiveWorker]":
        database = Database(url, pool_size=1)
        try:
            return await WorkerLeases(database).live()
        finally:
            await database.close()

    try:
        check(url)
    except OldDatabase:
        return []
    return asyncio.run(look())


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
