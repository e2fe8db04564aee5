"""Reading records: JSON lines, each a basis, a cell, a trial, a setup, or what a person found."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated, TypeVar

from pydantic import Field, TypeAdapter, ValidationError

from stepwell.ptb.leaderboard.reading import collect_results
from stepwell.ptb.leaderboard.records import Basis, BrokenResults, Cell
from stepwell.ptb.review.record import Audited, BrokenRecord, ReviewRecord
from stepwell.ptb.review.setup_record import SetupRecord
from stepwell.ptb.review.trial_record import TrialRecord

Line = Basis | Cell | TrialRecord | SetupRecord | Audited
_LINE: TypeAdapter[Line] = TypeAdapter(Annotated[Line, Field(discriminator="kind")])
KINDS = ("basis", "cell", "trial", "setup", "audited")
"""Of lines."""
T = TypeVar("T", TrialRecord, SetupRecord, Audited)


def read_record(paths: Sequence[Path]) -> ReviewRecord:
    """Everything in the files, results and what is known beside them, in any order. The same line twice counts once.

    Raises:
        BrokenRecord: a file cannot be read, a line is none of these, the results contradict each other, no agent has a
            trial in them, a trial is none of theirs, or two lines say different things of one trial, key or answer.
    """
    lines = [line for path in paths for line in _lines(path)]
    try:
        results = collect_results((line, where) for line, where in lines if isinstance(line, Basis | Cell))
    except BrokenResults as error:
        raise BrokenRecord(str(error)) from error
    setups = _each_once(
        (line, where, f"the key {line.basis}") for line, where in lines if isinstance(line, SetupRecord)
    )
    trials = _each_once((line, where, f"trial {line.trial}") for line, where in lines if isinstance(line, TrialRecord))
    audited = _each_once((line, where, f"answer {line.unit}") for line, where in lines if isinstance(line, Audited))
    known = [each.trial for each in results.cells if each.role == "agent"]
    if not known:
        raise BrokenRecord("no agent has a trial in these files: add the cells that are to be reviewed")
    twice = sorted({name for name in known if known.count(name) > 1})
    if twice:
        raise BrokenRecord(f"two cells have the trial {twice[0]!r}: give each cell's trial a name of its own")
    foreign = [each.trial for each in trials if each.trial not in set(known)]
    if foreign:
        raise BrokenRecord(f"the trial {foreign[0]!r} has no cell in these files: add its cell, or drop its record")
    lost = [each.basis for each in setups if each.basis is not None and each.basis not in results.bases]
    if lost:
        raise BrokenRecord(f"a setup is for the key {lost[0]!r}, which no basis here has: add the basis, or drop it")
    return ReviewRecord(
        bases=tuple(results.bases.values()),
        cells=results.cells,
        setups=tuple(setups),
        trials=tuple(trials),
        audited=tuple(audited),
    )


def _each_once(lines: Iterator[tuple[T, str, str]]) -> list[T]:
    found: dict[str, tuple[T, str]] = {}
    for line, where, what in lines:
        known, known_at = found.setdefault(what, (line, where))
        if known != line:
            raise BrokenRecord(f"{where} and {known_at} say different things of {what}: drop one")
    return [line for line, _ in found.values()]


def _lines(path: Path) -> Iterator[tuple[Line, str]]:
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise BrokenRecord(f"{path} cannot be read: {error}; name a file of results or of a review's record") from error
    for number, line in enumerate(text.split("\n"), 1):
        if line.strip():
            where = f"{path}, line {number}"
            try:
                yield _LINE.validate_json(line), where
            except ValidationError as error:
                said = error.errors(include_url=False)[0]
                at = ".".join(map(str, said["loc"]))
                raise BrokenRecord(f"{where} is none of {', '.join(KINDS)}: {at}: {said['msg']}") from error
