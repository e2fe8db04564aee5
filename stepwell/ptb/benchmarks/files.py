"""A file that says where the benchmarks' files lie on this machine, and what is in them.

    [gsm8k]
    rows = 20                  # only the first, for a rehearsal; without it all of the benchmark

    [gsm8k.files.test]
    path = "gsm8k_test.jsonl"  # from the folder of this file
    sha256 = "3730d312…"

Every command that needs rows takes them from here, so that all mean the same ones.
"""

import hashlib
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tomli_w
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from stepwell.nearest_names import did_you_mean
from stepwell.ptb.benchmarks.declared import BENCHMARKS


class BrokenBenchmarkFiles(ValueError):
    """The file names no benchmarks' files, or what lies there is something else."""


class _Strict(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class _Named(_Strict):
    path: Annotated[str, Field(min_length=1)]
    sha256: Annotated[str, Field(pattern="^[0-9a-f]{64}$")]


class _Declared(_Strict):
    rows: Annotated[int, Field(ge=1)] | None = None
    files: dict[str, _Named]


class _Content(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")

    benchmarks: dict[str, _Declared]


@dataclass(frozen=True)
class FilesOfBenchmark:
    """One benchmark's files, checked."""

    paths: Mapping[str, Path]
    """By the name that the benchmark has for each."""
    rows: int | None
    """Only the first; None for all."""


def load_benchmark_files(path: Path) -> dict[str, FilesOfBenchmark]:
    """By benchmark, its files.

    Raises:
        BrokenBenchmarkFiles: the file cannot be read, names a benchmark or a file that there is not, lacks one that
            the benchmark needs, or a file is not the one that its digest says.
    """
    try:
        loaded = tomllib.loads(path.read_text(encoding="utf-8"))
        content = _Content.model_validate({"benchmarks": loaded})
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise BrokenBenchmarkFiles(f"{path} cannot be read as TOML: {error}") from error
    except ValidationError as error:
        said = error.errors(include_url=False)[0]
        at = ".".join(map(str, said["loc"][1:]))
        raise BrokenBenchmarkFiles(f"{path} names no benchmarks' files: {at}: {said['msg']}") from error
    return {name: _checked(path, name, declared) for name, declared in content.benchmarks.items()}


def write_benchmark_files(
    path: Path, files: Mapping[str, Mapping[str, Path]], rows: Mapping[str, int] | None = None
) -> None:
    """Writes such a file, with the digests of what lies there now; paths from its folder where they are under it.

    Args:
        path: Of the new file.
        files: By benchmark, its files by name.
        rows: By benchmark, how many of the first rows are meant, where not all are.

    Raises:
        BrokenBenchmarkFiles: as `load_benchmark_files`, or the file exists.
    """
    if path.exists():
        raise BrokenBenchmarkFiles(f"{path} exists: name a new file, or remove it")
    root = path.resolve().parent
    content: dict[str, dict[str, object]] = {}
    for name, named in sorted(files.items()):
        _check_names(path, name, named)
        places: dict[str, dict[str, str]] = {}
        for role, file in sorted(named.items()):
            whole = file.resolve()
            place = whole.relative_to(root) if whole.is_relative_to(root) else whole
            places[role] = {"path": str(place), "sha256": _digest(whole)}
        content[name] = {**({"rows": rows[name]} if rows and name in rows else {}), "files": places}
    path.write_text(tomli_w.dumps(content), encoding="utf-8")


def _checked(path: Path, name: str, declared: _Declared) -> FilesOfBenchmark:
    _check_names(path, name, declared.files)
    paths: dict[str, Path] = {}
    for role, named in declared.files.items():
        place = path.parent / Path(named.path).expanduser()
        found = _digest(place)
        if found != named.sha256:
            raise BrokenBenchmarkFiles(
                f"{place} has the SHA-256 {found}, and {path} says {named.sha256} of {name}.{role}: take the file "
                f"anew from {BENCHMARKS[name].publisher}, or write the list anew if the change is wanted"
            )
        paths[role] = place
    return FilesOfBenchmark(paths, declared.rows)


def _check_names(path: Path, name: str, files: Mapping[str, object]) -> None:
    if name not in BENCHMARKS:
        hint = did_you_mean(name, BENCHMARKS)
        raise BrokenBenchmarkFiles(
            f"{path} names the benchmark {name!r}; there are {', '.join(BENCHMARKS)}" + (f"; {hint}" if hint else "")
        )
    wanted = BENCHMARKS[name].files
    if set(files) != set(wanted):
        raise BrokenBenchmarkFiles(f"{path} names {sorted(files)} for {name}: wanted {', '.join(wanted)}")


def _digest(place: Path) -> str:
    try:
        with place.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise BrokenBenchmarkFiles(f"{place} cannot be read: {error}; take it from its publisher") from error
