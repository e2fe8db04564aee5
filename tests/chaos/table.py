"""The table of faults: what each one did to a run, printed, and kept in docs/recovery.md by the whole `make chaos`."""

import os
import statistics
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

BEGIN = "<!-- from here to the end: written by `make chaos` -->"
SAME = "same"
"""Outcome of a fault after which the run did the same as undisturbed, to the bit."""


@dataclass(frozen=True)
class Row:
    """What one fault did."""

    chapter: str
    """Heading that it stands under."""
    fault: str
    """At which moment."""
    process: str
    """What was hit."""
    signal: str
    """How: SIGKILL, SIGSTOP, a cut line, a full disk."""
    outcome: str
    """`same`, or what differs from the undisturbed run."""
    detection_s: float | None = None
    """From the fault to the first sign that the system noticed; None where that is not measured."""
    recovery_s: float | None = None
    """From the fault to the next recorded event of the run."""
    resumed_s: float | None = None
    """From the fault to the next event in the stream that was hit."""
    turns_lost: int = 0
    """Recorded turns that were lost."""
    turns_repeated: int = 0
    """Recorded turns that were generated again."""
    steps_repeated: int = 0
    """Optimiser steps that were applied twice."""
    work_lost_s: float | None = None
    """Seconds of work that was in no event yet and had to be done again."""
    hung: bool = False
    """Whether the run did not end by itself."""


@dataclass
class ChaosTable:
    """Rows of one session, in the order in which they came."""

    rows: list[Row] = field(default_factory=list[Row])

    def add(self, *rows: Row) -> None:
        """Takes rows in."""
        self.rows.extend(rows)

    def markdown(self) -> str:
        """All chapters, the summary first."""
        chapters = list(dict.fromkeys(row.chapter for row in self.rows))
        tables = [f"## {name}\n\n{table([row for row in self.rows if row.chapter == name])}" for name in chapters]
        return "\n\n".join([summary(self.rows), *tables]) + "\n"


def summary(rows: Sequence[Row]) -> str:
    """The figures that count."""
    lines = [
        f"| faults | {len(rows)} |",
        "|---|---|",
        f"| runs that ended as undisturbed | {sum(row.outcome == SAME for row in rows)} |",
        f"| recorded turns lost | {sum(row.turns_lost for row in rows)} |",
        f"| recorded turns generated again | {sum(row.turns_repeated for row in rows)} |",
        f"| optimiser steps repeated | {sum(row.steps_repeated for row in rows)} |",
        f"| hangs | {sum(row.hung for row in rows)} |",
    ]
    for name, values in (
        ("detection", [row.detection_s for row in rows]),
        ("next event of the run", [row.recovery_s for row in rows]),
        ("the work that was hit goes on", [row.resumed_s for row in rows]),
        ("work done again", [row.work_lost_s for row in rows]),
    ):
        known = [value for value in values if value is not None]
        if known:
            middle, largest = statistics.median(known), max(known)
            lines.append(f"| {name}, median and longest | {middle:.1f} s, {largest:.1f} s |")
    return "\n".join(lines)


def table(rows: Sequence[Row]) -> str:
    """One chapter's rows."""
    heading = (
        "fault",
        "process",
        "signal",
        "outcome",
        "detection s",
        "next event s",
        "resumed s",
        "turns lost",
        "turns repeated",
        "work lost s",
    )
    lines = [_line(heading), _line(["---"] * 4 + ["--:"] * 6)]
    for row in rows:
        times = [_seconds(value) for value in (row.detection_s, row.recovery_s, row.resumed_s)]
        turns = [str(row.turns_lost), str(row.turns_repeated)]
        lines.append(
            _line([row.fault, row.process, row.signal, row.outcome, *times, *turns, _seconds(row.work_lost_s)])
        )
    return "\n".join(lines)


def write(page: Path, written: str) -> None:
    """Replaces what is below the mark of a page; what is above it was written by hand and stays.

    Raises:
        ValueError: the page has no mark.
    """
    above, mark, _ = page.read_text(encoding="utf-8").partition(BEGIN)
    if not mark:
        raise ValueError(f"{page} has no line {BEGIN!r}: put it below the introduction")
    page.write_text(f"{above}{BEGIN}\n\n{written}", encoding="utf-8")


def wanted_page() -> Path | None:
    """The page that this session is to write: `make chaos` names it when it runs the whole suite."""
    name = os.environ.get("RECOVERY_PAGE")
    return Path(name) if name else None


def _line(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def _seconds(value: float | None) -> str:
    return "" if value is None else f"{value:.1f}"
