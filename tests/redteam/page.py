"""The table of cheats in docs/grading.md, written by `make redteam`."""

import os
import re
from collections.abc import Sequence
from pathlib import Path

from tests.redteam.red_team import Found

PAGE = Path(__file__).resolve().parents[2] / "docs" / "grading.md"
BEGIN = "<!-- from here to the mark below: written by `make redteam` -->"
END = "<!-- end of what `make redteam` writes -->"
LONGEST_REASON = 140
_HEADING = ("cheat", "what it tries", "runners", "reward", "caught by", "reason")


def wanted_page() -> Path | None:
    """The page that this session is to write: `make redteam` names it."""
    name = os.environ.get("GRADING_PAGE")
    return Path(name) if name else None


def write(page: Path, found: Sequence[Found]) -> None:
    """Replaces what stands between the marks of a page.

    Raises:
        ValueError: the page has not both marks, in order.
    """
    above, first, rest = page.read_text(encoding="utf-8").partition(BEGIN)
    _, second, below = rest.partition(END)
    if not first or not second:
        raise ValueError(f"{page} has no lines {BEGIN!r} and {END!r}: put them where the table belongs")
    page.write_text(f"{above}{BEGIN}\n\n{markdown(found)}\n{END}{below}", encoding="utf-8")


def markdown(found: Sequence[Found]) -> str:
    """A summary, and a table for each chapter."""
    names = {one.cheat.name for one in found}
    rewarded = sorted({one.cheat.name for one in found if one.score != 0.0})
    parts = [
        f"{len(names)} cheats, {len(found)} gradings. With another reward than 0: {', '.join(rewarded) or 'none'}."
    ]
    for chapter in dict.fromkeys(one.cheat.chapter for one in found):
        rows = [one for one in found if one.cheat.chapter == chapter]
        lines = [_line(_HEADING), _line(["---"] * len(_HEADING))]
        for name in dict.fromkeys(one.cheat.name for one in rows):
            same = [one for one in rows if one.cheat.name == name]
            lines.append(_line([*_facts_of(same), reason_of(same[-1].reason)]))
        parts.append(f"### {chapter}\n\n" + "\n".join(lines))
    return "\n\n".join(parts) + "\n"


def facts(found: Sequence[Found]) -> list[tuple[str, ...]]:
    """What the table says, without the reasons: those name what differs from run to run."""
    names = dict.fromkeys(one.cheat.name for one in found)
    rows = [_facts_of([one for one in found if one.cheat.name == name]) for name in names]
    return [tuple(_line([cell])[2:-2] for cell in row) for row in rows]


def read_facts(text: str) -> list[tuple[str, ...]]:
    """The same, from a page."""
    table = text.partition(BEGIN)[2].partition(END)[0]
    rows = [re.split(r"(?<!\\) \| ", line[2:-2]) for line in table.split("\n") if line.startswith("| ")]
    return [tuple(row[:-1]) for row in rows if row[0] not in ("cheat", "---")]


def reason_of(report: str) -> str:
    """A reason on one line of a table: its beginning, and what was put back."""
    said, mark, put_back = " ".join(report.split()).partition("; put back before the tests: ")
    if len(said) > LONGEST_REASON:
        said = said[:LONGEST_REASON] + " …"
    return said + mark + put_back


def _facts_of(same: Sequence[Found]) -> list[str]:
    cheat = same[0].cheat
    scores = ", ".join(dict.fromkeys("not graded" if one.score is None else f"{one.score:g}" for one in same))
    graders = ", ".join(one.grader for one in same)
    return [cheat.name, cheat.tries, graders, scores, " or ".join(cheat.caught.split("|"))]


def _line(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"
