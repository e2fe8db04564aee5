"""Files of results: JSON lines, each a basis or a cell."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Annotated

from pydantic import Field, TypeAdapter, ValidationError

from stepwell.ptb.leaderboard.records import Basis, BrokenResults, Cell, Results

_LINE: TypeAdapter[Basis | Cell] = TypeAdapter(Annotated[Basis | Cell, Field(discriminator="kind")])


def read_results(paths: Sequence[Path]) -> Results:
    """Everything in the files. The same line twice counts once.

    Raises:
        BrokenResults: a file cannot be read, a line is neither, a cell's basis is in none of the files, a cell names a
            model or a benchmark that its basis has not, or two records of one cell differ.
    """
    return collect_results(line for path in paths for line in _lines(path))


def collect_results(lines: Iterable[tuple[Basis | Cell, str]]) -> Results:
    """The results that lines hold; each comes with the words for where it stands. The same line twice counts once.

    Raises:
        BrokenResults: as `read_results`, but for files that cannot be read.
    """
    bases: dict[str, Basis] = {}
    found: dict[tuple[str, ...], tuple[Cell, str]] = {}
    for line, where in lines:
        if isinstance(line, Basis):
            bases[line.key] = line
            continue
        known, known_at = found.setdefault(_place(line), (line, where))
        if known != line:
            raise BrokenResults(
                f"{where} and {known_at} are two records of one cell ({line.base_model} on {line.benchmark} in "
                f"run-set {line.run_set}): give the run-sets names of their own, or drop one"
            )
    for cell, where in found.values():
        _check(cell, where, bases)
    return Results(bases, tuple(cell for cell, _ in found.values()))


def _lines(path: Path) -> list[tuple[Basis | Cell, str]]:
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise BrokenResults(f"{path} cannot be read: {error}; name a file of results") from error
    lines: list[tuple[Basis | Cell, str]] = []
    for number, line in enumerate(text.split("\n"), 1):
        if line.strip():
            where = f"{path}, line {number}"
            try:
                lines.append((_LINE.validate_json(line), where))
            except ValidationError as error:
                said = error.errors(include_url=False)[0]
                at = ".".join(map(str, said["loc"]))
                raise BrokenResults(f"{where} is neither a basis nor a cell: {at}: {said['msg']}") from error
    return lines


def _place(cell: Cell) -> tuple[str, ...]:
    who = cell.role if cell.configuration is None else cell.configuration.digest
    return (cell.basis, who, cell.run_set, cell.base_model, cell.benchmark)


def _check(cell: Cell, where: str, bases: dict[str, Basis]) -> None:
    basis = bases.get(cell.basis)
    if basis is None:
        raise BrokenResults(f"{where}: its basis {cell.basis[:12]} is in none of the files: add the line that holds it")
    if cell.base_model not in basis.base_models:
        raise BrokenResults(
            f"{where}: {cell.base_model!r} is no base model of its basis: {', '.join(basis.base_models)}"
        )
    if cell.benchmark not in basis.weights:
        raise BrokenResults(f"{where}: {cell.benchmark!r} is no benchmark of its basis: {', '.join(basis.weights)}")
