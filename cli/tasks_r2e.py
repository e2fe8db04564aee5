"""`stepwell tasks import-r2e`: makes a task set of the benchmark's rows and images."""

import argparse
import json
import sys
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path

from cli.arguments import Subparsers
from stepwell.tasks.r2e.curriculum import UnknownPassRate
from stepwell.tasks.r2e.images import ImagesUnfit, image_names, named
from stepwell.tasks.r2e.importing import CannotImport, ImportReport, ImportRequest, import_r2e, read_ids
from stepwell.tasks.r2e.reading import UnreadableFile
from stepwell.tasks.r2e.secrets import R2ESplit

SPLITS: Mapping[str, R2ESplit] = {"train": "train", "val": "validation"}
SHOWN = 20
"""Most bad rows and ids that the text names; `--json` has them all."""


def add_parser(actions: Subparsers) -> None:
    """Adds the action."""
    parser = actions.add_parser("import-r2e", help="make a set of R2E-Gym tasks from rows and Apptainer images")
    parser.add_argument(
        "files", nargs="+", type=Path, metavar="FILE", help="the benchmark's .jsonl or the dataset's .parquet"
    )
    parser.add_argument("--images", type=Path, required=True, metavar="DIR", help="folder of the SIF images")
    parser.add_argument("--split", choices=list(SPLITS), default="train", help="(default train)")
    parser.add_argument("--ids", type=Path, metavar="FILE", help="take these tasks only, in this order; an id a line")
    parser.add_argument(
        "--pass-rates", type=Path, metavar="FILE", help="order by the fixed curriculum: JSON, repository to pass rate"
    )
    parser.add_argument(
        "--sha256", action="append", default=[], metavar="DIGEST", help="what a file must be; once a file, in order"
    )
    parser.add_argument("--out", type=Path, required=True, metavar="SET", help="folder of the set; the split is added")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Imports: 1 if rows, ids or images keep the set from being made, 2 if the request cannot be carried out."""
    try:
        request = ImportRequest(
            files=tuple(args.files),
            images=args.images,
            split=SPLITS[args.split],
            out=args.out,
            sha256=tuple(args.sha256),
            ids=None if args.ids is None else read_ids(args.ids),
            pass_rates=None if args.pass_rates is None else _pass_rates(args.pass_rates),
        )
        report = import_r2e(request)
    except (CannotImport, UnknownPassRate) as error:
        print(error, file=sys.stderr)
        return 2
    except (UnreadableFile, ImagesUnfit) as error:
        print(error, file=sys.stderr)
        return 1
    if args.json:
        print(json.dumps(_as_json(report, request)))
    else:
        _print(report, request)
    return 1 if report.refused else 0


def _pass_rates(path: Path) -> dict[str, float]:
    try:
        table: object = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise CannotImport(f"cannot read the pass rates in {path}: {error}") from error
    entries: dict[str, object] = {str(key): value for key, value in table.items()} if isinstance(table, dict) else {}
    rates = {repo: float(rate) for repo, rate in entries.items() if isinstance(rate, int | float)}
    if not rates or len(rates) != len(entries):
        raise CannotImport(f'{path} holds no pass rates: wanted an object such as {{"numpy/numpy": 0.4}}')
    return rates


def _as_json(report: ImportReport, request: ImportRequest) -> dict[str, object]:
    return {
        "set": str(request.out),
        "split": request.split,
        "tasks": sum(report.by_repo.values()),
        **asdict(report),
        "sources": [source.model_dump() for source in report.sources],
    }


def _print(report: ImportReport, request: ImportRequest) -> None:
    for source in report.sources:
        print(f"{source.file}: {source.rows} rows, SHA-256 {source.sha256}")
    for repo, count in report.by_repo.items():
        print(f"{count:6} {repo}")
    if report.left_out:
        print(f"{report.left_out} rows are not among the ids and were left out")
    if report.ambiguous_tests:
        tests, tasks = sum(report.ambiguous_tests.values()), len(report.ambiguous_tests)
        print(f"{tests} expected tests of {tasks} tasks stand in several files or none; they are compared by name")
    _print_wrong("rows are not of the form", report.bad_rows, "\n  ")
    _print_wrong("ids are in no file", report.absent_ids, ", ")
    missing = report.missing_images
    _print_wrong(
        f"tasks have no image in {request.images}", [" or ".join(image_names(task)) for task in missing], "\n  "
    )
    if report.digest is None:
        print("no set was made", file=sys.stderr)
    else:
        tasks = sum(report.by_repo.values())
        print(f"{tasks} tasks in {request.out / request.split}, ordered by {report.order}, digest {report.digest}")


def _print_wrong(what: str, items: list[str], separator: str) -> None:
    if not items:
        return
    shown = named(items) if separator == ", " else separator.join(["", *items[:SHOWN]])
    rest = f"{separator}and {len(items) - SHOWN} more (--json names all)" if len(items) > SHOWN else ""
    print(f"{len(items)} {what}: {shown}{rest if separator != ', ' else ''}", file=sys.stderr)
