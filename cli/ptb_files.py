"""`stepwell ptb files`: the list of benchmarks' files, written or checked."""

import argparse
import json
import sys
from dataclasses import asdict, dataclass
from pathlib import Path

from cli.arguments import Subparsers


def add_parser(actions: Subparsers) -> None:
    """Adds the action."""
    parser = actions.add_parser(
        "files",
        help="write or check the list of benchmarks' files on this machine",
        description="Without --add checks that every file of the list is there, with the digest that it says, and "
        "loads each benchmark from it. With --add writes a new list. docs/posttrainbench.md says which files each "
        "benchmark needs, and from whom. Exit status 2 if something is not as it should be.",
    )
    parser.add_argument("list", type=Path, metavar="FILE.toml", help="the list")
    parser.add_argument(
        "--add",
        action="append",
        default=[],
        metavar="BENCHMARK.NAME=PATH",
        help="as gsm8k.test=gsm8k_test.jsonl; may be given again",
    )
    parser.add_argument(
        "--rows",
        action="append",
        default=[],
        metavar="BENCHMARK=N",
        help="with --add: only the first N rows, for rehearsals: scores of another comparability key",
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Writes or checks; 2 if there is something wrong."""
    from stepwell.ptb.benchmarks import BrokenRows  # imported here: pydantic's models take a while
    from stepwell.ptb.benchmarks.files import BrokenBenchmarkFiles

    try:
        if args.add:
            _write(args.list, args.add, args.rows)
        elif args.rows:
            raise BrokenBenchmarkFiles("--rows does nothing without --add: change the list, or write it anew")
        listed = _checked(args.list)
    except (BrokenBenchmarkFiles, BrokenRows) as error:
        print(f"stepwell ptb files: {error}", file=sys.stderr)
        return 2
    if args.json:
        print(json.dumps({name: asdict(one) for name, one in listed.items()}, indent=1))
        return 0
    for name, one in listed.items():
        of = "" if one.items == one.rows else f", of which the first {one.rows} are meant"
        print(f"{name}: {one.items} items{of}; data {one.data[:16]}")
        for role, path in one.files.items():
            print(f"  {role}  {path}")
    return 0


@dataclass(frozen=True)
class _Listed:
    """One benchmark of the list, loaded."""

    items: int
    rows: int
    """Those that are meant."""
    data: str
    files: dict[str, str]


def _write(path: Path, added: list[str], rows: list[str]) -> None:
    from stepwell.ptb.benchmarks.files import BrokenBenchmarkFiles, write_benchmark_files

    files: dict[str, dict[str, Path]] = {}
    for one in added:
        place, equals, file = one.partition("=")
        name, dot, role = place.partition(".")
        if not (equals and dot and role and file):
            raise BrokenBenchmarkFiles(f"--add {one!r} names no file: wanted BENCHMARK.NAME=PATH")
        files.setdefault(name, {})[role] = Path(file)
    first: dict[str, int] = {}
    for one in rows:
        name, _, number = one.partition("=")
        if name not in files or not number.isdecimal() or int(number) < 1:
            raise BrokenBenchmarkFiles(f"--rows {one!r}: wanted BENCHMARK=N, of a benchmark that --add names")
        first[name] = int(number)
    write_benchmark_files(path, files, first)


def _checked(path: Path) -> dict[str, _Listed]:
    from stepwell.ptb.benchmarks import BrokenRows, benchmark
    from stepwell.ptb.benchmarks.files import load_benchmark_files
    from stepwell.ptb.evaluation.versions import data_of

    found: dict[str, _Listed] = {}
    for name, one in load_benchmark_files(path).items():
        items = len(benchmark(name).load(one.paths, 0, whole=one.rows is None))
        if one.rows is not None and one.rows > items:
            raise BrokenRows(f"{path} means the first {one.rows} rows of {name}, and its file has {items}")
        found[name] = _Listed(
            items=items,
            rows=one.rows or items,
            data=data_of(one.paths, one.rows),
            files={role: str(file) for role, file in one.paths.items()},
        )
    return found
